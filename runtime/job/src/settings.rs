//! [`Settings`]: the settings of a job that environment variables hold.

use crate::description::Limits;
use std::time::Duration;

/// The settings of a job that a user may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// `FENCEPOST_HEARTBEAT` and `FENCEPOST_SILENCE`: how often ranks send heartbeats, and the
    /// silence after which a rank counts as dead and a connection is given up.
    pub limits: Limits,
    /// `FENCEPOST_SEAL`: whether every record between ranks carries an authentication tag.
    pub sealed: bool,
    /// `FENCEPOST_GRACE`: how long the other ranks may run after one has failed.
    pub grace: Duration,
    /// `FENCEPOST_TIMEOUT`: the time limit of the job.
    pub timeout: Option<Duration>,
    /// `FENCEPOST_SNAPSHOT_ON_TERM`: whether the first SIGTERM to the launcher gives the ranks the
    /// time that they need to save a snapshot.
    pub snapshot_on_term: bool,
}

impl Settings {
    /// Reads the environment. The defaults are a heartbeat of 500 ms, a silence limit of 10 s, a
    /// grace period of 10 s, and no time limit.
    ///
    /// # Errors
    /// A variable has a value that is not allowed; the message names the variable, the value and
    /// what is allowed.
    pub fn from_environment() -> Result<Self, String> {
        Self::from(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    fn from(get: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let time = |name: &str| {
            let read = |text: String| duration(&text).map_err(|why| format!("{name} is `{text}`: {why}"));
            get(name).map(read).transpose()
        };
        let heartbeat = time("FENCEPOST_HEARTBEAT")?.unwrap_or(Duration::from_millis(500));
        let silence = time("FENCEPOST_SILENCE")?.unwrap_or(Duration::from_secs(10));
        if heartbeat.is_zero() {
            let text = get("FENCEPOST_HEARTBEAT").unwrap_or_default();
            return Err(format!("FENCEPOST_HEARTBEAT is `{text}`: give a time above 0, such as 500ms"));
        }
        if !silence.is_zero() && silence < heartbeat * 2 {
            return Err(format!(
                "FENCEPOST_SILENCE is {silence:?} and FENCEPOST_HEARTBEAT is {heartbeat:?}: the silence limit must be at least two heartbeats, or `off`"
            ));
        }
        let is_on = |name: &str| match get(name).as_deref() {
            None | Some("off") => Ok(false),
            Some("on") => Ok(true),
            Some(other) => Err(format!("{name} is `{other}`: give `on` or `off`")),
        };
        Ok(Self {
            sealed: is_on("FENCEPOST_SEAL")?,
            snapshot_on_term: is_on("FENCEPOST_SNAPSHOT_ON_TERM")?,
            limits: Limits { heartbeat, silence },
            grace: time("FENCEPOST_GRACE")?.unwrap_or(Duration::from_secs(10)),
            timeout: time("FENCEPOST_TIMEOUT")?.filter(|time| !time.is_zero()),
        })
    }
}

/// The longest time that is allowed: more than any setting needs, and short enough to be added to
/// any `Instant`.
const LONGEST: Duration = Duration::from_secs(30 * 366 * 24 * 3600);

/// Parses a time, as every setting and option accepts it. A time is a decimal number with a unit
/// `ms`, `s`, `m` or `h`; a number without a unit is in seconds, and `off` is 0.
///
/// # Errors
/// The text is not a time; the message names what is allowed.
pub fn duration(text: &str) -> Result<Duration, String> {
    if text == "off" {
        return Ok(Duration::ZERO);
    }
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let time = number.trim().parse::<f64>().map_or(f64::NAN, |number| number * seconds);
    let time = Duration::try_from_secs_f64(time).ok().filter(|time| *time <= LONGEST);
    time.ok_or_else(|| "give a time such as 250ms, 30s, 1.5m or 2h, at most 30 years, or `off`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_or_refused_by_name() {
        let with = |pairs: &'static [(&str, &str)]| {
            Settings::from(|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned()))
        };
        assert_eq!(with(&[]).expect("the defaults").timeout, None);
        let some = with(&[("FENCEPOST_SILENCE", "0"), ("FENCEPOST_TIMEOUT", "1m")]).expect("times");
        assert_eq!((some.limits.silence, some.timeout), (Duration::ZERO, Some(Duration::from_secs(60))));
        for (name, value) in [
            ("FENCEPOST_HEARTBEAT", "0"),
            ("FENCEPOST_HEARTBEAT", "10000000000000000000"),
            ("FENCEPOST_SILENCE", "600ms"),
            ("FENCEPOST_GRACE", "x"),
            ("FENCEPOST_SNAPSHOT_ON_TERM", "yes"),
        ] {
            let pairs: &[(&str, &str)] = &[(name, value)];
            let refused = Settings::from(|asked| pairs.iter().find(|p| p.0 == asked).map(|p| p.1.to_owned()));
            assert!(refused.expect_err("must be refused").contains(name), "{name}");
        }
    }

    #[test]
    fn times_have_units_and_default_to_seconds() {
        for (text, millis) in [
            ("250ms", 250),
            ("2", 2000),
            ("2.5", 2500),
            ("1.5s", 1500),
            ("3m", 180_000),
            ("1h", 3_600_000),
            ("0", 0),
            ("off", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "s",
            "-1",
            "1d",
            "nan",
            "inf",
            "1e400",
            "soon",
            "10000000000000000000",
            "31000000m",
            "1 2",
            "OFF",
        ] {
            assert!(duration(text).is_err(), "{text:?}");
        }
    }
}
