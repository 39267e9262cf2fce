//! Heat conduction in a cube with cold faces, with a stencil of seven points. `Block::advise`
//! chooses the number of steps between exchanges and the bands of rows, by the costs of cells,
//! exchanges and memory on this machine.
//!
//! The initial temperature is sin x sin y sin z, which keeps its shape as the cube cools. So the
//! exact result is known. The program compares its result with the exact result, and, bit for bit,
//! with the result of the serial program.
//!
//! `cargo run --release --example heat3d -- -n 2 --cells 256`; `--transport shm` or `tcp` runs the
//! ranks as processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::Nanos;
use fencepost::grid::{Advice, Row};
use fencepost::prelude::*;
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::Job;
use fencepost_examples_support::{Race, pin};
use multiversion::multiversion;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Simulate the cooling of a cube, and compare the result with the exact one
#[derive(Parser)]
#[command(after_help = "Examples:
  heat3d -n 2 --cells 256                 a cube of 256 cells a side on two ranks
  heat3d -n 4 --transport tcp --depth 4   four processes, an exchange for every four steps")]
struct Options {
    #[command(flatten)]
    job: Job,
    /// The number of cells along each side of the cube
    #[arg(long, default_value = "128", value_parser = clap::value_parser!(u64).range(3..=1024))]
    cells: u64,
    /// The number of steps
    #[arg(long, default_value = "50")]
    steps: u64,
    /// The number of steps between two exchanges, and the width of the halo [default: the best by
    /// the model of the machine]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=64))]
    depth: Option<u64>,
}

/// Puts the edges of each block into the halos of the blocks around it.
#[superstep]
fn exchange(u: &mut Window<f64>, block: &Block<3>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// The share of heat that a cell keeps in a step, and the share that it gets from each neighbour.
const KEPT: f64 = 0.4;
const FLOWS: f64 = 0.1;

/// Computes one step of a row, with the widest vectors that the processor has.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn relax(row: &Row<3>, u: &[f64], v: &mut [f64]) {
    let (front, back) = (row.at(u, [-1, 0, 0]), row.at(u, [1, 0, 0]));
    let (up, down, left, right) = (row.up(u), row.down(u), row.left(u), row.right(u));
    let (here, next) = (row.of(u), row.of_mut(v));
    for k in 0..row.len() {
        let around = (front[k] + back[k]) + (up[k] + down[k]) + (left[k] + right[k]);
        next[k] = KEPT * here[k] + FLOWS * around;
    }
}

/// Computes one step of plane `i` of a whole cube with `n` cells on each side. The serial program
/// consists of such steps.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn flow(n: usize, i: usize, u: &[f64], v: &mut [f64]) {
    let inside = n - 2;
    for j in 1..n - 1 {
        let at = (i * n + j) * n + 1;
        let cut = |from: usize| &u[from..][..inside];
        let (front, back, up, down) = (cut(at - n * n), cut(at + n * n), cut(at - n), cut(at + n));
        let (left, here, right) = (cut(at - 1), cut(at), cut(at + 1));
        let next = &mut v[at..][..inside];
        for k in 0..inside {
            let around = (front[k] + back[k]) + (up[k] + down[k]) + (left[k] + right[k]);
            next[k] = KEPT * here[k] + FLOWS * around;
        }
    }
}

/// Returns the value at cell `at` of half a sine wave across the cube.
fn wave(at: usize, n: usize) -> f64 {
    (at as f64 * 180.0 / (n - 1) as f64).to_radians().sin()
}

/// Computes `group` steps in one pass over the cube: plane `i` of one step, then plane `i - 1` of
/// the next step, and so on.
fn tiled(n: usize, [u, v]: [&mut [f64]; 2], group: usize) {
    for front in 1..n + group {
        for step in 0..group {
            let Some(plane) = front.checked_sub(step).filter(|plane| (1..n - 1).contains(plane)) else {
                continue;
            };
            let (from, to) = if step % 2 == 0 { (&*u, &mut *v) } else { (&*v, &mut *u) };
            flow(n, plane, from, to);
        }
    }
}

/// Returns the best number of steps between exchanges and the best bands, by the costs of cells,
/// exchanges and memory on this machine. All ranks get the same result.
fn advice(world: &World, block: &Block<3>) -> Result<Advice<3>> {
    // The same few rows are computed repeatedly, so that their cells are in the core's cache.
    const PASSES: usize = 100;
    let (u, mut v) = (vec![0.0; block.len()], vec![0.0; block.len()]);
    let few = || block.rows().take(8);
    let mut pass = || {
        let clock = Instant::now();
        for _ in 0..PASSES {
            few().for_each(|row| relax(&row, &u, &mut v));
            black_box(&mut v);
        }
        clock.elapsed().as_nanos() as f64
    };
    let fastest = (0..3).map(|_| pass()).fold(f64::INFINITY, f64::min);
    let cells = PASSES * few().map(|row| row.len()).sum::<usize>();
    let cell = world.allreduce_one(fastest / cells as f64, Op::Max)?;
    let size = size_of::<f64>();
    block.advise(Nanos(cell), size, 2 * size, world.placement(), &world.measure_machine()?)
}

