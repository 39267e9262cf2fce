//! The attempts at a job: after a failure that the program has not caused, the launcher starts the
//! job again.
//!
//! Nothing of an attempt is left when the next attempt starts. Its ranks, its remote commands and
//! the memory of its ranks are gone, so the locks that its processes held are free. Rank 0 of the
//! next attempt gets the rest of the standard input.

use crate::description::Limits;
use crate::exit::{FAILED, STOPPED};
use crate::launcher::{RunningJob, Snapshot};
use crate::orphans::Orphans;
use crate::relay::{OutputRelay, report};
use crate::signals::Signals;
use crate::start::{Host, RANKS_MAX, Start};
use std::io;
use std::time::{Duration, Instant};

/// How long the launcher waits after the first attempt that has taken no snapshot. The wait doubles
/// with each further attempt without a snapshot.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait for the next attempt.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl Start {
    /// Runs the job until every rank has ended, and starts it again as often as
    /// [`restarts`](Self::restarts) allows. Reports what failed, and returns the exit code of the
    /// last attempt.
    pub fn run(mut self) -> u8 {
        let not_started = |error: io::Error| {
            report(&format!("the job can't be started: {error}"));
            FAILED
        };
        let mut signals = match self.check().and_then(|()| Signals::new(true)) {
            Ok(signals) => signals,
            Err(error) => return not_started(error),
        };
        let mut relay = OutputRelay::new(self.tag_output);
        let mut attempts = Attempts::new(self.restarts);
        let mut timeout = self.timeout.map(|time| Instant::now() + time);
        loop {
            let mut running = match RunningJob::new(&self, (&mut relay, &mut signals), timeout) {
                Ok(running) => running,
                Err(error) => {
                    relay.flush();
                    return not_started(error);
                }
            };
            running.start(&self);
            running.watch();
            if let Some(code) = attempts.on_end(&mut running, &mut self) {
                return running.drain_output(code);
            }
            timeout = running.timeout();
        }
    }

    /// Checks that the job is not too large, for its kind and for this machine.
    fn check(&self) -> io::Result<()> {
        let size = self.hosts.iter().map(|host| u64::from(host.ranks)).sum::<u64>();
        if size > u64::from(RANKS_MAX) {
            return Err(io::Error::other(format!("it has {size} ranks; a job has at most {RANKS_MAX}")));
        }
        let here = self.hosts.iter().filter(|host| host.remote.is_empty()).map(|host| host.ranks).sum();
        crate::needs::check(here, self.tag_output, self.hosts.len())
    }
}

struct Attempts {
    /// The number of the running attempt, from 1.
    number: u64,
    /// The largest number of attempts.
    most: u64,
    /// The last snapshot of all attempts.
    snapshot: Option<Snapshot>,
    /// How long to wait after the next attempt that takes no snapshot.
    wait: Duration,
    /// `None` if there is only one attempt.
    orphans: Option<Orphans>,
}

impl Attempts {
    fn new(restarts: u32) -> Self {
        Self {
            number: 1,
            most: u64::from(restarts) + 1,
            snapshot: None,
            wait: FIRST_WAIT,
            orphans: (restarts > 0).then(Orphans::adopt),
        }
    }

