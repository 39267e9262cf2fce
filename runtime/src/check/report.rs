//! The forms of conflicts: a text for people, lines of JSON for programs, and bytes for other
//! ranks.

use crate::check::state::checks::Under;
use crate::check::state::conflicts::{LOCAL, MOST};
use crate::state::world::WorldCore;
use fencepost_planner::conflicts::{Conflict, Touch};
use fencepost_planner::element::Op;
use fencepost_planner::ir::pattern::{Kind, Site};
use fencepost_planner::plan::open_regular;
use fencepost_planner::profile::quoted;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::ops::Range;
use std::panic::Location;
use std::path::Path;
use std::sync::atomic::Ordering;

/// The maximum number of bytes of a source file that are read to find a line.
const MOST_SOURCE: u64 = 1 << 22;

/// Returns the number of conflicts in words, for ranks that receive only this text about the
/// conflicts.
pub(super) fn brief(conflicts: &[Conflict]) -> String {
    format!("{} of this epoch conflict on elements of this rank", count(conflicts))
}

fn count(conflicts: &[Conflict]) -> String {
    let is_local = |conflict: &Conflict| conflict.between[0].operation == LOCAL;
    if !conflicts.is_empty() && conflicts.iter().all(is_local) {
        let is_load = |conflict: &&Conflict| conflict.between[0].kind == Kind::Get;
        let local = match conflicts.iter().filter(is_load).count() {
            0 => "a store",
            loads if loads == conflicts.len() => "a load",
            _ => "a store or a load",
        };
        return match conflicts.len() {
            1 => format!("{local} and an operation"),
            pairs => format!("{pairs} pairs of {local} and an operation"),
        };
    }
    match conflicts.len() {
        1 => "two operations".into(),
        pairs if pairs < MOST => format!("{pairs} pairs of operations"),
        pairs => format!("{pairs} pairs of operations, or more,"),
    }
}

/// Returns the word for an access.
fn access(kind: Kind) -> String {
    match kind {
        Kind::Get => "read".into(),
        Kind::Put => "written".into(),
        Kind::Accumulate(Op::NoOp) => format!("read with {}", Op::NoOp),
        Kind::Accumulate(op) => format!("accumulated into with {op}"),
    }
}

/// Returns a text with the effect that two conflicting accesses would have without a check, and
/// with advice to the author of the program.
fn advice(a: &Touch, b: &Touch, under: Under) -> String {
    use Kind::{Accumulate, Get, Put};
    if a.operation == LOCAL && a.origin == b.origin {
        return match (a.kind, b.kind) {
            (Get, _) => "MPI does not define a load of an element that a get lands in, between the call of the get and its fence: load before the call, or put a fence before the load",
            (_, Get) => "MPI does not define a store into the section that an operation reads, between the call and its fence: store before the call, put a fence before the store, or hand over a slice, which is read at the call",
            _ => "MPI does not define a store into an element that a get lands in, between the call of the get and its fence: put a fence before the store",
        }
        .into();
    }
    if (a.operation, a.kind) == (LOCAL, Get) {
        return "MPI does not define a load of an element that another rank puts or accumulates into in the same epoch: put a fence after the loads".into();
    }
    if a.operation == LOCAL {
        let what = match b.kind {
            Get => "a store into an element that is got in the same epoch",
            _ => {
                "a store into a part, whatever the element, that another rank puts or accumulates into in the same epoch"
            }
        };
        let way = match under {
            Under::Fence | Under::Run => "put a fence after the stores",
            Under::Posts | Under::Locks => "store before the post, or after the wait",
        };
        return format!("MPI does not define {what}: {way}");
    }
    let reads = |kind: Kind| if kind == Accumulate(Op::NoOp) { Get } else { kind };
    let (a, b) = (reads(a.kind), reads(b.kind));
    let becomes = match (a, b, under) {
        (Accumulate(a), Accumulate(b), _) if a == b => "one of the two may be lost",
        (Get, _, Under::Locks) | (_, Get, Under::Locks) => "the read has either value",
        (Put, Put, Under::Locks) => "either value stays",
        (.., Under::Locks) => "either comes first",
        (Get, ..) | (_, Get, _) => "the read has the value from before the epoch",
        (Accumulate(_), Accumulate(_), _) => "the lower rank's comes first",
        (Put, Put, _) => "the higher rank's stays, or of one rank the later",
        _ => "the lower rank's comes first, or of one rank the earlier",
    };
    let first = match (a, b, under) {
        (Get, Accumulate(_), Under::Locks) | (Accumulate(_), Get, Under::Locks) => {
            "read with `fetch_and` or `get_accumulate` and `Op::NoOp`, or "
        }
        (Get, _, Under::Fence | Under::Run) | (_, Get, Under::Fence | Under::Run) => {
            "if the new one is meant, "
        }
        (Accumulate(a), Accumulate(b), _) if a == b => {
            "do not promise `Hints::disjoint` of the window, under which accumulates are not atomic, or "
        }
        (Accumulate(_), Accumulate(_), _) => "use one operator, or ",
        (Put, Put, _) => "let one of them write, or ",
        _ => "",
    };
    let between = match under {
        Under::Fence | Under::Run => "put a fence between the two",
        Under::Posts => "let them belong to two exposures, one after the other",
        Under::Locks => {
            "put a barrier or a message between the two, after a flush or the unlock, or take exclusive locks"
        }
    };
    format!("unchecked, {becomes}: {first}{between}")
}

