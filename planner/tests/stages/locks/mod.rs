//! Programs of locks in the reference, by the paragraphs of `planner/README.md`.

mod all_orders;
mod generated;
mod small_worlds;
mod texts;

use fencepost_planner::ErrorClass;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op, Scalar};
use fencepost_planner::ids::{Id, Rank, WindowId};
use fencepost_planner::ir::calls::LockType;
use fencepost_tests_reference::{Action, LockCall, Unexplained, World, explains};

pub const W: WindowId = WindowId(0);
pub use LockType::{Exclusive, Shared};

pub fn bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

/// Returns one window of i32 on every rank.
pub fn world(ranks: &[&[i32]]) -> World {
    World {
        element: [ElementType::scalar(Scalar::I32)].into_iter().collect(),
        memory: ranks.iter().map(|values| [bytes(values)].into_iter().collect()).collect(),
    }
}

/// The calls of one rank on `W`. Each method returns the position of its call.
#[derive(Default)]
pub struct Program(pub Vec<LockCall>);

impl Program {
    pub fn call(&mut self, call: LockCall) -> usize {
        self.0.push(call);
        self.0.len() - 1
    }

    pub fn lock(&mut self, target: usize, kind: LockType) -> usize {
        self.call(LockCall::Lock { window: W, target: Rank::new(target), kind })
    }

    fn act(&mut self, lock: usize, at: usize, action: Action, given: &[i32], found: &[i32]) -> usize {
        let elements = Datatype::run(at..at + given.len().max(found.len()));
        self.call(LockCall::Act { lock, elements, action, bytes: bytes(given), found: bytes(found) })
    }

    pub fn put(&mut self, lock: usize, at: usize, values: &[i32]) -> usize {
        self.act(lock, at, Action::Put, values, &[])
    }

    pub fn add(&mut self, lock: usize, at: usize, values: &[i32]) -> usize {
        self.act(lock, at, Action::Accumulate(Op::Sum), values, &[])
    }

    pub fn get(&mut self, lock: usize, at: usize, found: &[i32]) -> usize {
        self.act(lock, at, Action::Get, &[], found)
    }

    pub fn fetch_add(&mut self, lock: usize, at: usize, value: i32, found: i32) -> usize {
        self.act(lock, at, Action::Fetch(Op::Sum), &[value], &[found])
    }

    pub fn swap(&mut self, lock: usize, at: usize, (from, to): (i32, i32), found: i32) -> usize {
        self.act(lock, at, Action::CompareAndSwap(bytes(&[from])), &[to], &[found])
    }

    pub fn flush(&mut self, lock: usize) -> usize {
        self.call(LockCall::Flush { lock })
    }

    pub fn unlock(&mut self, lock: usize) -> usize {
        self.call(LockCall::Unlock { lock })
    }

    pub fn meet(&mut self) -> usize {
        self.call(LockCall::Meet)
    }
}

pub fn programs<const N: usize>() -> [Program; N] {
    std::array::from_fn(|_| Program::default())
}

pub fn verdict(before: &World, programs: &[Program], after: &World) -> Option<Unexplained> {
    let programs: Vec<Vec<LockCall>> = programs.iter().map(|program| program.0.clone()).collect();
    explains(before, &programs, after).unwrap()
}

pub fn found(rank: usize, call: usize) -> Option<Unexplained> {
    Some(Unexplained::Found { rank: Rank::new(rank), call })
}

pub fn element(rank: usize, element: usize) -> Option<Unexplained> {
    Some(Unexplained::Element { rank: Rank::new(rank), window: W, element })
}

