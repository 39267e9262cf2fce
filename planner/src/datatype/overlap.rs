//! Decides whether two typemaps share an element, and whether one visits an element twice.
//!
//! Nests are halved until bounds or strides show that the halves share nothing. To test the
//! strides, the elements of both nests are taken modulo the greatest common divisor of the outer
//! strides. If the two nests have no remainder in common, they share no element (for example, two
//! columns of one matrix). Long lists are written out, sorted and traversed together.

use super::form::{Datatype, Dim, Piece};
use crate::error::Result;
use smallvec::SmallVec;
use std::ops::Range;

/// Lists with more pairs of pieces than this are sorted.
const FEW: usize = 64;

/// The maximum number of runs that are written out and traversed.
pub const MOST_RUNS: usize = 1 << 24;

/// The maximum number of steps of a search in nests, however many elements they have.
const MOST_STEPS: usize = 1 << 22;

impl Datatype {
    /// Returns whether some element is in both typemaps.
    #[doc(hidden)]
    #[must_use]
    pub fn overlaps(&self, other: &Datatype) -> bool {
        self.overlap(other).is_some()
    }

    /// Returns the lowest element that is in both typemaps. If they have more than [`MOST_RUNS`]
    /// runs together and their pieces alone do not decide, returns the lowest element that is
    /// within the bounds of both.
    ///
    /// # Cost
    /// Grows with the pieces for runs, columns and boxes of one array. At worst, grows with the
    /// runs, which are then sorted.
    #[doc(hidden)]
    #[must_use]
    pub fn overlap(&self, other: &Datatype) -> Option<i64> {
        let (low, high) = (self.low().max(other.low()), self.high().min(other.high()));
        if low >= high || self.is_empty() || other.is_empty() {
            return None;
        }
        if self.as_run().is_some() && other.as_run().is_some() {
            return Some(low);
        }
        if self.pieces().len().saturating_mul(other.pieces().len()) <= FEW
            && let Some(answer) = by_halves(self, other, high)
        {
            return answer;
        }
        if self.run_count().saturating_add(other.run_count()) > MOST_RUNS {
            return Some(low);
        }
        by_sweep(self, other, low, high)
    }

    /// Returns the range from the lowest element that is in both typemaps to one past the highest.
    ///
    /// # Cost
    /// Twice that of [`overlap`](Self::overlap), plus the cost of copying both typemaps.
    #[doc(hidden)]
    #[must_use]
    pub fn overlap_bounds(&self, other: &Datatype) -> Option<Range<i64>> {
        let low = self.overlap(other)?;
        // The highest element is the lowest one of the mirror images. If a mirror image would
        // exceed the limits, the function uses the lower one of the two upper bounds.
        let high = match (self.upside_down(), other.upside_down()) {
            (Ok(own), Ok(other)) => own.overlap(&other).map(|element| 1 - element),
            _ => None,
        };
        Some(low..high.unwrap_or(self.high().min(other.high())))
    }

    /// Returns a datatype with element -e for each element e of this datatype, in some order.
    fn upside_down(&self) -> Result<Datatype> {
        let pieces = self.pieces().iter().map(|piece| {
            let dims: SmallVec<[(usize, i64); 4]> =
                piece.dims.iter().map(|dim| (dim.count, -dim.stride)).collect();
            Datatype::nest(1 - piece.offset - piece.run as i64, &dims, piece.run)
        });
        Datatype::sequence(pieces.collect::<Result<Vec<_>>>()?)
    }

