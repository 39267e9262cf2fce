//! Measures the model of this machine, and prints it as the text of a file. If `FENCEPOST_MACHINE`
//! names that file, `auto`, collectives and `Block::advise` use the model.
//!
//! `cargo run --release --example measure -- -n 2 >machine.txt`; `--transport shm` or `tcp` runs
//! the ranks as processes. To get the figures of both memory and the network in one file, measure
//! on hosts with several ranks each: `fencepost run --hosts a:2,b:2 measure`

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::prelude::*;
use fencepost::{Machine, Nanos, ranks};
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::Job;

/// Measure what communication costs, and print it as a machine model
#[derive(Parser)]
#[command(after_help = "Example:
  measure -n 2 --transport tcp >machine.txt
  FENCEPOST_MACHINE=machine.txt FENCEPOST_RANKS=2 FENCEPOST_TRANSPORT=tcp ./program")]
struct Options {
    #[command(flatten)]
    job: Job,
}

/// Measures, and returns the model. Also returns the number of steps between exchanges that the
/// model advises for a cube with 64 cells on each side, or `None` if the cube cannot be cut into
/// enough blocks.
fn measure(job: &Job) -> Result<(Machine, Option<usize>)> {
    let mut found = job.world().collect(|world| {
        let machine = world.measure_machine()?;
        let Ok(block) = Block::new(world, [64; 3]).and_then(|block| block.halo(1)) else {
            return Ok((machine, None));
        };
        let advice = block.advise(Nanos(0.5), 8, 16, world.placement(), &machine)?;
        Ok((machine, Some(advice.steps())))
    })?;
    Ok(found.swap_remove(0))
}

fn report(options: &Options) -> Result<()> {
    let (machine, steps) = measure(&options.job)?;
    if options.job.reports() {
        println!("# in nanoseconds, and bytes of caches, measured between {} ranks", options.job.ranks());
        if let Some(steps) = steps {
            println!("# seven points in 64 cubed, 0.5 ns each: {steps} steps to an exchange");
        }
        print!("{machine}");
    }
    Ok(())
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    let options = Options::parse();
    options.job.start()?;
    report(&options)
}

/// Runs small cases as a test. A world must accept the printed text.
pub fn check() -> Result<()> {
    for number in ["1", "3"] {
        let options = Options::parse_from(["measure", "-n", number]);
        let (machine, steps) = measure(&options.job)?;
        assert!(steps.is_some_and(|steps| (1..=32).contains(&steps)));
        let read: Machine = format!("# a comment\n{machine}").parse()?;
        assert_eq!(read, machine);
        ranks(2).machine(read).run(World::barrier)?;
        report(&options)?;
    }
    Ok(())
}
