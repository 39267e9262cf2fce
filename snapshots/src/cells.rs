//! The cells of a block, as runs and as boxes. The cells of a run are consecutive in a file with
//! the whole array in C order (the last dimension varies fastest). A box is a part of the block's
//! local storage.

use fencepost_planner::grid::Block;

/// Returns the runs of a box of cells in a file of the whole array, in ascending order. A run is
/// given by the number of its first cell and its number of cells. All runs together are the cells
/// of the box in row-major order. Rows that are adjacent in the file are one run.
pub(crate) fn file_runs(
    global: &[usize],
    origin: &[usize],
    extent: &[usize],
) -> impl Iterator<Item = (u64, usize)> + use<> {
    // The cells of the box along dimension `whole` and all later dimensions are consecutive in the
    // file.
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

/// A box of cells that is a box both in the array and in a block's local storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredBox<const D: usize> {
    /// The index of its first cell in local storage.
    pub(crate) local: usize,
    /// The global index of its first cell.
    pub(crate) first: [usize; D],
    /// The number of its cells along each dimension.
    pub(crate) extent: [usize; D],
}

/// Returns disjoint boxes of all cells of local storage that are cells of the array. These are the
/// block's own cells and the cells of its halo. In dimensions that wrap, the halo continues at the
/// opposite edge of the array.
pub(crate) fn stored_boxes<const D: usize>(block: &Block<D>) -> Vec<StoredBox<D>> {
    let (origin, widths) = (block.origin(), block.widths());
    let (extent, strides, global) = (block.extent(), block.strides(), block.global());
    let mut boxes = vec![StoredBox { local: 0, first: [0; D], extent: [0; D] }];
    for d in 0..D {
        let (low, high) = block.on_edge(d);
        // A halo is at most one block wide, so it cannot wrap around the whole dimension.
        let below = widths[d] - widths[d].min(origin[d]);
        let end = origin[d] + extent[d];
        let above = widths[d] - widths[d].min(global[d] - end);
        let inside = extent[d] + 2 * widths[d] - below - above;
        // For each piece: the index of its first cell in local storage, the index of that cell in
        // the array, and the number of cells.
        let pieces = [
            (0, global[d] - below, if low { 0 } else { below }),
            (below, origin[d] + below - widths[d], inside),
            (below + inside, 0, if high { 0 } else { above }),
        ];
        let cut = |whole: StoredBox<D>| {
            pieces.into_iter().filter(|(_, _, cells)| *cells > 0).map(move |(local, first, cells)| {
                let mut piece = whole.clone();
                piece.local += local * strides[d];
                (piece.first[d], piece.extent[d]) = (first, cells);
                piece
            })
        };
        boxes = boxes.into_iter().flat_map(cut).collect();
    }
    boxes
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

    /// Sets each stored cell to its number in the array, and compares the numbers with those of the
    /// cells that the neighbours own.
    #[test]
    fn stored_cells_are_own_cells_and_halos_that_some_rank_owns() -> Result<()> {
        for (ranks, wraps) in [(1, [true, true]), (4, [false, true]), (6, [true, false]), (5, [false, false])]
        {
            for rank in 0..ranks {
                let block = Block::at(rank, ranks, [13, 11])?.periodic(wraps).halos([2, 1])?;
                let mut cells = vec![usize::MAX; block.len()];
                for stored in stored_boxes(&block) {
                    for i in 0..stored.extent[0] {
                        for j in 0..stored.extent[1] {
                            let cell = &mut cells[stored.local + i * block.strides()[0] + j];
                            assert_eq!(*cell, usize::MAX, "once");
                            *cell = (stored.first[0] + i) * 11 + stored.first[1] + j;
                        }
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
