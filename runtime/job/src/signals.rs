//! [`Signals`]: makes signals to the launcher available to `poll`.

use rustix::fd::{AsFd, BorrowedFd};
use signal_hook::{SigId, consts, flag, low_level};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The signals that are forwarded to ranks.
const FORWARDED: [i32; 6] =
    [consts::SIGHUP, consts::SIGINT, consts::SIGQUIT, consts::SIGTERM, consts::SIGUSR1, consts::SIGUSR2];
/// The signals with which a shell suspends and continues a job.
const OF_SHELL: [i32; 2] = [consts::SIGTSTP, consts::SIGCONT];

/// Catches signals until it is dropped.
pub(crate) struct Signals {
    pipe: UnixStream,
    caught: Vec<(i32, Arc<AtomicBool>)>,
    ids: Vec<SigId>,
    /// Whether a terminal may stop this process when the process writes in the background. This is
    /// the case if the process did not ignore SIGTTOU before and a shell exists to continue the
    /// process.
    stops_by_terminal: bool,
}

impl Signals {
    /// Starts to catch the signals that are forwarded to ranks, and, if `of_shell`, also those with
    /// which a shell suspends a job. Signals that this process ignores (`nohup`, a shell's `&`)
    /// stay ignored. From then on the process also ignores the signals with which a terminal stops
    /// background processes, and checks the state of the terminal before it reads or writes.
    pub(crate) fn new(of_shell: bool) -> io::Result<Self> {
        let ignored = ignored();
        let is_ignored = |signal: i32| ignored >> (signal - 1) & 1 == 1;
        ignore_stops_by_terminal();
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let stops_by_terminal = of_shell && !is_ignored(consts::SIGTTOU);
        let mut signals = Self { pipe, caught: Vec::new(), ids: Vec::new(), stops_by_terminal };
        let more = OF_SHELL.into_iter().filter(|_| of_shell);
        for signal in FORWARDED.into_iter().chain(more).filter(|signal| !is_ignored(*signal)) {
            let caught = Arc::new(AtomicBool::new(false));
            signals.caught.push((signal, caught.clone()));
            // The flag is registered first, so that the flag is set when the pipe becomes readable.
            signals.ids.push(flag::register(signal, caught)?);
            signals.ids.push(low_level::pipe::register(signal, write.try_clone()?)?);
        }
        Ok(signals)
    }

    /// Returns the descriptor that is readable after a signal.
    pub(crate) fn source(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Returns whether a terminal may stop this process when the process writes in the background.
    pub(crate) fn stops_by_terminal(&self) -> bool {
        self.stops_by_terminal
    }

    /// With SIGTSTP, stops this process as Ctrl-Z does. With SIGTTOU, stops its whole process
    /// group, as a terminal does when a background process writes to it. Returns when the shell
    /// continues the process. Returns at once if SIGCONT has already arrived, or if no shell could
    /// send it because the process group is orphaned.
    pub(crate) fn stop(&mut self, signal: i32) {
        if self.has_come(consts::SIGCONT) {
            return;
        }
        stop(signal);
        // A process that was really stopped has received SIGCONT since.
        self.stops_by_terminal &= self.has_come(consts::SIGCONT);
    }

    /// Returns whether `signal` was caught and [`take`](Self::take) has not returned it yet.
    pub(crate) fn has_come(&self, signal: i32) -> bool {
        self.caught.iter().any(|(one, caught)| *one == signal && caught.load(Ordering::Acquire))
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

/// Ignores the signals by which a terminal stops a process that reads or writes in the background.
/// With these signals ignored, the process may write to the terminal and change the terminal's
/// settings. Reading from the terminal is an error. May be called between fork and exec.
pub(crate) fn ignore_stops_by_terminal() {
    for signal in [libc::SIGTTOU, libc::SIGTTIN] {
        // SAFETY: one system call; no code of this process runs at the signal.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Stops this process; see [`Signals::stop`].
fn stop(signal: i32) {
    // SAFETY: the action is set to the default one and back; the signal stops all threads.
    unsafe {
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        let mut ours: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, &raw const default, &raw mut ours);
        if signal == libc::SIGTTOU {
            libc::kill(0, signal);
        } else {
            libc::raise(signal);
        }
        libc::sigaction(signal, &raw const ours, std::ptr::null_mut());
    }
}

/// Returns the set of signals that this process ignores; signal 1 is the lowest bit.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
