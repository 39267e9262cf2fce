//! Measures the same as `../../mpi_lock.c`: puts of 8 bytes to the next rank, under locks and by
//! posts and starts.

use fencepost::LockType::{self, Exclusive, Shared};
use fencepost::prelude::*;
use ours::{Stat, bench, emit};

#[superstep(sync = pscw)]
fn ring(u: &mut Window<u64>, next: usize) -> Result<()> {
    u.put(0..1).to(next, 1)?;
    Ok(())
}

fn main() -> Result<()> {
    ours::main(|world| {
        let (rank, size) = (world.rank(), world.size());
        let (next, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let value = rank as u64 + 7;
        let tell = |case: &str, variant: &str, n: usize, s: Stat| {
            emit(world, "lock", case, variant, s, "us", &format!("\"n\":{n}"));
        };
        let u = world.lock_window::<u64>(1 << 12)?;
        let epoch = |kind: LockType| -> Result<()> {
            let lock = u.lock(next, kind)?;
            lock.put([value], 1)?;
            lock.unlock()
        };
        tell("lock_put8/exclusive", "dynamic", 1, bench(world, || epoch(Exclusive))?);
        tell("lock_put8/shared", "dynamic", 1, bench(world, || epoch(Shared))?);
        let all = u.lock_all()?;
        let on = all.on(next)?;
        for n in [1, 32, 1024] {
            let puts = || {
                (1..=n).try_for_each(|at| on.put([value], at))?;
                on.flush()
            };
            tell("put8_flush", "dynamic", n, bench(world, puts)?);
        }
        all.unlock()?;
        world.barrier()?;
        let u = u.into_window()?;
        ours::require(world, [u[1], u[1024]] == [left as u64 + 7; 2], "locks")?;

        let neighbours = world.group([left, next])?;
        let mut held = Some(world.window::<u64>(512)?);
        let mut epoch = || -> Result<()> {
            let Some(u) = held.take() else { return Ok(()) };
            let exposed = u.post(&neighbours)?;
            let access = exposed.start(&neighbours)?;
            access.put([value]).to(next, 1)?;
            access.complete()?;
            held = Some(exposed.wait()?);
            Ok(())
        };
        tell("pscw_put8", "dynamic", 1, bench(world, &mut epoch)?);
        let Some(mut u) = held else { return Ok(()) };
        ours::require(world, u[1] == left as u64 + 7, "posts and starts")?;
        (u[0], u[1]) = (value, 0);
        let mut prepared = ring::prepare(world, next)?;
        tell("pscw_put8", "prepared", 1, bench(world, || prepared.replay(&mut u))?);
        ours::require(world, u[1] == left as u64 + 7, "prepared posts and starts")
    })
}
