//! [`compile`]: turns the patterns of all ranks into their schedule, pass by pass.

use crate::check::check;
use crate::error::{Error, ErrorClass, Result};
use crate::ids::ClassId;
use crate::ir::messages::Messages;
use crate::ir::pattern::{Mode, Patterns};
use crate::ir::placed::Placed;
use crate::ir::schedule::{Placement, Schedule};
use crate::machine::Machine;
use crate::options::Options;
use crate::passes::cover::{arriving_fits, landing_fits};
use crate::passes::{coalesce, combine, count, lower, normalise, order, pipeline, place, route};
use crate::units::Bytes;
use crate::verify::{Verified, verify};

/// Compiles these patterns and returns their verified schedule.
///
/// # Errors
/// The errors of [`check`]. Class `Arg` if the hosts of the placement have no ranks. Class `NoMem`
/// if [`Options::cap`] is too small; the message has the minimum. Also class `NoMem` if operations
/// that overlap have more than [`MOST_RUNS`](crate::datatype::MOST_RUNS) runs for one rank, or have
/// more in common than the verifier examines. Class `Intern` if the verifier refuses the schedule,
/// which is a bug of the planner.
///
/// # Cost
/// A small step for each pair of a rank and a peer. All other costs grow with the number of classes
/// of ranks, of pieces of datatypes and, if messages have to be coloured, of messages.
pub fn compile(
    patterns: &Patterns,
    placement: Placement,
    machine: &Machine,
    options: &Options,
) -> Result<Verified<Schedule>> {
    check(patterns)?;
    if placement == (Placement::Hosts { ranks_each: 0 }) {
        return Err(Error::new(ErrorClass::Arg, "hosts have 0 ranks each: a host has at least one rank"));
    }
    landing_fits(patterns)?;
    let transfers = normalise(patterns, placement);
    arriving_fits(&transfers)?;
    let messages = coalesce(transfers, options);
    let over = |placed: &Placed<'_>| options.cap.is_some_and(|cap| placed.peak > cap);
    let messages_again = options.cap.map(|_| messages.clone());
    let mut placed = routed_to_placed(messages, machine, options, options);
    if let Some(messages) = messages_again.filter(|_| over(&placed)) {
        let direct = Options { mode: Mode::Direct, ..*options };
        let other = routed_to_placed(messages, machine, &direct, options);
        if other.peak < placed.peak {
            placed = other;
        }
    }
    if let Some(cap) = options.cap.filter(|_| over(&placed)) {
        return Err(beyond(&placed, cap).in_superstep(&patterns.name));
    }
    let schedule = lower(placed, options);
    verify(patterns, schedule).map_err(|error| {
        let class = if error.is_bound() { ErrorClass::NoMem } else { ErrorClass::Intern };
        Error::new(class, format!("a schedule was refused: {error}")).in_superstep(&patterns.name)
    })
}

/// Runs the passes from `route` to `place`. `by` decides the routes.
fn routed_to_placed<'p>(
    messages: Messages<'p>,
    machine: &Machine,
    by: &Options,
    options: &Options,
) -> Placed<'p> {
    let routed = route(messages, machine, by);
    let routed = combine(routed, options);
    let demand = count(&routed);
    let rounds = order(routed, demand);
    let chunks = pipeline(rounds, machine, options);
    place(chunks, options)
}

/// Returns the error for staging beyond the cap. It names the rank that needs the most staging if
/// each buffer has as few copies as possible.
fn beyond(placed: &Placed<'_>, cap: Bytes) -> Error {
    let staging = |class: &ClassId| -> u64 {
        placed.buffers[*class].iter().flatten().map(|one| one.bytes * u64::from(one.copies)).sum()
    };
    let class_of = &placed.chunks.cuts.peers.class_of;
    let rank = (0..class_of.len()).max_by_key(|&rank| (staging(&class_of[rank]), std::cmp::Reverse(rank)));
    let rank = rank.unwrap_or(0);
    let what = format!(
        "needs {} of staging for its messages, one copy of each, and {cap} are allowed: allow as much, or put less in one superstep",
        placed.peak
    );
    Error::new(ErrorClass::NoMem, what).on_rank(rank)
}
