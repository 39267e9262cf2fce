//! Models of the fair lock. No other rank holds the lock at the same time as an exclusive holder.
//! All writes under the lock are visible to the next holder. A rank that waits is woken. `park` has
//! no time limit here, so a lost wake-up is a deadlock.

use std::mem::ManuallyDrop;

use loom::cell::UnsafeCell;
use loom::sync::Notify;
use loom::thread;

use super::{model, rejected};
use crate::sync::{Arc, AtomicU32, AtomicU64, without_fences};
use crate::{FairLock, Hold, Liveness, LocalEnd, Next, Pause, local};

/// A lock for up to four ranks, and the value that it protects.
struct Protected {
    word: AtomicU64,
    slots: Vec<AtomicU32>,
    value: UnsafeCell<u64>,
}

impl Protected {
    fn new() -> Arc<Self> {
        let slots = (0..4).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Self { word: AtomicU64::new(0), slots, value: UnsafeCell::new(0) })
    }

    fn lock(&self) -> FairLock<'_> {
        FairLock::new(&self.word, &self.slots)
    }

    fn read(&self) -> u64 {
        // SAFETY: loom checks that no rank writes meanwhile; this is what the models test.
        self.value.with(|value| unsafe { *value })
    }

    fn add(&self) {
        // SAFETY: as above, and no rank reads.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }
}

fn wake(end: &mut LocalEnd, Next(rank): Next) {
    if let Some(rank) = rank {
        end.wake(rank);
    }
}

/// The part of the protocol that a model leaves out.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    /// Without the wait, a rank enters before its turn.
    Waiting,
    /// Without the wake-up, a rank that leaves, or enters as a shared holder, wakes no other rank.
    Waking,
}

/// The call with which a rank takes the lock.
#[derive(Clone, Copy, PartialEq)]
enum Taking {
    /// The rank always takes a turn.
    ATurn,
    /// The rank takes the lock if it is free, and otherwise a turn.
    IfFree,
}

/// Holds the lock once. An exclusive holder adds to the value. A shared holder reads it twice.
fn hold(
    end: &mut LocalEnd,
    rank: usize,
    place: &Protected,
    hold: Hold,
    (taking, without): (Taking, Without),
) {
    let lock = place.lock();
    let is_taken = taking == Taking::IfFree && lock.take_free(hold);
    if !is_taken
        && let Err(turn) = lock.take(hold, rank)
        && without != Without::Waiting
    {
        let mut pause = Pause::new();
        let next = loop {
            match lock.enter(turn, hold) {
                Some(next) => break next,
                None => end.idle(&mut pause),
            }
        };
        if without != Without::Waking {
            wake(end, next);
        }
    }
    match hold {
        Hold::Exclusive => place.add(),
        Hold::Shared => assert_eq!(place.read(), place.read()),
    }
    let next = lock.leave(hold);
    if without != Without::Waking {
        wake(end, next);
    }
}

/// Runs each rank as a thread. `ranks` lists, for each rank, the ways in which it holds the lock,
/// one after another.
fn run(ranks: &'static [&'static [Hold]], without: Without) {
    run_by(Taking::ATurn, ranks, without);
}

/// Runs ranks as [`run`] does. They take the lock with `taking`.
fn run_by(taking: Taking, ranks: &'static [&'static [Hold]], without: Without) {
    let place = Protected::new();
    // `ManuallyDrop`, because a dropped end leaves its world, which is not possible while a
    // rejected model unwinds.
    let mut ends: Vec<_> = local(ranks.len()).into_iter().map(ManuallyDrop::new).collect();
    let first = ends.remove(0);
    let program = move |rank: usize, mut end: ManuallyDrop<LocalEnd>, place: Arc<Protected>| {
        for &how in ranks[rank] {
            hold(&mut end, rank, &place, how, (taking, without));
        }
        end
    };
    let others: Vec<_> = ends
        .into_iter()
        .enumerate()
        .map(|(other, end)| {
            let place = Arc::clone(&place);
            thread::spawn(move || program(other + 1, end, place))
        })
        .collect();
    let first = program(0, first, Arc::clone(&place));
    let others: Vec<_> = others.into_iter().map(|other| other.join().map(ManuallyDrop::into_inner)).collect();
    let exclusive = ranks.iter().copied().flatten().filter(|how| **how == Hold::Exclusive).count();
    assert_eq!(place.read(), exclusive as u64);
    drop((ManuallyDrop::into_inner(first), others));
}

