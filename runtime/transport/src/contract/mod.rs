//! The contract of a transport, as small traits: each file is one part of it, with its rules at the top.

mod channels;
mod create_join;
mod liveness;
mod notify;
mod topology;

pub use channels::Channels;
pub use create_join::CreateJoin;
pub use liveness::Liveness;
pub use notify::Notify;
pub use topology::Topology;

/// One rank's end of a world: all parts of the contract together.
///
/// Bounds name this trait; a caller that holds an end of a known type imports the parts whose methods it calls.
pub trait Transport: Topology + Notify + Channels + Liveness + CreateJoin {}

impl<T: Topology + Notify + Channels + Liveness + CreateJoin> Transport for T {}
