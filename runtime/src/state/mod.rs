//! The data that a rank has of its world, its windows and its settings, without protocol.

pub(crate) mod assertions;
pub(crate) mod bounds;
pub(crate) mod call;
pub(crate) mod call_sites;
pub(crate) mod calls;
pub(crate) mod census;
mod collected;
pub(crate) mod environment;
pub(crate) mod exchange;
pub(crate) mod explained;
pub(crate) mod handler;
pub(crate) mod history;
pub(crate) mod key;
pub(crate) mod lendings;
pub(crate) mod placement;
pub(crate) mod ports;
pub(crate) mod registry;
pub(crate) mod remembered;
pub(crate) mod schedule_cache;
pub(crate) mod staged;
pub(crate) mod stalls;
pub(crate) mod supersteps;
pub(crate) mod traffic;
pub(crate) mod transport_kind;
pub(crate) mod window;
pub(crate) mod windows;
pub(crate) mod world;
