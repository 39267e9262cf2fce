//! [`Settings`]: what the environment says of jobs.

use super::description::Limits;
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

/// A time, as every setting takes it: a decimal number and its unit, `ms`, `s`, `m` or `h`, or seconds without one; `off` is
/// 0, which is never where something is limited.
///
/// # Errors
/// The text is not a time: what is allowed.
pub fn duration(text: &str) -> Result<Duration, String> {
    crate::environment::duration(text)
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
}
