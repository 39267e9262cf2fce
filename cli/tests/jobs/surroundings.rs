//! Environments in which people run the ranks of a job: wrappers, terminals, pipes, containers and
//! limits.
//!
//! Some tests need things that the system may refuse, such as a namespace or a control group. If
//! the system refuses, the test is left out and prints its name.

use crate::launched::{Launched, go_on, options, process, rank_program, start, start_by, state_of};
use crate::rank::say;
use fencepost::prelude::*;
use rustix::fd::OwnedFd;
use rustix::process::{Signal, pidfd_send_signal};
use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const FENCEPOST: &str = env!("CARGO_BIN_EXE_fencepost");
const ALL: [&str; 3] = ["shm", "tcp", "mixed"];
/// A short limit of silence.
const SOON: [(&str, &str); 1] = [("FENCEPOST_SILENCE", "1s")];

fn left_out(what: &str, why: &dyn std::fmt::Display) {
    println!("  left out: {what}: {why}");
}

/// Returns the command line of a job whose ranks run a shell script. In the script, `"$0"` is this
/// program.
fn words_by_shell<'a>(transport: &'a str, script: &'a str, program: &'a str) -> Vec<&'a str> {
    [&["run"], &options(transport, "2")[..], &["--", "bash", "-c", script, program]].concat()
}

fn by_shell(transport: &str, script: &str, environment: &[(&str, &str)]) -> Launched {
    start(FENCEPOST, &words_by_shell(transport, script, &rank_program()), environment)
}

fn ranks_on(transport: &str) -> usize {
    if transport == "mixed" { 4 } else { 2 }
}

