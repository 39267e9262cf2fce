//! Tries `#[superstep]` on bodies that were written, or drawn at random, to break its slicer. Each
//! body must have the same effect without the attribute, with the attribute, prepared, and compiled
//! ahead of time. If a body cannot be prepared, its superstep must be dynamic and report why.

mod bodies;
use fencepost::prelude::*;
use fencepost::{Check, World, ranks};
use fencepost_tests_worlds::transports::transports;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// The number of ranks.
const RANKS: usize = 3;
/// The number of sets of arguments.
const CASES: usize = 6;

/// A body as a function, and a body that is bound to its plan.
type Plain = fn(&mut Window<u64>, usize, usize, &[usize]) -> Result<()>;
type Bound = Box<dyn FnMut(&mut Window<u64>, usize, usize, &[usize]) -> Result<()>>;

/// One body, in all its forms.
struct Program {
    name: &'static str,
    /// The text of its body, to print if a test fails.
    text: &'static str,
    /// Returns the reason why the body has no pattern, or `None` if it has one.
    dynamic: fn() -> Option<&'static str>,
    /// Returns whether the body itself fences.
    fences: fn() -> bool,
    plain: Plain,
    direct: Plain,
    /// The other functions of the superstep, if it has a pattern.
    ahead: Option<Ahead>,
}

/// The functions of a superstep that has a pattern.
struct Ahead {
    prepare: fn(&World, usize, usize, &[usize]) -> Result<Bound>,
    load: fn(&World, &Path, usize, usize, &[usize]) -> Result<Bound>,
    compile: fn(&Path, case: usize) -> Result<()>,
}

/// Defines each body twice: as a plain function, and as a superstep. A `sliced` superstep has a
/// pattern, a `replay` superstep consists of its pattern only, and a `dynamic` one has no pattern.
macro_rules! programs {
    ($($how:ident $name:ident ($u:ident, $n:ident, $k:ident, $list:ident) { $($body:tt)* })*) => {
        mod plain {
            use super::*;
            $(pub fn $name($u: &mut Window<u64>, $n: usize, $k: usize, $list: &[usize]) -> Result<()> { $($body)* })*
        }
        mod marked {
            use super::*;
            $(#[superstep]
            pub fn $name($u: &mut Window<u64>, $n: usize, $k: usize, $list: &[usize]) -> Result<()> { $($body)* })*
        }
        pub fn programs() -> Vec<Program> {
            vec![$(Program {
                name: stringify!($name),
                text: stringify!($($body)*),
                dynamic: || marked::$name::__superstep().dynamic,
                fences: || marked::$name::__superstep().fences,
                plain: plain::$name,
                direct: marked::$name,
                ahead: programs!(@ahead $how $name),
            }),*]
        }
    };
    (@ahead dynamic $name:ident) => { None };
    (@ahead sliced $name:ident) => {
        programs!(@some $name, prepared, (u, n, k, list) => prepared.run(u, n, k, list))
    };
    (@ahead replay $name:ident) => {
        programs!(@some $name, prepared, (u, _n, _k, _list) => prepared.replay(u))
    };
    (@some $name:ident, $prepared:ident, ($u:ident, $n:ident, $k:ident, $list:ident) => $run:expr) => {
        Some(Ahead {
            prepare: |world, n, k, list| {
                let mut $prepared = marked::$name::prepare(world, n, k, list)?;
                Ok(Box::new(move |$u, $n, $k, $list| $run))
            },
            load: |world, path, n, k, list| {
                let mut $prepared = marked::$name::load(world, path, n, k, list)?;
                Ok(Box::new(move |$u, $n, $k, $list| $run))
            },
            compile: |path, case| {
                let given = |rank| {
                    let (n, k, list) = arguments(case, rank);
                    Ok((n, k, list))
                };
                // Ahead of time nothing is known about windows, so a pattern that asks for the
                // length of a window has no plan.
                marked::$name::compile(RANKS, given)?.save(path)
            },
        })
    };
}
use programs;

/// Random bodies. If the slicer changes its decision on a body, move the seed of the body to the
/// other list.
#[allow(unused, clippy::all, clippy::pedantic, reason = "drawn at random")]
mod drawn {
    use super::bodies::{bad, pick, small, validate, validated};
    use super::*;

    macro_rules! ensure {
        ($holds:expr, $what:expr) => {
            if !$holds {
                return Err(bad($what));
            }
        };
    }

