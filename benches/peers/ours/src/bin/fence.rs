//! Measures the same as `../../mpi_fence.c`: an empty epoch, an epoch that puts eight bytes to the
//! next rank, a barrier, and an allreduce and a total exchange of eight bytes.

use fencepost::{Assertions, prelude::*};
use ours::{bench, emit};

#[superstep]
fn nothing(_u: &mut Window<u64>) -> Result<()> {
    Ok(())
}

#[superstep]
fn ring(u: &mut Window<u64>, next: usize) -> Result<()> {
    u.put(0..1).to(next, 1)?;
    Ok(())
}

#[superstep]
fn ring_value(u: &mut Window<u64>, value: u64, next: usize) -> Result<()> {
    u.put([value]).to(next, 1)?;
    Ok(())
}

fn main() -> Result<()> {
    ours::main(|world| {
        let (rank, size) = (world.rank(), world.size());
        let next = (rank + 1) % size;
        let one = |case: &str, variant: &str, f: &mut dyn FnMut() -> Result<()>| -> Result<()> {
            let s = bench(world, f)?;
            let win = if variant == "collective" { "-" } else { "allocate" };
            emit(world, "fence", case, variant, s, "us", &format!("\"win\":\"{win}\""));
            Ok(())
        };
        let (mut sum, to, mut from) = ([1_i64], vec![1_i64; size], vec![0_i64; size]);
        one("barrier", "collective", &mut || world.barrier())?;
        one("allreduce8", "collective", &mut || {
            sum[0] = 1;
            world.allreduce(&mut sum, Op::Sum)
        })?;
        ours::require(world, sum[0] == size as i64, "allreduce")?;
        one("alltoall8", "collective", &mut || world.all_to_all_into(&to, &mut from))?;
        ours::require(world, from.iter().all(|&x| x == 1), "alltoall")?;

        let mut u = world.window::<u64>(512)?;
        one("fence", "dynamic", &mut || u.fence())?;
        one("fence", "superstep", &mut || nothing(&mut u))?;
        let mut prepared = nothing::prepare(world)?;
        one("fence", "prepared", &mut || prepared.replay(&mut u))?;
        one("fence_pair", "dynamic", &mut || {
            u.fence()?;
            u.fence()
        })?;
        one("fence_pair_asserts", "dynamic", &mut || {
            u.fence_with(Assertions::NOPRECEDE)?;
            u.fence_with(Assertions::NOSTORE | Assertions::NOPUT | Assertions::NOSUCCEED)
        })?;
        u.fence()?;

        u[0] = rank as u64 + 7;
        let left = (rank + size - 1) % size;
        let came = |u: &mut Window<u64>| -> Result<()> {
            ours::require(world, u[1] == left as u64 + 7, "put_fence8")?;
            u[1] = 0;
            Ok(())
        };
        one("put_fence8", "dynamic", &mut || {
            u.put([rank as u64 + 7]).to(next, 1)?;
            u.fence()
        })?;
        came(&mut u)?;
        one("put_fence8", "dynamic-section", &mut || {
            u.put(0..1).to(next, 1)?;
            u.fence()
        })?;
        came(&mut u)?;
        one("put_fence8", "superstep-value", &mut || ring_value(&mut u, rank as u64 + 7, next))?;
        came(&mut u)?;
        one("put_fence8", "superstep", &mut || ring(&mut u, next))?;
        came(&mut u)?;
        let mut prepared = ring::prepare(world, next)?;
        one("put_fence8", "prepared", &mut || prepared.replay(&mut u))?;
        came(&mut u)
    })
}
