//! The elements that a typemap touches, however often it visits each.

use super::form::{Datatype, Piece};
use std::iter::once_with;
use std::ops::Range;

impl Datatype {
    /// The elements that it touches, in ascending order, each once:
    /// `(displacement of the first element, elements)` of runs that do not meet.
    ///
    /// # Cost
    /// Memory for half as many runs as the extent has elements, at most: so bound the extent first.
    /// The time follows these runs, the pieces, and the logarithms of their counts, not the visits.
    #[doc(hidden)]
    #[must_use]
    pub fn ascending_runs(&self) -> Vec<(i64, usize)> {
        let (mut all, mut room) = (Vec::new(), 1024);
        for piece in self.pieces() {
            all.append(&mut ascending(piece));
            if all.len() > room {
                all = merged(all);
                room = 1024 + 2 * all.len();
            }
        }
        merged(all).into_iter().map(|run| (run.start, (run.end - run.start) as usize)).collect()
    }

    /// Runs that have the elements that it touches, in some order: its visits, or, if these are
    /// more than its extent has elements, each element once.
    ///
    /// # Cost
    /// None before a run is asked for. Then as [`ascending_runs`](Self::ascending_runs), where
    /// elements are visited many times. Otherwise follows the runs.
    #[doc(hidden)]
    pub fn touched_runs(&self) -> impl Iterator<Item = (i64, usize)> + '_ {
        let is_repeated = self.run_count() as u64 > self.extent() as u64;
        let visits = (!is_repeated).then(|| self.run_iter());
        let once = is_repeated.then(|| once_with(|| self.ascending_runs()).flatten());
        visits.into_iter().flatten().chain(once.into_iter().flatten())
    }
}

/// The elements of a piece, in runs that ascend and do not meet.
fn ascending(piece: &Piece) -> Vec<Range<i64>> {
    let low = piece.low();
    let mut all: Vec<_> = std::iter::once(low..low + piece.run as i64).collect();
    // A dimension that goes down has the elements of one that goes up from its end. The steps of
    // the innermost, which are the shortest for most nests, are more likely to join runs.
    for dim in piece.dims.iter().rev().filter(|dim| dim.stride != 0) {
        let (stride, mut copies) = (dim.stride.abs(), 1);
        while copies < dim.count {
            let more = copies.min(dim.count - copies);
            let by = more as i64 * stride;
            let shifted: Vec<_> = all.iter().map(|run| run.start + by..run.end + by).collect();
            all.extend(shifted);
            all = merged(all);
            copies += more;
        }
    }
    all
}

/// Joins the runs that meet or touch. Two lists that ascend, one after the other, are merged in
/// linear time.
fn merged(mut runs: Vec<Range<i64>>) -> Vec<Range<i64>> {
    runs.sort_by_key(|run| run.start);
    runs.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
    runs
}
