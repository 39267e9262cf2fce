//! [`Touched`]: the elements of one access, in the form in which the call passes them.

use fencepost_planner::datatype::Datatype;
use std::ops::Range;

/// The elements that an operation touches.
#[derive(Clone, Copy)]
pub(crate) enum Touched<'d> {
    /// A run: the first element, and the number of elements.
    Run(usize, usize),
    /// The elements of a datatype.
    Type(&'d Datatype),
}

impl Touched<'_> {
    /// Calls `act` with each run of elements until `act` returns false. Returns the last result of
    /// `act`.
    pub(crate) fn all_runs(self, mut act: impl FnMut(Range<usize>) -> bool) -> bool {
        match self {
            Touched::Run(at, count) => act(at..at + count),
            Touched::Type(elements) => {
                elements.run_iter().all(|(at, count)| act(at as usize..at as usize + count))
            }
        }
    }

    pub(crate) fn to_datatype(self) -> Datatype {
        match self {
            Touched::Run(at, count) => Datatype::run(at..at + count),
            Touched::Type(elements) => elements.clone(),
        }
    }

    /// Returns whether the elements form more than this number of runs.
    pub(crate) fn is_of_more_runs(self, most: usize) -> bool {
        matches!(self, Touched::Type(elements) if elements.run_count() > most)
    }

    pub(crate) fn is_empty(self) -> bool {
        match self {
            Touched::Run(_, count) => count == 0,
            Touched::Type(elements) => elements.is_empty(),
        }
    }
}