/// Returns the conflicts in words, with the source lines if they can be read.
pub(super) fn text(conflicts: &[Conflict], under: Under, passes: bool) -> String {
    let count = count(conflicts);
    let mut text = match under {
        Under::Fence => format!("{count} of this epoch conflict, and "),
        Under::Posts => format!("{count} of one exposure conflict, and "),
        Under::Locks => format!("{count} that nothing orders conflict, and "),
        Under::Run => format!("{count} of a prepared superstep conflict, and "),
    };
    text += match under {
        _ if passes => "are carried out all the same",
        Under::Fence | Under::Posts => "nothing was applied",
        Under::Locks => "the later one was not carried out",
        Under::Run => "its run was carried out all the same",
    };
    append_all(&mut text, conflicts, under);
    text
}

/// Returns the text of conflicts between an operation that is being called and earlier operations
/// of the same rank and epoch, or of the operation with itself.
pub(super) fn of_call(conflicts: &[Conflict], under: Under) -> String {
    let of = if under == Under::Posts { "access" } else { "epoch" };
    if conflicts.first().is_some_and(Conflict::is_of_one_operation) {
        let mut text = format!("the operation overwrites itself, and is no part of this {of}");
        append_all(&mut text, conflicts, under);
        return text;
    }
    let before = match conflicts.len() {
        0 | 1 => "one".into(),
        pairs if pairs < MOST => pairs.to_string(),
        pairs => format!("{pairs} or more"),
    };
    let mut text =
        format!("the operation conflicts with {before} before it of this {of}, and is no part of it");
    append_all(&mut text, conflicts, under);
    text
}

/// Adds each conflict to `text`.
fn append_all(text: &mut String, conflicts: &[Conflict], under: Under) {
    // Many conflicts in a loop may be between the same two source lines. Such conflicts are
    // reported together.
    let same_lines = |a: &Conflict, b: &Conflict| {
        let same = |a: &Touch, b: &Touch| (a.origin, a.kind, &a.site) == (b.origin, b.kind, &b.site);
        (a.rank, a.window) == (b.rank, b.window) && a.between.iter().zip(&b.between).all(|(a, b)| same(a, b))
    };
    let mut distinct: Vec<(Conflict, usize)> = Vec::new();
    for conflict in conflicts {
        match distinct.iter_mut().find(|(other, _)| same_lines(other, conflict)) {
            Some((Conflict { elements, .. }, times)) => {
                let Range { start, end } = conflict.elements;
                *elements = elements.start.min(start)..elements.end.max(end);
                *times += 1;
            }
            None => distinct.push((conflict.clone(), 1)),
        }
    }
    for (conflict, times) in &distinct {
        let Range { start, end } = conflict.elements;
        let elements =
            if end - start == 1 { format!("element {start}") } else { format!("elements {start}..{end}") };
        let _ = write!(text, "\n  {elements} of window {} on rank {}", conflict.window, conflict.rank);
        let _ = if *times > 1 { write!(text, ", {times} times:") } else { write!(text, ":") };
        let [a, b] = &conflict.between;
        if conflict.is_of_one_operation() {
            let _ = write!(text, "\n    written twice by rank {} at {}", a.origin, a.site);
            if let Some(line) = line_of(&a.site) {
                let _ = write!(text, ": `{line}`");
            }
            text.push_str("\n    unchecked, the last visit in the order of the datatype stays, and the other elements are lost: name each element once");
            continue;
        }
        for touch in [a, b] {
            let (what, when) = match touch.operation {
                LOCAL if touch.kind == Kind::Get => ("loaded".into(), "after the call at"),
                LOCAL => ("stored".into(), "after the call at"),
                _ => (access(touch.kind), "at"),
            };
            let _ = write!(text, "\n    {what} by rank {} {when} {}", touch.origin, touch.site);
            if let Some(line) = line_of(&touch.site) {
                let _ = write!(text, ": `{line}`");
            }
        }
        let _ = write!(text, "\n    {}", advice(a, b, under));
    }
}

