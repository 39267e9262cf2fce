//! [`Region`]: the raw memory of one rank's part of a window, and the operations that the rank has
//! collected for its next fence.
//!
//! A region is freed when every rank has dropped the window. So dropping is local and never waits,
//! and soundness does not depend on destructors. If ranks share values, the region is reference
//! counted among them. If ranks do not share values, the ranks that reach each other's memory keep
//! two counts in the region of the first of these ranks. One counts the ranks that have dropped the
//! window. The other counts the ranks that no longer need the first count. So to drop a window, a
//! rank touches the memory of only one other rank.

use crate::collect::log::Log;
use crate::collect::outbox::Outbox;
use crate::kernel::element::Element;
use fencepost_transport::{Bytes, Done, Memory, Record, Watched};
use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The number of bytes before the elements: a cache line, which begins with `Counts`.
const HEAD: usize = 64;

/// The minimum length of a part that begins at an offset from the beginning of a page.
const STAGGERED: usize = 16 << 10;

/// Returns the offset of a part from the beginning of its page, for the window with this number.
///
/// The offsets of the first two windows of a program differ by half a page, and those of any two
/// successive windows by at least a quarter. A processor first compares only the last 12 bits of a
/// load's address with the last 12 bits of the addresses of earlier stores. So a sweep between two
/// fields with the same page offset would wait, in each vector of cells, for stores that it does
/// not read.
fn stagger(bytes: usize, number: u32) -> usize {
    if bytes < STAGGERED { 0 } else { [0, 2048, 1024, 3072][number as usize % 4] }
}

/// Counts in the region of the first of the ranks that reach each other; zero at first.
#[repr(C)]
struct Counts {
    /// The number of ranks that have dropped the window.
    dropped: AtomicU32,
    /// The number of other ranks that have seen that all ranks have dropped the window. These ranks
    /// no longer read the counts.
    seen: AtomicU32,
}

/// One rank's part of a window.
pub(crate) struct Region {
    /// `None` once the memory was given away. Only the owner of the region and the code that drops
    /// the region touch this field.
    memory: UnsafeCell<Option<Bytes>>,
    /// Whether the memory is that of a vector. In that case only ranks that share values reach it,
    /// and there are no `Counts`.
    is_adopted: bool,
    /// Whether the memory must not be given away, because some of it was lent to a transport
    /// permanently.
    stays: AtomicBool,
    base: NonNull<u8>,
    /// A second mapping of the elements, if loads of the elements are observed. Only the owner's
    /// program accesses the elements through this mapping.
    watched: Option<Watched>,
    /// The outboxes, as `[set][target]`. The two sets are used in turn. The pointer is raw, because
    /// other ranks read one set while the owner fills the other.
    outboxes: NonNull<Outbox>,
    /// Whether each outbox is made, in the order of `outboxes`. An outbox is made when something is
    /// collected for its target. With many ranks, most ranks have something for only a few others,
    /// and untouched pages take no memory.
    made: Box<[UnsafeCell<bool>]>,
    /// The empty outbox that is read in place of outboxes that are not made.
    nothing: Box<Outbox>,
    /// The memory of records, and of their elements.
    logs: Memory,
    ranks: usize,
}

