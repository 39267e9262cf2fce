//! Stores of a rank into its part in an epoch in which other ranks access that part. MPI does not
//! define such stores (planner/README.md, 37).

use crate::ends::{End, ends_of};
use crate::generated::{BEFORE, Called, Found, LEN, LINES, MOST};
use crate::generated::{after_reports, called, conflict_lines, expected, found, law, number, on};
use fencepost::prelude::*;
use fencepost::{Check, TransportKind, ranks};
use fencepost_planner::ids::{Id, Rank, WindowId};
use fencepost_tests_reference::undefined_stores;
use fencepost_tests_support::cases::cases;
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::transports::transports;

/// The actions of two ranks between two fences: rank 1 stores into its part, and rank 0 accesses
/// that part.
type Between = fn(&World, &mut Window<u64>) -> Result<()>;

/// Makes a window, or gives it back to the program. Also returns the line of the call that makes
/// the window or gives it back.
type Handed = fn(&World) -> Result<(Window<u64>, u32)>;

/// Runs `between` after a call that gives each rank the window, and before two fences. Returns how
/// each rank's first fence ended.
fn ends(transport: &TransportKind, check: Check, handed: Handed, between: Between) -> Vec<End> {
    let ends = ends_of(ranks(4).transport(transport.clone()).check(check), transport, |world| {
        let (mut u, _) = handed(world)?;
        between(world, &mut u)?;
        let end = u.fence();
        u.fence()?;
        end
    });
    ends.expect("the world goes on")
}

/// Asserts that ranks 0 and 1 are part of a conflict between a store and an operation with the
/// access `does`. Asserts also that the other ranks are notified. `line` is the line of the call
/// that gave the program the window.
fn assert_told(told: &[End], line: u32, does: &str, what: &str) {
    let classes: Vec<_> = told.iter().map(|end| end.as_ref().err().map(|(class, _)| *class)).collect();
    let (part, other) = (Some(ErrorClass::RmaConflict), Some(ErrorClass::RmaSync));
    assert_eq!(classes, [part, part, other, other], "{what}: {told:?}");
    for (_, text) in told.iter().filter_map(|end| end.as_ref().err()) {
        let stored = format!("stored by rank 1 after the call at {}:{line}:", file!());
        let words = [&stored, does, "a store and an operation", "MPI does not define"];
        assert!(words.iter().all(|words| text.contains(words)), "{what}: {text}");
    }
}

fn store(u: &mut Window<u64>) {
    if u.rank() == 1 {
        u[3] = 1;
    }
}

fn put(u: &Window<u64>) -> Result<()> {
    if u.rank() == 0 { u.put([1]).to(1, 9) } else { Ok(()) }
}

fn fenced(world: &World) -> Result<(Window<u64>, u32)> {
    let mut u = world.window_from(vec![5_u64; 16])?;
    let line = line!() + 1;
    u.fence()?;
    Ok((u, line))
}

const TOLD: [(&str, Between); 7] = [
    ("written by rank 0", |world, u| {
        if world.rank() == 1 {
            u[3] = 1;
        }
        if world.rank() == 0 { u.put([1]).to(1, 9) } else { Ok(()) }
    }),
    ("accumulated into with SUM by rank 0", |world, u| {
        if world.rank() == 1 {
            u[3] = 1;
        }
        if world.rank() == 0 { u.accumulate([1; 4], Op::Sum).to(1, 3) } else { Ok(()) }
    }),
    ("read by rank 0", |world, u| {
        if world.rank() == 1 {
            u[3] = 1;
        }
        if world.rank() == 0 { u.fetch(1, 2..9).map(drop) } else { Ok(()) }
    }),
    ("after a barrier: written by rank 0", |world, u| {
        store(u);
        world.barrier()?;
        put(u)
    }),
    ("before a barrier: written by rank 0", |world, u| {
        put(u)?;
        world.barrier()?;
        store(u);
        Ok(())
    }),
    ("after reductions: written by rank 0", |world, u| {
        store(u);
        world.allreduce(&mut [1.0], Op::Sum)?;
        world.reduce(2, &[1; 100], Op::Sum)?;
        put(u)
    }),
    ("after a fence and an exposure of another window, and an access: written by rank 0", |world, u| {
        store(u);
        let mut v = world.window::<u64>(1)?;
        v.fence()?;
        if world.rank() == 2 {
            v = v.post(&world.group([1])?)?.wait()?;
        } else if world.rank() == 1 {
            v.start(&world.group([2])?)?.complete()?;
        }
        if world.rank() == 1 {
            u.start(&world.group([0; 0])?)?.complete()?;
        }
        drop(v);
        put(u)
    }),
];

