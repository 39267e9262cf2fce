//! Random programs on every transport. The results of each program equal those of the reference
//! interpreter bit for bit.

use crate::player::{Found, Played, play};
use crate::programs::{Drawn, program};
use fencepost::{ErrorClass, TransportKind, ranks};
use fencepost_planner::ids::{Id as _, WindowId};
use fencepost_tests_reference::{Call, Outcome};
use fencepost_tests_support::cases::cases;
use fencepost_tests_worlds::transports::of_program;

/// The number of programs that are drawn by default, and in a full run.
const PROGRAMS: [u64; 2] = [300, 10_000];

#[test]
fn every_program_does_what_the_reference_does() {
    let (mut fails, mut got) = (0, 0);
    let programs = cases(PROGRAMS[0], PROGRAMS[1]);
    for seed in 0..programs {
        let drawn = program(seed);
        for transport in of_program(seed, drawn.programs.len()) {
            let played = run(&drawn, &transport, seed);
            for (rank, (found, windows)) in played.into_iter().enumerate() {
                let about = || format!("seed {seed}, {transport:?}, rank {rank}: {:?}", drawn.programs);
                compare(&drawn, rank, &found, &about);
                for (window, bytes) in windows.into_iter().enumerate() {
                    let expected = &drawn.after.memory[rank][WindowId::new(window)];
                    assert!(bytes.is_none_or(|bytes| bytes == *expected), "window {window}, {}", about());
                }
            }
        }
        let outcomes = || drawn.outcomes.iter().flatten();
        fails += u64::from(outcomes().any(|outcome| matches!(outcome, Outcome::Failed { .. })));
        let has = |outcome: &Outcome| matches!(outcome, Outcome::Got(bytes) if !bytes.is_empty());
        got += u64::from(outcomes().any(has));
    }
    assert!(fails > programs / 10 && got > programs / 3, "{fails} and {got} of {programs}");
}

fn run(drawn: &Drawn, transport: &TransportKind, seed: u64) -> Vec<Played> {
    let size = drawn.programs.len();
    // Tickets cannot leave their ranks, so each rank reads its own tickets.
    let played = ranks(size).transport(transport.clone()).end_deadlocks(true).collect(|world| {
        let windows: Vec<_> = drawn
            .before
            .element
            .iter()
            .map(|(id, element)| (*element, &drawn.before.memory[world.rank()][id][..]))
            .collect();
        let (found, memory) = play(world, &windows, &drawn.programs[world.rank()])?;
        let found: Vec<Sent> = found.into_iter().map(Sent::from).collect();
        Ok((found, memory))
    });
    let played =
        played.unwrap_or_else(|error| panic!("seed {seed}, {transport:?}: {error:?}: {:?}", drawn.programs));
    played.into_iter().map(|(found, memory)| (found.into_iter().map(Found::from).collect(), memory)).collect()
}

/// A result in a form that can be sent to another thread.
enum Sent {
    Done,
    Unsaid,
    Got(Vec<u8>),
    Failed(ErrorClass, String),
}

impl From<Found> for Sent {
    fn from(found: Found) -> Self {
        match found {
            Found::Done => Self::Done,
            Found::Unsaid => Self::Unsaid,
            Found::Got(bytes) => Self::Got(bytes),
            Found::Failed(class, text) => Self::Failed(class, text),
            Found::Asked(ticket) => match ticket.bytes() {
                Ok(bytes) => Self::Got(bytes),
                Err(error) => Self::Failed(error.class(), error.to_string()),
            },
        }
    }
}

impl From<Sent> for Found {
    fn from(sent: Sent) -> Self {
        match sent {
            Sent::Done => Self::Done,
            Sent::Unsaid => Self::Unsaid,
            Sent::Got(bytes) => Self::Got(bytes),
            Sent::Failed(class, text) => Self::Failed(class, text),
        }
    }
}

fn compare(drawn: &Drawn, rank: usize, found: &[Found], about: &dyn Fn() -> String) {
    let (program, outcomes) = (&drawn.programs[rank], &drawn.outcomes[rank]);
    // An upper bound on the number of errors that no `complete` has reported yet. Each error
    // belongs to an ended access that has asked for elements that were not exposed.
    let mut owed = 0;
    for (at, (call, outcome)) in program.iter().zip(outcomes).enumerate() {
        let here = || format!("call {at}, {call:?}: {outcome:?}, found {:?}, {}", found[at], about());
        if matches!(call, Call::Complete { .. }) {
            owed += usize::from(matches!(
                outcome,
                Outcome::Failed { class: ErrorClass::Disp | ErrorClass::Assert, .. }
            )) * drawn.programs.len();
            match &found[at] {
                Found::Failed(ErrorClass::Disp | ErrorClass::Assert, _) => {
                    assert!(owed > 0, "{}", here());
                    owed -= 1;
                }
                Found::Done => {}
                Found::Unsaid => assert!(matches!(outcome, Outcome::Failed { .. }), "{}", here()),
                _ => panic!("{}", here()),
            }
            continue;
        }
        let agrees = match (outcome, &found[at]) {
            (Outcome::Done, Found::Done) => true,
            // There are no bytes, or they are the zeros that a get from no rank returns.
            (Outcome::Done, Found::Got(bytes)) => bytes.iter().all(|byte| *byte == 0),
            (Outcome::Got(expected), Found::Got(bytes)) => expected == bytes,
            (Outcome::Failed { .. }, Found::Unsaid) => true,
            // An operation without a target does nothing, whatever elements it names.
            (Outcome::Done, Found::Unsaid) => {
                matches!(call, Call::Access { operation, .. } if operation.target.is_none())
            }
            (Outcome::Failed { class, rank: named, .. }, Found::Failed(found, text)) => {
                let names = named.index() == rank
                    || matches!(call, Call::Fence { .. })
                    || text.contains(&format!("rank {}", named.index()));
                class == found && names
            }
            _ => false,
        };
        assert!(agrees, "{}", here());
    }
}
