//! Good schedules, which other tests damage.

use crate::support::{intern, naive, operation, patterns, random};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op, Scalar};
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::pattern::{Kind, Local, Order, Patterns};
use fencepost_planner::ir::schedule::Schedule;
use fencepost_tests_support::random::Random;

/// Returns good schedules, with their patterns.
pub fn good() -> Vec<(Patterns, Schedule)> {
    let mut all = Vec::new();
    for (height, width) in [
        (vec![3], vec![2, 3]),
        (vec![2, 2], vec![2, 2]),
        (vec![1, 2, 1], vec![3, 2]),
        (vec![2; 3], vec![2; 3]),
    ] {
        for (corners, wrap) in [(false, false), (true, false), (true, true)] {
            let patterns = intern(random::halo(&height, &width, corners, wrap));
            all.extend([false, true].map(|direct| (patterns.clone(), naive::lower(&patterns, direct))));
        }
    }
    for seed in 0..160 {
        let patterns = random::epoch(seed);
        all.extend([false, true].map(|direct| (patterns.clone(), naive::lower(&patterns, direct))));
    }
    all.extend((1..12).flat_map(|count| [0, 2].map(|owner| watched(count, owner))).map(|patterns| {
        let schedule = naive::lower(&patterns, true);
        (patterns, schedule)
    }));
    all.extend((0..60).map(summed).map(|patterns| {
        let schedule = naive::lower(&patterns, true);
        (patterns, schedule)
    }));
    for (index, patterns) in
        all.iter().map(|(patterns, _)| patterns.clone()).collect::<Vec<_>>().into_iter().enumerate()
    {
        let (placement, options) = random::choices(index as u64);
        let schedule = random::compiled(&patterns, placement, &options, index as u64);
        all.push((patterns, schedule));
    }
    all
}

/// Returns patterns in which rank 1 gets elements of `owner`, and the third rank puts to the same
/// elements.
fn watched(count: usize, owner: i64) -> Patterns {
    let elements = || Datatype::run(0..count);
    let get = operation(Kind::Get, owner - 1, elements(), Local::Buffer);
    let put = operation(Kind::Put, owner - (2 - owner), elements(), Local::Buffer);
    let (first, last) = if owner == 0 { (vec![], vec![put]) } else { (vec![put], vec![]) };
    patterns(&[ElementType::scalar(Scalar::F64)], Order::Canonical, vec![first, vec![get], last])
}

/// Returns patterns in which two ranks accumulate into overlapping elements of a third rank, each
/// more than once.
fn summed(seed: u64) -> Patterns {
    let mut dice = Random::new(seed);
    let op = dice.one_of(&[Op::Sum, Op::Max, Op::Bxor, Op::Land]);
    let mut several = |target: i64| {
        let one = |dice: &mut Random| {
            let (from, to) = (dice.below(20), dice.below(12));
            let section = Local::Section { window: WindowId(0), datatype: Datatype::run(from..from + 12) };
            operation(Kind::Accumulate(op), target, Datatype::run(to..to + 12), section)
        };
        (0..2 + seed as usize % 3).map(|_| one(&mut dice)).collect::<Vec<_>>()
    };
    let all = vec![several(2), several(1), vec![]];
    patterns(&[ElementType::scalar(Scalar::I32)], Order::Canonical, all)
}
