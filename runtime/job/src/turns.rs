//! [`Turns`]: the turns of a loop that waits in `poll`, and whether this process was stopped meanwhile.
//!
//! A batch system may suspend all processes of a job, and so may its machine. That time counts for no
//! limit, since ranks that do not run cannot send heartbeats. A process is not notified that it was
//! stopped. But this loop never waits long, so a turn that takes much longer shows it.

use crate::description::Limits;
use rustix::event::Timespec;
use std::time::{Duration, Instant};

pub(crate) struct Turns {
    /// The longest time that a turn waits.
    longest: Duration,
    /// A turn that takes this much longer was not running for a part of it.
    lapse: Duration,
    /// When the last turn began.
    began: Instant,
}

impl Turns {
    /// Begins a turn, of a process that sends or receives heartbeats.
    pub(crate) fn new(limits: Limits) -> Self {
        const SECOND: Duration = Duration::from_secs(1);
        let silence = if limits.silence.is_zero() { 2 * SECOND } else { limits.silence };
        let (longest, lapse) = (limits.heartbeat.min(SECOND), (silence / 2).min(SECOND));
        Self { longest, lapse, began: Instant::now() }
    }

    /// Returns the timeout of the `poll` of this turn, if nothing is to be done before `deadline`.
    pub(crate) fn timeout(&self, deadline: Option<Instant>) -> Option<Timespec> {
        let end = Instant::now() + self.longest;
        timeout_until(Some(deadline.map_or(end, |deadline| deadline.min(end))))
    }

    /// Begins the next turn. Returns the time of the last one if this process was not running for a part of it: that
    /// time does not count.
    pub(crate) fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let took = now - std::mem::replace(&mut self.began, now);
        (took > self.longest + self.lapse).then_some(took)
    }
}

/// The timeout of `poll` that ends at `deadline`; `None` is no timeout.
pub(crate) fn timeout_until(deadline: Option<Instant>) -> Option<Timespec> {
    let left = deadline?.saturating_duration_since(Instant::now());
    let left = left.min(Duration::from_secs(1 << 30));
    Some(Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) })
}
