//! Assertions that are false, and conflicts that are permitted by a handler (planner/README.md, 35
//! and 36).

use crate::races::{over, under};
use fencepost::prelude::*;
use fencepost::{Assertions, Check, ErrorHandler, Hints, ranks};
use fencepost_tests_worlds::transports::transports;
use std::cell::RefCell;
use std::rc::Rc;

/// Runs a program on four ranks with a check, on every transport.
fn everywhere(program: impl Fn(&World) -> Result<()> + Sync) {
    for transport in transports(0..3) {
        let run = ranks(4).transport(transport.clone()).check(Check::Conflicts).run(&program);
        run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
    }
}

/// Checks that a call has failed with the right error, both on the rank that made the promise and
/// on the other ranks.
fn is_refused(rank: usize, promised: usize, fenced: Result<()>, words: &str) {
    let error = fenced.expect_err("it was promised otherwise");
    if rank == promised {
        assert!(error.class() == ErrorClass::Assert && error.message().contains(words), "{error}");
    } else {
        assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
    }
}

#[test]
fn noput_that_is_false_is_refused_with_the_rank_and_the_line() {
    everywhere(|world| {
        let mut u = world.window::<u64>(4)?;
        let me = world.rank();
        for round in 0..3 {
            let promise = if me == 1 { Assertions::NOPUT } else { Assertions::NONE };
            u.fence_with(promise)?;
            // Gets, and operations on other parts, do not put into the part.
            drop(u.fetch(1, 0..2)?);
            u.put([7]).to(2, me)?;
            if round == 1 && me == 3 {
                u.accumulate([1], Op::Sum).to(1, 2)?;
            }
            let fenced = u.fence();
            match round {
                1 => is_refused(me, 1, fenced, "rank 3 puts or accumulates"),
                _ => fenced?,
            }
            assert_eq!(u[2], if me == 2 { 7 } else { 0 });
        }
        Ok(())
    });
    let line = line!() + 5;
    let told = ranks(4).check(Check::Conflicts).run(|world| {
        let mut u = world.window::<u64>(4)?;
        u.fence_with(Assertions::NOPUT)?;
        if world.rank() == 3 {
            u.put([1]).to(1, 2)?;
        }
        u.fence()
    });
    let told = told.expect_err("it was promised otherwise").to_string();
    assert!(told.contains(&format!("promised.rs:{line}")), "{told}");
}

#[test]
fn nostore_that_is_false_is_refused_from_the_second_time_on() {
    everywhere(|world| {
        let mut u = world.window::<u64>(4)?;
        let me = world.rank();
        for round in 0..5 {
            if me == 1 && round == 3 {
                u[2] += 1;
            }
            if me == 2 {
                u[2] += 1; // this rank promises nothing
            }
            if me == 3 {
                u.put([7]).to(1, 0)?;
            }
            world.barrier()?;
            let promise = if me == 1 { Assertions::NOSTORE } else { Assertions::NONE };
            let fenced = u.fence_with(promise);
            match round {
                3 => is_refused(me, 1, fenced, "NOSTORE was asserted"),
                _ => fenced?,
            }
        }
        Ok(())
    });
}

/// Two ranks accumulate with one operator into one element of a part, and one rank reads another
/// element. Nothing orders these operations.
#[test]
fn accumulates_with_one_operator_are_refused_where_the_program_promises_that_epochs_are_disjoint() {
    everywhere(|world| {
        for promises in [false, true] {
            let hints = if promises { Hints::new().disjoint() } else { Hints::new() };
            let v = world.lock_window_with::<u64>(8, hints)?;
            let me = world.rank();
            let before = line!() + 2;
            let ended = under(&v, LockType::Shared, |lock| match me {
                0 | 2 => lock.accumulate([1], Op::Sum, 3),
                _ => lock.get(5).map(drop),
            });
            let told = ended.and(world.barrier());
            match told {
                Ok(()) => assert!(!promises, "rank {me} learns of it"),
                Err(error) => {
                    assert!(promises, "{error}");
                    let class = if me == 3 { ErrorClass::RmaSync } else { ErrorClass::RmaConflict };
                    assert_eq!(error.class(), class, "{error}");
                    let text = error.message();
                    assert_eq!(text.matches(&format!("{}:{before}", file!())).count(), 2, "{text}");
                    assert!(text.contains("do not promise `Hints::disjoint`"), "{text}");
                }
            }
            world.barrier()?;
            v.into_window()?;
        }
        Ok(())
    });
}

#[test]
fn conflicts_that_a_handler_lets_pass_are_told_and_mean_what_they_do_unchecked() {
    everywhere(|world| {
        let told: Rc<RefCell<Vec<String>>> = Rc::default();
        let tell = told.clone();
        world.on_error(ErrorHandler::pass_conflicts(move |error| tell.borrow_mut().push(error.to_string())));
        let me = world.rank();
        let mut u = world.window::<usize>(4)?;
        u.put([me]).to(1, 3)?;
        u.fence()?;
        assert_eq!(u[3], if me == 1 { 3 } else { 0 });
        let targets = world.group([1])?;
        let access = u.start(&targets)?;
        access.put([me + 10]).to(1, 3)?;
        access.complete()?;
        if me == 1 {
            u = u.post(&world.group(0..4)?)?.wait()?;
            assert_eq!(u[3], 13);
            assert_eq!(told.borrow().len(), 2);
        }
        let all = told.borrow().iter().all(|text| text.contains("are carried out all the same"));
        assert!(all && (me == 1) != told.borrow().is_empty(), "{:?}", told.borrow());
        let v = world.lock_window::<u64>(4)?;
        v.on_error(ErrorHandler::pass_conflicts(|_| {}));
        let ended = under(&v, LockType::Shared, |lock| lock.put([7], 3));
        world.barrier()?;
        over(v, ended)
    });
}

/// No rank notifies the target of these conflicts: the target trusts each rank to compare its own
/// calls.
#[test]
fn conflicts_that_a_sole_origin_lets_pass_are_found_at_the_fence_also_after_one_that_it_does_not() {
    for refuses in [false, true] {
        everywhere(|world| {
            let told: Rc<RefCell<Vec<String>>> = Rc::default();
            let tell = told.clone();
            world.on_error(ErrorHandler::pass_conflicts(move |error| {
                tell.borrow_mut().push(error.to_string())
            }));
            let mut u = world.window::<u64>(8)?;
            if world.rank() == 0 {
                u.put([1]).to(1, 3)?;
                u.put([2]).to(1, 3)?;
                if refuses {
                    u.on_error(ErrorHandler::Return);
                    u.put([3]).to(1, 5)?;
                    assert_eq!(u.put([4]).to(1, 5).unwrap_err().class(), ErrorClass::RmaConflict);
                }
            }
            let ended = u.fence();
            assert!(
                world.rank() != 1 || ended.is_err() || !told.borrow().is_empty(),
                "nobody has told the target"
            );
            Ok(())
        });
    }
}
