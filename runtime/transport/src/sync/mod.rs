//! The parts of `std::sync` that the transports are built from.
//!
//! Other files use these parts through `crate::sync` only. With `--cfg loom` they are loom's types
//! (`model.rs`), so the models check exactly the code that runs.

#[cfg(loom)]
mod model;
#[cfg(not(loom))]
mod real;

#[cfg(loom)]
pub use model::without_fences;
#[cfg(loom)]
pub(crate) use model::*;
#[cfg(not(loom))]
pub(crate) use real::*;
