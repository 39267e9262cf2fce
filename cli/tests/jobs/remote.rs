//! Jobs on several hosts. The hosts are loopback addresses, or network namespaces if this machine
//! allows them.

use crate::launched::{HOSTS, await_end, go_on, process, rank_program, run, run_with, start};
use fencepost_tests_support::side_by_side::side_by_side;
use rustix::process::{Signal, pidfd_send_signal};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

pub fn hosts() {
    let options = [&HOSTS[..], &["--tag-output", "-v", "--env", "SOME=thing"]].concat();
    let ended = run(&options, &["well"]).end();
    let mut lines: Vec<&str> = ended.expect(0).out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 8, "{ended:#?}");
    assert_eq!(lines[7], "[3] before me 2");
    ended.says("ranks 2..4 on b").says("rank 3 on host b exited with code 0");
    let ended = run(&["--pretend-hosts", "2", "-n", "3", "-v"], &["well"]).end();
    assert_eq!(ended.expect(0).out.lines().count(), 6, "{ended:#?}");
    ended.says("ranks 0..2 on host1").says("rank 2 on host host2 exited with code 0");
    let ended = run(&HOSTS, &["code", "3", "9"]).end();
    ended.expect(9).says("rank 3 on host b exited with code 9");
    let ended = run_with(&HOSTS, &["die", "2", "7", "kill"], &[]).end();
    ended.expect(137).says("rank 2 on host b was killed by signal 9");
}

/// The name of each of [`HOSTS`], and the ranks on this host.
const PLACES: [(&str, Range<usize>); 2] = [("a", 0..2), ("b", 2..4)];

pub fn lost() {
    for place in PLACES {
        lose_host(&HOSTS, 4, place, Signal::KILL, "on host", &[]);
    }
}

pub fn silent() {
    let quick = [("FENCEPOST_HEARTBEAT", "100ms"), ("FENCEPOST_SILENCE", "2s")];
    side_by_side(2, PLACES, |place| {
        lose_host(&HOSTS, 4, place, Signal::STOP, "it sent no heartbeat for", &quick);
    });
}

/// Starts `size` ranks with these options, and sends a signal to the agent of a host. The ranks of
/// this host end, and the other ranks get an error that names the lost ranks and the cause.
pub fn lose_host(
    options: &[&str],
    size: usize,
    (name, theirs): (&str, Range<usize>),
    signal: Signal,
    why: &str,
    quick: &[(&str, &str)],
) {
    let mut job = run_with(options, &["spin"], quick);
    let lines = job.lines(size, "spins");
    let words: BTreeMap<usize, Vec<&str>> = lines
        .iter()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .map(|words| (words[0].parse().expect("a rank"), words))
        .collect();
    let parents: BTreeSet<&str> = theirs.clone().map(|rank| words[&rank][2]).collect();
    let [parent] = parents.into_iter().collect::<Vec<_>>()[..] else {
        panic!("they have one parent: {lines:?}")
    };
    let host = process(parent);
    let processes: Vec<_> = theirs.clone().map(|rank| process(words[&rank][1])).collect();
    pidfd_send_signal(&host, signal).expect("it is there");
    processes.iter().for_each(await_end);
    let ended = job.end();
    let says = format!("rank {} on host {name} was lost with its host", theirs.start);
    ended.expect(125).says(&says).says(why);
    let errors: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("error")).collect();
    assert_eq!(errors.len(), size - theirs.len(), "{ended:#?}");
    for line in errors {
        let named = |rank| line.contains(&format!("rank {rank} is on host {name}"));
        assert!(line.contains("was lost with its host") && theirs.clone().any(named), "{line}");
    }
}

pub fn late() {
    let patient = [("FENCEPOST_SILENCE", "0")];
    let mut job = run_with(&HOSTS, &["late"], &patient);
    let host = |rank: usize| ["a", "a", "b", "b"][rank];
    let (mut stopped, mut waiting) = (None, BTreeSet::new());
    // Waits until rank 2 has stopped, and each other rank has reported that it waits for rank 2 in
    // the second fence.
    while stopped.is_none() || waiting.len() < 3 {
        let line = job.line().expect("some rank still waits");
        if let Some(pid) = line.strip_prefix("stops ") {
            stopped = Some(pid.to_owned());
            continue;
        }
        let (rank, rest) = line.split_once(" has waited ").unwrap_or_else(|| panic!("{line}"));
        let (_, rest) = rest.split_once(" for rank ").unwrap_or_else(|| panic!("{line}"));
        let mut words = rest.split(' ');
        let awaited: usize = words.next().and_then(|word| word.parse().ok()).expect("a rank");
        assert!(rest.starts_with(&format!("{awaited} on host {} in ", host(awaited))), "{line}");
        if awaited == 2 && rest.contains("number 3: received 2 of 3 notifications") {
            waiting.extend(rank.strip_prefix("stall rank ").map(str::to_owned));
        }
    }
    assert_eq!(waiting.into_iter().collect::<Vec<_>>(), ["0", "1", "3"]);
    go_on(&stopped.expect("it stops"));
    let ended = job.end();
    assert_eq!(ended.expect(0).out.lines().filter(|line| *line == "done").count(), 4, "{ended:#?}");
}

