//! [`Launched`]: a running launcher, and the output of the launcher and its ranks.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The transports of processes on one machine.
pub const BOTH: [&str; 2] = ["shm", "tcp"];

/// Two hosts with two ranks each. Both are this machine: the remote command only runs its
/// arguments. The ranks of a host share memory, and communicate over TCP with the ranks of the
/// other host.
pub const HOSTS: [&str; 4] =
    ["--hosts", "a=127.0.0.2:2,b=127.0.0.3:2", "--remote-command", "env FENCEPOST_TEST_HOST={host}"];

/// Returns the options that start a job of `ranks` ranks on this transport. A job on `mixed` always
/// has four ranks.
pub fn options<'a>(transport: &'a str, ranks: &'a str) -> Vec<&'a str> {
    match transport {
        "mixed" => HOSTS.into(),
        _ => vec!["-n", ranks, "--transport", transport],
    }
}

static MARK: AtomicU32 = AtomicU32::new(0);

/// A launcher that was started. If it still runs when this value is dropped, it is killed.
pub struct Launched {
    child: Child,
    out: BufReader<ChildStdout>,
    err: Option<ChildStderr>,
    /// An environment variable that only the processes of this job have.
    mark: String,
}

/// How a launcher ended, and the rest of its output.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// The lines of output that [`Launched::line`] has not returned.
    pub out: String,
    pub err: String,
}

/// The path of this program, which is also the program of the ranks.
pub fn rank_program() -> String {
    std::env::current_exe().expect("this program").display().to_string()
}

/// Starts `fencepost run` with these options, and this program as a rank with these arguments.
pub fn run(options: &[&str], rank: &[&str]) -> Launched {
    run_with(options, rank, &[])
}

/// Does the same as [`run`], with these environment variables.
pub fn run_with(options: &[&str], rank: &[&str], environment: &[(&str, &str)]) -> Launched {
    let program = rank_program();
    let mut words = vec!["run"];
    words.extend(options);
    words.extend(["--", &program, "rank"]);
    words.extend(rank);
    start(env!("CARGO_BIN_EXE_fencepost"), &words, environment)
}

/// Starts any program.
pub fn start(program: &str, words: &[&str], environment: &[(&str, &str)]) -> Launched {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    // Time limits that only a hanging test reaches. `environment` can override them.
    command
        .env("FENCEPOST_TIMEOUT", "120s")
        .env("FENCEPOST_GRACE", "20s")
        .env_remove("FENCEPOST_TRANSPORT")
        .envs(environment.iter().copied());
    start_by(command)
}

/// Starts a command, with its standard output piped.
pub fn start_by(mut command: Command) -> Launched {
    let number = MARK.fetch_add(1, Ordering::Relaxed);
    let mark = format!("FENCEPOST_TEST_MARK={}-{number}", std::process::id());
    let (name, value) = mark.split_once('=').expect("a variable");
    command.stdout(Stdio::piped()).env_remove("RUST_BACKTRACE").env(name, value);
    let mut child = command.spawn().expect("it starts");
    let out = BufReader::new(child.stdout.take().expect("piped"));
    let err = child.stderr.take();
    Launched { child, out, err, mark }
}

impl Launched {
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns the next line of output, or `None` at the end of the output.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.out.read_line(&mut line).expect("text");
        (count > 0).then(|| line.trim_end().to_owned())
    }

    /// Waits for `count` lines that begin with `word`. Returns the rest of each line, sorted.
    pub fn lines(&mut self, count: usize, word: &str) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.len() < count {
            let line =
                self.line().unwrap_or_else(|| panic!("{count} lines `{word}` are expected: {lines:?}"));
            lines.extend(line.strip_prefix(word).map(|rest| rest.trim().to_owned()));
        }
        lines.sort();
        lines
    }

    /// Waits for a line of standard error that contains `text`. The lines up to this one are then
    /// missing from the [`Ended`].
    pub fn await_error(&mut self, text: &str) {
        let pipe = self.err.as_mut().expect("standard error is piped");
        let (mut lines, mut byte) = (String::new(), [0]);
        while !lines.ends_with('\n') || !lines.lines().last().is_some_and(|line| line.contains(text)) {
            assert_eq!(pipe.read(&mut byte).expect("it can be read"), 1, "no `{text}` in {lines}");
            lines.push(char::from(byte[0]));
        }
    }

    pub fn kill(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there");
    }

    pub fn kill_group(&self, signal: Signal) {
        kill_process_group(self.pid(), signal).expect("it is there");
    }

    /// Waits for the end of the launcher.
    pub fn end(mut self) -> Ended {
        // A thread reads standard error meanwhile, so that no process blocks on a full pipe.
        let pipe = self.err.take();
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut text)).map(|_| text)
        });
        let mut out = String::new();
        self.out.read_to_string(&mut out).expect("text");
        let err = reader.join().expect("no panic").expect("errors can be read");
        let status = self.child.wait().expect("it ends");
        self.nothing_left();
        let err = String::from_utf8_lossy(&err).into_owned();
        Ended { code: status.code(), signal: status.signal(), out, err }
    }

    /// Checks that no process of the job is left.
    pub fn nothing_left(&self) {
        let left: Vec<String> = self.left().collect();
        assert!(left.is_empty(), "processes that are left: {left:?}");
    }

    /// Returns the ids of the job's processes that still exist.
    pub fn left(&self) -> impl Iterator<Item = String> {
        processes().filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|variable| variable == self.mark.as_bytes())
        })
    }

    /// Returns the standard input of the launcher.
    pub fn input(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("it is piped")
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // If the launcher has ended, no process is left.
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _: rustix::io::Result<()> = kill_process_group(self.pid(), Signal::KILL);
            let _: std::io::Result<std::process::ExitStatus> = self.child.wait();
        }
    }
}

impl Ended {
    #[track_caller]
    pub fn expect(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.err.contains(text), "no `{text}` in {self:#?}");
        self
    }
}

/// Returns the process ids of all processes.
pub fn processes() -> impl Iterator<Item = String> {
    let all = std::fs::read_dir("/proc").expect("/proc");
    let names = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Opens a descriptor of a process, which need not be a child of this process.
pub fn process(pid: &str) -> OwnedFd {
    let pid = Pid::from_raw(pid.parse().expect("a number")).expect("not 0");
    pidfd_open(pid, PidfdFlags::empty()).expect("it is there")
}

/// Waits until a process has ended.
pub fn await_end(process: &OwnedFd) {
    let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    let ready = poll(&mut fds, Some(&limit)).expect("poll");
    assert_eq!(ready, 1, "a process does not end");
}

/// The state of a process, as in `/proc/PID/stat`: T is stopped.
pub fn state_of(pid: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Waits until a process has stopped itself, and then continues it.
pub fn go_on(pid: &str) {
    while state_of(pid) != Some('T') {
        std::thread::yield_now();
    }
    let pid = Pid::from_raw(pid.parse().expect("a number")).expect("not 0");
    kill_process(pid, Signal::CONT).expect("it is there");
}
