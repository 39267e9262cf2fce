//! Plans of Fencepost as files that are committed, checked, shown and compared.
//!
//! A test of a crate with this crate among its `dev-dependencies` checks the plans of a folder by
//! [`plans::check`]. The command `fencepost` uses the rest.

#[cfg(feature = "command")]
pub mod compare;
pub mod difference;
#[cfg(feature = "command")]
pub mod documents;
pub mod files;
pub mod plans;
#[cfg(feature = "command")]
pub mod predict;
#[cfg(feature = "command")]
pub mod programs;
pub mod recipes;
#[cfg(feature = "command")]
pub mod report;
mod same;
pub mod show;
#[cfg(feature = "command")]
pub mod simulation;
mod source;
mod stencil;
#[cfg(feature = "command")]
pub mod trace;
