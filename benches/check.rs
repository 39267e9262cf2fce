//! What does it cost to look for conflicts: on many small operations, and on few?
//!
//! Two ranks, each of which calls operations on the other, in epochs that have no conflict.

use fencepost::{Check, Op, Window, World};
use fencepost_benches::draws::{Set, TABLE, draw};
use fencepost_benches::{Contest, ours};
use std::sync::Arc;
use std::time::Duration;

type Draws = Arc<Vec<Vec<Set>>>;

/// Puts to distinct random elements.
fn scattered(draws: &Draws, iterations: u64) -> Duration {
    let make = |world: &World| world.window::<u64>(TABLE);
    ours::team(2, iterations, make, |world, u: &mut Window<u64>, k| {
        let set = &draws[world.rank()][k % draws[0].len()];
        for (&index, &value) in set.indices.iter().zip(&set.values) {
            u.put([value]).to(1 - world.rank(), index as usize)?;
        }
        u.fence()
    })
}

/// Adds to random buckets.
fn histogram(draws: &Draws, iterations: u64) -> Duration {
    let make = |world: &World| world.window::<u32>(TABLE);
    ours::team(2, iterations, make, |world, u: &mut Window<u32>, k| {
        let set = &draws[world.rank()][k % draws[0].len()];
        for &index in &set.indices {
            u.accumulate([1], Op::Sum).to(1 - world.rank(), index as usize)?;
        }
        u.fence()
    })
}

/// Puts `rows` rows of this number of elements.
fn rows(rows: usize, elements: usize, iterations: u64) -> Duration {
    let make = |world: &World| world.window::<f64>(2 * rows * elements);
    ours::team(2, iterations, make, |world, u: &mut Window<f64>, _| {
        for row in 0..rows {
            let from = row * elements;
            u.put(from..from + elements).to(1 - world.rank(), (rows + row) * elements)?;
        }
        u.fence()
    })
}

/// A question about `operations` operations, each way of checking compared with none, and what the two may cost at most.
fn question(
    name: &str,
    operations: usize,
    [mark, log]: [f64; 2],
    run: impl Fn(u64) -> Duration + Clone + 'static,
) -> Contest {
    let on = |check| ours::checked(check, run.clone());
    Contest::new(name, operations).side("off", on(Check::Off)).held("mark", mark, on(Check::Mark)).held(
        "log",
        log,
        on(Check::Log),
    )
}

fn main() {
    let draws: Draws = Arc::new(draw(2, 8, 10_000));
    let with = |run: fn(&Draws, u64) -> Duration| {
        let draws = draws.clone();
        move |n| run(&draws, n)
    };
    fencepost_benches::main(vec![
        question("10,000 scattered puts, checked", 10_000, [1.5, 2.5], with(scattered)),
        question("10,000 scattered accumulates, checked", 10_000, [1.3, 2.0], with(histogram)),
        question("two rows of 512, checked", 2, [1.1, 1.3], |n| rows(2, 512, n)),
        question("one element, checked", 1, [1.1, 1.3], |n| rows(1, 1, n)),
    ]);
}
