//! The records of a run of a program: the traces of its ranks as a picture, and its profile.

use crate::launched::{Ended, HOSTS, rank_program, run_with, start};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

const FENCEPOST: &str = env!("CARGO_BIN_EXE_fencepost");

/// Runs hillslope on four ranks, which write their traces and their profile to this folder.
fn recorded(transport: &str, folder: &Path) {
    let (traces, profile) = (folder.display().to_string(), folder.join("profile").display().to_string());
    let out = folder.join("out").display().to_string();
    let words = ["hillslope", "-n", "4", "--years", "5e5", "--out", &out];
    let environment = [("FENCEPOST_TRACE", &*traces), ("FENCEPOST_PROFILE", &*profile)];
    let ended = match transport {
        "local" => start(&rank_program(), &[&["rank"], &words[..]].concat(), &environment).end(),
        "mixed" => run_with(&HOSTS, &words, &environment).end(),
        other => run_with(&["-n", "4", "--transport", other], &words, &environment).end(),
    };
    ended.expect(0);
}

fn trace(words: &[&str]) -> Ended {
    start(FENCEPOST, &[&["trace"], words].concat(), &[]).end()
}

/// Checks that the slices of each rank nest, and that each frame ends after it has begun. Returns
/// the number of frames.
fn checked(picture: &str) -> usize {
    let picture: Value = serde_json::from_str(picture).expect("JSON");
    let nanos = |value: &Value| (value.as_f64().expect("a time") * 1e3).round() as i64;
    let mut slices: BTreeMap<u64, Vec<(i64, i64)>> = BTreeMap::new();
    let mut frames: HashMap<u64, [Option<i64>; 2]> = HashMap::new();
    for element in picture["traceEvents"].as_array().expect("elements") {
        let rank = element["pid"].as_u64().expect("a rank");
        match element["ph"].as_str().expect("a phase") {
            "X" => {
                let begin = nanos(&element["ts"]);
                slices.entry(rank).or_default().push((begin, begin + nanos(&element["dur"])));
            }
            phase @ ("s" | "f") => {
                let end = usize::from(phase == "f");
                let frame = frames.entry(element["id"].as_u64().expect("a number")).or_default();
                assert!(frame[end].replace(nanos(&element["ts"])).is_none(), "{element}");
            }
            _ => {}
        }
    }
    assert_eq!(slices.len(), 4);
    for slices in slices.values_mut() {
        slices.sort_by_key(|(begin, end)| (*begin, -end));
        let mut open: Vec<i64> = Vec::new();
        for &(begin, end) in &*slices {
            while open.last().is_some_and(|last| *last <= begin) {
                open.pop();
            }
            // A frame is drawn one nanosecond wide, even at the end of a call.
            assert!(open.last().is_none_or(|last| end <= *last + 1), "{begin}..{end} in {open:?}");
            open.push(end);
        }
    }
    for ends in frames.values() {
        let [Some(sent), Some(received)] = ends else { panic!("a frame with one end: {ends:?}") };
        assert!(sent <= received, "{ends:?}");
    }
    frames.len()
}

pub fn of_runs() {
    for transport in ["local", "shm", "tcp", "mixed"] {
        let folder = tempfile::tempdir().expect("a folder");
        recorded(transport, folder.path());
        let (traces, file) = (folder.path().display().to_string(), folder.path().join("picture.json"));
        let ended = trace(&["-o", &file.display().to_string(), &traces]);
        ended.expect(0);
        assert!(ended.err.contains("4 ranks"), "{ended:?}");
        assert!(!ended.err.contains("before they were sent"), "{transport}: {}", ended.err);
        let frames = checked(&fs::read_to_string(file).expect("a picture"));
        assert!(frames > 100, "{transport}: {frames} frames");
        let profile = fs::read_to_string(folder.path().join("profile")).expect("a profile");
        let lines: Vec<Value> =
            profile.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let is_exchange = |line: &&Value| {
            let call = line["call"].as_str().unwrap_or_default();
            call.starts_with("superstep exchange (") && line["runs"].as_u64() > Some(0)
        };
        let exchange = lines.iter().find(is_exchange).expect("the exchange");
        let number = |name: &str| exchange[name].as_u64().expect(name);
        assert_eq!(number("messages") % number("runs"), 0, "each run sends the same: {exchange}");
        assert!(number("messages") > 0 && exchange["predicted"].as_f64() > Some(0.0), "{exchange}");
        assert!(exchange["least"]["ns"].as_f64() <= exchange["mean"].as_f64(), "{exchange}");
        assert!(exchange["mean"].as_f64() <= exchange["most"]["ns"].as_f64(), "{exchange}");
        assert!(number("waited") <= number("total"), "{exchange}");
    }
}

