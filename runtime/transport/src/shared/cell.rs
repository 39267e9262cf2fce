//! [`NumberedCell`]: a value in a cache line, with the number that publishes it.
//!
//! In memory that both ranks reach, such cells hold all short data that one rank writes and another
//! rank reads: the notifications of fences, the frames of queues with their short payloads, and the
//! posts and accesses of pairs. The writer stores the value and then the number. A reader waits for
//! the number that it expects, so finding and reading the value costs one cache line. Each protocol
//! has a rule for which rank may write a cell again, and when. The file of the protocol justifies
//! its rule.

use crate::sync::{AtomicU64, Ordering, UnsafeCell};

/// A value and the number that publishes it, in a cache line.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct NumberedCell<T> {
    value: UnsafeCell<T>,
    /// The number of the value, starting at 1; 0 before the first.
    number: AtomicU64,
}

// SAFETY: one rank writes the value, and others read it. A read follows the Acquire load in `has`
// of the number that `publish` stored with Release after the value. The next write follows the
// readers' last look at the value, as the callers of `write` promise.
unsafe impl<T: Copy> Sync for NumberedCell<T> {}
// SAFETY: the values are plain data. The code that stores an address in a cell argues why the
// memory there may be accessed.
unsafe impl<T: Copy> Send for NumberedCell<T> {}

impl<T: Copy> NumberedCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: UnsafeCell::new(value), number: AtomicU64::new(0) }
    }

    /// Writes the value through a pointer. The value is visible to readers once it is
    /// [published](Self::publish).
    ///
    /// # Safety
    /// Only the caller writes this cell, and all readers have finished with its last value.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, write: impl FnOnce(*mut T)) {
        self.value.with_mut(write);
    }

    /// Publishes the value under this number.
    #[inline(always)]
    pub(crate) fn publish(&self, number: u64) {
        self.number.store(number, Ordering::Release); // the load in `has`
    }

    /// Returns whether the value of this number was published.
    #[inline(always)]
    pub(crate) fn has(&self, number: u64) -> bool {
        self.number.load(Ordering::Acquire) == number // the store in `publish`
    }

    /// Reads the value through a pointer.
    ///
    /// # Safety
    /// This rank has seen the number of the value in this cell, or in a cell that was published
    /// later. The writer does not write the cell again before this rank has finished.
    #[inline(always)]
    pub(crate) unsafe fn read<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        self.value.with(read)
    }
}
