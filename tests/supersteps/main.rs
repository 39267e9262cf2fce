//! `#[superstep]`: what it runs, what its slicer makes of any body, what plans hold, and ranks that
//! are not in step.

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
