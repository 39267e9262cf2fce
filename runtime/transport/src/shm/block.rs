//! [`Block`]: things placed one behind the other in one piece of memory, by all who map it in the same order.

use std::io;
use std::ptr::NonNull;

use crate::shared::slice::{Kept, Placed, Places};
use crate::sync::Arc;

/// Places things one behind the other.
pub(super) struct Block {
    base: *mut u8,
    at: u64,
    end: u64,
    does: Does,
    kept: Kept,
}

/// What placing does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It counts bytes only.
    Measure,
    /// It writes values.
    Write,
    /// It finds the values that another has written.
    Find,
}

/// Everything begins on a multiple of this.
const ALIGN: u64 = 128;

impl Block {
    /// How many bytes the things take that `place` places.
    pub(super) fn measure<R>(place: impl FnOnce(&mut Self) -> io::Result<R>) -> io::Result<u64> {
        let base = ALIGN as *mut u8;
        let mut block = Self { base, at: 0, end: u64::MAX, does: Does::Measure, kept: Arc::new(()) };
        place(&mut block)?;
        Ok(block.at)
    }

    /// Write values into the `bytes` bytes from `base` on.
    ///
    /// # Safety
    /// They are the caller's alone, on a multiple of 128, and stay while `kept` does.
    pub(super) unsafe fn fresh(base: *mut u8, bytes: u64, kept: Kept) -> Self {
        Self { base, at: 0, end: bytes, does: Does::Write, kept }
    }

    /// Find what was written there.
    ///
    /// # Safety
    /// The same things were placed there in the same order, this thread has learnt of it by acquiring, and they stay
    /// while `kept` does.
    pub(super) unsafe fn again(base: *mut u8, bytes: u64, kept: Kept) -> Self {
        Self { base, at: 0, end: bytes, does: Does::Find, kept }
    }
}

impl Places for Block {
    fn place<T: Send + Sync + 'static>(
        &mut self,
        len: usize,
        mut make: impl FnMut() -> T,
    ) -> io::Result<Placed<T>> {
        const { assert!(align_of::<T>() <= ALIGN as usize && !std::mem::needs_drop::<T>()) };
        let at = self.at;
        let bytes = (len as u64).checked_mul(size_of::<T>() as u64).ok_or(io::ErrorKind::OutOfMemory)?;
        let end = at.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(ALIGN));
        self.at = end.filter(|&end| end <= self.end).ok_or(io::ErrorKind::OutOfMemory)?;
        if self.does == Does::Measure {
            // SAFETY: there are none.
            return Ok(unsafe { Placed::new(NonNull::dangling(), 0, Arc::clone(&self.kept)) });
        }
        let first = NonNull::new(self.base.wrapping_add(at as usize).cast::<T>());
        let first = first.ok_or(io::ErrorKind::OutOfMemory)?;
        if self.does == Does::Write {
            for i in 0..len {
                // SAFETY: in the block, which nobody else knows yet.
                unsafe { first.add(i).write(make()) };
            }
        }
        // SAFETY: written just now, or by another before this one learnt of it.
        Ok(unsafe { Placed::new(first, len, Arc::clone(&self.kept)) })
    }
}
