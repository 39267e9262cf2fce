//! When a wait is reported, to whom, and what happens to ranks that wait for one another.

use super::Stall;
use crate::environment;
use fencepost_planner::{Class, Error, Result};
use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// Who is told.
type Told = dyn Fn(&Stall) + Send + Sync;

/// How a world treats waits that last.
#[derive(Clone)]
pub(crate) struct Settings {
    /// After how long a wait is reported first.
    pub(crate) after: Option<Duration>,
    /// Whether ranks that wait for one another end their worlds.
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

/// On standard error, a line each, which does not mix with others.
fn say(stall: &Stall) {
    // There is nobody to tell if that fails.
    let _ = std::io::stderr().lock().write_all(format!("fencepost: {stall}\n").as_bytes());
}

impl Settings {
    /// The defaults, with what `FENCEPOST_STALL` and `FENCEPOST_DEADLOCK` say.
    pub(crate) fn from_environment() -> Result<Self> {
        let mut settings = Self::default();
        if let Some(text) = environment::text("FENCEPOST_STALL")? {
            let refused = |why| Error::new(Class::Arg, format!("FENCEPOST_STALL is `{text}`: {why}"));
            let after = fencepost_job::duration(&text).map_err(refused)?;
            settings.after = Some(after).filter(|after| !after.is_zero());
        }
        settings.ends =
            environment::one_of("FENCEPOST_DEADLOCK", &[("report", false), ("end", true)], false)?;
        Ok(settings)
    }

    /// Whether anything is to be done for a wait at all.
    pub(crate) fn watches(&self) -> bool {
        self.after.is_some() || self.ends
    }

    /// From when on a wait is written down, so that others may see it.
    pub(crate) fn shown_after(&self) -> Duration {
        self.after.map_or(TICK, |after| after.min(TICK))
    }

    /// When a wait is reported again, if it was when it had lasted so long.
    pub(crate) fn again(&self, waited: Duration) -> Option<Duration> {
        self.after.map(|_| waited.max(TICK) * 2)
    }
}

/// How often a rank that waits wakes, at least.
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
