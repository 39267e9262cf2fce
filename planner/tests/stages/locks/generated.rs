//! Random programs, which the ranks run with real locks. There is one lock for each element, held
//! until the epoch ends. The reference explains the results, and refuses them if one value is
//! altered.

use crate::support::random::{value, world};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op, Scalar};
use fencepost_planner::ids::{Id, Rank, WindowId};
use fencepost_planner::ir::calls::LockType;
use fencepost_tests_reference::{Action, LockCall, Unexplained, World, apply, explains};
use fencepost_tests_support::cases::cases;
use fencepost_tests_support::random::Random;
use std::collections::{BTreeMap, BTreeSet};

const LEN: usize = 3;

fn action(dice: &mut Random, element: ElementType, count: usize) -> (Action, Vec<u8>, Vec<u8>) {
    let ops: Vec<Op> = Op::ALL.into_iter().filter(|op| op.takes(element)).collect();
    let op = if dice.once_in(2) { Op::Sum } else { dice.one_of(&ops) };
    let mut values = || (0..count).flat_map(|_| value(element, dice)).collect::<Vec<u8>>();
    let (given, expected, found) = (values(), values(), vec![0; count * element.size as usize]);
    match dice.below(6) {
        0 => (Action::Put, given, vec![]),
        1 => (Action::Get, vec![], found),
        2 | 3 => (Action::Accumulate(op), given, vec![]),
        4 => (Action::Fetch(if dice.once_in(3) { Op::NoOp } else { op }), given, found),
        _ => (Action::CompareAndSwap(expected), given, found),
    }
}

pub fn programs(dice: &mut Random, windows: &[ElementType], ranks: usize) -> Vec<Vec<LockCall>> {
    let mut programs: Vec<Vec<LockCall>> = vec![Vec::new(); ranks];
    for _ in 0..1 + dice.below(2) {
        for program in &mut programs {
            for _ in 0..dice.below(3) {
                // Draws one lock, or two locks that overlap.
                let mut locks: Vec<(usize, WindowId)> = Vec::new();
                for _ in 0..1 + dice.below(2) {
                    let window = WindowId::new(dice.below(windows.len()));
                    let target = Rank::new(dice.below(ranks.min(2)));
                    let same = |(at, held): &(usize, WindowId)| {
                        let there = |call: &LockCall| matches!(call, LockCall::Lock { target: t, .. } if *t == target);
                        *held == window && there(&program[*at])
                    };
                    if locks.iter().any(same) {
                        continue;
                    }
                    let kind = if dice.once_in(3) { LockType::Exclusive } else { LockType::Shared };
                    locks.push((program.len(), window));
                    program.push(LockCall::Lock { window, target, kind });
                }
                for _ in 0..dice.below(5) {
                    let (lock, window) = dice.one_of(&locks);
                    if dice.once_in(4) {
                        program.push(LockCall::Flush { lock });
                        continue;
                    }
                    let count = 1 + dice.below(2);
                    let elements =
                        Datatype::elements((0..count).map(|_| dice.below(LEN) as i64).collect::<Vec<_>>())
                            .unwrap();
                    let (action, bytes, found) = action(dice, windows[window.index()], count);
                    program.push(LockCall::Act { lock, elements, action, bytes, found });
                }
                while !locks.is_empty() {
                    let (lock, _) = locks.swap_remove(dice.below(locks.len()));
                    program.push(LockCall::Unlock { lock });
                }
            }
        }
        if dice.once_in(3) {
            programs.iter_mut().for_each(|program| program.push(LockCall::Meet));
        }
    }
    programs
}

type Cell = (usize, WindowId, i64);

/// The visits that a lock has not made yet: the call, the index in its datatype, and the element.
type Waiting = Vec<(usize, usize, Cell)>;

enum Next {
    Call(usize),
    /// The rank and the lock, and the index of one of the lock's waiting visits.
    Visit((usize, usize), usize),
}

