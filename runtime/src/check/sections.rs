//! Conflicts of a rank's operations with its own stores and loads: a store into the section that an
//! operation reads, or a load or store of the section that a get writes. A store or a load counts
//! only if it happens after the call of the operation and before the fence that carries out the
//! operation (planner/README.md, 37).

use super::announced::is_blind;
use super::stores::{differences, forget_loads, is_asked, loaded_since, part};
use crate::check::state::checks::Blind;
use crate::check::state::conflicts::{LOCAL, MOST};
use crate::check::state::sections::Section;
use crate::check::state::touched::Touched;
use crate::collect::operation::WindowKey;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::conflicts::{Conflict, Touch};
use fencepost_planner::ir::pattern::Kind;
use std::ops::Range;
use std::panic::Location;

/// The number of an operation in its conflicts with the stores and loads of its own rank.
const OWN: usize = 0;

/// Notes that an operation with a section was called on this window. The section consists of these
/// elements of this rank's part of the window `key`, or of this window if `key` is `None`. `kind`
/// is the kind of the operation's access to its section.
pub(super) fn called(
    window: &WindowCore,
    (key, kind, elements): (Option<WindowKey>, Kind, Touched<'_>),
    site: &'static Location<'static>,
) {
    if !is_asked(&window.world) {
        return;
    }
    if key.is_some_and(|key| key != window.key) {
        // The program may hold a `&mut` borrow of the other window's elements meanwhile, so these
        // elements must not be read here.
        return is_blind(&window.world, window.key.window, Blind::Sections, site);
    }
    let loads = if kind == Kind::Put { forget_loads(window) } else { 0 };
    let (part, size) = (part(window), window.element.size as usize);
    let sections = &mut *window.checked.sections.borrow_mut();
    elements.all_runs(|elements| {
        let bytes = &part[elements.start * size..elements.end * size];
        sections.add(Section { elements, kind, site, loads }, bytes);
        true
    });
}

/// Returns the conflicts between this rank's operations on these windows and its stores and loads
/// since the calls of these operations.
pub(super) fn conflicts(world: &WorldCore, windows: &[&WindowCore]) -> Vec<Conflict> {
    let mut found: Vec<Conflict> = Vec::new();
    for window in windows {
        let (now, size) = (part(window), window.element.size as usize);
        for (section, before) in window.checked.sections.borrow().each(size) {
            let Range { start, end } = section.elements;
            let stored = differences(before, &now[start * size..end * size], size);
            let stored = bounds(stored.iter().map(|run| start + run.start..start + run.end));
            let loaded = || loaded_since(window, section.loads);
            let inside = |run: &Range<usize>| run.start.max(start)..run.end.min(end);
            let loaded = match section.kind {
                Kind::Put => bounds(loaded().iter().map(inside).filter(|run| !run.is_empty())),
                _ => None, // the program may load what an operation reads
            };
            for (local, elements) in [(Kind::Put, stored), (Kind::Get, loaded)] {
                let Some(elements) = elements else { continue };
                let site = world.checks.site(section.site);
                let touch =
                    |operation, kind| Touch { origin: world.rank, operation, kind, site: site.clone() };
                let between = [touch(LOCAL, local), touch(OWN, section.kind)];
                let window = window.key.window as usize;
                let is_same = |other: &&mut Conflict| other.window == window && other.between == between;
                if let Some(Conflict { elements: all, .. }) = found.iter_mut().find(is_same) {
                    *all = all.start.min(elements.start)..all.end.max(elements.end);
                } else if found.len() < MOST {
                    found.push(Conflict { rank: world.rank, ranks: 1, window, elements, between });
                }
            }
        }
    }
    found
}

/// Returns the range from the first to the last of the elements in some ascending runs.
fn bounds(mut runs: impl Iterator<Item = Range<usize>>) -> Option<Range<i64>> {
    let first = runs.next()?;
    let end = runs.last().map_or(first.end, |last| last.end);
    Some(first.start as i64..end as i64)
}
