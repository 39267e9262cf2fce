//! An allocator that counts allocations for each thread and for the whole process. It refuses
//! requests beyond the limit of a thread.
//!
//! A test program declares the allocator by `#[global_allocator] static ALLOCATOR: Counting =
//! Counting;`

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The system's allocator, with counts.
#[derive(Debug)]
pub struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static OF_THREAD: OfThread = const {
        OfThread { allocations: Cell::new(0), live: Cell::new(0), peak: Cell::new(0), most: Cell::new(usize::MAX) }
    };
}

/// The account of a thread's allocations. It is never dropped, and never allocates.
struct OfThread {
    allocations: Cell<u64>,
    /// The bytes that this thread has allocated, less the bytes that it has freed.
    live: Cell<isize>,
    /// The maximum of `live`.
    peak: Cell<isize>,
    /// The largest allocation that is granted, in bytes.
    most: Cell<usize>,
}

/// Returns the number of allocations that this thread has made.
pub fn allocations() -> u64 {
    OF_THREAD.with(|thread| thread.allocations.get())
}

/// Returns the number of allocations that the process has made.
pub fn allocations_of_process() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Returns the number of bytes that the process holds.
pub fn live_of_process() -> i64 {
    LIVE.load(Ordering::Relaxed)
}

/// Calls `act`. Returns its result, and the largest number of bytes that this thread held during
/// the call in addition to those that it held before.
pub fn peak<R>(act: impl FnOnce() -> R) -> (R, isize) {
    let before = OF_THREAD.with(|thread| {
        thread.peak.set(thread.live.get());
        thread.live.get()
    });
    let result = act();
    (result, OF_THREAD.with(|thread| thread.peak.get()) - before)
}

/// Calls `act` and returns its result. During the call, this thread gets no allocation of more than
/// `most` bytes.
pub fn with_at_most<R>(most: usize, act: impl FnOnce() -> R) -> R {
    OF_THREAD.with(|thread| thread.most.set(most));
    let result = act();
    OF_THREAD.with(|thread| thread.most.set(usize::MAX));
    result
}

fn is_refused(size: usize) -> bool {
    OF_THREAD.with(|thread| size > thread.most.get())
}

fn allocated(size: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    LIVE.fetch_add(size as i64, Ordering::Relaxed);
    OF_THREAD.with(|thread| {
        thread.allocations.set(thread.allocations.get() + 1);
        thread.live.set(thread.live.get() + size as isize);
        thread.peak.set(thread.peak.get().max(thread.live.get()));
    });
}

fn freed(size: usize) {
    LIVE.fetch_sub(size as i64, Ordering::Relaxed);
    OF_THREAD.with(|thread| thread.live.set(thread.live.get() - size as isize));
}

// SAFETY: a request that is not refused is passed on to the system's allocator unchanged, and a
// refusal is a null pointer. The cells of a thread have no destructor, so the allocator can count
// in them until the thread has ended.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return null_mut();
        }
        allocated(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return null_mut();
        }
        allocated(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size) {
            return null_mut();
        }
        // Both blocks may exist for a moment.
        allocated(size);
        // SAFETY: the caller keeps the contract of `realloc`.
        let moved = unsafe { System.realloc(block, layout, size) };
        freed(if moved.is_null() { size } else { layout.size() });
        moved
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}
