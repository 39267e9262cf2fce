//! How long does `u[i]` of a window take, compared with `u[i]` of a slice?

use fencepost_benches::{Contest, ours};
use std::hint::black_box;
use std::ops::Index;
use std::time::{Duration, Instant};

const CELLS: usize = 4096;

/// Computes a stencil that indexes `u` three times for each cell.
#[inline(always)]
fn sweep(u: &impl Index<usize, Output = f64>) -> f64 {
    let mut sum = 0.0;
    for i in 1..CELLS - 1 {
        sum += 0.5 * u[i] + 0.25 * (u[i - 1] + u[i + 1]);
    }
    sum
}

/// Sums the elements of `u` at `places`, which the compiler cannot predict.
#[inline(always)]
fn jump(u: &impl Index<usize, Output = f64>, places: &[usize]) -> f64 {
    places.iter().map(|&at| u[at]).sum()
}

/// The slice to which a window dereferences. It can be indexed only by `usize`.
struct Slice<'a>(&'a [f64]);
impl Index<usize> for Slice<'_> {
    type Output = f64;
    #[inline(always)]
    fn index(&self, at: usize) -> &f64 {
        &self.0[at]
    }
}
/// A window that is indexed through its own `Deref` in each access.
struct Through<'a>(&'a fencepost::Window<f64>);
impl Index<usize> for Through<'_> {
    type Output = f64;
    #[inline(always)]
    fn index(&self, at: usize) -> &f64 {
        &self.0[at]
    }
}

fn slice(work: impl Fn(&Slice<'_>) -> f64, iterations: u64) -> Duration {
    let cells = vec![1.0; CELLS];
    let clock = Instant::now();
    for _ in 0..iterations {
        black_box(work(&Slice(black_box(&cells))));
    }
    clock.elapsed()
}

fn window(work: impl Fn(&Through<'_>) -> f64 + Sync, iterations: u64) -> Duration {
    ours::team(
        1,
        iterations,
        |world| world.window::<f64>(CELLS),
        |_, u, _| {
            black_box(work(&Through(black_box(u))));
            Ok(())
        },
    )
}

fn main() {
    let places: Vec<usize> = (0..CELLS).map(|i| i * 2657 % CELLS).collect();
    let again = places.clone();
    fencepost_benches::main(vec![
        Contest::new("u[i] in a stencil", CELLS).side("slice", |n| slice(|u| sweep(u), n)).held(
            "window",
            1.1,
            |n| window(|u| sweep(u), n),
        ),
        Contest::new("u[i] at random places", CELLS)
            .side("slice", move |n| slice(|u| jump(u, &places), n))
            .held("window", 1.1, move |n| window(|u| jump(u, &again), n)),
    ]);
}
