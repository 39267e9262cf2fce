//! Translation validation: checks that a schedule does what the patterns ask for and nothing else,
//! and that it keeps the six waits.
//!
//! For every run of the schedule, whatever runs came before it, the verifier shows the following
//! (the numbers refer to `planner/README.md`). Every requested element moves exactly once, from the
//! right place to the right place, combined by the right operator, in an order that leaves the same
//! bits (4 to 9). Nothing else moves. W1 to W6 hold. There is no cycle of waits. An element that a
//! later put of any rank replaces need not move, since no rank can see it.
//!
//! The passes are not trusted. The verifier uses nothing of the passes except the types of a
//! [`Schedule`].
//!
//! # The accepted form
//!
//! A schedule that cannot be shown to be right is refused. To be accepted, a schedule must also
//! keep these rules:
//! - A rank exposes itself to each peer, and is done with each peer, at most once per run.
//! - Each byte of a buffer is packed at most once and sent at most once per run. Before packed
//!   bytes are sent, values may be combined into them. The operator of such a combination is one
//!   whose order of application cannot be observed, and the same operator unpacks the result in one
//!   piece.
//! - If two ranks access one element of a third rank, the third rank's own instructions order the
//!   accesses: the third rank awaits the done of one of the two before it exposes itself to the
//!   other.
//! - A buffer is freed by a `Reclaim`, or by a frame from the peer that reads the buffer.
//! - Accesses to one rank's memory have at most [`MOST_RUNS`](crate::datatype::MOST_RUNS) runs and
//!   take at most 2^24 visits. These limits do not apply if each requested movement is made by one
//!   write, no element is written twice, and elements are read before they are written. Such
//!   accesses are not processed run by run. A file of a few words may name any number of elements,
//!   but its verification takes no more time and memory than these limits allow.
//!
//! # How
//!
//! - `program` runs each program once by itself.
//! - `pair` compares the frames that one program sends with the frames that the other awaits.
//! - `rank` and `sweep` check one rank's memory: they compare all accesses of the rank and its
//!   neighbours to this memory with everything that was requested.
//! - `waits` looks for cycles.
//!
//! A rank's verdict depends only on its own program and on those of the ranks around it. So one
//! verdict serves all ranks for which these programs are equal. The programs are compared exactly.
//!
//! # Cost
//! A few integer steps for each rank and peer. In addition, the runs of each distinct neighbourhood
//! are sorted.
//!
//! # Source
//! The idea: Pnueli, Siegel, Singerman, *Translation validation*, TACAS 1998.

mod error;
mod facts;
mod kept;
mod memo;
mod neighbourhood;
mod pair;
mod program;
mod rank;
mod share;
mod sweep;
mod waits;

pub use error::{Finding, VerifyError};
pub use kept::verify_kept;
pub use share::verify_share;

use crate::datatype::Datatype;
use crate::ids::{ClassId, Delta, Id, OperationId, Rank};
use crate::ir::pattern::{Local, Pattern, Patterns};
use crate::ir::schedule::{Instruction, Part, Program, Schedule};
use crate::table::Table;
use bumpalo::Bump;
use facts::Facts;
use neighbourhood::Neighbourhood;
use std::collections::{BTreeMap, BTreeSet};

/// A value that has been verified. `Verified` owns the value, and only this module creates one, in
/// [`verify`] and similar functions.
#[derive(Clone, PartialEq, Debug)]
pub struct Verified<S>(S);

impl<S> Verified<S> {
    /// Returns the verified value.
    pub fn get(&self) -> &S {
        &self.0
    }

    /// Returns the value, which is then no longer certified.
    pub fn into_inner(self) -> S {
        self.0
    }
}

impl<S> std::ops::Deref for Verified<S> {
    type Target = S;
    fn deref(&self) -> &S {
        &self.0
    }
}