    /// Returns whether the typemap visits an element twice. Returns true if it has more than
    /// [`MOST_RUNS`] runs and its pieces alone do not decide.
    ///
    /// # Cost
    /// Grows with the pieces for most nests and for lists that ascend. Otherwise, grows with the
    /// runs, which are then sorted.
    #[doc(hidden)]
    #[must_use]
    pub fn overlaps_itself(&self) -> bool {
        if self.climbs(1) {
            return false;
        }
        let mut patience = MOST_STEPS;
        let returned = self.pieces().iter().try_fold(false, |any, piece| {
            let mut dims: Vec<(usize, i64)> =
                piece.dims.iter().map(|dim| (dim.count, dim.stride.abs())).collect();
            dims.sort_unstable_by_key(|&(_, stride)| std::cmp::Reverse(stride));
            Some(any || returns(&dims, 0, piece.run as i64, true, &mut patience)?)
        });
        if returned == Some(true) {
            return true;
        }
        let mut bounds: Vec<_> = self.pieces().iter().map(|piece| (piece.low(), piece.high())).collect();
        bounds.sort_unstable();
        if returned == Some(false) && bounds.windows(2).all(|pair| pair[0].1 <= pair[1].0) {
            return false;
        }
        if self.run_count() > MOST_RUNS {
            return true;
        }
        let runs = sorted(self, self.low(), self.high());
        runs.windows(2).any(|pair| pair[0].0 + pair[0].1 as i64 > pair[1].0)
    }

    /// Returns the range from the lowest element that the typemap visits twice to one past the
    /// highest. Returns `None` unless it [`overlaps_itself`](Self::overlaps_itself). Beyond
    /// [`MOST_RUNS`] runs, returns the bounds of the whole typemap.
    ///
    /// # Cost
    /// The cost of [`overlaps_itself`](Self::overlaps_itself). If it returns true, also the cost of
    /// sorting the runs.
    #[doc(hidden)]
    #[must_use]
    pub fn self_overlap_bounds(&self) -> Option<Range<i64>> {
        if !self.overlaps_itself() {
            return None;
        }
        if self.run_count() > MOST_RUNS {
            return Some(self.low()..self.high());
        }
        let (mut bounds, mut reached): (Option<Range<i64>>, i64) = (None, self.low());
        for (first, run) in sorted(self, self.low(), self.high()) {
            let end = first + run as i64;
            if first < reached {
                let twice = first..end.min(reached);
                bounds = Some(bounds.map_or(twice.clone(), |all| all.start..all.end.max(twice.end)));
            }
            reached = reached.max(end);
        }
        bounds
    }
}

/// Returns whether a walk that begins at `at` and takes steps along `dims` can end less than `run`
/// away from 0. The strides of `dims` are descending and none is negative. Along each dimension the
/// walk takes fewer steps than the dimension's count, in either direction. If `still`, the walk
/// must take at least one step, and the first step goes up. Returns `None` if the search takes more
/// steps than `patience`.
fn returns(dims: &[(usize, i64)], at: i64, run: i64, still: bool, patience: &mut usize) -> Option<bool> {
    let Some((&(count, stride), inner)) = dims.split_first() else {
        return Some(!still && at.abs() < run);
    };
    if stride == 0 {
        // This dimension and all that follow have stride 0.
        return Some(at.abs() < run);
    }
    let reach: i64 = inner.iter().map(|&(count, stride)| (count as i64 - 1) * stride).sum();
    let most = count as i64 - 1;
    // Tries the numbers of steps along this dimension after which steps along the inner dimensions
    // may still lead close enough to 0: `|at + steps * stride| < reach + run`.
    let near = reach + run - 1;
    let low = if still { 0 } else { (-near - at).div_euclid(stride).max(-most - 1) };
    let high = (near - at).div_euclid(stride).min(most);
    for steps in low.max(-most)..=high {
        *patience = patience.checked_sub(1)?;
        let to = at + steps * stride;
        if to.abs() <= near && returns(inner, to, run, still && steps == 0, patience)? {
            return Some(true);
        }
    }
    Some(false)
}

/// Returns the lowest common element below `high`, by halving. Returns `None` if halving takes
/// longer than writing out both typemaps would.
fn by_halves(a: &Datatype, b: &Datatype, high: i64) -> Option<Option<i64>> {
    let runs = a.run_count().saturating_add(b.run_count());
    let mut patience = runs.saturating_mul(4).saturating_add(1024).min(MOST_STEPS);
    let (mut best, mut below) = (None, high);
    for a in a.pieces().iter().map(upward) {
        for b in b.pieces().iter().map(upward) {
            if let Some(low) = meet(a.clone(), b, below, &mut patience)? {
                best = Some(low);
                below = low;
            }
        }
    }
    Some(best)
}

