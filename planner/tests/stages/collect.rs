//! Patterns of all ranks, which are evaluated once for each class of the arguments. The result is
//! the same as if each rank were evaluated.

use fencepost_planner::Result;
use fencepost_planner::argument::Argument;
use fencepost_planner::collect::patterns;
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::grid::Block;
use fencepost_planner::ids::{Delta, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Patterns, Site};
use std::cell::Cell;

fn put<const D: usize>(block: &Block<D>, me: u32, n: &fencepost_planner::grid::Neighbour<D>) -> Operation {
    Operation {
        kind: Kind::Put,
        window: WindowId(0),
        target: Some(Delta::between(Rank(me), Rank(n.rank as u32))),
        remote: block.halo_of(n),
        local: Local::Section { window: WindowId(0), datatype: block.inner_edge(n) },
        mode: Mode::Auto,
        site: Site { file: "halo.rs".into(), line: 7, column: 9 },
    }
}

fn halo<const D: usize>(block: &Block<D>, me: u32) -> Pattern {
    Pattern { operations: block.neighbours().map(|n| put(block, me, &n)).collect() }
}

fn collect<A: Argument>(
    ranks: u32,
    arguments: impl Fn(u32) -> Result<A>,
    record: impl Fn(u32, &A) -> Result<(Pattern, bool)>,
) -> Result<(Patterns, usize)> {
    let count = Cell::new(0);
    let windows = [ElementType::scalar(Scalar::F64)].into_iter().collect();
    let patterns = patterns("exchange", windows, ranks, arguments, |rank, arguments| {
        count.set(count.get() + 1);
        record(rank, arguments)
    })?;
    Ok((patterns, count.get()))
}

/// Checks that the pattern of each rank is the one that the rank would record for itself.
fn as_each_rank_would(patterns: &Patterns, record: impl Fn(u32) -> Pattern) {
    for (rank, &class) in patterns.class_of.iter().enumerate() {
        assert_eq!(patterns.classes[class], record(rank as u32));
    }
}

#[test]
fn a_halo_is_evaluated_at_most_three_times_a_class() {
    for wraps in [false, true] {
        for (global, grid) in [([20, 20, 20], [5, 4, 5]), ([23, 19, 33], [5, 4, 6]), ([4, 6, 2], [2, 3, 1])] {
            let ranks: usize = grid.iter().product();
            let block = |rank| {
                let block = Block::at(rank as usize, ranks, global)?.grid(grid)?.periodic([wraps; 3]);
                block.halo(2).or_else(|_| Block::at(rank as usize, ranks, global)?.grid(grid)?.halo(1))
            };
            let (patterns, calls) =
                collect(ranks as u32, block, |rank, block| Ok((halo(block, rank), false))).unwrap();
            assert!(calls <= ranks && calls <= 3 * patterns.classes.len(), "{calls}");
            assert_eq!(patterns.shape, grid.map(|ranks| ranks as u32));
            as_each_rank_would(&patterns, |rank| halo(&block(rank).unwrap(), rank));
        }
    }
}

#[test]
fn an_even_3d_halo_has_27_patterns() {
    let block = |rank| Block::at(rank as usize, 120, [50, 40, 60])?.grid([5, 4, 6])?.halo(1);
    let (patterns, _) = collect(120, block, |rank, block| Ok((halo(block, rank), false))).unwrap();
    assert_eq!(patterns.classes.len(), 27);
}

/// Only the even ranks put. A rank determines in three ways whether it is even.
#[test]
fn ranks_that_were_told_apart_are_evaluated_each() {
    let block = |rank| Block::at(rank as usize, 49, [70, 70])?.halo(1);
    let even = |even: bool, block: &Block<2>, me| if even { halo(block, me) } else { Pattern::default() };
    let expected = |rank| even(rank % 2 == 0, &block(rank).unwrap(), rank);

    let asked =
        collect(49, block, |rank, block| Ok((even(block.rank() % 2 == 0, block, rank), false))).unwrap();
    assert!(asked.1 >= 49);
    as_each_rank_would(&asked.0, expected);
    let told = collect(49, block, |rank, block| Ok((even(rank % 2 == 0, block, rank), true))).unwrap();
    assert!(told.1 >= 49);
    as_each_rank_would(&told.0, expected);
    assert_eq!(asked.0, told.0);
    // Four corners, four sides and the inside. In each of these classes, the odd ranks do nothing.
    assert!(asked.0.classes.len() <= 10, "{}", asked.0.classes.len());
}

#[test]
fn what_cannot_be_watched_is_seen_where_the_first_the_middle_or_the_last_differs() {
    let block = |rank| Block::at(rank as usize, 49, [70, 70])?.halo(1);
    // The middle rank of the inner class is rank 24.
    for odd in [8, 24, 40] {
        let record =
            |rank, block: &Block<2>| if rank == odd { Pattern::default() } else { halo(block, rank) };
        let found = collect(49, block, |rank, block| Ok((record(rank, block), false))).unwrap();
        as_each_rank_would(&found.0, |rank| record(rank, &block(rank).unwrap()));
    }
}

#[test]
fn arguments_without_a_class_are_evaluated_each_and_kept_once() {
    struct Mine(Block<1>);
    impl Argument for Mine {}
    let mine = |rank| Ok(Mine(Block::at(rank as usize, 9, [90])?.halo(1)?));
    let (patterns, calls) = collect(9, mine, |rank, mine| Ok((halo(&mine.0, rank), false))).unwrap();
    assert_eq!((calls, patterns.classes.len()), (9, 3));
    assert_eq!(patterns.shape, [9]);
    assert_eq!(
        patterns.class_of.iter().map(|class| class.0).collect::<Vec<_>>(),
        [0, 1, 1, 1, 1, 1, 1, 1, 2]
    );
}

#[test]
fn an_error_says_on_which_rank() {
    let error = collect(9, |rank| Block::at(rank as usize, 5, [90]), |_, _| Ok((Pattern::default(), false)));
    assert_eq!(error.unwrap_err().rank(), Some(5));
    let none = collect(0, |rank| Block::at(rank as usize, 5, [90]), |_, _| Ok((Pattern::default(), false)));
    assert_eq!(none.unwrap_err().class(), fencepost_planner::ErrorClass::Rank);
}
