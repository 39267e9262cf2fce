//! Blocks compared with a plain model. Each halo cell is filled by exactly one neighbour, with the
//! right cell of the array.

use fencepost_planner::ErrorClass;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::grid::{Block, RankPosition};
use fencepost_tests_support::cases::every_case;

/// Returns every index of an array of `shape` in row-major order.
pub fn indices<const D: usize>(shape: [usize; D]) -> impl Iterator<Item = [usize; D]> {
    (0..shape.iter().product()).map(move |mut rest: usize| {
        let mut index = [0; D];
        for d in (0..D).rev() {
            index[d] = rest % shape[d];
            rest /= shape[d];
        }
        index
    })
}

/// Returns the first cell and the number of cells of block `coord` when `n` cells are distributed
/// over `p` blocks one by one.
fn dealt(n: usize, p: usize, coord: usize) -> (usize, usize) {
    let mut blocks = vec![0; p];
    (0..n).for_each(|cell| blocks[cell % p] += 1);
    (blocks[..coord].iter().sum(), blocks[coord])
}

/// Copies each element of `from` in `source` to `to` in `target`, and counts the writes.
pub fn copy<T: Copy>(source: &[T], from: &Datatype, target: &mut [(T, u32)], to: &Datatype) {
    assert_eq!(from.size(), to.size(), "both sides have as many elements");
    for (from, to) in from.element_iter().zip(to.element_iter()) {
        let cell = &mut target[to as usize];
        *cell = (source[from as usize], cell.1 + 1);
    }
}

/// Fills all halos by puts and by gets, and checks every element of every rank's storage.
fn exchange<const D: usize>(
    global: [usize; D],
    grid: [usize; D],
    widths: [usize; D],
    wraps: [bool; D],
    pads: bool,
) {
    let ranks = grid.iter().product();
    let blocks: Vec<Block<D>> = (0..ranks)
        .map(|rank| {
            let block = Block::at(rank, ranks, global).unwrap().grid(grid).unwrap();
            block.periodic(wraps).pad(pads).halos(widths).unwrap()
        })
        .collect();
    let number = |cell: [usize; D]| (0..D).fold(0, |sum, d| sum * global[d] + cell[d]) as i64;

    // The storage of each rank, in row-major order of the grid. Each cell of the rank's own block
    // holds its index in the array.
    let mut places = Vec::new();
    let mut storage: Vec<Vec<i64>> = Vec::new();
    for (block, coords) in blocks.iter().zip(indices(grid)) {
        let dealt: [_; D] = std::array::from_fn(|d| dealt(global[d], grid[d], coords[d]));
        let (origin, extent) = (dealt.map(|d| d.0), dealt.map(|d| d.1));
        assert_eq!((block.origin(), block.extent(), block.coords()), (origin, extent, coords));
        let mut cells = vec![-1; block.len()];
        let mut rows = block.rows().flat_map(|row| row.range());
        let interior = block.interior();
        for cell in indices(extent) {
            let at = block.index(cell);
            assert_eq!(rows.next(), Some(at));
            cells[at] = number(std::array::from_fn(|d| origin[d] + cell[d]));
            assert_eq!(block.owner(std::array::from_fn(|d| origin[d] + cell[d])), Some(block.rank()));
        }
        assert_eq!(rows.next(), None);
        assert!(block.rows().flat_map(|row| row.range()).eq(interior.element_iter().map(|at| at as usize)));
        assert_eq!(interior.size(), extent.iter().product::<usize>());
        places.push((origin, extent));
        storage.push(cells);
    }

    for gets in [false, true] {
        let mut after: Vec<Vec<(i64, u32)>> =
            storage.iter().map(|cells| cells.iter().map(|&cell| (cell, 0)).collect()).collect();
        for (me, block) in blocks.iter().enumerate() {
            for n in block.neighbours() {
                if gets {
                    copy(&storage[n.rank], &block.inner_edge_of(&n), &mut after[me], &block.outer_edge(&n));
                } else {
                    copy(&storage[me], &block.inner_edge(&n), &mut after[n.rank], &block.halo_of(&n));
                }
            }
        }
        for ((block, (origin, extent)), after) in blocks.iter().zip(&places).zip(after) {
            let mut expected = vec![(-1, 0); block.len()];
            let (shape, strides) = (block.shape(), block.strides());
            for cell in indices(shape) {
                let at: usize = (0..D).map(|d| cell[d] * strides[d]).sum();
                let own = (0..D).all(|d| (widths[d]..widths[d] + extent[d]).contains(&cell[d]));
                // The cell's index in the array, wrapped around if the array wraps.
                let place: Option<Vec<usize>> = (0..D)
                    .map(|d| {
                        let place = (origin[d] + cell[d]) as i64 - widths[d] as i64;
                        let n = global[d] as i64;
                        let inside = if wraps[d] { place.rem_euclid(n) } else { place };
                        (0..n).contains(&inside).then_some(inside as usize)
                    })
                    .collect();
                if let Some(place) = place {
                    expected[at] = (number(std::array::from_fn(|d| place[d])), u32::from(!own));
                }
            }
            assert_eq!(after, expected, "gets {gets}, {block:?}");
        }
    }
}

