//! Each algorithm of each collective. The reference interpreter runs each algorithm, and the result
//! is compared with plain loops. The schedules of the algorithm are verified.

use fencepost_planner::census::Census;
use fencepost_planner::collective::{
    Algorithm, Collective, Fold, Operation, SlotLen, Slots, Step, block, halves,
};
use fencepost_planner::element::{ElementType, Op, Scalar};
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::{Machine, Options, compile};
use fencepost_tests_reference as reference;
use fencepost_tests_reference::{Epoch, World, apply};
use std::collections::BTreeMap;

const F64: ElementType = ElementType::scalar(Scalar::F64);
const SIZE: usize = 8;

/// Returns an element that a rank contributes. Sums of these elements depend on the order.
fn given(rank: u32, i: usize) -> f64 {
    0.1 * (f64::from(rank) + 1.0).powi(3) + i as f64 * 1e-3
}

fn combine(op: Op, into: &mut [f64], from: &[f64]) {
    for (into, from) in into.iter_mut().zip(from) {
        let mut bytes = into.to_ne_bytes();
        apply(Some(op), F64, &mut bytes, &from.to_ne_bytes());
        *into = f64::from_ne_bytes(bytes);
    }
}

/// Returns the result of the balanced tree, by its definition.
fn tree(parts: &[Vec<f64>], op: Op) -> Vec<f64> {
    match parts {
        [one] => one.clone(),
        many => {
            let (left, right) = many.split_at(many.len().div_ceil(2));
            let mut left = tree(left, op);
            combine(op, &mut left, &tree(right, op));
            left
        }
    }
}

/// Returns the result that each rank must have.
fn expected(what: &Collective) -> Vec<Option<Vec<f64>>> {
    let parts: Vec<Vec<f64>> =
        (0..what.ranks).map(|rank| (0..what.len).map(|i| given(rank, i)).collect()).collect();
    let to = |root, result: Vec<f64>| (0..what.ranks).map(|r| (r == root).then(|| result.clone())).collect();
    let to_all = |result: Vec<f64>| vec![Some(result); parts.len()];
    match what.operation {
        Operation::Broadcast { root } => to_all(parts[root as usize].clone()),
        Operation::Reduce { root, op } => to(root, tree(&parts, op)),
        Operation::Allreduce { op } => to_all(tree(&parts, op)),
        Operation::Scan { op } => (0..parts.len())
            .map(|rank| {
                let (first, rest) = parts[..=rank].split_first().unwrap();
                let mut all = first.clone();
                rest.iter().for_each(|part| combine(op, &mut all, part));
                Some(all)
            })
            .collect(),
        Operation::Gather { root } => to(root, parts.concat()),
        Operation::Allgather => to_all(parts.concat()),
        Operation::AllToAll => (0..what.ranks)
            .map(|to| Some((0..what.ranks).flat_map(|from| for_each(from, to, what.len)).collect()))
            .collect(),
    }
}

