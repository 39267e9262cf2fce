//! [`Region`]: the raw memory of one rank's part of a window, and what that rank has collected for its fence.
//!
//! A region is freed when every rank has dropped the window, so dropping is local and never waits, and no destructor is
//! needed for soundness. Where ranks share values it is reference counted among them; where they only reach its memory,
//! it begins with a count of those who have let go.

use crate::collect::outbox::Outbox;
use fencepost_transport::{Bytes, Done, Memory};
use std::alloc::{Layout, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes before the elements: a cache line, of which the first word counts the ranks that have let go.
const HEAD: usize = 64;

/// One rank's part of a window.
pub(crate) struct Region {
    /// `None` only while it is being dropped.
    memory: Option<Bytes>,
    base: NonNull<u8>,
    /// `[set][target]`, two sets used in turn. Raw, because other ranks read one set while the owner fills the other.
    outboxes: NonNull<Outbox>,
    ranks: usize,
}

// SAFETY: a region is plain memory. The fence decides which rank touches what, and when: window elements are touched by
// others only between the owner's entry into a fence and its leaving it (W1), and outboxes of a set are read by others
// only between the owner's notification and the reader's next notification, while the owner fills the other set (W4).
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// `bytes` zeroed bytes, for a world of `ranks`.
    ///
    /// # Errors
    /// There is no such memory.
    pub(crate) fn new(bytes: usize, ranks: usize, memory: &Memory) -> io::Result<Self> {
        let all = bytes.checked_add(HEAD).ok_or(io::ErrorKind::OutOfMemory)?;
        let elements = memory.zeroed(all)?;
        // SAFETY: there are `HEAD` bytes and more.
        let base = unsafe { NonNull::new_unchecked(elements.base().add(HEAD)) };
        let boxes: Box<[Outbox]> = (0..2 * ranks).map(|_| Outbox::new(memory)).collect();
        let outboxes = NonNull::new(Box::into_raw(boxes).cast::<Outbox>())
            .unwrap_or_else(|| handle_alloc_error(Layout::new::<Outbox>()));
        Ok(Self { memory: Some(elements), base, outboxes, ranks })
    }

    /// A region of no rank.
    pub(crate) fn none() -> Self {
        Self { memory: None, base: NonNull::dangling(), outboxes: NonNull::dangling(), ranks: 0 }
    }

    /// The first byte.
    #[inline]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The outbox of `set` for `target`.
    #[inline]
    pub(crate) fn outbox(&self, set: usize, target: usize) -> *mut Outbox {
        debug_assert!(set < 2 && target < self.ranks);
        // SAFETY: there are `2 * ranks` outboxes, and the caller gives one of two sets and a rank of the world.
        unsafe { self.outboxes.as_ptr().add(set * self.ranks + target) }
    }

    /// The memory, that of records and of their elements too, and a function that returns whether `reaching` ranks have let go of it: as many as
    /// reach it and have the window.
    pub(crate) fn into_memory(mut self, reaching: usize) -> Option<(Vec<Bytes>, Done)> {
        let base = self.base.as_ptr() as usize;
        let let_go = move || {
            // SAFETY: the caller holds the memory while it asks, so the memory exists.
            unsafe { count(base as *mut u8) }.load(Ordering::Acquire) // the add in `let_go`
        };
        let done = move || let_go() as usize >= reaching;
        let logs = (0..2 * self.ranks).flat_map(|outbox| {
            // SAFETY: there are as many outboxes, and nobody else has a reference any more.
            let outbox = unsafe { &mut *self.outboxes.as_ptr().add(outbox) };
            [outbox.records.take_memory(), outbox.bytes.take_memory()]
        });
        let memory: Vec<Bytes> = logs.flatten().collect();
        Some((self.memory.take().into_iter().chain(memory).collect(), Box::new(done)))
    }
}

/// How many ranks have let go of the region whose elements begin at `base`.
///
/// # Safety
/// There is such a region, and it stays while the reference lives.
unsafe fn count<'a>(base: *mut u8) -> &'a AtomicU32 {
    // SAFETY: `HEAD` bytes before the elements, zero at first and touched by nothing else.
    unsafe { &*base.sub(HEAD).cast() }
}

/// This rank has dropped the window of which the elements at `base` are a part.
///
/// # Safety
/// The region is reached from here, and this rank has not let go of it yet.
pub(crate) unsafe fn let_go(base: *mut u8) {
    // SAFETY: its owner keeps it until all have let go.
    unsafe { count(base) }.fetch_add(1, Ordering::Release); // the load in `into_memory`
}

impl Drop for Region {
    fn drop(&mut self) {
        let boxes = std::ptr::slice_from_raw_parts_mut(self.outboxes.as_ptr(), 2 * self.ranks);
        // SAFETY: made by `Box::into_raw` of a slice of this length in `new`, and nobody else has a reference any more.
        drop(unsafe { Box::from_raw(boxes) });
    }
}
