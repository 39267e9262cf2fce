//! [`RunningJob`]: one attempt at a job. It starts the ranks, watches them until every rank has
//! ended, and reports the result.
//!
//! Ranks on this machine are child processes of the launcher ([`Children`]). For each other host
//! the launcher runs one command (`ssh`) that runs `fencepost host` there; messages travel through
//! the command's standard input and output ([`RemoteHost`]). The [`StateMachine`] decides what the
//! launcher does, and when.

use crate::children::{Children, Event, Ready};
use crate::control::{self, Message};
use crate::description::{Description, HostRanks, Limits, Reach};
use crate::exit::{Exit, FAILED, STOPPED, TIMED_OUT, signal_name};
use crate::input::{InputSource, is_terminal};
use crate::link::HostMemory;
use crate::orphans::Orphans;
use crate::relay::OutputRelay;
use crate::remote_host::{RemoteHost, RemoteReady, command_line};
use crate::signals::Signals;
use crate::start::{Host, Start};
use crate::state_machine::{Failure, RankCommand, StateMachine, is_user_signal};
use crate::turns::{Turns, timeout_until};
use fencepost_transport::auth::{Secret, random_bytes};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use signal_hook::consts::{SIGCONT, SIGTERM, SIGTSTP, SIGTTOU, SIGUSR1, SIGUSR2};
use std::fmt;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Before the launcher is suspended, it waits this long for room in the pipes to its hosts.
const SUSPEND_LIMIT: Duration = Duration::from_secs(1);

/// The last snapshot that a rank has reported.
#[derive(Clone)]
pub(crate) struct Snapshot {
    step: u64,
    folder: String,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of step {}, in {}", self.step, self.folder)
    }
}

pub(crate) struct RunningJob<'a> {
    job_state: StateMachine,
    children: Children,
    remotes: Vec<RemoteHost>,
    relay: &'a mut OutputRelay,
    signals: &'a mut Signals,
    hosts: Vec<HostRanks>,
    limits: Limits,
    next_beat: Instant,
    turns: Turns,
    verbose: bool,
    /// The warning that a rank has not joined although others have.
    late_warning: LateWarning,
    /// Whether the launcher has asked the hosts to pause the output of their ranks.
    output_paused: bool,
    input: InputSource,
    /// The last snapshot that a rank of this attempt has reported.
    snapshot: Option<Snapshot>,
}

/// The state of the warning about ranks that do not join. A rank sends nothing before it joins, and
/// a program may legitimately take long until then. So the launcher warns once, and kills no rank.
#[derive(Clone, Copy)]
enum LateWarning {
    NoneJoined,
    At(Instant),
    Done,
}

#[derive(Clone, Copy)]
enum Key {
    Signal,
    /// The launcher's own output has room for more bytes.
    Output,
    /// There is standard input for rank 0.
    Input,
    Local(Ready),
    Remote(RemoteReady),
}

impl<'a> RunningJob<'a> {
    /// Prepares an attempt at a job. At the time `timeout`, the job exceeds its time limit.
    ///
    /// # Errors
    /// The system has no memory for the ranks.
    pub(crate) fn new(
        start: &Start,
        (relay, signals): (&'a mut OutputRelay, &'a mut Signals),
        timeout: Option<Instant>,
    ) -> io::Result<Self> {
        let mut memory = Vec::new();
        let mut end = 0;
        for host in &start.hosts {
            let ranks = end..end + host.ranks;
            end = ranks.end;
            if host.remote.is_empty() && start.reach != Reach::Tcp {
                memory.push(HostMemory::create(ranks)?);
            }
        }
        let now = Instant::now();
        let is_far = start.hosts.first().is_some_and(|host| !host.remote.is_empty());
        Ok(Self {
            job_state: StateMachine::new(
                start.size(),
                start.reach,
                start.grace,
                timeout,
                start.snapshot_on_term,
            ),
            children: Children::new(start.limits, memory),
            remotes: Vec::new(),
            relay,
            signals,
            hosts: start
                .hosts
                .iter()
                .zip(0..)
                .map(|(host, number)| HostRanks { host: number, name: host.name.clone(), ranks: host.ranks })
                .collect(),
            limits: start.limits,
            next_beat: now + start.limits.heartbeat,
            turns: Turns::new(start.limits),
            verbose: start.verbose,
            late_warning: if start.limits.silence.is_zero() {
                LateWarning::Done
            } else {
                LateWarning::NoneJoined
            },
            output_paused: false,
            // On this host, rank 0 inherits an input that is not a terminal.
            input: InputSource::new(start.input && (is_terminal() || is_far)),
            snapshot: None,
        })
    }

