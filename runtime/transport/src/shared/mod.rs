//! Memory that ranks reach, on a heap or in a segment, and the data structures in that memory
//! through which ranks communicate.

pub(crate) mod cell;
pub(crate) mod end;
pub(crate) mod fair;
pub(crate) mod members;
pub(crate) mod notify;
pub(crate) mod pair;
pub(crate) mod queue;
pub(crate) mod slice;
pub(crate) mod waker;
