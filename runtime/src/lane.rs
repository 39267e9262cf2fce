//! [`Lane`]: the short way of an operation on one small element to its target.
//!
//! An operation takes it by two comparisons: its displacement with the lane's bound, and where the next record goes with
//! the end of the room. All else that could send an operation the long way (NOSUCCEED, calls that are matched with a
//! plan, memory that is not reached) sets the bound to 0 beforehand.

use crate::outbox::Outbox;
use crate::transport::Record;
use std::cell::Cell;
use std::ptr::{NonNull, null, null_mut};

/// All that one small operation has to look at.
#[repr(align(32))]
pub struct Lane {
    /// Displacements below this go the short way; none while it is closed.
    below: Cell<usize>,
    /// Where the next record goes; null while the outbox itself says that.
    next: Cell<*mut Record>,
    /// Where there is no more room.
    end: Cell<*mut Record>,
    /// The target's elements, where its memory is reached.
    memory: Cell<*const u8>,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            below: Cell::new(0),
            next: Cell::new(null_mut()),
            end: Cell::new(null_mut()),
            memory: Cell::new(null()),
        }
    }
}

impl Lane {
    /// Whether an element at this displacement goes the short way, room or not.
    #[inline(always)]
    pub(crate) fn takes(&self, at: usize) -> bool {
        at < self.below.get()
    }

    /// Collect an operation on the element at `at`, if it goes the short way; else nothing has happened.
    #[inline(always)]
    pub(crate) fn push(&self, at: usize, record: Record) -> bool {
        let next = self.next.get();
        let short = self.takes(at) && next != self.end.get();
        if short {
            // SAFETY: `open` got both from the outbox that is being filled, which nobody else touches: there is room for
            // a record between them.
            unsafe {
                next.write(record);
                self.next.set(next.add(1));
            }
        }
        short
    }

    /// The target's elements; null where its memory is not reached.
    #[inline(always)]
    pub(crate) fn memory(&self) -> *const u8 {
        self.memory.get()
    }

    /// It leads to memory at `memory`, and takes displacements below `below`.
    pub(crate) fn lead(&self, memory: *const u8, below: usize) {
        self.memory.set(memory);
        self.below.set(below);
    }

    /// Fill `outbox` from here on, until it is shut.
    ///
    /// # Safety
    /// Until then the outbox stays where it is, and nobody else touches it.
    pub(crate) unsafe fn open(&self, outbox: &Outbox) {
        let (next, end) = outbox.records.ends();
        self.next.set(next.as_ptr());
        self.end.set(end.as_ptr());
    }

    /// Count in `outbox` what was collected since it was opened for it, if it was. Nothing goes the short way now.
    ///
    /// # Safety
    /// It was opened for no other outbox since it was last shut.
    pub(crate) unsafe fn shut(&self, outbox: &mut Outbox) {
        self.end.set(null_mut());
        if let Some(next) = NonNull::new(self.next.replace(null_mut())) {
            // SAFETY: `open` took the ends of this outbox's records, and `push` wrote all before `next`.
            unsafe { outbox.records.end_at(next) };
        }
    }
}
