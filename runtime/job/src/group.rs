//! [`Group`]: the ranks of a job that are children of this process.
//!
//! Each is the leader of a process group of its own, dies with this process, and is known by a descriptor of the process,
//! so no signal ever meets a stranger that has got its number. Deaths, messages and output are noticed by `poll`; the
//! only clock is the limit of silence.

use crate::channel::{Broken, Channel};
use crate::control::Message;
use crate::description::Limits;
use crate::exit::{Exit, FAILED, NOT_FOUND, NOT_RUN};
use crate::link::Memory;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process_group, pidfd_open,
    pidfd_send_signal, set_parent_process_death_signal, waitid,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that names a rank's control channel: its descriptor, and the number that its socket has in the system,
/// so that nobody takes another descriptor for it.
pub(crate) const VARIABLE: &str = "FENCEPOST_JOB";
/// Bytes of output that are read at once.
const PIECE: usize = 1 << 14;

/// What ranks are started as.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) folder: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Whether what they write comes through this process.
    pub(crate) capture: bool,
    /// Whether rank 0 reads what this process would, unless that is a terminal.
    pub(crate) input: bool,
    /// Whether each keeps to a core.
    pub(crate) pin: bool,
}

impl Program {
    /// Whether it is a path, or the name of a file in a folder of `PATH`.
    fn is_found(&self) -> bool {
        if self.path.is_absolute() || self.path.components().count() > 1 {
            return true;
        }
        let given = self.environment.iter().rfind(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        let folders = given.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| self.folder.join(folder).join(&self.path).exists())
    }
}

/// What happened to a rank.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Said(u32, Message),
    Wrote { rank: u32, error: bool, bytes: Vec<u8> },
    Exited(u32, Exit),
}

/// What became ready.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ready {
    Process(u32),
    Channel(u32),
    Output(u32, bool),
}

pub(crate) struct Group {
    children: Vec<Child>,
    limits: Limits,
    /// Of each host that this machine is.
    memory: Vec<Memory>,
}

struct Child {
    rank: u32,
    pid: Pid,
    process: OwnedFd,
    channel: Channel,
    output: [Option<OwnedFd>; 2],
    /// Whether it has said anything, and when last.
    heard: Option<Instant>,
    /// Why it was killed here, if it was.
    killed: Option<Exit>,
}

/// How a system's refusal to start a process reads, and its exit code.
fn not_started(program: &Program, error: &io::Error) -> Exit {
    let path = program.path.display();
    let (code, why) = match error.kind() {
        io::ErrorKind::NotFound if !program.folder.is_dir() => {
            (FAILED, format!("there is no folder {}", program.folder.display()))
        }
        io::ErrorKind::NotFound => (NOT_FOUND, format!("there is no program {path}")),
        // A folder of the search path that may not be entered is no program.
        io::ErrorKind::PermissionDenied if !program.is_found() => {
            (NOT_FOUND, format!("there is no program {path}"))
        }
        io::ErrorKind::PermissionDenied => (NOT_RUN, format!("{path} may not be run: {error}")),
        _ if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
            (NOT_RUN, format!("{path} is not a program of this machine: {error}"))
        }
        _ => (FAILED, error.to_string()),
    };
    Exit::NotStarted { code, why }
}

impl Group {
    /// No ranks yet; `memory` is what those of a host will share.
    pub(crate) fn new(limits: Limits, memory: Vec<Memory>) -> Self {
        Self { children: Vec::new(), limits, memory }
    }

    /// Start a rank; `seat` is its place among those of this machine.
    ///
    /// # Errors
    /// Why it was not started.
    pub(crate) fn start(
        &mut self,
        program: &Program,
        job: &Message,
        rank: u32,
        seat: usize,
    ) -> Result<(), Exit> {
        self.spawn(program, job, rank, seat).map_err(|error| not_started(program, &error))
    }

