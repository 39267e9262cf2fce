//! The runtime of Fencepost: worlds, windows, epochs, transports, and the executor of verified schedules.
//!
//! What is deliberately absent: scheduling decisions (the planner's).
//!
//! Transports and jobs are not part of the interface: their functions believe addresses that ranks tell one another, and
//! a program that could call them could break what safe code relies on. The feature `internals` shows them to this
//! project's own command and tests.

mod allocate;
mod assertions;
mod board;
mod bounds;
pub mod call;
mod calls;
mod collective;
mod compiled;
mod early;
mod element;
mod environment;
mod execute;
mod explain;
mod fence;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod garbled;
mod habit;
mod handler;
#[cfg(all(target_os = "linux", feature = "processes", feature = "internals"))]
#[doc(hidden)]
pub mod job;
#[cfg(all(target_os = "linux", feature = "processes", not(feature = "internals")))]
#[expect(dead_code, unused_imports, reason = "some of it only the command and tests call")]
mod job;
mod kernel;
mod key;
mod lane;
mod launch;
mod limits;
mod log;
mod outbox;
mod pending;
mod placement;
mod prepare;
mod prepared;
mod record;
mod region;
mod registry;
mod run;
pub mod scoped;
#[cfg(all(target_os = "linux", feature = "processes", feature = "internals"))]
#[doc(hidden)]
pub mod security;
#[cfg(all(target_os = "linux", feature = "processes", not(feature = "internals")))]
mod security;
mod split;
mod stall;
mod superstep;
mod sync;
mod ticket;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod transport;
#[cfg(not(feature = "internals"))]
#[expect(dead_code, unused_imports, reason = "some of it only tests call")]
mod transport;
mod unwind;
mod waits;
mod window;
mod windows;
mod wire;
mod world;

pub use assertions::Assertions;
pub use call::{Collect, Get, Given, Place, Put, Section, Source, WindowKey, WindowSection};
pub use compiled::Compiled;
pub use element::{Element, ValueAt, element_type};
pub use handler::ErrorHandler;
pub use launch::{Process, launch, process};
pub use record::{PATTERN_CALLS_MAX, PATTERN_TURNS_MAX, Recorder};
pub use run::{Ranks, TransportKind, ranks, run};
pub use stall::Stall;
pub use ticket::Ticket;
pub use transport::{Count, Fault, Lose, Meter, Mishap, SimConfig};
pub use window::Window;
pub use windows::{AnyWindow, Windows};
pub use world::{EpochKind, Traffic, World};

/// What `#[superstep]` calls. Not for others: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::compiled::{TellArgument, TellNothing, Told, compile};
    pub use crate::prepare::{Prepared, adopt, load, prepare};
    pub use crate::record::Recording;
    pub use crate::superstep::{
        Scope, Superstep, Uniform, UniformHash, enter, error_of, left, orders_nothing, zero, zeros,
    };
    pub use bytemuck::{Pod, Zeroable};
}
