//! GOAL files. A second simulator, which has only the text and a queue of events, ends each run at
//! the same time as the simulation.

use crate::compiled::{options, patterns};
use crate::simulated::{halo, machines, one_way};
use fencepost_planner::ir::schedule::{Placement, Schedule};
use fencepost_planner::simulate::{Run, goal, simulate};
use fencepost_planner::{ErrorClass, Machine, Options, compile};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// What an operation does.
#[derive(Clone, Copy)]
enum Does {
    Calc(u64),
    Send { to: usize, size: u64, tag: u64, nic: u64 },
    Recv { from: usize, tag: u64 },
}

/// An operation of a rank.
struct Operation {
    does: Does,
    /// The number of operations that this operation still waits for.
    awaits: usize,
    /// The operations that require this operation, and whether the start of this operation is
    /// enough.
    followers: Vec<(usize, bool)>,
    /// The earliest time at which this operation may start.
    ready: u64,
}

/// A file: the operations of each rank, and the latency for each value of a tag modulo 3.
struct File {
    ranks: Vec<Vec<Operation>>,
    latency: [u64; 3],
}

/// Reads a file as LogGOPSim's `txt2bin` does. Labels have to be defined before they are required.
fn read(text: &str) -> File {
    let (mut ranks, mut latency) = (Vec::new(), [0; 3]);
    let mut labels: HashMap<&str, usize> = HashMap::new();
    let number = |word: &str| word.parse::<u64>().unwrap();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("// ") {
            if let Some((_, all)) = comment.strip_prefix("Latencies ").and_then(|line| line.split_once(": "))
            {
                let all: Vec<u64> = all.split(' ').map(number).collect();
                latency = all.try_into().unwrap();
            }
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["num_ranks", count] = words[..] {
            assert!(ranks.is_empty());
            ranks.reserve(number(count) as usize);
            continue;
        }
        if let ["rank", rank, "{"] = words[..] {
            assert_eq!(number(rank) as usize, ranks.len());
            ranks.push(Vec::<Operation>::new());
            labels.clear();
            continue;
        }
        let Some(operations) = ranks.last_mut() else { panic!("{line}") };
        let does = match words[1..] {
            [] if words[0] == "}" => continue,
            [how @ ("requires" | "irequires"), before] => {
                let (after, before) = (labels[words[0]], labels[before]);
                operations[before].followers.push((after, how == "irequires"));
                operations[after].awaits += 1;
                continue;
            }
            ["calc", time] => Does::Calc(number(time)),
            ["send", size, "to", to, "tag", tag, ref nic @ ..] => {
                let nic = if let ["nic", nic] = nic { number(nic) } else { 0 };
                let size = number(size.strip_suffix('b').unwrap());
                Does::Send { to: number(to) as usize, size, tag: number(tag), nic }
            }
            ["recv", _, "from", from, "tag", tag, ..] => {
                Does::Recv { from: number(from) as usize, tag: number(tag) }
            }
            _ => panic!("{line}"),
        };
        labels.insert(words[0].strip_suffix(':').unwrap(), operations.len());
        operations.push(Operation { does, awaits: 0, followers: Vec::new(), ready: 0 });
    }
    File { ranks, latency }
}

/// Follows a file by the LogGP model. Overheads are 0, and each byte after the first takes 1 ns.
/// Returns the end of the last operation that takes time on a rank's clock.
fn follow(File { mut ranks, latency }: File) -> u64 {
    // An entry holds the time, the rank and the operation. Operations of one rank that start
    // together are in the order of the file.
    let mut queue = BinaryHeap::new();
    for (rank, operations) in ranks.iter().enumerate() {
        let free = operations.iter().enumerate().filter(|(_, operation)| operation.awaits == 0);
        queue.extend(free.map(|(at, _)| Reverse((0, rank, at))));
    }
    // The arrivals without a receive, and the receives without a message. Both are listed by
    // sender, receiver and tag.
    let mut arrived: HashMap<(usize, usize, u64), VecDeque<u64>> = HashMap::new();
    let mut posted: HashMap<(usize, usize, u64), VecDeque<(usize, u64)>> = HashMap::new();
    let (mut busy, mut processors) = (HashMap::new(), vec![0; ranks.len()]);
    let (mut end, mut left) = (0, ranks.iter().map(Vec::len).sum::<usize>());
    while let Some(Reverse((now, rank, at))) = queue.pop() {
        let (mut has_started, mut ended) = (true, Vec::new());
        match ranks[rank][at].does {
            Does::Calc(_) if processors[rank] > now => {
                queue.push(Reverse((processors[rank], rank, at)));
                has_started = false;
            }
            Does::Calc(time) => {
                processors[rank] = now + time;
                ended.push((rank, at, now + time));
            }
            Does::Send { to, size, tag, nic } => {
                let free: &mut u64 = busy.entry((rank, nic)).or_default();
                *free = now.max(*free) + (size - 1);
                let arrival = *free + latency[(tag % 3) as usize];
                ended.push((rank, at, now));
                match posted.get_mut(&(rank, to, tag)).and_then(VecDeque::pop_front) {
                    Some((receive, since)) => ended.push((to, receive, arrival.max(since))),
                    None => arrived.entry((rank, to, tag)).or_default().push_back(arrival),
                }
            }
            Does::Recv { from, tag } => {
                match arrived.get_mut(&(from, rank, tag)).and_then(VecDeque::pop_front) {
                    Some(arrival) => ended.push((rank, at, now.max(arrival))),
                    None => posted.entry((from, rank, tag)).or_default().push_back((at, now)),
                }
            }
        }
        if has_started {
            finish(&mut ranks, &mut queue, (rank, at, now), true);
        }
        for (rank, at, time) in ended {
            finish(&mut ranks, &mut queue, (rank, at, time), false);
            if !matches!(ranks[rank][at].does, Does::Send { .. }) {
                end = end.max(time);
            }
            left -= 1;
        }
    }
    assert_eq!(left, 0, "operations that never start, or receives without a message");
    assert!(arrived.values().all(VecDeque::is_empty), "messages that nobody receives");
    end
}

