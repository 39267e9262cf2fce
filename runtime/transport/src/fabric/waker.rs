//! [`EventWaker`]: wakes one thread that waits.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// A waker of one thread that waits.
pub struct EventWaker(OwnedFd);

impl EventWaker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn wake(&self) {
        // If the counter is full, the thread will wake anyway.
        let _: rustix::io::Result<usize> = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(crate) fn drain(&self) {
        let _: rustix::io::Result<usize> = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }

    /// Waits for a wake-up, at most for `limit`.
    pub(crate) fn wait(&self, limit: Duration) {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        if let Ok(1..) = poll(&mut fds, Some(&timespec(limit))) {
            self.drain();
        }
    }
}

impl AsFd for EventWaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(crate) fn timespec(limit: Duration) -> Timespec {
    Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() }
}
