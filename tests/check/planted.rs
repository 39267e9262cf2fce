//! Generated programs with locks, or with posts and starts. If a program has exactly one conflict,
//! the conflict is reported with both lines. If the program has no conflict, none is reported
//! (planner/README.md, 31 to 34).

use crate::ends::lowest;
use crate::generated::{Found, after_reports, found, on};
use fencepost::prelude::*;
use fencepost::{Access, Check, Locked, TransportKind, ranks};
use fencepost_planner::ids::{Delta, Id, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Operation, Site};
use fencepost_tests_reference::{Action, Call, Lent, LockCall, Unfenced, exposure_conflicts, lock_conflicts};
use fencepost_tests_support::cases::cases;
use fencepost_tests_support::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// The number of elements of each part.
const LEN: usize = 24;
/// The largest number of operations of a program. Each operation is called at a line of its own.
const MOST: usize = 10;
/// The number of rounds of a program. Rounds of a program with locks are separated by barriers.
const ROUNDS: usize = 3;

/// An operation of a program, in an epoch of its own.
#[derive(Clone, Debug)]
struct Called {
    rank: usize,
    round: usize,
    target: usize,
    action: Action,
    elements: Datatype,
    /// For locks: whether the operation is on the second window. In this window each rank locks
    /// only its own part, exclusively.
    alone: bool,
    /// If `None`, the lock of the operation is released before the next barrier. If `Some`, it is
    /// released after the barrier; if `Some(true)`, it is also flushed before the barrier.
    late: Option<bool>,
}

/// The lock or the access on which an operation is called.
enum Under<'a> {
    Lock(&'a Locked<'a, u64>),
    Access(&'a Access<u64>),
}