    /// Handles the end of an attempt. Returns the exit code of the job if that was the last
    /// attempt. Otherwise announces the next attempt, removes from `start` the hosts that the next
    /// attempt leaves out, and returns when that attempt may begin.
    fn on_end(&mut self, running: &mut RunningJob<'_>, start: &mut Start) -> Option<u8> {
        let wait = self.next_wait(running.snapshot().is_some());
        self.snapshot = running.snapshot().cloned().or(self.snapshot.take());
        let failure = running.retryable_failure(self.number == 1).filter(|_| self.number < self.most);
        let (Some(failure), Some(orphans)) = (failure, &self.orphans) else {
            running.report(self.snapshot.as_ref());
            return Some(running.code());
        };
        if running.was_asked() {
            // There is no further attempt, since its ranks would not have received the request to
            // end.
            running.report(self.snapshot.as_ref());
            if self.snapshot.is_none() {
                return Some(running.code());
            }
            running.report_request(self.snapshot.as_ref());
            return Some(STOPPED);
        }
        let lost = running.lost_hosts();
        let rest = start.rest_of_hosts(&lost);
        let lost = if start.shrink { lost } else { vec![false; start.hosts.len()] };
        if lost.iter().all(|&lost| lost) {
            running.report(self.snapshot.as_ref());
            running.report_line("the job is not started again: no host is left");
            return Some(running.code());
        }
        let snapshot = match &self.snapshot {
            Some(snapshot) => format!("the last snapshot is {snapshot}"),
            None => "no snapshot was taken".into(),
        };
        self.number += 1;
        let Self { number, most, .. } = self;
        running.report_line(&format!("attempt {number} of {most}: {failure}; {snapshot}"));
        if let Some(names) = start.leave_out(&lost) {
            let ranks = start.size();
            running.report_line(&format!("attempt {number} leaves out {names}: it has {ranks} ranks"));
        }
        let why = if wait >= rest {
            "since the one before took no snapshot"
        } else {
            "until the ranks on the lost host have ended"
        };
        let wait = wait.max(rest);
        if !wait.is_zero() {
            let seconds = wait.as_secs_f64();
            running.report_line(&format!("attempt {number} begins in {seconds} s, {why}"));
        }
        let asked = (self.snapshot.as_ref(), start.snapshot_on_term);
        running.pause(Instant::now() + wait, orphans, asked)
    }

    /// Returns how long to wait after an attempt.
    fn next_wait(&mut self, has_snapshot: bool) -> Duration {
        if has_snapshot {
            self.wait = FIRST_WAIT;
            return Duration::ZERO;
        }
        let longer = (self.wait * 2).min(LONGEST_WAIT);
        std::mem::replace(&mut self.wait, longer)
    }
}

impl Start {
    /// Returns how long ranks on the `lost` hosts may continue to run. The launcher does not know
    /// when the ranks of another machine have ended.
    fn rest_of_hosts(&self, lost: &[bool]) -> Duration {
        let is_far = |host: &Host| !host.remote.is_empty() && !host.pretended;
        let lives_on = self.hosts.iter().zip(lost).any(|(host, &lost)| lost && is_far(host));
        let Limits { silence, heartbeat } = self.limits;
        if lives_on && !silence.is_zero() { silence + heartbeat } else { Duration::ZERO }
    }

    /// Removes the hosts that were `lost` from the job, and returns their names, if there are any.
    fn leave_out(&mut self, lost: &[bool]) -> Option<String> {
        let (mut kept, mut names) = (Vec::new(), Vec::new());
        for (host, lost) in std::mem::take(&mut self.hosts).into_iter().zip(lost) {
            if *lost { names.push(host.name) } else { kept.push(host) }
        }
        self.hosts = kept;
        let kind = if names.len() > 1 { "hosts" } else { "host" };
        (!names.is_empty()).then(|| format!("{kind} {}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_begin_again_after_a_snapshot() {
        let mut attempts = Attempts::new(0);
        let mut waits = |snapshots: &[bool]| -> Vec<u64> {
            snapshots.iter().map(|&taken| attempts.next_wait(taken).as_secs()).collect()
        };
        assert_eq!(waits(&[false; 8]), [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(waits(&[true, false, false, true, false]), [0, 1, 2, 0, 1]);
    }

    #[test]
    fn lost_hosts_are_left_out_by_name() {
        let mut start = Start::this_program(2, crate::Reach::Tcp).expect("a path");
        let named = |name: &str| Host { name: name.into(), ..Host::here(2) };
        start.hosts = ["a", "b", "c"].map(named).into();
        assert_eq!(start.rest_of_hosts(&[true; 3]), Duration::ZERO, "they are here");
        start.hosts[1].remote = vec!["ssh".into()];
        let Limits { silence, heartbeat } = start.limits;
        assert_eq!(start.rest_of_hosts(&[true, false, true]), Duration::ZERO);
        assert_eq!(start.rest_of_hosts(&[false, true, false]), silence + heartbeat);
        assert_eq!(start.leave_out(&[false; 3]), None);
        assert_eq!(start.leave_out(&[true, false, true]).as_deref(), Some("hosts a, c"));
        assert_eq!((start.size(), start.hosts[0].name.as_str()), (2, "b"));
    }
}
