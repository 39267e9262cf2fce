//! [`Fabric`]: the connections of a process, and the thread that serves them while its rank computes.
//!
//! The rank reads the sockets itself whenever it polls, and sleeps on the sockets itself. Every two milliseconds the
//! thread checks whether the rank has polled since; only if it has not does the thread wait on the sockets as well, and
//! it stops as soon as the rank polls again. So a message wakes one thread, and the right one. Heartbeats, time limits
//! and pending releases are due by time, and are always the thread's.
//!
//! Neither reads in the other's place unnoticed: the rank declares under the lock that it falls asleep, and only if
//! nothing has arrived since it last polled; while it sleeps, the thread reads nothing, and wakes it for every other
//! event. A rank that also waits for ranks with which it shares memory sleeps on its futex, where those can wake it:
//! then the thread reads at once, and wakes it there.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::auth::{Identity, Secret};
use crate::deadlock::Table;
use crate::tcp::Settings;
use crate::tcp::core::Core;
use crate::tcp::poll::{Source, Stream};

/// How often the thread checks whether the rank has polled.
const TICK: Duration = Duration::from_millis(2);

/// How often the thread does what is due by time.
const TIMES: Duration = Duration::from_millis(100);

/// The connections of a process to the other ranks of its job. Dropping it waits until everything sent has arrived.
pub struct Fabric {
    shared: Arc<FabricShared>,
    server: Option<JoinHandle<()>>,
}

pub(super) struct FabricShared {
    core: Mutex<Core>,
    /// Wakes the rank; the next field wakes the thread.
    rank: PollWaker,
    server: PollWaker,
}

/// Wakes a thread that waits for sockets.
struct PollWaker {
    sender: UnixStream,
    receiver: UnixStream,
}

impl PollWaker {
    fn new() -> io::Result<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(Self { sender, receiver })
    }

    fn wake(&self) {
        // If the pipe is full, the thread will wake.
        let _ = (&self.sender).write(&[0]);
    }

    fn drain(&self) {
        while matches!((&self.receiver).read(&mut [0; 64]), Ok(1..)) {}
    }
}

impl FabricShared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic leaves the core as the last completed item made it, which is consistent.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Flushes before sleeping; returns `None` if something has arrived since `seen`.
    fn prepare_to_sleep(&self, seen: &mut u64) -> Option<MutexGuard<'_, Core>> {
        let mut core = self.lock();
        core.calls += 1;
        core.serve_awaited();
        core.flush_dirty();
        if core.events == *seen {
            core.send_pending_releases(); // which may find something
        }
        if core.events != *seen {
            *seen = core.events;
            return None;
        }
        Some(core)
    }

    /// Lets the rank sleep on its futex, unless something has arrived since `seen`: returns whether it may.
    pub(super) fn hand_over(&self, seen: &mut u64) -> bool {
        let Some(mut core) = self.prepare_to_sleep(seen) else { return false };
        core.slept_at_event = Some(core.events);
        drop(core);
        self.server.wake();
        true
    }

    /// Sleeps until something arrives, unless something has since `seen`; at most a second.
    pub(super) fn sleep(&self, seen: &mut u64) {
        let Some(mut core) = self.prepare_to_sleep(seen) else { return };
        let sources = core.sources();
        core.asleep = true;
        drop(core);
        let ready = wait(&self.rank, sources, Duration::from_secs(1));
        let mut core = self.lock();
        core.asleep = false;
        core.calls += 1;
        core.serve(&ready);
        *seen = core.events;
    }
}

/// Waits until one of these sources is ready.
fn wait(waker: &PollWaker, sources: Vec<(Source, Stream, PollFlags)>, limit: Duration) -> Vec<Source> {
    let mut fds = vec![PollFd::new(&waker.receiver, PollFlags::IN)];
    fds.extend(sources.iter().map(|(_, stream, flags)| PollFd::new(stream, *flags)));
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    let Ok(1..) = poll(&mut fds, Some(&limit)) else { return Vec::new() };
    if !fds[0].revents().is_empty() {
        waker.drain();
    }
    let ready = fds[1..].iter().zip(&sources).filter(|(fd, _)| !fd.revents().is_empty());
    ready.map(|(_, (source, ..))| *source).collect()
}

