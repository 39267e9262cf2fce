//! Pinning: without it the system moves threads between cores, and measurements vary.

use rustix::thread::{CpuSet, sched_setaffinity};

/// Pins this thread to core `rank` modulo the number of cores. If the system does not allow that, the thread is not
/// pinned.
pub fn pin(rank: usize) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut set = CpuSet::new();
    set.set(rank % cores);
    let _: rustix::io::Result<()> = sched_setaffinity(None, &set);
}
