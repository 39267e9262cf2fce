//! How long does a prepared halo take, compared with the copies alone?
//!
//! In each epoch, a rank writes new values to its edge and reads the values that arrived. Otherwise
//! the values would stay in the cache of the rank that moves them, and no rank would have to report
//! that new values are ready.

use fencepost::prelude::*;
use fencepost::superstep;
use fencepost_benches::limits::halo::{Face, Halo, look};
use fencepost_benches::{Contest, ours};
use std::time::Duration;

/// Puts the cells next to each face into the halo of the block behind that face.
#[superstep]
fn faces2(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.faces() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

#[superstep]
fn faces3(u: &mut Window<f64>, block: &Block<3>) -> Result<()> {
    for n in block.faces() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Puts the column that is next to the other rank, with one put for each cell.
#[superstep]
fn cells(
    u: &mut Window<f64>,
    rows: usize,
    stride: usize,
    from: usize,
    to: usize,
    other: usize,
) -> Result<()> {
    for row in 1..=rows {
        u.put(row * stride + from..row * stride + from + 1).to(other, row * stride + to)?;
    }
    Ok(())
}

/// Executes an epoch: writes new values to the edge that this rank sends, calls `exchange`, and
/// reads the halo that arrived.
fn fresh(
    u: &mut Window<f64>,
    face: Face,
    me: usize,
    k: usize,
    exchange: impl FnOnce(&mut Window<f64>) -> Result<()>,
) -> Result<()> {
    face.sent(me).for_each(|at| u[at] = k as f64);
    exchange(u)?;
    look(face.came(me).map(|at| u[at].to_bits()));
    Ok(())
}

fn plane2(n: usize, grid: [usize; 2], face: Face, iterations: u64) -> Duration {
    let make = |world: &World| {
        let block = Block::new(world, [n, n])?.grid(grid)?.halo(1)?;
        Ok((world.window::<f64>(block.len())?, faces2::prepare(world, &block)?))
    };
    ours::team(2, iterations, make, |world, (u, exchange), k| {
        fresh(u, face, world.rank(), k, |u| exchange.replay(u))
    })
}

fn plane3(n: usize, grid: [usize; 3], face: Face, iterations: u64) -> Duration {
    let make = |world: &World| {
        let block = Block::new(world, [n, n, n])?.grid(grid)?.halo(1)?;
        Ok((world.window::<f64>(block.len())?, faces3::prepare(world, &block)?))
    };
    ours::team(2, iterations, make, |world, (u, exchange), k| {
        fresh(u, face, world.rank(), k, |u| exchange.replay(u))
    })
}

fn column_of_puts(n: usize, iterations: u64) -> Duration {
    let make = |world: &World| {
        let stride = n / 2 + 2;
        let (from, to) = if world.rank() == 0 { (n / 2, 0) } else { (1, n / 2 + 1) };
        let exchange = cells::prepare(world, n, stride, from, to, 1 - world.rank())?;
        Ok((world.window::<f64>((n + 2) * stride)?, exchange))
    };
    ours::team(2, iterations, make, |world, (u, exchange), k| {
        fresh(u, Face::column(n), world.rank(), k, |u| exchange.replay(u))
    })
}

fn main() {
    let direct = |face| {
        let halo = Halo::new(face);
        move |n| halo.fresh(n)
    };
    let packed = |face| {
        let halo = Halo::new(face);
        move |n| halo.fresh_packed(n)
    };
    let mut contests = Vec::new();
    for n in [512, 1024, 2048] {
        let face = Face::row(n);
        contests.push(
            Contest::new(format!("row halo of {n}"), 1)
                .side("copy, barrier, and again", direct(face))
                .side("pack, barrier, unpack", packed(face))
                .held("Fencepost, prepared", 1.2, move |k| plane2(n, [2, 1], face, k))
                .side("Fencepost, prepared, shm", ours::shm(move |k| plane2(n, [2, 1], face, k))),
        );
    }
    let column = Face::column(1024);
    contests.push(
        Contest::new("column halo of 1024, one datatype", 1)
            .side("pack, barrier, unpack", packed(column))
            .held("Fencepost, prepared", 1.3, move |k| plane2(1024, [1, 2], column, k))
            .side("Fencepost, prepared, shm", ours::shm(move |k| plane2(1024, [1, 2], column, k))),
    );
    contests.push(
        Contest::new("column halo of 1024, a put a cell", 1)
            .side("pack, barrier, unpack", packed(column))
            .held("Fencepost, prepared", 1.3, |k| column_of_puts(1024, k))
            .side("Fencepost, prepared, shm", ours::shm(|k| column_of_puts(1024, k))),
    );
    let plane = Face::plane(128);
    contests.push(
        Contest::new("k-face of 128 cubed", 1)
            .side("pack, barrier, unpack", packed(plane))
            .held("Fencepost, prepared", 1.3, move |k| plane3(128, [1, 1, 2], plane, k))
            .side("Fencepost, prepared, shm", ours::shm(move |k| plane3(128, [1, 1, 2], plane, k))),
    );
    fencepost_benches::main(contests);
}
