//! Measures the same as `../../mpi_stencil3d.c`: a 7-point Jacobi step of heat on an n^3 grid with
//! a boundary of zeros.

use fencepost::prelude::*;
use fencepost::grid::{Row, Tiles};
use ours::stencil::{Exchange, case, tiled};
use ours::{env_f64, widest};

#[superstep]
fn exchange(u: &mut Window<f64>, block: &Block<3>) -> Result<()> {
    for n in block.faces() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Does the same as `exchange`, and also fills the edges and corners of the halo. A group of
/// several steps reads these edges and corners.
#[superstep]
fn exchange_all(u: &mut Window<f64>, block: &Block<3>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Computes a step of the cells of a row.
#[inline(always)]
fn cells<const FMA: bool>(row: &Row<3>, u: &[f64], v: &mut [f64]) {
    let (front, back) = (row.at(u, [-1, 0, 0]), row.at(u, [1, 0, 0]));
    let (above, below, left, right) = (row.up(u), row.down(u), row.left(u), row.right(u));
    let (here, next) = (row.of(u), row.of_mut(v));
    for k in 0..row.len() {
        let sum = left[k] + right[k] + above[k] + below[k] + front[k] + back[k];
        next[k] = if FMA { here[k].mul_add(0.4, 0.1 * sum) } else { 0.4 * here[k] + 0.1 * sum };
    }
}

/// Computes a step of the block's own cells, row by row.
#[inline(always)]
fn body<const FMA: bool>(u: &[f64], v: &mut [f64], block: &Block<3>) {
    // A closure would be compiled without the vector instructions that its function may use.
    for row in block.rows() {
        cells::<FMA>(&row, u, v);
    }
}
widest!(fn sweep = body(u: &[f64], v: &mut [f64], block: &Block<3>));

/// Computes the steps of a group, band by band. Cells outside the grid are zeros, which no step
/// writes.
#[inline(always)]
fn bands<const FMA: bool>(u: &mut [f64], v: &mut [f64], tiles: &Tiles<3>) {
    for row in tiles.rows() {
        let [now, next] = row.turn([&mut *u, &mut *v]);
        cells::<FMA>(&row, now, next);
    }
}
widest!(fn group = bands(u: &mut [f64], v: &mut [f64], tiles: &Tiles<3>));

fn splits(world: &World, n: usize, split: &str, grid: [usize; 3]) -> Result<()> {
    let block = Block::new(world, [n, n, n])?.grid(grid)?.halo(1)?;
    let mut sum = None;
    let mut run = |variant: &str, f: &mut dyn FnMut(&mut Window<f64>) -> Result<()>| {
        case(world, ("stencil3d", split, variant), n, &block, sweep, &mut sum, f)
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
    tiled(world, ("stencil3d", split), n, &block, group, sum, |world, block| {
        let mut prepared = exchange_all::prepare(world, block)?;
        Ok(Box::new(move |u: &mut Window<f64>| prepared.replay(u)) as Exchange)
    })
}

fn main() -> Result<()> {
    ours::main(|world| {
        let nmax = env_f64("BASE_N3D", 256.0) as usize;
        let mut n = 64;
        while n <= nmax {
            match world.size() {
                2 => {
                    splits(world, n, "split_i", [2, 1, 1])?;
                    splits(world, n, "split_k", [1, 1, 2])?;
                }
                4 => {
                    splits(world, n, "split_ij", [2, 2, 1])?;
                    splits(world, n, "split_jk", [1, 2, 2])?;
                }
                size => splits(world, n, "split_i", [size, 1, 1])?,
            }
            n *= 2;
        }
        Ok(())
    })
}
