//! Connected components of a graph. The vertices are distributed over ranks, and each rank has few
//! neighbours.
//!
//! The edges between ranks make a sparse directed graph: rank i sends to rank j if an edge of the
//! problem leads from a vertex of rank i to a vertex of rank j. Each rank posts its labels to the
//! ranks that send to it, and starts an access to the ranks to which it sends. It accumulates its
//! labels on those ranks with MIN, completes the access, and waits for the end of its own exposure.
//! Ranks without a common edge exchange nothing, and there is no fence. The result equals that of a
//! serial loop.
//!
//! `cargo run --release --example graph -- -n 4`; `--transport shm` or `tcp` runs the ranks as
//! processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::prelude::*;
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::Job;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::Instant;

/// Find the connected components of a graph
#[derive(Parser)]
#[command(after_help = "Example:\n  graph -n 8 --vertices 100000 --rounds 100")]
struct Options {
    #[command(flatten)]
    job: Job,
    /// The number of vertices
    #[arg(long, default_value = "20000")]
    vertices: NonZeroUsize,
    /// The number of rounds; in each round a label crosses one edge
    #[arg(long, default_value = "60")]
    rounds: usize,
}

/// Returns the vertices to which a vertex has an edge: its successor in a chain of eight vertices,
/// and for every third vertex also another vertex nearby.
fn edges(vertex: usize, vertices: usize) -> Vec<usize> {
    let mut all = Vec::new();
    if vertex % 8 != 7 && vertex + 1 < vertices {
        all.push(vertex + 1);
    }
    if vertex.is_multiple_of(3) {
        let far = (vertex + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_right(29) % (vertices / 4 + 1);
        all.push((vertex + far) % vertices);
    }
    all
}

/// Returns each edge in both directions, as pairs.
fn pairs(vertices: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..vertices).flat_map(move |a| edges(a, vertices).into_iter().flat_map(move |b| [(a, b), (b, a)]))
}

/// Returns the smallest label that has reached each vertex after `rounds` rounds, or `None` in
/// processes other than rank 0's.
fn distributed(options: &Options) -> Result<Option<Vec<u32>>> {
    let vertices = options.vertices.get();
    let mut parts: Vec<_> = options.job.world().collect(|world| {
        let (me, ranks) = (world.rank(), world.size());
        let each = vertices.div_ceil(ranks);
        let mut labels = world.window::<u32>(each)?;
        labels.iter_mut().enumerate().for_each(|(at, label)| *label = (me * each + at) as u32);
        // For each rank to which this rank sends, the ends of the common edges: the vertices of
        // this rank, and the vertices of that rank.
        let mut out: BTreeMap<usize, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        let mut sources = BTreeSet::new();
        for (from, to) in pairs(vertices) {
            if from / each == me {
                let (here, there) = out.entry(to / each).or_default();
                here.push(from % each);
                there.push(to % each);
            }
            if to / each == me {
                sources.insert(from / each);
            }
        }
        let (sources, targets) = (world.group(sources)?, world.group(out.keys().copied())?);
        let there: BTreeMap<usize, Datatype> = out
            .iter()
            .map(|(&to, (_, there))| Ok((to, Datatype::elements(there.iter().copied())?)))
            .collect::<Result<_>>()?;
        let clock = Instant::now();
        for _ in 0..options.rounds {
            let mut values: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
            for (&to, (here, _)) in &out {
                values.insert(to, here.iter().map(|&vertex| labels[vertex]).collect());
            }
            let exposed = labels.post(&sources)?;
            let access = exposed.start(&targets)?;
            for (to, values) in &values {
                access.accumulate(values, Op::Min).to(*to, &there[to])?;
            }
            access.complete()?;
            labels = exposed.wait()?;
        }
        let taken = clock.elapsed();
        if me == 0 {
            let (sources, targets) = (sources.ranks().len(), targets.ranks().len());
            println!(
                "rank 0 hears from {sources} ranks and sends to {targets} of {ranks}: {:.1} us a round",
                taken.as_secs_f64() * 1e6 / options.rounds.max(1) as f64
            );
        }
        world.gather(0, &labels)
    })?;
    let Some(mut all) = parts.swap_remove(0).map(|parts| parts.concat()) else { return Ok(None) };
    all.truncate(vertices);
    Ok(Some(all))
}

/// Computes the same labels in a plain loop.
fn serial(options: &Options) -> Vec<u32> {
    let vertices = options.vertices.get();
    let all: Vec<(usize, usize)> = pairs(vertices).collect();
    let mut labels: Vec<u32> = (0..vertices as u32).collect();
    for _ in 0..options.rounds {
        let before = labels.clone();
        all.iter().for_each(|&(from, to)| labels[to] = labels[to].min(before[from]));
    }
    labels
}

fn report(options: &Options) -> Result<()> {
    let Some(labels) = distributed(options)? else { return Ok(()) };
    assert!(labels == serial(options), "the distributed labels differ from the serial ones");
    let components: BTreeSet<u32> = labels.into_iter().collect();
    println!("{} vertices, {} labels left: equal to the serial loop", options.vertices, components.len());
    Ok(())
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    let options = Options::parse();
    options.job.start()?;
    report(&options)
}

/// Runs small cases as a test, one with more ranks than vertices.
pub fn check() -> Result<()> {
    for (ranks, vertices, rounds) in [("1", "50", "3"), ("4", "900", "40"), ("5", "3", "2"), ("3", "1", "0")]
    {
        report(&Options::parse_from(["graph", "-n", ranks, "--vertices", vertices, "--rounds", rounds]))?;
    }
    Ok(())
}
