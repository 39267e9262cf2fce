//! Collects the patterns of a 2D halo of 100,172 ranks (316 x 317, all eight neighbours), cold, and says how long each
//! step takes.
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use fencepost_planner::Result;
use fencepost_planner::argument::Argument;
use fencepost_planner::collect::patterns;
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::grid::{Block, Neighbour};
use fencepost_planner::ids::{Delta, Rank, WindowId};
use fencepost_planner::ir::class_map::NestedRuns;
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Patterns, Site};
use std::time::Instant;

const GRID: [usize; 2] = [316, 317];

fn block(rank: u32) -> Result<Block<2>> {
    Block::at(rank as usize, GRID[0] * GRID[1], [GRID[0] * 64, GRID[1] * 64])?.halo(1)
}

/// The pattern of `u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))` for every neighbour.
fn exchange(me: u32, block: &Block<2>) -> Pattern {
    let site = Site { file: "examples/heat2d.rs".into(), line: 8, column: 9 };
    let put = |n: Neighbour<2>| Operation {
        kind: Kind::Put,
        window: WindowId(0),
        target: Some(Delta::between(Rank(me), Rank(n.rank as u32))),
        remote: block.halo_of(&n),
        local: Local::Section { window: WindowId(0), datatype: block.inner_edge(&n) },
        mode: Mode::Auto,
        site: site.clone(),
    };
    Pattern { operations: block.neighbours().map(put).collect() }
}

/// The patterns of the halo.
fn halo() -> Result<Patterns> {
    let windows = [ElementType::scalar(Scalar::F64)].into_iter().collect();
    let ranks = (GRID[0] * GRID[1]) as u32;
    patterns("exchange", windows, ranks, block, |rank, block| Ok((exchange(rank, block), false)))
}

fn timed<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = act();
    println!("{what:<24} {:>10.3} ms", start.elapsed().as_secs_f64() * 1e3);
    result
}

fn main() -> Result<()> {
    let ranks = (GRID[0] * GRID[1]) as u32;
    timed("100,172 blocks", || (0..ranks).try_for_each(|rank| block(rank).map(drop)))?;
    timed("and their classes", || {
        (0..ranks).try_for_each(|rank| block(rank).map(|block| drop(std::hint::black_box(block.class()))))
    })?;
    let patterns = timed("patterns", halo)?;
    let map = timed("map of classes", || NestedRuns::compress(&patterns.class_of, &patterns.shape));
    println!("{} classes, {} levels of runs", patterns.classes.len(), map.levels.len());
    Ok(())
}
