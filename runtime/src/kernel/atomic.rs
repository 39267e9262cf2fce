//! Atomic accesses to elements, for several ranks that access one element at the same time under
//! shared locks.
//!
//! An element of 1, 2, 4 or 8 bytes is aligned to its size, since a window is aligned to a cache
//! line. So the element can be accessed as an atomic integer of that size. All accesses are
//! relaxed: locks, flushes and fences order them. SUM, BAND, BOR and BXOR of integers, and moves,
//! are one operation of the processor. Everything else is a loop of compare-and-swaps.

use crate::kernel::values::Values;
use crate::kernel::walk::each;
use crate::kernel::{Task, combine_one, with_values};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementKind, ElementType, Op};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Returns whether elements of this type are accessed atomically.
pub fn is_atomic(element: ElementType) -> bool {
    matches!(element.size, 1 | 2 | 4 | 8)
}

/// The bytes of an element, in the first bytes of a word.
macro_rules! bits {
    ($value:expr) => {{
        let mut bits = [0; 8];
        let bytes = $value.to_ne_bytes();
        bits[..bytes.len()].copy_from_slice(&bytes);
        u64::from_ne_bytes(bits)
    }};
}

/// Calls a method of the atomic integer of `size_of::<V>()` bytes at `at`. Operands are words, and
/// so is the result.
macro_rules! call {
    ($V:ty, $at:expr, |$atom:ident, $value:ident| $call:expr) => {{
        macro_rules! of {
            ($Atom:ty, $Int:ty, $N:literal) => {{
                // SAFETY: the caller guarantees an aligned element of this size that is accessed
                // only atomically.
                let $atom = unsafe { <$Atom>::from_ptr($at.cast()) };
                #[allow(unused_variables, reason = "a load has no operand")]
                let $value = |bits: u64| -> $Int {
                    let mut bytes = [0; $N];
                    bytes.copy_from_slice(&bits.to_ne_bytes()[..$N]);
                    <$Int>::from_ne_bytes(bytes)
                };
                bits!($call)
            }};
        }
        match size_of::<$V>() {
            1 => of!(AtomicU8, u8, 1),
            2 => of!(AtomicU16, u16, 2),
            4 => of!(AtomicU32, u32, 4),
            _ => of!(AtomicU64, u64, 8),
        }
    }};
}

/// Returns the bits of an element.
///
/// # Safety
/// `at` is an element of type `V`, of 1, 2, 4 or 8 bytes and aligned to its size. Every thread that
/// accesses the element meanwhile uses this module. The other functions of this module have the
/// same requirements.
#[inline(always)]
pub unsafe fn load<V: Values>(at: *mut u8) -> u64 {
    call!(V, at, |atom, value| atom.load(Relaxed))
}

/// Replaces an element.
///
/// # Safety
/// As [`load`].
#[inline(always)]
pub unsafe fn store<V: Values>(at: *mut u8, bits: u64) {
    call!(V, at, |atom, value| {
        atom.store(value(bits), Relaxed);
        0_u8
    });
}

/// Replaces an element of `size` bytes.
///
/// # Safety
/// As [`load`], for an element of this size.
#[inline(always)]
pub unsafe fn store_bytes(size: usize, at: *mut u8, bits: u64) {
    // SAFETY: the caller upholds the safety contract, and the store depends only on the size of the
    // type.
    unsafe {
        match size {
            1 => store::<u8>(at, bits),
            2 => store::<u16>(at, bits),
            4 => store::<u32>(at, bits),
            _ => store::<u64>(at, bits),
        }
    }
}

/// Returns the number of bytes that are accessed at once in an element of `size` bytes at `at`.
fn grain(at: *mut u8, size: usize) -> usize {
    let fits = |grain: &usize| size.is_multiple_of(*grain) && at.addr().is_multiple_of(*grain);
    [8, 4, 2].into_iter().find(fits).unwrap_or(1)
}