/// A wrapper continues after the program of the rank has ended, for longer than the limit of
/// silence.
pub fn wrappers() {
    for transport in ALL {
        let ended = by_shell(transport, r#""$0" rank well && sleep 2 && echo done"#, &SOON).end();
        assert_eq!(ended.expect(0).out.matches("done\n").count(), ranks_on(transport), "{ended:#?}");
    }
}

/// A wrapper continues after a signal has killed the program of its rank, or after the program has
/// ended without leaving its world. The job has no limit of silence, so the launcher can notice the
/// failure only by the end of the program.
pub fn wrappers_of_failures() {
    let settings = [("FENCEPOST_SILENCE", "off"), ("FENCEPOST_GRACE", "1s")];
    for transport in ALL {
        for code in ["137", "7"] {
            let script =
                format!(r#""$0" rank code 1 {code} || [ $? != {code} ] && exit 1; exec tail -f /dev/null"#);
            let ended = by_shell(transport, &script, &settings).end();
            let how = "ended without leaving the job, inside the command that was started, which went on";
            ended.expect(1).says(how);
            let errors =
                ended.out.matches(&format!("PROC_FAILED: rank 1 died: rank 1 of the job {how}")).count();
            assert_eq!(errors, ranks_on(transport) - 1, "{transport}, {code}: {ended:#?}");
        }
    }
}

/// A rank runs two programs, one after the other.
pub fn programs_in_a_row() {
    for transport in ALL {
        let ended = by_shell(transport, r#""$0" rank well && "$0" rank settings"#, &[]).end();
        ended.expect(1);
        let told = ended.out.matches("another program has taken this rank's description of the job").count();
        assert!(told >= 1, "{ended:#?}");
    }
}

/// A wrapper closes the control channel, as Python's `subprocess` does.
pub fn closed_descriptors() {
    let script = r#"channel=${FENCEPOST_JOB%%:*}; eval "exec $channel>&-"; exec "$0" rank settings"#;
    for transport in ALL {
        let ended = by_shell(transport, script, &[]).end();
        ended.expect(1);
        assert!(ended.out.contains("close_fds=False"), "{ended:#?}");
    }
}

/// The variables for a rendezvous are set, but no launcher assigns ranks.
pub fn rendezvous_without_launcher() {
    let set = [("FENCEPOST_RENDEZVOUS", "127.0.0.1:7777"), ("FENCEPOST_SECRET_FILE", "/dev/null")];
    let ended = start(&rank_program(), &["rank", "settings"], &set).end();
    assert!(ended.expect(1).out.contains("no variable gives this process a rank"), "{ended:#?}");
}

/// A terminal in which a launcher is the foreground job.
struct Terminal {
    ours: File,
    job: Launched,
}

impl Terminal {
    /// Starts a command in a terminal that stops background processes when they write.
    fn start(program: &str, words: &[&str], environment: &[(&str, &str)]) -> rustix::io::Result<Self> {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let path = ptsname(&ours, Vec::new())?;
        let open = |path: &CString| {
            rustix::fs::open(
                path,
                rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY,
                rustix::fs::Mode::empty(),
            )
        };
        let theirs = open(&path)?;
        let mut modes = tcgetattr(&theirs)?;
        modes.local_modes |= LocalModes::TOSTOP;
        tcsetattr(&theirs, OptionalActions::Now, &modes)?;
        let mut command = Command::new(program);
        command.args(words).envs(environment.iter().copied());
        let end = |end: &OwnedFd| end.try_clone().map(Stdio::from);
        command.stdin(end(&theirs).expect("a descriptor"));
        command.stderr(end(&theirs).expect("a descriptor"));
        // SAFETY: the closure only makes two system calls, which are allowed between fork and exec.
        unsafe {
            command.pre_exec(move || {
                rustix::process::setsid()?;
                Ok(rustix::process::ioctl_tiocsctty(&theirs)?)
            });
        }
        // The command is the leader of its session, so it must not be put into another process
        // group.
        Ok(Self { ours: ours.into(), job: start_by(command) })
    }

    /// Waits for the end of the job. Returns how it ended, and the text that the terminal shows.
    fn end(self) -> (crate::launched::Ended, String) {
        let Self { mut ours, job } = self;
        let reader = std::thread::spawn(move || {
            let mut shown = Vec::new();
            let mut piece = [0; 4096];
            // Once no process has the terminal open any more, reading it returns an error.
            while let Ok(count @ 1..) = ours.read(&mut piece) {
                shown.extend_from_slice(&piece[..count]);
            }
            String::from_utf8_lossy(&shown).into_owned()
        });
        let ended = job.end();
        (ended, reader.join().expect("no panic"))
    }
}

/// Ranks write to a terminal that stops background processes when they write, and change its
/// settings before they join.
pub fn terminals() {
    let program = rank_program();
    for transport in ALL {
        let words = [&["run"], &options(transport, "2")[..], &["--", &program, "rank", "terminal"]].concat();
        let terminal = match Terminal::start(FENCEPOST, &words, &[]) {
            Ok(terminal) => terminal,
            Err(error) => return left_out("terminals", &error),
        };
        let (ended, shown) = terminal.end();
        assert_eq!(ended.code, Some(0), "{ended:#?} {shown}");
        assert_eq!(shown.matches("to the terminal").count(), ranks_on(transport), "{shown}");
    }
}

/// A launcher runs in the background of a terminal that stops background processes when they write.
/// The launcher and its ranks are stopped before the launcher writes, for longer than the limit of
/// silence. Then the launcher continues in the foreground.
pub fn background() {
    // The shell waits until its job is stopped, reports the stop, and continues the job on request.
    let script = r#"set -m
{ "$@"; } 1>&2 &
until [ -n "$(jobs -s)" ] || [ -z "$(jobs -p)" ]; do :; done
echo stopped
read -r
fg"#;
    let program = rank_program();
    for transport in ALL {
        let options = options(transport, "2");
        let words = [
            &["-c", script, "bash", FENCEPOST, "run", "--stdin", "none"],
            &options[..],
            &["--", &program, "rank", "errors"],
        ]
        .concat();
        let limits = [("FENCEPOST_SILENCE", "1s"), ("FENCEPOST_TIMEOUT", "120s")];
        let mut terminal = match Terminal::start("bash", &words, &limits) {
            Ok(terminal) => terminal,
            Err(error) => return left_out("a launcher in the background of a terminal", &error),
        };
        assert_eq!(terminal.job.line().as_deref(), Some("stopped"));
        let ranks: Vec<String> = terminal.job.left().filter(|pid| is_rank(pid)).collect();
        assert_eq!(ranks.len(), ranks_on(transport), "{ranks:?}");
        let began = Instant::now();
        while !ranks.iter().all(|pid| state_of(pid) == Some('T')) {
            assert!(began.elapsed() < Duration::from_secs(20), "{transport}: not all are stopped");
            std::thread::yield_now();
        }
        // Nothing happens in this time, so there is no event to wait for.
        let silence = Duration::from_secs(3);
        std::thread::park_timeout(silence.saturating_sub(began.elapsed()));
        assert!(ranks.iter().all(|pid| state_of(pid) == Some('T')), "{transport}: all stay stopped");
        terminal.ours.write_all(b"\n").expect("it is open");
        let (ended, shown) = terminal.end();
        assert_eq!(ended.code, Some(0), "{transport}: {ended:#?} {shown}");
        assert_eq!(shown.matches("an error of rank").count(), ranks_on(transport), "{transport}: {shown}");
    }
}

/// Returns whether a process runs the program of a rank.
fn is_rank(pid: &str) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split(|&byte| byte == 0).nth(1) == Some(b"rank")
}

/// The program of a rank of [`background`]. It runs until it has been stopped for a while.
pub fn errors() -> Result<()> {
    fencepost::run(|world| {
        // The clock starts before the write, because the launcher may stop this process as soon as
        // the launcher has output to forward.
        let mut before = Instant::now();
        std::io::stderr().write_all(format!("an error of rank {}\n", world.rank()).as_bytes())?;
        loop {
            let was_stopped = before.elapsed() > Duration::from_secs(2);
            before = Instant::now();
            let mut ends = [u64::from(was_stopped)];
            world.allreduce(&mut ends, Op::Max)?;
            if ends != [0] {
                return Ok(());
            }
        }
    })
}

/// The program of a rank of [`terminals`].
pub fn terminal() -> Result<()> {
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let modes = tcgetattr(&terminal).map_err(std::io::Error::from)?;
    tcsetattr(&terminal, OptionalActions::Now, &modes).map_err(std::io::Error::from)?;
    terminal.write_all(b"to the terminal\n")?;
    fencepost::run(|world| world.barrier())
}

/// Standard input reaches rank 0 on every transport, from a pipe and from a terminal.
pub fn inputs() {
    let program = rank_program();
    let lines: String = (1..=20_000).map(|line| format!("{line}\n")).collect();
    for transport in ALL {
        let words = [&["run"], &options(transport, "2")[..], &["--", &program, "rank", "input"]].concat();
        let mut command = Command::new(FENCEPOST);
        command.args(&words).stdin(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut job = start_by(command);
        let mut input = job.input();
        input.write_all(lines.as_bytes()).expect("it is read");
        drop(input);
        let ended = job.end();
        assert!(ended.expect(0).out.contains("20000 lines, the last is 20000\n"), "{transport}: {ended:#?}");
        // A file is read from its current position.
        let mut file = rustix::fs::memfd_create("input", rustix::fs::MemfdFlags::CLOEXEC)
            .map(File::from)
            .expect("a file");
        file.write_all(b"read before\nthe first\nthe second\n").expect("there is room");
        file.seek(SeekFrom::Start(12)).expect("a file");
        let mut command = Command::new(FENCEPOST);
        command.args(&words).stdin(file).stderr(Stdio::piped()).process_group(0);
        let ended = start_by(command).end();
        assert!(ended.expect(0).out.contains("2 lines, the last is the second\n"), "{transport}: {ended:#?}");
        let mut none = words.clone();
        none.splice(1..1, ["--stdin", "none"]);
        let ended = start(FENCEPOST, &none, &[]).end();
        assert!(ended.expect(0).out.contains("0 lines, the last is \n"), "{transport}: {ended:#?}");
        let mut terminal = match Terminal::start(FENCEPOST, &words, &[]) {
            Ok(terminal) => terminal,
            Err(error) => return left_out("input from a terminal", &error),
        };
        terminal.ours.write_all(b"one\ntwo\n\x04").expect("it is open");
        let (ended, shown) = terminal.end();
        assert!(
            ended.expect(0).out.contains("2 lines, the last is two\n"),
            "{transport}: {ended:#?} {shown}"
        );
    }
}

/// The program of a rank of [`inputs`].
pub fn input() -> Result<()> {
    fencepost::run(|world| {
        let lines: Vec<String> = std::io::stdin().lines().collect::<std::io::Result<_>>()?;
        if world.rank() == 0 {
            say(&format!("{} lines, the last is {}", lines.len(), lines.last().map_or("", String::as_str)));
        } else {
            assert!(lines.is_empty(), "the others have no input");
        }
        world.barrier()
    })
}

/// Ctrl-Z stops all ranks, for longer than the limit of silence. Then they continue and finish.
pub fn suspension() {
    for transport in ALL {
        let mut job = crate::launched::run_with(&options(transport, "2"), &["until-signal"], &SOON);
        let ranks: Vec<String> = job.lines(ranks_on(transport), "runs");
        let ranks: Vec<&str> = ranks.iter().filter_map(|line| line.split(' ').nth(1)).collect();
        job.kill(Signal::TSTP);
        let launcher = job.pid().as_raw_nonzero().to_string();
        let all_are = |state: char| ranks.iter().chain([&&*launcher]).all(|pid| state_of(pid) == Some(state));
        let began = Instant::now();
        while !all_are('T') {
            assert!(began.elapsed() < Duration::from_secs(20), "{transport}: not all are stopped");
            std::thread::yield_now();
        }
        // Nothing happens in this time, so there is no event to wait for.
        let silence = Duration::from_secs(3);
        std::thread::park_timeout(silence.saturating_sub(began.elapsed()));
        assert!(all_are('T'), "{transport}: all stay stopped");
        go_on(&launcher);
        // The ranks get the signal once they continue, and end together in a later epoch.
        job.kill(Signal::USR1);
        let ended = job.end();
        assert_eq!(ended.expect(0).out.matches("finished\n").count(), ranks_on(transport), "{ended:#?}");
    }
}

/// A batch system suspends a job: it stops all processes for longer than the limit of silence,
/// without notifying the launcher.
pub fn frozen() {
    for transport in ALL {
        let mut job = crate::launched::run_with(&options(transport, "2"), &["until-signal"], &SOON);
        job.lines(ranks_on(transport), "runs");
        let launcher = job.pid().as_raw_nonzero().to_string();
        // The launcher continues first, and receives nothing while the other processes are still
        // stopped.
        let mut all: Vec<String> = job.left().filter(|pid| *pid != launcher).collect();
        all.insert(0, launcher);
        let all: Vec<OwnedFd> = all.iter().map(|pid| process(pid)).collect();
        all.iter().for_each(|one| pidfd_send_signal(one, Signal::STOP).expect("it is there"));
        // Nothing happens in this time, so there is no event to wait for.
        let (began, frozen) = (Instant::now(), Duration::from_secs(3));
        while began.elapsed() < frozen {
            std::thread::park_timeout(frozen.saturating_sub(began.elapsed()));
        }
        all.iter().for_each(|one| pidfd_send_signal(one, Signal::CONT).expect("it is there"));
        job.kill(Signal::USR1);
        let ended = job.end();
        assert_eq!(ended.expect(0).out.matches("finished\n").count(), ranks_on(transport), "{ended:#?}");
    }
}

/// The program of a rank of [`suspension`]. It runs until one rank has got SIGUSR1.
pub fn until_signal() -> Result<()> {
    let caught = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGUSR1, caught.clone())?;
    fencepost::run(|world| {
        world.barrier()?;
        say(&format!("runs {} {}", world.rank(), std::process::id()));
        loop {
            let mut ends = [u64::from(caught.load(Ordering::Relaxed))];
            world.allreduce(&mut ends, Op::Max)?;
            if ends != [0] {
                say("finished");
                return Ok(());
            }
        }
    })
}

/// A rank that is the first process of a PID namespace ends when its launcher ends.
pub fn first_processes() {
    let unshare = ["-Urpf", "--mount-proc"];
    let tried = Command::new("unshare").args(unshare).arg("true").output();
    if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
        return left_out("PID namespaces", &format!("{tried:?}"));
    }
    for transport in ALL {
        let script = r#"exec unshare -Urpf --mount-proc "$0" rank spin"#;
        let mut job = by_shell(transport, script, &[]);
        job.lines(ranks_on(transport), "spins");
        job.kill(Signal::KILL);
        let began = Instant::now();
        while job.left().next().is_some() {
            assert!(began.elapsed() < Duration::from_secs(20), "{transport}: ranks are left");
            std::thread::yield_now();
        }
    }
}

/// A control group with a limit of memory. The group is removed when this value is dropped.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    const LIMIT: u64 = 256 << 20;

    fn new() -> std::io::Result<Self> {
        let name = format!("fencepost-test-{}", std::process::id());
        let (root, limit) = match Path::new("/sys/fs/cgroup/memory").is_dir() {
            true => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            false => ("/sys/fs/cgroup", "memory.max"),
        };
        let group = Self(Path::new(root).join(name));
        std::fs::create_dir(&group.0)?;
        std::fs::write(group.0.join(limit), Self::LIMIT.to_string())?;
        Ok(group)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _: std::io::Result<()> = std::fs::remove_dir(&self.0);
    }
}

