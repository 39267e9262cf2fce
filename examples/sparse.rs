//! Repeated products of a sparse matrix and a vector, with an irregular halo.
//!
//! The rows are distributed over the ranks. The matrix determines which elements of the vector a
//! rank needs from other ranks, as lists of indices. The superstep that fetches these elements is
//! prepared once, for all ranks, and then replayed in every iteration. The result equals that of a
//! serial loop bit for bit.
//!
//! `cargo run --release --example sparse -- -n 4`; `--transport shm` or `tcp` runs the ranks as
//! processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::prelude::*;
use fencepost::snapshots::Items;
use fencepost::{Error, ErrorClass};
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::digest;
use fencepost_examples_support::options::{Job, Saving};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::time::Instant;

/// Multiply a vector repeatedly by a sparse matrix
#[derive(Parser)]
#[command(after_help = "Example:\n  sparse -n 8 --rows 100000 --iterations 20")]
struct Options {
    #[command(flatten)]
    job: Job,
    #[command(flatten)]
    saving: Saving,
    /// The number of rows and of columns of the matrix
    #[arg(long, default_value = "200000")]
    rows: NonZeroUsize,
    /// The number of multiplications
    #[arg(long, default_value = "50")]
    iterations: usize,
}

/// Returns the columns of the nonzero entries of a row in ascending order: the row's own number,
/// the two neighbouring numbers, and three distant ones. All entries have equal weights, so the
/// elements of the vector approach their mean.
fn columns(row: usize, rows: usize) -> Vec<usize> {
    let far =
        |salt: usize| (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_usize ^ salt << 7).rotate_right(29) % rows;
    let mut columns = vec![(row + rows - 1) % rows, row, (row + 1) % rows, far(1), far(2), far(3)];
    columns.sort_unstable();
    columns.dedup();
    columns
}

fn start(row: usize) -> f64 {
    (row as f64).sqrt().fract()
}

/// Returns the rows of a rank.
fn share(rank: usize, ranks: usize, rows: usize) -> Range<usize> {
    rows * rank / ranks..rows * (rank + 1) / ranks
}

/// Returns the rank that owns a row.
fn owner(row: usize, ranks: usize, rows: usize) -> usize {
    let guess = row * ranks / rows;
    (guess..ranks).find(|&rank| share(rank, ranks, rows).contains(&row)).unwrap_or(guess)
}

/// The elements that a rank needs from another rank: the rank that owns them, their first index in
/// the local window, and their indices in the owner's window.
type Need = (usize, usize, Vec<usize>);

/// Returns the needs of a rank, in ascending order of the owners, and the columns of each row as
/// local indices. The rank's own elements have the first indices, and the halo follows.
fn localise(rank: usize, ranks: usize, rows: usize) -> (Vec<Need>, Vec<Vec<usize>>) {
    let mine = share(rank, ranks, rows);
    let wanted: Vec<usize> =
        mine.clone().flat_map(|row| columns(row, rows)).filter(|c| !mine.contains(c)).collect();
    let mut halo: BTreeMap<usize, usize> = wanted.into_iter().map(|column| (column, 0)).collect();
    let mut needs: Vec<Need> = Vec::new();
    for (at, (&column, place)) in halo.iter_mut().enumerate() {
        *place = mine.len() + at;
        let from = owner(column, ranks, rows);
        if needs.last().is_none_or(|need| need.0 != from) {
            needs.push((from, *place, Vec::new()));
        }
        let last = needs.len() - 1;
        needs[last].2.push(column - share(from, ranks, rows).start);
    }
    let local = |column| if mine.contains(&column) { column - mine.start } else { halo[&column] };
    let entries = mine.clone().map(|row| columns(row, rows).into_iter().map(local).collect()).collect();
    (needs, entries)
}

/// Gets the elements of other ranks that this rank's rows need.
#[superstep]
fn fetch(x: &mut Window<f64>, needs: &[Need]) -> Result<()> {
    for (owner, first, elements) in needs {
        x.get(*first..*first + elements.len()).from(*owner, Datatype::elements(elements.iter().copied())?)?;
    }
    Ok(())
}

