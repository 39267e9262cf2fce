//! The operators on two values, as paragraph 7 of `planner/README.md` defines them: a function for
//! each operator and type, and the choice of a function.
//!
//! Integers wrap. Logical operators leave 0 or 1. MIN and MAX are `minimum` and `maximum` of IEEE
//! 754-2019, section 9.6 (NaN wins, -0 < +0), and MINLOC and MAXLOC order values the same way.
//! Every resulting NaN is the canonical quiet NaN.

use crate::kernel::element::ValueAt;
use fencepost_planner::element::{ElementKind, ElementType, Op, Scalar};
use std::cmp::Ordering;
use std::marker::PhantomData;

/// One operator on one type.
pub trait Kernel {
    /// The type of the values: plain old data for which any bits are a value.
    type Value: Copy;
    /// Combines the present element `old` with the arriving element `new`.
    fn combine(old: Self::Value, new: Self::Value) -> Self::Value;
    /// Combines as `combine` does, for single elements. These combinations are not vectorised, so a
    /// branch may handle a rare case.
    #[inline(always)]
    fn combine_apart(old: Self::Value, new: Self::Value) -> Self::Value {
        Self::combine(old, new)
    }
}

/// Marks a branch that is hardly ever taken, so that the compiler keeps it a branch.
#[inline]
#[cold]
fn cold_path() {}

/// A computation that is generic over the chosen kernel.
pub trait Job {
    /// The type of the result.
    type Out;
    /// Does the job with this kernel.
    fn with<K: Kernel>(self) -> Self::Out;
}

/// A value that MINLOC and MAXLOC can compare.
pub trait Ranked: Copy {
    /// Compares by MINLOC: the lesser value wins.
    fn low(self, other: Self) -> Ordering;
    /// Compares by MAXLOC: the lesser value wins.
    fn high(self, other: Self) -> Ordering;
    /// Returns the canonical quiet NaN for any NaN, and other values unchanged.
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
    (@apart $ty:ty: $($name:ident |$old:ident, $new:ident| $value:expr;)*) => {$(
        impl Kernel for $name<$ty> {
            type Value = $ty;
            #[inline(always)]
            fn combine($old: $ty, $new: $ty) -> $ty {
                $value.canonical()
            }
            #[inline(always)]
            fn combine_apart($old: $ty, $new: $ty) -> $ty {
                let value = $value;
                if value.is_nan() {
                    cold_path();
                    return value.canonical();
                }
                value
            }
        }
    )*};
}

