//! The loops that move and combine elements. Only they and the user's code touch elements.
//!
//! A *window* pointer is that of element 0. A *buffer* holds elements one after another and may be
//! unaligned. Each function visits the pieces of a datatype. For the innermost dimension it has a
//! separate loop for each size of run (1, 2, 4, 8 and 16 bytes) and for each operator and element
//! type, chosen once a call or once a piece.
//!
//! # Contract
//!
//! Every function here is unsafe for the same reasons. The caller guarantees that
//! - every element of a datatype is within the allocation that its window pointer points into
//!   (bounds were checked when the operation was called or the plan was bound), and a buffer has as
//!   many elements as the datatype;
//! - while the call lasts, nobody else writes what is read, nor touches what is written (W1, W2);
//! - what is read and what is written are disjoint: elements are read and written alternately, so a
//!   section that is copied onto one that it overlaps has to go through a buffer.
//!
//! If an element is written several times, then this happens in typemap order.

pub(crate) mod atomic;
mod combine;
pub(crate) mod contained;
pub(crate) mod element;
mod moves;
#[cfg(test)]
mod tests;
mod values;
pub(crate) mod waits;
mod walk;

pub use combine::{combine, combine_copy, combine_each, combine_one, combine_run};
pub use moves::{copy, fetch, fetch_to_write, pack, unpack};
pub use values::{Task, Values, with_values};
