//! Checks of windows that were created with hints for locks. Also checks of datatypes that are sent
//! as numbers instead of lists of elements.

use crate::races::over;
use crate::unfenced::{End, everywhere, silent};
use fencepost::Hints;
use fencepost::prelude::*;

/// Returns a datatype of scattered elements. Its list is so long that a number can be sent in its
/// place.
fn irregular() -> Datatype {
    Datatype::elements((0..40).map(|at| 13 * at + at * at % 11).collect::<Vec<i64>>()).unwrap()
}

const LEN: usize = 560;

/// No two ranks have the same target, and each element is accessed by one rank only. So every hint
/// is true.
#[test]
fn a_true_hint_makes_no_conflict() {
    let one = Hints::new();
    for hints in [one.sole_origin(), one.disjoint(), one.regions(1), one.sole_origin().disjoint()] {
        silent(|world| {
            let u = world.lock_window_with::<u64>(LEN, hints)?;
            let target = (world.rank() + 1) % world.size();
            let mut last = 0;
            for kind in [LockType::Shared, LockType::Exclusive, LockType::Shared] {
                let lock = u.lock(target, kind)?;
                last += 1;
                lock.put([last; 40], irregular())?;
                lock.flush()?;
                let found = lock.get(irregular())?;
                lock.unlock()?;
                assert_eq!(found.take()?, [last; 40]);
            }
            over(u, Ok(()))
        });
    }
}

/// Two ranks access one common element, so the hint that their elements are disjoint is untrue.
#[test]
fn an_untrue_hint_of_disjoint_elements_is_told_as_the_conflict_that_it_is() {
    everywhere(
        |world| {
            let u = world.lock_window_with::<u64>(LEN, Hints::new().disjoint())?;
            let mut ended = Ok(());
            if world.rank() % 2 == 0 {
                let lock = u.lock(1, LockType::Shared)?;
                lock.put(vec![1; 2 + world.rank()], 0..2 + world.rank())?;
                ended = lock.unlock();
            }
            over(u, ended)
        },
        |what, ends| {
            for (rank, end) in ends.iter().enumerate() {
                let class = if rank == 3 { ErrorClass::RmaSync } else { ErrorClass::RmaConflict };
                assert!(matches!(end, Err((told, _)) if *told == class), "{what}");
            }
        },
    );
}

/// The refused epoch may be the first one with its datatype. The target must still store which
/// datatype the number refers to.
#[test]
fn a_datatype_of_a_refused_epoch_names_the_right_elements_afterwards() {
    everywhere(
        |world| {
            let u = world.lock_window::<u64>(LEN)?;
            let me = world.rank() as u64;
            let epoch = |value: u64| {
                let lock = u.lock(1, LockType::Shared)?;
                lock.put([value; 40], irregular())?;
                lock.unlock()
            };
            let ended = if me.is_multiple_of(2) { epoch(1) } else { Ok(()) };
            drop(ended);
            let told = world.barrier().expect_err("a conflict is told");
            assert_eq!(told.class(), if me == 3 { ErrorClass::RmaSync } else { ErrorClass::RmaConflict });
            for writer in [0, 2] {
                world.barrier()?;
                if me == writer {
                    epoch(10 + writer)?;
                }
            }
            let u = u.into_window()?;
            let named: Vec<i64> = irregular().element_iter().collect();
            for (at, &element) in u.iter().enumerate() {
                let put = me == 1 && named.contains(&(at as i64));
                assert_eq!(element, if put { 12 } else { 0 }, "element {at}");
            }
            Ok(())
        },
        |what, ends| assert!(ends.iter().all(End::is_ok), "{what}"),
    );
}