/// Copies an element of any size, part by part: each part is copied atomically, but the element as
/// a whole is not.
///
/// # Safety
/// `at` points to an element of `into.len()` bytes. Every thread that accesses the element
/// meanwhile uses this function, [`store_each`], [`pack_each`] or [`unpack_each`], or [`load`] and
/// the other functions for one element.
pub unsafe fn load_bytes(at: *mut u8, into: &mut [u8]) {
    // SAFETY: the caller upholds the safety contract, for one run of one element.
    unsafe { parts::<true>(grain(at, into.len()), at, into.as_mut_ptr(), into.len()) }
}

/// Replaces an element of any size, part by part.
///
/// # Safety
/// As [`load_bytes`].
pub unsafe fn store_each(at: *mut u8, bytes: &[u8]) {
    // SAFETY: the caller upholds the safety contract, and `bytes` is only read.
    unsafe { parts::<false>(grain(at, bytes.len()), at, bytes.as_ptr().cast_mut(), bytes.len()) }
}

/// Copies the elements of `datatype`, of `size` bytes each, from the window at `base` to `to`, part
/// by part.
///
/// # Safety
/// As [`load_bytes`], for each element; `base` has the alignment of a window, and there is room for
/// all elements at `to`.
pub unsafe fn pack_each(base: *mut u8, datatype: &Datatype, size: usize, to: *mut u8) {
    // SAFETY: the caller upholds the safety contract.
    unsafe { each_run::<true>(base, datatype, size, to) }
}

/// Replaces the elements of `datatype`, of `size` bytes each, in the window at `base` by those at
/// `from`, part by part.
///
/// # Safety
/// As [`pack_each`]; `from` has the number of elements of `datatype`.
pub unsafe fn unpack_each(from: *const u8, base: *mut u8, datatype: &Datatype, size: usize) {
    // SAFETY: the caller upholds the safety contract, and the buffer is only read.
    unsafe { each_run::<false>(base, datatype, size, from.cast_mut()) }
}

/// Moves elements out of the window if `PACK`, else into it.
///
/// # Safety
/// As [`pack_each`] or [`unpack_each`].
unsafe fn each_run<const PACK: bool>(base: *mut u8, datatype: &Datatype, size: usize, buffer: *mut u8) {
    // Elements follow each other without gaps, so each has the grain of the first.
    let (grain, mut buffer) = (grain(base, size), buffer);
    for piece in datatype.pieces() {
        let bytes = piece.run * size;
        // SAFETY: the caller upholds the safety contract; a run has `bytes` bytes.
        buffer = unsafe {
            match grain {
                8 => each(piece, size, base, buffer, bytes, |at, buffer| {
                    parts_of::<PACK, u64>(at, buffer, bytes);
                }),
                _ => each(piece, size, base, buffer, bytes, |at, buffer| {
                    parts::<PACK>(grain, at, buffer, bytes);
                }),
            }
        };
    }
}

/// # Safety
/// As [`parts_of`], where `grain` is the size of the parts.
#[inline]
unsafe fn parts<const PACK: bool>(grain: usize, at: *mut u8, buffer: *mut u8, bytes: usize) {
    // SAFETY: the caller upholds the safety contract.
    unsafe {
        match grain {
            1 => parts_of::<PACK, u8>(at, buffer, bytes),
            2 => parts_of::<PACK, u16>(at, buffer, bytes),
            4 => parts_of::<PACK, u32>(at, buffer, bytes),
            _ => parts_of::<PACK, u64>(at, buffer, bytes),
        }
    }
}

