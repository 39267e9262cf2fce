//! The form of a datatype.

use smallvec::SmallVec;
use std::sync::Arc;

/// One dimension of a nest: `count` times, `stride` elements apart. The stride may be negative or zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Dim {
    /// How many times; in canonical form at least 2.
    pub count: usize,
    /// From one to the next, in elements.
    pub stride: i64,
}

/// A nest of runs: `run` contiguous elements, repeated over `dims` (outermost first), from `offset`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Piece {
    /// Displacement of the first element visited.
    pub offset: i64,
    /// Outermost first.
    pub dims: SmallVec<[Dim; 3]>,
    /// Contiguous elements; in canonical form at least 1.
    pub run: usize,
}

/// Which elements, in which order. Cheap to clone; equal exactly when the typemaps are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Datatype {
    pieces: Arc<[Piece]>,
    size: usize,
    low: i64,
    high: i64,
}

impl Datatype {
    /// How many elements it visits.
    pub fn size(&self) -> usize {
        self.size
    }
}
