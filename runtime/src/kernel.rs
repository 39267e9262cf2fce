//! The loops that move and combine elements.

use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementKind, ElementType, Op, Scalar};

/// Visit the runs of a datatype as byte offsets and lengths: `f(window_byte, buffer_byte, bytes)`.
#[inline]
fn runs(datatype: &Datatype, size: usize, mut f: impl FnMut(isize, usize, usize)) {
    let mut at = 0;
    for (offset, len) in datatype.run_iter() {
        f(offset as isize * size as isize, at, len * size);
        at += len * size;
    }
}

/// Copy the elements of `datatype` from the window at `base` to `to`, one after another.
///
/// # Safety
/// All elements lie in memory that may be read from `base`; `to` is room for them elsewhere.
pub(crate) unsafe fn pack(base: *const u8, datatype: &Datatype, size: usize, to: *mut u8) {
    // SAFETY: the caller's.
    runs(datatype, size, |offset, at, len| unsafe { std::ptr::copy_nonoverlapping(base.offset(offset), to.add(at), len) });
}

/// Copy elements that lie one after another at `from` to those of `datatype` in the window at `base`.
///
/// # Safety
/// All elements lie in memory that may be written from `base`; `from` has as many, elsewhere.
pub(crate) unsafe fn unpack(from: *const u8, base: *mut u8, datatype: &Datatype, size: usize) {
    // SAFETY: the caller's.
    runs(datatype, size, |offset, at, len| unsafe { std::ptr::copy_nonoverlapping(from.add(at), base.offset(offset), len) });
}

/// Combine elements that lie one after another at `from` into those of `datatype` in the window at `base`.
///
/// # Safety
/// As [`unpack`], and `op` takes `element`.
pub(crate) unsafe fn combine(op: Op, element: ElementType, base: *mut u8, datatype: &Datatype, from: *const u8) {
    let size = element.size as usize;
    runs(datatype, size, |offset, at, len| {
        for i in (0..len).step_by(size) {
            // SAFETY: the caller's.
            unsafe { combine_at(op, element, base.offset(offset).add(i), from.add(at + i)) };
        }
    });
}

/// Combine one element, of at most eight bytes, given as bits.
///
/// # Safety
/// `to` is one element of this type, and `op` takes it.
#[inline(always)]
pub(crate) unsafe fn combine_one(op: Op, element: ElementType, to: *mut u8, bits: u64) {
    // SAFETY: the caller's; the first bytes of the value are the element's.
    unsafe { combine_at(op, element, to, std::ptr::from_ref(&bits).cast()) };
}

/// An arithmetic type.
trait Arithmetic: Copy + PartialOrd {
    fn sum(a: Self, b: Self) -> Self;
    fn prod(a: Self, b: Self) -> Self;
    fn min(a: Self, b: Self) -> Self;
    fn max(a: Self, b: Self) -> Self;
    fn bits(op: Op, a: Self, b: Self) -> Self;
    /// Whether `a` comes before `b`; NaN comes before everything, and -0 before +0 where `down`.
    fn beats(a: Self, b: Self, down: bool) -> Option<bool>;
    fn canonical(self) -> Self;
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Arithmetic for $ty {
            #[inline(always)]
            fn sum(a: Self, b: Self) -> Self { a.wrapping_add(b) }
            #[inline(always)]
            fn prod(a: Self, b: Self) -> Self { a.wrapping_mul(b) }
            #[inline(always)]
            fn min(a: Self, b: Self) -> Self { Ord::min(a, b) }
            #[inline(always)]
            fn max(a: Self, b: Self) -> Self { Ord::max(a, b) }
            #[inline(always)]
            fn bits(op: Op, a: Self, b: Self) -> Self {
                match op {
                    Op::Band => a & b,
                    Op::Bor => a | b,
                    Op::Bxor => a ^ b,
                    Op::Land => Self::from(a != 0 && b != 0),
                    Op::Lor => Self::from(a != 0 || b != 0),
                    _ => Self::from((a != 0) != (b != 0)),
                }
            }
            fn beats(a: Self, b: Self, down: bool) -> Option<bool> {
                if a == b { None } else { Some((a < b) == down) }
            }
            fn canonical(self) -> Self { self }
        }
    )*};
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($ty:ident $nan:literal)*) => {$(
        impl Arithmetic for $ty {
            #[inline(always)]
            fn sum(a: Self, b: Self) -> Self { (a + b).canonical() }
            #[inline(always)]
            fn prod(a: Self, b: Self) -> Self { (a * b).canonical() }
            #[inline(always)]
            fn min(a: Self, b: Self) -> Self {
                if a.is_nan() || b.is_nan() { return $ty::from_bits($nan) }
                if a == b { return if a.is_sign_negative() { a } else { b } }
                if a < b { a } else { b }
            }
            #[inline(always)]
            fn max(a: Self, b: Self) -> Self {
                if a.is_nan() || b.is_nan() { return $ty::from_bits($nan) }
                if a == b { return if a.is_sign_negative() { b } else { a } }
                if a > b { a } else { b }
            }
            #[inline(always)]
            fn bits(_: Op, a: Self, _: Self) -> Self { a }
            fn beats(a: Self, b: Self, down: bool) -> Option<bool> {
                match (a.is_nan(), b.is_nan()) {
                    (true, true) => None,
                    (true, false) => Some(true),
                    (false, true) => Some(false),
                    (false, false) if a == b => match (a.is_sign_negative(), b.is_sign_negative()) {
                        (x, y) if x == y => None,
                        (x, _) => Some(x == down),
                    },
                    (false, false) => Some((a < b) == down),
                }
            }
            #[inline(always)]
            fn canonical(self) -> Self { if self.is_nan() { $ty::from_bits($nan) } else { self } }
        }
    )*};
}
floats!(f32 0x7fc0_0000 f64 0x7ff8_0000_0000_0000);

