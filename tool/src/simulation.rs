//! [`Question`] simulates many steps of a plan for all ranks, with uneven work and noise.

use crate::documents::{PathDocument, SimulationDocument, WaitDocument, call};
use fencepost_planner::Result;
use fencepost_planner::explain::number_of;
use fencepost_planner::ids::Rank;
use fencepost_planner::ir::pattern::{Kind, Site};
use fencepost_planner::ir::schedule::Schedule;
use fencepost_planner::machine::Machine;
use fencepost_planner::simulate::{Path, Run, Simulation, Waits, goal, simulate, traced};
use fencepost_planner::trace::Trace;
use fencepost_runtime::Compiled;

/// The most ranks whose waits are listed.
const WAITS_MAX: usize = 10;

/// The steps to simulate. In each step, a rank works and then runs the superstep.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Question {
    /// The number of steps.
    pub steps: u64,
    /// The work of a rank in each step, in nanoseconds.
    pub work: u64,
    /// The largest deviation of a rank's work from `work`, as a fraction. A rank deviates by the
    /// same amount in all steps.
    pub uneven: f64,
    /// The largest random delay of a rank in one step, as a fraction of its work.
    pub noise: f64,
    /// The seed of the uneven work and of the noise.
    pub seed: u64,
    /// The fraction by which the run may take longer at the tolerated latency.
    pub tolerance: f64,
}

