//! [`is_same`] compares two schedules, but not the lines at which operations are called.
//! [`without_lines`] removes these lines from a schedule.

use fencepost_planner::ids::{ClassId, Id};
use fencepost_planner::ir::pattern::Site;
use fencepost_planner::ir::schedule::{Program, Schedule};
use std::collections::{HashMap, HashSet};

/// Returns whether every rank does the same in both schedules. Source lines are not compared. The
/// classes into which ranks are grouped depend on lines, so they are not compared either.
pub(crate) fn is_same(old: &Schedule, new: &Schedule) -> bool {
    let head =
        |schedule: &Schedule| (schedule.windows.clone(), schedule.order, schedule.sync, schedule.placement);
    old.class_of.len() == new.class_of.len()
        && head(old) == head(new)
        && pairs(old, new)
            .into_iter()
            .all(|(_, (before, now))| without_sites(&old.classes[before]) == without_sites(&new.classes[now]))
}

/// Returns the old and the new class of each rank. Each pair is returned once, with its first rank.
pub(crate) fn pairs(old: &Schedule, new: &Schedule) -> Vec<(usize, (ClassId, ClassId))> {
    let mut met = HashSet::new();
    let both = old.class_of.iter().copied().zip(new.class_of.iter().copied()).enumerate();
    both.filter(|(_, pair)| met.insert(*pair)).collect()
}

fn without_sites(program: &Program) -> Program {
    let mut program = program.clone();
    program.pattern.operations.values_mut().for_each(|operation| operation.site = Site::default());
    program
}

/// Returns the schedule without the lines of its calls. Ranks that then do the same form one class,
/// and classes are numbered in the order of their first ranks. So the result does not depend on
/// lines at all.
pub(crate) fn without_lines(schedule: &Schedule) -> Schedule {
    let mut classes: Vec<Program> = Vec::new();
    let mut renumbered = HashMap::new();
    let class_of = schedule.class_of.iter().map(|class| {
        *renumbered.entry(*class).or_insert_with(|| {
            let program = without_sites(&schedule.classes[*class]);
            let known = classes.iter().position(|known| *known == program);
            ClassId::new(known.unwrap_or_else(|| {
                classes.push(program);
                classes.len() - 1
            }))
        })
    });
    let class_of = class_of.collect();
    Schedule { classes: classes.into_iter().collect(), class_of, ..schedule.clone() }
}
