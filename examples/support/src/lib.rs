//! Helpers that keep the examples short: elevation files, pictures, options and progress bars. The
//! crate is not published, and is not part of Fencepost.

mod cores;
mod glyphs;
pub mod grid;
pub mod options;
pub mod picture;
pub mod progress;
pub mod race;

pub use clap;
pub use cores::pin;
pub use grid::{Grid, digest};
pub use race::Race;
