//! How long does an epoch take if it moves nothing, and if it moves eight bytes?

use fencepost::{Result, Window, superstep};
use fencepost_benches::draws::draw;
use fencepost_benches::limits::scatter::Tables;
use fencepost_benches::limits::{flag_barrier, yield_barrier};
use fencepost_benches::{Contest, ours};
use std::time::Duration;

fn fence(ranks: usize, iterations: u64) -> Duration {
    ours::team(ranks, iterations, |world| world.window::<u64>(8), |_, u, _| u.fence())
}

#[superstep]
fn put_value(u: &mut Window<u64>, value: u64, at: usize) -> Result<()> {
    u.put([value]).to(1 - u.rank(), at)?;
    Ok(())
}

#[superstep]
fn put_section(u: &mut Window<u64>, from: usize, at: usize) -> Result<()> {
    u.put(from..from + 1).to(1 - u.rank(), at)?;
    Ok(())
}

/// Times an epoch in which each of two ranks executes one operation. `epoch` gets the value to put
/// and the index of the target element.
fn one(iterations: u64, epoch: impl Fn(&mut Window<u64>, u64, usize) -> Result<()> + Sync) -> Duration {
    let draws = &draw(2, 64, 1);
    ours::team(
        2,
        iterations,
        |world| world.window::<u64>(fencepost_benches::draws::TABLE),
        |world, u, k| {
            let set = &draws[world.rank()][k % 64];
            epoch(u, set.values[0], set.indices[0] as usize)
        },
    )
}

fn value_and_fence(iterations: u64) -> Duration {
    one(iterations, |u, value, at| {
        u.put([value]).to(1 - u.rank(), at)?;
        u.fence()
    })
}

fn section_and_fence(iterations: u64) -> Duration {
    one(iterations, |u, _, at| {
        u.put(at..at + 1).to(1 - u.rank(), at)?;
        u.fence()
    })
}

fn value_superstep(iterations: u64) -> Duration {
    one(iterations, put_value)
}

fn section_superstep(iterations: u64) -> Duration {
    one(iterations, |u, _, at| put_section(u, at, at))
}

/// The type of a function that turns a timing function into a side of a contest, over one
/// transport.
type Over = fn(fn(u64) -> Duration) -> Box<dyn FnMut(u64) -> Duration>;

/// Compares a superstep that is not prepared with the same operation and fence outside a superstep.
fn plain(which: &str, transport: Over) -> Contest {
    Contest::new(
        format!("a superstep that is not prepared, {which} (budget: 30 and 50 ns above the first)"),
        1,
    )
    .side("a put of a value and a fence", transport(value_and_fence))
    .side("superstep, a value", transport(value_superstep))
    .side("a section of one and a fence", transport(section_and_fence))
    .side("superstep, a section of one", transport(section_superstep))
}

fn main() {
    let one = Tables::new(draw(2, 64, 1));
    fencepost_benches::main(vec![
        Contest::new("empty fence, 2 ranks", 1)
            .side("flag barrier", |n| flag_barrier(2, n))
            .held("Fencepost", 1.6, |n| fence(2, n))
            .side("Fencepost, shm", ours::shm(|n| fence(2, n))),
        Contest::new("empty fence, 4 ranks on 2 cores", 1)
            .side("yielding barrier", |n| yield_barrier(4, n))
            .held("Fencepost", 3.0, |n| fence(4, n))
            .side("Fencepost, shm", ours::shm(|n| fence(4, n))),
        Contest::new("one 8-byte put and fence", 1)
            .side("store and barrier", move |n| one.store(n))
            .held("Fencepost", 1.8, value_and_fence)
            .side("Fencepost, shm", ours::shm(value_and_fence)),
        plain("local", |run| Box::new(run)),
        plain("shm", |run| Box::new(ours::shm(run))),
    ]);
}
