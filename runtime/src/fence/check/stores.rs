//! The elements that a rank has stored into its part between two fences, or while it is posted, found by comparing it with a copy; and
//! those that it has loaded between two fences, where that is watched (planner/README.md, 37).

use super::find;
use crate::state::call::Call;
use crate::state::check::Check;
use crate::state::window::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::conflicts::Conflict;
use fencepost_planner::ir::pattern::{Kind, Site};
use std::ops::Range;
use std::panic::Location;

/// This rank's elements, as bytes.
fn part(window: &WindowCore) -> &[u8] {
    let bytes = window.peers[window.world.rank].len * window.element.size as usize;
    // SAFETY: this rank's own elements, initialised; it is in a call that holds the window, and nobody writes them before this
    // rank has entered an exchange of the fence, or after it has returned from the last one.
    unsafe { std::slice::from_raw_parts(window.region.base(), bytes) }
}

fn is_asked(world: &WorldCore) -> bool {
    world.checks.checking.borrow().check == Check::Mpi
}

/// The accesses of this rank to its part of a window since the fence at a line, as far as they are known.
pub(super) struct Local<'w> {
    pub(super) window: &'w WindowCore,
    /// The elements that it has stored, and those that it has loaded, both ascending, each with what that is in kind.
    pub(super) runs: [(Kind, Vec<Range<usize>>); 2],
    pub(super) site: Site,
}

/// The accesses of this rank to its parts of these windows since the fence before.
pub(super) fn of<'w>(world: &WorldCore, windows: &[&'w WindowCore]) -> Vec<Local<'w>> {
    let mut all = Vec::new();
    for window in windows {
        let Some((number, site)) = window.checked.kept.take() else { continue };
        if number != world.number() {
            continue;
        }
        let (now, before) = (part(window), window.checked.part.borrow());
        let stored = differences(&before, now, window.element.size as usize);
        let runs = [(Kind::Put, stored), (Kind::Get, window.region.loaded())];
        all.push(Local { window, runs, site: world.checks.site(site) });
    }
    all
}

/// This window was posted at this line, as far as elements are lent, and this rank may store into the others.
pub(crate) fn posted(window: &WindowCore, site: &'static Location<'static>) {
    if is_asked(&window.world) && window.checked.is_on() {
        window.checked.posted.set(Some(site));
        keep(window);
    }
}

/// The exposure of this window is over: adds the conflicts of what its sources have `told` of their calls with what this rank has stored
/// meanwhile.
///
/// # Errors
/// The rank that has told what cannot be.
pub(crate) fn exposed(
    window: &WindowCore,
    told: &[(usize, Vec<u8>)],
    found: &mut Vec<Conflict>,
) -> Result<(), usize> {
    let Some(site) = window.checked.posted.take() else { return Ok(()) };
    let stored = differences(&window.checked.part.borrow(), part(window), window.element.size as usize);
    if stored.is_empty() {
        return Ok(());
    }
    let mut all = vec![Vec::new(); window.world.size];
    told.iter().for_each(|(from, bytes)| all[*from].clone_from(bytes));
    let site = window.world.checks.site(site);
    find::with_local(window.world.rank, window, &all, &|_, _| &[], (Kind::Put, &stored, &site), found)
}

fn keep(window: &WindowCore) {
    let kept = &mut *window.checked.part.borrow_mut();
    kept.clear();
    kept.extend_from_slice(part(window));
}

/// The elements of `size` bytes that are not the same in both, in runs.
fn differences(before: &[u8], now: &[u8], size: usize) -> Vec<Range<usize>> {
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

/// The windows were fenced in this call: where it went through, what they hold is kept, and what is loaded from here on is seen.
pub(super) fn fenced(world: &WorldCore, windows: &[&WindowCore], well: bool, call: &Call) {
    if !is_asked(world) {
        return;
    }
    for window in windows {
        window.checked.kept.set(well.then(|| (world.number(), call.site)));
        if well {
            keep(window);
            window.region.watch();
        } else {
            window.region.open();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::differences;

    #[test]
    fn elements_that_differ_are_told_in_runs() {
        let before = [0_u8; 12];
        let mut now = before;
        assert_eq!(differences(&before, &now, 2), []);
        (now[3], now[4], now[11]) = (1, 1, 1);
        assert_eq!(differences(&before, &now, 2), [1..3, 5..6]);
        let of_four = differences(&before, &now, 4);
        assert_eq!((of_four.len(), of_four.first()), (1, Some(&(0..3))));
    }
}