    pub(crate) fn start(&mut self, start: &Start) {
        let (secret, job) = match (Secret::new(), random_bytes()) {
            (Ok(secret), Ok(job)) => (secret, job),
            (Err(error), _) | (_, Err(error)) => {
                let why = format!("the system provides no random numbers: {error}");
                return self.not_started(0..start.size(), &Exit::NotStarted { code: FAILED, why });
            }
        };
        let mut job = start.description(job, secret, self.hosts.clone());
        // The program's file is read only once, since it may be large. It is read before any host
        // waits for heartbeats.
        let is_sent = start.hosts.iter().any(|host| !host.remote.is_empty());
        let digest = is_sent.then(|| crate::digest(&start.program).ok()).flatten();
        let mut first = 0;
        let mut local_index = 0;
        for host in &start.hosts {
            let ranks = first..first + host.ranks;
            first = ranks.end;
            job.rank = ranks.start;
            if self.verbose {
                let how = if host.remote.is_empty() { "locally" } else { "by the remote command" };
                let program = start.program.display();
                self.relay.report(&format!("ranks {ranks:?} on {}: {program}, started {how}", host.name));
            }
            let started = if host.remote.is_empty() {
                self.start_here(start, host, &mut job, ranks.clone(), local_index)
            } else {
                // If several hosts are this one machine, their ranks are pinned to successive cores
                // of the machine.
                let first_core = if host.pretended { local_index } else { 0 };
                self.start_there(start, host, (&job, digest), ranks.clone(), first_core)
            };
            if host.remote.is_empty() || host.pretended {
                local_index += ranks.len();
            }
            if let Err((from, exit)) = started {
                self.not_started(from..ranks.end, &exit);
                return self.not_started(ranks.end..start.size(), &exit);
            }
        }
    }

    fn start_here(
        &mut self,
        start: &Start,
        host: &Host,
        job: &mut Description,
        ranks: Range<u32>,
        first_core: usize,
    ) -> Result<(), (u32, Exit)> {
        let program = start.program();
        let failed = |why| (ranks.start, Exit::NotStarted { code: FAILED, why });
        job.bind = crate::bind::address(&host.bind).map_err(failed)?;
        for (core, rank) in (first_core..).zip(ranks) {
            job.rank = rank;
            self.children
                .start(&program, &Message::Job(job.clone()), rank, core)
                .map_err(|exit| (rank, exit))?;
        }
        Ok(())
    }

    fn start_there(
        &mut self,
        start: &Start,
        host: &Host,
        (job, digest): (&Description, Option<[u8; 32]>),
        ranks: Range<u32>,
        first_core: usize,
    ) -> Result<(), (u32, Exit)> {
        let failed = |why| (ranks.start, Exit::NotStarted { code: FAILED, why });
        let asked = start.host_job(host, job, digest, first_core);
        let frame = Message::Start(Box::new(asked));
        if frame.to_frame().len() > control::FRAME_MAX {
            return Err(failed(format!(
                "its arguments and environment variables take {} bytes; at most {} can be sent to a host",
                frame.to_frame().len(),
                control::FRAME_MAX
            )));
        }
        let mut remote = RemoteHost::new(host, &start.fencepost, ranks.clone(), &frame)
            .map_err(|error| failed(format!("{}: {error}", command_line(host, &start.fencepost))))?;
        if !start.input && ranks.contains(&0) {
            remote.send(&Message::Input(Vec::new())); // the end of the input
        }
        self.remotes.push(remote);
        Ok(())
    }

    fn not_started(&mut self, ranks: Range<u32>, exit: &Exit) {
        let mut commands = Vec::new();
        for rank in ranks {
            self.job_state.on_exit(rank, exit.clone(), Instant::now(), &mut commands);
        }
        self.execute(&commands);
    }

