//! Reads environment variables. If a value is not understood, the error lists the allowed values.

use fencepost_planner::machine::Machine;
use fencepost_planner::plan::open_regular;
use fencepost_planner::{Error, ErrorClass, Result};
use std::collections::BTreeSet;
use std::env::{VarError, var};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Returns the text of a variable, if it is set.
///
/// # Errors
/// `ARG` for a value that is not text.
pub(crate) fn text(name: &str) -> Result<Option<String>> {
    match var(name) {
        Ok(text) => Ok(Some(text)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(bytes)) => {
            let message = format!("{name} is not text but {bytes:?}: unset it, or give what is allowed");
            Err(Error::new(ErrorClass::Arg, message))
        }
    }
}

/// Returns the value that the program has set, or else the value of the variable, if the variable
/// is set. Reports a variable whose value differs from the program's value.
///
/// # Errors
/// The error of parsing the variable, even if the program has set another value.
#[cfg(not(loom))]
pub(crate) fn either<V: PartialEq>(
    set: Option<V>,
    name: &'static str,
    given: impl FnOnce(&'static str) -> Result<Option<V>>,
) -> Result<Option<V>> {
    let given = given(name)?;
    if set.is_some() && given.is_some() && set != given {
        report_overridden(name);
    }
    Ok(set.or(given))
}

/// Returns the value of a variable that may be one of a few words; `None` if it is not set.
///
/// # Errors
/// `ARG` for any other word. The error lists the allowed words.
pub(crate) fn word<V: Copy>(name: &str, words: &[(&str, V)]) -> Result<Option<V>> {
    let Some(text) = text(name)? else { return Ok(None) };
    let known = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    known.map(Some).ok_or_else(|| {
        let quoted: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let allowed = match &quoted[..] {
            [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
            few => few.concat(),
        };
        Error::new(ErrorClass::Arg, format!("{name} is `{text}`: it may be {allowed}"))
    })
}

/// Returns the value of a variable, parsed as its type; `None` if it is not set.
///
/// # Errors
/// The error of parsing the value, with the variable's name.
pub(crate) fn read<V: std::str::FromStr<Err = Error>>(name: &str) -> Result<Option<V>> {
    let named = |error: Error| Error::new(error.class(), format!("{name}: {}", error.message()));
    text(name)?.map(|text| text.parse().map_err(named)).transpose()
}

/// Returns the value of a variable that is a number of bytes; `None` if it is not set.
///
/// # Errors
/// `ARG` if the value is not a number of bytes.
pub(crate) fn bytes(name: &str) -> Result<Option<usize>> {
    let Some(text) = text(name)? else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let message = format!("{name} is `{text}`: give a number of bytes, from 0 to {}", usize::MAX);
        Error::new(ErrorClass::Arg, message)
    })
}

/// Returns the value of a variable that is a number of ranks; `None` if it is not set.
///
/// # Errors
/// `ARG` if the value is not an allowed number of ranks.
#[cfg(not(loom))]
pub(crate) fn size(name: &str) -> Result<Option<usize>> {
    let Some(text) = text(name)? else { return Ok(None) };
    let most = fencepost_job::RANKS_MAX as usize;
    text.parse().ok().filter(|size| (1..=most).contains(size)).map(Some).ok_or_else(|| {
        let message = format!("{name} is `{text}`: give a number of ranks from 1 to {most}");
        Error::new(ErrorClass::Arg, message)
    })
}

/// Returns the value of a variable that is a time limit: `Some(None)` if it means no limit, and
/// `None` if the variable is not set.
///
/// # Errors
/// `ARG` if the value is not a time limit.
#[cfg(not(loom))]
pub(crate) fn limit(name: &str) -> Result<Option<Option<Duration>>> {
    let Some(text) = text(name)? else { return Ok(None) };
    let refused = |why| Error::new(ErrorClass::Arg, format!("{name} is `{text}`: {why}"));
    let limit = fencepost_job::duration(&text).map_err(refused)?;
    Ok(Some(Some(limit).filter(|limit| !limit.is_zero())))
}

/// The maximum number of bytes of the text of a machine model.
const MACHINE: u64 = 1 << 16;

/// Returns the machine model that a variable specifies. The value is the path of a file or, in
/// several lines, the text of the model. Returns `None` if the variable is not set.
///
/// # Errors
/// `ARG` for a file that cannot be read. `FILE`, with the line, for a file that is not a machine
/// model.
pub(crate) fn machine(name: &str) -> Result<Option<Machine>> {
    let Some(path) = text(name)? else { return Ok(None) };
    if path.contains('\n') {
        let refused = |error: Error| Error::new(ErrorClass::File, format!("{name}: {}", error.message()));
        return path.parse().map(Some).map_err(refused);
    }
    let refused = |class, why: String| Error::new(class, format!("{name} is `{path}`: {why}"));
    let read = || -> std::io::Result<String> {
        let mut model = String::new();
        let file = open_regular(OpenOptions::new().read(true), path.as_ref())?;
        file.take(MACHINE + 1).read_to_string(&mut model).map(|_| model)
    };
    let model = read().map_err(|error| {
        refused(
            ErrorClass::Arg,
            format!("{error}; give the path of a text of `key = value` lines, a machine model"),
        )
    })?;
    if model.len() as u64 > MACHINE {
        return Err(refused(ErrorClass::File, format!("a machine model has {MACHINE} bytes at most")));
    }
    model.parse().map(Some).map_err(|error: Error| refused(ErrorClass::File, error.message().into()))
}

/// Reports, on standard error, each environment variable whose name begins with `FENCEPOST_` and
/// that no code reads. Reports once in a process, and in a job only on rank 0.
#[cfg(not(loom))]
pub(crate) fn report_unknown() {
    use fencepost_job::variables::{reported, unknown};
    use std::sync::Once;

    static REPORTED: Once = Once::new();
    REPORTED.call_once(|| {
        for (name, nearest) in unknown(std::env::vars_os().map(|(name, _)| name)) {
            say(&reported(&name, nearest));
        }
    });
}

/// Reports, on standard error, a variable that the program overrides with another value. Reports
/// once in a process, and in a job only on rank 0.
#[cfg(not(loom))]
pub(crate) fn report_overridden(name: &'static str) {
    static REPORTED: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    if REPORTED.lock().unwrap_or_else(PoisonError::into_inner).insert(name) {
        let value = std::env::var_os(name).unwrap_or_default();
        say(&format!(
            "the environment variable {name} is `{}`, which is ignored: the program itself sets something else",
            value.to_string_lossy()
        ));
    }
}

/// Writes a line on standard error; in a job, only on rank 0.
#[cfg(not(loom))]
fn say(line: &str) {
    if fencepost_job::joined().is_none_or(|member| member.job().rank == 0) {
        print(line);
    }
}

/// Writes a line on standard error.
pub(crate) fn print(line: &str) {
    // A failure to write cannot be reported.
    let _ = std::io::stderr().write_all(format!("fencepost: {line}\n").as_bytes());
}
