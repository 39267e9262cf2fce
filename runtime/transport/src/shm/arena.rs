//! [`Arena`]: one rank's part of the segment, from which only that rank allocates.
//!
//! The owner alone records which bytes are free, in memory outside of the segment. So a rank that
//! dies leaves no record in the segment half changed. Pages are reserved from the machine before
//! they are used, and returned when they are free. Some free pages are kept, since getting a fresh
//! page costs ten times as much as copying a page. Small allocations have sizes that are powers of
//! two, and are cut from slabs that are never returned.

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use crate::budget::MemoryShortage;
use crate::shared::slice::{Placement, SharedSlice};
use crate::shm::extents::Extents;
use crate::shm::mapping::{LARGE_PAGE, Mapping, PAGE, limit_of_arena};
#[cfg(target_arch = "x86_64")]
use crate::watch::Pages;

/// The sizes of small allocations are `SMALLEST << class`.
const SMALLEST: u64 = 128;
const CLASSES: usize = 8;
const LARGEST: u64 = SMALLEST << (CLASSES - 1);

/// The size of the largest slabs of small allocations. The first slab of a class is a page. Each
/// further slab is twice as large as the previous one. The first slabs are small because most ranks
/// of a large job make few allocations.
const SLAB: u64 = 4 * LARGEST;

/// The largest total size of the free pages that are kept, in bytes.
const MAX_DIRTY: u64 = 64 << 20;

/// One rank's part of the segment.
pub struct Arena {
    mapping: Arc<Mapping>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Free pages that are not reserved: new pages, and pages that were returned to the machine.
    /// They are zero when they are reserved.
    clean: Extents,
    /// Free pages that are kept. Their contents are arbitrary.
    dirty: Extents,
    /// Free small allocations, by class.
    small: [Vec<u64>; CLASSES],
    /// The size of the last slab, by class, or 0 before the first.
    slabs: [u64; CLASSES],
}

/// Bytes of an arena, which are freed when this is dropped. No other rank may read them by then.
pub struct Allocation {
    arena: Arc<Arena>,
    /// The offset from the beginning of the segment.
    offset: u64,
    bytes: u64,
}

impl Arena {
    /// Creates the arena over these bytes of the segment.
    pub(super) fn new(mapping: Arc<Mapping>, offset: u64, bytes: u64) -> Self {
        let mut state = State::default();
        state.clean.insert(offset, bytes);
        Self { mapping, state: Mutex::new(state) }
    }

    /// Allocates `bytes` bytes, aligned to 128. Allocations of 2 MiB and more are aligned to 2 MiB.
    /// If such an allocation is also zeroed, as for a window, pages of that size back it.
    ///
    /// # Errors
    /// Fails if there is not enough memory, with the size requested and the size available.
    pub(crate) fn allocate(self: &Arc<Self>, bytes: u64, zeroed: bool) -> Result<Allocation, MemoryShortage> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (offset, zero) = match class(bytes) {
            Some(class) => (state.small(class, &self.mapping)?, false),
            None => state.pages(pages(bytes), &self.mapping)?,
        };
        drop(state);
        let allocation = Allocation { arena: Arc::clone(self), offset, bytes };
        if zeroed && bytes >= LARGE_PAGE {
            self.mapping.back_with_large_pages(offset, bytes);
        }
        if zeroed && !zero {
            // SAFETY: `bytes` bytes that were just allocated.
            unsafe { allocation.base().write_bytes(0, bytes as usize) };
        }
        Ok(allocation)
    }

    /// Returns whether these bytes are in the segment.
    pub(crate) fn has(&self, bytes: &[u8]) -> bool {
        self.mapping.holds(bytes.as_ptr(), bytes.len())
    }

    /// Returns how many free bytes are not reserved, and how many are kept.
    #[cfg(test)]
    fn free(&self) -> (u64, u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.clean.total(), state.dirty.total())
    }
}

/// Returns the class of small allocations for `bytes` bytes, or `None` for a large allocation.
fn class(bytes: u64) -> Option<usize> {
    // Lazy, because above 2^63 there is no next power of two.
    (bytes <= LARGEST).then(|| (bytes.max(SMALLEST).next_power_of_two() / SMALLEST).trailing_zeros() as usize)
}

fn pages(bytes: u64) -> u64 {
    bytes.saturating_add(PAGE - 1) / PAGE * PAGE
}