/// Certifies that `schedule` does what `patterns` ask for; see the [module](self).
///
/// # Errors
/// The first damage found; the variant names its kind.
pub fn verify(patterns: &Patterns, schedule: Schedule) -> Result<Verified<Schedule>, VerifyError> {
    check(patterns, &schedule).map_err(|error| blame(error, &schedule))?;
    Ok(Verified(schedule))
}

/// Computes the verdict of [`verify`] with every rank as a class of its own.
///
/// # Errors
/// As [`verify`]. The class in the error is the rank's number.
///
/// # Cost
/// Proportional to the ranks, not the classes, so this is meant for tests of small worlds.
pub fn verify_expanded(patterns: &Patterns, schedule: &Schedule) -> Result<(), VerifyError> {
    if patterns.class_of.len() != schedule.class_of.len() {
        return check(patterns, schedule);
    }
    let classes = |len: usize| (0..len).map(ClassId::new).collect::<Vec<ClassId>>();
    let patterns = Patterns {
        classes: patterns.class_of.iter().map(|class| patterns.classes[*class].clone()).collect(),
        class_of: classes(patterns.class_of.len()),
        ..patterns.clone()
    };
    let known = schedule.class_of.iter().all(|class| schedule.classes.get(*class).is_some());
    if !known {
        return check(&patterns, schedule);
    }
    let schedule = Schedule {
        classes: schedule.class_of.iter().map(|class| schedule.classes[*class].clone()).collect(),
        class_of: classes(schedule.class_of.len()),
        ..schedule.clone()
    };
    check(&patterns, &schedule).map_err(|error| blame(error, &schedule))
}

fn check(patterns: &Patterns, schedule: &Schedule) -> Result<(), VerifyError> {
    let first = same_world(patterns, schedule)?;
    shown(schedule, &first, None)
}

