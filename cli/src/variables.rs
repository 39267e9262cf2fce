//! `fencepost env`: lists the environment variables that are read, with their current values.

use fencepost_job::variables::{Reader, VARIABLES, Variable, reported, unknown};
use std::ffi::OsString;
use std::fmt::Write;

/// Returns the text of `fencepost env` for an environment.
pub fn listed(environment: &[(OsString, OsString)]) -> String {
    let mut text = String::new();
    for (reader, heading) in [
        (Reader::Program, "Programs read these when they enter a world:"),
        (Reader::Job, "Launchers of processes, and ranks that join a job, read these:"),
    ] {
        let _ = writeln!(text, "{heading}\n");
        for variable in VARIABLES.iter().filter(|variable| variable.reader == reader) {
            let set = environment.iter().find(|(name, _)| name == variable.name);
            list(&mut text, variable, set.map(|(_, value)| value.to_string_lossy().into_owned()));
        }
        text.push('\n');
    }
    for (name, nearest) in unknown(environment.iter().map(|(name, _)| name.clone())) {
        let _ = writeln!(text, "{}", reported(&name, nearest));
    }
    text
}

/// The number of columns of a line.
const COLUMNS: usize = 100;

/// The indentation of the text below a variable.
const INDENT: &str = "      ";

fn list(text: &mut String, variable: &Variable, set: Option<String>) {
    let value = set.map_or_else(|| format!("is not set: {}", variable.default), |value| format!("= {value}"));
    let _ = writeln!(text, "  {} {value}", variable.name);
    let by_value = variable.by_value.iter().map(|(value, meaning)| format!(" {value}: {meaning}."));
    let by_value: String = by_value.collect();
    let meaning = format!("{}. Values: {}.{by_value}", variable.meaning, variable.values);
    let lines = textwrap::Options::new(COLUMNS).initial_indent(INDENT).subsequent_indent(INDENT);
    let _ = writeln!(text, "{}", textwrap::fill(&meaning, lines));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_listed_with_its_value_and_what_is_unknown_with_the_nearest_name() {
        let set = [("FENCEPOST_RANKS", "4"), ("FENCEPOST_TRANSPORTS", "shm"), ("HOME", "/")];
        let text = listed(&set.map(|(name, value)| (name.into(), value.into())));
        assert!(text.contains("FENCEPOST_RANKS = 4\n"), "{text}");
        assert!(text.contains("FENCEPOST_MODE is not set: auto\n"), "{text}");
        assert!(text.contains("FENCEPOST_TRANSPORTS: did you mean FENCEPOST_TRANSPORT?"), "{text}");
        let is_wide = |line: &str| line.starts_with(' ') && line.len() > COLUMNS;
        assert!(!text.lines().any(is_wide) && !text.contains("HOME"), "{text}");
    }
}
