//! The contract of a transport, as small traits. Each file is one part of the contract, with the
//! rules of that part at the top.

mod attendant;
mod channels;
mod create_join;
mod liveness;
mod notify;
mod topology;

pub(crate) use attendant::PANICKED;
pub use attendant::{Answers, Attendant};
pub use channels::{COPIED, Channels, Lent, UNREPORTED, UNREPORTED_BYTES};
pub use create_join::{CreateJoin, Created};
pub use liveness::Liveness;
pub use notify::Notify;
pub use topology::Topology;
