//! [`Start`]: the launcher. It starts a job, watches it until every rank has ended, and reports the
//! result.
//!
//! Ranks on this machine are child processes of the launcher ([`Children`]). For each other host
//! the launcher runs one command (`ssh`) that runs `fencepost host` there; messages travel through
//! its standard input and output. The [`StateMachine`] decides what the launcher does, and when.

use crate::channel::{Channel, ChannelError};
use crate::children::{Children, Event, Input, Program, Ready};
use crate::control::{self, HostJob, Message};
use crate::description::{Description, HostRanks, Limits, Reach};
use crate::exit::{Exit, FAILED, SIGKILL, TIMED_OUT, signal_name};
use crate::input::{InputSource, is_terminal};
use crate::link::HostMemory;
use crate::relay::{OutputRelay, report};
use crate::signals::Signals;
use crate::state_machine::{RankCommand, StateMachine};
use crate::turns::{Turns, timeout_until};
use fencepost_transport::auth::{Secret, random_bytes};
use fencepost_transport::call_failed;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal,
};
use signal_hook::consts::{SIGCONT, SIGTSTP, SIGTTOU};
use std::ffi::OsString;
use std::io;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The largest number of ranks of a job: the table of their addresses must fit into one message.
pub const RANKS_MAX: u32 = 1 << 18;

/// One of a job's hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// The name of the host, in messages and in the remote command.
    pub name: String,
    /// The number of ranks on this host; they are consecutive.
    pub ranks: u32,
    /// The address or interface at which the host's ranks listen.
    pub bind: String,
    /// The command line that runs a program on the host, up to that program. If it is empty, the
    /// host is this machine.
    pub remote: Vec<OsString>,
    /// Whether the host is this machine although it has a remote command.
    pub pretended: bool,
}

/// A job to start.
#[derive(Clone, Debug)]
pub struct Start {
    /// The program that each rank runs: an absolute path.
    pub program: PathBuf,
    /// The program's arguments.
    pub arguments: Vec<OsString>,
    /// The working directory of the ranks.
    pub folder: PathBuf,
    /// Environment variables of the ranks, in addition to those of the launcher.
    pub environment: Vec<(OsString, OsString)>,
    /// How ranks reach each other.
    pub reach: Reach,
    /// The hosts of the job, at least one.
    pub hosts: Vec<Host>,
    /// The path of the `fencepost` command on other hosts.
    pub fencepost: PathBuf,
    /// The time limit of the job.
    pub timeout: Option<Duration>,
    /// The grace period: how long the other ranks may run after one has failed.
    pub grace: Duration,
    /// How often ranks send heartbeats, and the silence after which they count as dead.
    pub limits: Limits,
    /// Whether every record between ranks carries an authentication tag.
    pub sealed: bool,
    /// Whether the launcher writes the rank in front of each line of a rank's output.
    pub tag_output: bool,
    /// Whether each rank is pinned to a core.
    pub pin: bool,
    /// Whether rank 0 gets the standard input of the launcher; otherwise it has no input.
    pub input: bool,
    /// Whether the launcher reports what it starts, and how each rank ends.
    pub verbose: bool,
}

