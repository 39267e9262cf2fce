//! Measures the cost of synchronisation for different numbers of ranks: a barrier, an allreduce of
//! 8 bytes, an empty fence, a fence with one put to the next rank, and the same put by posts and
//! starts.

use fencepost::prelude::*;
use ours::{bench, emit};

#[superstep(sync = pscw)]
fn ring_apart(u: &mut Window<u64>, next: usize) -> Result<()> {
    u.put(0..1).to(next, 1)?;
    Ok(())
}

#[superstep]
fn ring(u: &mut Window<u64>, next: usize) -> Result<()> {
    u.put(0..1).to(next, 1)?;
    Ok(())
}

fn main() -> Result<()> {
    ours::main(|world| {
        let (rank, size) = (world.rank(), world.size());
        let (next, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let one = |case: &str, variant: &str, f: &mut dyn FnMut() -> Result<()>| -> Result<()> {
            let s = bench(world, f)?;
            emit(world, "ranks", case, variant, s, "us", "");
            Ok(())
        };
        let mut u = world.window::<u64>(512)?;
        u[0] = rank as u64 + 7;
        one("barrier", "collective", &mut || world.barrier())?;
        let mut sum = [0_i64];
        one("allreduce8", "collective", &mut || {
            sum[0] = 1;
            world.allreduce(&mut sum, Op::Sum)
        })?;
        ours::require(world, sum[0] == size as i64, "allreduce")?;
        one("fence", "dynamic", &mut || u.fence())?;
        one("put_fence8", "dynamic", &mut || {
            u.put([rank as u64 + 7]).to(next, 1)?;
            u.fence()
        })?;
        ours::require(world, u[1] == left as u64 + 7, "put_fence8")?;
        u[1] = 0;
        one("put_fence8", "superstep", &mut || ring(&mut u, next))?;
        ours::require(world, u[1] == left as u64 + 7, "superstep")?;
        u[1] = 0;
        let mut prepared = ring::prepare(world, next)?;
        one("put_fence8", "prepared", &mut || prepared.replay(&mut u))?;
        ours::require(world, u[1] == left as u64 + 7, "prepared")?;
        u[1] = 0;
        let mut prepared = ring_apart::prepare(world, next)?;
        one("pscw_ring", "prepared", &mut || prepared.replay(&mut u))?;
        ours::require(world, u[1] == left as u64 + 7, "prepared posts and starts")
    })
}
