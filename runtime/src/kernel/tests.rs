//! Compares every loop with safe code that handles one element at a time.

use crate::kernel::element::ValueAt;
use crate::kernel::element::element_type;
use crate::kernel::*;
use bytemuck::{Pod, bytes_of};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementKind, ElementType, Op, Scalar};

/// Datatypes of 12 elements each, all within `0..200`: a run, a descending run, columns, planes,
/// short and long runs, a list, zero strides.
fn shapes() -> Vec<Datatype> {
    vec![
        Datatype::run(5..17),
        Datatype::nest(190, &[(12, -7)], 1).unwrap(),
        Datatype::nest(3, &[(12, 16)], 1).unwrap(),
        Datatype::nest(3, &[(3, 50), (4, 11)], 1).unwrap(),
        Datatype::nest(1, &[(2, 90), (3, 20), (2, 9)], 1).unwrap(),
        Datatype::nest(0, &[(6, 30)], 2).unwrap(),
        Datatype::nest(100, &[(2, -40), (2, 20)], 3).unwrap(),
        Datatype::nest(7, &[(2, 60)], 6).unwrap(),
        Datatype::elements([9, 3, 77, 78, 79, 1, 150, 8, 60, 61, 199, 0]).unwrap(),
        Datatype::runs([(4, 5), (100, 1), (90, 2), (30, 4)]).unwrap(),
    ]
}

const LEN: usize = 200;

/// Returns bytes that differ from place to place.
fn noise(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| ((i + seed * 7919).wrapping_mul(2_654_435_761) >> 9) as u8).collect()
}

fn places(datatype: &Datatype) -> Vec<usize> {
    datatype.element_iter().map(|at| at as usize).collect()
}

#[test]
fn pack_and_unpack_move_each_element_and_nothing_else_at_any_alignment() {
    for size in [1, 2, 3, 4, 5, 8, 12, 16, 24, 40] {
        let window = noise(LEN * size, size);
        for datatype in &shapes() {
            for skew in 0..3 {
                let mut packed = vec![0xee_u8; 12 * size + 8];
                // SAFETY: the shapes are in the window; the buffer has room.
                unsafe { pack(window.as_ptr(), datatype, size, packed[skew..].as_mut_ptr()) };
                let mut wanted = vec![0xee_u8; 12 * size + 8];
                for (i, at) in places(datatype).into_iter().enumerate() {
                    wanted[skew + i * size..][..size].copy_from_slice(&window[at * size..][..size]);
                }
                assert_eq!(packed, wanted, "{datatype} of {size}");

                let mut filled = noise(LEN * size, 99);
                let mut wanted = filled.clone();
                // SAFETY: as above.
                unsafe { unpack(packed[skew..].as_ptr(), filled.as_mut_ptr(), datatype, size) };
                for (i, at) in places(datatype).into_iter().enumerate() {
                    wanted[at * size..][..size].copy_from_slice(&packed[skew + i * size..][..size]);
                }
                assert_eq!(filled, wanted, "{datatype} of {size}");
            }
        }
    }
}

#[test]
fn copy_moves_each_element_between_any_two_shapes() {
    for size in [1, 2, 3, 4, 8, 12, 16, 24] {
        let from = noise(LEN * size, 1);
        for a in &shapes() {
            for b in &shapes() {
                let mut to = noise(LEN * size, 2);
                let mut wanted = to.clone();
                // SAFETY: the shapes are in their windows, which are different windows.
                unsafe { copy(from.as_ptr(), a, to.as_mut_ptr(), b, size) };
                for (a, b) in places(a).into_iter().zip(places(b)) {
                    wanted[b * size..][..size].copy_from_slice(&from[a * size..][..size]);
                }
                assert_eq!(to, wanted, "{a} to {b} of {size}");
            }
        }
    }
}