/// The number that an attendant stores in a slot.
const ATTENDANT: usize = 2;

/// Runs two holders that each hold the lock once: a rank, and an attendant for another rank. The
/// attendant checks its turn once, and again whenever it is nudged.
fn attended() {
    let (place, nudged) = (Protected::new(), Arc::new(Notify::new()));
    let hand_on = |next: Next, end: &mut LocalEnd, nudged: &Notify| match next {
        Next(Some(ATTENDANT)) => nudged.notify(),
        next => wake(end, next),
    };
    let hold = move |end: &mut LocalEnd, rank: usize, place: &Protected, nudged: &Notify| {
        let lock = place.lock();
        if let Err(turn) = lock.take(Hold::Exclusive, rank) {
            let mut pause = Pause::new();
            while lock.enter(turn, Hold::Exclusive).is_none() {
                end.idle(&mut pause);
            }
        }
        place.add();
        hand_on(lock.leave(Hold::Exclusive), end, nudged);
    };
    let mut ends: Vec<_> = local(2).into_iter().map(ManuallyDrop::new).collect();
    let attendant = {
        let (place, nudged) = (Arc::clone(&place), Arc::clone(&nudged));
        let mut end = ends.remove(1);
        thread::spawn(move || {
            let lock = place.lock();
            if let Err(turn) = lock.take_nudged(Hold::Exclusive, ATTENDANT) {
                while lock.enter(turn, Hold::Exclusive).is_none() {
                    nudged.wait();
                }
            }
            place.add();
            wake(&mut end, lock.leave(Hold::Exclusive));
            end
        })
    };
    let mut end = ends.remove(0);
    hold(&mut end, 0, &place, &nudged);
    let other = attendant.join().map(ManuallyDrop::into_inner);
    assert_eq!(place.read(), 2);
    drop((ManuallyDrop::into_inner(end), other));
}

const TWO: &[&[Hold]] = &[&[Hold::Exclusive], &[Hold::Exclusive]];
const MIXED: &[&[Hold]] = &[&[Hold::Exclusive, Hold::Shared], &[Hold::Shared, Hold::Exclusive]];
const CHAIN: &[&[Hold]] = &[&[Hold::Exclusive], &[Hold::Shared], &[Hold::Shared]];

#[test]
fn exclusive_holders_exclude_each_other_and_who_waits_is_woken() {
    model(3, || run(TWO, Without::Nothing));
}

#[test]
fn shared_and_exclusive_holders_exclude_each_other() {
    model(2, || run(MIXED, Without::Nothing));
}

#[test]
fn a_shared_holder_lets_the_next_one_in() {
    model(1, || run(CHAIN, Without::Nothing));
}

#[test]
fn a_lock_that_is_free_is_taken_by_one_holder_and_who_waits_is_woken() {
    model(3, || run_by(Taking::IfFree, TWO, Without::Nothing));
    model(2, || run_by(Taking::IfFree, MIXED, Without::Nothing));
}

#[test]
fn without_waiting_for_the_turn_two_are_in_at_once() {
    for ranks in [TWO, MIXED] {
        for taking in [Taking::ATurn, Taking::IfFree] {
            let complaint = rejected(2, move || run_by(taking, ranks, Without::Waiting));
            assert!(complaint.contains("Causality violation"), "{complaint}");
        }
    }
}

#[test]
fn without_waking_the_next_one_sleeps_for_ever() {
    let complaint = rejected(2, || run(TWO, Without::Waking));
    assert!(complaint.contains("deadlock"), "{complaint}");
}

#[test]
fn an_attendant_that_waits_is_nudged() {
    model(3, attended);
}

#[test]
fn without_the_fences_a_nudge_is_lost() {
    let complaint = without_fences(|| rejected(3, attended));
    assert!(complaint.contains("deadlock"), "{complaint}");
}

#[test]
fn without_the_fences_a_wake_up_is_lost() {
    let complaint = without_fences(|| rejected(3, || run(TWO, Without::Nothing)));
    assert!(complaint.contains("deadlock"), "{complaint}");
}
