//! Compiling ahead: heat2d's exchange is compiled without a world, for 4 ranks and for 100,172, saved, loaded, run,
//! and refused where it does not fit.
//!
//! `cargo run --release --example ahead`

#![expect(clippy::print_stdout, reason = "an example reports to whoever runs it")]

#[expect(dead_code, reason = "only its superstep is wanted")]
#[path = "heat2d.rs"]
mod heat2d;

use fencepost::prelude::*;
use heat2d::exchange;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The cells of heat2d's plate, and a way of its own to cut them for very many ranks.
const CELLS: [usize; 2] = [512, 512];
const MANY: [usize; 2] = [316, 317];

/// The exchange after an edit that changes what is put where: faces only.
mod edited {
    use super::*;

    #[superstep]
    pub fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
        for n in block.faces() {
            u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
        }
        Ok(())
    }
}

/// The exchange after an edit that changes words only.
mod reworded {
    use super::*;

    #[superstep]
    pub fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
        for there in block.neighbours() {
            let (edge, halo) = (block.inner_edge(&there), block.halo_of(&there));
            u.put(edge).to(there.rank, halo)?;
        }
        Ok(())
    }
}

/// A folder of this process's own for plans, gone at the end.
struct Plans(PathBuf);

impl Plans {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("fencepost-ahead-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Plans {
    fn drop(&mut self) {
        // A folder that is left in the system's place for temporary files does no harm.
        let _: std::io::Result<()> = std::fs::remove_dir_all(&self.0);
    }
}

/// What a run of heat2d's exchange leaves on each rank, by plan or without one.
fn run(ranks: usize, plan: Option<&Path>) -> Result<Vec<Vec<f64>>> {
    fencepost::ranks(ranks).run(|world| {
        let block = Block::new(world, CELLS)?.halo(1)?;
        let mut u = world.window::<f64>(block.len())?;
        for i in block.rows().flatten() {
            u[i] = (world.rank() * 1_000_000 + i) as f64;
        }
        match plan {
            None => exchange(&mut u, &block)?,
            Some(plan) => exchange::load(world, plan, &block)?.run(&mut u)?,
        }
        Ok(u.to_vec())
    })
}

/// What each rank says to a plan: nothing, or why it is refused.
fn refusals(ranks: usize, load: impl Fn(&World) -> Result<()> + Sync) -> Result<Vec<Option<Error>>> {
    fencepost::ranks(ranks).run(|world| Ok(load(world).err()))
}

/// Every rank must have refused with a reason that names `because`.
fn refused(what: &str, because: &str, refusals: Vec<Option<Error>>) {
    for (rank, refusal) in refusals.into_iter().enumerate() {
        let error = refusal.unwrap_or_else(|| panic!("rank {rank} took the plan of {what}"));
        assert_eq!(error.class(), Class::Plan, "{error}");
        if rank == 0 {
            println!("\n{what} is refused: {error}");
            assert!(error.message().contains(because), "{error}");
        }
    }
}

/// The whole example.
pub fn main() -> Result<()> {
    let plans = Plans::new()?;
    let (four, many) = (plans.0.join("four.plan"), plans.0.join("many.plan"));

    // Compiled with no world: nothing here has ranks yet.
    let compiled = exchange::compile(4, |rank| Block::at(rank, 4, CELLS)?.halo(1))?;
    compiled.save(&four)?;
    let ranks = MANY[0] * MANY[1];
    let clock = Instant::now();
    exchange::compile(ranks as u32, |rank| {
        Block::at(rank, ranks, MANY.map(|side| 64 * side))?.grid(MANY)?.halo(1)
    })?
    .save(&many)?;
    println!("compiled, verified and saved for {ranks} ranks in {:.0?}", clock.elapsed());
    for plan in [&four, &many] {
        println!(
            "{}: {} bytes",
            plan.file_name().unwrap_or_default().display(),
            std::fs::metadata(plan)?.len()
        );
    }
    println!("\n{}", compiled.explain());

    assert!(run(4, Some(&four))? == run(4, None)?, "the plan moves other bits than the superstep");
    println!("the loaded plan leaves the same bits as the superstep");

    let block = |world: &World| Block::new(world, CELLS)?.halo(1);
    let other = |world: &World| Block::new(world, [CELLS[0], CELLS[1] + 2])?.halo(1);
    refused(
        "another grid",
        "operation 0",
        refusals(4, |world| exchange::load(world, &four, &other(world)?).map(drop))?,
    );
    refused(
        "another number of ranks",
        "4 ranks",
        refusals(3, |world| exchange::load(world, &four, &block(world)?).map(drop))?,
    );
    let edited = refusals(4, |world| edited::exchange::load(world, &four, &block(world)?).map(drop))?;
    refused("source edited so that the pattern changed", "operation 2", edited);
    let reworded = refusals(4, |world| reworded::exchange::load(world, &four, &block(world)?).map(drop))?;
    assert!(reworded.iter().all(Option::is_none), "{reworded:?}");
    println!("\nsource edited so that it says the same in other words is accepted");
    Ok(())
}
