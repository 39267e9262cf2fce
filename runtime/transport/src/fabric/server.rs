//! [`Fabric`]: the connections of a process, and the thread that serves them while its rank
//! computes.
//!
//! While the rank polls or waits, it takes in arrivals itself. Now and then the thread checks
//! whether the rank has polled since the last check, or is in a step of a wait and will poll after
//! that step. If either is true, the rank takes care of arrivals. Otherwise the thread waits for
//! arrivals as well, until the rank polls again. So a message wakes only one thread: the one that
//! handles it. Heartbeats, time limits and pending releases are due by time, and are always the
//! thread's work.
//!
//! A rank that waits and shares its core with many others runs again only after all of these
//! others. The thread does not read in the rank's place meanwhile, since the thread would have to
//! wait for the core as well. So a rank declares under the lock that it is about to yield, and the
//! thread checks more rarely if more ranks share a core. If a connection does not take all that was
//! written, the thread wakes and checks often until the connection has taken it.
//!
//! If a world has an attendant, the thread also reads at each check while the rank is in a call. A
//! polling rank reads only what it waits for, and the requests of other ranks must be read
//! meanwhile. When the thread has found the rank computing, or the rank has slept, the thread
//! checks again soon, and ever more rarely from then on. The first request to a rank that has begun
//! to compute waits for such a check.
//!
//! The rank and the thread always know which of the two reads. The rank declares under the lock
//! that it falls asleep, and does so only if nothing has arrived since it last polled. While it
//! sleeps, the thread reads nothing, and wakes the rank for every other event. A rank that also
//! waits for ranks with which it shares memory sleeps on its futex, where these ranks can wake it.
//! In that case the thread at once reads whatever arrives, and wakes the rank.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Alarms;
use crate::deadlock::{Probe, RemoteWaits, Table, Waiting};
use crate::fabric::Limits;
use crate::fabric::carrier::{Arrivals, Carrier};
use crate::fabric::core::{Core, RankState};
use crate::fabric::waker::EventWaker;

/// How often the thread checks whether the rank has polled, if each rank has a core.
const TICK: Duration = Duration::from_millis(2);

/// How soon the thread checks after the rank has computed or slept, if other ranks may send
/// requests. The thread then doubles this time at each check, up to [`TICK`].
const SOON: Duration = Duration::from_micros(125);

/// How often the thread does what is due by time.
const TIMES: Duration = Duration::from_millis(100);

/// The connections of a process to the other ranks of its job. Dropping it waits until everything
/// sent has arrived.
pub struct Fabric<C: Carrier> {
    shared: Arc<FabricShared<C>>,
    server: Mutex<Option<JoinHandle<()>>>,
}

/// A handle for a launcher's reports of other ranks. A rank that closes its connections waits for
/// the ranks for which it still has something to send. Reports reach the rank until that wait is
/// over. A `Reports` does not keep the connections open.
pub struct Reports<C: Carrier>(Arc<FabricShared<C>>);

pub(crate) struct FabricShared<C: Carrier> {
    core: Mutex<Core<C>>,
    arrivals: Arc<C::Arrivals>,
    /// The waker of the rank that waits for arrivals. The next field is the waker of the thread.
    rank: Arc<EventWaker>,
    server: Arc<EventWaker>,
}

