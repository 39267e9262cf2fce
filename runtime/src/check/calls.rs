//! Conflicts of two operations of the same rank and epoch (planner/README.md, 29). They are found
//! when the later operation is called.
//!
//! Each rank marks the elements that it has touched in each part ([`Marks`]), so an operation
//! without a conflict is recognised quickly. For an operation with a conflict, the earlier
//! operations are examined one by one.

use super::find::{Records, Touching, add_part, parts, touching};
use super::sections;
use super::{Under, report};
use crate::check::state::conflicts::MOST;
use crate::check::state::lists::List;
use crate::check::state::marks::Marks;
use crate::check::state::touched::Touched;
use crate::collect::operation::WindowKey;
use crate::state::window_core::WindowCore;
use fencepost_planner::conflicts::{Conflict, Touch, access_to_section, conflict, overwritten};
use fencepost_planner::datatype::{Datatype, MOST_RUNS};
use fencepost_planner::ir::pattern::{Kind, Site};
use fencepost_planner::{Error, ErrorClass, Result};
use std::panic::Location;

/// An access of an operation that this rank is about to call: the window and the rank that own the
/// elements, the kind, and the elements.
struct Access<'a> {
    window: &'a WindowCore,
    of: usize,
    kind: Kind,
    touched: Touched<'a>,
}

