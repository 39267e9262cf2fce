//! Five wrong programs, and the errors that a check reports for them. `FENCEPOST_CHECK=conflicts`
//! or `Ranks::check` turns the check on.
//!
//! Without a check, each program runs to its end and always gives the same bits, since conflicting
//! operations have a defined meaning. But the result is not the intended one. With a check, the
//! fence applies no operation, and its error names both lines. If an operation conflicts with an
//! earlier operation of the same rank, the later call returns an error, as in the program with two
//! operators.
//!
//! `cargo run --release --example races`; `--transport shm` runs the ranks as processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::prelude::*;
use fencepost::{Check, Ranks};
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::Job;

/// Run five wrong programs, and print the errors that the check reports
#[derive(Parser)]
#[command(after_help = "Example:\n  races --transport tcp")]
struct Options {
    #[command(flatten)]
    job: Job,
}

/// Puts rows and columns, including their ends, into the halo. So two ranks write the same corner
/// of the halo.
fn corners(world: &World) -> Result<()> {
    let (me, size) = (world.rank(), world.size());
    let mut u = world.window::<f64>(6 * 6)?;
    let column = |at: i64| Datatype::nest(at, &[(6, 6)], 1);
    u.put(24..30).to((me + 1) % size, 0..6)?;
    u.put(column(4)?).to((me + size - 1) % size, column(0)?)?;
    u.fence()
}

/// On each rank, takes a number from a common counter, and puts back the next number. So two ranks
/// may get the same number.
fn counter(world: &World) -> Result<()> {
    let mut next = world.window::<u64>(1)?;
    let mine = next.fetch(0, 0)?;
    next.put([1 + world.rank() as u64]).to(0, 0)?;
    next.fence()?;
    mine.take().map(drop)
}

/// Transposes a matrix in place. Blocks arrive in the elements from which blocks are sent.
fn transpose(world: &World) -> Result<()> {
    let mut a = world.window::<u32>(world.size())?;
    for to in 0..world.size() {
        a.put(to..to + 1).to(to, world.rank())?;
    }
    a.fence()
}

/// Mistakes a barrier for the end of an epoch.
fn barrier(world: &World) -> Result<()> {
    let mut u = world.window::<i64>(1)?;
    if world.rank() == 0 {
        u.put([42]).to(1, 0)?;
    }
    world.barrier()?;
    let answer = if world.rank() > 0 { Some(u.fetch(1, 0)?) } else { None };
    u.fence()?;
    answer.map_or(Ok(()), |answer| answer.take().map(drop))
}

/// Computes the sum and the maximum of all values in one element.
fn operators(world: &World) -> Result<()> {
    let mut u = world.window::<u64>(2)?;
    let value = world.rank() as u64;
    u.accumulate([value], Op::Sum).to(0, 0)?;
    u.accumulate([value], Op::Max).to(0, 0)?;
    u.fence()
}

type Program = fn(&World) -> Result<()>;

const PROGRAMS: [(&str, Program); 5] = [
    ("corners of a halo", corners),
    ("a counter", counter),
    ("a transpose in place", transpose),
    ("a barrier for a fence", barrier),
    ("two operators", operators),
];

/// Runs a program without and with a check. Returns the error that the check reports to rank 0, or
/// to the rank of this process.
fn told(world: &Ranks, program: Program) -> Result<String> {
    world.clone().check(Check::Off).run(program)?;
    let ends = world.clone().check(Check::Conflicts).collect(|world| Ok(program(world).err()))?;
    let error = ends.into_iter().next().flatten().expect("a fence with a conflict fails on every rank");
    assert!(matches!(error.class(), ErrorClass::RmaConflict | ErrorClass::RmaSync), "{error}");
    Ok(error.message().to_owned())
}

/// Runs all programs as a test, on ranks that are threads.
#[cfg(test)]
pub(crate) fn check() -> Result<()> {
    for (name, program) in PROGRAMS {
        let told = told(&fencepost::ranks(4), program)?;
        assert!(told.matches("races.rs:").count() >= 2, "{name}: {told}");
    }
    Ok(())
}

fn main() -> Result<()> {
    let Options { job } = Options::parse();
    job.start()?;
    for (name, program) in PROGRAMS {
        let told = told(&job.world(), program)?;
        if job.reports() {
            println!("{name}: {told}\n");
        }
    }
    Ok(())
}
