//! [`Children`]: the ranks of a job that are child processes of this process.
//!
//! Each child leads a process group of its own, dies with this process, and is identified by a
//! process descriptor (`pidfd`), so that no signal can reach another process that has reused the
//! child's process id. `poll` reports deaths, messages and output. The only deadlines are the
//! silence limit and [`WRAPPER_END`].

use crate::channel::{Channel, ChannelError};
use crate::control::Message;
use crate::description::Limits;
use crate::exit::{Exit, FAILED, NOT_FOUND, NOT_RUN};
use crate::input::InputPipe;
use crate::link::HostMemory;
use crate::state_machine::VANISHED;
use fencepost_transport::call_failed;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process_group, pidfd_open,
    pidfd_send_signal, set_parent_process_death_signal, waitid,
};
use rustix::thread::sched_setaffinity;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that names a rank's control channel: its descriptor, and the inode of its socket.
/// Thanks to the inode, a process does not mistake another descriptor for the channel.
pub(crate) const VARIABLE: &str = "FENCEPOST_JOB";
/// How long a wrapper may take to end after the process inside the wrapper, which had joined the
/// job, has ended. A wrapper that runs longer counts as continuing.
const WRAPPER_END: Duration = Duration::from_millis(500);
/// The number of bytes of output that one system call reads.
const PIECE: usize = 1 << 14;

/// The program that ranks run, and how it is started.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) folder: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Whether this process captures the standard output of ranks. The standard error of ranks is
    /// always captured, so that the lines of several ranks do not mix.
    pub(crate) capture: bool,
    /// The standard input of rank 0. The other ranks have an empty input.
    pub(crate) input: Input,
    /// Whether each rank is pinned to a core.
    pub(crate) pin: bool,
}

/// The standard input of rank 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    /// The standard input of this process.
    Inherited,
    /// The bytes that this process passes on with [`give_input`](Children::give_input).
    PassedOn,
    None,
}

impl Program {
    /// Returns whether the program is a path, or the name of a file in a folder of `PATH`.
    fn is_found(&self) -> bool {
        if self.path.is_absolute() || self.path.components().count() > 1 {
            return true;
        }
        let given = self.environment.iter().rfind(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        let folders = given.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| self.folder.join(folder).join(&self.path).exists())
    }
}

/// An event of a rank.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Reported(u32, Message),
    Output { rank: u32, error: bool, bytes: Vec<u8> },
    Exited(u32, Exit),
}

/// A descriptor of a rank that became ready.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ready {
    Process(u32),
    /// The process that has joined the job, if that process runs inside the child.
    Joined(u32),
    Channel(u32),
    Output(u32, bool),
    Input(u32),
}

pub(crate) struct Children {
    children: Vec<Child>,
    limits: Limits,
    /// One memory file for each of the job's hosts that are on this machine.
    memory: Vec<HostMemory>,
    /// Whether the children are stopped.
    suspended: bool,
}

struct Child {
    rank: u32,
    pid: Pid,
    process: OwnedFd,
    /// The process that has joined the job, if the child is a wrapper around that process.
    joined: Option<OwnedFd>,
    channel: Channel,
    output: [Option<OwnedFd>; 2],
    input: Option<InputPipe>,
    /// The time at which the last message arrived; `None` before the first one.
    last_message: Option<Instant>,
    /// Whether the rank is in a world.
    in_world: bool,
    /// The time at which the rank counts as failed if its wrapper still runs then. Set when the
    /// process that had joined ends inside a world.
    vanishes: Option<Instant>,
    /// Whether the rank's program has announced its end. A wrapper around it may continue, and
    /// sends no heartbeats.
    has_left: bool,
    /// The exit to report if this process has killed the child.
    killed: Option<Exit>,
}

