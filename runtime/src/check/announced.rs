//! Conflicts of epochs that no fence ends (planner/README.md, 31 to 34). The rank that finds a
//! conflict returns the error at once. All other ranks receive the conflict in the next barrier, or
//! in the next call that changes a window over to locks or back.

use super::{exchange, report};
use crate::check::state::checks::{Blind, Under};
use crate::check::state::conflicts::{MOST, decode, encode};
use crate::state::call::Call;
use crate::state::handler::Handler;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::conflicts::Conflict;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::bytes::{Reader, Writer};
use std::io::Write as _;
use std::panic::Location;

/// Part of the hash of the exchange in which ranks send each other their conflicts.
const ANNOUNCES: u64 = 0xc4ec_4ed0_701d_0000;

/// The kinds of conflicts that a rank finds by itself, and reports to all ranks afterwards.
const ANNOUNCED: [Under; 3] = [Under::Locks, Under::Posts, Under::Run];

/// Reports the conflicts that this rank has found in an epoch of a window, if any.
///
/// # Errors
/// `RMA_CONFLICT`, if there are conflicts and the window's handler does not let them pass.
pub(crate) fn found(window: &WindowCore, conflicts: &[Conflict], under: Under, call: &Call) -> Result<()> {
    if conflicts.is_empty() {
        return Ok(());
    }
    let world = &window.world;
    report::append(world, conflicts.iter());
    if passes(world, &window.handler, conflicts, under, call) {
        return Ok(());
    }
    let unannounced = &mut *world.checks.unannounced.borrow_mut();
    let room = MOST.saturating_sub(unannounced.len());
    unannounced.extend(conflicts.iter().take(room).map(|conflict| (conflict.clone(), under)));
    Err(call.error(world, ErrorClass::RmaConflict, report::text(conflicts, under, false)))
}

/// Returns whether the handler lets these conflicts pass. If so, the conflicts were reported to the
/// handler.
pub(super) fn passes(
    world: &WorldCore,
    handler: &Handler,
    conflicts: &[Conflict],
    under: Under,
    call: &Call,
) -> bool {
    let error = || call.error(world, ErrorClass::RmaConflict, report::text(conflicts, under, true));
    handler.passes() && handler.lets_pass(&error())
}

/// Returns `call`, with another hash if this rank checks conflicts. So the call differs from the
/// calls of ranks that do not check conflicts, or that check conflicts in another way.
pub(crate) fn of_checked(world: &WorldCore, call: Call) -> Call {
    if !world.checks.is_on() {
        return call;
    }
    let check = world.checks.checking.borrow().check;
    Call { hash: call.hash ^ ANNOUNCES ^ check as u64, ..call }
}

/// Sends all ranks the conflicts that were found since the last announcement, as a part of `call`.
///
/// # Errors
/// If there are conflicts: `RMA_CONFLICT` on the ranks that are part of a conflict, and `RMA_SYNC`
/// on the other ranks.
pub(crate) fn announce(world: &WorldCore, call: &Call) -> Result<()> {
    if !world.checks.is_on() || world.supersteps.is_any_running() {
        return Ok(());
    }
    let unannounced = world.checks.unannounced.take();
    let mut own = Vec::new();
    for under in ANNOUNCED {
        let some = unannounced.iter().filter(|(_, other)| *other == under);
        let bytes = encode(&some.map(|(conflict, _)| conflict.clone()).collect::<Vec<_>>());
        own.put_counted(&bytes);
    }
    let all =
        world.meet(&exchange(world, call, ANNOUNCES), if unannounced.is_empty() { &[] } else { &own })?;
    let mut mine: [Vec<Conflict>; ANNOUNCED.len()] = Default::default();
    let mut others = Vec::new();
    for bytes in all.iter().filter(|bytes| !bytes.is_empty()) {
        let mut rest = Reader(bytes);
        for (under, mine) in ANNOUNCED.into_iter().zip(&mut mine) {
            // Bytes that are not valid are ignored.
            let Some(now) = rest.counted() else { break };
            for conflict in decode(world.size, now).unwrap_or_default() {
                let known = |other: &Conflict| other.between == conflict.between;
                let origins = conflict.between.iter().map(|touch| touch.origin);
                let is_part = origins.chain([conflict.rank]).any(|rank| rank == world.rank);
                if !is_part {
                    others.push((conflict, under));
                } else if !mine.iter().any(known) {
                    mine.push(conflict);
                }
            }
        }
    }
    let texts: Vec<String> = ANNOUNCED
        .into_iter()
        .zip(&mine)
        .filter(|(_, some)| !some.is_empty())
        .map(|(under, some)| report::text(some, under, false))
        .collect();
    if !texts.is_empty() {
        return Err(call.error(world, ErrorClass::RmaConflict, texts.join("\n")));
    }
    match others.first() {
        None => Ok(()),
        Some((conflict, under)) => {
            let text = report::text(std::slice::from_ref(conflict), *under, false);
            let error: Error =
                call.error(world, ErrorClass::RmaSync, format!("a conflict of other ranks: {text}"));
            Err(error.secondary())
        }
    }
}

/// Reports, once for each cause, that this rank may miss conflicts of this window in the call at
/// this line and in later calls.
#[cold]
pub(crate) fn is_blind(world: &WorldCore, window: u32, why: Blind, site: &'static Location<'static>) {
    let reported = world.checks.blind.get();
    if reported & why.bit() != 0 {
        return;
    }
    world.checks.blind.set(reported | why.bit());
    let (rank, file, line) = (world.rank, site.file(), site.line());
    let memory = world.checks.checking.borrow().memory;
    report::append_blind(world, window, site);
    let text = match why {
        Blind::Memory => format!(
            "fencepost: rank {rank} looks for conflicts of window {window} no further than {file}:{line}: the operations since the last barrier need more than {memory} bytes; set FENCEPOST_CHECK_MEMORY, or let all ranks meet more often\n"
        ),
        Blind::Loads => format!(
            "fencepost: rank {rank} cannot see loads of its part of window {window}, which the call at {file}:{line} returned; `Ranks::check_loads` says where they are seen\n"
        ),
        Blind::Sections => format!(
            "fencepost: rank {rank} does not look for its stores and loads in the section of the operation on window {window} at {file}:{line}, nor in others of a window that the operation is not called on; name sections of the same window to have these found\n"
        ),
    };
    // A failure to write cannot be reported.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
