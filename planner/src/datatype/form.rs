//! The form of a datatype, and what can be asked of it without visiting its elements.

use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// One dimension of a nest: `count` times, `stride` elements apart. The stride may be negative or zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Dim {
    /// How many times; in canonical form at least 2.
    pub count: usize,
    /// From one to the next, in elements.
    pub stride: i64,
}

impl Dim {
    /// From the first to the last, in elements.
    pub(super) fn span(self) -> i64 {
        (self.count as i64 - 1) * self.stride
    }
}

/// A nest of runs: `run` contiguous elements, repeated over `dims` (outermost first), from `offset`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Piece {
    /// Displacement of the first element visited.
    pub offset: i64,
    /// Outermost first.
    pub dims: SmallVec<[Dim; 2]>,
    /// Contiguous elements; in canonical form at least 1.
    pub run: usize,
}

/// A list in the making: nearly always of a single piece, which needs no allocation.
pub(super) type Pieces = SmallVec<[Piece; 1]>;

impl Piece {
    /// A single run.
    pub(super) fn contiguous(offset: i64, run: usize) -> Self {
        Self { offset, dims: SmallVec::new(), run }
    }

    /// How many elements it visits.
    pub fn size(&self) -> usize {
        self.runs() * self.run
    }

    /// How many runs it visits.
    pub fn runs(&self) -> usize {
        self.dims.iter().map(|dim| dim.count).product()
    }

    /// The lowest element it touches.
    pub fn low(&self) -> i64 {
        self.offset + self.dims.iter().map(|dim| dim.span().min(0)).sum::<i64>()
    }

    /// Past the highest element it touches.
    pub fn high(&self) -> i64 {
        self.offset + self.dims.iter().map(|dim| dim.span().max(0)).sum::<i64>() + self.run as i64
    }

    /// Past the last element it visits.
    pub(super) fn end(&self) -> i64 {
        self.offset + self.dims.iter().map(|dim| dim.span()).sum::<i64>() + self.run as i64
    }
}

/// A list of elements in order. Cheap to clone; equal exactly when the typemaps are.
///
/// The empty typemap is one value, wherever its description pointed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Datatype {
    size: usize,
    low: i64,
    high: i64,
    form: Form,
}

/// The pieces; a single one needs no allocation.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    None,
    One(Piece),
    /// Two or more.
    Many(Arc<[Piece]>),
}

impl Datatype {
    /// The typemap of no elements.
    #[must_use]
    pub const fn empty() -> Self {
        Self { size: 0, low: 0, high: 0, form: Form::None }
    }

    /// From pieces in canonical form, within the limits.
    pub(super) fn from_canonical(pieces: impl Into<Pieces>) -> Self {
        let mut pieces = pieces.into();
        match pieces.len() {
            0 => Self::empty(),
            1 => Self::from_piece(pieces.remove(0)),
            _ => Self {
                size: pieces.iter().map(Piece::size).sum(),
                low: pieces.iter().map(Piece::low).min().unwrap_or(0),
                high: pieces.iter().map(Piece::high).max().unwrap_or(0),
                form: Form::Many(pieces.into_vec().into()),
            },
        }
    }

    /// From one piece in canonical form, within the limits.
    pub(super) fn from_piece(piece: Piece) -> Self {
        Self { size: piece.size(), low: piece.low(), high: piece.high(), form: Form::One(piece) }
    }

    /// How many elements it visits.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether it visits none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// The lowest element touched; 0 if the typemap is empty.
    #[must_use]
    pub fn low(&self) -> i64 {
        self.low
    }

    /// One past the highest element touched; 0 if the typemap is empty.
    #[must_use]
    pub fn high(&self) -> i64 {
        self.high
    }

    /// From the lowest to past the highest element touched.
    #[must_use]
    pub fn extent(&self) -> i64 {
        // The extent of all displacements is one more than an `i64` holds.
        self.high.saturating_sub(self.low)
    }

    /// The canonical form: pieces in typemap order, no two of which could be folded.
    #[doc(hidden)]
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        match &self.form {
            Form::None => &[],
            Form::One(piece) => std::slice::from_ref(piece),
            Form::Many(pieces) => pieces,
        }
    }

    /// The elements, where they are contiguous and ascending; `0..0` if the typemap is empty.
    #[must_use]
    pub fn as_run(&self) -> Option<Range<i64>> {
        match &self.form {
            Form::None => Some(0..0),
            Form::One(piece) if piece.dims.is_empty() => Some(self.low..self.high),
            _ => None,
        }
    }

    /// How many maximal runs it has.
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.pieces().iter().map(Piece::runs).sum()
    }
}

impl Default for Datatype {
    fn default() -> Self {
        Self::empty()
    }
}
