//! How jobs end: with success, with a code, by a signal, by a time limit, and when their launcher
//! ends.

use crate::launched::{BOTH, HOSTS, await_end, go_on, options, process, rank_program, run, run_with, start};
use fencepost_tests_support::side_by_side::side_by_side;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

pub fn success() {
    for transport in BOTH {
        let ended = run(&["-n", "3", "--transport", transport, "--tag-output", "-v"], &["well"]).end();
        ended.expect(0);
        let mut lines: Vec<&str> = ended.out.lines().collect();
        lines.sort_unstable();
        let each = ["[0] before me 2", "[1] before me 0", "[2] before me 1"];
        assert_eq!(lines, each.iter().flat_map(|line| [*line; 2]).collect::<Vec<_>>());
        ended.says("ranks 0..3 on localhost").says("rank 2 on host localhost exited with code 0");
    }
}

pub fn self_launched() {
    for transport in BOTH {
        let ended = start(&rank_program(), &["rank", "self-launched", "3", transport], &[]).end();
        let mut lines: Vec<&str> = ended.expect(0).out.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["values [0]", "values [1]", "values [2]"]);
    }
    let ended = start(&rank_program(), &["rank", "self-launched", "3", "sim"], &[]).end();
    assert_eq!(ended.expect(0).out, "values [0, 1, 2]\n", "with threads one process returns all values");
}

pub fn codes() {
    for transport in BOTH {
        for (rank, code) in [("0", "3"), ("2", "77"), ("1", "0")] {
            let ended = run(&["-n", "3", "--transport", transport], &["code", rank, code]).end();
            ended.expect(if code == "0" { 1 } else { code.parse().expect("a code") });
            ended.says(&format!("rank {rank} on host localhost exited with code {code}"));
            assert_eq!(ended.out.lines().filter(|line| line.starts_with("error")).count(), 2, "{ended:#?}");
        }
    }
}

pub fn machines() {
    for transport in BOTH {
        let ended = run(&["-n", "3", "--transport", transport], &["machines"]).end();
        assert_eq!(ended.expect(0).out.lines().filter(|line| *line == "done").count(), 3, "{ended:#?}");
    }
}

pub fn sizes() {
    let ended = run(&["-n", "2"], &["ask", "3"]).end();
    ended.expect(1);
    assert!(ended.out.contains("asks for 3 ranks") && ended.out.contains("has 2"), "{ended:#?}");
}

pub fn signals() {
    for (transport, ranks) in [("shm", 3), ("mixed", 4)] {
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let mut job = run(&[&options(transport, "3")[..], &["-v"]].concat(), &["spin"]);
            job.lines(ranks, "spins");
            job.kill(signal);
            job.end().expect(code).says("is forwarded to the ranks");
        }
    }
}

pub fn timeout() {
    side_by_side(2, ["shm", "mixed"], |transport| {
        let options = options(transport, "2");
        let ended = run(&[&options[..], &["--timeout", "1s"]].concat(), &["spin"]).end();
        ended.expect(124).says("the job exceeded its time limit");
    });
    run(&["-n", "2", "--timeout", "0"], &["well"]).end().expect(0);
}

pub fn deadlocks() {
    side_by_side(2, BOTH, |transport| {
        let ending = [("FENCEPOST_DEADLOCK", "end"), ("FENCEPOST_STALL", "1ms")];
        let ended = run_with(&["-n", "3", "--transport", transport], &["crossed"], &ending).end();
        ended.expect(1).says("deadlock: ");
        let mut lines: Vec<&str> = ended.out.lines().collect();
        lines.sort_unstable();
        let [zero, one, two] = lines[..] else { panic!("{ended:#?}") };
        for line in [zero, one] {
            for wait in
                ["rank 0 waits for rank 1 in World::barrier", "rank 1 waits for rank 0 in World::barrier"]
            {
                assert!(line.starts_with("error ") && line.contains("RMA_SYNC"), "{ended:#?}");
                assert!(line.contains("deadlock: ") && line.contains(wait), "{ended:#?}");
            }
        }
        assert_eq!(two, "well");
    });
}

pub fn late() {
    side_by_side(2, BOTH, |transport| {
        let file = std::env::temp_dir().join(format!("fencepost-late-{}-{transport}", std::process::id()));
        let options = ["-n", "2", "--transport", transport, "--timeout", "2s"];
        let limits = [("FENCEPOST_SILENCE", "300ms"), ("FENCEPOST_HEARTBEAT", "100ms")];
        let ended = run_with(&options, &["unjoined", &file.display().to_string()], &limits).end();
        std::fs::remove_file(&file).expect("one rank has joined");
        ended.expect(124).says("has not joined the job 0.3 s after other ranks");
        assert_eq!(ended.err.matches("has not joined").count(), 1, "{ended:#?}");
    });
}

pub fn continued() {
    for (transport, ranks) in [("shm", 3), ("tcp", 3), ("mixed", 4)] {
        let mut job = run(&options(transport, "3"), &["sleepy"]);
        let stopped = job.lines(1, "stops").remove(0);
        go_on(&stopped);
        let ended = job.end();
        assert_eq!(ended.expect(0).out, "done\n".repeat(ranks));
    }
}

