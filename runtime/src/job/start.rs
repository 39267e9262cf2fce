//! [`Start`]: starts a job, watches it until every rank has ended, and says how it went.
//!
//! Ranks of this machine are children of this process ([`Group`](super::group::Group)); for each other host there is one
//! command (`ssh`) that runs `fencepost host` there, and messages go through its standard input and output. What is done
//! when is decided by the [`Course`](super::course::Course).

use super::channel::{Broken, Channel};
use super::control::{self, HostJob, Message};
use super::course::{Course, Order};
use super::description::{Description, HostRanks, Limits, Reach};
use super::exit::{Exit, FAILED, signal_name};
use super::group::{Event, Group, Program, Ready, until};
use super::link::Memory;
use super::relay::{Relay, say};
use super::signals::Signals;
use crate::security::{Secret, chance};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{
    Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
};
use std::ffi::OsString;
use std::io;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// One of a job's hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Its name, as in messages and in the remote command.
    pub name: String,
    /// How many ranks, in a row.
    pub ranks: u32,
    /// The address or interface that its ranks listen at.
    pub bind: String,
    /// The words that run a program there, up to that program; none: this machine.
    pub remote: Vec<OsString>,
}

/// A job to be started.
#[derive(Clone, Debug)]
pub struct Start {
    /// What each rank runs: an absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Variables that it gets besides this process's.
    pub environment: Vec<(OsString, OsString)>,
    /// How ranks reach each other.
    pub reach: Reach,
    /// Where ranks run, at least one host.
    pub hosts: Vec<Host>,
    /// The `fencepost` command on other hosts.
    pub fencepost: PathBuf,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How long ranks may go on after one has failed.
    pub grace: Duration,
    /// When silence is death.
    pub limits: Limits,
    /// Whether every record between ranks carries a tag.
    pub sealed: bool,
    /// Whether each line that a rank writes has its rank before it.
    pub tag_output: bool,
    /// Whether each rank keeps to a core of its own.
    pub pin: bool,
    /// Whether to say what is started, and how each rank ends.
    pub verbose: bool,
}

impl Start {
    /// A job of this program with these arguments, on this machine alone.
    ///
    /// # Errors
    /// The system does not say where the program is; a setting in the environment that is none.
    pub fn this_program(ranks: u32, reach: Reach) -> io::Result<Self> {
        let settings = super::settings::Settings::from_environment().map_err(io::Error::other)?;
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
            verbose: false,
        })
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.hosts.iter().map(|host| host.ranks).sum()
    }

    /// Run the job until every rank has ended; say what failed; give the exit code.
    pub fn run(self) -> u8 {
        match Running::new(&self) {
            Ok(mut running) => {
                running.start(&self);
                running.go();
                running.report()
            }
            Err(error) => {
                say(&format!("the job can't be started: {error}"));
                FAILED
            }
        }
    }
}

impl Host {
    /// This machine.
    pub fn here(ranks: u32) -> Self {
        let bind = Ipv4Addr::LOCALHOST.to_string();
        Self { name: "localhost".into(), ranks, bind, remote: Vec::new() }
    }
}

/// The command that speaks for another host.
struct Remote {
    ranks: Range<u32>,
    command: String,
    child: Child,
    process: OwnedFd,
    channel: Channel,
    heard: Instant,
    /// Whether it has ever said anything.
    answered: bool,
    /// Why it was killed here.
    killed: Option<String>,
    /// Whether it was told that the job is over.
    dismissed: bool,
}

struct Running {
    course: Course,
    group: Group,
    remotes: Vec<Remote>,
    relay: Relay,
    signals: Signals,
    hosts: Vec<HostRanks>,
    limits: Limits,
    next_beat: Instant,
    verbose: bool,
}

#[derive(Clone, Copy)]
enum Key {
    Signal,
    Local(Ready),
    /// The channel of one of the remotes, by its first rank.
    Remote(u32),
    /// The process of one of the remotes.
    Command(u32),
}

impl Running {
    fn new(start: &Start) -> io::Result<Self> {
        let here = start.hosts.iter().filter(|host| host.remote.is_empty()).map(|host| host.ranks).sum();
        room_for(here, start.tag_output, start.hosts.len())?;
        let mut memory = Vec::new();
        let mut end = 0;
        for host in &start.hosts {
            let ranks = end..end + host.ranks;
            end = ranks.end;
            if host.remote.is_empty() && start.reach != Reach::Tcp {
                memory.push(Memory::create(ranks)?);
            }
        }
        let now = Instant::now();
        let timeout = start.timeout.map(|time| now + time);
        Ok(Self {
            course: Course::new(start.size(), start.reach, start.grace, timeout),
            group: Group::new(start.limits, memory),
            remotes: Vec::new(),
            relay: Relay::new(start.tag_output),
            signals: Signals::new()?,
            hosts: start
                .hosts
                .iter()
                .map(|host| HostRanks { name: host.name.clone(), ranks: host.ranks })
                .collect(),
            limits: start.limits,
            next_beat: now + start.limits.heartbeat,
            verbose: start.verbose,
        })
    }

