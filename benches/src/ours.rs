//! Fencepost's side of a contest: epochs on the ranks of a world. The ranks are pinned and timed in
//! the same way as the threads of the limits.

use fencepost::{Check, Result, TransportKind, World, ranks};
use fencepost_examples_support::pin;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

thread_local! {
    /// The transport on which the teams of this thread run.
    static TRANSPORT: RefCell<TransportKind> = RefCell::default();
    /// The check for conflicts on the teams of this thread.
    static CHECK: Cell<Check> = const { Cell::new(Check::Off) };
}

/// Returns a side that runs `side` on ranks that execute this check.
pub fn checked(
    check: Check,
    mut side: impl FnMut(u64) -> Duration + 'static,
) -> impl FnMut(u64) -> Duration + 'static {
    move |iterations| {
        CHECK.set(check);
        let taken = side(iterations);
        CHECK.set(Check::Off);
        taken
    }
}

/// Returns a side that runs `side` on ranks that are threads, but share memory in the same way as
/// processes.
pub fn shm(mut side: impl FnMut(u64) -> Duration + 'static) -> impl FnMut(u64) -> Duration + 'static {
    move |iterations| {
        TRANSPORT.set(TransportKind::ShmThreads);
        let taken = side(iterations);
        TRANSPORT.set(TransportKind::Local);
        taken
    }
}

/// Times `epoch` on each of `size` ranks, and returns the time of the slowest rank.
///
/// Makes a state on each rank, warms up with a quarter of the iterations, and times all of them.
/// `epoch` gets the world, the state and the iteration's number.
///
/// # Panics
/// If the world fails.
pub fn team<S>(
    size: usize,
    iterations: u64,
    make: impl Fn(&World) -> Result<S> + Sync,
    epoch: impl Fn(&World, &mut S, usize) -> Result<()> + Sync,
) -> Duration {
    team_over(TRANSPORT.with_borrow(Clone::clone), size, iterations, make, epoch)
}

/// Does the same as [`team`], over a given transport.
///
/// # Panics
/// As [`team`].
pub fn team_over<S>(
    transport: TransportKind,
    size: usize,
    iterations: u64,
    make: impl Fn(&World) -> Result<S> + Sync,
    epoch: impl Fn(&World, &mut S, usize) -> Result<()> + Sync,
) -> Duration {
    let times: Result<Vec<Duration>> = ranks(size).transport(transport).check(CHECK.get()).collect(|world| {
        pin(world.rank());
        let mut state = make(world)?;
        for k in 0..iterations.div_ceil(4).max(2) {
            epoch(world, &mut state, k as usize)?;
        }
        world.barrier()?;
        let clock = Instant::now();
        for k in 0..iterations {
            epoch(world, &mut state, k as usize)?;
        }
        let taken = clock.elapsed();
        world.barrier()?; // no rank drops a state that other ranks still access
        Ok(taken)
    });
    times.expect("the world goes on").into_iter().max().unwrap_or_default()
}
