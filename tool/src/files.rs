//! Files that are read with a limit, and replaced as a whole.

use fencepost_planner::machine::Machine;
use fencepost_planner::plan::{open_regular, replace};
use std::fs::OpenOptions;
use std::io::Read;
use std::path::Path;

/// The longest text that is read: a file of recipes, a machine model, a document, a source file.
const TEXT_MAX: u64 = 16 << 20;

/// Reads a text from a regular file.
///
/// # Errors
/// If the file cannot be read or is too long. The error names the file.
pub fn text(path: &Path) -> Result<String, String> {
    text_of(path, TEXT_MAX)
}

/// Reads a text of at most this many bytes from a regular file.
///
/// # Errors
/// Those of [`text`].
pub fn text_of(path: &Path, most: u64) -> Result<String, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let mut text = String::new();
    let file = open_regular(OpenOptions::new().read(true), path).map_err(|error| wrong(&error))?;
    file.take(most + 1).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    if text.len() as u64 > most {
        return Err(wrong(&format!("the file has more than {most} bytes")));
    }
    Ok(text)
}

/// Reads a machine model from a file.
///
/// # Errors
/// If the file cannot be read, or one of its lines is not a line of a model. The error names the
/// file or the line.
pub fn machine(path: &Path) -> Result<Machine, String> {
    let wrong = |error: fencepost_planner::Error| format!("{}: {}", path.display(), error.message());
    text(path)?.parse().map_err(wrong)
}

/// Replaces a file, or makes a new one. A reader sees either the old bytes or the new bytes.
///
/// # Errors
/// If the file cannot be written. The error names the file, and the old file stays.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    replace(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}
