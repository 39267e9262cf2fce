//! Collectives that order less than a barrier in MPI, where only MPI's order counts
//! (planner/README.md, 37).
//!
//! Each begins with one more exchange. In it, the times of what is over travel from the ranks whose
//! earlier calls are ordered to those whose later calls are ordered after them. The other exchanges
//! of the collective order nothing. A rank whose arguments are wrong fails in the first exchange,
//! as it does without the extra one.

use super::stores::is_asked;
use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::Result;
use fencepost_transport::bytes::Reader;

/// Part of the hash of the exchange in which clocks travel.
const ORDERED: u64 = 0xc4ec_4ed0_0bde_0000;

/// What a collective orders in MPI: which ranks' earlier calls come before which ranks' later ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Orders {
    /// Those of every rank before those of every other one.
    All,
    /// Those of this rank before those of the others.
    From(usize),
    /// Those of the others before those of this rank.
    To(usize),
    /// Those of each rank before those of the ranks above it.
    Upwards,
}

impl Orders {
    /// Returns whether what `from` has called before is over before what `to`, another rank, calls
    /// after.
    fn orders(self, from: usize, to: usize) -> bool {
        match self {
            Orders::All => true,
            Orders::From(root) => from == root,
            Orders::To(root) => to == root,
            Orders::Upwards => from < to,
        }
    }
}

/// Returns the call of the exchange with which a collective of this order begins, if only MPI's
/// order counts and it orders less than all.
pub(crate) fn first(world: &WorldCore, orders: Orders, call: &Call) -> Option<Call> {
    let is_first = orders != Orders::All && world.checks.is_on() && is_asked(world);
    is_first.then_some(Call { hash: call.hash ^ ORDERED, ..*call })
}

/// Exchanges clocks before all ranks of a world that was split off meet, since the number of their
/// exchange means nothing in other worlds.
///
/// Does nothing if nothing is checked, and in the world of the job.
///
/// # Errors
/// Those of an exchange.
#[inline]
pub(crate) fn send_times(world: &WorldCore, call: &Call) -> Result<()> {
    if !world.checks.is_on() || !world.checks.clock.has_to_tell() {
        return Ok(());
    }
    let call = Call { hash: call.hash ^ ORDERED, ..*call };
    world.checks.clock.ignoring_exchanges(|| exchange(world, Orders::All, &call))
}

/// Exchanges the clocks, as far as the collective orders.
///
/// # Errors
/// Those of an exchange.
pub(crate) fn exchange(world: &WorldCore, orders: Orders, call: &Call) -> Result<()> {
    let (me, clock) = (world.rank, &world.checks.clock);
    let mut known = Vec::new();
    clock.write_all(me, world.size, &mut known);
    let hearers = (0..world.size).filter(|&to| to != me && orders.orders(me, to));
    let mut gives: Vec<_> = hearers.map(|to| (Some(to), &known[..])).collect();
    if gives.len() + 1 == world.size {
        gives = vec![(None, &known[..])];
    }
    let all = world.meet_some(call, &gives, |from| orders.orders(from, me))?;
    for (from, bytes) in all.iter().enumerate().filter(|(from, _)| *from != me && orders.orders(*from, me)) {
        match clock.read_all(world.size, &mut Reader(bytes)) {
            Some(times) => clock.hear_all(&times),
            None => return Err(world.corrupt(&mut world.endpoint.borrow_mut(), from, call)),
        }
    }
    Ok(())
}