/// Runs the programs. Returns `None` if locks wait for each other in a circle.
pub fn run(dice: &mut Random, world: &mut World, programs: &mut [Vec<LockCall>]) -> Option<()> {
    let ranks = programs.len();
    let mut at = vec![0; ranks];
    // The waiting visits, by rank and lock.
    let mut waiting: BTreeMap<(usize, usize), Waiting> = BTreeMap::new();
    // The locks that hold each element.
    let mut held: BTreeMap<Cell, BTreeSet<(usize, usize)>> = BTreeMap::new();
    let lock_of = |program: &[LockCall], lock: usize| match &program[lock] {
        LockCall::Lock { window, target, kind } => (*window, target.index(), *kind),
        _ => unreachable!(),
    };
    loop {
        let mut turns: Vec<Next> = (0..ranks).map(Next::Call).collect();
        for (key, visits) in &waiting {
            turns.extend((0..visits.len()).map(|which| Next::Visit(*key, which)));
        }
        let mut done = false;
        while !done && !turns.is_empty() {
            match turns.swap_remove(dice.below(turns.len())) {
                Next::Call(rank) => {
                    let here = at[rank];
                    let Some(call) = programs[rank].get(here) else { continue };
                    let empty = |lock: &usize| waiting.get(&(rank, *lock)).is_none_or(Vec::is_empty);
                    match call {
                        LockCall::Act { lock, elements, .. } => {
                            let (window, target, _) = lock_of(&programs[rank], *lock);
                            let visits = elements.element_iter().enumerate();
                            let visits =
                                visits.map(|(place, element)| (here, place, (target, window, element)));
                            waiting.entry((rank, *lock)).or_default().extend(visits);
                        }
                        LockCall::Lock { .. } => {}
                        LockCall::Flush { lock } if empty(lock) => {}
                        LockCall::Unlock { lock } if empty(lock) => {
                            for holders in held.values_mut() {
                                holders.remove(&(rank, *lock));
                            }
                        }
                        LockCall::Meet
                            if (0..ranks)
                                .all(|rank| programs[rank].get(at[rank]) == Some(&LockCall::Meet)) =>
                        {
                            at.iter_mut().for_each(|at| *at += 1);
                            done = true;
                            continue;
                        }
                        _ => continue,
                    }
                    at[rank] += 1;
                    done = true;
                }
                Next::Visit(key, which) => {
                    let (rank, lock) = key;
                    let visits = &waiting[&key];
                    let (call, place, cell) = visits[which];
                    let exclusive = |(rank, lock): (usize, usize)| {
                        lock_of(&programs[rank], lock).2 == LockType::Exclusive
                    };
                    // Under an exclusive lock, visits are in program order. Under a shared lock,
                    // only the visits to the same element are in order.
                    let earlier = visits[..which].iter().any(|visit| exclusive(key) || visit.2 == cell);
                    let holders = held.entry(cell).or_default();
                    let free =
                        holders.iter().all(|other| *other == key || !exclusive(key) && !exclusive(*other));
                    if earlier || !free {
                        continue;
                    }
                    holders.insert(key);
                    waiting.get_mut(&(rank, lock)).unwrap().remove(which);
                    let element = world.element[cell.1];
                    let size = element.size as usize;
                    let bytes = &mut world.memory[cell.0][cell.1][cell.2 as usize * size..][..size];
                    let LockCall::Act { action, bytes: given, found, .. } = &mut programs[rank][call] else {
                        unreachable!()
                    };
                    let part = place * size..(place + 1) * size;
                    if !found.is_empty() {
                        found[part.clone()].copy_from_slice(bytes);
                    }
                    match action {
                        Action::Get => {}
                        Action::Put => bytes.copy_from_slice(&given[part]),
                        Action::Accumulate(op) | Action::Fetch(op) => {
                            apply(Some(*op), element, bytes, &given[part])
                        }
                        Action::CompareAndSwap(expected) if *bytes == expected[part.clone()] => {
                            bytes.copy_from_slice(&given[part]);
                        }
                        Action::CompareAndSwap(_) => {}
                    }
                    done = true;
                }
            }
        }
        if !done {
            return (0..ranks).all(|rank| at[rank] == programs[rank].len()).then_some(());
        }
    }
}

#[test]
fn what_real_locks_give_is_explained_and_an_altered_value_is_named() {
    let (mut whole, mut circles, mut altered) = (0, 0, 0);
    let count = cases(1000, 3000);
    for seed in 0..count {
        let mut dice = Random::new(seed);
        let types = [Scalar::I32, Scalar::F32, Scalar::I64].map(ElementType::scalar);
        let windows: Vec<ElementType> = (0..1 + dice.below(2)).map(|_| dice.one_of(&types)).collect();
        let ranks = 2 + dice.below(3);
        let before = world(&windows, ranks, LEN, seed);
        let mut programs = programs(&mut dice, &windows, ranks);
        let mut after = before.clone();
        if run(&mut dice, &mut after, &mut programs).is_none() {
            circles += 1;
            continue;
        }
        whole += 1;
        let verdict = explains(&before, &programs, &after).unwrap();
        assert_eq!(verdict, None, "seed {seed}: {programs:#?}");

        // No element has this value.
        let strange = 0x5aa5_1234_8765_5aa5_u64.to_ne_bytes();
        let found: Vec<(usize, usize)> = (0..ranks)
            .flat_map(|rank| (0..programs[rank].len()).map(move |call| (rank, call)))
            .filter(|(rank, call)| matches!(&programs[*rank][*call], LockCall::Act { found, .. } if !found.is_empty()))
            .collect();
        let expected = if !found.is_empty() && dice.once_in(2) {
            let (rank, call) = dice.one_of(&found);
            let LockCall::Act { found, lock, .. } = &programs[rank][call] else { unreachable!() };
            let LockCall::Lock { window, .. } = programs[rank][*lock] else { unreachable!() };
            let size = windows[window.index()].size as usize;
            let at = dice.below(found.len() / size) * size;
            let LockCall::Act { found, .. } = &mut programs[rank][call] else { unreachable!() };
            found[at..at + size].copy_from_slice(&strange[..size]);
            Unexplained::Found { rank: Rank::new(rank), call }
        } else {
            let (rank, window) = (dice.below(ranks), WindowId::new(dice.below(windows.len())));
            let (element, size) = (dice.below(LEN), windows[window.index()].size as usize);
            after.memory[rank][window][element * size..][..size].copy_from_slice(&strange[..size]);
            Unexplained::Element { rank: Rank::new(rank), window, element }
        };
        let verdict = explains(&before, &programs, &after).unwrap();
        assert_eq!(verdict, Some(expected), "seed {seed}: {programs:#?}");
        altered += 1;
    }
    assert!(3 * whole > 2 * count && altered == whole, "{whole} programs, {circles} circles");
}
