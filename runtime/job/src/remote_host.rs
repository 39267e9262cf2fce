//! [`RemoteHost`]: another host of a job, as the launcher sees it.

use crate::channel::{Channel, ChannelError};
use crate::children::Event;
use crate::control::{self, Message};
use crate::exit::Exit;
use crate::start::Host;
use crate::turns::timeout_until;
use fencepost_transport::call_failed;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal,
};
use signal_hook::consts::SIGKILL;
use std::io;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a remote command may run after the launcher has asked it to end.
const END_LIMIT: Duration = Duration::from_secs(3);

/// A descriptor of a remote host that is ready. The number is the first rank of the host.
#[derive(Clone, Copy)]
pub(crate) enum RemoteReady {
    Channel(u32),
    /// The remote command has ended.
    Process(u32),
}

/// The remote command of another host, through which the launcher exchanges messages with
/// `fencepost host` there.
pub(crate) struct RemoteHost {
    pub(crate) ranks: Range<u32>,
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
    /// Whether rank 0 is on this host and has not yet taken the most recent piece of its input.
    input_given: bool,
    /// Whether rank 0 reads no more input.
    input_closed: bool,
}

impl RemoteHost {
    /// Starts the remote command of `host`, and sends it `frame`.
    pub(crate) fn new(
        host: &Host,
        fencepost: &std::path::Path,
        ranks: Range<u32>,
        frame: &Message,
    ) -> io::Result<Self> {
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

    pub(crate) fn send(&mut self, message: &Message) {
        // An error needs no handling here: if the host is lost, its command ends, and the process
        // descriptor reports that.
        let _: Result<(), ChannelError> = self.channel.send(message);
    }

    /// Adds the descriptors that the launcher waits for to `fds`, and calls `key` with the meaning
    /// of each.
    pub(crate) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>, mut key: impl FnMut(RemoteReady)) {
        let first = self.ranks.start;
        fds.push(PollFd::new(&self.process, PollFlags::IN));
        key(RemoteReady::Process(first));
        if self.channel.is_open() {
            fds.push(PollFd::from_borrowed_fd(self.channel.source(), PollFlags::IN));
            key(RemoteReady::Channel(first));
        }
        if self.channel.unsent() > 0 {
            fds.push(PollFd::from_borrowed_fd(self.channel.sink(), PollFlags::OUT));
            key(RemoteReady::Channel(first));
        }
    }

    /// Sends a heartbeat. If the host has sent nothing for the silence limit, the host is lost.
    pub(crate) fn exchange_heartbeat(&mut self, looked: Instant, limit: Duration) {
        self.send(&Message::Heartbeat);
        let silent = looked.saturating_duration_since(self.last_message);
        if self.answered && !limit.is_zero() && silent >= limit {
            let why = format!("it sent no heartbeat for {:.1} s", silent.as_secs_f64());
            self.given_up.get_or_insert(Exit::Lost(why));
            self.kill();
        }
    }

    /// Extends all time limits by `time`, which has just passed and does not count.
    pub(crate) fn pass_over(&mut self, now: Instant, time: Duration) {
        self.last_message = now;
        self.kill_deadline = self.kill_deadline.map(|then| then + time);
    }

    /// Passes a piece of the standard input on to rank 0.
    pub(crate) fn give_input(&mut self, bytes: Vec<u8>) {
        self.input_given = true;
        self.send(&Message::Input(bytes));
    }

    /// Returns whether rank 0 has taken all input that it was given.
    pub(crate) fn has_taken_input(&self) -> bool {
        !self.input_given
    }

    /// Returns whether rank 0 takes more input.
    pub(crate) fn takes_input(&self) -> bool {
        !self.input_closed
    }

    /// Makes the host send `signal` to a rank. If `fencepost host` does not run there yet, it may
    /// never forward the signal. In that case the launcher gives the host up, unless the signal is
    /// for the program's own use (`of_user`).
    pub(crate) fn signal_rank(&mut self, rank: u32, signal: i32, of_user: bool) {
        if self.answered || of_user {
            return self.send(&Message::Signal { rank, signal });
        }
        self.given_up.get_or_insert(Exit::Signal(signal as u8));
        self.ask_to_end();
    }

    /// Asks the host to kill a rank.
    pub(crate) fn kill_rank(&mut self, rank: u32) {
        self.send(&Message::Signal { rank, signal: SIGKILL });
        self.kill_deadline.get_or_insert_with(|| Instant::now() + END_LIMIT);
    }

    /// Sends the bytes that are not sent yet, until `limit` at most.
    pub(crate) fn flush_before(&mut self, limit: Instant) {
        while self.channel.flush().is_ok() && self.channel.unsent() > 0 && Instant::now() < limit {
            let mut fds = [PollFd::from_borrowed_fd(self.channel.sink(), PollFlags::OUT)];
            let _: rustix::io::Result<usize> = poll(&mut fds, timeout_until(Some(limit)).as_ref());
        }
    }

    /// Handles all messages that have arrived, and returns whether more may arrive.
    pub(crate) fn receive_all(&mut self, events: &mut Vec<Event>) -> bool {
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
    pub(crate) fn reap(&mut self) -> Exit {
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
    pub(crate) fn ask_to_end(&mut self) {
        if self.kill_deadline.is_none() {
            self.signal(Signal::TERM);
            self.kill_deadline = Some(Instant::now() + END_LIMIT);
        }
    }

    /// Returns whether the launcher has given the host up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.is_some()
    }

    /// Returns the time at which [`expire`](Self::expire) kills the command.
    pub(crate) fn kill_deadline(&self) -> Option<Instant> {
        self.kill_deadline
    }

    /// Kills the command if its deadline has passed.
    pub(crate) fn expire(&mut self, now: Instant) {
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
    pub(crate) fn send_stop(&mut self) {
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

/// Returns the remote command of `host` as text.
pub(crate) fn command_line(host: &Host, fencepost: &std::path::Path) -> String {
    let words = host.remote.iter().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.chain([fencepost.display().to_string(), "host".into()]).collect();
    format!("`{}`", words.join(" "))
}
