//! Predicts and measures the time of an epoch, for four workloads in every transfer mode and with
//! `auto`. Each epoch puts new values and reads the values that arrived, one word in each cache
//! line, so that lines change their owner as in a real program.
//!
//! `cargo run --release --example modes -- -n 2`; `--transport shm` or `tcp` runs the ranks as
//! processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::Ranks;
use fencepost::prelude::*;
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::{Job, mode_name};
use fencepost_examples_support::pin;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Run each workload in each transfer mode, and compare the times with the machine model
#[derive(Parser)]
#[command(after_help = "Examples:\n  modes -n 2\n  modes -n 4 --epochs 50 --size 512")]
struct Options {
    #[command(flatten)]
    job: Job,
    /// The number of timed epochs; a quarter as many run before to warm up
    #[arg(long, default_value = "400")]
    epochs: u32,
    /// The side of the grids; there are 10 times as many scattered puts, and 100 times as many
    /// elements in the block
    #[arg(long, default_value = "1024")]
    size: usize,
}

/// Puts the cells next to each face of a block into the halo of the block behind that face.
#[superstep]
fn faces(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.faces() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Puts element i to index `places[i]` of the next rank, with one put for each element.
#[superstep]
fn scatter(u: &mut Window<f64>, next: usize, places: &[usize]) -> Result<()> {
    for (i, &place) in places.iter().enumerate() {
        u.put(i..i + 1).to(next, place)?;
    }
    Ok(())
}

/// Puts the first half of the window into the second half of the next rank's window.
#[superstep]
fn block(u: &mut Window<f64>, next: usize, half: usize) -> Result<()> {
    u.put(0..half).to(next, half)?;
    Ok(())
}

/// A workload to compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// A grid cut into rows.
    RowHalo,
    /// A grid cut into columns.
    ColumnHalo,
    /// Single elements to random places.
    Scattered,
    /// One contiguous block.
    Block,
}

impl Workload {
    /// All workloads.
    pub const ALL: [Workload; 4] =
        [Workload::RowHalo, Workload::ColumnHalo, Workload::Scattered, Workload::Block];

