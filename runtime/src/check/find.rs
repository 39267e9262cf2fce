//! The messages in which ranks list their calls for each other before a fence that is checked, and
//! the conflicts that these messages show.
//!
//! A message has a part for each window on which the sender has called an operation for the
//! receiver, and for each window whose sections the sender has named. A part contains the number of
//! the window, the source lines of its entries, and the source lines of records. A record keeps
//! some bits of its source line, and the part contains these bits with the line. The part also
//! contains a [list](crate::check::state::lists), and whether each operation of the list was
//! compared at its call with all earlier operations of the sender. Numbers have eight bytes. If the
//! receiver reads records of the sender in place, an entry of the list may represent several
//! records. An operation is identified by its sender, and by its number among the operations of the
//! sender on the part.
//!
//! If only one rank has touched elements, and that rank has compared its operations with each
//! other, no conflict is left to find. Otherwise each element is marked
//! ([`Marks`](crate::check::state::marks)). Usually the marks show that nothing conflicts, and
//! nothing else is examined. If the marks do not show this, all accesses to the window are
//! compared.

use crate::check::state::conflicts::{LOCAL, MOST, read_site, write_site};
use crate::check::state::lists::{Entry, Line, List, Sent, What};
use crate::check::state::marks::Marks;
use crate::check::state::records::{kind_of, line_of, plain};
use crate::check::state::touched::Touched;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::conflicts::{Access, Conflict, Touch, pairs};
use fencepost_planner::datatype::{Datatype, MOST_RUNS};
use fencepost_planner::ir::pattern::{Kind, Site};
use fencepost_transport::Record;
use fencepost_transport::bytes::{Reader, Writer};
use std::ops::{ControlFlow, Range};

/// Returns the records that a rank has for this rank in a window. The slice is empty if the records
/// are not read in place.
pub(super) type Records<'r> = dyn Fn(usize, &WindowCore) -> &'r [Record] + 'r;

/// A part of a message.
pub(super) struct Part<'b> {
    window: u64,
    /// The source lines of the entries of `list`.
    sites: Vec<Site>,
    /// The source lines of records, each with the bits of the line that records keep.
    lines: Vec<(u64, Site)>,
    /// Whether each operation of the list was compared at its call with all earlier operations.
    is_compared: bool,
    list: Sent<'b>,
}

/// Returns the messages of this rank to all ranks about its operations on these windows, and
/// forgets the operations. `in_place` returns whether a rank reads this rank's records in place.
pub(super) fn messages(
    world: &WorldCore,
    windows: &[&WindowCore],
    in_place: impl Fn(usize) -> bool,
) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(); world.size];
    for window in windows {
        window.count();
        let number = window.key.window;
        window.checked.with_lists(
            world.size,
            |target| window.records_that_stay(target),
            |to, list, lines| {
                if !in_place(to) {
                    // SAFETY: the records are counted. They change only in a call of this rank, and
                    // the call that this rank is in does not change them.
                    let records = unsafe { window.region.records(window.filling.set.get(), to) };
                    list.spell(records, window.element.size as usize, lines);
                }
                let marks = window.checked.marks(to).filter(|_| to != world.rank);
                add_part(&mut all[to], number, (list, lines), marks.is_some_and(Marks::has_compared));
            },
        );
        window
            .checked
            .each_section(|number, list| add_part(&mut all[world.rank], number, (list, &[]), false));
        // If a fence names a window twice, the window has no operations the second time.
        window.checked.clear();
    }
    all
}

/// Adds the part of a message for the operations of a list. `is_compared` is whether each operation
/// was compared at its call with all earlier operations.
pub(super) fn add_part(
    out: &mut Vec<u8>,
    window: u32,
    (list, lines): (&List, &[(u64, Line)]),
    is_compared: bool,
) {
    let sites = list.sites();
    out.put([u64::from(window), sites.len() as u64]);
    sites.iter().for_each(|site| write_site(out, site.file(), site.line(), site.column()));
    out.put(lines.len() as u64);
    for (bits, site) in lines {
        out.put(*bits);
        write_site(out, site.file(), site.line(), site.column());
    }
    out.put(u64::from(is_compared));
    list.encode(out);
}