impl<C: Carrier> FabricShared<C> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core<C>> {
        // A panic leaves the core in the state after the last completed item, which is consistent.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Flushes before sleeping. Returns `None` if something has arrived since `seen`.
    fn prepare_to_sleep(&self, seen: &mut u64) -> Option<MutexGuard<'_, Core<C>>> {
        let mut core = self.lock();
        core.calls += 1;
        core.serve_awaited();
        core.flush_dirty();
        if core.events == *seen {
            core.send_pending_releases(); // may find something
        }
        if core.events != *seen {
            *seen = core.events;
            return None;
        }
        Some(core)
    }

    /// Wakes the rank that waits for arrivals. Only that rank resets its waker, so a waker that is
    /// set while the rank is awake would keep the fabric's thread from waiting.
    fn wake_sleeper(&self, core: &mut Core<C>) {
        if core.rank == RankState::AwaitsArrivals && !std::mem::replace(&mut core.woken, true) {
            self.rank.wake();
        }
    }

    /// Lets the rank sleep on its futex, unless something has arrived since `seen`. Returns whether
    /// it may sleep.
    pub(super) fn hand_over(&self, seen: &mut u64) -> bool {
        let Some(mut core) = self.prepare_to_sleep(seen) else { return false };
        core.rank = RankState::SleepsOnFutex(core.events);
        drop(core);
        self.server.wake();
        true
    }

    /// Sleeps until something arrives, at most for a second. Returns at once if something has
    /// arrived since `seen`.
    pub(super) fn sleep(&self, seen: &mut u64) {
        let Some(mut core) = self.prepare_to_sleep(seen) else { return };
        C::watch(&mut core);
        let mut ready = std::mem::take(&mut core.ready);
        core.rank = RankState::AwaitsArrivals;
        drop(core);
        let all = self.arrivals.wait(Duration::from_secs(1), &mut ready);
        let mut core = self.lock();
        core.rank = RankState::Busy;
        core.calls += 1;
        if std::mem::take(&mut core.woken) {
            self.rank.drain();
        }
        if core.requests.attended > 0 {
            core.has_slept = true;
            if core.next_check.take().is_some_and(|check| check > Instant::now() + TICK) {
                self.server.wake(); // the rank may compute soon, while others send requests
            }
        }
        core.fresh = if all { 2 * core.peers.len() } else { 0 };
        C::serve(&mut core, &ready); // may leave something unread
        C::unwatch(&mut core);
        core.ready = ready;
        *seen = core.events;
    }
}

impl<C: Carrier> RemoteWaits for FabricShared<C> {
    fn waiting(&self, rank: usize, ask: bool) -> Option<Waiting> {
        self.lock().waiting_of(rank, ask)
    }

    fn probe(&self, probe: Probe) {
        self.lock().probe(&probe);
    }

    fn cycle(&self, number: u64) -> Option<Vec<Waiting>> {
        self.lock().cycle_of(number)
    }

    fn agree(&self, rank: usize, number: u64) {
        self.lock().agree_with(rank, number);
    }

    fn agreed(&self, rank: usize) -> u64 {
        self.lock().agreed_of(rank)
    }
}

impl<C: Carrier> Fabric<C> {
    /// Creates the fabric of rank `me` of a job over this carrier. `rank` wakes a thread that waits
    /// in `arrivals`.
    ///
    /// # Errors
    /// Fails if no descriptor is left.
    pub(crate) fn over(
        carrier: C,
        arrivals: Arc<C::Arrivals>,
        rank: Arc<EventWaker>,
        me: usize,
        limits: Limits,
    ) -> io::Result<Self> {
        let server = Arc::new(EventWaker::new()?);
        let core = Core::new(carrier, me, limits, server.clone(), Instant::now());
        let shared = Arc::new(FabricShared { core: Mutex::new(core), arrivals, rank, server });
        Ok(Self { shared, server: Mutex::default() })
    }

    /// Begins to serve, once the other ranks are known. For each rank, `openings` has the opening
    /// of connections to that rank, and `machines` has the lowest rank on its machine. Called once,
    /// before the first world.
    ///
    /// # Errors
    /// Fails if the thread cannot be started, or if the lists have no entry for this rank.
    pub(crate) fn start(&mut self, openings: Vec<C::Opening>, machines: Vec<usize>) -> io::Result<()> {
        let rank = {
            let mut core = self.shared.lock();
            if !core.peers.is_empty() || core.me() >= openings.len() {
                return Err(io::Error::other(
                    "the table of addresses is set already, or has no entry for this rank",
                ));
            }
            core.set_ranks(openings, machines, Instant::now());
            core.me()
        };
        let shared = self.shared.clone();
        let server = std::thread::Builder::new().name(format!("fabric {rank}"));
        *self.server() = Some(server.spawn(move || serve(&shared))?);
        Ok(())
    }

