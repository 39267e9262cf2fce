//! Measures the same as `../../mpi_message.c`. One rank sends a message to another rank, which
//! sends it back from the memory in which it arrived.

use fencepost::prelude::*;
use ours::{bench, emit};

fn main() -> Result<()> {
    ours::main(|world| {
        ours::require(world, world.size() == 2, "two ranks")?;
        let mut bytes = 8;
        while bytes <= 2 << 20 {
            let mut part = vec![0u64; bytes / 8];
            let last = part.len() - 1;
            let s = bench(world, || {
                if world.rank() == 0 {
                    part[0] += 1;
                    world.message(1, 1).send(&part)?;
                    world.recv_into(1, 1, &mut part)?;
                } else {
                    world.recv_into(0, 1, &mut part)?;
                    part[last] += 1;
                    world.message(0, 1).send(&part)?;
                }
                Ok(())
            })?;
            emit(world, "message", "there_and_back", "send", s, "us", &format!("\"bytes\":{bytes}"));
            ours::require(world, part[0] > 0 && part[last] > 0, "messages")?;
            bytes *= if bytes == 8 { 64 } else { 8 };
        }
        Ok(())
    })
}
