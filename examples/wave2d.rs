//! Ripples on a pond whose opposite shores coincide: the wave equation with a nine-point stencil
//! and periodic boundaries. A step reads two levels of time and writes a third one. Two fields are
//! enough, since the third level overwrites the first one. Several steps follow one exchange.
//!
//! Drops fall on still water. The height of the water is drawn every `--every` steps. The result is
//! compared with that of the serial program bit for bit.
//!
//! `cargo run --release --example wave2d -- -n 2`; `--transport shm` or `tcp` runs the ranks as
//! processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::grid::Row;
use fencepost::prelude::*;
use fencepost::{Machine, Nanos};
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::Job;
use fencepost_examples_support::{Grid, Race, digest, picture, pin};
use multiversion::multiversion;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Simulate ripples on water, and draw them
#[derive(Parser)]
#[command(after_help = "Examples:
  wave2d -n 2                        pictures in out/wave2d, one for each 60 steps
  wave2d -n 4 --cells 2048 --every 0 no pictures")]
struct Options {
    #[command(flatten)]
    job: Job,
    /// The number of cells along each side of the pond
    #[arg(long, default_value = "512", value_parser = clap::value_parser!(u64).range(8..=16384))]
    cells: u64,
    /// The number of steps
    #[arg(long, default_value = "360")]
    steps: u64,
    /// The number of steps between two pictures, or 0 for none
    #[arg(long, default_value = "60")]
    every: u64,
    /// The number of steps between two exchanges [default: the best by the model of a machine]
    #[arg(long, value_name = "STEPS")]
    group: Option<NonZeroUsize>,
    /// The folder for the pictures
    #[arg(long, value_name = "FOLDER", default_value = "out/wave2d")]
    out: PathBuf,
}

/// Puts the edges of each block into the halos of the blocks around it. Blocks at opposite ends of
/// the pond are neighbours. The edges of both the current water and the previous water are put,
/// since the first step of a group reads both in the halo.
#[superstep]
fn exchange(u: &mut Window<f64>, v: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
        v.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// The time to compute a cell whose water is in a cache. The estimate is accurate enough to choose
/// the number of steps of a group, and is the same in each run.
const CELL: Nanos = Nanos(0.8);

/// The offsets of the eight cells around a cell, and of the cell itself.
const NEAR: [[isize; 2]; 9] = [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 0], [0, 1], [1, -1], [1, 0], [1, 1]];
/// The square of the speed of waves, in cells a step.
const SPEED: f64 = 0.25;

/// Returns the next height of a cell, from the current heights of the cell and the cells around it
/// (`near`) and the previous height of the cell. The method uses central differences in time, and
/// the Laplacian of nine points in space.
#[inline(always)]
fn next(near: [f64; 9], before: f64) -> f64 {
    let [a, b, c, d, here, f, g, h, i] = near;
    let around = ((a + c) + (g + i)) + 4.0 * ((b + h) + (d + f)) - 20.0 * here;
    (2.0 * here - before) + SPEED / 6.0 * around
}

/// Computes one step of a row, with the widest vectors that the processor has. `u` is the current
/// water. `v` is the previous water, and becomes the next water.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn ripple(row: &Row<2>, u: &[f64], v: &mut [f64]) {
    let [a, b, c, d, e, f, g, h, i] = row.each(u, NEAR);
    let v = row.of_mut(v);
    for j in 0..row.len() {
        v[j] = next([a[j], b[j], c[j], d[j], e[j], f[j], g[j], h[j], i[j]], v[j]);
    }
}

/// Computes one step over a whole pond of `n` by `n` cells with a rim of one cell. The serial
/// program consists of such steps.
fn serial(n: usize, u: &mut [f64], v: &mut [f64]) {
    let wide = n + 2;
    for row in 1..=n {
        (u[row * wide], u[row * wide + n + 1]) = (u[row * wide + n], u[row * wide + 1]);
    }
    u.copy_within(n * wide..(n + 1) * wide, 0);
    u.copy_within(wide..2 * wide, (n + 1) * wide);
    for row in 1..=n {
        flow(n, row, u, v);
    }
}

/// Computes a row of the pond.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn flow(n: usize, row: usize, u: &[f64], v: &mut [f64]) {
    let wide = n + 2;
    let at = row * wide + 1;
    let cut = |from: usize| &u[from..][..n];
    let (a, b, c) = (cut(at - wide - 1), cut(at - wide), cut(at - wide + 1));
    let (d, e, f) = (cut(at - 1), cut(at), cut(at + 1));
    let (g, h, i) = (cut(at + wide - 1), cut(at + wide), cut(at + wide + 1));
    let v = &mut v[at..][..n];
    for j in 0..n {
        v[j] = next([a[j], b[j], c[j], d[j], e[j], f[j], g[j], h[j], i[j]], v[j]);
    }
}

/// Returns the height of a cell at the start, when drops have just fallen on still water.
fn drops(n: usize, [row, column]: [usize; 2]) -> f64 {
    let drop = |(y, x, size): (f64, f64, f64)| {
        let (dy, dx) = (row as f64 / n as f64 - y, column as f64 / n as f64 - x);
        size * (-(dy * dy + dx * dx) * 2500.0).exp()
    };
    [(0.3, 0.35, 4.0), (0.65, 0.6, -6.0), (0.8, 0.15, 3.0)].map(drop).iter().sum()
}

/// The time of the slowest rank, the water at the end, and the grids of the pictures.
type Outcome = (Duration, Vec<f64>, Vec<Grid>);

