//! [`Region`]: the raw memory of one rank's part of a window, and what that rank has collected for its fence.
//!
//! A region is reference counted among the ranks that reach it: it is freed when every rank has dropped the window, so
//! dropping is local and never waits, and no destructor is needed for soundness.

use crate::outbox::Outbox;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Window memory is aligned to a cache line.
const ALIGN: usize = 64;

/// One rank's part of a window.
pub(crate) struct Region {
    base: NonNull<u8>,
    bytes: usize,
    /// `[set][target]`, two sets used in turn. Raw, because other ranks read one set while the owner fills the other.
    outboxes: NonNull<Outbox>,
    ranks: usize,
}

// SAFETY: a region is plain memory. Who touches what and when is the fence's business: window elements are touched by
// others only between the owner's entry into a fence and its leaving it (W1), and outboxes of a set are read by others
// only between the owner's letter and the reader's next letter, while the owner fills the other set (W4).
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// `bytes` zeroed bytes, for a world of `ranks`. `None` where there is no such memory.
    pub(crate) fn new(bytes: usize, ranks: usize) -> Option<Self> {
        let base = if bytes == 0 {
            NonNull::new(ALIGN as *mut u8)?
        } else {
            let layout = Layout::from_size_align(bytes, ALIGN).ok()?;
            // SAFETY: the layout has a size that is not zero.
            NonNull::new(unsafe { alloc_zeroed(layout) })?
        };
        let boxes: Box<[Outbox]> = (0..2 * ranks).map(|_| Outbox::default()).collect();
        let outboxes = NonNull::new(Box::into_raw(boxes).cast::<Outbox>())
            .unwrap_or_else(|| handle_alloc_error(Layout::new::<Outbox>()));
        Some(Self { base, bytes, outboxes, ranks })
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
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let layout = Layout::from_size_align(self.bytes, ALIGN).expect("the layout it was made with");
            // SAFETY: allocated in `new` with this layout, freed once.
            unsafe { dealloc(self.base.as_ptr(), layout) };
        }
        let boxes = std::ptr::slice_from_raw_parts_mut(self.outboxes.as_ptr(), 2 * self.ranks);
        // SAFETY: made by `Box::into_raw` of a slice of this length in `new`, and nobody else has a reference any more.
        drop(unsafe { Box::from_raw(boxes) });
    }
}