pub fn refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    let refused = |words: &[&str], why: &str| {
        let ended = trace(words);
        assert!(ended.expect(2).err.contains(why), "{why}: {}", ended.err);
    };
    refused(&[&path], "run a program with FENCEPOST_TRACE set to this folder");
    refused(&["/nowhere/at/all"], "/nowhere/at/all");
    let environment = [("FENCEPOST_TRACE", &*path)];
    run_with(&["-n", "3"], &["settings"], &environment).end().expect(0);
    trace(&[&path]).expect(0);
    refused(&["--run", "7", &path], "no trace of run 7");
    let file = |rank: u32| folder.path().join(format!("run1-rank{rank}.trace"));
    let text = |rank: u32| fs::read_to_string(file(rank)).expect("a trace");
    let (own, last) = (text(2), text(1));
    fs::write(file(2), &own[..own.len() - 5]).expect("written");
    refused(&[&path], "run1-rank2.trace: the trace is cut off");
    fs::write(file(2), own.replace("\nlost 0", "\nlost many")).expect("written");
    refused(&[&path], "line 7: `many` is not a number");
    let more = own.replace("\nsent ", "\nsent 1");
    fs::write(file(2), more).expect("written");
    refused(&[&path], "the file was changed");
    fs::write(file(2), &last).expect("written");
    refused(&[&path], "this is the trace of rank 1 in run 1");
    fs::remove_file(file(2)).expect("removed");
    refused(&[&path], "no trace of 1 of 3 ranks, such as rank 2");
    trace(&["--partial", &path]).expect(0);
    run_with(&["-n", "2"], &["settings"], &environment).end().expect(0);
    fs::write(file(2), own).expect("written");
    refused(&[&path], "the traces are of two executions");
    let full = Path::new("/dev/full");
    if full.exists() {
        fs::remove_file(file(2)).expect("removed");
        let ended = start("/bin/sh", &["-c", &format!("{FENCEPOST} trace {path} >/dev/full")], &[]).end();
        assert!(ended.expect(2).err.contains("No space left"), "{}", ended.err);
    }
}

/// An error is reported if a trace cannot be written, and if only one of the ranks records a trace.
pub fn unwritten() {
    let ended = run_with(&["-n", "2"], &["settings"], &[("FENCEPOST_TRACE", "/proc/nowhere")]).end();
    assert!(ended.expect(0).err.contains("rank 1 cannot write its trace to /proc/nowhere"), "{}", ended.err);
    let ended = run_with(&["-n", "2"], &["settings"], &[("FENCEPOST_PROFILE", "/proc/nowhere")]).end();
    assert!(ended.expect(0).err.contains("the profile cannot be written to /proc/nowhere"), "{}", ended.err);
    let ended = run_with(&["-n", "2"], &["settings"], &[("FENCEPOST_PROFILE", "yes")]).end();
    assert!(
        ended.expect(1).out.contains("FENCEPOST_PROFILE is `yes`: it may be on, off or the path"),
        "{ended:?}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    // Only ranks on the host RACE are given the variable.
    let command = format!("env FENCEPOST_T{{host}}={}", folder.path().display());
    let hosts = ["--hosts", "RACE=127.0.0.2:1,b=127.0.0.3:1", "--remote-command", &command];
    let ended = run_with(&hosts, &["settings"], &[]).end();
    assert!(ended.expect(1).out.contains("the beginning of a trace (FENCEPOST_TRACE)"), "{}", ended.out);
}

/// If a rank still waits for rank 0 when the program of rank 0 is over, the waiting rank gets an
/// error, and the profile names the waiting rank. The wait is not reported before the program of
/// rank 0 is over.
pub fn of_a_rank_that_waits() {
    for (transport, way) in [("shm", "plainly"), ("tcp", "between-halves")] {
        let environment = [("FENCEPOST_PROFILE", "on"), ("FENCEPOST_STALL", "off")];
        let options = ["-n", "3", "--transport", transport];
        let ended = run_with(&options, &["waits-for-rank-0", way], &environment).end();
        let (out, err) = (&ended.expect(1).out, &ended.err);
        assert!(out.contains("rank 0 has finished and left the world"), "{transport}, {way}: {out}");
        assert!(err.contains("without ranks 1, which"), "{transport}, {way}: {err}");
        assert!(!err.contains("deadlock") && !out.contains("deadlock"), "{transport}: {err}{out}");
    }
}

/// If a rank panics, it and all other ranks leave a trace.
pub fn of_a_rank_that_panics() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    fs::write(folder.path().join("run1-rank9.trace"), "of an earlier program").expect("written");
    let environment = [("FENCEPOST_TRACE", &*path), ("FENCEPOST_PROFILE", "on")];
    run_with(&["-n", "3"], &["panics", "0"], &environment).end();
    assert!(!folder.path().join("run1-rank9.trace").exists());
    assert!(trace(&[&path]).expect(0).err.contains("3 ranks"));
}