macro_rules! integers {
    ($($signed:ident $unsigned:ident)*) => {$(
        // These operators do not depend on the sign, so one kernel serves the signed and the
        // unsigned type.
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
        kernels! { @apart $ty:
            Sum |a, b| (a + b);
            Prod |a, b| (a * b);
            Min |a, b| if a.low(b).is_le() { a } else { b };
            Max |a, b| if a.high(b).is_le() { a } else { b };
        }
        impl Ranked for $ty {
            #[inline(always)]
            fn low(self, other: Self) -> Ordering {
                // For numbers, the total order of the standard has -0 < +0.
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

/// A type of elements whose operators are known at compile time.
pub trait Values: Copy + 'static {
    /// Does `job` with the kernel of `op`. Returns `None` if there is no kernel: for REPLACE, and
    /// for operators that these elements do not take.
    fn choose<J: Job>(op: Op, job: J) -> Option<J::Out>;
}

macro_rules! values {
    ($($ty:ident: $($op:ident $kernel:ty),*;)*) => {$(
        impl Values for $ty {
            #[inline(always)]
            fn choose<J: Job>(op: Op, job: J) -> Option<J::Out> {
                match op {
                    $(Op::$op => Some(job.with::<$kernel>()),)*
                    _ => None,
                }
            }
        }
    )*};
}
macro_rules! integer_values {
    ($($ty:ident as $signless:ident)*) => {
        values! {$($ty:
            Sum Sum<$signless>, Prod Prod<$signless>, Min Min<$ty>, Max Max<$ty>,
            Band Band<$signless>, Bor Bor<$signless>, Bxor Bxor<$signless>,
            Land Land<$signless>, Lor Lor<$signless>, Lxor Lxor<$signless>;
        )*}
    };
}
integer_values!(i8 as u8 i16 as u16 i32 as u32 i64 as u64 u8 as u8 u16 as u16 u32 as u32 u64 as u64);
values! {
    f32: Sum Sum<f32>, Prod Prod<f32>, Min Min<f32>, Max Max<f32>;
    f64: Sum Sum<f64>, Prod Prod<f64>, Min Min<f64>, Max Max<f64>;
}

impl<V: Ranked + 'static, I: Copy + Ord + 'static> Values for ValueAt<V, I> {
    #[inline(always)]
    fn choose<J: Job>(op: Op, job: J) -> Option<J::Out> {
        match op {
            Op::MinLoc => Some(job.with::<MinLoc<Self>>()),
            Op::MaxLoc => Some(job.with::<MaxLoc<Self>>()),
            _ => None,
        }
    }
}

/// Elements with a known size and no known operators.
impl<const SIZE: usize> Values for [u8; SIZE] {
    #[inline(always)]
    fn choose<J: Job>(_: Op, _: J) -> Option<J::Out> {
        None
    }
}

/// A computation that is generic over the element type.
pub trait Task {
    /// The type of the result.
    type Out;
    /// Does the task with this type.
    fn with<V: Values>(self) -> Self::Out;
}

/// Does `task` with the type of `element`.
///
/// Opaque elements wider than 8 bytes share one placeholder type of 9 bytes: records never hold
/// such values, so the placeholder is never read.
#[inline(always)]
pub fn with_values<T: Task>(element: ElementType, task: T) -> T::Out {
    macro_rules! pair {
        ($value:ident, $index:ident, $signed:ident $i:ident, $unsigned:ident $u:ident) => {
            match $index {
                Scalar::$signed => task.with::<ValueAt<$value, $i>>(),
                Scalar::$unsigned => task.with::<ValueAt<$value, $u>>(),
                _ => opaque(element.size, task),
            }
        };
    }
    match element.kind {
        ElementKind::Scalar(Scalar::I8) => task.with::<i8>(),
        ElementKind::Scalar(Scalar::I16) => task.with::<i16>(),
        ElementKind::Scalar(Scalar::I32) => task.with::<i32>(),
        ElementKind::Scalar(Scalar::I64) => task.with::<i64>(),
        ElementKind::Scalar(Scalar::U8) => task.with::<u8>(),
        ElementKind::Scalar(Scalar::U16) => task.with::<u16>(),
        ElementKind::Scalar(Scalar::U32) => task.with::<u32>(),
        ElementKind::Scalar(Scalar::U64) => task.with::<u64>(),
        ElementKind::Scalar(Scalar::F32) => task.with::<f32>(),
        ElementKind::Scalar(Scalar::F64) => task.with::<f64>(),
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
        ElementKind::Opaque => opaque(element.size, task),
    }
}

fn opaque<T: Task>(size: u32, task: T) -> T::Out {
    match size {
        1 => task.with::<[u8; 1]>(),
        2 => task.with::<[u8; 2]>(),
        3 => task.with::<[u8; 3]>(),
        4 => task.with::<[u8; 4]>(),
        5 => task.with::<[u8; 5]>(),
        6 => task.with::<[u8; 6]>(),
        7 => task.with::<[u8; 7]>(),
        8 => task.with::<[u8; 8]>(),
        _ => task.with::<[u8; 9]>(),
    }
}

/// Does `job` with the kernel of `op` on `element`. Returns `None` if there is no kernel.
#[inline(always)]
pub(super) fn choose<J: Job>(op: Op, element: ElementType, job: J) -> Option<J::Out> {
    struct Choose<J>(Op, J);
    impl<J: Job> Task for Choose<J> {
        type Out = Option<J::Out>;
        #[inline(always)]
        fn with<V: Values>(self) -> Option<J::Out> {
            V::choose(self.0, self.1)
        }
    }
    with_values(element, Choose(op, job))
}
