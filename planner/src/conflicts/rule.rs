//! What a conflict is, for the compiler, which looks for them in patterns, for the runtime, which looks in what was
//! called, and for the reference interpreter.

use crate::datatype::Datatype;
use crate::element::Op;
use crate::ir::pattern::Kind;
use std::ops::Range;

/// The access of a fetch that changes nothing.
const READS: Kind = Kind::Accumulate(Op::NoOp);

/// Whether two accesses to one element, of different operations, conflict (planner/README.md, 10). A section that is a source
/// is read as by a get, and one that a get lands in is written as by a put.
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

/// Whether two accesses to one element, of shared epochs that nothing orders, break the promise that such epochs visit different
/// elements (planner/README.md, 35).
#[doc(hidden)]
pub fn breaks_disjoint(a: Kind, b: Kind) -> bool {
    !matches!((a, b), (Kind::Get | READS, Kind::Get | READS))
}

/// Returns the bounds of the elements that an access overwrites after it has written them itself,
/// if there are any (planner/README.md, 28).
///
/// # Cost
/// As [`Datatype::self_overlap_bounds`].
#[doc(hidden)]
pub fn overwritten(kind: Kind, elements: &Datatype) -> Option<Range<i64>> {
    if kind == Kind::Put { elements.self_overlap_bounds() } else { None }
}

/// The access that an operation of this kind makes to a section of its origin.
#[doc(hidden)]
pub fn access_to_section(kind: Kind) -> Kind {
    if kind == Kind::Get { Kind::Put } else { Kind::Get }
}

/// The access that a compare-and-swap makes to its element: it replaces it, if it does anything (planner/README.md, 32).
#[doc(hidden)]
pub fn access_to_compare_and_swap() -> Kind {
    Kind::Accumulate(Op::Replace)
}
