//! [`History`]: a window's observations of the epochs that began at each line, for
//! [`adaptive`](fencepost_planner::adaptive).
//!
//! An epoch begins at a fence or at the call of a superstep. The last few of these lines are
//! remembered. Targets accept operations at any time, so ranks need not agree: each rank has its
//! own history and prediction.

use fencepost_planner::adaptive::{Departure, Observed, predict};
use fencepost_planner::machine::Machine;

/// The number of lines that are remembered.
const LINES: usize = 8;

/// The lines at which a window's epochs began, and the epochs that followed each line.
#[derive(Default)]
pub(crate) struct History {
    /// Each line, and the epochs that began there.
    lines: Vec<(usize, Observed)>,
    next: usize,
    /// The line at which this epoch began.
    now: usize,
    /// The point of this epoch at which operations of mode auto are sent.
    predicted: Departure,
}

impl History {
    /// Begins an epoch at this line.
    pub(crate) fn begins(&mut self, line: usize, machine: &Machine) {
        let known = self.lines.iter().position(|(known, _)| *known == line);
        self.now = known.unwrap_or_else(|| {
            let new = (line, Observed::default());
            if self.lines.len() < LINES {
                self.lines.push(new);
                return self.lines.len() - 1;
            }
            self.next = (self.next + 1) % LINES;
            self.lines[self.next] = new;
            self.next
        });
        self.predicted = predict(&self.lines[self.now].1, machine);
    }

    /// Ends the epoch. `most` is the number of bytes in operations on more than one element, for
    /// the target with the most such bytes. `changed` is whether the epoch differed from the epoch
    /// before.
    pub(crate) fn ended(&mut self, most: u64, changed: bool) {
        if let Some((_, observed)) = self.lines.get_mut(self.now) {
            *observed = Observed { epochs: observed.epochs.saturating_add(1), most, changed };
        }
    }

    /// Returns the point of this epoch at which operations of mode auto are sent.
    pub(crate) fn predicted(&self) -> Departure {
        self.predicted
    }
}
