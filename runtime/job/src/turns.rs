//! [`Turns`]: the turns of a loop that waits in `poll`, and whether this process was stopped
//! meanwhile.
//!
//! A batch system may suspend all processes of a job, and a machine may be suspended as a whole.
//! Such a time does not count for any limit, since ranks that do not run cannot send heartbeats. A
//! process is not notified that it was stopped. But this loop never waits long, so a turn that
//! takes much longer shows that the process was stopped.

use crate::description::Limits;
use rustix::event::Timespec;
use std::time::{Duration, Instant};

pub(crate) struct Turns {
    /// The longest time that a turn waits.
    longest: Duration,
    /// If a turn exceeds `longest` by more than this time, this process counts as stopped for a
    /// part of the turn.
    lapse: Duration,
    /// The time at which the last turn began.
    began: Instant,
}

impl Turns {
    /// Begins the first turn of a process that sends or receives heartbeats.
    pub(crate) fn new(limits: Limits) -> Self {
        const SECOND: Duration = Duration::from_secs(1);
        let silence = if limits.silence.is_zero() { 2 * SECOND } else { limits.silence };
        let (longest, lapse) = (limits.heartbeat.min(SECOND), (silence / 2).min(SECOND));
        Self { longest, lapse, began: Instant::now() }
    }

    /// Returns the timeout for the `poll` of this turn, if there is nothing to do before
    /// `deadline`.
    pub(crate) fn timeout(&self, deadline: Option<Instant>) -> Option<Timespec> {
        let end = Instant::now() + self.longest;
        timeout_until(Some(deadline.map_or(end, |deadline| deadline.min(end))))
    }

    /// Begins the next turn. If this process was stopped for a part of the last turn, returns the
    /// length of that turn, which does not count.
    pub(crate) fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let took = now - std::mem::replace(&mut self.began, now);
        (took > self.longest + self.lapse).then_some(took)
    }
}

/// Returns the timeout for a `poll` that ends at `deadline`. Without a deadline there is no
/// timeout.
pub(crate) fn timeout_until(deadline: Option<Instant>) -> Option<Timespec> {
    let left = deadline?.saturating_duration_since(Instant::now());
    let left = left.min(Duration::from_secs(1 << 30));
    Some(Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) })
}