impl Start {
    /// Returns a job that runs this program with the arguments of this process, on this machine.
    ///
    /// # Errors
    /// The system does not know the path of the program, or a setting in the environment is not
    /// valid.
    pub fn this_program(ranks: u32, reach: Reach) -> io::Result<Self> {
        let settings = crate::settings::Settings::from_environment().map_err(io::Error::other)?;
        Ok(Self {
            program: std::env::current_exe()?,
            arguments: std::env::args_os().skip(1).collect(),
            folder: std::env::current_dir()?,
            environment: Vec::new(),
            reach,
            hosts: vec![Host::here(ranks)],
            fencepost: PathBuf::from("fencepost"),
            timeout: settings.timeout,
            grace: settings.grace,
            limits: settings.limits,
            sealed: settings.sealed,
            tag_output: false,
            pin: false,
            input: true,
            verbose: false,
        })
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> u32 {
        self.hosts.iter().map(|host| host.ranks).sum()
    }

    /// Runs the job until every rank has ended, reports what failed, and returns the exit code.
    pub fn run(self) -> u8 {
        match RunningJob::new(&self) {
            Ok(mut running) => {
                running.start(&self);
                running.watch();
                running.report();
                running.drain_output()
            }
            Err(error) => {
                report(&format!("the job can't be started: {error}"));
                FAILED
            }
        }
    }
}

impl Host {
    /// Returns this machine as a host, with `ranks` ranks that listen at its loopback address.
    pub fn here(ranks: u32) -> Self {
        let bind = Ipv4Addr::LOCALHOST.to_string();
        Self { name: "localhost".into(), ranks, bind, remote: Vec::new(), pretended: false }
    }
}

/// The remote command of another host, through which the launcher exchanges messages with
/// `fencepost host` there.
struct RemoteHost {
    ranks: Range<u32>,
    command: String,
    child: Child,
    process: OwnedFd,
    channel: Channel,
    /// The time at which the last message from the host arrived.
    last_message: Instant,
    /// Whether the host has ever sent a message.
    answered: bool,
    /// The exit of the host's ranks if the launcher has given the host up.
    given_up: Option<Exit>,
    /// The time at which the launcher kills the command if it has not ended by itself.
    kill_deadline: Option<Instant>,
    /// Whether the launcher has sent the host the message that the job is over.
    stop_sent: bool,
    /// Whether rank 0 is on this host and has not yet taken the last piece of its input.
    input_given: bool,
    /// Whether rank 0 reads no more input.
    input_closed: bool,
}

/// How long the launcher waits for room in the pipes to its hosts before it is suspended.
const SUSPEND_LIMIT: Duration = Duration::from_secs(1);

/// How long a remote command may run after the launcher has asked it to end.
const END_LIMIT: Duration = Duration::from_secs(3);

struct RunningJob {
    job_state: StateMachine,
    children: Children,
    remotes: Vec<RemoteHost>,
    relay: OutputRelay,
    signals: Signals,
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
    /// The channel of a remote host, by its first rank.
    HostChannel(u32),
    /// The remote command of a host, by its first rank.
    HostProcess(u32),
}

impl RunningJob {
    fn new(start: &Start) -> io::Result<Self> {
        let size = start.hosts.iter().map(|host| u64::from(host.ranks)).sum::<u64>();
        if size > u64::from(RANKS_MAX) {
            return Err(io::Error::other(format!("it has {size} ranks; a job has at most {RANKS_MAX}")));
        }
        let here = start.hosts.iter().filter(|host| host.remote.is_empty()).map(|host| host.ranks).sum();
        crate::needs::check(here, start.tag_output, start.hosts.len())?;
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
        let timeout = start.timeout.map(|time| now + time);
        let is_far = start.hosts.first().is_some_and(|host| !host.remote.is_empty());
        Ok(Self {
            job_state: StateMachine::new(start.size(), start.reach, start.grace, timeout),
            children: Children::new(start.limits, memory),
            remotes: Vec::new(),
            relay: OutputRelay::new(start.tag_output),
            signals: Signals::new(true)?,
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
        })
    }

