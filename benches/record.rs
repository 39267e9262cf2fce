//! What do a profile and a trace add to a prepared superstep?
//!
//! The same superstep runs without a profile, with a profile, and with a profile and a trace, in
//! turn. On one rank, the superstep copies elements and waits for no other rank. On two ranks, each
//! run also sends a frame in either direction.

#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use fencepost::prelude::*;
use fencepost::{Check, Ranks, TransportKind, ranks};
use fencepost_benches::contest::short;
use fencepost_examples_support::pin;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

/// Puts 8 elements into the next rank's part.
#[superstep]
fn pass(u: &mut Window<f64>, next: usize) -> Result<()> {
    u.put(0..8).to(next, 8..16)
}

/// Returns how long a run of the superstep takes on the slowest rank, in nanoseconds.
fn timed(world: Ranks, runs: u32) -> f64 {
    let times = world.check(Check::Off).transport(TransportKind::Local).collect(|world| {
        pin(world.rank());
        let mut u = world.window::<f64>(16)?;
        let mut exchange = pass::prepare(world, (world.rank() + 1) % world.size())?;
        world.barrier()?;
        let clock = Instant::now();
        for run in 0..runs {
            u[0] = f64::from(run);
            exchange.replay(&mut u)?;
            black_box(u[8]);
        }
        Ok(clock.elapsed().as_nanos() as f64 / f64::from(runs))
    });
    times.expect("the world runs").into_iter().fold(0.0, f64::max)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Returns the number of events that a rank has recorded in each run of the superstep. If ranks
/// differ, this is the largest number.
fn events(folder: &Path, ranks: usize, runs: u32) -> f64 {
    let lines = |rank: usize| {
        let names = std::fs::read_dir(folder).expect("the traces");
        let name = names
            .map(|entry| entry.expect("a file").path())
            .find(|path| path.to_str().is_some_and(|name| name.ends_with(&format!("-rank{rank}.trace"))));
        let text = std::fs::read_to_string(name.expect("a trace")).expect("a trace");
        let kept = text.lines().filter(|line| line.starts_with(['c', 'w', 's', 'r'])).count();
        let lost = text.lines().find_map(|line| line.strip_prefix("lost ")?.parse::<usize>().ok());
        kept + lost.unwrap_or(0)
    };
    (0..ranks).map(lines).max().unwrap_or(0) as f64 / f64::from(runs)
}

fn main() {
    let (rounds, runs) = if short() { (1, 1_000) } else { (15, 200_000) };
    let profile = std::env::temp_dir().join(format!("fencepost-profile-{}", std::process::id()));
    for size in [1, 2] {
        let mut times: [Vec<f64>; 3] = Default::default();
        let mut of_run = 0.0;
        for _ in 0..rounds {
            let folder = tempfile::tempdir().expect("a folder");
            let profiled = || ranks(size).profile(Some(profile.clone()));
            times[0].push(timed(ranks(size), runs));
            times[1].push(timed(profiled(), runs));
            times[2].push(timed(profiled().trace(folder.path().into()), runs));
            of_run = events(folder.path(), size, runs);
        }
        let [plain, profiled, traced] = times.map(median);
        println!("{size} ranks: plain {plain:.1} ns a superstep");
        println!("  with a profile {profiled:.1} ns: {:.1} more (60)", profiled - plain);
        println!(
            "  and with a trace {traced:.1} ns: {:.1} more for each of {of_run:.1} events (30)",
            (traced - profiled) / of_run
        );
    }
    let _: std::io::Result<()> = std::fs::remove_file(profile);
}
