//! Whether what a program asserts at its fences is true, where that is looked at (planner/README.md, 35).

use super::find;
use crate::state::assertions::Assertions;
use crate::state::call::Call;
use crate::state::window::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::{Error, ErrorClass};

/// What the elements of this rank are now.
fn digest(window: &WindowCore) -> [u8; 32] {
    let bytes = window.peers[window.world.rank].len * window.element.size as usize;
    // SAFETY: this rank's own elements, initialised; it is in a call that holds the window, and nobody writes them before this
    // rank has entered an exchange of the fence, or after it has returned from the last one.
    let part = unsafe { std::slice::from_raw_parts(window.region.base(), bytes) };
    *blake3::hash(part).as_bytes()
}

/// The error of a fence that asserts NOSTORE, if this rank has stored since the one before.
pub(in crate::fence) fn stored(
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
            before.is_some_and(|(number, before)| number == world.number() && before != digest(window))
        }
    };
    let window = windows.iter().find(changed)?;
    let message = format!(
        "NOSTORE was asserted, and this rank has stored into its part of window {} since the fence before: nothing was applied",
        window.key.window
    );
    Some(call.error(world, ErrorClass::Assert, message))
}

/// The windows were fenced. What was asserted of the epoch that has ended holds no more.
pub(super) fn fenced(windows: &[&WindowCore], well: bool) {
    for window in windows {
        window.checked.no_put.set(None);
        let watched = well && window.checked.stores.get();
        window.checked.before.set(watched.then(|| (window.world.number(), digest(window))));
    }
}

/// A fence of these windows was successful that asserted this: what follows is looked at.
pub(in crate::fence) fn promise(windows: &[&WindowCore], assertions: Assertions, call: &Call) {
    if assertions.contains(Assertions::NOPUT) {
        windows.iter().for_each(|window| window.checked.no_put.set(Some(call.site)));
    }
}

/// The error of an epoch for which NOPUT was asserted, if `all` ranks have told of a put or an accumulate of another rank.
pub(super) fn broken(
    world: &WorldCore,
    windows: &[&WindowCore],
    all: &[Vec<u8>],
    call: &Call,
) -> Option<Error> {
    windows.iter().find_map(|window| {
        let promised = window.checked.no_put.get()?;
        let (from, site) = find::first_write(world.rank, window, all)?;
        let line = if site.line > 0 { format!(", at {site},") } else { String::new() };
        let message = format!(
            "NOPUT was asserted at {}:{}, and rank {from} puts or accumulates{line} into this rank's part of window {}: nothing was applied",
            promised.file(),
            promised.line(),
            window.key.window
        );
        Some(call.error(world, ErrorClass::Assert, message))
    })
}
