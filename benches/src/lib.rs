//! The harness of the benches, and the limits with which Fencepost is compared.
//!
//! The crate is not published. A bench is one file and one question. `benches/log` has the
//! questions, the predictions and the results.

pub mod contest;
pub mod draws;
pub mod limits;
pub mod ours;

pub use contest::{Contest, Harness, Side, main};
