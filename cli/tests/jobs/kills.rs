//! Ranks and launchers of jobs that take snapshots are killed at random moments. When the job is
//! restarted, by the launcher or by hand, its results have the same bits as those of an undisturbed
//! job. The same holds for a job that was asked to end, and is started again.

use crate::launched::{Ended, Launched, options, rank_program, run_with, start};
use fencepost_tests_support::random::Random;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Limits so short that a run with a death takes only seconds.
const LIMITS: [(&str, &str); 2] = [("FENCEPOST_SILENCE", "1s"), ("FENCEPOST_HEARTBEAT", "250ms")];

/// The programs. Each takes about a second.
const PROGRAMS: [(&str, &[&str]); 2] = [
    ("hillslope", &["hillslope", "-n", "4", "--years", "2e7", "--group", "2", "--every", "0.02"]),
    ("sparse", &["sparse", "-n", "4", "--rows", "6000", "--iterations", "700", "--every", "0.02"]),
];
const TRANSPORTS: [&str; 3] = ["shm", "tcp", "mixed"];

/// The counts of kills for a program on a transport.
#[derive(Default)]
struct Row {
    kills: usize,
    /// The number of kills of launchers.
    of_launchers: usize,
    /// The number of kills while a snapshot was being written.
    while_writing: usize,
    /// The number of kills before the first snapshot was complete.
    from_start: usize,
}

/// An undisturbed run: its digest and time.
struct Undisturbed {
    digest: String,
    time: Duration,
}

fn digest(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("digest "))
}

/// Returns the step after which a run has continued, if it has continued from a snapshot.
fn continued(text: &str) -> Option<u64> {
    let mut steps = text.lines().filter_map(|line| line.strip_prefix("continued after step "));
    steps.next_back().map(|step| step.parse().expect("a step"))
}

/// Returns the steps of the complete snapshots of a folder, and whether a snapshot is being
/// written.
fn snapshots(folder: &Path) -> (Vec<u64>, bool) {
    let names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let mut steps: Vec<u64> =
        names.iter().filter_map(|name| name.strip_prefix("step-")?.parse().ok()).collect();
    steps.sort_unstable();
    (steps, names.iter().any(|name| name.starts_with("writing-")))
}

fn begin(program: &[&str], transport: &str, folder: &Path) -> Launched {
    begin_with(&options(transport, "4"), program, folder)
}

fn begin_with(options: &[&str], program: &[&str], folder: &Path) -> Launched {
    let folder = folder.display().to_string();
    let words = [program, &["--snapshots", &folder]].concat();
    let options = [options, &["--restarts", "3"]].concat();
    run_with(&options, &words, &LIMITS)
}

/// The processes of a job that are ranks.
fn ranks(job: &Launched) -> Vec<Pid> {
    let program = rank_program();
    let is_rank = |pid: &String| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|&byte| byte == 0).next() == Some(program.as_bytes())
    };
    job.left().filter(is_rank).filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// Kills a process of a job at a random moment of its run, and counts the result in `row`. Returns