    /// Handles events until every rank has ended.
    pub(crate) fn watch(&mut self) {
        self.turns.next();
        while !self.job_state.is_over() || !self.remotes.is_empty() {
            // Silence is measured up to the time before `poll`: everything that was sent by then is
            // handled first, and on a loaded machine that can take longer than the limit.
            let looked = Instant::now();
            let ready = self.wait();
            if let Some(time) = self.turns.next() {
                self.pass_over(time);
            }
            self.handle_ready(&ready, looked);
            if self.job_state.is_over() {
                // If all ranks of a host have ended, its agent ends by itself after the launcher's
                // last message.
                self.remotes.iter_mut().for_each(RemoteHost::send_stop);
            }
        }
    }

    fn wait(&self) -> Vec<Key> {
        let (mut fds, mut keys) = (Vec::new(), Vec::new());
        fds.push(PollFd::from_borrowed_fd(self.signals.source(), PollFlags::IN));
        keys.push(Key::Signal);
        self.relay.watch(&mut fds);
        keys.resize(fds.len(), Key::Output);
        if self.input.watch(&mut fds) {
            keys.push(Key::Input);
        }
        // While the launcher's own output is full, the ranks' output stays in their pipes.
        self.children.watch(&mut fds, !self.relay.is_full(), |ready| keys.push(Key::Local(ready)));
        for remote in &self.remotes {
            remote.watch(&mut fds, |ready| keys.push(Key::Remote(ready)));
        }
        let beat = (!self.remotes.is_empty()).then_some(self.next_beat);
        let kill_deadline = self.remotes.iter().filter_map(|remote| remote.kill_deadline()).min();
        let late = if let LateWarning::At(then) = self.late_warning { Some(then) } else { None };
        let [input, output] = [self.input.deadline(), self.relay.deadline()];
        let deadlines =
            [self.job_state.deadline(), self.children.deadline(), beat, kill_deadline, late, input, output];
        let deadline = deadlines.into_iter().flatten().min();
        let timeout = self.turns.timeout(deadline);
        // If a signal interrupts `poll`, nothing is ready, and the caller calls again.
        let _: rustix::io::Result<usize> = poll(&mut fds, timeout.as_ref());
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        fds.iter().zip(keys).filter(|(fd, _)| ready(fd)).map(|(_, key)| key).collect()
    }

    fn handle_ready(&mut self, ready: &[Key], looked: Instant) {
        let (mut events, mut commands) = (Vec::new(), Vec::new());
        for &key in ready {
            match key {
                Key::Signal => {
                    let caught = self.signals.take();
                    for &signal in &caught {
                        match signal {
                            // If both signals have arrived, the job continues.
                            SIGTSTP if caught.contains(&SIGCONT) => continue,
                            SIGTSTP => {
                                self.suspend(SIGTSTP);
                                continue;
                            }
                            SIGCONT => continue, // the terminal may be readable now
                            _ => {}
                        }
                        if self.verbose {
                            self.relay.report(&format!(
                                "{} is forwarded to the ranks",
                                signal_name(signal).unwrap_or("a signal")
                            ));
                        }
                        self.job_state.on_signal(signal, Instant::now(), &mut commands);
                    }
                }
                Key::Output => {}
                Key::Input => self.pass_input(),
                Key::Local(ready) => self.children.handle_ready(ready, &mut events),
                Key::Remote(ready) => self.handle_remote(ready, &mut events),
            }
        }
        if let Some(more) = self.input_is_taken() {
            self.input.taken(more);
        }
        let now = Instant::now();
        self.children.expire(looked, &mut events);
        self.exchange_heartbeats(now, looked);
        self.remotes.iter_mut().for_each(|remote| remote.expire(now));
        self.job_state.expire(now, &mut commands);
        for event in events {
            self.handle_event(event, now, &mut commands);
        }
        self.execute(&commands);
        self.warn_about_late_ranks(now);
        self.relay.expire(now);
        self.flush_output();
        if self.output_paused != self.relay.is_full() {
            self.output_paused = !self.output_paused;
            self.remotes.iter_mut().for_each(|remote| remote.send(&Message::PauseOutput(self.output_paused)));
        }
    }

    /// Writes as much output as is possible without blocking. If the terminal stops background
    /// writers, the job is suspended before it writes, as a single process would be.
    fn flush_output(&mut self) {
        if self.signals.stops_by_terminal() && self.relay.is_stopped_by_terminal() {
            self.suspend(SIGTTOU);
            if self.signals.stops_by_terminal() && self.relay.is_stopped_by_terminal() {
                return; // the shell continues the job in the background
            }
        }
        self.relay.flush();
    }

