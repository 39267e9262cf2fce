//! Measures the same as `../../mpi_put_rate.c`, with the same permutation, values and checks. In an
//! epoch, each rank calls n operations of 8 bytes, on the next rank or on all others in turn. The
//! figure is the time of an epoch divided by n.
//!
//! Each put takes the value of `loc[i]`, as in C. `prepared` replays the plan without the body, so
//! the values to put are in the second half of the window. Gets also store the elements there.
//! `prepared-values` runs the body with values.

use fencepost::prelude::*;
use ours::{bench, emit, env_f64, require, rng_next};

/// The number of elements of the table, which has 1 MiB.
const TABLE: usize = 1 << 17;

/// Returns the targets of the operations: one rank, or all others in turn.
fn targets(rank: usize, size: usize, all: bool) -> impl Iterator<Item = usize> {
    let mut to = (rank + 1) % size;
    std::iter::from_fn(move || {
        let now = to;
        if all {
            to = (to + 1) % size;
            if to == rank {
                to = (to + 1) % size;
            }
        }
        Some(now)
    })
}

#[superstep]
fn puts(u: &mut Window<f64>, loc: &[f64], idx: &[u32], to: &[u32]) -> Result<()> {
    for i in 0..idx.len() {
        u.put(&loc[i..i + 1]).to(to[i] as usize, idx[i] as usize)?;
    }
    Ok(())
}

#[superstep]
fn accs(u: &mut Window<f64>, loc: &[f64], idx: &[u32], to: &[u32]) -> Result<()> {
    for i in 0..idx.len() {
        u.accumulate(&loc[i..i + 1], Op::Sum).to(to[i] as usize, idx[i] as usize)?;
    }
    Ok(())
}

#[superstep]
fn gets(u: &mut Window<f64>, idx: &[u32], to: &[u32], home: usize) -> Result<()> {
    for i in 0..idx.len() {
        u.get(home + i..home + i + 1).from(to[i] as usize, idx[i] as usize)?;
    }
    Ok(())
}

#[superstep]
fn put_sections(u: &mut Window<f64>, idx: &[u32], to: &[u32], home: usize) -> Result<()> {
    for i in 0..idx.len() {
        u.put(home + i..home + i + 1).to(to[i] as usize, idx[i] as usize)?;
    }
    Ok(())
}

#[superstep]
fn acc_sections(u: &mut Window<f64>, idx: &[u32], to: &[u32], home: usize) -> Result<()> {
    for i in 0..idx.len() {
        u.accumulate(home + i..home + i + 1, Op::Sum).to(to[i] as usize, idx[i] as usize)?;
    }
    Ok(())
}

fn permutation(s: &mut u64) -> Vec<u32> {
    let mut idx: Vec<u32> = (0..TABLE as u32).collect();
    for i in (1..TABLE).rev() {
        idx.swap(i, (rng_next(s) % (i as u64 + 1)) as usize);
    }
    idx
}

