//! Files that a test writes and a person reads: the test fails if they differ from what it would
//! write.

use std::path::Path;
use std::{env, fs};

/// Compares the file at `path`, below `root`, with `is`; writes it where `FENCEPOST_BLESS` is set.
///
/// # Panics
/// Where the two differ.
#[track_caller]
pub fn compare(root: &str, path: &str, is: &str) {
    let path = Path::new(root).join(path);
    if env::var_os("FENCEPOST_BLESS").is_some() {
        fs::write(&path, is).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(expected, is, "{}: FENCEPOST_BLESS=1 writes it again", path.display());
}
