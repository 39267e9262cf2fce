//! The form of a datatype, and queries that need not visit the elements.

use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// One dimension of a nest: `count` repetitions at a distance of `stride` elements. The stride may
/// be negative or zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Dim {
    /// The number of repetitions. In canonical form, it is at least 2.
    pub count: usize,
    /// The distance from one repetition to the next, in elements.
    pub stride: i64,
}

impl Dim {
    /// Returns the distance from the first repetition to the last, in elements.
    pub(super) fn span(self) -> i64 {
        (self.count as i64 - 1) * self.stride
    }
}

/// A nest of runs of `run` contiguous elements. The first run begins at `offset`, and is repeated
/// over `dims` (outermost first).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Piece {
    /// The displacement of the first element that is visited.
    pub offset: i64,
    /// The dimensions, outermost first.
    pub dims: SmallVec<[Dim; 2]>,
    /// The number of contiguous elements. In canonical form, it is at least 1.
    pub run: usize,
}

/// A list under construction. It nearly always has a single piece, which needs no allocation.
pub(super) type Pieces = SmallVec<[Piece; 1]>;

impl Piece {
    /// Creates a single run.
    pub(super) fn contiguous(offset: i64, run: usize) -> Self {
        Self { offset, dims: SmallVec::new(), run }
    }

    /// Returns the number of elements that the piece visits.
    pub fn size(&self) -> usize {
        self.runs() * self.run
    }

    /// Returns the number of runs that the piece visits.
    pub fn runs(&self) -> usize {
        self.dims.iter().map(|dim| dim.count).product()
    }

    /// Returns the lowest element of the piece.
    pub fn low(&self) -> i64 {
        self.offset + self.dims.iter().map(|dim| dim.span().min(0)).sum::<i64>()
    }

    /// Returns one past the highest element of the piece.
    pub fn high(&self) -> i64 {
        self.offset + self.dims.iter().map(|dim| dim.span().max(0)).sum::<i64>() + self.run as i64
    }

    /// Returns one past the last element that the piece visits.
    pub(super) fn end(&self) -> i64 {
        self.offset + self.dims.iter().map(|dim| dim.span()).sum::<i64>() + self.run as i64
    }
}

