//! The interface that a program calls, to run ranks and to use worlds, windows, messages and
//! requests.

pub(crate) mod access;
pub(crate) mod allocate;
mod answer;
pub(crate) mod between;
mod caches;
mod collect;
pub(crate) mod exposed;
pub(crate) mod group;
mod keep;
pub(crate) mod launch;
pub(crate) mod locked;
pub(crate) mod locks;
mod measure;
pub(crate) mod messages;
pub(crate) mod refused;
pub(crate) mod requests;
pub(crate) mod run;
pub mod scoped;
pub(crate) mod split;
mod window;
mod world;