impl Question {
    /// Returns the work of a rank.
    fn work(&self, rank: u32) -> u64 {
        if self.uneven == 0.0 {
            return self.work;
        }
        // Fibonacci hashing spreads successive ranks evenly.
        let hash = (u64::from(rank) + 1 + self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
        let place = 2.0 * hash as f64 / (1u64 << 53) as f64 - 1.0;
        (self.work as f64 * (1.0 + self.uneven * place)).round().max(0.0) as u64
    }

    /// Simulates the steps on this machine.
    ///
    /// # Errors
    /// Those of [`simulate`].
    pub fn simulated(&self, plan: &Compiled, machine: &Machine) -> Result<Simulation> {
        let schedules: Vec<&Schedule> = plan.schedules().iter().map(|schedule| schedule.get()).collect();
        let work = |rank| self.work(rank);
        let run = Run { steps: self.steps, work: &work, noise: self.noise, seed: self.seed };
        simulate(&schedules, machine, &run)
    }

    /// Follows all steps on the machine for which the plan was compiled. Returns the trace of each
    /// rank.
    ///
    /// # Errors
    /// Those of [`traced`].
    pub fn traces(&self, plan: &Compiled) -> Result<Vec<Trace>> {
        let schedules: Vec<&Schedule> = plan.schedules().iter().map(|schedule| schedule.get()).collect();
        let work = |rank| self.work(rank);
        let run = Run { steps: self.steps, work: &work, noise: self.noise, seed: self.seed };
        let name = |epoch: usize| match schedules.len() {
            1 => plan.name().to_owned(),
            _ => format!("{}, epoch {epoch}", plan.name()),
        };
        let names: Vec<String> = (0..schedules.len()).map(name).collect();
        Ok(traced(&schedules, &plan.made_for().machine, &run, &names)?.1)
    }

    /// Returns all steps as a GOAL file, for the machine for which the plan was compiled.
    ///
    /// # Errors
    /// Those of [`goal`].
    #[track_caller]
    pub fn goal(&self, plan: &Compiled) -> Result<Vec<u8>> {
        let schedules: Vec<&Schedule> = plan.schedules().iter().map(|schedule| schedule.get()).collect();
        let work = |rank| self.work(rank);
        let run = Run { steps: self.steps, work: &work, noise: self.noise, seed: self.seed };
        let (name, steps) = (plan.name(), number_of(self.steps, "step"));
        let title = format!("{name} on {}: {steps}", number_of(plan.ranks() as u64, "rank"));
        let mut file = Vec::new();
        goal(&schedules, &plan.made_for().machine, &run, &title, &mut file)?;
        Ok(file)
    }

    /// Simulates the plan on the machine for which it was compiled.
    ///
    /// # Errors
    /// Those of [`simulate`].
    pub fn answer(&self, plan: &Compiled) -> Result<SimulationDocument> {
        let machine = plan.made_for().machine;
        let Simulation { end, last, followed, waits, path } = self.simulated(plan, &machine)?;
        let mut longest: Vec<(u32, &Waits)> =
            (0..).zip(&waits).filter(|(_, waits)| waits.total > 0).collect();
        longest.sort_by_key(|(rank, waits)| (std::cmp::Reverse(waits.total), *rank));
        longest.truncate(WAITS_MAX);
        let wait = |(rank, waits): (u32, &Waits)| {
            let site = site_of(plan.schedules()[waits.epoch as usize].get(), rank, waits.awaited);
            WaitDocument {
                rank,
                total: waits.total,
                longest: waits.longest,
                awaited: waits.awaited,
                step: waits.step,
                call: site.as_ref().and_then(call),
            }
        };
        let latency_tolerated = self.tolerated(plan, &machine, end)?;
        Ok(SimulationDocument {
            name: plan.name().into(),
            ranks: plan.ranks(),
            steps: self.steps,
            followed,
            end,
            last,
            path: described(&path),
            waits: longest.into_iter().map(wait).collect(),
            latency_tolerated,
        })
    }

    /// Returns the largest latency at which the run stays within the tolerance. It is the latency
    /// of links between hosts, or that of shared memory if all ranks share memory. Returns `None`
    /// if even a latency of a second is tolerated.
    fn tolerated(&self, plan: &Compiled, machine: &Machine, end: u64) -> Result<Option<f64>> {
        let ranks = plan.ranks();
        let is_network = plan.placement().ranks_of_a_host(ranks) < ranks;
        let most = (end as f64 * (1.0 + self.tolerance)) as u64;
        let is_within = |latency: f64| -> Result<bool> {
            let mut other = *machine;
            *(if is_network { &mut other.network.latency } else { &mut other.shared.latency }) = latency;
            Ok(self.simulated(plan, &other)?.end <= most)
        };
        if is_within(LATENCY_MAX)? {
            return Ok(None);
        }
        let now = if is_network { machine.network.latency } else { machine.shared.latency };
        let (mut below, mut above) = (now, (2.0 * now.max(1.0)).min(LATENCY_MAX));
        while above < LATENCY_MAX && is_within(above)? {
            (below, above) = (above, (above * 4.0).min(LATENCY_MAX));
        }
        while above - below > 1.0_f64.max(below * 0.005) {
            let middle = f64::midpoint(above, below);
            *(if is_within(middle)? { &mut below } else { &mut above }) = middle;
        }
        Ok(Some(below))
    }
}

/// The largest latency that is tried: a second.
const LATENCY_MAX: f64 = 1e9;

fn described(path: &Path) -> PathDocument {
    let Path { steps, work, moving, overhead, wire, latency, latencies, overheads, bytes } = *path;
    PathDocument { steps, work, moving, overhead, wire, latency, latencies, overheads, bytes }
}

/// Returns the place at which an operation between two ranks is called.
fn site_of(schedule: &Schedule, rank: u32, awaited: u32) -> Option<Site> {
    let of = |rank: u32, other: u32, is_get: bool| {
        let program = &schedule.classes[*schedule.class_of.get(rank as usize)?];
        let ranks = schedule.class_of.len() as u32;
        let found = program.pattern.operations.values().find(|operation| {
            let target = operation.target.and_then(|target| target.from(Rank(rank), ranks));
            target == Some(Rank(other)) && (operation.kind == Kind::Get) == is_get
        });
        found.map(|operation| operation.site.clone())
    };
    of(awaited, rank, false).or_else(|| of(rank, awaited, true)).or_else(|| of(rank, awaited, false))
}

/// Writes a simulation as text.
#[must_use]
pub fn text(document: &SimulationDocument) -> String {
    let SimulationDocument { name, ranks, steps, followed, end, last, path, waits, latency_tolerated } =
        document;
    let micros = |time: u64| format!("{:.2} us", time as f64 / 1e3);
    let mut text =
        format!("{name} on {ranks} ranks, {steps} steps: {}, rank {last} ends last\n", micros(*end));
    if followed < steps {
        text += &format!("{followed} steps were followed; the others take as long as the last of these\n");
    }
    let part = |time: u64| {
        let all = (path.work
            + path.moving
            + path.overhead.iter().chain(&path.wire).chain(&path.latency).sum::<u64>())
        .max(1);
        format!("{} ({:.0} %)", micros(time), 100.0 * time as f64 / all as f64)
    };
    let sum = |both: [u64; 2]| part(both[0] + both[1]);
    text += &format!(
        "what determines the end, over the last {} steps: work {}, moving {}, frames {}, wire {}, latency {}\n",
        path.steps,
        part(path.work),
        part(path.moving),
        sum(path.overhead),
        sum(path.wire),
        sum(path.latency)
    );
    for (kind, link) in ["in shared memory", "between hosts"].iter().enumerate() {
        if path.overheads[kind] > 0 {
            text += &format!(
                "1 ns more {link} delays the end by: latency {} ns, overhead {} ns, time per byte {} ns\n",
                path.latencies[kind], path.overheads[kind], path.bytes[kind]
            );
        }
    }
    match latency_tolerated {
        Some(latency) => {
            text += &format!("the run stays within the tolerance up to a latency of {latency:.0} ns\n")
        }
        None => text += "the run stays within the tolerance at any latency up to a second\n",
    }
    if !waits.is_empty() {
        text += &format!("ranks that wait longest, in the {followed} steps that were followed:\n");
    }
    for WaitDocument { rank, total, longest, awaited, step, call } in waits {
        let place = call.as_ref().map_or(String::new(), |call| format!(", {}:{}", call.file, call.line));
        text += &format!(
            "  rank {rank}: {}, longest {} for rank {awaited} in step {step}{place}\n",
            micros(*total),
            micros(*longest)
        );
    }
    text
}
