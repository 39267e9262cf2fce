//! Ten million years of soil creep on real terrain: the elevation model in `data/`, or another one.
//!
//! The terrain is cut into one block for each rank. Before each group of steps, every block puts
//! its edges into the halos of its neighbours. The width of the halos is the number of steps of a
//! group. The superstep that exchanges the edges is prepared once and replayed. All steps of a
//! group are computed for a few rows before the next rows, so a large terrain is read from memory
//! only once for each group. For every number of ranks and every transfer mode the result equals
//! that of the serial program (`serial.rs`) bit for bit.
//!
//! `cargo run --release --example hillslope -- -n 4`; `--transport shm` or `tcp` runs the ranks as
//! processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod serial;
mod threads;

use fencepost::grid::Row;
use fencepost::prelude::*;
use fencepost::snapshots::Items;
use fencepost::{Machine, Nanos, Placement};
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::{Job, Saving, Terrain, mode_name};
use fencepost_examples_support::picture::{Heights, Spacing, change, relief};
use fencepost_examples_support::{Grid, Race, digest, pin, progress};
use multiversion::multiversion;
use serial::{JACKSBORO, Steps};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

/// Simulate the creep of soil on a terrain for a few million years, and draw the result
#[derive(Parser)]
#[command(after_help = "Examples:
  hillslope -n 4                            the Jacksboro fault, pictures in out/hillslope
  hillslope -n 7 --mode direct --years 2e6  another number of ranks, transfer mode and time
  hillslope -n 4 --transport shm            four processes that share memory
  hillslope -n 2 --scale 5                  a larger terrain: 5 by 5 copies of the same
  hillslope --input terrain.npy --out /tmp  another terrain, with cells of the same size
  hillslope --scale 5 --snapshots out/saved continues from there if it was interrupted")]
struct Options {
    #[command(flatten)]
    job: Job,
    #[command(flatten)]
    terrain: Terrain,
    #[command(flatten)]
    saving: Saving,
    /// Lay this many copies of the terrain next to each other, in both directions
    #[arg(long, value_name = "TIMES", default_value = "1")]
    scale: NonZeroUsize,
    /// The number of steps between two exchanges [default: the best by the model of a machine]
    #[arg(long, value_name = "STEPS")]
    group: Option<NonZeroUsize>,
}

/// An estimate of the time to compute a cell whose heights are in a cache. The estimate is accurate
/// enough to choose a group, and is the same in each run.
const CELL: Nanos = Nanos(0.5);

/// The number of steps that follow an exchange, and the bands in which they are computed.
#[derive(Clone, Copy)]
struct Group {
    steps: usize,
    bands: [usize; 2],
}

impl Group {
    /// Returns the group that the options set, or the group that takes the least time by the model
    /// of a machine.
    fn of(Options { job, group, .. }: &Options, before: &Grid, here: &(Placement, Machine)) -> Result<Self> {
        let block = Block::at(0, job.ranks(), [before.rows, before.columns])?.halo(1)?;
        let height = size_of::<f64>();
        let advice = block.advise(CELL, height, 2 * height, here.0, &here.1)?;
        let steps = group.map_or(advice.steps(), NonZeroUsize::get);
        Ok(Self { steps, bands: advice.bands() })
    }
}