/// Compares an operation on `target`, which is about to be called, with the earlier operations. The
/// operation may have a section of this window or of another window.
///
/// # Errors
/// `RMA_CONFLICT`, if an earlier operation of this epoch conflicts with this operation and the
/// handler does not let conflicts pass. In that case the operation must not be collected.
pub(crate) fn call(
    window: &WindowCore,
    operation: (Kind, usize, Touched<'_>),
    section: Option<(Option<WindowKey>, Touched<'_>)>,
    site: &'static Location<'static>,
) -> Result<()> {
    compared(window, operation, section, site)?;
    if let Some((key, touched)) = section {
        sections::called(window, (key, access_to_section(operation.0), touched), site);
    }
    Ok(())
}

/// Compares an operation, which is about to be called, with the earlier operations.
fn compared(
    window: &WindowCore,
    (kind, target, touched): (Kind, usize, Touched<'_>),
    section: Option<(Option<WindowKey>, Touched<'_>)>,
    site: &'static Location<'static>,
) -> Result<()> {
    let other = section.and_then(|(key, _)| key).filter(|key| *key != window.key);
    let other = other.and_then(|key| window.world.windows.collecting(key));
    let section = section.map(|(_, touched)| Access {
        window: other.as_deref().unwrap_or(window),
        of: window.world.rank,
        kind: access_to_section(kind),
        touched,
    });
    let accesses = [Some(Access { window, of: target, kind, touched }), section];
    let marked = || accesses.iter().flatten().filter_map(|one| Some((one, marks(one.window, one.of)?)));
    if window.handler.passes() {
        marked().for_each(|(_, marks)| marks.skip());
        return Ok(());
    }
    let fits = || marked().all(|(access, marks)| touch(marks, access.kind, access.touched));
    let mark_before =
        || marked().for_each(|(access, marks)| mark_again(marks, &before(access.window, access.of)));
    if fits() {
        return Ok(());
    }
    // Earlier accesses may not be marked yet. Also, there may still be marks of sections whose
    // window was fenced without this window or no longer exists.
    mark_before();
    if fits() {
        return Ok(());
    }
    let all = among_before(&accesses, site);
    if !all.is_empty() {
        mark_before(); // without the marks of this operation
        return Err(error(window, &all, Under::Fence, site));
    }
    marked().for_each(|(access, marks)| {
        touch(marks, access.kind, access.touched);
    });
    Ok(())
}

/// Checks an operation that is about to be called. The operation writes these elements by an access
/// of this kind. The elements are in the part that `rank` has of the window `named`, or of `window`
/// if `named` is `None`.
///
/// # Errors
/// `RMA_CONFLICT`, if the operation writes an element twice. In that case the operation must not be
/// collected.
pub(crate) fn writes_once(
    window: &WindowCore,
    (kind, rank, elements): (Kind, usize, &Datatype),
    named: Option<WindowKey>,
    under: Under,
    site: &'static Location<'static>,
) -> Result<()> {
    let Some(twice) = overwritten(kind, elements) else { return Ok(()) };
    let touch = Touch { origin: window.world.rank, operation: LAST, kind, site: site_of(site) };
    let number = named.unwrap_or(window.key).window as usize;
    let between = [touch.clone(), touch];
    let alone = Conflict { rank, ranks: 1, window: number, elements: twice, between };
    Err(error(window, &[alone], under, site))
}

/// Returns the conflicts of the accesses of an operation at this line with earlier operations.
fn among_before(accesses: &[Option<Access<'_>>], site: &'static Location<'static>) -> Vec<Conflict> {
    let mut all = Vec::new();
    for (place, Access { window, of, .. }) in accesses.iter().flatten().enumerate() {
        let is_there = |other: &&Access<'_>| other.of == *of && other.window.key == window.key;
        if !accesses.iter().flatten().take(place).any(|other| is_there(&other)) {
            let there =
                accesses.iter().flatten().filter(is_there).map(|access| (access.kind, access.touched));
            all.extend(found(window, (*of, &before(window, *of)), &there.collect::<Vec<_>>(), site));
        }
    }
    all
}

/// Returns the marks of this rank on the part of a rank, if conflicts are checked.
fn marks(window: &WindowCore, of: usize) -> Option<&Marks> {
    if !window.checked.is_on() {
        return None;
    }
    window.checked.marks_on(of, window.peers[of].len)
}

/// Returns the operations that this rank has called on the part of a rank in this epoch. For the
/// rank's own part, the result includes operations on other windows that have sections in the part.
fn before(window: &WindowCore, of: usize) -> Vec<Touching> {
    let number = window.key.window;
    window.outbox(of, |outbox| {
        let (stay, mut message) = (!window.peers[of].base.is_null(), Vec::new());
        let records = if stay { &outbox.records[..] } else { &[] };
        window.checked.with_list(of, stay.then_some(records.len()), |list, lines| {
            add_part(&mut message, number, (list, lines), false);
        });
        if of == window.world.rank {
            window.world.windows.each_collecting(|other| {
                other.checked.with_section(number, |list| add_part(&mut message, number, (list, &[]), false));
            });
        }
        own_touching(window, of, &message, &|_, _| records)
    })
}

/// Returns the operations on the part of a rank that `message`, a message of this rank, lists.
fn own_touching(window: &WindowCore, of: usize, message: &[u8], records: &Records<'_>) -> Vec<Touching> {
    let me = window.world.rank;
    let of_rank = |rank| if rank == me { parts(message).unwrap_or_default() } else { Vec::new() };
    let all: Vec<_> = (0..window.world.size).map(of_rank).collect();
    touching(of, window, &all, records).unwrap_or_default()
}

/// Marks the elements of these operations, and removes all other marks.
fn mark_again(marks: &Marks, all: &[Touching]) {
    marks.renew();
    all.iter().for_each(|one| {
        touch(marks, one.kind, Touched::Type(&one.elements));
    });
}

/// Marks the elements of an access. Returns `true` if the access conflicts with no marked access.
///
/// Elements in very many runs are not marked. They are examined only in the fence.
pub(crate) fn touch(marks: &Marks, kind: Kind, touched: Touched<'_>) -> bool {
    if touched.is_of_more_runs(MOST_RUNS) {
        marks.skip();
        return true;
    }
    marks.touch(kind, touched)
}

/// Compares an operation on `target` with the earlier operations in `list`. The operation is about
/// to be called in an access, and may conflict according to the `marks` of that access.
///
/// # Errors
/// `RMA_CONFLICT`, if an earlier operation conflicts with this one.
pub(crate) fn of_access(
    window: &WindowCore,
    (list, marks): (&List, &Marks),
    (kind, target, touched): (Kind, usize, Touched<'_>),
    site: &'static Location<'static>,
) -> Result<()> {
    let mut message = Vec::new();
    add_part(&mut message, window.key.window, (list, &[]), false);
    let before = own_touching(window, target, &message, &|_, _| &[]);
    mark_again(marks, &before);
    if touch(marks, kind, touched) {
        return Ok(());
    }
    let all = found(window, (target, &before), &[(kind, touched)], site);
    if all.is_empty() {
        return Ok(());
    }
    mark_again(marks, &before); // without the marks of this operation
    Err(error(window, &all, Under::Posts, site))
}

/// Returns the conflicts of an operation that is called at this line with the operations `before`
/// that this rank has called on the same part. `accesses` are the operation's accesses to that
/// part.
fn found(
    window: &WindowCore,
    (of, before): (usize, &[Touching]),
    accesses: &[(Kind, Touched<'_>)],
    site: &'static Location<'static>,
) -> Vec<Conflict> {
    let me = window.world.rank;
    let mut found: Vec<Conflict> = Vec::new();
    for (kind, touched) in accesses {
        let elements = touched.to_datatype();
        for earlier in before.iter().filter(|earlier| conflict(earlier.kind, *kind)) {
            let Some(both) = elements.overlap_bounds(&earlier.elements) else { continue };
            let known = found.iter().position(|other| other.between[0].operation == earlier.by.1);
            match known {
                Some(known) => {
                    let elements = &mut found[known].elements;
                    *elements = elements.start.min(both.start)..elements.end.max(both.end);
                }
                None if found.len() < MOST => {
                    let (operation, before) = (earlier.by.1, earlier.site.clone());
                    let first = Touch { origin: me, operation, kind: earlier.kind, site: before };
                    let second = Touch { origin: me, operation: LAST, kind: *kind, site: site_of(site) };
                    let (window, between) = (window.key.window as usize, [first, second]);
                    found.push(Conflict { rank: of, ranks: 1, window, elements: both, between });
                }
                None => {}
            }
        }
    }
    found
}

fn site_of(site: &Location<'_>) -> Site {
    Site { file: site.file().into(), line: site.line(), column: site.column() }
}

/// The number of an operation that is being called.
const LAST: usize = usize::MAX - 1;

fn error(window: &WindowCore, all: &[Conflict], under: Under, site: &'static Location<'static>) -> Error {
    report::append_refused(&window.world, all);
    window.error(ErrorClass::RmaConflict, report::of_call(all, under), site)
}