// SAFETY: a region is plain memory. The fence decides which rank touches what, and when. Other
// ranks touch window elements only after the owner has entered a fence and before it leaves the
// fence (W1). They read outboxes of a set only between the owner's notification and the reader's
// next notification, while the owner fills the other set (W4).
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Allocates `bytes` zeroed bytes, for the window with this number in a world of `ranks`.
    ///
    /// # Errors
    /// The memory cannot be allocated.
    pub(crate) fn new(bytes: usize, number: u32, ranks: usize, memory: &Memory) -> io::Result<Self> {
        let first = HEAD + stagger(bytes, number);
        let all = bytes.checked_add(first).ok_or(io::ErrorKind::OutOfMemory)?;
        let elements = memory.zeroed(all)?;
        // SAFETY: there are `first` bytes and more.
        let base = unsafe { NonNull::new_unchecked(elements.base().add(first)) };
        Ok(Self::of(elements, false, base, ranks, memory))
    }

    /// Allocates elements of `size` bytes whose loads by the program can be [watched](Self::watch),
    /// if the system allows it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn watchable(
        bytes: usize,
        size: usize,
        (number, ranks): (u32, usize),
        memory: &Memory,
    ) -> io::Result<Self> {
        let first = HEAD + stagger(bytes, number);
        let all = bytes.checked_add(first).ok_or(io::ErrorKind::OutOfMemory)?;
        let Some((elements, watched)) = memory.watched(all, first, size) else {
            return Self::new(bytes, number, ranks, memory);
        };
        // SAFETY: there are `first` bytes and more.
        let base = unsafe { NonNull::new_unchecked(elements.base().add(first)) };
        let mut region = Self::of(elements, false, base, ranks, memory);
        region.watched = Some(watched);
        Ok(region)
    }

    /// Makes a region of the elements of a vector, in place if the memory allows it, for a world of
    /// `ranks`.
    ///
    /// # Errors
    /// Returns the vector if its elements would have to be copied.
    pub(crate) fn adopt<T: Element>(vec: Vec<T>, ranks: usize, memory: &Memory) -> Result<Self, Vec<T>> {
        let elements = memory.adopt(vec)?;
        let base = NonNull::new(elements.base()).unwrap_or(NonNull::dangling());
        Ok(Self::of(elements, true, base, ranks, memory))
    }

    fn of(elements: Bytes, is_adopted: bool, base: NonNull<u8>, ranks: usize, memory: &Memory) -> Self {
        Self::with(UnsafeCell::new(Some(elements)), is_adopted, base, ranks, memory.clone())
    }

    fn with(
        memory: UnsafeCell<Option<Bytes>>,
        is_adopted: bool,
        base: NonNull<u8>,
        ranks: usize,
        logs: Memory,
    ) -> Self {
        let boxes = Box::into_raw(Box::<[Outbox]>::new_uninit_slice(2 * ranks)).cast::<Outbox>();
        Self {
            memory,
            is_adopted,
            stays: AtomicBool::new(false),
            base,
            watched: None,
            outboxes: NonNull::new(boxes).unwrap_or(NonNull::dangling()), // it is not null
            made: (0..2 * ranks).map(|_| UnsafeCell::new(false)).collect(),
            nothing: Box::new(Outbox::new(&Memory::heap())),
            logs,
            ranks,
        }
    }

    /// Returns whether the elements are those of a vector, in place.
    pub(crate) fn is_adopted(&self) -> bool {
        self.is_adopted
    }

    /// Keeps the memory from being given away, from here on.
    pub(crate) fn stay_for_good(&self) {
        self.stays.store(true, Ordering::Relaxed);
    }

    /// Gives away the vector that holds these elements, if the region was made of a vector and its
    /// memory may be given away.
    ///
    /// # Safety
    /// The caller is the owner, and no rank accesses the elements from here on, as if the window
    /// had been dropped.
    pub(crate) unsafe fn take_vec<T: Element>(&self) -> Option<Vec<T>> {
        // SAFETY: only the owner touches this field while the region is shared.
        let memory = unsafe { &mut *self.memory.get() };
        let taken = memory.take_if(|_| self.is_adopted && !self.stays.load(Ordering::Relaxed))?;
        taken.into_vec().map_err(|bytes| *memory = Some(bytes)).ok()
    }

    /// Returns an empty region, which belongs to no rank.
    pub(crate) fn none() -> Self {
        Self::with(UnsafeCell::new(None), true, NonNull::dangling(), 0, Memory::heap())
    }

    /// Returns the address of the first byte.
    #[inline]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Returns the address at which the owner's program accesses the elements. No other code
    /// accesses them there: see [`watch`](Self::watch).
    pub(crate) fn lent(&self) -> *mut u8 {
        self.watched.as_ref().map_or(self.base(), Watched::base)
    }

    /// Begins to observe loads of the elements by the program, and forgets the loads seen before.
    /// Returns whether loads can be observed.
    pub(crate) fn watch(&self) -> bool {
        self.watched.as_ref().is_some_and(Watched::begin)
    }

    /// Stops observing loads.
    #[inline]
    pub(crate) fn open(&self) {
        if let Some(watched) = &self.watched {
            watched.open();
        }
    }

    /// Returns the elements whose loads were seen since [`watch`](Self::watch), as ascending runs.
    pub(crate) fn loaded(&self) -> Vec<Range<usize>> {
        self.watched.as_ref().map(Watched::loaded).unwrap_or_default()
    }

    /// Returns the outbox of `set` for `target`, for reading.
    #[inline]
    pub(crate) fn outbox(&self, set: usize, target: usize) -> *const Outbox {
        self.made_outbox(set, target).map_or(&raw const *self.nothing, <*mut Outbox>::cast_const)
    }

    /// Returns the outbox of `set` for `target`, if it was made.
    #[inline]
    pub(crate) fn made_outbox(&self, set: usize, target: usize) -> Option<*mut Outbox> {
        debug_assert!(set < 2 && target < self.ranks);
        let at = set * self.ranks + target;
        // SAFETY: as for the outboxes of a set: only the owner makes an outbox, while it fills the
        // set.
        let is_made = unsafe { *self.made[at].get() };
        is_made.then(|| self.place(at))
    }

    /// Returns the outbox of `set` for `target`, and makes it if it was not made. Only the owner,
    /// which fills the set, calls this.
    #[inline]
    pub(crate) fn make_outbox(&self, set: usize, target: usize) -> *mut Outbox {
        self.made_outbox(set, target).unwrap_or_else(|| self.make(set * self.ranks + target))
    }

    #[cold]
    fn make(&self, at: usize) -> *mut Outbox {
        let outbox = self.place(at);
        // SAFETY: only the owner touches the set that it fills. The place is in that set and holds
        // no outbox yet.
        unsafe {
            outbox.write(Outbox::new(&self.logs));
            *self.made[at].get() = true;
        }
        outbox
    }

    /// Returns the place of the outbox with this number, whether it is made or not.
    #[inline]
    fn place(&self, at: usize) -> *mut Outbox {
        debug_assert!(at < 2 * self.ranks);
        // SAFETY: there is room for `2 * ranks` outboxes, and callers look at no other number.
        unsafe { self.outboxes.as_ptr().add(at) }
    }

    /// Returns the outboxes that were made.
    fn all_made(&self) -> impl Iterator<Item = *mut Outbox> {
        (0..2).flat_map(move |set| (0..self.ranks).filter_map(move |target| self.made_outbox(set, target)))
    }

    /// Returns the records of `set` for `target`, for that rank to read.
    ///
    /// # Safety
    /// The owner has counted the records. While the slice is used, the owner does not write or
    /// change any of them, and does not change the set.
    pub(crate) unsafe fn records<'r>(&self, set: usize, target: usize) -> &'r [Record] {
        // SAFETY: there is such an outbox, and the caller guarantees the rest.
        unsafe { Log::read(&raw const (*self.outbox(set, target)).records) }
    }

    /// Returns the memory, including the memory of records and of their elements.
    pub(crate) fn into_memory(mut self) -> Vec<Bytes> {
        let logs = self.all_made().flat_map(|outbox| {
            // SAFETY: the outbox is made, and no other code has a reference any more.
            let outbox = unsafe { &mut *outbox };
            [outbox.records.take_memory(), outbox.bytes.take_memory()]
        });
        let memory: Vec<Bytes> = logs.flatten().collect();
        self.memory.get_mut().take().into_iter().chain(memory).collect()
    }
}

