//! Supersteps that are prepared or loaded with a check. Preparing or loading fails if the check
//! refuses the calls of the superstep.

use crate::generated::{Called, called, law};
use fencepost::prelude::*;
use fencepost::{Check, Compiled, Machine, Options, World, ranks};
use fencepost_planner::ids::{Id, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local};
use fencepost_tests_reference as reference;
use fencepost_tests_support::cases::cases;
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::transports::{of_program, transports};
use std::path::PathBuf;

/// Defines the same superstep with both kinds of synchronisation.
macro_rules! drawn {
    ($name:ident, $sync:ident) => {
        #[superstep(sync = $sync)]
        fn $name(u: &mut Window<u64>, v: &mut Window<u64>, calls: &[Called]) -> Result<()> {
            for call in calls {
                let (operation, values) = (&call.operation, [7; 8]);
                let (to, remote) = (call.target(), operation.remote.clone());
                let section = match &operation.local {
                    Local::Section { window, datatype } => Some((window.index(), datatype.clone())),
                    Local::Buffer => None,
                };
                match (operation.kind, section) {
                    (Kind::Put, Some((0, section))) => u.put(u.section(section)).to(to, remote)?,
                    (Kind::Put, Some((_, section))) => u.put(v.section(section)).to(to, remote)?,
                    (Kind::Put, None) => u.put(&values[..remote.size()]).to(to, remote)?,
                    (Kind::Get, Some((0, section))) => u.get(u.section(section)).from(to, remote)?,
                    (Kind::Get, Some((_, section))) => u.get(v.section(section)).from(to, remote)?,
                    (Kind::Get, None) => drop(u.fetch(to, remote)?),
                    (Kind::Accumulate(op), Some((0, section))) => {
                        u.accumulate(u.section(section), op).to(to, remote)?
                    }
                    (Kind::Accumulate(op), Some((_, section))) => {
                        u.accumulate(v.section(section), op).to(to, remote)?
                    }
                    (Kind::Accumulate(op), None) => {
                        u.accumulate(&values[..remote.size()], op).to(to, remote)?
                    }
                }
            }
            Ok(())
        }
    };
}

drawn!(by_fence, fence);
drawn!(by_posts, pscw);

/// The number of elements of each part.
const LEN: usize = crate::generated::LEN;

/// Returns the calls of one rank in a program.
fn of_rank(calls: &[Called], rank: usize) -> Vec<Called> {
    calls.iter().filter(|call| call.rank == rank).cloned().collect()
}

/// Draws a program of a few calls, all on the first window.
fn program(dice: &mut Random, size: usize) -> Vec<Called> {
    let one = |dice: &mut Random| {
        let mut call = called(dice, size);
        call.operation.window = WindowId::new(0);
        call
    };
    (0..2 + dice.below(4)).map(|_| one(dice)).collect()
}

/// Returns a path for a plan file of this process.
fn plan(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fencepost-{}-{name}.plan", std::process::id()))
}

/// Returns the class of the error, if there is an error.
fn class<T>(made: Result<T>) -> Option<ErrorClass> {
    made.err().map(|error| error.class())
}

/// Returns the classes of the errors that a rank gets: when it prepares each of the two supersteps,
/// when it loads each of them, and when it calls the first one directly.
fn ends(
    world: &World,
    calls: &[Called],
    compiled: &[Compiled; 2],
    paths: &[PathBuf; 2],
) -> Result<[Option<ErrorClass>; 5]> {
    let own = of_rank(calls, world.rank());
    if world.rank() == 0 {
        for (compiled, path) in compiled.iter().zip(paths) {
            compiled.with(world.placement(), &Machine::default(), &Options::default())?.save(path)?;
        }
    }
    world.barrier()?;
    let mut u = world.window::<u64>(LEN)?;
    let mut v = world.window::<u64>(LEN)?;
    Ok([
        class(by_fence::prepare(world, &own)),
        class(by_posts::prepare(world, &own)),
        class(by_fence::load(world, &paths[0], &own)),
        class(by_posts::load(world, &paths[1], &own)),
        class(by_fence(&mut u, &mut v, &own)),
    ])
}

/// Checks that the calls are refused if and only if the reference finds a conflict. Returns whether
/// they are refused.
fn judged(number: u64, calls: &[Called], size: usize, check: Check) -> bool {
    let found = reference::conflicts(&law(calls, size));
    let paths = ["fence", "posts"].map(|name| plan(&format!("{name}-{number}")));
    let compiled = [
        by_fence::compile(size, |rank| Ok(of_rank(calls, rank))).expect("good calls"),
        by_posts::compile(size, |rank| Ok(of_rank(calls, rank))).expect("good calls"),
    ];
    for compiled in &compiled {
        assert_eq!(compiled.conflicts().is_empty(), found.is_empty(), "{calls:#?}");
    }
    for transport in of_program(number, size) {
        let what = format!("{transport:?}, {check}: {calls:#?}");
        let world = ranks(size).transport(transport).check(check);
        let all = world.collect(|world| ends(world, calls, &compiled, &paths)).expect("no world ends");
        for form in 0..5 {
            let classes: Vec<_> = all.iter().map(|ends| ends[form]).collect();
            let meant = |class: &Option<ErrorClass>| match class {
                None => found.is_empty(),
                Some(class) => {
                    !found.is_empty() && [ErrorClass::RmaConflict, ErrorClass::RmaSync].contains(class)
                }
            };
            assert!(classes.iter().all(meant), "form {form} is {classes:?} on {what}");
            let known = classes.contains(&Some(ErrorClass::RmaConflict));
            assert_eq!(known, !found.is_empty(), "form {form} is {classes:?} on {what}");
        }
    }
    paths.iter().for_each(|path| std::fs::remove_file(path).expect("it was written"));
    !found.is_empty()
}

