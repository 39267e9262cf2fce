//! Jobs that are started again after a failure, and jobs that end on request.

use crate::launched::{
    BOTH, Ended, Launched, await_end, process, rank_program, run, run_with, start, start_by,
};
use crate::rank::{say, size, world};
use crate::remote::Script;
use fencepost::TransportKind;
use fencepost::prelude::*;
use fencepost_tests_support::side_by_side::side_by_side;
use rustix::fs::FlockOperation;
use rustix::process::{Signal, getpid, getppid, kill_process, pidfd_send_signal};
use signal_hook::consts::SIGTERM;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

const FENCEPOST: &str = env!("CARGO_BIN_EXE_fencepost");
/// Two hosts that this machine pretends to have. Ranks 0 and 1 are on the first host, and rank 2 is
/// on the second one.
const PRETENDED: [&str; 4] = ["--pretend-hosts", "2", "-n", "3"];
/// The folder that the ranks report for their snapshots.
const SNAPSHOTS: &str = "out/snapshots";

/// Returns, for each transport, the options of a job of three ranks and the host of rank 2.
fn places() -> [(Vec<&'static str>, &'static str); 3] {
    let [shm, tcp] = BOTH.map(|transport| vec!["-n", "3", "--transport", transport]);
    [(shm, "localhost"), (tcp, "localhost"), (PRETENDED.into(), "host2")]
}

/// A folder in which a job counts its attempts. It is removed on drop.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> &str {
        self.0.path().to_str().expect("text")
    }

    /// Starts a job. In each of the first `fatal` attempts, its last rank ends in the way `how`.
    fn run(&self, options: &[&str], [fatal, how, snapshots]: [&str; 3]) -> Launched {
        run(options, &["fails", self.path(), fatal, how, snapshots])
    }
}

/// Returns the lines of the ranks that have succeeded.
fn done(ended: &Ended) -> Vec<&str> {
    ended.out.lines().filter(|line| line.starts_with("done")).collect()
}

pub fn killed() {
    side_by_side(2, places(), |(options, host)| {
        let folder = Folder::new();
        let options = [&options[..], &["--restarts", "3"]].concat();
        let ended = folder.run(&options, ["2", "kill", "snapshots"]).end();
        assert_eq!(done(ended.expect(0)), ["done in attempt 3 of 3 ranks"; 3]);
        let killed = format!("rank 2 on host {host} was killed by signal 9 (SIGKILL)");
        for (attempt, step) in [(2, 10), (3, 20)] {
            let snapshot = format!("the last snapshot is of step {step}, in {SNAPSHOTS}");
            ended.says(&format!("fencepost: attempt {attempt} of 4: {killed}; {snapshot}\n"));
        }
        assert_eq!(ended.err.lines().count(), 2, "{ended:#?}");
    });
}

pub fn without_snapshots() {
    side_by_side(2, places(), |(options, _)| {
        let folder = Folder::new();
        let options = [&options[..], &["--restarts", "1"]].concat();
        let ended = folder.run(&options, ["1", "kill", "none"]).end();
        ended.expect(0).says("attempt 2 of 2: rank 2 on host").says("; no snapshot was taken\n");
        ended.says("attempt 2 begins in 1 s");
    });
}

pub fn all_attempts_fail() {
    let folder = Folder::new();
    let options = ["-n", "2", "--restarts", "2"];
    let ended = folder.run(&options, ["9", "kill", "snapshots"]).end();
    ended.expect(137).says("attempt 3 of 3: ").says("20, in");
    let last = ended.err.lines().last();
    assert_eq!(last, Some("fencepost: rank 1 on host localhost was killed by signal 9 (SIGKILL)"));
}

/// After a failure that the program or its user has caused, the job is not restarted.
pub fn not_restarted() {
    for (how, code) in [("panic", 101), ("error", 1), ("code", 3)] {
        let folder = Folder::new();
        let ended = folder.run(&["-n", "2", "--restarts", "3"], ["9", how, "snapshots"]).end();
        ended.expect(code);
        assert!(!ended.err.contains("attempt 2"), "{ended:#?}");
    }
    let once = |options: &[&str], rank: &[&str]| {
        let mut job = run(&[options, &["--restarts", "3"]].concat(), rank);
        if rank == ["spin"] {
            job.lines(3, "spins");
            job.kill(Signal::USR1);
        }
        let ended = job.end();
        assert!(!ended.err.contains("attempt 2"), "{ended:#?}");
        ended.code
    };
    for (options, _) in places() {
        assert_eq!(once(&options, &["spin"]), Some(128 + 10), "SIGUSR1 is the user's");
    }
    let dies_unjoined = ["never-joins", "here"];
    let here = ["-n", "2", "-x", "FENCEPOST_TEST_HOST=here"];
    assert_eq!(once(&here, &dies_unjoined), Some(137), "no rank has joined");
    let unreachable = ["--hosts", "a=127.0.0.2:1", "--remote-command", "false"];
    assert_eq!(once(&unreachable, &["well"]), Some(125), "no host could be reached");
}

