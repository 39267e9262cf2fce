//! A rank loads elements of its part in an epoch in which other ranks put or accumulate into the
//! same elements. MPI does not define the values of such loads (planner/README.md, 37). These loads
//! are found only if memory is watched.
#![cfg(target_arch = "x86_64")]

use crate::ends::{End, ends_of};
use crate::generated::{BEFORE, Called, Found, LEN, LINES, MOST};
use crate::generated::{after_reports, called, conflict_lines, expected, found, law, number, on};
use fencepost::prelude::*;
use fencepost::{Check, TransportKind, ranks};
use fencepost_planner::ids::{Id, Rank, WindowId};
use fencepost_tests_reference::undefined_loads;
use fencepost_tests_support::cases::cases;
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::transports::transports;
use std::hint::black_box;

/// The loads, stores and operations of a rank between two fences.
type Between = fn(&World, &mut Window<u64>) -> Result<()>;

/// Runs `between` on four ranks, between two fences. Returns the result of each rank, and the line
/// of the fence before `between`.
fn ends(transport: &TransportKind, (check, loads): (Check, bool), between: Between) -> (Vec<End>, u32) {
    let before = line!() + 4;
    let asked = ranks(4).transport(transport.clone()).check(check).check_loads(loads);
    let ends = ends_of(asked, transport, |world| {
        let mut u = world.window_from(vec![0_u64; 1000])?;
        u.fence()?;
        between(world, &mut u)?;
        let end = u.fence();
        u.fence()?;
        end
    });
    (ends.expect("the world goes on"), before)
}

fn load(u: &Window<u64>, at: usize) {
    if u.rank() == 1 {
        let _ = black_box(u[at]);
    }
}

const TOLD: [(&str, Between); 6] = [
    ("written by rank 0", |world, u| {
        load(u, 3);
        if world.rank() == 0 { u.put([1]).to(1, 3) } else { Ok(()) }
    }),
    ("accumulated into with SUM by rank 0", |world, u| {
        load(u, 3);
        if world.rank() == 0 { u.accumulate([1; 4], Op::Sum).to(1, 0) } else { Ok(()) }
    }),
    ("after loads of other elements of the page, and a store: written by rank 0", |world, u| {
        load(u, 7);
        if world.rank() == 1 {
            u[9] = 0;
        }
        load(u, 4);
        load(u, 3);
        if world.rank() == 0 { u.put([1]).to(1, 3) } else { Ok(()) }
    }),
    ("as the source of an operation: written by rank 0", |world, u| match world.rank() {
        0 => u.put([1]).to(1, 3),
        1 => u.put(&u[3..4]).to(2, 800),
        _ => Ok(()),
    }),
    ("before a barrier and a reduction: written by rank 0", |world, u| {
        load(u, 3);
        world.barrier()?;
        world.allreduce(&mut [1.0], Op::Sum)?;
        if world.rank() == 0 { u.put([1]).to(1, 3) } else { Ok(()) }
    }),
    ("after a barrier: written by rank 0", |world, u| {
        if world.rank() == 0 {
            u.put([1]).to(1, 3)?;
        }
        world.barrier()?;
        load(u, 3);
        Ok(())
    }),
];

const SILENT: [(&str, Between); 5] = [
    ("a put into other elements", |world, u| {
        load(u, 3);
        load(u, 900);
        if world.rank() == 0 { u.put(&[1; 896]).to(1, 4) } else { Ok(()) }
    }),
    ("a get of the element", |world, u| {
        load(u, 3);
        if world.rank() == 0 { u.fetch(1, 3).map(drop) } else { Ok(()) }
    }),
    ("a fence after the load", |world, u| {
        load(u, 3);
        u.fence()?;
        load(u, 4);
        if world.rank() == 0 { u.put([1]).to(1, 3) } else { Ok(()) }
    }),
    ("a store that leaves the bits as they were", |world, u| {
        if world.rank() == 1 {
            u[3] = 0;
        }
        if world.rank() == 0 { u.put([1]).to(1, 3) } else { Ok(()) }
    }),
    ("an operation of the rank that loads", |world, u| {
        load(u, 3);
        if world.rank() == 1 { u.put([1]).to(1, 3) } else { Ok(()) }
    }),
];

