//! [`Visits`]: the operations that one rank has collected for one target under a lock, in program
//! order.
//!
//! The list has the same form whether the origin carries out its operations itself or sends them to
//! the target. The list has a [`Record`] for an operation on one element of at most eight bytes.
//! Any other operation is *wide*: the record holds the place where the bytes of the operation
//! begin. These bytes are the datatype, the values to compare with, and the operands.
//!
//! ```text
//! head  bits 0..8   code: bits 0..4 operator, bits 4..7 action, bit 7 set if wide
//!       bits 8..    displacement in elements; 0 for a wide operation
//! value             the operand; for a wide operation, where its bytes begin; for a
//!                   compare-and-swap, the value to compare with (a second record has the operand)
//! ```

use crate::collect::log::Log;
use crate::collect::ticket::Slot;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::Op;
use fencepost_transport::Record;

/// The action of an operation on each of its elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Put,
    Get,
    Accumulate(Op),
    Fetch(Op),
    CompareAndSwap,
}

impl Action {
    /// Returns the action that is carried out: a get instead of a fetch that changes nothing, and
    /// otherwise this action.
    #[inline]
    pub(crate) fn carried_out(self) -> Self {
        if self == Action::Fetch(Op::NoOp) { Action::Get } else { self }
    }
}

/// The low bits of a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) u8);

const WIDE: u8 = 1 << 7;
const CODE_BITS: u32 = 8;

impl Code {
    #[inline]
    fn of(action: Action) -> Self {
        Self(match action {
            Action::Put => 0,
            Action::Get => 1 << 4,
            Action::Accumulate(op) => 2 << 4 | op as u8,
            Action::Fetch(op) => 3 << 4 | op as u8,
            Action::CompareAndSwap => 4 << 4,
        })
    }

    #[inline]
    pub(crate) fn of_head(head: u64) -> Self {
        Self(head as u8)
    }

    #[inline]
    pub(crate) fn is_wide(self) -> bool {
        self.0 & WIDE != 0
    }

    #[inline]
    pub(crate) fn is_put(self) -> bool {
        self == Self::of(Action::Put)
    }

    /// Returns whether the operation is a put or an accumulate of one element of at most eight
    /// bytes.
    #[inline]
    pub(crate) fn is_silent(self) -> bool {
        self.is_put() || self.0 >> 4 == 2
    }

    /// Returns the action; `None` for an invalid code.
    #[inline]
    pub(crate) fn action(self) -> Option<Action> {
        let op = Op::ALL.get(usize::from(self.0 & 15)).copied();
        match (self.0 & !WIDE) >> 4 {
            0 if self.0 & 15 == 0 => Some(Action::Put),
            1 if self.0 & 15 == 0 => Some(Action::Get),
            2 => op.map(Action::Accumulate),
            3 => op.map(Action::Fetch),
            4 if self.0 & 15 == 0 => Some(Action::CompareAndSwap),
            _ => None,
        }
    }
}

impl Action {
    /// Returns whether the operation returns the previous elements.
    #[inline]
    pub(crate) fn returns(self) -> bool {
        matches!(self, Self::Get | Self::Fetch(_) | Self::CompareAndSwap)
    }

    /// Returns whether the operation has operands.
    #[inline]
    pub(crate) fn takes(self) -> bool {
        self != Self::Get
    }
}

/// The collected operations.
#[derive(Default)]
pub(crate) struct Visits {
    pub(crate) records: Log<Record>,
    /// The bytes of wide operations.
    pub(crate) wide: Vec<u8>,
    /// The slots in which results land, each with its length in bytes, in the order of the
    /// operations.
    pub(crate) landings: Vec<(Slot, usize)>,
}

impl Visits {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.wide.clear();
        self.landings.clear();
    }

    /// Adds an operation on these elements. `operands` are the values to compare with, and the
    /// operands. Returns whether there is memory for them; if not, nothing is added.
    #[must_use]
    pub(crate) fn push_wide(&mut self, action: Action, remote: &Datatype, operands: [&[u8]; 2]) -> bool {
        let room = operands.iter().map(|bytes| bytes.len()).sum();
        if self.wide.try_reserve(room).is_err() {
            return false;
        }
        let value = self.wide.len() as u64;
        remote.encode(&mut self.wide);
        operands.iter().for_each(|bytes| self.wide.extend_from_slice(bytes));
        self.records.push(Record { head: u64::from(Code::of(action).0 | WIDE), value });
        true
    }
}

/// Returns the record of an operation on the element at `at`, of at most eight bytes. A
/// compare-and-swap has two records: the value of the first record is the value to compare with.
#[inline]
pub(crate) fn record(action: Action, at: usize, value: u64) -> Record {
    Record { head: (at as u64) << CODE_BITS | u64::from(Code::of(action).0), value }
}

/// Returns the element of a record of an operation on one element.
#[inline]
pub(crate) fn place(record: &Record) -> usize {
    (record.head >> CODE_BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_it_was_written_and_no_other_is() {
        let ops = || Op::ALL.into_iter();
        let actions: Vec<Action> = [Action::Put, Action::Get, Action::CompareAndSwap]
            .into_iter()
            .chain(ops().map(Action::Accumulate))
            .chain(ops().map(Action::Fetch))
            .collect();
        let read: Vec<Action> = (0..=255).filter_map(|code| Code(code).action()).collect();
        assert_eq!(read.len(), 2 * actions.len(), "each is wide or is not");
        for action in actions {
            assert_eq!(Code::of(action).action(), Some(action));
        }
    }
}
