//! [`InputSource`] and [`InputPipe`]: pass the standard input of the launcher on to the standard
//! input of rank 0.
//!
//! If rank 0 is on the launcher's host, it inherits an input that is a file or a pipe. The launcher
//! reads a terminal itself, since each rank is in a process group of its own, which may not read
//! the terminal. If rank 0 is on another host, the launcher reads any input itself and sends it to
//! that host.

use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::{isatty, tcgetpgrp};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How often to check whether this process may read its terminal, since no event reports that.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The longest piece of input that is in transit at a time.
const PIECE: usize = 1 << 14;

/// The standard input of this process. Only one piece of it is in transit at a time, so the input
/// that a rank does not read remains available to other processes.
pub(crate) struct InputSource {
    /// A terminal or pipe that this process has opened again in nonblocking mode. A read then does
    /// not block if another process reads the same input, and the descriptors of other processes
    /// keep their mode. `None` for other inputs, which are read directly: a socket cannot be opened
    /// again, and a file would be read from its beginning.
    own: Option<OwnedFd>,
    is_terminal: bool,
    /// Whether more input may follow.
    open: bool,
    /// Whether a piece is in transit.
    on_its_way: bool,
}

impl InputSource {
    /// Opens the standard input. It is passed on only if `passes`.
    pub(crate) fn new(passes: bool) -> Self {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let is_pipe =
            || fstat(stdin()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
        let again = passes && (is_terminal() || is_pipe());
        let own = again.then(|| open("/proc/self/fd/0", flags, Mode::empty()).ok()).flatten();
        Self { own, is_terminal: is_terminal(), open: passes, on_its_way: false }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.own.as_ref().map_or(stdin(), AsFd::as_fd)
    }

    /// Adds the standard input to a list for `poll` if a piece of it may be read now. Returns
    /// whether it was added.
    pub(crate) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) -> bool {
        let watched = self.open && !self.on_its_way && self.may_read();
        if watched {
            fds.push(PollFd::from_borrowed_fd(self.descriptor(), PollFlags::IN));
        }
        watched
    }

    /// Returns the time at which to check again whether the terminal may be read.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let waits = self.open && !self.on_its_way && !self.may_read();
        waits.then(|| Instant::now() + LOOK_AGAIN)
    }

    /// Returns whether this process may read its input. A background process may not read its own
    /// terminal, but may read any other terminal.
    fn may_read(&self) -> bool {
        !self.is_terminal || tcgetpgrp(stdin()).map_or(true, |group| group == getpgrp())
    }

    /// Reads the next piece after `poll` has found the input ready. An empty piece is the end of
    /// the input.
    pub(crate) fn read(&mut self) -> Option<Vec<u8>> {
        if !self.may_read() {
            return None;
        }
        let mut bytes = vec![0; PIECE];
        let count = match rustix::io::read(self.descriptor(), &mut bytes) {
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return None,
            // This process went into the background after the check above.
            Err(Errno::IO) if !self.may_read() => return None,
            Err(_) => 0, // closed, or the terminal is gone
        };
        bytes.truncate(count);
        (self.open, self.on_its_way) = (count > 0, true);
        Some(bytes)
    }

    /// Stops reading, since rank 0 has ended.
    pub(crate) fn close(&mut self) {
        self.open = false;
    }

    /// Notes that the piece in transit has been passed on; `more` is whether rank 0 still reads.
    pub(crate) fn taken(&mut self, more: bool) {
        (self.open, self.on_its_way) = (self.open && more, false);
    }
}

/// Returns whether the standard input is a terminal.
pub(crate) fn is_terminal() -> bool {
    isatty(stdin())
}

/// The writing end of a rank's standard input, in the process that started the rank. No function
/// blocks.
pub(crate) struct InputPipe {
    pipe: Option<OwnedFd>,
    unwritten: VecDeque<u8>,
    /// Whether the input ends after `unwritten`.
    ends: bool,
}

impl InputPipe {
    /// Makes the writing end of a rank's input nonblocking.
    ///
    /// # Errors
    /// The system call failed.
    pub(crate) fn new(pipe: OwnedFd) -> rustix::io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe: Some(pipe), unwritten: VecDeque::new(), ends: false })
    }

    /// Passes on a piece. An empty piece is the end of the input.
    pub(crate) fn give(&mut self, bytes: &[u8]) {
        self.ends |= bytes.is_empty();
        self.unwritten.extend(bytes);
        self.flush();
    }

    /// Returns whether everything has been passed on, or the rank reads no more.
    pub(crate) fn is_empty(&self) -> bool {
        self.unwritten.is_empty()
    }

    /// Returns whether the rank may read more.
    pub(crate) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Returns the pipe if bytes wait for room in it.
    pub(crate) fn waits(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref().filter(|_| !self.unwritten.is_empty())
    }

    /// Writes as many bytes as there is room for.
    pub(crate) fn flush(&mut self) {
        while let Some(pipe) = self.pipe.as_ref().filter(|_| !self.unwritten.is_empty()) {
            match rustix::io::write(pipe, self.unwritten.as_slices().0) {
                Ok(count) => drop(self.unwritten.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.pipe = None,
            }
        }
        if self.pipe.is_none() {
            self.unwritten.clear();
        } else if self.ends {
            self.pipe = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    #[test]
    fn input_is_passed_on_as_far_as_it_is_read_and_then_ends() {
        let (from, to) = rustix::pipe::pipe().expect("a pipe");
        let mut pipe = InputPipe::new(to).expect("it is open");
        let all: Vec<u8> = (0..300_000_u32).map(|at| at as u8).collect();
        pipe.give(&all);
        assert!(pipe.waits().is_some(), "a pipe has room for 64 KiB");
        pipe.give(&[]);
        let reader = std::thread::spawn(move || {
            let mut read = Vec::new();
            File::from(from).read_to_end(&mut read).map(|_| read)
        });
        while let Some(waits) = pipe.waits() {
            let mut fds = [PollFd::new(waits, PollFlags::OUT)];
            rustix::event::poll(&mut fds, None).expect("poll");
            pipe.flush();
        }
        assert_eq!(reader.join().expect("it reads").expect("a pipe"), all);
        assert!(pipe.is_empty());
    }

    #[test]
    fn input_of_a_rank_that_has_closed_its_own_is_discarded() {
        let (from, to) = rustix::pipe::pipe().expect("a pipe");
        let mut pipe = InputPipe::new(to).expect("it is open");
        drop(from);
        pipe.give(b"lost");
        assert!(pipe.is_empty() && pipe.waits().is_none());
    }
}
