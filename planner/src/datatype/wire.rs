//! The wire form. There is one byte string for each typemap, and no other is accepted.
//!
//! Numbers are encoded as in [`varint`]. The number of pieces comes first, then the pieces. Each
//! piece consists of its displacement minus the displacement of the previous piece, the number of
//! dimensions, the count and stride of each dimension (outermost first), and the length of its
//! runs.

use super::canonical::{check, is_canonical};
use super::form::{Datatype, Dim, Piece, Pieces};
use crate::error::{Error, ErrorClass, Result};
use crate::varint::{self, write, write_signed};
use smallvec::SmallVec;

/// The minimum number of bytes of a piece.
const LEAST: usize = 3;
/// The maximum number of dimensions. A datatype with more dimensions, each with a count of 2 or
/// more, would exceed the limit on its size.
const MOST_DIMS: u64 = 62;

impl Datatype {
    /// Appends the wire form to `out`.
    #[doc(hidden)]
    pub fn encode(&self, out: &mut Vec<u8>) {
        write(out, self.pieces().len() as u64);
        let mut before = 0;
        for piece in self.pieces() {
            write_signed(out, piece.offset - before);
            before = piece.offset;
            write(out, piece.dims.len() as u64);
            for dim in &piece.dims {
                write(out, dim.count as u64);
                write_signed(out, dim.stride);
            }
            write(out, piece.run as u64);
        }
    }

    /// Reads a datatype from the front of `bytes`, and advances `bytes` past it.
    ///
    /// # Errors
    /// Class `File` if the bytes are truncated, not canonical, or exceed a [limit](super#limits).
    /// `bytes` is then left at an unspecified position.
    ///
    /// # Cost
    /// Time and memory are at most proportional to the bytes read.
    #[doc(hidden)]
    pub fn decode(bytes: &mut &[u8]) -> Result<Self> {
        let pieces = read(bytes)?;
        if pieces > (bytes.len() / LEAST) as u64 {
            return Err(bad("truncated"));
        }
        let mut list = Pieces::with_capacity(pieces as usize);
        let (mut before, mut size) = (0_i64, 0_usize);
        for _ in 0..pieces {
            let offset = before.checked_add(read_signed(bytes)?).ok_or_else(|| bad("out of range"))?;
            before = offset;
            let depth = read(bytes)?;
            if depth > MOST_DIMS {
                return Err(bad("too many dimensions"));
            }
            let mut dims: SmallVec<[Dim; 2]> = SmallVec::new();
            for _ in 0..depth {
                dims.push(Dim { count: count(bytes)?, stride: read_signed(bytes)? });
            }
            let run = count(bytes)?;
            if run == 0 || dims.iter().any(|dim| dim.count < 2) {
                return Err(bad("not canonical"));
            }
            let bounds: SmallVec<[(usize, i64); 4]> =
                dims.iter().map(|dim| (dim.count, dim.stride)).collect();
            check(offset, &bounds, run).map_err(|error| bad(error.message()))?;
            let piece = Piece { offset, dims, run };
            size = size.saturating_add(piece.size());
            list.push(piece);
        }
        if size > isize::MAX as usize {
            return Err(bad("too many elements"));
        }
        if !is_canonical(&list) {
            return Err(bad("not canonical"));
        }
        Ok(Self::from_canonical(list))
    }
}

fn bad(what: &str) -> Error {
    Error::new(ErrorClass::File, format!("the wire form of a datatype is damaged: {what}"))
}

fn read(bytes: &mut &[u8]) -> Result<u64> {
    varint::read(bytes).map_err(bad)
}

fn read_signed(bytes: &mut &[u8]) -> Result<i64> {
    varint::read_signed(bytes).map_err(bad)
}

fn count(bytes: &mut &[u8]) -> Result<usize> {
    usize::try_from(read(bytes)?).map_err(|_| bad("out of range"))
}
