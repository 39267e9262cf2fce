//! The harness of the benches, and the limits that Fencepost is held against.
//!
//! Not published. A bench is one file and one question; `benches/log` has what was asked, expected
//! and found.

pub mod contest;
pub mod draws;
pub mod limits;
pub mod ours;

pub use contest::{Contest, Harness, Side, main};