    /// Returns a handle for a launcher's reports. The handle works even while the fabric is being
    /// dropped.
    pub fn reports(&self) -> Reports<C> {
        Reports(Arc::clone(&self.shared))
    }

    /// Does the same as [`Reports::mark_failed`].
    pub fn mark_failed(&self, rank: usize, what: &str) {
        self.reports().mark_failed(rank, what);
    }

    /// Does the same as [`Reports::mark_finished`].
    pub fn mark_finished(&self, rank: usize) {
        self.reports().mark_finished(rank);
    }

    /// Declares that these ranks, which include this one, are on this node and are reached through
    /// shared memory. `waker` wakes one of these ranks if that rank waits for another one. `waits`
    /// has the entries of all these ranks. From now on, failures are counted in `alarms`. Called
    /// once the table is set.
    pub(crate) fn set_intra_node(
        &self,
        ranks: &[usize],
        waker: Box<dyn Fn(usize) + Send>,
        waits: Table,
        alarms: Alarms,
    ) {
        let mut core = self.shared.lock();
        if core.alarms.count() != 0 {
            alarms.raise(); // failures that were counted before
        }
        core.set_intra_node(ranks, waker, waits);
        core.alarms = alarms;
    }

    pub(crate) fn shared(&self) -> &Arc<FabricShared<C>> {
        &self.shared
    }
}

impl<C: Carrier> Reports<C> {
    /// Marks `rank` failed for this reason, which the launcher reports to all ranks. May be called
    /// from any thread.
    pub fn mark_failed(&self, rank: usize, what: &str) {
        self.report(|core| {
            core.mark_failed(rank, what.into());
            if let Some(peer) = core.peers.get_mut(rank) {
                (peer.reported, peer.has_ended) = (true, true);
            }
        });
    }

    /// Marks `rank` failed for this reason, if its process has ended without a goodbye. Before
    /// that, takes in everything that the rank had sent. May be called from any thread.
    pub fn mark_ended(&self, rank: usize, what: &str) {
        self.report(|core| {
            C::serve_ready(core);
            let Some(peer) = core.peers.get_mut(rank) else { return };
            peer.has_ended = true;
            if !peer.heard_goodbye {
                core.mark_failed(rank, what.into());
            }
        });
    }

    /// Records that `rank` has left all its worlds as finished, and has ended. May be called from
    /// any thread.
    pub fn mark_finished(&self, rank: usize) {
        self.report(|core| core.mark_finished(rank));
    }

    fn report(&self, what: impl FnOnce(&mut Core<C>)) {
        let mut core = self.0.lock();
        what(&mut core);
        core.wake_rank();
        self.0.wake_sleeper(&mut core);
        if core.closing {
            self.0.server.wake(); // the thread may be waiting for this rank only
        }
    }
}