/// Every transport refuses a window that exceeds the limit of the control group.
pub fn memory_limits() {
    let group = match MemoryGroup::new() {
        Ok(group) => group,
        Err(error) => return left_out("control groups of memory", &error),
    };
    let script = r#"echo $$ > "$1/cgroup.procs" && exec "${@:2}""#;
    let (folder, program, bytes) = (group.0.display().to_string(), rank_program(), "536870912");
    for transport in ["local", "shm", "tcp", "mixed"] {
        let mut words = vec!["-c", script, "bash", &folder];
        let options = options(transport, "2");
        if transport != "local" {
            words.extend([FENCEPOST, "run"]);
            words.extend(&options);
            words.push("--");
        }
        words.extend([&*program, "rank", "window", bytes, "touch"]);
        let set: &[(&str, &str)] = if transport == "local" { &[("FENCEPOST_RANKS", "2")] } else { &[] };
        let ended = start("bash", &words, set).end();
        if ended.err.contains("cgroup.procs") {
            return left_out("control groups of memory", &ended.err);
        }
        let said = ended.out.clone() + &ended.err;
        assert!(said.contains("NO_MEM") && said.contains("control group"), "{transport}: {ended:#?}");
        ended.expect(1);
    }
}

/// A window takes no physical memory until its elements are accessed.
pub fn untouched_memory() {
    const BYTES: u64 = 512 << 20;
    let bytes = BYTES.to_string();
    for (transport, program) in [("local", false), ("tcp", true)] {
        let ended = if program {
            crate::launched::run_with(&options(transport, "2"), &["window", &bytes, "leave"], &[]).end()
        } else {
            start(&rank_program(), &["rank", "window", &bytes, "leave"], &[("FENCEPOST_RANKS", "2")]).end()
        };
        let resident = ended
            .expect(0)
            .out
            .lines()
            .filter_map(|line| line.strip_prefix("resident ")?.parse::<u64>().ok());
        let most = resident.max().unwrap_or_else(|| panic!("no rank reports: {ended:#?}"));
        assert!(most << 10 < BYTES / 4, "{transport}: {most} KiB are resident");
    }
}