/// Lists the state between two iterations: the rank's own elements. The elements that the rank
/// fetches are not part of the state.
fn state(x: &mut [f64]) -> Items<'_> {
    Items::new().part("x", x)
}

/// Runs all iterations, beginning with the last snapshot if there is one. Returns the vector, or
/// `None` in processes other than rank 0's.
fn distributed(options: &Options) -> Result<Option<Vec<f64>>> {
    let (ranks, rows) = (options.job.ranks(), options.rows.get());
    let mut parts = options.job.world().collect(|world| {
        let (needs, entries) = localise(world.rank(), ranks, rows);
        let halo: usize = needs.iter().map(|need| need.2.len()).sum();
        let mine = share(world.rank(), ranks, rows);
        let mut x = world.window::<f64>(mine.len() + halo)?;
        mine.clone().zip(x.iter_mut()).for_each(|(row, value)| *value = start(row));
        let mut y = vec![0.0; mine.len()];
        let clock = Instant::now();
        let mut fetch = fetch::prepare(world, &needs)?;
        world.barrier()?;
        if world.rank() == 0 {
            println!("prepared for {ranks} ranks in {:.0?}", clock.elapsed());
        }
        let (mut snapshots, done) = options.saving.begin(world, state(&mut x[..mine.len()]))?;
        let clock = Instant::now();
        for iteration in done..options.iterations as u64 {
            fetch.replay(&mut x)?;
            for (row, value) in entries.iter().zip(&mut y) {
                *value = row.iter().map(|&at| x[at]).sum::<f64>() / row.len() as f64;
            }
            x[..mine.len()].copy_from_slice(&y);
            if let Some(snapshots) = &mut snapshots {
                snapshots.offer(iteration + 1, || state(&mut x[..mine.len()]))?;
            }
        }
        if let Some(snapshots) = &mut snapshots {
            snapshots.finish()?;
        }
        if world.rank() == 0 {
            let each = clock.elapsed() / options.iterations.max(1) as u32;
            println!("{halo} elements from {} ranks to rank 0, {each:.1?} an iteration", needs.len());
        }
        Ok(world.gather(0, &x[..mine.len()])?.map(|parts| parts.concat()))
    })?;
    Ok(parts.swap_remove(0))
}

/// Computes the same vector in plain loops.
fn serial(options: &Options) -> Vec<f64> {
    let rows = options.rows.get();
    let matrix: Vec<Vec<usize>> = (0..rows).map(|row| columns(row, rows)).collect();
    let mut x: Vec<f64> = (0..rows).map(start).collect();
    for _ in 0..options.iterations {
        x = matrix.iter().map(|row| row.iter().map(|&at| x[at]).sum::<f64>() / row.len() as f64).collect();
    }
    x
}

fn report(options: &Options) -> Result<()> {
    let Some(distributed) = distributed(options)? else { return Ok(()) };
    let (distributed, serial) = (digest(&distributed), digest(&serial(options)));
    assert_eq!(distributed, serial, "the distributed vector differs from the serial one");
    println!("equal to the serial vector bit for bit\ndigest {distributed}");
    Ok(())
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    let options = Options::parse();
    options.job.start()?;
    report(&options)
}

/// Prints the digest for these options. Tests of jobs call it.
pub fn with(words: &[&str]) -> Result<()> {
    let options = Options::try_parse_from([&["sparse"], words].concat())
        .map_err(|error| Error::new(ErrorClass::Arg, error.to_string()))?;
    options.job.start()?;
    report(&options)
}

/// Runs small cases as a test, some with ranks that have no rows.
pub fn check() -> Result<()> {
    for (ranks, rows) in [("1", "50"), ("2", "3"), ("4", "1000"), ("5", "3")] {
        report(&Options::parse_from(["sparse", "-n", ranks, "--rows", rows, "--iterations", "7"]))?;
    }
    Ok(())
}
