//! Checks one rank with its neighbours: compares what is done to its windows with what was
//! requested.
//!
//! All accesses to the rank's memory are recorded as runs of elements: *demands* from the patterns,
//! in canonical order, and *writes* and *reads* from the programs. Each write and read carries the
//! span of the rank's own program in which it may happen. An access of the rank itself happens at
//! one instruction. A peer's access happens between two instructions of the rank: one exposes the
//! rank to the peer, and the other awaits the peer's done (W1 holds on the peer's side, see
//! [`program`](super::program)). Two accesses are in order if their spans are in order, or if one
//! rank does both and its program orders them. Everything else counts as a race, even if a longer
//! chain of waits might order it. [`sweep`](super::sweep) then compares element by element, using
//! intervals.

use super::error::VerifyError;
use super::facts::{Awaited, Facts, Folded, Sent};
use super::memo::Memo;
use super::neighbourhood::Neighbourhood;
use super::program::owner;
use super::sweep::{Access, Space, Sweep, What, move_or};
use crate::datatype::Datatype;
use crate::element::ElementType;
use crate::error::Error;
use crate::ids::{Delta, OperationId, WindowId};
use crate::ir::pattern::{Kind, Local, Operation, Order};
use crate::ir::schedule::{Instruction, Part};
use crate::table::Table;

/// Checks everything that is done to one rank's memory.
pub(super) fn check(
    windows: &Table<WindowId, ElementType>,
    order: Order,
    here: &Neighbourhood<'_, '_>,
    memo: &mut Memo,
) -> Result<(), VerifyError> {
    let mut sweep = Sweep::new(windows, order, here, memo);
    demands(here, &mut sweep);
    own_accesses(here, &mut sweep)?;
    accesses_of_peers(here, &mut sweep);
    sweep.run()
}

/// Checks that not many more elements move than were requested. A plan file may name any number of
/// elements, and the verifier visits all that move.
pub(super) fn bounded(here: &Neighbourhood<'_, '_>) -> Result<(), VerifyError> {
    const MANY: u64 = 1 << 20;
    let size =
        |facts: &Facts<'_>, id: &OperationId| facts.program.pattern.operations[*id].remote.size() as u64;
    let is_get =
        |facts: &Facts<'_>, id: &OperationId| facts.program.pattern.operations[*id].kind == Kind::Get;
    let gets = here.own.peers.values().flat_map(|peer| &peer.operations);
    let gets = gets.filter(|id| is_get(here.own, id)).map(|id| size(here.own, id));
    let others = here.around.iter().flat_map(|(delta, facts)| {
        let operations = facts.peers.get(&delta.back()).map_or(&[][..], |peer| &peer.operations);
        operations.iter().filter(|id| !is_get(facts, id)).map(|id| size(facts, id))
    });
    let demanded = gets.chain(others).fold(0, u64::saturating_add);
    let moved = moved(here);
    if moved > demanded.saturating_add(MANY) {
        let what = format!("{moved} elements move where {demanded} were asked for");
        return Err(VerifyError::Unasked(here.own.finding(here.rank, None, what)));
    }
    Ok(())
}

/// Adds the demands of the patterns in canonical order: first this rank's gets, then the other
/// operations on this rank, by ascending origin. Operations of one rank are in program order.
fn demands(here: &Neighbourhood<'_, '_>, sweep: &mut Sweep<'_, '_, '_>) {
    let operations = &here.own.program.pattern.operations;
    for (id, operation) in operations.iter().filter(|(_, operation)| operation.kind == Kind::Get) {
        let Some(target) = operation.target.filter(|_| operation.remote.size() > 0) else { continue };
        let access = Access::demand(Delta::SELF, id, None, (target, Space::Window(operation.window)));
        let (space, datatype) = local(id, operation);
        sweep.add(access, space, &operation.remote, &datatype);
    }
    for &(delta, facts) in here.around {
        let Some(peer) = facts.peers.get(&delta.back()) else { continue };
        for &id in &peer.operations {
            let operation = &facts.program.pattern.operations[id];
            let op = match operation.kind {
                Kind::Get => continue,
                Kind::Put => None,
                Kind::Accumulate(op) => Some(op),
            };
            let (space, datatype) = local(id, operation);
            let access = Access::demand(delta, id, op, (delta, space));
            sweep.add(access, Space::Window(operation.window), &datatype, &operation.remote);
        }
    }
}

