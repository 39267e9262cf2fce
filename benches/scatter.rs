//! How long does a scattered operation take in a dynamic epoch with many such operations?
//!
//! Each of two ranks calls ten thousand 8-byte operations on distinct random elements of the other
//! rank's table, which has 1 MiB. Eight sets of indices and values take turns.

use fencepost::{Mode, Op, Window};
use fencepost_benches::draws::{Set, TABLE, draw};
use fencepost_benches::limits::halo::{Face, Halo, look};
use fencepost_benches::limits::scatter::{Apply, Tables};
use fencepost_benches::{Contest, ours};
use std::sync::Arc;
use std::time::Duration;

const SETS: usize = 8;
type Draws = Arc<Vec<Vec<Set>>>;

fn puts(draws: &Draws, iterations: u64) -> Duration {
    ours::team(
        2,
        iterations,
        |world| world.window::<u64>(TABLE),
        |world, u: &mut Window<u64>, k| {
            let set = &draws[world.rank()][k % draws[0].len()];
            let other = 1 - world.rank();
            for (&index, &value) in set.indices.iter().zip(&set.values) {
                u.put([value]).to(other, index as usize)?;
            }
            u.fence()
        },
    )
}

fn sums(draws: &Draws, iterations: u64) -> Duration {
    ours::team(
        2,
        iterations,
        |world| world.window::<f64>(TABLE),
        |world, u: &mut Window<f64>, k| {
            let set = &draws[world.rank()][k % draws[0].len()];
            let other = 1 - world.rank();
            for (&index, &value) in set.indices.iter().zip(&set.values) {
                u.accumulate([f64::from_bits(value)], Op::Sum).to(other, index as usize)?;
            }
            u.fence()
        },
    )
}

/// Puts to one window and accumulates sums in another window, alternately.
fn mixed(draws: &Draws, iterations: u64) -> Duration {
    let make = |world: &fencepost::World| Ok((world.window::<u64>(TABLE)?, world.window::<f64>(TABLE)?));
    ours::team(2, iterations, make, |world, (u, v), k| {
        let set = &draws[world.rank()][k % draws[0].len()];
        let other = 1 - world.rank();
        for (two, values) in set.indices.chunks_exact(2).zip(set.values.chunks_exact(2)) {
            u.put([values[0]]).to(other, two[0] as usize)?;
            v.accumulate([f64::from_bits(values[1])], Op::Sum).to(other, two[1] as usize)?;
        }
        world.fence((u, v))
    })
}

/// Gets elements. Each value is stored into a different element of the second half of the window,
/// behind the table.
fn gets(draws: &Draws, iterations: u64) -> Duration {
    ours::team(
        2,
        iterations,
        |world| world.window::<u64>(2 * TABLE),
        |world, u: &mut Window<u64>, k| {
            let set = &draws[world.rank()][k % draws[0].len()];
            let other = 1 - world.rank();
            for (i, &index) in set.indices.iter().enumerate() {
                u.get(TABLE + i..TABLE + i + 1).from(other, index as usize)?;
            }
            u.fence()
        },
    )
}

/// Gets one element at a time, in scoped epochs. If `borrowed`, the values go into buffers that the
/// epoch borrows, otherwise into sections of the window.
fn scoped_gets(borrowed: bool, draws: &Draws, iterations: u64) -> Duration {
    ours::team(
        2,
        iterations,
        |world| Ok((world.window::<u64>(2 * TABLE)?, vec![0; draws[0][0].indices.len()])),
        |world, (u, seen), k| {
            let set = &draws[world.rank()][k % draws[0].len()];
            let other = 1 - world.rank();
            u.epoch(|epoch| {
                for (i, (&index, seen)) in set.indices.iter().zip(seen.chunks_exact_mut(1)).enumerate() {
                    if borrowed {
                        epoch.fetch_into(other, index as usize, seen)?;
                    } else {
                        epoch.get(TABLE + i..TABLE + i + 1).from(other, index as usize)?;
                    }
                }
                Ok(())
            })
        },
    )
}

