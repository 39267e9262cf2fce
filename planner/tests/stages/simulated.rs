//! The results of the simulator are equal, to the nanosecond, to those of a simulator that has a
//! queue of events, follows the instructions themselves, and lets ranks be in different steps.

use crate::compiled::{options, patterns};
use fencepost_planner::collect;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::explain::{machine_of, moving};
use fencepost_planner::grid::Block;
use fencepost_planner::ids::{BufferId, Delta, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Site};
use fencepost_planner::ir::schedule::{Frame, Instruction, Placement, Program, Schedule};
use fencepost_planner::machine::{Link, Machine};
use fencepost_planner::simulate::{Path, Run, Simulation, simulate, traced};
use fencepost_planner::trace::{Trace, What};
use fencepost_planner::{Options, Verified, compile};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// A rank of the reference.
#[derive(Default)]
struct Follower {
    now: u64,
    free: u64,
    step: u64,
    epoch: usize,
    at: usize,
    began: bool,
    waits: u64,
    /// The frames that have not been taken, by sender: when each frame arrives, and the buffer, the
    /// epoch and the step from which the frame was sent.
    inbox: HashMap<u32, VecDeque<(u64, Option<Of>)>>,
    /// The frame that came last from each rank.
    open: HashMap<u32, Of>,
    /// The last series of sent frames and the last series of awaited frames, in this epoch.
    last: [Series; 2],
    /// For each buffer, epoch and step: the number of frames that were sent and not released, and
    /// the time of the last release.
    lent: HashMap<Of, (u32, u64)>,
}

/// Successive frames of one rank: the rank, the number of frames, and the bytes of the frames in
/// the last packet.
type Series = Option<(Delta, u32, u64)>;

/// A buffer, in an epoch of a step.
type Of = (BufferId, usize, u64);

/// Follows all ranks by a queue of events, and returns when each rank ends, and how long it has
/// waited.
fn by_events(
    schedules: &[&Schedule],
    machine: &Machine,
    steps: u64,
    work: impl Fn(u32) -> u64,
) -> Vec<(u64, u64)> {
    let ranks = schedules[0].class_of.len() as u32;
    let whole = |time: f64| time.round() as u64;
    let link = |rank: u32, peer: Delta| -> &Link {
        let other = (i64::from(rank) + peer.0) as u32;
        if schedules[0].placement.share(rank, other) { &machine.shared } else { &machine.network }
    };
    let mut all: Vec<Follower> = (0..ranks).map(|_| Follower::default()).collect();
    let mut queue: BinaryHeap<Reverse<(u64, u32)>> = (0..ranks).map(|rank| Reverse((0, rank))).collect();
    while let Some(Reverse((_, rank))) = queue.pop() {
        let mut follower = std::mem::take(&mut all[rank as usize]);
        let mut goes_on = false;
        if follower.step < steps {
            if !std::mem::replace(&mut follower.began, true) {
                follower.now += work(rank);
            }
            let schedule = schedules[follower.epoch];
            let program = &schedule.classes[schedule.class_of[rank as usize]];
            goes_on = true;
            match program.instructions.get(follower.at) {
                None => {
                    follower.last = [None; 2];
                    (follower.at, follower.epoch) = (0, follower.epoch + 1);
                    if follower.epoch == schedules.len() {
                        (follower.epoch, follower.step, follower.began) = (0, follower.step + 1, false);
                    }
                }
                Some(instruction) => {
                    let mut is_done = true;
                    match instruction {
                        Instruction::Expose { peer } | Instruction::Done { peer } => {
                            follower.now +=
                                whole(overhead(&mut follower.last[0], link(rank, *peer), (*peer, 0)));
                            send(
                                &mut follower,
                                &mut all,
                                (rank, *peer),
                                link(rank, *peer),
                                (0, None),
                                &mut queue,
                            );
                        }
                        Instruction::Send { buffer, bytes, .. } => {
                            let peer = program.buffers[*buffer].peer;
                            let of = (*buffer, follower.epoch, follower.step);
                            follower.lent.entry(of).or_default().0 += 1;
                            follower.now +=
                                whole(overhead(&mut follower.last[0], link(rank, peer), (peer, *bytes)));
                            send(
                                &mut follower,
                                &mut all,
                                (rank, peer),
                                link(rank, peer),
                                (*bytes, Some(of)),
                                &mut queue,
                            );
                        }
                        Instruction::Await { peer, frame } => {
                            let other = (i64::from(rank) + peer.0) as u32;
                            match follower.inbox.entry(other).or_default().pop_front() {
                                None => is_done = false,
                                Some((arrival, of)) => {
                                    follower.waits += arrival.saturating_sub(follower.now);
                                    let bytes = if let Frame::Data { bytes } = frame { *bytes } else { 0 };
                                    let last = &mut follower.last[1];
                                    follower.now = follower.now.max(arrival)
                                        + whole(overhead(last, link(rank, *peer), (*peer, bytes)));
                                    if let (Frame::Data { bytes }, Some(of)) = (frame, of) {
                                        if *bytes > 24 {
                                            follower.now += whole(link(rank, *peer).payload);
                                        }
                                        follower.open.insert(other, of);
                                    }
                                }
                            }
                        }
                        Instruction::Release { peer } => {
                            let other = (i64::from(rank) + peer.0) as u32;
                            let of = follower.open[&other];
                            let time = follower.now + whole(link(rank, *peer).latency);
                            let sender = if other == rank { &mut follower } else { &mut all[other as usize] };
                            let (left, last) = sender.lent.get_mut(&of).expect("it was sent");
                            (*left, *last) = (*left - 1, time.max(*last));
                            queue.push(Reverse((time, other)));
                        }
                        Instruction::Reclaim { buffer } => {
                            let copies = u64::from(program.buffers[*buffer].copies);
                            if let Some(step) = follower.step.checked_sub(copies) {
                                let (left, last) = follower
                                    .lent
                                    .get(&(*buffer, follower.epoch, step))
                                    .copied()
                                    .unwrap_or((0, 0));
                                is_done = left == 0;
                                if is_done {
                                    follower.now = follower.now.max(last);
                                }
                            }
                        }
                        other => follower.now += whole(moving(other, &machine_of(program, machine)).0),
                    }
                    goes_on = is_done;
                    follower.at += usize::from(is_done);
                }
            }
        }
        if goes_on {
            queue.push(Reverse((follower.now, rank)));
        }
        all[rank as usize] = follower;
    }
    assert!(all.iter().all(|follower| follower.step == steps), "a rank has not ended");
    all.iter().map(|follower| (follower.now, follower.waits)).collect()
}

