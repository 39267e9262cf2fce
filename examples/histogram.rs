//! A histogram that is distributed over all ranks. Ten million weights are added to random buckets.
//!
//! The fence of each epoch counts, sends and applies the accumulates of the epoch, with one message
//! from each rank to each other rank. The result equals a serial histogram bit for bit. Then every
//! weight is subtracted again, and all buckets are zero.
//!
//! `cargo run --release --example histogram -- -n 4`; `--transport shm` or `tcp` runs the ranks as
//! processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::prelude::*;
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::Job;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Sum weights into the buckets of a distributed table, check the result, and undo it
#[derive(Parser)]
#[command(after_help = "Example:\n  histogram -n 8 --updates 1000000 --buckets 65536")]
struct Options {
    #[command(flatten)]
    job: Job,
    /// The number of weights
    #[arg(long, default_value = "10000000")]
    updates: u64,
    /// The number of buckets
    #[arg(long, default_value = "1048576")]
    buckets: NonZeroUsize,
}

/// The number of accumulates of each rank in an epoch.
const EPOCH: usize = 100_000;

/// Returns the bucket and the weight of an update. Both are a hash of the update's number, so any
/// rank can compute any update.
fn draw(update: u64, buckets: usize) -> (usize, u64) {
    let mut bits = update.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    ((bits % buckets as u64) as usize, bits >> 7)
}

/// Divides the range `0..things` into `parts` parts, and returns part number `part`.
fn share(things: u64, part: usize, parts: usize) -> Range<u64> {
    let cut = |part: usize| (u128::from(things) * part as u128 / parts as u128) as u64;
    cut(part)..cut(part + 1)
}

/// Adds this rank's share of the updates to the table, or subtracts it if `out`. Returns the time.
fn pour(world: &World, table: &mut Window<u64>, options: &Options, out: bool) -> Result<Duration> {
    let (size, buckets) = (world.size(), options.buckets.get());
    let each = buckets.div_ceil(size);
    let mine = share(options.updates, world.rank(), size);
    // Every rank fences as often as the rank with the largest share.
    let epochs = options.updates.div_ceil(size as u64).div_ceil(EPOCH as u64);
    let mut updates = mine.clone();
    world.barrier()?;
    let clock = Instant::now();
    for _ in 0..epochs {
        for update in updates.by_ref().take(EPOCH) {
            let (bucket, weight) = draw(update, buckets);
            let weight = if out { weight.wrapping_neg() } else { weight };
            table.accumulate([weight], Op::Sum).to(bucket / each, bucket % each)?;
        }
        table.fence()?;
    }
    Ok(clock.elapsed())
}

/// Returns the table after all updates, and the time of the slowest rank. Returns `None` in
/// processes other than rank 0's.
fn histogram(options: &Options) -> Result<Option<(Vec<u64>, Duration)>> {
    let mut parts: Vec<_> = options.job.world().collect(|world| {
        let each = options.buckets.get().div_ceil(world.size());
        let mut table = world.window::<u64>(each)?;
        let time = pour(world, &mut table, options, false)?;
        let full = world.gather(0, &table)?;
        pour(world, &mut table, options, true)?;
        assert!(table.iter().all(|&sum| sum == 0), "rank {}: some buckets are not zero", world.rank());
        let slowest = world.allreduce_one(time.as_nanos() as u64, Op::Max)?;
        Ok(full.map(|full| (full.concat(), Duration::from_nanos(slowest))))
    })?;
    let Some((mut table, slowest)) = parts.swap_remove(0) else { return Ok(None) };
    table.truncate(options.buckets.get());
    Ok(Some((table, slowest)))
}

/// Computes the same table in a plain loop.
fn serial(options: &Options) -> Vec<u64> {
    let mut table = vec![0_u64; options.buckets.get()];
    for update in 0..options.updates {
        let (bucket, weight) = draw(update, options.buckets.get());
        table[bucket] = table[bucket].wrapping_add(weight);
    }
    table
}

fn report(options: &Options) -> Result<()> {
    let Some((table, taken)) = histogram(options)? else { return Ok(()) };
    assert!(table == serial(options), "the distributed table differs from the serial one");
    let each = taken.as_secs_f64() * 1e9 / options.updates.max(1) as f64;
    println!("{} accumulates on {} ranks: {each:.1} ns each", options.updates, options.job.ranks());
    println!(
        "equal to the serial table bit for bit; after the weights are subtracted, all {} buckets are zero",
        options.buckets
    );
    Ok(())
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    let options = Options::parse();
    options.job.start()?;
    report(&options)
}

/// Runs small cases as a test, some with fewer updates and fewer buckets than ranks.
pub fn check() -> Result<()> {
    for (ranks, updates, buckets) in
        [("1", "1000", "10"), ("3", "250000", "1000"), ("5", "3", "2"), ("4", "0", "1")]
    {
        let words = ["histogram", "-n", ranks, "--updates", updates, "--buckets", buckets];
        report(&Options::parse_from(words))?;
    }
    Ok(())
}
