//! Programs that would deadlock if messages were not buffered. The check `mpi` reports them
//! (planner/README.md, 37). The cases are the examples of MPI 1.1, section 3.5, and further ones.
//! The reference predicts how each case ends from its calls.

use crate::table::row;
use fencepost::prelude::*;
use fencepost::{Any, Check, ErrorClass, Request, TransportKind, ranks};
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::ids::{Id, Rank};
use fencepost_planner::ir::calls::SendMode;
use fencepost_tests_reference::{Completion, Envelope, MessageCall, Standard, stops};
use fencepost_tests_support::side_by_side::side_by_side;
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::messages::kinds;
use std::time::Duration;

/// A call that sends or receives a message of one byte. Its fields are the other rank and the tag.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send(usize, u32),
    Ssend(usize, u32),
    Bsend(usize, u32),
    Recv(usize, u32),
    RecvAny(u32),
    Sendrecv(usize, u32),
    /// Begins a request. The request is completed at the end of the program.
    Irecv(usize, u32),
    Isend(usize, u32),
    /// Begins a request and completes it at once.
    IsendWait(usize, u32),
}
use Step::{Bsend, Irecv, Isend, IsendWait, Recv, RecvAny, Send, Sendrecv, Ssend};

/// The result of a case.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    /// The case ends, whether or not standard sends wait for their receives.
    Ends,
    /// The case ends only if messages are buffered. A check for such cases reports the case with
    /// these words.
    Saved(&'static [&'static str]),
    /// The case deadlocks whether or not messages are buffered, and is reported with these words.
    Stops(&'static [&'static str]),
}
use Verdict::{Ends, Saved, Stops};

/// A case: its name, its result, and the program of each rank.
type Case = (&'static str, Verdict, &'static [&'static [Step]]);

const ONLY: &str = "which no receive has taken and only a buffer would complete before";

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("example-3.7-one-sends-first-and-one-receives", Ends, &[&[Send(1, 5), Recv(1, 5)], &[Recv(0, 5), Send(0, 5)]]),
    (
        "example-3.8-both-receive-first",
        Stops(&["World::recv", "from rank 0 with tag 5", "rank 0 waits for rank 1", "rank 1 waits for rank 0"]),
        &[&[Recv(1, 5), Send(1, 5)], &[Recv(0, 5), Send(0, 5)]],
    ),
    (
        "example-3.9-both-send-first",
        Saved(&["Message::send", "to rank 1 with tag 5 and 1 bytes", "rank 0 waits for rank 1", "rank 1 waits for rank 0", ONLY]),
        &[&[Send(1, 5), Recv(1, 5)], &[Send(0, 5), Recv(0, 5)]],
    ),
    ("both-exchange-in-one-call", Ends, &[&[Sendrecv(1, 6)], &[Sendrecv(0, 6)]]),
    ("both-begin-to-receive-first", Ends, &[&[Irecv(1, 6), Send(1, 6)], &[Irecv(0, 6), Send(0, 6)]]),
    ("both-begin-to-send-first", Ends, &[&[Isend(1, 6), Recv(1, 6)], &[Isend(0, 6), Recv(0, 6)]]),
    ("both-send-first-from-buffers-of-their-own", Ends, &[&[Bsend(1, 6), Recv(1, 6)], &[Bsend(0, 6), Recv(0, 6)]]),
    (
        "both-complete-what-they-began-to-send",
        Saved(&["tag 6", ONLY]),
        &[&[IsendWait(1, 6), Recv(1, 6)], &[IsendWait(0, 6), Recv(0, 6)]],
    ),
    (
        "a-ring-that-sends-first",
        Saved(&["to rank 1 with tag 4", "to rank 2 with tag 4", "to rank 0 with tag 4", ONLY]),
        &[&[Send(1, 4), Recv(2, 4)], &[Send(2, 4), Recv(0, 4)], &[Send(0, 4), Recv(1, 4)]],
    ),
    ("a-ring-of-which-one-receives-first", Ends, &[&[Recv(2, 4), Send(1, 4)], &[Send(2, 4), Recv(0, 4)], &[Send(0, 4), Recv(1, 4)]]),
    (
        "two-sends-whose-receives-are-the-other-way-round",
        Saved(&["to rank 1 with tag 1", ONLY, "World::recv", "from rank 0 with tag 2"]),
        &[&[Send(1, 1), Ssend(1, 2)], &[Recv(0, 2), Recv(0, 1)]],
    ),
    ("a-message-to-oneself", Saved(&["to rank 0 with tag 3", "rank 0 waits for rank 0", ONLY]), &[&[Send(0, 3), Recv(0, 3)], &[]]),
    (
        "a-circle-through-a-third-rank",
        Saved(&["to rank 1 with tag 8", ONLY, "from rank 2 with tag 9", "from rank 0 with tag 9"]),
        &[&[Send(1, 8), Send(2, 9)], &[Recv(2, 9), RecvAny(8)], &[Recv(0, 9), Send(1, 9)]],
    ),
    ("a-receive-from-any-of-two", Ends, &[&[Send(1, 8)], &[RecvAny(8), RecvAny(8)], &[Send(1, 8)]]),
];

impl Step {
    /// Returns the name of the call in which this step waits.
    fn name(self) -> &'static str {
        match self {
            Send(..) | Ssend(..) | Bsend(..) => "Message::send",
            Recv(..) | RecvAny(..) => "World::recv",
            Sendrecv(..) => "World::sendrecv",
            Irecv(..) | Isend(..) | IsendWait(..) => "Request::wait",
        }
    }
}

