//! The waits of ranks for each other, and the reports of these waits. Values are leaked or dropped,
//! and ranks panic, stall, or are in other calls.

use crate::meaning::{everywhere, transports};
use fencepost::{ErrorClass, ErrorHandler, LockType, Op, Result, Stall, Tested, TransportKind, World, ranks};
use fencepost_tests_support::side_by_side::side_by_side;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

#[test]
fn a_target_that_computes_holds_nobody_up() {
    for transport in transports(3) {
        let (others, seen) = (AtomicUsize::new(0), AtomicBool::new(false));
        let run = ranks(3).transport(transport.clone()).run(|world| {
            let mut u = world.window::<u64>(3)?;
            u[0] = 7;
            if world.rank() > 0 {
                let access = u.start(&world.group([0])?)?;
                let ticket = access.fetch(0, 0..3)?;
                access.accumulate([world.rank() as u64], Op::Sum).to(0, 1)?;
                access.complete()?;
                assert_eq!(ticket.take()?, [7, 0, 0]);
                others.fetch_add(1, Ordering::AcqRel);
                return world.barrier();
            }
            let exposed = u.post(&world.group([1, 2])?)?;
            // This rank calls nothing until both other ranks have completed.
            while others.load(Ordering::Acquire) < 2 {
                spin_loop();
            }
            seen.store(true, Ordering::Release);
            assert_eq!(exposed.wait()?[..], [7, 3, 0]);
            world.barrier()
        });
        run.unwrap_or_else(|error| panic!("{transport:?}: {error:?}"));
        assert!(seen.load(Ordering::Acquire));
    }
}

