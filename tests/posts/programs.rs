//! Random programs of posts, starts and fences that every rank can play to its end.

use fencepost_tests_reference::draw::Exchange;
use fencepost_tests_reference::{Call, Outcome, World, exchange};
use fencepost_tests_support::random::Random;
use std::collections::BTreeSet;

/// The number of elements of each rank's part of each window.
const LEN: usize = 6;

/// A program for each rank, the windows before these programs, and the windows and outcomes after
/// them according to the reference.
pub struct Drawn {
    pub before: World,
    pub programs: Vec<Vec<Call>>,
    pub after: World,
    pub outcomes: Vec<Vec<Outcome>>,
}

/// Returns the program of this seed.
pub fn program(seed: u64) -> Drawn {
    let mut dice = Random::new(seed);
    loop {
        let Exchange { before, programs } = Exchange::draw(&mut dice, LEN, false);
        let mut after = before.clone();
        let outcomes = exchange(&mut after, &programs).expect("the world fits the programs");
        let drawn = Drawn { before, programs, after, outcomes };
        if drawn.can_be_played() {
            return drawn;
        }
    }
}

impl Drawn {
    /// Returns whether no call stalls, and no rank would fence a window that it has posted. A Rust
    /// program cannot fence a posted window.
    fn can_be_played(&self) -> bool {
        let stalls = |outcome: &Outcome| matches!(outcome, Outcome::Stalled(_) | Outcome::NotReached);
        if self.outcomes.iter().flatten().any(stalls) {
            return false;
        }
        self.programs.iter().zip(&self.outcomes).all(|(program, outcomes)| {
            let mut posted = BTreeSet::new();
            program.iter().zip(outcomes).all(|(call, outcome)| {
                match call {
                    Call::Post { window, .. } if *outcome == Outcome::Done => _ = posted.insert(*window),
                    Call::Wait { window } => _ = posted.remove(window),
                    Call::Fence { windows } => return windows.is_disjoint(&posted),
                    _ => (),
                }
                true
            })
        })
    }
}
