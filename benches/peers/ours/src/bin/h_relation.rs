//! Measures the same as `../../mpi_h_relation.c`, with the same bytes and checks. In each epoch,
//! each rank puts b bytes of new values to each other rank.
//!
//! `dynamic` puts from a slice, which is copied at the call. The other variants put from a section
//! of a second window, which the library may read at the fence. Elements are words of 8 bytes.

use fencepost::prelude::*;
use ours::{bench, emit, env_f64, look, renew, require};

/// Puts `words` words of `v` to each other rank. In `v` the words are at the position of the
/// receiving rank, and in `u` at the position of the sending rank.
#[superstep]
fn exchange(u: &mut Window<u64>, v: &mut Window<u64>, words: usize) -> Result<()> {
    let (rank, size) = (u.rank(), u.size());
    for k in 1..size {
        let to = (rank + k) % size;
        u.put(v.section(to * words..(to + 1) * words)).to(to, rank * words)?;
    }
    Ok(())
}

fn byte(from: usize, to: usize) -> u64 {
    0x0101_0101_0101_0101 * u64::from((from * 7 + to + 1) as u8)
}

fn main() -> Result<()> {
    ours::main(|world| {
        let (rank, size) = (world.rank(), world.size());
        let bmax = env_f64("BASE_BMAX", 8_388_608.0) as usize;
        let cap = size * bmax / 8;
        let mut snd = vec![0_u64; cap];
        let mut rcv = vec![0_u64; cap];
        for bytes in [8, 64, 512, 4096, 32_768, 262_144, 1_048_576, 8_388_608] {
            if bytes > bmax {
                break;
            }
            let b = bytes / 8;
            let mut v = world.window::<u64>(cap)?;
            for k in 0..size {
                snd[k * b..(k + 1) * b].fill(byte(rank, k));
                v[k * b..(k + 1) * b].fill(byte(rank, k));
            }
            let mut u = world.window::<u64>(cap)?;
            let good = |u: &[u64], turn| {
                let others = (0..size).filter(|&k| k != rank);
                others
                    .into_iter()
                    .all(|k| u[k * b] == turn && (b == 1 || u[(k + 1) * b - 1] == byte(k, rank)))
            };
            let mut turn = 0;
            for variant in ["dynamic", "dynamic-section", "superstep", "prepared", "collective"] {
                u.fill(0);
                rcv.fill(0);
                world.barrier()?;
                let mut prepared = exchange::prepare(world, b)?;
                let others = |of: usize| (0..size).filter(move |&k| k != of).map(move |k| k * b..(k + 1) * b);
                let mut epoch = || {
                    turn += 1;
                    match variant {
                        "dynamic" | "collective" => others(rank).for_each(|part| renew(&mut snd[part], turn)),
                        _ => others(rank).for_each(|part| renew(&mut v[part], turn)),
                    }
                    match variant {
                        "dynamic" => {
                            for k in 1..size {
                                let to = (rank + k) % size;
                                u.put(&snd[to * b..(to + 1) * b]).to(to, rank * b)?;
                            }
                            u.fence()?;
                        }
                        "dynamic-section" => {
                            for k in 1..size {
                                let to = (rank + k) % size;
                                u.put(v.section(to * b..(to + 1) * b)).to(to, rank * b)?;
                            }
                            world.fence((&mut u, &mut v))?;
                        }
                        "superstep" => exchange(&mut u, &mut v, b)?,
                        "prepared" => prepared.replay(&mut u, &mut v)?,
                        _ => world.all_to_all_into(&snd[..size * b], &mut rcv[..size * b])?,
                    }
                    match variant {
                        "collective" => others(rank).for_each(|part| look(&rcv[part])),
                        _ => others(rank).for_each(|part| look(&u[part])),
                    }
                    Ok(())
                };
                epoch()?;
                let s = bench(world, &mut epoch)?;
                let (case, ok) = match variant {
                    "collective" => ("alltoallv", good(&rcv, turn)),
                    _ => ("put_fence/allocate", good(&u, turn)),
                };
                require(world, ok, variant)?;
                let rate = 1e-9 * (bytes * (size - 1)) as f64 / s.med;
                let more = format!("\"bytes\":{bytes},\"GBps\":{rate:.6}");
                emit(world, "h_relation", case, variant, s, "us", &more);
            }
        }
        Ok(())
    })
}
