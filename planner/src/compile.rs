//! [`compile`]: from the patterns of all ranks to their schedule, pass by pass.

use crate::error::{Class, Error, Result};
use crate::explain::{Cost, cost};
use crate::ids::{ClassId, Delta, Id, LinkId, OperationId};
use crate::ir::chunks::Cut;
use crate::ir::messages::Messages;
use crate::ir::pattern::{Kind, Local, Mode, Operation, Patterns};
use crate::ir::peers::Peers;
use crate::ir::placed::Placed;
use crate::ir::routed::Ways;
use crate::ir::schedule::{Placement, Schedule};
use crate::ir::transfers::Transfer;
use crate::machine::Machine;
use crate::passes::{coalesce, combine, count, lower, normalise, order, pipeline, place, route};
use crate::table::Table;
use crate::units::Bytes;
use crate::verify::{Verified, verify};

/// What is left to choice. Any choice gives the same contents of windows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// A mode for all operations, whatever each asks for; [`Mode::Auto`] leaves it to them.
    pub mode: Mode,
    /// Whether transfers are joined, and what is replaced is left out.
    pub coalesce: bool,
    /// The chunk of pipelined messages; the machine model's if there is none.
    pub chunk: Option<Bytes>,
    /// The most bytes of staging that a rank may have: all copies of all buffers that its messages are sent from. Where
    /// it would have more, buffers have one copy instead of two; then what can be copied directly is; and if that is not
    /// enough, there is no schedule.
    pub cap: Option<Bytes>,
}

impl Default for Options {
    fn default() -> Self {
        Self { mode: Mode::Auto, coalesce: true, chunk: None, cap: None }
    }
}

impl Options {
    /// The mode asked for by an operation that asks for `mode`.
    pub fn asked(&self, mode: Mode) -> Mode {
        if self.mode == Mode::Auto { mode } else { self.mode }
    }
}

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
/// What [`check`] says; class `NoMem` where [`Options::cap`] cannot be kept, with what is needed at least; class
/// `Intern` for a schedule of ours that the verifier refuses.
///
/// # Cost
/// Ranks x peers small steps; all else follows the classes of ranks, the datatypes' pieces, and, where messages have to be
/// coloured, the messages.
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
    let transfers = normalise(patterns, placement);
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
        Error::new(Class::Intern, format!("a schedule was refused: {error}")).in_superstep(&patterns.name)
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

/// Whether each rank's operations make sense by themselves. Conflicts of different operations are none of its business:
/// they have a meaning.
///
/// # Errors
/// Naming the operation, its rank and its line: a target outside the world (class `Rank`), sides that differ in size
/// (`Size`) or in element type (`Type`), elements below the window's first (`Disp`), an operator that is not defined for
/// the window's elements (`Op`), a window that is no parameter (`Win`), a class that is not there (`Arg`).
pub fn check(patterns: &Patterns) -> Result<()> {
    let ranks = i64::from(patterns.ranks());
    let mut reach: Vec<Option<(Delta, Delta)>> = Vec::with_capacity(patterns.classes.len());
    for (class, pattern) in patterns.classes.iter() {
        for (id, operation) in pattern.operations.iter() {
            check_operation(patterns, operation).map_err(|error| locate(error, patterns, class, id))?;
        }
        let targets = pattern.operations.values().filter_map(|operation| operation.target);
        reach.push(targets.clone().min().zip(targets.max()));
    }
    for (rank, class) in patterns.class_of.iter().enumerate() {
        let Some(reach) = reach.get(class.index()) else {
            return Err(Error::new(
                Class::Arg,
                format!("rank {rank} is of class {class}, which is not there"),
            ));
        };
        let outside = |delta: Delta| !(0..ranks).contains(&(rank as i64).saturating_add(delta.0));
        if let Some((low, high)) = *reach
            && (outside(low) || outside(high))
        {
            let operations = &patterns.classes[*class].operations;
            for (id, operation) in operations.iter() {
                if let Some(delta) = operation.target.filter(|&delta| outside(delta)) {
                    let target = rank as i64 + delta.0;
                    let what = format!("{id} has target {target}; the world has ranks 0 to {}", ranks - 1);
                    return Err(Error::new(Class::Rank, with_site(what, operation))
                        .on_rank(rank as u32)
                        .in_superstep(&patterns.name));
                }
            }
        }
    }
    Ok(())
}

fn check_operation(patterns: &Patterns, operation: &Operation) -> Result<()> {
    let count = patterns.windows.len();
    let element = |window| {
        patterns.windows.get(window).copied().ok_or_else(|| {
            Error::new(Class::Win, format!("names window {window}; the superstep has {count} windows"))
        })
    };
    let target = element(operation.window)?;
    let below = |datatype: &crate::datatype::Datatype| datatype.size() > 0 && datatype.low() < 0;
    if below(&operation.remote) {
        return Err(Error::new(
            Class::Disp,
            format!("reaches down to element {} of its target", operation.remote.low()),
        ));
    }
    if let Local::Section { window, datatype } = &operation.local {
        let origin = element(*window)?;
        if datatype.size() != operation.remote.size() {
            let (here, there) = (datatype.size(), operation.remote.size());
            return Err(Error::new(
                Class::Size,
                format!("has {here} elements at its origin and {there} at its target"),
            ));
        }
        if below(datatype) {
            return Err(Error::new(
                Class::Disp,
                format!("reaches down to element {} of its section", datatype.low()),
            ));
        }
        if origin != target {
            return Err(Error::new(
                Class::Type,
                format!("moves between elements of {origin} and of {target}"),
            ));
        }
    }
    match operation.kind {
        Kind::Accumulate(op) if !op.takes(target) => {
            Err(Error::new(Class::Op, format!("accumulates with {op}, which is not defined for {target}")))
        }
        _ => Ok(()),
    }
}

fn locate(error: Error, patterns: &Patterns, class: ClassId, id: OperationId) -> Error {
    let what = format!("{id} {}", error.message());
    let located = Error::new(error.class(), with_site(what, &patterns.classes[class].operations[id]));
    let rank = patterns.class_of.iter().position(|&of| of == class);
    let located = located.in_superstep(&patterns.name);
    if let Some(rank) = rank { located.on_rank(rank as u32) } else { located }
}

fn with_site(what: String, operation: &Operation) -> String {
    if operation.site.line == 0 { what } else { format!("{what}, at {}", operation.site) }
}
