//! How many cores the ranks of this host may use together. A waiting rank spins only if there is a
//! core for each rank.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of cores that was set, or 0 if none was set.
static OF_RANKS: AtomicUsize = AtomicUsize::new(0);

/// Sets the number of cores that the ranks of this host may use together. Called before this
/// process joins a world. If `cores` is 0, the ranks may use as many cores as this process may use.
/// The launcher sets the number, because a rank that is bound to a core sees only that core.
pub fn set_cores(cores: usize) {
    OF_RANKS.store(cores, Ordering::Relaxed);
}

/// Returns the number of cores that the ranks of this host may use together. If the number was not
/// set, returns the number of cores that this process may use.
pub(crate) fn cores() -> usize {
    match OF_RANKS.load(Ordering::Relaxed) {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        cores => cores,
    }
}
