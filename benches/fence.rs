//! What does an epoch cost that moves nothing, and one that moves eight bytes?

use fencepost_benches::draws::draw;
use fencepost_benches::limits::scatter::Tables;
use fencepost_benches::limits::{flag_barrier, yield_barrier};
use fencepost_benches::{Contest, ours};
use std::time::Duration;

fn fence(ranks: usize, iterations: u64) -> Duration {
    ours::team(ranks, iterations, |world| world.window::<u64>(8), |_, u, _| u.fence())
}

/// Each of two ranks puts one element, elsewhere and another each time.
fn put_and_fence(iterations: u64) -> Duration {
    let draws = &draw(2, 64, 1);
    ours::team(
        2,
        iterations,
        |world| world.window::<u64>(fencepost_benches::draws::TABLE),
        |world, u, k| {
            let set = &draws[world.rank()][k % 64];
            u.put([set.values[0]]).to(1 - world.rank(), set.indices[0] as usize)?;
            u.fence()
        },
    )
}

fn main() {
    let one = Tables::new(draw(2, 64, 1));
    fencepost_benches::main(vec![
        Contest::new("empty fence, 2 ranks", 1)
            .side("flag barrier", |n| flag_barrier(2, n))
            .held("Fencepost", 1.6, |n| fence(2, n))
            .side("Fencepost, shm", ours::shm(|n| fence(2, n))),
        Contest::new("empty fence, 4 ranks on 2 cores", 1)
            .side("yielding barrier", |n| yield_barrier(4, n))
            .held("Fencepost", 3.0, |n| fence(4, n))
            .side("Fencepost, shm", ours::shm(|n| fence(4, n))),
        Contest::new("one 8-byte put and fence", 1)
            .side("store and barrier", move |n| one.store(n))
            .held("Fencepost", 1.8, put_and_fence)
            .side("Fencepost, shm", ours::shm(put_and_fence)),
    ]);
}
