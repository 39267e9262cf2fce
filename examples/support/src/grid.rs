//! [`Grid`]: a two-dimensional field of values, read from a file or drawn as a picture; and arrays made of blocks.

use fencepost_planner::Result;
use fencepost_planner::grid::Block;

/// A field of `f64` in row-major order.
#[derive(Clone, PartialEq, Debug)]
pub struct Grid {
    /// The number of rows; row 0 is the northernmost of an elevation model.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// `rows * columns` values.
    pub cells: Vec<f64>,
}

impl Grid {
    /// Creates a grid of `cells`.
    ///
    /// # Panics
    /// If the number of cells is zero, or not `rows * columns`.
    pub fn new(rows: usize, columns: usize, cells: Vec<f64>) -> Self {
        assert!(!cells.is_empty(), "a grid has at least one cell");
        assert_eq!(Some(cells.len()), rows.checked_mul(columns), "cells of a {rows} x {columns} grid");
        Self { rows, columns, cells }
    }

    /// Returns a grid in which this one is repeated `times` times in both directions.
    ///
    /// # Panics
    /// If `times` is zero, or there are more cells than memory has.
    #[must_use]
    pub fn repeated(&self, times: usize) -> Grid {
        let band: Vec<f64> = self.cells.chunks(self.columns).flat_map(|row| row.repeat(times)).collect();
        Grid::new(self.rows * times, self.columns * times, band.repeat(times))
    }

    /// Returns the grid whose cells are `f` of the corresponding cells of `self` and `other`.
    ///
    /// # Panics
    /// If the shapes differ.
    #[must_use]
    pub fn zip(&self, other: &Grid, f: impl Fn(f64, f64) -> f64) -> Grid {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns), "grids of one shape");
        let cells = self.cells.iter().zip(&other.cells).map(|(&a, &b)| f(a, b)).collect();
        Grid { rows: self.rows, columns: self.columns, cells }
    }

    /// Returns the cell at a row and column, or the nearest cell if they are outside of the grid.
    pub fn nearest(&self, row: isize, column: isize) -> f64 {
        let row = row.clamp(0, self.rows as isize - 1) as usize;
        let column = column.clamp(0, self.columns as isize - 1) as usize;
        self.cells[row * self.columns + column]
    }

    /// Returns the quantile `q`, from 0 to 1, of the cells that are not NaN; 0 if all are NaN.
    pub fn quantile(&self, q: f64) -> f64 {
        let mut sorted: Vec<f64> = self.cells.iter().copied().filter(|value| !value.is_nan()).collect();
        if sorted.is_empty() {
            return 0.0;
        }
        let at = ((sorted.len() - 1) as f64 * q.clamp(0.0, 1.0)).round() as usize;
        *sorted.select_nth_unstable_by(at, f64::total_cmp).1
    }
}

/// Assembles a whole array from the own cells of all blocks, `[rank]`, each row by row; `block` is any of them.
///
/// # Errors
/// There are more parts than ranks.
///
/// # Panics
/// If a part has not as many cells as its block.
pub fn assemble<const D: usize>(block: &Block<D>, parts: &[Vec<f64>]) -> Result<Vec<f64>> {
    let global = block.global();
    let mut cells = vec![0.0; global.iter().product()];
    for (rank, part) in parts.iter().enumerate() {
        let (theirs, mut rest) = (block.of(rank)?, &part[..]);
        let origin = theirs.origin();
        for row in theirs.rows() {
            let first = row.first();
            let at = (0..D).fold(0, |at, d| at * global[d] + origin[d].wrapping_add_signed(first[d]));
            let (own, others) = rest.split_at(row.len());
            cells[at..][..row.len()].copy_from_slice(own);
            rest = others;
        }
        assert!(rest.is_empty(), "{} cells beyond those of rank {rank}", rest.len());
    }
    Ok(cells)
}

/// Returns the BLAKE3 digest of the little-endian bytes of the values, in hexadecimal.
pub fn digest(cells: &[f64]) -> String {
    let mut hasher = blake3::Hasher::new();
    for cell in cells {
        hasher.update(&cell.to_le_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_cells_of_the_grid_and_leave_out_nan() {
        let grid = Grid::new(1, 5, vec![4.0, f64::NAN, 1.0, 3.0, 2.0]);
        assert_eq!([grid.quantile(0.0), grid.quantile(0.34), grid.quantile(1.0)], [1.0, 2.0, 4.0]);
    }

    #[test]
    fn a_repeated_grid_has_the_cell_of_the_first_one_everywhere() {
        let grid = Grid::new(2, 3, (0..6).map(f64::from).collect());
        let large = grid.repeated(3);
        assert_eq!((large.rows, large.columns), (6, 9));
        for (at, cell) in large.cells.iter().enumerate() {
            assert_eq!(*cell, grid.cells[at / 9 % 2 * 3 + at % 9 % 3]);
        }
    }

    #[test]
    fn blocks_are_assembled_where_they_are_in_the_array() {
        let block = Block::at(0, 6, [5, 7]).unwrap().halo(1).unwrap();
        let own = |rank| {
            let theirs = block.of(rank).unwrap();
            let mut u = vec![0.0; theirs.len()];
            theirs.fill(&mut u, |[i, j]| (10 * i + j) as f64);
            theirs.rows().flat_map(|row| row.of(&u).to_vec()).collect()
        };
        let parts: Vec<Vec<f64>> = (0..6).map(own).collect();
        let whole = assemble(&block, &parts).unwrap();
        assert!(whole.iter().enumerate().all(|(at, &cell)| cell == (10 * (at / 7) + at % 7) as f64));
    }

    #[test]
    fn a_digest_sees_the_sign_of_zero_and_the_order() {
        assert_ne!(digest(&[0.0]), digest(&[-0.0]));
        assert_ne!(digest(&[1.0, 2.0]), digest(&[2.0, 1.0]));
        assert_eq!(digest(&[]), blake3::hash(b"").to_hex().to_string());
    }
}
