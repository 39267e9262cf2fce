//! At some point of a call one rank returns an error or panics, and all ranks continue. No rank
//! ever receives the data of another call. Every rank that waits for a failed rank is notified of
//! the failure. Afterwards the ranks are in step again.
//!
//! The programs are drawn at random. A program is a list of calls of every kind, and all ranks run
//! the same list. Some of its calls fail on one rank. In call `i`, rank `r` sends all ranks a value
//! that identifies `i` and `r`. So a rank notices if its call is paired with a different call of
//! another rank.

use fencepost::prelude::*;
use fencepost::{Assertions, ErrorHandler, Op, ranks};
use fencepost_tests_support::cases::cases;
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::transports::transports;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Returns the value that rank `rank` sends in phase `phase` of call `call`.
fn tag(call: usize, phase: usize, rank: usize) -> u64 {
    (call as u64 + 1) * 1000 + phase as u64 * 100 + rank as u64
}

/// A failure of one rank, at some point of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Fault {
    point: usize,
    how: How,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Errs,
    Panics,
    /// The rank returns an error whose `Display` panics.
    ErrsBadly,
}

const NEVER: Fault = Fault { point: usize::MAX, how: How::Errs };

/// An error of a program.
#[derive(Debug)]
enum Trouble {
    Ours(Error),
    Own(How),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Ours(error)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(error) => error.fmt(f),
            Self::Own(How::ErrsBadly) => resume_unwind(Box::new("planned")),
            Self::Own(_) => f.write_str("planned"),
        }
    }
}

impl Fault {
    /// Fails if `point` is the point of this fault.
    fn at(self, point: usize) -> std::result::Result<(), Trouble> {
        match self.how {
            _ if self.point != point => Ok(()),
            // `resume_unwind` calls no hook, so nothing is printed.
            How::Panics => resume_unwind(Box::new("planned")),
            how => Err(Trouble::Own(how)),
        }
    }
}

/// Puts the tag of this rank to every rank, into the element that belongs to this rank.
fn send(u: &Window<u64>, call: usize, phase: usize) -> Result<()> {
    (0..u.size()).try_for_each(|to| u.put([tag(call, phase, u.rank())]).to(to, u.rank()))
}

/// Checks that the tags of this phase have arrived from all ranks.
#[track_caller]
fn received(u: &[u64], call: usize, phase: usize) {
    let expected: Vec<u64> = (0..u.len()).map(|rank| tag(call, phase, rank)).collect();
    assert_eq!(u, expected, "data of another call");
}

#[superstep]
fn single(u: &mut Window<u64>, call: usize, fault: Fault) -> std::result::Result<(), Trouble> {
    fault.at(0)?;
    send(u, call, 0)?;
    fault.at(1)?;
    Ok(())
}

/// Makes two fences. If `swallows`, the rank drops their errors and goes on.
#[superstep]
fn twice(u: &mut Window<u64>, call: usize, fault: Fault, swallows: bool) -> std::result::Result<(), Trouble> {
    fault.at(0)?;
    send(u, call, 0)?;
    fault.at(1)?;
    match u.fence() {
        Ok(()) => received(u, call, 0),
        Err(error) if !swallows => return Err(error.into()),
        Err(_) => {}
    }
    fault.at(2)?;
    send(u, call, 1)?;
    fault.at(3)?;
    u.fence()?;
    received(u, call, 1);
    fault.at(4)?;
    Ok(())
}

/// Fences in a function that the macro does not see.
#[superstep]
fn hidden(u: &mut Window<u64>, call: usize, fault: Fault) -> std::result::Result<(), Trouble> {
    fault.at(0)?;
    send(u, call, 0)?;
    u.fence()?;
    received(u, call, 0);
    fault.at(1)?;
    helper(u, call)?;
    fault.at(2)?;
    Ok(())
}

fn helper(u: &mut Window<u64>, call: usize) -> Result<()> {
    send(u, call, 1)?;
    u.fence()?;
    received(u, call, 1);
    Ok(())
}

