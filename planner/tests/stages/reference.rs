//! The reference interpreter, by the paragraphs of `planner/README.md`.

use fencepost_planner::ErrorClass;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementKind, ElementType, Op, Scalar};
use fencepost_planner::ids::{Delta, Id, OperationId, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Site};
use fencepost_planner::table::Table;
use fencepost_tests_reference as reference;
use fencepost_tests_reference::{Buffers, Difference, Epoch, World, apply};

const W: WindowId = WindowId(0);
const V: WindowId = WindowId(1);

fn bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

fn ints(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks(4).map(|b| i32::from_ne_bytes(b.try_into().unwrap())).collect()
}

/// Returns two windows of i32 on every rank. `W` has the given elements, and `V` has as many zeros.
fn world(ranks: &[&[i32]]) -> World {
    World {
        element: [ElementType::scalar(Scalar::I32); 2].into_iter().collect(),
        memory: ranks.iter().map(|w| [bytes(w), bytes(&vec![0; w.len()])].into_iter().collect()).collect(),
    }
}

fn op(kind: Kind, target: i64, remote: Datatype, local: Local) -> Operation {
    let (target, mode, site) = (Some(Delta(target)), Mode::Auto, Site::default());
    Operation { kind, window: W, target, remote, local, mode, site }
}

fn section(window: WindowId, datatype: Datatype) -> Local {
    Local::Section { window, datatype }
}

/// Returns the epoch of these operations, each with the elements of its slice. The list of an
/// operation without a slice is empty.
fn epoch(ranks: Vec<Vec<(Operation, Vec<i32>)>>) -> Epoch {
    let mut epoch = Epoch::default();
    for operations in ranks {
        let mut sources = Buffers::new();
        let mut table = Table::new();
        for (operation, slice) in operations {
            let id = table.push(operation);
            if !slice.is_empty() {
                sources.insert(id, bytes(&slice));
            }
        }
        epoch.patterns.push(Pattern { operations: table });
        epoch.sources.push(sources);
    }
    epoch
}

fn elements(of: &[i64]) -> Datatype {
    Datatype::elements(of.iter().copied()).unwrap()
}

#[test]
fn paragraph_2_elements_pair_in_typemap_order() {
    let mut w = world(&[&[1, 2, 3], &[0; 5]]);
    let put = op(Kind::Put, 1, elements(&[4, 0, 2]), section(W, elements(&[2, 1, 0])));
    reference::run(&mut w, &epoch(vec![vec![(put, vec![])], vec![]])).unwrap();
    assert_eq!(ints(&w.memory[1][W]), [2, 0, 1, 0, 3]);
}

#[test]
fn paragraph_3_no_target_and_no_elements_touch_nothing() {
    let mut w = world(&[&[1], &[2]]);
    let before = w.clone();
    let mut nowhere = op(Kind::Put, 1, Datatype::run(0..1), Local::Buffer);
    nowhere.target = None;
    let far = op(Kind::Put, 1, Datatype::run(900..900), Local::Buffer);
    let landed =
        reference::run(&mut w, &epoch(vec![vec![(nowhere, vec![5]), (far, vec![])], vec![]])).unwrap();
    assert_eq!(w, before);
    assert!(landed.iter().all(Buffers::is_empty));
}

#[test]
fn paragraph_4_a_swap_by_puts_and_a_section_that_is_overwritten_read_what_was_before() {
    let mut w = world(&[&[1], &[2]]);
    let one = |to| vec![(op(Kind::Put, to, Datatype::run(0..1), section(W, Datatype::run(0..1))), vec![])];
    reference::run(&mut w, &epoch(vec![one(1), one(-1)])).unwrap();
    assert_eq!((ints(&w.memory[0][W]), ints(&w.memory[1][W])), (vec![2], vec![1]));
}