impl Fabric {
    /// Creates the fabric of `rank`, which other ranks reach at `listener`; see [`listen`](crate::tcp::listen).
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn new(
        listener: TcpListener,
        secret: Secret,
        job: [u8; 16],
        rank: usize,
        settings: Settings,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let rank = u32::try_from(rank).map_err(io::Error::other)?;
        // Until the table of addresses is set, no handshake succeeds.
        let identity = Identity { secret, job, rank, size: 0, sealed: settings.sealed };
        let core = Mutex::new(Core::new(identity, settings, listener, Instant::now()));
        let shared = Arc::new(FabricShared { core, rank: PollWaker::new()?, server: PollWaker::new()? });
        Ok(Self { shared, server: None })
    }

    /// Returns the address of the listener.
    ///
    /// # Errors
    /// The listener has no address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.shared.lock().listener.local_addr()
    }

    /// Sets the addresses of all ranks of the job, by rank. Called once, before the first world.
    ///
    /// # Errors
    /// The thread cannot be started, or this rank has no address in the table.
    pub fn table(&mut self, addresses: &[SocketAddr]) -> io::Result<()> {
        let rank = {
            let mut core = self.shared.lock();
            if self.server.is_some() || core.identity.rank as usize >= addresses.len() {
                return Err(io::Error::other(
                    "the table of addresses is set already, or has no entry for this rank",
                ));
            }
            core.table(addresses, Instant::now());
            core.identity.rank
        };
        let shared = self.shared.clone();
        let server = std::thread::Builder::new().name(format!("fabric {rank}"));
        self.server = Some(server.spawn(move || serve(&shared))?);
        Ok(())
    }

    /// Marks `rank` failed, for this reason. May be called from any thread.
    pub fn mark_failed(&self, rank: usize, what: &str) {
        let mut core = self.shared.lock();
        core.mark_failed(rank, what.into());
        core.wake_rank();
        drop(core);
        self.shared.rank.wake();
    }

    /// Declares these ranks, this one included, to be on this node, reached by shared memory; `waker` wakes the rank of
    /// this process where it waits for them, and `waits` has their entries. Called once the table is set.
    pub(crate) fn set_intra_node(&self, ranks: &[usize], waker: Box<dyn Fn() + Send>, waits: Table) {
        self.shared.lock().set_intra_node(ranks, waker, waits);
    }

    pub(super) fn shared(&self) -> &Arc<FabricShared> {
        &self.shared
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.server.wake();
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

/// Serves while the rank does not poll, and closes all connections at the end.
fn serve(shared: &FabricShared) {
    let (mut calls, mut timed) = (0, Instant::now());
    // Whether the rank does not poll.
    let mut rank_absent = false;
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
            core.send_piggyback();
            if core.asleep && core.events != events {
                shared.rank.wake();
            }
            core.wake_rank();
        }
        let here = core.asleep || core.slept_at_event.is_none() && core.calls != calls;
        calls = core.calls;
        if here {
            let tick = if core.asleep { 5 * TICK } else { TICK };
            drop(core);
            rank_absent = false;
            wait(&shared.server, Vec::new(), tick);
            continue;
        }
        if !rank_absent {
            rank_absent = true;
            core.serve_all();
            if core.slept_at_event.is_none() {
                core.send_piggyback();
            }
            core.wake_rank();
        }
        let sources = core.sources();
        drop(core);
        let ready = wait(&shared.server, sources, TIMES);
        let mut core = shared.lock();
        if core.slept_at_event.is_some() || !core.asleep && core.calls == calls {
            core.serve(&ready);
            core.wake_rank();
        }
    }
    loop {
        let mut core = shared.lock();
        core.run_timers(Instant::now());
        core.serve_all();
        if core.close_all() {
            return;
        }
        let sources = core.sources();
        drop(core);
        wait(&shared.server, sources, TIMES);
    }
}