    /// Returns the name of the workload.
    pub fn name(self) -> &'static str {
        match self {
            Workload::RowHalo => "row halo",
            Workload::ColumnHalo => "column halo",
            Workload::Scattered => "scattered puts",
            Workload::Block => "one large block",
        }
    }

    fn halo(self, rank: usize, ranks: usize, size: usize) -> Result<Block<2>> {
        let grid = if self == Workload::RowHalo { [ranks, 1] } else { [1, ranks] };
        Block::at(rank, ranks, [size, size])?.grid(grid)?.halo(1)
    }

    /// Returns distinct indices into the second half of the next rank's window, in pseudo-random
    /// order.
    fn places(size: usize) -> Vec<usize> {
        let n = size * 10;
        // `step` and `n` have no common factor, so the multiplication permutes 0..n.
        let step = (n / 3..n).find(|&step| gcd(step, n) == 1).unwrap_or(1);
        (0..n).map(|i| n + i * step % n).collect()
    }

    /// Compiles the workload in `mode`, without a world.
    pub fn compile(self, ranks: usize, mode: Mode, size: usize) -> Result<fencepost::Compiled> {
        let next = |rank: usize| (rank + 1) % ranks;
        let compiled = match self {
            Workload::RowHalo | Workload::ColumnHalo => {
                faces::compile(ranks, |rank| self.halo(rank, ranks, size))
            }
            Workload::Scattered => {
                let places = Self::places(size);
                scatter::compile(ranks, |rank| Ok((next(rank), places.clone())))
            }
            Workload::Block => block::compile(ranks, |rank| Ok((next(rank), size * 100))),
        };
        compiled?.in_mode(mode)
    }

    /// Runs the workload in a world in `mode`, and returns the time of an epoch on the slowest
    /// rank.
    pub fn measure(self, world: Ranks, mode: Mode, size: usize, epochs: u32) -> Result<Duration> {
        let times: Vec<Duration> = world.mode(mode).collect(|world| {
            pin(world.rank());
            let ranks = world.size();
            let next = (world.rank() + 1) % ranks;
            let half = size * 100;
            let time = match self {
                Workload::RowHalo | Workload::ColumnHalo => {
                    let block = self.halo(world.rank(), ranks, size)?;
                    let mut u = world.window::<f64>(block.len())?;
                    let mut faces = faces::prepare(world, &block)?;
                    let sent = lines(block.faces().flat_map(|n| elements_of(&block.inner_edge(&n))));
                    let came = lines(block.faces().flat_map(|n| elements_of(&block.outer_edge(&n))));
                    time(world, epochs, &mut u, (&sent, &came), |u| faces.replay(u))
                }
                Workload::Scattered => {
                    let places = Self::places(size);
                    let mut u = world.window::<f64>(2 * places.len())?;
                    let mut scatter = scatter::prepare(world, next, &places)?;
                    let (sent, came) = (lines(0..places.len()), lines(places.len()..2 * places.len()));
                    time(world, epochs, &mut u, (&sent, &came), |u| scatter.replay(u))
                }
                Workload::Block => {
                    let mut u = world.window::<f64>(2 * half)?;
                    let mut block = block::prepare(world, next, half)?;
                    let (sent, came) = (lines(0..half), lines(half..2 * half));
                    time(world, epochs, &mut u, (&sent, &came), |u| block.replay(u))
                }
            };
            Ok(Duration::from_nanos(world.allreduce_one(time?.as_nanos() as u64, Op::Max)?))
        })?;
        Ok(times[0])
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn elements_of(datatype: &Datatype) -> Vec<usize> {
    datatype.element_iter().map(|element| element as usize).collect()
}

/// Returns one of `elements` for each cache line that contains any of them.
fn lines(elements: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut elements: Vec<usize> = elements.into_iter().collect();
    elements.sort_unstable();
    elements.dedup_by_key(|element| *element / 8);
    elements
}

/// Measures the time of an epoch. Before that, a quarter as many epochs run to warm up. Each epoch
/// gives the elements `sent` new values, and reads the elements `came`.
fn time(
    world: &World,
    epochs: u32,
    u: &mut Window<f64>,
    (sent, came): (&[usize], &[usize]),
    mut exchange: impl FnMut(&mut Window<f64>) -> Result<()>,
) -> Result<Duration> {
    let mut epoch = |k: u32| -> Result<()> {
        sent.iter().for_each(|&element| u[element] = f64::from(k));
        exchange(u)?;
        black_box(came.iter().fold(0, |bits, &element| bits ^ u[element].to_bits()));
        Ok(())
    };
    (0..epochs.div_ceil(4)).try_for_each(&mut epoch)?;
    world.barrier()?;
    let clock = Instant::now();
    (0..epochs).try_for_each(&mut epoch)?;
    Ok(clock.elapsed() / epochs.max(1))
}

fn report(options: &Options) -> Result<()> {
    let ranks = options.job.ranks();
    let reports = options.job.reports();
    if reports {
        println!("{:<16} {:>12} {:>14} {:>14}", "us an epoch", "mode", "predicted", "measured");
    }
    let here = options.job.here()?;
    for workload in Workload::ALL {
        for mode in Mode::ALL {
            let compiled = workload.compile(ranks, mode, options.size)?;
            let job = Job { mode, ..options.job.clone() };
            let compiled = job.compiled(&compiled, &here)?;
            let predicted = compiled.predicted().0 / 1e3;
            let measured = workload.measure(options.job.world(), mode, options.size, options.epochs)?;
            if reports {
                let (name, mode, measured) = (workload.name(), mode_name(mode), measured.as_secs_f64() * 1e6);
                println!("{name:<16} {mode:>12} {predicted:>14.2} {measured:>14.2}");
            }
        }
    }
    Ok(())
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    let options = Options::parse();
    options.job.start()?;
    report(&options)
}

/// Runs small cases as a test.
pub fn check() -> Result<()> {
    for ranks in ["1", "2", "3"] {
        report(&Options::parse_from(["modes", "-n", ranks, "--epochs", "4", "--size", "60"]))?;
    }
    Ok(())
}
