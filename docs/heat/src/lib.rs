//! Heat that spreads in a plate, on blocks with halos.

#![forbid(unsafe_code)]

// ANCHOR: superstep
use fencepost::prelude::*;

/// Fills each block's halo from the blocks around it.
#[superstep]
pub fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
} // a superstep ends in a fence
// ANCHOR_END: superstep

// ANCHOR: plan
fencepost::plan!(
    exchange = |ask| {
        let (ranks, cells) = (ask.ranks(), ask.value("cells", [512, 512])?);
        exchange::compile(ranks, |rank| Block::at(rank, ranks, cells)?.halo(1))
    }
);
// ANCHOR_END: plan

// ANCHOR: run
/// Computes steps of a plate of `cells`, and returns this rank's cells.
///
/// # Errors
/// Those of the exchange.
pub fn run(world: &World, cells: [usize; 2], steps: usize) -> Result<Vec<f64>> {
    let block = Block::new(world, cells)?.halo(1)?;
    let (mut u, mut v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
    for field in [&mut u, &mut v] {
        block.fill(field, |[i, j]| (i + j) as f64); // no step sets the edge, so both fields need it
    }
    let mut exchange = exchange::load(world, "plans", &block)?;
    for _ in 0..steps {
        exchange.replay(&mut u)?;
        relax(&block, &u, &mut v);
        std::mem::swap(&mut u, &mut v);
    }
    Ok(u.to_vec())
}

/// Sets each cell of `v` that is not at the edge to the mean of its four neighbours in `u`.
fn relax(block: &Block<2>, u: &[f64], v: &mut [f64]) {
    for row in block.rows_inside(1) {
        let (up, down, left, right) = (row.up(u), row.down(u), row.left(u), row.right(u));
        for (j, mean) in row.of_mut(v).iter_mut().enumerate() {
            *mean = 0.25 * ((up[j] + down[j]) + (left[j] + right[j]));
        }
    }
}
// ANCHOR_END: run

// ANCHOR: snapshots
use fencepost::snapshots::{Items, Snapshots};
use std::path::Path;
use std::time::Duration;

/// Lists the state after a step. The next step reads nothing else.
fn state<'a>(block: &'a Block<2>, u: &'a mut [f64]) -> Items<'a> {
    Items::new().block("heat", block, u)
}

/// Computes the remaining steps of `steps`, and returns this rank's cells. Saves the state in
/// `folder` once in each `interval`. When the program is started again, it continues from the last
/// saved state.
///
/// # Errors
/// Those of the exchange and of the snapshots.
pub fn resume(
    world: &World,
    cells: [usize; 2],
    steps: u64,
    (folder, interval): (&Path, Duration),
) -> Result<Vec<f64>> {
    let block = Block::new(world, cells)?.halo(1)?;
    let (mut u, mut v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
    for field in [&mut u, &mut v] {
        block.fill(field, |[i, j]| (i + j) as f64); // no step sets the edge, so both fields need it
    }
    let mut snapshots = Snapshots::new(world, folder)?.every(interval).keep(2);
    let first = snapshots.restore(state(&block, &mut u))?.map_or(0, |step| step + 1);
    let mut exchange = exchange::load(world, "plans", &block)?;
    for step in first..steps {
        exchange.replay(&mut u)?;
        relax(&block, &u, &mut v);
        std::mem::swap(&mut u, &mut v);
        snapshots.offer(step, || state(&block, &mut u))?;
    }
    snapshots.finish()?;
    Ok(u.to_vec())
}
// ANCHOR_END: snapshots
