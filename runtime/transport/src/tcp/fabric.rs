//! [`Fabric`]: a process' connections, and the thread that serves them while its rank computes.
//!
//! The rank reads for itself whenever it looks, and sleeps on the sockets itself. The thread looks every other
//! millisecond whether the rank was here since; only when it was not does it begin to wait on the sockets, too, and
//! it ceases as soon as the rank is back. So a message wakes one thread, and the right one. Beats, limits and what is
//! owed go by time, and are the thread's in any case.
//!
//! Nobody reads in the other's stead unnoticed: the rank says under the lock that it falls asleep, and only if nothing
//! has come since it last looked; while it sleeps the thread reads nothing, and wakes it for whatever else there is. A rank
//! that also waits for others, which share memory with it, sleeps where those can wake it: then the thread reads at once,
//! and wakes it there.

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

/// How often the thread looks whether the rank was here.
const TICK: Duration = Duration::from_millis(2);

/// How often it does what is due by time.
const TIMES: Duration = Duration::from_millis(100);

/// A process' connections to the other ranks of its job. Dropping it waits until all that was said has come.
pub struct Fabric {
    shared: Arc<Shared>,
    server: Option<JoinHandle<()>>,
}

pub(super) struct Shared {
    core: Mutex<Core>,
    /// Wakes the rank, and the thread.
    rank: Bell,
    server: Bell,
}

/// Wakes one who waits for sockets.
struct Bell {
    ring: UnixStream,
    hear: UnixStream,
}

impl Bell {
    fn new() -> io::Result<Self> {
        let (ring, hear) = UnixStream::pair()?;
        ring.set_nonblocking(true)?;
        hear.set_nonblocking(true)?;
        Ok(Self { ring, hear })
    }

    fn ring(&self) {
        // Where it can't be written, enough is written already.
        let _ = (&self.ring).write(&[0]);
    }

    fn hush(&self) {
        while matches!((&self.hear).read(&mut [0; 64]), Ok(1..)) {}
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        // What a panic left is what was said last; whoever goes on finds it whole.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tidy up before sleeping; none, if something has come since `seen`.
    fn calm(&self, seen: &mut u64) -> Option<MutexGuard<'_, Core>> {
        let mut core = self.lock();
        core.calls += 1;
        core.tidy();
        core.face_missed();
        if core.news == *seen {
            core.pay(); // which may come upon something
        }
        if core.news != *seen {
            *seen = core.news;
            return None;
        }
        Some(core)
    }

    /// The rank falls asleep elsewhere, unless something has come since `seen`: gives whether it may.
    pub(super) fn hand_over(&self, seen: &mut u64) -> bool {
        let Some(mut core) = self.calm(seen) else { return false };
        core.minded = Some(core.news);
        drop(core);
        self.server.ring();
        true
    }

    /// Sleep until something has come, unless something has since `seen`; at most a second.
    pub(super) fn sleep(&self, seen: &mut u64) {
        let Some(mut core) = self.calm(seen) else { return };
        let sources = core.sources();
        core.asleep = true;
        drop(core);
        let ready = wait(&self.rank, sources, Duration::from_secs(1));
        let mut core = self.lock();
        core.asleep = false;
        core.calls += 1;
        core.serve(&ready);
        *seen = core.news;
    }
}

/// Wait until one of these can be served.
fn wait(bell: &Bell, sources: Vec<(Source, Stream, PollFlags)>, limit: Duration) -> Vec<Source> {
    let mut fds = vec![PollFd::new(&bell.hear, PollFlags::IN)];
    fds.extend(sources.iter().map(|(_, stream, flags)| PollFd::new(stream, *flags)));
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    let Ok(1..) = poll(&mut fds, Some(&limit)) else { return Vec::new() };
    if !fds[0].revents().is_empty() {
        bell.hush();
    }
    let ready = fds[1..].iter().zip(&sources).filter(|(fd, _)| !fd.revents().is_empty());
    ready.map(|(_, (source, ..))| *source).collect()
}

impl Fabric {
    /// The fabric of `rank`, which is reached at `listener`; see [`listen`](crate::tcp::listen).
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
        // Until the table comes, nobody is let in.
        let identity = Identity { secret, job, rank, size: 0, sealed: settings.sealed };
        let core = Mutex::new(Core::new(identity, settings, listener, Instant::now()));
        let shared = Arc::new(Shared { core, rank: Bell::new()?, server: Bell::new()? });
        Ok(Self { shared, server: None })
    }

    /// Where it is reached.
    ///
    /// # Errors
    /// The listener is none.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.shared.lock().listener.local_addr()
    }

    /// Where all ranks of the job are reached, by rank. Once, before the first world.
    ///
    /// # Errors
    /// There can be no thread, or this rank is none of them.
    pub fn table(&mut self, addresses: &[SocketAddr]) -> io::Result<()> {
        let rank = {
            let mut core = self.shared.lock();
            if self.server.is_some() || core.identity.rank as usize >= addresses.len() {
                return Err(io::Error::other("a table that does not belong to this fabric"));
            }
            core.table(addresses, Instant::now());
            core.identity.rank
        };
        let shared = self.shared.clone();
        let server = std::thread::Builder::new().name(format!("fabric {rank}"));
        self.server = Some(server.spawn(move || serve(&shared))?);
        Ok(())
    }

    /// `rank` has died, as this says. From any thread.
    pub fn strike(&self, rank: usize, what: &str) {
        let mut core = self.shared.lock();
        core.die(rank, what.into());
        core.rouse();
        drop(core);
        self.shared.rank.ring();
    }

    /// These ranks, this one too, are reached otherwise, and this wakes the rank of this process where it waits for them.
    /// Once the table is known.
    /// Their waits are written down here.
    pub(crate) fn beside(&self, ranks: &[usize], waker: Box<dyn Fn() + Send>, waits: Table) {
        self.shared.lock().set_beside(ranks, waker, waits);
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.server.ring();
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

/// Serve while the rank is elsewhere, and part from everybody at the end.
fn serve(shared: &Shared) {
    let (mut calls, mut timed) = (0, Instant::now());
    // Whether the rank is elsewhere.
    let mut alone = false;
    loop {
        let mut core = shared.lock();
        if core.closing {
            break;
        }
        let now = Instant::now();
        if now - timed >= TIMES {
            timed = now;
            let news = core.news;
            core.times(now);
            core.pay_all();
            if core.asleep && core.news != news {
                shared.rank.ring();
            }
            core.rouse();
        }
        let here = core.asleep || core.minded.is_none() && core.calls != calls;
        calls = core.calls;
        if here {
            let tick = if core.asleep { 5 * TICK } else { TICK };
            drop(core);
            alone = false;
            wait(&shared.server, Vec::new(), tick);
            continue;
        }
        if !alone {
            alone = true;
            core.serve_all();
            if core.minded.is_none() {
                core.pay_all();
            }
            core.rouse();
        }
        let sources = core.sources();
        drop(core);
        let ready = wait(&shared.server, sources, TIMES);
        let mut core = shared.lock();
        if core.minded.is_some() || !core.asleep && core.calls == calls {
            core.serve(&ready);
            core.rouse();
        }
    }
    loop {
        let mut core = shared.lock();
        core.times(Instant::now());
        core.serve_all();
        if core.part() {
            return;
        }
        let sources = core.sources();
        drop(core);
        wait(&shared.server, sources, TIMES);
    }
}
