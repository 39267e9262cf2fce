//! [`host`]: the launcher's agent on another host. The remote command starts it there, as
//! `fencepost host`.
//!
//! The launcher sends the request to start ranks to the agent's standard input. The agent sends the
//! messages, the output and the exits of its ranks to its standard output. If the launcher is
//! silent for too long, or the input ends, the agent kills its ranks, so that no process is left on
//! the host. While the launcher is suspended, the ranks are suspended, too, and the launcher's
//! silence does not count.

use crate::channel::{Channel, ChannelError};
use crate::children::{Children, Event, Input, Program, Ready};
use crate::control::{HostJob, Message};
use crate::description::Reach;
use crate::exit::{Exit, FAILED, NOT_RUN};
use crate::link::HostMemory;
use crate::signals::Signals;
use crate::turns::Turns;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::SIGKILL;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Instant;

/// The number of unsent bytes above which the agent stops reading the output of its ranks, so that
/// the ranks wait.
const UNSENT_MAX: usize = 1 << 20;

/// Starts and watches the ranks of one host, as requested on standard input. Returns the exit code.
pub fn host() -> u8 {
    match serve() {
        Ok(()) => 0,
        Err(why) => {
            crate::relay::report(&format!("host: {why}"));
            FAILED
        }
    }
}

struct Agent {
    channel: Channel,
    children: Children,
    signals: Signals,
    request: HostJob,
    /// The time at which the last message from the launcher arrived.
    last_message: Instant,
    next_beat: Instant,
    turns: Turns,
    /// Whether the launcher has asked to pause the output.
    output_paused: bool,
    /// Whether the launcher is stopped, and the ranks are stopped with it.
    suspended: bool,
    /// Whether the launcher waits until rank 0 has taken a piece of the input.
    input_given: bool,
}

fn serve() -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let from = io::stdin().as_fd().try_clone_to_owned().map_err(|error| text(&error))?;
    let to = io::stdout().as_fd().try_clone_to_owned().map_err(|error| text(&error))?;
    let mut channel = Channel::from_pipes(from, to).map_err(|error| text(&error))?;
    let request = loop {
        match channel.receive() {
            Ok(Some(Message::Start(request))) => break *request,
            Ok(Some(_)) => {
                return Err("the launcher sent another message before the request to start ranks".into());
            }
            Ok(None) => {
                let mut fds = [PollFd::from_borrowed_fd(channel.source(), PollFlags::IN)];
                let _: rustix::io::Result<usize> = poll(&mut fds, None);
            }
            Err(ChannelError::Closed) => {
                return Err("this command is started by `fencepost run`, and not by a user".into());
            }
            Err(why) => return Err(text(&why)),
        }
    };
    // From here on signals are caught, since the ranks must be killed before this process ends.
    let signals = Signals::new(false).map_err(|error| text(&error))?;
    let limits = request.job.limits;
    let now = Instant::now();
    let mut agent = Agent {
        channel,
        children: Children::new(limits, Vec::new()),
        signals,
        request,
        last_message: now,
        next_beat: now,
        turns: Turns::new(limits),
        output_paused: false,
        suspended: false,
        input_given: false,
    };
    if let Err((rank, exit)) = agent.start_ranks() {
        for rank in rank..agent.request.job.rank + agent.request.ranks {
            agent.send(&Message::Exited { rank, exit: exit.clone() })?;
        }
    }
    agent.watch()
}

impl Agent {
    fn start_ranks(&mut self) -> Result<(), (u32, Exit)> {
        let first = self.request.job.rank;
        let failed = |why: String| (first, Exit::NotStarted { code: FAILED, why });
        let request = &self.request;
        if request.release != crate::RELEASE {
            let why = format!(
                "the host has Fencepost {}, and the launcher {}: install the same version",
                crate::RELEASE,
                request.release
            );
            return Err(failed(why));
        }
        let path = PathBuf::from(&request.program);
        // If the program does not exist here, the attempt to start it reports that.
        if let (Some(digest), Ok(own)) = (request.digest, crate::digest(&path))
            && digest != own
        {
            let why = format!(
                "{} on the host differs from the launcher's: copy the program to the host",
                path.display()
            );
            return Err((first, Exit::NotStarted { code: NOT_RUN, why }));
        }
        crate::needs::check(request.ranks, true, 1).map_err(|error| failed(error.to_string()))?;
        let mut job = request.job.clone();
        job.cores = crate::pin::cores();
        job.bind = crate::bind::address(&request.bind).map_err(failed)?;
        if job.reach != Reach::Tcp {
            let memory = HostMemory::create(first..first + request.ranks)
                .map_err(|error| failed(error.to_string()))?;
            self.children = Children::new(job.limits, vec![memory]);
        }
        let program = Program {
            path,
            arguments: request.arguments.clone(),
            folder: PathBuf::from(&request.folder),
            environment: request.environment.clone(),
            capture: true,
            input: Input::PassedOn,
            pin: request.pin,
        };
        for (core, rank) in (request.first_core as usize..).zip(first..first + request.ranks) {
            job.rank = rank;
            self.children
                .start(&program, &Message::Job(job.clone()), rank, core)
                .map_err(|exit| (rank, exit))?;
        }
        Ok(())
    }

