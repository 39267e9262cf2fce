//! How much time does a check of loads take? The loads are made by a sweep of a five-point stencil
//! over 64 x 64 cells of a window, between two fences.
//!
//! Two ranks, each with a block of its own, execute epochs in which neither accesses the other's
//! block. `by index` reads `u[k]`, and `by rows` cuts a slice for each row. The bench prints the
//! least time of several rounds in microseconds: first of the sweep alone, and then of the sweep
//! with the fence.
//!
//! A build for checking loads (`Ranks::check_loads`) is slower even if it checks nothing. To see
//! the whole cost, compare the last two lines of such a build, which are with loads, with the lines
//! of an ordinary build that checks everything but loads.

#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use fencepost::prelude::*;
use fencepost::{Check, ranks};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The number of cells of a row, including the two of the halo.
const WIDE: usize = 66;
const INSIDE: std::ops::Range<usize> = 1..WIDE - 1;

#[inline(never)]
fn by_index(u: &Window<f64>, v: &mut Window<f64>) {
    for i in INSIDE {
        for j in INSIDE {
            let k = i * WIDE + j;
            v[k] = 0.2 * (u[k] + u[k - 1] + u[k + 1] + u[k - WIDE] + u[k + WIDE]);
        }
    }
}

#[inline(never)]
fn by_rows(u: &[f64], v: &mut [f64]) {
    for i in INSIDE {
        let row = |i: usize| &u[i * WIDE..(i + 1) * WIDE];
        let (north, here, south) = (row(i - 1), row(i), row(i + 1));
        let next = &mut v[i * WIDE..(i + 1) * WIDE];
        for j in INSIDE {
            next[j] = 0.2 * (here[j] + here[j - 1] + here[j + 1] + north[j] + south[j]);
        }
    }
}

type Sweep = fn(&Window<f64>, &mut Window<f64>);

/// Returns how long a sweep takes, and how long a sweep with a fence takes, in microseconds.
fn taken(check: Check, loads: bool, sweep: Sweep) -> [f64; 2] {
    let length = Duration::from_millis(if fencepost_benches::contest::short() { 1 } else { 500 });
    let all = ranks(2).check(check).check_loads(loads).collect(|world| {
        let (mut u, mut v) = (world.window::<f64>(WIDE * WIDE)?, world.window::<f64>(WIDE * WIDE)?);
        let mut least = [f64::MAX; 2];
        let (begun, mut rounds) = (Instant::now(), 0);
        let mut goes_on = [1.0];
        while goes_on[0] > 0.0 {
            let (clock, mut swept) = (Instant::now(), Duration::ZERO);
            let each = if loads && rounds == 0 { 1 } else { 20 };
            for _ in 0..each {
                let clock = Instant::now();
                sweep(black_box(&u), black_box(&mut v));
                swept += clock.elapsed();
                world.fence((&mut u, &mut v))?;
            }
            let micros = [swept, clock.elapsed()].map(|time| time.as_secs_f64() * 1e6 / f64::from(each));
            least = [least[0].min(micros[0]), least[1].min(micros[1])];
            rounds += 1;
            goes_on[0] = if world.rank() == 0 && begun.elapsed() < length { 1.0 } else { 0.0 };
            world.allreduce(&mut goes_on, Op::Sum)?;
        }
        Ok(least)
    });
    let all = all.expect("nothing conflicts");
    [0, 1].map(|what| all.iter().map(|times| times[what]).fold(0.0, f64::max))
}

fn main() {
    let sweeps: [(&str, Sweep); 2] = [("by index", by_index), ("by rows", |u, v| by_rows(u, v))];
    for (check, loads) in [(Check::Off, false), (Check::Mpi, false), (Check::Mpi, true)] {
        for (name, sweep) in sweeps {
            let [swept, all] = taken(check, loads, sweep);
            let loads = if loads { " with loads" } else { "" };
            println!("{name}, check {check}{loads}: {swept:.2} us, with the fence {all:.2} us");
        }
    }
}
