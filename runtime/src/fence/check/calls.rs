//! Conflicts of an operation with an earlier one of the same rank and epoch, found at its call
//! (planner/README.md, 29).
//!
//! Each rank marks the elements that it has touched of each part ([`Own`]), so an operation without
//! a conflict is recognised quickly. For one with a conflict, the earlier operations are examined
//! one by one.

use super::find::{Records, Touching, add_part, parts, touching};
use super::sections;
use super::{Under, report};
use crate::collect::checked::List;
use crate::collect::operation::WindowKey;
use crate::collect::outbox::DISPLACEMENTS;
use crate::collect::touched::Touched;
use crate::state::conflicts::MOST;
use crate::state::window::WindowCore;
use fencepost_planner::conflicts::{Conflict, Own, Touch, access_to_section, conflict, overwritten};
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

/// Compares an operation on `target` that is about to be called with those before it. The operation
/// may have a section of this window or of another one.
///
/// # Errors
/// `RMA_CONFLICT`, if one before it in this epoch conflicts with it, unless conflicts pass: it must
/// not be collected.
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

/// Compares an operation that is about to be called with those before it.
fn compared(
    window: &WindowCore,
    (kind, target, touched): (Kind, usize, Touched<'_>),
    section: Option<(Option<WindowKey>, Touched<'_>)>,
    site: &'static Location<'static>,
) -> Result<()> {
    let me = window.world.rank;
    let Some(there) = own(window, target) else { return Ok(()) };
    let passes = window.handler.passes();
    if section.is_none() && !passes && there.is_sole(kind, is_costly(touched)) {
        return Ok(());
    }
    let other = section.and_then(|(key, _)| key).filter(|key| *key != window.key);
    let other = other.and_then(|key| window.world.collecting(key));
    let has_section = section.is_some();
    let section = section.map(|(_, touched)| Access {
        window: other.as_deref().unwrap_or(window),
        of: me,
        kind: access_to_section(kind),
        touched,
    });
    let accesses: Vec<_> =
        [Some(Access { window, of: target, kind, touched }), section].into_iter().flatten().collect();
    let owns = || accesses.iter().filter_map(|access| Some((access, own(access.window, access.of)?)));
    if passes {
        owns().for_each(|(_, own)| own.skip());
        return Ok(());
    }
    // An operation on the part that its section is of touches this part twice: neither access is
    // the only one.
    let are_apart = owns().skip(1).all(|(_, own)| !std::ptr::eq(own, there));
    let is_sole = |(access, own): &(&Access<'_>, &Own)| {
        has_section && are_apart && own.is_sole(access.kind, is_costly(access.touched))
    };
    let owns: Vec<_> = owns().filter(|one| !is_sole(one)).collect();
    for (access, own) in &owns {
        own.uses();
        if own.ends_sole() {
            touch_all(own, &before(access.window, access.of));
        }
    }
    if owns.iter().all(|(access, own)| touch_fitting(own, access.kind, access.touched)) {
        return Ok(());
    }
    // Marks may be left from sections whose window was fenced without this one, or no longer
    // exists. Some marks of this operation have been made, too.
    for (access, own) in &owns {
        let has_compared = own.has_compared();
        own.begin();
        if has_compared {
            own.uses()
        } else {
            own.skip()
        }
        touch_all(own, &before(access.window, access.of));
    }
    let all = among_before(&accesses, site);
    if !all.is_empty() {
        return Err(error(window, &all, Under::Fence, site));
    }
    owns.iter().for_each(|(access, own)| touch(own, access.kind, access.touched));
    Ok(())
}

/// Checks an operation that is about to be called and writes these elements of a part, by an access
/// of this kind. The part is that of `rank`, of the window or of another one that is `named`.
///
/// # Errors
/// `RMA_CONFLICT`, if it overwrites itself: it must not be collected.
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

/// Returns the conflicts of these accesses, of an operation at this line, with earlier operations.
fn among_before(accesses: &[Access<'_>], site: &'static Location<'static>) -> Vec<Conflict> {
    let mut all = Vec::new();
    for (place, Access { window, of, .. }) in accesses.iter().enumerate() {
        let is_there = |other: &&Access<'_>| other.of == *of && other.window.key == window.key;
        if !accesses[..place].iter().any(|other| is_there(&other)) {
            let there = accesses.iter().filter(is_there).map(|access| (access.kind, access.touched));
            all.extend(found(window, (*of, &before(window, *of)), &there.collect::<Vec<_>>(), site));
        }
    }
    all
}

/// Returns the marks of this rank for the part of a rank, if conflicts are looked for.
fn own(window: &WindowCore, of: usize) -> Option<&Own> {
    if !window.checked.is_on() {
        return None;
    }
    let peer = &window.peers[of];
    let quick = if peer.base.is_null() { 0 } else { peer.len.min(DISPLACEMENTS as usize) };
    window.checked.own_of(of, peer.len, quick)
}

/// Returns the operations that this rank has called on the part of a rank in this epoch. For its
/// own part this includes operations on other windows that have sections there.
fn before(window: &WindowCore, of: usize) -> Vec<Touching> {
    let number = window.key.window;
    window.outbox(of, |outbox| {
        let (stay, mut told) = (!window.peers[of].base.is_null(), Vec::new());
        let records = if stay { &outbox.records[..] } else { &[] };
        window.checked.with_list(of, stay.then_some(records.len()), |list, lines| {
            add_part(&mut told, number, list, Some(lines), false);
        });
        if of == window.world.rank {
            window.world.each_collecting(|other| {
                other
                    .checked
                    .with_section(number, |list| add_part(&mut told, number, list, Some(&[]), false));
            });
        }
        own_touching(window, of, &told, &|_, _| records)
    })
}

/// Returns the operations on the part of a rank that `told`, a message of this rank, lists.
fn own_touching(window: &WindowCore, of: usize, told: &[u8], records: &Records<'_>) -> Vec<Touching> {
    let me = window.world.rank;
    let of_rank = |rank| if rank == me { parts(told).unwrap_or_default() } else { Vec::new() };
    let all: Vec<_> = (0..window.world.size).map(of_rank).collect();
    touching(of, window, &all, records).unwrap_or_default()
}

/// Marks the elements of these operations.
fn touch_all(own: &Own, all: &[Touching]) {
    all.iter().for_each(|one| touch(own, one.kind, Touched::Type(&one.elements)));
}

/// Returns whether marking these elements costs more than comparing them with those of one other
/// operation.
fn is_costly(touched: Touched<'_>) -> bool {
    /// The number of runs up to which marking is cheap.
    const RUNS: usize = 32;
    matches!(touched, Touched::Type(elements) if elements.run_count() > RUNS)
}

/// Returns whether elements are in more runs than are examined one by one. Such operations are
/// examined in the fence only.
fn has_many_runs(touched: Touched<'_>) -> bool {
    matches!(touched, Touched::Type(elements) if elements.run_count() > MOST_RUNS)
}

/// Returns whether no earlier operation conflicts with an access to these elements.
pub(crate) fn fits(own: &Own, kind: Kind, touched: Touched<'_>) -> bool {
    has_many_runs(touched) || touched.all_runs(|run| !own.conflicts(run, kind))
}

/// Marks the elements of an access run by run, until an earlier operation conflicts with it.
/// Returns whether none does.
fn touch_fitting(own: &Own, kind: Kind, touched: Touched<'_>) -> bool {
    if has_many_runs(touched) {
        own.skip();
        return true;
    }
    touched.all_runs(|run| own.touch_fitting(run, kind))
}

/// Marks the elements of an access, whose operation is called.
pub(crate) fn touch(own: &Own, kind: Kind, touched: Touched<'_>) {
    if has_many_runs(touched) {
        return own.skip();
    }
    touched.all_runs(|run| {
        own.touch(run, kind);
        true
    });
}

/// Returns the error of an operation on `target` of an access. `list` has the operations that were
/// called on the target before; one of them conflicts with it.
pub(crate) fn of_access(
    window: &WindowCore,
    list: &List,
    (kind, target, touched): (Kind, usize, Touched<'_>),
    site: &'static Location<'static>,
) -> Error {
    let mut told = Vec::new();
    add_part(&mut told, window.key.window, list, Some(&[]), false);
    let before = own_touching(window, target, &told, &|_, _| &[]);
    let all = found(window, (target, &before), &[(kind, touched)], site);
    error(window, &all, Under::Posts, site)
}

/// Returns the conflicts of these accesses to the part of a rank, of an operation at this line,
/// with what this rank has called `before` there.
fn found(
    window: &WindowCore,
    (of, before): (usize, &[Touching]),
    accesses: &[(Kind, Touched<'_>)],
    site: &'static Location<'static>,
) -> Vec<Conflict> {
    let me = window.world.rank;
    let mut found: Vec<Conflict> = Vec::new();
    for (kind, touched) in accesses {
        let elements = match touched {
            Touched::Run(at, count) => &Datatype::run(*at..at + count),
            Touched::Type(elements) => *elements,
        };
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
