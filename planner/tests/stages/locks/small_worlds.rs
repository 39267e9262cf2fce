//! Small programs compared with all orders. The reference explains each result that some order
//! gives, and no other result.

use super::all_orders::results;
use super::*;
use fencepost_tests_support::random::Random;
use std::collections::BTreeSet;

/// Returns one operation of the alphabet, with values that no other operation has.
fn act(lock: usize, which: usize, number: i32) -> LockCall {
    let (at, len) = [(0, 1), (1, 1), (0, 2)][which % 3];
    let value = |scale: i32| bytes(&(0..len).map(|place| scale * (number + place)).collect::<Vec<_>>());
    let zeros = bytes(&vec![0; len as usize]);
    let (action, bytes, found) = match which / 3 {
        0 => (Action::Put, value(10), vec![]),
        1 => (Action::Get, vec![], zeros),
        2 => (Action::Accumulate(Op::Sum), value(1), vec![]),
        3 => (Action::Fetch(Op::Sum), value(1), zeros),
        _ => (Action::CompareAndSwap(zeros.clone()), value(100), zeros),
    };
    let elements = Datatype::run(at..at + len as usize);
    LockCall::Act { lock, elements, action, bytes, found }
}

const ALPHABET: usize = 15;

/// Returns the ways in which one rank can make these operations: in one epoch, with or without a
/// flush between them, or in one epoch each.
fn ways(operations: &[usize], number: i32, target: usize) -> Vec<Vec<LockCall>> {
    let lock = |kind| LockCall::Lock { window: W, target: Rank::new(target), kind };
    let mut all = Vec::new();
    match *operations {
        [] => all.push(vec![]),
        [one] => {
            for kind in [Shared, Exclusive] {
                all.push(vec![lock(kind), act(0, one, number), LockCall::Unlock { lock: 0 }]);
            }
        }
        [one, two] => {
            for kind in [Shared, Exclusive] {
                let (first, unlock) = (act(0, one, number), LockCall::Unlock { lock: 0 });
                let second = act(0, two, number + 2);
                let flush = LockCall::Flush { lock: 0 };
                all.push(vec![lock(kind), first.clone(), second.clone(), unlock.clone()]);
                all.push(vec![lock(kind), first.clone(), flush, second, unlock.clone()]);
                for next in [Shared, Exclusive] {
                    let second = [lock(next), act(3, two, number + 2), LockCall::Unlock { lock: 3 }];
                    all.push([&[lock(kind), first.clone(), unlock.clone()][..], &second].concat());
                }
            }
        }
        _ => unreachable!(),
    }
    all
}

/// Returns the same programs with the values that they found in `results`.
fn with(programs: &[Vec<LockCall>], results: &all_orders::Results) -> Vec<Vec<LockCall>> {
    let mut programs = programs.to_vec();
    for ((rank, call), bytes) in &results.0 {
        let LockCall::Act { found, .. } = &mut programs[*rank][*call] else { unreachable!() };
        found.clone_from(bytes);
    }
    programs
}

fn after(results: &all_orders::Results) -> World {
    let element = [ElementType::scalar(Scalar::I32)].into_iter().collect();
    World { element, memory: results.1.iter().map(|bytes| [bytes.clone()].into_iter().collect()).collect() }
}

/// Compares the reference's search with all orders. Returns the number of results that were
/// explained, and the number that were not.
fn compare(programs: &[Vec<LockCall>], random: &mut Random, tries: usize) -> (usize, usize) {
    let first = world(&[&[0, 0], &[]]);
    let all = results(&first, programs);
    for results in &all {
        let verdict = explains(&first, &with(programs, results), &after(results)).unwrap();
        assert_eq!(verdict, None, "{programs:#?}: {results:?}");
    }
    // Mixtures of these results, and some values that no operation left.
    let list: Vec<_> = all.iter().cloned().collect();
    let mut mixed = BTreeSet::new();
    for _ in 0..tries {
        let mut mixture = random.one_of(&list);
        let mut fields: Vec<&mut Vec<u8>> = mixture.0.values_mut().collect();
        fields.push(&mut mixture.1[0]);
        let which = random.below(fields.len());
        let other = random.one_of(&list);
        let mut others: Vec<&Vec<u8>> = other.0.values().collect();
        others.push(&other.1[0]);
        if random.once_in(4) {
            let at = random.below(fields[which].len());
            fields[which][at] ^= 1 << random.below(8);
        } else {
            fields[which].clone_from(others[which]);
        }
        mixed.insert(mixture);
    }
    let mut refused = 0;
    for results in &mixed {
        let verdict = explains(&first, &with(programs, results), &after(results)).unwrap();
        assert_eq!(verdict.is_none(), all.contains(results), "{programs:#?}: {results:?}: {verdict:?}");
        refused += usize::from(verdict.is_some());
    }
    (all.len(), refused)
}

#[test]
fn two_ranks_with_at_most_two_operations_together() {
    let mut random = Random::new(1);
    let one: Vec<Vec<usize>> = (0..ALPHABET).map(|a| vec![a]).collect();
    let two = (0..ALPHABET).flat_map(|a| (0..ALPHABET).map(move |b| vec![a, b]));
    let alone = [vec![]].into_iter().chain(one.clone()).chain(two).map(|all| (all, vec![]));
    let both = one.iter().flat_map(|a| one.iter().map(|b| (a.clone(), b.clone())));
    let (mut explained, mut refused) = (0, 0);
    for (mine, theirs) in alone.chain(both) {
        for a in ways(&mine, 1, 0) {
            for b in ways(&theirs, 5, 0) {
                let (more, less) = compare(&[a.clone(), b], &mut random, 4);
                (explained, refused) = (explained + more, refused + less);
            }
        }
    }
    assert!(explained > 3000 && refused > 3000, "{explained} and {refused}");
}

#[test]
fn two_ranks_with_two_operations_each_and_meetings() {
    let mut random = Random::new(2);
    let (mut explained, mut refused) = (0, 0);
    for _ in 0..1500 {
        let mut drawn = || vec![random.below(ALPHABET), random.below(ALPHABET)];
        let (mine, theirs) = (drawn(), drawn());
        let mut a = random.one_of(&ways(&mine, 1, 0));
        let mut b = random.one_of(&ways(&theirs, 5, 0));
        if random.once_in(4) {
            // Each rank calls `Meet` once: before or after its epochs, or between its two epochs.
            let mut meet = |program: &mut Vec<LockCall>| {
                let two = matches!(program.get(3), Some(LockCall::Lock { .. }));
                let at = random.one_of(&[0, if two { 3 } else { 0 }, program.len()]);
                program.insert(at, LockCall::Meet);
                for call in &mut program[at..] {
                    let lock = match call {
                        LockCall::Act { lock, .. } | LockCall::Flush { lock } | LockCall::Unlock { lock } => {
                            lock
                        }
                        _ => continue,
                    };
                    *lock += usize::from(*lock >= at);
                }
            };
            meet(&mut a);
            meet(&mut b);
        }
        let (more, less) = compare(&[a, b], &mut random, 12);
        (explained, refused) = (explained + more, refused + less);
    }
    assert!(explained > 4000 && refused > 4000, "{explained} and {refused}");
}
