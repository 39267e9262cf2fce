//! Rows compared with indices that are computed one by one, and several steps for each exchange
//! compared with one step.

use fencepost_planner::ErrorClass;
use fencepost_planner::grid::{Block, Row};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::grid::{copy, indices};

/// Returns all offsets of up to `width` cells in each dimension.
fn offsets<const D: usize>(width: usize) -> impl Iterator<Item = [isize; D]> {
    indices([2 * width + 1; D]).map(move |offset| offset.map(|step| step as isize - width as isize))
}

/// Compares every slice of every row with the elements at its indices. Returns the number of cells.
fn slices<const D: usize>(block: &Block<D>, width: usize) -> usize {
    let mut u: Vec<usize> = (0..block.len()).collect();
    let (strides, origin) = (block.strides(), block.origin());
    let mut cells = indices(block.extent());
    let mut seen = 0;
    for row in block.rows() {
        assert!(row.len() > 0);
        for j in 0..row.len() {
            let cell = cells.next().expect("as many cells as the block has");
            let at = block.index(cell);
            assert_eq!((row.range().start + j, row.of(&u)[j]), (at, at));
            let mut first = cell.map(|cell| cell as isize);
            first[D - 1] -= j as isize;
            assert_eq!(row.first(), first);
            for offset in offsets(width) {
                let shift: isize = (0..D).map(|d| offset[d] * strides[d] as isize).sum();
                assert_eq!(row.at(&u, offset)[j], at.wrapping_add_signed(shift), "{offset:?}");
            }
            seen += 1;
        }
        assert_eq!(row.of_mut(&mut u).len(), row.len());
    }
    assert_eq!(cells.next(), None);
    block.fill(&mut u, |cell| usize::MAX - cell.iter().sum::<usize>());
    for cell in indices(block.extent()) {
        let sum: usize = (0..D).map(|d| origin[d] + cell[d]).sum();
        assert_eq!(u[block.index(cell)], usize::MAX - sum);
    }
    seen
}

#[test]
fn slices_of_a_row_are_the_cells_at_their_offset() {
    for width in [1, 2] {
        for rank in 0..6 {
            let wide = |block: Block<2>| slices(&block.halo(width).unwrap(), width);
            assert!(wide(Block::at(rank, 6, [7, 11]).unwrap()) > 0);
            // With the halo, the rows have 512 elements, and are padded.
            assert!(wide(Block::at(rank, 6, [13, 512 - 2 * width]).unwrap().grid([6, 1]).unwrap()) > 0);
            let line = Block::at(rank, 6, [13]).unwrap().halo(width).unwrap();
            assert_eq!(slices(&line, width), if rank == 0 { 3 } else { 2 });
            let space = Block::at(rank, 6, [5, 7, 6]).unwrap().grid([1, 3, 2]).unwrap().halo(width).unwrap();
            assert!(slices(&space, width) > 0);
        }
    }
    let row = Block::at(0, 1, [4, 4, 4]).unwrap().halo(1).unwrap().rows().nth(5).unwrap();
    let u: Vec<usize> = (0..216).collect();
    assert_eq!((row.left(&u), row.right(&u)), (row.at(&u, [0, 0, -1]), row.at(&u, [0, 0, 1])));
    assert_eq!((row.up(&u), row.down(&u)), (row.at(&u, [0, -1, 0]), row.at(&u, [0, 1, 0])));
    assert_eq!(row.each(&u, [[1, 0, 0], [-1, 1, 0]]), [row.at(&u, [1, 0, 0]), row.at(&u, [-1, 1, 0])]);
}

#[test]
fn slices_of_any_number_of_offsets_are_those_of_each_alone() {
    fn compare<const N: usize>(row: Row<2>, u: &[usize]) {
        let offsets: [_; N] = std::array::from_fn(|n| [n as isize % 7 - 3, n as isize / 7 % 7 - 3]);
        assert_eq!(
            row.each(u, offsets).to_vec(),
            offsets.map(|offset| row.at(u, offset)).to_vec(),
            "{N} offsets"
        );
    }
    let block = Block::at(0, 1, [5, 9]).unwrap().halo(3).unwrap();
    let u: Vec<usize> = (0..block.len()).collect();
    for row in block.rows() {
        compare::<0>(row, &u);
        compare::<1>(row, &u);
        compare::<31>(row, &u);
        compare::<32>(row, &u);
        compare::<33>(row, &u);
        compare::<49>(row, &u);
    }
}

