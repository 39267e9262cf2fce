//! Waits for locks: an event ends them, nothing is sent meanwhile, and one that can never end is an error.

use crate::contention::kinds;
use fencepost::prelude::*;
use fencepost::{Stall, TransportKind, ranks};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// Waits until the number is at least `least`.
fn reach(stage: &AtomicU64, least: u64) {
    while stage.load(Ordering::Acquire) < least {
        yield_now();
    }
}

/// The target computes all the time. Of the others, each in turn holds its part while another one waits: on mixed hosts both
/// reach the part, or one of them, or none.
#[test]
fn who_waits_is_woken_when_the_lock_is_left_and_sends_nothing_before() {
    const PAIRS: [(usize, usize); 4] = [(1, 2), (2, 1), (2, 3), (1, 3)];
    for kind in kinds() {
        // Three for each wait: it is held, somebody waits for long, and that one is done.
        let (stage, left) = (&AtomicU64::new(0), Mutex::new(Instant::now()));
        let stalls = Arc::new(AtomicU64::new(0));
        let counts = stalls.clone();
        let world = ranks(4).transport(kind.clone()).stall(Some(Duration::ZERO));
        let world = world.on_stall(move |stall: &Stall| {
            if stall.what == "turns at a lock" {
                counts.fetch_add(1, Ordering::AcqRel);
            }
        });
        let late = world.collect(|world| {
            let (u, me) = (world.lock_window::<u64>(1)?, world.rank());
            let (mut late, mut most) = (Duration::ZERO, 0);
            for (k, (holder, waiter)) in (0..).zip(PAIRS) {
                if me == holder {
                    reach(stage, 3 * k);
                    let lock = u.lock(0, LockType::Exclusive)?;
                    lock.put([7], 0)?;
                    lock.flush()?;
                    let before = stalls.load(Ordering::Acquire);
                    stage.store(3 * k + 1, Ordering::Release);
                    while stalls.load(Ordering::Acquire) == before {
                        yield_now();
                    }
                    (0..2000).for_each(|_| yield_now()); // meanwhile the other rank falls asleep
                    lock.unlock()?;
                    *left.lock().unwrap() = Instant::now();
                    stage.store(3 * k + 2, Ordering::Release);
                    reach(stage, 3 * k + 3);
                } else if me == waiter {
                    reach(stage, 3 * k + 1);
                    let before = world.meter().total().frames;
                    let lock = u.lock(0, LockType::Shared)?;
                    let ticket = lock.get(0)?;
                    lock.unlock()?;
                    assert_eq!(ticket.take()?, [7]);
                    most = most.max(world.meter().total().frames - before);
                    let now = Instant::now();
                    reach(stage, 3 * k + 2);
                    late += now.saturating_duration_since(*left.lock().unwrap());
                    stage.store(3 * k + 3, Ordering::Release);
                }
            }
            reach(stage, 3 * PAIRS.len() as u64); // the target computes until then
            assert!(most <= 3, "rank {me} sent {most} frames: a request, and who is in the way");
            u.into_window()?;
            Ok(late)
        });
        let late: Duration = late.unwrap_or_else(|error| panic!("{kind:?}: {error}")).into_iter().sum();
        // One that nobody wakes sleeps for a second.
        assert!(late < Duration::from_millis(500), "{kind:?}: {late:?} late");
    }
}

/// Rank 1 holds the part of rank 0 and waits for that of rank 3, and rank 2 the other way round.
#[test]
fn holders_that_wait_for_each_other_at_other_ranks_are_told() {
    for kind in kinds() {
        let held = AtomicU64::new(0);
        let world = ranks(4).transport(kind.clone()).stall(Some(Duration::ZERO)).end_deadlocks(true);
        let errors = world.on_stall(|_| ()).collect(|world| {
            let u = world.lock_window::<u64>(1)?;
            let (first, second) = match world.rank() {
                1 => (0, 3),
                2 => (3, 0),
                _ => return Ok(world.barrier().expect_err("the others never come").to_string()),
            };
            let lock = u.lock(first, LockType::Exclusive)?;
            lock.put([1], 0)?;
            lock.flush()?;
            held.fetch_add(1, Ordering::AcqRel);
            reach(&held, 2);
            let other = u.lock(second, LockType::Shared)?;
            other.put([2], 0)?;
            let error = other.unlock().expect_err("nobody can go on");
            std::mem::forget(lock);
            std::mem::forget(u); // its drop would leave the part
            Ok(error.to_string())
        });
        for error in errors.unwrap_or_else(|error| panic!("{kind:?}: {error}")) {
            assert!(error.contains("deadlock: "), "{kind:?}: {error}");
            assert!(error.contains("rank 1 waits for rank 2"), "{kind:?}: {error}");
            assert!(error.contains("rank 2 waits for rank 1"), "{kind:?}: {error}");
        }
    }
}

/// One of the two waits in a barrier, and not for a lock.
#[test]
fn a_holder_that_waits_for_one_that_waits_for_the_lock_is_told() {
    for kind in kinds() {
        let held = AtomicU64::new(0);
        let world = ranks(4).transport(kind.clone()).stall(Some(Duration::ZERO)).end_deadlocks(true);
        let errors = world.on_stall(|_| ()).collect(|world| {
            let u = world.lock_window::<u64>(1)?;
            if world.rank() == 3 {
                let lock = u.lock(0, LockType::Exclusive)?;
                lock.put([1], 0)?;
                lock.flush()?;
                held.store(1, Ordering::Release);
                let error = world.barrier().expect_err("rank 1 waits for the lock");
                std::mem::forget(lock);
                std::mem::forget(u); // its drop would leave the part
                return Ok(error.to_string());
            }
            reach(&held, 1);
            if world.rank() != 1 {
                return Ok(world.barrier().expect_err("rank 1 waits for the lock").to_string());
            }
            let lock = u.lock(0, LockType::Shared)?;
            lock.put([2], 0)?;
            Ok(lock.unlock().expect_err("rank 3 waits for this one").to_string())
        });
        for error in errors.unwrap_or_else(|error| panic!("{kind:?}: {error}")) {
            assert!(error.contains("deadlock: ") && error.contains("rank 1 waits for rank 3"), "{error}");
        }
    }
}

/// On one host and apart, many wait for one another and none in a circle: nothing is reported as a deadlock.
#[test]
fn waits_that_end_are_no_deadlocks() {
    for kind in kinds() {
        let times = if matches!(kind, TransportKind::Sim(_)) { 20 } else { 100 };
        let world = ranks(4).transport(kind.clone()).stall(Some(Duration::ZERO)).end_deadlocks(true);
        let run = world.on_stall(|_| ()).run(|world| {
            let (u, me) = (world.lock_window::<u64>(1)?, world.rank());
            for i in 0..times {
                // Parts are held in ascending order.
                let (low, high) = ((me + i) % 3, 3);
                let first = u.lock(low, LockType::Exclusive)?;
                first.accumulate([1], Op::Sum, 0)?;
                first.flush()?;
                let second = u.lock(high, LockType::Exclusive)?;
                second.accumulate([1], Op::Sum, 0)?;
                second.flush()?;
                yield_now();
                second.unlock()?;
                first.unlock()?;
            }
            let u = u.into_window()?;
            let all = world.gather(0, &u[..])?;
            assert!(all.is_none_or(|all| all.concat().iter().sum::<u64>() == 8 * times as u64));
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}