/// `false` if the job had ended before.
fn kill_one(
    (program, words): (&str, &[&str]),
    transport: &str,
    undisturbed: &Undisturbed,
    random: &mut Random,
    row: &mut Row,
) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let job = begin(words, transport, folder.path());
    // This sleep awaits nothing. It makes the moment of the kill differ from job to job.
    std::thread::sleep(undisturbed.time.mul_f64(random.below(1000) as f64 / 1000.0));
    let (at_writing, at_launcher) = (random.below(2) == 0, random.below(4) == 0);
    let limit = Instant::now() + undisturbed.time;
    while at_writing && !snapshots(folder.path()).1 && Instant::now() < limit {
        std::thread::yield_now();
    }
    let all = ranks(&job);
    let victim = if at_launcher { Some(job.pid()) } else { all.get(random.below(all.len().max(1))).copied() };
    let Some(victim) = victim else { return false };
    let (before, is_writing) = snapshots(folder.path());
    if kill_process(victim, Signal::KILL).is_err() {
        return false;
    }
    let mut ended = job.end();
    if at_launcher {
        // If the launcher had already finished, the kill does not count.
        if ended.code == Some(0) {
            return false;
        }
        assert_eq!(ended.signal, Some(9), "{ended:#?}");
        ended = begin(words, transport, folder.path()).end();
    } else if !ended.err.contains("attempt 2 of 4") {
        // The rank had already left its last world, so the job was not restarted.
        return false;
    }
    ended.expect(0);
    let about = format!("{program} on {transport}, {victim:?}: {ended:#?}");
    assert_eq!(digest(&ended.out), Some(&undisturbed.digest[..]), "{about}");
    let from = continued(&ended.out);
    // A snapshot that was complete at the kill is not lost.
    assert!(
        from >= before.last().copied(),
        "a later snapshot than {from:?} of {before:?} was complete: {about}"
    );
    let announced = ended.err.lines().find_map(|line| line.split_once("the last snapshot is of step "));
    if let Some((_, rest)) = announced {
        let step: u64 = rest.split(',').next().and_then(|step| step.parse().ok()).expect("a step");
        assert!(from >= Some(step), "step {step} was announced: {about}");
    }
    row.kills += 1;
    row.of_launchers += usize::from(at_launcher);
    row.while_writing += usize::from(is_writing);
    row.from_start += usize::from(from.is_none());
    true
}

/// Kills processes of jobs on each transport, and prints a table.
pub fn at_random() {
    let kills = if crate::full() { 200 } else { 3 };
    let mut random = Random::new(0x5eed);
    let mut rows: BTreeMap<(&str, &str), (Row, Undisturbed)> = BTreeMap::new();
    for number in 0.. {
        if rows.values().map(|(row, _)| row.kills).sum::<usize>() >= kills {
            break;
        }
        assert!(number < 10 * kills, "most kills come too late");
        let (name, words) = PROGRAMS[number % 2];
        let transport = TRANSPORTS[number % 3];
        let (row, undisturbed) = rows.entry((name, transport)).or_insert_with(|| {
            let folder = tempfile::tempdir().expect("a folder");
            let began = Instant::now();
            let ended = begin(words, transport, folder.path()).end();
            let digest = digest(&ended.expect(0).out).expect("a digest").to_owned();
            assert!(!snapshots(folder.path()).0.is_empty(), "{ended:#?}");
            (Row::default(), Undisturbed { digest, time: began.elapsed() })
        });
        kill_one((name, words), transport, undisturbed, &mut random, row);
    }
    println!(
        "  program    transport  seconds  kills  of launchers  while writing  before the first snapshot"
    );
    for ((name, transport), (row, undisturbed)) in &rows {
        println!(
            "  {name:9}  {transport:9}  {:7.1}  {:5}  {:12}  {:13}  {:25}",
            undisturbed.time.as_secs_f64(),
            row.kills,
            row.of_launchers,
            row.while_writing,
            row.from_start
        );
    }
}

/// Waits until a job has taken its first snapshot.
fn await_snapshot(folder: &Path) {
    let limit = Instant::now() + Duration::from_secs(60);
    while snapshots(folder).0.is_empty() {
        assert!(Instant::now() < limit, "there is no snapshot");
        std::thread::yield_now();
    }
}

