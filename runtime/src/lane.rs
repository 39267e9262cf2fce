//! [`Lane`]: the short way of an operation on one small element to its target.
//!
//! An operation takes it by two comparisons: its displacement with the lane's bound, and where the next record goes with
//! the end of the room. All else that could send an operation the long way (NOSUCCEED, calls that are matched with a
//! plan, memory that is not reached) sets the bound to 0 beforehand.

use crate::log::Pen;
use crate::transport::Record;
use std::cell::Cell;
use std::ptr::null;

/// All that one small operation has to look at.
#[repr(align(32))]
pub(crate) struct Lane {
    /// Displacements below this go the short way; none while it is closed.
    below: Cell<usize>,
    /// On the outbox's records.
    pub(crate) pen: Pen<Record>,
    /// The target's elements, where its memory is reached.
    memory: Cell<*const u8>,
}

impl Default for Lane {
    fn default() -> Self {
        Self { below: Cell::new(0), pen: Pen::default(), memory: Cell::new(null()) }
    }
}

impl Lane {
    /// Collect an operation on the element at `at`, if it goes the short way; else nothing has happened.
    #[inline(always)]
    pub(crate) fn push(&self, at: usize, record: Record) -> bool {
        at < self.below.get() && self.pen.write(record)
    }

    /// The target's elements; null where its memory is not reached.
    #[inline(always)]
    pub(crate) fn memory(&self) -> *const u8 {
        self.memory.get()
    }

    /// It leads to elements at `memory`, and takes displacements below `below`.
    pub(crate) fn lead(&self, memory: *const u8, below: usize) {
        self.memory.set(memory);
        self.below.set(below);
    }
}
