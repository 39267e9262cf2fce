//! Times a fence in which each rank puts a word to some or all of the other ranks.

use fencepost::prelude::*;
use ours::{bench, emit};

fn main() -> Result<()> {
    ours::main(|world| {
        let (rank, size) = (world.rank(), world.size());
        let mut u = world.window::<u64>(size)?;
        for targets in [1, size / 8, size / 4, size / 2, size - 1] {
            let s = bench(world, || {
                for far in 1..=targets {
                    u.put([rank as u64 + 7]).to((rank + far) % size, rank)?;
                }
                u.fence()
            })?;
            emit(world, "dense", &format!("targets{targets}"), "dynamic", s, "us", "");
            for far in 1..=targets {
                let from = (rank + size - far) % size;
                ours::require(world, u[from] == from as u64 + 7, "dense")?;
            }
        }
        Ok(())
    })
}