/// Runs a superstep in the body of another superstep. If `swallows`, the rank drops the error of
/// the inner superstep.
#[superstep]
fn outer(u: &mut Window<u64>, call: usize, fault: Fault, swallows: bool) -> std::result::Result<(), Trouble> {
    fault.at(2)?;
    match single(u, call, fault) {
        Ok(()) => received(u, call, 0),
        Err(trouble) if !swallows => return Err(trouble),
        Err(_) => {}
    }
    fault.at(3)?;
    send(u, call, 1)?;
    u.fence()?;
    received(u, call, 1);
    Ok(())
}

/// A kind of call.
type Act = fn(&World, &mut Window<u64>, usize, Fault, bool) -> std::result::Result<(), Trouble>;
const KINDS: [(&str, usize, Act); 20] = [
    ("fence", 1, |world, u, call, fault, _| {
        let v = world.window::<u64>(1)?;
        send(u, call, 0)?;
        if fault.point == 0 {
            // The section belongs to a window that is not in the fence.
            u.put(v.section(0..1)).to(0, 0)?;
        }
        u.fence()?;
        received(u, call, 0);
        Ok(())
    }),
    ("noprecede", 1, |world, u, call, fault, _| {
        let assertions = Assertions::NOPRECEDE;
        if fault.point == 0 {
            send(u, call, 0)?;
        }
        u.fence_with(assertions)?;
        let mut all = [tag(call, 0, world.rank()), 1];
        world.allreduce(&mut all[1..], Op::Sum)?;
        assert_eq!(all[1], world.size() as u64);
        Ok(())
    }),
    ("barrier", 0, |world, _, _, _, _| Ok(world.barrier()?)),
    ("broadcast", 1, |world, _, call, fault, _| {
        let mut value = [tag(call, 0, world.rank())];
        world.broadcast(if fault.point == 0 { world.size() } else { 0 }, &mut value)?;
        assert_eq!(value, [tag(call, 0, 0)], "data of another call");
        Ok(())
    }),
    ("reduce", 2, |world, _, call, fault, _| {
        let root = if fault.point == 0 { usize::MAX } else { 0 };
        let op = if fault.point == 1 { Op::Band } else { Op::Sum };
        let sum = world.reduce(root, &[tag(call, 0, 0) as f64], op)?;
        let expected = tag(call, 0, 0) as f64 * world.size() as f64;
        assert!(sum.is_none_or(|sum| sum == [expected]), "data of another call");
        Ok(())
    }),
    ("allreduce", 1, |world, _, call, fault, _| {
        let mut value = vec![tag(call, 0, 0) as f64; 1 + call % 3 * 1000];
        let op = if fault.point == 0 { Op::Bxor } else { Op::Max };
        world.allreduce(&mut value, op)?;
        assert!(value.iter().all(|&value| value == tag(call, 0, 0) as f64), "data of another call");
        Ok(())
    }),
    ("scan", 1, |world, _, call, fault, _| {
        let mut value = [tag(call, 0, 0) as f64];
        world.scan(&mut value, if fault.point == 0 { Op::Bor } else { Op::Max })?;
        assert_eq!(value, [tag(call, 0, 0) as f64], "data of another call");
        Ok(())
    }),
    ("gather", 1, |world, _, call, fault, _| {
        let all = world.gather(if fault.point == 0 { 99 } else { 0 }, &[tag(call, 0, world.rank())])?;
        all.into_iter().for_each(|all| received(&all.concat(), call, 0));
        Ok(())
    }),
    ("allgather", 0, |world, _, call, _, _| {
        let mine = vec![tag(call, 0, world.rank()); 1 + call % 2 * 100 * world.rank()];
        let all = world.allgather(&mine)?;
        let first: Vec<u64> = all.iter().map(|list| list[0]).collect();
        received(&first, call, 0);
        Ok(())
    }),
    ("all_to_all", 1, |world, _, call, fault, _| {
        let lists = world.size() + usize::from(fault.point == 0);
        let all = world.all_to_all(&vec![vec![tag(call, 0, world.rank())]; lists])?;
        received(&all.concat(), call, 0);
        Ok(())
    }),
    ("gather_into", 1, |world, _, call, fault, _| {
        let room = if fault.point == 0 && world.rank() == 0 { 1 } else { world.size() };
        let root = if fault.point == 0 && world.rank() > 0 { 77 } else { 0 };
        let mut all = vec![0; room];
        world.gather_into(root, &[tag(call, 0, world.rank())], &mut all)?;
        if world.rank() == 0 {
            received(&all, call, 0);
        }
        Ok(())
    }),
    ("allgather_into", 1, |world, _, call, fault, _| {
        let mut all = vec![0; world.size() + usize::from(fault.point == 0)];
        world.allgather_into(&[tag(call, 0, world.rank())], &mut all)?;
        received(&all, call, 0);
        Ok(())
    }),
    ("all_to_all_into", 1, |world, _, call, fault, _| {
        let mut all = vec![0; world.size() + usize::from(fault.point == 0)];
        world.all_to_all_into(&vec![tag(call, 0, world.rank()); world.size()], &mut all)?;
        received(&all, call, 0);
        Ok(())
    }),
    ("window", 1, |world, _, call, fault, _| {
        let len = if fault.point == 0 { usize::MAX / 4 } else { world.size() };
        let mut v = world.window::<u64>(len)?;
        send(&v, call, 0)?;
        v.fence()?;
        received(&v, call, 0);
        Ok(())
    }),
    ("split", 0, |world, _, call, _, _| {
        let Some(part) = world.split(Some(world.rank() as u32 % 2), 0)? else { return Ok(()) };
        let all = part.allgather(&[tag(call, 0, 0)])?.concat();
        assert!(all.iter().all(|&value| value == tag(call, 0, 0)), "data of another call");
        Ok(())
    }),
    ("epoch", 2, |_, u, call, fault, _| {
        let mut seen = [0];
        let me = u.rank();
        u.epoch(|epoch| {
            let own = |trouble: Trouble| match trouble {
                Trouble::Ours(error) => error,
                Trouble::Own(_) => Error::new(ErrorClass::Other, "planned"),
            };
            fault.at(0).map_err(own)?;
            send(epoch, call, 0)?;
            epoch.fetch_into(me, 0, &mut seen)?;
            fault.at(1).map_err(own)
        })?;
        received(u, call, 0);
        Ok(())
    }),
    ("epoch with a collective", 2, |world, u, call, fault, _| {
        u.epoch(|epoch| {
            let own = |_| Error::new(ErrorClass::Other, "planned");
            fault.at(0).map_err(own)?;
            let mut all = vec![0; world.size()];
            world.allgather_into(&[tag(call, 0, world.rank())], &mut all)?;
            received(&all, call, 0);
            send(epoch, call, 1)?;
            fault.at(1).map_err(own)
        })?;
        received(u, call, 1);
        Ok(())
    }),
    ("superstep", 2, |_, u, call, fault, _| {
        single(u, call, fault)?;
        received(u, call, 0);
        Ok(())
    }),
    ("superstep with fences", 5, |_, u, call, fault, swallows| twice(u, call, fault, swallows)),
    ("nested supersteps", 4, |_, u, call, fault, swallows| {
        if call.is_multiple_of(2) { outer(u, call, fault, swallows) } else { hidden(u, call, fault) }
    }),
];