impl<C: Carrier> Fabric<C> {
    fn server(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends this rank's worlds and the fabric, because the process exits while the rank is in a
    /// world. The other members receive `what` as the reason. Then waits as if the fabric were
    /// dropped. Does nothing if the process exits inside a call of the carrier, because such a call
    /// holds the lock.
    pub fn abandon(&self, what: &str) {
        let begun = Instant::now();
        let mut core = loop {
            match self.shared.core.try_lock() {
                Ok(core) => break core,
                // The fabric's thread holds the lock for less than this time.
                Err(TryLockError::WouldBlock) if begun.elapsed() < TIMES => std::thread::yield_now(),
                Err(_) => return,
            }
        };
        core.abandon(what);
        drop(core);
        self.close();
    }

    /// Waits until all that was written has arrived or can no longer arrive. Then nothing more is
    /// sent or received.
    fn close(&self) {
        let Some(server) = self.server().take() else { return };
        self.shared.lock().closing = true;
        self.shared.server.wake();
        if self.shared.lock().carrier.ends_in_background() {
            return;
        }
        if server.thread().id() == std::thread::current().id() {
            return; // a call of the carrier on this thread has exited the process
        }
        let _ = server.join();
        let mut core = self.shared.lock();
        let in_order = !core.has_failures();
        core.carrier.end(in_order);
    }
}

impl<C: Carrier> Drop for Fabric<C> {
    fn drop(&mut self) {
        self.close();
    }
}

/// The exit code of a process that ends because another process has failed.
const ABANDONED: i32 = 125;

/// Serves while the rank does not poll, and closes all connections at the end.
fn serve<C: Carrier>(shared: &FabricShared<C>) {
    let (mut calls, mut timed) = (0, Instant::now());
    // Whether the rank does not poll.
    let mut rank_absent = false;
    let mut soon = SOON;
    loop {
        let mut core = shared.lock();
        if core.closing {
            break;
        }
        let now = Instant::now();
        if now - timed >= TIMES {
            timed = now;
            let events = core.events;
            core.run_timers(now);
            core.send_all_releases();
            core.ask_awaited(now);
            if core.events != events {
                shared.wake_sleeper(&mut core);
            }
            core.wake_rank();
            // MPI_Finalize would wait for a rank that has failed, so some rank has to end the job.
            if core.grace_is_over(now) {
                core.carrier.end(false);
                // Some libraries return from MPI_Abort. This thread keeps the lock, so nothing more
                // is sent.
                std::process::exit(ABANDONED);
            }
        }
        let (here, tick) = match core.rank {
            RankState::AwaitsArrivals | RankState::Waits => (true, 5 * TICK),
            RankState::SleepsOnFutex(_) => (false, TICK),
            RankState::Busy => (core.calls != calls, TICK),
        };
        calls = core.calls;
        if here {
            if core.rank == RankState::Busy {
                // The rank polls, but it may never wait. A rank that never waits neither accepts
                // connections nor reads the requests of other ranks, so the thread does both here.
                C::serve_ready(&mut core);
                core.wake_rank();
            }
            let mut tick = if core.is_stuck() { TICK } else { tick * core.crowd };
            if core.requests.attended > 0 {
                soon = if std::mem::take(&mut core.has_slept) { SOON } else { soon };
                if core.rank != RankState::AwaitsArrivals {
                    tick = tick.min(soon * core.crowd);
                    soon = (2 * soon).min(TICK);
                }
            }
            let tick = tick.min(TIMES);
            core.next_check = Some(now + tick);
            if rank_absent && core.rank != RankState::AwaitsArrivals {
                C::unwatch(&mut core);
            }
            drop(core);
            rank_absent = false;
            shared.server.wait(tick);
            continue;
        }
        if !rank_absent {
            (rank_absent, soon) = (true, SOON);
            C::serve_ready(&mut core);
            if core.rank == RankState::Busy {
                core.send_all_releases();
            }
            core.wake_rank();
        }
        C::watch(&mut core);
        drop(core);
        shared.arrivals.wait_with(&shared.server, TIMES);
        let mut core = shared.lock();
        let on_futex = matches!(core.rank, RankState::SleepsOnFutex(_));
        if on_futex || core.rank == RankState::Busy && core.calls == calls {
            C::serve_ready(&mut core);
            core.wake_rank();
        }
    }
    loop {
        let mut core = shared.lock();
        let now = Instant::now();
        core.run_timers(now);
        C::serve_ready(&mut core);
        if core.close_all() || core.grace_is_over(now) {
            return;
        }
        C::watch(&mut core);
        drop(core);
        shared.arrivals.wait_with(&shared.server, TIMES);
    }
}
