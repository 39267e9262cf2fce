//! Windows as values. A program gives arguments when it makes a window, keeps values with the
//! window, and gets values back from it.

mod ends;
mod hints;
mod unfenced;

use fencepost::prelude::*;
use fencepost::{TransportKind, World, ranks};
use fencepost_tests_worlds::transports::transports;

/// Runs a test in a world of this size, on each transport.
fn everywhere(size: usize, test: impl Fn(&World, &TransportKind) -> Result<()> + Sync) {
    for kind in transports([3]) {
        let run = ranks(size).transport(kind.clone()).run(|world| test(world, &kind));
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}

/// Returns the error of a refused call. Checks that it has this class and these words, and that the
/// world has not ended.
#[track_caller]
fn refused(error: impl Into<Error>, class: ErrorClass, words: &[&str]) {
    let error = error.into();
    let text = error.to_string();
    assert_eq!(error.class(), class, "{text}");
    assert!(!error.world_ended(), "{text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
}