/// The job is restarted after a rank stops itself, after a rank ends while its shell continues, and
/// after a rank ends together with its shell.
pub fn silent_or_vanished() {
    let folder = Folder::new();
    let quick = [("FENCEPOST_SILENCE", "1s"), ("FENCEPOST_HEARTBEAT", "100ms")];
    let words = ["fails", folder.path(), "1", "stop", "snapshots"];
    let ended = run_with(&["-n", "2", "--restarts", "1"], &words, &quick).end();
    ended.expect(0).says("attempt 2 of 2: rank 1 on host localhost sent no heartbeat for");
    for (on_failure, how) in [
        ("exec tail -f /dev/null", "ended without leaving the job, inside the command that was started"),
        ("exit $?", "exited with code 137"),
    ] {
        let folder = Folder::new();
        let script = format!(r#""$0" rank fails "$1" 1 kill snapshots || {on_failure}"#);
        let program = rank_program();
        let words =
            ["run", "-n", "2", "--restarts", "1", "--", "bash", "-c", &script, &program, folder.path()];
        let ended = start(FENCEPOST, &words, &[("FENCEPOST_GRACE", "1s")]).end();
        ended.expect(0).says(&format!("attempt 2 of 2: rank 1 on host localhost {how}"));
    }
}

/// Kills the parent of the last rank that has reported that it waits.
fn kill_last_agent(lines: &[String]) {
    let agent = lines.last().and_then(|line| line.split(' ').nth(2)).expect("its parent");
    pidfd_send_signal(process(agent), Signal::KILL).expect("it is there");
}

/// The agent of the second host is killed, while processes that its ranks have started hold the
/// locks of these ranks. The next attempt has the same hosts, or with `--shrink` only the first
/// host.
pub fn lost_hosts() {
    for (shrink, ranks) in [(&[][..], 4), (&["--shrink"], 2)] {
        let folder = Folder::new();
        let options = [&["--pretend-hosts", "2", "-n", "4", "--restarts", "1"], shrink].concat();
        let mut job = folder.run(&options, ["1", "leave", "snapshots"]);
        kill_last_agent(&job.lines(4, "waits"));
        let ended = job.end();
        ended.expect(0).says("attempt 2 of 2: rank 2 on host host2 was lost with its host: ");
        assert_eq!(done(&ended), vec![format!("done in attempt 2 of {ranks} ranks"); ranks]);
        let leaves_out = "attempt 2 leaves out host host2: it has 2 ranks";
        assert_eq!(ended.err.contains(leaves_out), !shrink.is_empty(), "{ended:#?}");
    }
}

/// With --shrink, no attempt can follow the loss of the only host.
pub fn no_host_left() {
    let folder = Folder::new();
    let hosts = ["--hosts", "a=127.0.0.2:2", "--remote-command", "env FENCEPOST_TEST_HOST={host}"];
    let options = [&hosts[..], &["--restarts", "1", "--shrink"]].concat();
    let mut job = folder.run(&options, ["1", "wait", "snapshots"]);
    let lines = job.lines(2, "waits");
    let ranks: Vec<_> = lines.iter().filter_map(|line| line.split(' ').nth(1)).map(process).collect();
    kill_last_agent(&lines);
    ranks.iter().for_each(await_end);
    job.end().expect(125).says("rank 0 on host a was lost").says("not started again: no host is left");
}

/// The second attempt cannot reach its hosts, and the third one can.
pub fn unreachable_later() {
    let folder = Folder::new();
    let down = folder.0.path().join("down");
    let script =
        Script::new("later", &format!("[ -e {0} ] && rm -f {0} && exit 255\nexec \"$@\"", down.display()));
    let command = format!("{} env FENCEPOST_TEST_HOST={{host}}", script.0);
    let options = ["--hosts", "a=127.0.0.2:1,b=127.0.0.3:1", "--remote-command", &command, "--restarts", "2"];
    let ended = folder.run(&options, ["1", "down", "snapshots"]).end();
    assert_eq!(done(ended.expect(0)), ["done in attempt 2 of 2 ranks"; 2], "no rank ran in the second");
    ended.says("attempt 2 of 3: rank 1 on host b was killed by signal 9 (SIGKILL)");
    ended.says("attempt 3 of 3: ").says("was lost with its host: ").says("the last snapshot is of step 10");
}

pub fn signal_between_attempts() {
    let folder = Folder::new();
    let options = ["-n", "2", "--restarts", "9", "--snapshot-on-term"];
    let mut job = folder.run(&options, ["9", "kill", "none"]);
    job.await_error("attempt 3 begins in 2 s");
    job.kill(Signal::TERM);
    let ended = job.end();
    assert_eq!(ended.expect(143).err, "fencepost: SIGTERM ended the job before its next attempt\n");
}

/// The time limit applies to all attempts together, even if each attempt is much shorter.
pub fn timeout_of_all_attempts() {
    let folder = Folder::new();
    let options = ["-n", "2", "--restarts", "1000", "--timeout", "2500ms"];
    let ended = folder.run(&options, ["1000", "kill", "none"]).end();
    ended.expect(124).says("the job exceeded its time limit");
}

/// Rank 0 of each attempt reads one line.
pub fn input() {
    let folder = Folder::new();
    let mut command = Command::new(FENCEPOST);
    command.args(["run", "-n", "2", "--restarts", "1", "--", &rank_program(), "rank"]);
    command
        .args(["fails", folder.path(), "1", "read", "snapshots"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut job = start_by(command);
    job.input().write_all(b"one\ntwo\n").expect("a reader");
    let ended = job.end();
    let lines: Vec<&str> = ended.expect(0).out.lines().filter(|line| line.starts_with("read")).collect();
    assert_eq!(lines, ["read one", "read two"]);
}

/// Rank 0 ends with the error of a program that was asked to end, while ranks 1 and 2 still
/// exchange messages.
pub fn stops() {
    for (options, _) in places() {
        let ended = run(&[&options[..], &["--restarts", "2"]].concat(), &["stops", "first"]).end();
        ended.expect(75);
        let line =
            format!("fencepost: the job ended on request after a snapshot of step 7, in {SNAPSHOTS}\n");
        assert_eq!((&ended.out[..], &ended.err), ("received\n", &line));
        run(&options, &["stops", "nested"]).end().expect(75).says("the job ended on request\n");
        let ended = run(&options, &["code", "0", "75"]).end();
        ended.expect(75).says("rank 0 on host").says("exited with code 75");
        assert!(!ended.err.contains("on request"), "{ended:#?}");
    }
    let as_threads = |way| start(&rank_program(), &["rank", "stops", way], &[]).end();
    assert_eq!(as_threads("threads").expect(75).out, "");
    assert!(as_threads("threads-fail").expect(1).out.contains("it has failed"));
}

pub fn snapshots_on_term() {
    let variable = ("FENCEPOST_SNAPSHOT_ON_TERM", "on");
    let ways = [
        (vec!["--snapshot-on-term"], None),
        (vec!["-x", "FENCEPOST_SNAPSHOT_ON_TERM=on"], None),
        (vec![], Some(variable)),
    ];
    // Without `FENCEPOST_SNAPSHOT_ON_TERM`, no rank would live longer than the grace period after
    // the signal.
    let impatient = ("FENCEPOST_GRACE", "0");
    for ((options, _), (more, environment)) in places().into_iter().zip(ways) {
        let options = [options, more].concat();
        let environment: Vec<_> = environment.into_iter().chain([impatient]).collect();
        let start = |then| run_with(&options, &["on-term", then], &environment);
        let mut job = start("stops");
        job.lines(3, "ready");
        job.kill(Signal::TERM);
        job.end().expect(75).says("the job ended on request after a snapshot of step 3");
        // After a second signal, the grace period limits the time of the ranks.
        let mut job = start("goes-on");
        job.lines(3, "ready");
        job.kill(Signal::TERM);
        job.lines(3, "saves");
        job.kill(Signal::TERM);
        job.end().expect(137);
    }
}

fn report_snapshot(step: u64) {
    let member = fencepost_job::member().expect("it joins").expect("a rank");
    member.report_snapshot(step, Path::new(SNAPSHOTS));
}

fn kill_oneself(signal: Signal) {
    kill_process(getpid(), signal).expect("oneself");
}

fn failed(why: impl Into<String>) -> Error {
    Error::new(ErrorClass::Other, why)
}

/// The program of one rank. It counts the attempts in a folder. In each of the first `fatal`
/// attempts, the last rank ends in the way `how`, or all ranks wait until they fail.
pub fn rank(folder: &str, fatal: usize, how: &str, snapshots: bool) -> Result<()> {
    let folder = Path::new(folder);
    world(size(), |world| {
        let (me, size) = (world.rank(), world.size());
        let is_last = me + 1 == size;
        let lock = File::create(folder.join(format!("lock-{me}")))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| failed("a process of the last attempt has a lock"))?;
        let attempts = folder.join("attempts");
        if me == 0 {
            OpenOptions::new().append(true).create(true).open(&attempts)?.write_all(b"x")?;
        }
        world.barrier()?;
        let attempt = std::fs::metadata(&attempts)?.len();
        if me == 0 && how == "read" {
            say(&format!("read {}", line_of_input()?));
        }
        if me == 0 && snapshots {
            report_snapshot(10 * attempt);
        }
        world.barrier()?;
        match how {
            _ if attempt > fatal as u64 => {}
            "leave" => {
                let lock = Stdio::from(lock.try_clone()?);
                Command::new("tail").args(["-f", "/dev/null"]).stdin(lock).spawn()?;
                wait(world)?;
            }
            "wait" => wait(world)?,
            "down" if is_last => {
                File::create(folder.join("down"))?;
                kill_oneself(Signal::KILL);
            }
            "kill" | "read" if is_last => kill_oneself(Signal::KILL),
            "stop" if is_last => kill_oneself(Signal::STOP),
            "panic" if is_last => panic!("the test asked for a panic"),
            "error" if is_last => return Err(failed("the test asked for an error")),
            "code" if is_last => std::process::exit(3),
            _ => {}
        }
        world.barrier()?;
        say(&format!("done in attempt {attempt} of {size} ranks"));
        Ok(())
    })
}

/// Reports the ids of this process and its parent, and waits for a message that no rank sends.
fn wait(world: &World) -> Result<()> {
    let parent = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    say(&format!("waits {} {} {parent}", world.rank(), getpid().as_raw_nonzero()));
    world.recv::<u8>((world.rank() + 1) % world.size(), 0).map(drop)
}

/// Reads one line, and not a single byte after it.
fn line_of_input() -> Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    let mut input = File::from(rustix::stdio::stdin().try_clone_to_owned()?); // without a buffer
    while line.last() != Some(&b'\n') && input.read(&mut byte)? > 0 {
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn stopping() -> Error {
    failed("the program was asked to end").stopping()
}

/// The program of one rank of a job that ends on request.
pub fn rank_that_stops(way: &str) -> Result<()> {
    let threads = || fencepost::ranks(3).transport(TransportKind::Local);
    match way {
        "first" => world(size(), first_stops),
        "nested" => world(size(), |_| world(size(), |_| Err(stopping()))),
        "threads" => threads().run(|world| if world.rank() == 1 { Err(stopping()) } else { Ok(()) }),
        "threads-fail" => {
            threads().run(|world| Err(if world.rank() == 2 { failed("it has failed") } else { stopping() }))
        }
        _ => panic!("no such way: {way}"),
    }
}

/// Rank 0 ends at once. After its end, rank 1 sends a message to rank 2.
fn first_stops(world: &World) -> Result<()> {
    let mut pid = [getpid().as_raw_nonzero().get()];
    world.broadcast(0, &mut pid)?;
    let rank_0 = process(&pid[0].to_string());
    world.barrier()?;
    if world.rank() == 0 {
        report_snapshot(7);
        return Err(stopping());
    }
    await_end(&rank_0);
    if world.rank() == 1 {
        world.message(2, 0).synchronous().send([1_u8])?;
        return Err(stopping());
    }
    world.recv::<u8>(1, 0)?;
    say("received");
    Ok(())
}

/// The program of one rank that saves its state at SIGTERM.
pub fn rank_on_term(then: &str) -> Result<()> {
    assert_eq!(std::env::var("FENCEPOST_SNAPSHOT_ON_TERM").as_deref(), Ok("on"));
    let (caught, write) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(SIGTERM, write)?;
    world(size(), |world| {
        world.barrier()?;
        say("ready");
        (&caught).read_exact(&mut [0])?;
        say("saves");
        world.barrier()?;
        if world.rank() == 0 {
            report_snapshot(3);
        }
        if then == "goes-on" {
            world.recv::<u8>((world.rank() + 1) % world.size(), 0)?;
        }
        Err(stopping())
    })
}
