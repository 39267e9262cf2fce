//! Conflicts of the operations of a fence (planner/README.md, 28 to 30), found before any data
//! moves.
//!
//! Before the fence itself, there is one exchange. In this exchange, each rank sends every other
//! rank a list of its accesses to that rank's elements (`find` defines the form). Each rank looks
//! for conflicts on the elements that it owns. A rank that finds conflicts fails in the fence, like
//! a rank without memory for its puts. So all ranks see the failure and nothing is applied. The
//! report of the failure contains the conflicts, so each rank that is part of a conflict returns an
//! error that names the conflict.
//!
//! - The rules W1 to W6 hold: the exchanges fence no window, each exchange is complete in itself,
//!   and the fence is unchanged.
//! - Ranks whose checks differ exchange different words, also if some of them check nothing. So all
//!   ranks see the difference.

mod announced;
mod calls;
mod collected;
pub(crate) mod exposures;
mod find;
pub(crate) mod order;
pub(crate) mod promised;
mod report;
mod sections;
pub(crate) mod state;
mod stores;

pub(crate) use crate::check::state::checks::Under;
pub(crate) use announced::{announce, found, is_blind, of_checked};
pub(crate) use calls::{call, writes_once};
pub(crate) use order::send_times;
pub(crate) use stores::before_run;

use crate::check::state::checks::Check;
use crate::check::state::conflicts::{MOST, decode, encode};
use crate::collect::filling::RecordSources;
use crate::protocol::call::handler_of;
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::conflicts::Conflict;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Record, Topology};
use std::panic::Location;

/// Part of the hash of the first exchange, combined with the kind of check.
const CHECKED: u64 = 0xc4ec_4ed0_9a3e_0000;

/// Returns whether a fence of these windows is checked. The answer is the same on all ranks.
#[inline(always)]
pub(crate) fn is_checked(world: &WorldCore, windows: &[&WindowCore]) -> bool {
    world.checks.is_on() && windows.iter().any(|window| window.checked.is_on())
}

/// Returns the call for an exchange before the fence of `call`.
fn exchange(world: &WorldCore, call: &Call, hash: u64) -> Call {
    let call = world.supersteps.call(call);
    let check = world.checks.checking.borrow().check;
    let name = match check {
        Check::Mpi => "a fence with FENCEPOST_CHECK=mpi",
        _ => "a fence with FENCEPOST_CHECK=conflicts",
    };
    Call { hash: call.hash ^ hash ^ check as u64, name: Some(name), ..call }
}

/// Notes that the epoch of these windows has ended at this line. From here on, the program can
/// access the windows.
pub(crate) fn ended(windows: &[&WindowCore], site: &'static Location<'static>) {
    for window in windows {
        window.checked.no_put.set(None); // NOPUT was asserted for the epoch that has ended
        begins(window, site);
    }
}

/// Notes that the program can access the window from here on, after the call at this line.
///
/// If requested, the program's stores and loads are observed until the window is fenced, posted or
/// changed over to locks.
pub(crate) fn begins(window: &WindowCore, site: &'static Location<'static>) {
    if !window.checked.is_on() {
        return;
    }
    if window.world.alive().is_err() {
        return window.forget_part(); // other ranks may still be in the call
    }
    promised::begins(window);
    stores::begins(window, site);
}

/// Looks for conflicts in an exchange of all ranks, unless this rank has `failed` before. Returns
/// the error with which this rank takes part in the fence, if there is one.
pub(crate) fn before(
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
    failed: Option<Error>,
) -> Result<Option<Error>> {
    let of_sections = sections::conflicts(world, windows);
    let local = stores::of(world, windows);
    world.checks.begin(Vec::new());
    // Records whose values are still to be read from a section change before the fence, so other
    // ranks do not read them in place.
    let change = windows.iter().any(|window| window.filling.sources.get() != RecordSources::None);
    let shares = |rank: usize| rank == world.rank || world.endpoint.borrow().shares(rank);
    let mut own = find::messages(world, windows, |to| to == world.rank || shares(to) && !change);
    if failed.is_some() {
        own.fill(Vec::new());
    }
    let others = (0..world.size).filter(|&to| to != world.rank);
    let gives: Vec<_> = others.map(|to| (Some(to), &own[to][..])).collect();
    let called = exchange(world, call, CHECKED);
    let mut all = world.meet_some(&called, &gives, |_| true)?;
    if failed.is_some() {
        return Ok(failed);
    }
    all[world.rank] = own.swap_remove(world.rank);
    let records = |from: usize, window: &WindowCore| -> &[Record] {
        let region = match &window.peers[from].region {
            _ if from == world.rank => &window.region,
            Some(region) if shares(from) => region,
            _ => return &[],
        };
        // SAFETY: rank `from` counted the records before it entered the exchange, and named the
        // records only if nothing in its fence changes them. The fence of `from` waits for this
        // rank, which enters the fence after it has read the records.
        unsafe { region.records(window.filling.set.get(), world.rank) }
    };
    let found = find::conflicts(world.rank, windows, &all, &records)
        .and_then(|mut found| {
            found.extend(of_sections.into_iter().take(MOST.saturating_sub(found.len())));
            for stores::Local { window, runs, site } in &local {
                for (kind, runs) in runs.iter().filter(|(_, runs)| !runs.is_empty()) {
                    find::with_local(world.rank, window, &all, &records, (*kind, runs, site), &mut found)?;
                }
            }
            Ok(found)
        })
        .map_err(|from| world.corrupt(&mut world.endpoint.borrow_mut(), from, call))?;
    if let Some(error) = promised::broken(world, windows, &all, &records, call) {
        return Ok(Some(error));
    }
    if found.is_empty() {
        return Ok(None);
    }
    if announced::passes(world, handler_of(world, windows), &found, Under::Fence, call) {
        report::append(world, found.iter());
        return Ok(None);
    }
    let error = call.error(world, ErrorClass::RmaConflict, report::brief(&found));
    world.checks.begin(encode(&found));
    Ok(Some(error))
}

