//! [`Stall`]: the report of a wait that lasts. Also the settings of a world for such waits.

use fencepost_transport::deadlock::Waits;
use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// The report of a wait that lasts: which rank waits for which rank, and the known facts about the
/// reason. `Display` writes the report as one line.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// The rank that waits, in the world of the call.
    pub rank: usize,
    /// The rank that it waits for.
    #[doc(hidden)]
    pub awaited: usize,
    /// The host of the awaited rank, if the job has several.
    #[doc(hidden)]
    pub host: Option<Arc<str>>,
    /// The number of ranks of the world of the call.
    #[doc(hidden)]
    pub size: usize,
    /// The waiting rank's number among all ranks that were started, if its world was split off.
    #[doc(hidden)]
    pub rank_of_all: Option<usize>,
    /// The time for which the rank has waited.
    pub waited: Duration,
    /// The name of the superstep, if it has one.
    #[doc(hidden)]
    pub superstep: Option<&'static str>,
    /// The number of the superstep in its world; every fence and every collective call has such a
    /// number. For a superstep that synchronises by posts and starts, it is the number of its run.
    #[doc(hidden)]
    pub number: u32,
    /// The file of the call.
    #[doc(hidden)]
    pub file: &'static str,
    /// The line of the call.
    #[doc(hidden)]
    pub line: u32,
    /// A text that describes the call.
    pub call: String,
    /// A plural noun for the things that the rank waits for.
    #[doc(hidden)]
    pub what: &'static str,
    /// The number of expected things.
    #[doc(hidden)]
    pub expected: usize,
    /// The number of things that have come.
    #[doc(hidden)]
    pub came: usize,
    /// The ranks from which nothing has come, if they can be determined. Contains at most 16 ranks.
    pub missing: Vec<usize>,
    /// A text about the call of the awaited rank, as far as this rank knows that call.
    #[doc(hidden)]
    pub peer: String,
    /// Set if ranks wait for one another, so that the wait cannot end. The report of the lowest of
    /// these ranks lists their waits: the waiting rank, the awaited rank and the call. The reports
    /// of the others only name the ranks. Each rank makes one such report.
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
        write!(f, "received {came} of {expected} {what}")?;
        if let [_, _, ..] = self.missing[..] {
            let missing: Vec<String> = self.missing.iter().map(usize::to_string).collect();
            write!(f, "; nothing from ranks {}", missing.join(", "))?;
        }
        match &self.deadlock {
            // If a rank waits for itself, its cycle is only this wait, which is described above.
            Some(cycle) if rank != awaited => write!(f, "; {cycle}"),
            _ => write!(f, "; {peer}"),
        }
    }
}

/// The settings of a world for waits, and the table of waits.
#[derive(Clone)]
pub(crate) struct Stalls {
    pub(crate) settings: Arc<Settings>,
    pub(crate) waits: Waits,
}

/// The function that is called with each report.
pub(crate) type Told = dyn Fn(&Stall) + Send + Sync;

/// The function that a program has set to receive the reports.
#[derive(Clone)]
pub(crate) struct OnStall(pub(crate) Arc<Told>);

impl fmt::Debug for OnStall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function")
    }
}

/// The settings of a world for waits that last.
#[derive(Clone)]
pub(crate) struct Settings {
    /// The time after which a wait is first reported.
    pub(crate) after: Option<Duration>,
    /// Whether ranks that wait for one another in a cycle end their worlds.
    pub(crate) ends: bool,
    pub(crate) told: Arc<Told>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { after: Some(Duration::from_secs(10)), ends: false, told: Arc::new(say) }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("after", &self.after)
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

/// Writes a report on standard error, as one line that does not mix with others.
fn say(stall: &Stall) {
    // A failure to write cannot be reported.
    let _ = std::io::stderr().write_all(format!("fencepost: {stall}\n").as_bytes());
}

impl Settings {
    /// Returns whether waits that last are reported or ended.
    pub(crate) fn watches(&self) -> bool {
        self.after.is_some() || self.ends
    }

    /// Returns the time after which a wait is written into the table of waits, which other ranks
    /// can read.
    pub(crate) fn shown_after(&self) -> Duration {
        self.after.map_or(TICK, |after| after.min(TICK))
    }

    /// Returns the duration at which a wait is reported again. `waited` is the duration at the last
    /// report.
    pub(crate) fn again(&self, waited: Duration) -> Option<Duration> {
        self.after.map(|_| waited.max(TICK) * 2)
    }
}

/// The longest time between two wakes of a rank that waits.
const TICK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_double_from_a_second_on() {
        let settings = Settings { after: Some(Duration::ZERO), ..Settings::default() };
        let mut at = Duration::ZERO;
        let mut times = Vec::new();
        for _ in 0..4 {
            at = settings.again(at).expect("reports are on");
            times.push(at.as_secs());
        }
        assert_eq!(times, [2, 4, 8, 16]);
    }

    #[test]
    fn without_reports_and_ends_nothing_is_watched() {
        let off = Settings { after: None, ..Settings::default() };
        assert!(!off.watches() && off.again(TICK).is_none());
        assert!(Settings { ends: true, ..off }.watches());
    }
}
