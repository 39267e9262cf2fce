//! What a user says by environment variables: all of it is understood, or refused with what is allowed.

use fencepost_planner::{Class, Error, Result};
use std::env::{VarError, var};
use std::time::Duration;

/// The text of a variable, if it is set.
///
/// # Errors
/// `ARG` for what is no text.
pub(crate) fn text(name: &str) -> Result<Option<String>> {
    match var(name) {
        Ok(text) => Ok(Some(text)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(bytes)) => {
            let message = format!("{name} is not text but {bytes:?}: unset it, or give what is allowed");
            Err(Error::new(Class::Arg, message))
        }
    }
}

/// What a variable says, of a few words; `unset` where it is not set.
///
/// # Errors
/// `ARG` for any other word, with those allowed.
pub(crate) fn one_of<V: Copy>(name: &str, words: &[(&str, V)], unset: V) -> Result<V> {
    let Some(text) = text(name)? else { return Ok(unset) };
    let known = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    known.ok_or_else(|| {
        let quoted: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let allowed = match &quoted[..] {
            [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
            few => few.concat(),
        };
        Error::new(Class::Arg, format!("{name} is `{text}`: it may be {allowed}"))
    })
}

/// What a variable says, read as its type is; `None` where it is not set.
///
/// # Errors
/// That of reading it, with the variable's name.
pub(crate) fn read<V: std::str::FromStr<Err = Error>>(name: &str) -> Result<Option<V>> {
    let named = |error: Error| Error::new(error.class(), format!("{name}: {}", error.message()));
    text(name)?.map(|text| text.parse().map_err(named)).transpose()
}

/// More than any setting needs, and little enough to be added to any moment.
const LONGEST: Duration = Duration::from_secs(30 * 366 * 24 * 3600);

/// A time, as every setting and option takes it: a decimal number and its unit, `ms`, `s`, `m` or `h`, or seconds without
/// one; `off` is 0.
///
/// # Errors
/// The text is not a time: what is allowed.
pub(crate) fn duration(text: &str) -> std::result::Result<Duration, String> {
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