const SILENT: [(&str, Between); 5] = [
    ("a get of other elements", |world, u| {
        if world.rank() == 1 {
            u[3] = 1;
        }
        if world.rank() == 0 { u.fetch(1, 4..9).map(drop) } else { Ok(()) }
    }),
    ("a fence after the store", |world, u| {
        if world.rank() == 1 {
            u[3] = 1;
        }
        u.fence()?;
        if world.rank() == 0 { u.put([1]).to(1, 9) } else { Ok(()) }
    }),
    ("a put into the part of another rank", |world, u| {
        if world.rank() == 1 {
            u[3] = 1;
        }
        if world.rank() == 0 { u.put([1]).to(2, 3) } else { Ok(()) }
    }),
    ("a store that changes nothing", |world, u| {
        if world.rank() == 1 {
            u[3] = 5;
        }
        if world.rank() == 0 { u.put([1]).to(1, 9) } else { Ok(()) }
    }),
    ("an operation of the rank that stores", |world, u| {
        if world.rank() == 1 {
            u[3] = 1;
            u.put([1]).to(1, 3)?;
        }
        Ok(())
    }),
];

/// Calls that give a program a window, or give it back. A store after the call is found. A store
/// before the call is not found.
const HANDED: [(&str, Handed); 8] = [
    ("a window that was made", |world| Ok((world.window::<u64>(16)?, line!()))),
    ("a window of a vector", |world| Ok((world.window_from(vec![5; 16])?, line!()))),
    ("a window that was changed back from locks", |world| {
        let mut u = world.window::<u64>(16)?;
        store(&mut u);
        let u = u.into_locked()?;
        u.local_mut(|part| {
            part[4] = 1;
            Ok(())
        })?;
        Ok((u.into_window()?, line!()))
    }),
    ("a window for locks that was changed over", |world| {
        Ok((world.lock_window::<u64>(16)?.into_window()?, line!()))
    }),
    ("an exposure", |world| {
        let mut u = world.window::<u64>(16)?;
        store(&mut u);
        if world.rank() == 0 {
            let access = u.start(&world.group([1])?)?;
            access.put([1]).to(1, 2)?;
            access.complete()?;
        }
        if world.rank() == 1 {
            let exposed = u.post(&world.group([0])?)?;
            u = exposed.wait()?;
        }
        Ok((u, line!() - 2))
    }),
    ("a fence that was refused", |world| {
        let mut u = world.window::<u64>(16)?;
        store(&mut u);
        put(&u)?;
        let line = line!() + 1;
        u.fence().expect_err("a store and a put");
        Ok((u, line))
    }),
    ("a prepared superstep in whose epoch something was stored", |world| {
        let mut u = world.window::<u64>(16)?;
        let mut step = puts::prepare(world)?;
        store(&mut u);
        let line = line!() + 1;
        let ran = step.run(&mut u);
        assert_eq!(ran.is_err(), world.rank() == 1);
        Ok((u, line))
    }),
    ("a prepared superstep in two halves", |world| {
        let u = world.window::<u64>(16)?;
        let mut step = puts::prepare(world)?;
        let running = step.begin(u)?;
        Ok((running.finish()?, line!() - 1))
    }),
];

#[superstep]
fn puts(u: &mut Window<u64>) -> Result<()> {
    if u.rank() == 0 {
        u.put([2]).to(1, 3)?;
    }
    Ok(())
}

