//! The limits: the speed of this machine when a few pinned threads share memory and do nothing
//! else.
//!
//! The algorithms are those of `limits.c`, which is one of the peers' programs. `cargo bench -p
//! fencepost-benches --bench limits` compares both implementations. Each function runs one side of
//! a contest for a number of iterations, and returns the time of the slowest thread.

pub mod collective;
pub mod halo;
pub mod scatter;
mod team;
pub mod tiles;
pub mod wire;

pub use team::{Beat, Words, team};

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Times an empty barrier between `ranks` threads. Each thread owns a cache line, writes it, and
/// reads the cache lines of the other threads.
pub fn flag_barrier(ranks: usize, iterations: u64) -> Duration {
    team(ranks, iterations, |beat, iterations| (0..iterations).for_each(|_| beat.wait()))
}

/// Times an empty barrier for more threads than cores. The threads count on one counter, and yield
/// as soon as they have to wait.
pub fn yield_barrier(ranks: usize, iterations: u64) -> Duration {
    let (count, generation) = (AtomicU64::new(0), AtomicU64::new(0));
    team(ranks, iterations, |_, iterations| {
        for _ in 0..iterations {
            let before = generation.load(Ordering::Relaxed);
            // The last thread to arrive sees everything that the other threads did before they
            // arrived (AcqRel), and opens the barrier for them.
            if count.fetch_add(1, Ordering::AcqRel) == ranks as u64 - 1 {
                count.store(0, Ordering::Relaxed);
                generation.store(before + 1, Ordering::Release);
            } else {
                while generation.load(Ordering::Acquire) == before {
                    std::thread::yield_now();
                }
            }
        }
    })
}
