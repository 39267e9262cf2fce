//! [`Step`]: an instruction, resolved for one rank.

use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op};
use fencepost_planner::ir::schedule::Frame;
use std::ops::Range;

/// An instruction with its peers and parts resolved.
pub(super) enum Step {
    Expose(usize),
    Reclaim(usize),
    Pack {
        from: Where,
        count: usize,
        size: usize,
        buffer: usize,
        at: usize,
    },
    Combine {
        from: Where,
        into: Datatype,
        op: Op,
        element: ElementType,
        buffer: usize,
        at: usize,
    },
    Send {
        buffer: usize,
        at: usize,
        bytes: usize,
        /// Whether the payload stays unchanged until the run is over.
        stays: bool,
    },
    /// Sends bytes of this rank's part of a window without packing them.
    SendInPlace {
        window: usize,
        first: usize,
        buffer: usize,
        bytes: usize,
        /// Whether the payload stays unchanged until the run is over.
        stays: bool,
    },
    Await(usize, Frame),
    Copy {
        from: Where,
        to: Where,
        op: Option<Op>,
        element: ElementType,
    },
    Unpack {
        peer: usize,
        at: usize,
        to: Where,
        op: Option<Op>,
        element: ElementType,
    },
    Release(usize),
    Done(usize),
}

/// A part, resolved.
pub(super) enum Where {
    /// Elements of a rank's window.
    Window(usize, usize, Datatype),
    /// Bytes of this rank's `locals`.
    Local { start: usize, bytes: usize },
}

impl Where {
    /// Returns whether the part may contain some of these bytes of this rank's window. This is a
    /// cheap test with false positives.
    pub(super) fn meets(&self, size: usize, rank: usize, window: usize, bytes: &Range<usize>) -> bool {
        match self {
            Where::Window(owner, other, datatype) => {
                let at = |element: i64| element.saturating_mul(size as i64);
                let hull = at(datatype.low())..at(datatype.high());
                let apart = hull.end <= bytes.start as i64 || bytes.end as i64 <= hull.start;
                *owner == rank && *other == window && !apart
            }
            Where::Local { .. } => false,
        }
    }
}
