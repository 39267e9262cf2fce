//! What an operator makes of two values: paragraph 7 of `planner/README.md` as functions, and the choice among them.
//!
//! Integers wrap; logical operators leave 0 or 1; MIN and MAX are `minimum` and `maximum` of IEEE 754-2019, section 9.6
//! (NaN wins, -0 < +0), and MINLOC and MAXLOC order values the same way; every NaN is the canonical quiet one.

use crate::kernel::element::ValueAt;
use fencepost_planner::element::{ElementKind, ElementType, Op, Scalar};
use std::cmp::Ordering;
use std::marker::PhantomData;

/// One operator on one type.
pub(super) trait Kernel {
    /// Plain old data, any bits a value.
    type Value: Copy;
    /// The element that was there, and what arrives.
    fn combine(old: Self::Value, new: Self::Value) -> Self::Value;
}

/// What is done with the kernel that was chosen.
pub(super) trait Job {
    /// What it returns.
    type Out;
    /// Do it.
    fn with<K: Kernel>(self) -> Self::Out;
}

/// How MINLOC and MAXLOC see a value.
trait Ranked: Copy {
    /// By MINLOC: what is less wins.
    fn low(self, other: Self) -> Ordering;
    /// By MAXLOC: what is less wins.
    fn high(self, other: Self) -> Ordering;
    /// The canonical quiet NaN for any NaN.
    fn canonical(self) -> Self;
}

macro_rules! operators {
    ($($name:ident)*) => {$(
        struct $name<V>(PhantomData<V>);
    )*};
}
operators!(Sum Prod Min Max Band Bor Bxor Land Lor Lxor MinLoc MaxLoc);

macro_rules! kernels {
    ($ty:ty: $($name:ident |$old:ident, $new:ident| $value:expr;)*) => {$(
        impl Kernel for $name<$ty> {
            type Value = $ty;
            #[inline(always)]
            fn combine($old: $ty, $new: $ty) -> $ty {
                $value
            }
        }
    )*};
}

macro_rules! integers {
    ($($signed:ident $unsigned:ident)*) => {$(
        // Where the sign does not show, one kernel serves both.
        kernels! { $unsigned:
            Sum |a, b| a.wrapping_add(b);
            Prod |a, b| a.wrapping_mul(b);
            Band |a, b| a & b;
            Bor |a, b| a | b;
            Bxor |a, b| a ^ b;
            Land |a, b| $unsigned::from(a != 0 && b != 0);
            Lor |a, b| $unsigned::from(a != 0 || b != 0);
            Lxor |a, b| $unsigned::from((a != 0) != (b != 0));
        }
        integers!(@order $signed);
        integers!(@order $unsigned);
    )*};
    (@order $ty:ident) => {
        kernels! { $ty:
            Min |a, b| a.min(b);
            Max |a, b| a.max(b);
        }
        impl Ranked for $ty {
            #[inline(always)]
            fn low(self, other: Self) -> Ordering {
                self.cmp(&other)
            }
            #[inline(always)]
            fn high(self, other: Self) -> Ordering {
                other.cmp(&self)
            }
            #[inline(always)]
            fn canonical(self) -> Self {
                self
            }
        }
    };
}
integers!(i8 u8 i16 u16 i32 u32 i64 u64);

macro_rules! floats {
    ($($ty:ident $nan:literal)*) => {$(
        kernels! { $ty:
            Sum |a, b| (a + b).canonical();
            Prod |a, b| (a * b).canonical();
            Min |a, b| if a.low(b).is_le() { a } else { b }.canonical();
            Max |a, b| if a.high(b).is_le() { a } else { b }.canonical();
        }
        impl Ranked for $ty {
            #[inline(always)]
            fn low(self, other: Self) -> Ordering {
                // Of numbers, the total order of the standard is the one that has -0 < +0.
                other.is_nan().cmp(&self.is_nan()).then_with(|| {
                    if self.is_nan() { Ordering::Equal } else { self.total_cmp(&other) }
                })
            }
            #[inline(always)]
            fn high(self, other: Self) -> Ordering {
                other.is_nan().cmp(&self.is_nan()).then_with(|| {
                    if self.is_nan() { Ordering::Equal } else { other.total_cmp(&self) }
                })
            }
            #[inline(always)]
            fn canonical(self) -> Self {
                if self.is_nan() { $ty::from_bits($nan) } else { self }
            }
        }
    )*};
}
floats!(f32 0x7fc0_0000 f64 0x7ff8_0000_0000_0000);

impl<V: Ranked, I: Copy + Ord> Kernel for MinLoc<ValueAt<V, I>> {
    type Value = ValueAt<V, I>;
    #[inline(always)]
    fn combine(old: Self::Value, new: Self::Value) -> Self::Value {
        let keep = old.value.low(new.value).then_with(|| old.index.cmp(&new.index)).is_le();
        let won = if keep { old } else { new };
        ValueAt { value: won.value.canonical(), index: won.index }
    }
}