/// Starts the same ranks without our launcher, as threads or as processes of another launcher, and
/// returns them.
fn begin_without(words: &[&str], folder: &Path, how: &str, variables: &[(&str, &str)]) -> Vec<Launched> {
    let folder = folder.display().to_string();
    let words = [&["rank"], words, &["--snapshots", &folder, "--transport", how]].concat();
    let start_one = |more: &[(&str, &str)]| start(&rank_program(), &words, &[variables, more].concat());
    if how == "local" {
        return vec![start_one(&[])];
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let at = port.expect("a port").to_string();
    let ranks = (0..4).map(|rank: usize| {
        let rank = rank.to_string();
        let slurm = [("SLURM_PROCID", &rank[..]), ("SLURM_NTASKS", "4"), ("SLURM_STEP_ID", "0")];
        start_one(&[&slurm[..], &[("FENCEPOST_RENDEZVOUS", &at)]].concat())
    });
    ranks.collect()
}

/// Returns the words of a run of hillslope with `steps` steps. A run that is asked to end has more
/// steps than it could compute in a minute.
fn hillslope(ranks: &str, group: &str, steps: u64) -> Vec<String> {
    let words = ["hillslope", "-n", ranks, "--group", group, "--every", "0.03", "--years"];
    words.iter().map(|word| (*word).to_owned()).chain([format!("{steps}e5")]).collect()
}

/// Checks the end of a job that was asked to end. Then a job with another number of ranks and
/// another halo must continue from the snapshot of the first job. hillslope compares the result
/// with that of the serial program.
fn check_continued(name: &str, ended: &Ended, folder: &Path, (ranks, transport): (&str, &str)) {
    assert!(digest(&ended.out).is_none(), "{name} ends before its end: {ended:#?}");
    let last = snapshots(folder).0.last().copied().expect("a snapshot");
    let words = hillslope(ranks, "3", last + 10);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let again = begin_with(&["-n", ranks, "--transport", transport], &words, folder).end();
    assert_eq!(continued(&again.expect(0).out), Some(last), "{name}: {again:#?}");
    assert!(again.out.contains("equal to the serial program bit for bit"), "{name}: {again:#?}");
    println!("  {name}: code 75 after step {last}, continued by {ranks} ranks on {transport}");
}

/// Jobs are asked to end by a signal: under our launcher, under another launcher and without a
/// launcher.
pub fn on_request() {
    let words = hillslope("4", "2", 1_000_000);
    let words: &[&str] = &words.iter().map(String::as_str).collect::<Vec<_>>();
    let cases = [
        ("shm", Signal::USR1, ("1", "shm")),
        ("tcp", Signal::TERM, ("3", "shm")),
        ("mixed", Signal::USR1, ("6", "tcp")),
    ];
    for (transport, signal, next) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display().to_string();
        let options = [&options(transport, "4")[..], &["--restarts", "3", "--snapshot-on-term"]].concat();
        let job = run_with(&options, &[words, &["--snapshots", &path]].concat(), &LIMITS);
        await_snapshot(folder.path());
        job.kill(signal);
        let ended = job.end();
        let step = snapshots(folder.path()).0.last().copied().expect("a snapshot");
        ended.expect(75).says(&format!("the job ended on request after a snapshot of step {step}, in "));
        check_continued(&format!("{transport}, {signal:?}"), &ended, folder.path(), next);
    }
    for (how, next) in [("local", ("9", "tcp")), ("tcp", ("9", "shm"))] {
        let folder = tempfile::tempdir().expect("a folder");
        let secret = folder.path().join("secret");
        std::fs::write(&secret, [7; 32]).expect("written");
        let only_me = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&secret, only_me).expect("changed");
        let (secret, saved) = (secret.display().to_string(), folder.path().join("snapshots"));
        let variables = [("FENCEPOST_SECRET_FILE", &secret[..]), ("FENCEPOST_SNAPSHOT_ON_TERM", "on")];
        let ranks = begin_without(words, &saved, how, &variables);
        await_snapshot(&saved);
        // A batch system signals all ranks, but a signal to one rank is enough.
        ranks[ranks.len() - 1].kill(Signal::TERM);
        let ended: Vec<Ended> = ranks.into_iter().map(Launched::end).collect();
        ended.iter().for_each(|ended| _ = ended.expect(75));
        check_continued(&format!("{how} without our launcher"), &ended[0], &saved, next);
    }
}
