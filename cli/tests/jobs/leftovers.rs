//! After consecutive jobs, some of them killed, no process, descriptor, socket or file of shared
//! memory is left.

use crate::launched::{await_end, options, process, run};
use rustix::process::{Signal, pidfd_send_signal};
use std::collections::BTreeSet;

/// Resources that could outlive the processes: files of shared memory, and descriptors of this
/// process.
#[derive(PartialEq, Eq, Debug)]
struct Kept {
    shared: BTreeSet<String>,
    descriptors: usize,
}

fn kept() -> Kept {
    let names = |folder: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    };
    Kept { shared: names("/dev/shm"), descriptors: names("/proc/self/fd").len() }
}

/// The number of listening sockets, from the system's tables.
fn listening() -> usize {
    let table = |name: &str| std::fs::read_to_string(name).unwrap_or_default();
    let listens = |line: &&str| line.split_whitespace().nth(3) == Some("0A");
    ["/proc/net/tcp", "/proc/net/tcp6"].map(|name| table(name).lines().filter(listens).count()).iter().sum()
}

pub fn jobs() {
    let (count, every) = if crate::full() { (250, 5) } else { (8, 2) };
    let (before, listened) = (kept(), listening());
    for number in 0..count {
        let (transport, ranks) = [("shm", 3), ("tcp", 3), ("mixed", 4)][number % 3];
        let options = options(transport, "3");
        if number % every != every - 1 {
            run(&options, &["well"]).end().expect(0);
            continue;
        }
        let mut job = run(&options, &["spin"]);
        let ranks = job.lines(ranks, "spins");
        let pid = |line: &String| process(line.split(' ').nth(1).expect("its number"));
        let processes: Vec<_> = ranks.iter().map(pid).collect();
        match number / every % 3 {
            0 => pidfd_send_signal(&processes[1], Signal::KILL).expect("it is there"),
            1 => job.kill(Signal::KILL),
            _ => job.kill_group(Signal::KILL),
        }
        processes.iter().for_each(await_end);
        let ended = job.end();
        assert!(ended.code == Some(137) || ended.signal == Some(9), "{ended:#?}");
    }
    assert_eq!(kept(), before);
    // Other programs may open and close listening sockets meanwhile, so the count is only printed.
    println!("  {count} jobs; listening sockets before {listened}, after {}", listening());
}
