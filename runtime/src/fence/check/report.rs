//! The forms of conflicts: a text for people, lines of JSON for programs, and bytes for other ranks.

use super::find::{MOST, read_site, write_site};
use crate::collect::checked::{code, kind, word};
use fencepost_planner::conflicts::{Conflict, Touch};
use fencepost_planner::ir::pattern::{Kind, Site};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write as _};
use std::ops::Range;
use std::path::Path;

/// The most bytes of a source that are read for a line of it.
const MOST_SOURCE: u64 = 1 << 22;

/// Writes conflicts on the elements of this rank for other ranks.
pub(super) fn encode(conflicts: &[Conflict]) -> Vec<u8> {
    let mut out = Vec::new();
    let write = |word: u64, out: &mut Vec<u8>| out.extend(word.to_le_bytes());
    for conflict in conflicts {
        write(conflict.window as u64, &mut out);
        write(conflict.elements.start as u64, &mut out);
        write(conflict.elements.end as u64, &mut out);
        for touch in &conflict.between {
            write(touch.origin as u64, &mut out);
            write(touch.operation as u64, &mut out);
            write(code(touch.kind), &mut out);
            write_site(&mut out, &touch.site.file, touch.site.line, touch.site.column);
        }
    }
    out
}

/// The conflicts that `rank` has written, in a world of `ranks`; `None` where it has written something else.
pub(super) fn decode(rank: usize, ranks: usize, mut bytes: &[u8]) -> Option<Vec<Conflict>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let bytes = &mut bytes;
        let window = word(bytes)? as usize;
        let elements = word(bytes)? as i64..word(bytes)? as i64;
        if elements.start < 0 || elements.is_empty() || all.len() >= MOST {
            return None;
        }
        let mut touch = || {
            let origin = usize::try_from(word(bytes)?).ok().filter(|&origin| origin < ranks)?;
            let (operation, kind) = (word(bytes)? as usize, kind(word(bytes)?)?);
            Some(Touch { origin, operation, kind, site: read_site(bytes)? })
        };
        let between = [touch()?, touch()?];
        all.push(Conflict { rank, ranks: 1, window, elements, between });
    }
    Some(all)
}

/// Returns the number of conflicts in words, for ranks that read no more of it.
pub(super) fn brief(conflicts: &[Conflict]) -> String {
    format!("{} of this epoch conflict on elements of this rank", count(conflicts))
}

fn count(conflicts: &[Conflict]) -> String {
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
        Kind::Accumulate(op) => format!("accumulated into with {op}"),
    }
}

/// Returns what two accesses that conflict would do where nothing is checked, and the advice to their author.
fn advice(a: &Touch, b: &Touch) -> &'static str {
    match (a.kind, b.kind) {
        (Kind::Get, _) | (_, Kind::Get) => {
            "unchecked, the read has the value from before the epoch: if the new one is meant, put a fence between the two"
        }
        (Kind::Accumulate(_), Kind::Accumulate(_)) => {
            "unchecked, the lower rank's comes first: use one operator, or put a fence between the two"
        }
        (Kind::Put, Kind::Put) => {
            "unchecked, the higher rank's stays, or of one rank the later: let one of them write, or put a fence between the two"
        }
        _ => {
            "unchecked, the lower rank's comes first, or of one rank the earlier: put a fence between the two"
        }
    }
}