    /// Stops the ranks and then this process with `signal`, as Ctrl-Z does to a program of one
    /// process. Returns when the shell continues the job. The time in between does not count.
    fn suspend(&mut self, signal: i32) {
        let began = Instant::now();
        self.children.suspend(true);
        self.remotes.iter_mut().for_each(|remote| remote.send(&Message::Suspend(true)));
        if !self.relay.is_stopped_by_terminal() {
            self.relay.flush();
        }
        self.remotes.iter_mut().for_each(|remote| remote.flush_before(began + SUSPEND_LIMIT));
        self.signals.stop(signal);
        self.children.suspend(false);
        self.remotes.iter_mut().for_each(|remote| remote.send(&Message::Suspend(false)));
        self.turns.next();
        self.pass_over(began.elapsed());
    }

    /// Extends all time limits by `time`, which has just passed and does not count.
    fn pass_over(&mut self, time: Duration) {
        let now = Instant::now();
        self.children.restart_silence();
        self.remotes.iter_mut().for_each(|remote| remote.pass_over(now, time));
        self.job_state.pass_over(time);
        self.next_beat = now;
        if let LateWarning::At(then) = &mut self.late_warning {
            *then += time;
        }
    }

    /// Passes a piece of the standard input on to rank 0.
    fn pass_input(&mut self) {
        let Some(bytes) = self.input.read() else { return };
        match self.remote_of(0) {
            None => self.children.give_input(&bytes),
            Some(remote) => remote.give_input(bytes),
        }
    }

    /// Returns whether rank 0 takes more input, or `None` while it has not taken all that it was
    /// given.
    fn input_is_taken(&mut self) -> Option<bool> {
        match self.remote_of(0) {
            None => self.children.has_taken_input().then(|| self.children.takes_input()),
            Some(remote) => remote.has_taken_input().then(|| remote.takes_input()),
        }
    }

    fn handle_event(&mut self, event: Event, now: Instant, commands: &mut Vec<RankCommand>) {
        match event {
            Event::Reported(_, Message::Snapshot { step, folder }) => {
                self.snapshot = Some(Snapshot { step, folder });
            }
            Event::Reported(rank, message) => self.job_state.on_message(rank, message, now, commands),
            Event::Output { rank, error, bytes } => self.relay.on_output(rank, error, &bytes, now),
            Event::Exited(rank, exit) => {
                self.relay.on_exit(rank);
                if rank == 0 {
                    self.input.close();
                }
                if self.verbose {
                    self.relay.report(&format!("{} {exit}", self.name(rank)));
                }
                self.job_state.on_exit(rank, exit, now, commands);
            }
        }
    }

    fn execute(&mut self, commands: &[RankCommand]) {
        for command in commands {
            match command {
                // The message is sent once to each host, which forwards it to each of its ranks.
                RankCommand::NotifyAll(message) => {
                    let frame = message.to_frame();
                    self.children.notify_all(&frame);
                    let forward = Message::ForwardToAll(frame);
                    let there = self.remotes.iter_mut().filter(|remote| !remote.is_given_up());
                    there.for_each(|remote| remote.send(&forward));
                }
                &RankCommand::Signal(rank, signal) => {
                    let of_user = is_user_signal(signal);
                    match self.remote_of(rank) {
                        None => self.children.signal(rank, signal),
                        Some(remote) => remote.signal_rank(rank, signal, of_user),
                    }
                }
                &RankCommand::Kill(rank) => match self.remote_of(rank) {
                    None => self.children.kill(rank),
                    Some(remote) => remote.kill_rank(rank),
                },
            }
        }
    }

    /// Returns the remote host of `rank`, or `None` if the rank is on this host.
    fn remote_of(&mut self, rank: u32) -> Option<&mut RemoteHost> {
        self.remotes.iter_mut().find(|remote| remote.ranks.contains(&rank))
    }

