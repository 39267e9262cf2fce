//! How much time does a check for conflicts take in epochs with many small operations, and in
//! epochs with few operations?
//!
//! Each of two ranks calls operations on the other rank, in epochs without conflicts.

use fencepost::Check;
use fencepost::grid::Block;
use fencepost::prelude::*;
use fencepost_benches::draws::{Set, TABLE, draw};
use fencepost_benches::{Contest, ours};
use std::sync::Arc;
use std::time::Duration;

type Draws = Arc<Vec<Vec<Set>>>;

/// Puts to distinct random elements.
fn scattered(draws: &Draws, iterations: u64) -> Duration {
    let make = |world: &World| world.window::<u64>(TABLE);
    ours::team(2, iterations, make, |world, u: &mut Window<u64>, k| {
        let set = &draws[world.rank()][k % draws[0].len()];
        for (&index, &value) in set.indices.iter().zip(&set.values) {
            u.put([value]).to(1 - world.rank(), index as usize)?;
        }
        u.fence()
    })
}

/// Adds to random buckets.
fn histogram(draws: &Draws, iterations: u64) -> Duration {
    let make = |world: &World| world.window::<u32>(TABLE);
    ours::team(2, iterations, make, |world, u: &mut Window<u32>, k| {
        let set = &draws[world.rank()][k % draws[0].len()];
        for &index in &set.indices {
            u.accumulate([1], Op::Sum).to(1 - world.rank(), index as usize)?;
        }
        u.fence()
    })
}

/// Puts `rows` rows of `elements` elements each.
fn rows(rows: usize, elements: usize, iterations: u64) -> Duration {
    let make = |world: &World| world.window::<f64>(2 * rows * elements);
    ours::team(2, iterations, make, |world, u: &mut Window<f64>, _| {
        for row in 0..rows {
            let from = row * elements;
            u.put(from..from + elements).to(1 - world.rank(), (rows + row) * elements)?;
        }
        u.fence()
    })
}

/// The number of rows and of columns of a terrain.
const TERRAIN: [usize; 2] = [344, 403];

/// Puts the cells next to each face of a block into the halo of the block behind that face.
fn halos(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.faces() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Does the same as [`halos`], as a superstep.
#[superstep]
fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.faces() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Computes each cell from its neighbours, as the example `hillslope` does.
fn creep(u: &[f64], next: &mut [f64], block: &Block<2>) {
    for row in block.rows_inside(1) {
        let (north, south) = (row.up(u), row.down(u));
        let (west, here, east) = (row.left(u), row.of(u), row.right(u));
        let next = row.of_mut(next);
        for j in 0..row.len() {
            let around = north[j] + south[j] + west[j] + east[j];
            next[j] = here[j] + 0.1 * (around - 4.0 * here[j]);
        }
    }
}

/// Times steps of a terrain, whose halos are exchanged by a prepared superstep or by a fence.
fn hillslope(is_prepared: bool, iterations: u64) -> Duration {
    let make = move |world: &World| {
        let block = Block::new(world, TERRAIN)?.halo(1)?;
        let (u, next) = (world.window::<f64>(block.len())?, vec![0.0; block.len()]);
        let prepared = is_prepared.then(|| exchange::prepare(world, &block)).transpose()?;
        Ok((u, next, prepared, block))
    };
    ours::team(2, iterations, make, |_, (u, next, prepared, block), _| {
        match prepared {
            Some(prepared) => prepared.replay(u)?,
            None => {
                halos(u, block)?;
                u.fence()?;
            }
        }
        creep(u, next, block);
        u.copy_from_slice(next);
        Ok(())
    })
}

/// Each rank puts elements to the other rank and flushes each put, under one lock of all parts.
///
/// If `same`, all puts are to one element. Otherwise, each put is to another element than the
/// previous put.
fn flushed(same: bool, iterations: u64) -> Duration {
    const EACH: usize = 256;
    let make = |world: &World| world.lock_window::<u64>(64);
    ours::team(2, iterations, make, |world, u: &mut LockWindow<u64>, k| {
        let all = u.lock_all()?;
        let on = all.on(1 - world.rank())?;
        for i in 0..EACH {
            on.put([k as u64], if same { 7 } else { 8 * (i % 8) + k % 8 })?;
            on.flush()?;
        }
        all.unlock()?;
        world.barrier()
    })
}

/// Returns a contest of `operations` operations: a checked side against an unchecked one, with a
/// limit for the cost of the check.
fn question(
    name: &str,
    operations: usize,
    limit: f64,
    run: impl Fn(u64) -> Duration + Clone + 'static,
) -> Contest {
    let on = |check| ours::checked(check, run.clone());
    Contest::new(name, operations).side("off", on(Check::Off)).held("conflicts", limit, on(Check::Conflicts))
}

fn main() {
    let draws: Draws = Arc::new(draw(2, 8, 10_000));
    let with = |run: fn(&Draws, u64) -> Duration| {
        let draws = draws.clone();
        move |n| run(&draws, n)
    };
    fencepost_benches::main(vec![
        question("10,000 scattered puts, checked", 10_000, 1.5, with(scattered)),
        question("10,000 scattered accumulates, checked", 10_000, 1.3, with(histogram)),
        question("a step of hillslope, checked", 1, 1.1, |n| hillslope(true, n)),
        question("a step of hillslope with a fence, checked", 1, 1.1, |n| hillslope(false, n)),
        question("two rows of 512, checked", 2, 1.1, |n| rows(2, 512, n)),
        question("put and flush under a lock, checked", 256, 8.0, |n| flushed(true, n)),
        question("put to other elements and flush under a lock, checked", 256, 8.0, |n| flushed(false, n)),
        question("one element, checked", 1, 1.1, |n| rows(1, 1, n)),
    ]);
}