#[test]
fn paragraph_5_gets_land_before_any_put_whatever_the_program_order() {
    let mut w = world(&[&[1, 1], &[7, 7]]);
    let put = op(Kind::Put, 0, Datatype::run(0..1), Local::Buffer);
    let get = op(Kind::Get, 1, Datatype::run(0..2), section(W, Datatype::run(0..2)));
    let ticket = op(Kind::Get, 0, Datatype::run(0..2), Local::Buffer);
    let all = vec![vec![(put, vec![9]), (get, vec![]), (ticket, vec![])], vec![]];
    let landed = reference::run(&mut w, &epoch(all)).unwrap();
    assert_eq!(ints(&w.memory[0][W]), [9, 7]);
    assert_eq!(ints(&landed[0][&OperationId(2)]), [1, 1]);
}

#[test]
fn paragraph_5_the_later_get_wins() {
    let mut w = world(&[&[0, 0], &[5, 6]]);
    let get = |at: usize| op(Kind::Get, 1, Datatype::run(at..at + 1), section(V, Datatype::run(0..1)));
    reference::run(&mut w, &epoch(vec![vec![(get(0), vec![]), (get(1), vec![])], vec![]])).unwrap();
    assert_eq!(ints(&w.memory[0][V]), [6, 0]);
}

#[test]
fn paragraph_6_origins_ascend_then_program_order_then_typemap_order() {
    let put = |to: i64| op(Kind::Put, to, Datatype::run(0..1), Local::Buffer);
    let add = |to: i64| op(Kind::Accumulate(Op::Sum), to, Datatype::run(0..1), Local::Buffer);
    let mut w = world(&[&[0], &[0], &[0]]);
    let all =
        vec![vec![(add(1), vec![1])], vec![(put(0), vec![10]), (add(0), vec![2])], vec![(add(-1), vec![3])]];
    reference::run(&mut w, &epoch(all)).unwrap();
    assert_eq!(ints(&w.memory[1][W]), [15]);

    let mut w = world(&[&[0, 0]]);
    let twice = op(Kind::Put, 0, elements(&[1, 1]), Local::Buffer);
    reference::run(&mut w, &epoch(vec![vec![(twice, vec![3, 4])]])).unwrap();
    assert_eq!(ints(&w.memory[0][W]), [0, 4]);
}

#[test]
fn paragraph_9_relaxed_allows_each_order_and_nothing_else() {
    let put = |to: i64| op(Kind::Put, to, Datatype::run(0..1), Local::Buffer);
    let add = |to: i64| op(Kind::Accumulate(Op::Sum), to, Datatype::run(0..1), Local::Buffer);
    let before = world(&[&[100], &[0]]);
    let all = epoch(vec![vec![(put(0), vec![10])], vec![(add(-1), vec![1])]]);
    for (found, allowed) in [(11, true), (10, true), (101, false), (12, false), (100, false)] {
        let mut after = before.clone();
        after.memory[0][W] = bytes(&[found]);
        let verdict = reference::allows(&before, &all, &after, &[Buffers::new(), Buffers::new()]).unwrap();
        assert_eq!(verdict.is_none(), allowed, "{found}: {verdict:?}");
        if let Some(Difference::Element { rank, element, canonical, .. }) = verdict {
            assert_eq!((rank, element, ints(&canonical)), (Rank(0), 0, vec![11]));
        }
    }
}

#[test]
fn paragraph_9_relaxed_leaves_gets_as_they_are() {
    let get = op(Kind::Get, 1, Datatype::run(0..1), Local::Buffer);
    let before = world(&[&[1], &[2]]);
    let all = epoch(vec![vec![(get, vec![])], vec![]]);
    let with = |v: &[i32]| vec![Buffers::from([(OperationId(0), bytes(v))]), Buffers::new()];
    assert_eq!(reference::allows(&before, &all, &before, &with(&[2])).unwrap(), None);
    assert!(reference::allows(&before, &all, &before, &with(&[3])).unwrap().is_some());
    assert!(reference::allows(&before, &all, &before, &[]).unwrap().is_some());
}