/// If `is_start`, releases the operations that wait for the start of operation `at`, and otherwise
/// those that wait for its end. Queues each released operation that waits for nothing else.
fn finish(
    ranks: &mut [Vec<Operation>],
    queue: &mut BinaryHeap<Reverse<(u64, usize, usize)>>,
    (rank, at, time): (usize, usize, u64),
    is_start: bool,
) {
    for (follower, needs_start) in ranks[rank][at].followers.clone() {
        if needs_start == is_start {
            let operation = &mut ranks[rank][follower];
            (operation.awaits, operation.ready) = (operation.awaits - 1, operation.ready.max(time));
            if operation.awaits == 0 {
                queue.push(Reverse((operation.ready, rank, follower)));
            }
        }
    }
}

fn written(schedules: &[&Schedule], machine: &Machine, run: &Run<'_>) -> String {
    let mut text = Vec::new();
    goal(schedules, machine, run, "a test\nof goal", &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Compares a simulated run with the run of its file, and returns the text of the file.
fn compare(schedules: &[&Schedule], machine: &Machine, run: &Run<'_>) -> String {
    let text = written(schedules, machine, run);
    assert_eq!(follow(read(&text)), simulate(schedules, machine, run).unwrap().end, "{text}");
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_ends_when_the_simulation_does(
        patterns in patterns(),
        (placement, options) in options(),
        machine in machines(),
        works in prop::collection::vec(0..2000_u64, 1..5),
        noise in prop::sample::select(vec![0.0, 0.3]),
        steps in 1..7_u64,
        epochs in 1..3_usize,
    ) {
        let options = Options { cap: None, ..options };
        let schedule = compile(&patterns, placement, &machine, &options).unwrap();
        let work = |rank: u32| works[rank as usize % works.len()];
        let run = Run { steps, work: &work, noise, seed: 5 };
        compare(&vec![schedule.get(); epochs], &machine, &run);
    }

    #[test]
    fn releases_are_messages_that_leave_while_the_link_is_busy(
        latency in 1.0..20_000.0_f64,
        per_byte in 1.0..60.0_f64,
        works in prop::collection::vec(0..20_000_u64, 5),
        placement in prop::sample::select(vec![Placement::Together, Placement::Hosts { ranks_each: 3 }]),
        ranks in 2..6_u32,
    ) {
        let mut machine = Machine::default();
        // A release goes to the previous rank, which may be far away. A frame to the next rank
        // takes long.
        (machine.shared.per_byte, machine.network.per_byte) = (per_byte, 0.05 * per_byte);
        (machine.shared.latency, machine.network.latency) = (100.0, latency.round());
        let ring = compile(&one_way(ranks), placement, &machine, &Options::default()).unwrap();
        let run = Run { steps: 9, work: &|rank| works[rank as usize], noise: 0.0, seed: 0 };
        let text = compare(&[ring.get()], &machine, &run);
        assert!(ranks == 2 || text.contains(" nic 1\n"), "{text}");
    }
}

#[test]
fn a_file_has_the_form_of_its_readers() {
    let schedule = halo([2], Placement::Apart);
    let run = Run { steps: 1, work: &|_| 500, noise: 0.0, seed: 0 };
    let text = compare(&[schedule.get()], &Machine::default(), &run);
    let expected = include_str!("../golden/goal.txt");
    if std::env::var_os("FENCEPOST_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/goal.txt");
        return std::fs::write(path, text).unwrap();
    }
    assert_eq!(text, expected);
    // Frames that are sent at the same time are ordered by `irequires`.
    let (plane, mut machine) = (halo([2, 2], Placement::Apart), Machine::default());
    (machine.network.overhead, machine.network.further) = (0.0, 0.0);
    (machine.moving.per_run, machine.moving.pack) = (0.0, 0.0);
    let still = Run { steps: 1, work: &|_| 0, noise: 0.0, seed: 0 };
    assert!(compare(&[plane.get()], &machine, &still).contains(" irequires "));
    // A run without anything to do has an operation on each rank.
    let none = Run { steps: 0, work: &|_| 0, noise: 0.0, seed: 0 };
    assert_eq!(compare(&[schedule.get()], &Machine::default(), &none).matches(": calc 0\n").count(), 2);
}

#[test]
fn what_cannot_be_written_is_refused() {
    let schedule = halo([2], Placement::Apart);
    let run = |steps| Run { steps, work: &|_| 0, noise: 0.0, seed: 0 };
    let error =
        goal(&[&schedule], &Machine::default(), &run(1 << 40), "long", &mut std::io::sink()).unwrap_err();
    assert!(error.message().contains("at most 16777216 are written"), "{error}");
    let error = goal(&[&schedule], &Machine::default(), &run(1), "full", &mut &mut [0; 90][..]).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Io);
    let mut slow = Machine::default();
    slow.network.latency = -1.0;
    let error = goal(&[&schedule], &slow, &run(1), "slow", &mut std::io::sink()).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Arg);
}
