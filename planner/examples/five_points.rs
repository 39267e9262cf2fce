//! A plain five-point loop, with which most programs begin. `.ci/run assembly` shows the assembly
//! of this loop.

use fencepost_planner::Result;
use fencepost_planner::grid::{Block, Tiles};

/// Sets each cell to the mean of its four neighbours.
#[inline(never)]
#[unsafe(no_mangle)]
fn five_points(block: &Block<2>, u: &[f64], v: &mut [f64]) {
    for row in block.rows_inside(1) {
        let (up, down, left, right) = (row.up(u), row.down(u), row.left(u), row.right(u));
        let mean = row.of_mut(v);
        for j in 0..row.len() {
            mean[j] = 0.25 * ((up[j] + down[j]) + (left[j] + right[j]));
        }
    }
}

/// Computes several steps of the same loop, band by band.
#[inline(never)]
#[unsafe(no_mangle)]
fn five_points_tiled(tiles: &Tiles<2>, u: &mut [f64], v: &mut [f64]) {
    for row in tiles.rows_inside(1) {
        let [now, next] = row.turn([&mut *u, &mut *v]);
        let (up, down, left, right) = (row.up(now), row.down(now), row.left(now), row.right(now));
        let mean = row.of_mut(next);
        for j in 0..row.len() {
            mean[j] = 0.25 * ((up[j] + down[j]) + (left[j] + right[j]));
        }
    }
}

fn main() -> Result<()> {
    let block = Block::at(0, 1, [64, 64])?.halo(1)?;
    let (u, mut v) = (vec![1.0; block.len()], vec![0.0; block.len()]);
    five_points(&block, &u, &mut v);
    assert_eq!(v.iter().sum::<f64>(), 62.0 * 62.0);
    let mut u = u;
    five_points_tiled(&block.tiles(1)?, &mut u, &mut v);
    assert_eq!(v.iter().sum::<f64>(), 62.0 * 62.0);
    Ok(())
}
