//! Pinning: measurements of two threads mean little while the system moves them about.

use rustix::thread::{CpuSet, sched_setaffinity};

/// Keeps this thread on a core: on core `rank`, modulo the number of cores. Where that is not allowed, nothing happens.
pub fn pin(rank: usize) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut set = CpuSet::new();
    set.set(rank % cores);
    let _: rustix::io::Result<()> = sched_setaffinity(None, &set);
}
