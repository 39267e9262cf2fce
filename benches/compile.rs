//! How long does it take to compile, verify, save and open a halo for very many ranks, and to
//! simulate steps with it? How large is the plan?

use fencepost::prelude::*;
use fencepost::superstep;
use fencepost_benches::Contest;
use fencepost_benches::contest::short;
use fencepost_tool::simulation::Question;
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

#[superstep]
fn exchange_cubes(u: &mut Window<f64>, block: &Block<3>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Times a million ranks in three dimensions, with 26 neighbours each.
#[expect(clippy::print_stdout, reason = "a bench prints its results")]
fn million() {
    let folder = std::env::temp_dir();
    for (name, cells, limit, most) in
        [("even", [1600, 1600, 1600], 2.0, 10_240), ("uneven", [1603, 1601, 1607], 4.0, 40_960)]
    {
        let plan = folder.join(format!("fencepost-compile-{}-{name}.plan", std::process::id()));
        let clock = Instant::now();
        let cube = |rank| Block::at(rank, 1_000_000, cells)?.grid([100; 3])?.halo(1);
        let compiled = exchange_cubes::compile(1_000_000, cube).expect("a halo compiles");
        let compiling = clock.elapsed().as_secs_f64();
        compiled.save(&plan).expect("a folder for temporary files");
        let size = std::fs::metadata(&plan).expect("just written").len();
        let clock = Instant::now();
        drop(fencepost::Compiled::open(&plan).expect("just written"));
        let opening = clock.elapsed().as_secs_f64();
        std::fs::remove_file(&plan).expect("just written");
        println!(
            "3D, a million ranks, {name} blocks: compiled in {compiling:.2} s (budget {limit} s), opened in {opening:.2} s; plan of {size} bytes (budget {most})"
        );
        simulate("a million ranks, 10 steps", &compiled, 10);
    }
    let plane = compile([316, 317]);
    simulate("100,172 ranks, 10 steps", &plane, 10);
    simulate("100,172 ranks, 100,000 steps", &plane, 100_000);
}

/// Times the simulation of steps with 100 us of work.
#[expect(clippy::print_stdout, reason = "a bench prints its results")]
fn simulate(name: &str, plan: &fencepost::Compiled, steps: u64) {
    let clock = Instant::now();
    let question = Question { steps, work: 100_000, uneven: 0.0, noise: 0.0, seed: 1, tolerance: 0.05 };
    let simulated = question.simulated(plan, &fencepost::Machine::default()).expect("a short run");
    println!(
        "simulated, {name}: {:.2} s, {} steps followed, {} ns",
        clock.elapsed().as_secs_f64(),
        simulated.followed,
        simulated.end
    );
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
    if !short() {
        million();
    }
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