fn main() -> Result<()> {
    ours::main(|world| {
        let (rank, size) = (world.rank(), world.size());
        let left = (rank + size - 1) % size;
        let nmax = env_f64("BASE_NMAX", 1e5) as usize;
        let pmax = env_f64("OURS_PMAX", 1e4) as usize;
        let mut s = 88_172_645_463_325_252;
        let rnd = permutation(&mut s);
        let fresh: Vec<Vec<u32>> = (0..4).map(|_| permutation(&mut s)).collect();
        let seq: Vec<u32> = (0..TABLE as u32).collect();
        let loc: Vec<f64> = (0..TABLE).map(|i| (rank * 1_000_003 + i) as f64).collect();
        let mut u = world.window::<f64>(2 * TABLE)?;

        // As in C, each variant first puts 1000 permuted values. Each rank checks the elements that
        // the rank to its left has put.
        let one: Vec<u32> = targets(rank, size, false).take(TABLE).map(|to| to as u32).collect();
        u[TABLE..].copy_from_slice(&loc);
        for way in 0..4 {
            u[..TABLE].fill(0.0);
            match way {
                0 => {
                    for i in 0..1000 {
                        u.put([loc[i]]).to(one[i] as usize, rnd[i] as usize)?;
                    }
                    u.fence()?;
                }
                1 => puts(&mut u, &loc, &rnd[..1000], &one)?,
                2 => put_sections::prepare(world, &rnd[..1000], &one, TABLE)?.replay(&mut u)?,
                _ => puts::prepare(world, &loc, &rnd[..1000], &one)?.run(&mut u, &loc, &rnd[..1000], &one)?,
            }
            let ok = (0..1000).all(|i| u[rnd[i] as usize] == (left * 1_000_003 + i) as f64);
            require(world, ok, "put_rate: values")?;
        }
        // Gets and accumulates are checked in the same way.
        gets(&mut u, &rnd[..1000], &one, TABLE)?;
        let next = (rank + 1) % size;
        let ok = (0..1000).all(|i| u[TABLE + i] == (((next + size - 1) % size) * 1_000_003 + i) as f64);
        require(world, ok, "put_rate: gets")?;
        u[TABLE..].copy_from_slice(&loc);
        for i in 0..1000 {
            u.accumulate([loc[i]], Op::Sum).to(one[i] as usize, rnd[i] as usize)?;
        }
        u.fence()?;
        let ok = (0..1000).all(|i| u[rnd[i] as usize] == 2.0 * (left * 1_000_003 + i) as f64);
        require(world, ok, "put_rate: sums")?;

        for op in ["put", "get", "acc"] {
            for order in ["seq", "rand"] {
                for all in [false, true] {
                    let skip = (all && size == 2) || (order == "rand" && all && op == "get");
                    if skip || (order == "seq" && (all || op != "put")) {
                        continue;
                    }
                    let idx = if order == "seq" { &seq } else { &rnd };
                    let to: Vec<u32> = targets(rank, size, all).take(TABLE).map(|to| to as u32).collect();
                    let case = format!("{op}_{order}_{}/fence", if all { "all" } else { "one" });
                    for variant in
                        ["dynamic", "dynamic-fresh", "scoped", "superstep", "prepared", "prepared-values"]
                    {
                        let main = ["dynamic", "superstep", "prepared"].contains(&variant);
                        if (variant == "scoped") && op != "get"
                            || variant == "prepared-values" && op == "get"
                            || !main && (all || order == "seq")
                        {
                            continue;
                        }
                        let mut n = 1;
                        while n <= nmax {
                            if !main && n != 1 && n != 1000 && n != 10_000
                                || variant.starts_with("prepared") && n > pmax
                            {
                                n *= 10;
                                continue;
                            }
                            let (i, t) = (&idx[..n], &to[..n]);
                            u[..TABLE].fill(0.0);
                            let mut home = vec![0.0; if variant == "scoped" { n } else { 0 }];
                            let mut round = 0;
                            let s = match (variant, op) {
                                ("dynamic", "put") => bench(world, || {
                                    for k in 0..n {
                                        u.put([loc[k]]).to(t[k] as usize, i[k] as usize)?;
                                    }
                                    u.fence()
                                }),
                                ("dynamic", "acc") => bench(world, || {
                                    for k in 0..n {
                                        u.accumulate([loc[k]], Op::Sum).to(t[k] as usize, i[k] as usize)?;
                                    }
                                    u.fence()
                                }),
                                ("dynamic", _) => bench(world, || {
                                    for k in 0..n {
                                        u.get(TABLE + k..TABLE + k + 1).from(t[k] as usize, i[k] as usize)?;
                                    }
                                    u.fence()
                                }),
                                ("dynamic-fresh", _) => bench(world, || {
                                    round = (round + 1) % 4;
                                    let i = &fresh[round];
                                    for k in 0..n {
                                        let (to, at) = (t[k] as usize, i[k] as usize);
                                        match op {
                                            "put" => u.put([loc[k]]).to(to, at)?,
                                            "acc" => u.accumulate([loc[k]], Op::Sum).to(to, at)?,
                                            _ => u.get(TABLE + k..TABLE + k + 1).from(to, at)?,
                                        }
                                    }
                                    u.fence()
                                }),
                                ("scoped", _) => bench(world, || {
                                    u.epoch(|epoch| {
                                        for (k, home) in home.chunks_exact_mut(1).enumerate() {
                                            epoch.fetch_into(t[k] as usize, i[k] as usize, home)?;
                                        }
                                        Ok(())
                                    })
                                }),
                                ("superstep", "put") => bench(world, || puts(&mut u, &loc, i, t)),
                                ("superstep", "acc") => bench(world, || accs(&mut u, &loc, i, t)),
                                ("superstep", _) => bench(world, || gets(&mut u, i, t, TABLE)),
                                ("prepared", "put") => {
                                    let mut p = put_sections::prepare(world, i, t, TABLE)?;
                                    bench(world, || p.replay(&mut u))
                                }
                                ("prepared", "acc") => {
                                    let mut p = acc_sections::prepare(world, i, t, TABLE)?;
                                    bench(world, || p.replay(&mut u))
                                }
                                ("prepared", _) => {
                                    let mut p = gets::prepare(world, i, t, TABLE)?;
                                    bench(world, || p.replay(&mut u))
                                }
                                (_, "put") => {
                                    let mut p = puts::prepare(world, &loc, i, t)?;
                                    bench(world, || p.run(&mut u, &loc, i, t))
                                }
                                _ => {
                                    let mut p = accs::prepare(world, &loc, i, t)?;
                                    bench(world, || p.run(&mut u, &loc, i, t))
                                }
                            }?;
                            let s = s.per(n);
                            let more = format!("\"n\":{n},\"win\":\"allocate\",\"Mops\":{:.6}", 1e-6 / s.med);
                            emit(world, "put_rate", &case, variant, s, "ns", &more);
                            n *= 10;
                        }
                    }
                }
            }
        }
        Ok(())
    })
}
