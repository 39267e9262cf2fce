//! Datatypes, which are typemaps in MPI: lists of elements of a window, in order. All units are
//! *elements*, never bytes.
//!
//! A [`Datatype`] is always in canonical form: any two descriptions of the same elements in the
//! same order are equal, print the same text and have the same bytes on the wire. Each file has one
//! idea:
//!
//! - `form`: the type, and its queries; `build`: its constructors;
//! - `canonical`: the reduction of any description to canonical form; `runs`: the elements as
//!   maximal runs, and the traversal of two typemaps in lockstep;
//! - `touched`: the elements that a typemap touches, no matter how often; `slice`: a part of a
//!   typemap; `monotone`: both sides of a transfer reordered so that the target ascends;
//! - `overlap`: whether two typemaps share an element, and whether one typemap visits an element
//!   twice;
//! - `text`: print and parse; `wire`: bytes.
//!
//! # Limits
//!
//! Displacements of elements are from `-2^62` to below `2^62`, so that the difference of two
//! displacements never overflows. A typemap has at most [`isize::MAX`] elements. A description that
//! has no short form may be written out to at most [`MOST_PIECES`] pieces. Exceeding a limit is an
//! error of class `Type`.
//!
//! A short description suffices for a datatype of any number of runs. A computation that has to
//! visit runs one by one visits at most [`MOST_RUNS`] of them. If there are more,
//! [`Datatype::overlaps`] and [`Datatype::overlaps_itself`] return true unless the pieces alone
//! show that nothing overlaps.

mod build;
mod canonical;
mod form;
mod monotone;
mod overlap;
mod runs;
mod slice;
mod text;
mod touched;
mod wire;

pub use canonical::MOST_PIECES;
pub use form::{Datatype, Dim, Piece};
pub use monotone::monotone;
pub use overlap::MOST_RUNS;
pub use runs::{Pairs, Runs, pairs};

#[cfg(test)]
mod tests;
