//! [`Settings`]: what the environment says of jobs.

use crate::description::Limits;
use std::time::Duration;

/// Times of a job that a user may set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// `FENCEPOST_HEARTBEAT` and `FENCEPOST_SILENCE`: when a silent rank is taken for dead, and a connection given up.
    pub limits: Limits,
    /// `FENCEPOST_SEAL`: whether every record between ranks carries a tag.
    pub sealed: bool,
    /// `FENCEPOST_GRACE`: how long ranks may go on after one has failed.
    pub grace: Duration,
    /// `FENCEPOST_TIMEOUT`: how long a job may take.
    pub timeout: Option<Duration>,
}

impl Settings {
    /// As the environment says: a sign of life each half second, death after ten seconds without, ten seconds of grace,
    /// and all the time it takes, unless it says otherwise.
    ///
    /// # Errors
    /// A variable that is no time, and what one looks like.
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
            return Err(format!("FENCEPOST_HEARTBEAT is `{text}`: give a time above none, such as 500ms"));
        }
        if !silence.is_zero() && silence < heartbeat * 2 {
            return Err(format!(
                "FENCEPOST_SILENCE is {silence:?} and FENCEPOST_HEARTBEAT {heartbeat:?}: a rank must miss two beats at least"
            ));
        }
        let sealed = match get("FENCEPOST_SEAL").as_deref() {
            None | Some("off") => false,
            Some("on") => true,
            Some(other) => return Err(format!("FENCEPOST_SEAL is `{other}`: it may be `on` or `off`")),
        };
        Ok(Self {
            sealed,
            limits: Limits { heartbeat, silence },
            grace: time("FENCEPOST_GRACE")?.unwrap_or(Duration::from_secs(10)),
            timeout: time("FENCEPOST_TIMEOUT")?.filter(|time| !time.is_zero()),
        })
    }
}

/// More than any setting needs, and little enough to be added to any moment.
const LONGEST: Duration = Duration::from_secs(30 * 366 * 24 * 3600);

/// A time, as every setting and option takes it: a decimal number and its unit, `ms`, `s`, `m` or `h`, or seconds without
/// one; `off` is 0.
///
/// # Errors
/// The text is not a time: what is allowed.
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
    time.ok_or_else(|| "give a time such as 250ms, 30s, 1.5m or 2h, of 30 years at most, or `off`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_environment_says_is_believed_or_refused_by_name() {
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
        ] {
            let pairs: &[(&str, &str)] = &[(name, value)];
            let refused = Settings::from(|asked| pairs.iter().find(|p| p.0 == asked).map(|p| p.1.to_owned()));
            assert!(refused.expect_err("must be refused").contains(name), "{name}");
        }
    }

    #[test]
    fn times_have_units_and_seconds_need_none() {
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
