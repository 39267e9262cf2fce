//! How much slower is the mode that `auto` chooses than the best of the fixed modes?
//!
//! The workloads are those of `examples/modes.rs` in prepared form, at sizes to which the machine
//! model was not fitted. `auto` is also compared with the fixed mode that it chose for the first
//! operation. If all operations have this mode, both sides do the same, and their ratio shows the
//! noise.

#![expect(clippy::print_stdout, reason = "a bench prints its results")]

#[expect(dead_code, reason = "only its workloads are wanted")]
#[path = "../examples/modes.rs"]
mod modes;

use fencepost::Mode;
use fencepost_benches::contest::wanted;
use fencepost_benches::{Contest, Harness};
use modes::Workload;
use std::time::Duration;

const RANKS: usize = 2;
const SIZES: [usize; 3] = [90, 370, 1400];

fn side(workload: Workload, mode: Mode, size: usize) -> impl FnMut(u64) -> Duration + 'static {
    move |iterations| {
        let epochs = u32::try_from(iterations).unwrap_or(u32::MAX);
        workload.measure(fencepost::ranks(RANKS), mode, size, epochs).expect("it runs") * epochs
    }
}

/// Returns the mode that `auto` chooses for the first operation of the workload.
fn chosen(workload: Workload, size: usize) -> Mode {
    let compiled = workload.compile(RANKS, Mode::Auto, size).expect("it compiles");
    let schedule = compiled.schedules()[0].get();
    let mut routes = schedule.classes.values().flat_map(|program| program.routes.values());
    routes.find_map(|route| route.as_ref()).map_or(Mode::Auto, |route| route.mode)
}

fn contest(workload: Workload, size: usize) -> (Contest, Mode) {
    let forced = chosen(workload, size);
    let name = format!("{}, size {size}: auto takes {forced:?}", workload.name());
    let mut contest = Contest::new(name, 1).side("auto", side(workload, Mode::Auto, size));
    for mode in &Mode::ALL[1..] {
        contest = contest.side(format!("{mode:?}"), side(workload, *mode, size));
    }
    (contest, forced)
}

fn main() {
    let all = Workload::ALL.into_iter().flat_map(|workload| SIZES.map(|size| (workload, size)));
    let all = all.filter(|(workload, _)| wanted(workload.name()));
    let mut harness = Harness::from_arguments();
    let (mut ratios, mut noises) = (Vec::new(), Vec::new());
    for (workload, size) in all {
        let (mut contest, forced) = contest(workload, size);
        let Some(figures) = harness.run(&mut contest) else { continue };
        let best = figures[1..].iter().map(|figure| figure.median).fold(f64::INFINITY, f64::min);
        ratios.push(figures[0].median / best);
        let at = Mode::ALL.iter().position(|&mode| mode == forced).unwrap_or(0);
        noises.push(figures[0].median / figures[at].median);
    }
    if ratios.is_empty() {
        return;
    }
    let mean =
        |ratios: &[f64]| (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    println!(
        "\nauto to the best fixed mode: geometric mean {:.3} (budget 1.05), worst {worst:.3} (budget 1.15)",
        mean(&ratios)
    );
    println!("noise, auto to its own mode forced: geometric mean {:.3}", mean(&noises));
}
