//! Collectives that order fewer calls in MPI than a barrier does, for checks in which only MPI's
//! order counts (planner/README.md, 37).
//!
//! Each such collective begins with one more exchange. If the collective orders earlier calls of
//! rank `a` before later calls of rank `b`, then in this exchange `a` sends `b` the times that are
//! over. The other exchanges of the collective order nothing. A rank whose arguments are wrong
//! fails in the first exchange of the collective, whether this is the extra exchange or not.

use super::stores::is_asked;
use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::Result;
use fencepost_transport::bytes::Reader;

/// Part of the hash of the exchange in which ranks send their clocks.
const ORDERED: u64 = 0xc4ec_4ed0_0bde_0000;

/// The order that MPI gives a collective: the ranks whose earlier calls come before the later calls
/// of certain other ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Orders {
    /// Earlier calls of every rank come before later calls of every other rank.
    All,
    /// Earlier calls of the given rank come before later calls of the other ranks.
    From(usize),
    /// Earlier calls of the other ranks come before later calls of the given rank.
    To(usize),
    /// Earlier calls of each rank come before later calls of the ranks above it.
    Upwards,
}

impl Orders {
    /// Returns whether the earlier calls of `from` are over before the later calls of `to`, another
    /// rank.
    fn orders(self, from: usize, to: usize) -> bool {
        match self {
            Orders::All => true,
            Orders::From(root) => from == root,
            Orders::To(root) => to == root,
            Orders::Upwards => from < to,
        }
    }
}

/// Returns the call of the extra exchange with which a collective of this order begins. Returns
/// `None` if the order is [`Orders::All`], or if ranks do not check with
/// [`Check::Mpi`](crate::Check::Mpi).
pub(crate) fn first(world: &WorldCore, orders: Orders, call: &Call) -> Option<Call> {
    let is_first = orders != Orders::All && world.checks.is_on() && is_asked(world);
    is_first.then_some(Call { hash: call.hash ^ ORDERED, ..*call })
}

/// Exchanges clocks before all ranks of a split-off world meet. These ranks must send their times,
/// because the number of their exchange has no meaning in other worlds.
///
/// Does nothing in the world of the job, or if nothing is checked.
///
/// # Errors
/// The errors of an exchange.
#[inline]
pub(crate) fn send_times(world: &WorldCore, call: &Call) -> Result<()> {
    if !world.checks.is_on() || !world.checks.clock.has_to_tell() {
        return Ok(());
    }
    let call = Call { hash: call.hash ^ ORDERED, ..*call };
    world.checks.clock.ignoring_exchanges(|| exchange(world, Orders::All, &call))
}

/// Sends the clock of each rank to the ranks whose later calls the collective orders after the
/// earlier calls of that rank.
///
/// # Errors
/// The errors of an exchange.
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
