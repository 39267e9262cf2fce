//! The forms of options that users of other launchers type: long options with a single dash, such
//! as `-np 4`.

use clap::{Arg, Command};
use std::ffi::OsString;

/// Rewrites the options of `fencepost run` up to the program: adds a second dash to long options
/// that have a single dash, and separates the program from the options with `--`.
pub fn normalised(mut words: Vec<OsString>, run: &Command) -> Vec<OsString> {
    if words.get(1).is_none_or(|word| word != "run") {
        return words;
    }
    let mut at = 2;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()).map(str::to_owned) {
        if word == "--" {
            return words;
        }
        let Some(short) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else { break };
        let name = short.trim_start_matches('-').split('=').next().unwrap_or_default();
        let long = run.get_arguments().find(|arg| is_named(arg, name));
        // A single letter is a short option, and its value may follow without a space.
        let arg = if long.is_some() && name.len() > 1 {
            if !short.starts_with('-') {
                words[at] = format!("-{word}").into();
            }
            long.filter(|_| !word.contains('='))
        } else if short.starts_with('-') {
            None
        } else if let Some(last) = cluster(run, short) {
            last
        } else {
            // An unknown word of several letters is treated as a long option.
            if name.chars().nth(1).is_some() {
                words[at] = format!("-{word}").into();
            }
            None
        };
        at += if arg.is_some_and(|arg| arg.get_action().takes_values()) { 2 } else { 1 };
    }
    // The words after the program belong to the program.
    if at < words.len() {
        words.insert(at, "--".into());
    }
    words
}

fn is_named(arg: &Arg, name: &str) -> bool {
    arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
}

/// Reads letters as short options. Returns `None` if a letter is not an option. Otherwise returns
/// the option whose value is the next word, if there is one: `n` for `-vn 4`, but no option for
/// `-n4`.
fn cluster<'a>(run: &'a Command, letters: &str) -> Option<Option<&'a Arg>> {
    let mut left = letters.chars();
    while let Some(letter) = left.next() {
        let arg = run.get_arguments().find(|arg| arg.get_short() == Some(letter))?;
        if arg.get_action().takes_values() {
            return Some(Some(arg).filter(|_| left.as_str().is_empty()));
        }
    }
    Some(None)
}
