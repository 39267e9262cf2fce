//! Several steps visited band by band. Each row comes after the rows that its step reads, and each
//! cell is computed once in each step.

use fencepost_planner::ErrorClass;
use fencepost_planner::grid::{Block, Tiles, Visit};
use fencepost_tests_support::cases::cases;
use proptest::prelude::*;

use crate::grid::indices;

/// Marks a cell that no step computes, because the cell is at the edge of the array or outside.
const FIXED: i32 = -1;
/// Marks a cell into which nothing has been written.
const NOTHING: i32 = -2;
/// A cell of step -1 has the value `BEFORE - 1`, and a cell of step -2 has the value `BEFORE - 2`.
const BEFORE: i32 = -10;

/// Returns all offsets of up to `reach` cells in each dimension.
fn offsets<const D: usize>(reach: [usize; D]) -> Vec<[isize; D]> {
    let all = indices(reach.map(|reach| 2 * reach + 1));
    all.map(|offset| std::array::from_fn(|d| offset[d] as isize - reach[d] as isize)).collect()
}

/// Returns `N` fields as they are before the first step. All computed cells of a field are of the
/// same step: step 0 in the present field, and steps -1, -2 and so on in the earlier fields. The
/// next field is not yet written.
fn fields<const D: usize, const N: usize>(block: &Block<D>, margin: usize) -> [Vec<i32>; N] {
    let (global, origin, widths) = (block.global(), block.origin(), block.widths());
    let (shape, strides) = (block.shape(), block.strides());
    let wraps: [bool; D] = std::array::from_fn(|d| block.clone().of(0).unwrap().on_edge(d) == (false, false));
    std::array::from_fn(|field| {
        let mut levels = vec![NOTHING; block.len()];
        for cell in indices(shape) {
            let computed = (0..D).all(|d| {
                let at = (origin[d] + cell[d]) as isize - widths[d] as isize;
                wraps[d] || at >= margin as isize && at + (margin as isize) < global[d] as isize
            });
            let known = match field as i32 + 2 - N as i32 {
                0 => 0,
                1 => NOTHING,
                before => BEFORE + before,
            };
            let at: usize = (0..D).map(|d| cell[d] * strides[d]).sum();
            levels[at] = if computed { known } else { FIXED };
        }
        levels
    })
}

/// Returns the number of cells that a step computes if `later` steps of the group follow.
fn computed<const D: usize>(block: &Block<D>, reach: [usize; D], later: usize, margin: usize) -> usize {
    let (global, origin, extent) = (block.global(), block.origin(), block.extent());
    let along = |d: usize| {
        let rim = (reach[d] * later) as isize;
        let wraps = block.clone().of(0).unwrap().on_edge(d) == (false, false);
        let is_computed = |cell: &isize| {
            let at = origin[d] as isize + cell;
            wraps || at >= margin as isize && at + (margin as isize) < global[d] as isize
        };
        (-rim..extent[d] as isize + rim).filter(is_computed).count()
    };
    (0..D).map(along).product()
}

/// Follows the step of every cell through these visits, with `N` fields that take turns. The steps
/// read up to `reach` cells away in the present field, and the cell itself in the fields before it.
fn follow<const D: usize, const N: usize>(
    block: &Block<D>,
    tiles: &Tiles<D>,
    visits: &[Visit<D>],
    (most, reach): (usize, [usize; D]),
    margin: usize,
) -> Result<(), String> {
    let offsets = offsets(reach);
    let mut levels: [Vec<i32>; N] = fields(block, margin);
    let mut cells = 0;
    for row in visits {
        let step = row.step() as i32;
        let mut turned = row.turn(levels.each_mut());
        let (next, before) = turned.split_last_mut().expect("two fields at least");
        let now = before.last().expect("two fields at least");
        for (age, field) in before.iter().rev().enumerate() {
            let level = step - age as i32;
            let expected = if level < 0 { BEFORE + level } else { level };
            if row.of(field).iter().any(|level| ![FIXED, expected].contains(level)) {
                return Err(format!("step {step} at {:?} does not find step {level}", row.first()));
            }
        }
        for offset in &offsets {
            if let Some(wrong) = row.at(now, *offset).iter().find(|level| ![FIXED, step].contains(level)) {
                return Err(format!("step {step} at {:?} reads step {wrong} at {offset:?}", row.first()));
            }
        }
        for level in row.of_mut(next) {
            if *level >= step {
                return Err(format!("step {step} at {:?} overwrites step {level}", row.first()));
            }
            *level = step + 1;
        }
        cells += row.len();
    }
    let steps = tiles.steps() as i32;
    let now = N - 2;
    let levels = tiles.turn(levels);
    for row in block.rows_inside(margin) {
        if row.of(&levels[now]).iter().any(|level| *level != steps) {
            return Err(format!("the row at {:?} is of steps {:?}", row.first(), row.of(&levels[now])));
        }
    }
    let swept = (0..tiles.steps()).map(|step| computed(block, reach, most - 1 - step, margin)).sum::<usize>();
    if cells == swept { Ok(()) } else { Err(format!("{cells} cells are visited, and {swept} computed")) }
}