    fn warn_about_late_ranks(&mut self, now: Instant) {
        if matches!(self.late_warning, LateWarning::Done) {
            return;
        }
        self.late_warning = match (self.late_warning, self.job_state.not_joined()) {
            (warning, None) => warning,
            (_, Some((_, None))) => LateWarning::Done,
            (LateWarning::NoneJoined, _) => LateWarning::At(now + self.limits.silence),
            (LateWarning::At(then), Some((count, Some(first)))) if then <= now => {
                let after = self.limits.silence.as_secs_f64();
                let others = if count > 1 { format!(", and {} more,", count - 1) } else { String::new() };
                let name = self.name(first);
                self.relay.report(&format!(
                    "{name}{others} has not joined the job {after:.1} s after other ranks, which may wait for it; --timeout limits the time of a job"
                ));
                LateWarning::Done
            }
            (warning, _) => warning,
        };
    }

    /// Sends heartbeats to the hosts. A host that has sent no heartbeat for the silence limit is
    /// lost.
    fn exchange_heartbeats(&mut self, now: Instant, looked: Instant) {
        if self.remotes.is_empty() || now < self.next_beat {
            return;
        }
        self.next_beat = now + self.limits.heartbeat;
        self.remotes.iter_mut().for_each(|remote| remote.exchange_heartbeat(looked, self.limits.silence));
    }

    fn handle_remote(&mut self, ready: RemoteReady, events: &mut Vec<Event>) {
        let (RemoteReady::Channel(first) | RemoteReady::Process(first)) = ready;
        let Some(at) = self.remotes.iter().position(|remote| remote.ranks.start == first) else { return };
        let remote = &mut self.remotes[at];
        if !remote.receive_all(events) {
            remote.ask_to_end();
        }
        if let RemoteReady::Process(_) = ready {
            let mut remote = self.remotes.swap_remove(at);
            let exit = remote.reap();
            // The state machine ignores a second exit of ranks that have ended before.
            events.extend(remote.ranks.clone().map(|rank| Event::Exited(rank, exit.clone())));
        }
    }

    fn name(&self, rank: u32) -> String {
        let mut end = 0;
        let host = self.hosts.iter().find(|host| {
            end += host.ranks;
            rank < end
        });
        format!("rank {rank} on host {}", host.map_or("?", |host| &host.name))
    }

