//! [`Registry`]: the data that ranks of one process share by reference, such as regions of windows
//! and endpoints of new worlds.

use crate::collect::region::Region;
use crate::state::call_sites::CallSites;
use crate::state::key::Key;
use crate::supersteps::state::schedule_cache::ScheduleCache;
use fencepost_planner::Verified;
use fencepost_planner::ir::schedule::Schedule;
use fencepost_planner::machine::Machine;
use fencepost_transport::Endpoint;
use fencepost_transport::deadlock::Waits;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

static WORLDS: AtomicU64 = AtomicU64::new(1);

/// Returns a number for a new world, unique in the process.
pub(crate) fn new_world() -> u64 {
    WORLDS.fetch_add(1, Ordering::Relaxed)
}

/// The key of a window that a collective call tries to make: the world, the position of the call,
/// and the number of the window.
pub(crate) type Attempt = (u64, u64, u32);
type Regions = BTreeMap<Attempt, Shared<Arc<Region>>>;
/// The key is the world that was split, the position of the collective call, and a rank. The value
/// is the number of the new world, and the endpoint of the rank in that world.
type Ends = BTreeMap<(u64, u64, usize), (u64, Endpoint)>;

/// The schedules of a superstep, one for each epoch.
pub(crate) type Schedules = Vec<Arc<Verified<Schedule>>>;

/// The data that all ranks of one `run` share.
#[derive(Default)]
pub(crate) struct Registry {
    /// The key by which the ranks compare their calls.
    pub(crate) key: Key,
    regions: Mutex<Regions>,
    ends: Mutex<Ends>,
    keep_alive: Mutex<Vec<Vec<u8>>>,
    /// The call sites of each world, and the number of ranks that have not taken these call sites
    /// yet.
    call_sites: Mutex<BTreeMap<u64, (Arc<CallSites>, usize)>>,
    schedule_cache: ScheduleCache,
    /// For each world, the schedules that one of its ranks has planned for all ranks, and the
    /// number of ranks that have not taken these schedules yet.
    laid_out: Mutex<BTreeMap<u64, (Schedules, usize)>>,
    waits: OnceLock<Waits>,
}

/// One value of each rank, kept until each rank has taken all the values.
struct Shared<T> {
    of: Vec<Option<T>>,
    takers: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// Returns the registry of a rank that is a process. The key is derived from the secret of the
    /// job and this machine model.
    #[cfg(not(loom))]
    pub(crate) fn of_job(secret: &fencepost_transport::auth::Secret, machine: &Machine) -> Self {
        Self { key: Key::of_job(secret, machine), ..Self::default() }
    }

    /// Provides the region of `rank` in window `key`.
    pub(crate) fn give(&self, key: Attempt, rank: usize, size: usize, region: Arc<Region>) {
        let mut regions = lock(&self.regions);
        let shared = regions
            .entry(key)
            .or_insert_with(|| Shared { of: (0..size).map(|_| None).collect(), takers: size });
        shared.of[rank] = Some(region);
    }

    /// Returns the regions of all ranks of window `key`. All ranks have provided their regions
    /// before. Each rank calls this once.
    pub(crate) fn take(&self, key: Attempt) -> Vec<Option<Arc<Region>>> {
        let mut regions = lock(&self.regions);
        let Some(shared) = regions.get_mut(&key) else { return Vec::new() };
        let all = shared.of.clone();
        shared.takers -= 1;
        if shared.takers == 0 {
            regions.remove(&key);
        }
        all
    }

    /// Forgets window `key`. No rank has made it, and no rank will.
    pub(crate) fn withdraw(&self, key: Attempt) {
        lock(&self.regions).remove(&key);
    }

    /// Provides the endpoints of a new world for the ranks that will take them.
    pub(crate) fn give_ends(&self, of: (u64, u64), ends: impl IntoIterator<Item = (usize, Endpoint)>) {
        let world = new_world();
        let mut all = lock(&self.ends);
        for (rank, end) in ends {
            all.insert((of.0, of.1, rank), (world, end));
        }
    }

    /// Takes the endpoint of `rank` in a new world.
    pub(crate) fn take_end(&self, of: (u64, u64), rank: usize) -> Option<(u64, Endpoint)> {
        lock(&self.ends).remove(&(of.0, of.1, rank))
    }

    /// Returns the call sites of a world of `size` ranks. `takers` ranks of this process are in the
    /// world, and `rank` is one of them. Each takes the call sites once.
    pub(crate) fn call_sites(&self, world: u64, rank: usize, size: usize, takers: usize) -> Arc<CallSites> {
        let mut all = lock(&self.call_sites);
        let ranks = if takers == 1 { rank..rank + 1 } else { 0..size };
        let (call_sites, left) =
            all.entry(world).or_insert_with(|| (Arc::new(CallSites::new(ranks)), takers));
        *left = left.saturating_sub(1);
        let (call_sites, last) = (call_sites.clone(), *left == 0);
        if last {
            all.remove(&world);
        }
        call_sites
    }

    /// Returns the table of waits: for each rank, the rank that it waits for. Only the first call
    /// uses `ranks`.
    pub(crate) fn waits(&self, ranks: usize) -> Waits {
        self.waits.get_or_init(|| Waits::new(ranks)).clone()
    }

    /// Returns the schedules of collectives.
    pub(crate) fn schedule_cache(&self) -> &ScheduleCache {
        &self.schedule_cache
    }

    /// Provides the schedules that a rank has planned to `takers` other ranks of its world.
    pub(crate) fn lay_out(&self, world: u64, schedules: &Schedules, takers: usize) {
        lock(&self.laid_out).insert(world, (schedules.clone(), takers));
    }

    /// Returns the schedules that another rank of the world has provided. Each rank takes them
    /// once.
    pub(crate) fn laid_out(&self, world: u64) -> Option<Schedules> {
        let mut all = lock(&self.laid_out);
        let (schedules, takers) = all.get_mut(&world)?;
        *takers -= 1;
        let (schedules, last) = (schedules.clone(), *takers == 0);
        if last {
            all.remove(&world);
        }
        Some(schedules)
    }

    /// Keeps bytes until the whole run is over, since other ranks may still be reading them.
    pub(crate) fn keep(&self, bytes: Vec<u8>) {
        lock(&self.keep_alive).push(bytes);
    }
}
