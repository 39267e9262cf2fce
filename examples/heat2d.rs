//! Heat conduction in a square plate with cold edges, on one rank for each core (or
//! `FENCEPOST_RANKS` ranks).
//!
//! The initial temperature is sin x sin y, which keeps its shape as the plate cools: each step
//! multiplies it by the cosine of 180 degrees / (n - 1). So the exact result is known, and the
//! program checks it.
//!
//! `cargo run --release --example heat2d`; `FENCEPOST_TRANSPORT=shm` runs the ranks as processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::{grid::Row, prelude::*};

const CELLS: usize = 512;
/// The number of steps between two exchanges, and the width of the halo.
pub const GROUP: usize = 8;

/// Puts the edges of each block into the halos of the blocks around it.
#[superstep]
pub fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
} // a superstep ends in a fence

/// Sets each cell of a row of `v` to the mean of its four neighbours in `u`.
pub fn relax(row: &Row<2>, [u, v]: [&mut [f64]; 2]) {
    let (up, down, left, right) = (row.up(u), row.down(u), row.left(u), row.right(u));
    for (j, mean) in row.of_mut(v).iter_mut().enumerate() {
        *mean = 0.25 * ((up[j] + down[j]) + (left[j] + right[j]));
    }
}

/// Runs a thousand steps, and compares the result with the exact result.
pub fn main() -> Result<()> {
    fencepost::run(|world| {
        let wave = |at: usize| (at as f64 * 180.0 / (CELLS - 1) as f64).to_radians().sin();
        let block = Block::new(world, [CELLS, CELLS])?.halo(GROUP)?;
        let (mut u, mut v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
        block.fill(&mut u, |[i, j]| wave(i) * wave(j));
        // visits the rows band by band: all steps of the group are computed for a few rows before
        // the next rows
        let tiles = block.tiles(GROUP)?;
        for _ in 0..1000 / GROUP {
            exchange(&mut u, &block)?;
            for row in tiles.rows_inside(1) {
                // a window dereferences to its local part, so these are plain slices
                relax(&row, row.turn([&mut u, &mut v]));
            }
            [u, v] = tiles.turn([u, v]);
        }
        let hottest = block.rows().flat_map(|row| row.of(&u)).copied().fold(0.0, f64::max);
        let known = wave(CELLS / 2).powi(2) * (180.0 / (CELLS - 1) as f64).to_radians().cos().powi(1000);
        if let Some(hottest) = world.reduce(0, &[hottest], Op::Max)? {
            println!("{:.12} in the middle; the exact value is {known:.12}", hottest[0]);
            assert!((hottest[0] - known).abs() < 1e-10);
        }
        Ok(())
    })
}