    fencepost_tests_drawn::drawn! {
        dynamic: 9, 10, 11, 13, 14, 16, 20, 21, 25, 29, 32, 33, 34, 40, 47, 57, 59, 61, 68, 79;
        sliced: 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 17, 18, 19, 22, 23, 24, 26, 27, 28, 30, 31, 35, 36, 37, 38, 39,
            41, 42, 43, 44, 45, 46, 48, 49, 50, 51, 52, 53, 54, 55, 56, 58, 60, 62, 63, 64, 65, 66, 67, 69, 70, 71,
            72, 73, 74, 75, 76, 77, 78
    }
}

/// Returns the arguments of a rank.
fn arguments(case: usize, rank: usize) -> (usize, usize, Vec<usize>) {
    match case {
        0 => (2, 1, vec![3, 1, 4, 1, 5]),
        1 => (0, 0, vec![]),
        2 => (rank, 5, vec![rank, 7]),
        3 => (7, 3, vec![9, 8, 7, 6, 5, 4, 3]),
        // One rank has arguments that many bodies refuse, and that make some bodies panic.
        4 => {
            if rank == 0 {
                (9, 0, vec![])
            } else {
                (1, 2, vec![7, 8, 9])
            }
        }
        _ => (3 * rank + 1, 2, (0..rank + 3).collect()),
    }
}

thread_local!(static EXPECTED: Cell<bool> = const { Cell::new(false) });

/// Runs `act` without printing panics, since panics of bodies are part of the test.
fn quietly<R>(act: impl FnOnce() -> Result<R>) -> Result<R> {
    EXPECTED.set(true);
    let done = catch_unwind(AssertUnwindSafe(act));
    EXPECTED.set(false);
    done.unwrap_or_else(|_| Err(Error::new(ErrorClass::Other, "panicked")))
}

fn quiet_hook() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let shown = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !EXPECTED.get() {
                shown(info);
            }
        }));
    });
}

fn window(world: &World) -> Result<Window<u64>> {
    let mut u = world.window::<u64>(24)?;
    u.iter_mut().enumerate().for_each(|(i, e)| *e = (100 * world.rank() + i) as u64);
    Ok(u)
}

/// Returns the differences between the forms of a program, and whether the program ran at least
/// once from a plan of each kind.
fn differences(program: &Program, dir: &Path) -> (Vec<String>, bool) {
    let each: Result<Vec<(Vec<String>, bool)>> = ranks(RANKS).check(Check::Calls).collect(|world| {
        let said = RefCell::new(Vec::new());
        let mut planned = [false; 2];
        for case in 0..CASES {
            let (n, k, list) = arguments(case, world.rank());
            let any = |failed: bool| -> Result<bool> {
                Ok(world.allgather(&[u8::from(failed)])?.iter().any(|failed| failed[0] != 0))
            };
            // Without the attribute, a rank that fails discards its operations, and no rank fences.
            let mut right = window(world)?;
            let own = quietly(|| (program.plain)(&mut right, n, k, &list));
            let failed = any(own.is_err())?;
            let fences = (program.fences)();
            match failed {
                true => right.discard(),
                false if fences => {}
                false => right.fence()?,
            }
            let compare = |how: &str, done: &Result<()>, u: &Window<u64>| {
                let says = |done: &Result<()>| done.as_ref().err().map(ToString::to_string);
                let agree = match (&own, done) {
                    (Ok(()), done) => done.is_ok() != failed,
                    (Err(_), Ok(())) => false,
                    (Err(_), Err(_)) => says(&own) == says(done),
                };
                if !agree {
                    said.borrow_mut().push(format!(
                        "{how}, case {case}: {:?}, not {:?}",
                        says(done),
                        says(&own)
                    ));
                }
                if u[..] != right[..] {
                    said.borrow_mut().push(format!("{how}, case {case}: {:?}, not {:?}", &u[..], &right[..]));
                }
            };
            let mut u = window(world)?;
            let done = quietly(|| (program.direct)(&mut u, n, k, &list));
            compare("direct", &done, &u);
            let Some(ahead) = &program.ahead else { continue };
            let path = dir.join(format!("{}-{case}.plan", program.name));
            let compiled = quietly(|| match world.rank() {
                0 => (ahead.compile)(&path, case),
                _ => Ok(()),
            });
            let compiled = !any(compiled.is_err())?;
            for (kind, how) in ["prepared", "compiled"].into_iter().enumerate() {
                if kind == 1 && !compiled {
                    continue;
                }
                let bound = quietly(|| match kind {
                    0 => (ahead.prepare)(world, n, k, &list),
                    _ => (ahead.load)(world, &path, n, k, &list),
                });
                let all = !any(bound.is_err())?;
                if all != bound.is_ok() {
                    said.borrow_mut()
                        .push(format!("{how}, case {case}: some ranks have a plan, and some have none"));
                }
                if !failed && !all {
                    let why = bound.err().map(|error| error.to_string());
                    said.borrow_mut()
                        .push(format!("{how}, case {case}: no plan, though the body succeeds: {why:?}"));
                } else if let (false, Ok(mut bound)) = (failed, bound) {
                    let mut u = window(world)?;
                    let done = quietly(|| bound(&mut u, n, k, &list));
                    compare(how, &done, &u);
                    planned[kind] = true;
                }
            }
        }
        Ok((said.into_inner(), planned == [true; 2]))
    });
    match each {
        Ok(each) => {
            let planned = each.iter().all(|(_, planned)| *planned);
            (each.into_iter().flat_map(|(said, _)| said).collect(), planned)
        }
        Err(error) => (vec![error.to_string()], false),
    }
}

