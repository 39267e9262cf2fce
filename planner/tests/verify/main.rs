//! The verifier: it accepts good schedules, and what it accepts is good.

mod damage;
#[path = "../support/mod.rs"]
mod support;
mod waits;

use fencepost_planner::compile::compile;
use fencepost_planner::machine::Machine;
use fencepost_planner::verify::{VerifyError, verify, verify_expanded};
use support::{interpreter, naive, random};

#[test]
fn plain_schedules_of_random_epochs_are_accepted_and_leave_what_the_reference_leaves() {
    for seed in 0..600 {
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
            let patterns = support::intern(random::halo(&height, &width, corners, wrap));
            let schedule = naive::lower(&patterns, true);
            assert_eq!(verify_expanded(&patterns, &schedule), Ok::<(), VerifyError>(()));
            verify(&patterns, schedule).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

#[test]
fn schedules_of_the_passes_are_accepted_and_leave_what_the_reference_leaves() {
    for seed in 0..1500 {
        let patterns = random::epoch(seed);
        let (placement, options) = random::choices(seed);
        let schedule = compile(&patterns, placement, &Machine::default(), &options)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"))
            .into_inner();
        verify(&patterns, schedule.clone())
            .unwrap_or_else(|error| panic!("seed {seed}, {placement:?}, {options:?}: {error}"));
        assert_eq!(verify_expanded(&patterns, &schedule), Ok::<(), VerifyError>(()), "seed {seed}");
        let windows: Vec<_> = patterns.windows.values().copied().collect();
        let world = random::world(&windows, patterns.class_of.len(), random::LEN, seed);
        interpreter::differs(&patterns, &schedule, &world, 3, seed)
            .unwrap_or_else(|error| panic!("seed {seed}, {placement:?}, {options:?}: {error}"));
    }
}