/// hillslope has the same result on hosts as on threads, in every mode. The hosts are loopback
/// addresses, and also namespaces if this machine allows them.
pub fn hillslope() {
    let words = ["hillslope", "-n", "4", "--years", "5e5"];
    let digest = |text: &str| -> String {
        let line = text.lines().find(|line| line.starts_with("digest "));
        line.unwrap_or_else(|| panic!("no digest: {text}")).to_owned()
    };
    let threads = [&["rank"], &words[..], &["--transport", "local"]].concat();
    let expected = digest(&start(&rank_program(), &threads, &[]).end().expect(0).out);
    let namespaces = Namespaces::new();
    let there = namespaces.as_ref().map(|namespaces| ("network namespaces", namespaces.options()));
    if there.is_none() {
        println!("  this machine allows no network namespaces");
    }
    let addresses = ("loopback addresses", HOSTS.map(str::to_owned));
    for (hosts, options) in there.into_iter().chain([addresses]) {
        for mode in ["auto", "aggressive", "aggregated", "pipelined", "direct"] {
            let job = run(&options.each_ref().map(String::as_str), &[&words[..], &["--mode", mode]].concat());
            let ended = job.end();
            assert_eq!(digest(&ended.expect(0).out), expected, "{mode}: {ended:#?}");
        }
        println!("  hosts are {hosts}: {expected} in every mode, as by threads");
    }
}

/// The launcher forwards much more output than the launcher and the hosts can buffer.
pub fn floods() {
    let options = [&HOSTS[..], &["--tag-output"]].concat();
    let ended = run(&options, &["flood", "4000000", "well"]).end();
    assert_eq!(ended.expect(0).out.len(), 4 * (4_000_000 / 1024) * 1028);
}

/// A script that serves as the remote command. It is removed on drop.
pub struct Script(pub String);

impl Script {
    pub fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fencepost-{name}-{}", std::process::id()));
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.write(true).create_new(true).mode(0o700).open(&path).expect("a file");
        file.write_all(format!("#!/bin/sh\n{text}\n").as_bytes()).expect("written");
        Self(path.display().to_string())
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).expect("it is there");
    }
}

/// The remote command never sends a message.
pub fn deaf() {
    let silent = Script::new("silent", "trap '' TERM; while :; do sleep 60; done");
    let options = ["--hosts", "a=::1", "--remote-command", &silent.0, "--timeout", "500ms"];
    let ended = run_with(&options, &["well"], &[("FENCEPOST_GRACE", "100ms")]).end();
    ended.expect(124).says("the job exceeded its time limit");
}

/// The remote command closes its output, and keeps running.
pub fn mute() {
    let mute = Script::new("mute", "trap '' TERM; exec >&-; while :; do sleep 60; done");
    let ended = run(&["--hosts", "a=::1", "--remote-command", &mute.0], &["well"]).end();
    ended.expect(125).says("did not end within 3 s");
}

/// Runs `ip` with these arguments, and returns whether it succeeded.
fn ip(words: &str) -> bool {
    let output = Command::new("ip").args(words.split(' ')).output();
    output.is_ok_and(|output| output.status.success())
}

/// Two network namespaces with a link between them. They are removed on drop.
struct Namespaces {
    names: [String; 2],
    /// The end of the link that is in the first namespace.
    link: String,
}

impl Namespaces {
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}x{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let names = ["a", "b"].map(|side| format!("fencepost-{side}-{id}"));
        let made = Self { names, link: format!("fp{id}a") };
        let Self { names: [a, b], link: left } = &made;
        let right = format!("fp{id}b");
        let steps = [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("link add {left} netns {a} type veth peer name {right} netns {b}"),
            format!("-n {a} addr add 10.213.7.1/24 dev {left}"),
            format!("-n {b} addr add 10.213.7.2/24 dev {right}"),
            format!("-n {a} link set {left} up"),
            format!("-n {b} link set {right} up"),
            format!("-n {a} link set lo up"),
            format!("-n {b} link set lo up"),
        ];
        steps.iter().all(|step| ip(step)).then_some(made)
    }

    /// The options that start two ranks in each namespace.
    fn options(&self) -> [String; 4] {
        let [a, b] = &self.names;
        let hosts = format!("{a}=10.213.7.1:2,{b}=10.213.7.2:2");
        ["--hosts".into(), hosts, "--remote-command".into(), "ip netns exec {host}".into()]
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

pub fn namespaces() {
    let Some(namespaces) = Namespaces::new() else {
        println!("  skipped: this machine allows no network namespaces; hosts were loopback addresses");
        return;
    };
    let Namespaces { names: [a, b], link } = &namespaces;
    println!("  hosts are network namespaces");
    let options = namespaces.options();
    let options = options.each_ref().map(String::as_str);
    let ended = run(&options, &["well"]).end();
    assert_eq!(ended.expect(0).out.lines().count(), 8);
    let ended = run(&options, &["code", "2", "9"]).end();
    ended.expect(9).says(&format!("rank 2 on host {b} exited with code 9"));
    // The link goes down: no process ends, and all ranks get an error within the limit.
    let quick = [("FENCEPOST_HEARTBEAT", "100ms"), ("FENCEPOST_SILENCE", "1s"), ("FENCEPOST_GRACE", "5s")];
    let mut job = run_with(&options, &["spin"], &quick);
    job.lines(4, "spins");
    assert!(ip(&format!("-n {a} link set {link} down")), "the cable");
    let ended = job.end();
    assert_ne!(ended.code, Some(0), "{ended:#?}");
    let errors: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("error")).collect();
    assert_eq!(errors.len(), 4, "{ended:#?}");
    // The limit is the sum of `FENCEPOST_SILENCE` and one heartbeat.
    assert!(errors.iter().any(|line| line.contains("nothing was heard from it for 1.1s")), "{ended:#?}");
}
