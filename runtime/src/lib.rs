//! The runtime of Fencepost.

mod sync;
pub mod transport;