    fn start(&mut self, start: &Start) {
        let (secret, job) = match (Secret::new(), random_bytes()) {
            (Ok(secret), Ok(job)) => (secret, job),
            (Err(error), _) | (_, Err(error)) => {
                let why = format!("the system provides no random numbers: {error}");
                return self.not_started(0..start.size(), &Exit::NotStarted { code: FAILED, why });
            }
        };
        let mut job = Description {
            job,
            secret,
            rank: 0,
            size: start.size(),
            reach: start.reach,
            hosts: self.hosts.clone(),
            cores: crate::pin::cores(),
            bind: Ipv4Addr::LOCALHOST.into(),
            sealed: start.sealed,
            limits: start.limits,
        };
        // Read only once, since programs may be large, and before a host waits for heartbeats.
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
                // of it.
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
        let program = Program {
            path: start.program.clone(),
            arguments: start.arguments.clone(),
            folder: start.folder.clone(),
            environment: start.environment.clone(),
            capture: start.tag_output,
            input: match start.input {
                true if is_terminal() => Input::PassedOn,
                true => Input::Inherited,
                false => Input::None,
            },
            pin: start.pin,
        };
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
        let asked = HostJob {
            job: job.clone(),
            ranks: host.ranks,
            bind: host.bind.clone(),
            release: crate::RELEASE.into(),
            program: start.program.clone().into(),
            digest,
            arguments: start.arguments.clone(),
            folder: start.folder.clone().into(),
            environment: start.environment.clone(),
            pin: start.pin,
            first_core: first_core as u32,
        };
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
    fn watch(&mut self) {
        self.turns.next();
        while !self.job_state.is_over() || !self.remotes.is_empty() {
            // The silence limit compares with the time before `poll`: everything that was sent by
            // then is handled first, and on a loaded machine that can take longer than the limit.
            let looked = Instant::now();
            let ready = self.wait();
            if let Some(time) = self.turns.next() {
                self.pass_over(time);
            }
            self.handle_ready(&ready, looked);
            if self.job_state.is_over() {
                // A host whose ranks have ended ends by itself after the launcher's last message.
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
            let first = remote.ranks.start;
            fds.push(PollFd::new(&remote.process, PollFlags::IN));
            keys.push(Key::HostProcess(first));
            if remote.channel.is_open() {
                fds.push(PollFd::from_borrowed_fd(remote.channel.source(), PollFlags::IN));
                keys.push(Key::HostChannel(first));
            }
            if remote.channel.unsent() > 0 {
                fds.push(PollFd::from_borrowed_fd(remote.channel.sink(), PollFlags::OUT));
                keys.push(Key::HostChannel(first));
            }
        }
        let beat = (!self.remotes.is_empty()).then_some(self.next_beat);
        let kill_deadline = self.remotes.iter().filter_map(|remote| remote.kill_deadline).min();
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
                Key::HostChannel(first) => self.handle_remote(first, false, &mut events),
                Key::HostProcess(first) => self.handle_remote(first, true, &mut events),
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
            self.handle_event(event, &mut commands);
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

    /// Extends all limits by `time`, which has just passed and does not count.
    fn pass_over(&mut self, time: Duration) {
        let now = Instant::now();
        self.children.restart_silence();
        for remote in &mut self.remotes {
            remote.last_message = now;
            remote.kill_deadline = remote.kill_deadline.map(|then| then + time);
        }
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
            Some(remote) => {
                remote.input_given = true;
                remote.send(&Message::Input(bytes));
            }
        }
    }

    /// Returns whether rank 0 takes more input, or `None` while it has not taken all that it was
    /// given.
    fn input_is_taken(&mut self) -> Option<bool> {
        match self.remote_of(0) {
            None => self.children.has_taken_input().then(|| self.children.takes_input()),
            Some(remote) => (!remote.input_given).then_some(!remote.input_closed),
        }
    }

    fn handle_event(&mut self, event: Event, commands: &mut Vec<RankCommand>) {
        match event {
            Event::Reported(rank, message) => {
                self.job_state.on_message(rank, message, Instant::now(), commands)
            }
            Event::Output { rank, error, bytes } => {
                self.relay.on_output(rank, error, &bytes, Instant::now());
            }
            Event::Exited(rank, exit) => {
                self.relay.on_exit(rank);
                if rank == 0 {
                    self.input.close();
                }
                if self.verbose {
                    self.relay.report(&format!("{} {exit}", self.name(rank)));
                }
                self.job_state.on_exit(rank, exit, Instant::now(), commands);
            }
        }
    }

    fn execute(&mut self, commands: &[RankCommand]) {
        for command in commands {
            match command {
                // Sent once to each host, which forwards it to each of its ranks.
                RankCommand::NotifyAll(message) => {
                    let frame = message.to_frame();
                    self.children.notify_all(&frame);
                    let forward = Message::ForwardToAll(frame);
                    let there = self.remotes.iter_mut().filter(|remote| remote.given_up.is_none());
                    there.for_each(|remote| remote.send(&forward));
                }
                &RankCommand::Signal(rank, signal) => {
                    let of_user = self.job_state.is_user_signal(signal);
                    match self.remote_of(rank) {
                        None => self.children.signal(rank, signal),
                        // `fencepost host` does not run there yet and cannot forward the signal;
                        // perhaps it never will.
                        Some(remote) if !remote.answered && !of_user => {
                            remote.give_up(Exit::Signal(signal as u8));
                        }
                        Some(remote) => remote.send(&Message::Signal { rank, signal }),
                    }
                }
                &RankCommand::Kill(rank) => match self.remote_of(rank) {
                    None => self.children.kill(rank),
                    Some(remote) => {
                        remote.send(&Message::Signal { rank, signal: SIGKILL });
                        remote.kill_deadline.get_or_insert_with(|| Instant::now() + END_LIMIT);
                    }
                },
            }
        }
    }

    /// Returns the host of `rank` if that is not this host.
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

    /// Sends heartbeats to the hosts. A host that has sent none for the silence limit is lost.
    fn exchange_heartbeats(&mut self, now: Instant, looked: Instant) {
        if self.remotes.is_empty() || now < self.next_beat {
            return;
        }
        self.next_beat = now + self.limits.heartbeat;
        for remote in &mut self.remotes {
            remote.send(&Message::Heartbeat);
            let silent = looked.saturating_duration_since(remote.last_message);
            if remote.answered && !self.limits.silence.is_zero() && silent >= self.limits.silence {
                let why = format!("it sent no heartbeat for {:.1} s", silent.as_secs_f64());
                remote.given_up.get_or_insert(Exit::Lost(why));
                remote.kill();
            }
        }
    }

    fn handle_remote(&mut self, first: u32, ended: bool, events: &mut Vec<Event>) {
        let Some(at) = self.remotes.iter().position(|remote| remote.ranks.start == first) else { return };
        let remote = &mut self.remotes[at];
        if !remote.receive_all(events) {
            remote.ask_to_end();
        }
        if ended {
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

    /// Reports the failure of the job.
    fn report(&mut self) {
        let failures = self.job_state.failures();
        let primary: Vec<_> = failures.iter().filter(|failure| failure.primary).collect();
        if self.job_state.timed_out() {
            self.relay.report("the job exceeded its time limit");
        } else if let Some(first) = primary.first().copied().or(failures.first()) {
            let others = match primary.len() {
                0 | 1 => String::new(),
                2 => " (1 more rank failed independently)".to_owned(),
                several => format!(" ({} more ranks failed independently)", several - 1),
            };
            self.relay.report(&format!("{} {}{others}", self.name(first.rank), first.how));
        }
    }

    /// Writes the ranks' remaining output until its deadline or a signal, and returns the exit
    /// code.
    fn drain_output(mut self) -> u8 {
        let mut limit = self.job_state.output_deadline(Instant::now());
        let (mut code, mut reported) = (self.job_state.code(), false);
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
            let mut fds = vec![PollFd::from_borrowed_fd(self.signals.source(), PollFlags::IN)];
            self.relay.watch(&mut fds);
            let _: rustix::io::Result<usize> = poll(&mut fds, timeout_until(limit).as_ref());
            let caught = self.signals.take();
            if caught.contains(&SIGTSTP) && !caught.contains(&SIGCONT) {
                let began = Instant::now();
                self.suspend(SIGTSTP);
                limit = limit.map(|limit| limit + began.elapsed());
            }
            let ends = |signal: &i32| {
                !self.job_state.is_user_signal(*signal) && ![SIGTSTP, SIGCONT].contains(signal)
            };
            let cut = match caught.into_iter().find(ends) {
                Some(signal) => Exit::Signal(signal as u8).code(),
                None if limit.is_some_and(|limit| limit <= Instant::now()) => TIMED_OUT,
                None => continue,
            };
            return if code == 0 { cut } else { code };
        }
    }
}

fn command_line(host: &Host, fencepost: &std::path::Path) -> String {
    let words = host.remote.iter().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.chain([fencepost.display().to_string(), "host".into()]).collect();
    format!("`{}`", words.join(" "))
}

impl RemoteHost {
    fn new(host: &Host, fencepost: &std::path::Path, ranks: Range<u32>, frame: &Message) -> io::Result<Self> {
        let (program, arguments) =
            host.remote.split_first().ok_or_else(|| io::Error::other("the remote command is empty"))?;
        let mut command = Command::new(program);
        command.args(arguments).arg(fencepost).arg("host").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: the closure makes only direct system calls; nothing is allocated or locked
        // between fork and exec.
        unsafe {
            command.pre_exec(|| {
                crate::signals::ignore_stops_by_terminal();
                Ok(set_parent_process_death_signal(Some(Signal::TERM))?)
            });
        }
        let mut child = command.spawn()?;
        let open = |child: &mut Child| -> io::Result<(OwnedFd, Channel)> {
            let (to, from) = child.stdin.take().zip(child.stdout.take()).ok_or(io::ErrorKind::BrokenPipe)?;
            let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())
                .map_err(|errno| call_failed("pidfd_open", errno))?;
            Ok((process, Channel::from_pipes(from.into(), to.into())?))
        };
        let (process, mut channel) = match open(&mut child) {
            Ok(opened) => opened,
            Err(error) => {
                child.kill()?;
                child.wait()?;
                return Err(error);
            }
        };
        // If the command has already ended, its exit is reported when the process is reaped.
        let _: Result<(), ChannelError> = channel.send(frame);
        Ok(Self {
            ranks,
            command: command_line(host, fencepost),
            child,
            process,
            channel,
            last_message: Instant::now(),
            answered: false,
            given_up: None,
            kill_deadline: None,
            stop_sent: false,
            input_given: false,
            input_closed: false,
        })
    }

    fn send(&mut self, message: &Message) {
        // An error needs no handling here: if the host is lost, its command ends, and the process
        // descriptor reports that.
        let _: Result<(), ChannelError> = self.channel.send(message);
    }

    /// Sends the bytes that are not sent yet, until `limit` at most.
    fn flush_before(&mut self, limit: Instant) {
        while self.channel.flush().is_ok() && self.channel.unsent() > 0 && Instant::now() < limit {
            let mut fds = [PollFd::from_borrowed_fd(self.channel.sink(), PollFlags::OUT)];
            let _: rustix::io::Result<usize> = poll(&mut fds, timeout_until(Some(limit)).as_ref());
        }
    }

    /// Handles all messages that have arrived, and returns whether more may arrive.
    fn receive_all(&mut self, events: &mut Vec<Event>) -> bool {
        let _: Result<(), ChannelError> = self.channel.flush();
        loop {
            match self.channel.receive() {
                Ok(Some(message)) => {
                    self.last_message = Instant::now();
                    self.answered = true;
                    self.handle_message(message, events);
                }
                Ok(None) => return true,
                Err(ChannelError::Malformed(why)) => {
                    let printed = self.channel.unparsed_text();
                    let why = format!("{} printed `{printed}`: {why}", self.command);
                    self.given_up.get_or_insert(Exit::Lost(why));
                    return false;
                }
                Err(_) => return false,
            }
        }
    }

    /// Reaps the command, which has ended, and returns the exit of its ranks. `fencepost host`
    /// notices the end of its input and ends, too.
    fn reap(&mut self) -> Exit {
        let _: rustix::io::Result<()> = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let status = self.child.wait();
        self.given_up.take().unwrap_or_else(|| {
            Exit::Lost(match status {
                Ok(status) => format!("{} ended ({status})", self.command),
                Err(error) => format!("{} ended ({error})", self.command),
            })
        })
    }

    /// Asks the command to end, and sets the deadline at which it is killed.
    fn ask_to_end(&mut self) {
        if self.kill_deadline.is_none() {
            self.signal(Signal::TERM);
            self.kill_deadline = Some(Instant::now() + END_LIMIT);
        }
    }

    /// Gives the host up: its ranks end with `exit`.
    fn give_up(&mut self, exit: Exit) {
        self.given_up.get_or_insert(exit);
        self.ask_to_end();
    }

    /// Kills the command if its deadline has passed.
    fn expire(&mut self, now: Instant) {
        if self.kill_deadline.is_some_and(|then| then <= now) {
            self.kill_deadline = None;
            let why = format!("{} did not end within {} s and was killed", self.command, END_LIMIT.as_secs());
            self.given_up.get_or_insert(Exit::Lost(why));
            self.kill();
        }
    }

    fn handle_message(&mut self, message: Message, events: &mut Vec<Event>) {
        let ranks = self.ranks.clone();
        let is_own_rank = |rank: u32| ranks.contains(&rank);
        match message {
            Message::Forward { rank, frame } if is_own_rank(rank) => match control::parse_frame(&frame) {
                Ok(Some((message, _))) => events.push(Event::Reported(rank, message)),
                _ => events
                    .push(Event::Reported(rank, Message::JoinFailed("it sent a malformed message".into()))),
            },
            Message::Exited { rank, exit } if is_own_rank(rank) => events.push(Event::Exited(rank, exit)),
            Message::Output { rank, error, bytes } if is_own_rank(rank) => {
                events.push(Event::Output { rank, error, bytes });
            }
            Message::InputTaken(more) => (self.input_given, self.input_closed) = (false, !more),
            _ => {}
        }
    }

    /// Sends the host the message that the job is over, once.
    fn send_stop(&mut self) {
        if !std::mem::replace(&mut self.stop_sent, true) {
            self.send(&Message::Stop);
            self.kill_deadline.get_or_insert_with(|| Instant::now() + END_LIMIT);
        }
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    /// Sends a signal to the command and to the processes that it has started on this machine.
    fn signal(&self, signal: Signal) {
        // The command may have ended, but until it is reaped no other process has its process id.
        let _: rustix::io::Result<()> = pidfd_send_signal(&self.process, signal);
        let _: rustix::io::Result<()> = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

impl Drop for RemoteHost {
    fn drop(&mut self) {
        // The command still runs only during unwinding; otherwise it has been reaped.
        if let Ok(None) = self.child.try_wait() {
            self.kill();
            let _: io::Result<std::process::ExitStatus> = self.child.wait();
        }
    }
}