/// Returns the overhead of a frame between this rank and `peer`, and records the frame as the last
/// one.
fn overhead(last: &mut Series, link: &Link, (peer, payload): (Delta, u64)) -> f64 {
    let is_long = payload > 8 * 1024;
    let alone = if is_long { 32 * 1024 } else { payload + 48 };
    let (series, overhead) = match *last {
        Some((before, frames, bytes)) if before == peer => {
            let (frames, bytes) = (frames + 1, bytes + payload + 48);
            if bytes > 32 * 1024 || is_long {
                ((peer, frames, alone), link.overhead)
            } else {
                ((peer, frames, bytes), if frames == 8 { link.overhead } else { link.further })
            }
        }
        _ => ((peer, 1, alone), link.overhead),
    };
    *last = Some(series);
    overhead
}

fn send(
    follower: &mut Follower,
    all: &mut [Follower],
    (rank, peer): (u32, Delta),
    link: &Link,
    (bytes, of): (u64, Option<Of>),
    queue: &mut BinaryHeap<Reverse<(u64, u32)>>,
) {
    follower.free = follower.free.max(follower.now) + (link.per_byte * bytes as f64).round() as u64;
    let arrival = follower.free + if peer == Delta::SELF { 0 } else { link.latency.round() as u64 };
    let other = (i64::from(rank) + peer.0) as u32;
    let receiver = if other == rank { follower } else { &mut all[other as usize] };
    receiver.inbox.entry(rank).or_default().push_back((arrival, of));
    queue.push(Reverse((arrival, other)));
}

fn total(path: &Path) -> u64 {
    let sum = |both: [u64; 2]| both[0] + both[1];
    path.work + path.moving + sum(path.overhead) + sum(path.wire) + sum(path.latency)
}

/// Compares the simulation of a schedule, as one epoch or as two, with the reference.
fn compare(schedules: &[&Schedule], machine: &Machine, steps: u64, works: &[u64]) -> Simulation {
    let work = |rank: u32| works[rank as usize % works.len()];
    let run = Run { steps, work: &work, noise: 0.0, seed: 0 };
    let simulated = simulate(schedules, machine, &run).unwrap();
    let expected = by_events(schedules, machine, steps, work);
    let end = expected.iter().map(|(end, _)| *end).max().unwrap();
    assert_eq!(simulated.end, end);
    assert_eq!(expected[simulated.last as usize].0, end);
    if simulated.followed == steps {
        let waits: Vec<u64> = simulated.waits.iter().map(|waits| waits.total).collect();
        assert_eq!(waits, expected.iter().map(|(_, waits)| *waits).collect::<Vec<_>>());
        assert!(steps > 64 || total(&simulated.path) == end, "{:?} of {end}", simulated.path);
    }
    // With any other latency, the time of this path is a lower bound for the end.
    for change in [-1.0, 1.0].into_iter().filter(|_| simulated.followed == steps) {
        let mut other = *machine;
        (other.shared.latency, other.network.latency) =
            (machine.shared.latency + change, machine.network.latency + change);
        let then = simulate(schedules, &other, &run).unwrap().end as i64;
        let count = (simulated.path.latencies[0] + simulated.path.latencies[1]) as i64;
        assert!(then >= end as i64 + change as i64 * count, "{then} for {end}, {:?}", simulated.path);
    }
    simulated
}