fn for_each(from: u32, to: u32, len: usize) -> Vec<f64> {
    (0..len).map(|i| given(from, i) + f64::from(to)).collect()
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(SIZE).map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

fn fold(what: &Collective, slots: &Slots, rank: u32, memory: &mut Vec<u8>) {
    if slots.root.is_some_and(|root| root != rank) {
        return;
    }
    let mut all = numbers(memory);
    let len = match slots.len {
        SlotLen::Of(len) => len,
        SlotLen::BlockOf(len) => block(rank, what.ranks, len).len(),
    };
    let at = |slot: usize| slots.first + slot * slots.stride..slots.first + slot * slots.stride + len;
    let parts: Vec<Vec<f64>> = (0..what.ranks as usize).map(|slot| all[at(slot)].to_vec()).collect();
    let left_to_right = |upto: usize| {
        let mut sum = parts[0].clone();
        parts[1..=upto].iter().for_each(|part| combine(slots.op, &mut sum, part));
        sum
    };
    match slots.fold {
        Fold::Tree => all[at(0)].copy_from_slice(&tree(&parts, slots.op)),
        Fold::Prefixes => {
            (0..parts.len()).for_each(|slot| all[at(slot)].copy_from_slice(&left_to_right(slot)))
        }
        Fold::Prefix => all[at(0)].copy_from_slice(&left_to_right(rank as usize)),
    }
    *memory = all.iter().flat_map(|number| number.to_ne_bytes()).collect();
}

/// Compares every algorithm with the plain loops.
fn check(what: Collective) {
    for algorithm in Algorithm::ALL.into_iter().filter(|&algorithm| what.has(algorithm)) {
        let plan = what.plan(algorithm);
        let fresh = (0..what.ranks).map(|rank| {
            let mut numbers = vec![f64::NAN; plan.window];
            for (i, at) in what.input(algorithm, rank).enumerate() {
                numbers[at] = match what.operation {
                    Operation::AllToAll => given(rank, i % what.len) + (i / what.len) as f64,
                    _ => given(rank, i),
                };
            }
            let bytes = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
            [bytes].into_iter().collect()
        });
        let mut world = World { element: [F64].into_iter().collect(), memory: fresh.collect() };
        for step in &plan.steps {
            match step {
                Step::Epoch(patterns) => {
                    let each =
                        patterns.class_of.iter().map(|class| patterns.classes[*class].clone()).collect();
                    let sources = vec![BTreeMap::new(); what.ranks as usize];
                    reference::run(&mut world, &Epoch { patterns: each, sources }).unwrap();
                }
                Step::Combine(slots) => (0..what.ranks).for_each(|rank| {
                    fold(&what, slots, rank, &mut world.memory[rank as usize][WindowId(0)]);
                }),
            }
        }
        for (rank, expected) in expected(&what).into_iter().enumerate() {
            let all = numbers(&world.memory[rank][WindowId(0)]);
            let found = what.output(algorithm, rank as u32).map(|range| all[range].to_vec()).concat();
            let bits = |numbers: Vec<f64>| numbers.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(
                bits(found),
                bits(expected.unwrap_or_default()),
                "{what:?}, {algorithm:?}, rank {rank}"
            );
        }
    }
}

fn operations(ranks: u32) -> impl Iterator<Item = Operation> {
    let roots = move || 0..ranks;
    let ops = [Op::Sum, Op::Max, Op::Replace];
    roots()
        .flat_map(move |root| {
            let reduce = ops.map(|op| Operation::Reduce { root, op });
            [Operation::Broadcast { root }, Operation::Gather { root }].into_iter().chain(reduce)
        })
        .chain(ops.map(|op| Operation::Allreduce { op }))
        .chain(ops.map(|op| Operation::Scan { op }))
        .chain([Operation::Allgather, Operation::AllToAll])
}

#[test]
fn every_way_of_every_collective_leaves_the_same_bits_as_plain_loops() {
    for ranks in 1..=9 {
        for operation in operations(ranks) {
            for len in [0, 1, 2, 7, 20] {
                check(Collective { operation, ranks, len, element: F64 });
            }
        }
    }
    for ranks in [16, 17, 31] {
        for operation in [
            Operation::Reduce { root: 5, op: Op::Sum },
            Operation::Allreduce { op: Op::Sum },
            Operation::Allgather,
        ] {
            check(Collective { operation, ranks, len: 3, element: F64 });
        }
    }
}

#[test]
fn every_epoch_of_every_way_has_a_verified_schedule() {
    for ranks in [1, 2, 3, 5, 8] {
        for operation in operations(ranks).filter(|operation| {
            !matches!(operation, Operation::Broadcast { root } | Operation::Gather { root } | Operation::Reduce { root, .. } if *root > 2)
        }) {
            for algorithm in Algorithm::ALL {
                let what = Collective { operation, ranks, len: 11, element: F64 };
                for step in what.has(algorithm).then(|| what.plan(algorithm)).iter().flat_map(|plan| &plan.steps) {
                    let Step::Epoch(patterns) = step else { continue };
                    for placement in [Placement::Together, Placement::Apart] {
                        compile(patterns, placement, &Machine::default(), &Options::default()).unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn the_tree_divides_every_range_in_two_and_the_left_half_is_no_smaller() {
    for ranks in 1..70 {
        let depths = halves(ranks);
        assert_eq!(depths.len() as u32, ranks.next_power_of_two().trailing_zeros(), "{ranks} ranks");
        let count: usize = depths.iter().map(Vec::len).sum();
        assert_eq!(count as u32, ranks - 1, "each range but the single ones is divided once");
        for [low, middle, high] in depths.concat() {
            assert!(middle - low == high - middle || middle - low == high - middle + 1);
        }
    }
}

#[test]
fn rounds_and_bytes_are_those_that_the_page_states() {
    let ranks = 6;
    let what = |operation| Collective { operation, ranks, len: 60, element: F64 };
    // The largest number of elements that one rank sends, by epoch.
    let most = |operation, algorithm| -> Vec<usize> {
        let plan = what(operation).plan(algorithm);
        let epochs = plan.steps.iter().filter_map(|step| match step {
            Step::Epoch(patterns) => Some(patterns),
            Step::Combine(_) => None,
        });
        let sent = |patterns: &fencepost_planner::ir::pattern::Patterns| {
            let of = |pattern: &fencepost_planner::ir::pattern::Pattern| {
                let others = pattern.operations.values().filter(|call| call.target.unwrap().0 != 0);
                others.map(|call| call.remote.size()).sum()
            };
            patterns.classes.values().map(of).max().unwrap()
        };
        epochs.map(sent).collect()
    };
    let (sum, root) = (Op::Sum, 0);
    assert_eq!(most(Operation::Broadcast { root }, Algorithm::Direct), [300]);
    assert_eq!(most(Operation::Broadcast { root }, Algorithm::Tree), [60; 3]);
    assert_eq!(most(Operation::Broadcast { root }, Algorithm::Blocks), [50, 50]);
    assert_eq!(most(Operation::Allreduce { op: sum }, Algorithm::Direct), [300]);
    assert_eq!(most(Operation::Allreduce { op: sum }, Algorithm::Tree), [60, 120, 60]);
    assert_eq!(most(Operation::Allreduce { op: sum }, Algorithm::Blocks), [50, 50]);
    assert_eq!(most(Operation::Reduce { root, op: sum }, Algorithm::Tree), [60; 3]);
    assert_eq!(most(Operation::Scan { op: sum }, Algorithm::Blocks), [50, 50]);
    assert_eq!(most(Operation::Allgather, Algorithm::Tree), [60, 120, 120]);
    assert_eq!(most(Operation::AllToAll, Algorithm::Direct), [300]);
}

/// Small arrays are exchanged in one round, and large ones in blocks. If many ranks contribute few
/// elements each, a tree collects them.
#[test]
fn the_way_follows_length_and_number_of_ranks() {
    let machine = Machine::default();
    let algorithm =
        |ranks, len, share| {
            Collective { operation: Operation::Allreduce { op: Op::Sum }, ranks, len, element: F64 }
                .algorithm(&machine, share, Census::Direct)
        };
    assert_eq!(algorithm(4, 1, true), Algorithm::Direct);
    assert_eq!(algorithm(4, 1 << 17, true), Algorithm::Blocks);
    assert_eq!(algorithm(4, 1 << 17, false), Algorithm::Blocks);
    assert_eq!(algorithm(64, 1 << 10, true), Algorithm::Tree);
    assert_eq!(algorithm(1, 1 << 20, true), Algorithm::Direct);
}

/// With a sparse census, all short arrays are piggybacked on it. That takes fewer rounds than a
/// census followed by a tree.
#[test]
fn short_arrays_ride_with_a_sparse_census() {
    let machine = Machine::default();
    let rides = |operation, ranks, len| {
        let what = Collective { operation, ranks, len, element: F64 };
        what.rides(what.algorithm(&machine, false, Census::Sparse), &machine, false, Census::Sparse)
    };
    let (sum, root) = (Op::Sum, 1);
    for ranks in [2, 16, 64, 256] {
        for operation in [
            Operation::Broadcast { root },
            Operation::Reduce { root, op: sum },
            Operation::Allreduce { op: sum },
            Operation::Scan { op: sum },
            Operation::Gather { root },
            Operation::Allgather,
            Operation::AllToAll,
        ] {
            assert!(rides(operation, ranks, 1), "{operation:?} of {ranks}");
            assert!(!rides(operation, ranks, 1 << 16), "{operation:?} of {ranks}");
        }
    }
}
