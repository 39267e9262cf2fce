//! The functions that a build for checking calls before the program loads. LLVM's pass `memprof`
//! determines their names.
//!
//! The pass leaves functions alone whose names begin with `__memprof_`. If one of them called any
//! other function, the loads of that function would call the hooks again. So the hooks call nothing
//! that loads from memory other than the stack, whatever the optimisation and the inlining.

use super::pages::PAGE;
use std::arch::asm;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The number of bytes of the area in which watched memory is mapped. As many bytes of marks follow
/// it, one for each byte of the area.
pub(super) const LEN: usize = 1 << 36;

/// An address whose distance from every other address exceeds the length of the area.
pub(super) const NOWHERE: usize = 1 << 63;

/// The address where the area begins, or [`NOWHERE`].
pub(super) static FIRST: AtomicUsize = AtomicUsize::new(NOWHERE);

// Marks are mapped in whole pages, like the memory that they are for.
const _: () = assert!(LEN.is_multiple_of(PAGE));

/// Returns the mark of the byte at this address, if the address is in the area.
#[inline(always)]
fn mark(address: usize) -> Option<*mut u8> {
    let first: usize;
    // SAFETY: it reads the static, as a relaxed load does. A relaxed load that is not inlined would
    // itself be seen as a load.
    unsafe {
        asm!("mov {}, [rip + {}]", out(reg) first, sym FIRST, options(pure, readonly, nostack, preserves_flags));
    }
    if address.wrapping_sub(first) < LEN { Some(with_exposed_provenance_mut(address + LEN)) } else { None }
}

/// Marks `len` bytes, which the program is about to load together.
#[inline(always)]
unsafe fn mark_all(from: *const u8, len: usize) {
    if let Some(first) = mark(from.addr()) {
        // SAFETY: the program may load all of these bytes, and the first one is in the area. So all
        // of them are in the area, and each has a mark.
        unsafe { libc::memset(first.cast(), 1, len) };
    }
}

#[unsafe(no_mangle)]
extern "C" fn __memprof_load(address: usize) {
    if let Some(mark) = mark(address) {
        // SAFETY: the area has a mark for each byte, which is accessed by atomics while the program
        // runs.
        unsafe { AtomicU8::from_ptr(mark) }.store(1, Ordering::Relaxed);
    }
}

/// Does nothing, because stores by the program are found by comparing contents. The pass calls this
/// for atomic changes, even if it leaves other stores alone.
#[unsafe(no_mangle)]
extern "C" fn __memprof_store(_address: usize) {}

#[unsafe(no_mangle)]
unsafe extern "C" fn __memprof_memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the program is about to copy these bytes, and may do so.
    unsafe {
        mark_all(from, len);
        libc::memmove(to.cast(), from.cast(), len).cast()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __memprof_memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: as above.
    unsafe {
        mark_all(from, len);
        libc::memmove(to.cast(), from.cast(), len).cast()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __memprof_memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    // SAFETY: the program is about to fill these bytes.
    unsafe { libc::memset(to.cast(), byte, len).cast() }
}

/// Eight bytes at any address.
#[repr(C, packed)]
struct Word(u64);

/// Returns how many leading bytes are equal.
#[inline(always)]
unsafe fn equal(a: *const u8, b: *const u8, len: usize) -> usize {
    let mut at = 0;
    // SAFETY: both have as many bytes, by the caller's promise.
    while at + 8 <= len && unsafe { (*a.add(at).cast::<Word>()).0 == (*b.add(at).cast::<Word>()).0 } {
        at += 8;
    }
    // SAFETY: as above.
    while at < len && unsafe { *a.add(at) == *b.add(at) } {
        at += 1;
    }
    at
}

/// Compares bytes. Not inlined, because its name keeps the pass from these loads.
#[unsafe(no_mangle)]
#[inline(never)]
unsafe extern "C" fn __memprof_compare(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: both have as many bytes, by the caller's promise.
    unsafe {
        let equal = equal(a, b, len);
        let loaded = if equal < len { equal + 1 } else { len };
        mark_all(a, loaded);
        mark_all(b, loaded);
        if equal < len { *a.add(equal) as i32 - *b.add(equal) as i32 } else { 0 }
    }
}

/// Compares bytes, in place of the C library's function, which comparisons of slices call. So these
/// loads are seen.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: the same promise.
    unsafe { __memprof_compare(a, b, len) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: the same promise.
    unsafe { __memprof_compare(a, b, len) }
}
