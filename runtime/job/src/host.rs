//! [`host`]: the part of a job's starter that is on another host: `fencepost host`, started there by the remote command.
//!
//! It is told what to start on its standard input, and tells on its standard output what its ranks say, write and end
//! with. When the starter is silent for too long, or its input ends, its ranks are killed: nothing is left there.

use crate::channel::{Broken, Channel};
use crate::control::{self, HostJob, Message};
use crate::description::Reach;
use crate::exit::{Exit, FAILED, NOT_RUN};
use crate::group::{Event, Group, Program, Ready, until};
use crate::link::Memory;
use crate::signals::Signals;
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Instant;

/// Output that waits to be sent: with more than this, ranks have to wait before they write more.
const WAITING_MAX: usize = 1 << 20;

/// Start and watch the ranks of one host, as standard input says; gives the exit code.
pub fn host() -> u8 {
    match serve() {
        Ok(()) => 0,
        Err(why) => {
            crate::relay::say(&format!("host: {why}"));
            FAILED
        }
    }
}

struct Serving {
    channel: Channel,
    group: Group,
    signals: Signals,
    asked: HostJob,
    heard: Instant,
    next_beat: Instant,
    /// Whether the starter takes no more output just now.
    held: bool,
}

fn serve() -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let from = io::stdin().as_fd().try_clone_to_owned().map_err(|error| text(&error))?;
    let to = io::stdout().as_fd().try_clone_to_owned().map_err(|error| text(&error))?;
    let mut channel = Channel::pipes(from, to).map_err(|error| text(&error))?;
    let asked = loop {
        match channel.receive() {
            Ok(Some(Message::Start(asked))) => break *asked,
            Ok(Some(_)) => return Err("it was told something before it was told what to start".into()),
            Ok(None) => {
                let mut fds = [PollFd::from_borrowed_fd(channel.source(), PollFlags::IN)];
                let _: rustix::io::Result<usize> = poll(&mut fds, None);
            }
            Err(Broken::Closed) => return Err("this is started by `fencepost run`, not by hand".into()),
            Err(why) => return Err(text(&why)),
        }
    };
    // There is something to be cleaned up from here on.
    let signals = Signals::new().map_err(|error| text(&error))?;
    let limits = asked.job.limits;
    let now = Instant::now();
    let mut serving = Serving {
        channel,
        group: Group::new(limits, Vec::new()),
        signals,
        asked,
        heard: now,
        next_beat: now,
        held: false,
    };
    if let Err((rank, exit)) = serving.start() {
        for rank in rank..serving.asked.job.rank + serving.asked.ranks {
            serving.send(&Message::Exited { rank, exit: exit.clone() })?;
        }
    }
    serving.go()
}

impl Serving {
    fn start(&mut self) -> Result<(), (u32, Exit)> {
        let first = self.asked.job.rank;
        let failed = |why: String| (first, Exit::NotStarted { code: FAILED, why });
        let asked = &self.asked;
        if asked.release != crate::RELEASE {
            let there = crate::RELEASE;
            return Err(failed(format!("Fencepost is {there} there and {} here", asked.release)));
        }
        let path = PathBuf::from(&asked.program);
        // One that is not there is told of when it is started.
        if let (Some(digest), Ok(there)) = (asked.digest, crate::digest(&path))
            && digest != there
        {
            let why = format!("{} there is another program than here", path.display());
            return Err((first, Exit::NotStarted { code: NOT_RUN, why }));
        }
        crate::start::room_for(asked.ranks, true, 1).map_err(|error| failed(error.to_string()))?;
        let mut job = asked.job.clone();
        job.bind = crate::bind::address(&asked.bind).map_err(failed)?;
        if job.reach != Reach::Tcp {
            let memory =
                Memory::create(first..first + asked.ranks).map_err(|error| failed(error.to_string()))?;
            self.group = Group::new(job.limits, vec![memory]);
        }
        let program = Program {
            path,
            arguments: asked.arguments.clone(),
            folder: PathBuf::from(&asked.folder),
            environment: asked.environment.clone(),
            capture: true,
            input: false,
            pin: asked.pin,
        };
        for seat in 0..asked.ranks {
            job.rank = first + seat;
            self.group
                .start(&program, &Message::Job(job.clone()), job.rank, seat as usize)
                .map_err(|exit| (job.rank, exit))?;
        }
        Ok(())
    }

    fn send(&mut self, message: &Message) -> Result<(), String> {
        self.channel.send(message).map_err(|why| format!("the starter is gone: {why}"))
    }

    fn go(&mut self) -> Result<(), String> {
        loop {
            let ready = self.wait();
            let mut events = Vec::new();
            if self.listen()? {
                return Ok(());
            }
            for ready in ready {
                self.group.look(ready, &mut events);
            }
            if let Some(&signal) = self.signals.take().first() {
                return Err(format!("ended by signal {signal}"));
            }
            let now = Instant::now();
            self.group.expire(now);
            for event in events {
                self.send(&match event {
                    Event::Said(rank, message) => Message::Relay { rank, frame: message.to_frame() },
                    Event::Wrote { rank, error, bytes } => Message::Output { rank, error, bytes },
                    Event::Exited(rank, exit) => Message::Exited { rank, exit },
                })?;
            }
            if now >= self.next_beat {
                self.next_beat = now + self.asked.job.limits.heartbeat;
                self.send(&Message::Beat)?;
            }
            let silent = now.saturating_duration_since(self.heard);
            let limit = self.asked.job.limits.silence;
            if !limit.is_zero() && silent >= limit {
                return Err(format!("the starter gave no sign of life for {:.1} s", silent.as_secs_f64()));
            }
        }
    }

    /// What the starter says; whether that was that it is over.
    fn listen(&mut self) -> Result<bool, String> {
        self.channel.flush().map_err(|why| why.to_string())?;
        while let Some(message) =
            self.channel.receive().map_err(|why| format!("the starter is gone: {why}"))?
        {
            self.heard = Instant::now();
            match message {
                Message::Relay { rank, frame } => {
                    if let Ok(Some((message, _))) = control::first(&frame) {
                        self.group.tell(rank, &message);
                    }
                }
                Message::Signal { rank, signal: 9 } => self.group.kill(rank),
                Message::Signal { rank, signal } => self.group.signal(rank, signal),
                Message::Hold(hold) => self.held = hold,
                Message::Stop => return Ok(true),
                _ => {}
            }
        }
        Ok(false)
    }

    fn wait(&self) -> Vec<Ready> {
        let (mut fds, mut keys) = (Vec::new(), Vec::new());
        let full = self.held || self.channel.waiting() > WAITING_MAX;
        self.group.watch(&mut fds, !full, |ready| keys.push(ready));
        let ranks = fds.len();
        fds.push(PollFd::from_borrowed_fd(self.signals.source(), PollFlags::IN));
        fds.push(PollFd::from_borrowed_fd(self.channel.source(), PollFlags::IN));
        if self.channel.waiting() > 0 {
            fds.push(PollFd::from_borrowed_fd(self.channel.sink(), PollFlags::OUT));
        }
        let limits = self.asked.job.limits;
        let silence = (!limits.silence.is_zero()).then(|| self.heard + limits.silence);
        let deadline = [Some(self.next_beat), silence, self.group.deadline()].into_iter().flatten().min();
        // Interrupted by a signal, it has nothing ready, and is called again.
        let _: rustix::io::Result<usize> = poll(&mut fds, until(deadline).as_ref());
        let ready = fds[..ranks].iter().zip(keys).filter(|(fd, _)| !fd.revents().is_empty());
        ready.map(|(_, key)| key).collect()
    }
}