pub fn machines() -> impl Strategy<Value = Machine> {
    let link = || (1.0..300.0_f64, 1.0..100.0_f64, 0.0..100.0_f64, 0.0..50.0_f64, 0.0..3.0_f64);
    (link(), link()).prop_map(|(near, far)| {
        let link = |(latency, overhead, further, payload, per_byte): (f64, f64, f64, f64, f64)| Link {
            further,
            latency: latency.round(),
            overhead,
            payload,
            per_byte,
        };
        Machine { shared: link(near), network: link(far), ..Machine::default() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_simulation_is_equal_to_one_with_a_queue_of_events(
        patterns in patterns(),
        (placement, options) in options(),
        machine in machines(),
        works in prop::collection::vec(0..2000_u64, 1..5),
        steps in 1..7_u64,
        epochs in 1..3_usize,
    ) {
        let options = Options { cap: None, ..options };
        let schedule = compile(&patterns, placement, &machine, &options).unwrap();
        compare(&vec![schedule.get(); epochs], &machine, steps, &works);
    }
}

/// Compiles the halo of blocks of 16 cells a side.
pub fn halo<const D: usize>(grid: [usize; D], placement: Placement) -> Verified<Schedule> {
    let window = WindowId(0);
    let ranks = grid.iter().product::<usize>() as u32;
    let block =
        |rank: u32| Block::at(rank as usize, ranks as usize, grid.map(|side| 16 * side))?.grid(grid)?.halo(1);
    let pattern = |rank: u32, block: &Block<D>| {
        let put = |n: fencepost_planner::grid::Neighbour<D>| Operation {
            kind: Kind::Put,
            window,
            target: Some(Delta::between(Rank(rank), Rank(n.rank as u32))),
            remote: block.halo_of(&n),
            local: Local::Section { window, datatype: block.inner_edge(&n) },
            mode: Mode::Auto,
            site: Site::default(),
        };
        Ok((Pattern { operations: block.neighbours().map(put).collect() }, false))
    };
    let windows = [ElementType::scalar(Scalar::F64)].into_iter().collect();
    let patterns = collect::patterns("halo", windows, ranks, block, pattern).unwrap();
    compile(&patterns, placement, &Machine::default(), &Options::default()).unwrap()
}

#[test]
fn steps_are_multiplied_once_all_ranks_advance_by_the_same_time() {
    for (placement, works) in [
        (Placement::Together, vec![500]),
        (Placement::Apart, vec![500, 900, 100]),
        (Placement::Hosts { ranks_each: 3 }, vec![0, 40_000, 3, 7]),
    ] {
        let schedule = halo([4, 3], placement);
        let simulated = compare(&[schedule.get()], &Machine::default(), 500, &works);
        assert!(simulated.followed < 40, "{} steps were followed", simulated.followed);
    }
}

#[test]
fn a_slow_rank_is_what_its_neighbours_wait_for() {
    let schedule = halo([3, 3], Placement::Apart);
    let slow = |rank: u32| if rank == 4 { 1_000_000 } else { 0 };
    let run = Run { steps: 3, work: &slow, noise: 0.0, seed: 0 };
    let simulated = simulate(&[schedule.get()], &Machine::default(), &run).unwrap();
    assert!(simulated.end > 3_000_000);
    for (rank, waits) in simulated.waits.iter().enumerate().filter(|(rank, _)| *rank != 4) {
        assert_eq!(waits.awaited, 4, "rank {rank}");
        assert!(waits.longest > 900_000);
    }
    assert_eq!(simulated.path.work, 3_000_000);
}

#[test]
fn noise_depends_on_its_seed_alone() {
    let schedule = halo([3, 2], Placement::Together);
    let end = |noise, seed| {
        let run = Run { steps: 20, work: &|_| 10_000, noise, seed };
        simulate(&[schedule.get()], &Machine::default(), &run).unwrap().end
    };
    assert_eq!(end(0.1, 7), end(0.1, 7));
    assert_ne!(end(0.1, 7), end(0.1, 8));
    assert!(end(0.0, 7) < end(0.1, 7) && end(0.1, 7) < end(0.0, 7) + 20 * 1_000);
    let nothing = Run { steps: 0, work: &|_| 1, noise: 0.0, seed: 0 };
    assert_eq!(simulate(&[schedule.get()], &Machine::default(), &nothing).unwrap().end, 0);
}

#[test]
fn a_ring_of_direct_copies_becomes_steady() {
    let schedule = halo([8], Placement::Hosts { ranks_each: 4 });
    let direct = Options { mode: Mode::Direct, ..Options::default() };
    let ring = one_way(8);
    for options in [Options::default(), direct] {
        let ring = compile(&ring, Placement::Hosts { ranks_each: 4 }, &Machine::default(), &options).unwrap();
        let simulated = compare(&[ring.get()], &Machine::default(), 300, &[500]);
        assert!(simulated.followed < 100, "{} steps were followed", simulated.followed);
    }
    compare(&[schedule.get()], &Machine::default(), 300, &[500]);
}

/// Returns patterns in which each rank puts to the next one and nothing flows back.
pub fn one_way(ranks: u32) -> fencepost_planner::ir::pattern::Patterns {
    let window = WindowId(0);
    struct Nothing;
    impl fencepost_planner::argument::Argument for Nothing {}
    let pattern = |rank: u32, _: &Nothing| {
        let put = |first: usize| Operation {
            kind: Kind::Put,
            window,
            target: Some(Delta::between(Rank(rank), Rank((rank + 1) % ranks))),
            remote: Datatype::run(100 + first..100 + first + 40),
            local: Local::Section { window, datatype: Datatype::run(first..first + 40) },
            mode: Mode::Auto,
            site: Site::default(),
        };
        Ok((Pattern { operations: [put(0), put(50)].into_iter().collect() }, true))
    };
    let windows = [ElementType::scalar(Scalar::F64)].into_iter().collect();
    collect::patterns("one way", windows, ranks, |_| Ok(Nothing), pattern).unwrap()
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let schedule = halo([2, 2], Placement::Together);
    let error = |machine: &Machine, steps, work: u64| {
        let run = Run { steps, work: &|_| work, noise: 0.0, seed: 0 };
        simulate(&[schedule.get()], machine, &run).unwrap_err().to_string()
    };
    let mut slow = Machine::default();
    slow.shared.latency = 1e300;
    assert!(error(&slow, 1, 0).contains("at most a second"));
    assert!(error(&Machine::default(), u64::MAX, 1_000).contains("36 years"));
    assert!(error(&Machine::default(), 1, u64::MAX).contains("36 years"));
}

/// A trace of a simulation has the frames of the schedule. Each frame is received after it was
/// sent, and the trace ends when the simulation does.
#[test]
fn what_is_traced_is_what_is_simulated() {
    let schedule = halo([3, 2], Placement::Hosts { ranks_each: 2 });
    let work = |rank: u32| 1000 + 100 * u64::from(rank);
    let run = Run { steps: 7, work: &work, noise: 0.1, seed: 3 };
    let machine = Machine::default();
    let (simulation, traces) = traced(&[&schedule], &machine, &run, &["exchange".into()]).unwrap();
    assert_eq!(simulate(&[&schedule], &machine, &run).unwrap(), simulation);
    let mut sent = HashMap::new();
    for trace in &traces {
        assert_eq!(&trace.to_string().parse::<Trace>().unwrap(), trace);
        let ends = trace.events.iter().map(|event| match event.what {
            What::Call { took, .. } | What::Wait { took, .. } => event.at + took,
            _ => event.at,
        });
        assert!(ends.max() <= Some(simulation.end));
        let mut waits = 0;
        for event in &trace.events {
            match event.what {
                What::Sent { to, frame, .. } => {
                    assert!(sent.insert((trace.rank, to, frame), event.at).is_none())
                }
                What::Wait { took, .. } => waits += took,
                _ => {}
            }
        }
        assert_eq!(waits, simulation.waits[trace.rank as usize].total);
    }
    let frames: usize = schedule.class_of.iter().map(|class| awaited(&schedule.classes[*class])).sum();
    assert_eq!(sent.len(), 7 * frames);
    for trace in &traces {
        for event in &trace.events {
            if let What::Received { from, frame } = event.what {
                let began = sent.remove(&(from, trace.rank, frame)).expect("it was sent");
                assert!(began < event.at, "{event:?}");
            }
        }
    }
    assert!(sent.is_empty(), "each frame is received");
    let many = Run { steps: 1 << 40, ..run };
    let error = traced(&[&schedule], &machine, &many, &["exchange".into()]).unwrap_err();
    assert!(error.message().contains("at most 16777216 are traced"), "{error}");
}

/// Returns the number of frames that a program awaits.
fn awaited(program: &Program) -> usize {
    program.instructions.iter().filter(|instruction| matches!(instruction, Instruction::Await { .. })).count()
}
