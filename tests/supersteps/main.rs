//! `#[superstep]`: which functions it makes, how its slicer handles any body, the content of plans,
//! and ranks that are not in step.

mod files;
mod kept;
mod lists;
mod plans;
mod programs;
mod pscw;
mod shares;
mod slicer;
mod split;
mod tiles;
mod unsynchronised;
