//! [`Block`]: values that are placed one after the other in one allocation. All ranks that map the
//! allocation place them in the same order.

use std::io;
use std::ptr::NonNull;

use crate::shared::slice::{KeepAlive, Placement, SharedSlice};
use crate::sync::Arc;

/// A placement of values one after the other.
pub(super) struct Block {
    base: *mut u8,
    at: u64,
    end: u64,
    mode: BlockMode,
    kept: KeepAlive,
}

/// The mode in which a block is placed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockMode {
    /// Counts bytes only.
    Measure,
    /// Writes values.
    Write,
    /// Finds the values that another rank has written.
    Find,
}

/// The alignment of every value.
const ALIGN: u64 = 128;

impl Block {
    /// Returns the number of bytes of the values that `place` places.
    pub(super) fn measure<R>(place: impl FnOnce(&mut Self) -> io::Result<R>) -> io::Result<u64> {
        let base = ALIGN as *mut u8;
        let mut block = Self { base, at: 0, end: u64::MAX, mode: BlockMode::Measure, kept: Arc::new(()) };
        place(&mut block)?;
        Ok(block.at)
    }

    /// Writes values into the `bytes` bytes that start at `base`.
    ///
    /// # Safety
    /// Only the caller accesses the bytes. They are aligned to 128, and exist as long as `kept`.
    pub(super) unsafe fn fresh(base: *mut u8, bytes: u64, kept: KeepAlive) -> Self {
        Self { base, at: 0, end: bytes, mode: BlockMode::Write, kept }
    }

    /// Finds the values that were written at `base`.
    ///
    /// # Safety
    /// Another rank has placed the same values there in the same order, and they exist as long as
    /// `kept`. This thread has observed the placement by an Acquire load.
    pub(super) unsafe fn again(base: *mut u8, bytes: u64, kept: KeepAlive) -> Self {
        Self { base, at: 0, end: bytes, mode: BlockMode::Find, kept }
    }
}

impl Placement for Block {
    fn place<T: Send + Sync + 'static>(
        &mut self,
        len: usize,
        mut make: impl FnMut() -> T,
    ) -> io::Result<SharedSlice<T>> {
        const { assert!(align_of::<T>() <= ALIGN as usize && !std::mem::needs_drop::<T>()) };
        let at = self.at;
        let bytes = (len as u64).checked_mul(size_of::<T>() as u64).ok_or(io::ErrorKind::OutOfMemory)?;
        let end = at.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(ALIGN));
        self.at = end.filter(|&end| end <= self.end).ok_or(io::ErrorKind::OutOfMemory)?;
        if self.mode == BlockMode::Measure {
            // SAFETY: the slice is empty.
            return Ok(unsafe { SharedSlice::new(NonNull::dangling(), 0, Arc::clone(&self.kept)) });
        }
        let first = NonNull::new(self.base.wrapping_add(at as usize).cast::<T>());
        let first = first.ok_or(io::ErrorKind::OutOfMemory)?;
        if self.mode == BlockMode::Write {
            for i in 0..len {
                // SAFETY: the value is within the block, which no other rank knows yet.
                unsafe { first.add(i).write(make()) };
            }
        }
        // SAFETY: this rank has just written the values, or another rank had written them before
        // this rank received their address.
        Ok(unsafe { SharedSlice::new(first, len, Arc::clone(&self.kept)) })
    }
}