/// Copies `bytes` bytes between a window, at `at`, and a buffer, in parts of the size of a `V`.
///
/// # Safety
/// As [`load_bytes`], for each element of a run; `at` is aligned to the size of a `V`, `bytes` is a
/// multiple of that size, and the buffer has that number of bytes.
#[inline(always)]
unsafe fn parts_of<const PACK: bool, V: Values>(at: *mut u8, buffer: *mut u8, bytes: usize) {
    for from in (0..bytes).step_by(size_of::<V>()) {
        let mut bits = [0; 8];
        // SAFETY: the caller upholds the safety contract. The part is aligned to its size, and a
        // word has room for it.
        unsafe {
            let (at, buffer) = (at.add(from), buffer.add(from));
            if PACK {
                bits = load::<V>(at).to_ne_bytes();
                buffer.copy_from_nonoverlapping(bits.as_ptr(), size_of::<V>());
            } else {
                bits.as_mut_ptr().copy_from_nonoverlapping(buffer, size_of::<V>());
                store::<V>(at, u64::from_ne_bytes(bits));
            }
        }
    }
}

/// Replaces an element if it has the bits `expected`, and returns the previous bits of the element.
///
/// # Safety
/// As [`load`].
#[inline(always)]
pub unsafe fn compare_and_swap<V: Values>(at: *mut u8, expected: u64, bits: u64) -> u64 {
    call!(V, at, |atom, value| {
        atom.compare_exchange(value(expected), value(bits), Relaxed, Relaxed).unwrap_or_else(|found| found)
    })
}

/// Combines a value into an element, and returns the previous bits of the element.
///
/// # Safety
/// As for [`load`]. In addition, `op` is defined for `element`, and `element` is the type of `V`.
#[inline(always)]
pub unsafe fn combine<V: Values>(op: Op, element: ElementType, at: *mut u8, bits: u64) -> u64 {
    let is_integer = matches!(element.kind, ElementKind::Scalar(scalar) if !scalar.is_float());
    match op {
        Op::Replace => call!(V, at, |atom, value| atom.swap(value(bits), Relaxed)),
        Op::Sum if is_integer => call!(V, at, |atom, value| atom.fetch_add(value(bits), Relaxed)),
        Op::Band if is_integer => call!(V, at, |atom, value| atom.fetch_and(value(bits), Relaxed)),
        Op::Bor if is_integer => call!(V, at, |atom, value| atom.fetch_or(value(bits), Relaxed)),
        Op::Bxor if is_integer => call!(V, at, |atom, value| atom.fetch_xor(value(bits), Relaxed)),
        _ => {
            // SAFETY: the caller upholds the safety contract.
            let mut found = unsafe { load::<V>(at) };
            loop {
                let mut combined = found;
                // SAFETY: the first bytes of `combined` are an element, and no other code touches
                // it.
                unsafe { combine_one::<V>(op, (&raw mut combined).cast(), bits) };
                // SAFETY: the caller upholds the safety contract.
                let now = unsafe { compare_and_swap::<V>(at, found, combined) };
                if now == found {
                    return found;
                }
                found = now;
            }
        }
    }
}

/// Combines each value into an element.
///
/// # Safety
/// As [`combine`], for each.
#[inline(always)]
pub unsafe fn combine_each<V: Values>(
    op: Op,
    element: ElementType,
    values: impl Iterator<Item = (*mut u8, u64)>,
) {
    /// Expands to the loop for an operator. The compiler specialises the loop for a constant
    /// operator.
    macro_rules! each {
        ($op:expr) => {
            values.for_each(|(at, bits)| {
                // SAFETY: the caller upholds the safety contract.
                unsafe { combine::<V>($op, element, at, bits) };
            })
        };
    }
    match op {
        Op::Sum => each!(Op::Sum),
        op => each!(op),
    }
}