/// The conflicts in words, with the source lines where they can be read.
pub(super) fn text(conflicts: &[Conflict]) -> String {
    let mut text = format!("{} of this epoch conflict, and nothing was applied", count(conflicts));
    // A loop may have many pairs of one kind: they are told together.
    let same_lines = |a: &Conflict, b: &Conflict| {
        let same = |a: &Touch, b: &Touch| (a.origin, a.kind, &a.site) == (b.origin, b.kind, &b.site);
        (a.rank, a.window) == (b.rank, b.window) && a.between.iter().zip(&b.between).all(|(a, b)| same(a, b))
    };
    let mut told: Vec<(Conflict, usize)> = Vec::new();
    for conflict in conflicts {
        match told.iter_mut().find(|(other, _)| same_lines(other, conflict)) {
            Some((Conflict { elements, .. }, times)) => {
                let Range { start, end } = conflict.elements;
                *elements = elements.start.min(start)..elements.end.max(end);
                *times += 1;
            }
            None => told.push((conflict.clone(), 1)),
        }
    }
    for (conflict, times) in &told {
        let Range { start, end } = conflict.elements;
        let elements =
            if end - start == 1 { format!("element {start}") } else { format!("elements {start}..{end}") };
        let _ = write!(text, "\n  {elements} of window {} on rank {}", conflict.window, conflict.rank);
        let _ = if *times > 1 { write!(text, ", {times} times:") } else { write!(text, ":") };
        let [a, b] = &conflict.between;
        for touch in [a, b] {
            let _ = write!(text, "\n    {} by rank {} at {}", access(touch.kind), touch.origin, touch.site);
            if let Some(line) = line_of(&touch.site) {
                let _ = write!(text, ": `{line}`");
            }
        }
        let _ = write!(text, "\n    {}", advice(a, b));
    }
    text
}

/// The text of a line of the program, where its source is found from here or from the folder of its package.
fn line_of(site: &Site) -> Option<String> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(|folder| Path::new(&folder).join(&*site.file));
    let file =
        [Some(Path::new(&*site.file).to_path_buf()), package].into_iter().flatten().find_map(|path| {
            // A named pipe would be waited for.
            std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
            File::open(path).ok()
        })?;
    let mut lines = BufReader::new(file.take(MOST_SOURCE)).lines();
    let line = lines.nth((site.line as usize).checked_sub(1)?)?.ok()?;
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// Appends a line of JSON for each conflict. A file that cannot be written changes nothing: the error names them as well.
pub(super) fn append<'c>(file: &Path, conflicts: impl Iterator<Item = &'c Conflict>) {
    let lines: String = conflicts.map(json).collect();
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(file) {
        // One write, so that lines of several ranks do not mix.
        let _ = file.write_all(lines.as_bytes());
    }
}

fn json(conflict: &Conflict) -> String {
    let touch = |touch: &Touch| {
        let kind = match touch.kind {
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
        "{{\"window\":{},\"rank\":{},\"elements\":[{},{}],\"between\":[{},{}]}}\n",
        conflict.window,
        conflict.rank,
        conflict.elements.start,
        conflict.elements.end,
        touch(a),
        touch(b)
    )
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", control as u32);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict(elements: Range<i64>) -> Conflict {
        let touch = |origin| Touch { origin, operation: 3, kind: Kind::Put, site: Site::default() };
        Conflict { rank: 1, ranks: 1, window: 0, elements, between: [touch(0), touch(2)] }
    }

    #[test]
    fn conflicts_are_read_as_they_were_written() {
        let all = vec![conflict(0..1), conflict(5..i64::MAX)];
        assert_eq!(decode(1, 3, &encode(&all)), Some(all));
        let most = vec![conflict(0..1); MOST];
        assert_eq!(decode(1, 3, &encode(&most)), Some(most));
    }

    #[test]
    fn conflicts_that_no_rank_writes_are_refused() {
        for (start, end) in [(0, 0), (-1, 1), (5, 4), (i64::MIN, i64::MAX), (3, -3)] {
            assert_eq!(decode(1, 3, &encode(&[conflict(start..end)])), None, "{start}..{end}");
        }
        assert_eq!(decode(1, 3, &encode(&vec![conflict(0..1); MOST + 1])), None, "more than are told");
        let good = encode(&[conflict(0..1)]);
        assert_eq!(decode(1, 2, &good), None, "there is no rank 2");
        for len in 1..good.len() {
            assert_eq!(decode(1, 3, &good[..len]), None, "{len} of {} bytes", good.len());
        }
    }
}
