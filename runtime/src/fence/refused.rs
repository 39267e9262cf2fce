//! Fences that are refused because of their windows. This rank takes part, so that all ranks see
//! the failure.

use super::{Fence, discard};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::{Error, ErrorClass, Result};

/// Returns the error of a fence if one of its windows is posted or being accessed.
pub(super) fn left_open(world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Option<Error> {
    let open = windows.iter().find_map(|window| window.open_since())?;
    let message = format!(
        "{open}, and a fence of an open window applies nothing: complete the access, or wait for the exposure, before the fence"
    );
    Some(call.error(world, ErrorClass::RmaSync, message))
}

/// Refuses a fence if some of its `windows` are of another world, which has other ranks. The
/// windows are not examined. This rank takes part so that the others see the failure.
#[cold]
pub(super) fn refuse_foreign(
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
    failed: Option<Error>,
) -> Result<()> {
    let call = &world.supersteps.call(call);
    let message =
        "a window of another world cannot be fenced here: fence the windows of each world by themselves";
    let error = failed.unwrap_or_else(|| call.error(world, ErrorClass::Win, message));
    let result = Fence::new(world, &[], call, &mut world.endpoint.borrow_mut()).run(Some(error));
    world.supersteps.fenced(true);
    discard(windows);
    result.map(drop)
}
