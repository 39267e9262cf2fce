//! Programs of locks (18 to 21): their calls, and what these bring.

use super::values::apply;
use crate::datatype::Datatype;
use crate::element::{ElementType, Op};
use crate::ids::{Rank, WindowId};

/// The type of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockType {
    /// Any number of epochs at a time; each element is accessed atomically.
    Shared,
    /// The epoch is atomic.
    Exclusive,
}

/// One call of one rank, with what it brought. Calls name a lock by the place of its `Lock` in the program of the rank, from
/// 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockCall {
    /// Locks the window of a rank.
    Lock {
        /// The window.
        window: WindowId,
        /// The rank, which may be the origin itself.
        target: Rank,
        /// The type of the lock.
        kind: LockType,
    },
    /// Accesses elements of a locked window, in typemap order.
    Act {
        /// The lock.
        lock: usize,
        /// The elements.
        elements: Datatype,
        /// The action on each of them.
        action: Action,
        /// The operands, an element each; empty where the action has none.
        bytes: Vec<u8>,
        /// The elements that were found, one for each; empty where the action returns nothing.
        found: Vec<u8>,
    },
    /// Waits until the operations of a lock so far are done.
    Flush {
        /// The lock.
        lock: usize,
    },
    /// Ends the epoch of a lock.
    Unlock {
        /// The lock.
        lock: usize,
    },
    /// Meets all other ranks in a barrier or a fence.
    Meet,
}

/// The action of an operation on each of its elements, atomically.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Replaces it.
    Put,
    /// Returns it.
    Get,
    /// Combines the operand into it.
    Accumulate(Op),
    /// Returns it and combines the operand into it: `fetch_and(op)` and `get_accumulate`.
    Fetch(Op),
    /// Returns it and replaces it if it has the bits of its element of this list.
    CompareAndSwap(Vec<u8>),
}

impl Action {
    /// Returns whether it has operands.
    pub(super) fn takes(&self) -> bool {
        *self != Action::Get
    }

    /// Returns whether it returns what it found.
    pub(super) fn returns(&self) -> bool {
        matches!(self, Action::Get | Action::Fetch(_) | Action::CompareAndSwap(_))
    }
}

/// One action on one element.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    /// The element, by its place among all that are visited.
    pub cell: usize,
    pub element: ElementType,
    /// The action, with one element of what it takes.
    pub action: Action,
    pub operand: Vec<u8>,
    /// The place of the result among all results, and what was found.
    pub found: Option<(usize, Vec<u8>)>,
}

impl Visit {
    /// Does to `value` what the action does.
    pub fn apply(&self, value: &mut Vec<u8>) {
        match &self.action {
            Action::Put => value.clone_from(&self.operand),
            Action::Get => {}
            Action::Accumulate(op) | Action::Fetch(op) => {
                apply(Some(*op), self.element, value, &self.operand)
            }
            Action::CompareAndSwap(expected) if value == expected => value.clone_from(&self.operand),
            Action::CompareAndSwap(_) => {}
        }
    }

    /// Returns whether it and `other` may be exchanged without a trace, on one element (8).
    pub fn commutes(&self, other: &Visit) -> bool {
        match (&self.action, &other.action) {
            (Action::Get | Action::Fetch(Op::NoOp), Action::Get | Action::Fetch(Op::NoOp)) => true,
            (Action::Accumulate(a), Action::Accumulate(b)) => a == b && !a.order_shows(self.element),
            _ => false,
        }
    }
}
