//! The messages in which ranks list their calls for each other before a fence that is checked, and
//! the conflicts in them.
//!
//! A message has a part for each window on which its sender has called something for its receiver,
//! and for each window whose sections it has named. A part contains the number of the window; the
//! lines, if lines are sent; the lines of records, with the bits that records keep of them; whether
//! each operation was compared at its call with all that its sender had called before it ([`Own`]);
//! and a [list](crate::collect::checked). Numbers have eight bytes. If the receiver reads records
//! of the sender in place, an entry of the list may represent several records. An operation is
//! identified by its sender, and by the number of its first entry among those of the whole message.
//!
//! If one rank alone has touched elements, and compared its operations, no conflict is left to be
//! found. Otherwise each element is marked ([`Marks`]). Mostly the marks show that nothing
//! conflicts, and nothing else is examined; otherwise all accesses to the window are compared. If
//! all writes are accumulates with one operator, no record is examined.

use crate::collect::checked::{Entry, List, Lists, Sent, What, word};
use crate::collect::outbox::Head;
use crate::collect::plain::{kind_of, line_of, plain};
use crate::kernel;
use crate::state::conflicts::{LOCAL, MOST, read_site, write_site};
use crate::state::window::WindowCore;
use fencepost_planner::conflicts::{Access, Conflict, Marks, Own, Touch, conflict, pairs};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::datatype::MOST_RUNS;
use fencepost_planner::ir::pattern::{Kind, Site};
use fencepost_transport::Record;
use smallvec::SmallVec;
use std::ops::{ControlFlow, Range};
use std::panic::Location;

/// A line of this rank.
type Line = &'static Location<'static>;

/// How many records ahead memory is prefetched: some cache lines.
const AHEAD: usize = 32;

/// The records that a rank has for this one in a window, by the rank and the window: empty if they
/// are not read in place.
pub(super) type Records<'r> = dyn Fn(usize, &WindowCore) -> &'r [Record] + 'r;

/// A part of a message.
pub(super) struct Part<'b> {
    window: u64,
    /// The lines of its entries; empty if lines were not sent.
    sites: Vec<Site>,
    /// The lines of records, if lines were sent, with the bits that records keep of them.
    lines: Vec<(u64, Site)>,
    /// Whether each operation of the list was compared at its call with all before it.
    is_compared: bool,
    list: Sent<'b>,
}

/// Returns the message of this rank to rank `to`. `in_place` is whether `to` reads this rank's
/// records in place.
pub(super) fn message(
    windows: &[&WindowCore],
    lists: &mut [Lists],
    to: usize,
    with_lines: bool,
    in_place: bool,
) -> Vec<u8> {
    let mut out = Vec::new();
    for (window, lists) in windows.iter().zip(&mut *lists) {
        if !in_place && let Some((list, lines)) = lists.spelling(to) {
            // SAFETY: they are counted, and this rank is in the call that would change them.
            let records = unsafe { window.region.records(window.set.get(), to) };
            list.spell(records, window.element.size as usize, lines);
        }
    }
    each_list(windows, lists, to, |window, list, lines| {
        let called = windows.iter().find(|other| other.key.window == window);
        let own = called.filter(|called| to != called.world.rank).and_then(|called| called.checked.own(to));
        add_part(&mut out, window, list, with_lines.then_some(lines), own.is_some_and(Own::has_compared));
    });
    out
}

/// Adds the part of a message for the operations of a list, and whether each was compared at its
/// call with all before it.
pub(super) fn add_part(
    out: &mut Vec<u8>,
    window: u32,
    list: &List,
    lines: Option<&[(u64, Line)]>,
    is_compared: bool,
) {
    out.extend(u64::from(window).to_le_bytes());
    let sites = if lines.is_some() { list.sites() } else { &[] };
    out.extend((sites.len() as u64).to_le_bytes());
    sites.iter().for_each(|site| write_site(out, site.file(), site.line(), site.column()));
    let lines = lines.unwrap_or_default();
    out.extend((lines.len() as u64).to_le_bytes());
    for (bits, site) in lines {
        out.extend(bits.to_le_bytes());
        write_site(out, site.file(), site.line(), site.column());
    }
    out.extend(u64::from(is_compared).to_le_bytes());
    list.encode(out);
}

