//! The promises of hints, and the effects of an untrue promise.

use crate::{everywhere, refused};
use fencepost::prelude::*;
use fencepost::{Hints, TransportKind, ValueAt, World, ranks};
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::transports::transports;

#[test]
fn all_ranks_give_the_same_hints_and_possible_ones() {
    everywhere(3, |world, _| {
        let odd = if world.rank() == 1 { Hints::new().regions(3) } else { Hints::new() };
        let error = world.lock_window_with::<u32>(1, odd).map(drop).expect_err("rank 1 differs");
        refused(error, ErrorClass::Arg, &["at most 3 regions", "none", "all ranks must give the same"]);
        for regions in [0, 17, usize::MAX] {
            let hints = if world.rank() == 2 { Hints::new().regions(regions) } else { Hints::new() };
            let error = world.lock_window_with::<u32>(1, hints).map(drop).expect_err("not from 1 to 16");
            refused(error, ErrorClass::Arg, &["rank 2", "from 1 to 16"]);
        }
        // Hints that each rank gives for itself may differ. After the refused calls, the world
        // still works.
        let own = Hints::new().memory(100 + world.rank());
        let u = world.lock_window_with::<u32>(1, own)?.into_window()?;
        u.free()?;
        Ok(())
    });
}

const ROUNDS: u64 = 6;
const LAST: u64 = ROUNDS - 1;

/// Runs epochs with operations of all kinds: counts under shared locks, and blocks of wide
/// elements. `shared` is true if several ranks lock the same part.
fn counted(world: &World, hints: Hints, shared: bool) -> Result<()> {
    let (me, size) = (world.rank(), world.size());
    let to = (me + 1) % size;
    let u = world.lock_window_with::<u64>(300, hints)?;
    let w = world.lock_window_with::<[u32; 5]>(40, hints)?;
    let x = world.lock_window_with::<ValueAt<f64, u64>>(8, hints)?;
    for round in 0..ROUNDS {
        let targets = if shared { 0..size } else { to..to + 1 };
        for target in targets {
            // Each origin has elements of its own.
            let own = if shared { me } else { 0 };
            let lock = u.lock(target, if round % 3 == 0 { LockType::Exclusive } else { LockType::Shared })?;
            lock.accumulate([1], Op::Sum, 10 * own)?;
            lock.accumulate([2, 3], Op::Sum, 10 * own + 1)?;
            let found = lock.fetch_and(Op::Sum, 1, 10 * own + 3)?;
            if round % 5 == 0 {
                lock.flush()?;
                assert_eq!(found.take()?, [round]);
            }
            let swapped = lock.compare_and_swap(round, round + 1, 10 * own + 4)?;
            lock.put([round; 4], Datatype::nest(100 + 10 * own as i64, &[(2, 4)], 2).unwrap())?;
            lock.unlock()?;
            assert_eq!(swapped.take()?, [round]);
            let lock = w.lock(target, LockType::Shared)?;
            let before = lock.get(2 * own..2 * own + 2)?;
            lock.put([[round as u32; 5]; 2], 2 * own)?;
            let swapped = lock.compare_and_swap([round as u32; 5], [7; 5], 2 * own + 1)?;
            lock.put([[round as u32 + 1; 5]], 2 * own + 1)?;
            lock.unlock()?;
            assert_eq!(swapped.take()?, [[round as u32; 5]]);
            assert_eq!(before.take()?[0], [round.saturating_sub(1) as u32; 5]);
            let lock = x.lock(target, LockType::Shared)?;
            lock.accumulate([ValueAt { value: round as f64, index: round }], Op::MaxLoc, own)?;
            lock.unlock()?;
        }
    }
    let (u, w, x) = (u.into_window()?, w.into_window()?, x.into_window()?);
    let origins = if shared { 0..size } else { 0..1 };
    for own in origins {
        assert_eq!(u[10 * own..10 * own + 5], [ROUNDS, 2 * ROUNDS, 3 * ROUNDS, ROUNDS, ROUNDS], "{hints:?}");
        assert_eq!(u[100 + 10 * own..100 + 10 * own + 6], [LAST, LAST, 0, 0, LAST, LAST]);
        assert_eq!(w[2 * own..2 * own + 2], [[LAST as u32; 5], [ROUNDS as u32; 5]]);
        assert_eq!(x[own], ValueAt { value: LAST as f64, index: LAST });
    }
    Ok(())
}