/// A list of elements in order. It is cheap to clone. Two datatypes are equal exactly if their
/// typemaps are equal.
///
/// All descriptions of the empty typemap give the same value.
///
/// # From MPI's constructors
///
/// A datatype names elements of a window or of a slice, and does not know their type. So each
/// displacement, block length and stride counts elements: if MPI counts bytes, divide by the size
/// of an element. `old` is a datatype. If there are two forms, the first is for an elementary
/// `old`. `n` is MPI's `count`, `len` is MPI's `blocklength`, and `lens` and `at` are arrays. The
/// constructors `MPI_Type_..` are:
///
/// - `contiguous`: `Datatype::run(0..n)`; `old.repeat(n, old.extent())?`.
/// - `vector`: `Datatype::nest(0, &[(n, stride)], len)?`;
///   `old.repeat(len, old.extent())?.repeat(n, stride * old.extent())?`.
/// - `hvector`: the same, with `repeat(n, stride)`: the stride counts elements, not copies of
///   `old`.
/// - `indexed`, `hindexed`: `Datatype::runs(at.into_iter().zip(lens))?`; for copies of `old`,
///   `Datatype::sequence` of `old.repeat(len, old.extent())?.shift(at)?`.
/// - `indexed_block`, `hindexed_block`: `Datatype::runs(at.map(|at| (at, len)))?`; if `len` is 1,
///   `Datatype::elements(at)?`.
/// - `subarray`: `Datatype::subarray(&shape, &start, &sizes)?` in C's order; in Fortran's order
///   with all three reversed.
/// - `resized`: the extent of a datatype cannot be set. Pass the extent when you make copies:
///   `old.repeat(n, extent)?`.
/// - `struct`: if all members have one element type,
///   `Datatype::sequence([a.shift(3)?, b.shift(9)?])?`. A record of several types is an element, by
///   `#[derive(Element)]`.
/// - `darray`, in blocks: `Datatype::subarray(&block.global(), &block.origin(), &block.extent())?`,
///   where `block` is a [`Block`](crate::grid::Block). The lengths of blocks differ by at most one.
/// - `darray`, cyclic in blocks of `len`: `Datatype::runs((rank * len..n).step_by(ranks *
///   len).map(|at| (at as i64, len.min(n - at))))?`.
///
/// ```
/// # mod fencepost {
/// #     pub use fencepost_planner::{datatype::Datatype, grid};
/// # }
/// use fencepost::Datatype;
/// use fencepost::grid::Block;
///
/// fn is(datatype: Datatype, elements: &[i64]) {
///     let same = datatype.element_iter().eq(elements.iter().copied());
///     assert!(same, "{datatype} is not {elements:?}");
/// }
/// let old = Datatype::elements([0, 2])?; // its extent is 3
///
/// let n = 2;
/// is(Datatype::run(0..n), &[0, 1]); // contiguous
/// is(old.repeat(n, old.extent())?, &[0, 2, 3, 5]);
///
/// let (len, stride) = (2, 5);
/// is(Datatype::nest(0, &[(n, stride)], len)?, &[0, 1, 5, 6]); // vector
/// let copies = old.repeat(len, old.extent())?;
/// is(copies.repeat(n, stride * old.extent())?, &[0, 2, 3, 5, 15, 17, 18, 20]);
/// is(copies.repeat(n, stride)?, &[0, 2, 3, 5, 5, 7, 8, 10]); // hvector
///
/// let (at, lens) = ([4_i64, 9, 0], [1, 2, 1]);
/// is(Datatype::runs(at.into_iter().zip(lens))?, &[4, 9, 10, 0]); // indexed
/// let copies = at.into_iter().zip(lens).map(|(at, len)| old.repeat(len, old.extent())?.shift(at));
/// is(
///     Datatype::sequence(copies.collect::<Result<Vec<_>, _>>()?)?,
///     &[4, 6, 9, 11, 12, 14, 0, 2],
/// );
/// is(Datatype::runs(at.map(|at| (at, len)))?, &[4, 5, 9, 10, 0, 1]); // indexed_block
/// is(Datatype::elements(at)?, &[4, 9, 0]);
///
/// let (shape, start, sizes) = ([3, 4], [1, 2], [2, 2]);
/// is(Datatype::subarray(&shape, &start, &sizes)?, &[6, 7, 10, 11]); // subarray
/// is(Datatype::subarray(&[4, 3], &[2, 1], &[2, 2])?, &[7, 8, 10, 11]); // in Fortran's order
///
/// let extent = 4;
/// is(old.repeat(n, extent)?, &[0, 2, 4, 6]); // resized
///
/// let (a, b) = (Datatype::run(0..2), old.clone());
/// is(Datatype::sequence([a.shift(3)?, b.shift(9)?])?, &[3, 4, 9, 11]); // struct
///
/// let block = Block::at(3, 4, [4, 6])?; // rank 3 of 2 by 2
/// is(
///     Datatype::subarray(&block.global(), &block.origin(), &block.extent())?, // darray, in blocks
///     &[15, 16, 17, 21, 22, 23],
/// );
/// let (rank, ranks, n) = (1, 2, 7);
/// let starts = (rank * len..n).step_by(ranks * len);
/// is(
///     Datatype::runs(starts.map(|at| (at as i64, len.min(n - at))))?, // darray, cyclic
///     &[2, 3, 6],
/// );
/// # Ok::<(), fencepost_planner::Error>(())
/// ```
///
/// # Source
/// MPI 4.1, section 5.1 (derived datatypes).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Datatype {
    size: usize,
    low: i64,
    high: i64,
    form: Form,
}

/// The pieces. A single piece needs no allocation.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    None,
    One(Piece),
    /// Two or more pieces.
    Many(Arc<[Piece]>),
}

impl Datatype {
    /// Creates the typemap of no elements.
    #[doc(hidden)]
    #[must_use]
    pub const fn empty() -> Self {
        Self { size: 0, low: 0, high: 0, form: Form::None }
    }

    /// Creates a datatype from pieces in canonical form, within the limits.
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

    /// Creates a datatype from one piece in canonical form, within the limits.
    pub(super) fn from_piece(piece: Piece) -> Self {
        Self { size: piece.size(), low: piece.low(), high: piece.high(), form: Form::One(piece) }
    }

    /// Returns the number of elements that the datatype visits.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns whether the datatype visits no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Returns the lowest element, or 0 if the typemap is empty.
    #[doc(hidden)]
    #[must_use]
    pub fn low(&self) -> i64 {
        self.low
    }

    /// Returns one past the highest element, or 0 if the typemap is empty.
    #[doc(hidden)]
    #[must_use]
    pub fn high(&self) -> i64 {
        self.high
    }

    /// Returns the distance from the lowest element to one past the highest element.
    #[must_use]
    pub fn extent(&self) -> i64 {
        // The extent from the lowest to the highest possible displacement exceeds an `i64` by one.
        self.high.saturating_sub(self.low)
    }

    /// Returns the canonical form: pieces in typemap order that cannot be folded further.
    #[doc(hidden)]
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        match &self.form {
            Form::None => &[],
            Form::One(piece) => std::slice::from_ref(piece),
            Form::Many(pieces) => pieces,
        }
    }

    /// Returns the elements if they are contiguous and ascending. The range is `0..0` if the
    /// typemap is empty.
    #[doc(hidden)]
    #[must_use]
    pub fn as_run(&self) -> Option<Range<i64>> {
        match &self.form {
            Form::None => Some(0..0),
            Form::One(piece) if piece.dims.is_empty() => Some(self.low..self.high),
            _ => None,
        }
    }

    /// Returns the number of maximal runs.
    #[doc(hidden)]
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