/// Appends the message about this rank's operations on one window, in epochs that no fence ends.
pub(crate) fn message_of(window: u32, list: &List, out: &mut Vec<u8>) {
    if !list.is_empty() {
        add_part(out, window, list, Some(&[]), false);
    }
}

/// Returns the conflicts on the elements of `me` among the operations on this window that the
/// messages of some ranks list.
///
/// # Errors
/// The rank whose message is not valid.
pub(crate) fn conflicts_of(
    me: usize,
    window: &WindowCore,
    told: &[(usize, Vec<u8>)],
) -> Result<Vec<Conflict>, usize> {
    let mut all = vec![Vec::new(); window.world.size];
    told.iter().for_each(|(from, bytes)| all[*from].clone_from(bytes));
    conflicts(me, &[window], &all, &|_, _| &[])
}

/// Calls `act` with each list that this rank has for rank `to` and the number of its window, in the
/// order of the message.
fn each_list(
    windows: &[&WindowCore],
    lists: &[Lists],
    to: usize,
    mut act: impl FnMut(u32, &List, &[(u64, Line)]),
) {
    for (window, lists) in windows.iter().zip(lists) {
        if let Some(list) = lists.for_target(to) {
            act(window.key.window, list, lists.lines());
        }
        if to == window.world.rank {
            lists.sections().for_each(|(number, list)| act(number, list, &[]));
        }
    }
}

/// Returns the part at the front of `bytes`, and advances `bytes` to the next part.
fn part<'b>(bytes: &mut &'b [u8]) -> Option<Part<'b>> {
    let (window, sites) = (word(bytes)?, word(bytes)?);
    // Each item takes at least two numbers.
    let fits =
        |count: u64, bytes: &[u8]| usize::try_from(count).ok().filter(|&count| count <= bytes.len() / 16);
    let sites = fits(sites, bytes)?;
    let sites = (0..sites).map(|_| read_site(bytes)).collect::<Option<Vec<Site>>>()?;
    let lines = fits(word(bytes)?, bytes)?;
    let lines = (0..lines).map(|_| Some((word(bytes)?, read_site(bytes)?)));
    let lines = lines.collect::<Option<Vec<_>>>()?;
    let is_compared = match word(bytes)? {
        0 => false,
        1 => true,
        _ => return None,
    };
    Some(Part { window, sites, lines, is_compared, list: Sent::decode(bytes)? })
}

/// Returns all parts of a message.
pub(super) fn parts(mut bytes: &[u8]) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        parts.push(part(&mut bytes)?);
    }
    Some(parts)
}

/// Returns the conflicts on the elements of `me` in the messages of all ranks.
///
/// # Errors
/// The rank whose message is not valid.
pub(super) fn conflicts(
    me: usize,
    windows: &[&WindowCore],
    all: &[Vec<u8>],
    records: &Records<'_>,
) -> Result<Vec<Conflict>, usize> {
    let all = all.iter().enumerate().map(|(from, bytes)| parts(bytes).ok_or(from));
    let all = all.collect::<Result<Vec<_>, usize>>()?;
    let mut found = Vec::new();
    for window in windows {
        if is_hit(me, window, &all, records)? {
            compare(me, window, &all, records, &mut found)?;
        }
    }
    Ok(found)
}

/// Returns the first rank other than `me` whose message lists a put or an accumulate into the
/// window, with the line if it was sent.
pub(super) fn first_write(me: usize, window: &WindowCore, all: &[Vec<u8>]) -> Option<(usize, Site)> {
    all.iter().enumerate().filter(|(from, _)| *from != me).find_map(|(from, bytes)| {
        let parts = parts(bytes)?;
        let mut own = parts.iter().filter(|part| part.window == u64::from(window.key.window));
        own.find_map(|part| {
            let write = part.list.entries().flatten().find(|entry| entry.kind != Some(Kind::Get))?;
            let line = match write.what {
                What::Records(..) => part.lines.first().map(|(_, site)| site),
                _ => part.sites.get(write.site),
            };
            Some((from, line.cloned().unwrap_or_default()))
        })
    })
}