/// Returns the bits of an element of this type.
///
/// # Safety
/// As [`load`].
pub unsafe fn load_one(element: ElementType, at: *mut u8) -> u64 {
    struct Load(*mut u8);
    impl Task for Load {
        type Out = u64;
        fn with<V: Values>(self) -> u64 {
            // SAFETY: the caller upholds the safety contract.
            unsafe { load::<V>(self.0) }
        }
    }
    with_values(element, Load(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel;
    use fencepost_planner::element::Scalar;
    use fencepost_tests_reference::apply;
    use fencepost_tests_support::random::Random;

    struct Combine<'a>(Op, ElementType, &'a mut [u64; 1], u64);
    impl Task for Combine<'_> {
        type Out = u64;
        fn with<V: Values>(self) -> u64 {
            // SAFETY: the aligned word begins with an element of this type.
            unsafe { combine::<V>(self.0, self.1, self.2.as_mut_ptr().cast(), self.3) }
        }
    }

    #[test]
    fn every_operator_leaves_and_returns_what_the_reference_does() {
        let mut dice = Random::new(7);
        let pair = ElementType { size: 8, kind: ElementKind::ValueAt(Scalar::F32, Scalar::I32) };
        let opaque = ElementType::opaque(4);
        for element in Scalar::ALL.map(ElementType::scalar).into_iter().chain([pair, opaque]) {
            let size = element.size as usize;
            for op in Op::ALL.into_iter().filter(|op| op.takes(element)) {
                for _ in 0..200 {
                    let cut = |bits: u64| {
                        let mut bytes = bits.to_ne_bytes();
                        bytes[size..].fill(0);
                        u64::from_ne_bytes(bytes)
                    };
                    let small = dice.once_in(2);
                    let mut value = || cut(if small { dice.bits() % 3 } else { dice.bits() });
                    let (old, new) = (value(), value());
                    let mut expected = old.to_ne_bytes();
                    apply(Some(op), element, &mut expected[..size], &new.to_ne_bytes()[..size]);
                    let mut memory = [old];
                    let found = with_values(element, Combine(op, element, &mut memory, new));
                    assert_eq!(found, old, "{op} on {element}");
                    assert_eq!(memory[0].to_ne_bytes(), expected, "{op} on {element}: {old:x} and {new:x}");
                }
            }
        }
    }

    #[test]
    fn elements_of_any_size_are_copied_part_by_part_as_the_plain_loops_copy_them() {
        let mut dice = Random::new(8);
        let strided = Datatype::runs([(1, 2), (5, 1), (9, 3), (4, 1)]).unwrap();
        let rows = Datatype::nest(1, &[(3, 5)], 2).unwrap();
        for size in (1..=40).chain([64, 72]) {
            for datatype in
                [Datatype::empty(), Datatype::run(3..4), Datatype::run(2..7), strided.clone(), rows.clone()]
            {
                let (count, words) = (datatype.size() * size, 16 * 72 / 8);
                let before: Vec<u64> = (0..words).map(|_| dice.bits()).collect();
                let from: Vec<u8> = (0..count).map(|_| dice.bits() as u8).collect();
                let (mut plain, mut ours) = (before.clone(), before);
                let (mut packed, mut expected) = (vec![0; count], vec![0; count]);
                let (to_plain, to_ours) = (plain.as_mut_ptr().cast::<u8>(), ours.as_mut_ptr().cast::<u8>());
                // SAFETY: the memory is of this thread and has all elements, and the buffers have
                // the same number of bytes.
                unsafe {
                    pack_each(to_ours, &datatype, size, packed.as_mut_ptr());
                    kernel::pack(to_plain, &datatype, size, expected.as_mut_ptr());
                    unpack_each(from.as_ptr(), to_ours, &datatype, size);
                    kernel::unpack(from.as_ptr(), to_plain, &datatype, size);
                }
                assert_eq!(packed, expected, "{size} bytes");
                assert_eq!(ours, plain, "{size} bytes");
            }
        }
    }

    #[test]
    fn a_compare_and_swap_compares_bits() {
        let minus_zero = u64::from_ne_bytes((-0.0_f64).to_ne_bytes());
        let mut memory = [minus_zero];
        let at = memory.as_mut_ptr().cast();
        // SAFETY: an aligned word of this thread.
        unsafe {
            assert_eq!(compare_and_swap::<f64>(at, 0, 5), minus_zero, "0 is not -0");
            assert_eq!(compare_and_swap::<f64>(at, minus_zero, 5), minus_zero);
            assert_eq!(load_one(ElementType::scalar(Scalar::F64), at), 5);
            store::<f64>(at, 7);
            assert_eq!(load::<f64>(at), 7);
        }
    }
}
