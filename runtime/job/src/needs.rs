//! The minimum resources that the ranks of a job need on this machine. The launcher checks them
//! before it starts any rank, so that a job does not fail halfway for lack of resources.

use crate::cgroup::GroupLimits;
use fencepost_transport::call_failed;
use rustix::process::{
    PidfdFlags, Resource, geteuid, getpid, getrlimit, parent_process_death_signal, pidfd_open, setrlimit,
};
use std::io;

/// The threads of a rank: its own thread, a thread that listens to the launcher, and a thread that
/// serves connections.
const THREADS: u64 = 3;

/// A lower bound on the memory that a rank shares with no other process, in KiB. A program that
/// does nothing takes about twice as much.
const MEMORY_KIB: u64 = 1 << 10;

/// The resources of this machine; `None` if they are unknown or unlimited.
struct There {
    /// The number of threads that the system, this user or this control group may have, and the
    /// number that exist.
    threads: Option<(u64, u64)>,
    memory_kib: Option<u64>,
}

/// Checks that this machine has the resources that `here` ranks need. Raises the limit of open
/// descriptors if that is necessary and the system allows it.
///
/// # Errors
/// The machine has too little; the error states what is needed and what is available.
pub(crate) fn check(here: u32, captured: bool, hosts: usize) -> io::Result<()> {
    raise_descriptor_limit(here, captured, hosts)?;
    pidfd_open(getpid(), PidfdFlags::NONBLOCK).map_err(|errno| call_failed("pidfd_open", errno))?;
    parent_process_death_signal().map_err(|errno| call_failed("prctl", errno))?;
    There::now().suffices(here).map_err(io::Error::other)
}

impl There {
    fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
        let most = [number("/proc/sys/kernel/pid_max"), number("/proc/sys/kernel/threads-max")];
        // The fourth word has the number of threads that can run, and the number that exist.
        let running = || read("/proc/loadavg")?.split(['/', ' ']).nth(4)?.parse::<u64>().ok();
        let of_system = most.into_iter().flatten().min().zip(running());
        // The threads of the user are not counted here. The limit does not apply to the superuser.
        let of_user =
            getrlimit(Resource::Nproc).current.filter(|_| !geteuid().is_root()).map(|most| (most, 0));
        let memory_kib = || {
            let info = read("/proc/meminfo")?;
            let line = |name: &str| {
                info.lines()
                    .find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok())
            };
            Some(line("MemAvailable:")? + line("SwapFree:").unwrap_or(0))
        };
        let left = |&(most, now): &(u64, u64)| most.saturating_sub(now);
        let of_group = GroupLimits::now();
        Self {
            threads: [of_system, of_user, of_group.threads].into_iter().flatten().min_by_key(left),
            memory_kib: [memory_kib(), of_group.memory_kib].into_iter().flatten().min(),
        }
    }

    fn suffices(&self, here: u32) -> Result<(), String> {
        let threads = u64::from(here) * THREADS;
        if let Some((most, now)) = self.threads.filter(|(most, now)| now + threads > *most) {
            return Err(format!(
                "{here} ranks on this host need {threads} processes and threads, and {now} of at most {most} exist already: raise the limit (ulimit -u, kernel.pid_max, or pids.max of the control group), or start fewer ranks here"
            ));
        }
        let memory = u64::from(here) * MEMORY_KIB;
        if let Some(there) = self.memory_kib.filter(|there| memory > *there) {
            return Err(format!(
                "{here} ranks on this host need at least {} MiB of memory, and {} MiB are available: start fewer ranks here",
                memory >> 10,
                there >> 10
            ));
        }
        Ok(())
    }
}

/// Checks that the limit of open descriptors suffices for `here` ranks. Otherwise raises the limit
/// if the system allows that.
fn raise_descriptor_limit(here: u32, captured: bool, hosts: usize) -> io::Result<()> {
    // Each rank takes a process, a channel, a pipe for its errors, and another pipe if its output
    // is captured. Starting a rank takes some more.
    let needed = u64::from(here) * if captured { 4 } else { 3 } + hosts as u64 * 3 + 16;
    let mut limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|&current| current < needed) else { return Ok(()) };
    let most = limit.maximum.unwrap_or(u64::MAX);
    if most < needed {
        return Err(io::Error::other(format!(
            "{here} ranks on this host need {needed} open descriptors, and the limit is {current}: raise it (ulimit -n), or start fewer ranks here"
        )));
    }
    limit.current = Some(needed);
    Ok(setrlimit(Resource::Nofile, limit)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_named_with_what_there_is() {
        let there = |threads, memory_kib| There { threads, memory_kib };
        assert_eq!(there(None, None).suffices(1 << 18), Ok(()));
        assert_eq!(there(Some((1000, 100)), Some(300 << 10)).suffices(300), Ok(()));
        let few = there(Some((1000, 101)), None).suffices(300).expect_err("one thread too many");
        assert!(
            few.contains("300 ranks") && few.contains("900") && few.contains("1000") && few.contains("101"),
            "{few}"
        );
        let small = there(None, Some((300 << 10) - 1)).suffices(300).expect_err("too little memory");
        assert!(small.contains("300 MiB") && small.contains("299 MiB"), "{small}");
    }

    #[test]
    fn this_machine_says_what_it_has() {
        let There { threads, memory_kib } = There::now();
        assert!(threads.is_some_and(|(most, now)| now < most) && memory_kib.is_some_and(|kib| kib > 0));
        let error = check(u32::MAX, false, 1).expect_err("no machine has so much").to_string();
        assert!(error.contains("4294967295 ranks"), "{error}");
    }
}