/// Runs all steps. Returns `None` in processes other than rank 0's. The times of steps are measured
/// in a run without pictures.
fn simulate(options: &Options, every: u64) -> Result<Option<Outcome>> {
    let n = options.cells as usize;
    let mut outcomes: Vec<Option<Outcome>> = options.job.world().collect(|world| {
        pin(world.rank());
        let block = Block::new(world, [n, n])?.halo(1)?.periodic([true; 2]);
        let both = 2 * size_of::<f64>();
        let advice = block.advise(CELL, both, both, world.placement(), &Machine::default())?;
        let group = options.group.map_or(advice.steps(), NonZeroUsize::get);
        let block = block.halo(group)?;
        let (mut u, mut v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
        for field in [&mut u, &mut v] {
            block.fill(field, |cell| drops(n, cell));
        }
        let mut exchange = exchange::prepare(world, &block)?;
        let mut pictures = Vec::new();
        world.barrier()?;
        let clock = Instant::now();
        let mut done = 0;
        while done < options.steps {
            let to_picture = if every > 0 { every - done % every } else { u64::MAX };
            let tiles = block.tiles(group)?.bands(advice.bands())?;
            let tiles = tiles.at_most(to_picture.min(options.steps - done) as usize);
            exchange.replay(&mut u, &mut v)?;
            for row in tiles.rows() {
                let [now, next] = row.turn([&mut *u, &mut *v]);
                ripple(&row, now, next);
            }
            [u, v] = tiles.turn([u, v]);
            done += tiles.steps() as u64;
            if every > 0 && done.is_multiple_of(every) {
                pictures.extend(world.gather_block(0, &block, &u)?.map(|pond| Grid::new(n, n, pond)));
            }
        }
        let slowest = world.allreduce_one(clock.elapsed().as_nanos() as u64, Op::Max)?;
        Ok(world.gather_block(0, &block, &u)?.map(|pond| (Duration::from_nanos(slowest), pond, pictures)))
    })?;
    Ok(outcomes.swap_remove(0))
}

/// Runs the serial program, and returns its time and the water at the end.
fn alone(n: usize, steps: u64) -> (Duration, Vec<f64>) {
    let wide = n + 2;
    let mut u = vec![0.0; wide * wide];
    for (at, cell) in u.iter_mut().enumerate() {
        let (row, column) = (at / wide, at % wide);
        if (1..=n).contains(&row) && (1..=n).contains(&column) {
            *cell = drops(n, [row - 1, column - 1]);
        }
    }
    let mut v = u.clone();
    let clock = Instant::now();
    for _ in 0..steps {
        serial(n, &mut u, &mut v);
        std::mem::swap(&mut u, &mut v);
    }
    let time = clock.elapsed();
    (time, (1..=n).flat_map(|row| u[row * wide + 1..][..n].to_vec()).collect())
}

/// Runs the ranks and the serial program. Returns the digest of the water, or `None` in processes
/// other than rank 0's.
fn run(options: &Options, once: bool) -> Result<Option<String>> {
    options.job.start()?;
    let (n, steps) = (options.cells as usize, options.steps);
    let mut race = Race::new(steps, n * n, options.job.ranks(), once);
    let mut pond = None;
    for _ in 0..race.rounds() {
        if let Some((time, water, _)) = simulate(options, 0)? {
            race.add(&format!("{} ranks", options.job.ranks()), time);
            pond = Some(water);
        }
    }
    if options.every > 0
        && let Some((_, _, grids)) = simulate(options, options.every)?
    {
        std::fs::create_dir_all(&options.out)?;
        for (grid, number) in grids.iter().zip(1..) {
            let name = format!("{:05}.png", number * options.every);
            picture::water(grid, 0.6).save(&options.out.join(name))?;
        }
        println!("{}: {} pictures", options.out.display(), grids.len());
    }
    // If ranks are processes, only the process of rank 0 continues here. If the other processes
    // waited, they would take cores from the serial program.
    let Some(pond) = pond else { return Ok(None) };
    for _ in 0..race.rounds() {
        let (time, known) = alone(n, steps);
        race.add("the serial program", time);
        let different = pond.iter().zip(&known).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
        assert_eq!(different, 0, "the number of cells that differ from those of the serial program");
    }
    println!("{race}");
    println!("equal to the serial program bit for bit");
    Ok(Some(digest(&pond)))
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    if let Some(digest) = run(&Options::parse(), false)? {
        println!("digest {digest}");
    }
    Ok(())
}

/// Checks that the digest is the same for several numbers of ranks, and that pictures are drawn.
pub fn check() -> Result<()> {
    let out = std::env::temp_dir().join(format!("fencepost-wave2d-{}", std::process::id()));
    let run = |ranks: &str, every: &str, more: &[&str]| {
        let words = ["wave2d", "--cells", "48", "--steps", "20", "-n", ranks, "--every", every];
        let words = words.iter().chain(more).chain(&["--out"]).map(Into::into);
        run(&Options::parse_from(words.chain([out.clone().into_os_string()])), true)
    };
    let known = run("1", "10", &[])?;
    for ranks in ["2", "3", "6"] {
        assert_eq!(run(ranks, "0", &[])?, known, "{ranks} ranks");
        assert_eq!(run(ranks, "0", &["--group", "5"])?, known, "{ranks} ranks, 5 steps to an exchange");
    }
    for picture in ["00010.png", "00020.png"] {
        assert!(std::fs::metadata(out.join(picture))?.len() > 1000, "{picture}");
    }
    std::fs::remove_dir_all(out)?;
    Ok(())
}