impl<V: Ranked, I: Copy + Ord> Kernel for MaxLoc<ValueAt<V, I>> {
    type Value = ValueAt<V, I>;
    #[inline(always)]
    fn combine(old: Self::Value, new: Self::Value) -> Self::Value {
        let keep = old.value.high(new.value).then_with(|| old.index.cmp(&new.index)).is_le();
        let won = if keep { old } else { new };
        ValueAt { value: won.value.canonical(), index: won.index }
    }
}

/// Do `job` with the kernel of `op` on `element`; `None` where there is none: REPLACE, and what `op` does not take.
#[inline(always)]
pub(super) fn choose<J: Job>(op: Op, element: ElementType, job: J) -> Option<J::Out> {
    macro_rules! integer {
        ($signless:ident, $ty:ident) => {
            match op {
                Op::Sum => Some(job.with::<Sum<$signless>>()),
                Op::Prod => Some(job.with::<Prod<$signless>>()),
                Op::Min => Some(job.with::<Min<$ty>>()),
                Op::Max => Some(job.with::<Max<$ty>>()),
                Op::Band => Some(job.with::<Band<$signless>>()),
                Op::Bor => Some(job.with::<Bor<$signless>>()),
                Op::Bxor => Some(job.with::<Bxor<$signless>>()),
                Op::Land => Some(job.with::<Land<$signless>>()),
                Op::Lor => Some(job.with::<Lor<$signless>>()),
                Op::Lxor => Some(job.with::<Lxor<$signless>>()),
                Op::Replace | Op::MinLoc | Op::MaxLoc => None,
            }
        };
    }
    macro_rules! float {
        ($ty:ident) => {
            match op {
                Op::Sum => Some(job.with::<Sum<$ty>>()),
                Op::Prod => Some(job.with::<Prod<$ty>>()),
                Op::Min => Some(job.with::<Min<$ty>>()),
                Op::Max => Some(job.with::<Max<$ty>>()),
                _ => None,
            }
        };
    }
    macro_rules! pair {
        ($value:ident, $index:ident, $signed:ident $i:ident, $unsigned:ident $u:ident) => {
            match (op, $index) {
                (Op::MinLoc, Scalar::$signed) => Some(job.with::<MinLoc<ValueAt<$value, $i>>>()),
                (Op::MaxLoc, Scalar::$signed) => Some(job.with::<MaxLoc<ValueAt<$value, $i>>>()),
                (Op::MinLoc, Scalar::$unsigned) => Some(job.with::<MinLoc<ValueAt<$value, $u>>>()),
                (Op::MaxLoc, Scalar::$unsigned) => Some(job.with::<MaxLoc<ValueAt<$value, $u>>>()),
                _ => None,
            }
        };
    }
    match element.kind {
        ElementKind::Scalar(Scalar::I8) => integer!(u8, i8),
        ElementKind::Scalar(Scalar::I16) => integer!(u16, i16),
        ElementKind::Scalar(Scalar::I32) => integer!(u32, i32),
        ElementKind::Scalar(Scalar::I64) => integer!(u64, i64),
        ElementKind::Scalar(Scalar::U8) => integer!(u8, u8),
        ElementKind::Scalar(Scalar::U16) => integer!(u16, u16),
        ElementKind::Scalar(Scalar::U32) => integer!(u32, u32),
        ElementKind::Scalar(Scalar::U64) => integer!(u64, u64),
        ElementKind::Scalar(Scalar::F32) => float!(f32),
        ElementKind::Scalar(Scalar::F64) => float!(f64),
        ElementKind::ValueAt(Scalar::I8, index) => pair!(i8, index, I8 i8, U8 u8),
        ElementKind::ValueAt(Scalar::I16, index) => pair!(i16, index, I16 i16, U16 u16),
        ElementKind::ValueAt(Scalar::I32, index) => pair!(i32, index, I32 i32, U32 u32),
        ElementKind::ValueAt(Scalar::I64, index) => pair!(i64, index, I64 i64, U64 u64),
        ElementKind::ValueAt(Scalar::U8, index) => pair!(u8, index, I8 i8, U8 u8),
        ElementKind::ValueAt(Scalar::U16, index) => pair!(u16, index, I16 i16, U16 u16),
        ElementKind::ValueAt(Scalar::U32, index) => pair!(u32, index, I32 i32, U32 u32),
        ElementKind::ValueAt(Scalar::U64, index) => pair!(u64, index, I64 i64, U64 u64),
        ElementKind::ValueAt(Scalar::F32, index) => pair!(f32, index, I32 i32, U32 u32),
        ElementKind::ValueAt(Scalar::F64, index) => pair!(f64, index, I64 i64, U64 u64),
        ElementKind::Opaque => None,
    }
}