/// Returns the exit of a rank whose process the system did not start because of `error`.
fn not_started(program: &Program, error: &io::Error) -> Exit {
    let path = program.path.display();
    let (code, why) = match error.kind() {
        io::ErrorKind::NotFound if !program.folder.is_dir() => {
            (FAILED, format!("the working directory {} does not exist", program.folder.display()))
        }
        io::ErrorKind::NotFound => (NOT_FOUND, format!("the program {path} does not exist")),
        // The error concerns a folder of the search path that this user may not search, and not the
        // program.
        io::ErrorKind::PermissionDenied if !program.is_found() => {
            (NOT_FOUND, format!("the program {path} does not exist"))
        }
        io::ErrorKind::PermissionDenied => (NOT_RUN, format!("{path} can't be executed: {error}")),
        _ if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
            (NOT_RUN, format!("{path} is not an executable for this machine: {error}"))
        }
        _ => (FAILED, error.to_string()),
    };
    Exit::NotStarted { code, why }
}

impl Children {
    /// Creates a set without children; `memory` holds the memory file of each host.
    pub(crate) fn new(limits: Limits, memory: Vec<HostMemory>) -> Self {
        Self { children: Vec::new(), limits, memory, suspended: false }
    }

    /// Starts a rank. `core` is the index of its core among those of this machine.
    ///
    /// # Errors
    /// An [`Exit::NotStarted`] with the reason.
    pub(crate) fn start(
        &mut self,
        program: &Program,
        job: &Message,
        rank: u32,
        core: usize,
    ) -> Result<(), Exit> {
        self.try_start(program, job, rank, core).map_err(|error| not_started(program, &error))
    }

