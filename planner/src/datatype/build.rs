//! The constructors of a datatype. Each produces canonical form.

use super::canonical::{self, REACH, check, fold};
use super::form::{Datatype, Piece};
use crate::error::{Error, ErrorClass, Result};
use smallvec::SmallVec;
use std::ops::Range;

impl Datatype {
    /// Creates a datatype of contiguous elements. A range that ends before it starts is empty. A
    /// range that reaches beyond the largest displacement (which no window can hold) is replaced by
    /// as many elements as fit, at the end of the valid displacements.
    #[doc(alias = "MPI_Type_contiguous")]
    #[must_use]
    pub fn run(elements: Range<usize>) -> Self {
        let len = elements.end.saturating_sub(elements.start).min(REACH as usize);
        if len == 0 {
            return Self::empty();
        }
        let start = elements.start.min(REACH as usize - len);
        Self::from_piece(Piece::contiguous(start as i64, len))
    }

    /// Creates a datatype of runs of `run` contiguous elements. The first run begins at `offset`,
    /// and is repeated over `dims`. Each dimension is `(count, stride)`, and the outermost one
    /// comes first.
    ///
    /// # Errors
    /// Class `Type` if a [limit](super#limits) is exceeded.
    #[doc(alias = "MPI_Type_vector")]
    #[doc(alias = "MPI_Type_create_hvector")]
    pub fn nest(offset: i64, dims: &[(usize, i64)], run: usize) -> Result<Self> {
        canonical::nest(offset, dims, run).map(Self::from_canonical)
    }

    /// Creates a datatype of several runs, one after another. Each run is `(displacement, length)`.
    ///
    /// # Errors
    /// Class `Type` if a [limit](super#limits) is exceeded.
    #[doc(alias = "MPI_Type_indexed")]
    pub fn runs(runs: impl IntoIterator<Item = (i64, usize)>) -> Result<Self> {
        let mut list: Vec<Piece> = Vec::new();
        let mut size = 0_usize;
        for (offset, run) in runs {
            if run == 0 {
                continue;
            }
            check(offset, &[], run)?;
            size = size.saturating_add(run);
            match list.last_mut() {
                Some(last) if last.offset + last.run as i64 == offset => last.run += run,
                _ => list.push(Piece::contiguous(offset, run)),
            }
        }
        check(0, &[(size, 0)], usize::from(size > 0))?;
        fold(list).map(Self::from_canonical)
    }

    /// Creates a datatype of single elements, one after another.
    ///
    /// # Errors
    /// Class `Type` if a [limit](super#limits) is exceeded.
    #[doc(alias = "MPI_Type_create_indexed_block")]
    pub fn elements(elements: impl IntoIterator<Item = impl TryInto<i64>>) -> Result<Self> {
        let mut fits = true;
        let runs = elements.into_iter().map_while(|element| {
            let element = element.try_into().ok();
            fits &= element.is_some();
            element.map(|element| (element, 1))
        });
        let datatype = Self::runs(runs)?;
        if fits {
            Ok(datatype)
        } else {
            Err(Error::new(
                ErrorClass::Type,
                format!("elements are out of range: displacements are from {} to below {REACH}", -REACH),
            ))
        }
    }

    /// Concatenates the typemaps of several datatypes.
    ///
    /// # Errors
    /// Class `Type` if a [limit](super#limits) is exceeded.
    #[doc(alias = "MPI_Type_create_struct")]
    pub fn sequence(datatypes: impl IntoIterator<Item = Datatype>) -> Result<Self> {
        let mut list = Vec::new();
        let mut size = 0_usize;
        for datatype in datatypes {
            size = size.saturating_add(datatype.size());
            list.extend_from_slice(datatype.pieces());
        }
        check(0, &[(size, 0)], usize::from(size > 0))?;
        fold(list).map(Self::from_canonical)
    }

    /// Returns `count` copies of the datatype, each `step` elements after the previous copy. Any
    /// step is allowed, also a negative step or a step smaller than the [extent](Self::extent).
    ///
    /// # Errors
    /// Class `Type` if a [limit](super#limits) is exceeded.
    pub fn repeat(&self, count: usize, step: i64) -> Result<Self> {
        if count == 0 || self.is_empty() {
            return Ok(Self::empty());
        }
        if count == 1 {
            return Ok(self.clone());
        }
        // All copies are within the limits if the copies of the lowest and of the highest element
        // are.
        check(self.low(), &[(count, step)], 1)?;
        check(self.high() - 1, &[(count, step)], 1)?;
        check(0, &[(count, 0)], self.size())?;
        canonical::repeat(self.pieces().into(), count, step).map(Self::from_canonical)
    }

    /// Returns a datatype whose displacements are larger by `by`.
    ///
    /// # Errors
    /// Class `Type` if a [limit](super#limits) is exceeded.
    pub fn shift(&self, by: i64) -> Result<Self> {
        if self.is_empty() || by == 0 {
            return Ok(self.clone());
        }
        check(self.low(), &[(2, by)], 1)?;
        check(self.high() - 1, &[(2, by)], 1)?;
        let shifted = |piece: &Piece| Piece { offset: piece.offset + by, ..piece.clone() };
        Ok(match self.pieces() {
            [piece] => Self::from_piece(shifted(piece)),
            pieces => Self::from_canonical(pieces.iter().map(shifted).collect::<Vec<_>>()),
        })
    }

    /// Creates a datatype of a part of an array: the elements `start[d]..start[d] + len[d]` in each
    /// dimension `d`, in the order of the array. The array has the extents `shape` and is row-major
    /// (the last dimension is contiguous). Without dimensions, the datatype is a single element.
    ///
    /// # Errors
    /// Class `Type` if the three slices differ in length, if the part exceeds the array, or if a
    /// [limit](super#limits) is exceeded.
    #[doc(alias = "MPI_Type_create_subarray")]
    pub fn subarray(shape: &[usize], start: &[usize], len: &[usize]) -> Result<Self> {
        if shape.len() != start.len() || shape.len() != len.len() {
            return Err(Error::new(
                ErrorClass::Type,
                format!(
                    "a subarray of {} dimensions starts at {} and has {} lengths: give as many of each",
                    shape.len(),
                    start.len(),
                    len.len()
                ),
            ));
        }
        for (d, ((&shape, &start), &len)) in shape.iter().zip(start).zip(len).enumerate() {
            if start > shape || len > shape - start {
                return Err(Error::new(
                    ErrorClass::Type,
                    format!(
                        "a subarray takes {len} from {start} on in dimension {d}, which has only {shape}"
                    ),
                ));
            }
        }
        if len.contains(&0) {
            return Ok(Self::empty());
        }
        check(0, &[(shape.iter().fold(1, |product: usize, &n| product.saturating_mul(n)), 1)], 1)?;
        let (mut stride, mut offset) = (1, 0);
        let mut dims: SmallVec<[(usize, i64); 4]> = SmallVec::new();
        for ((&shape, &start), &len) in shape.iter().zip(start).zip(len).rev() {
            dims.push((len, stride));
            offset += start as i64 * stride;
            stride *= shape as i64;
        }
        dims.reverse();
        Self::nest(offset, &dims, 1)
    }
}

impl From<Range<usize>> for Datatype {
    /// See [`Datatype::run`].
    fn from(elements: Range<usize>) -> Self {
        Self::run(elements)
    }
}

impl From<&Datatype> for Datatype {
    fn from(datatype: &Datatype) -> Self {
        datatype.clone()
    }
}
