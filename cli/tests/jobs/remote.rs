//! Jobs on several hosts: other loopback addresses, and network namespaces where this machine allows them.

use crate::launched::{await_end, process, run, run_with};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

/// Two hosts that are this machine, behind a remote command that only runs what it is given.
const HOSTS: [&str; 4] =
    ["--hosts", "a=127.0.0.2:2,b=127.0.0.3:2", "--remote-command", "env FENCEPOST_TEST_HOST={host}"];

pub fn hosts() {
    let options = [&HOSTS[..], &["--tag-output", "-v", "--env", "SOME=thing"]].concat();
    let ended = run(&options, &["well"]).end();
    let mut lines: Vec<&str> = ended.expect(0).out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 8, "{ended:#?}");
    assert_eq!(lines[7], "[3] before me 2");
    ended.says("ranks 2..4 on b").says("rank 3 on host b exited with code 0");
    let ended = run(&HOSTS, &["code", "3", "9"]).end();
    ended.expect(9).says("rank 3 on host b exited with code 9");
    let ended = run_with(&HOSTS, &["die", "2", "7", "kill"], &[]).end();
    ended.expect(137).says("rank 2 on host b was killed by signal 9");
}

pub fn lost() {
    let mut job = run(&HOSTS, &["spin"]);
    let ranks = job.lines(4, "spins");
    let words: Vec<Vec<&str>> = ranks.iter().map(|line| line.split(' ').collect()).collect();
    let theirs: Vec<_> = words[2..].iter().map(|words| process(words[1])).collect();
    assert_eq!(words[2][2], words[3][2], "ranks 2 and 3 have one parent: their host");
    let host = process(words[2][2]);
    rustix::process::pidfd_send_signal(&host, rustix::process::Signal::KILL).expect("it is there");
    theirs.iter().for_each(await_end);
    let ended = job.end();
    ended.expect(125).says("on host b was lost with its host");
    let told =
        ended.out.lines().filter(|line| line.starts_with("error") && line.contains("lost with its host"));
    assert_eq!(told.count(), 2, "{ended:#?}");
}

/// Much more than is kept on the way.
pub fn floods() {
    let options = [&HOSTS[..], &["--tag-output"]].concat();
    let ended = run(&options, &["flood", "4000000", "well"]).end();
    assert_eq!(ended.expect(0).out.len(), 4 * (4_000_000 / 1024) * 1028);
}

/// A script that is a remote command, gone when this is dropped.
struct Script(String);

impl Script {
    fn new(name: &str, text: &str) -> Self {
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

pub fn deaf() {
    // It never says a word, and does not go when it is asked to.
    let silent = Script::new("silent", "trap '' TERM; while :; do sleep 60; done");
    let options = ["--hosts", "a=::1", "--remote-command", &silent.0, "--timeout", "500ms"];
    let ended = run_with(&options, &["well"], &[("FENCEPOST_GRACE", "100ms")]).end();
    ended.expect(124).says("longer than its time");
    // It says that it has nothing to say, and stays.
    let mute = Script::new("mute", "trap '' TERM; exec >&-; while :; do sleep 60; done");
    let ended = run(&["--hosts", "a=::1", "--remote-command", &mute.0], &["well"]).end();
    ended.expect(125).says("did not end when it was to");
}

/// Runs a command of the system's; whether that went well.
fn ip(words: &str) -> bool {
    let output = Command::new("ip").args(words.split(' ')).output();
    output.is_ok_and(|output| output.status.success())
}

/// Two namespaces with a link between them, gone when this is dropped.
struct Namespaces([String; 2]);

impl Namespaces {
    fn new() -> Option<Self> {
        let id = std::process::id();
        let names = ["a", "b"].map(|side| format!("fencepost-{side}-{id}"));
        let made = Self(names);
        let [a, b] = &made.0;
        let (left, right) = (format!("fp{id}a"), format!("fp{id}b"));
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
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&format!("netns del {name}"));
        }
    }
}

pub fn namespaces() {
    let Some(namespaces) = Namespaces::new() else {
        println!("  left out: this machine makes no network namespaces; hosts were loopback addresses");
        return;
    };
    let [a, b] = &namespaces.0;
    println!("  hosts are network namespaces");
    let hosts = format!("{a}=10.213.7.1:2,{b}=10.213.7.2:2");
    let options = ["--hosts", &hosts, "--remote-command", "ip netns exec {host}"];
    let ended = run(&options, &["well"]).end();
    assert_eq!(ended.expect(0).out.lines().count(), 8);
    let ended = run(&options, &["code", "2", "9"]).end();
    ended.expect(9).says(&format!("rank 2 on host {b} exited with code 9"));
    // The cable is pulled: nothing ends, and everybody is told within the limit.
    let quick = [("FENCEPOST_HEARTBEAT", "100ms"), ("FENCEPOST_SILENCE", "1s"), ("FENCEPOST_GRACE", "5s")];
    let mut job = run_with(&options, &["spin"], &quick);
    job.lines(4, "spins");
    assert!(ip(&format!("-n {a} link set fp{}a down", std::process::id())), "the cable");
    let ended = job.end();
    assert_ne!(ended.code, Some(0), "{ended:#?}");
    let told = ended.out.lines().filter(|line| line.starts_with("error")).count();
    assert_eq!(told, 4, "{ended:#?}");
}
