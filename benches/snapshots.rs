//! What do snapshots cost a program, and the disk?
//!
//! Each figure is paired with its limit in the same round. An offer that is due, but is skipped
//! because a snapshot is still being written, is compared with a reduction of eight bytes. The time
//! for which a snapshot delays ranks is compared with a copy of the state. A step during background
//! writing is compared with a step without writing. Writing a snapshot is compared with plain
//! writes of the same size and one sync, and restoring it with reading the same files. An offer
//! that is not due is compared with nothing.

#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use fencepost::grid::Row;
use fencepost::prelude::*;
use fencepost::snapshots::{Items, Snapshots};
use fencepost::{Check, TransportKind, ranks};
use fencepost_benches::contest::short;
use fencepost_examples_support::pin;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn nanos(since: Instant) -> f64 {
    since.elapsed().as_nanos() as f64
}

/// Runs a program on `size` ranks, and returns what rank 0 has measured.
fn measured(size: usize, program: impl Fn(&World) -> Result<Vec<f64>> + Sync) -> Vec<f64> {
    let world = ranks(size).check(Check::Off).transport(TransportKind::Local);
    let mut values = world
        .collect(|world| {
            pin(world.rank());
            program(world)
        })
        .expect("the world runs");
    values.swap_remove(0)
}

/// Returns the time of an offer that is not due, in nanoseconds.
fn not_due(folder: &Path) -> f64 {
    let offers = if short() { 10_000 } else { 5_000_000 };
    let times = measured(2, |world| {
        let mut state = 0_u64;
        let mut snapshots = Snapshots::new(world, folder)?.every(Duration::from_secs(3600));
        let mut step = 0;
        let mut round = |snapshots: &mut Snapshots<'_>, count: u64| -> Result<f64> {
            let clock = Instant::now();
            for _ in 0..count {
                step += 1;
                snapshots.offer(black_box(step), || Items::new().value("state", &mut state))?;
            }
            Ok(nanos(clock) / count as f64)
        };
        round(&mut snapshots, offers)?;
        Ok(vec![round(&mut snapshots, offers)?])
    });
    times[0]
}

/// Returns the time of an offer that is due but skipped, and the time of a reduction, in
/// nanoseconds. An offer is skipped while the previous snapshot is being written. Offers and
/// reductions are timed in turn.
fn skipped(folder: &Path) -> [f64; 2] {
    let cells = if short() { 1 << 16 } else { 1 << 24 };
    let times = measured(2, |world| {
        let mut state = vec![1.0_f64; cells];
        let mut snapshots = Snapshots::new(world, folder)?.every(1);
        let (mut step, mut offers, mut reductions) = (1, Vec::new(), Vec::new());
        snapshots.offer(step, || Items::new().part("state", &mut state))?;
        // Writing the first snapshot takes a while. Offers are skipped until it is written.
        for _ in 0..if short() { 10 } else { 2_000 } {
            step += 1;
            world.barrier()?;
            let clock = Instant::now();
            snapshots.offer(step, || Items::new().part("state", &mut state))?;
            offers.push(nanos(clock));
            world.barrier()?;
            let clock = Instant::now();
            black_box(world.allreduce_one(step, Op::Bor)?);
            reductions.push(nanos(clock));
        }
        snapshots.finish()?;
        Ok(vec![median(offers), median(reductions)])
    });
    [times[0], times[1]]
}

/// Returns how long a snapshot delays a rank that saves `cells` elements, in nanoseconds, and how
/// long it takes to copy as many elements.
fn held(folder: &Path, cells: usize) -> [f64; 2] {
    let times = measured(2, |world| {
        let mut state = vec![1.0_f64; cells];
        let mut copy = vec![0.0_f64; cells];
        let mut snapshots = Snapshots::new(world, folder)?.every(1);
        let (mut held, mut copied) = (Vec::new(), Vec::new());
        for step in 0..if short() { 2 } else { 40 } {
            state.fill(step as f64);
            world.barrier()?;
            let clock = Instant::now();
            copy.copy_from_slice(black_box(&state));
            black_box(&copy);
            copied.push(nanos(clock));
            state.fill(step as f64 + 0.5);
            world.barrier()?;
            let clock = Instant::now();
            snapshots.offer(step, || Items::new().part("state", &mut state))?;
            held.push(nanos(clock));
            snapshots.finish()?;
        }
        // The first value of each list is dropped, because it includes the time in which the system
        // provides memory.
        Ok(vec![median(held.split_off(1)), median(copied.split_off(1))])
    });
    [times[0], times[1]]
}

fn relax(row: &Row<2>, u: &[f64], next: &mut [f64]) {
    let [up, down, left, right] = [row.up(u), row.down(u), row.left(u), row.right(u)];
    let next = row.of_mut(next);
    for j in 0..row.len() {
        next[j] = 0.25 * ((up[j] + down[j]) + (left[j] + right[j]));
    }
}