/// Puts every element of a column, with one put for each. The values are new in each epoch, and
/// their target reads them.
fn column(mode: Mode, iterations: u64) -> Duration {
    const N: usize = 1024;
    const ROW: usize = N / 2 + 2;
    ours::team(
        2,
        iterations,
        |world| world.window::<f64>((N + 2) * ROW),
        |world, u: &mut Window<f64>, k| {
            u.set_mode(mode);
            let (from, to) = if world.rank() == 0 { (N / 2, 0) } else { (1, N / 2 + 1) };
            let column = Face::column(N);
            column.sent(world.rank()).for_each(|at| u[at] = k as f64);
            for row in 1..=N {
                u.put([u[row * ROW + from]]).to(1 - world.rank(), row * ROW + to)?;
            }
            u.fence()?;
            look(column.came(world.rank()).map(|at| u[at].to_bits()));
            Ok(())
        },
    )
}

fn main() {
    let draws = |sets, n| Arc::new(draw(2, sets, n));
    let many: Draws = draws(SETS, 10_000);
    let limit = |apply| {
        let tables = Tables::new((*many).clone());
        move |n| tables.log_exchange_apply(apply, n)
    };
    let on = |run: fn(&Draws, u64) -> Duration, draws: &Draws| {
        let draws = draws.clone();
        move |n| run(&draws, n)
    };
    let answers = Tables::new((*many).clone());
    let mut contests = vec![
        Contest::new("10,000 scattered puts, dynamic", 10_000)
            .side("log, exchange, apply", limit(Apply::Store))
            .held("Fencepost", 1.8, on(puts, &many))
            .side("Fencepost, shm", ours::shm(on(puts, &many))),
        Contest::new("10,000 scattered f64 accumulates, dynamic", 10_000)
            .side("log, exchange, apply", limit(Apply::AddF64))
            .held("Fencepost", 2.2, on(sums, &many))
            .side("Fencepost, shm", ours::shm(on(sums, &many))),
        Contest::new("10,000 scattered puts and accumulates over two windows, dynamic", 10_000)
            .side("log, exchange, apply", limit(Apply::AddF64))
            .held("Fencepost", 2.7, on(mixed, &many))
            .side("Fencepost, shm", ours::shm(on(mixed, &many))),
        Contest::new("10,000 scattered gets, dynamic", 10_000)
            .side("Fencepost, as many puts", on(puts, &many))
            .held("Fencepost", 2.0, on(gets, &many))
            .side("Fencepost, shm", ours::shm(on(gets, &many)))
            .side("log, answer, take", move |n| answers.log_answer_take(n)),
    ];
    let into = |borrowed| {
        let draws = many.clone();
        move |n| scoped_gets(borrowed, &draws, n)
    };
    contests.push(
        Contest::new("10,000 gets of a scoped epoch, dynamic", 10_000)
            .side("get into a section", into(false))
            .held("get_into a buffer", 2.0, into(true))
            .side("get into a section, shm", ours::shm(into(false)))
            .side("get_into a buffer, shm", ours::shm(into(true))),
    );
    for n in [1000, 10_000, 100_000] {
        let (same, fresh) = (draws(1, n), draws(4, n));
        let limit = Tables::new((*fresh).clone());
        contests.push(
            Contest::new(format!("{n} puts: fresh ones (budget 15 ns), and the same again (6 ns)"), n)
                .side("the same in each epoch", on(puts, &same))
                .side("fresh in each epoch", on(puts, &fresh))
                .side("log, exchange, apply", move |n| limit.log_exchange_apply(Apply::Store, n)),
        );
    }
    let halo = Halo::new(Face::column(1024));
    contests.push(
        Contest::new("column halo of 1024 as separate puts, not prepared", 1)
            .side("pack, barrier, unpack", move |n| halo.fresh_packed(n))
            .side("Fencepost", |n| column(Mode::Auto, n))
            .side("Fencepost, shm", ours::shm(|n| column(Mode::Auto, n))),
    );
    fencepost_benches::main(contests);
}