/// Tries every width up to the smallest block, with and without wrapping.
fn exchanges<const D: usize>(global: [usize; D], grid: [usize; D]) -> usize {
    let mut count = 0;
    let most: [usize; D] = std::array::from_fn(|d| global[d] / grid[d] + 1);
    for widths in indices(most) {
        for wraps in indices([2; D]) {
            exchange(global, grid, widths, wraps.map(|wraps| wraps == 1), true);
            count += 1;
        }
    }
    count
}

#[test]
fn every_halo_cell_is_filled_once_with_the_right_cell_in_one_dimension() {
    let mut count = 0;
    for n in 1..=13 {
        for p in 1..=n.min(6) {
            count += exchanges([n], [p]);
        }
    }
    assert!(count > 300, "{count}");
}

#[test]
fn every_halo_cell_is_filled_once_with_the_right_cell_in_two_dimensions() {
    for n in [[1, 1], [3, 4], [5, 7], [8, 6]] {
        for p in indices([4, 4]).map(|p: [usize; 2]| p.map(|p| p + 1)) {
            if p[0] <= n[0] && p[1] <= n[1] {
                exchanges(n, p);
            }
        }
    }
}

#[test]
fn every_halo_cell_is_filled_once_with_the_right_cell_in_three_dimensions() {
    for n in [[2, 3, 4], [5, 4, 7]] {
        let grids = indices([3, 3, 4]).map(|p: [usize; 3]| p.map(|p| p + 1));
        let fitting = grids.filter(|p| (0..3).all(|d| p[d] <= n[d]));
        for p in fitting.step_by(if every_case() { 1 } else { 5 }) {
            exchanges(n, p);
        }
    }
}

#[test]
fn neighbours_with_and_without_padding_fit_together() {
    // In the first two cases, two blocks have rows of 512 cells, and two have rows of 511. With a
    // halo of width 0 the longer rows are padded, and with a halo of width 1 no rows are. In
    // another case the padded rows have 510 + 2 cells.
    for (cells, width) in [(2046, 0), (2046, 1), (2042, 1), (1022 + 1021, 1), (2040, 2), (2033, 2)] {
        for wraps in indices([2, 2]) {
            for pads in [true, false] {
                exchange([3, cells], [1, 4], [width.min(3), width], wraps.map(|wraps| wraps == 1), pads);
            }
        }
    }
    exchange([2, 3, 1021], [2, 1, 2], [1, 2, 1], [true, true, false], true);
}

