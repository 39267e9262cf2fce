//! How long does it take to compile, verify, save and load a halo for very many ranks, and how
//! large is its plan?

use fencepost::prelude::*;
use fencepost::superstep;
use fencepost_benches::Contest;
use std::time::Instant;

#[superstep]
fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Compiles the halo of blocks of 64 by 64 cells. With 100,172 ranks there are 316 by 317 blocks.
fn compile(grid: [usize; 2]) -> fencepost::Compiled {
    let ranks = grid[0] * grid[1];
    let argument = |rank| Block::at(rank, ranks, grid.map(|side| 64 * side))?.grid(grid)?.halo(1);
    exchange::compile(ranks, argument).expect("a halo compiles")
}

#[expect(clippy::print_stdout, reason = "a bench prints its results")]
fn main() {
    let plan = std::env::temp_dir().join(format!("fencepost-compile-{}.plan", std::process::id()));
    let clock = Instant::now();
    let compiled = compile([316, 317]);
    let cold = clock.elapsed();
    compiled.save(&plan).expect("a folder for temporary files");
    let size = std::fs::metadata(&plan).expect("just written").len();
    std::fs::remove_file(&plan).expect("just written");
    println!("100,172 ranks, cold: {cold:.0?} (budget 1 s); plan of {size} bytes (budget 10,240)");
    let timed = |grid| {
        move |iterations| {
            let clock = Instant::now();
            (0..iterations).for_each(|_| drop(std::hint::black_box(compile(grid))));
            clock.elapsed()
        }
    };
    fencepost_benches::main(vec![
        Contest::new("compile and verify an 8-neighbour halo", 1)
            .side("9 ranks", timed([3, 3]))
            .side("100,172 ranks", timed([316, 317])),
    ]);
}
