//! Visits the runs of a datatype. The innermost dimension has a separate loop.

use fencepost_planner::datatype::{Dim, Piece};

/// Calls `f(window, buffer)` for each run of `piece`, and returns where the buffer ends.
///
/// `window` points to the run's first element, and `buffer` advances by `step` bytes each time.
///
/// # Safety
/// Every element of the piece, of `size` bytes, is within the allocation of `window`, which points
/// to element 0; the buffer has `step` bytes for each run.
#[inline(always)]
pub(super) unsafe fn each(
    piece: &Piece,
    size: usize,
    window: *mut u8,
    buffer: *mut u8,
    step: usize,
    f: impl Fn(*mut u8, *mut u8),
) -> *mut u8 {
    let size = size as isize;
    // SAFETY: the first run is in the allocation.
    let first = unsafe { window.offset(piece.offset as isize * size) };
    // A list has many pieces of few runs each. Such a piece is visited without a call.
    match &piece.dims[..] {
        // SAFETY: the caller upholds the safety contract.
        [] => unsafe { line(1, 0, first, buffer, step, &f) },
        // SAFETY: the caller upholds the safety contract.
        [dim] => unsafe { line(dim.count, dim.stride as isize * size, first, buffer, step, &f) },
        // SAFETY: the caller upholds the safety contract.
        dims => unsafe { nest(dims, size, first, buffer, step, &f) },
    }
}

/// # Safety
/// As [`each`], for `count` runs at intervals of `stride` bytes, beginning at `window`.
#[inline(always)]
unsafe fn line(
    count: usize,
    stride: isize,
    window: *mut u8,
    buffer: *mut u8,
    step: usize,
    f: &impl Fn(*mut u8, *mut u8),
) -> *mut u8 {
    for i in 0..count {
        // SAFETY: the pointers are those of a run of the piece and of its place in the buffer.
        unsafe { f(window.offset(i as isize * stride), buffer.add(i * step)) };
    }
    // SAFETY: the result is at most the end of the buffer.
    unsafe { buffer.add(count * step) }
}

/// # Safety
/// As [`each`], for the runs of `dims`, beginning at `window`. `dims` is not empty.
#[inline]
unsafe fn nest(
    dims: &[Dim],
    size: isize,
    window: *mut u8,
    buffer: *mut u8,
    step: usize,
    f: &impl Fn(*mut u8, *mut u8),
) -> *mut u8 {
    let Some((dim, inner)) = dims.split_first() else { return buffer };
    let stride = dim.stride as isize * size;
    if inner.is_empty() {
        // SAFETY: the caller upholds the safety contract.
        return unsafe { line(dim.count, stride, window, buffer, step, f) };
    }
    let mut buffer = buffer;
    for i in 0..dim.count {
        // SAFETY: the first run of this step is a run of the piece; `buffer` continues after the
        // bytes already written.
        buffer = unsafe { nest(inner, size, window.offset(i as isize * stride), buffer, step, f) };
    }
    buffer
}

/// Calls `f(a, b)` for each run of two pieces whose dimensions have the same counts.
///
/// # Safety
/// As [`each`], for both windows.
#[inline(always)]
pub(super) unsafe fn both(
    a: &Piece,
    in_a: *mut u8,
    b: &Piece,
    in_b: *mut u8,
    size: usize,
    f: impl Fn(*mut u8, *mut u8),
) {
    // SAFETY: the first runs are in the allocations.
    let (first_a, first_b) = unsafe {
        (in_a.offset(a.offset as isize * size as isize), in_b.offset(b.offset as isize * size as isize))
    };
    // SAFETY: the caller upholds the safety contract.
    unsafe { nests(&a.dims, first_a, &b.dims, first_b, size as isize, &f) }
}

/// Returns whether the pieces have dimensions of the same counts, as [`both`] requires.
pub(super) fn same_counts(a: &Piece, b: &Piece) -> bool {
    a.run == b.run
        && a.dims.len() == b.dims.len()
        && a.dims.iter().zip(&b.dims).all(|(a, b)| a.count == b.count)
}

/// # Safety
/// As [`both`], for the runs of these dimensions, beginning at `in_a` and `in_b`.
#[inline]
unsafe fn nests(
    a: &[Dim],
    in_a: *mut u8,
    b: &[Dim],
    in_b: *mut u8,
    size: isize,
    f: &impl Fn(*mut u8, *mut u8),
) {
    let (Some((outer_a, inner_a)), Some((outer_b, inner_b))) = (a.split_first(), b.split_first()) else {
        return f(in_a, in_b);
    };
    for i in 0..outer_a.count as isize {
        // SAFETY: the first runs of this step are runs of the pieces.
        let (at_a, at_b) = unsafe {
            (in_a.offset(i * outer_a.stride as isize * size), in_b.offset(i * outer_b.stride as isize * size))
        };
        if inner_a.is_empty() {
            f(at_a, at_b);
        } else {
            // SAFETY: as above.
            unsafe { nests(inner_a, at_a, inner_b, at_b, size, f) };
        }
    }
}
