//! Checks of the assertions of a program at its fences, if these checks are requested
//! (planner/README.md, 35).

use super::find::{self, Records};
use super::stores::part;
use crate::state::assertions::Assertions;
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::{Error, ErrorClass};

/// Returns a digest of this rank's elements.
fn digest(window: &WindowCore) -> [u8; 32] {
    *blake3::hash(part(window)).as_bytes()
}

/// Returns the error of a fence that asserts NOSTORE, if this rank has stored into its part since
/// the previous fence.
pub(crate) fn stored(
    world: &WorldCore,
    windows: &[&WindowCore],
    assertions: Assertions,
    call: &Call,
) -> Option<Error> {
    if !assertions.contains(Assertions::NOSTORE) {
        return None;
    }
    let changed = |window: &&&WindowCore| {
        window.checked.is_on() && {
            window.checked.stores.set(true);
            let before = window.checked.before.take();
            before.is_some_and(|before| before != digest(window))
        }
    };
    let window = windows.iter().find(changed)?;
    let message = format!(
        "NOSTORE was asserted, and this rank has stored into its part of window {} since its last fence or wait: nothing was applied",
        window.key.window
    );
    Some(call.error(world, ErrorClass::Assert, message))
}

/// Keeps a digest of this rank's part, if the program asserts NOSTORE at its fences.
pub(super) fn begins(window: &WindowCore) {
    window.checked.before.set(window.checked.stores.get().then(|| digest(window)));
}

/// Records the assertions of a successful fence of these windows, so that the following epoch is
/// checked against them.
pub(crate) fn promise(windows: &[&WindowCore], assertions: Assertions, call: &Call) {
    if assertions.contains(Assertions::NOPUT) {
        windows.iter().for_each(|window| window.checked.no_put.set(Some(call.site)));
    }
}

/// Returns the error of an epoch for which NOPUT was asserted, if the messages of `all` ranks list
/// a put or an accumulate of another rank.
pub(super) fn broken(
    world: &WorldCore,
    windows: &[&WindowCore],
    all: &[Vec<u8>],
    records: &Records<'_>,
    call: &Call,
) -> Option<Error> {
    windows.iter().find_map(|window| {
        let promised = window.checked.no_put.get()?;
        let (from, site) = find::first_write(world.rank, window, all, records)?;
        let message = format!(
            "NOPUT was asserted at {}:{}, and rank {from} puts or accumulates, at {site}, into this rank's part of window {}: nothing was applied",
            promised.file(),
            promised.line(),
            window.key.window
        );
        Some(call.error(world, ErrorClass::Assert, message))
    })
}
