//! Every misuse of a superstep in two halves, between its first half and its second. Each misuse is
//! an error at the call or on the other ranks, and never a hang. No memory that other ranks may
//! access is given back or freed.

use fencepost::prelude::*;
use fencepost::{Assertions, Ranks, World, ranks};
use fencepost_tests_worlds::delayed::Delayed;
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::transports::transports;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

fn worlds(size: usize) -> Vec<Ranks> {
    // On the last transport, bytes are in transit while a rank leaves.
    let late = Delayed::over(size, Duration::from_millis(1));
    transports([5, 6]).into_iter().chain([late]).map(|t| ranks(size).transport(t)).collect()
}

/// Puts elements 0..1000 of each rank to elements 1000..2000 of the next rank.
#[superstep]
fn shift(u: &mut Window<u64>) -> Result<()> {
    let next = (u.rank() + 1) % u.size();
    u.put(0..1000).to(next, 1000..2000)
}

#[superstep]
fn look(u: &mut Window<u64>) -> Result<()> {
    let next = (u.rank() + 1) % u.size();
    u.get(0..1).from(next, 1)
}

fn filled(world: &World) -> Result<Window<u64>> {
    let mut u = world.window::<u64>(2000)?;
    u.fill(world.rank() as u64 + 1);
    Ok(u)
}

/// Returns whether all elements that the previous rank has put have arrived.
fn arrived(world: &World, u: &[u64]) -> bool {
    let previous = ((world.rank() + world.size() - 1) % world.size()) as u64 + 1;
    u[1000..].iter().all(|&element| element == previous)
}

type Call = fn(&World, &mut Window<u64>) -> Result<()>;

/// Every call that all ranks of a world make together.
const CALLS: [Call; 16] = [
    |_, v| v.fence(),
    |_, v| v.fence_with(Assertions::NOPUT),
    |world, v| world.fence((v,)),
    |world, _| world.barrier(),
    |world, _| world.window::<u8>(1).map(drop),
    |world, _| world.split(Some(0), 0).map(drop),
    |world, _| world.allreduce(&mut [1.5], Op::Sum),
    |world, _| world.broadcast(0, &mut [1u8; 4]),
    |world, _| world.gather(0, &[1u8]).map(drop),
    |world, _| world.allgather(&[1u8]).map(drop),
    |_, v| look(v),
    |_, v| v.epoch(|_| Ok(())),
    |world, _| look::prepare(world).map(drop),
    |world, _| look::load(world, "nowhere.plan").map(drop),
    |world, v| {
        let mut own = [0];
        v.epoch(|epoch| epoch.fetch_into(world.rank(), 0, &mut own))
    },
    |world, v| {
        v.put([7]).to((world.rank() + 1) % world.size(), 0)?;
        v.fence()
    },
];