#[test]
fn what_is_written_twice_is_written_in_typemap_order() {
    let twice = Datatype::nest(0, &[(3, 0), (2, 1)], 2).unwrap();
    let from: Vec<u32> = (1..=12).collect();
    let mut to = [0_u32; 4];
    let bytes = to.as_mut_ptr().cast::<u8>();
    // SAFETY: the datatype touches elements 0 to 2 of 4.
    unsafe { unpack(from.as_ptr().cast(), bytes, &twice, 4) };
    assert_eq!(to, [9, 11, 12, 0]);
    let bytes = to.as_mut_ptr().cast::<u8>();
    // SAFETY: as above.
    unsafe { combine(Op::Sum, ElementType::scalar(Scalar::U32), bytes, &twice, from.as_ptr().cast()) };
    let (ends, middle) = ([1 + 5 + 9, 4 + 8 + 12], 2 + 3 + 6 + 7 + 10 + 11);
    assert_eq!(to, [9 + ends[0], 11 + middle, 12 + ends[1], 0]);
}

/// Returns the bytes of the values that an operator is most likely to treat wrongly.
fn special(scalar: Scalar) -> Vec<Vec<u8>> {
    fn all<T: Pod>(values: &[T]) -> Vec<Vec<u8>> {
        values.iter().map(|value| bytes_of(value).to_vec()).collect()
    }
    macro_rules! integer {
        ($ty:ident) => {
            all(&[0, 1, 2, 3, 77, $ty::MIN, $ty::MAX, $ty::MAX / 2 + 1, $ty::MAX - 1, 0x55])
        };
    }
    match scalar {
        Scalar::I8 => integer!(i8),
        Scalar::I16 => integer!(i16),
        Scalar::I32 => integer!(i32),
        Scalar::I64 => integer!(i64),
        Scalar::U8 => integer!(u8),
        Scalar::U16 => integer!(u16),
        Scalar::U32 => integer!(u32),
        Scalar::U64 => integer!(u64),
        Scalar::F32 => all(&[
            0.0_f32.to_bits(),
            (-0.0_f32).to_bits(),
            1.5_f32.to_bits(),
            (-2.5_f32).to_bits(),
            f32::INFINITY.to_bits(),
            f32::NEG_INFINITY.to_bits(),
            f32::MAX.to_bits(),
            f32::MIN_POSITIVE.to_bits(),
            1,
            0x7fc0_0000,
            0xffc0_1234,
            0x7f80_0001,
            0xff80_0002,
        ]),
        Scalar::F64 => all(&[
            0.0_f64.to_bits(),
            (-0.0_f64).to_bits(),
            1.5_f64.to_bits(),
            (-2.5_f64).to_bits(),
            f64::INFINITY.to_bits(),
            f64::NEG_INFINITY.to_bits(),
            f64::MAX.to_bits(),
            f64::MIN_POSITIVE.to_bits(),
            1,
            0x7ff8_0000_0000_0000,
            0xfff8_0000_0000_1234,
            0x7ff0_0000_0000_0001,
            0xfff0_0000_0000_0002,
        ]),
    }
}