#[test]
fn what_locks_do_is_the_same_with_every_hint_that_is_true() {
    everywhere(4, |world, _| {
        let none = Hints::new();
        for hints in [none, none.regions(1), none.regions(16), none.disjoint()] {
            counted(world, hints, true)?;
            counted(world, hints, false)?;
        }
        counted(world, none.sole_origin(), false)?;
        counted(world, none.sole_origin().disjoint().regions(2), false)
    });
}

#[test]
fn a_part_of_a_sole_origin_refuses_each_other_rank_and_is_not_changed_by_it() {
    everywhere(3, |world, _| {
        let (me, none) = (world.rank(), Hints::new());
        let u = world.lock_window_with::<u64>(4, none.sole_origin())?;
        if me == 1 {
            let lock = u.lock(0, LockType::Shared)?;
            lock.put([5], 0)?;
            lock.unlock()?;
            u.local_mut(|part| {
                part[3] = 8;
                Ok(())
            })?;
        }
        world.barrier()?;
        if me == 2 {
            for kind in [LockType::Shared, LockType::Exclusive] {
                let lock = u.lock(0, kind)?;
                lock.put([6], 0)?;
                refused(
                    lock.flush().expect_err("it is rank 1's"),
                    ErrorClass::Assert,
                    &["rank 1 has accessed the part of rank 0", "sole origin"],
                );
                lock.put([6], 0)?;
                let error = lock.unlock().expect_err("it is rank 1's");
                refused(error, ErrorClass::Assert, &["rank 1 has accessed the part of rank 0"]);
            }
            let lock = u.lock(1, LockType::Shared)?;
            lock.put([1, 2], 0)?;
            refused(lock.unlock().expect_err("it is rank 1's own"), ErrorClass::Assert, &["rank 1"]);
        }
        if me == 0 {
            let error = u.local_mut(|_| Ok(())).expect_err("it is rank 1's");
            refused(error, ErrorClass::Assert, &["rank 1"]);
            refused(u.local(|part| part.get(0)).expect_err("as well"), ErrorClass::Assert, &[]);
        }
        world.barrier()?;
        // The origin to which the part belongs continues, and the window can be used.
        if me == 1 {
            let lock = u.lock(0, LockType::Exclusive)?;
            lock.accumulate([2], Op::Sum, 0)?;
            lock.flush()?;
            lock.accumulate([3], Op::Sum, 0)?;
            lock.unlock()?;
        }
        let u = u.into_window()?;
        assert_eq!(u[..], [[10, 0, 0, 0], [0, 0, 0, 8], [0; 4]][me]);
        // Once the window has become a `LockWindow` again, the part belongs to no origin.
        let u = u.into_locked()?;
        if me == 2 {
            let lock = u.lock(0, LockType::Shared)?;
            lock.put([1], 1)?;
            lock.unlock()?;
        }
        assert_eq!(u.into_window()?[1], u64::from(me == 0));
        Ok(())
    });
}

#[test]
fn a_lock_of_all_parts_takes_those_only_that_it_accesses_of_sole_origins() {
    everywhere(3, |world, _| {
        let next = (world.rank() + 1) % 3;
        let u = world.lock_window_with::<u32>(2, Hints::new().sole_origin())?;
        let all = u.lock_all()?;
        all.on(next)?.put([7], 0)?;
        all.on(next)?.flush()?;
        all.on(next)?.put([8], 1..2)?;
        all.flush()?;
        all.unlock()?;
        let lock = u.lock(next, LockType::Exclusive)?;
        lock.accumulate([1], Op::Sum, 1)?;
        lock.unlock()?;
        assert_eq!(u.into_window()?[..], [7, 9]);
        Ok(())
    });
}

