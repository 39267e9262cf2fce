//! [`Signals`]: makes signals to the launcher available to `poll`.

use rustix::fd::{AsFd, BorrowedFd};
use signal_hook::{SigId, consts, flag, low_level};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The signals that are forwarded to ranks.
const SIGNALS: [i32; 6] =
    [consts::SIGHUP, consts::SIGINT, consts::SIGQUIT, consts::SIGTERM, consts::SIGUSR1, consts::SIGUSR2];

/// Catches signals until it is dropped.
pub(crate) struct Signals {
    pipe: UnixStream,
    caught: Vec<(i32, Arc<AtomicBool>)>,
    ids: Vec<SigId>,
}

impl Signals {
    /// Starts to catch signals, except those that this process ignores (`nohup`, a shell's `&`).
    pub(crate) fn new() -> io::Result<Self> {
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let mut signals = Self { pipe, caught: Vec::new(), ids: Vec::new() };
        let ignored = ignored();
        for signal in SIGNALS.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0) {
            let caught = Arc::new(AtomicBool::new(false));
            signals.caught.push((signal, caught.clone()));
            // The flag is registered first, so that it is set when the pipe becomes readable.
            signals.ids.push(flag::register(signal, caught)?);
            signals.ids.push(low_level::pipe::register(signal, write.try_clone()?)?);
        }
        Ok(signals)
    }

    /// The descriptor that is readable after a signal.
    pub(crate) fn source(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Returns the signals caught since the last call.
    pub(crate) fn take(&mut self) -> Vec<i32> {
        let mut bytes = [0; 64];
        while self.pipe.read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
        let was_caught = |(signal, caught): &(i32, Arc<AtomicBool>)| {
            caught.swap(false, Ordering::AcqRel).then_some(*signal)
        };
        self.caught.iter().filter_map(was_caught).collect()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            low_level::unregister(id);
        }
    }
}

/// The set of signals that this process ignores; signal 1 is the lowest bit.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