    fn send(&mut self, message: &Message) -> Result<(), String> {
        self.channel.send(message).map_err(|why| format!("the connection to the launcher failed: {why}"))
    }

    fn watch(&mut self) -> Result<(), String> {
        loop {
            // Silence is measured up to the time before `poll`: everything that was sent by then is
            // handled first, however long that takes.
            let looked = Instant::now();
            let ready = self.wait();
            if self.turns.next().is_some() {
                self.last_message = Instant::now();
                self.children.restart_silence();
            }
            let mut events = Vec::new();
            if self.handle_messages()? {
                return Ok(());
            }
            for ready in ready {
                self.children.handle_ready(ready, &mut events);
            }
            if let Some(&signal) = self.signals.take().first() {
                return Err(format!("ended by signal {signal}"));
            }
            let now = Instant::now();
            self.children.expire(looked, &mut events);
            for event in events {
                self.send(&match event {
                    Event::Reported(rank, message) => Message::Forward { rank, frame: message.to_frame() },
                    Event::Output { rank, error, bytes } => Message::Output { rank, error, bytes },
                    Event::Exited(rank, exit) => Message::Exited { rank, exit },
                })?;
            }
            if self.input_given && self.children.has_taken_input() {
                self.input_given = false;
                let more = self.children.takes_input();
                self.send(&Message::InputTaken(more))?;
            }
            if now >= self.next_beat {
                self.next_beat = now + self.request.job.limits.heartbeat;
                if !self.suspended {
                    self.send(&Message::Heartbeat)?;
                }
            }
            let silent = looked.saturating_duration_since(self.last_message);
            let limit = self.request.job.limits.silence;
            if !limit.is_zero() && silent >= limit && !self.suspended {
                return Err(format!("the launcher sent no heartbeat for {:.1} s", silent.as_secs_f64()));
            }
        }
    }

    /// Handles the launcher's messages, and returns whether the job is over.
    fn handle_messages(&mut self) -> Result<bool, String> {
        self.channel.flush().map_err(|why| why.to_string())?;
        while let Some(message) =
            self.channel.receive().map_err(|why| format!("the connection to the launcher failed: {why}"))?
        {
            self.last_message = Instant::now();
            match message {
                Message::ForwardToAll(frame) => self.children.notify_all(&frame),
                Message::Signal { rank, signal: SIGKILL } => self.children.kill(rank),
                Message::Signal { rank, signal } => self.children.signal(rank, signal),
                Message::PauseOutput(pause) => self.output_paused = pause,
                Message::Suspend(stop) => {
                    self.suspended = stop;
                    self.children.suspend(stop);
                }
                Message::Input(bytes) => {
                    self.children.give_input(&bytes);
                    self.input_given = true;
                }
                Message::Stop => return Ok(true),
                _ => {}
            }
        }
        Ok(false)
    }

    fn wait(&self) -> Vec<Ready> {
        let (mut fds, mut keys) = (Vec::new(), Vec::new());
        let full = self.output_paused || self.channel.unsent() > UNSENT_MAX;
        self.children.watch(&mut fds, !full, |ready| keys.push(ready));
        let ranks = fds.len();
        fds.push(PollFd::from_borrowed_fd(self.signals.source(), PollFlags::IN));
        fds.push(PollFd::from_borrowed_fd(self.channel.source(), PollFlags::IN));
        if self.channel.unsent() > 0 {
            fds.push(PollFd::from_borrowed_fd(self.channel.sink(), PollFlags::OUT));
        }
        let limits = self.request.job.limits;
        let limited = !limits.silence.is_zero() && !self.suspended;
        let silence = limited.then(|| self.last_message + limits.silence);
        let deadline = [Some(self.next_beat), silence, self.children.deadline()].into_iter().flatten().min();
        // If a signal interrupts `poll`, nothing is ready, and the caller calls again.
        let _: rustix::io::Result<usize> = poll(&mut fds, self.turns.timeout(deadline).as_ref());
        let ready = fds[..ranks].iter().zip(keys).filter(|(fd, _)| !fd.revents().is_empty());
        ready.map(|(_, key)| key).collect()
    }
}