/// Checks that each program has the same effect in each form. Returns the number of programs and
/// the number of dynamic programs. If `succeeds`, each program must succeed for some arguments.
fn same_in_each_form(programs: Vec<Program>, succeeds: bool) -> (usize, usize) {
    quiet_hook();
    let dir = Directory::new();
    let mut wrong = Vec::new();
    let dynamic = programs.iter().filter(|program| (program.dynamic)().is_some()).count();
    for program in &programs {
        assert_eq!((program.dynamic)().is_none(), program.ahead.is_some(), "{}", program.name);
        let (differences, planned) = differences(program, &dir.0);
        if !differences.is_empty() {
            wrong.push(format!("{}, which is {{ {} }}", program.name, program.text));
        }
        wrong.extend(differences.into_iter().map(|difference| format!("{}: {difference}", program.name)));
        if succeeds && program.ahead.is_some() && !planned {
            wrong.push(format!("{}: never ran from a plan", program.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    (programs.len(), dynamic)
}

/// A temporary directory. It is removed when this value is dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("fencepost-slicer-{}-{number}", std::process::id()));
        std::fs::create_dir(&dir).expect("a directory for plans");
        Self(dir)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn bodies_written_to_break_the_slicer_do_the_same_in_each_form() {
    let (all, dynamic) = same_in_each_form(bodies::programs(), true);
    assert_eq!((all, dynamic), (229, 61), "bodies, and dynamic ones");
}

#[test]
fn bodies_drawn_at_random_do_the_same_in_each_form() {
    let (all, dynamic) = same_in_each_form(drawn::programs(), false);
    assert_eq!((all, dynamic), (80, 20), "bodies, and dynamic ones");
}

/// Has a check, and an index that relies on the check. The check reads elements, so it is not part
/// of the pattern.
#[superstep]
fn guarded(u: &mut Window<u64>, list: &[usize]) -> Result<()> {
    if list.len() < 3 && u[0] < u64::MAX {
        return Err(Error::new(ErrorClass::Arg, "too few"));
    }
    let right = (u.rank() + 1) % u.size();
    u.put([1]).to(right, list[2])
}

/// Fences in the body and in a function. On one rank the function fails before its fence.
#[superstep]
fn fenced_by_a_helper(u: &mut Window<u64>) -> Result<()> {
    fn helper(u: &mut Window<u64>) -> Result<()> {
        if u.rank() == 0 {
            return Err(Error::new(ErrorClass::Other, "rank 0 fails in the helper"));
        }
        u.fence()
    }
    u.fence()?;
    helper(u)?;
    u[0] += 0;
    Ok(())
}

/// Runs some epochs in which every rank puts to every rank. Checks that the elements of each epoch
/// have arrived at its end.
fn in_step(world: &World) -> Result<()> {
    let mut u = world.window::<u64>(world.size())?;
    for epoch in 1..4 {
        for to in 0..world.size() {
            u.put([100 * epoch + world.rank() as u64]).to(to, world.rank())?;
        }
        u.fence()?;
        let right: Vec<u64> = (0..world.size() as u64).map(|rank| 100 * epoch + rank).collect();
        assert_eq!(u[..], right[..], "epoch {epoch}");
    }
    Ok(())
}

#[test]
fn a_pattern_that_panics_on_one_rank_leaves_all_ranks_in_step() {
    quiet_hook();
    for transport in transports([0, 1]) {
        ranks(4)
            .transport(transport)
            .run(|world| {
                let list: &[usize] = if world.rank() == 0 { &[] } else { &[5, 6, 7] };
                let mut u = world.window::<u64>(20)?;
                let direct = quietly(|| guarded(&mut u, list)).unwrap_err();
                let own = if world.rank() == 0 { "too few" } else { "rank 0" };
                assert!(direct.to_string().contains(own), "{direct}");
                in_step(world)?;
                let prepared = quietly(|| guarded::prepare(world, list)).unwrap_err();
                assert_eq!(prepared.class(), ErrorClass::Plan, "{prepared}");
                let text = prepared.to_string();
                assert!(text.contains("superstep `guarded` (tests/supersteps/slicer.rs:"), "{text}");
                assert!(text.contains("index out of bounds"), "{text}");
                in_step(world)?;
                let loaded = quietly(|| guarded::load(world, "no plan", list)).unwrap_err();
                assert_eq!(loaded.class(), ErrorClass::Plan, "{loaded}");
                in_step(world)
            })
            .unwrap();
    }
    let compiled = quietly(|| guarded::compile(4, |rank| Ok(vec![1; rank]))).unwrap_err();
    assert_eq!((compiled.class(), compiled.rank()), (ErrorClass::Plan, Some(0)), "{compiled}");
}

#[test]
fn a_fence_that_a_helper_makes_last_is_waited_for_by_the_rank_that_fails() {
    for transport in transports([0, 1]) {
        ranks(4)
            .transport(transport)
            .run(|world| {
                let mut u = world.window::<u64>(1)?;
                let failed = fenced_by_a_helper(&mut u).unwrap_err();
                assert!(failed.to_string().contains("rank 0"), "{failed}");
                in_step(world)
            })
            .unwrap();
    }
}

/// The loop ends by itself, or because of the value of an element.
#[superstep]
fn searches(u: &mut Window<u64>, start: usize) -> Result<()> {
    let mut i = start;
    while i != 10 {
        if i > 10 && u[0] < u64::MAX {
            return Err(Error::new(ErrorClass::Arg, "too far"));
        }
        i = i.wrapping_add(4);
    }
    u.put([1]).to((u.rank() + 1) % u.size(), i)?;
    Ok(())
}

/// The same loop as in [`searches`], but this loop puts.
#[superstep]
fn puts_on(u: &mut Window<u64>, end: usize) -> Result<()> {
    let mut i = 0;
    while i != end {
        if i > 10 && u[0] < u64::MAX {
            return Err(Error::new(ErrorClass::Arg, "too many"));
        }
        u.put([1]).to((u.rank() + 1) % u.size(), i % 20)?;
        i += 1;
    }
    Ok(())
}

#[test]
fn a_pattern_that_does_not_end_is_no_claim_and_no_plan() {
    let (done, waits) = mpsc::channel();
    std::thread::spawn(move || {
        ranks(2)
            .run(|world| {
                let mut u = world.window::<u64>(20)?;
                let failed = searches(&mut u, 3).unwrap_err();
                assert!(failed.to_string().contains("too far"), "{failed}");
                let failed = puts_on(&mut u, usize::MAX).unwrap_err();
                assert!(failed.to_string().contains("too many"), "{failed}");
                // The loop ends on rank 0 and not on rank 1. Preparing fails on both ranks.
                let turns = searches::prepare(world, 2 + world.rank()).unwrap_err();
                assert!(
                    turns.class() == ErrorClass::Plan && turns.to_string().contains("16777216 turns"),
                    "{turns}"
                );
                in_step(world)?;
                searches(&mut u, 2)
            })
            .unwrap();
        let calls = puts_on::compile(2, |_| Ok(usize::MAX)).unwrap_err();
        assert!(
            calls.class() == ErrorClass::Plan && calls.to_string().contains("1048576 operations"),
            "{calls}"
        );
        done.send(()).unwrap();
    });
    waits.recv_timeout(Duration::from_secs(100)).expect("a pattern ends");
}