#[test]
fn unlucky_rows_are_padded_unless_told_otherwise() {
    let block = Block::at(0, 1, [10, 510]).unwrap().halo(1).unwrap();
    assert_eq!((block.shape(), block.strides(), block.len()), ([12, 512], [520, 1], 12 * 520));
    let block = block.pad(false);
    assert_eq!((block.shape(), block.strides(), block.len()), ([12, 512], [512, 1], 12 * 512));
    let block = Block::at(0, 1, [10, 511]).unwrap().halo(1).unwrap();
    assert_eq!(block.strides(), [513, 1]);
    let block = Block::at(0, 1, [4, 5, 1024]).unwrap();
    assert_eq!((block.strides(), block.len()), ([5 * 1032, 1032, 1], 4 * 5 * 1032));
    assert_eq!(Block::at(0, 1, [1024]).unwrap().len(), 1024);
}

#[test]
fn few_ranks_that_wrap_are_neighbours_on_several_sides() {
    let two = Block::at(0, 2, [8, 8]).unwrap().halo(1).unwrap().periodic([true; 2]);
    assert_eq!(two.neighbours().map(|n| n.rank).collect::<Vec<_>>(), [1, 1, 1, 0, 0, 1, 1, 1]);
    assert_eq!(two.faces().map(|n| n.rank).collect::<Vec<_>>(), [1, 0, 0, 1]);
    let alone = Block::at(0, 1, [4, 4, 4]).unwrap().halo(1).unwrap().periodic([true; 3]);
    assert_eq!(alone.neighbours().filter(|n| n.rank == 0).count(), 26);
    assert_eq!(Block::at(0, 1, [4, 4, 4]).unwrap().neighbours().count(), 0);
    assert_eq!(two.neighbour([0, 0]), None);
    assert_eq!(two.neighbour([5, 0]).map(|n| (n.rank, n.offset)), Some((1, [1, 0])));
}

#[test]
fn rows_inside_leave_out_what_is_near_an_edge_of_the_array() {
    for (n, p) in [([7, 9], [2, 3]), ([6, 6], [3, 1]), ([4, 5], [1, 1])] {
        for margin in 0..4 {
            for wraps in [[false, false], [true, false], [false, true]] {
                let ranks = p[0] * p[1];
                let mut seen = 0;
                for rank in 0..ranks {
                    let block =
                        Block::at(rank, ranks, n).unwrap().grid(p).unwrap().halo(1).unwrap().periodic(wraps);
                    let origin = block.origin();
                    let expected: Vec<usize> = indices(block.extent())
                        .filter(|cell| {
                            (0..2).all(|d| {
                                let at = origin[d] + cell[d];
                                wraps[d] || (at >= margin && at + margin < n[d])
                            })
                        })
                        .map(|cell| block.index(cell))
                        .collect();
                    let rows: Vec<usize> = block.rows_inside(margin).flat_map(|row| row.range()).collect();
                    assert_eq!(rows, expected, "margin {margin}, {block:?}");
                    seen += rows.len();
                }
                assert!(seen > 0 || margin >= 2);
            }
        }
    }
}

#[test]
fn edges_of_the_array_are_reported_where_nothing_wraps() {
    let block = Block::at(0, 4, [8, 8]).unwrap().periodic([false, true]);
    assert_eq!((block.on_edge(0), block.on_edge(1)), ((true, false), (false, false)));
    let block = Block::at(3, 4, [8, 8]).unwrap();
    assert_eq!((block.on_edge(0), block.on_edge(1)), ((false, true), (false, true)));
    assert_eq!(Block::at(0, 1, [8]).unwrap().on_edge(0), (true, true));
}

