//! How many cores the ranks of this host may use together: a rank that waits spins only if there is
//! one for each of them.

use std::sync::atomic::{AtomicUsize, Ordering};

/// 0: not set.
static OF_RANKS: AtomicUsize = AtomicUsize::new(0);

/// Sets the number of cores that the ranks of this host may use together, before this process joins
/// a world; 0 is those that this process may use. The launcher knows the number; a rank that is
/// bound to a core sees only that one.
pub fn set_cores(cores: usize) {
    OF_RANKS.store(cores, Ordering::Relaxed);
}

/// The number of cores that the ranks of this host may use together; where it was not set, those
/// that this process may use.
pub(crate) fn cores() -> usize {
    match OF_RANKS.load(Ordering::Relaxed) {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        cores => cores,
    }
}
