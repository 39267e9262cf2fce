//! What a program calls: how ranks are run, worlds, windows and collectives.

mod allocate;
mod collect;
pub(crate) mod collectives;
pub(crate) mod launch;
pub(crate) mod run;
pub mod scoped;
pub(crate) mod split;
mod window;
mod world;
