//! Moving elements: window to buffer, buffer to window, window to window.

use crate::kernel::walk::{both, each, same_counts};
use fencepost_planner::datatype::{Datatype, pairs};

/// Copies the elements of `datatype` from the window at `base` to `to`, one after another.
///
/// # Safety
/// The [contract](super#contract), for reading `base` and writing `to`.
pub unsafe fn pack(base: *const u8, datatype: &Datatype, size: usize, to: *mut u8) {
    // SAFETY: the caller upholds the safety contract; the window is only read.
    unsafe { moves::<true>(base.cast_mut(), datatype, size, to) }
}

/// Copies the elements in the buffer at `from` to those of `datatype` in the window at `base`.
///
/// # Safety
/// The [contract](super#contract), for reading `from` and writing `base`.
pub unsafe fn unpack(from: *const u8, base: *mut u8, datatype: &Datatype, size: usize) {
    // SAFETY: the caller upholds the safety contract; the buffer is only read.
    unsafe { moves::<false>(base, datatype, size, from.cast_mut()) }
}

/// Copies the elements of `from_type` in the window at `from` to those of `to_type` in the window
/// at `to`. Both datatypes have the same number of elements.
///
/// # Safety
/// The [contract](super#contract), for reading `from` and writing `to`.
pub unsafe fn copy(from: *const u8, from_type: &Datatype, to: *mut u8, to_type: &Datatype, size: usize) {
    debug_assert_eq!(from_type.size(), to_type.size());
    let at = |base: *const u8, low: i64| base.wrapping_offset(low as isize * size as isize);
    // SAFETY: the caller upholds the safety contract, and contiguous elements are a buffer.
    unsafe {
        if let Some(run) = to_type.as_run() {
            return pack(from, from_type, size, at(to, run.start).cast_mut());
        }
        if let Some(run) = from_type.as_run() {
            return unpack(at(from, run.start), to, to_type, size);
        }
        if let ([a], [b]) = (from_type.pieces(), to_type.pieces())
            && same_counts(a, b)
        {
            let bytes = a.run * size;
            let from = from.cast_mut();
            return match bytes {
                1 => both(a, from, b, to, size, |a, b| unit::<u8>(a, b)),
                2 => both(a, from, b, to, size, |a, b| unit::<u16>(a, b)),
                4 => both(a, from, b, to, size, |a, b| unit::<u32>(a, b)),
                8 => both(a, from, b, to, size, |a, b| unit::<u64>(a, b)),
                16 => both(a, from, b, to, size, |a, b| unit::<u128>(a, b)),
                _ => both(a, from, b, to, size, |a, b| std::ptr::copy_nonoverlapping(a, b, bytes)),
            };
        }
        for (a, b, len) in pairs(from_type, to_type) {
            let (a, b) = (at(from, a), at(to, b).cast_mut());
            match len * size {
                4 => unit::<u32>(a, b),
                8 => unit::<u64>(a, b),
                16 => unit::<u128>(a, b),
                bytes => std::ptr::copy_nonoverlapping(a, b, bytes),
            }
        }
    }
}

/// Moves elements between window and buffer: out of the window if `PACK`, else into it.
///
/// # Safety
/// As [`pack`] or [`unpack`].
unsafe fn moves<const PACK: bool>(window: *mut u8, datatype: &Datatype, size: usize, buffer: *mut u8) {
    let mut buffer = buffer;
    for piece in datatype.pieces() {
        let bytes = piece.run * size;
        // SAFETY: the caller upholds the safety contract; runs and their places in the buffer are
        // `bytes` long and disjoint.
        buffer = unsafe {
            match bytes {
                1 => each(piece, size, window, buffer, bytes, |w, b| way::<PACK, u8>(w, b)),
                2 => each(piece, size, window, buffer, bytes, |w, b| way::<PACK, u16>(w, b)),
                4 => each(piece, size, window, buffer, bytes, |w, b| way::<PACK, u32>(w, b)),
                8 => each(piece, size, window, buffer, bytes, |w, b| way::<PACK, u64>(w, b)),
                16 => each(piece, size, window, buffer, bytes, |w, b| way::<PACK, u128>(w, b)),
                // For a few words, the loop ends before a call of memcpy would begin its work.
                24..=64 if bytes.is_multiple_of(8) => each(piece, size, window, buffer, bytes, |w, b| {
                    for i in (0..bytes).step_by(8) {
                        way::<PACK, u64>(w.add(i), b.add(i));
                    }
                }),
                _ => each(piece, size, window, buffer, bytes, |w, b| {
                    let (from, to) = if PACK { (w, b) } else { (b, w) };
                    std::ptr::copy_nonoverlapping(from, to, bytes);
                }),
            }
        };
    }
}

/// # Safety
/// `window` and `buffer` are both valid for a `U`.
#[inline(always)]
unsafe fn way<const PACK: bool, U: Copy>(window: *mut u8, buffer: *mut u8) {
    // SAFETY: the caller upholds the safety contract.
    unsafe { if PACK { unit::<U>(window, buffer) } else { unit::<U>(buffer, window) } }
}

/// # Safety
/// `from` is valid for reads of a `U`, and `to` for writes of a `U`.
#[inline(always)]
unsafe fn unit<U: Copy>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller upholds the safety contract; `U` is an unsigned integer, for which any
    // bits are a value.
    unsafe { to.cast::<U>().write_unaligned(from.cast::<U>().read_unaligned()) }
}

/// Prefetches the memory at `at` for a write that follows soon, so that this processor owns the
/// cache line. The address need not be valid.
#[inline(always)]
pub fn fetch_to_write<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: this is a hint, which touches nothing; Intel's processors before Broadwell treat it
    // as a NOP.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Prefetches the memory at `at` for a read that follows soon. The address need not be valid.
#[inline(always)]
pub fn fetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: this is a hint, which touches nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
