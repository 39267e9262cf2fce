//! The hooks: functions that are called before each load of a program that was built for checking.
//! LLVM's pass `memprof` inserts the calls, and determines the names of the hooks.
//!
//! The pass inserts no calls into functions whose names begin with `__memprof_`. If a hook called
//! another function, the loads of that function would call the hooks again. So hooks call no
//! function that loads from memory other than the stack, at any level of optimisation and inlining.

use super::pages::PAGE;
use std::arch::asm;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The number of bytes of the area in which watched memory is mapped. The marks follow the area:
/// one byte for each byte of the area.
pub(super) const LEN: usize = 1 << 36;

/// An address whose distance from every other address exceeds the length of the area.
pub(super) const NOWHERE: usize = 1 << 63;

/// The address where the area begins, or [`NOWHERE`].
pub(super) static FIRST: AtomicUsize = AtomicUsize::new(NOWHERE);

// Marks are mapped in whole pages, like the memory to which they belong.
const _: () = assert!(LEN.is_multiple_of(PAGE));

/// Returns the mark of the byte at this address, if the address is in the area.
#[inline(always)]
fn mark(address: usize) -> Option<*mut u8> {
    let first: usize;
    // SAFETY: the instruction only reads the static, like a relaxed load. A call of `load` that is
    // not inlined would call the hooks.
    unsafe {
        asm!("mov {}, [rip + {}]", out(reg) first, sym FIRST, options(pure, readonly, nostack, preserves_flags));
    }
    if address.wrapping_sub(first) < LEN { Some(with_exposed_provenance_mut(address + LEN)) } else { None }
}

/// Marks `len` bytes that the program is about to load.
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
        // SAFETY: the area has a mark for each byte. While the program runs, marks are only
        // accessed by atomics.
        unsafe { AtomicU8::from_ptr(mark) }.store(1, Ordering::Relaxed);
    }
}

/// Does nothing, because stores by the program are found by comparing contents. The pass inserts
/// calls of this hook for atomic changes, even if it inserts no calls for other stores.
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

/// Returns how many bytes at the beginning are equal.
#[inline(always)]
unsafe fn equal(a: *const u8, b: *const u8, len: usize) -> usize {
    let mut at = 0;
    // SAFETY: both have `len` bytes, by the caller's promise.
    while at + 8 <= len && unsafe { (*a.add(at).cast::<Word>()).0 == (*b.add(at).cast::<Word>()).0 } {
        at += 8;
    }
    // SAFETY: as above.
    while at < len && unsafe { *a.add(at) == *b.add(at) } {
        at += 1;
    }
    at
}

/// Compares bytes. Not inlined, because the name of this function keeps the pass from inserting
/// calls for its loads.
#[unsafe(no_mangle)]
#[inline(never)]
unsafe extern "C" fn __memprof_compare(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: both have `len` bytes, by the caller's promise.
    unsafe {
        let equal = equal(a, b, len);
        let loaded = if equal < len { equal + 1 } else { len };
        mark_all(a, loaded);
        mark_all(b, loaded);
        if equal < len { *a.add(equal) as i32 - *b.add(equal) as i32 } else { 0 }
    }
}

/// Compares bytes. Replaces the C library's function, which comparisons of slices call, so that
/// their loads are seen.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: the caller of this function makes the same promise.
    unsafe { __memprof_compare(a, b, len) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: the caller of this function makes the same promise.
    unsafe { __memprof_compare(a, b, len) }
}