/// A rank posts one window and has another window under locks. It then computes for 2 s and calls
/// nothing. Meanwhile the operations of the other ranks end. An origin waits only for answers. So
/// for each frame that it sends, it waits for at most one round trip.
#[test]
fn gets_locks_and_completes_end_while_their_target_computes_for_two_seconds_after_four_round_trips_at_most() {
    const COMPUTES: Duration = Duration::from_secs(2);
    let check = |transport: TransportKind| {
        let others = AtomicUsize::new(0);
        let run = ranks(3).transport(transport.clone()).run(|world| {
            let (mut u, locks) = (world.window::<u64>(3)?, world.lock_window::<u64>(3)?);
            u[0] = 7;
            if world.rank() == 0 {
                let exposed = u.post(&world.group([1, 2])?)?;
                let since = Instant::now();
                while since.elapsed() < COMPUTES || others.load(Ordering::Acquire) < 2 {
                    assert!(
                        since.elapsed() < 30 * COMPUTES,
                        "{transport:?}: what others ask for has not ended"
                    );
                    spin_loop();
                }
                assert_eq!(exposed.wait()?[..], [7, 3, 0]);
                assert_eq!(locks.into_window()?[..], [0, 6, 0]);
                return Ok(());
            }
            let sent = || world.meter().total().frames;
            let before = sent();
            let access = u.start(&world.group([0])?)?;
            let ticket = access.fetch(0, 0..3)?;
            access.accumulate([world.rank() as u64], Op::Sum).to(0, 1)?;
            access.complete()?;
            assert_eq!(ticket.take()?, [7, 0, 0]);
            assert!(
                sent() - before <= 4,
                "{transport:?}: a get and its complete sent {} frames",
                sent() - before
            );
            for kind in [LockType::Exclusive, LockType::Shared, LockType::Exclusive] {
                let before = sent();
                let lock = locks.lock(0, kind)?;
                lock.accumulate([1], Op::Sum, 1)?;
                lock.unlock()?;
                assert!(sent() - before <= 4, "{transport:?}: an epoch sent {} frames", sent() - before);
            }
            others.fetch_add(1, Ordering::AcqRel);
            drop(locks.into_window()?);
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{transport:?}: {error:?}"));
    };
    std::thread::scope(|scope| {
        for transport in transports(3) {
            scope.spawn(|| check(transport));
        }
    });
}

#[test]
fn a_leaked_access_is_a_stall_that_names_the_wait() {
    for transport in transports(2) {
        let (tell, told) = channel();
        let tell = Mutex::new(tell);
        let world = ranks(2).transport(transport.clone()).stall(Some(Duration::ZERO));
        let world = world.on_stall(move |stall: &Stall| drop(tell.lock().unwrap().send(stall.clone())));
        let told = Mutex::new(told);
        let line = AtomicUsize::new(0);
        let ended = world.run(|world| {
            let u = world.window::<u32>(1)?;
            if world.rank() == 0 {
                let exposed = u.post(&world.group([1])?)?;
                line.store(line!() as usize + 1, Ordering::Release);
                let (u, error) = exposed.wait().expect_err("rank 1 leaves").into_parts();
                assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
                assert!(error.message().contains("rank 1"), "{error}");
                assert_eq!(u[..], [0]);
                return Ok(());
            }
            std::mem::forget(u.start(&world.group([0])?)?);
            let told = told.lock().unwrap();
            let stall = told.iter().find(|stall| stall.rank == 0 && stall.what == "accesses");
            let stall = stall.expect("rank 0 stalls");
            assert_eq!((stall.awaited, stall.file), (1, file!()), "{stall}");
            assert_eq!(stall.line as usize, line.load(Ordering::Acquire), "{stall}");
            assert!(stall.to_string().contains("Exposed::wait"), "{stall}");
            Ok(())
        });
        assert!(ended.is_ok(), "{transport:?}: {ended:?}");
    }
}

#[test]
fn ranks_that_wait_for_each_other_are_told_so() {
    side_by_side(usize::MAX, transports(2), |transport| {
        let world = ranks(2).transport(transport.clone()).stall(Some(Duration::ZERO)).end_deadlocks(true);
        let world = world.on_stall(|_| ());
        let ended = world.run(|world| {
            let u = world.window::<u32>(1)?;
            let other = world.group([1 - world.rank()])?;
            // Each rank waits for its exposure before it completes its access.
            let exposed = u.post(&other)?;
            let access = exposed.start(&other)?;
            let (_, error) = exposed.wait().expect_err("the other one waits, too").into_parts();
            assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
            assert!(error.message().contains("deadlock"), "{error}");
            drop(access);
            Err(error)
        });
        assert!(ended.is_err(), "{transport:?}");
    });
}

/// A name, a call of rank 0 that waits for rank 0 itself, and words of the call's error.
type OwnWait = (&'static str, fn(&World) -> Result<()>, &'static [&'static str]);

/// Waits of rank 0 that only rank 0 itself could end, but rank 0 is in the waiting call.
const OWN_WAITS: [OwnWait; 6] = [
    (
        "an exposure that no access belongs to",
        |world| Ok(world.window::<u32>(1)?.post(&world.group([0])?)?.wait().map(drop)?),
        &["Exposed::wait", "and has started no access that belongs to the post"],
    ),
    (
        "an exposure with an access that is open",
        |world| {
            let own = world.group([0])?;
            let exposed = world.window::<u32>(1)?.post(&own)?;
            let _access = exposed.start(&own)?;
            Ok(exposed.wait().map(drop)?)
        },
        &["Exposed::wait", "before it has ended the access that it started at tests/posts/waiting.rs:"],
    ),
    (
        "an exposure with another source that has ended its access",
        |world| {
            let exposed = world.window::<u32>(1)?.post(&world.group([0, 1])?)?;
            let _access = exposed.start(&world.group([0])?)?;
            Ok(exposed.iwait().wait().map(drop)?)
        },
        &["Request::wait", "posted at tests/posts/waiting.rs:"],
    ),
    (
        "an access that gets before its post",
        |world| {
            let u = world.window::<u32>(1)?;
            let access = u.start(&world.group([0])?)?;
            let _ticket = access.fetch(0, 0)?;
            access.complete()
        },
        &["Access::complete", "before it posts"],
    ),
    (
        "an access as a request that gets before its post",
        |world| {
            let u = world.window::<u32>(1)?;
            let access = u.start(&world.group([0, 1])?)?;
            let _ticket = access.fetch(0, 0)?;
            Ok(access.icomplete().wait().map(drop)?)
        },
        &["Request::wait", "started at tests/posts/waiting.rs:"],
    ),
    (
        "an access before the post of the one before it",
        |world| {
            let (u, own) = (world.window::<u32>(1)?, world.group([0])?);
            u.start(&own)?.complete()?;
            u.start(&own)?.complete()
        },
        &["Access::complete", "before it posts for the access before"],
    ),
];

#[test]
fn a_rank_that_waits_for_itself_is_refused_at_once_and_ends_the_world() {
    for transport in transports(2) {
        for (what, call, words) in OWN_WAITS {
            // Nothing limits the time for which a call waits.
            let ended = ranks(2).transport(transport.clone()).stall(None).run(|world| {
                if world.rank() == 1 {
                    let u = world.window::<u32>(1)?;
                    drop(u.start(&world.group([0])?)?);
                    // Rank 0 never comes to this barrier.
                    let error = world.barrier().expect_err("the world has ended");
                    assert!(error.message().contains("rank 0 waits for rank 0"), "{what}: {error}");
                    return Ok(());
                }
                let error = call(world).expect_err(what);
                assert_eq!(error.class(), ErrorClass::RmaSync, "{what}: {error}");
                assert!(error.message().contains("deadlock: rank 0 waits for rank 0 in"), "{what}: {error}");
                assert!(words.iter().all(|words| error.message().contains(words)), "{what}: {error}");
                Err(error)
            });
            assert!(ended.is_err(), "{what}: {transport:?}");
        }
    }
}

#[test]
fn a_rank_that_waits_for_what_it_has_ended_goes_on() {
    everywhere(1, |world| {
        let (mut u, own) = (world.window::<u32>(1)?, world.group([0])?);
        // The first access comes before its post, the second one gets after its post, and the third
        // one is dropped.
        u.start(&own)?.complete()?;
        u = u.post(&own)?.wait()?;
        let exposed = u.post(&own)?;
        let access = exposed.start(&own)?;
        let ticket = access.fetch(0, 0)?;
        access.complete()?;
        u = exposed.wait()?;
        assert_eq!(ticket.take()?, [0]);
        let exposed = u.post(&own)?;
        drop(exposed.start(&own)?);
        let (u, error) = exposed.wait().expect_err("its access was dropped").into_parts();
        assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
        // Neither a test nor an open request waits.
        let exposed = u.post(&own)?;
        let access = exposed.start(&own)?;
        let Tested::Open(exposed) = exposed.test()? else { panic!("its access is open") };
        let mut request = exposed.iwait();
        assert!(!request.test());
        access.complete()?;
        request.wait()?;
        world.barrier()
    });
}

#[test]
fn gets_that_belong_to_a_dropped_exposure_read_what_it_lent() {
    everywhere(3, |world| {
        if world.rank() == 0 {
            let mut u = world.window::<u64>(4)?;
            u.copy_from_slice(&[1, 2, 3, 4]);
            let mut exposed = u.post_part(&world.group([1, 2])?, 1..4)?;
            exposed.kept_mut(0..1)?[0] = 9;
            drop(exposed);
            // If the drop had freed the memory of the window, a new window would use that memory.
            let again = world.split(Some(0), 0)?;
            drop(again);
            world.barrier()?;
            return world.barrier();
        }
        let u = world.window::<u64>(4)?;
        drop(world.split(Some(1), 0)?);
        world.barrier()?;
        let access = u.start(&world.group([0])?)?;
        let ticket = access.fetch(0, 1..4)?;
        access.put([8]).to(0, 1)?;
        access.complete()?;
        assert_eq!(ticket.take()?, [2, 3, 4]);
        world.barrier()
    });
}

#[test]
fn an_origin_is_one_access_ahead_and_learns_later_of_what_was_not_lent() {
    everywhere(2, |world| {
        let mut u = world.window::<u64>(2)?;
        let other = world.group([1 - world.rank()])?;
        if world.rank() == 1 {
            // The post has not arrived, so the error is not known yet.
            let access = u.start(&other)?;
            access.put([5]).to(0, 1)?;
            access.complete()?;
            world.barrier()?;
            let access = u.start(&other)?;
            access.put([6]).to(0, 0)?;
            let error = access.complete().expect_err("the access before asked for too much");
            assert_eq!(error.class(), ErrorClass::Disp, "{error}");
            assert!(error.message().contains("rank 0"), "{error}");
            return Ok(());
        }
        world.barrier()?;
        let (back, error) = u.post_part(&other, 0..1)?.wait().expect_err("it names element 1").into_parts();
        assert_eq!(error.class(), ErrorClass::Disp, "{error}");
        u = back.post(&other)?.wait()?;
        assert_eq!(u[..], [6, 0]);
        Ok(())
    });
}

#[test]
fn a_panic_in_an_access_ends_the_waits_of_others() {
    for transport in transports(2) {
        let ended = ranks(2).transport(transport.clone()).run(|world| {
            let u = world.window::<u64>(2)?;
            let other = world.group([1 - world.rank()])?;
            if world.rank() == 1 {
                let access = u.start(&other)?;
                access.put([5]).to(0, 1)?;
                panic!("in the middle of an access");
            }
            let (u, error) = u.post(&other)?.wait().expect_err("the access was dropped").into_parts();
            let class = error.class();
            assert!(matches!(class, ErrorClass::RmaSync | ErrorClass::ProcFailed), "{error}");
            assert_eq!(u[..], [0, 0]);
            Err(error)
        });
        assert!(ended.is_err(), "{transport:?}");
    }
}

#[test]
fn closures_that_panic_on_all_ranks_wait_for_nobody_and_the_windows_are_as_they_were() {
    everywhere(2, |world| {
        let mut u = world.window::<u64>(2)?;
        let all = world.group([0, 1])?;
        for round in 0..3 {
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                u.epoch_between(&all, &all, |epoch| {
                    epoch.put([5]).to(1 - world.rank(), 0)?;
                    resume_unwind(Box::new("in the middle of an epoch"));
                    #[expect(unreachable_code, reason = "says what the closure would return")]
                    Ok(())
                })
            }));
            assert!(unwound.is_err());
            assert_eq!(u[..], [0, round]);
            u.epoch_between(&all, &all, |epoch| epoch.put([round + 1]).to(1 - world.rank(), 1))?;
        }
        Ok(())
    });
}

#[test]
fn a_handler_that_panics_has_waited_before() {
    everywhere(2, |world| {
        let mut u = world.window::<u64>(2)?;
        let other = world.group([1 - world.rank()])?;
        if world.rank() == 0 {
            u.on_error(ErrorHandler::call(|_| resume_unwind(Box::new("in a handler"))));
            world.barrier()?; // the post has arrived, which exposes the first element only
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                u.epoch_between(&other, &other, |epoch| epoch.put([1]).to(1, 1))
            }));
            assert!(unwound.is_err());
            // The window is no longer posted, so this put is for the fence.
            u.put([7]).to(0, 0)?;
            u.fence()?;
            assert_eq!(u[..], [7, 0]);
            return Ok(());
        }
        let exposed = u.post_part(&other, 0..1)?;
        world.barrier()?;
        let access = exposed.start(&other)?;
        let ticket = access.fetch(0, 0)?;
        access.complete()?;
        assert_eq!(ticket.take()?, [0]);
        let (mut u, error) = exposed.wait().expect_err("element 1 was not lent").into_parts();
        assert_eq!(error.class(), ErrorClass::Disp, "{error}");
        u.fence()
    });
}

