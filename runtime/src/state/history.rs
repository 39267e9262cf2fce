//! [`History`]: what `auto` makes of operations before their fence, by what it watched before.
//!
//! Whether what is put should leave before the fence has to be decided at the call, when nobody knows yet what else the
//! epoch will have. So a window remembers what followed each of the last lines that epochs began at: a fence, or the call
//! of a superstep. It is one rank's own decision: its targets take what comes, whenever it comes.
//!
//! Pieces pay where the machine model says so for as many bytes as went to one target the last time. They leave with
//! their descriptions, so what repeats is better replayed: an epoch that was the same as the one before stays whole. Single
//! elements do not count: to collect them for the fence takes a third of the time that it takes to ask after each whether
//! a piece is full, which is more than sending earlier saves.

use fencepost_planner::machine::Machine;

/// How many lines are remembered.
const LINES: usize = 8;

/// What followed the lines that a window's epochs began at.
#[derive(Default)]
pub(crate) struct History {
    lines: Vec<Seen>,
    next: usize,
    /// The line that this epoch began at.
    now: usize,
    /// The size of the pieces that this epoch is to leave in.
    chunk: Option<u64>,
}

/// What followed a line the last time.
struct Seen {
    line: usize,
    epochs: u32,
    /// Bytes to the target that got most, single elements apart.
    most: u64,
    /// Whether it was not what had followed the time before.
    changed: bool,
}

impl History {
    /// An epoch begins at this line.
    pub(crate) fn begins(&mut self, line: usize) {
        let known = self.lines.iter().position(|seen| seen.line == line);
        self.now = known.unwrap_or_else(|| {
            let seen = Seen { line, epochs: 0, most: 0, changed: true };
            if self.lines.len() < LINES {
                self.lines.push(seen);
                return self.lines.len() - 1;
            }
            self.next = (self.next + 1) % LINES;
            self.lines[self.next] = seen;
            self.next
        });
        let (seen, machine) = (&self.lines[self.now], Machine::default());
        // The first time there is nothing that it could be the same as.
        let pays = seen.epochs >= 2 && seen.changed && machine.pieces_pay(false, seen.most);
        self.chunk = pays.then(|| machine.chunk(false, seen.most));
    }

    /// The epoch has ended: `most` bytes of operations on more than an element went to the target that got most, and it was or was not what it was before.
    pub(crate) fn ended(&mut self, most: u64, changed: bool) {
        if let Some(seen) = self.lines.get_mut(self.now) {
            *seen = Seen { line: seen.line, epochs: seen.epochs.saturating_add(1), most, changed };
        }
    }

    /// The size of the pieces that what asks for no mode is to leave in; `None` where it stays until the fence.
    pub(crate) fn chunk(&self) -> Option<u64> {
        self.chunk
    }
}