/// The number of steps between exchanges, the time of the slowest rank, and the cells of the cube.
type Outcome = (usize, Duration, Vec<f64>);

/// Runs all steps. Returns `None` in processes other than rank 0's.
fn cool(options: &Options) -> Result<Option<Outcome>> {
    let n = options.cells as usize;
    let mut outcomes: Vec<_> = options.job.world().collect(|world| {
        pin(world.rank());
        let block = Block::new(world, [n; 3])?.halo(1)?;
        let advice = advice(world, &block)?;
        let depth = options.depth.map_or(advice.steps(), |depth| depth as usize);
        let block = block.halo(depth)?;
        let (mut u, mut v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
        block.fill(&mut u, |[i, j, k]| wave(i, n) * wave(j, n) * wave(k, n));
        v.copy_from_slice(&u);
        let mut exchange = exchange::prepare(world, &block)?;
        // no step computes the faces of the cube, but steps read them in both fields
        exchange.replay(&mut v)?;
        world.barrier()?;
        let clock = Instant::now();
        let mut left = options.steps as usize;
        while left > 0 {
            let tiles = block.tiles(depth)?.bands(advice.bands())?.at_most(left);
            exchange.replay(&mut u)?;
            for row in tiles.rows_inside(1) {
                let [now, next] = row.turn([&mut *u, &mut *v]);
                relax(&row, now, next); // cells at the faces of the cube keep their values
            }
            [u, v] = tiles.turn([u, v]);
            left -= tiles.steps();
        }
        let slowest = world.allreduce_one(clock.elapsed().as_nanos() as u64, Op::Max)?;
        let cells = world.gather_block(0, &block, &u)?;
        Ok(cells.map(|cells| (depth, Duration::from_nanos(slowest), cells)))
    })?;
    Ok(outcomes.swap_remove(0))
}

fn run(options: &Options, once: bool) -> Result<()> {
    options.job.start()?;
    let (n, steps) = (options.cells as usize, options.steps);
    let mut race = Race::new(steps, n * n * n, options.job.ranks(), once);
    let mut cube = None;
    for _ in 0..race.rounds() {
        if let Some((depth, time, cells)) = cool(options)? {
            race.add(&format!("{} ranks", options.job.ranks()), time);
            cube = Some((depth, cells));
        }
    }
    // Ranks that are processes have ended by now. Waiting ranks would take cores from the serial
    // program.
    let Some((depth, cube)) = cube else { return Ok(()) };
    for _ in 0..race.rounds() {
        let wave: Vec<f64> = (0..n).map(|at| wave(at, n)).collect();
        let across = |at: usize| wave[at / n / n] * wave[at / n % n] * wave[at % n];
        let start: Vec<f64> = (0..n * n * n).map(across).collect();
        for (name, group) in [("the serial program", 1), ("the same, 6 steps to a pass over the cube", 6)] {
            let (mut u, mut v) = (start.clone(), start.clone());
            let clock = Instant::now();
            let mut left = steps as usize;
            while left > 0 {
                let group = group.min(left);
                tiled(n, [&mut u, &mut v], group);
                if group % 2 == 1 {
                    std::mem::swap(&mut u, &mut v);
                }
                left -= group;
            }
            race.add(name, clock.elapsed());
            let different = cube.iter().zip(&u).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
            assert_eq!(different, 0, "the number of cells that differ from those of {name}");
        }
    }
    println!("{race}");
    println!("{depth} steps to an exchange; equal to the serial program bit for bit");
    let cooled = KEPT + 6.0 * FLOWS * (180.0 / (n - 1) as f64).to_radians().cos();
    let hottest = cube.iter().copied().fold(0.0, f64::max);
    let known = wave(n / 2, n).powi(3) * cooled.powf(steps as f64);
    println!("{hottest:.12} in the middle; the exact value is {known:.12}");
    assert!((hottest - known).abs() < 1e-10);
    Ok(())
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    run(&Options::parse(), false)
}

/// Checks small cubes, for several numbers of ranks and of steps between exchanges.
pub fn check() -> Result<()> {
    for words in
        ["-n 1 --cells 12", "-n 2 --cells 13", "-n 4 --cells 20 --depth 3", "-n 3 --cells 30 --depth 8"]
    {
        let words = std::iter::once("heat3d").chain(words.split(' ')).chain(["--steps", "10"]);
        run(
            &Options::try_parse_from(words)
                .map_err(|error| Error::new(ErrorClass::Arg, error.to_string()))?,
            true,
        )?;
    }
    let narrow = Options::parse_from(["heat3d", "-n", "4", "--cells", "8", "--depth", "9"]);
    let error = run(&narrow, true).expect_err("a halo wider than a block");
    assert!(error.message().contains("a halo of 9 cells"), "{error}");
    Ok(())
}
