//! The calls of programs with posts, starts and fences, and their outcomes (12 to 17).

use fencepost_planner::datatype::Datatype;
use fencepost_planner::error::ErrorClass;
use fencepost_planner::ids::{Rank, WindowId};
use fencepost_planner::ir::pattern::Operation;
use std::collections::BTreeSet;

/// One call of one rank. Calls identify an access by the position of its start in the rank's
/// program, counted from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// Stores into elements of the rank's own part of a window.
    Store {
        /// The window.
        window: WindowId,
        /// The elements.
        elements: Datatype,
        /// The new contents of the elements.
        bytes: Vec<u8>,
    },
    /// Loads elements of the rank's own part of a window.
    Load {
        /// The window.
        window: WindowId,
        /// The elements.
        elements: Datatype,
    },
    /// Exposes a window to accesses of some ranks.
    Post {
        /// The window.
        window: WindowId,
        /// The origins.
        sources: BTreeSet<Rank>,
        /// The elements that are exposed, and the operations that may access them.
        lent: Lent,
    },
    /// Waits until the sources of a posted window have completed, and applies their puts and
    /// accumulates.
    Wait {
        /// The window.
        window: WindowId,
    },
    /// Starts an access to windows of some ranks.
    Start {
        /// The window.
        window: WindowId,
        /// The targets.
        targets: BTreeSet<Rank>,
    },
    /// Adds an operation to an access.
    Access {
        /// The start of the access.
        access: usize,
        /// The operation. A section of the origin is packed when the call is made. A get has a
        /// ticket.
        operation: Operation,
        /// The bytes of the slice from which a put or an accumulate reads, if it reads from a
        /// slice.
        source: Vec<u8>,
    },
    /// Completes an access.
    Complete {
        /// The start of the access.
        access: usize,
    },
    /// Drops an access that was not completed.
    Drop {
        /// The start of the access.
        access: usize,
    },
    /// Collects an operation for the next fence of its window.
    Collect {
        /// The operation.
        operation: Operation,
        /// The bytes of the slice from which a put or an accumulate reads, if it reads from a
        /// slice.
        source: Vec<u8>,
    },
    /// Fences some windows, together with all other ranks.
    Fence {
        /// The windows.
        windows: BTreeSet<WindowId>,
    },
}

/// The elements that a post exposes, and the operations that may access them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lent {
    /// The whole window.
    Whole,
    /// These elements.
    Part(Datatype),
    /// The whole window, for gets only.
    Read,
}

/// The outcome of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The call returned.
    Done,
    /// The call returned these elements: a load by itself, a get in its ticket.
    Got(Vec<u8>),
    /// The call returned an error. For a get, its ticket holds the error.
    Failed {
        /// The class of the error.
        class: ErrorClass,
        /// The rank that the error names.
        rank: Rank,
        /// The call of that rank that the error names.
        call: usize,
    },
    /// The call waits for calls that these ranks do not make, and never returns. If the call's own
    /// rank is one of them, the call fails with RMA_SYNC instead, and the world ends.
    Stalled(BTreeSet<Rank>),
    /// An earlier call of the rank did not return.
    NotReached,
}
