//! How long do collectives take, compared with the same work by hand, and how long does their first
//! call take?

use fencepost::{Op, Result, World, ranks};
use fencepost_benches::limits::collective as limits;
use fencepost_benches::{Contest, contest, ours};
use std::time::{Duration, Instant};

type Call = fn(&World, &mut [f64], &mut [f64]) -> Result<()>;

fn team(size: usize, len: usize, iterations: u64, call: Call) -> Duration {
    let make = |world: &World| Ok((vec![world.rank() as f64; len], vec![0.0; size * len]));
    ours::team(size, iterations, make, |world, (mine, all), _| call(world, mine, all))
}

/// Does the same work by hand, and returns its time. The arguments are the numbers of threads, of
/// elements and of iterations.
type Limit = fn(usize, usize, u64) -> Duration;

const CALLS: [(&str, Call, Limit); 3] = [
    ("allreduce", |world, mine, _| world.allreduce(mine, Op::Sum), limits::allreduce),
    ("broadcast", |world, mine, _| world.broadcast(0, mine), limits::broadcast),
    ("allgather_into", |world, mine, all| world.allgather_into(mine, all), limits::allgather),
];

/// Compares a call that has no plan yet with the next call. The difference is the cost of planning.
#[expect(clippy::print_stdout, reason = "a bench prints its results")]
fn first_calls() {
    for size in [2, 4, 8] {
        for (what, call, _) in CALLS {
            let times: Result<Vec<Duration>> = ranks(size).collect(|world| {
                let mut all = vec![0.0; size * 8192];
                let mut mine = vec![0.0; 8192];
                call(world, &mut mine, &mut all)?;
                world.barrier()?;
                let clock = Instant::now();
                for len in (0..10).map(|k| 8000 + k) {
                    call(world, &mut mine[..len], &mut all[..size * len])?;
                }
                Ok(clock.elapsed() / 10)
            });
            let worst = times.expect("the world goes on").into_iter().max().unwrap_or_default();
            println!("first {what} of 64 KB, {size} ranks: {worst:?}");
        }
    }
}

fn main() {
    let mut contests = Vec::new();
    for (what, call, limit) in CALLS {
        for len in [1, 64, 1 << 10, 1 << 13, 1 << 17] {
            contests.push(
                Contest::new(format!("{what} of {} bytes, 2 ranks", 8 * len), 1)
                    .side("by hand", move |n| limit(2, len, n))
                    .side("Fencepost", move |n| team(2, len, n, call)),
            );
        }
    }
    if contest::short() || contest::wanted("first calls") {
        first_calls();
    }
    fencepost_benches::main(contests);
}