#[test]
fn a_slice_of_something_else_is_refused_at_the_call() {
    let row: Row<2> = Block::at(0, 1, [4, 4]).unwrap().halo(1).unwrap().rows().next().unwrap();
    let star: Row<2> = Block::at(0, 1, [4, 4]).unwrap().star(1).unwrap().rows().next().unwrap();
    let mut u = vec![0.0; 36];
    assert_eq!((star.at(&u, [0, -1]).len(), star.at(&u, [1, 0]).len(), row.at(&u, [1, -1]).len()), (4, 4, 4));
    let mut refused = |words: &[&str], call: &mut dyn FnMut(&mut Vec<f64>)| {
        let panic = catch_unwind(AssertUnwindSafe(|| call(&mut u))).expect_err("it is refused");
        let text = panic.downcast_ref::<String>().expect("a message with values");
        for word in words {
            assert!(text.contains(word), "{text:?} does not say {word:?}");
        }
    };
    refused(&["[-2, 0]", "[1, 1]", "wider"], &mut |u| drop(row.at(u, [-2, 0]).to_vec()));
    refused(&["[0, 2]", "[1, 1]"], &mut |u| drop(row.at(u, [0, 2]).to_vec()));
    refused(&["[1, 9223372036854775807]"], &mut |u| drop(row.at(u, [1, isize::MAX]).to_vec()));
    refused(&["[1, -9223372036854775808]"], &mut |u| drop(row.at(u, [1, isize::MIN]).to_vec()));
    refused(&["[1, 1]", "star", "`.halo(..)`"], &mut |u| drop(star.at(u, [1, 1]).to_vec()));
    refused(&["35 elements", "36"], &mut |u| drop(row.of(&u[1..]).to_vec()));
    refused(&["35 elements", "36"], &mut |u| row.of_mut(&mut u[1..]).fill(1.0));
    refused(&["37 elements", "36"], &mut |u| {
        u.push(0.0);
        row.up(u).to_vec().clear();
    });
}

#[test]
fn a_star_has_the_neighbours_behind_faces() {
    let star = Block::at(4, 9, [9, 9]).unwrap().star(1).unwrap();
    assert!(star.neighbours().eq(star.faces()));
    assert_eq!((star.neighbours().count(), star.clone().halo(1).unwrap().neighbours().count()), (4, 8));
    assert_ne!(star, star.clone().halo(1).unwrap());
    assert_eq!(star.widths(), [1, 1]);
}

/// Fills all halos from the blocks around them.
fn exchange<const D: usize>(blocks: &[Block<D>], fields: &mut [Vec<f64>]) {
    let mut after: Vec<Vec<(f64, u32)>> =
        fields.iter().map(|cells| cells.iter().map(|&cell| (cell, 0)).collect()).collect();
    for (me, block) in blocks.iter().enumerate() {
        for n in block.neighbours() {
            copy(&fields[me], &block.inner_edge(&n), &mut after[n.rank], &block.halo_of(&n));
        }
    }
    for (field, after) in fields.iter_mut().zip(after) {
        *field = after.into_iter().map(|(cell, _)| cell).collect();
    }
}

/// Runs `count` steps, with `steps` steps for each exchange, over a halo of `steps` times `reach`
/// cells. Each cell is computed from all cells up to `reach` away. The weights have no symmetry, so
/// a value from another cell changes the result. Returns all cells of the array.
fn simulate<const D: usize>(
    (global, grid, wraps): ([usize; D], [usize; D], [bool; D]),
    (count, steps, reach): (usize, usize, usize),
) -> Vec<u64> {
    let ranks = grid.iter().product();
    let blocks: Vec<Block<D>> = (0..ranks)
        .map(|rank| {
            let block = Block::at(rank, ranks, global).unwrap().grid(grid).unwrap().periodic(wraps);
            block.halo(steps * reach).unwrap()
        })
        .collect();
    let number = |cell: [usize; D]| (0..D).fold(0, |sum, d| sum * global[d] + cell[d]);
    let mut fields: Vec<Vec<f64>> = blocks.iter().map(|block| vec![f64::NAN; block.len()]).collect();
    for (block, field) in blocks.iter().zip(&mut fields) {
        block.fill(field, |cell| (number(cell) as f64).sin());
    }
    // No step computes the cells at an edge of the array. One exchange of each field brings these
    // cells.
    let mut others = fields.clone();
    exchange(&blocks, &mut others);
    for done in (0..count).step_by(steps) {
        exchange(&blocks, &mut fields);
        for ((block, field), next) in blocks.iter().zip(&mut fields).zip(&mut others) {
            let tiles = block.tiles(steps).unwrap().at_most(count - done);
            for row in tiles.rows_inside(reach) {
                let [now, next] = row.turn([&mut *field, &mut *next]);
                for j in 0..row.len() {
                    let near = offsets(reach).enumerate();
                    let sum: f64 = near.map(|(n, at)| row.at(now, at)[j] / (3 + n) as f64).sum();
                    row.of_mut(next)[j] = sum / 2.0;
                }
            }
            if tiles.steps() % 2 == 1 {
                std::mem::swap(field, next);
            }
        }
    }
    let mut cells = vec![0; global.iter().product()];
    for (block, field) in blocks.iter().zip(&fields) {
        let origin = block.origin();
        for cell in indices(block.extent()) {
            let value = field[block.index(cell)];
            assert!(!value.is_nan(), "{cell:?} of {block:?}");
            cells[number(std::array::from_fn(|d| origin[d] + cell[d]))] = value.to_bits();
        }
    }
    cells
}

