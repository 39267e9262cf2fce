//! Fences at which a program makes assertions.

use super::fence;
use crate::check;
use crate::state::assertions::Assertions;
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::{ErrorClass, Result};

/// Runs [`fence`] with the program's assertions.
pub(crate) fn fence_with(
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
    assertions: Assertions,
) -> Result<()> {
    let call = call.asserting(assertions);
    let waiting = windows.iter().find(|window| window.is_pending());
    let failed = waiting.filter(|_| assertions.contains(Assertions::NOPRECEDE)).map(|window| {
        let message = format!(
            "NOPRECEDE was asserted, and operations wait for the fence of window {}: nothing was applied",
            window.key.window
        );
        call.error(world, ErrorClass::Assert, message)
    });
    let failed = failed.or_else(|| check::promised::stored(world, windows, assertions, &call));
    fence(world, windows, &call, failed)?;
    check::promised::promise(windows, assertions, &call);
    if assertions.contains(Assertions::NOSUCCEED) {
        windows.iter().for_each(|window| window.close(true));
    }
    Ok(())
}
