//! Is the number of steps between two exchanges that [`Block::advise`] returns the best one? Seven points in a cube, with every
//! number of steps, and the steps alone: these say what a cell costs, which the advice is asked with.

#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use fencepost::prelude::*;
use fencepost::{Machine, Nanos, Placement, Row, TransportKind};
use fencepost_benches::contest::wanted;
use fencepost_benches::{Contest, Harness, ours};
use fencepost_examples_support::pin;
use std::time::Duration;

/// Each block puts its edges into the halos of the blocks around it.
#[superstep]
fn exchange(u: &mut Window<f64>, block: &Block<3>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

fn relax(rows: impl Iterator<Item = Row<3>>, u: &[f64], v: &mut [f64]) {
    for row in rows {
        let (front, back) = (row.at(u, [-1, 0, 0]), row.at(u, [1, 0, 0]));
        let (up, down, left, right) = (row.up(u), row.down(u), row.left(u), row.right(u));
        let (here, next) = (row.of(u), row.of_mut(v));
        for k in 0..row.len() {
            let around = (front[k] + back[k]) + (up[k] + down[k]) + (left[k] + right[k]);
            next[k] = 0.4 * here[k] + 0.1 * around;
        }
    }
}

#[derive(Clone)]
struct Question {
    transport: TransportKind,
    ranks: usize,
    cells: usize,
}

impl Question {
    /// `iterations` steps, an exchange before every `depth` of them if `exchanged`.
    fn run(&self, depth: usize, exchanged: bool, iterations: u64) -> Duration {
        let make = |world: &World| {
            let block = Block::new(world, [self.cells; 3])?.halo(depth)?;
            let prepared = exchange::prepare(world, &block)?;
            let (u, v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
            Ok((block, prepared, u, v))
        };
        let rounds = iterations.div_ceil(depth as u64);
        let taken = ours::team_over(self.transport.clone(), self.ranks, rounds, make, |world, state, n| {
            let (block, exchange, u, v) = state;
            if exchanged {
                exchange.replay(u)?;
            }
            for step in block.steps(depth)? {
                relax(step.rows_inside(1), u, v);
                std::mem::swap(u, v);
            }
            // Ranks that share a core work one after another: the time is that of all.
            if !exchanged && n as u64 + 1 == rounds { world.barrier() } else { Ok(()) }
        });
        taken.mul_f64(iterations as f64 / (rounds * depth as u64) as f64)
    }
}

fn main() {
    let mut harness = Harness::from_arguments();
    let links = [
        ("local", TransportKind::Local, Placement::Together),
        ("shm", TransportKind::ShmThreads, Placement::Together),
        ("tcp", TransportKind::TcpThreads, Placement::Apart),
    ];
    for (link, transport, placement) in links {
        for ranks in [2, 4] {
            for cells in [16, 32, 64, 128] {
                let title = format!("{link}: {ranks} ranks, {cells} cubed");
                if !wanted(&title) {
                    continue;
                }
                let question = Question { transport: transport.clone(), ranks, cells };
                let block = Block::at(0, ranks, [cells; 3]).and_then(|block| block.halo(1)).expect("a block");
                let alone = question.clone();
                let mut contest = Contest::new(title, 1).side("steps alone", move |n| alone.run(1, false, n));
                let depths = (1..=8).take_while(|&depth| block.clone().halo(depth).is_ok());
                for depth in depths {
                    let question = question.clone();
                    contest = contest
                        .side(format!("{depth} to an exchange"), move |n| question.run(depth, true, n));
                }
                let Some(figures) = harness.run(&mut contest) else { continue };
                let largest: usize = block.extent().iter().product();
                let cell = Nanos(figures[0].median / largest as f64);
                let (medians, least): (Vec<f64>, Vec<f64>) =
                    figures[1..].iter().map(|figure| (figure.median, figure.min)).unzip();
                let print = |name: &str, machine: &Machine| {
                    let advice = block.advise(cell, 8, placement, machine).expect("advice");
                    let steps = advice.steps();
                    let of_best = |times: &[f64]| {
                        times[steps - 1] / times.iter().copied().fold(f64::INFINITY, f64::min)
                    };
                    let (median, least) = (of_best(&medians), of_best(&least));
                    println!(
                        "{advice}\n  {name}: {steps}, {median:.2} of the best by medians, {least:.2} by the least"
                    );
                };
                print("by the default model", &Machine::default());
                let world = fencepost::ranks(ranks).transport(transport.clone());
                let measured = world.collect(|world| {
                    pin(world.rank());
                    world.measure_machine()
                });
                let measured = measured.expect("a machine");
                println!("{}", measured[0]);
                print("by the measured model", &measured[0]);
            }
        }
    }
}
