//! Measures the same as `../../mpi_stencil2d.c`: a 5-point Jacobi step of heat on an n x n grid
//! with a boundary of zeros.

use fencepost::prelude::*;
use fencepost::grid::{Row, Tiles};
use ours::stencil::{Exchange, case, tiled};
use ours::{env_f64, widest};

#[superstep]
fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.faces() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Does the same as `exchange`, and also fills the corners of the halo. A group of several steps
/// reads the corners.
#[superstep]
fn exchange_all(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Computes a step of the cells of a row.
#[inline(always)]
fn cells<const FMA: bool>(row: &Row<2>, u: &[f64], v: &mut [f64]) {
    let (above, below, left, right) = (row.up(u), row.down(u), row.left(u), row.right(u));
    let (here, next) = (row.of(u), row.of_mut(v));
    for j in 0..row.len() {
        let sum = left[j] + right[j] + above[j] + below[j];
        next[j] = if FMA { here[j].mul_add(0.6, 0.1 * sum) } else { 0.6 * here[j] + 0.1 * sum };
    }
}

/// Computes a step of the block's own cells, row by row.
#[inline(always)]
fn body<const FMA: bool>(u: &[f64], v: &mut [f64], block: &Block<2>) {
    // A closure would be compiled without the vector instructions that its function may use.
    for row in block.rows() {
        cells::<FMA>(&row, u, v);
    }
}
widest!(fn sweep = body(u: &[f64], v: &mut [f64], block: &Block<2>));

/// Computes the steps of a group, band by band. Cells outside the grid are zeros, which no step
/// writes.
#[inline(always)]
fn bands<const FMA: bool>(u: &mut [f64], v: &mut [f64], tiles: &Tiles<2>) {
    for row in tiles.rows() {
        let [now, next] = row.turn([&mut *u, &mut *v]);
        cells::<FMA>(&row, now, next);
    }
}
widest!(fn group = bands(u: &mut [f64], v: &mut [f64], tiles: &Tiles<2>));

fn splits(world: &World, n: usize, split: &str, grid: [usize; 2]) -> Result<()> {
    let block = Block::new(world, [n, n])?.grid(grid)?.halo(1)?;
    let mut sum = None;
    let mut run = |variant: &str, f: &mut dyn FnMut(&mut Window<f64>) -> Result<()>| {
        case(world, ("stencil2d", split, variant), n, &block, sweep, &mut sum, f)
    };
    run("dynamic", &mut |u| {
        for n in block.faces() {
            u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
        }
        u.fence()
    })?;
    run("superstep", &mut |u| exchange(u, &block))?;
    let mut prepared = exchange::prepare(world, &block)?;
    run("prepared", &mut |u| prepared.replay(u))?;
    tiled(world, ("stencil2d", split), n, &block, group, sum, |world, block| {
        let mut prepared = exchange_all::prepare(world, block)?;
        Ok(Box::new(move |u: &mut Window<f64>| prepared.replay(u)) as Exchange)
    })
}

fn main() -> Result<()> {
    ours::main(|world| {
        let nmax = env_f64("BASE_N2D", 4096.0) as usize;
        let mut n = 512;
        while n <= nmax {
            match world.size() {
                2 => {
                    splits(world, n, "rows", [2, 1])?;
                    splits(world, n, "cols", [1, 2])?;
                }
                4 => splits(world, n, "2x2", [2, 2])?,
                size => splits(world, n, "rows", [size, 1])?,
            }
            n *= 2;
        }
        Ok(())
    })
}