/// The sends and the receives that a rank has begun.
type Begun = (Vec<Request<Vec<u8>>>, Vec<Request<Vec<u8>>>);

type Act = fn(&World, Step, &mut Begun) -> Result<()>;

/// The largest number of ranks of a case, and the largest number of steps of a rank.
const MOST: [usize; 2] = [3, 2];
/// The line before the first of [`LINES`].
const BEFORE: u32 = line!() + 3;
#[rustfmt::skip]
const LINES: [Act; MOST[0] * MOST[1]] = [
    |world, step, begun| call(world, step, begun),
    |world, step, begun| call(world, step, begun),
    |world, step, begun| call(world, step, begun),
    |world, step, begun| call(world, step, begun),
    |world, step, begun| call(world, step, begun),
    |world, step, begun| call(world, step, begun),
];

/// Returns the index in [`LINES`] of a step of a rank. Each step has a line of its own.
fn place(rank: usize, step: usize) -> usize {
    assert!(rank < MOST[0] && step < MOST[1]);
    rank * MOST[1] + step
}

/// Makes one step. The line of the caller counts as the line of the step.
#[track_caller]
fn call(world: &World, step: Step, (sends, receives): &mut Begun) -> Result<()> {
    match step {
        Send(to, tag) => world.message(to, tag).send([7u8])?,
        Ssend(to, tag) => world.message(to, tag).synchronous().send([7u8])?,
        Bsend(to, tag) => world.message(to, tag).buffered().send([7u8])?,
        Recv(from, tag) => drop(world.recv::<u8>(from, tag)?),
        RecvAny(tag) => drop(world.recv::<u8>(Any, tag)?),
        Sendrecv(other, tag) => drop(world.sendrecv(other, tag, [7u8], other, tag, &mut [0u8])?),
        Irecv(from, tag) => receives.push(world.irecv::<u8>(from, tag)?),
        Isend(to, tag) => sends.push(world.message(to, tag).isend(vec![7u8])?),
        IsendWait(to, tag) => drop(world.message(to, tag).isend(vec![7u8])?.wait()?),
    }
    Ok(())
}

/// Makes the calls of one rank.
fn play(world: &World, steps: &[Step]) -> Result<()> {
    let mut begun = Begun::default();
    if steps.iter().any(|step| matches!(step, Bsend(..))) {
        world.attach_buffer(100)?;
    }
    for (at, step) in steps.iter().enumerate() {
        LINES[place(world.rank(), at)](world, *step, &mut begun)?;
    }
    for request in begun.0.into_iter().chain(begun.1) {
        request.wait()?;
    }
    Ok(())
}

/// Returns the calls of one rank in the form that the reference uses, and the step of each call.
fn law(steps: &[Step]) -> (Vec<MessageCall>, Vec<usize>) {
    let element = ElementType::scalar(Scalar::U8);
    let (mut calls, mut of, mut begun) = (Vec::new(), Vec::new(), Vec::new());
    let send = |mode, to, tag| {
        let (to, bytes) = (Rank::new(to), vec![7]);
        MessageCall::Send { mode, to, tag, element, bytes, sent: None }
    };
    let receive = |source: Option<usize>, tag| {
        let from = Envelope { source: source.map(Rank::new), tag: Some(tag) };
        MessageCall::Receive { from, element, room: 1 }
    };
    let complete =
        |requests| MessageCall::Complete { requests, count: Completion::All, waits: true, completed: None };
    for (number, step) in steps.iter().enumerate() {
        let at = calls.len();
        of.resize(at, number.saturating_sub(1));
        match *step {
            Irecv(from, tag) => calls.push(receive(Some(from), tag)),
            Isend(to, tag) => calls.push(send(SendMode::Standard, to, tag)),
            Sendrecv(other, tag) => {
                calls.extend([send(SendMode::Standard, other, tag), receive(Some(other), tag)]);
                calls.push(complete(vec![at, at + 1]));
                continue;
            }
            Send(to, tag) | IsendWait(to, tag) => calls.push(send(SendMode::Standard, to, tag)),
            Ssend(to, tag) => calls.push(send(SendMode::Synchronous, to, tag)),
            Bsend(to, tag) => calls.push(send(SendMode::Buffered, to, tag)),
            Recv(from, tag) => calls.push(receive(Some(from), tag)),
            RecvAny(tag) => calls.push(receive(None, tag)),
        }
        match step {
            Irecv(..) | Isend(..) => begun.push(at),
            _ => calls.push(complete(vec![at])),
        }
    }
    of.resize(calls.len(), steps.len().saturating_sub(1));
    if !begun.is_empty() {
        calls.push(complete(begun));
    }
    (calls, of)
}

