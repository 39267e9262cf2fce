//! Common parts of tests. These parts need no other crate of Fencepost, so the tests of every layer
//! use them.

pub mod cases;
pub mod counting;
pub mod golden;
pub mod line;
pub mod random;
pub mod side_by_side;