/// Appends the message about this rank's operations on one window. Used in epochs that no fence
/// ends.
pub(crate) fn message_of(window: u32, list: &List, out: &mut Vec<u8>) {
    if !list.is_empty() {
        add_part(out, window, (list, &[]), false);
    }
}

/// Returns the conflicts between operations on this window that touch elements of `me`. `messages`
/// are the messages of some ranks, which list these operations.
///
/// # Errors
/// The error is the rank whose message is not valid.
pub(crate) fn conflicts_of(
    me: usize,
    window: &WindowCore,
    messages: &[(usize, Vec<u8>)],
) -> Result<Vec<Conflict>, usize> {
    let mut all = vec![Vec::new(); window.world.size];
    messages.iter().for_each(|(from, bytes)| all[*from].clone_from(bytes));
    conflicts(me, &[window], &all, &|_, _| &[])
}

/// Returns the part at the front of `bytes`, and advances `bytes` to the next part.
fn part<'b>(bytes: &mut Reader<'b>) -> Option<Part<'b>> {
    let [window, sites] = bytes.take()?;
    // Each item takes at least 16 bytes, so the remaining bytes limit the count.
    let fits = |count: u64, bytes: &Reader<'_>| {
        usize::try_from(count).ok().filter(|&count| count <= bytes.0.len() / 16)
    };
    let sites = fits(sites, bytes)?;
    let sites = (0..sites).map(|_| read_site(bytes)).collect::<Option<Vec<Site>>>()?;
    let lines = fits(bytes.take()?, bytes)?;
    let lines = (0..lines).map(|_| Some((bytes.take()?, read_site(bytes)?)));
    let lines = lines.collect::<Option<Vec<_>>>()?;
    let is_compared = match bytes.take::<u64>()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    Some(Part { window, sites, lines, is_compared, list: Sent::decode(bytes)? })
}

/// Returns all parts of a message.
pub(super) fn parts(bytes: &[u8]) -> Option<Vec<Part<'_>>> {
    let (mut bytes, mut parts) = (Reader(bytes), Vec::new());
    while !bytes.is_empty() {
        parts.push(part(&mut bytes)?);
    }
    Some(parts)
}

/// Returns all parts of the messages of all ranks, or the rank whose message is not valid.
fn parts_of(all: &[Vec<u8>]) -> Result<Vec<Vec<Part<'_>>>, usize> {
    all.iter().enumerate().map(|(from, bytes)| parts(bytes).ok_or(from)).collect()
}

/// Returns the conflicts on the elements of `me` between operations that the messages of all ranks
/// list.
///
/// # Errors
/// The error is the rank whose message is not valid.
pub(super) fn conflicts(
    me: usize,
    windows: &[&WindowCore],
    all: &[Vec<u8>],
    records: &Records<'_>,
) -> Result<Vec<Conflict>, usize> {
    let all = parts_of(all)?;
    let mut found = Vec::new();
    for window in windows {
        if may_conflict(me, window, &all, records)? {
            compare(me, window, &all, records, &mut found)?;
        }
    }
    Ok(found)
}

/// Returns the first rank other than `me` whose message lists a put or an accumulate into the
/// window, with the source line of that operation.
pub(super) fn first_write(
    me: usize,
    window: &WindowCore,
    all: &[Vec<u8>],
    records: &Records<'_>,
) -> Option<(usize, Site)> {
    let accesses = touching(me, window, &parts_of(all).ok()?, records).ok()?;
    let write = accesses.into_iter().find(|access| access.by.0 != me && access.kind != Kind::Get)?;
    Some((write.by.0, write.site))
}

/// An access to elements of a part, as the message of its origin lists it.
struct Listed<'a> {
    touched: Touched<'a>,
    kind: Kind,
    /// The rank that calls the operation, and the number of the operation on that rank.
    by: (usize, usize),
    site: &'a Site,
}

