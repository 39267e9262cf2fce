//! How long does it take two ranks to put a section of a window to each other, compared with the
//! copies alone?
//!
//! In each epoch, a rank writes new values and reads the values that arrived. Otherwise the values
//! would stay in the cache of the rank that moves them.

use fencepost::prelude::*;
use fencepost::superstep;
use fencepost_benches::limits::halo::{Face, Halo, look};
use fencepost_benches::{Contest, ours};
use std::time::Duration;

/// Puts the first half of the window to the second half of the other rank's window.
#[superstep]
fn swap(u: &mut Window<u64>, len: usize, other: usize) -> Result<()> {
    u.put(0..len).to(other, len..2 * len)?;
    Ok(())
}

/// Writes new values, to one element of each cache line.
fn renew(part: &mut [u64], k: usize) {
    part.iter_mut().step_by(8).for_each(|word| *word = k as u64);
}

fn prepared(words: usize, iterations: u64) -> Duration {
    let make = |world: &World| {
        let swap = swap::prepare(world, words, 1 - world.rank())?;
        Ok((world.window::<u64>(2 * words)?, swap))
    };
    ours::team(2, iterations, make, |_, (u, swap), k| {
        renew(&mut u[..words], k);
        swap.replay(u)?;
        look(u[words..].iter().step_by(8).copied());
        Ok(())
    })
}

fn at_a_fence(words: usize, iterations: u64) -> Duration {
    let make = |world: &World| world.window::<u64>(2 * words);
    ours::team(2, iterations, make, |world, u, k| {
        renew(&mut u[..words], k);
        u.put(0..words).to(1 - world.rank(), words..2 * words)?;
        u.fence()?;
        look(u[words..].iter().step_by(8).copied());
        Ok(())
    })
}

/// Puts the same number of elements from a slice, which the other rank cannot access.
fn of_a_slice(words: usize, iterations: u64) -> Duration {
    let make = |world: &World| Ok((world.window::<u64>(2 * words)?, vec![0; words]));
    ours::team(2, iterations, make, |world, (u, values), k| {
        renew(values, k);
        u.put(&*values).to(1 - world.rank(), words)?;
        u.fence()?;
        look(u[words..].iter().step_by(8).copied());
        Ok(())
    })
}

fn gets(words: usize, iterations: u64) -> Duration {
    let make = |world: &World| world.window::<u64>(2 * words);
    ours::team(2, iterations, make, |world, u, k| {
        renew(&mut u[..words], k);
        u.get(words..2 * words).from(1 - world.rank(), 0)?;
        u.fence()?;
        look(u[words..].iter().step_by(8).copied());
        Ok(())
    })
}

fn main() {
    let mut contests = Vec::new();
    for words in [8, 64, 512, 4096, 1 << 17, 1 << 20] {
        let halo = Halo::new(Face::section(words));
        contests.push(
            Contest::new(format!("section of {} bytes to each other", 8 * words), 1)
                .side("write, copy, read", move |n| halo.fresh(n))
                .side("at a fence", move |n| at_a_fence(words, n))
                .side("at a fence, shm", ours::shm(move |n| at_a_fence(words, n)))
                .side("prepared, shm", ours::shm(move |n| prepared(words, n)))
                .side("of a slice", move |n| of_a_slice(words, n))
                .side("of a slice, shm", ours::shm(move |n| of_a_slice(words, n)))
                .side("a get", move |n| gets(words, n))
                .side("a get, shm", ours::shm(move |n| gets(words, n))),
        );
    }
    fencepost_benches::main(contests);
}