#[test]
fn a_window_that_was_posted_often_is_dropped_while_it_is_posted() {
    everywhere(2, |world| {
        let mut u = world.window::<u64>(2)?;
        let other = world.group([1 - world.rank()])?;
        for round in 0..3 {
            if world.rank() == 0 {
                u[0] = round;
                let exposed = u.post(&other)?;
                if round == 2 {
                    drop(exposed);
                    break;
                }
                u = exposed.wait()?;
                continue;
            }
            let access = u.start(&other)?;
            let ticket = access.fetch(0, 0)?;
            access.complete()?;
            assert_eq!(ticket.take()?, [round]);
        }
        world.barrier()?;
        world.barrier()
    });
}

#[test]
fn many_ranks_add_to_one_and_to_each_other_on_few_cores() {
    for size in [4, 8] {
        everywhere(size, |world| {
            let me = world.rank();
            let mut u = world.window::<f64>(2)?;
            let others = world.group((0..world.size()).filter(|other| *other != me))?;
            for round in 0..200 {
                let exposed = u.post(&others)?;
                let access = exposed.start(&others)?;
                for &to in others.ranks() {
                    access.accumulate([0.1 * (me + round) as f64], Op::Sum).to(to, 0)?;
                }
                access.complete()?;
                u = exposed.wait()?;
            }
            let mut expected = 0.0;
            for round in 0..200 {
                (0..world.size())
                    .filter(|from| *from != me)
                    .for_each(|from| expected += 0.1 * (from + round) as f64);
            }
            assert_eq!(u[0].to_bits(), f64::to_bits(expected));
            Ok(())
        });
    }
}