/// The program of a rank of [`memory_limits`] and [`untouched_memory`].
pub fn window(bytes: usize, touches: bool) -> Result<()> {
    fencepost::run(|world| {
        let mut u = world.window::<u8>(bytes)?;
        if touches {
            u.fill(1);
        } else {
            (u[0], u[bytes / 2], u[bytes - 1]) = (1, 2, 3);
        }
        u.fence()?;
        say(&format!("resident {}", crate::endure::status_kib("VmRSS")?));
        Ok(())
    })
}

/// If a window exceeds the limit on the size of files, the error names that limit.
pub fn file_sizes() {
    let script = r#"ulimit -f 32768 && exec "$@""#;
    let program = rank_program();
    let words = [
        "-c",
        script,
        "bash",
        FENCEPOST,
        "run",
        "-n",
        "2",
        "--transport",
        "shm",
        "--",
        &program,
        "rank",
        "window",
        "67108864",
        "touch",
    ];
    let ended = start("bash", &words, &[]).end();
    assert!(ended.expect(1).out.contains("`ulimit -f`"), "{ended:#?}");
}

/// If ranks write lines of errors in pieces, the launcher forwards whole lines.
pub fn errors_in_pieces() {
    for transport in ALL {
        let ended = crate::launched::run(&options(transport, "9"), &["pieces"]).end();
        let lines: Vec<&str> = ended.expect(0).err.lines().collect();
        let count = 100 * if transport == "mixed" { 4 } else { 9 };
        assert_eq!(lines.len(), count);
        let is_whole = |line: &&&str| {
            line.strip_prefix("Error: ")
                .and_then(|rest| rest.strip_suffix(" is one line"))
                .is_some_and(|rank| rank.len() == 6)
        };
        // If a rank loses its core in the middle of a line, the line is forwarded in parts.
        let whole = lines.iter().filter(|line| is_whole(line)).count();
        assert!(whole >= count - count / 50, "{lines:#?}");
    }
}

