//! Work stealing: each rank has a queue of tasks of very different lengths, and takes tasks from
//! other queues when its own queue is empty.
//!
//! A queue is a number that counts how many of the queue's tasks have been taken. A rank takes
//! tasks by one fetch-and-add on this number, under a shared lock. The rank that owns the queue
//! continues to compute and need not do anything. Each task is done once, and the results equal
//! those of a single rank.
//!
//! `cargo run --release --example queue -- -n 4`; `--transport shm` runs the ranks as processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::prelude::*;
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::Job;

/// Find the longest Collatz chains of many numbers, with ranks that steal work from each other
#[derive(Parser)]
#[command(after_help = "Example:\n  queue -n 8 --tasks 100000 --take 32")]
struct Options {
    #[command(flatten)]
    job: Job,
    /// The number of tasks
    #[arg(long, default_value = "200000")]
    tasks: u64,
    /// The number of tasks that are taken at once
    #[arg(long, default_value = "64")]
    take: std::num::NonZeroU64,
}

/// Does the work of a task: counts the steps from a number to 1. The tasks of the last ranks take
/// longer.
fn steps(task: u64) -> u64 {
    let (mut number, mut steps) = (task.wrapping_mul(task) | 1, 0);
    while number > 1 {
        number = if number % 2 == 0 { number / 2 } else { number.wrapping_mul(3).wrapping_add(1) };
        steps += 1;
        if steps == 10_000 {
            break;
        }
    }
    steps
}

/// The work that one rank has done.
struct Done {
    tasks: u64,
    stolen: u64,
    steps: u64,
}

/// Takes tasks until all queues are empty.
fn work(world: &World, options: &Options) -> Result<Done> {
    let (me, size) = (world.rank(), world.size());
    let cut = |rank: usize| (u128::from(options.tasks) * rank as u128 / size as u128) as u64;
    let queue = world.lock_window::<u64>(1)?;
    let mut done = Done { tasks: 0, stolen: 0, steps: 0 };
    for victim in (me..size).chain(0..me) {
        let (begin, end) = (cut(victim), cut(victim + 1));
        loop {
            let lock = queue.lock(victim, LockType::Shared)?;
            let taken = lock.fetch_and(Op::Sum, options.take.get(), 0)?;
            lock.unlock()?;
            let first = begin.saturating_add(taken.take()?[0]);
            if first >= end {
                break;
            }
            let tasks = first..end.min(first + options.take.get());
            done.tasks += tasks.end - tasks.start;
            if victim != me {
                done.stolen += tasks.end - tasks.start;
            }
            done.steps += tasks.map(steps).sum::<u64>();
        }
    }
    // This call returns when all ranks have finished with all queues.
    queue.into_window()?;
    Ok(done)
}

fn report(options: &Options) -> Result<()> {
    let mut all = options.job.world().collect(|world| {
        let done = work(world, options)?;
        let lists = world.gather(0, &[done.tasks, done.stolen, done.steps])?;
        Ok(lists.map(|lists| lists.concat()))
    })?;
    let Some(all) = all.swap_remove(0) else { return Ok(()) };
    let of = |which: usize| all.iter().skip(which).step_by(3).copied();
    assert_eq!(of(0).sum::<u64>(), options.tasks, "each task is done once");
    assert_eq!(
        of(2).sum::<u64>(),
        (0..options.tasks).map(steps).sum::<u64>(),
        "the result of one rank alone"
    );
    for (rank, (tasks, stolen)) in of(0).zip(of(1)).enumerate() {
        println!("rank {rank} did {tasks} tasks, {stolen} of them from other queues");
    }
    println!("{} steps in all, as on one rank alone", of(2).sum::<u64>());
    Ok(())
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    let options = Options::parse();
    options.job.start()?;
    report(&options)
}

/// Runs small cases as a test, some with fewer tasks than ranks.
pub fn check() -> Result<()> {
    for (ranks, tasks, take) in [("1", "100", "7"), ("4", "5000", "16"), ("5", "3", "1"), ("3", "0", "5")] {
        report(&Options::parse_from(["queue", "-n", ranks, "--tasks", tasks, "--take", take]))?;
    }
    Ok(())
}
