//! The messages in which ranks tell each other of their calls before a fence that is checked, and the conflicts in them.
//!
//! A message has a part for each window that its sender has called something on for its receiver, and for each that it has named
//! sections of: the number of the window, the lines where they are told, and a [list](crate::collect::checked). Numbers are
//! of eight bytes. An operation is known by its sender, and by the place of its first entry among the words of the entries of all of the message.
//!
//! First each element is marked ([`Marks`]). Mostly the marks show that nothing conflicts, and nothing else is looked at;
//! otherwise all accesses to the window are compared.

use crate::collect::checked::{Entry, List, Lists, Sent, word};
use crate::state::conflicts::{MOST, read_site, write_site};
use crate::state::window::WindowCore;
use fencepost_planner::conflicts::{Access, Conflict, Touch, pairs};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::datatype::MOST_RUNS;
use fencepost_planner::ir::pattern::{Kind, Site};
use std::ops::ControlFlow;
use std::panic::Location;

/// A part of a message.
struct Part<'b> {
    window: u64,
    /// The lines of its entries; none where they were not told.
    sites: Vec<Site>,
    list: Sent<'b>,
}

/// Returns the message of this rank to rank `to`.
pub(super) fn message(windows: &[&WindowCore], lists: &[Lists], to: usize, with_lines: bool) -> Vec<u8> {
    let mut out = Vec::new();
    each_list(windows, lists, to, |window, list| add_part(&mut out, window, list, with_lines));
    out
}

fn add_part(out: &mut Vec<u8>, window: u32, list: &List, with_lines: bool) {
    out.extend(u64::from(window).to_le_bytes());
    let sites = if with_lines { list.sites() } else { &[] };
    out.extend((sites.len() as u64).to_le_bytes());
    sites.iter().for_each(|site| write_site(out, site.file(), site.line(), site.column()));
    list.encode(out);
}

/// What this rank tells of its operations on one window, in epochs that no fence ends.
pub(crate) fn message_of(window: u32, list: &List, out: &mut Vec<u8>) {
    if !list.is_empty() {
        add_part(out, window, list, true);
    }
}

/// The conflicts on the elements of `me` in what some ranks have told of their operations on this window.
///
/// # Errors
/// The rank that has told what cannot be.
pub(crate) fn conflicts_of(
    me: usize,
    window: &WindowCore,
    told: &[(usize, Vec<u8>)],
) -> Result<Vec<Conflict>, usize> {
    let mut all = vec![Vec::new(); window.world.size];
    told.iter().for_each(|(from, bytes)| all[*from].clone_from(bytes));
    conflicts(me, &[window], &all)
}

/// Calls `act` with each list that this rank has for rank `to`, and the number of the window that it is of, in the order of the message.
fn each_list(windows: &[&WindowCore], lists: &[Lists], to: usize, mut act: impl FnMut(u32, &List)) {
    for (window, lists) in windows.iter().zip(lists) {
        if let Some(list) = lists.for_target(to) {
            act(window.key.window, list);
        }
        if to == window.world.rank {
            lists.sections().for_each(|(number, list)| act(number, list));
        }
    }
}

/// The part at the front of `bytes`, which is left at the next.
fn part<'b>(bytes: &mut &'b [u8]) -> Option<Part<'b>> {
    let (window, sites) = (word(bytes)?, word(bytes)?);
    // Each takes two numbers at least.
    let sites = usize::try_from(sites).ok().filter(|&sites| sites <= bytes.len() / 16)?;
    let sites = (0..sites).map(|_| read_site(bytes)).collect::<Option<Vec<Site>>>()?;
    Some(Part { window, sites, list: Sent::decode(bytes)? })
}

/// All parts of a message.
fn parts(mut bytes: &[u8]) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        parts.push(part(&mut bytes)?);
    }
    Some(parts)
}

/// The conflicts on the elements of `me` in what all ranks have told.
///
/// # Errors
/// The rank that has told what cannot be.
pub(super) fn conflicts(me: usize, windows: &[&WindowCore], all: &[Vec<u8>]) -> Result<Vec<Conflict>, usize> {
    let all = all.iter().enumerate().map(|(from, bytes)| parts(bytes).ok_or(from));
    let all = all.collect::<Result<Vec<_>, usize>>()?;
    let mut found = Vec::new();
    for window in windows {
        if is_hit(me, window, &all)? {
            compare(me, window, &all, &mut found)?;
        }
    }
    Ok(found)
}

/// The first rank other than `me` that has told of a put or an accumulate into the window, with the line if it was told.
pub(super) fn first_write(me: usize, window: &WindowCore, all: &[Vec<u8>]) -> Option<(usize, Site)> {
    all.iter().enumerate().filter(|(from, _)| *from != me).find_map(|(from, bytes)| {
        let parts = parts(bytes)?;
        let mut own = parts.iter().filter(|part| part.window == u64::from(window.key.window));
        own.find_map(|part| {
            let write = part.list.entries().flatten().find(|entry| entry.kind != Kind::Get)?;
            Some((from, part.sites.get(write.site).cloned().unwrap_or_default()))
        })
    })
}

