//! The text of a datatype: a run is `3..7`, a nest `3+[8 by 100][2 by 10]x4`, several pieces are
//! `0..2, 9+[2 by 5]x1`, and no elements are `none`.

use super::canonical;
use super::form::Datatype;
use crate::error::{Error, ErrorClass, Result};
use std::fmt;
use std::str::FromStr;

impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (i, piece) in self.pieces().iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            if piece.dims.is_empty() {
                write!(f, "{}..{}", piece.offset, piece.offset + piece.run as i64)?;
                continue;
            }
            write!(f, "{}+", piece.offset)?;
            for dim in &piece.dims {
                write!(f, "[{} by {}]", dim.count, dim.stride)?;
            }
            write!(f, "x{}", piece.run)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Datatype {
    type Err = Error;

    /// Reads the text that [`Display`](fmt::Display) prints. Descriptions that are not canonical
    /// are accepted, too.
    ///
    /// # Errors
    /// Class `Type` if the text has another form (the message quotes the part that is wrong), or if
    /// a [limit](super#limits) is exceeded.
    fn from_str(text: &str) -> Result<Self> {
        if text.trim() == "none" {
            return Ok(Self::empty());
        }
        let mut list = Vec::new();
        for part in text.split(',') {
            let (offset, dims, run) = nest(part.trim()).ok_or_else(|| {
                Error::new(
                    ErrorClass::Type,
                    format!("{part:?} is not a datatype: write 3..7, or 3+[8 by 100][2 by 10]x4, several with commas, or none"),
                )
            })?;
            list.push(canonical::nest(offset, &dims, run).map(Self::from_canonical)?);
        }
        Self::sequence(list)
    }
}

/// The dimensions, `(count, stride)` each, outermost first.
type Dims = Vec<(usize, i64)>;

/// Reads a run or a nest.
fn nest(text: &str) -> Option<(i64, Dims, usize)> {
    if let Some((low, high)) = text.split_once("..") {
        let (low, high): (i64, i64) = (low.parse().ok()?, high.parse().ok()?);
        return Some((low, Vec::new(), usize::try_from(high.checked_sub(low)?).ok()?));
    }
    let (offset, rest) = text.split_once('+')?;
    let (dims, run) = rest.rsplit_once('x')?;
    let mut list = Vec::new();
    let mut rest = dims;
    while !rest.is_empty() {
        let (dim, after) = rest.strip_prefix('[')?.split_once(']')?;
        let (count, stride) = dim.split_once(" by ")?;
        list.push((count.parse().ok()?, stride.parse().ok()?));
        rest = after;
    }
    Some((offset.parse().ok()?, list, run.parse().ok()?))
}