/// Returns the steps in which ranks wait forever, as pairs of a rank and a step. `standard`
/// determines when standard sends complete. The list is empty if no rank waits forever.
fn waiting(programs: &[&[Step]], standard: Standard) -> Vec<(usize, usize)> {
    let (calls, of): (Vec<_>, Vec<_>) = programs.iter().map(|steps| law(steps)).unzip();
    let ways = stops(&calls, 100, standard).expect("the calls are right");
    let [waiting] = &Vec::from_iter(ways)[..] else { panic!("{programs:?} may end in more than one way") };
    waiting.iter().map(|(rank, at)| (rank.index(), of[rank.index()][*at])).collect()
}

/// Returns the errors of the ranks.
fn told(programs: &[&[Step]], transport: &TransportKind, check: Check) -> Vec<(ErrorClass, String)> {
    let world = ranks(programs.len()).transport(transport.clone()).check(check);
    let world = world.stall(Some(Duration::ZERO)).end_deadlocks(true).on_stall(|_| ());
    let ends = ends(&world, &[], |world| play(world, programs[world.rank()]));
    ends.into_iter().flatten().collect()
}

/// Runs all cases on each transport. Returns the table of their results.
///
/// Panics if a case does not end as its verdict states, or as the reference
/// predicts.
pub(crate) fn judged() -> String {
    let rows = side_by_side(4, CASES, |(name, verdict, programs)| {
        let by_law = [Standard::AtOnce, Standard::AtMatch].map(|standard| waiting(programs, standard));
        let (expected, becomes, mode) = match verdict {
            Ends => ([true, true], "ends", "off, mark, log, mpi"),
            Saved(_) => ([true, false], "told: only a buffer would complete it", "mpi"),
            Stops(_) => ([false, false], "told: no rank can go on", "always"),
        };
        assert_eq!(by_law.each_ref().map(Vec::is_empty), expected, "{name}");
        let lines = by_law[1].iter().map(|&(rank, step)| {
            let line = BEFORE as usize + place(rank, step);
            format!("rank {rank} waits in {} at buffers.rs:{line}", programs[rank][step].name())
        });
        let lines: Vec<String> = lines.collect();
        side_by_side(usize::MAX, kinds(programs.len()), |transport| {
            for check in [Check::Conflicts, Check::Mpi] {
                let told = told(programs, &transport, check);
                let what = format!("{name} on {transport:?}, {check}: {told:?}");
                let words = match (verdict, check) {
                    (Saved(words), Check::Mpi) | (Stops(words), _) => *words,
                    _ => {
                        assert!(told.is_empty(), "{what}");
                        continue;
                    }
                };
                let text: String = told.iter().map(|(_, text)| &text[..]).collect();
                for word in words.iter().chain(&["deadlock"]) {
                    assert!(text.contains(word), "no {word:?}: {what}");
                }
                for &(rank, step) in &by_law[1] {
                    let line = BEFORE as usize + place(rank, step);
                    let call = format!("{} (tests/check/buffers.rs:{line})", programs[rank][step].name());
                    let one = text.split("; ").find(|one| one.contains(&format!("rank {rank} waits for ")));
                    assert!(one.is_some_and(|one| one.contains(&call)), "no {call} of rank {rank}: {what}");
                }
            }
        });
        let becomes = [vec![becomes.to_owned()], lines].concat().join("; ");
        row(&format!("messages {name}"), &becomes, mode)
    });
    rows.concat()
}

#[test]
fn both_lines_of_two_sends_that_only_a_buffer_completes_are_told() {
    let line = line!() + 5;
    side_by_side(usize::MAX, kinds(2), |transport| {
        let world = ranks(2).transport(transport.clone()).check(Check::Mpi).stall(Some(Duration::ZERO));
        let world = world.end_deadlocks(true).on_stall(|_| ());
        let ends = ends(&world, &[], |world| match world.rank() {
            0 => world.message(1, 5).send([1u64]).and_then(|()| world.recv::<u64>(1, 6).map(drop)),
            _ => world.message(0, 6).send([1u64]).and_then(|()| world.recv::<u64>(0, 5).map(drop)),
        });
        for end in ends {
            let (class, text) = end.expect("no rank can go on");
            assert_eq!(class, ErrorClass::RmaSync, "{transport:?}: {text}");
            for (line, tag) in [(line, 5), (line + 1, 6)] {
                let words = [format!("buffers.rs:{line}"), format!("with tag {tag} and 8 bytes, {ONLY}")];
                assert!(words.iter().all(|words| text.contains(words)), "{transport:?}: {text}");
            }
        }
    });
}
