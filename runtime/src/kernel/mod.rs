//! The loops that move and combine elements. Only these loops and the user's code touch elements.
//!
//! A *window* pointer points to element 0. A *buffer* holds elements one after another and may be
//! unaligned. Each function visits the pieces of a datatype. For the innermost dimension, the
//! function has a separate loop for each size of run (1, 2, 4, 8 and 16 bytes) and for each
//! operator and element type. The loop is chosen once for each call or each piece.
//!
//! # Contract
//!
//! Every function here is unsafe for the same reasons. The caller guarantees that
//! - every element of a datatype is within the allocation that its window pointer points into
//!   (bounds were checked when the operation was called or the plan was bound), and a buffer has
//!   the number of elements of the datatype;
//! - while the call lasts, no other code writes the elements that are read, or touches the elements
//!   that are written (W1, W2);
//! - the elements that are read and the elements that are written are disjoint. Elements are read
//!   and written alternately, so copying a section onto an overlapping section needs a buffer.
//!
//! If an element is written several times, the writes happen in typemap order.

pub(crate) mod atomic;
mod combine;
pub(crate) mod contained;
pub(crate) mod copies;
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