/// Returns the entries of the window, each with the rank that sent it and the part of the message
/// that it is in.
fn entries<'a, 'b>(
    window: &WindowCore,
    all: &'a [Vec<Part<'b>>],
) -> impl Iterator<Item = (usize, &'a Part<'b>, Option<Entry<'b>>)> {
    let number = u64::from(window.key.window);
    let all = all.iter().enumerate().flat_map(|(from, parts)| parts.iter().map(move |part| (from, part)));
    let own = all.filter(move |(_, part)| part.window == number);
    own.flat_map(|(from, part)| part.list.entries().map(move |entry| (from, part, entry)))
}

/// Returns whether the window is accumulated into with one operator, and nothing else.
fn is_one_operator(window: &WindowCore, all: &[Vec<Part<'_>>]) -> bool {
    let mut one = None;
    entries(window, all).all(|(.., entry)| {
        let kind = entry.and_then(|entry| entry.kind);
        matches!(kind, Some(kind @ Kind::Accumulate(_)) if *one.get_or_insert(kind) == kind)
    })
}

/// Returns the records that an entry represents.
///
/// # Errors
/// The rank that sent the entry, if it has no such records.
fn of_entry<'r>(
    records: &Records<'r>,
    (from, window): (usize, &WindowCore),
    (first, count): (usize, usize),
) -> Result<&'r [Record], usize> {
    records(from, window).get(first..first + count).ok_or(from)
}