/// # Safety
/// `to` and `from` are one `V` each.
#[inline(always)]
unsafe fn scalar<V: Arithmetic>(op: Op, to: *mut u8, from: *const u8) {
    let (to, from) = (to.cast::<V>(), from.cast::<V>());
    // SAFETY: the caller's.
    let (a, b) = unsafe { (to.read_unaligned(), from.read_unaligned()) };
    let result = match op {
        Op::Sum => V::sum(a, b),
        Op::Prod => V::prod(a, b),
        Op::Min => V::min(a, b),
        Op::Max => V::max(a, b),
        Op::Replace | Op::MinLoc | Op::MaxLoc => b,
        Op::Band | Op::Bor | Op::Bxor | Op::Land | Op::Lor | Op::Lxor => V::bits(op, a, b),
    };
    // SAFETY: the caller's.
    unsafe { to.write_unaligned(result) };
}

/// # Safety
/// `to` and `from` are one `ValueAt<V, I>` each.
#[inline(always)]
unsafe fn pair<V: Arithmetic, I: Arithmetic>(op: Op, to: *mut u8, from: *const u8) {
    let index = size_of::<V>();
    // SAFETY: the caller's: a value, then an index, no padding.
    unsafe {
        let (value, at) = (to.cast::<V>().read_unaligned(), to.add(index).cast::<I>().read_unaligned());
        let (other, other_at) = (from.cast::<V>().read_unaligned(), from.add(index).cast::<I>().read_unaligned());
        let keep = match V::beats(value, other, op == Op::MinLoc) {
            Some(keep) => keep,
            None => at <= other_at,
        };
        let (value, at) = if keep { (value, at) } else { (other, other_at) };
        to.cast::<V>().write_unaligned(value.canonical());
        to.add(index).cast::<I>().write_unaligned(at);
    }
}

/// # Safety
/// `to` and `from` are one element each, and `op` takes it.
#[inline(always)]
unsafe fn combine_at(op: Op, element: ElementType, to: *mut u8, from: *const u8) {
    macro_rules! by_scalar {
        ($scalar:expr, $v:ident => $call:expr) => {
            match $scalar {
                Scalar::I8 => { type $v = i8; $call }
                Scalar::I16 => { type $v = i16; $call }
                Scalar::I32 => { type $v = i32; $call }
                Scalar::I64 => { type $v = i64; $call }
                Scalar::U8 => { type $v = u8; $call }
                Scalar::U16 => { type $v = u16; $call }
                Scalar::U32 => { type $v = u32; $call }
                Scalar::U64 => { type $v = u64; $call }
                Scalar::F32 => { type $v = f32; $call }
                Scalar::F64 => { type $v = f64; $call }
            }
        };
    }
    if op == Op::Replace {
        // SAFETY: the caller's.
        unsafe { std::ptr::copy_nonoverlapping(from, to, element.size as usize) };
        return;
    }
    // SAFETY: the caller's.
    unsafe {
        match element.kind {
            ElementKind::Scalar(s) => by_scalar!(s, V => scalar::<V>(op, to, from)),
            ElementKind::ValueAt(value, index) => {
                by_scalar!(value, V => match (index, size_of::<V>()) {
                    (Scalar::I8, 1) => pair::<V, i8>(op, to, from),
                    (Scalar::U8, 1) => pair::<V, u8>(op, to, from),
                    (Scalar::I16, 2) => pair::<V, i16>(op, to, from),
                    (Scalar::U16, 2) => pair::<V, u16>(op, to, from),
                    (Scalar::I32, 4) => pair::<V, i32>(op, to, from),
                    (Scalar::U32, 4) => pair::<V, u32>(op, to, from),
                    (Scalar::I64, 8) => pair::<V, i64>(op, to, from),
                    (Scalar::U64, 8) => pair::<V, u64>(op, to, from),
                    _ => debug_assert!(false, "no such pair"),
                })
            }
            ElementKind::Opaque => debug_assert!(false, "opaque elements only move"),
        }
    }
}
