//! Predicts the cost of a halo exchange, prepared and at a fence, for 1,000 to 100,000 ranks. The
//! ranks need not exist.
//!
//! First the exchange runs on some dozens of ranks, and each rank's messages are counted. At a
//! fence, a rank sends one message in each of log2 p rounds. It also sends one message to each
//! neighbour, unless the elements are so few that a message of a round can carry them. A prepared
//! exchange sends only the messages to neighbours. Then the exchange is compiled for the requested
//! numbers of ranks, and the machine model predicts what these messages cost on three kinds of
//! links:
//!
//! - *prepared*: moving + frames + wire + latency, of the slowest rank;
//! - *at a fence*: the same sum, but with the time of the census in place of the latency if the
//!   census takes longer.
//!
//! `cargo run --release --example beyond`; `-- --machine FILE` takes the figures of another machine

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::prelude::*;
use fencepost::transport::SimConfig;
use fencepost::{Census, Compiled, Machine, Options as Choices, Placement, TransportKind, ranks};
use fencepost_examples_support::clap::{self, Parser};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Predict a halo exchange on more ranks than there are
#[derive(Parser)]
#[command(after_help = "Example:\n  beyond --cells 256 --ranks 4096 --ranks-each 64")]
struct Options {
    /// The side of each rank's block, in cells
    #[arg(long, default_value = "64")]
    cells: NonZeroUsize,
    /// The numbers of ranks to predict
    #[arg(long, num_args = 1.., default_values = ["1000", "10000", "100000"])]
    ranks: Vec<NonZeroUsize>,
    /// The number of ranks on each host, which share memory
    #[arg(long, default_value = "1")]
    ranks_each: NonZeroUsize,
    /// The numbers of ranks to run and to count
    #[arg(long, num_args = 0.., default_values = ["16", "64"])]
    count: Vec<NonZeroUsize>,
    /// A machine model, lines of `key = value`, in place of three kinds of links
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    machine: Option<PathBuf>,
}

#[superstep]
fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// The number of frames that one rank sends in an exchange at a fence, the number in a prepared
/// exchange, and the number of its neighbours.
type Counts = (u64, u64, u64);

/// Runs the exchange on `size` ranks that communicate only by messages, and counts each rank's
/// messages.
fn counted(size: usize, side: usize) -> Result<Vec<Counts>> {
    let world = ranks(size).transport(TransportKind::Sim(SimConfig::default())).census(Census::Sparse);
    world.collect(|world| {
        let block = Block::new(world, grid(size).map(|blocks| blocks * side))?.grid(grid(size))?.halo(1)?;
        let mut u = world.window::<f64>(block.len())?;
        let frames = |world: &World| world.meter().total().frames;
        exchange(&mut u, &block)?; // describes its operations; later calls repeat them
        let before = frames(world);
        exchange(&mut u, &block)?;
        let at_fence = frames(world) - before;
        let mut prepared = exchange::prepare(world, &block)?;
        let before = frames(world);
        prepared.replay(&mut u)?;
        Ok((at_fence, frames(world) - before, block.neighbours().count() as u64))
    })
}

/// Returns the grid of this many blocks that is nearest to a square.
fn grid(ranks: usize) -> [usize; 2] {
    let rows = (1..=ranks.isqrt()).rev().find(|rows| ranks.is_multiple_of(*rows)).unwrap_or(1);
    [rows, ranks / rows]
}

fn compiled(size: usize, side: usize) -> Result<Compiled> {
    let grid = grid(size);
    exchange::compile(size, |rank| {
        Block::at(rank, size, grid.map(|blocks| blocks * side))?.grid(grid)?.halo(1)
    })
}

/// Returns the machine models to predict for, with their names.
fn machines(options: &Options) -> Result<Vec<(String, Machine)>> {
    if let Some(file) = &options.machine {
        return Ok(vec![(file.display().to_string(), std::fs::read_to_string(file)?.parse()?)]);
    }
    // The latency, the overhead at each end, and the nanoseconds for each byte. These are round
    // figures for this kind of link, not those of a specific product.
    let links = [("TCP, 10 Gb/s", 15_000.0, 2_000.0, 0.8), ("RDMA, 100 Gb/s", 1_000.0, 200.0, 0.08)];
    let mut machines = vec![("TCP, one machine".to_owned(), Machine::default())];
    for (name, latency, overhead, per_byte) in links {
        let mut machine = Machine::default();
        (machine.network.latency, machine.network.overhead) = (latency, overhead);
        machine.network.per_byte = per_byte;
        machines.push((name.to_owned(), machine));
    }
    Ok(machines)
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    report(&Options::parse())
}

fn report(options: &Options) -> Result<()> {
    let side = options.cells.get();
    if !options.count.is_empty() {
        println!("messages of a rank, counted:   ranks  neighbours  at a fence  prepared");
    }
    for size in options.count.iter().map(|size| size.get()) {
        let rounds = u64::from(size.next_power_of_two().trailing_zeros());
        let counts = counted(size, side)?;
        for (at_fence, prepared, neighbours) in &counts {
            // Short frames, such as the frames for corners, are sent within the messages of the
            // rounds.
            let dynamic = rounds..=neighbours + rounds;
            assert!(
                dynamic.contains(at_fence) && prepared == neighbours,
                "of {size} ranks: {at_fence}, {prepared}"
            );
        }
        let (at_fence, prepared, neighbours) = counts.into_iter().max().unwrap_or_default();
        println!("                             {size:>7} {neighbours:>11} {at_fence:>11} {prepared:>9}");
    }
    let placement = match options.ranks_each.get() {
        1 => Placement::Apart,
        ranks_each => Placement::Hosts { ranks_each },
    };
    println!("\nus an exchange, predicted          ranks  at a fence  prepared   ratio");
    for (name, machine) in machines(options)? {
        for size in options.ranks.iter().map(|size| size.get()) {
            let compiled = compiled(size, side)?.with(placement, &machine, &Choices::default())?;
            let (at_fence, prepared) = (compiled.predicted_at_fence().0, compiled.predicted().0);
            let ratio = prepared / at_fence;
            println!("{name:<30} {size:>9} {:>11.1} {:>9.1} {ratio:>7.2}", at_fence / 1e3, prepared / 1e3);
        }
    }
    Ok(())
}

/// Runs the example as a test.
pub fn check() -> Result<()> {
    report(&Options::parse_from(["beyond", "--count", "9", "37", "--ranks", "1000"]))
}
