//! [`Runs`]: the maximal runs of a typemap. [`pairs`]: two typemaps that are traversed in lockstep.

use super::form::{Datatype, Dim, Piece};
use smallvec::SmallVec;

/// The maximal runs, in typemap order: `(displacement of the first element, elements)`.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    pieces: std::slice::Iter<'a, Piece>,
    /// The dimensions of the piece that is being visited.
    dims: &'a [Dim],
    run: usize,
    /// The index of the next run in each dimension, and the displacement of that run. There is no
    /// current piece if `left` is 0.
    index: SmallVec<[usize; 4]>,
    offset: i64,
    left: usize,
}

impl<'a> Runs<'a> {
    /// Makes the first run of `piece` the next run.
    #[inline]
    fn begin(&mut self, piece: &'a Piece) {
        self.dims = &piece.dims;
        self.run = piece.run;
        self.index.clear();
        self.index.resize(piece.dims.len(), 0);
        self.offset = piece.offset;
        self.left = piece.runs();
    }
}

impl Iterator for Runs<'_> {
    type Item = (i64, usize);

    #[inline]
    fn next(&mut self) -> Option<(i64, usize)> {
        if self.left == 0 {
            let piece = self.pieces.next()?;
            self.begin(piece);
        }
        let run = (self.offset, self.run);
        self.left -= 1;
        if self.left > 0 {
            for (dim, index) in self.dims.iter().zip(&mut self.index).rev() {
                *index += 1;
                if *index < dim.count {
                    self.offset += dim.stride;
                    break;
                }
                *index = 0;
                self.offset -= dim.span();
            }
        }
        Some(run)
    }
}

impl Datatype {
    /// Returns the maximal runs, in typemap order: `(displacement of the first element, elements)`.
    #[doc(hidden)]
    #[must_use]
    pub fn run_iter(&self) -> Runs<'_> {
        Runs { pieces: self.pieces().iter(), dims: &[], run: 0, index: SmallVec::new(), offset: 0, left: 0 }
    }

    /// Returns the maximal runs, starting with the run that has element `first` of the typemap.
    /// Also returns how many elements of that run come before element `first`.
    ///
    /// # Cost
    /// Grows with the pieces, not with the runs that are skipped.
    #[doc(hidden)]
    #[must_use]
    pub fn runs_from(&self, first: usize) -> (Runs<'_>, usize) {
        let (mut runs, mut skipped) = (self.run_iter(), first);
        while let [piece, rest @ ..] = runs.pieces.as_slice() {
            if skipped < piece.size() {
                break;
            }
            skipped -= piece.size();
            runs.pieces = rest.iter();
        }
        let Some(piece) = runs.pieces.as_slice().first() else { return (runs, 0) };
        if skipped >= piece.run {
            runs.pieces.next();
            runs.begin(piece);
            let mut number = skipped / piece.run;
            runs.left -= number;
            for (dim, index) in piece.dims.iter().zip(&mut runs.index).rev() {
                (*index, number) = (number % dim.count, number / dim.count);
                runs.offset += *index as i64 * dim.stride;
            }
        }
        (runs, skipped % piece.run)
    }

    /// Returns the elements, in typemap order.
    pub fn element_iter(&self) -> impl Iterator<Item = i64> + '_ {
        self.run_iter().flat_map(|(offset, run)| offset..offset + run as i64)
    }
}

/// Two typemaps in lockstep: see [`pairs`].
#[derive(Clone, Debug)]
pub struct Pairs<'a> {
    a: Runs<'a>,
    b: Runs<'a>,
    a_run: (i64, usize),
    b_run: (i64, usize),
}

/// Traverses both typemaps in lockstep, as maximal runs that are contiguous in both: `(displacement
/// in a, displacement in b, elements)`. Ends with the shorter typemap.
#[must_use]
pub fn pairs<'a>(a: &'a Datatype, b: &'a Datatype) -> Pairs<'a> {
    Pairs { a: a.run_iter(), b: b.run_iter(), a_run: (0, 0), b_run: (0, 0) }
}

impl Iterator for Pairs<'_> {
    type Item = (i64, i64, usize);

    #[inline]
    fn next(&mut self) -> Option<(i64, i64, usize)> {
        if self.a_run.1 == 0 {
            self.a_run = self.a.next()?;
        }
        if self.b_run.1 == 0 {
            self.b_run = self.b.next()?;
        }
        let len = self.a_run.1.min(self.b_run.1);
        let pair = (self.a_run.0, self.b_run.0, len);
        self.a_run = (self.a_run.0 + len as i64, self.a_run.1 - len);
        self.b_run = (self.b_run.0 + len as i64, self.b_run.1 - len);
        Some(pair)
    }
}