/// Returns the value of an integer.
fn number(scalar: Scalar, bytes: &[u8]) -> i128 {
    let mut wide = [0_u8; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    let value = i128::from_le_bytes(wide);
    let bits = 8 * scalar.size();
    let signed = matches!(scalar, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64);
    if signed && value >> (bits - 1) == 1 { value - (1 << bits) } else { value }
}

/// Returns a float as a double, which can represent every float.
fn float(bytes: &[u8]) -> f64 {
    match bytes.len() {
        4 => f64::from(bytemuck::pod_read_unaligned::<f32>(bytes)),
        _ => bytemuck::pod_read_unaligned(bytes),
    }
}

/// Compares two values by MINLOC (or MAXLOC, if not `low`): the value that wins is the lesser one,
/// and the values are equal if either may win.
fn winner(scalar: Scalar, a: &[u8], b: &[u8], low: bool) -> std::cmp::Ordering {
    if !scalar.is_float() {
        let order = number(scalar, a).cmp(&number(scalar, b));
        return if low { order } else { order.reverse() };
    }
    let key = |value: f64| (value, if value == 0.0 && value.is_sign_negative() { -1 } else { 0 });
    let (a, b) = (float(a), float(b));
    match (a.is_nan(), b.is_nan()) {
        (true, true) => std::cmp::Ordering::Equal,
        (true, false) => std::cmp::Ordering::Less,
        (false, true) => std::cmp::Ordering::Greater,
        (false, false) => {
            let order = key(a).partial_cmp(&key(b)).unwrap();
            if low { order } else { order.reverse() }
        }
    }
}

/// Replaces any NaN by the canonical quiet one.
fn canonical(scalar: Scalar, bytes: &[u8]) -> Vec<u8> {
    match scalar {
        Scalar::F32 if float(bytes).is_nan() => 0x7fc0_0000_u32.to_le_bytes().to_vec(),
        Scalar::F64 if float(bytes).is_nan() => 0x7ff8_0000_0000_0000_u64.to_le_bytes().to_vec(),
        _ => bytes.to_vec(),
    }
}

/// Returns the result of an operator on two elements, by paragraph 7 of `planner/README.md`.
fn by_the_book(op: Op, element: ElementType, old: &[u8], new: &[u8]) -> Vec<u8> {
    match (op, element.kind) {
        (Op::Replace, _) => new.to_vec(),
        (Op::MinLoc | Op::MaxLoc, ElementKind::ValueAt(value, index)) => {
            let cut = value.size() as usize;
            let by_index = || number(index, &old[cut..]).cmp(&number(index, &new[cut..]));
            let order = winner(value, &old[..cut], &new[..cut], op == Op::MinLoc).then_with(by_index);
            let won = if order.is_le() { old } else { new };
            [canonical(value, &won[..cut]), won[cut..].to_vec()].concat()
        }
        (Op::Min | Op::Max, ElementKind::Scalar(scalar)) => {
            let old_wins = winner(scalar, old, new, op == Op::Min).is_le();
            canonical(scalar, if old_wins { old } else { new })
        }
        (Op::Sum | Op::Prod, ElementKind::Scalar(Scalar::F32)) => {
            let (a, b): (f32, f32) = (bytemuck::pod_read_unaligned(old), bytemuck::pod_read_unaligned(new));
            canonical(Scalar::F32, bytes_of(&if op == Op::Sum { a + b } else { a * b }))
        }
        (Op::Sum | Op::Prod, ElementKind::Scalar(Scalar::F64)) => {
            let (a, b) = (float(old), float(new));
            canonical(Scalar::F64, bytes_of(&if op == Op::Sum { a + b } else { a * b }))
        }
        (_, ElementKind::Scalar(scalar)) => {
            let (a, b) = (number(scalar, old), number(scalar, new));
            let value = match op {
                Op::Sum => a + b,
                Op::Prod => a.wrapping_mul(b),
                Op::Band => a & b,
                Op::Bor => a | b,
                Op::Bxor => a ^ b,
                Op::Land => i128::from(a != 0 && b != 0),
                Op::Lor => i128::from(a != 0 || b != 0),
                _ => i128::from((a != 0) != (b != 0)),
            };
            value.to_le_bytes()[..old.len()].to_vec()
        }
        (op, kind) => panic!("{op} is not defined for {kind:?}"),
    }
}

/// Returns every element type that some operator other than REPLACE takes.
fn types() -> Vec<ElementType> {
    let mut types: Vec<_> = Scalar::ALL.into_iter().map(ElementType::scalar).collect();
    for value in Scalar::ALL {
        for index in Scalar::ALL.into_iter().filter(|index| !index.is_float() && index.size() == value.size())
        {
            types.push(ElementType { size: 2 * value.size(), kind: ElementKind::ValueAt(value, index) });
        }
    }
    types
}

fn values(element: ElementType) -> Vec<Vec<u8>> {
    match element.kind {
        ElementKind::ValueAt(value, index) => {
            let indices = special(index);
            let pair = |value: &Vec<u8>, index: &Vec<u8>| [value.clone(), index.clone()].concat();
            special(value)
                .iter()
                .flat_map(|value| indices.iter().map(move |index| pair(value, index)))
                .collect()
        }
        ElementKind::Scalar(scalar) => special(scalar),
        ElementKind::Opaque => Vec::new(),
    }
}

struct CombineOne<'a>(Op, &'a mut [u8], u64);

impl Task for CombineOne<'_> {
    type Out = ();
    fn with<V: Values>(self) {
        assert_eq!(self.1.len(), size_of::<V>());
        // SAFETY: there is one element.
        unsafe { combine_one::<V>(self.0, self.1.as_mut_ptr(), self.2) }
    }
}

struct CombineEach<'a>(Op, &'a mut [u8], &'a [u64]);