    fn start(&mut self, start: &Start) {
        let (secret, job) = match (Secret::new(), chance()) {
            (Ok(secret), Ok(job)) => (secret, job),
            (Err(error), _) | (_, Err(error)) => {
                let why = format!("the system has no random numbers: {error}");
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
            bind: Ipv4Addr::LOCALHOST.into(),
            sealed: start.sealed,
            limits: start.limits,
        };
        let mut first = 0;
        let mut seat = 0;
        for host in &start.hosts {
            let ranks = first..first + host.ranks;
            first = ranks.end;
            job.rank = ranks.start;
            if self.verbose {
                let how = if host.remote.is_empty() { "here" } else { "there" };
                let program = start.program.display();
                say(&format!("ranks {ranks:?} on {}: {program}, started {how}", host.name));
            }
            let started = if host.remote.is_empty() {
                self.start_here(start, host, &mut job, ranks.clone(), &mut seat)
            } else {
                self.start_there(start, host, &job, ranks.clone())
            };
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
        seat: &mut usize,
    ) -> Result<(), (u32, Exit)> {
        let program = Program {
            path: start.program.clone(),
            arguments: start.arguments.clone(),
            folder: start.folder.clone(),
            environment: start.environment.clone(),
            capture: start.tag_output,
            input: true,
            pin: start.pin,
        };
        let failed = |why| (ranks.start, Exit::NotStarted { code: FAILED, why });
        job.bind = super::bind::address(&host.bind).map_err(failed)?;
        for rank in ranks {
            job.rank = rank;
            self.group
                .start(&program, &Message::Job(job.clone()), rank, *seat)
                .map_err(|exit| (rank, exit))?;
            *seat += 1;
        }
        Ok(())
    }

    fn start_there(
        &mut self,
        start: &Start,
        host: &Host,
        job: &Description,
        ranks: Range<u32>,
    ) -> Result<(), (u32, Exit)> {
        let failed = |why| (ranks.start, Exit::NotStarted { code: FAILED, why });
        let digest = super::digest(&start.program).ok();
        let asked = HostJob {
            job: job.clone(),
            ranks: host.ranks,
            bind: host.bind.clone(),
            release: super::RELEASE.into(),
            program: start.program.clone().into(),
            digest,
            arguments: start.arguments.clone(),
            folder: start.folder.clone().into(),
            environment: start.environment.clone(),
            pin: start.pin,
        };
        let frame = Message::Start(Box::new(asked));
        if frame.to_frame().len() > control::FRAME_MAX {
            return Err(failed("its arguments and variables are too long to be sent".into()));
        }
        let remote = Remote::new(host, &start.fencepost, ranks.clone(), &frame)
            .map_err(|error| failed(format!("{}: {error}", command_line(host, &start.fencepost))))?;
        self.remotes.push(remote);
        Ok(())
    }

    fn not_started(&mut self, ranks: Range<u32>, exit: &Exit) {
        let mut orders = Vec::new();
        for rank in ranks {
            self.course.exited(rank, exit.clone(), Instant::now(), &mut orders);
        }
        self.carry_out(&orders);
    }

    /// Until every rank has ended.
    fn go(&mut self) {
        while !self.course.over() || !self.remotes.is_empty() {
            let ready = self.wait();
            self.turn(&ready);
            if self.course.over() {
                // Hosts whose ranks have ended end by themselves when nobody speaks to them any more.
                self.remotes.iter_mut().for_each(Remote::dismiss);
            }
        }
    }

    fn wait(&self) -> Vec<Key> {
        let (mut fds, mut keys) = (Vec::new(), Vec::new());
        fds.push(PollFd::from_borrowed_fd(self.signals.source(), PollFlags::IN));
        keys.push(Key::Signal);
        self.group.watch(&mut fds, true, |ready| keys.push(Key::Local(ready)));
        for remote in &self.remotes {
            let first = remote.ranks.start;
            fds.push(PollFd::new(&remote.process, PollFlags::IN));
            keys.push(Key::Command(first));
            if remote.channel.is_open() {
                fds.push(PollFd::from_borrowed_fd(remote.channel.source(), PollFlags::IN));
                keys.push(Key::Remote(first));
            }
            if remote.channel.waiting() > 0 {
                fds.push(PollFd::from_borrowed_fd(remote.channel.sink(), PollFlags::OUT));
                keys.push(Key::Remote(first));
            }
        }
        let beat = (!self.remotes.is_empty()).then_some(self.next_beat);
        let deadline = [self.course.deadline(), self.group.deadline(), beat].into_iter().flatten().min();
        let timeout = until(deadline);
        // Interrupted by a signal, it has nothing ready, and is called again.
        let _: rustix::io::Result<usize> = poll(&mut fds, timeout.as_ref());
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        fds.iter().zip(keys).filter(|(fd, _)| ready(fd)).map(|(_, key)| key).collect()
    }

    fn turn(&mut self, ready: &[Key]) {
        let (mut events, mut orders) = (Vec::new(), Vec::new());
        for &key in ready {
            match key {
                Key::Signal => {
                    for signal in self.signals.take() {
                        if self.verbose {
                            say(&format!("{} is handed on", signal_name(signal).unwrap_or("a signal")));
                        }
                        self.course.signalled(signal, Instant::now(), &mut orders);
                    }
                }
                Key::Local(ready) => self.group.look(ready, &mut events),
                Key::Remote(first) => self.look_at_remote(first, false, &mut events),
                Key::Command(first) => self.look_at_remote(first, true, &mut events),
            }
        }
        let now = Instant::now();
        self.group.expire(now);
        self.beat(now);
        self.course.expire(now, &mut orders);
        for event in events {
            self.happened(event, &mut orders);
        }
        self.carry_out(&orders);
    }

    fn happened(&mut self, event: Event, orders: &mut Vec<Order>) {
        match event {
            Event::Said(rank, message) => self.course.said(rank, message, orders),
            Event::Wrote { rank, error, bytes } => self.relay.wrote(rank, error, &bytes),
            Event::Exited(rank, exit) => {
                self.relay.ended(rank);
                if self.verbose {
                    say(&format!("{} {exit}", self.name(rank)));
                }
                self.course.exited(rank, exit, Instant::now(), orders);
            }
        }
    }

    fn carry_out(&mut self, orders: &[Order]) {
        for order in orders {
            let &(Order::Tell(rank, _) | Order::Signal(rank, _) | Order::Kill(rank)) = order;
            let remote = self.remotes.iter_mut().find(|remote| remote.ranks.contains(&rank));
            match (order, remote) {
                (Order::Tell(_, message), None) => self.group.tell(rank, message),
                (Order::Signal(_, signal), None) => self.group.signal(rank, *signal),
                (Order::Kill(_), None) => self.group.kill(rank),
                (Order::Tell(_, message), Some(remote)) => {
                    remote.send(&Message::Relay { rank, frame: message.to_frame() });
                }
                (Order::Signal(_, signal), Some(remote)) => {
                    remote.send(&Message::Signal { rank, signal: *signal });
                }
                (Order::Kill(_), Some(remote)) => remote.send(&Message::Signal { rank, signal: 9 }),
            }
        }
    }

    /// Give hosts a sign of life; hosts that gave none for too long are lost.
    fn beat(&mut self, now: Instant) {
        if self.remotes.is_empty() || now < self.next_beat {
            return;
        }
        self.next_beat = now + self.limits.heartbeat;
        for remote in &mut self.remotes {
            remote.send(&Message::Beat);
            let silent = now.saturating_duration_since(remote.heard);
            if remote.answered && !self.limits.silence.is_zero() && silent >= self.limits.silence {
                remote.kill(format!("it gave no sign of life for {:.1} s", silent.as_secs_f64()));
            }
        }
    }

    fn look_at_remote(&mut self, first: u32, ended: bool, events: &mut Vec<Event>) {
        let Some(at) = self.remotes.iter().position(|remote| remote.ranks.start == first) else { return };
        let open = self.remotes[at].listen(events);
        if !open || ended {
            let why = self.remotes[at].end();
            let remote = self.remotes.swap_remove(at);
            let exit = Exit::Lost(why);
            // Those of its ranks that have ended are not ended twice.
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

    fn report(mut self) -> u8 {
        let failures = self.course.failures();
        self.remotes.clear();
        let own: Vec<_> = failures.iter().filter(|failure| failure.own).collect();
        if self.course.timed_out() {
            say("the job took longer than its time");
        } else if let Some(first) = own.first().copied().or(failures.first()) {
            let others = match own.len() {
                0 | 1 => String::new(),
                several => format!(" ({} more ranks failed by themselves)", several - 1),
            };
            say(&format!("{} {}{others}", self.name(first.rank), first.how));
        }
        self.course.code()
    }
}

fn command_line(host: &Host, fencepost: &std::path::Path) -> String {
    let words = host.remote.iter().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.chain([fencepost.display().to_string(), "host".into()]).collect();
    format!("`{}`", words.join(" "))
}

impl Remote {
    fn new(host: &Host, fencepost: &std::path::Path, ranks: Range<u32>, frame: &Message) -> io::Result<Self> {
        let (program, arguments) =
            host.remote.split_first().ok_or_else(|| io::Error::other("the remote command is empty"))?;
        let mut command = Command::new(program);
        command.args(arguments).arg(fencepost).arg("host").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: one system call, made directly; nothing is allocated or locked between fork and exec.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
        }
        let mut child = command.spawn()?;
        let (to, from) = child.stdin.take().zip(child.stdout.take()).ok_or(io::ErrorKind::BrokenPipe)?;
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let mut channel = Channel::pipes(from.into(), to.into())?;
        // A command that has ended already has said why.
        let _: Result<(), Broken> = channel.send(frame);
        Ok(Self {
            ranks,
            command: command_line(host, fencepost),
            child,
            process,
            channel,
            heard: Instant::now(),
            answered: false,
            killed: None,
            dismissed: false,
        })
    }

    fn send(&mut self, message: &Message) {
        // One that is gone is found gone by its process.
        let _: Result<(), Broken> = self.channel.send(message);
    }

    /// All that it has said; whether it may say more.
    fn listen(&mut self, events: &mut Vec<Event>) -> bool {
        let _: Result<(), Broken> = self.channel.flush();
        loop {
            match self.channel.receive() {
                Ok(Some(message)) => {
                    self.heard = Instant::now();
                    self.answered = true;
                    self.take(message, events);
                }
                Ok(None) => return true,
                Err(Broken::Malformed(why)) => {
                    let printed = self.channel.rubbish();
                    self.killed.get_or_insert(format!("{} printed `{printed}`: {why}", self.command));
                    return false;
                }
                Err(_) => return false,
            }
        }
    }

    /// It says nothing more: why. What it has started there sees the end of its input and ends.
    fn end(&mut self) -> String {
        let _: rustix::io::Result<()> = pidfd_send_signal(&self.process, Signal::TERM);
        let status = self.child.wait();
        self.killed.take().unwrap_or_else(|| match status {
            Ok(status) => format!("{} ended ({status})", self.command),
            Err(error) => format!("{} ended ({error})", self.command),
        })
    }

    fn take(&self, message: Message, events: &mut Vec<Event>) {
        let ours = |rank: u32| self.ranks.contains(&rank);
        match message {
            Message::Relay { rank, frame } if ours(rank) => match control::first(&frame) {
                Ok(Some((message, _))) => events.push(Event::Said(rank, message)),
                _ => events.push(Event::Said(rank, Message::Refused("it says what is no message".into()))),
            },
            Message::Exited { rank, exit } if ours(rank) => events.push(Event::Exited(rank, exit)),
            Message::Output { rank, error, bytes } if ours(rank) => {
                events.push(Event::Wrote { rank, error, bytes });
            }
            _ => {}
        }
    }

    /// Nothing more will be said to it.
    fn dismiss(&mut self) {
        if !std::mem::replace(&mut self.dismissed, true) {
            self.send(&Message::Stop);
        }
    }

    fn kill(&mut self, why: String) {
        self.killed.get_or_insert(why);
        let _: rustix::io::Result<()> = pidfd_send_signal(&self.process, Signal::KILL);
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _: rustix::io::Result<()> = pidfd_send_signal(&self.process, Signal::TERM);
        let _: io::Result<std::process::ExitStatus> = self.child.wait();
    }
}

/// Whether there are descriptors for so many ranks; asks the system for more where it allows that.
fn room_for(here: u32, captured: bool, hosts: usize) -> io::Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    // For each rank a process, a channel and two pipes; some more while one is started.
    let needed = u64::from(here) * if captured { 4 } else { 2 } + hosts as u64 * 3 + 16;
    let mut limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|&current| current < needed) else { return Ok(()) };
    let most = limit.maximum.unwrap_or(u64::MAX);
    if most < needed {
        return Err(io::Error::other(format!(
            "{here} ranks on this host take {needed} descriptors here, and {current} are allowed (ulimit -n)"
        )));
    }
    limit.current = Some(needed);
    Ok(setrlimit(Resource::Nofile, limit)?)
}