/// Returns the origin's side of an operation.
fn local(id: OperationId, operation: &Operation) -> (Space, Datatype) {
    match &operation.local {
        Local::Buffer => (Space::Buffer(id), Datatype::run(0..operation.remote.size())),
        Local::Section { window, datatype } => (Space::Window(*window), datatype.clone()),
    }
}

/// Returns the number of elements that the programs write to this rank's memory.
fn moved(here: &Neighbourhood<'_, '_>) -> u64 {
    let own = here.own.own.iter().map(|&at| match &here.own.program.instructions[at] {
        Instruction::Unpack { to, .. } => to.len() as u64,
        Instruction::Copy { from, to, .. } if owner(to) == Delta::SELF => from.len() as u64,
        _ => 0,
    });
    let combined = here.own.peers.iter().map(|(&delta, peer)| {
        let facts = here.at(delta);
        let sent = facts.peers.get(&delta.back()).map_or(&[][..], |there| &there.sent);
        let unpacked = |awaited: &Awaited<'_>, sent: &Sent<'_>, fold: &Folded| {
            let begins = |unpack: &&usize| match &here.own.program.instructions[**unpack] {
                Instruction::Unpack { at, to, element, .. } => {
                    let low = sent.at + at;
                    fold.low < low + to.len() as u64 * u64::from(element.size) && low < fold.high
                }
                _ => false,
            };
            let times = awaited.unpacks.iter().filter(begins).count() as u64;
            match &facts.program.instructions[fold.instruction] {
                Instruction::Combine { from, .. } => times.saturating_mul(from.len() as u64),
                _ => 0,
            }
        };
        let frames = peer.awaited.iter().zip(sent);
        let all = frames.flat_map(|(awaited, sent)| sent.folds.iter().map(move |fold| (awaited, sent, fold)));
        all.map(|(awaited, sent, fold)| unpacked(awaited, sent, fold)).fold(0, u64::saturating_add)
    });
    let theirs = here.around.iter().flat_map(|(delta, facts)| {
        let copies = facts.peers.get(&delta.back()).filter(|_| *delta != Delta::SELF);
        copies.into_iter().flat_map(|peer| &peer.copies).map(|&at| match &facts.program.instructions[at] {
            Instruction::Copy { to, .. } if owner(to) != Delta::SELF => to.len() as u64,
            _ => 0,
        })
    });
    own.chain(combined).chain(theirs).fold(0, u64::saturating_add)
}