/// Rank 0 writes more than a pipe holds, and then sends SIGTERM to the launcher. Meanwhile nobody
/// reads the output of the launcher.
pub fn unread() {
    for transport in BOTH {
        let options = ["-n", "2", "--transport", transport, "--tag-output"];
        let job = run_with(&options, &["flood", "400000", "end"], &[("FENCEPOST_GRACE", "1s")]);
        await_end(&process(&job.pid().as_raw_nonzero().to_string()));
        let ended = job.end();
        ended.expect(143);
        assert!(ended.out.lines().all(|line| line.starts_with('[')) && !ended.out.is_empty());
    }
    // A late reader gets all output, and the exit code of the ranks.
    let ended = run(&["-n", "2", "--tag-output"], &["flood", "3000000", "well"]).end();
    assert_eq!(ended.expect(0).out.len(), 2 * (3_000_000 / 1024) * 1028);
}

pub fn orphans() {
    for (transport, ranks) in [("shm", 3), ("tcp", 3), ("mixed", 4)] {
        for group in [false, true] {
            let mut job = run(&options(transport, "3"), &["spin"]);
            let ranks = job.lines(ranks, "spins");
            // The process ids of the ranks and of their parents. The parents are the launcher, or
            // the agents of the hosts.
            let numbers = ranks.iter().flat_map(|line| line.split(' ').skip(1));
            let numbers: BTreeSet<&str> = numbers.collect();
            let processes: Vec<_> = numbers.into_iter().map(process).collect();
            if group {
                job.kill_group(Signal::KILL)
            } else {
                job.kill(Signal::KILL)
            }
            processes.iter().for_each(await_end);
            let ended = job.end();
            assert_eq!(ended.signal, Some(9), "{ended:#?}");
        }
    }
}

pub fn descriptors() {
    let count = if crate::full() { "500" } else { "50" };
    let limited = "ulimit -n 64; exec \"$0\" \"$@\"";
    let hosts = [&["--hosts", "a=127.0.0.2:4,b=127.0.0.3:4"], &HOSTS[2..]].concat();
    let [shm, tcp] = BOTH.map(|transport| options(transport, "8"));
    for (transport, options) in [("shm", shm), ("tcp", tcp), ("mixed", hosts)] {
        let (fencepost, program) = (env!("CARGO_BIN_EXE_fencepost"), rank_program());
        let run = [&[fencepost, "run", "--tag-output"], &options[..], &["--"]].concat();
        let words = [&["-c", limited], &run[..], &[&program, "rank", "windows", count]].concat();
        let mut job = start("sh", &words, &[]);
        let mut most = 0;
        for _ in 0..8 {
            let line = job.line().expect("a line of each rank");
            let (_, held) = line.split_once("descriptors ").unwrap_or_else(|| panic!("{line}"));
            most = most.max(held.parse::<usize>().expect("a number"));
        }
        job.end().expect(0);
        println!("  {transport}: {most} descriptors at most in a rank, with {count} windows");
    }
    let words =
        ["-c", "ulimit -n 20; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_fencepost"), "run", "-n", "8", "true"];
    start("sh", &words, &[]).end().expect(125).says("descriptors");
}

pub fn start_up() {
    for transport in BOTH {
        let mut times = Vec::new();
        for _ in 0..5 {
            let clock = Instant::now();
            // A name service that does not answer must not delay a job on one machine.
            let broken = [("LOCALDOMAIN", "invalid"), ("RES_OPTIONS", "attempts:1 timeout:1")];
            run_with(&["-n", "8", "--transport", transport], &["ask", "8"], &broken).end().expect(0);
            times.push(clock.elapsed());
        }
        times.sort();
        println!("  {transport}: 8 ranks start, meet and end in {:.0?} (median of 5)", times[2]);
    }
}

/// A call of `run` while another thread is in `run` is refused, and both calls return an error.
pub fn overlapping() {
    for (transport, ranks) in [("shm", 2), ("tcp", 2), ("mixed", 4)] {
        let ended = run(&options(transport, "2"), &["overlapping"]).end();
        ended.expect(0);
        let lines = |word: &str| ended.out.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!(lines("nested well"), ranks, "{transport}: {ended:#?}");
        assert_eq!(lines("after well"), ranks, "{transport}: {ended:#?}");
        let refused =
            lines("inner ARG: this thread called `run` while another thread of the process was in a `run`");
        assert_eq!(refused, ranks, "{transport}: {ended:#?}");
        assert_eq!(lines("outer ARG: another thread called `run`"), ranks, "{transport}: {ended:#?}");
    }
}

/// A job can run more consecutive worlds than the shared memory has places for.
pub fn many_runs() {
    let ended = run(&["-n", "2", "--transport", "shm"], &["runs", "16500"]).end();
    assert_eq!(ended.expect(0).out, "done\ndone\n");
}

