//! The signals that ask a program to save its state and to end.

use signal_hook::consts::{SIGTERM, SIGUSR1};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The environment variable that makes SIGTERM one of these signals.
const ON_TERM: &str = "FENCEPOST_SNAPSHOT_ON_TERM";

/// The name of each of these signals, and whether the signal has arrived.
static SIGNALS: OnceLock<Vec<(&str, Arc<AtomicBool>)>> = OnceLock::new();

/// Starts to catch SIGUSR1, and SIGTERM if `FENCEPOST_SNAPSHOT_ON_TERM` is `on`. From then on these
/// signals no longer end the process.
pub(crate) fn watch() {
    SIGNALS.get_or_init(|| {
        let on_term = std::env::var(ON_TERM).is_ok_and(|value| value == "on");
        let caught = [(SIGUSR1, "SIGUSR1", true), (SIGTERM, "SIGTERM", on_term)];
        caught
            .into_iter()
            .filter(|(_, _, asks)| *asks)
            .filter_map(|(signal, name, _)| {
                let arrived = Arc::new(AtomicBool::new(false));
                // Registration fails only for signals that cannot be caught.
                signal_hook::flag::register(signal, arrived.clone()).ok()?;
                Some((name, arrived))
            })
            .collect()
    });
}

/// Returns the signal by which this process was asked to end.
pub(crate) fn requested() -> Option<&'static str> {
    let arrived = |(_, arrived): &&(&str, Arc<AtomicBool>)| arrived.load(Ordering::Relaxed);
    SIGNALS.get()?.iter().find(arrived).map(|(name, _)| *name)
}
