//! The verifier accepts good schedules, and every schedule that it accepts is good.

mod bounds;
mod corpus;
mod damage;
mod damages;
mod good;
mod kept;
mod shares;
mod waits;

use crate::support::{intern, interpreter, naive, random};
use fencepost_planner::ids::Id;
use fencepost_planner::verify::{VerifyError, verify, verify_expanded};
use fencepost_tests_support::random::Random;

#[test]
fn plain_schedules_of_random_epochs_are_accepted_and_leave_what_the_reference_leaves() {
    for seed in 0..400 {
        let patterns = random::epoch(seed);
        for direct in [false, true] {
            let schedule = naive::lower(&patterns, direct);
            verify(&patterns, schedule.clone())
                .unwrap_or_else(|error| panic!("seed {seed}, direct {direct}: {error}"));
            let windows: Vec<_> = patterns.windows.values().copied().collect();
            let world = random::world(&windows, patterns.class_of.len(), random::LEN, seed);
            interpreter::differs(&patterns, &schedule, &world, 3, seed)
                .unwrap_or_else(|error| panic!("seed {seed}, direct {direct}: {error}"));
        }
    }
}

#[test]
fn an_accepted_schedule_by_class_is_accepted_expanded() {
    for (height, width) in [(vec![3, 3, 3], vec![4, 4, 4]), (vec![2, 3, 2, 2], vec![5, 5, 4])] {
        for (corners, wrap) in [(false, false), (true, false), (true, true)] {
            let patterns = intern(random::halo(&height, &width, corners, wrap));
            let schedule = naive::lower(&patterns, true);
            assert_eq!(verify_expanded(&patterns, &schedule), Ok::<(), VerifyError>(()));
            verify(&patterns, schedule).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

#[test]
fn schedules_of_the_passes_are_accepted_and_leave_what_the_reference_leaves() {
    for seed in 0..1000 {
        let patterns = random::epoch(seed);
        let (placement, options) = random::choices(seed);
        let schedule = random::compiled(&patterns, placement, &options, seed);
        verify(&patterns, schedule.clone())
            .unwrap_or_else(|error| panic!("seed {seed}, {placement:?}, {options:?}: {error}"));
        assert_eq!(verify_expanded(&patterns, &schedule), Ok::<(), VerifyError>(()), "seed {seed}");
        let windows: Vec<_> = patterns.windows.values().copied().collect();
        let world = random::world(&windows, patterns.class_of.len(), random::LEN, seed);
        interpreter::differs(&patterns, &schedule, &world, 3, seed)
            .unwrap_or_else(|error| panic!("seed {seed}, {placement:?}, {options:?}: {error}"));
    }
}

/// Good schedules of even and uneven blocks, wrapped around or not, on up to 64 ranks, and
/// schedules in which two instructions of a class are exchanged.
#[test]
fn verdicts_by_class_and_fully_expanded_agree() {
    let mut dice = Random::new(9);
    let grids = [
        (vec![3; 8], vec![4; 8]),
        (vec![3, 3, 2, 2, 2, 2, 2, 2], vec![3, 3, 3, 2, 2, 2, 2, 2]),
        (vec![2; 4], vec![3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]),
        (vec![4], vec![2; 64]),
        (vec![2, 1, 2], vec![2, 2, 1, 1, 2]),
    ];
    let (mut accepted, mut refused) = (0, 0);
    for (height, width) in grids {
        for (corners, wrap) in [(true, true), (true, false), (false, true)] {
            let patterns = intern(random::halo(&height, &width, corners, wrap));
            let (placement, options) = random::choices(dice.bits());
            let good = random::compiled(&patterns, placement, &options, 1);
            for turn in 0..12 {
                let mut schedule = good.clone();
                if turn > 0 {
                    let class = Id::new(dice.below(schedule.classes.len()));
                    let code = &mut schedule.classes[class].instructions;
                    let (one, two) = (dice.below(code.len()), dice.below(code.len()));
                    let near = (one + 1).min(code.len() - 1);
                    code.swap(one, if turn % 2 == 0 { two } else { near });
                }
                let expanded = verify_expanded(&patterns, &schedule);
                let verdict = verify(&patterns, schedule).map(|_| ());
                assert_eq!(verdict.is_ok(), expanded.is_ok(), "{verdict:?} by class, {expanded:?} expanded");
                assert!(turn > 0 || verdict.is_ok(), "{verdict:?}");
                *(if verdict.is_ok() { &mut accepted } else { &mut refused }) += 1;
            }
        }
    }
    assert!(accepted > 20 && refused > 20, "{accepted} accepted, {refused} refused");
}