    fn try_start(&mut self, program: &Program, job: &Message, rank: u32, core: usize) -> io::Result<()> {
        let (mut channel, theirs) = Channel::pair()?;
        let sent = match self.memory.iter().find(|memory| memory.holds(rank)) {
            Some(memory) => channel.send_with_descriptor(job, memory.descriptor()),
            None => channel.send(job),
        };
        sent.map_err(|broken| io::Error::other(broken.to_string()))?;
        let inode = rustix::fs::fstat(&theirs)?.st_ino;
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).current_dir(&program.folder);
        command.envs(program.environment.iter().map(|(name, value)| (name, value)));
        command.env(VARIABLE, format!("{}:{inode}", theirs.as_raw_fd()));
        command.stdin(match program.input {
            _ if rank > 0 => Stdio::null(),
            Input::None => Stdio::null(),
            Input::Inherited => Stdio::inherit(),
            Input::PassedOn => Stdio::piped(),
        });
        command.stdout(if program.capture { Stdio::piped() } else { Stdio::inherit() });
        command.stderr(Stdio::piped());
        command.process_group(0);
        let core = program.pin.then(|| crate::pin::core(core)).flatten();
        let parent = getpid();
        // SAFETY: between fork and exec the closure makes only direct system calls; nothing is
        // allocated or locked. `theirs`, `core` and `parent` are moved in, so they live as long as
        // the command.
        unsafe {
            command.pre_exec(move || {
                fcntl_setfd(&theirs, FdFlags::empty())?;
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // The process group of a rank is in the background of its terminal.
                crate::signals::ignore_stops_by_terminal();
                if getppid() != Some(parent) {
                    // the parent died before the death signal was set
                    return Err(Errno::SRCH.into());
                }
                if let Some(core) = &core {
                    // Pinning fails if this process may no longer use the core; the rank then runs
                    // unpinned.
                    let _: rustix::io::Result<()> = sched_setaffinity(None, core);
                }
                Ok(())
            });
        }
        let mut child = command.spawn()?;
        drop(command); // closes this process's copy of the other end of the channel
        let pid = Pid::from_child(&child);
        let process = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(process) => process,
            Err(errno) => {
                child.kill()?;
                child.wait()?;
                return Err(call_failed("pidfd_open", errno));
            }
        };
        let input = child.stdin.take().map(|pipe| InputPipe::new(pipe.into())).transpose()?;
        let output = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
        for pipe in output.iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        let (last_message, in_world, vanishes, has_left, killed) = (None, false, None, false, None);
        self.children.push(Child {
            rank,
            pid,
            process,
            joined: None,
            channel,
            output,
            input,
            last_message,
            in_world,
            vanishes,
            has_left,
            killed,
        });
        Ok(())
    }

    /// Adds the children's descriptors to a list for `poll`, and calls `key` with the meaning of
    /// each. Descriptors of output are added only if `output`.
    pub(crate) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>, output: bool, mut key: impl FnMut(Ready)) {
        for child in &self.children {
            fds.push(PollFd::new(&child.process, PollFlags::IN));
            key(Ready::Process(child.rank));
            if let Some(joined) = &child.joined {
                fds.push(PollFd::new(joined, PollFlags::IN));
                key(Ready::Joined(child.rank));
            }
            if child.channel.is_open() {
                let mut flags = PollFlags::IN;
                flags.set(PollFlags::OUT, child.channel.unsent() > 0);
                fds.push(PollFd::from_borrowed_fd(child.channel.source(), flags));
                key(Ready::Channel(child.rank));
            }
            if let Some(pipe) = child.input.as_ref().and_then(InputPipe::waits) {
                fds.push(PollFd::new(pipe, PollFlags::OUT));
                key(Ready::Input(child.rank));
            }
            for (pipe, error) in child.output.iter().zip([false, true]).filter(|_| output) {
                if let Some(pipe) = pipe {
                    fds.push(PollFd::new(pipe, PollFlags::IN));
                    key(Ready::Output(child.rank, error));
                }
            }
        }
    }

    /// Handles a descriptor that became ready.
    pub(crate) fn handle_ready(&mut self, ready: Ready, events: &mut Vec<Event>) {
        match ready {
            Ready::Channel(rank) => {
                if let Some(child) = self.child(rank) {
                    // An error means that the rank has ended; unsent messages are useless then.
                    let _: Result<(), ChannelError> = child.channel.flush();
                    child.receive_all(events);
                }
            }
            Ready::Output(rank, error) => {
                if let Some(child) = self.child(rank) {
                    child.read_output(error, events);
                }
            }
            Ready::Input(rank) => {
                if let Some(input) = self.child(rank).and_then(|child| child.input.as_mut()) {
                    input.flush();
                }
            }
            Ready::Process(rank) => self.reap(rank, events),
            Ready::Joined(rank) => {
                if let Some(child) = self.child(rank) {
                    child.receive_all(events);
                    child.on_end_within_wrapper();
                }
            }
        }
    }

    /// Kills the children that had been silent for too long at `now`, and reports ranks that have
    /// failed by then although their wrappers continue. The caller first handles everything that
    /// was ready at that time, so that messages that had arrived end the silence of their senders.
    pub(crate) fn expire(&mut self, now: Instant, events: &mut Vec<Event>) {
        for child in &mut self.children {
            if child.vanishes.take_if(|then| *then <= now).is_some() {
                let rank = child.rank;
                if let Some(memory) = self.memory.iter().find(|memory| memory.holds(rank)) {
                    memory.mark_failed(rank, &format!("rank {rank} of the job {VANISHED}"));
                }
                events.push(Event::Reported(rank, Message::Vanished));
            }
        }
        if self.limits.silence.is_zero() || self.suspended {
            return;
        }
        let limit = self.limits.silence;
        for child in self.children.iter_mut().filter(|child| !child.has_left) {
            if let Some(silent) = child.last_message.map(|last| now.saturating_duration_since(last))
                && silent >= limit
            {
                child.kill(Exit::Silent(silent));
            }
        }
    }

    /// Returns the earliest time at which [`expire`](Self::expire) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let limited = !self.limits.silence.is_zero() && !self.suspended;
        let waits = |child: &&Child| limited && child.killed.is_none() && !child.has_left;
        let last = self.children.iter().filter(waits).filter_map(|child| child.last_message);
        let silent = last.min().map(|last| last + self.limits.silence);
        let vanishes = self.children.iter().filter_map(|child| child.vanishes);
        silent.into_iter().chain(vanishes).min()
    }

    /// Sends an encoded message to all running ranks.
    pub(crate) fn notify_all(&mut self, frame: &[u8]) {
        for child in &mut self.children {
            // An error means that the rank is ending; its process descriptor reports that.
            let _: Result<(), ChannelError> = child.channel.send_frame(frame);
        }
    }

    /// Stops or continues all ranks. The silence of stopped ranks does not count.
    pub(crate) fn suspend(&mut self, stop: bool) {
        let signal = if stop { Signal::STOP } else { Signal::CONT };
        self.suspended = stop;
        self.children.iter().for_each(|child| child.signal(signal));
        self.restart_silence();
    }

    /// Restarts the measurement of silence for all ranks: silence before this call does not count.
    pub(crate) fn restart_silence(&mut self) {
        let now = Instant::now();
        self.children.iter_mut().for_each(|child| child.last_message = child.last_message.map(|_| now));
    }

    /// Passes a piece of input on to rank 0, if it runs. An empty piece is the end of the input.
    pub(crate) fn give_input(&mut self, bytes: &[u8]) {
        if let Some(input) = self.child(0).and_then(|child| child.input.as_mut()) {
            input.give(bytes);
        }
    }

    /// Returns whether rank 0 has taken all input that it was given, or takes no more.
    pub(crate) fn has_taken_input(&self) -> bool {
        let input = self.children.iter().find(|child| child.rank == 0).and_then(|child| child.input.as_ref());
        input.is_none_or(InputPipe::is_empty)
    }

    /// Returns whether rank 0 may take more input.
    pub(crate) fn takes_input(&self) -> bool {
        let rank_0 = self.children.iter().find(|child| child.rank == 0);
        rank_0.and_then(|child| child.input.as_ref()).is_some_and(InputPipe::is_open)
    }

    /// Sends a signal to a rank, if it runs, and to the processes of its group.
    pub(crate) fn signal(&mut self, rank: u32, signal: i32) {
        if let (Some(child), Some(signal)) = (self.child(rank), Signal::from_named_raw(signal)) {
            child.signal(signal);
        }
    }

    /// Kills a rank, if it runs.
    pub(crate) fn kill(&mut self, rank: u32) {
        if let Some(child) = self.child(rank) {
            child.kill(Exit::KILLED);
        }
    }

    fn child(&mut self, rank: u32) -> Option<&mut Child> {
        self.children.iter_mut().find(|child| child.rank == rank)
    }

    /// Handles the end of a rank's process: collects its remaining messages and output, reaps it,
    /// and adds its exit to `events`.
    fn reap(&mut self, rank: u32, events: &mut Vec<Event>) {
        let Some(at) = self.children.iter().position(|child| child.rank == rank) else { return };
        let child = &mut self.children[at];
        let flags = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if !matches!(waitid(WaitId::PidFd(child.process.as_fd()), flags), Ok(Some(_))) {
            return;
        }
        child.receive_all(events);
        child.read_output(false, events);
        child.read_output(true, events);
        let exit = child.reap();
        let child = self.children.swap_remove(at);
        drop(child);
        // The rank is marked as failed in the shared memory before any other rank is notified, so
        // that a rank that knows of the death finds the mark.
        if let Some(memory) = self.memory.iter().find(|memory| memory.holds(rank)) {
            memory.mark_failed(rank, &exit.describe(rank));
        }
        events.push(Event::Exited(rank, exit));
    }
}

