//! Worlds and windows that come and go leave nothing behind in the memory of the process. Alone in its file, since it counts
//! what the whole process holds.

use fencepost::transport::SimConfig;
use fencepost::{Result, TransportKind, Window, World, ranks, superstep};
use fencepost_tests_support::counting::{Counting, live_of_process};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[superstep]
fn shift(u: &mut Window<u64>) -> Result<()> {
    u.put(0..4).to((u.rank() + 1) % u.size(), 4)?;
    Ok(())
}

/// The bytes that are allocated when every rank has come here, and none goes on.
fn held(world: &World) -> Result<i64> {
    // Twice: what the first wakes up may still be putting things away.
    for _ in 0..2 {
        world.barrier()?;
    }
    let held = live_of_process();
    world.barrier()?;
    Ok(held)
}

/// A world of some ranks, windows in it, and an epoch of each kind, a number of times.
fn pass(world: &World, times: usize) -> Result<()> {
    for time in 0..times {
        // All, neighbours, or every other one.
        let colour = [0, world.rank() / 2, world.rank() % 2][time % 3] as u32;
        let part = world.split(Some(colour), -(world.rank() as i64))?.expect("all are members");
        let mut u = part.window::<u64>(8)?;
        shift(&mut u)?;
        shift::prepare(&part)?.replay(&mut u)?;
        part.barrier()?;
    }
    Ok(())
}

#[test]
fn worlds_that_come_and_go_leave_nothing() -> Result<()> {
    const TIMES: usize = 240;
    for transport in [
        TransportKind::Local,
        TransportKind::ShmThreads,
        TransportKind::TcpThreads,
        TransportKind::MixedThreads(vec![0, 0, 1, 1]),
        TransportKind::Sim(SimConfig { seed: 3, ..SimConfig::default() }),
    ] {
        let grown: Vec<i64> = ranks(4).transport(transport.clone()).collect(|world| {
            pass(world, TIMES)?;
            let before = held(world)?;
            pass(world, TIMES)?;
            Ok(held(world)? - before)
        })?;
        // All ranks together, and each has been in one of them each time.
        let each = grown[0] / (4 * TIMES as i64);
        assert!(each < 16, "{transport:?}: each of them left {each} bytes");
    }
    Ok(())
}
