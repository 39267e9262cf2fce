//! Many ranks access the same elements. No operation is lost, and no rank sees half of an exclusive
//! epoch. A rank that calls nothing delays no other rank.

use fencepost::prelude::*;
use fencepost::{TransportKind, ValueAt, World, ranks};
use fencepost_tests_worlds::transports::transports;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the transports whose ranks reach each other's memory.
pub fn reaching() -> Vec<TransportKind> {
    vec![TransportKind::Local, TransportKind::ShmThreads]
}

/// Returns the transports on which locks are tested.
pub fn kinds() -> Vec<TransportKind> {
    transports([5])
}

/// Runs a test on worlds of these sizes, and passes it the number of its repetitions. If each
/// repetition is a message, the test runs with four ranks only, and repeats less often.
fn on_each(sizes: &[usize], test: impl Fn(&World, u64) -> Result<()> + Sync) {
    for kind in kinds() {
        let reaches = matches!(kind, TransportKind::Local | TransportKind::ShmThreads);
        for &size in if reaches { sizes } else { &[4] } {
            let times = if reaches { TIMES } else { 200 };
            let run = ranks(size).transport(kind.clone()).run(|world| test(world, times));
            run.unwrap_or_else(|error| panic!("{kind:?}, {size}: {error}"));
        }
    }
}

const TIMES: u64 = 25_000;

/// 2^54. The next larger float is 4 away, so this float and all larger ones do not change if 1 is
/// added.
const LARGE: f64 = (1_u64 << 54) as f64;

/// An integer and a float. Each rank adds 1 to both, many times. Rank 0 also adds [`LARGE`] to the
/// float, once.
///
/// All possible orders of the additions to the float are considered. Additions of 1 before LARGE
/// are counted exactly. Then LARGE is added to their number, and the sum is rounded once. Additions
/// of 1 after LARGE change nothing. So the float is the result of some order if and only if it
/// follows from a possible number of additions before LARGE. The least possible number is the
/// number of additions that rank 0 makes before LARGE. The largest is the number of all additions
/// except those that rank 0 makes after LARGE.
#[test]
fn accumulates_under_shared_locks_are_all_there_in_some_order() {
    on_each(&[4, 8], |world, times| {
        let (u, v) = (world.lock_window::<i64>(1)?, world.lock_window::<f64>(1)?);
        for i in 0..times {
            let (a, b) = (u.lock(0, LockType::Shared)?, v.lock(0, LockType::Shared)?);
            a.accumulate([1], Op::Sum, 0)?;
            b.accumulate([if (world.rank(), i) == (0, times / 2) { LARGE } else { 1.0 }], Op::Sum, 0)?;
            if i % 64 == 0 {
                a.flush()?;
            }
            a.unlock()?;
            b.unlock()?;
        }
        let (u, v) = (u.into_window()?, v.into_window()?);
        if world.rank() == 0 {
            let all = times * world.size() as u64;
            assert_eq!(u[0], all as i64);
            let before = times / 2..=all - 1 - (times - 1 - times / 2);
            let explained = before.clone().any(|ones| ones as f64 + LARGE == v[0]);
            assert!(explained, "{} has no {before:?} ones before {LARGE}", v[0]);
        }
        Ok(())
    });
}

/// The sum grows with each step, so the value that each step has found determines the order. Each
/// step is checked to the last bit, and so is the sum. With these values, every order rounds
/// differently.
#[test]
fn sums_of_floats_have_the_bits_of_the_order_that_was_found() {
    on_each(&[4, 8], |world, times| {
        let v = world.lock_window::<f64>(1)?;
        let operand = |rank: usize, i: u64| 0.1 + 0.7 * rank as f64 + (i % 97) as f64 / 3.0;
        let mut mine = Vec::new();
        for i in 0..times {
            let lock = v.lock(0, LockType::Shared)?;
            let operand = operand(world.rank(), i);
            let found = lock.fetch_and(Op::Sum, operand, 0)?;
            lock.unlock()?;
            mine.push([found.take()?[0], operand]);
        }
        let v = v.into_window()?;
        if let Some(lists) = world.gather(0, &mine)? {
            let mut steps: Vec<[f64; 2]> = lists.into_iter().flatten().collect();
            assert_eq!(steps.len() as u64, times * world.size() as u64);
            steps.sort_by(|a, b| a[0].total_cmp(&b[0]));
            let mut sum = 0.0_f64;
            for [found, operand] in steps {
                assert_eq!(found.to_bits(), sum.to_bits(), "{found} was found after {sum}");
                sum += operand;
            }
            assert_eq!(v[0].to_bits(), sum.to_bits());
        }
        Ok(())
    });
}

#[test]
fn each_number_is_fetched_once() {
    on_each(&[4, 8], |world, times| {
        let u = world.lock_window::<u32>(1)?;
        let target = world.size() - 1;
        let all = u.lock_all()?;
        let mut mine = Vec::new();
        for _ in 0..times / 10 {
            let on = all.on(target)?;
            let number = on.fetch_and(Op::Sum, 1, 0)?;
            on.flush_local()?;
            mine.push(number.take()?[0]);
        }
        all.unlock()?;
        assert!(mine.is_sorted_by(|a, b| a < b), "a rank's own numbers ascend");
        let lists = world.gather(0, &mine)?;
        if let Some(lists) = lists {
            let mut numbers: Vec<u32> = lists.into_iter().flatten().collect();
            numbers.sort_unstable();
            assert!(numbers.iter().copied().eq(0..numbers.len() as u32), "each once");
            assert_eq!(numbers.len() as u64, times / 10 * world.size() as u64);
        }
        u.into_window()?;
        Ok(())
    });
}

