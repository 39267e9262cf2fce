//! Applies one operator to one element (7).

use fencepost_planner::element::{ElementKind, ElementType, Op, Scalar};

/// Applies an operator to floats as in IEEE 754-2019: if an operand is a NaN, the result is the
/// canonical NaN, and -0 is less than +0.
macro_rules! float {
    ($float:ty, $nan:literal, $op:expr, $target:expr, $value:expr) => {{
        let (a, b) = (<$float>::from_ne_bytes(array($target)), <$float>::from_ne_bytes(array($value)));
        let (first, second) = if a == b && a.is_sign_negative() || a < b { (a, b) } else { (b, a) };
        let c = match $op {
            Op::Sum => a + b,
            Op::Prod => a * b,
            Op::Min | Op::Max if a.is_nan() || b.is_nan() => <$float>::NAN,
            Op::Min => first,
            Op::Max => second,
            _ => panic!("{} is not defined for {}", $op, stringify!($float)),
        };
        let bits = if c.is_nan() { $nan } else { c.to_bits() };
        $target.copy_from_slice(&bits.to_ne_bytes());
    }};
}

/// Applies `value` to `target` by the operator `op`, or copies its bits if `op` is `None`. Both are
/// one element of type `element`, and `op` must be defined for this type.
///
/// # Panics
/// Panics if `op` is not defined for `element`, or if a slice does not have the length of an
/// element.
pub fn apply(op: Option<Op>, element: ElementType, target: &mut [u8], value: &[u8]) {
    match (op, element.kind) {
        (Some(Op::NoOp), _) => {}
        (None | Some(Op::Replace), _) => target.copy_from_slice(value),
        (Some(op @ (Op::MinLoc | Op::MaxLoc)), ElementKind::ValueAt(what, at)) => {
            locate(op, what, at, target, value);
        }
        (Some(op), ElementKind::Scalar(Scalar::F32)) => float!(f32, 0x7fc0_0000, op, target, value),
        (Some(op), ElementKind::Scalar(Scalar::F64)) => float!(f64, 0x7ff8_0000_0000_0000, op, target, value),
        (Some(op), ElementKind::Scalar(scalar)) => {
            // These integers are so wide that only PROD can overflow. Even then the low bits of the
            // product are correct.
            let (a, b) = (integer(scalar, target), integer(scalar, value));
            let c = match op {
                Op::Sum => a + b,
                Op::Prod => a.wrapping_mul(b),
                Op::Min => a.min(b),
                Op::Max => a.max(b),
                Op::Band => a & b,
                Op::Bor => a | b,
                Op::Bxor => a ^ b,
                Op::Land => i128::from(a != 0 && b != 0),
                Op::Lor => i128::from(a != 0 || b != 0),
                Op::Lxor => i128::from((a != 0) != (b != 0)),
                Op::Replace | Op::MinLoc | Op::MaxLoc | Op::NoOp => {
                    panic!("{op} is not defined for {scalar:?}")
                }
            };
            match scalar.size() {
                1 => target.copy_from_slice(&(c as u8).to_ne_bytes()),
                2 => target.copy_from_slice(&(c as u16).to_ne_bytes()),
                4 => target.copy_from_slice(&(c as u32).to_ne_bytes()),
                _ => target.copy_from_slice(&(c as u64).to_ne_bytes()),
            }
        }
        (Some(op), kind) => panic!("{op} is not defined for {kind:?}"),
    }
}

/// Applies MINLOC or MAXLOC: leaves the value that MIN or MAX would leave, with the smallest index
/// of an operand that has this value.
fn locate(op: Op, what: Scalar, at: Scalar, target: &mut [u8], value: &[u8]) {
    let split = what.size() as usize;
    let extreme = if op == Op::MinLoc { Op::Min } else { Op::Max };
    let mut best = target[..split].to_vec();
    apply(Some(extreme), ElementType::scalar(what), &mut best, &value[..split]);
    let mut index: Option<Vec<u8>> = None;
    for side in [&*target, value] {
        let (theirs, place) = side.split_at(split);
        if canonical(what, theirs) == best {
            let place = canonical(at, place);
            match &mut index {
                None => index = Some(place),
                Some(index) => apply(Some(Op::Min), ElementType::scalar(at), index, &place),
            }
        }
    }
    let index = index.expect("one of the two brings the extreme value");
    target[..split].copy_from_slice(&best);
    target[split..].copy_from_slice(&index);
}

/// Returns the value itself, or the canonical quiet NaN if the value is a NaN.
fn canonical(scalar: Scalar, bytes: &[u8]) -> Vec<u8> {
    match scalar {
        Scalar::F32 if f32::from_ne_bytes(array(bytes)).is_nan() => 0x7fc0_0000_u32.to_ne_bytes().to_vec(),
        Scalar::F64 if f64::from_ne_bytes(array(bytes)).is_nan() => {
            0x7ff8_0000_0000_0000_u64.to_ne_bytes().to_vec()
        }
        _ => bytes.to_vec(),
    }
}

fn integer(scalar: Scalar, bytes: &[u8]) -> i128 {
    match scalar {
        Scalar::I8 => i8::from_ne_bytes(array(bytes)).into(),
        Scalar::I16 => i16::from_ne_bytes(array(bytes)).into(),
        Scalar::I32 => i32::from_ne_bytes(array(bytes)).into(),
        Scalar::I64 => i64::from_ne_bytes(array(bytes)).into(),
        Scalar::U8 => u8::from_ne_bytes(array(bytes)).into(),
        Scalar::U16 => u16::from_ne_bytes(array(bytes)).into(),
        Scalar::U32 => u32::from_ne_bytes(array(bytes)).into(),
        Scalar::U64 => u64::from_ne_bytes(array(bytes)).into(),
        Scalar::F32 | Scalar::F64 => panic!("{scalar:?} is not an integer"),
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("a slice as long as its scalar")
}
