//! [`Orphans`]: the processes that the ranks of an attempt have left behind on this machine.
//!
//! If another host of the job is this machine, the ranks of that host die with the agent that
//! started them. A program dies with the wrapper around it. But a killed process takes a while to
//! end, and until then it holds its memory and its locks. The launcher becomes the parent of such
//! processes, so that it can kill them and wait for them.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal,
    set_child_subreaper, waitid,
};

pub(crate) struct Orphans {
    /// The children that this process had before it started a rank. They do not belong to the job.
    others: Vec<Pid>,
}

impl Orphans {
    /// Makes this process the parent of all processes that descend from it and lose their parent.
    pub(crate) fn adopt() -> Self {
        // An error means that the system is too old. In that case no process is awaited.
        let _: rustix::io::Result<()> = set_child_subreaper(Some(getpid()));
        Self { others: children() }
    }

    /// Kills the orphans, and returns those that have not ended yet. The caller must have reaped
    /// the ranks that this process has started.
    pub(crate) fn kill(&self) -> Vec<OwnedFd> {
        let (mut seen, mut left) = (self.others.clone(), Vec::new());
        // The children of an orphan become orphans when the orphan has ended.
        loop {
            let orphans: Vec<Pid> = children().into_iter().filter(|child| !seen.contains(child)).collect();
            if orphans.is_empty() {
                return left;
            }
            seen.extend(&orphans);
            for process in orphans.iter().filter_map(|&pid| pidfd_open(pid, PidfdFlags::empty()).ok()) {
                let _: rustix::io::Result<()> = pidfd_send_signal(&process, Signal::KILL);
                let mut fds = [PollFd::new(&process, PollFlags::IN)];
                if matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1)) {
                    let _ = waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::EXITED);
                } else {
                    left.push(process);
                }
            }
        }
    }
}

/// Returns the children of this process, as far as the system lists them.
fn children() -> Vec<Pid> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |list: String| -> Vec<Pid> {
        list.split_whitespace().filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect()
    };
    lists.flat_map(numbers).collect()
}
