//! How jobs end: well, with a code, by a signal, by a limit, with their launcher.

use crate::launched::{BOTH, await_end, process, rank_program, run, run_with, start};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Instant;

pub fn well() {
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

pub fn by_itself() {
    for transport in BOTH {
        let ended = start(&rank_program(), &["rank", "by-itself", "3", transport], &[]).end();
        let mut lines: Vec<&str> = ended.expect(0).out.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["values [0]", "values [1]", "values [2]"]);
    }
    let ended = start(&rank_program(), &["rank", "by-itself", "3", "sim"], &[]).end();
    assert_eq!(ended.expect(0).out, "values [0, 1, 2]\n", "threads give all values to one process");
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

pub fn sizes() {
    let ended = run(&["-n", "2"], &["ask", "3"]).end();
    ended.expect(1);
    assert!(ended.out.contains("asks for 3 ranks") && ended.out.contains("has 2"), "{ended:#?}");
}

pub fn signals() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut job = run(&["-n", "3", "-v"], &["spin"]);
        job.lines(3, "spins");
        job.kill(signal);
        job.end().expect(code).says("is handed on");
    }
}

pub fn timeout() {
    let ended = run(&["-n", "2", "--timeout", "1s"], &["spin"]).end();
    ended.expect(124).says("longer than its time");
    run(&["-n", "2", "--timeout", "0"], &["well"]).end().expect(0);
}

pub fn late() {
    for transport in BOTH {
        let file = std::env::temp_dir().join(format!("fencepost-late-{}-{transport}", std::process::id()));
        let options = ["-n", "2", "--transport", transport, "--timeout", "2s"];
        let limits = [("FENCEPOST_SILENCE", "300ms"), ("FENCEPOST_HEARTBEAT", "100ms")];
        let ended = run_with(&options, &["late", &file.display().to_string()], &limits).end();
        std::fs::remove_file(&file).expect("one has joined");
        ended.expect(124).says("has not joined the job, 0.3 s after others");
        assert_eq!(ended.err.matches("has not joined").count(), 1, "{ended:#?}");
    }
}

pub fn continued() {
    for transport in BOTH {
        let mut job = run(&["-n", "3", "--transport", transport], &["sleepy"]);
        let stopped = job.lines(1, "stops").remove(0);
        let state = || {
            let stat = std::fs::read_to_string(format!("/proc/{stopped}/stat")).expect("it is there");
            stat.rsplit_once(") ").map(|(_, rest)| rest.starts_with('T'))
        };
        while state() != Some(true) {
            std::thread::yield_now();
        }
        let pid = Pid::from_raw(stopped.parse().expect("a number")).expect("not 0");
        kill_process(pid, Signal::CONT).expect("it is there");
        let ended = job.end();
        assert_eq!(ended.expect(0).out, "done\n".repeat(3));
    }
}

/// Rank 0 writes more than any pipe holds, and then asks the launcher to end, whose output nobody reads meanwhile.
pub fn unread() {
    for transport in BOTH {
        let options = ["-n", "2", "--transport", transport, "--tag-output"];
        let job = run_with(&options, &["flood", "400000", "end"], &[("FENCEPOST_GRACE", "1s")]);
        await_end(&process(&job.pid().as_raw_nonzero().to_string()));
        let ended = job.end();
        ended.expect(143);
        assert!(ended.out.lines().all(|line| line.starts_with('[')) && !ended.out.is_empty());
    }
    // Who reads at last finds all of it, and the code that the ranks gave.
    let ended = run(&["-n", "2", "--tag-output"], &["flood", "3000000", "well"]).end();
    assert_eq!(ended.expect(0).out.len(), 2 * (3_000_000 / 1024) * 1028);
}

pub fn orphans() {
    for transport in BOTH {
        for group in [false, true] {
            let mut job = run(&["-n", "3", "--transport", transport], &["spin"]);
            let ranks = job.lines(3, "spins");
            let pid = |line: &String| process(line.split(' ').nth(1).expect("its number"));
            let processes: Vec<_> = ranks.iter().map(pid).collect();
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
    for transport in BOTH {
        let (fencepost, program) = (env!("CARGO_BIN_EXE_fencepost"), rank_program());
        let run = [fencepost, "run", "-n", "8", "--transport", transport, "--tag-output", "--"];
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
            // A name service that answers nothing must not matter.
            let broken = [("LOCALDOMAIN", "invalid"), ("RES_OPTIONS", "attempts:1 timeout:1")];
            run_with(&["-n", "8", "--transport", transport], &["ask", "8"], &broken).end().expect(0);
            times.push(clock.elapsed());
        }
        times.sort();
        println!("  {transport}: 8 ranks come together and end in {:.0?} (median of 5)", times[2]);
    }
}
