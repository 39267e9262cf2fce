//! Counts the frames and the allocations of repeated calls that only some ranks make: rings by
//! posts and starts, accesses and exposures, and epochs of locks.

use crate::allocations::{PAYLOAD, allocations, allowed, difference};
use fencepost::transport::Count;
use fencepost::{LockType, Op, Result, TransportKind, Window, World, ranks, superstep};
use fencepost_tests_worlds::transports::transports;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Each of the first `members` ranks puts an element to the next of these ranks.
#[superstep(sync = pscw)]
fn ring(u: &mut Window<u64>, members: usize) -> Result<()> {
    let rank = u.rank();
    if rank < members {
        u.put(0..1).to((rank + 1) % members, 1..2)?;
    }
    Ok(())
}

/// Counts a rank as done when this value is dropped, for whatever reason.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// 32 of 64 ranks run a ring by posts and starts, and the others call nothing. Only the elements of
/// the ring travel, and no rank allocates.
#[test]
fn half_of_many_ranks_in_a_ring_send_data_frames_only_and_allocate_nothing() {
    // With this number of runs, there are only few runs in which the queue of a link becomes longer
    // than ever before.
    const RUNS: u64 = 1000;
    for transport in transports([1]) {
        let done = AtomicUsize::new(0);
        ranks(64)
            .transport(transport.clone())
            .run(|world| {
                let rank = world.rank() as u64;
                let mut u = world.window::<u64>(2)?;
                let mut ring = ring::prepare(world, 32)?;
                let mut some = |runs: u64| {
                    (0..runs).try_for_each(|run| {
                        u[0] = 1000 * run + rank;
                        ring.replay(&mut u)?;
                        assert_eq!(u[1], 1000 * run + (rank + 31) % 32);
                        Ok(())
                    })
                };
                if rank < 32 {
                    some(RUNS)?;
                }
                let start = world.meter();
                let mut frames = 0;
                if rank < 32 {
                    let _done = Counted(&done);
                    frames = RUNS;
                    let allocated = allocations(|| some(RUNS))?;
                    assert!(allocated <= allowed(&transport, RUNS), "{transport:?}: {allocated} allocations");
                }
                let now = world.meter();
                assert_eq!(difference(&start, &now, PAYLOAD), Count { frames, bytes: 8 * frames });
                assert_eq!(now.total().frames - start.total().frames, frames, "no other frames");
                assert_eq!(
                    (now.exchanges, now.settles),
                    (start.exchanges, start.settles),
                    "no notifications"
                );
                assert_eq!(now.releases - start.releases, frames, "each is released");
                // A rank that entered the barrier earlier would open connections to ranks that
                // still run.
                while done.load(Ordering::Acquire) < 32 {
                    std::thread::yield_now();
                }
                world.barrier()
            })
            .unwrap();
    }
}

/// Exchanges whole windows by short accesses, both ways between two ranks.
fn posts(world: &World, runs: u64) -> Result<u64> {
    let other = world.group([1 - world.rank()])?;
    let mut u = Some(world.window::<u64>(8)?);
    let mut some = |runs| {
        (0..runs).try_for_each(|_| {
            let Some(window) = u.take() else { return Ok(()) };
            let exposed = window.post(&other)?;
            let access = exposed.start(&other)?;
            access.put([7]).to(1 - world.rank(), 3)?;
            access.complete()?;
            u = Some(exposed.wait()?);
            Ok(())
        })
    };
    some(runs)?;
    allocations(|| some(runs))
}

fn locks(world: &World, runs: u64) -> Result<u64> {
    let u = world.lock_window::<u64>(64)?;
    let some = |runs: u64| {
        (0..runs).try_for_each(|i| {
            let kind = if i % 2 == 0 { LockType::Shared } else { LockType::Exclusive };
            let lock = u.lock(1 - world.rank(), kind)?;
            lock.put([i], 3)?;
            lock.unlock()?;
            let lock = u.lock(1 - world.rank(), kind)?;
            (0..64).try_for_each(|at| lock.accumulate([i], Op::Sum, at))?;
            lock.unlock()
        })
    };
    some(runs)?;
    let counted = allocations(|| some(runs));
    drop(u.into_window()?);
    counted
}

/// Ranks reach each other's memory here.
#[test]
fn posts_and_starts_of_whole_windows_and_epochs_of_locks_do_not_allocate() {
    const RUNS: u64 = 400;
    for transport in [TransportKind::Local, TransportKind::ShmThreads] {
        for (what, program) in
            [("posts", posts as fn(&World, u64) -> Result<u64>), ("locks", locks as fn(&World, u64) -> _)]
        {
            let counts: Vec<u64> =
                ranks(2).transport(transport.clone()).collect(|world| program(world, RUNS)).unwrap();
            let allowed = allowed(&transport, RUNS);
            assert!(counts.iter().all(|count| *count <= allowed), "{what} on {transport:?}: {counts:?}");
        }
    }
}