    fn spawn(&mut self, program: &Program, job: &Message, rank: u32, seat: usize) -> io::Result<()> {
        let (mut channel, theirs) = Channel::pair()?;
        let said = match self.memory.iter().find(|memory| memory.holds(rank)) {
            Some(memory) => channel.give(job, memory.descriptor()),
            None => channel.send(job),
        };
        said.map_err(|broken| io::Error::other(broken.to_string()))?;
        let inode = rustix::fs::fstat(&theirs)?.st_ino;
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).current_dir(&program.folder);
        command.envs(program.environment.iter().map(|(name, value)| (name, value)));
        command.env(VARIABLE, format!("{}:{inode}", theirs.as_raw_fd()));
        // The terminal stays with this process: a group of its own may not read it.
        let reads = program.input && rank == 0 && !rustix::termios::isatty(io::stdin());
        command.stdin(if reads { Stdio::inherit() } else { Stdio::null() });
        if program.capture {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        command.process_group(0);
        let core = program.pin.then(|| core(seat)).flatten();
        let parent = getpid();
        // SAFETY: between fork and exec only system calls are made, directly; nothing is allocated or locked, and
        // `theirs`, `core` and `parent` are moved in, so they live as long as the command.
        unsafe {
            command.pre_exec(move || {
                fcntl_setfd(&theirs, FdFlags::empty())?;
                set_parent_process_death_signal(Some(Signal::KILL))?;
                if getppid() != Some(parent) {
                    return Err(Errno::SRCH.into()); // it died before that was asked for
                }
                if let Some(core) = &core {
                    // A core that is not ours any more is no reason to fail.
                    let _: rustix::io::Result<()> = sched_setaffinity(None, core);
                }
                Ok(())
            });
        }
        let mut child = command.spawn()?;
        drop(command); // and with it our copy of the other end
        let pid = Pid::from_child(&child);
        let process = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(process) => process,
            Err(errno) => {
                child.kill()?;
                child.wait()?;
                return Err(errno.into());
            }
        };
        let output = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
        for pipe in output.iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        self.children.push(Child { rank, pid, process, channel, output, heard: None, killed: None });
        Ok(())
    }

    /// Add what is waited for to a list for `poll`, output only where that is wanted; `key` gets what each means.
    pub(crate) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>, output: bool, mut key: impl FnMut(Ready)) {
        for child in &self.children {
            fds.push(PollFd::new(&child.process, PollFlags::IN));
            key(Ready::Process(child.rank));
            if child.channel.is_open() {
                let mut flags = PollFlags::IN;
                flags.set(PollFlags::OUT, child.channel.waiting() > 0);
                fds.push(PollFd::from_borrowed_fd(child.channel.source(), flags));
                key(Ready::Channel(child.rank));
            }
            for (pipe, error) in child.output.iter().zip([false, true]).filter(|_| output) {
                if let Some(pipe) = pipe {
                    fds.push(PollFd::new(pipe, PollFlags::IN));
                    key(Ready::Output(child.rank, error));
                }
            }
        }
    }

    /// Look at what became ready.
    pub(crate) fn look(&mut self, ready: Ready, events: &mut Vec<Event>) {
        match ready {
            Ready::Channel(rank) => {
                if let Some(child) = self.child(rank) {
                    // What is still to be said to one that is gone is of no use.
                    let _: Result<(), Broken> = child.channel.flush();
                    child.listen(events);
                }
            }
            Ready::Output(rank, error) => {
                if let Some(child) = self.child(rank) {
                    child.read_output(error, events);
                }
            }
            Ready::Process(rank) => self.reap(rank, events),
        }
    }

    /// Kill who was silent for too long. To be called after all that was ready was looked at.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.limits.silence.is_zero() {
            return;
        }
        let limit = self.limits.silence;
        for child in &mut self.children {
            if let Some(silent) = child.heard.map(|heard| now.saturating_duration_since(heard))
                && silent >= limit
            {
                child.kill(Exit::Silent(silent));
            }
        }
    }

    /// When [`expire`](Self::expire) has something to do at the earliest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let waits = |child: &&Child| child.killed.is_none() && !self.limits.silence.is_zero();
        let heard = self.children.iter().filter(waits).filter_map(|child| child.heard);
        heard.min().map(|heard| heard + self.limits.silence)
    }

    /// Say something to a rank, if it is there.
    pub(crate) fn tell(&mut self, rank: u32, message: &Message) {
        if let Some(child) = self.child(rank) {
            // One that does not hear it any more is found dead soon.
            let _: Result<(), Broken> = child.channel.send(message);
        }
    }

    /// Send a signal to a rank, if it is there, and to what it has started itself.
    pub(crate) fn signal(&mut self, rank: u32, signal: i32) {
        if let (Some(child), Some(signal)) = (self.child(rank), Signal::from_named_raw(signal)) {
            child.signal(signal);
        }
    }

    /// Kill a rank that has not ended.
    pub(crate) fn kill(&mut self, rank: u32) {
        if let Some(child) = self.child(rank) {
            child.kill(Exit::Signal(9));
        }
    }

    fn child(&mut self, rank: u32) -> Option<&mut Child> {
        self.children.iter_mut().find(|child| child.rank == rank)
    }

    /// The process of a rank has ended: all that it has said and written, and how it ended.
    fn reap(&mut self, rank: u32, events: &mut Vec<Event>) {
        let Some(at) = self.children.iter().position(|child| child.rank == rank) else { return };
        let child = &mut self.children[at];
        let flags = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if !matches!(waitid(WaitId::PidFd(child.process.as_fd()), flags), Ok(Some(_))) {
            return;
        }
        child.listen(events);
        child.read_output(false, events);
        child.read_output(true, events);
        let exit = child.end();
        let child = self.children.swap_remove(at);
        drop(child);
        // The memory says so before anybody is told: nobody who knows finds it alive there.
        if let Some(memory) = self.memory.iter().find(|memory| memory.holds(rank)) {
            memory.strike(rank, &exit.of(rank));
        }
        events.push(Event::Exited(rank, exit));
    }
}