/// Returns the text of a line of the program, if its source file is found from the current folder
/// or from the folder of its package.
fn line_of(site: &Site) -> Option<String> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(|folder| Path::new(&folder).join(&*site.file));
    let file = [Some(Path::new(&*site.file).to_path_buf()), package]
        .into_iter()
        .flatten()
        .find_map(|path| open_regular(OpenOptions::new().read(true), &path).ok())?;
    let mut lines = BufReader::new(file.take(MOST_SOURCE)).lines();
    let line = lines.nth((site.line as usize).checked_sub(1)?)?.ok()?;
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// Appends a line of JSON for each conflict. It is not an error if the file cannot be written,
/// since the returned error also names the conflicts.
pub(super) fn append<'c>(world: &WorldCore, conflicts: impl Iterator<Item = &'c Conflict>) {
    append_lines(world, || conflicts.map(|conflict| json(conflict, "")).collect());
}

/// Appends a line of JSON for each conflict of an operation that is refused at its call.
pub(super) fn append_refused(world: &WorldCore, conflicts: &[Conflict]) {
    append_lines(world, || conflicts.iter().map(|conflict| json(conflict, ",\"refused\":true")).collect());
}

fn append_lines(world: &WorldCore, lines: impl FnOnce() -> String) {
    let Some(report) = world.checks.checking.borrow().report.clone() else { return };
    let lines = lines();
    if lines.is_empty() {
        return;
    }
    // One write, so that lines of several ranks do not mix.
    let written = open_regular(OpenOptions::new().create(true).append(true), &report.path)
        .and_then(|mut file| file.write_all(lines.as_bytes()));
    if let Err(error) = written
        && !report.has_failed.swap(true, Ordering::Relaxed)
    {
        let text = format!(
            "fencepost: rank {} cannot write conflicts to {}: {error}; set FENCEPOST_CHECK_REPORT, or call `Ranks::check_report`, with the path of a regular file that can be written; errors name the conflicts all the same\n",
            world.rank,
            report.path.display()
        );
        // A failure to write this cannot be reported.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Appends a line of JSON which reports that this rank may miss conflicts of a window after the
/// call at this source line.
pub(super) fn append_blind(world: &WorldCore, window: u32, site: &Location<'_>) {
    let (rank, file, line, column) = (world.rank, quoted(site.file()), site.line(), site.column());
    let text = format!(
        "{{\"window\":{window},\"rank\":{rank},\"blind\":{{\"file\":{file},\"line\":{line},\"column\":{column}}}}}\n"
    );
    append_lines(world, || text);
}

fn json(conflict: &Conflict, more: &str) -> String {
    let touch = |touch: &Touch| {
        let kind = match touch.kind {
            Kind::Get if touch.operation == LOCAL => "load".to_owned(),
            _ if touch.operation == LOCAL => "store".to_owned(),
            Kind::Get => "read".to_owned(),
            Kind::Put => "write".to_owned(),
            Kind::Accumulate(op) => op.to_string(),
        };
        let Site { file, line, column } = &touch.site;
        format!(
            "{{\"rank\":{},\"kind\":{},\"file\":{},\"line\":{line},\"column\":{column}}}",
            touch.origin,
            quoted(&kind),
            quoted(file)
        )
    };
    let [a, b] = &conflict.between;
    format!(
        "{{\"window\":{},\"rank\":{},\"elements\":[{},{}],\"between\":[{},{}]{more}}}\n",
        conflict.window,
        conflict.rank,
        conflict.elements.start,
        conflict.elements.end,
        touch(a),
        touch(b)
    )
}