#[test]
fn what_does_not_fit_names_rank_and_operation_and_changes_nothing() {
    let run = Datatype::run;
    let far = |mut o: Operation, by| {
        o.target = Some(Delta(by));
        o
    };
    let good = op(Kind::Put, 0, run(0..1), Local::Buffer);
    let v_of_u8 = op(Kind::Put, 0, run(0..1), section(V, run(0..1)));
    let cases = [
        (far(good.clone(), 1), vec![1], ErrorClass::Rank),
        (far(good.clone(), -2), vec![1], ErrorClass::Rank),
        (op(Kind::Put, 0, run(1..3), Local::Buffer), vec![1, 2], ErrorClass::Disp),
        (op(Kind::Put, 0, elements(&[-1]), Local::Buffer), vec![1], ErrorClass::Disp),
        (op(Kind::Get, 0, run(0..1), section(W, run(2..3))), vec![], ErrorClass::Disp),
        (op(Kind::Put, 0, run(0..2), Local::Buffer), vec![1], ErrorClass::Size),
        (op(Kind::Put, 0, run(0..2), section(W, run(0..1))), vec![], ErrorClass::Size),
        (op(Kind::Accumulate(Op::MinLoc), 0, run(0..1), Local::Buffer), vec![1], ErrorClass::Op),
        (op(Kind::Put, 0, run(0..1), section(WindowId(7), run(0..1))), vec![], ErrorClass::Win),
        (v_of_u8, vec![], ErrorClass::Type),
    ];
    for (bad, slice, class) in cases {
        let mut w = world(&[&[1, 2], &[1, 2]]);
        if class == ErrorClass::Type {
            w.element[V] = ElementType::opaque(4);
        }
        let before = w.clone();
        let all = epoch(vec![vec![], vec![(good.clone(), vec![8]), (bad.clone(), slice)]]);
        let error = reference::run(&mut w, &all).unwrap_err();
        assert_eq!((error.class(), error.rank()), (class, Some(1)), "{bad:?}: {error}");
        assert!(error.message().contains("op1"), "{error}");
        assert_eq!(w, before);
    }
}

/// Returns `a op b` for one element.
fn fold<const N: usize>(op: Op, element: ElementType, a: [u8; N], b: [u8; N]) -> [u8; N] {
    let mut a = a;
    apply(Some(op), element, &mut a, &b);
    a
}

#[test]
fn paragraph_7_integers_wrap_and_logic_leaves_0_or_1() {
    let t = ElementType::scalar(Scalar::I8);
    let i8s = |op, a: i8, b: i8| i8::from_ne_bytes(fold(op, t, a.to_ne_bytes(), b.to_ne_bytes()));
    for a in i8::MIN..=i8::MAX {
        for b in [i8::MIN, -77, -2, -1, 0, 1, 2, 3, 64, i8::MAX] {
            assert_eq!(i8s(Op::Sum, a, b), a.wrapping_add(b));
            assert_eq!(i8s(Op::Prod, a, b), a.wrapping_mul(b));
            assert_eq!(i8s(Op::Min, a, b), a.min(b));
            assert_eq!(i8s(Op::Max, a, b), a.max(b));
            assert_eq!(i8s(Op::Band, a, b), a & b);
            assert_eq!(i8s(Op::Bor, a, b), a | b);
            assert_eq!(i8s(Op::Bxor, a, b), a ^ b);
            assert_eq!(i8s(Op::Land, a, b), i8::from(a != 0 && b != 0));
            assert_eq!(i8s(Op::Lor, a, b), i8::from(a != 0 || b != 0));
            assert_eq!(i8s(Op::Lxor, a, b), i8::from((a != 0) != (b != 0)));
            assert_eq!(i8s(Op::Replace, a, b), b);
        }
    }
    let t = ElementType::scalar(Scalar::U64);
    let u64s = |op, a: u64, b: u64| u64::from_ne_bytes(fold(op, t, a.to_ne_bytes(), b.to_ne_bytes()));
    assert_eq!(u64s(Op::Prod, u64::MAX, u64::MAX), 1);
    assert_eq!(u64s(Op::Sum, u64::MAX, 2), 1);
    assert_eq!(u64s(Op::Max, u64::MAX, 2), u64::MAX);
}