/// Calls that load several elements, among them element 3. A build for checking sees the load of
/// each element.
#[cfg(fencepost_loads)]
const TOGETHER: [(&str, Between); 4] = [
    ("by a copy of a slice", |world, u| {
        let all = (world.rank() == 1).then(|| u[..200].to_vec());
        black_box(all);
        if world.rank() == 0 { u.put([1]).to(1, 3) } else { Ok(()) }
    }),
    ("by a comparison of slices", |world, u| {
        let zeros = black_box([0; 200]);
        assert!(world.rank() != 1 || u[..200] == zeros[..]);
        if world.rank() == 0 { u.put([1]).to(1, 3) } else { Ok(()) }
    }),
    ("by a sum over a slice", |world, u| {
        let all = (world.rank() == 1).then(|| u.iter().sum::<u64>());
        black_box(all);
        if world.rank() == 0 { u.put([1]).to(1, 3) } else { Ok(()) }
    }),
    ("as it is changed", |world, u| {
        if world.rank() == 1 {
            u[3] |= black_box(0);
        }
        if world.rank() == 0 { u.put([1]).to(1, 3) } else { Ok(()) }
    }),
];

#[cfg(fencepost_loads)]
#[test]
fn all_elements_that_are_loaded_together_are_seen_in_a_build_for_checking() {
    for transport in transports(0..2) {
        for (what, between) in TOGETHER {
            let (ended, _) = ends(&transport, (Check::Mpi, true), between);
            let class = ended[1].as_ref().err().map(|(class, _)| *class);
            assert_eq!(class, Some(ErrorClass::RmaConflict), "{what} on {transport:?}: {ended:?}");
            let texts = ended.iter().filter_map(|end| end.as_ref().err());
            for (_, text) in texts {
                assert!(text.contains("element 3 of window 0 on rank 1"), "{what}: {text}");
            }
        }
    }
}

#[cfg(fencepost_loads)]
#[test]
fn system_calls_may_be_handed_elements_in_a_build_for_checking() {
    let run = ranks(2).check(Check::Mpi).check_loads(true).run(|world| {
        use std::io::Write;
        let mut u = world.window_from(vec![7_u8; 100])?;
        let path = std::env::temp_dir().join(format!("loads.{}.{}", std::process::id(), world.rank()));
        let mut file = std::fs::File::create(&path).expect("a file");
        file.write_all(&u[..]).expect("they are not protected");
        assert_eq!(std::fs::read(&path).expect("it is there"), [7; 100]);
        std::fs::remove_file(&path).expect("it is there");
        u.fence()
    });
    run.expect("no conflict");
}

/// A rank loads elements of the sections of its own operations. Only the load of element 3 is
/// found, because it follows the call of a get that writes this element.
fn own_sections(_: &World, u: &mut Window<u64>) -> Result<()> {
    if u.rank() == 1 {
        load(u, 3);
        load(u, 8);
        u.get(8..10).from(0, 20..22)?;
        u.get(2..4).from(0, 20..22)?;
        load(u, 4);
        load(u, 3);
        u.put(4..6).to(2, 20..22)?;
        load(u, 5);
    }
    Ok(())
}

/// Checks all of these programs on this transport.
pub(crate) fn judged(transport: &TransportKind) {
    for (what, between) in TOLD {
        let (told, before) = ends(transport, (Check::Mpi, true), between);
        let class = |end: &End| end.as_ref().err().map(|(class, _)| *class);
        let classes: Vec<_> = told.iter().map(class).collect();
        let (part, other) = (Some(ErrorClass::RmaConflict), Some(ErrorClass::RmaSync));
        assert_eq!(classes, [part, part, other, other], "{what} on {transport:?}: {told:?}");
        for (_, text) in told.iter().filter_map(|end| end.as_ref().err()) {
            let loaded = format!("loaded by rank 1 after the call at {}:{before}", file!());
            let (does, advice) = (what.rsplit(": ").next().expect("some"), "put a fence after the loads");
            assert!(
                [&loaded, does, advice, "a load and an operation"].iter().all(|words| text.contains(words)),
                "{text}"
            );
            assert!(text.contains("element 3 of window 0 on rank 1"), "{text}");
        }
        for asked in [(Check::Mpi, false), (Check::Conflicts, true)] {
            let (silent, _) = ends(transport, asked, between);
            assert!(silent.iter().all(Result::is_ok), "{what} on {transport:?}, {asked:?}: {silent:?}");
        }
    }
    let (told, _) = ends(transport, (Check::Mpi, true), own_sections);
    for (rank, end) in told.iter().enumerate() {
        let class = if rank == 1 { ErrorClass::RmaConflict } else { ErrorClass::RmaSync };
        let words = ["element 3 of window 0 on rank 1", "loaded by rank 1 after the call", "a get lands in"];
        let fits = |text: &str| {
            words.iter().all(|words| text.contains(words)) && text.contains("a load and an operation")
        };
        assert!(
            matches!(end, Err((found, text)) if *found == class && fits(text)),
            "{transport:?}: {told:?}"
        );
    }
    let (silent, _) = ends(transport, (Check::Mpi, false), own_sections);
    assert!(silent.iter().all(Result::is_ok), "{transport:?}: {silent:?}");
    for (what, between) in SILENT {
        let (silent, _) = ends(transport, (Check::Mpi, true), between);
        assert!(silent.iter().all(Result::is_ok), "{what} on {transport:?}: {silent:?}");
    }
}

