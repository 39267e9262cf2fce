//! [`Start`]: starts a job, watches it until every rank has ended, and says how it went.
//!
//! Ranks of this machine are children of this process ([`Group`](crate::group::Group)); for each other host there is one
//! command (`ssh`) that runs `fencepost host` there, and messages go through its standard input and output. What is done
//! when is decided by the [`Course`](crate::course::Course).

use crate::channel::{Broken, Channel};
use crate::control::{self, HostJob, Message};
use crate::course::{Course, Order};
use crate::description::{Description, HostRanks, Limits, Reach};
use crate::exit::{Exit, FAILED, TIMED_OUT, signal_name};
use crate::group::{Event, Group, Program, Ready, until};
use crate::link::Memory;
use crate::relay::{Relay, say};
use crate::signals::Signals;
use fencepost_transport::auth::{Secret, random_bytes};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal,
};
use std::ffi::OsString;
use std::io;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The most ranks that a job has: where all of them listen is one message.
pub const RANKS_MAX: u32 = 1 << 18;

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
                running.report();
                running.drain()
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
    /// What becomes of its ranks, where it was ended here.
    ended: Option<Exit>,
    /// When it is killed, if it has not ended by itself.
    last_call: Option<Instant>,
    /// Whether it was told that the job is over.
    dismissed: bool,
}

/// So long a remote command may go on when it is to end.
const LINGER: Duration = Duration::from_secs(3);

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
    /// When it is said that a rank has not joined, though others have.
    late: Late,
    /// Whether hosts were told to hold what their ranks write.
    held: bool,
}

/// Nothing is heard of a rank before it joins, and a program may take its time: it is said once, and nobody is killed.
#[derive(Clone, Copy)]
enum Late {
    NobodyJoined,
    At(Instant),
    Over,
}

#[derive(Clone, Copy)]
enum Key {
    Signal,
    /// Our own output takes more.
    Output,
    Local(Ready),
    /// The channel of one of the remotes, by its first rank.
    Remote(u32),
    /// The process of one of the remotes.
    Command(u32),
}