impl Child {
    fn receive_all(&mut self, events: &mut Vec<Event>) {
        loop {
            match self.channel.receive() {
                Ok(Some(message)) => {
                    self.last_message = Some(Instant::now());
                    self.has_left |= message == Message::Leaving;
                    match message {
                        Message::Entered => self.in_world = true,
                        Message::Left(_) => self.in_world = false,
                        _ => {}
                    }
                    if let Message::Joined(_) = message {
                        let joined = self.channel.take_descriptor();
                        self.joined = joined.filter(|joined| process_id(joined) != Some(self.pid));
                    }
                    if !matches!(message, Message::Heartbeat | Message::Leaving) {
                        events.push(Event::Reported(self.rank, message));
                    }
                }
                Ok(None) | Err(ChannelError::Closed | ChannelError::Io(_)) => return,
                Err(ChannelError::Malformed(why)) => {
                    events.push(Event::Reported(self.rank, Message::JoinFailed(why.to_string())));
                    return self.kill(Exit::KILLED);
                }
            }
        }
    }

    /// Handles the end of the process that has joined inside a wrapper. If that process was in a
    /// world, the rank has failed, whatever the wrapper does. If the wrapper ends at about the same
    /// time, its exit shows how the rank failed, hence the delay of [`WRAPPER_END`]. Outside a
    /// world the wrapper may continue.
    fn on_end_within_wrapper(&mut self) {
        if self.joined.take().is_some() && self.in_world {
            self.vanishes = Some(Instant::now() + WRAPPER_END);
        }
        self.has_left = true; // the wrapper sends no heartbeats
    }

