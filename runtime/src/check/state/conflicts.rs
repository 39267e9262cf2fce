//! The form in which ranks send conflicts to each other.

use crate::check::state::kinds::{code, kind};
use fencepost_planner::conflicts::{Conflict, Touch};
use fencepost_planner::ir::pattern::Site;
use fencepost_transport::bytes::{Reader, Writer};
use std::sync::Arc;

/// The maximum number of conflicts that are reported at a time for the elements of one rank.
pub(crate) const MOST: usize = 20;

/// The number that a store or a load of the program has in place of the number of an operation. A
/// store is kept as a put, and a load as a get. Its source line is the line of a call, after which
/// the store or load happened.
pub(crate) const LOCAL: usize = usize::MAX;

pub(crate) fn write_site(out: &mut Vec<u8>, file: &str, line: u32, column: u32) {
    out.put([line, column]);
    out.put_counted(file.as_bytes());
}

pub(crate) fn read_site(bytes: &mut Reader<'_>) -> Option<Site> {
    let [line, column] = bytes.take()?;
    let file = Arc::from(std::str::from_utf8(bytes.counted()?).ok()?);
    Some(Site { file, line, column })
}

/// Encodes conflicts for other ranks.
pub(crate) fn encode(conflicts: &[Conflict]) -> Vec<u8> {
    let mut out = Vec::new();
    for conflict in conflicts {
        out.put([conflict.rank as u64, conflict.window as u64]);
        out.put([conflict.elements.start, conflict.elements.end]);
        for touch in &conflict.between {
            out.put([touch.origin as u64, touch.operation as u64, code(touch.kind)]);
            write_site(&mut out, &touch.site.file, touch.site.line, touch.site.column);
        }
    }
    out
}

/// Returns the conflicts that a rank has encoded, in a world of `ranks` ranks, or `None` if the
/// bytes are not valid.
pub(crate) fn decode(ranks: usize, bytes: &[u8]) -> Option<Vec<Conflict>> {
    let (mut bytes, mut all) = (Reader(bytes), Vec::new());
    let rank_of = |rank: u64| usize::try_from(rank).ok().filter(|&rank| rank < ranks);
    while !bytes.is_empty() {
        let [rank, window] = bytes.take()?;
        let [start, end]: [i64; 2] = bytes.take()?;
        if start < 0 || end <= start || all.len() >= MOST {
            return None;
        }
        let mut touch = || {
            let [origin, operation, code] = bytes.take()?;
            let (origin, kind) = (rank_of(origin)?, kind(code)?);
            Some(Touch { origin, operation: operation as usize, kind, site: read_site(&mut bytes)? })
        };
        let (rank, window, between) = (rank_of(rank)?, window as usize, [touch()?, touch()?]);
        all.push(Conflict { rank, ranks: 1, window, elements: start..end, between });
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
        assert_eq!(decode(3, &encode(&vec![conflict(0..1); MOST + 1])), None, "more than are sent");
        let good = encode(&[conflict(0..1)]);
        assert_eq!(decode(2, &good), None, "there is no rank 2");
        for len in 1..good.len() {
            assert_eq!(decode(3, &good[..len]), None, "{len} of {} bytes", good.len());
        }
    }
}
