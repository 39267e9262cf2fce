//! The examples of locks in the texts on which Fencepost is based. A window has one copy. MPI's
//! rules about private and public copies therefore only say which operations are over before others
//! begin. Element 0 is X, and element 1 is Y.

use super::*;

/// Stores into a rank's own part, by `local_mut`.
fn store(rank: &mut Program, own: usize, at: usize, value: i32) {
    let lock = rank.lock(own, Exclusive);
    rank.put(lock, at, &[value]);
    rank.unlock(lock);
}

fn meet(ranks: &mut [Program]) {
    for rank in ranks {
        rank.meet();
    }
}

/// B stores X within an exclusive epoch. After a barrier A gets X.
#[test]
fn mpi_2_2_example_11_11_a_store_under_a_lock_is_seen_after_the_barrier() {
    for (seen, ok) in [(7, true), (0, false)] {
        let mut ranks = programs::<2>();
        store(&mut ranks[1], 1, 0, 7);
        meet(&mut ranks);
        let lock = ranks[0].lock(1, Exclusive);
        let get = ranks[0].get(lock, 0, &[seen]);
        ranks[0].unlock(lock);
        let verdict = verdict(&world(&[&[], &[0]]), &ranks, &world(&[&[], &[7]]));
        assert_eq!(verdict, if ok { None } else { found(0, get) });
    }
}

/// A puts X, and after a barrier B loads it. In Fencepost, B may load in any epoch of its own,
/// since a `LockWindow` is not a slice.
#[test]
fn mpi_2_2_example_11_12_a_put_is_seen_by_its_owner_after_the_barrier() {
    for (seen, kind) in [(7, Exclusive), (7, Shared), (0, Shared)] {
        let mut ranks = programs::<2>();
        let lock = ranks[0].lock(1, Exclusive);
        ranks[0].put(lock, 0, &[7]);
        ranks[0].unlock(lock);
        meet(&mut ranks);
        let lock = ranks[1].lock(1, kind);
        let load = ranks[1].get(lock, 0, &[seen]);
        ranks[1].unlock(lock);
        let verdict = verdict(&world(&[&[], &[0]]), &ranks, &world(&[&[], &[7]]));
        assert_eq!(verdict, if seen == 7 { None } else { found(1, load) });
    }
}

/// B stores X before its shared epoch. In MPI, A may miss this value. In Fencepost, the store is an
/// epoch too, which is over at the barrier. A put by B within the shared epoch may be missed,
/// unless the put is flushed.
#[test]
fn mpi_2_2_example_11_13_a_store_before_a_shared_lock_is_seen_and_a_put_within_it_may_not_be() {
    for (within, flushed, seen, ok) in [
        (false, false, 7, true),
        (false, false, 0, false),
        (true, false, 7, true),
        (true, false, 0, true),
        (true, true, 7, true),
        (true, true, 0, false),
    ] {
        let mut ranks = programs::<2>();
        if !within {
            store(&mut ranks[1], 1, 0, 7);
        }
        let held = ranks[1].lock(1, Shared);
        if within {
            ranks[1].put(held, 0, &[7]);
        }
        if flushed {
            ranks[1].flush(held);
        }
        meet(&mut ranks);
        let lock = ranks[0].lock(1, Shared);
        let get = ranks[0].get(lock, 0, &[seen]);
        ranks[0].unlock(lock);
        ranks[1].unlock(held);
        let verdict = verdict(&world(&[&[], &[0]]), &ranks, &world(&[&[], &[7]]));
        assert_eq!(verdict, if ok { None } else { found(0, get) }, "{within} {flushed} {seen}");
    }
}

/// The exposure of 11.14 (`exchange::puzzles`) has left values in X and Y, and all ranks have
/// changed over to locks. Then B sees both values.
#[test]
fn mpi_2_2_example_11_14_what_the_wait_left_is_what_locks_begin_with() {
    for (seen, ok) in [([7, 8], true), ([0, 8], false), ([7, 0], false)] {
        let mut ranks = programs::<2>();
        meet(&mut ranks);
        let lock = ranks[1].lock(0, Exclusive);
        let x = ranks[1].get(lock, 0, &seen[..1]);
        let y = ranks[1].get(lock, 1, &seen[1..]);
        ranks[1].unlock(lock);
        let before = world(&[&[7, 8], &[]]);
        let expected = if ok { None } else { found(1, if seen[0] == 7 { y } else { x }) };
        assert_eq!(verdict(&before, &ranks, &before), expected);
    }
}

/// A puts X under a lock. B then changes over from locks, and posts the window. `exchange::puzzles`
/// has the rest of the example. B can find only 7.
#[test]
fn mpi_2_2_example_11_15_what_a_lock_put_is_there_when_the_window_changes_over() {
    for (left, ok) in [(7, true), (0, false)] {
        let mut ranks = programs::<2>();
        let lock = ranks[0].lock(1, Exclusive);
        ranks[0].put(lock, 0, &[7]);
        ranks[0].unlock(lock);
        meet(&mut ranks);
        let verdict = verdict(&world(&[&[], &[0]]), &ranks, &world(&[&[], &[left]]));
        assert_eq!(verdict, if ok { None } else { element(1, 0) });
    }
}

/// The notes, "passive target accumulate, exclusive lock". A get of A and an accumulate to B are
/// one step, although other ranks do the same.
#[test]
fn the_notes_get_and_accumulate_under_exclusive_locks_are_one_step() {
    let both = |seen: [i32; 2], kind: LockType| {
        let mut ranks = programs::<3>();
        for (rank, seen) in ranks[..2].iter_mut().zip(seen) {
            // Each rank adds 1 to the value that it found in A, and adds 1 to the count in B.
            let lock = rank.lock(2, kind);
            rank.get(lock, 0, &[seen]);
            rank.put(lock, 0, &[seen + 1]);
            rank.add(lock, 1, &[1]);
            rank.unlock(lock);
        }
        let last = seen[0].max(seen[1]) + 1;
        verdict(&world(&[&[], &[], &[0, 0]]), &ranks, &world(&[&[], &[], &[last, 2]]))
    };
    assert_eq!((both([0, 1], Exclusive), both([1, 0], Exclusive)), (None, None));
    assert_eq!(both([0, 0], Exclusive), found(1, 1), "an update is lost");
    assert_eq!(both([0, 0], Shared), None, "which shared locks allow");
}

/// The notes, "passive target accumulate, shared lock". Many ranks accumulate to one element again
/// and again, and no operation is lost.
#[test]
fn the_notes_accumulates_under_shared_locks_are_atomic_by_element() {
    let sum = |left: [i32; 2]| {
        let mut ranks = programs::<4>();
        for (number, rank) in ranks.iter_mut().enumerate() {
            let lock = rank.lock(0, Shared);
            for _ in 0..3 {
                rank.add(lock, 0, &[1, 10 * number as i32]);
            }
            rank.unlock(lock);
        }
        verdict(&world(&[&[0, 0], &[], &[], &[]]), &ranks, &world(&[&left, &[], &[], &[]]))
    };
    assert_eq!(sum([12, 180]), None);
    assert_eq!((sum([11, 180]), sum([12, 170])), (element(0, 0), element(0, 1)));
}
