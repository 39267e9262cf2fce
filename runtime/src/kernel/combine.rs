//! Combining elements: buffer into window, window into window, one value into one element.

use crate::kernel::values::{Job, Kernel, Values, choose};
use crate::kernel::walk::{both, each, same_counts};
use crate::kernel::{copy, unpack};
use fencepost_planner::datatype::{Datatype, pairs};
use fencepost_planner::element::{ElementType, Op};

/// Combines the elements in the buffer at `from` into those of `datatype` in the window at `base`,
/// in typemap order.
///
/// # Safety
/// The [contract](super#contract), for reading `from` and writing `base`; `op` is defined for
/// `element`, and the size of `element` is that of its kind.
pub unsafe fn combine(op: Op, element: ElementType, base: *mut u8, datatype: &Datatype, from: *const u8) {
    if op == Op::Replace {
        // SAFETY: the caller upholds the safety contract.
        return unsafe { unpack(from, base, datatype, element.size as usize) };
    }
    let done = choose(op, element, FromBuffer { base, datatype, from });
    debug_assert!(done.is_some(), "{op} is not defined for {element:?}");
}

/// Combines `len` adjacent elements at `from` into `len` elements at `to`.
///
/// # Safety
/// As [`combine`], for a run.
pub unsafe fn combine_run(op: Op, element: ElementType, to: *mut u8, from: *const u8, len: usize) {
    if op == Op::Replace {
        // SAFETY: the caller upholds the safety contract.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, len * element.size as usize) };
    }
    let done = choose(op, element, Run { to, from, len });
    debug_assert!(done.is_some(), "{op} is not defined for {element:?}");
}

/// Combines the elements of `from_type` in the window at `from` into those of `to_type` in the
/// window at `to`, in typemap order. Both datatypes have the same number of elements.
///
/// # Safety
/// The [contract](super#contract), for reading `from` and writing `to`; `op` is defined for
/// `element`, and the size of `element` is that of its kind.
pub unsafe fn combine_copy(
    op: Op,
    element: ElementType,
    from: *const u8,
    from_type: &Datatype,
    to: *mut u8,
    to_type: &Datatype,
) {
    let size = element.size as usize;
    if op == Op::Replace {
        // SAFETY: the caller upholds the safety contract.
        return unsafe { copy(from, from_type, to, to_type, size) };
    }
    if let Some(run) = from_type.as_run() {
        let from = from.wrapping_offset(run.start as isize * size as isize);
        // SAFETY: the caller upholds the safety contract, and contiguous elements are a buffer.
        return unsafe { combine(op, element, to, to_type, from) };
    }
    debug_assert_eq!(from_type.size(), to_type.size());
    let done = choose(op, element, FromWindow { from, from_type, to, to_type });
    debug_assert!(done.is_some(), "{op} is not defined for {element:?}");
}

/// Combines one value of at most eight bytes, given as the first bytes of `bits`, into one element.
///
/// # Safety
/// `to` is one element of type `V`, and no other code touches it. `op` is defined for `V`, and a
/// `V` has at most 8 bytes.
#[inline(always)]
pub unsafe fn combine_one<V: Values>(op: Op, to: *mut u8, bits: u64) {
    let from = std::ptr::from_ref(&bits).cast::<u8>();
    if op == Op::Replace {
        // SAFETY: the caller upholds the safety contract; the value is in `bits`.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, size_of::<V>()) };
    }
    let done = V::choose(op, One { to, from });
    debug_assert!(done.is_some(), "{op} is not defined for these elements");
}

/// Combines values of at most eight bytes, given as the first bytes of words, into one element
/// each.
///
/// # Safety
/// As [`combine_one`], for each.
#[inline(always)]
pub unsafe fn combine_each<V: Values>(op: Op, values: impl Iterator<Item = (*mut u8, u64)>) {
    let done = V::choose(op, Each(values));
    debug_assert!(done.is_some(), "{op} is not defined for these elements one by one");
}