#[test]
fn what_is_refused_when_it_is_called_is_refused_when_it_is_prepared_or_loaded() {
    let (mut some, all) = (0, cases(40, 1000));
    for number in 0..all {
        let mut dice = Random::new(3 << 32 | number);
        let size = 1 + dice.below(3);
        let calls = program(&mut dice, size);
        some += u64::from(judged(number, &calls, size, Check::Conflicts));
    }
    assert!(some * 5 > all && some * 5 < 4 * all, "{some} of {all} are refused");
}

/// Puts into one element twice.
#[superstep]
fn twice(u: &mut Window<u64>, next: usize) -> Result<()> {
    u.put(0..3).to(next, Datatype::elements([4, 5, 4]).unwrap())
}

/// Gets into one element twice.
#[superstep(sync = pscw)]
fn lands_twice(u: &mut Window<u64>, next: usize) -> Result<()> {
    u.get(u.section(Datatype::elements([4, 5, 4]).unwrap())).from(next, 0..3)
}

#[test]
fn an_operation_that_overwrites_itself_is_named_with_element_window_and_target_by_every_form() -> Result<()> {
    let compiled = twice::compile(2, |rank| Ok(1 - rank))?;
    let conflicts = compiled.conflicts();
    let found = conflicts.iter().map(|found| (found.rank, found.window, found.elements.clone()));
    assert_eq!(found.collect::<Vec<_>>(), [(0, 0, 4..5), (1, 0, 4..5)]);
    assert!(conflicts.iter().all(|found| found.between[0] == found.between[1]));
    assert!(
        compiled
            .explain()
            .to_string()
            .contains("conflict: element 4 of w0 on rank 0: put twice by op0 of rank 1")
    );
    for transport in transports([1]) {
        ranks(2).transport(transport).check(Check::Conflicts).run(|world| {
            let (rank, next) = (world.rank(), 1 - world.rank());
            let _first = world.window::<u64>(1)?;
            let mut u = world.window::<u64>(8)?;
            for made in [twice::prepare(world, next).map(drop), lands_twice::prepare(world, next).map(drop)] {
                let error = made.expect_err("it overwrites itself");
                assert_eq!(error.class(), ErrorClass::RmaConflict);
                let text = error.to_string();
                assert!(text.contains("element 4 of w0 on rank 0: put twice by op0 of rank"), "{text}");
                assert!(text.contains("tests/check/prepared.rs:"), "{text}");
            }
            let named = |error: Error, owner: usize| {
                assert_eq!(error.class(), ErrorClass::RmaConflict);
                let text = error.to_string();
                let element = format!("element 4 of window 1 on rank {owner}:");
                let by = format!("written twice by rank {rank} at tests/check/prepared.rs:");
                assert!([&element[..], &by].iter().all(|words| text.contains(words)), "{text}");
            };
            named(twice(&mut u, next).expect_err("it overwrites itself"), next);
            let elements = Datatype::elements([4, 5, 4]).unwrap();
            named(u.put(0..3).to(next, &elements).expect_err("a put of a section"), next);
            named(u.put([1, 2, 3]).to(next, &elements).expect_err("a put of a slice"), next);
            named(u.get(u.section(elements.clone())).from(next, 0..3).expect_err("a get"), rank);
            let access = u.start(&world.group([next])?)?;
            named(access.put([1, 2, 3]).to(next, &elements).expect_err("a put of an access"), next);
            let exposed = u.post(&world.group([next])?)?;
            access.complete()?;
            let locks = exposed.wait()?.into_locked()?;
            let lock = locks.lock(next, LockType::Shared)?;
            named(lock.put([1, 2, 3], &elements).expect_err("a put under a lock"), next);
            lock.unlock()
        })?;
    }
    Ok(())
}

/// Defines operations without a target whose datatypes name an element twice.
macro_rules! to_nobody {
    ($name:ident, $sync:ident) => {
        #[superstep(sync = $sync)]
        fn $name(u: &mut Window<[u64; 2]>, next: usize) -> Result<()> {
            u.put(0..3).to(None, Datatype::elements([4, 5, 4]).unwrap())?;
            u.get(u.section(Datatype::elements([4, 5, 4]).unwrap())).from(None, 0..3)?;
            u.put(0..0).to(next, Datatype::empty())
        }
    };
}

to_nobody!(to_nobody_by_fence, fence);
to_nobody!(to_nobody_by_posts, pscw);

/// Puts into one element of more than eight bytes twice.
#[superstep]
fn wide_twice(u: &mut Window<[u64; 2]>, next: usize) -> Result<()> {
    u.put([[1, 2]; 3]).to(next, Datatype::elements([4, 5, 4]).unwrap())
}

#[test]
fn an_operation_without_target_or_elements_overwrites_nothing_and_one_of_wide_elements_does() -> Result<()> {
    assert!(to_nobody_by_fence::compile(2, |rank| Ok(1 - rank))?.conflicts().is_empty());
    for transport in transports([1]) {
        ranks(2).transport(transport).check(Check::Conflicts).run(|world| {
            let next = 1 - world.rank();
            let mut u = world.window::<[u64; 2]>(8)?;
            to_nobody_by_fence(&mut u, next)?;
            to_nobody_by_fence::prepare(world, next)?.run(&mut u, next)?;
            to_nobody_by_posts::prepare(world, next)?.run(&mut u, next)?;
            let refused = Some(ErrorClass::RmaConflict);
            assert_eq!(class(wide_twice::prepare(world, next)), refused);
            assert_eq!(class(wide_twice(&mut u, next)), refused);
            Ok(())
        })?;
    }
    Ok(())
}
