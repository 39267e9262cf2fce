//! Fences and collectives of worlds in which conflicts are checked ([`check`]).

use super::{discard, fail, fence_unchecked};
use crate::check;
use crate::check::order::{self, Orders};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::{Error, Result};

/// Fences windows that are checked.
#[cold]
pub(super) fn fence_checked(
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
    failed: Option<Error>,
) -> Result<()> {
    let foreign = windows.iter().any(|window| window.key.world != world.id);
    let is_matched = || world.supersteps.follows() && world.supersteps.matched(windows).is_some();
    if foreign || world.admits(call).is_err() || is_matched() {
        return fence_unchecked(world, windows, call, failed);
    }
    let result = match check::before(world, windows, call, failed) {
        Ok(failed) => {
            fence_unchecked(world, windows, call, failed).map_err(|error| check::after(world, call, error))
        }
        Err(error) => {
            if world.supersteps.is_any_running() {
                world.supersteps.fenced(true);
            }
            discard(windows);
            Err(error)
        }
    };
    check::ended(windows, call.site);
    result
}

/// Runs a collective to which MPI gives the order `orders`. `checked` is the result of checking its
/// arguments. A rank whose arguments are wrong takes part in the first exchange of the call, so
/// that the others see the failure.
#[inline]
pub(crate) fn ordered<R>(
    world: &WorldCore,
    orders: Orders,
    call: &Call,
    checked: Result<()>,
    run: impl FnOnce() -> Result<R>,
) -> Result<R> {
    if let Some(first) = order::first(world, orders, call) {
        return world.checks.clock.ignoring_exchanges(|| match checked {
            Ok(()) => order::exchange(world, orders, &first).and_then(|()| run()),
            Err(error) => Err(fail(world, &[], &first, error)),
        });
    }
    match checked {
        Ok(()) => run(),
        Err(error) => Err(fail(world, &[], call, error)),
    }
}