type Act = fn(&Under<'_>, &Called) -> Result<()>;

/// The line before the first of [`LINES`].
const BEFORE: u32 = line!() + 3;
#[rustfmt::skip]
const LINES: [Act; MOST] = [
    |under, called| perform(under, called),
    |under, called| perform(under, called),
    |under, called| perform(under, called),
    |under, called| perform(under, called),
    |under, called| perform(under, called),
    |under, called| perform(under, called),
    |under, called| perform(under, called),
    |under, called| perform(under, called),
    |under, called| perform(under, called),
    |under, called| perform(under, called),
];

/// Calls the operation. The line of the caller counts as the line of the call.
#[track_caller]
fn perform(under: &Under<'_>, called: &Called) -> Result<()> {
    let (values, elements) = (vec![7; called.elements.size()], &called.elements);
    match under {
        Under::Lock(lock) => match &called.action {
            Action::Put => lock.put(&values, elements),
            Action::Get => lock.get(elements).map(drop),
            Action::Accumulate(op) => lock.accumulate(&values, *op, elements),
            Action::Fetch(op) => lock.get_accumulate(&values, *op, elements).map(drop),
            Action::CompareAndSwap(_) => lock.compare_and_swap(0, 1, elements.low() as usize).map(drop),
        },
        Under::Access(access) => match &called.action {
            Action::Get => access.fetch(called.target, elements).map(drop),
            Action::Accumulate(op) => access.accumulate(&values, *op).to(called.target, elements),
            _ => access.put(&values).to(called.target, elements),
        },
    }
}

/// Draws some elements of a part.
fn elements(dice: &mut Random) -> Datatype {
    loop {
        let (at, count) = (dice.below(LEN), 1 + dice.below(4));
        let made = match dice.below(3) {
            0 => Datatype::run(at..at + count),
            1 => Datatype::nest(at as i64, &[(count, 2 + dice.below(4) as i64)], 1).unwrap(),
            _ => Datatype::nest(at as i64, &[(2, 9), (2, 4)], 1 + dice.below(3)).unwrap(),
        };
        if made.high() <= LEN as i64 {
            return made;
        }
    }
}

fn called(dice: &mut Random, ranks: usize, locks: bool) -> Called {
    let (rank, round) = (dice.below(ranks), dice.below(ROUNDS));
    let action = match dice.below(if locks { 7 } else { 5 }) {
        0 | 1 => Action::Put,
        2 => Action::Get,
        3 => Action::Accumulate(Op::Sum),
        4 => Action::Accumulate(Op::Max),
        5 => Action::Fetch(Op::Sum),
        _ => Action::CompareAndSwap(vec![0; 8]),
    };
    let at = dice.below(LEN);
    let elements = match action {
        Action::CompareAndSwap(_) => Datatype::run(at..at + 1),
        _ => elements(dice),
    };
    let alone = locks && dice.once_in(5);
    let late = (locks && round + 1 < ROUNDS && dice.once_in(3)).then(|| dice.once_in(2));
    let target = if alone { rank } else { dice.below(ranks) };
    Called { rank, round, target, action, elements, alone, late }
}

/// Draws calls that have no conflict according to the reference. Returns these calls, and the same
/// calls with one more call that causes exactly one conflict.
fn drawn(dice: &mut Random, ranks: usize, locks: bool) -> [Vec<Called>; 2] {
    let law = |calls: &[Called]| if locks { locked(calls, ranks) } else { posted(calls, ranks) };
    let mut clean: Vec<Called> = Vec::new();
    for _ in 0..30 {
        if clean.len() < MOST - 1 {
            clean.push(called(dice, ranks, locks));
            if !law(&clean).is_empty() || !is_playable(&clean) {
                clean.pop();
            }
        }
    }
    let planted = (0..10_000).find_map(|_| {
        let mut planted = clean.clone();
        planted.insert(dice.below(clean.len() + 1), called(dice, ranks, locks));
        (law(&planted).len() == 1 && is_playable(&planted)).then_some(planted)
    });
    [clean, planted.expect("some operation conflicts with one other")]
}

/// Returns whether no rank locks a part that it already holds. A rank whose epoch ends after the
/// barrier must have no other epoch on the same part until then.
fn is_playable(calls: &[Called]) -> bool {
    let part = |call: &Called| (call.rank, call.target, call.alone);
    calls.iter().enumerate().filter(|(_, late)| late.late.is_some()).all(|(at, late)| {
        let follows = |(other, call): (usize, &Called)| {
            part(call) == part(late)
                && (call.round == late.round && other > at || call.round == late.round + 1)
        };
        !calls.iter().enumerate().any(follows)
    })
}

/// Returns the calls of a rank in a round, each with its index.
fn of(calls: &[Called], rank: usize, round: usize) -> impl Iterator<Item = (usize, &Called)> {
    calls.iter().enumerate().filter(move |(_, call)| (call.rank, call.round) == (rank, round))
}

/// Returns a conflict in the form that reports have. `number` returns the index in `calls` of a
/// call of the reference's program.
fn as_found(conflict: &Unfenced, number: impl Fn(Rank, usize) -> usize) -> Found {
    let [a, b] = conflict
        .between
        .map(|(rank, place)| (rank.index() as u64, u64::from(BEFORE) + number(rank, place) as u64));
    let ends = [conflict.elements[0] as u64, *conflict.elements.last().expect("one at least") as u64 + 1];
    (conflict.window.index() as u64, conflict.rank.index() as u64, ends, [a.min(b), a.max(b)])
}

/// Returns the conflicts of these calls, if they are made in epochs of locks.
fn locked(calls: &[Called], ranks: usize) -> BTreeSet<Found> {
    let mut numbers: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let programs: Vec<Vec<LockCall>> = (0..ranks)
        .map(|rank| {
            let (mut program, mut locks, mut late) = (Vec::new(), 0, Vec::new());
            for round in 0..ROUNDS {
                for (number, call) in of(calls, rank, round) {
                    let kind = if call.alone { LockType::Exclusive } else { LockType::Shared };
                    let window = WindowId::new(usize::from(call.alone));
                    program.push(LockCall::Lock { window, target: Rank::new(call.target), kind });
                    let lock = locks;
                    locks += 1;
                    numbers.insert((rank, program.len()), number);
                    let (elements, action) = (call.elements.clone(), call.action.clone());
                    let (bytes, found) = Default::default();
                    program.push(LockCall::Act { lock, elements, action, bytes, found });
                    match call.late {
                        None => program.push(LockCall::Unlock { lock }),
                        Some(true) => {
                            program.push(LockCall::Flush { lock });
                            late.push(lock);
                        }
                        Some(false) => late.push(lock),
                    }
                }
                program.push(LockCall::Meet);
                program.extend(late.drain(..).map(|lock| LockCall::Unlock { lock }));
            }
            program
        })
        .collect();
    let found = lock_conflicts(&programs);
    found.iter().map(|conflict| as_found(conflict, |rank, place| numbers[&(rank.index(), place)])).collect()
}

/// Returns the sources of a target in a round, which are the ranks that access the target.
fn sources(calls: &[Called], target: usize, round: usize) -> BTreeSet<usize> {
    let some = calls.iter().filter(|call| (call.round, call.target) == (round, target));
    some.map(|call| call.rank).collect()
}

/// Returns the conflicts of these calls, if they are made in accesses. In each round, each target
/// is exposed once.
fn posted(calls: &[Called], ranks: usize) -> BTreeSet<Found> {
    let window = WindowId::new(0);
    let mut numbers: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let programs: Vec<Vec<Call>> = (0..ranks)
        .map(|rank| {
            let mut program = Vec::new();
            for round in 0..ROUNDS {
                let sources: BTreeSet<Rank> =
                    sources(calls, rank, round).into_iter().map(Rank::new).collect();
                let targets: BTreeSet<Rank> =
                    of(calls, rank, round).map(|(_, call)| Rank::new(call.target)).collect();
                let is_posted = !sources.is_empty();
                if is_posted {
                    program.push(Call::Post { window, sources, lent: Lent::Whole });
                }
                if !targets.is_empty() {
                    let access = program.len();
                    program.push(Call::Start { window, targets });
                    for (number, call) in of(calls, rank, round) {
                        let kind = match call.action {
                            Action::Get => Kind::Get,
                            Action::Accumulate(op) => Kind::Accumulate(op),
                            _ => Kind::Put,
                        };
                        let target = Some(Delta::between(Rank::new(rank), Rank::new(call.target)));
                        let (remote, mode) = (call.elements.clone(), Mode::Auto);
                        let (local, site) = (Local::Buffer, Site::default());
                        let operation = Operation { kind, window, target, remote, local, mode, site };
                        numbers.insert((rank, program.len()), number);
                        program.push(Call::Access { access, operation, source: Vec::new() });
                    }
                    program.push(Call::Complete { access });
                }
                if is_posted {
                    program.push(Call::Wait { window });
                }
            }
            program
        })
        .collect();
    let found = exposure_conflicts(&programs);
    found.iter().map(|conflict| as_found(conflict, |rank, place| numbers[&(rank.index(), place)])).collect()
}

/// The errors of calls after which a rank continues.
type Errors = Vec<ErrorClass>;

fn note<T>(errors: &mut Errors, result: Result<T>) -> Option<T> {
    result.map_err(|error| errors.push(error.class())).ok()
}

fn play_locks(world: &World, calls: &[Called]) -> Result<Errors> {
    let windows = [world.lock_window::<u64>(LEN)?, world.lock_window::<u64>(LEN)?];
    let mut errors = Errors::new();
    for round in 0..ROUNDS {
        let mut late = Vec::new();
        for (number, call) in of(calls, world.rank(), round) {
            let kind = if call.alone { LockType::Exclusive } else { LockType::Shared };
            let lock = windows[usize::from(call.alone)].lock(call.target, kind)?;
            LINES[number](&Under::Lock(&lock), call)?;
            match call.late {
                None => {
                    note(&mut errors, lock.unlock());
                }
                Some(flushed) => {
                    if flushed {
                        note(&mut errors, lock.flush());
                    }
                    late.push(lock);
                }
            }
        }
        note(&mut errors, world.barrier());
        for lock in late {
            note(&mut errors, lock.unlock());
        }
    }
    note(&mut errors, world.barrier());
    for window in windows {
        window.into_window()?;
    }
    Ok(errors)
}

fn play_posts(world: &World, calls: &[Called]) -> Result<Errors> {
    let mut u = world.window::<u64>(LEN)?;
    let (me, mut errors) = (world.rank(), Errors::new());
    for round in 0..ROUNDS {
        let sources = sources(calls, me, round);
        let targets: BTreeSet<usize> = of(calls, me, round).map(|(_, call)| call.target).collect();
        let act = |access: Access<u64>, refused: &mut Errors| {
            for (number, call) in of(calls, me, round) {
                note(refused, LINES[number](&Under::Access(&access), call));
            }
            access.complete()
        };
        if sources.is_empty() {
            if !targets.is_empty() {
                act(u.start(&world.group(targets)?)?, &mut errors)?;
            }
            continue;
        }
        let exposed = u.post(&world.group(sources)?)?;
        if !targets.is_empty() {
            act(exposed.start(&world.group(targets)?)?, &mut errors)?;
        }
        u = match exposed.wait() {
            Ok(u) => u,
            Err(refused) => {
                let (u, error) = refused.into_parts();
                errors.push(error.class());
                u
            }
        };
    }
    note(&mut errors, world.barrier());
    Ok(errors)
}

/// Makes the calls, and compares the reported conflicts with those of the reference.
fn play(calls: &[Called], size: usize, transport: TransportKind, check: Check, locks: bool) {
    let meant = if locks { locked(calls, size) } else { posted(calls, size) };
    let what = format!("{size} ranks on {transport:?}, {check}: {calls:#?}");
    let (ends, text) = after_reports(|report| {
        let asked = ranks(size).transport(transport.clone()).check(check).check_report(report);
        asked.collect(|world| if locks { play_locks(world, calls) } else { play_posts(world, calls) })
    });
    let ends = ends.unwrap_or_else(|error| panic!("{error}\n{what}"));
    let told: BTreeSet<Found> = text.lines().map(found).collect();
    assert_eq!(told, meant, "{ends:?}\n{what}");
    // A conflict between two operations of one rank is reported to that rank only, at its call.
    let alone = meant.iter().all(|(.., [a, b])| a.0 == b.0);
    let owner = |owner: u64| (!alone).then_some(owner);
    let part: BTreeSet<u64> =
        meant.iter().flat_map(|(_, of, _, [a, b])| [owner(*of), Some(a.0), Some(b.0)]).flatten().collect();
    for (rank, errors) in (lowest(&transport)..).zip(&ends) {
        let (conflicts, others): (Errors, Errors) =
            errors.iter().partition(|class| **class == ErrorClass::RmaConflict);
        let is_part = part.contains(&(rank as u64));
        let learnt = is_part != conflicts.is_empty() && (!is_part || others.is_empty());
        let silent = !meant.is_empty() || errors.is_empty();
        assert!(!alone || others.is_empty() && conflicts.len() <= 1, "{ends:?}\n{what}");
        assert!(
            learnt && silent && others.iter().all(|class| *class == ErrorClass::RmaSync),
            "{ends:?}\n{what}"
        );
    }
}

/// Runs two programs, one without a conflict and one with a conflict. `number` is the seed of the
/// programs. They have `size` ranks, or a random number of ranks if `size` is `None`.
pub(crate) fn one_planted(number: u64, locks: bool, size: Option<usize>, transports: &[TransportKind]) {
    let mut dice = Random::new((2 << 32) | (number * 2) | u64::from(locks));
    let drawn_size = 2 + dice.below(4);
    let size = size.unwrap_or(drawn_size);
    let programs = drawn(&mut dice, size, locks);
    let on = if transports.is_empty() { on(number, size) } else { transports.to_vec() };
    for transport in on {
        for calls in &programs {
            play(calls, size, transport.clone(), Check::Conflicts, locks);
        }
    }
}

fn planted(locks: bool) {
    (0..cases(60, 1000)).for_each(|number| one_planted(number, locks, None, &[]));
}

#[test]
fn one_planted_conflict_of_locks_is_found_with_both_lines_and_without_it_all_is_silent() {
    planted(true);
}

#[test]
fn one_planted_conflict_of_posts_is_found_with_both_lines_and_without_it_all_is_silent() {
    planted(false);
}