/// Adds the accesses of the rank's own program to its memory.
fn own_accesses(here: &Neighbourhood<'_, '_>, sweep: &mut Sweep<'_, '_, '_>) -> Result<(), VerifyError> {
    let own = here.own;
    for &at in &own.own {
        let span = (at, at);
        match &own.program.instructions[at] {
            Instruction::Pack { from, .. } | Instruction::Combine { from, .. } => {
                sweep.read(Access::of(What::Read, Delta::SELF, at, span), from)
            }
            Instruction::Copy { from, to, op, .. } => {
                if owner(from) == Delta::SELF {
                    sweep.read(Access::of(What::Read, Delta::SELF, at, span), from);
                }
                if owner(to) == Delta::SELF {
                    let (source, origin) = side(from);
                    let mut access = Access::of(What::Write, Delta::SELF, at, span);
                    (access.source, access.op) = ((owner(from), source), move_or(*op));
                    let (space, target) = side(to);
                    sweep.add(access, space, &origin, &target);
                }
            }
            _ => {}
        }
    }
    for (&delta, peer) in &own.peers {
        let facts = here.at(delta);
        let Some(there) = facts.peers.get(&delta.back()) else { continue };
        for (awaited, sent) in peer.awaited.iter().zip(&there.sent) {
            for &at in &awaited.unpacks {
                let Instruction::Unpack { at: byte, to, op, element, .. } = &own.program.instructions[at]
                else {
                    continue;
                };
                let (space, target) = side(to);
                let size = u64::from(element.size);
                let (mut from, end) = (sent.at + byte, sent.at + byte + to.len() as u64 * size);
                for fold in sent.folds.iter().filter(|fold| fold.low < end && fold.high > from) {
                    let Instruction::Combine { from: part, into, .. } =
                        &facts.program.instructions[fold.instruction]
                    else {
                        continue;
                    };
                    let (source, origin) = side(part);
                    let mut access = Access::of(What::Write, Delta::SELF, at, (at, at));
                    (access.source, access.op) = ((delta, source), move_or(*op));
                    // The unpack contains the whole combination, so positions count from the first
                    // element of the unpack.
                    let elements = into
                        .shift(((fold.low - from) / size) as i64 - into.low())
                        .and_then(|places| target.select(&places))
                        .map_err(|error| unwieldy(here, at, &error))?;
                    sweep.add(access, space, &origin, &elements);
                }
                let mut done = 0;
                for &(low, high, pack) in &sent.packs {
                    let Instruction::Pack { from: part, .. } = &facts.program.instructions[pack] else {
                        continue;
                    };
                    if high <= from || low >= end {
                        continue;
                    }
                    let (first, count) =
                        (((from - low) / size) as usize, ((high.min(end) - from) / size) as usize);
                    let (source, origin) = side(part);
                    let mut access = Access::of(What::Write, Delta::SELF, at, (at, at));
                    (access.source, access.op) = ((delta, source), move_or(*op));
                    if count == part.len() && count == to.len() {
                        sweep.add(access, space, &origin, &target);
                    } else {
                        let part = |whole: &Datatype, first| {
                            whole.slice(first, count).map_err(|error| unwieldy(here, at, &error))
                        };
                        sweep.add(access, space, &part(&origin, first)?, &part(&target, done)?);
                    }
                    done += count;
                    from = high.min(end);
                }
            }
        }
    }
    Ok(())
}

/// Creates the error for an instruction of this rank if no short datatype describes a part of the
/// instruction's elements.
fn unwieldy(here: &Neighbourhood<'_, '_>, at: usize, error: &Error) -> VerifyError {
    VerifyError::Malformed(here.finding(Delta::SELF, Some(at), None, error.to_string()))
}

/// Adds the direct accesses of the peers' programs to this rank's windows.
fn accesses_of_peers(here: &Neighbourhood<'_, '_>, sweep: &mut Sweep<'_, '_, '_>) {
    for &(delta, facts) in here.around.iter().filter(|(delta, _)| *delta != Delta::SELF) {
        let Some(there) = facts.peers.get(&delta.back()) else { continue };
        // The frames of the two programs agree. So if the peer touches windows of this rank, this
        // rank exposes itself to the peer and awaits the peer's done.
        let Some(span) = here.own.peers.get(&delta).and_then(|peer| Some((peer.expose?, peer.done_in?)))
        else {
            continue;
        };
        for &at in &there.copies {
            let Instruction::Copy { from, to, op, .. } = &facts.program.instructions[at] else { continue };
            if owner(from) == delta.back() {
                sweep.read(Access::of(What::Read, delta, at, span), from);
            } else {
                let (source, origin) = side(from);
                let (space, target) = side(to);
                let mut access = Access::of(What::Write, delta, at, span);
                (access.source, access.op) = ((delta, source), move_or(*op));
                sweep.add(access, space, &origin, &target);
            }
        }
    }
}

/// Returns the window or the operation's buffer that contains a part, and the elements of the part
/// there.
pub(super) fn side(part: &Part) -> (Space, Datatype) {
    match part {
        Part::Window { window, datatype, .. } => (Space::Window(*window), datatype.clone()),
        Part::Operation { operation, first, count } => {
            (Space::Buffer(*operation), Datatype::run(*first..first + count))
        }
    }
}
