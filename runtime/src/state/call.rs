//! [`Call`]: the call that ends an epoch, with the values that are hashed into the word of the call
//! and named in error messages.

use crate::state::assertions::Assertions;
use fencepost_planner::element::{ElementType, Op};
use std::fmt;
use std::panic::Location;

/// The call that ends an epoch, with the values that are hashed into the word of the call and named
/// in error messages.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    /// The hash of the superstep and its uniform arguments, or 0 for a fence outside a superstep.
    pub(crate) hash: u64,
    /// The name of the superstep.
    pub(crate) name: Option<&'static str>,
    /// The assertions that all ranks make. They are part of the hash.
    pub(crate) asserted: Assertions,
    /// The arguments of a collective. They are also part of the hash.
    pub(crate) arguments: Option<Arguments>,
    /// The user's line.
    pub(crate) site: &'static Location<'static>,
}

/// Codes of calls that all ranks make. The word of an exchange depends on the code of its call, so
/// different calls have different words.
pub(crate) mod codes {
    pub(crate) const SPLIT: u64 = 0x5b;
    /// Added to the code of a call that makes a window.
    pub(crate) const MAKES_WINDOW: u64 = 0x77;
    pub(crate) const BARRIER: u64 = 0xba;
    pub(crate) const LOCK_WINDOW: u64 = 0x10c;
    pub(crate) const INTO_LOCKED: u64 = 0x10d;
    pub(crate) const INTO_WINDOW: u64 = 0x10e;
    pub(crate) const WINDOW_FROM: u64 = 0x110;
    pub(crate) const LOCK_WINDOW_WITH: u64 = 0x111;
    pub(crate) const FREE: u64 = 0x112;
    pub(crate) const FREE_LOCKED: u64 = 0x113;
}

/// The arguments of a collective that must have the same values on all ranks.
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    pub(crate) element: ElementType,
    pub(crate) op: Option<Op>,
    /// The root; [`NONE`](Self::NONE) if there is no root.
    pub(crate) root: usize,
    /// The number of elements; [`NONE`](Self::NONE) if ranks may give different numbers.
    pub(crate) len: usize,
    /// The array that is spread over all ranks in blocks.
    pub(crate) array: Option<Array>,
}

/// An array that is divided into blocks: the numbers of cells and of ranks along each of its
/// dimensions.
#[derive(Clone, Copy)]
pub(crate) struct Array {
    pub(crate) dimensions: usize,
    pub(crate) cells: [usize; 3],
    pub(crate) ranks: [usize; 3],
}

impl Arguments {
    pub(crate) const NONE: usize = usize::MAX;
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.root != Self::NONE {
            write!(f, "root {}, ", self.root)?;
        }
        if let Some(op) = self.op {
            write!(f, "operator {op}, ")?;
        }
        if let Some(Array { dimensions, cells, ranks }) = &self.array {
            write!(f, "{:?} cells over {:?} ranks, ", &cells[..*dimensions], &ranks[..*dimensions])?;
        }
        match self.len {
            Self::NONE => write!(f, "elements of {}", self.element),
            1 => write!(f, "1 element of {}", self.element),
            len => write!(f, "{len} elements of {}", self.element),
        }
    }
}

impl Call {
    pub(crate) fn fence(site: &'static Location<'static>) -> Self {
        Self { hash: 0, name: None, asserted: Assertions::NONE, arguments: None, site }
    }

    /// Returns a call at the line of the caller.
    #[track_caller]
    pub(crate) fn named(hash: u64, name: &'static str) -> Self {
        Self { hash, name: Some(name), asserted: Assertions::NONE, arguments: None, site: Location::caller() }
    }

    /// Returns the same call. Of `assertions`, it gets only those that all ranks must make
    /// together.
    pub(crate) fn asserting(self, assertions: Assertions) -> Self {
        let asserted = assertions.collective();
        Self { hash: self.hash ^ asserted.word(), asserted, ..self }
    }
}