/// Marks the elements of the window; returns whether an access did not fit the mark of its element.
fn is_hit(me: usize, window: &WindowCore, all: &[Vec<Part<'_>>]) -> Result<bool, usize> {
    let len = window.peers[me].len;
    let marks = &mut *window.checked.marks();
    marks.begin(len);
    let mut hit = false;
    for (from, parts) in all.iter().enumerate() {
        for part in parts.iter().filter(|part| part.window == u64::from(window.key.window)) {
            for entry in part.list.entries() {
                let entry = entry.ok_or(from)?;
                if let Ok((at, count)) = entry.run {
                    if at + count > len {
                        return Err(from);
                    }
                    hit |= match count {
                        1 => marks.touch_one(at, entry.kind),
                        _ => marks.touch(at..at + count, entry.kind),
                    };
                    continue;
                }
                let elements = inside(&entry, len).ok_or(from)?;
                if elements.run_count() > MOST_RUNS {
                    hit = true;
                    continue;
                }
                for (at, count) in elements.run_iter() {
                    let at = at as usize;
                    hit |= marks.touch(at..at + count, entry.kind);
                }
            }
        }
    }
    Ok(hit)
}

/// The elements of an entry, if the window of `len` elements has them all.
fn inside(entry: &Entry<'_>, len: usize) -> Option<Datatype> {
    entry.elements().filter(|elements| elements.low() >= 0 && elements.high() <= len as i64)
}

/// Adds the conflicts on this rank's part of `window` to those that were found.
fn compare(
    me: usize,
    window: &WindowCore,
    all: &[Vec<Part<'_>>],
    found: &mut Vec<Conflict>,
) -> Result<(), usize> {
    let len = window.peers[me].len;
    // What is touched, how, and by which operation.
    let mut touched: Vec<(Datatype, Kind, (usize, usize))> = Vec::new();
    for (from, parts) in all.iter().enumerate() {
        let (mut before, mut operation) = (0, 0);
        for part in parts {
            let here = part.window == u64::from(window.key.window);
            for entry in part.list.entries() {
                let entry = entry.ok_or(from)?;
                operation = if entry.same { operation } else { before + entry.place };
                if here {
                    let elements = inside(&entry, len).ok_or(from)?;
                    touched.push((elements, entry.kind, (from, operation)));
                }
            }
            before += part.list.len();
        }
    }
    let mut accesses: Vec<Access<'_, (usize, usize)>> = touched
        .iter()
        .map(|(elements, kind, by)| Access { window: 0, elements, kind: *kind, by: *by })
        .collect();
    pairs(&mut accesses, |a, b, elements| {
        let mut between = [a, b].map(|access| {
            let (origin, operation) = access.by;
            Touch { origin, operation, kind: access.kind, site: site_of(&all[origin], operation) }
        });
        between.sort_by_key(|touch| (touch.origin, touch.operation));
        // An operation may touch elements of the window as its target and as its section: the two are one conflict.
        let same = |other: &&mut Conflict| {
            let by = |touch: &Touch| (touch.origin, touch.operation);
            other.window == window.key.window as usize
                && other.between.iter().map(by).eq(between.iter().map(by))
        };
        match found.iter_mut().find(same) {
            Some(Conflict { elements: both, .. }) => {
                *both = both.start.min(elements.start)..both.end.max(elements.end);
            }
            None => {
                let window = window.key.window as usize;
                found.push(Conflict { rank: me, ranks: 1, window, elements, between });
            }
        }
        if found.len() >= MOST { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    Ok(())
}

/// The line of the operation whose first entry has this place in the message; none where it was not told.
fn site_of(parts: &[Part<'_>], mut place: usize) -> Site {
    let part = parts.iter().find(|part| {
        let here = place < part.list.len();
        place -= if here { 0 } else { part.list.len() };
        here
    });
    let entry = part.and_then(|part| part.list.entries().flatten().find(|entry| entry.place == place));
    part.zip(entry).and_then(|(part, entry)| part.sites.get(entry.site).cloned()).unwrap_or_default()
}

/// The lines of this rank's operations in `conflicts`, in order.
pub(super) fn lines(me: usize, windows: &[&WindowCore], lists: &[Lists], conflicts: &[Conflict]) -> Vec<u8> {
    let mut out = Vec::new();
    for conflict in conflicts {
        for touch in conflict.between.iter().filter(|touch| touch.origin == me) {
            let (mut before, mut found): (usize, Option<&'static Location<'static>>) = (0, None);
            each_list(windows, lists, conflict.rank, |_, list| {
                let place = touch.operation.checked_sub(before);
                found = found.or_else(|| place.and_then(|place| list.site_of(place)));
                before += list.len();
            });
            match found {
                Some(site) => write_site(&mut out, site.file(), site.line(), site.column()),
                None => write_site(&mut out, "", 0, 0),
            }
        }
    }
    out
}

/// Gives the operations in `conflicts` the lines that each rank has told.
pub(super) fn name_lines(conflicts: &mut [Conflict], lines: &[Vec<u8>]) {
    let mut lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    for touch in conflicts.iter_mut().flat_map(|conflict| &mut conflict.between) {
        if let Some(site) = lines.get_mut(touch.origin).and_then(read_site) {
            touch.site = site;
        }
    }
}
