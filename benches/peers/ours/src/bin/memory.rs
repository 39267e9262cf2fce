//! How much memory does a rank take? The figure is the mean over all ranks of a rank's own pages,
//! its share of the shared pages, and its page tables. The program reads the figures after three
//! fences and a prepared ring on one window, and again after the same on a second window.

use fencepost::prelude::*;
use ours::emit;

#[superstep]
fn ring(u: &mut Window<u64>, next: usize) -> Result<()> {
    u.put(0..1).to(next, 1)?;
    Ok(())
}

/// Returns the sum, in kB, of the lines of a file of `/proc/self` that begin with these names.
fn kilobytes(file: &str, names: &[&str]) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).expect("Linux has it");
    let lines = text.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
    lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}

fn main() -> Result<()> {
    ours::main(|world| {
        let (rank, size) = (world.rank(), world.size());
        let next = (rank + 1) % size;
        let mut kept = Vec::new();
        for count in ["one window", "two windows"] {
            let mut u = world.window::<u64>(512)?;
            for turn in 0..3 {
                u.put([turn]).to(next, 1)?;
                u.fence()?;
            }
            let mut prepared = ring::prepare(world, next)?;
            for _ in 0..3 {
                prepared.replay(&mut u)?;
            }
            world.barrier()?;
            let (pages, tables) =
                (kilobytes("smaps_rollup", &["Pss_Anon:", "Pss_Shmem:"]), kilobytes("status", &["VmPTE:"]));
            world.barrier()?; // no rank leaves before all ranks have looked
            let mut sums = [pages, tables];
            world.allreduce(&mut sums, Op::Sum)?;
            let mean = sums.map(|sum| sum / size as u64);
            let all = (mean[0] + mean[1]) as f64;
            let more = format!("\"pages_kb\":{},\"tables_kb\":{}", mean[0], mean[1]);
            let s = ours::Stat { med: all, min: all, max: all, reps: 1, iters: 1, line: [0.0; 2] };
            emit(world, "memory", count, "prepared", s, "kB", &more);
            kept.push((u, prepared)); // measured together with the next window
        }
        drop(kept);
        Ok(())
    })
}