/// Returns a piece with the same elements and with positive, descending strides.
fn upward(piece: &Piece) -> Piece {
    let mut dims: SmallVec<[Dim; 2]> = piece
        .dims
        .iter()
        .filter(|dim| dim.stride != 0)
        .map(|dim| Dim { count: dim.count, stride: dim.stride.abs() })
        .collect();
    dims.sort_unstable_by_key(|dim| std::cmp::Reverse(dim.stride));
    Piece { offset: piece.low(), dims, run: piece.run }
}

/// Returns the lowest common element below `below` of two nests with positive strides.
fn meet(a: Piece, b: Piece, below: i64, patience: &mut usize) -> Option<Option<i64>> {
    *patience = patience.checked_sub(1)?;
    let low = a.offset.max(b.offset);
    if low >= a.high().min(b.high()).min(below) || apart(&a, &b) {
        return Some(None);
    }
    let extent = |piece: &Piece| if piece.dims.is_empty() { 0 } else { piece.high() - piece.offset };
    if a.dims.is_empty() && b.dims.is_empty() {
        return Some(Some(low));
    }
    let (other, whole) = if extent(&a) >= extent(&b) { (b, a) } else { (a, b) };
    let dim = whole.dims[0];
    let half = dim.count / 2;
    let piece = |first: usize, count: usize| {
        let mut dims = whole.dims.clone();
        if count == 1 {
            dims.remove(0);
        } else {
            dims[0].count = count;
        }
        Piece { offset: whole.offset + first as i64 * dim.stride, dims, run: whole.run }
    };
    let lower = meet(piece(0, half), other.clone(), below, patience)?;
    let upper = meet(piece(half, dim.count - half), other, lower.unwrap_or(below), patience)?;
    Some(upper.or(lower))
}

/// Returns whether the strides alone show that two nests with positive strides have no common
/// element. For each stride, considers that stride and all greater ones, and treats the part of the
/// nest inside them as one run.
fn apart(a: &Piece, b: &Piece) -> bool {
    let (mut in_a, mut in_b) = (a.high() - a.offset, b.high() - b.offset);
    let (mut outer_a, mut outer_b) = (&a.dims[..], &b.dims[..]);
    let mut step = 0;
    loop {
        let stride = |dims: &[Dim]| dims.first().map_or(0, |dim| dim.stride);
        if stride(outer_a).max(stride(outer_b)) == 0 {
            return false;
        }
        let (dims, within) = if stride(outer_a) >= stride(outer_b) {
            (&mut outer_a, &mut in_a)
        } else {
            (&mut outer_b, &mut in_b)
        };
        step = gcd(step, dims[0].stride);
        *within -= dims[0].span();
        *dims = &dims[1..];
        let between = (b.offset - a.offset).rem_euclid(step);
        if between >= in_a && step - between >= in_b && between != 0 {
            return true;
        }
    }
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the runs that reach into `low..high`, sorted by their first element.
fn sorted(datatype: &Datatype, low: i64, high: i64) -> Vec<(i64, usize)> {
    let mut runs: Vec<_> =
        datatype.run_iter().filter(|&(offset, run)| offset < high && offset + run as i64 > low).collect();
    runs.sort_unstable();
    runs
}

/// Returns the lowest common element, by traversing the sorted runs of both typemaps in ascending
/// order.
fn by_sweep(a: &Datatype, b: &Datatype, low: i64, high: i64) -> Option<i64> {
    let (a, b) = (sorted(a, low, high), sorted(b, low, high));
    let (mut i, mut j) = (0, 0);
    while let (Some(&(a_low, a_run)), Some(&(b_low, b_run))) = (a.get(i), b.get(j)) {
        let (a_high, b_high) = (a_low + a_run as i64, b_low + b_run as i64);
        let low = a_low.max(b_low);
        if low < a_high.min(b_high) {
            return Some(low);
        }
        if a_high <= b_high {
            i += 1;
        } else {
            j += 1;
        }
    }
    None
}
