//! Large pages: memory of windows that is backed by pages of [`LARGE_PAGE`] bytes, if the kernel
//! has them. A stencil over such memory has fewer TLB misses, and takes 0.7 to 0.85 times as long.
//!
//! A kernel that has no large pages, or is configured not to provide any, backs the memory like any
//! other memory.

use std::ptr::NonNull;

/// The size of a large page in bytes. Zeroed memory of at least this size is aligned to this size.
pub(crate) const LARGE_PAGE: usize = 2 << 20;

/// Asks the kernel to back this memory with large pages, as many as fit in it, when the memory is
/// touched for the first time. `first` is aligned to a large page.
pub(crate) fn prefer(first: NonNull<u8>, len: usize) {
    let whole = len - len % LARGE_PAGE;
    // SAFETY: the advice changes only which pages back the memory. The contents, and the threads
    // that may access them, stay the same.
    let _ = unsafe { rustix::mm::madvise(first.as_ptr().cast(), whole, rustix::mm::Advice::LinuxHugepage) };
}

/// Makes the kernel back this memory with large pages, as many as fit in it. `first` is aligned to
/// a large page. The memory may have contents, which are copied. Pages that are already large do
/// not change. A kernel older than 6.1 changes no pages, because it does not know the advice.
pub(crate) fn collapse(first: NonNull<u8>, len: usize) {
    const COLLAPSE: std::ffi::c_int = 25;
    unsafe extern "C" {
        fn madvise(first: *mut std::ffi::c_void, bytes: usize, advice: std::ffi::c_int) -> std::ffi::c_int;
    }
    let whole = len - len % LARGE_PAGE;
    if whole > 0 {
        // SAFETY: as above; threads that access the memory meanwhile wait for the kernel.
        let _ = unsafe { madvise(first.as_ptr().cast(), whole, COLLAPSE) };
    }
}
