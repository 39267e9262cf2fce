//! A sample sort of ten million keys, with messages.
//!
//! Each rank sorts its own keys and sends a sample of them to rank 0. Rank 0 receives the samples
//! in the order in which they arrive, from any rank. It sends all ranks the keys that divide the
//! result into parts of about equal size. Then, in each round, a rank and a partner exchange the
//! keys that belong to each other's parts. Finally each rank sorts its part. Rank 0 receives all
//! parts in order, and compares them with all keys sorted by `sort_unstable`.
//!
//! `cargo run --release --example sort -- -n 4`; `--transport shm` runs the ranks as processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::Any;
use fencepost::prelude::*;
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::Job;
use std::time::{Duration, Instant};

/// Sort keys that are distributed over all ranks
#[derive(Parser)]
#[command(after_help = "Example:\n  sort -n 8 --keys 100000 --samples 64")]
struct Options {
    #[command(flatten)]
    job: Job,
    /// The number of keys
    #[arg(long, default_value = "10000000")]
    keys: usize,
    /// The number of keys that each rank sends as a sample
    #[arg(long, default_value = "256")]
    samples: usize,
}

/// The tags of messages.
const SAMPLE: u32 = 0;
const DIVIDERS: u32 = 1;
const COUNT: u32 = 2;
const KEYS: u32 = 3;
const PART: u32 = 4;

/// Returns key number `number`. One key in four occurs more than once.
fn key(number: usize) -> u64 {
    let number = if number.is_multiple_of(4) { number / 64 } else { number };
    let mut bits = (number as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^ bits >> 27
}

/// Returns `count` of these sorted keys at equal distances, or all keys if they are fewer than
/// `count`.
fn spread(keys: &[u64], count: usize) -> Vec<u64> {
    let count = count.min(keys.len());
    (0..count).map(|i| keys[i * keys.len() / count]).collect()
}

/// Returns the keys that divide the result, which are estimated from the samples of all ranks. They
/// are the first keys of all parts except the first part.
fn dividers(world: &World, keys: &[u64], samples: usize) -> Result<Vec<u64>> {
    let mut sample = spread(keys, samples);
    if world.rank() > 0 {
        world.message(0, SAMPLE).send(&sample)?;
        return Ok(world.recv(0, DIVIDERS)?.0);
    }
    for _ in 1..world.size() {
        sample.extend(world.recv::<u64>(Any, SAMPLE)?.0);
    }
    sample.sort_unstable();
    let mut dividers = spread(&sample, world.size());
    // If there are fewer keys than ranks, the last parts are empty.
    dividers.resize(world.size(), u64::MAX);
    dividers.remove(0);
    (1..world.size()).try_for_each(|rank| world.message(rank, DIVIDERS).send(&dividers))?;
    Ok(dividers)
}

/// Sorts the keys of all ranks, and returns this rank's part of the result.
fn sort(world: &World, mut keys: Vec<u64>, samples: usize) -> Result<Vec<u64>> {
    let (rank, size) = (world.rank(), world.size());
    keys.sort_unstable();
    let dividers = dividers(world, &keys, samples)?;
    let first = |part: usize| match part.checked_sub(1).map(|before| dividers.get(before)) {
        None => 0,
        Some(None) => keys.len(),
        Some(Some(divider)) => keys.partition_point(|key| key < divider),
    };
    let of = |part: usize| &keys[first(part)..first(part + 1)];
    let mut part = of(rank).to_vec();
    for round in 1..size {
        let (to, from) = ((rank + round) % size, (rank + size - round) % size);
        let (own, mut count) = (of(to), [0]);
        world.sendrecv(to, COUNT, [own.len()], from, COUNT, &mut count)?;
        let before = part.len();
        part.resize(before + count[0], 0);
        world.sendrecv(to, KEYS, own, from, KEYS, &mut part[before..])?;
    }
    part.sort_unstable();
    Ok(part)
}

/// Returns all keys in order, and the time of the slowest rank. Returns `None` in processes other
/// than rank 0's.
fn sorted(options: &Options) -> Result<Option<(Vec<u64>, Duration)>> {
    let mut all = options.job.world().collect(|world| {
        let keys = (world.rank()..options.keys).step_by(world.size()).map(key).collect();
        world.barrier()?;
        let clock = Instant::now();
        let mut part = sort(world, keys, options.samples)?;
        let slowest = world.allreduce_one(clock.elapsed().as_nanos() as u64, Op::Max)?;
        if world.rank() > 0 {
            world.message(0, PART).send(&part)?;
            return Ok(None);
        }
        for rank in 1..world.size() {
            part.extend(world.recv::<u64>(rank, PART)?.0);
        }
        Ok(Some((part, Duration::from_nanos(slowest))))
    })?;
    Ok(all.swap_remove(0))
}

fn report(options: &Options) -> Result<()> {
    let Some((sorted, taken)) = sorted(options)? else { return Ok(()) };
    let mut keys: Vec<u64> = (0..options.keys).map(key).collect();
    let clock = Instant::now();
    keys.sort_unstable();
    let alone = clock.elapsed().as_secs_f64();
    assert!(sorted == keys, "the parts are not the sorted keys");
    let ratio = alone / taken.as_secs_f64().max(1e-9);
    println!("{} keys on {} ranks: {:.3} s", options.keys, options.job.ranks(), taken.as_secs_f64());
    println!("equal to sort_unstable by one rank alone, which takes {alone:.3} s: {ratio:.2} times as fast");
    Ok(())
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    let options = Options::parse();
    options.job.start()?;
    report(&options)
}

/// Runs small cases as a test, some with fewer keys than ranks.
pub fn check() -> Result<()> {
    for (ranks, keys, samples) in
        [("1", "1000", "10"), ("4", "200000", "64"), ("5", "3", "1"), ("3", "0", "4"), ("2", "100", "1000")]
    {
        report(&Options::parse_from(["sort", "-n", ranks, "--keys", keys, "--samples", samples]))?;
    }
    Ok(())
}
