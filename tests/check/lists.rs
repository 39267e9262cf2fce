//! Lists of 20,000 scattered elements, which conflict in one element or in none.

use crate::races::{over, under};
use crate::unfenced::everywhere;
use fencepost::prelude::*;

const COUNT: u64 = 20_000;
const LEN: usize = 2 * COUNT as usize;

/// Returns all even or all odd elements, in irregular order. If the elements are odd and `even` is
/// `Some(n)`, element `2 n` is in the place of element `2 n + 1`.
fn some(is_odd: bool, even: Option<u64>) -> Datatype {
    let element = |at| 2 * at + u64::from(is_odd && Some(at) != even);
    Datatype::elements((0..COUNT).map(|at| element(at * 7919 % COUNT) as i64).collect::<Vec<_>>()).unwrap()
}

/// Ranks 0 and 2 put lists to rank 1. If `even` is `Some(n)`, the lists have only element `2 n` in
/// common.
fn judged(even: Option<u64>, lines: [u32; 2], program: impl Fn(&World) -> Result<()> + Sync) {
    everywhere(program, |what, ends| {
        for (rank, end) in ends.iter().enumerate() {
            let Some(even) = even else {
                assert!(end.is_ok(), "{what}");
                continue;
            };
            let meant = if rank == 3 { ErrorClass::RmaSync } else { ErrorClass::RmaConflict };
            let Err((class, text)) = end else { panic!("a rank saw nothing: {what}") };
            let element = format!("element {} of window", 2 * even);
            let named = lines.iter().all(|line| text.contains(&format!("lists.rs:{line}")));
            // To ranks that are not part of the conflict, a fence only reports the rank of the
            // conflict.
            assert!(*class == meant && (rank == 3 || named && text.contains(&element)), "{what}");
        }
    });
}

#[test]
fn two_lists_in_an_epoch_conflict_in_the_element_that_both_have() {
    for even in [None, Some(12_345)] {
        let before = line!();
        judged(even, [before + 5, before + 6], |world| {
            let mut u = world.window::<u64>(LEN)?;
            u.fence()?;
            match world.rank() {
                0 => u.put(vec![1; COUNT as usize]).to(1, some(false, None))?,
                2 => u.put(vec![1; COUNT as usize]).to(1, some(true, even))?,
                _ => {}
            }
            u.fence()
        });
    }
}

#[test]
fn two_lists_under_shared_locks_conflict_in_the_element_that_both_have() {
    for even in [None, Some(12_345)] {
        let before = line!();
        judged(even, [before + 4, before + 5], |world| {
            let u = world.lock_window::<u64>(LEN)?;
            let ended = match world.rank() {
                0 => under(&u, LockType::Shared, |lock| lock.put(vec![1; COUNT as usize], some(false, None))),
                2 => under(&u, LockType::Shared, |lock| lock.put(vec![1; COUNT as usize], some(true, even))),
                _ => Ok(()),
            };
            over(u, ended)
        });
    }
}