    fn read_output(&mut self, error: bool, events: &mut Vec<Event>) {
        let slot = &mut self.output[usize::from(error)];
        // Reads as much as a pipe holds, and a little more. The loop is limited, since the rank may
        // have left behind a process that keeps writing.
        for _ in 0..=(1 << 20) / PIECE {
            let Some(pipe) = slot else { return };
            let mut bytes = vec![0; PIECE];
            match rustix::io::read(pipe, &mut bytes) {
                Ok(0) => *slot = None,
                Ok(count) => {
                    bytes.truncate(count);
                    events.push(Event::Output { rank: self.rank, error, bytes });
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => *slot = None,
            }
        }
    }

    fn signal(&self, signal: Signal) {
        // The process may have ended, and is reaped next. Until then no other process has its
        // process id.
        let _: rustix::io::Result<()> = pidfd_send_signal(&self.process, signal);
        let _: rustix::io::Result<()> = kill_process_group(self.pid, signal);
    }

    fn kill(&mut self, why: Exit) {
        self.killed.get_or_insert(why);
        self.signal(Signal::KILL);
    }

    /// Reaps the process and returns how it ended. Waits if it has not ended.
    fn reap(&mut self) -> Exit {
        // This also kills the other processes of the child's group. No other group can have this
        // id, since the child is not reaped yet.
        let _: rustix::io::Result<()> = kill_process_group(self.pid, Signal::KILL);
        loop {
            match waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED) {
                Err(Errno::INTR | Errno::AGAIN) => {
                    // The descriptor is nonblocking, so `poll` waits here until it is readable.
                    let mut fds = [PollFd::new(&self.process, PollFlags::IN)];
                    let _: rustix::io::Result<usize> = rustix::event::poll(&mut fds, None);
                }
                Ok(Some(status)) => {
                    let signal = status.terminating_signal().map(|signal| Exit::Signal(signal as u8));
                    let by_itself = status.exit_status().map(|code| Exit::Code(code as u8));
                    // A process that had ended before the kill is reported with its own exit.
                    return match (by_itself, signal, self.killed.take()) {
                        (Some(code), _, _) => code,
                        (None, Some(Exit::KILLED), Some(why)) => why,
                        (None, Some(signal), _) => signal,
                        (None, None, why) => why.unwrap_or(Exit::KILLED),
                    };
                }
                Ok(None) | Err(_) => {
                    return Exit::Lost("the system does not know its process any more".into());
                }
            }
        }
    }
}

/// Returns the id of the process behind this descriptor, or `None` if the process has ended or this
/// process cannot see it.
fn process_id(process: &OwnedFd) -> Option<Pid> {
    let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd())).ok()?;
    let line = about.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    Pid::from_raw(line.trim().parse().ok().filter(|&id| id > 0)?)
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.kill(Exit::KILLED);
        }
        for child in &mut self.children {
            child.reap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_denied_by_a_search_folder_is_not_found_and_by_a_file_is_not_executable() {
        let exit_of = |path: &str| {
            let program = Program {
                path: path.into(),
                arguments: Vec::new(),
                folder: "/".into(),
                environment: vec![("PATH".into(), "/no/such/folder:/proc/self".into())],
                capture: false,
                input: Input::Inherited,
                pin: false,
            };
            match not_started(&program, &io::ErrorKind::PermissionDenied.into()) {
                Exit::NotStarted { code, why } => (code, why),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            exit_of("no-such-program"),
            (NOT_FOUND, "the program no-such-program does not exist".into())
        );
        for path in ["status", "./no-such-program", "/"] {
            let (code, why) = exit_of(path);
            assert_eq!(code, NOT_RUN, "{path}: {why}");
        }
    }
}
