//! Epochs that do not end in a fence: posts and starts, and locks (planner/README.md, 31 to 34).

use crate::generated::after_reports;
use crate::races::{over, under};
use fencepost::prelude::*;
use fencepost::{Any, Check, ranks};
use fencepost_tests_worlds::transports::transports;

/// How the program of one rank ended.
pub(crate) type End = std::result::Result<(), (ErrorClass, String)>;

/// Runs a program of four ranks on every transport. On each rank the program ends in a barrier.
pub(crate) fn everywhere(program: impl Fn(&World) -> Result<()> + Sync, judge: impl Fn(&str, &[End])) {
    for transport in transports(0..4) {
        let ends = ranks(4).transport(transport.clone()).check(Check::Conflicts).collect(|world| {
            let ended = program(world);
            let met = world.barrier();
            Ok(ended.and(met).map_err(|error| (error.class(), error.to_string())))
        });
        let ends = ends.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
        judge(&format!("{transport:?}: {ends:?}"), &ends);
    }
}

/// Checks that no conflict is found.
pub(crate) fn silent(program: impl Fn(&World) -> Result<()> + Sync) {
    everywhere(program, |what, ends| assert!(ends.iter().all(End::is_ok), "{what}"));
}

/// Checks that a conflict is found in these two lines. `part` marks the ranks that are part of the
/// conflict. The other ranks are notified of the conflict.
fn found(lines: [u32; 2], part: [bool; 4], program: impl Fn(&World) -> Result<()> + Sync) {
    everywhere(program, |what, ends| {
        for (end, part) in ends.iter().zip(part) {
            let Err((class, text)) = end else { panic!("a rank saw nothing: {what}") };
            let meant = if part { ErrorClass::RmaConflict } else { ErrorClass::RmaSync };
            let named = lines.iter().all(|line| text.contains(&format!("unfenced.rs:{line}")));
            assert!(*class == meant && named, "{lines:?} {what}");
        }
    });
}

#[test]
fn puts_of_two_sources_of_one_exposure_conflict_and_the_window_is_as_it_was() {
    let before = line!();
    found([before + 9, before + 10], [true, true, true, false], |world| {
        let mut u = world.window::<u64>(4)?;
        u[3] = 7;
        let (sources, targets) = (world.group([0, 1])?, world.group([2])?);
        match world.rank() {
            0 | 1 => {
                let access = u.start(&targets)?;
                match world.rank() {
                    0 => access.put([1]).to(2, 3)?,
                    _ => access.put([1, 2]).to(2, 2)?,
                }
                access.complete()
            }
            2 => {
                let refused = u.post(&sources)?.wait().expect_err("two puts conflict");
                let (u, error) = refused.into_parts();
                assert_eq!(u[..], [0, 0, 0, 7]);
                Err(error)
            }
            _ => Ok(()),
        }
    });
}

#[test]
fn a_message_between_two_accesses_does_not_order_what_one_exposure_applies() {
    let before = line!();
    found([before + 7, before + 14], [true, true, true, false], |world| {
        let u = world.window::<u64>(4)?;
        let (sources, targets) = (world.group([0, 1])?, world.group([2])?);
        match world.rank() {
            0 => {
                let access = u.start(&targets)?;
                drop(access.fetch(2, 3)?);
                access.complete()?;
                world.message(1, 0).send([1_u8])
            }
            1 => {
                world.recv::<u8>(0, 0)?;
                let access = u.start(&targets)?;
                access.put([1]).to(2, 3)?;
                access.complete()
            }
            2 => u.post(&sources)?.wait().map(drop).map_err(Into::into),
            _ => Ok(()),
        }
    });
}

#[test]
fn accesses_to_two_exposures_do_not_conflict() {
    silent(|world| {
        let mut u = world.window::<u64>(4)?;
        let targets = world.group([2])?;
        for from in [0, 1] {
            match world.rank() {
                2 => u = u.post(&world.group([from])?)?.wait()?,
                rank if rank == from => {
                    let access = u.start(&targets)?;
                    access.put([1]).to(2, 3)?;
                    access.complete()?;
                }
                _ => {}
            }
        }
        Ok(())
    });
}