#[test]
fn paragraph_18_what_is_not_an_epoch_is_refused_with_its_rank_and_call() {
    let before = world(&[&[0, 0], &[0, 0]]);
    let lock = |target: u32| LockCall::Lock { window: W, target: Rank(target), kind: Shared };
    let act = |lock: usize, at: usize, action: Action, given: &[i32], found: &[i32]| LockCall::Act {
        lock,
        elements: Datatype::run(at..at + 1),
        action,
        bytes: bytes(given),
        found: bytes(found),
    };
    let cases: Vec<(Vec<LockCall>, ErrorClass, &str)> = vec![
        (vec![lock(2)], ErrorClass::Rank, "call 0"),
        (
            vec![LockCall::Lock { window: WindowId(3), target: Rank(0), kind: Shared }],
            ErrorClass::Win,
            "call 0",
        ),
        (vec![lock(0), lock(1), lock(0)], ErrorClass::RmaSync, "call 2"),
        (vec![act(0, 0, Action::Put, &[1], &[])], ErrorClass::RmaSync, "call 0"),
        (vec![lock(0), LockCall::Unlock { lock: 1 }], ErrorClass::RmaSync, "call 1"),
        (vec![lock(0), act(0, 2, Action::Put, &[1], &[])], ErrorClass::Disp, "call 1"),
        (vec![lock(0), act(0, 0, Action::Put, &[1, 2], &[])], ErrorClass::Size, "call 1"),
        (vec![lock(0), act(0, 0, Action::Get, &[], &[])], ErrorClass::Size, "call 1"),
        (vec![lock(0), act(0, 0, Action::Fetch(Op::MinLoc), &[1], &[1])], ErrorClass::Op, "call 1"),
        (vec![lock(0), act(0, 0, Action::CompareAndSwap(vec![]), &[1], &[1])], ErrorClass::Size, "call 1"),
        (vec![lock(0)], ErrorClass::RmaSync, "call 0"),
    ];
    for (calls, class, place) in cases {
        let error = explains(&before, &[vec![], calls.clone()], &before).unwrap_err();
        assert_eq!((error.class(), error.rank()), (class, Some(1)), "{calls:?}: {error}");
        assert!(error.message().contains(place), "{error}");
    }
    let lone = explains(&before, &[vec![LockCall::Meet], vec![]], &before).unwrap_err();
    assert_eq!(lone.class(), ErrorClass::RmaSync);
    let shorter = world(&[&[0], &[0, 0]]);
    let error = explains(&before, &[vec![], vec![]], &shorter).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Size);
}

#[test]
fn paragraph_18_compare_and_swap_compares_bits_and_returns_what_was_there() {
    for (there, left, ok) in [(5, 9, true), (5, 5, false), (4, 4, true), (4, 9, false)] {
        let mut ranks = programs::<1>();
        let lock = ranks[0].lock(0, Shared);
        ranks[0].swap(lock, 0, (5, 9), there);
        ranks[0].unlock(lock);
        let left = verdict(&world(&[&[there]]), &ranks, &world(&[&[left]]));
        assert_eq!(left, if ok { None } else { element(0, 0) });
    }
}

#[test]
fn paragraph_19_a_get_sees_what_its_epoch_did_before() {
    for kind in [Shared, Exclusive] {
        for (seen, ok) in [(7, true), (0, false), (5, false)] {
            let mut ranks = programs::<1>();
            let lock = ranks[0].lock(0, kind);
            ranks[0].put(lock, 0, &[5]);
            ranks[0].add(lock, 0, &[2]);
            let get = ranks[0].get(lock, 0, &[seen]);
            ranks[0].unlock(lock);
            let verdict = verdict(&world(&[&[0]]), &ranks, &world(&[&[7]]));
            assert_eq!(verdict, if ok { None } else { found(0, get) });
        }
    }
}

/// One rank writes two elements. Another rank reads them in the opposite order. Each rank may flush
/// between its two operations.
fn message(flushed_put: bool, flushed_get: bool, kind: LockType, seen: [i32; 2]) -> Option<Unexplained> {
    let mut ranks = programs::<3>();
    let [a, b, _] = &mut ranks;
    let lock = a.lock(2, kind);
    a.put(lock, 0, &[1]);
    if flushed_put {
        a.flush(lock);
    }
    a.put(lock, 1, &[1]);
    a.unlock(lock);
    let lock = b.lock(2, kind);
    b.get(lock, 1, &[seen[1]]);
    if flushed_get {
        b.flush(lock);
    }
    b.get(lock, 0, &[seen[0]]);
    b.unlock(lock);
    verdict(&world(&[&[], &[], &[0, 0]]), &ranks, &world(&[&[], &[], &[1, 1]]))
}