#[test]
fn a_load_in_the_epoch_of_a_put_into_its_element_is_told_with_both_lines_where_it_is_asked_for() {
    transports(0..2).iter().for_each(judged);
}

#[test]
fn a_window_whose_loads_are_not_seen_is_reported_once_by_each_rank() {
    let made = line!() + 4;
    let (ended, text) = after_reports(|report| {
        ranks(2).check(Check::Mpi).check_loads(true).check_report(report).run(|world| {
            for _ in 0..2 {
                let mut u = world.lock_window::<u64>(4)?.into_window()?;
                u.fence()?;
            }
            world.window::<u64>(4)?.fence()
        })
    });
    ended.expect("nothing is found");
    let is_named = |line: &str| line.contains("\"blind\"") && line.contains(&format!("\"line\":{made},"));
    assert!(text.lines().count() == 2 && text.lines().all(is_named), "{text}");
}

#[test]
fn elements_that_calls_are_handed_are_sent_and_received_as_ever() {
    const LONG: usize = 20_000;
    for transport in transports(0..2) {
        let asked = ranks(2).transport(transport.clone()).check(Check::Mpi).check_loads(true);
        let run = asked.run(|world| {
            let (me, other) = (world.rank(), 1 - world.rank());
            let mut u = world.window_from((0..LONG).map(|at| (me * LONG + at) as u64).collect())?;
            let mut v = world.window::<u64>(LONG)?;
            world.fence((&mut u, &mut v))?;
            // The elements are long enough for puts to read them in place, and for gets to write
            // them in place.
            if me == 0 {
                world.message(other, 0).send(&u[..])?;
            } else {
                world.recv_into(other, 0, &mut v[..])?;
                assert!(v.iter().enumerate().all(|(at, element)| *element == at as u64), "{transport:?}");
            }
            world.fence((&mut u, &mut v))?;
            v.put(&u[..LONG / 2]).mode(Mode::Aggressive).to(other, 0)?;
            v.fence()?;
            assert_eq!(v[LONG / 2 - 1], (other * LONG + LONG / 2 - 1) as u64, "{transport:?}");
            let all = world.allgather(&u[..3])?;
            assert_eq!(all[other][1], (other * LONG + 1) as u64);
            Ok(())
        });
        run.expect("no conflict");
    }
}

/// The calls between two fences, and the loads of each rank before these calls.
struct Epoch {
    calls: Vec<Called>,
    loads: Vec<(usize, usize, usize)>,
}

/// Draws calls without a conflict, and some loads.
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
    let loads = (0..dice.below(24)).map(|_| (dice.below(size), dice.below(2), dice.below(LEN))).collect();
    Epoch { calls, loads }
}

fn meant(epoch: &Epoch, size: usize, fence: u32) -> Vec<Found> {
    let place =
        |&(rank, window, at): &(usize, usize, usize)| (Rank::new(rank), WindowId::new(window), at as i64);
    let loaded: Vec<_> = epoch.loads.iter().map(place).collect();
    let all = undefined_loads(&law(&epoch.calls, size), &loaded).into_iter().map(|told| {
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
fn what_is_told_of_loads_is_what_the_reference_says() {
    let (mut some, mut none) = (0, 0);
    for number in 0..cases(60, 1000) {
        let mut dice = Random::new(4 << 32 | number);
        let size = 2 + dice.below(4);
        let epochs: Vec<Epoch> = (0..4).map(|_| epoch(&mut dice, size)).collect();
        let fence = line!() + 15;
        for transport in on(number, size) {
            let (run, text) = after_reports(|report| {
                let asked = ranks(size).transport(transport.clone()).check(Check::Mpi).check_loads(true);
                asked.check_report(report).collect(|world| {
                    let mut windows = [world.window::<u64>(LEN)?, world.window::<u64>(LEN)?];
                    let mut failed = Vec::new();
                    let nothing = Epoch { calls: Vec::new(), loads: Vec::new() };
                    for Epoch { calls, loads } in std::iter::once(&nothing).chain(&epochs) {
                        let me = world.rank();
                        let own = loads.iter().filter(|(rank, ..)| *rank == me);
                        own.for_each(|&(_, w, at)| _ = black_box(windows[w][at]));
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
            assert!(conflict_lines(&text).all(|line| line.contains("\"kind\":\"load\"")), "{text}");
            assert_eq!(
                run.expect("the world goes on"),
                vec![fails; size],
                "program {number} on {transport:?}"
            );
        }
    }
    assert!(some > 50 && none > 50, "{some} epochs with loads that are told, {none} without");
}