impl Running {
    fn new(start: &Start) -> io::Result<Self> {
        let size = start.hosts.iter().map(|host| u64::from(host.ranks)).sum::<u64>();
        if size > u64::from(RANKS_MAX) {
            return Err(io::Error::other(format!("it has {size} ranks, and may have {RANKS_MAX} at most")));
        }
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
            late: if start.limits.silence.is_zero() { Late::Over } else { Late::NobodyJoined },
            held: false,
        })
    }

    fn start(&mut self, start: &Start) {
        let (secret, job) = match (Secret::new(), random_bytes()) {
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
                self.relay.say(&format!("ranks {ranks:?} on {}: {program}, started {how}", host.name));
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
        job.bind = crate::bind::address(&host.bind).map_err(failed)?;
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
        let digest = crate::digest(&start.program).ok();
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
        self.relay.watch(&mut fds);
        keys.resize(fds.len(), Key::Output);
        // What nobody takes from us, ranks have to keep.
        self.group.watch(&mut fds, !self.relay.is_full(), |ready| keys.push(Key::Local(ready)));
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
        let last_call = self.remotes.iter().filter_map(|remote| remote.last_call).min();
        let late = if let Late::At(then) = self.late { Some(then) } else { None };
        let deadlines = [self.course.deadline(), self.group.deadline(), beat, last_call, late];
        let deadline = deadlines.into_iter().flatten().min();
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
                            self.relay
                                .say(&format!("{} is handed on", signal_name(signal).unwrap_or("a signal")));
                        }
                        self.course.signalled(signal, Instant::now(), &mut orders);
                    }
                }
                Key::Output => {}
                Key::Local(ready) => self.group.look(ready, &mut events),
                Key::Remote(first) => self.look_at_remote(first, false, &mut events),
                Key::Command(first) => self.look_at_remote(first, true, &mut events),
            }
        }
        let now = Instant::now();
        self.group.expire(now);
        self.beat(now);
        self.remotes.iter_mut().for_each(|remote| remote.expire(now));
        self.course.expire(now, &mut orders);
        for event in events {
            self.happened(event, &mut orders);
        }
        self.carry_out(&orders);
        self.look_for_late(now);
        self.relay.flush();
        if self.held != self.relay.is_full() {
            self.held = !self.held;
            self.remotes.iter_mut().for_each(|remote| remote.send(&Message::Hold(self.held)));
        }
    }

    fn happened(&mut self, event: Event, orders: &mut Vec<Order>) {
        match event {
            Event::Said(rank, message) => self.course.said(rank, message, orders),
            Event::Wrote { rank, error, bytes } => self.relay.wrote(rank, error, &bytes),
            Event::Exited(rank, exit) => {
                self.relay.ended(rank);
                if self.verbose {
                    self.relay.say(&format!("{} {exit}", self.name(rank)));
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
                // Nobody is there yet to hand it on, and perhaps never will.
                (&Order::Signal(_, signal), Some(remote))
                    if !remote.answered && !self.course.is_users(signal) =>
                {
                    remote.let_go(Exit::Signal(signal as u8));
                }
                (Order::Signal(_, signal), Some(remote)) => {
                    remote.send(&Message::Signal { rank, signal: *signal });
                }
                (Order::Kill(_), Some(remote)) => {
                    remote.send(&Message::Signal { rank, signal: 9 });
                    remote.last_call.get_or_insert_with(|| Instant::now() + LINGER);
                }
            }
        }
    }

    fn look_for_late(&mut self, now: Instant) {
        if matches!(self.late, Late::Over) {
            return;
        }
        self.late = match (self.late, self.course.absent()) {
            (late, None) => late,
            (_, Some((_, None))) => Late::Over,
            (Late::NobodyJoined, _) => Late::At(now + self.limits.silence),
            (Late::At(then), Some((count, Some(first)))) if then <= now => {
                let after = self.limits.silence.as_secs_f64();
                let others = if count > 1 { format!(", and {} more,", count - 1) } else { String::new() };
                let name = self.name(first);
                self.relay.say(&format!("{name}{others} has not joined the job, {after:.1} s after others, who may wait for it: --timeout ends such a job"));
                Late::Over
            }
            (late, _) => late,
        };
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
                let why = format!("it gave no sign of life for {:.1} s", silent.as_secs_f64());
                remote.ended.get_or_insert(Exit::Lost(why));
                remote.kill();
            }
        }
    }

    fn look_at_remote(&mut self, first: u32, ended: bool, events: &mut Vec<Event>) {
        let Some(at) = self.remotes.iter().position(|remote| remote.ranks.start == first) else { return };
        let remote = &mut self.remotes[at];
        if !remote.listen(events) {
            remote.hurry();
        }
        if ended {
            let mut remote = self.remotes.swap_remove(at);
            let exit = remote.end();
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

    /// Say what failed.
    fn report(&mut self) {
        let failures = self.course.failures();
        let own: Vec<_> = failures.iter().filter(|failure| failure.own).collect();
        if self.course.timed_out() {
            self.relay.say("the job took longer than its time");
        } else if let Some(first) = own.first().copied().or(failures.first()) {
            let others = match own.len() {
                0 | 1 => String::new(),
                several => format!(" ({} more ranks failed by themselves)", several - 1),
            };
            self.relay.say(&format!("{} {}{others}", self.name(first.rank), first.how));
        }
    }

    /// Hand on what ranks wrote to the end, as long as somebody may still want it; give the exit code.
    fn drain(mut self) -> u8 {
        let limit = self.course.output_deadline(Instant::now());
        let (mut code, mut said) = (self.course.code(), false);
        loop {
            self.relay.flush();
            // What is lost is no success.
            if !said && let Some(error) = self.relay.refused() {
                self.relay.say(&format!("not all that ranks wrote could be handed on: {error}"));
                (code, said) = (if code == 0 { FAILED } else { code }, true);
                continue;
            }
            if self.relay.is_empty() {
                return code;
            }
            let mut fds = vec![PollFd::from_borrowed_fd(self.signals.source(), PollFlags::IN)];
            self.relay.watch(&mut fds);
            let _: rustix::io::Result<usize> = poll(&mut fds, until(limit).as_ref());
            let ends = |signal: &i32| !self.course.is_users(*signal);
            let cut = match self.signals.take().into_iter().find(ends) {
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
        let open = |child: &mut Child| -> io::Result<(OwnedFd, Channel)> {
            let (to, from) = child.stdin.take().zip(child.stdout.take()).ok_or(io::ErrorKind::BrokenPipe)?;
            let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
            Ok((process, Channel::pipes(from.into(), to.into())?))
        };
        let (process, mut channel) = match open(&mut child) {
            Ok(opened) => opened,
            Err(error) => {
                child.kill()?;
                child.wait()?;
                return Err(error);
            }
        };
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
            ended: None,
            last_call: None,
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
                    let why = format!("{} printed `{printed}`: {why}", self.command);
                    self.ended.get_or_insert(Exit::Lost(why));
                    return false;
                }
                Err(_) => return false,
            }
        }
    }

    /// Its process has ended: what becomes of its ranks. What it has started there sees the end of its input and ends.
    fn end(&mut self) -> Exit {
        let _: rustix::io::Result<()> = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let status = self.child.wait();
        self.ended.take().unwrap_or_else(|| {
            Exit::Lost(match status {
                Ok(status) => format!("{} ended ({status})", self.command),
                Err(error) => format!("{} ended ({error})", self.command),
            })
        })
    }

    /// It has nothing more to say: it is asked to end, and killed if it does not.
    fn hurry(&mut self) {
        if self.last_call.is_none() {
            self.signal(Signal::TERM);
            self.last_call = Some(Instant::now() + LINGER);
        }
    }

    /// Give it up: this becomes of its ranks.
    fn let_go(&mut self, exit: Exit) {
        self.ended.get_or_insert(exit);
        self.hurry();
    }

    /// Kill it, if its time is over.
    fn expire(&mut self, now: Instant) {
        if self.last_call.is_some_and(|then| then <= now) {
            self.last_call = None;
            let why = format!("{} did not end when it was to, and was killed", self.command);
            self.ended.get_or_insert(Exit::Lost(why));
            self.kill();
        }
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
            self.last_call.get_or_insert_with(|| Instant::now() + LINGER);
        }
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    /// A signal for the command and for what it has started here.
    fn signal(&self, signal: Signal) {
        // It may have ended: until it is reaped, nobody else has its number.
        let _: rustix::io::Result<()> = pidfd_send_signal(&self.process, signal);
        let _: rustix::io::Result<()> = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // None but where we unwind: else it has been reaped.
        if let Ok(None) = self.child.try_wait() {
            self.kill();
            let _: io::Result<std::process::ExitStatus> = self.child.wait();
        }
    }
}

/// Whether there are descriptors for so many ranks; asks the system for more where it allows that.
pub(crate) fn room_for(here: u32, captured: bool, hosts: usize) -> io::Result<()> {
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
