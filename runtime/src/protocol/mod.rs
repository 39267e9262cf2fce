//! The parts of every protocol: calls and their numbers, frames, waiting, losses, stalls.

pub(crate) mod bounds;
pub(crate) mod call;
pub(crate) mod early;
pub(crate) mod exchange;
pub(crate) mod explain;
pub(crate) mod frames;
mod losses;
mod record;
pub(crate) mod stall;
pub(crate) mod state;
pub(crate) mod unwind;
