//! The runtime of Fencepost: worlds, windows, epochs, transports, and the executor of verified schedules.
//!
//! What is deliberately absent: scheduling decisions (the planner's), processes and sockets.

pub mod call;
mod collective;
pub mod element;
mod execute;
mod fence;
#[doc(hidden)]
pub mod kernel;
mod outbox;
mod pending;
mod prepared;
mod region;
mod registry;
mod run;
pub mod scoped;
mod sync;
mod ticket;
pub mod transport;
mod window;
mod wire;
mod world;

pub use call::{Collect, Get, Given, Place, Put, Section, Source, WindowKey, WindowSection};
pub use element::{Element, ValueAt, element_type};
pub use run::{Ranks, TransportKind, ranks, run};
pub use ticket::Ticket;
pub use window::Window;
pub use world::{AnyWindow, Traffic, Windows, World};
