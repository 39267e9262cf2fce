//! Each wrong call is an error of the right class. Leaks, drops and panics keep no other rank
//! waiting forever.

use crate::contention::{kinds, reaching};
use fencepost::prelude::*;
use fencepost::{ErrorHandler, LockWindow, Ranks, World, ranks};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

fn each(size: usize, test: impl Fn(&World) -> Result<()> + Sync) {
    for kind in kinds() {
        let run = ranks(size).transport(kind.clone()).run(&test);
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}

fn refused<T>(result: std::result::Result<T, impl Into<Error>>, class: ErrorClass, words: &[&str]) {
    let Err(error) = result.map_err(Into::into) else { panic!("{class:?} was expected: {words:?}") };
    let text = error.to_string();
    assert_eq!(error.class(), class, "{text}");
    assert!(!error.world_ended(), "{text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
}

#[test]
fn arguments_that_are_wrong_are_refused_and_nothing_changes() {
    each(2, |world| {
        let u = world.lock_window::<f32>(4)?;
        let w = world.lock_window::<[u64; 2]>(4)?;
        refused(u.lock(2, LockType::Shared), ErrorClass::Rank, &["target rank 2", "0 to 1"]);
        let lock = u.lock(1, LockType::Exclusive)?;
        refused(
            u.lock(1, LockType::Shared),
            ErrorClass::RmaSync,
            &["the part of rank 1", "misuse.rs", "unlock"],
        );
        refused(u.lock_all(), ErrorClass::RmaSync, &["the part of rank 1", "misuse.rs"]);
        drop(u.lock(0, LockType::Shared)?); // a refused lock of all parts has left no part locked
        for at in [4, usize::MAX] {
            refused(lock.put([1.0], at), ErrorClass::Disp, &["rank 1", "4 elements"]);
            refused(lock.fetch_and(Op::Sum, 1.0, at), ErrorClass::Disp, &["4 elements"]);
            refused(lock.compare_and_swap(1.0, 2.0, at), ErrorClass::Disp, &["4 elements"]);
            refused(lock.get(at), ErrorClass::Disp, &["4 elements"]);
        }
        refused(lock.put([1.0; 3], 2), ErrorClass::Disp, &[]);
        refused(lock.put([1.0; 3], 0..2), ErrorClass::Size, &["3 elements", "2"]);
        refused(lock.put([1.0; 3], Datatype::elements([0, 1, 9]).unwrap()), ErrorClass::Disp, &[]);
        refused(lock.put([1.0; 2], Datatype::elements([-1, 1]).unwrap()), ErrorClass::Disp, &[]);
        refused(lock.put((&[1.0; 3], 1..4), 0), ErrorClass::Disp, &["slice of 3"]);
        refused(lock.put(0..2, 0), ErrorClass::Arg, &["section", "give a slice"]);
        refused(lock.accumulate([1.0], Op::Band, 0), ErrorClass::Op, &["BAND"]);
        refused(lock.accumulate([1.0, 2.0], Op::Band, 0), ErrorClass::Op, &["BAND"]);
        refused(lock.fetch_and(Op::MinLoc, 1.0, 0), ErrorClass::Op, &["MINLOC"]);
        refused(lock.get_accumulate([1.0; 2], Op::Bor, 0..2), ErrorClass::Op, &["BOR"]);
        let ticket = lock.get(0..4)?;
        refused(ticket.take(), ErrorClass::RmaSync, &["unlock"]);
        assert!(lock.get(0..0)?.take()?.is_empty());
        lock.put([0.0; 0], 4)?;
        lock.unlock()?;
        assert_eq!(ticket.take()?, [0.0; 4], "nothing was put");
        refused(ticket.take(), ErrorClass::Arg, &[]);

        let wide = w.lock(0, LockType::Shared)?;
        refused(wide.compare_and_swap([0; 2], [1; 2], 4), ErrorClass::Disp, &["4 elements"]);
        refused(wide.accumulate([[1; 2]], Op::Sum, 0), ErrorClass::Op, &["SUM"]);
        drop(wide);
        let all = u.lock_all()?;
        refused(all.on(2), ErrorClass::Rank, &["target rank 2"]);
        refused(u.lock(0, LockType::Shared), ErrorClass::RmaSync, &[]);
        all.unlock()?;
        refused(u.local(|part| part.get(4)), ErrorClass::Disp, &["4 elements"]);
        drop((u.into_window()?, w.into_window()?));
        Ok(())
    });
}

#[test]
fn a_rank_has_one_epoch_of_its_own_part_at_a_time() {
    each(2, |world| {
        let (u, me) = (world.lock_window::<u32>(1)?, world.rank());
        let lock = u.lock(me, LockType::Shared)?;
        refused(u.local(|_| Ok(())), ErrorClass::RmaSync, &["unlock"]);
        refused(u.local_mut(|_| Ok(())), ErrorClass::RmaSync, &["unlock"]);
        lock.unlock()?;
        u.local(|_| {
            refused(u.local(|_| Ok(())), ErrorClass::RmaSync, &[]);
            refused(u.local_mut(|_| Ok(())), ErrorClass::RmaSync, &[]);
            refused(u.lock(me, LockType::Shared), ErrorClass::RmaSync, &[]);
            u.lock(1 - me, LockType::Shared)?.unlock()
        })?;
        u.local_mut(|part| {
            part[0] = 1;
            refused(u.local(|_| Ok(())), ErrorClass::RmaSync, &[]);
            refused(u.lock_all(), ErrorClass::RmaSync, &[]);
            Ok(())
        })?;
        refused(
            u.local_mut(|_| Err::<(), _>(Error::new(ErrorClass::Other, "enough"))),
            ErrorClass::Other,
            &["enough"],
        );
        assert_eq!(u.local(|part| part.get(0))?, 1);
        u.into_window()?;
        Ok(())
    });
}

#[test]
fn a_closure_that_panics_leaves_the_part() {
    each(2, |world| {
        let u = world.lock_window::<u32>(3000)?;
        let me = world.rank();
        for exclusive in [false, true] {
            let panics = AssertUnwindSafe(|| {
                if exclusive {
                    u.local_mut(|part| -> Result<()> {
                        part[2999] = 7;
                        std::panic::resume_unwind(Box::new("planned"))
                    })
                } else {
                    u.local(|_| -> Result<()> { std::panic::resume_unwind(Box::new("planned")) })
                }
            });
            assert!(catch_unwind(panics).is_err());
        }
        let panics = AssertUnwindSafe(|| {
            let lock = u.lock(1 - me, LockType::Exclusive).unwrap();
            lock.put([1], 0).unwrap();
            lock.flush().unwrap();
            lock.put([2], 0).unwrap();
            std::panic::resume_unwind(Box::new("planned"))
        });
        assert!(catch_unwind(panics).is_err());
        let u = u.into_window()?;
        assert_eq!((u[0], u[2999]), (1, 7), "what was collected by a thread that panics is discarded");
        Ok(())
    });
}

#[test]
fn windows_change_over_only_with_nothing_open() {
    each(3, |world| {
        let me = world.rank();
        let u = world.window::<u32>(4)?;
        if me == 1 {
            u.put([1]).to(0, 0)?;
        }
        let (mut u, error) = u.into_locked().map(drop).expect_err("rank 1 has called a put").into_parts();
        refused::<()>(
            Err(error),
            ErrorClass::RmaSync,
            &["rank 1 has collected operations", "fence it first"],
        );
        u.fence()?;
        assert_eq!(u[0], u32::from(me == 0), "the window was given back, with what was collected");
        if me == 2 {
            let _ = u.fetch(0, 0)?;
        }
        refused(u.into_locked(), ErrorClass::RmaSync, &["rank 2 has collected operations"]);
        let u = world.lock_window::<u32>(4)?;
        if me == 2 {
            std::mem::forget(u.lock(1, LockType::Shared)?);
        }
        let (u, error) = u.into_window().map(drop).expect_err("rank 2 has locked a part").into_parts();
        refused::<()>(
            Err(error),
            ErrorClass::RmaSync,
            &["rank 2 has locked the part of rank 1", "misuse.rs"],
        );
        u.lock(0, LockType::Shared)?.accumulate([1], Op::Sum, 0)?;
        world.barrier()?;
        if me == 0 {
            assert_eq!(u.local(|part| part.get(0))?, 3, "the window was given back");
        }
        world.barrier()?;
        drop(u);
        // The world goes on.
        let mut u = world.window::<u32>(4)?;
        u[0] = me as u32;
        let u = u.into_locked()?;
        let lock = u.lock((me + 1) % 3, LockType::Exclusive)?;
        let ticket = lock.get(0)?;
        lock.put([9], 1)?;
        lock.unlock()?;
        assert_eq!(ticket.take()?, [(me as u32 + 1) % 3]);
        let mut u = u.into_window()?;
        assert_eq!(u[..], [me as u32, 9, 0, 0]);
        u.put([5]).to(me, 2)?;
        u.fence()?;
        assert_eq!(u[2], 5);
        Ok(())
    });
}

#[test]
fn a_window_changes_over_and_back_as_often_as_a_program_likes() {
    each(3, |world| {
        let (me, next) = (world.rank(), (world.rank() + 1) % 3);
        let mut u = world.window::<u64>(4)?;
        for round in 1..4 {
            let locked = u.into_locked()?;
            let lock = locked.lock(next, LockType::Exclusive)?;
            lock.accumulate([round], Op::Sum, 0)?;
            let before = lock.get(1)?;
            lock.unlock()?;
            assert_eq!(before.take()?, [round - 1]);
            u = locked.into_window()?;
            u[1] = round;
            let exposed = u.post(&world.group([(me + 2) % 3])?)?;
            let access = exposed.start(&world.group([next])?)?;
            let got = access.fetch(next, 0..2)?;
            access.complete()?;
            assert_eq!(got.take()?, [round * (round + 1) / 2, round]);
            u = exposed.wait()?;
            u.put([7]).to(next, 3)?;
            u.fence()?;
            assert_eq!(u[..], [round * (round + 1) / 2, round, 0, 7]);
        }
        Ok(())
    });
}

#[test]
fn what_waits_for_a_fence_in_any_mode_keeps_a_window_from_changing_over() {
    for mode in [Mode::Auto, Mode::Aggressive, Mode::Pipelined, Mode::Aggregated, Mode::Direct] {
        each(2, |world| {
            let mut u = world.window::<u64>(4)?;
            u.set_mode(mode);
            u.put([1; 2]).to(1 - world.rank(), 0)?;
            refused(u.into_locked(), ErrorClass::RmaSync, &["rank 0", "operations", "fence"]);
            let u = world.window::<u64>(4)?;
            let access = u.start(&world.group([1 - world.rank()])?)?;
            refused(u.into_locked(), ErrorClass::RmaSync, &["rank 0", "access"]);
            drop(access);
            Ok(())
        });
    }
}

#[test]
fn a_get_of_more_than_there_is_memory_for_is_refused_and_the_epoch_goes_on() {
    each(2, |world| {
        let u = world.lock_window::<u64>(11_000)?;
        let lock = u.lock(1 - world.rank(), LockType::Exclusive)?;
        // 2^61 elements, all of them in the window. Their number of bytes exceeds a word.
        let steps: Vec<(usize, i64)> = [(2048, 1); 5].into_iter().chain([(64, 1)]).collect();
        refused(lock.get(Datatype::nest(0, &steps, 1).unwrap()), ErrorClass::NoMem, &["memory"]);
        lock.put([5], 3)?;
        lock.unlock()?;
        world.barrier()?;
        assert_eq!(u.local(|part| part.get(3))?, 5);
        Ok(())
    });
}

#[test]
fn a_part_that_was_dropped_is_an_error_and_a_lock_that_was_leaked_goes_with_its_window() {
    for kind in kinds() {
        let stage = AtomicU64::new(0);
        let reach = |at: u64| {
            while stage.load(Ordering::Acquire) < at {
                std::thread::yield_now();
            }
        };
        let run = ranks(3).transport(kind.clone()).run(|world| {
            let (u, me) = (world.lock_window::<u64>(2000)?, world.rank());
            if me == 0 {
                // The rank holds the part of rank 2, and never reports that it has finished.
                let lock = u.lock(2, LockType::Exclusive)?;
                lock.put([1], 0)?;
                lock.flush()?;
                lock.put([2], 0)?;
                std::mem::forget(lock);
                stage.fetch_add(1, Ordering::Release);
                drop(u);
                stage.fetch_add(1, Ordering::Release);
            } else {
                reach(1);
                let lock = u.lock(2, LockType::Shared)?;
                let ticket = lock.get(0)?;
                lock.unlock()?;
                assert_eq!(ticket.take()?, [1], "what was not flushed is discarded");
                reach(2);
                let lock = u.lock(0, LockType::Shared)?;
                let ticket = lock.get(0)?;
                refused(lock.flush(), ErrorClass::RmaSync, &["rank 0 has dropped its part"]);
                refused(ticket.take(), ErrorClass::RmaSync, &[]);
                lock.put([1], 7)?;
                refused(lock.unlock(), ErrorClass::RmaSync, &["rank 0 has dropped its part"]);
                let all = u.lock_all()?;
                all.on(2)?.accumulate([10], Op::Sum, 1)?;
                all.flush()?;
                all.unlock()?;
            }
            world.barrier()
        });
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}

#[test]
fn a_rank_that_leaves_with_a_lock_is_named_to_those_that_wait_for_it() {
    for kind in kinds() {
        let held = AtomicU64::new(0);
        let errors = Mutex::new(Vec::new());
        let run = ranks(3).transport(kind.clone()).run(|world| {
            let u = world.lock_window::<u64>(1)?;
            if world.rank() == 1 {
                let lock = u.lock(2, LockType::Exclusive)?;
                lock.put([1], 0)?;
                lock.flush()?;
                std::mem::forget(lock);
                std::mem::forget(u);
                held.store(1, Ordering::Release);
                return Err(Error::new(ErrorClass::Other, "enough"));
            }
            while held.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            let lock = u.lock(2, LockType::Shared)?;
            lock.accumulate([1], Op::Sum, 0)?;
            let error = lock.unlock().expect_err("rank 1 holds it");
            errors.lock().unwrap().push((error.class(), error.state(), error.to_string()));
            // Rank 2 keeps its part until both other ranks have returned their error.
            held.fetch_add(1, Ordering::Release);
            while held.load(Ordering::Acquire) < 3 {
                std::thread::yield_now();
            }
            Ok(())
        });
        assert!(run.is_err());
        let errors = errors.into_inner().unwrap();
        assert_eq!(errors.len(), 2, "{kind:?}");
        for (class, state, text) in errors {
            assert_eq!((class, state), (ErrorClass::ProcFailed, fencepost::State::Mixed), "{text}");
            assert!(text.contains("rank 1"), "{text}");
        }
    }
}

#[test]
fn a_handler_that_panics_sees_a_lock_of_all_parts_dropped_after_all_epochs_were_closed() {
    each(3, |world| {
        let u = world.lock_window::<u64>(1)?;
        if world.rank() < 2 {
            drop(u);
            world.barrier()?;
            return world.barrier();
        }
        world.barrier()?;
        u.on_error(ErrorHandler::call(|_| std::panic::resume_unwind(Box::new("planned"))));
        let all = u.lock_all()?;
        (0..3).try_for_each(|target| all.on(target)?.put([1], 0))?;
        assert!(catch_unwind(AssertUnwindSafe(|| drop(all))).is_err());
        u.on_error(ErrorHandler::Return);
        assert_eq!(u.local(|part| part.get(0))?, 1);
        u.lock_all()?.unlock()?;
        world.barrier()
    });
}

fn watched(size: usize) -> Vec<Ranks> {
    reaching().into_iter().map(|kind| ranks(size).transport(kind).stall(Some(Duration::ZERO))).collect()
}

#[test]
fn a_wait_for_a_lock_is_reported_with_the_rank_that_holds_it_and_its_line() {
    for world in watched(3) {
        let (tell, told) = channel();
        let (tell, told) = (Mutex::new(tell), Mutex::new(told));
        let world = world.on_stall(move |stall| drop(tell.lock().unwrap().send(stall.clone())));
        world
            .run(|world| {
                let u = world.lock_window::<u64>(1)?;
                if world.rank() == 0 {
                    let line = line!() + 1;
                    let lock = u.lock(2, LockType::Exclusive)?;
                    lock.put([1], 0)?;
                    lock.flush()?;
                    world.barrier()?;
                    let waits = told.lock().unwrap().iter().find(|stall| stall.what == "turns at a lock");
                    let stall = waits.expect("rank 1 waits until the lock is left");
                    assert_eq!((stall.rank, stall.awaited), (1, 0), "{stall}");
                    let since = format!("rank 0 holds the lock since tests/locks/misuse.rs:{line}");
                    assert!(stall.to_string().contains(&since), "{stall}");
                    assert_eq!(stall.deadlock, None);
                    lock.unlock()?;
                } else {
                    world.barrier()?;
                    if world.rank() == 1 {
                        u.lock(2, LockType::Shared)?.accumulate([1], Op::Sum, 0)?;
                    }
                }
                let u = u.into_window()?;
                assert_eq!(u[0], if world.rank() == 2 { 2 } else { 0 });
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn ranks_that_hold_two_parts_and_wait_for_each_other_are_told() {
    for world in watched(2) {
        let held = AtomicU64::new(0);
        let errors = world.end_deadlocks(true).on_stall(|_| ()).collect(|world| {
            let u = world.lock_window::<u64>(1)?;
            let me = world.rank();
            let own = u.lock(me, LockType::Exclusive)?;
            own.put([1], 0)?;
            own.flush()?;
            held.fetch_add(1, Ordering::AcqRel);
            while held.load(Ordering::Acquire) < 2 {
                std::thread::yield_now();
            }
            let other = u.lock(1 - me, LockType::Shared)?;
            other.put([2], 0)?;
            let error = other.unlock().expect_err("nobody can go on");
            std::mem::forget(own);
            Ok(error.to_string())
        });
        for error in errors.expect("the ranks go on") {
            assert!(error.contains("deadlock: ") && error.contains("rank 0 waits for rank 1"), "{error}");
        }
    }
}

/// The function that receives a stall report drops a window for locks of its rank.
#[test]
fn a_window_that_is_dropped_inside_a_call_is_kept_for_good() {
    thread_local! {
        static KEPT: RefCell<Option<LockWindow<u64>>> = const { RefCell::new(None) };
    }
    for kind in kinds() {
        let (drops, told) = channel();
        let (drops, told) = (Mutex::new(drops), Mutex::new(told));
        let world = ranks(2).transport(kind.clone()).stall(Some(Duration::ZERO));
        let world = world.on_stall(move |_| {
            if let Some(u) = KEPT.take() {
                let is_dropped = catch_unwind(AssertUnwindSafe(|| drop(u))).is_ok();
                drops.lock().unwrap().send(is_dropped).unwrap();
            }
        });
        let run = world.run(|world| {
            let u = world.lock_window::<u64>(1)?;
            if world.rank() == 0 {
                KEPT.set(Some(u));
                return world.recv::<u8>(1, 0).map(drop);
            }
            assert!(told.lock().unwrap().recv().unwrap(), "{kind:?}: the drop panicked");
            let lock = u.lock(0, LockType::Exclusive)?;
            lock.accumulate([7], Op::Sum, 0)?;
            let got = lock.get(0)?;
            lock.unlock()?;
            assert_eq!(got.take()?, [7]);
            world.message(0, 0).send([0u8])
        });
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}

/// No rank has failed. But one rank has finished, so the world has ended for a rank that sends to
/// it.
#[test]
fn an_epoch_that_is_open_when_the_world_ends_fails() {
    for transport in kinds() {
        let kind = format!("{transport:?}");
        let run = ranks(3).transport(transport).run(|world| {
            let u = world.lock_window::<u64>(1)?;
            world.barrier()?;
            match world.rank() {
                0 => {
                    for value in 0..2 {
                        let lock = u.lock(1, LockType::Exclusive)?;
                        lock.put([value], 0)?;
                        lock.unlock()?;
                    }
                    let lock = u.lock(1, LockType::Exclusive)?;
                    lock.put([2], 0)?;
                    let refused = loop {
                        if let Err(error) = world.message(2, 0).send([1u8]) {
                            break error;
                        }
                    };
                    assert_eq!(refused.class(), ErrorClass::ProcFailed, "{kind}: {refused}");
                    let unlocked = lock.unlock().expect_err("the world has ended");
                    assert_eq!(unlocked.class(), ErrorClass::ProcFailed, "{kind}: {unlocked}");
                }
                1 => drop(world.recv::<u8>(0, 0).expect_err("the world has ended")),
                _ => {}
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}