/// One call of a program.
#[derive(Clone, Copy, Debug)]
struct Step {
    kind: usize,
    /// The failing rank, and its failure.
    fault: Option<(usize, Fault)>,
    /// The ranks that drop the errors of the call, one bit each.
    swallow: u64,
    /// The rank whose error handler panics.
    panicking_handler: Option<usize>,
}

fn drawn(seed: u64) -> (usize, Vec<Step>) {
    let mut random = Random::new(seed);
    let mut below = |bound: usize| random.below(bound);
    let ranks = 2 + below(3);
    let mut steps: Vec<Step> = (0..3 + below(8))
        .map(|_| {
            let kind = below(KINDS.len());
            let how = [How::Errs, How::Panics, How::ErrsBadly][below(3)];
            let points = KINDS[kind].1;
            let fails = points > 0 && below(2) == 0;
            let fault = fails.then(|| (below(ranks), Fault { point: below(points.max(1)), how }));
            let panicking_handler = (below(4) == 0).then(|| below(ranks));
            Step { kind, fault, swallow: below(1 << ranks) as u64, panicking_handler }
        })
        .collect();
    // Finally a dynamic epoch, a superstep and a collective check that the ranks are in step again.
    let kinds = ["fence", "superstep", "allgather_into"];
    steps.extend(kinds.map(|name| Step {
        kind: KINDS.iter().position(|kind| kind.0 == name).expect("it is a kind"),
        fault: None,
        swallow: 0,
        panicking_handler: None,
    }));
    (ranks, steps)
}