/// The program of a rank of [`errors_in_pieces`].
pub fn pieces() -> Result<()> {
    fencepost::run(|world| {
        for _ in 0..100 {
            for piece in ["Error: ", &format!("rank {}", world.rank()), " is one line", "\n"] {
                std::io::stderr().write_all(piece.as_bytes())?;
                std::thread::yield_now(); // another rank writes
            }
        }
        world.barrier()
    })
}

/// If the system refuses a call, the error reports the refusal and names the call.
pub fn refused_calls() {
    let mut harmless = Command::new("true");
    // SAFETY: the closure only makes system calls.
    unsafe { harmless.pre_exec(|| refuse(libc::SYS_reboot, libc::EPERM)) };
    if let Err(error) = harmless.status() {
        return left_out("refused system calls", &error);
    }
    let calls = [
        ("pidfd_open", libc::SYS_pidfd_open),
        ("memfd_create", libc::SYS_memfd_create),
        ("prctl", libc::SYS_prctl),
    ];
    for ((name, number), errno) in
        calls.into_iter().flat_map(|call| [(call, libc::EPERM), (call, libc::ENOSYS)])
    {
        let program = rank_program();
        let mut command = Command::new(FENCEPOST);
        command
            .args(["run", "-n", "2", "--transport", "shm", "--", &program, "rank", "well"])
            .stderr(Stdio::piped());
        // SAFETY: the closure only makes system calls.
        unsafe { command.pre_exec(move || refuse(number, errno)) };
        start_by(command).end().expect(125).says(&format!("the system refuses the call {name}"));
    }
}