#[test]
fn an_impossible_block_is_an_error_that_says_why_and_what_to_do() {
    let refused = |result: fencepost_planner::Result<Block<2>>, class, words: &[&str]| {
        let error = result.unwrap_err();
        assert_eq!(error.class(), class);
        for word in words {
            assert!(error.message().contains(word), "{error}");
        }
    };
    refused(Block::at(4, 4, [8, 8]), ErrorClass::Rank, &["rank 4 among 4"]);
    refused(Block::at(0, 0, [8, 8]), ErrorClass::Rank, &["rank 0 among 0"]);
    refused(Block::at(0, 7, [6, 6]), ErrorClass::Dims, &["[6, 6]", "7", "fewer ranks"]);
    refused(Block::at(0, 1, [0, 6]), ErrorClass::Dims, &["[0, 6]"]);
    let block = || Block::at(0, 6, [9, 9]).unwrap();
    refused(block().grid([2, 2]), ErrorClass::Dims, &["[2, 2]", "6"]);
    refused(block().grid([usize::MAX, 2]), ErrorClass::Dims, &["product"]);
    refused(block().halo(4), ErrorClass::Arg, &["halo of 4", "as few as 3", "no other grid of ranks"]);
    refused(block().halo(usize::MAX), ErrorClass::Arg, &["halo"]);
    refused(
        Block::at(0, 100, [50, 100]).unwrap().grid([100, 1]),
        ErrorClass::Dims,
        &["100 ranks", "50 cells"],
    );
    refused(Block::at(0, 1, [1 << 40, 1 << 40]), ErrorClass::Size, &["memory"]);
    refused(Block::at(0, 1, [usize::MAX, 1]), ErrorClass::Size, &["memory"]);
}

#[test]
fn a_halo_is_refused_only_where_it_fits_no_grid() {
    let (mut chosen_again, mut refused) = (0, 0);
    for ranks in [1, 2, 6, 7, 12, 24] {
        for global in indices([24, 24]).map(|cell| cell.map(|n| n + 1)) {
            let Ok(block) = Block::at(ranks - 1, ranks, global) else { continue };
            for widths in [[1, 1], [2, 2], [4, 4], [0, 3], [3, 0], [1, 4]] {
                let grids = (1..=ranks).filter(|a| ranks.is_multiple_of(*a)).map(|a| [a, ranks / a]);
                let fits = |grid| block.clone().grid(grid).and_then(|block| block.halos(widths)).ok();
                let fitting: Vec<_> = grids.filter_map(fits).collect();
                match block.clone().halos(widths) {
                    Ok(halo) => {
                        assert!(fitting.contains(&halo), "{halo:?}");
                        // A grid with enough room is kept.
                        let stays = fitting.iter().any(|fits| fits.dims() == block.dims());
                        assert!(!stays || halo.dims() == block.dims(), "{halo:?}");
                        chosen_again += usize::from(!stays);
                        // The result is the block of the same rank, whatever grid the block had
                        // before.
                        assert_eq!(
                            halo,
                            Block::at(0, ranks, global)
                                .unwrap()
                                .halos(widths)
                                .unwrap()
                                .of(ranks - 1)
                                .unwrap()
                        );
                    }
                    Err(error) => {
                        assert!(fitting.is_empty(), "{error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(chosen_again > 100 && refused > 100, "{chosen_again} {refused}");
    let block = Block::at(0, 24, [14, 37]).unwrap();
    assert_eq!((block.dims(), block.halo(4).unwrap().dims()), ([2, 12], [3, 8]));
    let own_grid = Block::at(0, 24, [14, 37]).unwrap().grid([2, 12]).unwrap().halo(4).unwrap_err();
    assert!(own_grid.message().contains("use a `.grid(..)` with fewer ranks"), "{own_grid}");
}

#[test]
fn the_block_of_another_rank_is_the_one_it_would_make() {
    let make =
        |rank| Block::at(rank, 12, [37, 41]).unwrap().grid([2, 6]).unwrap().periodic([true, false]).halo(3);
    let third = make(3).unwrap();
    for rank in 0..12 {
        assert_eq!(third.of(rank).unwrap(), make(rank).unwrap());
    }
    assert_eq!(third.of(12).unwrap_err().class(), ErrorClass::Rank);
}

#[test]
fn a_world_places_its_block() {
    struct Here;
    impl RankPosition for Here {
        fn rank(&self) -> usize {
            2
        }
        fn size(&self) -> usize {
            4
        }
    }
    assert_eq!(Block::new(&Here, [10, 10]).unwrap(), Block::at(2, 4, [10, 10]).unwrap());
}