impl State {
    fn small(&mut self, class: usize, mapping: &Mapping) -> Result<u64, MemoryShortage> {
        if let Some(offset) = self.small[class].pop() {
            return Ok(offset);
        }
        let size = SMALLEST << class;
        let bytes = (2 * self.slabs[class]).min(SLAB).max(size).max(PAGE);
        let (slab, _) = self.pages(bytes, mapping)?;
        self.slabs[class] = bytes;
        self.small[class].extend((1..bytes / size).rev().map(|i| slab + i * size));
        Ok(slab)
    }

    /// Takes whole pages that the machine has granted. Also returns whether they are zero.
    fn pages(&mut self, bytes: u64, mapping: &Mapping) -> Result<(u64, bool), MemoryShortage> {
        let align = if bytes < LARGE_PAGE { PAGE } else { LARGE_PAGE };
        if let Some(offset) = self.dirty.take(bytes, align) {
            return Ok((offset, false));
        }
        let granted = self.clean.take(bytes, align).map(|offset| (offset, mapping.reserve(offset, bytes)));
        match granted {
            Some((offset, Ok(()))) => return Ok((offset, true)),
            Some((offset, Err(shortage))) => {
                self.clean.insert(offset, bytes);
                if self.dirty.total() == 0 {
                    return Err(shortage);
                }
            }
            None => {}
        }
        // The request may fit once kept pages are returned, since these then merge with free pages
        // next to them.
        self.return_pages(mapping);
        let left = self.clean.total();
        // An allocation with less alignment is better than none.
        let offset = self.clean.take(bytes, PAGE).ok_or_else(|| MemoryShortage {
            requested: bytes,
            available: left,
            limit: limit_of_arena(mapping.head.arena),
        })?;
        match mapping.reserve(offset, bytes) {
            Ok(()) => Ok((offset, true)),
            Err(shortage) => {
                self.clean.insert(offset, bytes);
                Err(shortage)
            }
        }
    }

    /// Returns all kept pages to the machine.
    fn return_pages(&mut self, mapping: &Mapping) {
        for (offset, bytes) in self.dirty.drain() {
            if mapping.return_pages(offset, bytes) {
                self.clean.insert(offset, bytes);
            } else {
                self.dirty.insert(offset, bytes);
            }
        }
    }
}

impl Allocation {
    /// Returns the first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.arena.mapping.at(self.offset)
    }

    /// Maps the pages of these bytes a second time. Also returns the offset of the bytes in the
    /// first page. Other bytes of these pages are not accessed through the second mapping.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn map_again(&self) -> io::Result<(Pages, usize)> {
        let before = self.offset % PAGE;
        let pages =
            Pages::of(&self.arena.mapping.file, self.offset - before, (before + self.bytes) as usize)?;
        Ok((pages, before as usize))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let mut state = self.arena.state.lock().unwrap_or_else(PoisonError::into_inner);
        match class(self.bytes) {
            Some(class) => state.small[class].push(self.offset),
            None => {
                state.dirty.insert(self.offset, pages(self.bytes));
                if state.dirty.total() > MAX_DIRTY && !self.arena.mapping.keeps_pages() {
                    state.return_pages(&self.arena.mapping);
                }
            }
        }
    }
}

/// A placement of values in an arena, each slice in an allocation of its own.
pub(super) struct ArenaPlacement(pub(super) Arc<Arena>);

