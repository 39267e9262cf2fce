//! Monotone reordering: one stable permutation of both sides of a transfer, so that the target's
//! elements ascend.
//!
//! If both sides are nests that can be cut into the same dimensions, the permutation reorders
//! dimensions: descending dimensions are reversed, and all are sorted by stride. Dimensions with
//! stride 0 at the target become the innermost ones, and keep their order. The elements then ascend
//! if the stride of each dimension exceeds the span of all inner dimensions. Otherwise runs are
//! sorted. If runs overlap, single elements are sorted.

use super::canonical::too_many;
use super::form::{Datatype, Piece};
use super::{MOST_PIECES, pairs};
use crate::error::Result;

/// Returns both typemaps, reordered by the stable permutation that makes the elements of `target`
/// ascend. Elements that are equal in `target` keep their order.
///
/// The two typemaps should have equal sizes. If they do not, the rest of the longer typemap is left
/// out.
///
/// # Errors
/// Class `Type` if the result would exceed a [limit](super#limits).
///
/// # Cost
/// Grows with the pieces if dimensions can be sorted; otherwise, with the runs.
pub fn monotone(origin: &Datatype, target: &Datatype) -> Result<(Datatype, Datatype)> {
    debug_assert_eq!(origin.size(), target.size(), "both sides of a transfer are of one size");
    if target.ascends() {
        return Ok((origin.clone(), target.clone()));
    }
    match by_pieces(origin, target) {
        Some(sorted) => Ok(sorted),
        None => by_list(origin, target),
    }
}

/// Lists of more pieces than this are sorted run by run.
const FEW: usize = 32;

/// Sorts dimensions within each piece of the target, then pieces. Returns `None` if the result is
/// not in sorted order.
fn by_pieces(origin: &Datatype, target: &Datatype) -> Option<(Datatype, Datatype)> {
    if target.pieces().len() > FEW || origin.pieces().len() > FEW {
        return None;
    }
    let mut first = 0;
    let mut parts = Vec::new();
    for piece in target.pieces() {
        let part = origin.slice(first, piece.size()).ok()?;
        first += piece.size();
        let [from] = part.pieces() else { return None };
        parts.push(by_dimensions(from, piece)?);
    }
    parts.sort_by_key(|(_, target)| target.low());
    // Pieces whose bounds overlap cannot be sorted as wholes: elements that are in both pieces must
    // keep their order.
    if parts.windows(2).any(|pair| pair[0].1.high() > pair[1].1.low()) {
        return None;
    }
    let (origins, targets): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    Some((Datatype::sequence(origins).ok()?, Datatype::sequence(targets).ok()?))
}

/// A dimension that both sides have: its count, and its stride on each side.
#[derive(Clone, Copy)]
struct Both {
    count: usize,
    origin: i64,
    target: i64,
}

/// Sorts dimensions. Returns `None` if the two pieces have no dimensions in common, or if the
/// result is not in sorted order.
fn by_dimensions(origin: &Piece, target: &Piece) -> Option<(Datatype, Datatype)> {
    let (mut from, mut to) = (origin.offset, target.offset);
    let mut dims = common(origin, target)?;
    for dim in dims.iter_mut().filter(|dim| dim.target < 0) {
        let last = dim.count as i64 - 1;
        from += last * dim.origin;
        to += last * dim.target;
        dim.origin = -dim.origin;
        dim.target = -dim.target;
    }
    // The sort is stable, so dimensions with stride 0 keep their order.
    dims.sort_by_key(|dim| std::cmp::Reverse(dim.target));
    let mut span = 0;
    for dim in dims.iter().rev().filter(|dim| dim.target > 0) {
        if dim.target <= span {
            return None;
        }
        span += (dim.count as i64 - 1) * dim.target;
    }
    let side = |offset, stride: fn(&Both) -> i64| {
        let dims: Vec<_> = dims.iter().map(|dim| (dim.count, stride(dim))).collect();
        Datatype::nest(offset, &dims, 1).ok()
    };
    Some((side(from, |dim| dim.origin)?, side(to, |dim| dim.target)?))
}

/// Divides two nests of equal size into dimensions that both have, outermost first. Returns `None`
/// if that is not possible.
fn common(origin: &Piece, target: &Piece) -> Option<Vec<Both>> {
    let inward = |piece: &Piece| -> Vec<(usize, i64)> {
        let run = (piece.run > 1).then_some((piece.run, 1));
        piece.dims.iter().map(|dim| (dim.count, dim.stride)).chain(run).collect()
    };
    let (mut a, mut b) = (inward(origin), inward(target));
    let mut dims = Vec::new();
    while let (Some((m, s)), Some((n, t))) = (a.pop(), b.pop()) {
        let count = m.min(n);
        if m % count != 0 || n % count != 0 {
            return None;
        }
        dims.push(Both { count, origin: s, target: t });
        if m > count {
            a.push((m / count, s * count as i64));
        }
        if n > count {
            b.push((n / count, t * count as i64));
        }
    }
    dims.reverse();
    Some(dims)
}

/// Writes out the runs that are contiguous on both sides, and sorts them.
fn by_list(origin: &Datatype, target: &Datatype) -> Result<(Datatype, Datatype)> {
    if origin.run_count().saturating_add(target.run_count()) > MOST_PIECES {
        return Err(too_many(MOST_PIECES));
    }
    let mut list: Vec<(i64, i64, usize)> = pairs(origin, target).collect();
    list.sort_by_key(|&(_, target, _)| target);
    if list.windows(2).any(|pair| pair[0].1 + pair[0].2 as i64 > pair[1].1) {
        // Runs overlap, so this sorts single elements.
        if target.size() > MOST_PIECES {
            return Err(too_many(MOST_PIECES));
        }
        let mut elements: Vec<(i64, i64, usize)> = pairs(origin, target)
            .flat_map(|(origin, target, len)| (0..len as i64).map(move |i| (origin + i, target + i, 1)))
            .collect();
        elements.sort_by_key(|&(_, target, _)| target);
        list = elements;
    }
    let origin = Datatype::runs(list.iter().map(|&(origin, _, len)| (origin, len)))?;
    let target = Datatype::runs(list.iter().map(|&(_, target, len)| (target, len)))?;
    Ok((origin, target))
}

impl Datatype {
    /// Returns whether the elements ascend. Successive elements may be equal.
    #[doc(hidden)]
    #[must_use]
    pub fn ascends(&self) -> bool {
        self.climbs(0)
    }

    /// Returns whether each run starts at least `step` after the last element of the run before it.
    pub(super) fn climbs(&self, step: i64) -> bool {
        let mut least = i64::MIN;
        self.pieces().iter().all(|piece| {
            let follows = piece.offset >= least;
            least = piece.end() - 1 + step;
            // The distance from the first to the last element within one repetition of the
            // dimension that is visited next.
            let mut within = piece.run as i64 - 1;
            follows
                && piece.dims.iter().rev().all(|dim| {
                    let forward = dim.stride >= within + step;
                    within += dim.span();
                    forward
                })
        })
    }
}