#[test]
fn a_list_that_is_made_by_compare_and_swap_loses_nothing() {
    on_each(&[4, 8], |world, times| {
        let each = times as usize / 25;
        // Element 0 of rank 0 is the head of the list. Each rank has its nodes in its part. A node
        // contains the number of the next node plus one.
        let u = world.lock_window::<u64>(1 + each)?;
        let me = world.rank();
        for i in 1..=each {
            let node = (me * (1 + each) + i) as u64;
            let mut head = 0;
            loop {
                u.local_mut(|part| {
                    part[i] = head;
                    Ok(())
                })?;
                let lock = u.lock(0, LockType::Shared)?;
                let found = lock.compare_and_swap(head, node, 0)?;
                lock.unlock()?;
                match found.take()?[0] {
                    found if found == head => break,
                    found => head = found,
                }
            }
        }
        let u = u.into_window()?;
        let all = world.gather(0, &u[..])?;
        if let Some(all) = all {
            let mut seen = vec![false; world.size() * (1 + each)];
            let mut at = all[0][0] as usize;
            while at != 0 {
                assert!(!std::mem::replace(&mut seen[at], true), "a circle");
                at = all[at / (1 + each)][at % (1 + each)] as usize;
            }
            assert_eq!(seen.iter().filter(|seen| **seen).count(), world.size() * each);
        }
        Ok(())
    });
}

/// An element that is not accessed atomically.
type Wide = [u64; 3];

#[test]
fn nobody_sees_half_an_exclusive_epoch() {
    const LEN: usize = 3000; // more than one region
    on_each(&[4, 8], |world, times| {
        let (u, v) = (world.lock_window::<u64>(LEN)?, world.lock_window::<Wide>(LEN)?);
        let me = world.rank() as u64;
        let places = [0, LEN / 2, LEN - 1];
        for i in 0..times / 50 {
            let (kind, writes) = (LockType::Exclusive, (i + me).is_multiple_of(2));
            let (a, b) = (u.lock(1, kind)?, v.lock(1, kind)?);
            if writes {
                for at in places {
                    a.put([i << 8 | me], at)?;
                    b.put([[i << 8 | me; 3]], at)?;
                }
                a.unlock()?;
                b.unlock()?;
                continue;
            }
            let seen = places.map(|at| (a.get(at), b.get(at)));
            if i % 3 == 0 {
                a.flush()?;
            }
            a.unlock()?;
            b.unlock()?;
            let (mut as_, mut bs) = (Vec::new(), Vec::new());
            for (a, b) in seen {
                as_.extend(a?.take()?);
                bs.extend(b?.take()?);
            }
            assert!(as_.iter().all(|value| *value == as_[0]), "{as_:?}");
            assert!(bs.iter().flatten().all(|value| *value == bs[0][0]), "{bs:?}");
        }
        drop((u.into_window()?, v.into_window()?));
        Ok(())
    });
}

#[test]
fn wide_elements_are_accessed_as_a_whole_under_shared_locks() {
    on_each(&[4], |world, times| {
        let (u, v) = (world.lock_window::<Wide>(4)?, world.lock_window::<ValueAt<f64, u64>>(1)?);
        let me = world.rank() as u64;
        for i in 0..times / 20 {
            let lock = u.lock(0, LockType::Shared)?;
            lock.put([[i << 8 | me; 3]], 1)?;
            let seen = lock.get(1)?;
            let swapped = lock.compare_and_swap([i; 3], [i + 1; 3], (me % 2) as usize * 2)?;
            lock.unlock()?;
            let [a, b, c] = seen.take()?[0];
            assert!(a == b && b == c, "{a} {b} {c}");
            let [a, b, c] = swapped.take()?[0];
            assert!(a == b && b == c, "{a} {b} {c}");
            let lock = v.lock(0, LockType::Shared)?;
            lock.accumulate([ValueAt { value: (i ^ (me * 37)) as f64, index: i }], Op::MaxLoc, 0)?;
            lock.unlock()?;
            if me == 0 {
                let [a, b, c] = u.local(|part| part.get(1))?;
                assert!(a == b && b == c, "{a} {b} {c}");
            }
        }
        let (_, v) = (u.into_window()?, v.into_window()?);
        let most = (0..4)
            .flat_map(|me| (0..times / 20).map(move |i| (i ^ (me * 37), i)))
            .max_by_key(|&(value, i)| (value, u64::MAX - i));
        if me == 0 {
            let (value, index) = most.unwrap();
            assert_eq!(v[0], ValueAt { value: value as f64, index });
        }
        Ok(())
    });
}

#[test]
fn a_rank_that_computes_and_calls_nothing_holds_nobody_up() {
    for kind in kinds() {
        let done = AtomicU64::new(0);
        let computing = AtomicU64::new(0);
        let run = ranks(4).transport(kind.clone()).run(|world| {
            let u = world.lock_window::<u64>(2000)?;
            if world.rank() == 2 {
                computing.store(1, Ordering::Release);
                while done.load(Ordering::Acquire) < 3 {
                    std::hint::spin_loop();
                }
            } else {
                while computing.load(Ordering::Acquire) == 0 {
                    std::thread::yield_now();
                }
                for i in 0..50 {
                    let kind = if i % 2 == 0 { LockType::Shared } else { LockType::Exclusive };
                    let lock = u.lock(2, kind)?;
                    lock.accumulate([1], Op::Sum, 7)?;
                    lock.flush()?;
                    lock.accumulate([1], Op::Sum, 1700)?;
                    lock.unlock()?;
                }
                done.fetch_add(1, Ordering::Release);
            }
            let u = u.into_window()?;
            if world.rank() == 2 {
                assert_eq!((u[7], u[1700]), (150, 150));
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}
