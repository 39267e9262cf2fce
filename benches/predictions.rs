//! How good are predictions after a probe of ten seconds, for workloads, modes and sizes that the
//! probe did not time? Prints the rows, worst first.
//!
//! Words on the command line name the transports (`local`, `shm`, `tcp`);
//! `FENCEPOST_BENCH_PROBE=SECONDS` sets how long each transport is probed;
//! `FENCEPOST_BENCH_TIME=SECONDS` sets how long each plan is measured.

#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use fencepost::prelude::*;
use fencepost::{Compiled, Machine, TransportKind, ranks};
use fencepost_benches::contest::{short, wanted};
use fencepost_examples_support::pin;
use fencepost_planner::explain::cost;
use fencepost_tool::compare::{candidates, measure};
use fencepost_tool::documents::{MeasurementRow, PredictionRow};
use std::time::Duration;

/// Puts the edges of each block into the halos of the blocks around it.
#[superstep]
fn exchange<const D: usize>(u: &mut Window<f64>, block: &Block<D>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Puts single elements to places of the next rank.
#[superstep]
fn scatter(u: &mut Window<f64>, next: usize, places: &[usize]) -> Result<()> {
    for (i, &place) in places.iter().enumerate() {
        u.put(i..i + 1).to(next, place)?;
    }
    Ok(())
}

/// Puts the first half of a window into the second half of the next rank's window.
#[superstep]
fn block(u: &mut Window<f64>, next: usize, half: usize) -> Result<()> {
    u.put(0..half).to(next, half)
}

/// The number of ranks. With two, each rank has a core of its own on a two-core machine.
const RANKS: usize = 2;

/// Compiles a workload of a size.
type Make = fn(usize) -> Result<Compiled>;

/// The workloads, with their sizes.
const WORKLOADS: [(&str, Make, [usize; 3]); 5] = [
    ("row halo", rows, [48, 320, 1536]),
    ("column halo", columns, [48, 320, 1536]),
    ("3D halo", cube, [12, 40, 96]),
    ("scattered puts", scattered, [20, 300, 4000]),
    ("one block", one_block, [24, 3000, 40_000]),
];

fn rows(side: usize) -> Result<Compiled> {
    exchange::compile(RANKS, |rank| Block::at(rank, RANKS, [side; 2])?.grid([RANKS, 1])?.halo(1))
}

fn columns(side: usize) -> Result<Compiled> {
    exchange::compile(RANKS, |rank| Block::at(rank, RANKS, [side; 2])?.grid([1, RANKS])?.halo(1))
}

fn cube(side: usize) -> Result<Compiled> {
    exchange::compile(RANKS, |rank| Block::at(rank, RANKS, [side; 3])?.grid([1, RANKS, 1])?.halo(1))
}

fn scattered(count: usize) -> Result<Compiled> {
    // Steps of 7919 visit all places, because 7919 and `count` have no common factor.
    let places: Vec<usize> = (0..count).map(|i| count + (i * 7919) % count).collect();
    scatter::compile(RANKS, |rank| Ok(((rank + 1) % RANKS, places.clone())))
}

fn one_block(half: usize) -> Result<Compiled> {
    block::compile(RANKS, |rank| Ok(((rank + 1) % RANKS, half)))
}

/// Returns the duration that this environment variable sets in seconds, or the default `otherwise`.
fn seconds(name: &str, otherwise: f64) -> Duration {
    let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(given.unwrap_or(if short() { 0.01 } else { otherwise }))
}

/// A measured row, with the name of its case.
type Case = (String, MeasurementRow);

/// Probes a transport, and measures all cases on it, in two passes. The noise of a row is the
/// difference of its two measurements.
///
/// Two cores may change within seconds between states in which a cache line takes 55 or 590 ns. So
/// the transport is probed again before and after each workload. Each probe yields a prediction,
/// and the prediction of a row is the median over the four probes around its two measurements.
fn cases(name: &str, transport: TransportKind) -> Result<Vec<Case>> {
    let (probe, time) = (seconds("FENCEPOST_BENCH_PROBE", 10.0), seconds("FENCEPOST_BENCH_TIME", 0.7));
    let each = probe / (2 * (2 * WORKLOADS.len() as u32 + 1));
    let mut all = ranks(RANKS).transport(transport).collect(|world| {
        pin(world.rank());
        let (first, _) = world.measure_machine_for(probe / 2)?;
        let mut machines: Vec<Machine> = vec![first];
        // Each case with its plan and the number of its workload.
        let mut cases: Vec<(Case, Compiled, usize)> = Vec::new();
        for pass in 0..2 {
            let mut at = 0;
            for (number, (workload, make, sizes)) in WORKLOADS.into_iter().enumerate() {
                machines.push(world.measure_machine_for(each)?.0);
                for size in sizes {
                    let candidates = candidates(&make(size)?, world.placement(), &first)?;
                    let rows = measure(world, &candidates, name, time)?;
                    for (row, candidate) in rows.into_iter().zip(candidates) {
                        let chunk = row.chunk.map_or(String::new(), |chunk| format!(", chunks of {chunk}"));
                        let case = format!("{name}, {workload} {size}, {}{chunk}", row.prediction.mode);
                        if pass == 0 {
                            cases.push(((case, row), candidate.plan, number));
                        } else {
                            let ((_, before), ..) = &mut cases[at];
                            let mean = f64::midpoint(before.measured, row.measured);
                            before.noise = (before.measured - row.measured).abs() / mean;
                            before.measured = mean;
                        }
                        at += 1;
                    }
                }
            }
        }
        machines.push(world.measure_machine_for(each)?.0);
        let predicted = |((case, row), plan, number): (Case, Compiled, usize)| {
            let by = |machine: &Machine| -> f64 {
                plan.schedules().iter().map(|schedule| cost(schedule, machine).predicted.0).sum()
            };
            let around = [0, 1].map(|pass| 1 + pass * WORKLOADS.len() + number);
            let mut times = around.map(|at| [by(&machines[at]), by(&machines[at + 1])]).concat();
            times.sort_by(f64::total_cmp);
            let prediction = PredictionRow { prepared: f64::midpoint(times[1], times[2]), ..row.prediction };
            (case, MeasurementRow { prediction, ..row })
        };
        Ok(cases.into_iter().map(predicted).collect::<Vec<Case>>())
    })?;
    Ok(all.swap_remove(0))
}

fn main() -> Result<()> {
    let transports = [
        ("local", TransportKind::Local),
        ("shm", TransportKind::ShmThreads),
        ("tcp", TransportKind::TcpThreads),
    ];
    if std::thread::available_parallelism().map_or(1, usize::from) < RANKS {
        println!("not measured: {RANKS} ranks would share a core");
        return Ok(());
    }
    let mut all = Vec::new();
    for (name, transport) in transports.into_iter().filter(|(name, _)| wanted(name)) {
        all.extend(cases(name, transport)?);
    }
    let error = |row: &MeasurementRow| (row.prediction.prepared / row.measured - 1.0).abs();
    let (noisy, mut counted): (Vec<Case>, Vec<Case>) = all.into_iter().partition(|(_, row)| row.noise > 0.1);
    counted.sort_by(|a, b| error(&b.1).total_cmp(&error(&a.1)));
    println!("{:>9} {:>12} {:>12} {:>7}", "error", "predicted us", "measured us", "noise");
    for (name, row) in &counted {
        println!(
            "{:>+7.0} % {:>12.2} {:>12.2} {:>5.1} %  {name}",
            100.0 * (row.prediction.prepared / row.measured - 1.0),
            row.prediction.prepared / 1e3,
            row.measured / 1e3,
            100.0 * row.noise
        );
    }
    let within = |limit: f64| counted.iter().filter(|(_, row)| error(row) <= limit).count();
    let median = counted.get(counted.len() / 2).map_or(f64::NAN, |(_, row)| error(row));
    println!(
        "\n{} rows: median error {:.0} % (goal 10 %), {} within 25 % (goal {}); left out as too noisy: {}",
        counted.len(),
        100.0 * median,
        within(0.25),
        (counted.len() * 9).div_ceil(10),
        noisy.len()
    );
    for (name, row) in &noisy {
        println!("  {:.0} %  {name}", 100.0 * row.noise);
    }
    let is_quiet = |case: &&Case| !noisy.iter().any(|other| case_of(other) == case_of(case));
    chosen(&counted.iter().filter(is_quiet).cloned().collect::<Vec<_>>());
    Ok(())
}

/// Returns the name of a case without its mode.
fn case_of((name, row): &Case) -> String {
    name[..name.rfind(&row.prediction.mode).unwrap_or(0)].to_owned()
}

/// Prints how good the choice of `auto` is: its time as a ratio to that of the best mode, on
/// average and in the worst case.
fn chosen(rows: &[Case]) {
    let mut ratios: Vec<(f64, String)> = Vec::new();
    for row in rows.iter().filter(|(_, row)| row.prediction.mode == "auto") {
        let best = rows
            .iter()
            .filter(|other| case_of(other) == case_of(row))
            .map(|(_, other)| other.measured)
            .fold(f64::INFINITY, f64::min);
        ratios.push((row.1.measured / best, case_of(row)));
    }
    ratios.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mean = ratios.iter().map(|(ratio, _)| ratio).sum::<f64>() / ratios.len().max(1) as f64;
    if let Some((worst, name)) = ratios.first() {
        println!(
            "auto takes {mean:.2} times the best mode's time on average (goal 1.03), at worst {worst:.2} (goal 1.15): {name}"
        );
    }
}