#[test]
fn a_rank_conflicts_with_its_own_put_into_what_it_has_posted() {
    let before = line!();
    found([before + 6, before + 12], [true, false, true, false], |world| {
        let u = world.window::<u64>(4)?;
        match world.rank() {
            0 => {
                let access = u.start(&world.group([2])?)?;
                access.accumulate([1], Op::Sum).to(2, 3)?;
                access.complete()
            }
            2 => {
                let u = u.post(&world.group([0, 2])?)?;
                let access = u.start(&world.group([2])?)?;
                access.put([1]).to(2, 3)?;
                access.complete()?;
                u.wait().map(drop).map_err(Into::into)
            }
            _ => Ok(()),
        }
    });
}

#[test]
fn shared_epochs_without_order_conflict() {
    let before = line!();
    found([before + 4, before + 5], [true, true, true, false], |world| {
        let u = world.lock_window::<u64>(4)?;
        let ended = match world.rank() {
            0 => under(&u, LockType::Shared, |lock| lock.put([1], 3)),
            2 => under(&u, LockType::Shared, |lock| lock.get(2..4).map(drop)),
            _ => Ok(()),
        };
        over(u, ended)
    });
}

#[test]
fn a_barrier_orders_what_was_flushed_before_it() {
    silent(|world| {
        let u = world.lock_window::<u64>(4)?;
        if world.rank() == 0 {
            let lock = u.lock(1, LockType::Shared)?;
            lock.put([1], 3)?;
            lock.flush()?;
            world.barrier()?;
            lock.unlock()?;
        } else {
            world.barrier()?;
        }
        let mut ended = Ok(());
        if world.rank() == 2 {
            let all = u.lock_all()?;
            all.on(1)?.put([2], 3)?;
            ended = all.unlock();
        }
        over(u, ended)
    });
}

#[test]
fn a_barrier_does_not_order_what_was_not_flushed() {
    let before = line!();
    found([before + 6, before + 12], [true, true, true, false], |world| {
        let u = world.lock_window::<u64>(4)?;
        let mut ended = Ok(());
        if world.rank() == 0 {
            let lock = u.lock(1, LockType::Shared)?;
            lock.put([1], 3)?;
            world.barrier()?;
            ended = lock.unlock();
        } else {
            world.barrier()?;
            if world.rank() == 2 {
                ended = under(&u, LockType::Shared, |lock| lock.put([2], 3));
            }
        }
        over(u, ended)
    });
}

#[test]
fn other_calls_of_all_ranks_order_as_a_barrier_does() {
    silent(|world| {
        let u = world.lock_window::<u64>(4)?;
        let mut v = world.window::<u64>(4)?;
        let mut ended = Ok(());
        for round in 0..6 {
            if world.rank() == round % 4 {
                ended = ended.and(under(&u, LockType::Shared, |lock| lock.put([1], 3)));
            }
            match round % 3 {
                0 => v.fence()?,
                1 => world.allreduce(&mut [0_u64; 3000], Op::Sum)?,
                _ => drop(world.gather(1, &[1_u8])?),
            }
        }
        over(u, ended)
    });
}

#[test]
fn messages_order_what_was_over_before_them_in_a_row() {
    silent(|world| {
        let u = world.lock_window::<u64>(4)?;
        let put = || under(&u, LockType::Shared, |lock| lock.put([1], 3));
        let ended = match world.rank() {
            0 => put().and(world.message(3, 0).send([1_u8; 100])),
            2 => world.recv::<u8>(3, 0).and_then(|_| put()),
            3 => world.recv::<u8>(0, 0).and_then(|_| world.message(2, 0).send([1_u8; 100_000])),
            _ => Ok(()),
        };
        over(u, ended)
    });
}