#[test]
fn paragraph_19_elements_are_ordered_by_a_flush_on_both_sides_and_by_nothing_less() {
    for (put, get) in [(false, false), (true, false), (false, true), (true, true)] {
        for seen in [[0, 0], [1, 0], [1, 1]] {
            assert_eq!(message(put, get, Shared, seen), None);
        }
        assert_eq!(message(put, get, Shared, [0, 1]).is_some(), put && get, "{put} {get}");
        assert!(message(put, get, Exclusive, [0, 1]).is_some());
        assert!(message(put, get, Exclusive, [1, 0]).is_some(), "half an exclusive epoch");
        assert_eq!(message(put, get, Exclusive, [0, 0]), None);
    }
}

#[test]
fn paragraph_19_an_unlock_orders_across_targets_and_a_meeting_across_ranks() {
    // Rank 0 puts on rank 2, then on rank 3. Rank 1 reads from rank 3, then from rank 2.
    let across = |seen: [i32; 2]| {
        let mut ranks = programs::<4>();
        let [a, b, ..] = &mut ranks;
        for target in [2, 3] {
            let lock = a.lock(target, Shared);
            a.put(lock, 0, &[1]);
            a.unlock(lock);
        }
        for (target, seen) in [3, 2].into_iter().zip(seen) {
            let lock = b.lock(target, Shared);
            b.get(lock, 0, &[seen]);
            b.unlock(lock);
        }
        verdict(&world(&[&[], &[], &[0], &[0]]), &ranks, &world(&[&[], &[], &[1], &[1]]))
    };
    assert_eq!(across([1, 0]), found(1, 4));
    assert_eq!((across([0, 0]), across([0, 1]), across([1, 1])), (None, None, None));

    let meeting = |unlocked: bool, seen: i32| {
        let mut ranks = programs::<2>();
        let lock = ranks[0].lock(0, Shared);
        ranks[0].put(lock, 0, &[1]);
        if unlocked {
            ranks[0].unlock(lock);
        }
        ranks.iter_mut().for_each(|rank| {
            rank.meet();
        });
        if !unlocked {
            ranks[0].unlock(lock);
        }
        let lock = ranks[1].lock(0, Shared);
        ranks[1].get(lock, 0, &[seen]);
        ranks[1].unlock(lock);
        verdict(&world(&[&[0], &[]]), &ranks, &world(&[&[1], &[]]))
    };
    assert_eq!(meeting(true, 0), found(1, 2));
    assert_eq!((meeting(true, 1), meeting(false, 0), meeting(false, 1)), (None, None, None));
}

#[test]
fn paragraph_20_an_exclusive_epoch_is_one_moment_and_never_within_a_shared_one_on_its_elements() {
    // Rank 0 adds to an element twice, exclusively. Rank 1 fetches from it twice under one lock.
    let within = |kind: LockType, target: usize, seen: [i32; 2]| {
        let mut ranks = programs::<2>();
        let lock = ranks[0].lock(0, Exclusive);
        ranks[0].add(lock, 0, &[1]);
        ranks[0].flush(lock);
        ranks[0].add(lock, 0, &[1]);
        ranks[0].unlock(lock);
        let lock = ranks[1].lock(0, kind);
        ranks[1].fetch_add(lock, 0, 10, seen[0]);
        ranks[1].flush(lock);
        ranks[1].get(lock, target, &[seen[1]]);
        ranks[1].unlock(lock);
        verdict(&world(&[&[0, 0], &[]]), &ranks, &world(&[&[12, 0], &[]]))
    };
    for kind in [Shared, Exclusive] {
        assert_eq!((within(kind, 0, [0, 10]), within(kind, 0, [2, 12])), (None, None));
        assert_eq!(within(kind, 0, [0, 12]), found(1, 3), "between");
        assert_eq!(within(kind, 0, [1, 11]), found(1, 1), "half");
        assert_eq!((within(kind, 1, [0, 0]), within(kind, 1, [2, 0])), (None, None));
    }
}