/// The choices that one test draws.
#[derive(Clone, Debug)]
struct Shape<const D: usize> {
    ranks: usize,
    extra: [usize; D],
    reach: usize,
    steps: usize,
    left: usize,
    wraps: [bool; D],
    bands: [usize; D],
    margin: usize,
}

fn shapes<const D: usize>(cells: usize, most: usize) -> impl Strategy<Value = Shape<D>> {
    let band = prop_oneof![1..6_usize, Just(1), Just(usize::MAX), Just(1000)];
    let extra = prop::array::uniform(0..cells);
    let wraps = prop::array::uniform(any::<bool>());
    let bands = prop::array::uniform(band);
    let left = prop_oneof![Just(usize::MAX), 1..=most];
    (1..=9_usize, extra, 1..=4_usize, 1..=most, left, wraps, bands, 0..3_usize).prop_map(
        |(ranks, extra, reach, steps, left, wraps, bands, margin)| Shape {
            ranks,
            extra,
            reach,
            steps,
            left,
            wraps,
            bands,
            margin,
        },
    )
}

fn test<const D: usize>(shape: &Shape<D>) {
    let Shape { ranks, extra, reach, steps, left, wraps, bands, margin } = shape.clone();
    let width = reach * steps;
    // The smallest array of such blocks, and some more cells.
    let grid = Block::at(0, ranks, [1000; D]).unwrap().dims();
    let global: [usize; D] = std::array::from_fn(|d| grid[d] * width.max(1) + extra[d]);
    for rank in 0..ranks {
        let block = Block::at(rank, ranks, global).unwrap().grid(grid).unwrap();
        let block = block.halo(width).unwrap().periodic(wraps);
        let tiles = block.tiles(steps).unwrap().bands(bands).unwrap().at_most(left);
        let visits: Vec<_> = tiles.rows_inside(margin).collect();
        follow::<D, 2>(&block, &tiles, &visits, (steps, [reach; D]), margin).unwrap();
        follow::<D, 3>(&block, &tiles, &visits, (steps, [reach; D]), margin).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(40, 128) as u32))]

    #[test]
    fn each_row_of_a_line_comes_after_what_it_reads(shape in shapes::<1>(40, 16)) {
        test(&shape);
    }

    #[test]
    fn each_row_of_a_plane_comes_after_what_it_reads(shape in shapes::<2>(6, 6)) {
        test(&shape);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(8, 24) as u32))]

    #[test]
    fn each_row_of_space_comes_after_what_it_reads(shape in shapes::<3>(3, 3)) {
        test(&shape);
    }
}

#[test]
fn a_row_that_comes_one_visit_too_early_is_noticed() {
    let block = Block::at(4, 9, [60, 60]).unwrap().halo(6).unwrap();
    let tiles = block.tiles(3).unwrap();
    let visits: Vec<_> = tiles.rows().collect();
    follow::<2, 2>(&block, &tiles, &visits, (3, [2; 2]), 0).unwrap();
    let mut noticed = 0;
    for at in 1..visits.len() {
        let (earlier, later) = (visits[at - 1], visits[at]);
        if later.step() == 0 {
            continue; // the first step reads the initial values
        }
        let mut wrong = visits.clone();
        wrong.swap(at - 1, at);
        let follows = follow::<2, 2>(&block, &tiles, &wrong, (3, [2; 2]), 0);
        assert!(follows.is_err(), "{:?} before {:?}", later.first(), earlier.first());
        noticed += 1;
    }
    assert!(noticed > 20, "{noticed}");
    let without_last = &visits[..visits.len() - 1];
    assert!(follow::<2, 2>(&block, &tiles, without_last, (3, [2; 2]), 0).is_err());
}

#[test]
fn a_group_that_is_left_in_the_middle_can_be_finished() {
    let block = Block::at(0, 1, [20, 20]).unwrap().halo(4).unwrap();
    let tiles = block.tiles(4).unwrap();
    let mut rows = tiles.rows();
    let mut visits: Vec<_> = rows.by_ref().take(31).collect();
    visits.extend(rows);
    follow::<2, 2>(&block, &tiles, &visits, (4, [1; 2]), 0).unwrap();
}

#[test]
fn tiles_that_cannot_be_are_refused_with_what_is_allowed() {
    let block = Block::at(0, 4, [40, 40]).unwrap().halo(4).unwrap();
    let refused = |result: fencepost_planner::Result<Tiles<2>>, says: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Arg);
        assert!(error.message().contains(says), "{error}");
    };
    refused(block.tiles(0), "at least 1 step");
    refused(block.tiles(5), "give the block a wider halo");
    refused(block.tiles(4).unwrap().bands([0, 8]), "at least 1 in each dimension");
    refused(Block::at(0, 4, [40, 40]).unwrap().star(4).unwrap().tiles(2), "give the block a `.halo(4)`");
    assert_eq!(block.tiles(4).unwrap().at_most(0).rows().count(), 0);
}