impl Placement for ArenaPlacement {
    fn place<T: Send + Sync + 'static>(
        &mut self,
        len: usize,
        mut make: impl FnMut() -> T,
    ) -> io::Result<SharedSlice<T>> {
        const { assert!(align_of::<T>() <= SMALLEST as usize && !std::mem::needs_drop::<T>()) };
        let allocation = self.0.allocate((len * size_of::<T>()) as u64, false)?;
        let first = NonNull::new(allocation.base().cast::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        for i in 0..len {
            // SAFETY: the allocation has room for `len` values, aligned to 128.
            unsafe { first.add(i).write(make()) };
        }
        // SAFETY: the values were just written, and exist as long as the allocation.
        Ok(unsafe { SharedSlice::new(first, len, Arc::new(allocation)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::Segment;
    use proptest::prelude::*;

    fn arena() -> Arc<Arena> {
        Segment::create(1).unwrap().arena(0)
    }

    fn fill(allocation: &Allocation, value: u8) {
        // SAFETY: the allocation's own bytes.
        unsafe { allocation.base().write_bytes(value, allocation.bytes as usize) };
    }

    fn holds(allocation: &Allocation, value: u8) -> bool {
        // SAFETY: the allocation's own bytes, written or zero.
        let bytes = unsafe { std::slice::from_raw_parts(allocation.base(), allocation.bytes as usize) };
        bytes.iter().all(|&byte| byte == value)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn allocations_are_disjoint_keep_their_contents_and_are_zeroed_on_request(
            steps in prop::collection::vec((0u64..100_000, any::<prop::sample::Index>(), 0..3), 1..60),
        ) {
            let arena = arena();
            let mut allocations: Vec<(Allocation, u8)> = Vec::new();
            for (n, (bytes, which, step)) in steps.into_iter().enumerate() {
                if step == 0 && !allocations.is_empty() {
                    let (allocation, value) = allocations.swap_remove(which.index(allocations.len()));
                    prop_assert!(holds(&allocation, value));
                    continue;
                }
                let allocation = arena.allocate(bytes >> (n % 8), step == 1).unwrap();
                prop_assert!((allocation.base() as usize).is_multiple_of(128));
                prop_assert!(step != 1 || holds(&allocation, 0));
                fill(&allocation, n as u8 + 1);
                allocations.push((allocation, n as u8 + 1));
            }
            for (allocation, value) in &allocations {
                prop_assert!(holds(allocation, *value));
            }
        }
    }

    #[test]
    fn a_large_allocation_is_aligned_to_a_large_page_and_zeroed_where_it_was_used_before() {
        let arena = arena();
        for turn in 0..3 {
            let small = arena.allocate(PAGE, false).unwrap();
            let large = arena.allocate(3 * LARGE_PAGE + 100, true).unwrap();
            let next = arena.allocate(LARGE_PAGE, true).unwrap();
            for allocation in [&large, &next] {
                assert!((allocation.base() as u64).is_multiple_of(LARGE_PAGE));
                assert!(holds(allocation, 0), "turn {turn}");
                fill(allocation, 7);
            }
            assert!(holds(&large, 7) && holds(&next, 7));
            drop(small);
        }
    }

    #[test]
    fn free_pages_beyond_the_kept_ones_are_returned_to_the_machine() {
        let arena = arena();
        let (all, _) = arena.free();
        let allocations: Vec<Allocation> =
            (0..5).map(|_| arena.allocate(MAX_DIRTY / 4, false).unwrap()).collect();
        allocations.iter().for_each(|allocation| fill(allocation, 7));
        assert_eq!(arena.free(), (all - 5 * MAX_DIRTY / 4, 0));
        drop(allocations);
        assert_eq!(arena.free(), (all, 0));
        let allocation = arena.allocate(MAX_DIRTY / 4, true).unwrap();
        assert!(holds(&allocation, 0));
        drop(allocation);
        assert_eq!(arena.free(), (all - MAX_DIRTY / 4, MAX_DIRTY / 4));
    }

    #[test]
    fn pages_that_were_used_are_not_returned_once_all_are_kept() {
        let segment = Segment::create(1).unwrap();
        segment.keep_pages();
        let arena = segment.arena(0);
        let (all, _) = arena.free();
        let four = || (0..4).map(|_| arena.allocate(MAX_DIRTY / 2, true).unwrap()).collect::<Vec<_>>();
        let allocations = four();
        allocations.iter().for_each(|allocation| fill(allocation, 7));
        drop(allocations);
        assert_eq!(arena.free(), (all - 2 * MAX_DIRTY, 2 * MAX_DIRTY));
        let again = four();
        assert!(again.iter().all(|allocation| holds(allocation, 0)));
        assert_eq!(arena.free(), (all - 2 * MAX_DIRTY, 0), "they are used again");
    }

    #[test]
    fn a_request_beyond_what_is_available_is_refused_with_both_sizes_and_costs_nothing() {
        let arena = arena();
        let before = arena.free();
        for bytes in [u64::MAX, (1 << 63) + 63, (1 << 63) - 1, 1 << 62, 1 << 45, before.0 + PAGE] {
            let shortage = arena.allocate(bytes, true).err().unwrap();
            assert_eq!(shortage.requested, pages(bytes));
            assert!(shortage.available < bytes && !shortage.limit.is_empty(), "{shortage}");
        }
        // `before.0` bytes are all of the machine's memory.
        let shortage = arena.allocate(before.0, false).err().unwrap();
        assert!(shortage.available < before.0, "{shortage}");
        assert_eq!(arena.free(), before);
        drop(arena.allocate(100_000, false).unwrap());
    }
}
