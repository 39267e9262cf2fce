//! One kind of epoch for some seconds, to be looked at with `perf`: probe KIND [SECONDS]. Prints nanoseconds an epoch.

use fencepost::prelude::*;
use std::time::Instant;

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
    let kind = std::env::args().nth(1).unwrap_or_else(|| "fence".into());
    let seconds: f64 = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(2.0);
    ours::main(|world| {
        let next = (world.rank() + 1) % world.size();
        let len: usize = kind.strip_prefix("exchange").or(kind.strip_prefix("section")).and_then(|n| n.parse().ok()).unwrap_or(8);
        let mut u = world.window::<u64>(2 * len.max(8))?;
        let mut v = world.window::<u64>(len.max(8))?;
        let snd = vec![1_u64; len];
        let mut prepared = ring::prepare(world, next)?;
        let mut sum = [0_i64];
        world.barrier()?;
        let began = Instant::now();
        let mut done = 0_u64;
        loop {
            for _ in 0..100 {
                match kind.as_str() {
                    "barrier" => world.barrier()?,
                    "allreduce" => world.allreduce(&mut sum, Op::Sum)?,
                    "fence" => u.fence()?,
                    "value" => {
                        u.put([done]).to(next, 1)?;
                        u.fence()?;
                    }
                    "one" => {
                        u.put(0..1).to(next, 1)?;
                        u.fence()?;
                    }
                    "superstep" => ring(&mut u, next)?,
                    "superstep-value" => ring_value(&mut u, done, next)?,
                    "prepared" => prepared.replay(&mut u)?,
                    // With 100 us of work between: what does a step cost beyond it?
                    "value-work" | "prepared-work" => {
                        let worked = Instant::now();
                        while worked.elapsed().as_micros() < 100 {
                            std::hint::spin_loop();
                        }
                        if kind == "prepared-work" {
                            prepared.replay(&mut u)?;
                        } else {
                            u.put([done]).to(next, 1)?;
                            u.fence()?;
                        }
                    }
                    kind if kind.starts_with("exchange") => {
                        u.put(&snd).to(next, 0)?;
                        u.fence()?;
                    }
                    kind if kind.starts_with("section") => {
                        u.put(v.section(0..len)).to(next, 0)?;
                        world.fence((&mut u, &mut v))?;
                    }
                    _ => return Err(Error::new(ErrorClass::Arg, "barrier, allreduce, fence, value, one, superstep, superstep-value, prepared, value-work, prepared-work, exchangeN or sectionN words")),
                }
                done += 1;
            }
            let mut over = [u64::from(began.elapsed().as_secs_f64() > seconds)];
            world.broadcast(0, &mut over)?;
            if over[0] > 0 {
                break;
            }
        }
        if world.rank() == 0 {
            println!("{kind}: {:.1} ns", began.elapsed().as_secs_f64() * 1e9 / done as f64);
        }
        Ok(())
    })
}
