//! Finds the elements that a rank has stored into its own part of a window since a call returned
//! the window to the program, or while the window is posted. These elements are found by comparing
//! the part with a copy. Also finds the elements that the rank has loaded, if loads are watched
//! (planner/README.md, 37).

use super::announced::is_blind;
use super::find;
use crate::check::state::checks::{Blind, Check};
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::conflicts::{Conflict, Incoming};
use fencepost_planner::ids::Id;
use fencepost_planner::ir::pattern::{Kind, Site};
use std::ops::Range;
use std::panic::Location;

/// Returns this rank's elements, as bytes.
pub(super) fn part(window: &WindowCore) -> &[u8] {
    let bytes = window.peers[window.world.rank].len * window.element.size as usize;
    // SAFETY: these are this rank's own elements, initialised. The rank is in a call that holds the
    // window, before the exchange that notifies others of the call or after the last exchange. So
    // no other rank writes these elements.
    unsafe { std::slice::from_raw_parts(window.region.base(), bytes) }
}

pub(super) fn is_asked(world: &WorldCore) -> bool {
    world.checks.checking.borrow().check == Check::Mpi
}

/// The known accesses of this rank to its part of a window since the call at a line.
pub(super) struct Local<'w> {
    pub(super) window: &'w WindowCore,
    /// The elements that this rank has stored and the elements that it has loaded, both ascending.
    /// Stores count as puts, and loads as gets.
    pub(super) runs: [(Kind, Vec<Range<usize>>); 2],
    pub(super) site: Site,
}

/// Returns the accesses of this rank to its part of each of these windows since a call returned the
/// window to the program.
pub(super) fn of<'w>(world: &WorldCore, windows: &[&'w WindowCore]) -> Vec<Local<'w>> {
    let mut all = Vec::new();
    for window in windows {
        let Some(site) = window.checked.since.take() else { continue };
        let (now, before) = (part(window), window.checked.part.borrow());
        let stored = differences(&before, now, window.element.size as usize);
        let runs = [(Kind::Put, stored), (Kind::Get, loaded_since(window, 0))];
        all.push(Local { window, runs, site: world.checks.site(site) });
    }
    all
}

/// Returns the conflicts between other ranks' operations in the next run of a prepared superstep
/// and the stores or loads of this rank in its parts of the windows. `incoming` is called only if
/// those operations are needed.
pub(crate) fn before_run<'i>(
    world: &WorldCore,
    windows: &[&WindowCore],
    incoming: impl FnOnce() -> &'i [Incoming],
) -> Vec<Conflict> {
    let mut found = Vec::new();
    if !is_asked(world) {
        return found;
    }
    let incoming = incoming();
    for (at, window) in windows.iter().enumerate() {
        let here = || incoming.iter().filter(|access| access.window.index() == at);
        if here().next().is_none() {
            continue;
        }
        for Local { window, runs, site } in of(world, &[window]) {
            for (kind, runs) in &runs {
                for Incoming { elements, touch, .. } in here() {
                    find::add_undefined(window, (*kind, runs, &site), elements, touch.clone(), &mut found);
                }
            }
        }
    }
    found
}

/// Notes that a post at this line exposes only some elements of this window. This rank may store
/// into the elements that are not exposed.
pub(crate) fn posted(window: &WindowCore, site: &'static Location<'static>) {
    if is_asked(&window.world) && window.checked.is_on() {
        window.checked.since.set(Some(site));
        keep(window);
    }
}

/// Adds the conflicts between the stores of this rank during an exposure of this window and the
/// calls of the sources. `messages` are the messages of the sources, which list the calls. Called
/// at the end of the exposure.
///
/// # Errors
/// The error is the rank whose message is not valid.
pub(crate) fn exposed(
    window: &WindowCore,
    messages: &[(usize, Vec<u8>)],
    found: &mut Vec<Conflict>,
) -> Result<(), usize> {
    let Some(site) = window.checked.since.take() else { return Ok(()) };
    let stored = differences(&window.checked.part.borrow(), part(window), window.element.size as usize);
    if stored.is_empty() {
        return Ok(());
    }
    let mut all = vec![Vec::new(); window.world.size];
    messages.iter().for_each(|(from, bytes)| all[*from].clone_from(bytes));
    let site = window.world.checks.site(site);
    find::with_local(window.world.rank, window, &all, &|_, _| &[], (Kind::Put, &stored, &site), found)
}

fn keep(window: &WindowCore) {
    let kept = &mut *window.checked.part.borrow_mut();
    kept.clear();
    kept.extend_from_slice(part(window));
}

/// Returns the elements that this rank has loaded, as ascending runs. Leaves out the first `known`
/// runs that [`forget_loads`] has kept.
pub(super) fn loaded_since(window: &WindowCore, known: usize) -> Vec<Range<usize>> {
    let mut all = window.region.loaded();
    all.extend_from_slice(&window.checked.loaded.borrow()[known..]);
    all.sort_unstable_by_key(|run| run.start);
    all.dedup_by(|next, run| {
        let meets = next.start <= run.end;
        run.end = if meets { run.end.max(next.end) } else { run.end };
        meets
    });
    all
}

/// Keeps the elements that were loaded so far, separate from later loads. Returns the number of
/// runs of the kept elements.
pub(super) fn forget_loads(window: &WindowCore) -> usize {
    let loaded = &mut *window.checked.loaded.borrow_mut();
    if window.world.checks.checking.borrow().sees_loads() {
        loaded.extend(window.region.loaded());
        window.region.watch();
    }
    loaded.len()
}

/// Returns the elements of `size` bytes that differ between the two slices, in runs.
pub(super) fn differences(before: &[u8], now: &[u8], size: usize) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, (before, now)) in before.chunks(size).zip(now.chunks(size)).enumerate() {
        if before != now {
            match runs.last_mut() {
                Some(run) if run.end == at => run.end += 1,
                _ => runs.push(at..at + 1),
            }
        }
    }
    runs
}

/// Keeps a copy of the window's elements, and watches the program's loads from here on, after the
/// call at this line.
pub(super) fn begins(window: &WindowCore, site: &'static Location<'static>) {
    let world = &window.world;
    if !is_asked(world) {
        return;
    }
    window.checked.since.set(Some(site));
    window.checked.loaded.borrow_mut().clear();
    keep(window);
    if !window.region.watch() && world.checks.checking.borrow().loads && !part(window).is_empty() {
        is_blind(world, window.key.window, Blind::Loads, site);
    }
}

#[cfg(test)]
mod tests {
    use super::differences;

    #[test]
    fn elements_that_differ_are_found_in_runs() {
        let before = [0_u8; 12];
        let mut now = before;
        assert_eq!(differences(&before, &now, 2), []);
        (now[3], now[4], now[11]) = (1, 1, 1);
        assert_eq!(differences(&before, &now, 2), [1..3, 5..6]);
        let of_four = differences(&before, &now, 4);
        assert_eq!((of_four.len(), of_four.first()), (1, Some(&(0..3))));
    }
}
