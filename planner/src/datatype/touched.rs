//! The elements that a typemap touches, no matter how often it visits each.

use super::form::{Datatype, Piece};
use std::collections::TryReserveError;
use std::iter::once_with;
use std::ops::Range;

impl Datatype {
    /// Returns the elements that the typemap touches, in ascending order, each once, as ranges that
    /// do not meet.
    ///
    /// # Cost
    /// Needs memory for at most half as many runs as the extent has elements, so the caller has to
    /// limit the extent. The time grows with these runs, with the pieces, and with the logarithms
    /// of the counts of dimensions, but not with the number of visits.
    ///
    /// # Errors
    /// If there is not enough memory.
    #[doc(hidden)]
    pub fn ascending_runs(&self) -> Result<Vec<Range<i64>>, TryReserveError> {
        // The system may promise more memory than it has, so the memory for all runs is first
        // requested at once.
        let most = self.pieces().iter().map(most_runs).fold(0, usize::saturating_add);
        Vec::<Range<i64>>::new().try_reserve_exact(most)?;
        self.joined_runs()
    }

    fn joined_runs(&self) -> Result<Vec<Range<i64>>, TryReserveError> {
        let (mut all, mut room) = (Vec::new(), 1024);
        for piece in self.pieces() {
            let mut more = ascending(piece)?;
            all.try_reserve(more.len())?;
            all.append(&mut more);
            if all.len() > room {
                merge(&mut all);
                room = 1024 + 2 * all.len();
            }
        }
        merge(&mut all);
        Ok(all)
    }

    /// Returns runs that together have exactly the elements that the typemap touches, in some
    /// order. If the typemap has at most as many runs as its extent has elements, these are the
    /// runs of the typemap, so an element may be in several of them. Otherwise each element is in
    /// exactly one run.
    ///
    /// # Cost
    /// Nothing before the first run is requested. After that, the cost grows with the runs if they
    /// are those of the typemap. Otherwise the cost is that of
    /// [`ascending_runs`](Self::ascending_runs), and the first request panics if there is not
    /// enough memory.
    #[doc(hidden)]
    pub fn touched_runs(&self) -> impl Iterator<Item = (i64, usize)> + '_ {
        let is_repeated = self.run_count() as u64 > self.extent() as u64;
        let visits = (!is_repeated).then(|| self.run_iter());
        let list = || self.joined_runs().expect("there is memory for the runs of a typemap");
        let once = is_repeated.then(|| once_with(list).flatten());
        let once = once.map(|runs| runs.map(|run| (run.start, (run.end - run.start) as usize)));
        visits.into_iter().flatten().chain(once.into_iter().flatten())
    }
}

/// Returns the maximum number of runs that the elements of a piece can form.
fn most_runs(piece: &Piece) -> usize {
    let moves = piece.dims.iter().filter(|dim| dim.stride != 0);
    let visits = moves.fold(1_usize, |visits, dim| visits.saturating_mul(dim.count));
    visits.min(1 + (piece.high() - piece.low()) as usize / 2)
}

/// Returns the elements of a piece, in runs that ascend and do not meet.
fn ascending(piece: &Piece) -> Result<Vec<Range<i64>>, TryReserveError> {
    let low = piece.low();
    let mut all: Vec<_> = std::iter::once(low..low + piece.run as i64).collect();
    // A descending dimension has the same elements as a dimension that ascends from its end. The
    // innermost dimension comes first. For most nests, this dimension has the shortest steps, which
    // are the most likely to join runs.
    for dim in piece.dims.iter().rev().filter(|dim| dim.stride != 0) {
        let (stride, mut copies) = (dim.stride.abs(), 1);
        while copies < dim.count {
            let more = copies.min(dim.count - copies);
            let by = more as i64 * stride;
            let len = all.len();
            all.try_reserve(len)?;
            all.extend_from_within(..);
            all[len..].iter_mut().for_each(|run| *run = run.start + by..run.end + by);
            merge(&mut all);
            copies += more;
        }
    }
    Ok(all)
}

/// Sorts the runs and joins those that overlap or touch, without allocating.
fn merge(runs: &mut Vec<Range<i64>>) {
    runs.sort_unstable_by_key(|run| run.start);
    runs.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
}