#[test]
fn paragraph_20_a_shared_epoch_may_be_seen_half_and_each_element_whole() {
    for (seen, ok) in [([1, 1], true), ([1, 0], true), ([0, 1], true), ([0, 0], true), ([0, 2], false)] {
        let mut ranks = programs::<2>();
        let lock = ranks[0].lock(0, Shared);
        ranks[0].put(lock, 0, &[1, 1]);
        ranks[0].unlock(lock);
        let lock = ranks[1].lock(0, Shared);
        let get = ranks[1].get(lock, 0, &seen);
        ranks[1].unlock(lock);
        let verdict = verdict(&world(&[&[0, 0], &[]]), &ranks, &world(&[&[1, 1], &[]]));
        assert_eq!(verdict, if ok { None } else { found(1, get) });
    }
}

#[test]
fn paragraph_21_fetch_and_add_gives_each_number_once_in_any_order() {
    let numbers = |seen: [i32; 6]| {
        let mut ranks = programs::<3>();
        for (rank, seen) in ranks.iter_mut().zip(seen.chunks(2)) {
            let lock = rank.lock(0, Shared);
            for seen in seen {
                rank.fetch_add(lock, 0, 1, *seen);
            }
            rank.unlock(lock);
        }
        verdict(&world(&[&[0], &[], &[]]), &ranks, &world(&[&[6], &[], &[]]))
    };
    assert_eq!((numbers([0, 1, 2, 3, 4, 5]), numbers([1, 5, 0, 3, 2, 4])), (None, None));
    assert_eq!(numbers([0, 1, 2, 2, 3, 4]), found(1, 2), "a number twice");
    assert_eq!(numbers([0, 1, 3, 2, 4, 5]), found(1, 2), "against program order");
    // The value 6 is left at the end, so no operation can have found it.
    assert_eq!(numbers([0, 1, 2, 3, 4, 6]), found(2, 2));
}

#[test]
fn paragraph_21_a_sum_of_floats_is_one_of_those_that_some_order_gives() {
    let terms = [1e8_f32, 1.0, -1e8, 0.25];
    let mut sums = Vec::new();
    for order in [[0, 1, 2, 3], [0, 2, 1, 3], [1, 3, 0, 2]] {
        sums.push(order.iter().fold(0.0_f32, |sum, at| sum + terms[*at]));
    }
    for (sum, ok) in sums.into_iter().map(|sum| (sum, true)).chain([(0.5, false), (1.2, false)]) {
        let float = |value: f32| {
            let mut world = world(&[&[0], &[], &[], &[]]);
            world.element[W] = ElementType::scalar(Scalar::F32);
            world.memory[0][W] = value.to_ne_bytes().to_vec();
            world
        };
        let programs: Vec<Vec<LockCall>> = terms
            .iter()
            .map(|term| {
                let mut program = Program::default();
                let lock = program.lock(0, Shared);
                program.call(LockCall::Act {
                    lock,
                    elements: Datatype::run(0..1),
                    action: Action::Accumulate(Op::Sum),
                    bytes: term.to_ne_bytes().to_vec(),
                    found: Vec::new(),
                });
                program.unlock(lock);
                program.0
            })
            .collect();
        let verdict = explains(&float(0.0), &programs, &float(sum)).unwrap();
        assert_eq!(verdict, if ok { None } else { element(0, 0) }, "{sum}");
    }
}

#[test]
fn what_has_too_many_orders_is_an_error_and_not_an_answer() {
    let mut ranks = programs::<18>();
    for (rank, program) in ranks.iter_mut().enumerate() {
        let lock = program.lock(0, Shared);
        // No two orders leave the same value: the last put of each order, and the additions after
        // it, determine that value.
        program.put(lock, 0, &[1 << rank]);
        program.add(lock, 0, &[3 << rank]);
        program.unlock(lock);
    }
    let mut before: Vec<&[i32]> = vec![&[]; 18];
    before[0] = &[0];
    let mut after = before.clone();
    after[0] = &[-1];
    let programs: Vec<Vec<LockCall>> = ranks.into_iter().map(|program| program.0).collect();
    let error = explains(&world(&before), &programs, &world(&after)).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Arg);
}
