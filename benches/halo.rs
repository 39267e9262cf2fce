//! What does a prepared halo cost compared with the copies alone?

use fencepost::prelude::*;
use fencepost::superstep;
use fencepost_benches::limits::halo::{Face, Halo};
use fencepost_benches::{Contest, ours};
use std::time::Duration;

/// The cells next to each face go into the halo behind it.
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

/// The column towards the other of two ranks, a put for each of its cells.
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

fn plane2(n: usize, grid: [usize; 2], iterations: u64) -> Duration {
    let make = |world: &World| {
        let block = Block::new(world, [n, n])?.grid(grid)?.halo(1)?;
        Ok((world.window::<f64>(block.len())?, faces2::prepare(world, &block)?))
    };
    ours::team(2, iterations, make, |_, (u, exchange), _| exchange.replay(u))
}

/// The same, each time with new values, which are read where they arrive.
fn fresh_rows(n: usize, iterations: u64) -> Duration {
    let make = |world: &World| {
        let block = Block::new(world, [n, n])?.grid([2, 1])?.halo(1)?;
        let width = n + 2;
        // The first rank's last row goes into the second one's first halo row, and the other way round.
        let [from, halo] = if world.rank() == 0 { [n / 2, n / 2 + 1] } else { [1, 0] };
        let rows = [from, halo].map(|row| row * width + 1..row * width + 1 + n);
        Ok((world.window::<f64>(block.len())?, faces2::prepare(world, &block)?, rows))
    };
    ours::team(2, iterations, make, |_, (u, exchange, [from, halo]), k| {
        u[from.clone()].fill(k as f64);
        exchange.replay(u)?;
        // As the limit reads its words.
        std::hint::black_box(u[halo.clone()].iter().fold(0, |sum: u64, value| sum.wrapping_add(value.to_bits())));
        Ok(())
    })
}

fn plane3(n: usize, grid: [usize; 3], iterations: u64) -> Duration {
    let make = |world: &World| {
        let block = Block::new(world, [n, n, n])?.grid(grid)?.halo(1)?;
        Ok((world.window::<f64>(block.len())?, faces3::prepare(world, &block)?))
    };
    ours::team(2, iterations, make, |_, (u, exchange), _| exchange.replay(u))
}

fn column_of_puts(n: usize, iterations: u64) -> Duration {
    let make = |world: &World| {
        let stride = n / 2 + 2;
        let (from, to) = if world.rank() == 0 { (n / 2, 0) } else { (1, n / 2 + 1) };
        let exchange = cells::prepare(world, n, stride, from, to, 1 - world.rank())?;
        Ok((world.window::<f64>((n + 2) * stride)?, exchange))
    };
    ours::team(2, iterations, make, |_, (u, exchange), _| exchange.replay(u))
}

fn main() {
    let direct = |face| {
        let halo = Halo::new(face);
        move |n| halo.direct(n)
    };
    let fresh = |face| {
        let halo = Halo::new(face);
        move |n| halo.fresh(n)
    };
    let fresh_packed = |face| {
        let halo = Halo::new(face);
        move |n| halo.fresh_packed(n)
    };
    let packed = |face| {
        let halo = Halo::new(face);
        move |n| halo.packed(n)
    };
    let mut contests = Vec::new();
    for n in [512, 1024, 2048] {
        contests.push(
            Contest::new(format!("row halo of {n}"), 1)
                .side("copy, barrier", direct(Face::row(n)))
                .held("Fencepost, prepared", 2.5, move |k| plane2(n, [2, 1], k))
                .side("Fencepost, prepared, shm", ours::shm(move |k| plane2(n, [2, 1], k))),
        );
        contests.push(
            Contest::new(format!("row halo of {n}, new values"), 1)
                .side("write, copy, barrier, read, barrier", fresh(Face::row(n)))
                .side("write, pack, barrier, unpack, read", fresh_packed(Face::row(n)))
                .held("Fencepost, prepared", 1.2, move |k| fresh_rows(n, k))
                .side("Fencepost, prepared, shm", ours::shm(move |k| fresh_rows(n, k))),
        );
    }
    contests.push(
        Contest::new("column halo of 1024, one datatype", 1)
            .side("pack, barrier, unpack", packed(Face::column(1024)))
            .held("Fencepost, prepared", 1.3, |k| plane2(1024, [1, 2], k))
            .side("Fencepost, prepared, shm", ours::shm(|k| plane2(1024, [1, 2], k))),
    );
    contests.push(
        Contest::new("column halo of 1024, a put a cell", 1)
            .side("pack, barrier, unpack", packed(Face::column(1024)))
            .held("Fencepost, prepared", 1.3, |k| column_of_puts(1024, k))
            .side("Fencepost, prepared, shm", ours::shm(|k| column_of_puts(1024, k))),
    );
    contests.push(
        Contest::new("k-face of 128 cubed", 1)
            .side("pack, barrier, unpack", packed(Face::plane(128)))
            .held("Fencepost, prepared", 1.3, |k| plane3(128, [1, 1, 2], k))
            .side("Fencepost, prepared, shm", ours::shm(|k| plane3(128, [1, 1, 2], k))),
    );
    fencepost_benches::main(contests);
}
