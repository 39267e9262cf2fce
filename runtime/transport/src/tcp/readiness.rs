//! [`Readiness`]: the kernel's list of the sockets that have bytes to read or room to write.
//!
//! Each socket is registered once, when it is opened. So the cost of a wait depends on the sockets
//! on which something happens, and not on the number of all sockets. A socket with unread bytes is
//! reported again (level-triggered), so a poll need not remember which sockets it has left unread.
//! A connection is removed before it is closed, since a forked process may keep its descriptor
//! open.
//!
//! The kernel records each arrival at a registered socket, which takes a fiftieth of the time of a
//! short exchange. So a process with few connections registers them only before a thread waits, and
//! polls each of them until then.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, epoll, poll};

use crate::fabric::carrier::Arrivals;
use crate::fabric::waker::{EventWaker, timespec};

/// The largest number of sockets that one poll reports. The next poll begins with the others.
const AT_ONCE: usize = 128;

/// A source of events, such as a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Listener,
    /// The connection to this rank.
    Peer(usize),
    /// The connection that this process is opening to this rank.
    Attempt(usize),
    /// The connection with this descriptor, which another process is opening.
    Incoming(RawFd),
    /// The waker, with which another thread wakes the waiting thread.
    Waker,
}

impl Source {
    /// Returns a word with the kind in the high half, and the rank or descriptor in the low half.
    fn encoded(self) -> u64 {
        match self {
            Source::Listener => 0,
            Source::Waker => 1 << 32,
            Source::Peer(rank) => 2 << 32 | rank as u64,
            Source::Attempt(rank) => 3 << 32 | rank as u64,
            Source::Incoming(descriptor) => 4 << 32 | u64::from(descriptor.cast_unsigned()),
        }
    }

    fn decoded(word: u64) -> Self {
        let number = word as u32;
        match word >> 32 {
            0 => Source::Listener,
            1 => Source::Waker,
            2 => Source::Peer(number as usize),
            3 => Source::Attempt(number as usize),
            _ => Source::Incoming(number.cast_signed()),
        }
    }
}

/// The events that are awaited at a socket, in addition to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Interest {
    Bytes,
    Room,
    Both,
    Nothing,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        match self {
            Interest::Bytes => epoll::EventFlags::IN,
            Interest::Room => epoll::EventFlags::OUT,
            Interest::Nothing => epoll::EventFlags::empty(),
            Interest::Both => epoll::EventFlags::IN | epoll::EventFlags::OUT,
        }
    }
}

/// The sockets of a process.
pub struct Readiness(OwnedFd);

impl Readiness {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Registers a socket.
    ///
    /// # Errors
    /// Fails if the system watches no more sockets for this user.
    pub(super) fn add(&self, socket: impl AsFd, source: Source, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.0, socket, epoll::EventData::new_u64(source.encoded()), interest.flags())?)
    }

    /// Changes the source and the interest with which a socket is registered.
    ///
    /// # Errors
    /// Fails if the socket is not registered.
    pub(super) fn modify(&self, socket: impl AsFd, source: Source, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.0, socket, epoll::EventData::new_u64(source.encoded()), interest.flags())?)
    }

    /// Removes a socket.
    ///
    /// # Errors
    /// Fails if the socket is not registered.
    pub(super) fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.0, socket)?)
    }
}

impl Arrivals for Readiness {
    type Found = Vec<Source>;

    fn wait(&self, limit: Duration, ready: &mut Vec<Source>) -> bool {
        ready.clear();
        let mut events = [MaybeUninit::uninit(); AT_ONCE];
        // An interrupted wait finds nothing, and its caller waits again.
        if let Ok((found, _)) = epoll::wait(&self.0, &mut events, Some(&timespec(limit))) {
            ready.extend(found.iter().map(|event| Source::decoded(event.data.u64())));
        }
        ready.len() < AT_ONCE
    }

    fn wait_with(&self, waker: &EventWaker, limit: Duration) {
        let mut fds = [PollFd::new(waker, PollFlags::IN), PollFd::new(&self.0, PollFlags::IN)];
        let _: rustix::io::Result<usize> = poll(&mut fds, Some(&timespec(limit)));
        waker.drain();
    }
}
