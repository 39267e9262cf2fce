//! The cells of a block as runs, which are consecutive in its local storage or in a file that holds
//! the whole array in C order (the last dimension varies fastest).

use fencepost_planner::grid::Block;
use std::ops::Range;

/// Returns the runs of a box of cells in a file of the whole array: the number of the first cell
/// and the number of cells, in ascending order. The cells of all runs together are the cells of the
/// box, row-major. Rows that follow each other in the file are joined.
pub(crate) fn file_runs(
    global: &[usize],
    origin: &[usize],
    extent: &[usize],
) -> impl Iterator<Item = (u64, usize)> + use<> {
    // The cells of dimensions from `whole` on are consecutive in the file.
    let last = global.len() - 1;
    let whole = (0..=last).rev().find(|&d| extent[d] != global[d]).unwrap_or(0);
    let len: usize = extent[whole..].iter().product();
    let outer: Vec<(usize, usize, u64)> = (0..=last)
        .map(|d| (origin[d], extent[d], global[d + 1..].iter().map(|&cells| cells as u64).product()))
        .collect();
    let runs: usize = extent[..whole].iter().product();
    (0..if len == 0 { 0 } else { runs }).map(move |run| {
        let mut rest = run;
        let mut first = outer[whole..].iter().map(|(origin, _, stride)| *origin as u64 * stride).sum();
        for (origin, extent, stride) in outer[..whole].iter().rev() {
            first += (origin + rest % extent) as u64 * stride;
            rest /= extent;
        }
        (first, len)
    })
}

/// Cells that are consecutive in a block's local storage, and in a file of the whole array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredRun<const D: usize> {
    /// The indices of the cells in local storage.
    pub(crate) local: Range<usize>,
    /// The global index of the first one.
    pub(crate) first: [usize; D],
}

/// Returns the runs of all cells of local storage that are cells of the array: the block's own, and
/// those of its halo, around the edges of dimensions that wrap. They are rows, or parts of rows.
pub(crate) fn stored_runs<const D: usize>(block: &Block<D>) -> impl Iterator<Item = StoredRun<D>> + use<D> {
    let (origin, widths) = (block.origin(), block.widths());
    let (extent, strides, global) = (block.extent(), block.strides(), block.global());
    // Of each dimension: the pieces that are consecutive in both, as the first cell in local
    // storage, the first one of the array, and their number.
    let pieces: [Vec<(usize, usize, usize)>; D] = std::array::from_fn(|d| {
        let (low, high) = block.on_edge(d);
        // A halo is at most one block wide, so it ends before it has gone around.
        let below = widths[d] - widths[d].min(origin[d]);
        let end = origin[d] + extent[d];
        let above = widths[d] - widths[d].min(global[d] - end);
        let mut pieces = Vec::with_capacity(3);
        if below > 0 && !low {
            pieces.push((0, global[d] - below, below));
        }
        let inside = extent[d] + 2 * widths[d] - below - above;
        pieces.push((below, origin[d] + below - widths[d], inside));
        if above > 0 && !high {
            pieces.push((below + inside, 0, above));
        }
        pieces
    });
    let rows = pieces.clone().map(|pieces| {
        let cells =
            |(local, first, count): (usize, usize, usize)| (0..count).map(move |at| (local + at, first + at));
        pieces.into_iter().flat_map(cells).collect::<Vec<_>>()
    });
    let count: usize = rows[..D - 1].iter().map(Vec::len).product();
    (0..count).flat_map(move |row| {
        let (mut rest, mut start, mut at) = (row, 0, [0; D]);
        for d in (0..D - 1).rev() {
            let (local, global) = rows[d][rest % rows[d].len()];
            rest /= rows[d].len();
            start += local * strides[d];
            at[d] = global;
        }
        let pieces = pieces[D - 1].clone();
        pieces.into_iter().map(move |(local, first, count)| {
            let mut cell = at;
            cell[D - 1] = first;
            StoredRun { local: start + local..start + local + count, first: cell }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::Result;

    #[test]
    fn runs_of_a_box_are_its_cells_in_order_and_are_joined_where_the_file_has_nothing_between_them() {
        let runs = |global: &[usize], origin: &[usize], extent: &[usize]| {
            file_runs(global, origin, extent).collect::<Vec<_>>()
        };
        assert_eq!(runs(&[4, 5], &[1, 2], &[2, 3]), [(7, 3), (12, 3)]);
        assert_eq!(runs(&[4, 5], &[1, 0], &[2, 5]), [(5, 10)]);
        assert_eq!(runs(&[2, 3, 4], &[0, 1, 0], &[2, 2, 4]), [(4, 8), (16, 8)]);
        assert_eq!(runs(&[2, 3, 4], &[0, 0, 0], &[2, 3, 4]), [(0, 24)]);
        assert_eq!(runs(&[7], &[3], &[2]), [(3, 2)]);
    }

    /// Writes the number of each cell of the array to the stored cells, and compares with what
    /// neighbours own.
    #[test]
    fn stored_cells_are_own_cells_and_halos_that_some_rank_owns() -> Result<()> {
        for (ranks, wraps) in [(1, [true, true]), (4, [false, true]), (6, [true, false]), (5, [false, false])]
        {
            for rank in 0..ranks {
                let block = Block::at(rank, ranks, [13, 11])?.periodic(wraps).halos([2, 1])?;
                let mut cells = vec![usize::MAX; block.len()];
                for run in stored_runs(&block) {
                    for (at, cell) in run.local.enumerate() {
                        assert_eq!(cells[cell], usize::MAX, "once");
                        cells[cell] = run.first[0] * 11 + run.first[1] + at;
                    }
                }
                let ([rows, columns], [stride, _]) = (block.shape(), block.strides());
                for i in 0..rows {
                    for j in 0..columns {
                        let (row, column) = (block.origin()[0] + i, block.origin()[1] + j);
                        let place = |at: usize, width: usize, cells: usize, wraps: bool| match at
                            .checked_sub(width)
                        {
                            Some(at) if at < cells => Some(at),
                            _ => wraps.then_some((at + cells - width) % cells),
                        };
                        let owner = (place(row, 2, 13, wraps[0]), place(column, 1, 11, wraps[1]));
                        let expected = if let (Some(i), Some(j)) = owner { i * 11 + j } else { usize::MAX };
                        assert_eq!(cells[i * stride + j], expected, "rank {rank} of {ranks}: {i}, {j}");
                    }
                }
            }
        }
        Ok(())
    }
}