/// Accesses of rank 1 to the section of its own operation, after the call of this operation. The
/// text names the operation and its access to the section.
const OWN: [(&str, Between); 6] = [
    ("the source of a put: element 3: read by rank 1", |world, u| {
        if world.rank() == 1 {
            u.put(0..4).to(0, 8..12)?;
            u[3] = 1;
        }
        Ok(())
    }),
    ("the source of an accumulate of one element: element 2: read by rank 1", |world, u| {
        if world.rank() == 1 {
            u.accumulate(2..3, Op::Sum).to(0, 8)?;
            u[2] = 1;
            world.message(0, 0).send([1])?;
        }
        if world.rank() == 0 { world.recv::<i32>(1, 0).map(drop) } else { Ok(()) }
    }),
    ("the destination of a get: elements 4..8: written by rank 1", |world, u| {
        if world.rank() == 1 {
            u.get(0..8).from(0, 8..16)?;
            u[4] = 1;
            u[7] = 1;
        }
        world.barrier()
    }),
    ("a column: elements 5..11: read by rank 1", |world, u| {
        if world.rank() == 1 {
            u.put(u.section(Datatype::nest(0, &[(3, 5)], 1).unwrap())).to(2, 0..3)?;
            u[5] = 1;
            u[6] = 1;
        }
        world.barrier()?;
        if world.rank() == 1 {
            u[10] = 1;
        }
        Ok(())
    }),
    ("the first of two puts of one section: element 3: read by rank 1", |world, u| {
        if world.rank() == 1 {
            u.put(0..4).to(0, 8..12)?;
            u[3] = 1;
            u.put(0..4).to(2, 8..12)?;
        }
        Ok(())
    }),
    ("a put to itself: element 3: read by rank 1", |world, u| {
        if world.rank() == 1 {
            u.put(0..4).to(1, 8..12)?;
            u[3] = 1;
        }
        Ok(())
    }),
];

const OWN_SILENT: [(&str, Between); 5] = [
    ("a store before the call", |world, u| {
        if world.rank() == 1 {
            u[3] = 1;
            u.put(0..4).to(0, 8..12)?;
            u[4] = 1;
            u.get(4..8).from(2, 8..12)?;
        }
        Ok(())
    }),
    ("stores into other elements after the call", |world, u| {
        if world.rank() == 1 {
            u.put(2..4).to(0, 8..10)?;
            u.get(6..8).from(2, 8..10)?;
            u[1] = 1;
            u[4] = 1;
            u[5] = 1;
            u[8] = 1;
        }
        Ok(())
    }),
    ("a slice, which is read at the call", |world, u| {
        if world.rank() == 1 {
            u.put(&u[0..4]).to(0, 8..12)?;
            u[3] = 1;
        }
        Ok(())
    }),
    ("an operation that was given up", |world, u| {
        if world.rank() == 1 {
            u.put(0..4).to(0, 8..12)?;
            u.discard();
            u[3] = 1;
        }
        Ok(())
    }),
    ("a fence before the store", |world, u| {
        if world.rank() == 1 {
            u.put(0..4).to(0, 8..12)?;
        }
        u.fence()?;
        if world.rank() == 1 {
            u[3] = 1;
        }
        Ok(())
    }),
];

/// Checks the results of all programs of this file on this transport.
pub(crate) fn judged(transport: &TransportKind) {
    let line_of = |handed: Handed| {
        let lines = ranks(4).check(Check::Mpi).collect(|world| Ok(handed(world)?.1));
        lines.expect("the world goes on")[0]
    };
    for (what, between) in TOLD {
        let at = format!("{what} on {transport:?}");
        let does = what.rsplit(": ").next().expect("some");
        assert_told(&ends(transport, Check::Mpi, fenced, between), line_of(fenced), does, &at);
        let silent = ends(transport, Check::Conflicts, fenced, between);
        assert!(silent.iter().all(Result::is_ok), "{at}: {silent:?}");
    }
    for (what, between) in SILENT {
        let silent = ends(transport, Check::Mpi, fenced, between);
        assert!(silent.iter().all(Result::is_ok), "{what} on {transport:?}: {silent:?}");
    }
    for (what, between) in OWN {
        let at = format!("{what} on {transport:?}");
        let told = ends(transport, Check::Mpi, fenced, between);
        let classes: Vec<_> = told.iter().map(|end| end.as_ref().err().map(|(class, _)| *class)).collect();
        let (part, other) = (Some(ErrorClass::RmaConflict), Some(ErrorClass::RmaSync));
        assert_eq!(classes, [other, part, other, other], "{at}: {told:?}");
        let mut words = what.rsplit(": ");
        let (does, elements) = (words.next().expect("some"), words.next().expect("some"));
        for (_, text) in told.iter().filter_map(|end| end.as_ref().err()) {
            let stored = format!("stored by rank 1 after the call at {}:", file!());
            let named = format!("{elements} of window 0 on rank 1");
            let all = [&stored, &named, does, "MPI does not define", "between the call"];
            assert!(all.iter().all(|words| text.contains(words)), "{at}: {text}");
        }
        let silent = ends(transport, Check::Conflicts, fenced, between);
        assert!(silent.iter().all(Result::is_ok), "{at}: {silent:?}");
    }
    for (what, between) in OWN_SILENT {
        let silent = ends(transport, Check::Mpi, fenced, between);
        assert!(silent.iter().all(Result::is_ok), "{what} on {transport:?}: {silent:?}");
    }
    for (what, handed) in HANDED {
        let at = format!("after {what} on {transport:?}");
        let told = ends(transport, Check::Mpi, handed, |_, u| {
            if u.rank() == 1 {
                u[11] = 1;
            }
            put(u)
        });
        assert_told(&told, line_of(handed), "written by rank 0", &at);
        let silent = ends(transport, Check::Mpi, handed, |_, u| put(u));
        assert!(silent.iter().all(Result::is_ok), "{at}: {silent:?}");
    }
}

