//! Datatypes: which elements of a window, in which order (MPI's typemap), over *elements*, never bytes.
//!
//! A [`Datatype`] is always in canonical form: any two descriptions of the same elements in the same order are equal.

mod form;

pub use form::{Datatype, Dim, Piece};