/// The end of one call on one rank.
type Ended = std::result::Result<(), String>;

/// Runs the program. Returns how each call ended on each rank.
fn play(transport: fencepost::TransportKind, size: usize, steps: &[Step]) -> Vec<Vec<Ended>> {
    let wrong = Mutex::new(Vec::new());
    let ended = ranks(size).transport(transport).stall(None).collect(|world| {
        let me = world.rank();
        let mut u = world.window::<u64>(size)?;
        let mut ends = Vec::new();
        for (call, step) in steps.iter().enumerate() {
            let fault = step.fault.filter(|(rank, _)| *rank == me).map_or(NEVER, |(_, fault)| fault);
            let handler = match step.panicking_handler {
                Some(rank) if rank == me => ErrorHandler::call(|_| resume_unwind(Box::new("planned"))),
                _ => ErrorHandler::Return,
            };
            world.on_error(handler.clone());
            u.on_error(handler);
            let swallows = step.swallow >> me & 1 == 1;
            let act = KINDS[step.kind].2;
            let done = catch_unwind(AssertUnwindSafe(|| act(world, &mut u, call, fault, swallows)));
            ends.push(match done {
                Ok(Ok(())) => Ok(()),
                Ok(Err(Trouble::Ours(error))) => Err(error.to_string()),
                Ok(Err(Trouble::Own(how))) => Err(format!("{how:?}")),
                Err(payload) => match payload.downcast_ref::<&str>() {
                    Some(&"planned") => Err("panicked as planned".into()),
                    _ => {
                        let text = payload.downcast::<String>().map_or("a panic".into(), |text| *text);
                        wrong.lock().unwrap().push(format!("rank {me}, call {call}: {text}"));
                        Err(text)
                    }
                },
            });
        }
        Ok(ends)
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
    ended.expect("no rank returns an error")
}

/// Checks how the calls of a program ended. Describes the first fault, or returns `None`.
fn fault_of(steps: &[Step], ended: &[Vec<Ended>]) -> Option<String> {
    for (rank, ends) in ended.iter().enumerate() {
        let last = ends.iter().rev().take(3).position(Result::is_err);
        if let Some(back) = last {
            let call = ends.len() - 1 - back;
            return Some(format!("rank {rank} is not in step again: call {call} is {:?}", ends[call]));
        }
    }
    for (call, step) in steps.iter().enumerate() {
        let Some((failed, fault)) = step.fault else { continue };
        if ended[failed][call].is_ok() && KINDS[step.kind].0 != "nested supersteps" && step.swallow == 0 {
            return Some(format!("rank {failed} was to fail in call {call} ({fault:?})"));
        }
        // If a rank fails before the last exchange of its call, all ranks are notified in that
        // call. The same holds for calls that are counted separately.
        let heard = match KINDS[step.kind].0 {
            "fence" => fault.point == 0,
            "superstep with fences" => fault.point < 2,
            "nested supersteps" => false,
            _ => true,
        };
        let deaf = |&rank: &usize| rank != failed && ended[rank][call].is_ok();
        if let Some(rank) = (0..ended.len()).find(deaf).filter(|_| heard && step.swallow == 0) {
            return Some(format!("rank {rank} did not learn in call {call} that rank {failed} failed"));
        }
    }
    None
}

/// Runs a program with a time limit. If it hangs, the test fails and prints the program.
fn watched(transport: fencepost::TransportKind, seed: u64, tally: &Cell<[usize; 3]>) {
    let (size, steps) = drawn(seed);
    let named: Vec<_> = steps.iter().map(|step| (KINDS[step.kind].0, step)).collect();
    let program = format!("{transport:?}, seed {seed}, {size} ranks: {named:#?}");
    let (tell, told) = channel();
    let run = {
        let (transport, steps) = (transport.clone(), steps.clone());
        std::thread::spawn(move || drop(tell.send(play(transport, size, &steps))))
    };
    let ended = match told.recv_timeout(Duration::from_secs(60)) {
        Ok(ended) => ended,
        Err(RecvTimeoutError::Timeout) => panic!("it hangs: {program}"),
        Err(RecvTimeoutError::Disconnected) => {
            panic!("{:?}: {program}", run.join().expect_err("it panicked").downcast::<String>())
        }
    };
    run.join().expect("it has ended");
    if let Some(wrong) = fault_of(&steps, &ended) {
        panic!("{wrong}: {ended:#?} {program}");
    }
    let [programs, calls, faults] = tally.get();
    tally.set([
        programs + 1,
        calls + steps.len(),
        faults + steps.iter().filter(|step| step.fault.is_some()).count(),
    ]);
}

#[test]
#[expect(clippy::print_stdout, reason = "the number of programs is part of the result")]
fn a_rank_that_fails_alone_is_noticed_and_in_step_again() {
    let programs = cases(40, 100);
    let tally = Cell::new([0; 3]);
    for seed in 0..programs {
        for transport in transports([seed]) {
            watched(transport, seed, &tally);
        }
    }
    let [programs, calls, faults] = tally.get();
    println!("{programs} programs, {calls} calls, {faults} of which failed on one rank");
}

#[superstep]
fn to_oneself(u: &mut Window<u64>) -> Result<()> {
    u.put(0..1).to(u.rank(), 1)
}

/// All other ranks send to rank 0. Rank 0 sends nothing.
#[superstep]
fn to_the_first(u: &mut Window<u64>) -> Result<()> {
    let target = if u.rank() == 0 { None } else { Some(0) };
    u.put(0..1).to(target, 1)
}

/// One of the ranks has sent a frame that no rank awaits. No later call may mistake this frame for
/// one of its own.
#[test]
fn ranks_that_have_run_different_prepared_supersteps_are_told_at_their_next_call() {
    for transport in transports([1]) {
        ranks(2)
            .transport(transport.clone())
            .run(|world| {
                let mut u = world.window::<u64>(4)?;
                let mut own = to_oneself::prepare(world)?;
                let mut first = to_the_first::prepare(world)?;
                let ran = if world.rank() == 0 { own.replay(&mut u) } else { first.replay(&mut u) };
                ran?; // neither rank needs the other
                let len = 1 + 4000 * world.rank();
                let window = world.window::<u64>(len);
                let error = window.map(drop).expect_err("the ranks are not in step");
                assert_eq!(error.class(), ErrorClass::RmaSync, "{transport:?}: {error}");
                assert!(error.message().contains("different prepared supersteps"), "{transport:?}: {error}");
                assert!(world.barrier().is_err(), "the world has ended");
                Ok(())
            })
            .expect("no rank returns an error");
    }
}

#[superstep]
fn insists(u: &mut Window<u64>, fails: bool, until: &std::sync::atomic::AtomicBool) -> Result<()> {
    if fails {
        return Err(Error::new(ErrorClass::Other, "planned"));
    }
    let begun = std::time::Instant::now();
    while !until.load(std::sync::atomic::Ordering::SeqCst) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody reports that the other rank waits");
        again(u);
    }
    Ok(())
}

fn again(u: &mut Window<u64>) {
    u.fence().expect_err("the other rank is ahead");
}

/// Each exchange ends, so no single wait takes long. The rank that is ahead nevertheless reports
/// that it waits.
#[test]
fn a_rank_that_waits_for_one_that_calls_again_what_is_behind_reports_it() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    for transport in transports([1]) {
        let reported = Arc::new(AtomicBool::new(false));
        let told = reported.clone();
        // This is much longer than one exchange takes.
        let world =
            ranks(2).transport(transport).stall(Some(Duration::from_millis(500))).on_stall(move |stall| {
                if (stall.rank, stall.awaited) == (0, 1) && stall.call.contains("barrier") {
                    told.store(true, Ordering::SeqCst);
                }
            });
        world
            .run(|world| {
                let mut u = world.window::<u64>(1)?;
                let left = insists(&mut u, world.rank() == 0, &reported);
                left.expect_err("rank 0 fails, and rank 1 is behind with its end, too");
                world.barrier()
            })
            .expect("they are in step again");
    }
}
