//! The calls of programs of locks (18 to 21), and their results.

use super::values::apply;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op};
use fencepost_planner::ids::{Rank, WindowId};
use fencepost_planner::ir::calls::LockType;

/// One call of one rank, with its results. Calls identify a lock by the position of its `Lock` call
/// in the rank's program, counted from 0.
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
        /// The action on each element.
        action: Action,
        /// The operands, one for each element. Empty if the action has no operands.
        bytes: Vec<u8>,
        /// The values that were found, one for each element. Empty if the action returns nothing.
        found: Vec<u8>,
    },
    /// Waits until all earlier operations of a lock are done.
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

/// The action of an operation on one of its elements. Each such action is atomic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Replaces the element.
    Put,
    /// Returns the element.
    Get,
    /// Combines the operand into the element.
    Accumulate(Op),
    /// Returns the element and combines the operand into it: `fetch_and(op)` and `get_accumulate`.
    Fetch(Op),
    /// Returns the element, and replaces it if it has the same bits as the corresponding element of
    /// this list.
    CompareAndSwap(Vec<u8>),
}

impl Action {
    /// Returns whether the action has operands.
    pub(super) fn takes(&self) -> bool {
        *self != Action::Get
    }

    /// Returns whether the action returns the values that it found.
    pub(super) fn returns(&self) -> bool {
        matches!(self, Action::Get | Action::Fetch(_) | Action::CompareAndSwap(_))
    }
}

/// One action on one element.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    /// The index of the element among all visited elements.
    pub cell: usize,
    pub element: ElementType,
    /// The action. The list of a compare-and-swap is reduced to the one element for this visit.
    pub action: Action,
    pub operand: Vec<u8>,
    /// The index of the result among all results, and the value that was found.
    pub found: Option<(usize, Vec<u8>)>,
}

impl Visit {
    /// Applies the action to `value`.
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

    /// Returns whether the order of this visit and `other` makes no visible difference (8). Both
    /// visits must be of the same element.
    pub fn commutes(&self, other: &Visit) -> bool {
        match (&self.action, &other.action) {
            (Action::Get | Action::Fetch(Op::NoOp), Action::Get | Action::Fetch(Op::NoOp)) => true,
            (Action::Accumulate(a), Action::Accumulate(b)) => a == b && !a.order_shows(self.element),
            _ => false,
        }
    }
}
