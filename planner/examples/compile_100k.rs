//! Compiles and verifies a 2D halo of 100,172 ranks (316 x 317, all eight neighbours) with cold
//! caches, writes and reads the plan, and prints how long each step takes.
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use fencepost_planner::collect::patterns;
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::grid::{Block, Neighbour};
use fencepost_planner::ids::{Delta, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Patterns, Site};
use fencepost_planner::ir::schedule::{Placement, Schedule};
use fencepost_planner::machine::Machine;
use fencepost_planner::plan::{from_bytes, to_bytes};
use fencepost_planner::{Options, Result, compile, verify};
use std::time::Instant;

const GRID: [usize; 2] = [316, 317];
const RANKS: u32 = (GRID[0] * GRID[1]) as u32;
/// Two arrays. The first one is cut into equal blocks, as in the 2D heat example. The blocks of the
/// second one differ in size.
const ARRAYS: [[usize; 2]; 2] = [[GRID[0] * 64, GRID[1] * 64], [4096, 4096]];

fn block(global: [usize; 2], rank: u32) -> Result<Block<2>> {
    Block::at(rank as usize, RANKS as usize, global)?.grid(GRID)?.halo(1)
}

/// Returns the pattern of `u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))` for every
/// neighbour.
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

/// Returns the patterns of all ranks for the halo of an array.
fn halo(global: [usize; 2]) -> Result<Patterns> {
    let windows = [ElementType::scalar(Scalar::F64)].into_iter().collect();
    let record = |rank, block: &Block<2>| Ok((exchange(rank, block), false));
    patterns("exchange", windows, RANKS, |rank| block(global, rank), record)
}

fn timed<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = act();
    println!("  {what:<24} {:>10.3} ms", start.elapsed().as_secs_f64() * 1e3);
    result
}

fn main() -> Result<()> {
    for global in ARRAYS {
        println!("{global:?} cells over {GRID:?} ranks");
        let start = Instant::now();
        let patterns = timed("patterns", || halo(global))?;
        let (machine, options) = (Machine::default(), Options::default());
        let schedule = timed("compile", || compile(&patterns, Placement::Apart, &machine, &options))?;
        timed("verify", || verify(&patterns, Schedule::clone(&schedule)))?;
        println!("  {:<24} {:>10.3} ms", "together", start.elapsed().as_secs_f64() * 1e3);
        let file = timed("write", || to_bytes(&schedule))?;
        let plan = timed("read", || from_bytes(&file))?;
        let classes = (patterns.classes.len(), plan.schedule.classes.len());
        println!("  {} bytes, {} patterns, {} programs", file.len(), classes.0, classes.1);
    }
    Ok(())
}
