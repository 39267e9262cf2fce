//! Pins threads to cores. Otherwise the system moves threads between cores, and measurements vary.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::OnceLock;

/// Pins this thread to a core: `rank` modulo the number of cores that the process may use. If the
/// system does not allow that, the thread is not pinned.
pub fn pin(rank: usize) {
    // The cores that were allowed at the first call. Later, a pinned thread and the threads that it
    // starts are allowed to use only one core.
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    let cores = CORES.get_or_init(|| {
        let given = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        (0..CpuSet::MAX_CPU).filter(|&core| given.is_set(core)).collect()
    });
    let Some(&core) = cores.get(rank % cores.len().max(1)) else { return };
    let mut set = CpuSet::new();
    set.set(core);
    let _: rustix::io::Result<()> = sched_setaffinity(None, &set);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_pinned_again_has_the_cores_of_the_process() {
        let given = sched_getaffinity(None).expect("a thread may ask for its cores");
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| given.is_set(core)).collect();
        for rank in 0..2 * cores.len() {
            pin(rank);
            let pinned = sched_getaffinity(None).expect("a thread may ask for its cores");
            assert_eq!(pinned.count(), 1);
            assert!(pinned.is_set(cores[rank % cores.len()]));
        }
        sched_setaffinity(None, &given).expect("the cores that it had");
    }
}