#[test]
fn a_section_of_another_window_is_reported_once_as_not_looked_at() {
    let first = line!() + 8;
    let (ended, text) = after_reports(|report| {
        ranks(2).check(Check::Mpi).check_report(report).run(|world| {
            let mut u = world.window::<u64>(4)?;
            let mut v = world.window::<u64>(4)?;
            world.fence((&mut u, &mut v))?;
            for at in 0..2 {
                if world.rank() == 0 {
                    u.put(v.section(at..at + 1)).to(1, at)?;
                    v[at] = 1;
                }
                world.fence((&mut u, &mut v))?;
            }
            Ok(())
        })
    });
    ended.expect("nothing is found");
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.len() == 1 && lines[0].contains("\"blind\""), "{text}");
    assert!(text.contains(&format!("\"line\":{first},")), "{text}");
}

/// A way to run a prepared superstep.
type Run = fn(&World, Window<u64>) -> Result<Window<u64>>;

#[superstep]
fn puts_in_two_epochs(u: &mut Window<u64>) -> Result<()> {
    if u.rank() == 0 {
        u.put([2]).to(1, 3)?;
    }
    u.fence()?;
    if u.rank() == 2 {
        u.put([2]).to(3, 3)?;
    }
    u.fence()
}

#[superstep]
fn copies(u: &mut Window<u64>) -> Result<()> {
    if u.rank() == 0 {
        u.put(0..1).to(1, 3)?;
    }
    Ok(())
}

#[superstep]
fn copies_in_two_epochs(u: &mut Window<u64>) -> Result<()> {
    if u.rank() == 0 {
        u.put(0..1).to(1, 3)?;
    }
    u.fence()?;
    if u.rank() == 2 {
        u.put(0..1).to(3, 3)?;
    }
    u.fence()
}

#[superstep]
fn copies_in_two_windows(v: &mut Window<u64>, u: &mut Window<u64>) -> Result<()> {
    if v.rank() == 0 {
        v.put(0..1).to(1, 3)?;
    }
    v.fence()?;
    if v.rank() == 0 {
        u.put(0..1).to(1, 3)?;
    }
    u.fence()
}

#[superstep]
fn fences_and_puts(u: &mut Window<u64>) -> Result<()> {
    u.fence()?;
    if u.rank() == 0 {
        u.put([2]).to(1, 3)?;
    }
    u.fence()
}

/// The fences before the last one order no operation, and are left out.
#[superstep]
fn stores_fences_and_puts(u: &mut Window<u64>) -> Result<()> {
    u.fence()?;
    if u.rank() == 1 {
        u[9] = 1;
    }
    u.fence()?;
    if u.rank() == 0 {
        u.put([2]).to(1, 3)?;
    }
    u.fence()
}

/// The call in which a rank is notified of a conflict between its stores and a run.
#[derive(Clone, Copy, PartialEq)]
enum Learns {
    FromRun,
    InBarrier,
    /// There is no conflict, so the rank is not notified in any call.
    Never,
}

/// Checks that a run has had its effect although a rank may have found a conflict.
fn had(mut u: Window<u64>, ran: Result<()>) -> Result<Window<u64>> {
    let written = if u.rank() == 1 { u[3] } else { 2 };
    assert_eq!(written, 2, "the run was carried out");
    u[0] = 2;
    ran.map(|()| u)
}