    /// Returns the last snapshot that a rank of this attempt has reported.
    pub(crate) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// Returns the time at which the job exceeds its time limit.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        self.job_state.timeout()
    }

    /// Returns a description of the failure for which the job may be started again, as
    /// [`report`](Self::report) prints it.
    pub(crate) fn retryable_failure(&self, is_first_attempt: bool) -> Option<String> {
        self.job_state.retryable_failure(is_first_attempt).map(|failure| self.describe(&failure))
    }

    /// Returns whether the ranks were asked to save their state and to end.
    pub(crate) fn was_asked(&self) -> bool {
        self.job_state.was_asked()
    }

    /// Returns, for each host in the order of the job, whether the host was lost.
    pub(crate) fn lost_hosts(&self) -> Vec<bool> {
        let mut end = 0;
        let lost = |host: &HostRanks| {
            let mut ranks = end..end + host.ranks;
            end = ranks.end;
            ranks.any(|rank| self.job_state.is_lost(rank))
        };
        self.hosts.iter().map(lost).collect()
    }

    fn describe(&self, failure: &Failure) -> String {
        let others = match self.job_state.failures().iter().filter(|failure| failure.primary).count() {
            0 | 1 => String::new(),
            2 => " (1 more rank failed independently)".to_owned(),
            several => format!(" ({} more ranks failed independently)", several - 1),
        };
        format!("{} {}{others}", self.name(failure.rank), failure.how)
    }

    /// Reports a line of the launcher itself on standard error.
    pub(crate) fn report_line(&mut self, line: &str) {
        self.relay.report(line);
    }

    /// Reports the failure of the job, or that the job has ended on request; `snapshot` is the
    /// job's last snapshot.
    pub(crate) fn report(&mut self, snapshot: Option<&Snapshot>) {
        let on_request = self.job_state.has_stopped();
        let failures = self.job_state.failures();
        if self.job_state.timed_out() {
            self.relay.report("the job exceeded its time limit");
        } else if let Some(first) = failures.iter().find(|failure| failure.primary).or(failures.first()) {
            self.relay.report(&self.describe(first));
        } else if on_request {
            self.report_request(snapshot);
        }
    }

    /// Reports that the job has ended on request.
    pub(crate) fn report_request(&mut self, snapshot: Option<&Snapshot>) {
        let after = snapshot.map_or(String::new(), |snapshot| format!(" after a snapshot {snapshot}"));
        self.relay.report(&format!("the job ended on request{after}"));
    }

    /// Waits after all ranks have ended: until the time `until`, and until the processes that the
    /// ranks have left behind on this machine have ended. Returns the exit code of the job if a
    /// signal or the time limit ends the job meanwhile. If a signal asks for a snapshot, the last
    /// snapshot of the job answers the request.
    pub(crate) fn pause(
        &mut self,
        until: Instant,
        orphans: &Orphans,
        (snapshot, on_term): (Option<&Snapshot>, bool),
    ) -> Option<u8> {
        let mut commands = Vec::new(); // there is no rank to carry them out
        loop {
            self.flush_output();
            let left = orphans.kill();
            let now = Instant::now();
            let is_over = left.is_empty() && until <= now;
            let end = if left.is_empty() { Some(until) } else { None };
            let limit = [self.timeout(), end].into_iter().flatten().min();
            // If nothing is left to wait for, this only takes the signals that have arrived.
            let (caught, _) = self.wait_without_ranks(&left, limit);
            if let Some(&signal) = caught.iter().find(|&&signal| signal != SIGUSR2) {
                let asks = signal == SIGUSR1 || signal == SIGTERM && on_term;
                if asks && snapshot.is_some() {
                    self.report_request(snapshot);
                    return Some(STOPPED);
                }
                let name = signal_name(signal).unwrap_or("a signal");
                self.relay.report(&format!("{name} ended the job before its next attempt"));
                self.job_state.on_signal(signal, now, &mut commands);
                return Some(Exit::Signal(signal as u8).code());
            }
            self.job_state.expire(Instant::now(), &mut commands);
            if self.job_state.timed_out() {
                self.report(None);
                return Some(TIMED_OUT);
            }
            if is_over {
                return None;
            }
        }
    }

    /// Waits for a signal, for room for the launcher's own output, for the end of one of
    /// `processes`, or until `limit`. Returns the signals that have arrived, and how long a shell
    /// has suspended the launcher meanwhile.
    fn wait_without_ranks(&mut self, processes: &[OwnedFd], limit: Option<Instant>) -> (Vec<i32>, Duration) {
        let mut fds = vec![PollFd::from_borrowed_fd(self.signals.source(), PollFlags::IN)];
        fds.extend(processes.iter().map(|process| PollFd::new(process, PollFlags::IN)));
        self.relay.watch(&mut fds);
        let _: rustix::io::Result<usize> = poll(&mut fds, timeout_until(limit).as_ref());
        let mut caught = self.signals.take();
        let began = Instant::now();
        if caught.contains(&SIGTSTP) && !caught.contains(&SIGCONT) {
            self.suspend(SIGTSTP);
        }
        caught.retain(|signal| ![SIGTSTP, SIGCONT].contains(signal));
        (caught, began.elapsed())
    }

    /// Returns the exit code of this attempt.
    pub(crate) fn code(&self) -> u8 {
        self.job_state.code()
    }

    /// Writes the ranks' remaining output until the deadline for output or until a signal, and
    /// returns the exit code of the job. The exit code is `code`, unless `code` is 0 and some
    /// output was not written.
    pub(crate) fn drain_output(mut self, mut code: u8) -> u8 {
        let mut limit = self.job_state.output_deadline(Instant::now());
        let mut reported = false;
        loop {
            let began = Instant::now();
            self.flush_output();
            limit = limit.map(|limit| limit + began.elapsed());
            // A job whose output is lost does not succeed.
            if !reported && let Some(error) = self.relay.write_error() {
                self.relay.report(&format!("some output of the ranks was lost: {error}"));
                (code, reported) = (if code == 0 { FAILED } else { code }, true);
                continue;
            }
            if self.relay.is_empty() {
                return code;
            }
            let (caught, suspended) = self.wait_without_ranks(&[], limit);
            limit = limit.map(|limit| limit + suspended);
            let cut = match caught.into_iter().find(|signal| !is_user_signal(*signal)) {
                Some(signal) => Exit::Signal(signal as u8).code(),
                None if limit.is_some_and(|limit| limit <= Instant::now()) => TIMED_OUT,
                None => continue,
            };
            return if code == 0 { cut } else { code };
        }
    }
}