#[test]
fn between_the_halves_every_other_call_of_all_ranks_is_refused_with_the_line_of_the_first() -> Result<()> {
    for world in worlds(3) {
        world.run(|world| {
            let (mut u, mut v) = (filled(world)?, world.window::<u64>(3)?);
            let mut shift = shift::prepare(world)?;
            let (mut look, mut again) = (look::prepare(world)?, shift::prepare(world)?);
            for (number, call) in CALLS.iter().enumerate() {
                let running = shift.begin(u)?;
                let begun = format!("{}:{}", file!(), line!() - 1);
                let refused = |result: Result<()>| {
                    let error = result.expect_err("another call between the halves");
                    assert_eq!(error.class(), ErrorClass::RmaSync, "{number}: {error}");
                    assert!(!error.world_ended() && error.message().contains(&begun), "{number}: {error}");
                };
                refused(call(world, &mut v));
                refused(look.replay(&mut v));
                refused(look.run(&mut v));
                refused(again.replay(&mut v));
                u = running.finish()?;
                assert!(arrived(world, &u), "{number}");
                // The world goes on, and the pending operations are dropped.
                assert_eq!(v[..], [0; 3]);
                v.put([number as u64]).to((world.rank() + 1) % 3, 1)?;
                v.fence()?;
                assert_eq!(v[..], [0, number as u64, 0]);
                v.fill(0);
                world.barrier()?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_superstep_is_begun_once_and_no_other_one_before_it_is_finished() -> Result<()> {
    for world in worlds(2) {
        world.run(|world| {
            let mut u = filled(world)?;
            let (mut shift, mut other) = (shift::prepare(world)?, shift::prepare(world)?);
            for twice in [true, false] {
                let (v, w) = (filled(world)?, filled(world)?);
                let running = shift.begin(u)?;
                let begun = format!("{}:{}", file!(), line!() - 1);
                let error = if twice { shift.begin(v) } else { other.begin(v) }.expect_err("one is running");
                assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
                assert!(!error.world_ended() && error.message().contains(&begun), "{error}");
                // The superstep runs as if nothing had happened.
                u = running.finish()?;
                assert!(arrived(world, &u));
                let w = other.begin(w)?.finish()?;
                assert!(arrived(world, &w));
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn only_one_rank_that_calls_something_between_the_halves_gets_an_error() -> Result<()> {
    for world in worlds(3) {
        world.run(|world| {
            let (mut u, mut v) = (filled(world)?, world.window::<u64>(3)?);
            let mut shift = shift::prepare(world)?;
            let running = shift.begin(u)?;
            if world.rank() == 1 {
                assert_eq!(v.fence().expect_err("too early").class(), ErrorClass::RmaSync);
            }
            u = running.finish()?;
            assert!(arrived(world, &u));
            // Rank 1 has made the call. The same call fails on the other ranks, and then all ranks
            // are in step again.
            if world.rank() != 1 {
                let error = v.fence().expect_err("rank 1 has made this call");
                assert_eq!((error.class(), error.world_ended()), (ErrorClass::RmaSync, false), "{error}");
            }
            v.put([4]).to((world.rank() + 1) % 3, 1)?;
            v.fence()?;
            assert_eq!(v[1], 4);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn operations_on_other_windows_and_calls_of_other_worlds_go_on_meanwhile() -> Result<()> {
    for world in worlds(4) {
        for mode in Mode::ALL {
            world.clone().mode(mode).run(|world| {
                let half = world.split(Some(world.rank() as u32 % 2), 0)?.expect("a colour was given");
                let (mut u, mut v) = (filled(world)?, world.window::<u64>(300)?);
                let mut w = filled(&half)?;
                let mut shift = shift::prepare(world)?;
                let mut within = shift::prepare(&half)?;
                for step in 0..3 {
                    let next = (world.rank() + 1) % 4;
                    let running = shift.begin(u)?;
                    // Some of these puts leave at once if ranks exchange messages.
                    v.put(&[step + 1; 300]).to(next, 0)?;
                    v.accumulate([1], Op::Sum).to(next, 7)?;
                    let mut sum = [1u64];
                    half.allreduce(&mut sum, Op::Sum)?;
                    assert_eq!(sum, [2]);
                    // A superstep of another world is begun while this one runs, and finished after
                    // this one.
                    let inner = within.begin(w)?;
                    u = running.finish()?;
                    w = inner.finish()?;
                    assert!(arrived(world, &u) && w[1000..].iter().all(|&e| e == 2 - half.rank() as u64));
                    v.fence()?;
                    assert!(v.iter().enumerate().all(|(i, &e)| e == step + 1 + u64::from(i == 7)));
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// A rank gives an unsuitable window. It gets the error, and the world ends for all ranks. Some
/// ranks may already have begun the superstep.
#[test]
fn windows_of_another_world_or_too_short_or_pending_end_the_world() {
    type Give = fn(&World) -> Result<Window<u64>>;
    let give: [(Give, ErrorClass); 3] = [
        (|world| filled(&world.split(Some(0), 0)?.expect("a colour was given")), ErrorClass::Win),
        (|world| world.window::<u64>(if world.rank() == 1 { 1999 } else { 2000 }), ErrorClass::Size),
        (|world| filled(world).and_then(|u| u.put([1]).to(0, 0).map(|()| u)), ErrorClass::RmaSync),
    ];
    for world in worlds(3) {
        for (give, class) in give {
            let ends = ends(&world, &[], |world| {
                let (good, other) = (filled(world)?, give(world)?);
                let u = if world.rank() == 1 { other } else { good };
                let begun = shift::prepare(world)?.begin(u);
                if world.rank() == 1 {
                    let error = begun.expect_err("it does not suit");
                    assert!(error.class() == class && error.world_ended(), "{error}");
                    return Err(error);
                }
                begun?.finish()?;
                world.barrier()
            });
            assert!(ends.iter().all(Option::is_some), "{class:?}: {ends:?}");
        }
    }
}

/// The way in which one rank leaves between the halves.
type Leave = fn(Running) -> Result<()>;
type Running = fencepost::Running<Window<u64>>;

#[test]
fn a_rank_that_drops_a_superstep_errs_or_panics_is_named_to_all_others() {
    let leave: [(Leave, &[usize]); 3] = [
        (|running| drop_it(running), &[]),
        (|_running| Err(Error::new(ErrorClass::Other, "of its own")), &[]),
        (|_running| panic!("half way"), &[1]),
    ];
    for world in worlds(3) {
        for (leave, panics) in leave {
            let ends = ends(&world, panics, |world| {
                let u = filled(world)?;
                let mut shift = shift::prepare(world)?;
                let running = shift.begin(u);
                let line = line!() - 1;
                if world.rank() == 1 {
                    leave(running?)?;
                    // The reason for the end of the world is known at once.
                    let error = world.barrier().expect_err("the world has ended");
                    assert!(error.world_ended() && error.message().contains("rank 1"), "{error}");
                    return Err(error);
                }
                // If the superstep needs nothing more from rank 1, it finishes, and the next call
                // fails.
                let finished = running.and_then(|running| running.finish());
                let error = finished.and_then(|_| world.barrier()).expect_err("rank 1 has left");
                assert!(error.message().contains("rank 1"), "{error}");
                assert!(error.message().contains(&format!("{}:{line}", file!())), "{error}");
                Err(error)
            });
            let errors = ends.iter().flatten().count();
            assert_eq!(errors, 3 - panics.len(), "{ends:?}");
        }
    }
}

fn drop_it(running: Running) -> Result<()> {
    drop(running);
    Ok(())
}

/// The panic is caught, but the superstep is lost. The rank gets the error in its next call.
#[test]
fn a_panic_that_is_caught_between_the_halves_ends_the_world_too() {
    for world in worlds(2) {
        let ends = ends(&world, &[], |world| {
            let u = filled(world)?;
            let running = shift::prepare(world)?.begin(u);
            if world.rank() == 0 {
                let running = running?;
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    let _running = running;
                    resume_unwind(Box::new("planned"))
                }));
                assert!(caught.is_err());
                return world.barrier();
            }
            running?.finish()?;
            world.barrier()
        });
        for end in &ends {
            let (_, text) = end.as_ref().expect("the world has ended");
            assert!(text.contains("rank 0") && text.contains("panicked in the superstep"), "{text}");
        }
    }
}

/// The memory of the leaked superstep's windows is kept, because other ranks may still write there.
/// The ranks that wait get an error when the rank leaves.
#[test]
fn a_leaked_superstep_ends_the_waits_of_others_when_the_rank_leaves() {
    for world in worlds(3) {
        for leaks in [&[1][..], &[0, 1], &[0, 1, 2]] {
            let ends = ends(&world, &[], |world| {
                let u = filled(world)?;
                let begun = format!("{}:{}", file!(), line!() + 2);
                // Preparing fails on a rank if another rank has already left.
                let running = shift::prepare(world).and_then(|mut shift| shift.begin(u));
                if leaks.contains(&world.rank()) {
                    let Ok(running) = running else { return Ok(()) };
                    std::mem::forget(running);
                    let error = world.barrier().expect_err("it is not finished");
                    assert_eq!((error.class(), error.world_ended()), (ErrorClass::RmaSync, false), "{error}");
                    return Ok(());
                }
                let finished = running.and_then(|running| running.finish());
                let error = finished.and_then(|_| world.barrier()).expect_err("another rank never finishes");
                assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
                assert!(error.message().contains(&begun), "{error}");
                Ok(())
            });
            assert!(ends.iter().all(Option::is_none), "{ends:?}");
        }
    }
}

/// A prepared superstep, and the window on which the body of another superstep begins it.
struct Nested {
    window: Option<Window<u64>>,
    shift: shift_prepared,
    running: Option<Running>,
}

impl Nested {
    fn begin(&mut self) -> Result<()> {
        let Some(window) = self.window.take() else { return Ok(()) };
        self.running = Some(self.shift.begin(window)?);
        Ok(())
    }
}

#[superstep]
fn around(v: &mut Window<u64>, nested: &mut Nested) -> Result<()> {
    let next = (v.rank() + 1) % v.size();
    v.put(0..1).to(next, 1)?;
    nested.begin()
}

/// The body of a superstep begins another superstep and does not finish it. The body ends in a
/// fence. This fence fails, like any other call before the inner superstep is finished.
#[test]
fn a_body_that_leaves_a_superstep_begun_fails_at_its_end() {
    for world in worlds(2) {
        for prepared in [false, true] {
            let ends = ends(&world, &[], |world| {
                let mut v = world.window::<u64>(2)?;
                let (window, shift) = (Some(filled(world)?), shift::prepare(world)?);
                let mut nested = Nested { window: None, shift, running: None };
                let mut plan = around::prepare(world, &mut nested)?;
                nested.window = window;
                let ended =
                    if prepared { plan.run(&mut v, &mut nested) } else { around(&mut v, &mut nested) };
                let error = ended.expect_err("a superstep is begun");
                assert!(error.message().contains("is not finished"), "{prepared}: {error}");
                // If the outer superstep is prepared, its failure ends the world. A rank may then
                // get the error of a rank that failed before it.
                assert!(prepared || error.class() == ErrorClass::RmaSync, "{error}");
                if !prepared {
                    let u = nested.running.take().expect("it was begun").finish()?;
                    assert!(arrived(world, &u));
                    v.fence()?;
                }
                Ok(())
            });
            assert!(ends.iter().all(Option::is_none), "{prepared}: {ends:?}");
        }
    }
}

/// Puts elements of the caller to the next rank, and gets element 0 of that rank into a ticket.
#[superstep]
fn tell(u: &mut Window<u64>, values: &[u64], fails: bool) -> Result<Ticket<u64>> {
    let next = (u.rank() + 1) % u.size();
    let ticket = u.fetch(next, 0)?;
    if fails {
        return Err(Error::new(ErrorClass::Other, "of its own"));
    }
    u.put(values).to(next, 1)?;
    Ok(ticket)
}

/// A body that fails in `begin` has the same effect as a body that fails in `run`: the call fails,
/// and the other ranks get an error as soon as they wait.
#[test]
fn a_body_that_fails_as_it_is_begun_or_makes_another_call_is_named_to_all_others() {
    for world in worlds(3) {
        for (values, fails, class) in [(2, true, ErrorClass::Other), (3, false, ErrorClass::Plan)] {
            let ends = ends(&world, &[], |world| {
                let u = filled(world)?;
                let mut tell = tell::prepare(world, &[0; 2], false)?;
                if world.rank() == 1 {
                    let error = tell.begin(u, &[0; 3][..values], fails).expect_err("its body fails");
                    assert_eq!(error.class(), class, "{error}");
                    return Err(error);
                }
                let begun = tell.begin(u, &[5; 2], false);
                begun?.finish().map(drop)?;
                world.barrier()
            });
            for (rank, end) in ends.iter().enumerate() {
                let (found, text) = end.as_ref().expect("the world has ended");
                assert!(rank == 1 && *found == class || text.contains("rank 1"), "{text}");
            }
        }
    }
}

/// A plan contains the values of its run. So it cannot begin another run before that run is
/// finished, even if that run is leaked.
#[test]
fn a_superstep_with_values_is_begun_once_before_it_is_finished() {
    for world in worlds(2) {
        let ends = ends(&world, &[], |world| {
            let (u, mut v, w) = (filled(world)?, filled(world)?, filled(world)?);
            let mut plan = tell::prepare(world, &[0; 2], false)?;
            let running = plan.begin(u, &[7; 2], false)?;
            let begun = format!("{}:{}", file!(), line!() - 1);
            for error in [
                plan.run(&mut v, &[8; 2], false).map(drop).expect_err("one is running"),
                plan.begin(w, &[9; 2], false).map(drop).expect_err("one is running"),
            ] {
                assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
                assert!(!error.world_ended() && error.message().contains(&begun), "{error}");
            }
            let (u, ticket) = running.finish()?;
            assert_eq!((&u[1..3], ticket.take()?[0]), (&[7; 2][..], 2 - world.rank() as u64));
            let Ok(running) = plan.begin(u, &[1; 2], false) else { return Ok(()) }; // the other has already left
            std::mem::forget(running);
            let error = v.fence().expect_err("it is not finished");
            assert!(error.class() == ErrorClass::RmaSync && !error.world_ended(), "{error}");
            Ok(())
        });
        assert!(ends.iter().all(Option::is_none), "{ends:?}");
    }
}