const RUNS: [(&str, Learns, Run); 10] = [
    ("a run", Learns::FromRun, |world, mut u| {
        let ran = puts::prepare(world)?.run(&mut u);
        had(u, ran)
    }),
    ("a run of two epochs", Learns::FromRun, |world, mut u| {
        let ran = puts_in_two_epochs::prepare(world)?.run(&mut u);
        had(u, ran)
    }),
    ("a replay", Learns::FromRun, |world, mut u| {
        let ran = copies::prepare(world)?.replay(&mut u);
        had(u, ran)
    }),
    ("a replay of two epochs", Learns::FromRun, |world, mut u| {
        let ran = copies_in_two_epochs::prepare(world)?.replay(&mut u);
        had(u, ran)
    }),
    ("a run of epochs of two windows", Learns::FromRun, |world, mut u| {
        let mut v = world.window::<u64>(16)?;
        let ran = copies_in_two_windows::prepare(world)?.run(&mut v, &mut u);
        had(u, ran)
    }),
    ("a replay of epochs of two windows", Learns::FromRun, |world, mut u| {
        let mut v = world.window::<u64>(16)?;
        let ran = copies_in_two_windows::prepare(world)?.replay(&mut v, &mut u);
        had(u, ran)
    }),
    ("two halves", Learns::InBarrier, |world, u| had(copies::prepare(world)?.begin(u)?.finish()?, Ok(()))),
    ("a run that begins with a fence", Learns::Never, |world, mut u| {
        let ran = fences_and_puts::prepare(world)?.run(&mut u);
        had(u, ran)
    }),
    ("a run that stores and fences before it puts", Learns::Never, |world, mut u| {
        let ran = stores_fences_and_puts::prepare(world)?.run(&mut u);
        had(u, ran)
    }),
    ("the same, not prepared", Learns::Never, |_, mut u| {
        let ran = stores_fences_and_puts(&mut u);
        had(u, ran)
    }),
];

/// The accesses of a rank to its part before a run.
type Before = fn(&mut Window<u64>) -> Result<()>;

/// The accesses before a run, and whether they conflict with the accesses of other ranks in the
/// run.
const BEFORE_RUN: [(&str, Before, bool); 5] = [
    (
        "a store",
        |u| {
            store(u);
            Ok(())
        },
        true,
    ),
    (
        "a store into another element",
        |u| {
            if u.rank() == 1 {
                u[9] = 1;
            }
            Ok(())
        },
        true,
    ),
    (
        "a fence after the store",
        |u| {
            store(u);
            u.fence()
        },
        false,
    ),
    (
        "a store of the rank that puts",
        |u| {
            if u.rank() == 0 {
                u[9] = 1;
            }
            Ok(())
        },
        false,
    ),
    ("no store", |_| Ok(()), false),
];

/// Returns how a run, and the barrier after the run, end on each rank. If a conflict is `found`,
/// the other ranks are notified in the barrier.
fn ends_of_run(
    transport: &TransportKind,
    check: Check,
    (learns, run): (Learns, Run),
    before: Before,
    found: bool,
) -> Result<Vec<End>> {
    ends_of(ranks(4).transport(transport.clone()).check(check), transport, |world| {
        let mut u = world.window_from(vec![2_u64; 16])?;
        u.fence()?;
        before(&mut u)?;
        let ran = run(world, u);
        let met = world.barrier();
        world.barrier()?;
        let classes = [ran.as_ref().err(), met.as_ref().err()].map(|end| end.map(Error::class));
        let (part, other) = (Some(ErrorClass::RmaConflict), Some(ErrorClass::RmaSync));
        let meant = match world.rank() {
            _ if !found => [None; 2],
            0 => [None, part],
            1 => [part.filter(|_| learns == Learns::FromRun), part],
            _ => [None, other],
        };
        assert_eq!(classes, meant, "{ran:?} {met:?}");
        match ran {
            // If each rank still has its window, the next epoch succeeds like any other.
            Ok(mut u) if !found || learns == Learns::InBarrier => u.fence().and(met),
            ran => ran.map(drop).and(met),
        }
    })
}

