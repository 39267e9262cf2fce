//! Ahead-of-time compilation. The exchange of heat2d is compiled without a world, for 4 ranks and
//! for 100,172 ranks. The plan for 4 ranks is saved, loaded and run. The steps after each exchange
//! are computed band by band. Plans that do not match the program are refused.
//!
//! `cargo run --release --example ahead`; `--transport shm` or `tcp` runs the ranks as processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

#[expect(dead_code, reason = "only its superstep and its kernel are used")]
#[path = "heat2d.rs"]
mod heat2d;

use fencepost::prelude::*;
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::Job;
use heat2d::{GROUP, exchange, relax};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Compile the exchange of heat2d ahead of time, run it, and refuse it where it does not match
#[derive(Parser)]
#[command(after_help = "Example:\n  ahead -n 4 --transport tcp")]
struct Options {
    #[command(flatten)]
    job: Job,
}

/// The cells of heat2d's plate, and the grid of blocks for a very large number of ranks.
const CELLS: [usize; 2] = [512, 512];
const MANY: [usize; 2] = [316, 317];

// The plans in `examples/plans` are of this exchange: `fencepost plan` writes and checks them.
fencepost::plan!(
    exchange = |ask| {
        let (ranks, cells) = (ask.ranks(), ask.value("cells", CELLS)?);
        exchange::compile(ranks, |rank| Block::at(rank, ranks, cells)?.halo(GROUP))
    }
);

/// The exchange after an edit that changes its pattern: the edited exchange fills only the halos of
/// faces.
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

/// The exchange after an edit that keeps its pattern.
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

/// A temporary folder for the plans of this process. It is removed on drop.
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
        // A folder left behind in the system's temporary folder does no harm.
        let _: std::io::Result<()> = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs three exchanges, each followed by a group of steps, with or without a plan. Returns the
/// windows of all ranks, or `None` in processes other than rank 0's.
fn run(job: &Job, plan: Option<&Path>) -> Result<Option<Vec<Vec<f64>>>> {
    let mut left: Vec<_> = job.world().collect(|world| {
        let block = Block::new(world, CELLS)?.halo(GROUP)?;
        let (mut u, mut v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
        block.fill(&mut u, |[i, j]| (1000 * i + j) as f64);
        let mut loaded = plan.map(|plan| exchange::load(world, plan, &block)).transpose()?;
        let tiles = block.tiles(GROUP)?;
        for _ in 0..3 {
            match &mut loaded {
                None => exchange(&mut u, &block)?,
                Some(loaded) => loaded.replay(&mut u)?,
            }
            for row in tiles.rows_inside(1) {
                relax(&row, row.turn([&mut u, &mut v]));
            }
            [u, v] = tiles.turn([u, v]);
        }
        world.gather(0, &u)
    })?;
    Ok(left.swap_remove(0))
}

/// Checks that each of the first `ranks` ranks refuses a plan, with a message that contains
/// `because`.
fn refused<T>(
    job: &Job,
    ranks: usize,
    what: &str,
    because: &str,
    load: impl Fn(&World) -> Result<T> + Sync,
) -> Result<()> {
    job.world().run(|world| {
        let Some(part) = world.split((world.rank() < ranks).then_some(0), 0)? else { return Ok(()) };
        let rank = world.rank();
        let error = load(&part).err().unwrap_or_else(|| panic!("rank {rank} accepted the plan of {what}"));
        assert_eq!(error.class(), ErrorClass::Plan, "{error}");
        if rank == 0 {
            println!("\n{what} is refused: {error}");
            assert!(error.message().contains(because), "{error}");
        }
        Ok(())
    })
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    let options = Options::parse();
    options.job.start()?;
    report(&options.job)
}

fn report(job: &Job) -> Result<()> {
    let plans = Plans::new()?;
    let (few, many) = (plans.0.join("few.plan"), plans.0.join("many.plan"));
    let size = job.ranks();

    // Compilation needs no world: no ranks have started yet.
    let compiled = exchange::compile(size, |rank| Block::at(rank, size, CELLS)?.halo(GROUP))?;
    let compiled = job.compiled(&compiled, &job.here()?)?;
    compiled.save(&few)?;
    if job.reports() {
        let ranks = MANY[0] * MANY[1];
        let clock = Instant::now();
        exchange::compile(ranks, |rank| {
            Block::at(rank, ranks, MANY.map(|side| 64 * side))?.grid(MANY)?.halo(1)
        })?
        .save(&many)?;
        println!("compiled, verified and saved for {ranks} ranks in {:.0?}", clock.elapsed());
        for plan in [&few, &many] {
            let name = plan.file_name().unwrap_or_default().display();
            println!("{name}: {} bytes", std::fs::metadata(plan)?.len());
        }
        println!("\n{}", compiled.explain());
    }

    let (planned, plain) = (run(job, Some(&few))?, run(job, None)?);
    assert!(planned == plain, "the plan and the superstep leave different bits");
    if job.reports() {
        println!("the loaded plan leaves the same bits as the superstep");
    }

    let block = |world: &World| Block::new(world, CELLS)?.halo(GROUP);
    let other = |world: &World| Block::new(world, [CELLS[0], CELLS[1] + 2])?.halo(GROUP);
    refused(job, size, "another grid", "operation 0", |world| exchange::load(world, &few, &other(world)?))?;
    refused(job, size - 1, "another number of ranks", &format!("{size} ranks"), |world| {
        exchange::load(world, &few, &block(world)?)
    })?;
    let first = Block::at(0, size, CELLS)?.halo(GROUP)?;
    if first.neighbours().count() > first.faces().count() {
        // Without corner neighbours the two patterns are equal.
        refused(job, size, "source edited so that the pattern changed", "operation 2", |world| {
            edited::exchange::load(world, &few, &block(world)?)
        })?;
    }
    job.world().run(|world| reworded::exchange::load(world, &few, &block(world)?).map(drop))?;
    if job.reports() {
        println!("\nsource edited so that the pattern stayed the same is accepted");
    }
    Ok(())
}

/// Runs the example as a test.
pub fn check() -> Result<()> {
    report(&Options::parse_from(["ahead", "-n", "4"]).job)
}
