//! [`Placed`]: what ranks share lies on the heap of their process, or in memory that their processes map alike.
//!
//! Letters, queues, bells and the roll are made of these only, and of nothing that means something in one process alone:
//! no reference, no lock. So they are the same code wherever they lie.

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::sync::Arc;

/// What keeps memory alive while there is a clone of it.
pub type Kept = Arc<dyn Send + Sync>;

/// A list of values that several ranks share. A clone is the same list.
pub struct Placed<T> {
    first: NonNull<T>,
    len: usize,
    kept: Kept,
}

// SAFETY: it is a shared reference to its values, and keeps them alive.
unsafe impl<T: Send + Sync> Send for Placed<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Placed<T> {}

impl<T> Placed<T> {
    /// The `len` values from `first` on, for as long as `kept` is.
    ///
    /// # Safety
    /// They are valid, and nobody has them by `&mut`, while a clone of `kept` lives.
    #[cfg_attr(loom, expect(dead_code, reason = "only segments have memory of their own"))]
    pub(crate) unsafe fn new(first: NonNull<T>, len: usize, kept: Kept) -> Self {
        Self { first, len, kept }
    }

    /// What keeps them alive.
    pub(crate) fn into_kept(self) -> Kept {
        self.kept
    }

    /// Where they begin, as it is told to other ranks.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        self.first.as_ptr() as u64
    }
}

impl<T> Clone for Placed<T> {
    fn clone(&self) -> Self {
        Self { first: self.first, len: self.len, kept: Arc::clone(&self.kept) }
    }
}

impl<T> Deref for Placed<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: as `new` was promised, and `kept` lives.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

/// Something that places values.
pub trait Places {
    /// `len` values, made one by one.
    ///
    /// # Errors
    /// There is no room.
    fn place<T: Send + Sync + 'static>(
        &mut self,
        len: usize,
        make: impl FnMut() -> T,
    ) -> io::Result<Placed<T>>;
}

/// The heap of this process, which never has no room.
pub struct Heap;

impl Heap {
    pub(crate) fn list<T: Send + Sync + 'static>(len: usize, mut make: impl FnMut() -> T) -> Placed<T> {
        let kept: Arc<Box<[T]>> = Arc::new((0..len).map(|_| make()).collect());
        let first = NonNull::from(&**kept).cast();
        Placed { first, len, kept }
    }
}

impl Places for Heap {
    fn place<T: Send + Sync + 'static>(
        &mut self,
        len: usize,
        make: impl FnMut() -> T,
    ) -> io::Result<Placed<T>> {
        Ok(Self::list(len, make))
    }
}
