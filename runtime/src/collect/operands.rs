//! The form in which operations are applied at their target.

use crate::collect::outbox::DatatypeOperation;
use fencepost_planner::element::ElementType;
use fencepost_transport::Record;
use std::cell::Cell;

/// Operations in the form in which they reach their target.
pub(crate) enum Items<'a> {
    /// Heads and values together.
    Records(&'a [Record]),
    /// Remembered heads, with new values.
    Split(&'a [u64], &'a [u8]),
}

/// The data of operations that do not fit in their records.
pub(crate) struct Operands<'a> {
    pub(crate) wide: &'a [DatatypeOperation],
    /// The elements of datatype operations.
    pub(crate) bytes: &'a [u8],
    /// Where the elements of exposed sections are.
    pub(crate) exposed: Exposed<'a>,
}

impl Operands<'_> {
    /// Returns empty operands, for operations that all fit in their records.
    pub(crate) fn none() -> Self {
        Self { wide: &[], bytes: &[], exposed: Exposed::Nothing }
    }
}

/// Where the elements of exposed sections are.
#[derive(Clone, Copy)]
pub(crate) enum Exposed<'a> {
    /// No section is exposed.
    Nothing,
    /// The elements are in place, in the origin's part of a window. The function returns the
    /// address of that part for the number of the window.
    InPlace(&'a dyn Fn(u32) -> *const u8),
    /// The elements are copied one after another, from this address on, in the order in which they
    /// are applied.
    Copied(&'a Cell<*const u8>),
}

/// A function that applies operations to a window with this memory, length and element type.
pub(crate) type Apply = unsafe fn(*mut u8, usize, ElementType, Items<'_>, &Operands<'_>);
