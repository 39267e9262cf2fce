//! The runtime of Fencepost: worlds, windows, epochs, transports, and the executor of verified schedules.
//!
//! What is deliberately absent: scheduling decisions (the planner's).
//!
//! Transports and jobs are crates of their own ([`fencepost_transport`], [`fencepost_job`]), and not part of this interface:
//! their functions believe addresses that ranks tell one another, and a program that called them could break what safe code
//! relies on.

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
mod split;
mod stall;
mod superstep;
mod ticket;
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
pub use fencepost_transport::{Count, Fault, Lose, Meter, Mishap, SimConfig};
pub use handler::ErrorHandler;
pub use launch::{Process, launch, process};
pub use record::{PATTERN_CALLS_MAX, PATTERN_TURNS_MAX, Recorder};
pub use run::{Ranks, TransportKind, ranks, run};
pub use stall::Stall;
pub use ticket::Ticket;
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
