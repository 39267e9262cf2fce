//! The common parts of tests of whole programs: transports, programs, and calls that wait.

pub mod delayed;
pub mod ends;
mod halves;
pub mod messages;
pub mod play;
pub mod program;
pub mod transports;
pub mod waits;
