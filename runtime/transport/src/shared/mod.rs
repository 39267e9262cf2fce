//! Memory that ranks reach, on a heap or in a segment, and what they say to one another in it.

pub(crate) mod end;
pub(crate) mod members;
pub(crate) mod notify;
pub(crate) mod queue;
pub(crate) mod slice;
pub(crate) mod waker;