#[test]
fn messages_that_are_begun_order_what_was_over_before_them_also_where_the_receive_came_first() {
    silent(|world| {
        let u = world.lock_window::<u64>(4)?;
        let put = |u: &LockWindow<u64>| under(u, LockType::Shared, |lock| lock.put([1], 3));
        let early = if world.rank() == 2 { Some(world.irecv::<u8>(3, 0)?) } else { None };
        let ended = match (world.rank(), early) {
            (0, _) => {
                let lock = u.lock(1, LockType::Shared)?;
                lock.put([1], 3)?;
                lock.flush()?;
                world.message(3, 0).isend(vec![1_u8])?.wait()?;
                lock.unlock()
            }
            (3, _) => {
                world.recv::<u8>(Any, Any)?;
                world.message(2, 0).isend(vec![1_u8])?.wait()?;
                Ok(())
            }
            (2, Some(early)) => {
                early.wait()?;
                put(&u)
            }
            _ => Ok(()),
        };
        over(u, ended)
    });
}

#[test]
fn posts_and_starts_order_epochs_of_locks() {
    silent(|world| {
        let u = world.lock_window::<u64>(4)?;
        let v = world.window::<u64>(1)?;
        let put = || under(&u, LockType::Shared, |lock| lock.put([1], 3));
        let (sources, targets) = (world.group([0])?, world.group([2])?);
        let mut ended = Ok(());
        match world.rank() {
            0 => {
                ended = put();
                v.start(&targets)?.complete()?;
            }
            2 => {
                drop(v.post(&sources)?.wait()?);
                ended = put();
            }
            _ => {}
        }
        over(u, ended)
    });
}

#[test]
fn exclusive_epochs_are_ordered_by_the_lock_with_all_others() {
    silent(|world| {
        let u = world.lock_window::<u64>(4)?;
        let mut ended = Ok(());
        for round in 0..20 {
            let kind = if world.rank() == round % 4 { LockType::Shared } else { LockType::Exclusive };
            // In each round one rank has a shared lock. The barrier orders the operations of
            // different rounds.
            ended = ended.and(under(&u, kind, |lock| lock.put([1], 3))).and(world.barrier());
            if world.rank() == 1 {
                ended = ended.and(u.local_mut(|part| {
                    part[3] += 1;
                    Ok(())
                }));
            }
        }
        over(u, ended)
    });
}

#[test]
fn an_exclusive_epoch_orders_what_was_over_before_it_on_other_parts() {
    silent(|world| {
        let u = world.lock_window::<u64>(4)?;
        let flag = world.lock_window::<u64>(1)?;
        let mut ended = Ok(());
        match world.rank() {
            0 => {
                ended = under(&u, LockType::Shared, |lock| lock.put([1], 3));
                ended = ended.and(under(&flag, LockType::Exclusive, |lock| lock.put([1], 0)));
            }
            2 => {
                let mut seen = 0;
                while seen == 0 && ended.is_ok() {
                    let lock = flag.lock(1, LockType::Exclusive)?;
                    let value = lock.get(0)?;
                    ended = lock.unlock();
                    seen = value.take()?[0];
                }
                ended = ended.and(under(&u, LockType::Shared, |lock| lock.put([2], 3)));
            }
            _ => {}
        }
        let changed = over(u, ended);
        changed.and(over(flag, Ok(())))
    });
}

#[test]
fn accumulates_and_compare_and_swaps_under_shared_locks_do_not_conflict_with_their_like() {
    silent(|world| {
        let u = world.lock_window::<u64>(4)?;
        let mut ended = Ok(());
        for _ in 0..20 {
            ended = ended.and(under(&u, LockType::Shared, |lock| {
                drop(lock.fetch_and(Op::Sum, 1, 3)?);
                lock.accumulate([1], Op::Sum, 3)?;
                drop(lock.compare_and_swap(0, 1, 1)?);
                lock.accumulate([1], Op::Replace, 1)
            }));
        }
        over(u, ended)
    });
}

#[test]
fn an_epoch_that_conflicts_is_not_carried_out_and_the_window_goes_on() {
    everywhere(
        |world| {
            let u = world.lock_window::<u64>(4)?;
            let me = world.rank();
            let ended = match me {
                0 | 2 => under(&u, LockType::Shared, |lock| lock.put([me as u64 + 1, me as u64 + 1], 2)),
                _ => Ok(()),
            };
            let told = world.barrier().expect_err("a conflict is told");
            let part = if me == 3 { ErrorClass::RmaSync } else { ErrorClass::RmaConflict };
            assert_eq!(told.class(), part);
            world.barrier()?;
            let mut all = [u64::from(ended.is_err())];
            world.allreduce(&mut all, Op::Sum)?;
            assert!((1..=2).contains(&all[0]), "one has found it, or both");
            let u = u.into_window()?;
            if me == 1 {
                assert_eq!((u[2] == 0, u[3]), (all[0] == 2, u[2]));
            }
            Ok(())
        },
        |what, ends| assert!(ends.iter().all(End::is_ok), "{what}"),
    );
}

