//! [`Element`]: the types that a window may hold; [`ValueAt`]: a value and the index where it was
//! found.

use bytemuck::{Pod, Zeroable};
use fencepost_planner::element::{ElementKind, ElementType, Scalar};
use std::any::TypeId;

/// Plain old data that a window may hold: any bit pattern is a value, and there is no padding.
///
/// Derive it for your own types: `#[derive(Clone, Copy, Element)] #[repr(C)]`. Every
/// `bytemuck::Pod` type is an element too. The facade re-exports `bytemuck`, whose derives then
/// need `#[bytemuck(crate = "fencepost::bytemuck")]`. Accumulates act on the arithmetic types and
/// on [`ValueAt`]. Elements of all other types can be put, got and replaced. An element has at
/// least one byte and less than 4 GiB, and is aligned to at most 64 bytes. A program that makes a
/// window of a type with another size or alignment does not compile:
///
/// ```compile_fail,E0080
/// # fencepost_runtime::run(|world| {
/// let u = world.window::<[u8; (1 << 32) + 8]>(1)?;
/// # Ok(()) }).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot live in a window",
    label = "not plain old data",
    note = "an element must be valid for every bit pattern and have no padding: put `#[derive(Clone, Copy, Element)]` and `#[repr(C)]` on a struct of numbers"
)]
pub trait Element: Pod {}
impl<T: Pod> Element for T {}

/// A value and the index where it was found, for MINLOC and MAXLOC (MPI's pair types).
///
/// Value and index have the same size, so there is no padding.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[repr(C)]
pub struct ValueAt<V, I> {
    /// The value that is compared.
    pub value: V,
    /// The index where the value was found; the smaller index wins a tie.
    pub index: I,
}

/// Returns the code of a kind of element in messages between ranks.
pub(crate) fn code_of(kind: ElementKind) -> u8 {
    match kind {
        ElementKind::Opaque => 0,
        ElementKind::Scalar(scalar) => 1 + scalar as u8,
        ElementKind::ValueAt(value, index) => 11 + 10 * value as u8 + index as u8,
    }
}

/// Returns the kind of element that has this code.
pub(crate) fn kind_of_code(code: u8) -> Option<ElementKind> {
    let all = Scalar::ALL;
    Some(match code {
        0 => ElementKind::Opaque,
        1..=10 => ElementKind::Scalar(all[usize::from(code - 1)]),
        11..=110 => {
            let pair = usize::from(code - 11);
            ElementKind::ValueAt(all[pair / 10], all[pair % 10])
        }
        _ => return None,
    })
}

macro_rules! pairs {
    ($($value:ident $value_scalar:ident: $($index:ident $index_scalar:ident),*;)*) => {
        $($(
            // SAFETY: the type has two zeroable fields and nothing else.
            unsafe impl Zeroable for ValueAt<$value, $index> {}
            // SAFETY: the type is `repr(C)` and has two plain-old-data fields of one size. So it
            // has no padding, and every bit pattern is valid.
            unsafe impl Pod for ValueAt<$value, $index> {}
        )*)*

        /// Returns the kind of `T`. Once the function is inlined, the compiler knows the result.
        #[inline]
        fn kind_of<T: 'static>() -> ElementKind {
            let id = TypeId::of::<T>();
            if size_of::<usize>() == 8 && id == TypeId::of::<usize>() {
                return ElementKind::Scalar(Scalar::U64);
            }
            if size_of::<isize>() == 8 && id == TypeId::of::<isize>() {
                return ElementKind::Scalar(Scalar::I64);
            }
            $(
                if id == TypeId::of::<$value>() {
                    return ElementKind::Scalar(Scalar::$value_scalar);
                }
                $(
                    if id == TypeId::of::<ValueAt<$value, $index>>() {
                        return ElementKind::ValueAt(Scalar::$value_scalar, Scalar::$index_scalar);
                    }
                )*
            )*
            ElementKind::Opaque
        }
    };
}

pairs! {
    i8 I8: i8 I8, u8 U8;
    i16 I16: i16 I16, u16 U16;
    i32 I32: i32 I32, u32 U32;
    i64 I64: i64 I64, u64 U64;
    u8 U8: i8 I8, u8 U8;
    u16 U16: i16 I16, u16 U16;
    u32 U32: i32 I32, u32 U32;
    u64 U64: i64 I64, u64 U64;
    f32 F32: i32 I32, u32 U32;
    f64 F64: i64 I64, u64 U64;
}

/// Returns the size and the kind of `T`.
#[inline]
pub fn element_type<T: Element>() -> ElementType {
    const { assert!(size_of::<T>() > 0, "an element of a window has at least one byte") };
    const {
        assert!(
            size_of::<T>() <= u32::MAX as usize,
            "an element of a window has less than 4 GiB: make the window of its parts"
        )
    };
    const { assert!(align_of::<T>() <= 64, "an element of a window is aligned to at most 64 bytes") };
    ElementType { size: size_of::<T>() as u32, kind: kind_of::<T>() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_what_it_is_called() {
        assert_eq!(element_type::<f64>(), ElementType::scalar(Scalar::F64));
        assert_eq!(element_type::<u8>(), ElementType::scalar(Scalar::U8));
        #[cfg(target_pointer_width = "64")]
        assert_eq!(
            [element_type::<usize>(), element_type::<isize>()],
            [Scalar::U64, Scalar::I64].map(ElementType::scalar)
        );
        assert_eq!(
            element_type::<ValueAt<f32, u32>>(),
            ElementType { size: 8, kind: ElementKind::ValueAt(Scalar::F32, Scalar::U32) }
        );
        assert_eq!(element_type::<[f64; 3]>(), ElementType::opaque(24));
    }
}
