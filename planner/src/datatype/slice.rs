//! A part of a typemap.

use super::canonical::{fold_within, part, too_many};
use super::form::{Datatype, Piece};
use crate::error::Result;

/// The maximum number of additional pieces that a part may have, compared with the whole.
const MOST_MORE: usize = 1 << 20;
/// The maximum number of runs that [`Datatype::select`] visits one by one.
const MOST_SELECTED: usize = 1 << 22;

impl Datatype {
    /// Returns elements `first..first + count` of the typemap, in its order. Elements past the end
    /// of the typemap are left out.
    ///
    /// # Errors
    /// Class `Type` if the part has more than 2^20 pieces more than the whole. This is possible if
    /// the whole has a short form and the part has none, because rows form different pairs without
    /// the first element.
    ///
    /// # Cost
    /// Grows with the pieces, not with the elements.
    pub fn slice(&self, first: usize, count: usize) -> Result<Datatype> {
        let first = first.min(self.size());
        let count = count.min(self.size() - first);
        if count == self.size() {
            return Ok(self.clone());
        }
        let (mut first, mut count) = (first, count);
        let mut list = Vec::new();
        for piece in self.pieces() {
            if count == 0 {
                break;
            }
            let size = piece.size();
            if first >= size {
                first -= size;
                continue;
            }
            let here = count.min(size - first);
            take(piece, first, here, &mut list);
            first = 0;
            count -= here;
        }
        fold_within(list, MOST_MORE).map(Datatype::from_canonical)
    }
}

impl Datatype {
    /// Returns the elements at `places` of the typemap, in the order of `places`. Places past the
    /// end of the typemap are left out.
    ///
    /// ```
    /// # use fencepost_planner::datatype::Datatype;
    /// let column = Datatype::nest(2, &[(4, 10)], 1)?; // elements 2, 12, 22 and 32
    /// let ends = column.select(&Datatype::elements([0, 3])?)?;
    /// assert_eq!(ends, Datatype::elements([2, 32])?);
    /// assert_eq!(column.slice(1, 2)?, Datatype::elements([12, 22])?);
    /// # Ok::<(), fencepost_planner::Error>(())
    /// ```
    ///
    /// # Errors
    /// Class `Type` if the result would exceed a [limit](super#limits), or if neither of the two
    /// datatypes is a single run and together they have more than 2^22 runs.
    ///
    /// # Cost
    /// Next to nothing if one of the two datatypes is a single run; otherwise, grows with the runs
    /// of both.
    pub fn select(&self, places: &Datatype) -> Result<Datatype> {
        let size = self.size() as i64;
        let inside = places.low() >= 0 && places.high() <= size;
        if let (true, Some(run)) = (inside, self.as_run()) {
            return places.shift(run.start);
        }
        if let (true, Some(run)) = (inside, places.as_run()) {
            return self.slice(run.start as usize, (run.end - run.start) as usize);
        }
        if self.run_count().saturating_add(places.run_count()) > MOST_SELECTED {
            return Err(too_many(MOST_SELECTED));
        }
        let mut begins = Vec::new();
        let mut at = 0;
        for (offset, run) in self.run_iter() {
            begins.push((at, offset));
            at += run as i64;
        }
        let mut list = Vec::new();
        for (place, run) in places.run_iter() {
            let (mut place, end) = (place.max(0), (place + run as i64).min(size));
            while place < end {
                let number = begins.partition_point(|&(begin, _)| begin <= place) - 1;
                let (begin, offset) = begins[number];
                let until = begins.get(number + 1).map_or(size, |next| next.0).min(end);
                list.push((offset + (place - begin), (until - place) as usize));
                place = until;
            }
        }
        Datatype::runs(list)
    }
}

/// Appends elements `first..first + count` of `piece`. `count` is at least 1, and the piece has all
/// of these elements.
fn take(piece: &Piece, first: usize, count: usize, list: &mut Vec<Piece>) {
    let Some(dim) = piece.dims.first() else {
        list.push(Piece::contiguous(piece.offset + first as i64, count));
        return;
    };
    let each = piece.size() / dim.count;
    let row = |i: usize| part(piece.offset + i as i64 * dim.stride, 1, &piece.dims, piece.run);
    let (mut i, mut left) = (first / each, count);
    let within = first % each;
    if within > 0 || left < each {
        let here = left.min(each - within);
        take(&row(i), within, here, list);
        left -= here;
        i += 1;
    }
    let whole = left / each;
    if whole > 0 {
        list.push(part(piece.offset + i as i64 * dim.stride, whole, &piece.dims, piece.run));
    }
    if left % each > 0 {
        take(&row(i + whole), 0, left % each, list);
    }
}
