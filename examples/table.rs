//! A distributed hash table. All ranks insert keys at the same time, a million keys in total. The
//! rank that owns a slot makes no call for an insertion.
//!
//! Each rank has an equal share of the slots. The search for a free slot begins at the hash of the
//! key. A compare-and-swap inserts the key into the first free slot, and an accumulate counts the
//! key. Each rank locks all parts and flushes a batch of operations at a time. If ranks exchange
//! messages, the operations of a batch on one rank are therefore sent in one message. In the end
//! the table equals a `HashMap` that a single rank has filled.
//!
//! `cargo run --release --example table -- -n 4`; `--transport shm` runs the ranks as processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::prelude::*;
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::Job;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Count keys in a hash table that is distributed over all ranks
#[derive(Parser)]
#[command(after_help = "Example:\n  table -n 8 --keys 100000 --batch 256")]
struct Options {
    #[command(flatten)]
    job: Job,
    /// The number of keys that are inserted, some of them several times
    #[arg(long, default_value = "1000000")]
    keys: u64,
    /// The number of operations that are flushed at once
    #[arg(long, default_value = "1024")]
    batch: std::num::NonZeroUsize,
}

/// Returns key number `number`. No key is 0, since 0 marks a free slot. Each key occurs twice on
/// average.
fn key(number: u64, keys: u64) -> u64 {
    mix(mix(number) % (keys / 2).max(1)) | 1
}

fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// The table: keys and counts, by slot.
struct Slots {
    keys: LockWindow<u64>,
    counts: LockWindow<u64>,
    each: usize,
    all: usize,
}

/// Inserts this rank's share of the keys.
fn insert(world: &World, slots: &Slots, options: &Options) -> Result<()> {
    let (keys, counts) = (slots.keys.lock_all()?, slots.counts.lock_all()?);
    let mut mine = (world.rank() as u64..options.keys).step_by(world.size()).map(|number| {
        let key = key(number, options.keys);
        (key, mix(key) as usize % slots.all)
    });
    // The keys that have no slot yet, each with the slot to try next.
    let mut pending: Vec<(u64, usize)> = Vec::new();
    loop {
        let room = options.batch.get() - pending.len();
        pending.extend(mine.by_ref().take(room));
        if pending.is_empty() {
            break;
        }
        let mut tickets = Vec::with_capacity(pending.len());
        for &(key, slot) in &pending {
            tickets.push(keys.on(slot / slots.each)?.compare_and_swap(0, key, slot % slots.each)?);
        }
        keys.flush()?;
        let mut next = Vec::new();
        for ((key, slot), ticket) in pending.into_iter().zip(tickets) {
            let found = ticket.take()?[0];
            if found == 0 || found == key {
                counts.on(slot / slots.each)?.accumulate([1], Op::Sum, slot % slots.each)?;
            } else {
                next.push((key, (slot + 1) % slots.all));
            }
        }
        counts.flush()?;
        pending = next;
    }
    keys.unlock()?;
    counts.unlock()
}

/// The keys and counts of all ranks, and the time of the slowest rank.
type Filled = (Vec<u64>, Vec<u64>, Duration);

/// Fills the table. Returns `None` in processes other than rank 0's.
fn table(options: &Options) -> Result<Option<Filled>> {
    let mut parts = options.job.world().collect(|world| {
        let each = (options.keys as usize).div_ceil(world.size()).max(1);
        let slots = Slots {
            keys: world.lock_window(each)?,
            counts: world.lock_window(each)?,
            each,
            all: each * world.size(),
        };
        let clock = Instant::now();
        insert(world, &slots, options)?;
        let (keys, counts) = (slots.keys.into_window()?, slots.counts.into_window()?);
        let slowest = world.allreduce_one(clock.elapsed().as_nanos() as u64, Op::Max)?;
        let (keys, counts) = (world.gather(0, &keys)?, world.gather(0, &counts)?);
        Ok(keys
            .zip(counts)
            .map(|(keys, counts)| (keys.concat(), counts.concat(), Duration::from_nanos(slowest))))
    })?;
    Ok(parts.swap_remove(0))
}

fn report(options: &Options) -> Result<()> {
    let Some((keys, counts, taken)) = table(options)? else { return Ok(()) };
    let mut serial: HashMap<u64, u64> = HashMap::new();
    for number in 0..options.keys {
        *serial.entry(key(number, options.keys)).or_default() += 1;
    }
    let mut distinct = 0;
    for (key, count) in keys.into_iter().zip(counts).filter(|(key, _)| *key != 0) {
        assert_eq!(serial.get(&key), Some(&count), "the count of key {key:#x}");
        distinct += 1;
    }
    assert_eq!(distinct, serial.len(), "each key has one slot");
    let each = taken.as_secs_f64() * 1e9 / options.keys.max(1) as f64;
    println!(
        "{} keys, {distinct} of them distinct, on {} ranks: {each:.0} ns each",
        options.keys,
        options.job.ranks()
    );
    println!("the table equals a HashMap of one rank alone");
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
    for (ranks, keys, batch) in [("1", "1000", "10"), ("4", "20000", "256"), ("5", "3", "1"), ("3", "0", "4")]
    {
        report(&Options::parse_from(["table", "-n", ranks, "--keys", keys, "--batch", batch]))?;
    }
    Ok(())
}