/// # Safety
/// `to` is valid for reads and writes of a `K::Value`, and `from` for reads of a `K::Value`.
#[inline(always)]
unsafe fn into<K: Kernel>(to: *mut u8, from: *const u8) {
    let to = to.cast::<K::Value>();
    // SAFETY: the caller upholds the safety contract; the value is plain old data, for which any
    // bits are a value.
    unsafe { to.write_unaligned(K::combine(to.read_unaligned(), from.cast::<K::Value>().read_unaligned())) }
}

/// # Safety
/// As [`into`].
#[inline(always)]
unsafe fn into_apart<K: Kernel>(to: *mut u8, from: *const u8) {
    let to = to.cast::<K::Value>();
    // SAFETY: as in `into`.
    unsafe {
        to.write_unaligned(K::combine_apart(to.read_unaligned(), from.cast::<K::Value>().read_unaligned()))
    }
}

/// # Safety
/// As [`into`], for `len` values one after another.
#[inline(always)]
unsafe fn run_into<K: Kernel>(to: *mut u8, from: *const u8, len: usize) {
    let size = size_of::<K::Value>();
    for i in 0..len {
        // SAFETY: the caller upholds the safety contract.
        unsafe { into::<K>(to.add(i * size), from.add(i * size)) };
    }
}

struct One {
    to: *mut u8,
    from: *const u8,
}

impl Job for One {
    type Out = ();
    #[inline(always)]
    fn with<K: Kernel>(self) {
        // SAFETY: only `combine_one` makes this job, and its caller upholds the safety contract.
        unsafe { into_apart::<K>(self.to, self.from) }
    }
}

struct Each<I>(I);

impl<I: Iterator<Item = (*mut u8, u64)>> Job for Each<I> {
    type Out = ();
    #[inline(always)]
    fn with<K: Kernel>(self) {
        // SAFETY: only `combine_each` makes this job, and its caller upholds the safety contract.
        self.0.for_each(|(to, bits)| unsafe { into_apart::<K>(to, (&raw const bits).cast()) });
    }
}

struct Run {
    to: *mut u8,
    from: *const u8,
    len: usize,
}

impl Job for Run {
    type Out = ();
    #[inline(always)]
    fn with<K: Kernel>(self) {
        // SAFETY: only `combine_run` makes this job, and its caller upholds the safety contract.
        unsafe { run_into::<K>(self.to, self.from, self.len) }
    }
}

struct FromBuffer<'a> {
    base: *mut u8,
    datatype: &'a Datatype,
    from: *const u8,
}

impl Job for FromBuffer<'_> {
    type Out = ();
    fn with<K: Kernel>(self) {
        let size = size_of::<K::Value>();
        let mut from = self.from.cast_mut();
        for piece in self.datatype.pieces() {
            let run = piece.run;
            // SAFETY: only `combine` makes this job, and its caller upholds the safety contract.
            // The buffer is only read.
            from = unsafe {
                if run == 1 {
                    each(piece, size, self.base, from, size, |w, b| into::<K>(w, b))
                } else {
                    each(piece, size, self.base, from, run * size, |w, b| run_into::<K>(w, b, run))
                }
            };
        }
    }
}

struct FromWindow<'a> {
    from: *const u8,
    from_type: &'a Datatype,
    to: *mut u8,
    to_type: &'a Datatype,
}

impl Job for FromWindow<'_> {
    type Out = ();
    fn with<K: Kernel>(self) {
        let Self { from, from_type, to, to_type } = self;
        let size = size_of::<K::Value>();
        if let ([a], [b]) = (from_type.pieces(), to_type.pieces())
            && same_counts(a, b)
        {
            let run = a.run;
            // SAFETY: only `combine_copy` makes this job, and its caller upholds the safety
            // contract. `from` is only read.
            return unsafe { both(a, from.cast_mut(), b, to, size, |from, to| run_into::<K>(to, from, run)) };
        }
        for (a, b, len) in pairs(from_type, to_type) {
            // SAFETY: as above.
            unsafe {
                let a = from.offset(a as isize * size as isize);
                run_into::<K>(to.offset(b as isize * size as isize), a, len);
            }
        }
    }
}