#[test]
fn paragraph_7_float_minimum_and_maximum_take_nan_and_know_the_sign_of_zero() {
    let t = ElementType::scalar(Scalar::F64);
    let f = |op, a: f64, b: f64| f64::from_ne_bytes(fold(op, t, a.to_ne_bytes(), b.to_ne_bytes())).to_bits();
    let odd = f64::from_bits(0xfff8_0000_dead_beef);
    for op in [Op::Sum, Op::Prod, Op::Min, Op::Max] {
        for (a, b) in [(odd, 1.0), (1.0, odd), (odd, odd)] {
            assert_eq!(f(op, a, b), 0x7ff8_0000_0000_0000, "{op}");
        }
    }
    assert_eq!(f(Op::Sum, f64::INFINITY, f64::NEG_INFINITY), 0x7ff8_0000_0000_0000);
    for (a, b) in [(0.0, -0.0), (-0.0, 0.0)] {
        assert_eq!(f(Op::Min, a, b), (-0.0_f64).to_bits());
        assert_eq!(f(Op::Max, a, b), 0.0_f64.to_bits());
    }
    assert_eq!(f(Op::Replace, 1.0, odd), odd.to_bits());
    assert_eq!(f(Op::Min, 1.0, -2.0), (-2.0_f64).to_bits());

    let t = ElementType::scalar(Scalar::F32);
    let g = |op, a: f32, b: f32| f32::from_ne_bytes(fold(op, t, a.to_ne_bytes(), b.to_ne_bytes())).to_bits();
    assert_eq!(g(Op::Max, f32::from_bits(0xffff_ffff), 3.0), 0x7fc0_0000);
    assert_eq!(g(Op::Sum, 0.1, 0.2), (0.1_f32 + 0.2_f32).to_bits());
}

#[test]
fn paragraph_7_minloc_and_maxloc_take_the_smaller_index_on_a_tie() {
    let t = ElementType { size: 12, kind: ElementKind::ValueAt(Scalar::F64, Scalar::I32) };
    let pair = |v: f64, i: i32| -> [u8; 12] {
        [&v.to_ne_bytes()[..], &i.to_ne_bytes()].concat().try_into().unwrap()
    };
    let odd = f64::from_bits(0xfff8_0000_dead_beef);
    let nan = f64::from_bits(0x7ff8_0000_0000_0000);
    let cases = [
        (Op::MinLoc, (1.0, 5), (2.0, 3), (1.0, 5)),
        (Op::MaxLoc, (1.0, 5), (2.0, 3), (2.0, 3)),
        (Op::MinLoc, (1.0, 5), (1.0, -3), (1.0, -3)),
        (Op::MaxLoc, (1.0, 5), (1.0, 7), (1.0, 5)),
        (Op::MinLoc, (odd, 5), (-1.0, 3), (nan, 5)),
        (Op::MaxLoc, (odd, 5), (nan, 3), (nan, 3)),
        (Op::MinLoc, (0.0, 1), (-0.0, 2), (-0.0, 2)),
    ];
    for (op, a, b, c) in cases {
        for (a, b) in [(a, b), (b, a)] {
            assert_eq!(fold(op, t, pair(a.0, a.1), pair(b.0, b.1)), pair(c.0, c.1), "{op} {a:?} {b:?}");
        }
    }
}

#[test]
fn paragraph_8_order_shows_only_where_it_says() {
    let specials = [0.0_f64, -0.0, 1.0, -1.5, 1e308, f64::INFINITY, f64::from_bits(0xfff8_0000_dead_beef)];
    for scalar in Scalar::ALL {
        let t = ElementType::scalar(scalar);
        let values: Vec<Vec<u8>> = match scalar {
            Scalar::F64 => specials.iter().map(|v| v.to_ne_bytes().to_vec()).collect(),
            Scalar::F32 => specials.iter().map(|v| (*v as f32).to_ne_bytes().to_vec()).collect(),
            _ => (0..7_u64)
                .map(|v| (v.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_ne_bytes()[..t.size as usize].to_vec())
                .collect(),
        };
        for op in Op::ALL.into_iter().filter(|op| op.takes(t) && !op.order_shows(t)) {
            for a in &values {
                for b in &values {
                    for c in &values {
                        let (mut x, mut y) = (a.clone(), a.clone());
                        apply(Some(op), t, &mut x, b);
                        apply(Some(op), t, &mut x, c);
                        apply(Some(op), t, &mut y, c);
                        apply(Some(op), t, &mut y, b);
                        assert_eq!(x, y, "{op} {scalar:?}");
                    }
                }
            }
        }
    }
    assert_eq!(WindowId::new(0), W);
}
