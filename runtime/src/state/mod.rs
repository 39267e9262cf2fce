//! The data that a rank stores about its world, its windows and its settings. Contains no protocol.

pub(crate) mod assertions;
pub(crate) mod attendants;
pub(crate) mod attributes;
pub(crate) mod call;
pub(crate) mod call_sites;
pub(crate) mod calls;
mod collected;
pub(crate) mod environment;
pub(crate) mod handler;
pub(crate) mod key;
pub(crate) mod life;
pub(crate) mod reach;
pub(crate) mod registry;
pub(crate) mod transport_kind;
pub(crate) mod unfenced;
pub(crate) mod window;
pub(crate) mod window_core;
pub(crate) mod windows;
pub(crate) mod world;
