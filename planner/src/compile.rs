//! [`compile`]: from the patterns of all ranks to their schedule, pass by pass.

use crate::check::check;
use crate::error::{Class, Error, Result};
use crate::explain::{Cost, cost};
use crate::ids::{ClassId, LinkId};
use crate::ir::chunks::Cut;
use crate::ir::messages::Messages;
use crate::ir::pattern::{Mode, Patterns};
use crate::ir::peers::Peers;
use crate::ir::placed::Placed;
use crate::ir::routed::Ways;
use crate::ir::schedule::{Placement, Schedule};
use crate::ir::transfers::Transfer;
use crate::machine::Machine;
use crate::options::Options;
use crate::passes::cover::{arriving_fits, landing_fits};
use crate::passes::{coalesce, combine, count, lower, normalise, order, pipeline, place, route};
use crate::table::Table;
use crate::units::Bytes;
use crate::verify::{Verified, verify};

/// What each pass made of what it was given.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Pass by pass.
    pub passes: Vec<Pass>,
    /// What the schedule is predicted to take, and what no schedule can do without.
    pub cost: Cost,
}

/// One pass: rows in is the row before's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What it leaves: classes of ranks,
    pub classes: usize,
    /// distinct links,
    pub links: usize,
    /// transfers in them, or frames, or instructions,
    pub rows: usize,
    /// and the bytes that those carry.
    pub bytes: Bytes,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for Pass { name, classes, links, rows, bytes } in &self.passes {
            writeln!(f, "{name}: {classes} classes, {links} links, {rows} rows, {bytes}")?;
        }
        writeln!(f, "{}", self.cost)
    }
}

/// The schedule of these patterns, verified.
///
/// # Errors
/// What [`check`] says; class `NoMem` where [`Options::cap`] cannot be kept, with what is needed at least, and where
/// operations that overlap have more than [`MOST_RUNS`](crate::datatype::MOST_RUNS) runs for one rank, or more in
/// common than the verifier goes through; class `Intern` if the verifier refuses the schedule, which is a bug of the
/// planner.
///
/// # Cost
/// Ranks x peers small steps; all else follows the classes of ranks, the datatypes' pieces, and, where messages have
/// to be coloured, the messages.
pub fn compile(
    patterns: &Patterns,
    placement: Placement,
    machine: &Machine,
    options: &Options,
) -> Result<Verified<Schedule>> {
    compile_noting(patterns, placement, machine, options, &mut |_| {})
}

/// [`compile`], and what each pass did.
///
/// # Errors
/// Those of [`compile`].
pub fn compile_reporting(
    patterns: &Patterns,
    placement: Placement,
    machine: &Machine,
    options: &Options,
) -> Result<(Verified<Schedule>, Report)> {
    let mut passes = Vec::new();
    let schedule = compile_noting(patterns, placement, machine, options, &mut |pass: &dyn Fn() -> Pass| {
        passes.push(pass())
    })?;
    let cost = cost(&schedule, machine);
    Ok((schedule, Report { passes, cost }))
}

fn compile_noting(
    patterns: &Patterns,
    placement: Placement,
    machine: &Machine,
    options: &Options,
    note: &mut dyn FnMut(&dyn Fn() -> Pass),
) -> Result<Verified<Schedule>> {
    check(patterns)?;
    landing_fits(patterns)?;
    let transfers = normalise(patterns, placement);
    arriving_fits(&transfers)?;
    note(&|| pass("normalise", &transfers.peers, transfers.links.values().map(Vec::as_slice)));
    let messages = coalesce(transfers, options);
    note(&|| pass("coalesce", &messages.peers, messages.links.values().map(Vec::as_slice)));
    let over = |placed: &Placed<'_>| options.cap.is_some_and(|cap| placed.peak > cap);
    let messages_again = options.cap.map(|_| messages.clone());
    let mut placed = routed_to_placed(messages, machine, options, options, note);
    if let Some(messages) = messages_again.filter(|_| over(&placed)) {
        let direct = Options { mode: Mode::Direct, ..*options };
        let other = routed_to_placed(messages, machine, &direct, options, note);
        if other.peak < placed.peak {
            placed = other;
        }
    }
    if let Some(cap) = options.cap.filter(|_| over(&placed)) {
        return Err(beyond(&placed, cap).in_superstep(&patterns.name));
    }
    let schedule = lower(placed, options);
    note(&|| {
        let rows = schedule.classes.values().map(|program| program.instructions.len()).sum();
        Pass { name: "lower", classes: schedule.classes.len(), links: 0, rows, bytes: schedule.peak() }
    });
    verify(patterns, schedule).map_err(|error| {
        let class = if error.is_bound() { Class::NoMem } else { Class::Intern };
        Error::new(class, format!("a schedule was refused: {error}")).in_superstep(&patterns.name)
    })
}

/// The passes from `route` to `place`, routed as by `by`.
fn routed_to_placed<'p>(
    messages: Messages<'p>,
    machine: &Machine,
    by: &Options,
    options: &Options,
    note: &mut dyn FnMut(&dyn Fn() -> Pass),
) -> Placed<'p> {
    fn ways<'a>(
        links: &'a Table<LinkId, Ways>,
    ) -> impl Iterator<Item = impl Iterator<Item = &'a Transfer>> + use<'a> {
        links.values().map(|ways| ways.transfers().map(|row| row.2))
    }
    let routed = route(messages, machine, by);
    note(&|| pass("route", &routed.peers, ways(&routed.links)));
    let routed = combine(routed, options);
    note(&|| pass("combine", &routed.peers, ways(&routed.links)));
    let demand = count(&routed);
    let rounds = order(routed, demand);
    note(&|| pass("order", &rounds.peers, ways(&rounds.links)));
    let chunks = pipeline(rounds, machine, options);
    note(&|| pass("pipeline", &chunks.peers, chunks.links.values().map(Cut::transfers)));
    place(chunks, options)
}

/// The rank that needs the most staging, of which there are as few copies as there can be.
fn beyond(placed: &Placed<'_>, cap: Bytes) -> Error {
    let staging = |class: &ClassId| -> u64 {
        placed.buffers[*class].iter().flatten().map(|one| one.bytes * u64::from(one.copies)).sum()
    };
    let class_of = &placed.chunks.peers.class_of;
    let rank = (0..class_of.len()).max_by_key(|&rank| (staging(&class_of[rank]), std::cmp::Reverse(rank)));
    let rank = rank.unwrap_or(0);
    let what = format!(
        "needs {} of staging for its messages, one copy of each, and {cap} are allowed: allow as much, or put less in one superstep",
        placed.peak
    );
    Error::new(Class::NoMem, what).on_rank(rank as u32)
}

fn pass<'a, L>(name: &'static str, peers: &Peers, links: impl Iterator<Item = L>) -> Pass
where
    L: IntoIterator<Item = &'a Transfer>,
{
    let mut pass = Pass { name, classes: peers.classes.len(), links: 0, rows: 0, bytes: Bytes(0) };
    for link in links {
        pass.links += 1;
        for transfer in link {
            pass.rows += 1;
            pass.bytes += Bytes(transfer.bytes());
        }
    }
    pass
}
