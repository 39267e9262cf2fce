//! Waits for locks. An event ends each wait, nothing is sent meanwhile, and a wait that cannot end
//! is an error.

use crate::contention::kinds;
use fencepost::prelude::*;
use fencepost::{LockAll, Stall, TransportKind, ranks};
use fencepost_tests_support::side_by_side::side_by_side;
use fencepost_tests_worlds::transports::transports;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// Waits until `stage` is at least `least`.
fn reach(stage: &AtomicU64, least: u64) {
    while stage.load(Ordering::Acquire) < least {
        yield_now();
    }
}

/// The target computes all the time. Each other rank in turn holds the target's part while another
/// rank waits for it. On mixed hosts, both of these ranks, only one of them, or neither can reach
/// the memory of the part.
#[test]
fn who_waits_is_woken_when_the_lock_is_left_and_sends_nothing_before() {
    const PAIRS: [(usize, usize); 4] = [(1, 2), (2, 1), (2, 3), (1, 3)];
    for kind in kinds() {
        // Each wait has three stages: the lock is held, another rank has waited for long, and that
        // rank has finished.
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
        // A rank that no other rank wakes sleeps for a second.
        assert!(late < Duration::from_millis(500), "{kind:?}: {late:?} late");
    }
}

/// Counts, for each wait, the epochs of other ranks from the moment when this rank joined the queue
/// until its turn. Each rank that was in the queue before this rank has one epoch. A rank that came
/// later has none, however often it returns. Rank 1 owns the part and calls nothing. Each other
/// rank in turn holds the part first, and the rest queue up in an order that differs each time. On
/// mixed hosts some ranks reach the part, and others ask its attendant.
#[test]
fn nobody_is_overtaken_by_a_rank_that_came_later_nor_twice_by_one_before() {
    const RANKS: usize = 5;
    const AGAIN: u64 = 5;
    let mut all = kinds();
    all.push(TransportKind::MixedThreads(vec![0, 1, 0, 2]));
    let count = |kind: TransportKind| {
        // A rank that asks an attendant reports after a second for which ranks it waits.
        let reaches = matches!(kind, TransportKind::Local | TransportKind::ShmThreads);
        let (rounds, after) = if reaches { (16, 0) } else { (2, 20) };
        // Ranks sleep until a number is reached, so they leave the cores to other ranks.
        let state = Arc::new((Mutex::new((0, 0, Vec::new())), Condvar::new()));
        let told = state.clone();
        let world = ranks(RANKS).transport(kind.clone()).stall(Some(Duration::from_millis(after)));
        let world = world.on_stall(move |stall: &Stall| {
            // An attendant that names the holder has already put the rank into the queue.
            if stall.what == "turns at a lock" && stall.peer.contains("holds") {
                told.0.lock().unwrap().2.push(stall.rank);
                told.1.notify_all();
            }
        });
        type State = (u64, u64, Vec<usize>);
        let sleep_until = |holds: &dyn Fn(&State) -> bool| {
            drop(state.1.wait_while(state.0.lock().unwrap(), |state| !holds(state)).unwrap());
        };
        let change = |change: &dyn Fn(&mut State)| {
            change(&mut state.0.lock().unwrap());
            state.1.notify_all();
        };
        let run = world.run(|world| {
            let (u, me) = (world.lock_window::<u64>(1)?, world.rank());
            let mut order: Vec<usize> = (0..RANKS).filter(|&rank| rank != 1).collect();
            for round in 0..rounds {
                if round % 2 == 0 {
                    order.rotate_left(1);
                } else {
                    order[1..].reverse();
                }
                let base = round * (1 + (RANKS as u64 - 2) * AGAIN);
                let Some(place) = order.iter().position(|&rank| rank == me) else {
                    sleep_until(&|(_, done, _)| *done == (round + 1) * order.len() as u64); // the target calls nothing
                    change(&|(stage, _, queued)| {
                        *stage = (round + 1) << 8;
                        queued.clear();
                    });
                    continue;
                };
                sleep_until(&|(stage, ..)| *stage >= (round << 8 | place as u64));
                let turn = || {
                    let lock = u.lock(1, LockType::Exclusive)?;
                    let number = lock.fetch_and(Op::Sum, 1, 0)?;
                    if place == 0 {
                        lock.flush()?;
                        for (place, &rank) in (1..).zip(&order[1..]) {
                            change(&|(stage, ..)| *stage = round << 8 | place);
                            sleep_until(&|(_, _, queued)| queued.contains(&rank));
                        }
                    }
                    lock.unlock()?;
                    Ok::<_, Error>(number.take()?[0] - base)
                };
                let overtaken = turn()?;
                assert_eq!(overtaken, place as u64, "rank {me} of {order:?}: as many as were before it");
                for _ in 1..if place == 0 { 1 } else { AGAIN } {
                    turn()?;
                }
                change(&|(_, done, _)| *done += 1);
                sleep_until(&|(stage, ..)| *stage >= (round + 1) << 8);
            }
            u.into_window()?;
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    };
    std::thread::scope(|scope| all.into_iter().for_each(|kind| drop(scope.spawn(move || count(kind)))));
}

/// An epoch that holds its part from its first operation on makes one more request at first, and
/// saves no request later. So no predictor chooses this.
#[test]
fn an_epoch_that_is_held_before_it_has_to_be_asks_once_more() {
    for kind in [TransportKind::TcpThreads, TransportKind::Sim(Default::default())] {
        let run = ranks(2).transport(kind.clone()).run(|world| {
            let u = world.lock_window::<u64>(8)?;
            if world.rank() == 0 {
                let requests = |flushes: &[bool]| {
                    let before = world.meter().total().frames;
                    let lock = u.lock(1, LockType::Exclusive)?;
                    for &flushes in flushes {
                        lock.put([1], 3)?;
                        if flushes {
                            lock.flush()?;
                        }
                    }
                    lock.unlock()?;
                    Ok::<_, Error>(world.meter().total().frames - before)
                };
                assert_eq!(requests(&[false, false])?, 1, "collected");
                assert_eq!(requests(&[true, false])?, 2, "held from its first operation on");
                // If the epoch is flushed, the first flush takes the locks and carries out the
                // collected operations.
                assert_eq!(requests(&[false, true, false])?, 2);
                assert_eq!(requests(&[true, true, false])?, 3);
            }
            u.into_window()?;
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}

/// Rank 1 holds the part of rank 0 by a shared lock. Rank 2 waits for an exclusive lock on that
/// part. Rank 3 waits behind rank 2 for a shared lock on the part. Both reports name the holder.
/// The report of rank 3 also names rank 2, whose turn comes first.
#[test]
fn shared_epochs_behind_an_exclusive_one_are_told_of_both() {
    side_by_side(usize::MAX, kinds(), |kind| {
        let stage = &AtomicU64::new(0);
        let lines = [(); 4].map(|()| AtomicU64::new(0));
        let stalls = Arc::new(Mutex::new(Vec::new()));
        let told = stalls.clone();
        let world = ranks(4).transport(kind.clone()).stall(Some(Duration::ZERO));
        let world = world.on_stall(move |stall: &Stall| {
            if stall.what == "turns at a lock" {
                told.lock().unwrap().push(stall.clone());
            }
        });
        let named = |rank: usize, words: &[String]| {
            let stalls = stalls.lock().unwrap();
            let all = |stall: &&Stall| words.iter().all(|words| stall.peer.contains(words));
            stalls.iter().find(|stall| stall.rank == rank && all(stall)).map(|stall| stall.awaited)
        };
        let line = |rank: usize| format!("waiting.rs:{}", lines[rank].load(Ordering::Acquire));
        let run = world.run(|world| {
            let (u, me) = (world.lock_window::<u64>(1)?, world.rank());
            match me {
                1 => {
                    lines[1].store(u64::from(line!()) + 1, Ordering::Release);
                    let lock = u.lock(0, LockType::Shared)?;
                    lock.put([7], 0)?;
                    lock.flush()?;
                    stage.store(1, Ordering::Release);
                    // Waits until both ranks have reported their waits.
                    reach(stage, 2);
                    let waits = || "rank 2 waits for it at".to_owned();
                    while named(2, &[line(1)]).is_none() || named(3, &[line(1), waits()]).is_none() {
                        yield_now();
                    }
                    lock.unlock()?;
                }
                2 => {
                    reach(stage, 1);
                    lines[2].store(u64::from(line!()) + 1, Ordering::Release);
                    let lock = u.lock(0, LockType::Exclusive)?;
                    lock.accumulate([1], Op::Sum, 0)?;
                    lock.unlock()?;
                }
                3 => {
                    reach(stage, 1);
                    // Rank 2 waits.
                    while named(2, &[line(1)]) != Some(1) {
                        yield_now();
                    }
                    stage.store(2, Ordering::Release);
                    let lock = u.lock(0, LockType::Shared)?;
                    let ticket = lock.get(0)?;
                    lock.unlock()?;
                    assert_eq!(ticket.take()?, [8], "rank 2 went before");
                    assert_eq!(named(3, &["rank 1 holds".to_owned(), "rank 2 waits".to_owned()]), Some(1));
                }
                _ => reach(stage, 2), // the target computes
            }
            u.into_window()?;
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        // An attendant knows the source line of rank 2's call of `lock`. A rank that reaches the
        // memory of the part knows the source line at which rank 2 waits.
        let two = [0, 2].map(|after| format!("waiting.rs:{},", lines[2].load(Ordering::Acquire) + after));
        assert!(two.into_iter().any(|line| named(3, &[line]).is_some()), "{kind:?}");
        let stalls = stalls.lock().unwrap();
        let second = stalls.iter().filter(|stall| stall.rank == 2 && stall.peer.contains("rank 1 holds"));
        assert!(
            second.clone().count() > 0 && second.clone().all(|stall| !stall.peer.contains("rank 3")),
            "{kind:?}"
        );
    });
}

/// Rank 1 holds the part of rank 0 and waits for the part of rank 3. Rank 2 holds the part of rank
/// 3 and waits for the part of rank 0.
#[test]
fn holders_that_wait_for_each_other_at_other_ranks_are_told() {
    side_by_side(usize::MAX, kinds(), |kind| {
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
            std::mem::forget(u); // dropping `u` would leave the part
            Ok(error.to_string())
        });
        for error in errors.unwrap_or_else(|error| panic!("{kind:?}: {error}")) {
            assert!(error.contains("deadlock: "), "{kind:?}: {error}");
            assert!(error.contains("rank 1 waits for rank 2"), "{kind:?}: {error}");
            assert!(error.contains("rank 2 waits for rank 1"), "{kind:?}: {error}");
        }
    });
}

/// Two ranks wait for each other, one of them in a barrier and the other for a lock.
#[test]
fn a_holder_that_waits_for_one_that_waits_for_the_lock_is_told() {
    side_by_side(usize::MAX, kinds(), |kind| {
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
                std::mem::forget(u); // dropping `u` would leave the part
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
    });
}

/// Many ranks wait for one another, on one host and on several hosts. Their waits form no cycle, so
/// no deadlock is reported.
#[test]
fn waits_that_end_are_no_deadlocks() {
    for kind in kinds() {
        let times = if matches!(kind, TransportKind::Sim(_)) { 20 } else { 100 };
        let world = ranks(4).transport(kind.clone()).stall(Some(Duration::ZERO)).end_deadlocks(true);
        let run = world.on_stall(|_| ()).run(|world| {
            let (u, me) = (world.lock_window::<u64>(1)?, world.rank());
            for i in 0..times {
                // Parts are locked in ascending order.
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

/// Rank 1 takes an exclusive epoch of rank 0's part while rank 0 has an epoch there. If rank 0 held
/// the part after a flush that carries nothing out, the message for which rank 0 waits would never
/// come. If rank 0 did not hold the part after a put, rank 1 could find the first of rank 0's two
/// puts without the second.
#[test]
fn an_epoch_holds_its_part_from_its_first_flush_that_carries_something_out() {
    type Flush = fn(&LockAll<'_, u64>) -> Result<()>;
    let flushes: [Flush; 3] = [|all| all.flush(), |all| all.on(0)?.flush(), |all| all.on(0)?.flush_local()];
    for kind in transports([1]) {
        let run = ranks(2).transport(kind.clone()).run(|world| {
            let u = world.lock_window::<u64>(2)?;
            for round in 0..4 {
                for (number, flush) in (1..).zip(flushes) {
                    let value = 10 * round + number;
                    if world.rank() == 0 {
                        let all = u.lock_all()?;
                        flush(&all)?;
                        world.message(1, 0).send([value])?;
                        assert_eq!(world.recv::<u64>(1, 0)?.0, [value], "rank 1 did not wait");
                        all.on(0)?.put([value], 0)?;
                        flush(&all)?;
                        world.message(1, 0).send([value])?;
                        all.on(0)?.put([value], 1)?;
                        all.unlock()?;
                    } else {
                        for at in 0..2 {
                            world.recv::<u64>(0, 0)?;
                            let lock = u.lock(0, LockType::Exclusive)?;
                            let found = lock.get(0..2)?;
                            lock.unlock()?;
                            let found = found.take()?;
                            assert!(found[0] == found[1] && (at == 0 || found[0] == value), "{found:?}");
                            if at == 0 {
                                world.message(0, 0).send([value])?;
                            }
                        }
                    }
                    world.barrier()?;
                }
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}