/// Every rank's error names both calls, whichever rank detects the difference.
pub fn apart() {
    side_by_side(3, [("shm", 2), ("tcp", 2), ("mixed", 4)], |(transport, ranks)| {
        let ended = run(&options(transport, "2"), &["apart"]).end();
        ended.expect(0);
        let lines: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("rank ")).collect();
        assert_eq!(lines.len(), ranks, "{ended:#?}");
        for line in lines {
            let (_, at) = line.split_once(" at ").unwrap_or_else(|| panic!("{ended:#?}"));
            let (barrier, error) = at.split_once(": ").unwrap_or_else(|| panic!("{ended:#?}"));
            let (found, other) = error.split_once(", and rank ").unwrap_or_else(|| panic!("{ended:#?}"));
            assert!(found.contains("rank 0 is in superstep hand_on (cli/tests/jobs/rank.rs:"), "{ended:#?}");
            let is_in = format!("is in World::barrier (cli/tests/jobs/rank.rs:{barrier})");
            assert!(other.contains(&is_in), "{transport}: {ended:#?}");
        }
    });
}

pub fn aborts() {
    for (transport, host) in [("shm", "localhost"), ("tcp", "localhost"), ("mixed", "b")] {
        let ended = run(&options(transport, "3"), &["aborts", "2"]).end();
        ended.expect(1).says(&format!("fencepost: rank 2 on host {host} exited with code 1"));
        let whole = ended.err.lines().filter(|line| line.starts_with("fencepost: an error of rank ")).count();
        let all = ended.err.matches("fencepost: an error of rank ").count();
        assert_eq!(whole, all, "two lines are mixed: {ended:#?}");
    }
}

pub fn panics() {
    for transport in ["shm", "tcp", "mixed"] {
        let ended = run(&options(transport, "3"), &["panics", "1"]).end();
        ended.expect(101).says("rank 1 on host").says("exited with code 101");
        let errors: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("error")).collect();
        let others = if transport == "mixed" { 3 } else { 2 };
        assert_eq!(errors.len(), others, "{ended:#?}");
        assert!(errors.iter().all(|error| error.contains("rank 1 panicked")), "{ended:#?}");
    }
}

/// If a rank dies and another rank therefore cannot join, the launcher reports only the first rank
/// as failed.
pub fn unborn() {
    let hosts = ["--hosts", "a=127.0.0.2:1,b=127.0.0.3:1", HOSTS[2], HOSTS[3]];
    let ended = run(&hosts, &["never-joins", "b"]).end();
    ended.expect(137).says("rank 1 on host b was killed by signal 9 (SIGKILL)");
    assert!(ended.out.contains("another rank ended before all ranks had joined: rank 1"), "{ended:#?}");
}

/// One of eight ranks dies before it has joined, some milliseconds before or after other ranks have
/// joined. Each of the other ranks gets an error at once, which names the dead rank.
pub fn unjoined() {
    let jobs = if crate::full() { 500 } else { 12 };
    let mut noticed = Vec::new();
    for number in 0..jobs {
        let options: &[&str] = match number % 3 {
            0 => &["-n", "8", "--transport", "shm"],
            1 => &["-n", "8", "--transport", "tcp"],
            _ => &["-n", "8", "--pretend-hosts", "2"],
        };
        let file = std::env::temp_dir().join(format!("fencepost-unjoined-{}-{number}", std::process::id()));
        let words = ["dies-unjoined", &file.display().to_string(), &(number * 7 % 60).to_string()];
        let ended = run(options, &words).end();
        std::fs::remove_file(&file).expect("one rank has died");
        ended.expect(137);
        let victim = (0..8).find(|rank| {
            let dead = |host| format!("rank {rank} on host {host} was killed by signal 9 (SIGKILL)");
            ["localhost", "host1", "host2"].into_iter().any(|host| ended.err.contains(&dead(host)))
        });
        let victim = victim.unwrap_or_else(|| panic!("no rank is named: {ended:#?}"));
        let numbers = |line: &str| -> Vec<i64> {
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let died = ended.out.lines().find(|line| line.starts_with("dies at ")).map(numbers);
        let Some(&[died]) = died.as_deref() else {
            panic!("the rank does not report when it dies: {ended:#?}")
        };
        let told: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("told at ")).collect();
        assert_eq!(told.len(), 7, "{ended:#?}");
        for line in told {
            let named = format!("rank {victim} of the job was killed by signal 9 (SIGKILL)");
            let (times, error) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
            assert!(error.contains(&named), "{line}: {ended:#?}");
            let &[told, began] = &numbers(times)[..] else { panic!("{line}") };
            noticed.push(Duration::from_nanos((told - died.max(began)).max(0) as u64));
        }
    }
    noticed.sort();
    let (half, last) = (noticed[noticed.len() / 2], noticed[noticed.len() - 1]);
    println!("  {jobs} jobs: half of the survivors are notified within {half:.1?}, all within {last:.1?}");
    assert!(last < Duration::from_secs(1), "{noticed:?}");
}