/// Returns this rank's error after the fence has failed on all ranks, with `error` on this rank. If
/// this rank is part of conflicts, the returned error names these conflicts. If only other ranks
/// are part of conflicts, the returned error names one of those ranks. The returned error is
/// `error` itself if there are no conflicts, or if this rank has failed for another reason.
pub(crate) fn after(world: &WorldCore, call: &Call, error: Error) -> Error {
    let me = world.rank;
    let all = world.checks.take(me);
    if all.is_empty() || error.world_ended() {
        return error;
    }
    let decoded: Option<Vec<Vec<Conflict>>> =
        all.iter().map(|(rank, bytes)| of_rank(*rank, world.size, bytes)).collect();
    // Invalid bytes are ignored, and do not replace the error that exists already.
    let Some(conflicts) = decoded.map(|all| all.concat()) else { return error };
    let is_part =
        |conflict: &Conflict| conflict.rank == me || conflict.between.iter().any(|touch| touch.origin == me);
    report::append(world, conflicts.iter().filter(|conflict| conflict.rank == me));
    let own_failure = !error.is_secondary() && error.class() != ErrorClass::RmaConflict;
    if own_failure {
        return error;
    }
    let (mine, others): (Vec<Conflict>, Vec<Conflict>) = conflicts.into_iter().partition(is_part);
    match mine.is_empty() {
        true => {
            let what = format!("a conflict of other ranks: {}", report::text(&others, Under::Fence, false));
            call.error(world, ErrorClass::RmaSync, what).secondary()
        }
        false => call.error(world, ErrorClass::RmaConflict, report::text(&mine, Under::Fence, false)),
    }
}

/// Returns the conflicts that `rank` has found on its own elements.
fn of_rank(rank: usize, ranks: usize, bytes: &[u8]) -> Option<Vec<Conflict>> {
    decode(ranks, bytes).filter(|all| all.iter().all(|conflict| conflict.rank == rank))
}

#[cfg(test)]
mod tests {
    use crate::api::run::ranks;
    use crate::check::state::checks::{Check, Checking};
    use crate::state::transport_kind::TransportKind;
    use fencepost_planner::ErrorClass;
    use fencepost_transport::SimConfig;

    #[test]
    fn ranks_that_are_checked_in_other_ways_are_refused_at_the_first_fence() {
        let transports = [
            TransportKind::Local,
            TransportKind::TcpThreads,
            TransportKind::MixedThreads(vec![0, 0, 1]),
            TransportKind::Sim(SimConfig::default()),
        ];
        for transport in transports {
            for (others, one) in [
                (Check::Off, Check::Conflicts),
                (Check::Mpi, Check::Conflicts),
                (Check::Conflicts, Check::Calls),
            ] {
                let run = ranks(3).transport(transport.clone()).run(|world| {
                    let check = if world.rank() == 1 { one } else { others };
                    world.core().checks.set(Checking { check, ..Checking::default() });
                    let mut u = world.window::<u64>(4)?;
                    for _ in 0..2 {
                        u.put([1]).to(2, world.rank())?;
                        let error = u.fence().expect_err("they are in other exchanges");
                        assert_eq!(error.class(), ErrorClass::RmaSync, "{transport:?} {others} {one}");
                        assert!(error.message().contains("FENCEPOST_CHECK"), "{error}");
                    }
                    assert_eq!(u[..], [0; 4]);
                    let error = world.barrier().expect_err("they are in other barriers");
                    assert_eq!(error.class(), ErrorClass::RmaSync, "{transport:?} {others} {one}");
                    Ok(())
                });
                run.expect("the world goes on");
            }
        }
    }
}