/// Returns how long a step of one rank takes while the background thread writes, and while it does
/// not, in nanoseconds.
fn during(folder: &Path) -> [f64; 2] {
    let [rows, columns] = if short() { [86, 100] } else { [1720, 2015] };
    let times = measured(1, |world| {
        let block = Block::new(world, [rows, columns])?.halo(1)?;
        let (mut u, mut next) = (vec![1.0; block.len()], vec![1.0; block.len()]);
        let mut snapshots = Snapshots::new(world, folder)?.every(1);
        let (mut writing, mut alone, mut number) = (Vec::new(), Vec::new(), 0);
        let mut steps = |count: usize, times: &mut Vec<f64>, u: &mut Vec<f64>| {
            for _ in 0..count {
                let clock = Instant::now();
                for row in block.rows_inside(1) {
                    relax(&row, u, &mut next);
                }
                std::mem::swap(u, &mut next);
                times.push(nanos(clock));
            }
        };
        for _ in 0..if short() { 1 } else { 30 } {
            number += 1;
            snapshots.offer(number, || Items::new().block("u", &block, &mut u))?;
            steps(3, &mut writing, &mut u);
            snapshots.finish()?;
            steps(3, &mut alone, &mut u);
        }
        Ok(vec![median(writing), median(alone)])
    });
    [times[0], times[1]]
}

/// The bytes that a plain program writes or reads at a time.
const PIECE: usize = 1 << 20;

/// Returns the rate at which two ranks write a snapshot, and the rate of plain writes with one
/// sync, in bytes per nanosecond.
fn writing(folder: &Path, cells: usize) -> [f64; 2] {
    let bytes = (2 * cells * size_of::<f64>()) as f64;
    let piece = vec![1_u8; PIECE];
    let mut plain = Vec::new();
    let mut ours = Vec::new();
    for round in 0..if short() { 1 } else { 5 } {
        let clock = Instant::now();
        let path = folder.join("plain");
        let mut file = File::create(&path).expect("a file");
        for _ in 0..2 * cells * size_of::<f64>() / PIECE {
            file.write_all(&piece).expect("space");
        }
        file.sync_all().expect("a sync");
        plain.push(bytes / nanos(clock));
        fs::remove_file(&path).expect("it is there");
        ours.extend(measured(2, |world| {
            let block = Block::new(world, [2 * cells])?;
            let mut state = vec![round as f64; block.len()];
            let mut snapshots = Snapshots::new(world, folder.join("ours"))?.every(1).keep(1);
            snapshots.offer(2 * round + 1, || Items::new().block("state", &block, &mut state))?;
            snapshots.finish()?;
            // [`held`] measures the copy. Here the threads write the copy, and rank 0 writes the
            // manifest.
            snapshots.offer(2 * round + 2, || Items::new().block("state", &block, &mut state))?;
            let clock = Instant::now();
            snapshots.finish()?;
            Ok(vec![bytes / nanos(clock)])
        }));
    }
    [median(ours), median(plain)]
}

/// Returns how long two ranks take to restore a snapshot, and two threads to read its file, in
/// nanoseconds.
fn restoring(folder: &Path, cells: usize) -> [f64; 2] {
    let folder = folder.join("ours");
    let last = fs::read_dir(&folder).expect("snapshots").flatten().map(|entry| entry.path());
    let last = last.filter(|path| path.is_dir()).max().expect("a snapshot");
    let (mut read, mut restored) = (Vec::new(), Vec::new());
    for _ in 0..if short() { 1 } else { 9 } {
        read.extend(measured(2, |world| {
            let mut state = vec![0_u8; cells * size_of::<f64>()];
            world.barrier()?;
            let clock = Instant::now();
            let file = File::open(last.join("state.npy"))?;
            let mut file = file;
            std::io::Seek::seek(
                &mut file,
                std::io::SeekFrom::Start(128 + (world.rank() * state.len()) as u64),
            )?;
            file.read_exact(&mut state)?;
            world.barrier()?;
            Ok(vec![nanos(clock)])
        }));
        restored.extend(measured(2, |world| {
            let block = Block::new(world, [2 * cells])?;
            let mut state = vec![0.0; block.len()];
            let mut snapshots = Snapshots::new(world, &folder)?;
            world.barrier()?;
            let clock = Instant::now();
            snapshots.restore(Items::new().block("state", &block, &mut state))?;
            Ok(vec![nanos(clock)])
        }));
    }
    [median(restored), median(read)]
}

fn main() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let at = |name: &str| folder.path().join(name);
    println!("an offer that is not due: {:.1} ns (20)", not_due(&at("not_due")));
    let [offer, reduction] = skipped(&at("skipped"));
    println!(
        "one that is due and skipped: {offer:.0} ns, {:.2} of a reduction of 8 bytes (1.2)",
        offer / reduction
    );
    for bytes in if short() { vec![1 << 16] } else { vec![1 << 16, 1 << 20, 32 << 20] } {
        let [ours, copy] = held(&at(&format!("held-{bytes}")), bytes / size_of::<f64>());
        println!(
            "a snapshot of {bytes} bytes holds a rank up for {:.1} us, {:.2} of a copy (1.3)",
            ours / 1e3,
            ours / copy
        );
    }
    let [writing_step, step] = during(&at("during"));
    println!(
        "a step during writing: {:.0} us, {:.2} of one alone (1.1)",
        writing_step / 1e3,
        writing_step / step
    );
    let cells = if short() { 1 << 17 } else { 1 << 24 };
    let [ours, plain] = writing(folder.path(), cells);
    println!(
        "writing {} MB: {ours:.2} GB/s, {:.2} of plain writes and a sync (0.8)",
        (cells * 16) >> 20,
        ours / plain
    );
    let [ours, plain] = restoring(folder.path(), cells);
    println!("restoring them: {:.1} ms, {:.2} of reading (1.3)", ours / 1e6, ours / plain);
}
