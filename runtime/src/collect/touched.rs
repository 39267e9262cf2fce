//! [`Touched`]: the elements of one access, as its call has them.

use fencepost_planner::datatype::Datatype;
use std::ops::Range;

/// The elements that an operation touches.
#[derive(Clone, Copy)]
pub(crate) enum Touched<'d> {
    /// From this one on, this number of them.
    Run(usize, usize),
    /// Those of a datatype.
    Type(&'d Datatype),
}

impl Touched<'_> {
    /// Calls `act` with each run of elements, until it returns false; returns what it returned last.
    pub(crate) fn all_runs(self, mut act: impl FnMut(Range<usize>) -> bool) -> bool {
        match self {
            Touched::Run(at, count) => act(at..at + count),
            Touched::Type(elements) => {
                elements.run_iter().all(|(at, count)| act(at as usize..at as usize + count))
            }
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        match self {
            Touched::Run(_, count) => count == 0,
            Touched::Type(elements) => elements.is_empty(),
        }
    }
}
