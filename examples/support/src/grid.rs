//! [`Grid`]: a two-dimensional field of values, read from a file or drawn as a picture.

use fencepost_planner::grid::Block;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_runtime::{TransportKind, ranks};
use fencepost_snapshots::Field;
use std::path::Path;

/// The maximum number of cells of a grid, which take 2 GiB.
const CELLS_MAX: usize = 1 << 28;

/// A field of `f64` in row-major order.
#[derive(Clone, PartialEq, Debug)]
pub struct Grid {
    /// The number of rows. In an elevation model, row 0 is the northernmost row.
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

    /// Reads the grid in the NumPy file at `path`.
    ///
    /// # Errors
    /// As [`Field::open`] and [`Field::load`]; FILE if the array is not a grid.
    pub fn load(path: &Path) -> Result<Self> {
        let field = Field::open(path)?;
        let cells = field.shape().iter().try_fold(1_usize, |all, &cells| all.checked_mul(cells));
        let (&[rows, columns], Some(1..=CELLS_MAX)) = (field.shape(), cells) else {
            let message = format!(
                "{}: its shape is {:?}; a grid has two dimensions, each at least 1, and at most {CELLS_MAX} cells",
                path.display(),
                field.shape()
            );
            return Err(Error::new(ErrorClass::File, message));
        };
        let block = whole(rows, columns)?;
        let mut cells = vec![0.0; block.len()];
        field.load(&block, &mut cells)?;
        Ok(Self::new(rows, columns, cells))
    }

    /// Writes the grid to a NumPy file at `path`.
    ///
    /// # Errors
    /// As [`Field::save`].
    pub fn save(&self, path: &Path) -> Result<()> {
        // The world consists of this process alone, even in a job of processes.
        ranks(1)
            .transport(TransportKind::Local)
            .run(|world| Field::save(world, &whole(self.rows, self.columns)?, &self.cells, path))
    }

    /// Returns a grid in which this one is repeated `times` times in both directions.
    ///
    /// # Panics
    /// If `times` is zero, or if memory has no room for the cells.
    #[must_use]
    pub fn repeated(&self, times: usize) -> Grid {
        let band: Vec<f64> = self.cells.chunks(self.columns).flat_map(|row| row.repeat(times)).collect();
        Grid::new(self.rows * times, self.columns * times, band.repeat(times))
    }

    /// Returns a grid in which each cell is the result of `f` for the corresponding cells of `self`
    /// and `other`.
    ///
    /// # Panics
    /// If the shapes differ.
    #[must_use]
    pub fn zip(&self, other: &Grid, f: impl Fn(f64, f64) -> f64) -> Grid {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns), "grids of one shape");
        let cells = self.cells.iter().zip(&other.cells).map(|(&a, &b)| f(a, b)).collect();
        Grid { rows: self.rows, columns: self.columns, cells }
    }

    /// Returns the grid without its outermost cells, or the whole grid if it has no other cells.
    #[must_use]
    pub fn without_rim(&self) -> Grid {
        if self.rows < 3 || self.columns < 3 {
            return self.clone();
        }
        let rows = self.cells.chunks(self.columns).skip(1).take(self.rows - 2);
        let cells = rows.flat_map(|row| &row[1..row.len() - 1]).copied().collect();
        Grid { rows: self.rows - 2, columns: self.columns - 2, cells }
    }

    /// Returns the cell at a row and column. If this position is outside of the grid, returns the
    /// nearest cell.
    pub fn nearest(&self, row: isize, column: isize) -> f64 {
        let row = row.clamp(0, self.rows as isize - 1) as usize;
        let column = column.clamp(0, self.columns as isize - 1) as usize;
        self.cells[row * self.columns + column]
    }

    /// Returns the quantile `q` (from 0 to 1) of the cells that are not NaN, or 0 if all cells are
    /// NaN.
    pub fn quantile(&self, q: f64) -> f64 {
        let mut sorted: Vec<f64> = self.cells.iter().copied().filter(|value| !value.is_nan()).collect();
        if sorted.is_empty() {
            return 0.0;
        }
        let at = ((sorted.len() - 1) as f64 * q.clamp(0.0, 1.0)).round() as usize;
        *sorted.select_nth_unstable_by(at, f64::total_cmp).1
    }
}

/// Returns a block that is a whole grid on one rank, without a halo or padding.
fn whole(rows: usize, columns: usize) -> Result<Block<2>> {
    Ok(Block::at(0, 1, [rows, columns])?.pad(false))
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
    fn a_grid_without_its_rim_has_the_cells_inside() {
        let grid = Grid::new(4, 3, (0..12).map(f64::from).collect());
        assert_eq!(grid.without_rim(), Grid::new(2, 1, vec![4.0, 7.0]));
        let narrow = Grid::new(2, 3, vec![0.0; 6]);
        assert_eq!(narrow.without_rim(), narrow);
    }

    #[test]
    fn a_grid_is_read_as_it_was_written() {
        let path = std::env::temp_dir().join(format!("fencepost-grid-{}.npy", std::process::id()));
        // Blocks that pad their rows would pad rows of this length.
        let grid = Grid::new(3, 512, (0..3 * 512).map(|cell| 0.1 * f64::from(cell)).collect());
        grid.save(&path).expect("a file for the grid");
        assert_eq!(Grid::load(&path).expect("the same file"), grid);
        std::fs::remove_file(&path).expect("the file is there");
        let error = Grid::load(&path).expect_err("no file").to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
    }

    #[test]
    fn an_array_that_is_not_a_grid_is_refused() {
        let path = std::env::temp_dir().join(format!("fencepost-no-grid-{}.npy", std::process::id()));
        let saved = ranks(1).run(|world| Field::save(world, &Block::new(world, [7])?, &[0.5; 7], &path));
        saved.expect("a file for the line");
        let error = Grid::load(&path).expect_err("a line is not a grid");
        std::fs::remove_file(&path).expect("the file is there");
        assert!(error.message().contains("its shape is [7]; a grid has two dimensions"), "{error}");
    }

    #[test]
    fn a_digest_sees_the_sign_of_zero_and_the_order() {
        assert_ne!(digest(&[0.0]), digest(&[-0.0]));
        assert_ne!(digest(&[1.0, 2.0]), digest(&[2.0, 1.0]));
        assert_eq!(digest(&[]), blake3::hash(b"").to_hex().to_string());
    }
}