impl Task for CombineEach<'_> {
    type Out = ();
    fn with<V: Values>(self) {
        assert_eq!(self.1.len(), self.2.len() * size_of::<V>());
        let to = self.1.as_mut_ptr();
        let values = self.2.iter().enumerate().map(|(i, &bits)| (to.wrapping_add(i * size_of::<V>()), bits));
        // SAFETY: there is an element for each value.
        unsafe { combine_each::<V>(self.0, values) }
    }
}

#[test]
fn every_operator_on_every_type_treats_special_values_as_defined() {
    let mut seen = 0;
    for element in types() {
        let size = element.size as usize;
        for op in Op::ALL.into_iter().filter(|op| op.takes(element)) {
            let values = values(element);
            for old in &values {
                // Combines all values at once into the same number of copies of the old value. The
                // values are at an odd address.
                let mut window = old.repeat(values.len());
                let mut source = vec![0_u8];
                source.extend(values.concat());
                let all = Datatype::run(0..values.len());
                // SAFETY: window and buffer have one element for each value.
                unsafe { combine(op, element, window.as_mut_ptr(), &all, source[1..].as_ptr()) };
                if size <= 8 && op != Op::Replace {
                    let mut each = old.repeat(values.len());
                    let bits = |value: &Vec<u8>| {
                        let mut bits = [0x77_u8; 8];
                        bits[..size].copy_from_slice(value);
                        u64::from_le_bytes(bits)
                    };
                    let words: Vec<u64> = values.iter().map(bits).collect();
                    with_values(element, CombineEach(op, &mut each, &words));
                    assert_eq!(each, window, "{op} of {element:?}, one by one");
                }
                for (new, found) in values.iter().zip(window.chunks_exact(size)) {
                    let wanted = by_the_book(op, element, old, new);
                    assert_eq!(found, wanted, "{op} of {element:?}: {old:?} and {new:?}");
                    if size <= 8 {
                        let (mut one, mut bits) = (old.clone(), [0x77_u8; 8]);
                        bits[..size].copy_from_slice(new);
                        with_values(element, CombineOne(op, &mut one, u64::from_le_bytes(bits)));
                        assert_eq!(one, wanted, "{op} of {element:?}: {old:?} and {new:?}");
                    }
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 400_000, "{seen}");
}

#[test]
fn combining_goes_to_each_element_of_any_shape_and_nowhere_else() {
    for element in types() {
        let size = element.size as usize;
        let from = noise(LEN * size + 1, 3);
        for op in Op::ALL.into_iter().filter(|op| op.takes(element)) {
            for b in &shapes() {
                let before = noise(LEN * size, 4);
                let mut to = before.clone();
                let mut wanted = before.clone();
                // SAFETY: the shape is within the window, and the buffer has the shape's number of
                // elements.
                unsafe { combine(op, element, to.as_mut_ptr(), b, from[1..].as_ptr()) };
                for (i, at) in places(b).into_iter().enumerate() {
                    let value =
                        by_the_book(op, element, &before[at * size..][..size], &from[1 + i * size..][..size]);
                    wanted[at * size..][..size].copy_from_slice(&value);
                }
                assert_eq!(to, wanted, "{op} of {element:?} into {b}");

                for a in &shapes() {
                    let mut to = before.clone();
                    let mut wanted = before.clone();
                    // SAFETY: the shapes are in their windows, which are different windows.
                    unsafe { combine_copy(op, element, from.as_ptr(), a, to.as_mut_ptr(), b) };
                    for (a, b) in places(a).into_iter().zip(places(b)) {
                        let value =
                            by_the_book(op, element, &before[b * size..][..size], &from[a * size..][..size]);
                        wanted[b * size..][..size].copy_from_slice(&value);
                    }
                    assert_eq!(to, wanted, "{op} of {element:?} from {a} into {b}");
                }
            }
        }
    }
}

#[test]
fn a_pair_is_a_value_and_then_an_index() {
    let old = ValueAt { value: 2.0_f64, index: 7_i64 };
    let new = ValueAt { value: 2.0_f64, index: -3_i64 };
    let element = element_type::<ValueAt<f64, i64>>();
    let mut window = [old];
    let at = window.as_mut_ptr().cast::<u8>();
    // SAFETY: the window and the buffer have one element each.
    unsafe { combine(Op::MinLoc, element, at, &Datatype::run(0..1), bytes_of(&new).as_ptr()) };
    assert_eq!(window, [new]);
}
