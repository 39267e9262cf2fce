//! How much time do the hints of a window save, if they are true?

use fencepost::{Hints, LockType, LockWindow, Op, TransportKind, World};
use fencepost_benches::{Contest, ours};
use std::time::Duration;

/// Each of two ranks puts an element to the other rank, in an epoch of its own.
fn puts(hints: Hints, kind: LockType, iterations: u64) -> Duration {
    ours::team(
        2,
        iterations,
        |world| world.lock_window_with::<u64>(64, hints),
        |world, u: &mut LockWindow<u64>, k| {
            let lock = u.lock(1 - world.rank(), kind)?;
            lock.put([k as u64], 7)?;
            lock.unlock()
        },
    )
}

const MANY: usize = 16_384;

/// Each rank adds to `MANY` elements of the other rank in one epoch.
fn accumulates(hints: Hints, kind: LockType, iterations: u64) -> Duration {
    ours::team(
        2,
        iterations,
        |world| world.lock_window_with::<u64>(MANY, hints),
        |world, u: &mut LockWindow<u64>, k| {
            let lock = u.lock(1 - world.rank(), kind)?;
            for i in 0..MANY {
                lock.accumulate([k as u64], Op::Sum, i * 40_503 % MANY)?;
            }
            lock.unlock()
        },
    )
}

/// Each rank puts to `MANY / 64` elements of the other rank in one shared epoch. Each element has
/// three words.
fn wide(hints: Hints, iterations: u64) -> Duration {
    ours::team(
        2,
        iterations,
        |world| world.lock_window_with::<[u64; 3]>(MANY, hints),
        |world, u: &mut LockWindow<[u64; 3]>, k| {
            let lock = u.lock(1 - world.rank(), LockType::Shared)?;
            for i in 0..MANY / 64 {
                lock.put([[k as u64; 3]], i * 40_503 % MANY)?;
            }
            lock.unlock()
        },
    )
}

/// Each rank puts an element to one of 16 regions of the other rank and flushes it.
fn flushed(hints: Hints, iterations: u64) -> Duration {
    ours::team(
        2,
        iterations,
        |world| world.lock_window_with::<u64>(MANY, hints),
        |world, u: &mut LockWindow<u64>, k| {
            let lock = u.lock(1 - world.rank(), LockType::Shared)?;
            lock.put([k as u64], k * 1024 % MANY)?;
            lock.flush()?;
            lock.unlock()
        },
    )
}

/// Rank 0 executes 64 epochs of one put each over TCP, and then both ranks meet at a barrier.
fn far(hints: Hints, iterations: u64) -> Duration {
    ours::team_over(
        TransportKind::TcpThreads,
        2,
        iterations,
        |world: &World| world.lock_window_with::<u64>(MANY, hints),
        |world, u: &mut LockWindow<u64>, k| {
            if world.rank() == 0 {
                for at in 0..64 {
                    let lock = u.lock(1, LockType::Exclusive)?;
                    lock.put([k as u64], at * 256)?;
                    lock.unlock()?;
                }
            }
            world.barrier()
        },
    )
}

fn main() {
    use LockType::{Exclusive, Shared};
    let none = Hints::new();
    let (sole, disjoint, one) = (none.sole_origin(), none.disjoint(), none.regions(1));
    fencepost_benches::main(vec![
        Contest::new("lock, put, unlock", 1)
            .side("exclusive", move |n| puts(none, Exclusive, n))
            .side("exclusive, sole origin", move |n| puts(sole, Exclusive, n))
            .side("shared", move |n| puts(none, Shared, n))
            .side("shared, disjoint", move |n| puts(disjoint, Shared, n)),
        Contest::new("16,384 accumulates in one epoch", MANY)
            .side("exclusive", move |n| accumulates(none, Exclusive, n))
            .side("exclusive, sole origin", move |n| accumulates(sole, Exclusive, n))
            .side("shared", move |n| accumulates(none, Shared, n))
            .side("shared, disjoint", move |n| accumulates(disjoint, Shared, n)),
        Contest::new("256 puts of 24 bytes under a shared lock", MANY / 64)
            .side("no hints", move |n| wide(none, n))
            .side("disjoint", move |n| wide(disjoint, n)),
        Contest::new("lock, put, flush, unlock in 128 KiB", 1)
            .side("16 regions", move |n| flushed(none, n))
            .side("one region", move |n| flushed(one, n))
            .side("sole origin", move |n| flushed(sole, n)),
        Contest::new("tcp: lock, put, unlock, and a 64th of a barrier", 64)
            .side("no hints", move |n| far(none, n))
            .side("sole origin", move |n| far(sole, n)),
    ]);
}