/// Calls `act` with each access to the part that rank `me` has of `window`, in the order of ranks,
/// then of operation numbers.
///
/// # Errors
/// The error is the rank whose message is not valid.
fn each_access(
    me: usize,
    window: &WindowCore,
    all: &[Vec<Part<'_>>],
    records: &Records<'_>,
    mut act: impl FnMut(Listed<'_>),
) -> Result<(), usize> {
    let (len, size) = (window.peers[me].len, window.element.size as usize);
    for (from, parts) in all.iter().enumerate() {
        let mut next = 0;
        for part in parts.iter().filter(|part| part.window == u64::from(window.key.window)) {
            for entry in part.list.entries() {
                let entry = entry.ok_or(from)?;
                if let What::Records(first, count) = entry.what {
                    let all = records(from, window).get(first..first + count).ok_or(from)?;
                    for (_, head) in plain(all, size) {
                        let kind = kind_of(head.code()).filter(|_| head.at() < len).ok_or(from)?;
                        let line = part.lines.iter().find(|(bits, _)| *bits == line_of(head));
                        let (_, site) = line.ok_or(from)?;
                        act(Listed { touched: Touched::Run(head.at(), 1), kind, by: (from, next), site });
                        next += 1;
                    }
                    continue;
                }
                let site = part.sites.get(entry.site).ok_or(from)?;
                let by = (from, if entry.same { next.saturating_sub(1) } else { next });
                next = by.1 + 1;
                match entry.what {
                    What::Run(at, count) if at + count <= len => {
                        act(Listed { touched: Touched::Run(at, count), kind: entry.kind, by, site });
                    }
                    _ => {
                        let elements = inside(&entry, len).ok_or(from)?;
                        act(Listed { touched: Touched::Type(&elements), kind: entry.kind, by, site });
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns whether all operations that touch elements of the window belong to one other rank, and
/// were compared with each other at their calls.
fn is_of_one(me: usize, window: &WindowCore, all: &[Vec<Part<'_>>]) -> bool {
    let number = u64::from(window.key.window);
    let all = all.iter().enumerate().flat_map(|(from, parts)| parts.iter().map(move |part| (from, part)));
    let mut own = all.filter(|(_, part)| part.window == number);
    match (own.next(), own.next()) {
        (Some((from, part)), None) => from != me && part.is_compared,
        _ => false,
    }
}

/// Returns whether there are few accesses to elements of the window. In an exchange of halos by
/// columns, marking each element takes longer than comparing the accesses
/// (`benches/log/checker.md`).
fn are_few(window: &WindowCore, all: &[Vec<Part<'_>>]) -> bool {
    const FEW: usize = 8;
    let parts = all.iter().flatten().filter(|part| part.window == u64::from(window.key.window));
    let mut entries = parts.flat_map(|part| part.list.entries());
    let mut ones = entries.by_ref().take(FEW);
    let is_one =
        |entry: Option<Entry<'_>>| entry.is_some_and(|entry| !matches!(entry.what, What::Records(..)));
    ones.all(is_one) && entries.next().is_none()
}

/// Returns whether accesses to elements of the window may conflict.
///
/// If only one rank has touched elements, and that rank has compared its operations with each
/// other, nothing conflicts. If there are few accesses, returns `true`, so that the caller compares
/// them. Otherwise marks the elements to find out.
///
/// # Errors
/// As [`each_access`].
fn may_conflict(
    me: usize,
    window: &WindowCore,
    all: &[Vec<Part<'_>>],
    records: &Records<'_>,
) -> Result<bool, usize> {
    if is_of_one(me, window, all) {
        return Ok(false);
    }
    if are_few(window, all) {
        return Ok(true);
    }
    let Some(marks) = window.checked.marks_on(me, window.peers[me].len) else { return Ok(true) };
    // So far `marks` has the marks of this rank's calls on its own part. No such call follows in
    // this epoch.
    marks.renew();
    let mut fits = true;
    each_access(me, window, all, records, |Listed { touched, kind, .. }| {
        fits &= match touched {
            Touched::Run(at, 1) if marks.touch_one(at, kind, || true) => true,
            Touched::Type(elements) if elements.run_count() > MOST_RUNS => false,
            _ => marks.touch(kind, touched),
        };
    })?;
    Ok(!fits)
}

/// Returns the elements of an entry, if all of them are in the window of `len` elements.
fn inside(entry: &Entry<'_>, len: usize) -> Option<Datatype> {
    entry.elements().filter(|elements| elements.low() >= 0 && elements.high() <= len as i64)
}

/// An operation: the elements that it touches, its kind, the rank that calls it, its number on that
/// rank, and its line.
pub(super) struct Touching {
    pub(super) elements: Datatype,
    pub(super) kind: Kind,
    pub(super) by: (usize, usize),
    pub(super) site: Site,
}

/// Returns all accesses to the part that rank `me` has of `window`, in the order of ranks, then of
/// operation numbers.
///
/// # Errors
/// As [`each_access`].
pub(super) fn touching(
    me: usize,
    window: &WindowCore,
    all: &[Vec<Part<'_>>],
    records: &Records<'_>,
) -> Result<Vec<Touching>, usize> {
    let mut found = Vec::new();
    each_access(me, window, all, records, |Listed { touched, kind, by, site }| {
        found.push(Touching { elements: touched.to_datatype(), kind, by, site: site.clone() });
    })?;
    Ok(found)
}

/// Adds to `found` the conflicts between other ranks' operations and this rank's own accesses since
/// the call at `site`, if MPI does not define the result. `local` is `Put` for stores of this rank,
/// and `Get` for loads.
pub(super) fn with_local(
    me: usize,
    window: &WindowCore,
    all: &[Vec<u8>],
    records: &Records<'_>,
    (local, runs, site): (Kind, &[Range<usize>], &Site),
    found: &mut Vec<Conflict>,
) -> Result<(), usize> {
    for touching in touching(me, window, &parts_of(all)?, records)? {
        let (origin, operation) = touching.by;
        let Touching { elements, kind, site: line, .. } = touching;
        if origin != me {
            let touch = Touch { origin, operation, kind, site: line };
            add_undefined(window, (local, runs, site), &elements, touch, found);
        }
    }
    Ok(())
}

/// Adds the conflict between another rank's operation on these elements and this rank's stores or
/// loads, if MPI does not define the result.
pub(super) fn add_undefined(
    window: &WindowCore,
    (local, runs, site): (Kind, &[Range<usize>], &Site),
    elements: &Datatype,
    touch: Touch,
    found: &mut Vec<Conflict>,
) {
    let ends = |run: &Range<usize>| {
        let both = || elements.overlap_bounds(&Datatype::run(run.clone()));
        match (local, touch.kind) {
            (Kind::Get, Kind::Get) => None,
            (Kind::Get, _) | (_, Kind::Get) => both(),
            _ => Some(run.start as i64..run.end as i64),
        }
    };
    let hits = || runs.iter().filter_map(ends);
    if let (Some(first), Some(last)) = (hits().next(), hits().next_back())
        && found.len() < MOST
    {
        let me = window.world.rank;
        let local = Touch { origin: me, operation: LOCAL, kind: local, site: site.clone() };
        let (window, elements) = (window.key.window as usize, first.start..last.end);
        found.push(Conflict { rank: me, ranks: 1, window, elements, between: [local, touch] });
    }
}

/// Adds the conflicts on this rank's part of `window` to `found`.
fn compare(
    me: usize,
    window: &WindowCore,
    all: &[Vec<Part<'_>>],
    records: &Records<'_>,
    found: &mut Vec<Conflict>,
) -> Result<(), usize> {
    let touched = touching(me, window, all, records)?;
    let line = |by: (usize, usize)| {
        let place = touched.partition_point(|other| other.by < by);
        touched.get(place).map_or_else(Site::default, |touching| touching.site.clone())
    };
    let mut accesses: Vec<Access<'_, (usize, usize)>> = touched
        .iter()
        .map(|Touching { elements, kind, by, .. }| Access { window: 0, elements, kind: *kind, by: *by })
        .collect();
    pairs(&mut accesses, |a, b, elements| {
        let mut between = [a, b].map(|access| {
            let (origin, operation) = access.by;
            Touch { origin, operation, kind: access.kind, site: line(access.by) }
        });
        between.sort_by_key(|touch| (touch.origin, touch.operation));
        // An operation may touch elements of the window both in its target and in its section. Both
        // accesses are reported as one conflict.
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