/// Several ranks access elements at once, although the program has promised that they do not.
/// Afterwards, each word has a value that one of the ranks has stored.
#[test]
fn a_promise_of_disjoint_epochs_that_is_untrue_loses_visits_and_nothing_else() {
    for kind in [TransportKind::Local, TransportKind::ShmThreads] {
        let run = ranks(4).transport(kind).run(|world| {
            let u = world.lock_window_with::<u64>(2, Hints::new().disjoint())?;
            let w = world.lock_window_with::<[u64; 4]>(1, Hints::new().disjoint())?;
            for _ in 0..500 {
                let lock = u.lock(0, LockType::Shared)?;
                lock.accumulate([1], Op::Sum, 0)?;
                lock.unlock()?;
                let lock = w.lock(0, LockType::Shared)?;
                lock.put([[world.rank() as u64 + 1; 4]], 0)?;
                lock.unlock()?;
                // An exclusive epoch works as usual.
                let lock = u.lock(0, LockType::Exclusive)?;
                lock.accumulate([1], Op::Sum, 1)?;
                lock.unlock()?;
            }
            let (u, w) = (u.into_window()?, w.into_window()?);
            if world.rank() == 0 {
                assert!((500..=2000).contains(&u[0]), "{}", u[0]);
                assert_eq!(u[1], 2000);
                assert!(w[0].iter().all(|word| (1..=4).contains(word)), "{:?}", w[0]);
            }
            Ok(())
        });
        run.unwrap();
    }
}

#[test]
fn an_epoch_beyond_its_memory_is_refused_at_the_call_and_goes_on() {
    everywhere(2, |world, _| {
        let to = 1 - world.rank();
        let u = world.lock_window_with::<u64>(100, Hints::new().memory(160))?;
        let lock = u.lock(to, LockType::Exclusive)?;
        for at in 0..10 {
            lock.put([at as u64 + 1], at)?;
        }
        let words = ["at most 160 bytes", "flush the epoch first, or unlock"];
        refused(lock.put([0], 0).expect_err("the eleventh"), ErrorClass::NoMem, &words);
        refused(lock.compare_and_swap(1, 0, 0).map(drop).expect_err("two more"), ErrorClass::NoMem, &words);
        refused(lock.put([0; 2], 0).expect_err("as well"), ErrorClass::NoMem, &words);
        lock.flush()?;
        refused(lock.put([9; 30], 0).expect_err("240 bytes at once"), ErrorClass::NoMem, &words);
        lock.put([9; 12], 20)?;
        // The record takes 16 bytes, its elements take 96 bytes, and its datatype takes more. So
        // there is room for two more records.
        lock.put([8], 40)?;
        lock.put([8], 41)?;
        refused(lock.put([0], 0).expect_err("one too many"), ErrorClass::NoMem, &words);
        refused(lock.fetch_and(Op::Sum, 1, 0).map(drop).expect_err("as well"), ErrorClass::NoMem, &words);
        lock.unlock()?;
        let lock = u.lock(to, LockType::Shared)?;
        for at in 60..70 {
            lock.put([7], at)?;
        }
        lock.unlock()?;
        let u = u.into_window()?;
        assert!(u[..10].iter().copied().eq(1..=10) && u[20..32].iter().all(|&element| element == 9));
        assert_eq!((u[40], u[41], u[32]), (8, 8, 0));
        assert!(u[60..70].iter().all(|&element| element == 7));
        Ok(())
    });
}

/// Random epochs with random hints. Each rank knows the result.
#[test]
fn random_epochs_leave_the_same_with_and_without_hints() {
    for (number, kind) in (0..).zip(transports([8])) {
        let run = ranks(3).transport(kind.clone()).run(|world| {
            let (me, none) = (world.rank(), Hints::new());
            let mut dice = Random::new(100 * number + 7);
            for _ in 0..3 {
                let regions = none.regions(1 + dice.below(16));
                let hints = dice.one_of(&[none, regions, regions.disjoint(), regions.sole_origin()]);
                let len = 1 + dice.below(5000);
                let (u, v) = (world.lock_window::<i32>(len)?, world.lock_window_with::<i32>(len, hints)?);
                // All ranks draw the same number, from which each rank makes a different seed.
                let mut own = Random::new(dice.bits() + me as u64);
                for _ in 0..6 {
                    let (at, kind) = (own.below(len), own.one_of(&[LockType::Shared, LockType::Exclusive]));
                    let (count, flushed) = (1 + own.below(len - at), own.once_in(3));
                    let elements: Vec<i32> = (0..count).map(|_| own.bits() as i32).collect();
                    for window in [&u, &v] {
                        let lock = window.lock((me + 1) % 3, kind)?;
                        lock.accumulate(&elements, Op::Sum, at)?;
                        if flushed {
                            lock.flush()?;
                        }
                        lock.accumulate([1], Op::Bxor, at)?;
                        lock.unlock()?;
                    }
                }
                assert_eq!(u.into_window()?[..], v.into_window()?[..], "{hints:?}, {len}");
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}
