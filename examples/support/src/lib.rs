//! What the examples need besides Fencepost, so that they themselves stay short: elevation files, pictures,
//! arguments and progress. Not published; nothing here is part of Fencepost.

mod cores;
pub mod grid;
mod letters;
pub mod npy;
pub mod options;
pub mod picture;
pub mod progress;

pub use clap;
pub use cores::pin;
pub use grid::{Grid, digest};
