//! The cores that ranks may use, and the core to which a rank is pinned.

use rustix::process::{Pid, getppid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Returns the number of cores that the ranks started by this process may use together.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// Returns the number of cores that the ranks of an external launcher on this host may use
/// together. Such a launcher may bind each rank to a core. But the launcher's process, the parent
/// of the ranks, may use the cores of all ranks.
pub(crate) fn cores_of_launcher() -> u32 {
    cores().max(allowed(getppid()).map_or(0, |allowed| allowed.len() as u32))
}

/// Returns the cores that this process may use.
pub(crate) fn allowed_cores() -> Vec<usize> {
    allowed(None).unwrap_or_default()
}

/// Returns the core at index `place` among those that this process may use, with wraparound.
pub(crate) fn core(place: usize) -> Option<CpuSet> {
    let cores = allowed(None)?;
    let mut set = CpuSet::new();
    set.set(*cores.get(place % cores.len().max(1))?);
    Some(set)
}

/// Pins the calling thread to the core at index `place` among those that the thread may use, with
/// wraparound. If the system does not allow that, the thread stays as it is.
pub fn pin_thread(place: usize) {
    if let Some(core) = core(place) {
        let _: rustix::io::Result<()> = sched_setaffinity(None, &core);
    }
}

/// Returns the cores that `process` may use; `None` is this process.
fn allowed(process: Option<Pid>) -> Option<Vec<usize>> {
    let allowed = sched_getaffinity(process).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect())
}