/// Returns whether all operations that touch elements of the window are of one other rank, and were
/// compared at their calls.
fn is_of_one(me: usize, window: &WindowCore, all: &[Vec<Part<'_>>]) -> bool {
    let number = u64::from(window.key.window);
    let all = all.iter().enumerate().flat_map(|(from, parts)| parts.iter().map(move |part| (from, part)));
    let mut own = all.filter(|(_, part)| part.window == number);
    match (own.next(), own.next()) {
        (Some((from, part)), None) => from != me && part.is_compared,
        _ => false,
    }
}

/// Returns whether some of the accesses to elements of the window conflict, or may, if there are
/// few of them; otherwise `None`.
///
/// # Errors
/// As [`of_entry`].
fn few_conflict(me: usize, window: &WindowCore, all: &[Vec<Part<'_>>]) -> Result<Option<bool>, usize> {
    /// With more accesses than this, they are marked instead of compared with each other.
    const FEW: usize = 8;
    /// With more pieces of datatypes than this in total, they are marked: comparing two long lists
    /// means sorting them.
    const PIECES: usize = 64;
    let entries = || entries(window, all).take(FEW + 1);
    let is_one = |entry: &Entry<'_>| !matches!(entry.what, What::Records(..));
    if entries().count() > FEW || !entries().all(|(.., entry)| entry.as_ref().is_none_or(is_one)) {
        return Ok(None);
    }
    let len = window.peers[me].len;
    let mut touched: SmallVec<[(Kind, Datatype); FEW]> = SmallVec::new();
    for (from, _, entry) in entries() {
        let entry = entry.ok_or(from)?;
        touched.push((entry.kind.ok_or(from)?, inside(&entry, len).ok_or(from)?));
    }
    if touched.iter().map(|(_, elements)| elements.pieces().len()).sum::<usize>() > PIECES {
        return Ok(None);
    }
    let conflicts = |i: usize, (kind, elements): &(Kind, Datatype)| {
        touched[..i].iter().any(|(other, others)| conflict(*kind, *other) && elements.overlaps(others))
    };
    Ok(Some(touched.iter().enumerate().any(|(i, one)| conflicts(i, one))))
}

/// Marks the elements of the window. Returns whether an access did not fit the mark of its element.
///
/// Nothing is marked if one rank alone has touched elements and has compared its operations itself,
/// or if there are few accesses.
fn is_hit(
    me: usize,
    window: &WindowCore,
    all: &[Vec<Part<'_>>],
    records: &Records<'_>,
) -> Result<bool, usize> {
    if is_of_one(me, window, all) {
        return Ok(false);
    }
    if let Some(is_hit) = few_conflict(me, window, all)? {
        return Ok(is_hit);
    }
    let (len, size) = (window.peers[me].len, window.element.size as usize);
    let skips_records = is_one_operator(window, all);
    let marks = &mut *window.checked.marks();
    marks.begin(len);
    let mut hit = false;
    for (from, _, entry) in entries(window, all) {
        let entry = entry.ok_or(from)?;
        match (entry.what, entry.kind) {
            (What::Run(at, count), Some(kind)) => {
                if at + count > len {
                    return Err(from);
                }
                hit |= match count {
                    1 => marks.touch_one(at, kind),
                    _ => marks.touch(at..at + count, kind),
                };
            }
            (What::Type(_), Some(kind)) => {
                let elements = inside(&entry, len).ok_or(from)?;
                if elements.run_count() > MOST_RUNS {
                    hit = true;
                    continue;
                }
                for (at, count) in elements.run_iter() {
                    let at = at as usize;
                    hit |= marks.touch(at..at + count, kind);
                }
            }
            (What::Records(first, count), _) => {
                let records = of_entry(records, (from, window), (first, count))?;
                hit |= !skips_records && mark_records(marks, records, len, size).ok_or(from)?;
            }
            _ => return Err(from),
        }
    }
    Ok(hit)
}

/// Marks the elements of these records, of elements of `size` bytes. Returns whether one did not
/// fit, or `None` if one is not in the window of `len` elements.
fn mark_records(marks: &mut Marks, records: &[Record], len: usize, size: usize) -> Option<bool> {
    let (mut hit, mut left) = (false, records);
    while let Some((skipped, first)) = plain(left, size).next() {
        left = &left[skipped..];
        // Usually all have one code, so its kind is found once.
        let code = first.code();
        let (kind, mut done) = (kind_of(code)?, 0);
        let at = |record: &Record| Head(record.head).at_of(code);
        let own = left.iter().take_while(|record| at(record) < len).map(|record| {
            // The origin wrote the records last, so each line comes from the origin's cache.
            kernel::fetch(std::ptr::from_ref(record).wrapping_add(AHEAD));
            done += 1;
            at(record)
        });
        hit |= marks.touch_each(own, left.len(), kind);
        if done == 0 {
            return None;
        }
        left = &left[done..];
    }
    Some(hit)
}

/// Returns the elements of an entry, if the window of `len` elements has them all.
fn inside(entry: &Entry<'_>, len: usize) -> Option<Datatype> {
    entry.elements().filter(|elements| elements.low() >= 0 && elements.high() <= len as i64)
}

/// An operation: the elements that it touches, its kind, the rank that calls it with its number
/// there, and its line.
pub(super) struct Touching {
    pub(super) elements: Datatype,
    pub(super) kind: Kind,
    pub(super) by: (usize, usize),
    pub(super) site: Site,
}

/// Returns all accesses to the part of `me` of `window`, by rank, then by number.
pub(super) fn touching(
    me: usize,
    window: &WindowCore,
    all: &[Vec<Part<'_>>],
    records: &Records<'_>,
) -> Result<Vec<Touching>, usize> {
    let (len, size) = (window.peers[me].len, window.element.size as usize);
    let mut touched = Vec::new();
    for (from, parts) in all.iter().enumerate() {
        let (mut before, mut operation) = (0, 0);
        for part in parts {
            let here = part.window == u64::from(window.key.window);
            let mut next = before;
            for entry in part.list.entries() {
                let entry = entry.ok_or(from)?;
                operation = if entry.same { operation } else { before + entry.number };
                next = before + entry.number + 1;
                if let What::Records(first, count) = entry.what {
                    next += count;
                    let own = if here { of_entry(records, (from, window), (first, count))? } else { &[] };
                    for (place, head) in plain(own, size) {
                        let kind = kind_of(head.code()).filter(|_| head.at() < len).ok_or(from)?;
                        let elements = Datatype::run(head.at()..head.at() + 1);
                        let site = line_of_record(part, line_of(head));
                        touched.push(Touching { elements, kind, by: (from, operation + 1 + place), site });
                    }
                } else if here {
                    let (elements, kind) = (inside(&entry, len).ok_or(from)?, entry.kind.ok_or(from)?);
                    let site = part.sites.get(entry.site).cloned().unwrap_or_default();
                    touched.push(Touching { elements, kind, by: (from, operation), site });
                }
            }
            before = next;
        }
    }
    Ok(touched)
}

/// Adds to `found` the conflicts of other ranks' operations with what this rank has stored (as a
/// put) or loaded (as a get) since the call at this line, where MPI does not define them.
pub(super) fn with_local(
    me: usize,
    window: &WindowCore,
    all: &[Vec<u8>],
    records: &Records<'_>,
    (local, runs, site): (Kind, &[Range<usize>], &Site),
    found: &mut Vec<Conflict>,
) -> Result<(), usize> {
    let all = all.iter().enumerate().map(|(from, bytes)| parts(bytes).ok_or(from));
    let all = all.collect::<Result<Vec<_>, usize>>()?;
    for touching in touching(me, window, &all, records)? {
        let (origin, operation) = touching.by;
        let Touching { elements, kind, site: line, .. } = touching;
        if origin != me {
            let touch = Touch { origin, operation, kind, site: line };
            add_undefined(window, (local, runs, site), &elements, touch, found);
        }
    }
    Ok(())
}

/// Adds the conflict of another rank's operation on these elements with what this rank has stored
/// or loaded, if MPI does not define it.
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
        // An operation may touch elements of the window both as its target and as its section:
        // these are one conflict.
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

/// Returns the line of a record that keeps these bits of it. If lines were not sent, the line has
/// no file, and its column is the bits.
fn line_of_record(part: &Part<'_>, bits: u64) -> Site {
    let told = part.lines.iter().find(|(other, _)| *other == bits);
    told.map_or_else(|| Site { column: bits as u32 + 1, ..Site::default() }, |(_, site)| site.clone())
}

/// Returns the lines of this rank's operations in `conflicts`, in order.
pub(super) fn lines(me: usize, windows: &[&WindowCore], lists: &[Lists], conflicts: &[Conflict]) -> Vec<u8> {
    let mut out = Vec::new();
    for conflict in conflicts {
        for touch in conflict.between.iter().filter(|touch| touch.origin == me) {
            let (mut before, mut found): (usize, Option<Line>) = (0, None);
            each_list(windows, lists, conflict.rank, |_, list, lines| {
                let number = touch.operation.checked_sub(before);
                found = found.or_else(|| number.and_then(|number| list.site_of(number)));
                before += list.numbers();
                // The target of a record has only the bits that the record keeps of its line.
                let of_record = |(bits, _): &&(u64, Line)| touch.site.column as u64 == bits + 1;
                if touch.site.line == 0 && touch.operation < before {
                    found = found.or_else(|| lines.iter().find(of_record).map(|(_, site)| *site));
                }
            });
            match found {
                Some(site) => write_site(&mut out, site.file(), site.line(), site.column()),
                None => write_site(&mut out, "", 0, 0),
            }
        }
    }
    out
}

/// Gives the operations in `conflicts` the lines that each rank has sent.
pub(super) fn name_lines(conflicts: &mut [Conflict], lines: &[Vec<u8>]) {
    let mut lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    for touch in conflicts.iter_mut().flat_map(|conflict| &mut conflict.between) {
        if let Some(site) = lines.get_mut(touch.origin).and_then(read_site) {
            touch.site = site;
        }
    }
}
