//! Shares of schedules. Each rank verifies its own share. Together these verdicts show what the
//! verdict on the whole schedule shows.

use super::damages::DAMAGES;
use super::good::good;
use fencepost_planner::ErrorClass;
use fencepost_planner::ids::{Id, Rank};
use fencepost_planner::ir::schedule::Schedule;
use fencepost_planner::kept::Kept;
use fencepost_planner::share::{Share, Shares};
use fencepost_planner::verify::{VerifyError, verify, verify_kept, verify_share};
use fencepost_tests_support::random::Random;
use std::sync::Arc;

/// Returns the verdict on the share of each rank. Each share is first written as bytes and read
/// again.
fn verdicts(schedule: &Schedule) -> Vec<Result<(), VerifyError>> {
    let shares = Shares::of(schedule);
    let ranks = (0..schedule.class_of.len()).map(Rank::new);
    let verdict = |rank| {
        let bytes = shares.bytes(rank).expect("few ranks");
        let share = Share::from_bytes(&bytes, rank).expect("what was just written");
        assert_eq!((share.digest(), share.is_whole()), (schedule.digest(), false));
        assert_eq!(*share.program(), schedule.classes[schedule.class_of[rank.index()]]);
        verify_share(share).map(drop)
    };
    ranks.map(verdict).collect()
}

#[test]
fn shares_of_good_schedules_are_accepted() {
    for (index, (_, schedule)) in good().iter().enumerate() {
        for (rank, verdict) in verdicts(schedule).into_iter().enumerate() {
            assert_eq!(verdict, Ok(()), "schedule {index}, rank {rank}");
        }
    }
}

#[test]
fn what_is_refused_whole_is_refused_by_some_share_but_for_cycles_of_waits() {
    let mut dice = Random::new(17);
    let (mut refused, mut cycles) = (0, 0);
    for (index, (patterns, schedule)) in good().iter().enumerate() {
        for damage in DAMAGES {
            let class = Id::new(dice.below(schedule.classes.len()));
            let mut damaged = schedule.clone();
            let instructions = damaged.classes[class].instructions.len();
            if instructions == 0
                || (damage.apply)(&mut damaged.classes[class], dice.below(instructions)).is_none()
            {
                continue;
            }
            let whole = verify(patterns, damaged.clone()).map(drop);
            let shares = verdicts(&damaged).into_iter().collect::<Result<(), _>>();
            match (&whole, &shares) {
                (Err(VerifyError::WaitCycle(_)), Ok(())) => cycles += 1,
                // The rank compares its calls with the calls of its share.
                (Err(VerifyError::Foreign(_)), _) => continue,
                (whole, shares) => assert_eq!(
                    whole.is_ok(),
                    shares.is_ok(),
                    "schedule {index}, {}: {whole:?} whole, {shares:?} by shares",
                    damage.name
                ),
            }
            refused += usize::from(whole.is_err());
        }
    }
    assert!(refused > 2000 && cycles * 20 < refused, "{refused} refused, {cycles} cycles seen whole only");
}

#[test]
fn a_rank_keeps_the_same_by_its_share_and_by_the_whole() {
    for (patterns, schedule) in good().into_iter().step_by(5) {
        let whole = Arc::new(verify(&patterns, schedule).expect("good"));
        let shares = Shares::of(&whole);
        for rank in (0..whole.class_of.len()).map(Rank::new) {
            let share = Share::from_bytes(&shares.bytes(rank).expect("few ranks"), rank).expect("a share");
            let share = verify_share(share).expect("good");
            let all = whole.clone().share(rank);
            for window in whole.windows.ids() {
                assert_eq!(share.names_window(window), all.names_window(window));
            }
            let [mut by_share, mut by_whole] = [Kept::of(&share, rank), Kept::of(&all, rank)];
            for kept in [&mut by_share, &mut by_whole] {
                kept.accesses
                    .sort_by_key(|access| (access.origin, access.site.clone(), format!("{access:?}")));
            }
            assert_eq!(by_share, by_whole);
            assert_eq!(verify_kept(&share, by_share).map(drop), Ok(()));
        }
    }
}

#[test]
fn bytes_that_are_no_share_are_refused() {
    let (_, schedule) = good().swap_remove(0);
    let bytes = Shares::of(&schedule).bytes(Rank(0)).expect("few ranks");
    let outside = Rank::new(schedule.class_of.len());
    let class = |bytes: &[u8], rank| Share::from_bytes(bytes, rank).map(drop).map_err(|error| error.class());
    assert_eq!(class(&bytes, Rank(0)), Ok(()));
    assert_eq!(class(&bytes, outside), Err(ErrorClass::File));
    for len in 0..bytes.len() {
        assert_eq!(class(&bytes[..len], Rank(0)), Err(ErrorClass::File), "{len} bytes");
    }
    for at in 40..bytes.len() {
        let mut other = bytes.clone();
        other[at] ^= 4;
        assert_eq!(class(&other, Rank(0)), Err(ErrorClass::File), "byte {at}");
    }
}