/// Puts the edges of each block into the halos of the blocks around it.
#[superstep]
fn exchange(heights: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        heights.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Computes one step of a row, with the widest vectors that the processor has.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn creep(steps: &Steps, row: &Row<2>, heights: &[f64], next: &mut [f64]) {
    let (north, south) = (row.up(heights), row.down(heights));
    let (west, here, east) = (row.left(heights), row.of(heights), row.right(heights));
    let next = row.of_mut(next);
    for j in 0..row.len() {
        next[j] = steps.cell(here[j], north[j], south[j], west[j], east[j]);
    }
}

/// Lists the state between two groups of steps. The field `next` is not part of the state, since
/// the next group computes it.
fn state<'a>(block: &'a Block<2>, heights: &'a mut [f64]) -> Items<'a> {
    Items::new().block("heights", block, heights)
}

/// The result of a run.
struct Outcome {
    heights: Grid,
    time: Duration,
    /// The number of frames that all ranks sent in all steps.
    frames: u64,
}

/// Runs all steps on the ranks of the job, beginning with the last snapshot if there is one.
/// Returns `None` in processes other than rank 0's.
fn erode(before: &Grid, steps: &Steps, group: Group, options: &Options) -> Result<Option<Outcome>> {
    let Options { job, saving, .. } = options;
    let bar = job.reports().then(|| progress::bar(steps.count));
    let (rows, columns) = (before.rows, before.columns);
    let mut outcomes: Vec<Option<Outcome>> = job.world().collect(|world| {
        pin(world.rank());
        let block = Block::new(world, [rows, columns])?.halo(group.steps)?;
        let mut heights = world.window::<f64>(block.len())?;
        let mut next = world.window::<f64>(block.len())?;
        for field in [&mut heights, &mut next] {
            block.fill(field, |[i, j]| before.cells[i * columns + j]);
        }
        let mut exchange = exchange::prepare(world, &block)?;
        // cells at the edge of the terrain keep their heights, and later steps also read them in
        // `next`
        exchange.replay(&mut next)?;
        world.barrier()?;
        let (clock, frames) = (Instant::now(), world.meter().total().frames);
        let (mut snapshots, mut done) = saving.begin(world, state(&block, &mut heights))?;
        while done < steps.count {
            let left = (steps.count - done) as usize;
            let tiles = block.tiles(group.steps)?.bands(group.bands)?.at_most(left);
            exchange.replay(&mut heights)?;
            for row in tiles.rows_inside(1) {
                let [now, next] = row.turn([&mut *heights, &mut *next]);
                creep(steps, &row, now, next);
            }
            [heights, next] = tiles.turn([heights, next]);
            done += tiles.steps() as u64;
            if let Some(snapshots) = &mut snapshots {
                snapshots.offer(done, || state(&block, &mut heights))?;
            }
            if let (0, Some(bar)) = (world.rank(), &bar) {
                bar.set_position(done);
            }
        }
        if let Some(snapshots) = &mut snapshots {
            snapshots.finish()?;
        }
        let time = Duration::from_nanos(world.allreduce_one(clock.elapsed().as_nanos() as u64, Op::Max)?);
        let frames = world.allreduce_one(world.meter().total().frames - frames, Op::Sum)?;
        let Some(cells) = world.gather_block(0, &block, &heights)? else { return Ok(None) };
        Ok(Some(Outcome { heights: Grid::new(rows, columns, cells), time, frames }))
    })?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(outcomes.swap_remove(0))
}

fn input(terrain: &Terrain) -> Result<Grid> {
    let grid = Grid::load(&terrain.input)?;
    match grid.cells.iter().position(|height| !height.is_finite()) {
        None => Ok(grid),
        Some(at) => Err(Error::new(
            ErrorClass::Arg,
            format!(
                "{}: the height at row {}, column {} is {}; every height must be finite",
                terrain.input.display(),
                at / grid.columns,
                at % grid.columns,
                grid.cells[at]
            ),
        )),
    }
}

/// Returns the number of bytes that all ranks put in one exchange.
fn bytes(compiled: &fencepost::Compiled) -> usize {
    let patterns = &compiled.patterns()[0];
    let puts = patterns.class_of.iter().flat_map(|&class| patterns.classes[class].operations.values());
    puts.map(|put| put.remote.size() * size_of::<f64>()).sum()
}

/// The number of steps that the serial program computes in one pass over the terrain, if it runs in
/// groups.
const SERIAL_GROUP: usize = 16;

/// Runs the job, the serial program (step by step and in groups) and plain threads. Compares the
/// results, and adds each time to `race`. Returns the resulting terrain and the number of frames,
/// or `None` in processes other than rank 0's.
fn contest(
    before: &Grid,
    steps: &Steps,
    group: Group,
    options: &Options,
    race: &mut Race,
) -> Result<Option<(Grid, u64)>> {
    let job = &options.job;
    let (rows, columns, ranks) = (before.rows, before.columns, job.ranks());
    let others = |race: &mut Race, heights: &Grid| {
        let mut serial = before.cells.clone();
        let clock = Instant::now();
        steps.run(&mut serial, rows, columns);
        race.add("the serial program", clock.elapsed());
        let mut tiled = before.cells.clone();
        let clock = Instant::now();
        steps.run_tiled(&mut tiled, rows, columns, SERIAL_GROUP);
        race.add(&format!("the same, {SERIAL_GROUP} steps to a pass over the terrain"), clock.elapsed());
        let mut shared = before.cells.clone();
        let time = threads::run(steps, &mut shared, rows, columns, ranks);
        race.add(&format!("{ranks} threads that share the grid"), time);
        let all = [(&serial, "serial program"), (&tiled, "tiled serial program"), (&shared, "plain threads")];
        for (cells, name) in all {
            let pairs = heights.cells.iter().zip(cells);
            let different = pairs.filter(|(a, b)| a.to_bits() != b.to_bits()).count();
            assert_eq!(different, 0, "the number of cells that differ from those of the {name}");
        }
    };
    let mut result = None;
    for _ in 0..race.rounds() {
        if let Some(Outcome { heights, time, frames }) = erode(before, steps, group, options)? {
            race.add(&format!("{ranks} ranks"), time);
            if job.is_one_process() {
                others(race, &heights);
            }
            result = Some((heights, frames));
        }
    }
    // The other programs run after the job: ranks that are processes have ended by now, so none of
    // them takes a core from the other programs.
    if let Some((heights, _)) = &result
        && !job.is_one_process()
    {
        (0..race.rounds()).for_each(|_| others(race, heights));
    }
    Ok(result)
}

/// Runs the job and the serial program. Returns the terrain before and after the run, and the
/// explanation of the transfer mode, or `None` in processes other than rank 0's. Short runs are
/// repeated, unless `once` is set.
fn compare(options: &Options, once: bool) -> Result<Option<(Grid, Grid, String)>> {
    let Options { job, terrain, scale, .. } = options;
    let before = input(terrain)?.repeated(scale.get());
    let steps = JACKSBORO.steps(terrain.years.unwrap_or(100.0 * JACKSBORO.round_step()));
    let here = job.here()?;
    let group = Group::of(options, &before, &here)?;
    let compiled = exchange::compile(job.ranks(), |rank| {
        Block::at(rank, job.ranks(), [before.rows, before.columns])?.halo(group.steps)
    })?;
    let compiled = job.compiled(&compiled, &here)?;
    let explanation = compiled.explain().to_string();
    if job.reports() {
        announce(options, &before, &steps, group, &explanation);
    }

    // With snapshots, a second round would only continue the first.
    let once = once || options.saving.snapshots.is_some();
    let mut race = Race::new(steps.count, before.cells.len(), job.ranks(), once);
    let Some((after, frames)) = contest(&before, &steps, group, options, &mut race)? else { return Ok(None) };
    println!("{race}");
    println!(
        "moved {} bytes between ranks in {} frames for every {} steps",
        bytes(&compiled),
        frames / steps.count.div_ceil(group.steps as u64).max(1),
        group.steps
    );
    println!("equal to the serial program bit for bit");

    Ok(Some((before, after, explanation)))
}

/// Prints the terrain, the steps and the transfer mode.
fn announce(
    Options { job, terrain, .. }: &Options,
    before: &Grid,
    steps: &Steps,
    group: Group,
    explanation: &str,
) {
    let name = terrain.input.file_name().unwrap_or_default().display();
    println!("{name}: {} rows, {} columns", before.rows, before.columns);
    println!(
        "{} steps of {:.0} years; steps of up to {:.0} years are stable",
        steps.count,
        steps.years,
        JACKSBORO.stability_bound()
    );
    println!("{} steps to an exchange", group.steps);
    println!("\nmode {}; the transfer modes of rank 0, and the reasons:", mode_name(job.mode));
    // The explanation has a headline with the cost, and then a paragraph for each class of ranks.
    println!("{}\n", explanation.split("\n\n").take(2).collect::<Vec<_>>().join("\n"));
}

/// Writes the pictures, the resulting elevations and the explanation. The pictures leave out the
/// cells at the edge, which keep their heights.
fn save(before: &Grid, after: &Grid, explanation: &str, out: &Path) -> Result<()> {
    let spacing = Spacing { north_south: JACKSBORO.north_south, east_west: JACKSBORO.east_west };
    std::fs::create_dir_all(out)?;
    let (from, to) = (before.without_rim(), after.without_rim());
    let heights = Heights::of(&from);
    relief(&from, spacing, heights).save(&out.join("before.png"))?;
    relief(&to, spacing, heights).save(&out.join("after.png"))?;
    change(&from, &to, spacing).save(&out.join("change.png"))?;
    after.save(&out.join("after.npy"))?;
    std::fs::write(out.join("explain.txt"), explanation)?;
    println!("{}: before.png, after.png, change.png, after.npy, explain.txt", out.display());
    Ok(())
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    run(&Options::parse())
}

/// Prints the digest for these options, and writes no files. Tests of jobs call this function.
pub fn with(words: &[&str]) -> Result<()> {
    let words = [&["hillslope"], words].concat();
    let options =
        Options::try_parse_from(words).map_err(|error| Error::new(ErrorClass::Arg, error.to_string()))?;
    options.job.start()?;
    if let Some((_, after, _)) = compare(&options, true)? {
        println!("digest {}", digest(&after.cells));
    }
    Ok(())
}

fn run(options: &Options) -> Result<()> {
    options.job.start()?;
    let Some((before, after, explanation)) = compare(options, false)? else { return Ok(()) };
    save(&before, &after, &explanation, &options.terrain.out)?;
    println!("digest {}", digest(&after.cells));
    Ok(())
}

/// Checks that the digest is the same for every number of ranks and every mode, and that invalid
/// input is refused.
pub fn check() -> Result<()> {
    let out = std::env::temp_dir().join(format!("fencepost-hillslope-{}", std::process::id()));
    let parse = |words: &[&str]| Options::try_parse_from([&["hillslope", "--years", "1e6"], words].concat());
    let run = |words: &[&str]| {
        let options = parse(words).map_err(|error| Error::new(ErrorClass::Arg, error.to_string()))?;
        compare(&options, true)?
            .ok_or_else(|| Error::new(ErrorClass::Other, "internal error: this process has no result"))
    };
    let (before, expected, explanation) = run(&["-n", "1"])?;
    for ranks in ["2", "3", "4", "5", "7", "8", "16"] {
        assert_eq!(digest(&run(&["-n", ranks])?.1.cells), digest(&expected.cells), "{ranks} ranks");
    }
    for group in ["1", "2", "3", "16"] {
        assert_eq!(
            digest(&run(&["--group", group])?.1.cells),
            digest(&expected.cells),
            "{group} to an exchange"
        );
    }
    for mode in Mode::ALL.map(mode_name) {
        assert_eq!(digest(&run(&["--mode", mode])?.1.cells), digest(&expected.cells), "{mode}");
    }
    save(&before, &expected, &explanation, &out)?;
    for picture in ["before.png", "after.png", "change.png"] {
        assert!(std::fs::metadata(out.join(picture))?.len() > 10_000, "{picture}");
    }

    let refused = |words: &[&str], says: &str| {
        let error = run(words).expect_err(says).to_string();
        assert!(error.contains(says), "{error:?} does not say {says:?}");
    };
    let bad = out.join("bad.npy");
    let file = bad.display().to_string();
    Grid::new(4, 4, vec![f64::NAN; 16]).save(&bad)?;
    refused(&["--input", &file], "row 0, column 0 is NaN");
    Grid::new(1, 2, vec![0.0; 2]).save(&bad)?;
    refused(&["--input", &file], "cut into 4 blocks");
    std::fs::write(&bad, b"\x93NUMPY\x01\x00")?;
    refused(&["--input", &file], "bad.npy: truncated");
    refused(&["--mode", "fastest"], "aggregated");
    refused(&["-n", "0"], "--ranks");
    refused(&["--group", "1000"], "a halo of 1000 cells");
    std::fs::remove_dir_all(out)?;
    Ok(())
}