impl Child {
    fn listen(&mut self, events: &mut Vec<Event>) {
        loop {
            match self.channel.receive() {
                Ok(Some(message)) => {
                    self.heard = Some(Instant::now());
                    if message != Message::Beat {
                        events.push(Event::Said(self.rank, message));
                    }
                }
                Ok(None) | Err(Broken::Closed | Broken::Io(_)) => return,
                Err(Broken::Malformed(why)) => {
                    events.push(Event::Said(self.rank, Message::Refused(why.to_string())));
                    return self.kill(Exit::Signal(9));
                }
            }
        }
    }

    fn read_output(&mut self, error: bool, events: &mut Vec<Event>) {
        let slot = &mut self.output[usize::from(error)];
        // As much as a pipe holds, and a little; what a process it has left behind writes on is not waited for.
        for _ in 0..=(1 << 20) / PIECE {
            let Some(pipe) = slot else { return };
            let mut bytes = vec![0; PIECE];
            match rustix::io::read(pipe, &mut bytes) {
                Ok(0) => *slot = None,
                Ok(count) => {
                    bytes.truncate(count);
                    events.push(Event::Wrote { rank: self.rank, error, bytes });
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => *slot = None,
            }
        }
    }

    fn signal(&self, signal: Signal) {
        // It may have ended: then it is reaped next. Until it is, nobody else has its number.
        let _: rustix::io::Result<()> = pidfd_send_signal(&self.process, signal);
        let _: rustix::io::Result<()> = kill_process_group(self.pid, signal);
    }

    fn kill(&mut self, why: Exit) {
        self.killed.get_or_insert(why);
        self.signal(Signal::KILL);
    }

    /// Reap it: how it ended. Waits, where it has not ended.
    fn end(&mut self) -> Exit {
        // What it has started in its group goes with it; its number is its own until it is reaped.
        let _: rustix::io::Result<()> = kill_process_group(self.pid, Signal::KILL);
        loop {
            match waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED) {
                Err(Errno::INTR | Errno::AGAIN) => {
                    // The descriptor does not block: wait here until it is readable.
                    let mut fds = [PollFd::new(&self.process, PollFlags::IN)];
                    let _: rustix::io::Result<usize> = rustix::event::poll(&mut fds, None);
                }
                Ok(Some(status)) => {
                    let signal = status.terminating_signal().map(|signal| Exit::Signal(signal as u8));
                    let by_itself = status.exit_status().map(|code| Exit::Code(code as u8));
                    // One that had ended before it was killed is not called killed.
                    return match (by_itself, signal, self.killed.take()) {
                        (Some(code), _, _) => code,
                        (None, Some(Exit::Signal(9)), Some(why)) => why,
                        (None, Some(signal), _) => signal,
                        (None, None, why) => why.unwrap_or(Exit::Signal(9)),
                    };
                }
                Ok(None) | Err(_) => return Exit::Lost("its process is not known any more".into()),
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.kill(Exit::Signal(9));
        }
        for child in &mut self.children {
            child.end();
        }
    }
}

/// The `seat`th of the cores that this process may use.
fn core(seat: usize) -> Option<CpuSet> {
    let ours = sched_getaffinity(None).ok()?;
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| ours.is_set(core)).collect();
    let mut set = CpuSet::new();
    set.set(*cores.get(seat % cores.len().max(1))?);
    Some(set)
}

/// How long `poll` may take until `deadline`: whole milliseconds, rounded up, so that it has passed then.
pub(crate) fn until(deadline: Option<Instant>) -> Option<rustix::event::Timespec> {
    let left = deadline?.saturating_duration_since(Instant::now());
    let left = left.min(Duration::from_secs(1 << 30));
    Some(rustix::event::Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_may_not_be_searched_has_no_programs_and_a_file_that_may_not_be_run_is_one() {
        let asked = |path: &str| {
            let program = Program {
                path: path.into(),
                arguments: Vec::new(),
                folder: "/".into(),
                environment: vec![("PATH".into(), "/no/such/folder:/proc/self".into())],
                capture: false,
                input: false,
                pin: false,
            };
            match not_started(&program, &io::ErrorKind::PermissionDenied.into()) {
                Exit::NotStarted { code, why } => (code, why),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(asked("no-such-program"), (NOT_FOUND, "there is no program no-such-program".into()));
        for path in ["status", "./no-such-program", "/"] {
            let (code, why) = asked(path);
            assert_eq!(code, NOT_RUN, "{path}: {why}");
        }
    }
}
