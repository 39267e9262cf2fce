//! How long does it take to lock a part that no other rank wants, to make many operations in one
//! epoch, and to change an element that other ranks also change?

use fencepost::{LockType, LockWindow, Op, TransportKind, World};
use fencepost_benches::draws::draw;
use fencepost_benches::limits::team;
use fencepost_benches::limits::wire::Wire;
use fencepost_benches::{Contest, ours};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A word in cache lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// Each of two threads takes the word of the other thread by a compare-and-swap, stores an element,
/// and releases the word by another compare-and-swap.
fn by_hand(iterations: u64) -> Duration {
    // For each thread, its word and the element that the word protects.
    let words = [[(); 2]; 2].map(|each| each.map(|()| Line::default()));
    team(2, iterations, |beat, iterations| {
        let [Line(word), Line(element)] = &words[1 - beat.me];
        for k in 0..iterations {
            while word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {}
            element.store(k, Ordering::Relaxed);
            let _ = word.compare_exchange(1, 0, Ordering::Release, Ordering::Relaxed);
        }
    })
}

/// Each rank puts an element to the other rank, in an epoch of its own.
fn puts(kind: LockType, iterations: u64) -> Duration {
    ours::team(
        2,
        iterations,
        |world| world.lock_window::<u64>(64),
        |world, u: &mut LockWindow<u64>, k| {
            let lock = u.lock(1 - world.rank(), kind)?;
            lock.put([k as u64], 7)?;
            lock.unlock()
        },
    )
}

/// Each rank puts an element to the other rank and flushes it, under one lock of all parts.
fn flushed(iterations: u64) -> Duration {
    const EACH: u64 = 256;
    ours::team(
        2,
        iterations.div_ceil(EACH),
        |world| world.lock_window::<u64>(64),
        |world, u: &mut LockWindow<u64>, k| {
            let all = u.lock_all()?;
            let on = all.on(1 - world.rank())?;
            for _ in 0..EACH {
                on.put([k as u64], 7)?;
                on.flush()?;
            }
            all.unlock()
        },
    )
}

const MANY: usize = 16_384;

fn indices() -> Vec<usize> {
    (0..MANY).map(|i| i * 40_503 % MANY).collect()
}

/// Each rank adds to `MANY` elements of the other rank, and fences.
fn at_a_fence(iterations: u64) -> Duration {
    let make = |world: &World| Ok((world.window::<u64>(MANY)?, indices()));
    ours::team(2, iterations, make, |world, (u, indices), k| {
        for &at in &*indices {
            u.accumulate([k as u64], Op::Sum).to(1 - world.rank(), at)?;
        }
        u.fence()
    })
}

/// Does the same as [`at_a_fence`], in one epoch under a lock.
fn in_one_epoch(kind: LockType, iterations: u64) -> Duration {
    let make = |world: &World| Ok((world.lock_window::<u64>(MANY)?, indices()));
    ours::team(2, iterations, make, |world, (u, indices), k| {
        let lock = u.lock(1 - world.rank(), kind)?;
        for &at in &*indices {
            lock.accumulate([k as u64], Op::Sum, at)?;
        }
        lock.unlock()
    })
}

/// Two threads add to one element.
fn bare_atomics(iterations: u64) -> Duration {
    let element = AtomicU64::new(0);
    team(2, iterations, |_, iterations| {
        for k in 0..iterations * MANY as u64 {
            element.fetch_add(k, Ordering::Relaxed);
        }
    })
}

/// Two ranks add to one element, in shared epochs of `MANY` operations.
fn contended(iterations: u64) -> Duration {
    ours::team(
        2,
        iterations,
        |world| world.lock_window::<u64>(1),
        |_, u: &mut LockWindow<u64>, k| {
            let lock = u.lock(0, LockType::Shared)?;
            for _ in 0..MANY {
                lock.accumulate([k as u64], Op::Sum, 0)?;
            }
            lock.unlock()
        },
    )
}

/// The number of epochs of [`far_puts`] in an iteration.
const FAR: usize = 1024;

/// Rank 0 puts an element to rank 1 over TCP, in each of [`FAR`] epochs. The epochs are divided
/// into rounds of `round` epochs.
///
/// If `computes`, rank 1 calls nothing of Fencepost until the round is over. Otherwise it waits in
/// a call. After each round, both ranks meet at a barrier.
fn far_puts(computes: bool, round: usize, iterations: u64) -> Duration {
    let rounds = [AtomicU64::new(0), AtomicU64::new(0)];
    ours::team_over(
        TransportKind::TcpThreads,
        2,
        iterations * (FAR / round) as u64,
        |world| world.lock_window::<u64>(64),
        |world, u: &mut LockWindow<u64>, k| {
            if world.rank() == 0 {
                for _ in 0..round {
                    let lock = u.lock(1, LockType::Exclusive)?;
                    lock.put([k as u64], 7)?;
                    lock.unlock()?;
                }
            }
            let mine = rounds[world.rank()].fetch_add(1, Ordering::Relaxed);
            while computes && rounds[0].load(Ordering::Relaxed) <= mine {
                std::hint::spin_loop();
            }
            if round < FAR { world.barrier() } else { Ok(()) }
        },
    )
}

fn main() {
    use LockType::{Exclusive, Shared};
    let wire = Wire::new(draw(2, 1, 1));
    fencepost_benches::main(vec![
        Contest::new("lock, put, unlock", 1)
            .side("two compare-and-swaps and a store", by_hand)
            .held("exclusive", 4.0, |n| puts(Exclusive, n))
            .held("shared", 4.0, |n| puts(Shared, n))
            .held("exclusive, shm", 4.0, ours::shm(|n| puts(Exclusive, n)))
            .side("put, flush under a lock of all", flushed),
        Contest::new("16,384 accumulates", MANY)
            .side("at a fence", at_a_fence)
            .held("one exclusive epoch", 1.5, |n| in_one_epoch(Exclusive, n))
            .side("one shared epoch", |n| in_one_epoch(Shared, n)),
        Contest::new("two ranks at one element", MANY)
            .side("bare atomics", bare_atomics)
            .held("shared epochs of 16,384", 2.0, contended)
            .held("the same, shm", 2.0, ours::shm(contended)),
        Contest::new("tcp: lock, put, unlock", FAR)
            .side("64 bytes there and back", move |n| wire.round_trip(64, n * FAR as u64))
            .held("the target waits", 1.5, |n| far_puts(false, FAR, n))
            .held("the target computes", 4.0, |n| far_puts(true, FAR, n))
            .held("the same, rounds of 64", 4.0, |n| far_puts(true, 64, n)),
    ]);
}