/// Makes the system refuse this call to this process and to its children.
fn refuse(call: libc::c_long, errno: libc::c_int) -> std::io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the filter lives during the call, and the call copies it.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if installed { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// The launcher accepts options in the forms that users of mpirun know.
pub fn forms() {
    let file = std::env::temp_dir().join(format!("fencepost-hosts-{}", std::process::id()));
    std::fs::write(&file, "localhost slots=2\n").expect("a folder for temporary files");
    let file = file.display().to_string();
    let forms: &[&[&str]] = &[
        &["-n", "2"],
        &["-n2"],
        &["-np", "2"],
        &["--np", "2"],
        &["-H", "localhost:2"],
        &["--host", "localhost:2"],
        &["-hostfile", &file],
        &["-machinefile", &file],
        &["-np", "2", "-x", "LANG=C"],
        &["-np", "2", "--bind-to", "core"],
        &["-np", "2", "-wdir", "/"],
        &["-l", "-np", "2"],
        &["--tag-output", "--timeout", "60", "-np", "2"],
    ];
    for form in forms {
        let own = ["true", "-n", "7", "--timeout", "1", "-f", "x", "--help", "--", "-v"];
        let ended = start(FENCEPOST, &[&["run", "--show"][..], form, &own].concat(), &[]).end();
        let said = &ended.expect(0).out;
        let program = format!("{}\n", own.join(" "));
        assert!(said.starts_with("2 ranks over shm\n") && said.contains(&program), "{form:?}: {said}");
    }
    std::fs::remove_file(&file).expect("it is there");
    for (wrong, nearest) in [
        ("--tag_output", "--tag-output"),
        ("--rank", "--ranks"),
        ("--time-out", "--timeout"),
        ("--hostfil", "--hostfile"),
        ("-hostfle", "--hostfile"),
        ("-tag_output", "--tag-output"),
        ("-hosts-file", "--hostfile"),
        ("-np4", "--ranks"),
    ] {
        let ended = start(FENCEPOST, &["run", wrong, "true"], &[]).end();
        ended.expect(2).says(nearest);
    }
    let mut command = Command::new(FENCEPOST);
    let program = PathBuf::from(FENCEPOST);
    command
        .args(["run", "-n2", "fencepost"])
        .current_dir(program.parent().expect("a folder"))
        .env("PATH", "/no/such")
        .stderr(Stdio::piped());
    start_by(command).end().expect(127).says("did you mean ./fencepost?");
}

/// A rank that is bound to a core spins while it waits, if there is a core for each rank.
pub fn pinned() {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    for transport in ALL {
        let ended =
            crate::launched::run(&[&["--pin"], &options(transport, "2")[..]].concat(), &["cores"]).end();
        let said = format!("of {all} cores 1 is mine\n");
        assert_eq!(ended.expect(0).out.matches(&said).count(), ranks_on(transport), "{ended:#?}");
    }
    // Pretended hosts are one machine, so each rank gets a core of its own if there are enough
    // cores.
    let options = ["--pin", "--pretend-hosts", "2", "-n", "4"];
    let mut job = crate::launched::run(&options, &["cores"]);
    let mut mine = job.lines(4, "bound to");
    mine.dedup();
    let own = rustix::thread::sched_getaffinity(None).expect("the cores of this process");
    assert_eq!(mine.len(), (own.count() as usize).min(4), "{mine:?}");
    job.end().expect(0);
}

/// The program of a rank of [`pinned`].
pub fn cores() -> Result<()> {
    fencepost::run(|world| {
        let all = fencepost_job::joined().map_or(0, |member| member.job().cores);
        let mine = std::thread::available_parallelism().map_or(0, usize::from);
        let bound = std::fs::read_to_string("/proc/self/status")?;
        let bound =
            bound.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
        say(&format!("of {all} cores {mine} is mine\nbound to {}", bound.trim()));
        world.barrier()
    })
}