#[test]
fn a_window_is_not_changed_over_while_a_conflict_is_told() {
    everywhere(
        |world| {
            let u = world.lock_window::<u64>(4)?;
            let ended = match world.rank() {
                0 | 2 => under(&u, LockType::Shared, |lock| lock.put([1], 2)),
                _ => Ok(()),
            };
            drop(ended);
            let refused = u.into_window().expect_err("a conflict is told");
            let (u, _) = refused.into_parts();
            let u = u.into_window()?;
            assert!(u[2] <= 1);
            Ok(())
        },
        |what, ends| assert!(ends.iter().all(End::is_ok), "{what}"),
    );
}

#[test]
fn a_rank_whose_memory_is_full_says_once_from_which_line_on_it_may_miss_conflicts() {
    let line = line!() + 9;
    for transport in transports(0..1) {
        let (ended, text) = after_reports(|report| {
            let asked = ranks(4).transport(transport.clone()).check(Check::Conflicts).check_report(report);
            asked.check_memory(16 << 10).run(|world| {
                let u = world.lock_window::<u64>(1000)?;
                for round in 0..300 * usize::from(world.rank() == 0) {
                    let lock = u.lock(1, LockType::Shared)?;
                    lock.put([1], 3 * round)?;
                    lock.unlock()?;
                }
                over(u, Ok(()))
            })
        });
        ended.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
        let told: Vec<&str> = text.lines().collect();
        let [told] = told[..] else { panic!("{transport:?}: {text}") };
        let named = [format!("\"line\":{},", line), "\"blind\"".into(), "\"rank\":0,".into()];
        assert!(named.iter().all(|words| told.contains(words)), "{transport:?}: {told}");
    }
}

#[test]
fn an_operation_of_an_access_that_conflicts_with_one_before_it_is_refused_at_its_call() {
    silent(|world| {
        let u = world.window::<u64>(8)?;
        let (sources, targets) = (world.group([0])?, world.group([2])?);
        match world.rank() {
            0 => {
                let access = u.start(&targets)?;
                let line = line!() + 1;
                access.put([1; 2]).to(2, 2)?;
                let refused = access.fetch(2, 3).map(drop).expect_err("they conflict");
                let (class, text) = (refused.class(), refused.message());
                let lines = [line, line + 1].map(|line| format!("unfenced.rs:{line}"));
                assert!(class == ErrorClass::RmaConflict && text.contains("of this access"), "{refused}");
                assert!(lines.iter().all(|line| text.contains(line)), "{refused}");
                let twice = access.put([1; 2]).to(2, Datatype::elements([5, 5]).unwrap());
                assert_eq!(twice.expect_err("it overwrites itself").class(), ErrorClass::RmaConflict);
                access.accumulate([3], Op::Sum).to(2, 5)?;
                access.accumulate([4], Op::Sum).to(2, 5)?;
                access.complete()
            }
            2 => {
                let u = u.post(&sources)?.wait()?;
                assert_eq!(u[..], [0, 0, 1, 1, 0, 7, 0, 0]);
                Ok(())
            }
            _ => Ok(()),
        }
    });
}

#[test]
fn a_put_under_a_lock_that_overwrites_itself_is_refused_at_its_call() {
    silent(|world| {
        let u = world.lock_window::<u64>(8)?;
        if world.rank() == 0 {
            under(&u, LockType::Shared, |lock| {
                let refused =
                    lock.put([1; 2], Datatype::elements([5, 5]).unwrap()).expect_err("one of two is lost");
                assert_eq!(refused.class(), ErrorClass::RmaConflict);
                lock.accumulate([1; 2], Op::Sum, Datatype::elements([5, 5]).unwrap())
            })?;
        }
        over(u, Ok(()))
    });
}
