//! Files that a test writes and a person reads. The test fails if a file differs from the text that
//! the test would write.

use std::path::Path;
use std::{env, fs};

/// Compares the file at `path`, below `root`, with `is`. Writes the file instead if
/// `FENCEPOST_BLESS` is set.
///
/// Panics if the two differ.
#[track_caller]
pub fn compare(root: &str, path: &str, is: &str) {
    let path = Path::new(root).join(path);
    if env::var_os("FENCEPOST_BLESS").is_some() {
        fs::write(&path, is).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(expected, is, "{}: FENCEPOST_BLESS=1 writes it again", path.display());
}
