//! Heat in a square plate whose edges are kept cold, on as many ranks as there are cores (or `FENCEPOST_RANKS`).
//!
//! The plate starts with one arch of warmth, sin x sin y, which keeps its shape as it cools: each step multiplies it
//! by the cosine of 180 degrees / (n - 1). So the answer is known, and checked.
//!
//! `cargo run --release --example heat2d`, or with `FENCEPOST_TRANSPORT=shm` as processes

#![expect(clippy::print_stdout, reason = "an example reports to whoever runs it")]

use fencepost::prelude::*;

const CELLS: usize = 512;

/// Fill this block's halo from the blocks around it.
#[superstep]
pub fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
} // a superstep ends in a fence

/// Each cell becomes the mean of the four around it; those at the edge of the plate stay as they are.
fn relax(u: &[f64], v: &mut [f64], block: &Block<2>) {
    for i in block.rows_inside(1).flatten() {
        v[i] = 0.25 * ((u[i - block.stride(0)] + u[i + block.stride(0)]) + (u[i - 1] + u[i + 1]));
    }
}

/// A half wave across the plate.
fn wave(at: usize) -> f64 {
    (at as f64 * 180.0 / (CELLS - 1) as f64).to_radians().sin()
}

/// A thousand steps, and what they must come to.
pub fn main() -> Result<()> {
    fencepost::run(|world| {
        let block = Block::new(world, [CELLS, CELLS])?.halo(1)?;
        let (mut u, mut v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
        let [top, left] = block.origin();
        for (row, cells) in block.rows().enumerate() {
            cells.enumerate().for_each(|(column, i)| u[i] = wave(top + row) * wave(left + column));
        }
        for _ in 0..1000 {
            exchange(&mut u, &block)?;
            relax(&u, &mut v, &block); // plain slices: a window derefs to its local part
            std::mem::swap(&mut u, &mut v);
        }
        let hottest = block.rows().flatten().map(|i| u[i]).fold(0.0, f64::max);
        let known = wave(CELLS / 2).powi(2) * (180.0 / (CELLS - 1) as f64).to_radians().cos().powi(1000);
        if let Some(hottest) = world.reduce(0, &[hottest], Op::Max)? {
            println!("{:.12} in the middle, where {known:.12} is known", hottest[0]);
            assert!((hottest[0] - known).abs() < 1e-10);
        }
        Ok(())
    })
}