/// Returns the counts in the region whose elements begin at `base`.
///
/// # Safety
/// `base` is the address of the first element of a region with [`Counts`], and the region outlives
/// the reference.
unsafe fn counts<'a>(base: *mut u8) -> &'a Counts {
    // SAFETY: there are `HEAD` bytes before the elements. They are zero at first, and no other code
    // touches them.
    unsafe { &*base.sub(HEAD).cast() }
}

/// Adds this rank to the number of ranks that have dropped a window. This rank's part of the window
/// begins at `own`.
///
/// `reaching` is the number of ranks that reach each other. The counts are in the region of the
/// first of these ranks, whose part begins at `first`. Returns a function that returns whether this
/// rank's part is no longer needed. Once the function has returned true, it must not be called
/// again.
///
/// # Safety
/// This rank reaches the part at `first`, and has not dropped the window before. This rank keeps
/// its own part until the function returns true, or until all these ranks have left the world.
pub(crate) unsafe fn let_go(own: *mut u8, first: *mut u8, reaching: usize) -> Done {
    // SAFETY: the first rank keeps its part until every other rank has seen that all have dropped
    // the window. This rank's last access there adds to the number of ranks that have seen this.
    let of_first = |first: usize| unsafe { counts(first as *mut u8) };
    let (is_first, first, reaching) = (own == first, first as usize, reaching as u32);
    of_first(first).dropped.fetch_add(1, Ordering::Release); // pairs with the load below
    Box::new(move || {
        let counts = of_first(first);
        let dropped = counts.dropped.load(Ordering::Acquire) >= reaching;
        if is_first {
            return dropped && counts.seen.load(Ordering::Acquire) + 1 >= reaching; // pairs with the add below
        }
        if dropped {
            counts.seen.fetch_add(1, Ordering::Release); // pairs with the load above
        }
        dropped
    })
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: these outboxes are made, and no other code has a reference any more.
        self.all_made().for_each(|outbox| unsafe { outbox.drop_in_place() });
        let places = std::ptr::slice_from_raw_parts_mut(self.outboxes.as_ptr(), 2 * self.ranks);
        // SAFETY: `with` made the pointer by `Box::into_raw` of a slice of this length, whose
        // places may hold anything.
        drop(unsafe { Box::from_raw(places as *mut [MaybeUninit<Outbox>]) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_windows_that_are_made_in_a_row_begin_at_different_places_of_their_pages() {
        let places = |bytes: usize| (0..8).map(|number| stagger(bytes, number)).collect::<Vec<_>>();
        assert_eq!(places(STAGGERED - 1), [0; 8], "short ones take no more memory");
        for pair in places(STAGGERED).windows(2) {
            assert!(pair[0].abs_diff(pair[1]) >= 1024 && pair[0].is_multiple_of(HEAD), "{pair:?}");
        }
        let memory = Memory::heap();
        for number in 0..4 {
            let region = Region::new(STAGGERED, number, 1, &memory).expect("memory");
            // SAFETY: the region has this number of bytes, and no code writes them.
            let all = unsafe { std::slice::from_raw_parts(region.base().cast_const(), STAGGERED) };
            assert!(region.base().addr().is_multiple_of(HEAD) && all.iter().all(|&byte| byte == 0));
        }
    }
}