#[test]
fn a_store_in_the_epoch_of_a_prepared_superstep_is_told_with_both_lines_by_mpi_only() {
    for transport in transports(0..2) {
        for (how, learns, run) in RUNS {
            for (what, before, conflicts) in BEFORE_RUN {
                for check in [Check::Mpi, Check::Conflicts] {
                    let at = format!("{what}, {how}, {check}, {transport:?}");
                    let found = conflicts && check == Check::Mpi && learns != Learns::Never;
                    let ends = ends_of_run(&transport, check, (learns, run), before, found);
                    let ends = ends.unwrap_or_else(|error| panic!("{at}: {error}"));
                    for (_, text) in ends.iter().filter_map(|end| end.as_ref().err()) {
                        let stored = format!("stored by rank 1 after the call at {}:", file!());
                        let put = format!("written by rank 0 at {}:", file!());
                        let words = [&stored, &put, "a store and an operation of a prepared superstep"];
                        assert!(words.iter().all(|words| text.contains(*words)), "{at}: {text}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_store_in_the_epoch_of_an_access_of_another_rank_is_told_with_both_lines_by_mpi_only() {
    transports(0..2).iter().for_each(judged);
}

/// The calls between two fences, and the elements into which each rank stores before them.
struct Epoch {
    calls: Vec<Called>,
    stores: Vec<(usize, usize, usize)>,
}

/// Draws calls without a conflict, and some stores.
fn epoch(dice: &mut Random, size: usize) -> Epoch {
    let mut calls: Vec<Called> = Vec::new();
    for _ in 0..dice.below(10) {
        if calls.len() < MOST {
            calls.push(called(dice, size));
            if !expected(&calls, size).is_empty() {
                calls.pop();
            }
        }
    }
    let mut stores: Vec<(usize, usize, usize)> =
        (0..dice.below(3)).map(|_| (dice.below(size), dice.below(2), dice.below(LEN))).collect();
    stores.sort_unstable();
    stores.dedup();
    Epoch { calls, stores }
}

fn meant(epoch: &Epoch, size: usize, fence: u32) -> Vec<Found> {
    let place =
        |&(rank, window, at): &(usize, usize, usize)| (Rank::new(rank), WindowId::new(window), at as i64);
    let stored: Vec<_> = epoch.stores.iter().map(place).collect();
    let all = undefined_stores(&law(&epoch.calls, size), &stored).into_iter().map(|told| {
        let (rank, id) = told.by;
        let line = u64::from(BEFORE) + number(&epoch.calls, rank, id) as u64;
        let (a, b) = ((told.rank.index() as u64, u64::from(fence)), (rank.index() as u64, line));
        let ends = [told.elements[0] as u64, *told.elements.last().expect("one at least") as u64 + 1];
        (told.window.index() as u64, told.rank.index() as u64, ends, [a.min(b), a.max(b)])
    });
    let mut all: Vec<Found> = all.collect();
    all.sort();
    all
}

#[test]
fn what_is_told_of_stores_is_what_the_reference_says() {
    let (mut some, mut none) = (0, 0);
    for number in 0..cases(60, 1000) {
        let mut dice = Random::new(3 << 32 | number);
        let size = 2 + dice.below(4);
        let epochs: Vec<Epoch> = (0..4).map(|_| epoch(&mut dice, size)).collect();
        let fence = line!() + 17;
        for transport in on(number, size) {
            let (run, text) = after_reports(|report| {
                let asked = ranks(size).transport(transport.clone()).check(Check::Mpi).check_report(report);
                asked.collect(|world| {
                    let mut windows = [world.window::<u64>(LEN)?, world.window::<u64>(LEN)?];
                    let mut failed = Vec::new();
                    let nothing = Epoch { calls: Vec::new(), stores: Vec::new() };
                    for Epoch { calls, stores } in std::iter::once(&nothing).chain(&epochs) {
                        let me = world.rank();
                        stores
                            .iter()
                            .filter(|(rank, ..)| *rank == me)
                            .for_each(|&(_, w, at)| windows[w][at] = !windows[w][at]);
                        let own = calls.iter().enumerate().filter(|(_, call)| call.rank == me);
                        own.map(|(at, call)| LINES[at](&windows, call, 7)).collect::<Result<Vec<()>>>()?;
                        let [u, v] = &mut windows;
                        failed.push(world.fence((u, v)).is_err());
                    }
                    Ok(failed)
                })
            });
            let mut told: Vec<Found> = conflict_lines(&text).map(found).collect();
            told.sort();
            let (mut expected, mut fails) = (Vec::new(), vec![false]);
            for epoch in &epochs {
                let these = meant(epoch, size, fence);
                fails.push(!these.is_empty());
                *(if these.is_empty() { &mut none } else { &mut some }) += 1;
                expected.extend(these);
            }
            expected.sort();
            assert_eq!(told, expected, "program {number} of {size} ranks on {transport:?}");
            assert_eq!(
                run.expect("the world goes on"),
                vec![fails; size],
                "program {number} on {transport:?}"
            );
        }
    }
    assert!(some > 50 && none > 50, "{some} epochs with stores that are told, {none} without");
}

/// Rank 1 exposes half of its window. It stores into the other half while the window is posted, or
/// after its wait. Meanwhile rank 0 makes the access `act`.
fn exposed(
    transport: &TransportKind,
    check: Check,
    while_posted: bool,
    act: fn(&fencepost::Access<u64>) -> Result<()>,
) -> (Vec<Option<(ErrorClass, String)>>, u32) {
    let post = line!() + 11;
    let ends = ranks(3).transport(transport.clone()).check(check).collect(|world| {
        let mut u = world.window_from(vec![5_u64; 16])?;
        let mut end = Ok(());
        match world.rank() {
            0 => {
                let access = u.start(&world.group([1])?)?;
                act(&access)?;
                access.complete()?;
            }
            1 => {
                let mut exposed = u.post_part(&world.group([0])?, 0..8)?;
                if while_posted {
                    exposed.kept_mut(8..16)?[3] = 1;
                }
                // Meanwhile rank 1 makes an access without targets, which changes nothing.
                exposed.start(&world.group([0; 0])?)?.complete()?;
                u = match exposed.wait() {
                    Ok(u) => u,
                    Err(refused) => {
                        let (u, error) = refused.into_parts();
                        assert_eq!(u[..8], [5; 8], "nothing was applied");
                        end = Err(error);
                        u
                    }
                };
                if !while_posted {
                    u[11] = 1;
                }
                assert_eq!(u[11], 1);
            }
            _ => {}
        }
        let end = end.and(world.barrier()).err();
        Ok(end.map(|error| (error.class(), error.message().to_owned())))
    });
    (ends.expect("the world goes on"), post)
}

#[test]
fn a_store_into_what_is_not_lent_of_a_posted_window_is_told_with_both_lines_by_mpi_only() {
    for transport in transports(0..2) {
        let put = line!() + 1;
        let (told, post) = exposed(&transport, Check::Mpi, true, |access| access.put([1]).to(1, 2));
        let classes: Vec<_> = told.iter().map(|end| end.as_ref().map(|(class, _)| *class)).collect();
        let expected = [ErrorClass::RmaConflict, ErrorClass::RmaConflict, ErrorClass::RmaSync].map(Some);
        assert_eq!(classes, expected, "{transport:?}: {told:?}");
        for (_, text) in told.iter().flatten() {
            let stored = format!("stored by rank 1 after the call at {}:{post}", file!());
            let words = [&stored, "before the post, or after the wait", &format!("stores.rs:{put}")];
            assert!(words.iter().all(|words| text.contains(words)), "{text}");
        }
        let silent = [
            exposed(&transport, Check::Conflicts, true, |access| access.put([1]).to(1, 2)),
            exposed(&transport, Check::Mpi, false, |access| access.put([1]).to(1, 2)),
            exposed(&transport, Check::Mpi, true, |access| access.fetch(1, 2).map(drop)),
        ];
        for (ends, _) in silent {
            assert!(ends.iter().all(Option::is_none), "{transport:?}: {ends:?}");
        }
    }
}

#[test]
fn a_store_during_an_exposure_that_was_refused_is_not_told_in_the_next_one() {
    for transport in transports(0..2) {
        let run = ranks(2).transport(transport.clone()).check(Check::Mpi).run(|world| {
            let mut u = world.window_from(vec![5_u64; 16])?;
            let other = world.group([1 - world.rank()])?;
            if world.rank() == 0 {
                drop(u.start(&other)?);
                world.barrier()?;
                let access = u.start(&other)?;
                access.put([1]).to(1, 0)?;
                access.complete()?;
            } else {
                let refused = u.post_part(&other, 0..4)?.wait().expect_err("an access was dropped");
                (u, _) = refused.into_parts();
                u[7] = 1;
                world.barrier()?;
                u = u.post(&other)?.wait()?;
                assert_eq!((u[0], u[7]), (1, 1), "{transport:?}");
            }
            world.barrier()
        });
        run.expect("no conflict");
    }
}
