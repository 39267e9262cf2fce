//! [`SharedSlice`]: values that ranks share. They are on the heap if the ranks are threads of one
//! process, and otherwise in memory that their processes map at the same address.
//!
//! Notifications, queues, wakers and the membership table consist of these slices only. The values
//! in these slices contain nothing that is valid in one process only, such as references or locks.
//! So the code that uses them is the same for both kinds of memory.

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::sync::Arc;

/// A handle that keeps memory alive while a clone of it exists.
pub type KeepAlive = Arc<dyn Send + Sync>;

/// A list of values that several ranks share. A clone refers to the same list.
pub struct SharedSlice<T> {
    first: NonNull<T>,
    len: usize,
    kept: KeepAlive,
}

// SAFETY: a slice is a shared reference to its values, and keeps them alive.
unsafe impl<T: Send + Sync> Send for SharedSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for SharedSlice<T> {}

impl<T> SharedSlice<T> {
    /// Returns the `len` values that start at `first`, kept alive by `kept`.
    ///
    /// # Safety
    /// While a clone of `kept` exists, the values are valid, and there is no `&mut` reference to
    /// them.
    #[cfg_attr(loom, expect(dead_code, reason = "only segments have memory of their own"))]
    pub(crate) unsafe fn new(first: NonNull<T>, len: usize, kept: KeepAlive) -> Self {
        Self { first, len, kept }
    }

    /// Returns the value that keeps the slice alive.
    pub(crate) fn into_kept(self) -> KeepAlive {
        self.kept
    }

    /// Returns the address of the first value, in the form in which this rank reports it to other
    /// ranks.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        self.first.as_ptr() as u64
    }
}

impl<T> Clone for SharedSlice<T> {
    fn clone(&self) -> Self {
        Self { first: self.first, len: self.len, kept: Arc::clone(&self.kept) }
    }
}

impl<T> Deref for SharedSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the caller of `new` promised that the values are valid, and `kept` is alive.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

/// An allocator of shared slices.
pub trait Placement {
    /// Places `len` values, created one by one.
    ///
    /// # Errors
    /// Fails if there is no room.
    fn place<T: Send + Sync + 'static>(
        &mut self,
        len: usize,
        make: impl FnMut() -> T,
    ) -> io::Result<SharedSlice<T>>;
}

/// The heap of this process, which always has room.
pub struct Heap;

impl Heap {
    pub(crate) fn list<T: Send + Sync + 'static>(len: usize, mut make: impl FnMut() -> T) -> SharedSlice<T> {
        let kept: Arc<Box<[T]>> = Arc::new((0..len).map(|_| make()).collect());
        let first = NonNull::from(&**kept).cast();
        SharedSlice { first, len, kept }
    }
}

impl Placement for Heap {
    fn place<T: Send + Sync + 'static>(
        &mut self,
        len: usize,
        make: impl FnMut() -> T,
    ) -> io::Result<SharedSlice<T>> {
        Ok(Self::list(len, make))
    }
}
