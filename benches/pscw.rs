//! How long does a ring take if it is prepared with posts and starts, compared with puts and a
//! fence of all ranks?
//!
//! There are more ranks than cores. Each rank waits for one other rank, and not for all.

use fencepost::prelude::*;
use fencepost::{TransportKind, superstep};
use fencepost_benches::{Contest, ours};
use std::time::Duration;

/// Puts an element of each rank to the next.
#[superstep(sync = pscw)]
fn by_posts(u: &mut Window<u64>) -> Result<()> {
    u.put(0..1).to((u.rank() + 1) % u.size(), 1..2)
}

#[superstep]
fn by_fence(u: &mut Window<u64>) -> Result<()> {
    u.put(0..1).to((u.rank() + 1) % u.size(), 1..2)
}

fn dynamic(over: &TransportKind, ranks: usize, iterations: u64) -> Duration {
    let make = |world: &World| world.window::<u64>(2);
    ours::team_over(over.clone(), ranks, iterations, make, |world, u, _| {
        u.put([7]).to((world.rank() + 1) % ranks, 1)?;
        u.fence()
    })
}

fn prepared_fence(over: &TransportKind, ranks: usize, iterations: u64) -> Duration {
    let make = |world: &World| Ok((world.window::<u64>(2)?, by_fence::prepare(world)?));
    ours::team_over(over.clone(), ranks, iterations, make, |_, (u, ring), _| ring.replay(u))
}

fn prepared_posts(over: &TransportKind, ranks: usize, iterations: u64) -> Duration {
    let make = |world: &World| Ok((world.window::<u64>(2)?, by_posts::prepare(world)?));
    ours::team_over(over.clone(), ranks, iterations, make, |_, (u, ring), _| ring.replay(u))
}

fn main() {
    let rings = [
        ("local", TransportKind::Local, 64, 0.5),
        ("local", TransportKind::Local, 8, 0.5),
        ("shm", TransportKind::ShmThreads, 64, 0.5),
        ("tcp", TransportKind::TcpThreads, 16, 0.4),
    ];
    let contests = rings.map(|(name, over, ranks, budget)| {
        let each = |run: fn(&TransportKind, usize, u64) -> Duration| {
            let over = over.clone();
            move |iterations| run(&over, ranks, iterations)
        };
        Contest::new(format!("{name}: a ring of {ranks} ranks"), 1)
            .side("put and fence", each(dynamic))
            .side("prepared", each(prepared_fence))
            .held("prepared, posts and starts", budget, each(prepared_posts))
    });
    fencepost_benches::main(contests.into());
}