/// Compares several steps for each exchange, up to `most`, with one step for each exchange.
fn deep<const D: usize>(global: [usize; D], grid: [usize; D], most: usize, reach: usize) {
    for wraps in indices([2; D]).map(|wraps| wraps.map(|wraps| wraps == 1)) {
        let whole = simulate((global, [1; D], wraps), (most + 1, 1, reach));
        for steps in 1..=most {
            let parts = simulate((global, grid, wraps), (most + 1, steps, reach));
            assert_eq!(parts, whole, "{steps} steps of {global:?} over {grid:?} ranks, {wraps:?}");
        }
    }
}

#[test]
fn several_steps_an_exchange_have_the_bits_of_one() {
    deep([35], [4], 8, 1);
    deep([29], [2], 4, 3);
    deep([19, 26], [2, 3], 8, 1);
    deep([13, 17], [2, 2], 3, 2);
    deep([5, 9, 8], [1, 2, 2], 4, 1);
    deep([17, 9, 8], [2, 1, 1], 8, 1);
}

#[test]
fn steps_that_the_halo_is_too_narrow_for_are_refused() {
    let block = Block::at(0, 4, [32, 32]).unwrap();
    let refused = |block: Block<2>, steps, words: &[&str]| {
        let error = block.tiles(steps).map(|_| ()).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Arg);
        for word in words {
            assert!(error.message().contains(word), "{error}");
        }
    };
    refused(block.clone().halo(3).unwrap(), 4, &["4 steps", "[3, 3]", "wider"]);
    refused(block.clone().halos([3, 1]).unwrap(), 2, &["2 steps", "[3, 1]"]);
    assert_eq!(block.clone().halos([2, 0]).unwrap().tiles(2).unwrap().steps(), 2);
    refused(block.clone().halo(3).unwrap(), 0, &["0 steps", "at least 1"]);
    refused(block.clone().star(3).unwrap(), 3, &["star", "`.halo(3)`"]);
    assert_eq!(block.clone().star(3).unwrap().tiles(1).unwrap().steps(), 1);

    // A halo of five cells for two steps has two cells for each step. No cell is read that the
    // exchange has not filled.
    let row = block.halo(5).unwrap().tiles(2).unwrap().rows().next().unwrap();
    let u = vec![0; 26 * 26];
    assert_eq!(row.first(), [0, 0]);
    assert_eq!(row.len(), 16 + 2);
    assert!(catch_unwind(|| row.at(&u, [3, 0]).len()).is_err());
    assert_eq!(row.at(&u, [-2, -2]).len(), 18);
}

/// Checks that each cell of `rows_inside` is either in the core or in the rest, exactly once, and
/// that the core reads only own cells.
fn parts<const D: usize>(block: &Block<D>, margin: usize) -> usize {
    let mut seen = vec![0; block.len()];
    let own: Vec<bool> = {
        let mut own = vec![false; block.len()];
        block.rows().for_each(|row| row.of_mut(&mut own).fill(true));
        own
    };
    let mut core = 0;
    for row in block.rows_core() {
        row.of_mut(&mut seen).iter_mut().for_each(|times| *times += 1);
        for offset in offsets(block.widths()[D - 1]) {
            assert_eq!(row.range_at(offset).len(), row.len());
            assert!(own[row.range_at(offset)].iter().all(|own| *own), "{offset:?} of {row:?}");
        }
        core += row.len();
    }
    for row in block.rows_rest(margin) {
        row.of_mut(&mut seen).iter_mut().for_each(|times| *times += 1);
    }
    let mut expected = vec![0; block.len()];
    block.rows_inside(margin).for_each(|row| row.of_mut(&mut expected).fill(1));
    assert_eq!(seen, expected, "{block:?}, margin {margin}");
    core
}

#[test]
fn the_core_and_the_rest_are_all_cells_inside_once() {
    let (mut with, mut without) = (0, 0);
    for ranks in [1, 2, 3, 4, 6] {
        for rank in 0..ranks {
            for (width, margin) in [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2)] {
                for wraps in [false, true] {
                    let line = Block::at(rank, ranks, [17]).unwrap().halo(width).unwrap().periodic([wraps]);
                    let plane = Block::at(rank, ranks, [12, 13]).unwrap().halo(width).unwrap();
                    let space = Block::at(rank, ranks, [6, 7, 8]).unwrap().halo(width).unwrap();
                    let plane = plane.periodic([wraps, false]);
                    let space = space.periodic([false, true, wraps]);
                    for core in [parts(&line, margin), parts(&plane, margin), parts(&space, margin)] {
                        *(if core > 0 { &mut with } else { &mut without }) += 1;
                    }
                }
            }
        }
    }
    assert!(with > 100 && without > 20, "{with} blocks with a core, {without} without");
    let refused = catch_unwind(|| Block::at(0, 1, [9, 9]).unwrap().halo(1).unwrap().rows_rest(2).count());
    let text = refused.expect_err("wider than the halo");
    let text = text.downcast_ref::<String>().expect("a message with values");
    assert!(
        text.contains("a margin of 2 cells") && text.contains("[1, 1]") && !text.contains("  "),
        "{text}"
    );
    // A dimension that wraps has no margin.
    assert!(Block::at(0, 1, [9, 9]).unwrap().halo(1).unwrap().periodic([true; 2]).rows_rest(2).count() > 0);
}
