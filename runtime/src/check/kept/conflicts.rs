//! The form in which ranks send conflicts to each other.

use crate::check::kept::kinds::{code, kind};
use crate::check::kept::lists::word;
use fencepost_planner::conflicts::{Conflict, Touch};
use fencepost_planner::ir::pattern::Site;
use std::sync::Arc;

/// The most conflicts that are reported of the elements of one rank at a time.
pub(crate) const MOST: usize = 20;

/// The operation number of an access that is no operation: a store (as a put) or a load (as a get),
/// at some time after the call whose line it has.
pub(crate) const LOCAL: usize = usize::MAX;

pub(crate) fn write_site(out: &mut Vec<u8>, file: &str, line: u32, column: u32) {
    out.extend((u64::from(line) << 32 | u64::from(column)).to_le_bytes());
    out.extend((file.len() as u64).to_le_bytes());
    out.extend_from_slice(file.as_bytes());
}

pub(crate) fn read_site(bytes: &mut &[u8]) -> Option<Site> {
    let (place, len) = (word(bytes)?, word(bytes)?);
    let (file, rest) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
    *bytes = rest;
    let file = Arc::from(std::str::from_utf8(file).ok()?);
    Some(Site { file, line: (place >> 32) as u32, column: place as u32 })
}

/// Encodes conflicts for other ranks.
pub(crate) fn encode(conflicts: &[Conflict]) -> Vec<u8> {
    let mut out = Vec::new();
    let write = |word: u64, out: &mut Vec<u8>| out.extend(word.to_le_bytes());
    for conflict in conflicts {
        write(conflict.rank as u64, &mut out);
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

/// Returns the conflicts that a rank has encoded, in a world of `ranks`, or `None` if the bytes are
/// something else.
pub(crate) fn decode(ranks: usize, mut bytes: &[u8]) -> Option<Vec<Conflict>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let bytes = &mut bytes;
        let rank = usize::try_from(word(bytes)?).ok().filter(|&rank| rank < ranks)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::ir::pattern::Kind;
    use std::ops::Range;

    fn conflict(elements: Range<i64>) -> Conflict {
        let touch = |origin| Touch { origin, operation: 3, kind: Kind::Put, site: Site::default() };
        Conflict { rank: 1, ranks: 1, window: 0, elements, between: [touch(0), touch(2)] }
    }

    #[test]
    fn conflicts_are_read_as_they_were_written() {
        let all = vec![conflict(0..1), conflict(5..i64::MAX)];
        assert_eq!(decode(3, &encode(&all)), Some(all));
        let most = vec![conflict(0..1); MOST];
        assert_eq!(decode(3, &encode(&most)), Some(most));
    }

    #[test]
    fn conflicts_that_no_rank_writes_are_refused() {
        for (start, end) in [(0, 0), (-1, 1), (5, 4), (i64::MIN, i64::MAX), (3, -3)] {
            assert_eq!(decode(3, &encode(&[conflict(start..end)])), None, "{start}..{end}");
        }
        assert_eq!(decode(3, &encode(&vec![conflict(0..1); MOST + 1])), None, "more than are told");
        let good = encode(&[conflict(0..1)]);
        assert_eq!(decode(2, &good), None, "there is no rank 2");
        for len in 1..good.len() {
            assert_eq!(decode(3, &good[..len]), None, "{len} of {} bytes", good.len());
        }
    }
}
