//! The rule that defines conflicts. It has three users: the compiler, which searches patterns, the
//! runtime, which searches calls, and the reference interpreter.

use crate::datatype::Datatype;
use crate::element::Op;
use crate::ir::pattern::Kind;
use std::ops::Range;

/// The access of a fetch that changes nothing.
const READS: Kind = Kind::Accumulate(Op::NoOp);

/// Returns whether two accesses of different operations to the same element conflict
/// (planner/README.md, 10).
///
/// A section that is a source counts as read by a get. A section into which a get stores counts as
/// written by a put.
#[doc(hidden)]
pub fn conflict(a: Kind, b: Kind) -> bool {
    match (a, b) {
        (Kind::Get | READS, Kind::Get | READS)
        | (READS, Kind::Accumulate(_))
        | (Kind::Accumulate(_), READS) => false,
        (Kind::Accumulate(a), Kind::Accumulate(b)) => a != b,
        _ => true,
    }
}

/// Returns whether two accesses break the promise that shared epochs visit different elements
/// (planner/README.md, 35).
///
/// Both accesses must be to the same element, in shared epochs that are not ordered.
#[doc(hidden)]
pub fn breaks_disjoint(a: Kind, b: Kind) -> bool {
    !matches!((a, b), (Kind::Get | READS, Kind::Get | READS))
}

/// Returns the bounds of the elements that one access writes more than once, if there are any
/// (planner/README.md, 28).
///
/// # Cost
/// As [`Datatype::self_overlap_bounds`].
#[doc(hidden)]
pub fn overwritten(kind: Kind, elements: &Datatype) -> Option<Range<i64>> {
    if kind == Kind::Put { elements.self_overlap_bounds() } else { None }
}

/// Returns the access that an operation of this kind makes to a section of its origin.
#[doc(hidden)]
pub fn access_to_section(kind: Kind) -> Kind {
    if kind == Kind::Get { Kind::Put } else { Kind::Get }
}

/// Returns the access that a compare-and-swap makes to its element. It counts as an accumulate with
/// REPLACE (planner/README.md, 32).
#[doc(hidden)]
pub fn access_to_compare_and_swap() -> Kind {
    Kind::Accumulate(Op::Replace)
}