/// Checks the memory of all ranks, or of rank `only`, and the channels that end at these ranks.
/// `first` holds the lowest rank of each class.
fn shown(schedule: &Schedule, first: &Table<ClassId, Rank>, only: Option<Rank>) -> Result<(), VerifyError> {
    let arena = Bump::new();
    let facts = schedule
        .classes
        .iter()
        .map(|(class, program)| program::facts(&schedule.windows, class, first[class], program, &arena))
        .collect::<Result<Table<ClassId, Facts<'_>>, VerifyError>>()?;
    let class_of = &schedule.class_of;
    let extras = one_sided(&facts, class_of)?;
    reach(&facts, schedule)?;

    // The lowest rank of each distinct neighbourhood. A neighbourhood is a class, and the classes
    // around it with their distances.
    let mut distinct: Vec<(Rank, Vec<(Delta, &Facts<'_>)>)> = Vec::new();
    let mut seen: BTreeSet<Vec<u64>> = BTreeSet::new();
    let (mut key, mut last, mut around) = (Vec::new(), Vec::new(), Vec::new());
    for (number, class) in class_of.iter().enumerate() {
        let rank = Rank::new(number);
        if only.is_some_and(|only| only != rank) {
            continue;
        }
        let extra = extras.get(&rank).map_or(&[][..], |extra| extra);
        let deltas = facts[*class].peers.keys().chain(extra).copied();
        around.clear();
        around.extend(deltas.map(|delta| (delta, class_of[(number as i64 + delta.0) as usize])));
        key.clear();
        key.push(u64::from(class.0));
        key.extend(around.iter().map(|(_, class)| u64::from(class.0)));
        key.extend(extra.iter().map(|delta| delta.0 as u64));
        if key == last || seen.contains(&key) {
            continue;
        }
        last.clone_from(&key);
        seen.insert(key.clone());
        let mut around: Vec<_> = around.iter().map(|&(delta, class)| (delta, &facts[class])).collect();
        around.sort_by_key(|(delta, _)| *delta);
        distinct.push((rank, around));
    }

    let mut links = waits::Links::new();
    for (rank, around) in &distinct {
        let own = &facts[class_of[rank.index()]];
        for &(delta, peer) in around {
            if links.insert((own.class, delta, peer.class)) {
                pair::check(own, *rank, peer, delta)?;
            }
            if links.insert((peer.class, delta.back(), own.class)) {
                let there = Rank::new((rank.index() as i64 + delta.0) as usize);
                pair::check(peer, there, own, delta.back())?;
            }
        }
    }
    let mut memo = memo::Memo::default();
    let each = |at: usize| {
        let (rank, around) = &distinct[at];
        Neighbourhood { rank: *rank, own: &facts[class_of[rank.index()]], around }
    };
    // Checks that no rank moves many more elements than were requested. This limits all later work.
    (0..distinct.len()).try_for_each(|at| rank::bounded(&each(at)))?;
    for at in 0..distinct.len() {
        rank::check(&schedule.windows, schedule.order, &each(at), &mut memo)?;
    }
    waits::check(&facts, class_of, &links, &arena)?;
    facts.values().try_for_each(Facts::lengths)
}

/// Checks that the schedule has the ranks, windows and calls of the patterns. Returns the lowest
/// rank of each class.
fn same_world(patterns: &Patterns, schedule: &Schedule) -> Result<Table<ClassId, Rank>, VerifyError> {
    let foreign = |rank: Rank, class: ClassId, what: String| {
        let (instruction, operation) = (None, None);
        VerifyError::Foreign(Box::new(Finding { rank, class, instruction, operation, what }))
    };
    let whole = |what: String| foreign(Rank(0), ClassId(0), what);
    if schedule.windows != patterns.windows {
        return Err(whole(format!("windows {:?}, not {:?}", schedule.windows, patterns.windows)));
    }
    if schedule.order != patterns.order {
        return Err(whole(format!("order {:?}, not {:?}", schedule.order, patterns.order)));
    }
    if schedule.sync != patterns.sync {
        return Err(whole(format!("sync {:?}, not {:?}", schedule.sync, patterns.sync)));
    }
    if schedule.class_of.len() != patterns.class_of.len() {
        return Err(whole(format!("{} ranks, not {}", schedule.class_of.len(), patterns.class_of.len())));
    }
    let mut first: Table<ClassId, Option<Rank>> = schedule.classes.ids().map(|_| None).collect();
    let mut same: BTreeSet<(ClassId, ClassId)> = BTreeSet::new();
    let mut last = None;
    for (number, classes) in
        schedule.class_of.iter().copied().zip(patterns.class_of.iter().copied()).enumerate()
    {
        let rank = Rank::new(number);
        let (Some(program), Some(pattern)) =
            (schedule.classes.get(classes.0), patterns.classes.get(classes.1))
        else {
            return Err(foreign(rank, classes.0, "no such class".into()));
        };
        first[classes.0].get_or_insert(rank);
        if last == Some(classes) || same.contains(&classes) {
            continue;
        }
        same_calls(&program.pattern, pattern).map_err(|(operation, what)| {
            let mut error = foreign(rank, classes.0, what);
            error.finding_mut().operation = operation.map(|id| {
                let site = program.pattern.operations.get(id).or(pattern.operations.get(id));
                (rank, id, site.map(|operation| operation.site.clone()).unwrap_or_default())
            });
            error
        })?;
        same.insert(classes);
        last = Some(classes);
    }
    let unused = first.iter().find(|(_, rank)| rank.is_none()).map(|(class, _)| class);
    if let Some(class) = unused {
        return Err(foreign(Rank(0), class, "a class that no rank has".into()));
    }
    Ok(first.into_values().flatten().collect())
}

/// Checks that a program was made from the calls of a rank.
fn same_calls(of: &Pattern, pattern: &Pattern) -> Result<(), (Option<OperationId>, String)> {
    for ((id, made), asked) in of.operations.iter().zip(pattern.operations.values()) {
        if made != asked {
            return Err((Some(id), "the plan was made from another call".into()));
        }
    }
    let (made, asked) = (of.operations.len(), pattern.operations.len());
    if made == asked {
        Ok(())
    } else {
        Err((None, format!("the plan was made from {made} calls, the rank makes {asked}")))
    }
}

/// Checks that all peers exist. Returns, by rank, the peers that the rank's own program does not
/// mention.
fn one_sided(
    facts: &Table<ClassId, Facts<'_>>,
    class_of: &[ClassId],
) -> Result<BTreeMap<Rank, Vec<Delta>>, VerifyError> {
    let mut extras: BTreeMap<Rank, Vec<Delta>> = BTreeMap::new();
    // For each class and each of its peers, a cache of one class: the last class that was seen at
    // this peer and whose program refers back.
    let mut known: Table<ClassId, Vec<Option<ClassId>>> =
        facts.values().map(|facts| vec![None; facts.peers.len()]).collect();
    for (number, class) in class_of.iter().enumerate() {
        for (delta, known) in facts[*class].peers.keys().zip(&mut known[*class]) {
            let rank = Rank::new(number);
            let Some(to) = delta.from(rank, class_of.len() as u32) else {
                let what = format!("has a peer at {delta}, outside the world of {} ranks", class_of.len());
                return Err(VerifyError::OutOfBounds(facts[*class].finding(rank, None, what)));
            };
            let there = class_of[to.index()];
            if *known == Some(there) {
                continue;
            }
            if facts[there].peers.contains_key(&delta.back()) {
                *known = Some(there);
            } else {
                extras.entry(to).or_default().push(delta.back());
            }
        }
    }
    Ok(extras)
}

/// Checks that ranks with direct copies between them share memory.
fn reach(facts: &Table<ClassId, Facts<'_>>, schedule: &Schedule) -> Result<(), VerifyError> {
    let copies: Table<ClassId, Vec<(Delta, usize)>> = facts
        .values()
        .map(|facts| {
            facts.peers.iter().filter_map(|(delta, peer)| Some((*delta, *peer.copies.first()?))).collect()
        })
        .collect();
    for (number, class) in schedule.class_of.iter().enumerate() {
        for (delta, copy) in &copies[*class] {
            let to = (number as i64 + delta.0) as u32;
            if !schedule.placement.share(number as u32, to) {
                let what = format!("copies directly to or from {delta}, with which it shares no memory");
                let finding = facts[*class].finding(Rank::new(number), Some(*copy), what);
                return Err(VerifyError::OutOfReach(finding));
            }
        }
    }
    Ok(())
}

/// If the error names no operation, adds an operation of the rank that executes the instruction.
fn blame(mut error: VerifyError, schedule: &Schedule) -> VerifyError {
    let finding = error.finding_mut();
    if finding.operation.is_none()
        && let Some(program) = schedule.classes.get(finding.class)
        && let Some(instruction) = finding.instruction.and_then(|at| program.instructions.get(at))
        && let Some(id) = operation_of(program, instruction)
    {
        finding.operation = Some((finding.rank, id, program.pattern.operations[id].site.clone()));
    }
    error
}

/// Returns an operation of the program's own pattern that the instruction may serve.
fn operation_of(program: &Program, instruction: &Instruction) -> Option<OperationId> {
    let parts = match instruction {
        Instruction::Pack { from, .. } | Instruction::Combine { from, .. } => [Some(from), None],
        Instruction::Unpack { to, .. } => [Some(to), None],
        Instruction::Copy { from, to, .. } => [Some(from), Some(to)],
        _ => [None, None],
    };
    let touches = |datatype: &Datatype, other: &Datatype| {
        datatype.low() < other.high() && other.low() < datatype.high()
    };
    let mut operations = program.pattern.operations.iter();
    parts.into_iter().flatten().find_map(|part| match part {
        Part::Operation { operation, .. } => program.pattern.operations.get(*operation).map(|_| *operation),
        Part::Window { window, datatype, owner } => operations
            .find(|(_, operation)| match &operation.local {
                Local::Section { window: w, datatype: d } if *owner == Delta::SELF => {
                    w == window && touches(d, datatype)
                }
                _ => {
                    operation.target == Some(*owner)
                        && operation.window == *window
                        && touches(&operation.remote, datatype)
                }
            })
            .map(|(id, _)| id),
    })
}
