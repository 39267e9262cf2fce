//! [`ScheduleCache`]: schedules of collectives. One rank of a process makes them for all ranks of
//! the process.
//!
//! All ranks reach a collective at about the same time and need the same schedules. The first rank
//! makes these schedules, and the others wait for them instead of making their own. A schedule is
//! in the cache as long as some rank keeps it.

use fencepost_planner::collective::{Algorithm, Collective, Slots};
use fencepost_planner::ir::schedule::{Placement, Schedule};
use fencepost_planner::{Machine, Options, Result, Verified};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The values that determine the schedules.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Key {
    pub(crate) what: Collective,
    pub(crate) algorithm: Algorithm,
    pub(crate) placement: Placement,
    pub(crate) machine: Machine,
    pub(crate) options: Options,
}

/// A step of a collective's plan, with its schedule.
pub(crate) enum Made {
    Epoch(Arc<Verified<Schedule>>),
    Combine(Slots),
}

/// The number of elements that the window needs, and the steps.
pub(crate) type Schedules = (usize, Vec<Made>);

/// The cache of schedules; see the [module](self).
#[derive(Default)]
pub(crate) struct ScheduleCache(Mutex<Vec<(Key, Weak<Schedules>)>>);

impl ScheduleCache {
    /// Returns the schedules of `key`. If the cache has none, calls `make`.
    pub(crate) fn get(&self, key: Key, make: impl FnOnce() -> Result<Schedules>) -> Result<Arc<Schedules>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = all.iter().find(|(known, _)| *known == key).and_then(|(_, made)| made.upgrade()) {
            return Ok(made);
        }
        let made = Arc::new(make()?);
        all.retain(|(_, made)| made.strong_count() > 0);
        all.push((key, Arc::downgrade(&made)));
        Ok(made)
    }
}
