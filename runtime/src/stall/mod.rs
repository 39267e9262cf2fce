//! [`Stall`]: what is said of a wait that lasts; and what is done about one that can never end.
//!
//! Nothing here is touched before a wait has come to where it may sleep. Then a [`Watch`] looks at the clock each time that
//! the rank wakes, which is once a second at least; after the time that was set it says who waits for whom, and again at
//! intervals that double. Whether ranks wait for one another in a ring is in [`Waits`], with the argument.

mod elsewhere;
#[cfg(test)]
mod rings;
mod settings;
mod watch;

pub(crate) use elsewhere::elsewhere;
pub(crate) use settings::Settings;
pub(crate) use watch::{Awaited, Watch};

use fencepost_transport::deadlock::Waits;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A wait that lasts: who waits for whom, and what is known of why. Shown, it is a line of text.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// The rank that waits, in the world of the call.
    pub rank: usize,
    /// The rank that it waits for.
    pub awaited: usize,
    /// The host that it is on, where the job has several.
    pub host: Option<Arc<str>>,
    /// How many ranks that world has.
    pub size: usize,
    /// The rank that waits, among all that were started, where its world was split off.
    pub rank_of_all: Option<usize>,
    /// How long it has waited.
    pub waited: Duration,
    /// The name of the superstep, where it has one.
    pub superstep: Option<&'static str>,
    /// The number of the superstep in its world; every fence and every collective call has one.
    pub number: u32,
    /// The file of the call.
    pub file: &'static str,
    /// The line of the call.
    pub line: u32,
    /// The call in words.
    pub call: String,
    /// What it waits for, in the plural.
    pub what: &'static str,
    /// How many of them were expected.
    pub expected: usize,
    /// How many of them have come.
    pub came: usize,
    /// From whom one has not come, where that can be told; at most 16 of them.
    pub missing: Vec<usize>,
    /// Where the awaited rank is, as far as is known here.
    pub peer: String,
    /// Who waits for whom in which call, where that can never end: the ranks wait for one another.
    pub deadlock: Option<String>,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, awaited, host, waited, call, number, what, expected, came, peer, .. } = self;
        write!(f, "rank {rank}")?;
        if let Some(all) = self.rank_of_all {
            write!(f, " of a world of {} (rank {all} of all)", self.size)?;
        }
        let seconds = waited.as_secs_f64();
        write!(f, " has waited {seconds:.0} s for rank {awaited}")?;
        if let Some(host) = host {
            write!(f, " on host {host}")?;
        }
        write!(f, " in {call}, number {number}: ")?;
        write!(f, "{came} of {expected} {what} came")?;
        if let [_, _, ..] = self.missing[..] {
            let missing: Vec<String> = self.missing.iter().map(usize::to_string).collect();
            write!(f, ", none from ranks {}", missing.join(", "))?;
        }
        write!(f, "; {peer}")?;
        match &self.deadlock {
            Some(ring) => write!(f, "; this never ends: {ring}"),
            None => Ok(()),
        }
    }
}

/// What a world's ranks know of waits.
#[derive(Clone)]
pub(crate) struct Stalls {
    pub(crate) settings: Arc<Settings>,
    pub(crate) waits: Waits,
}
