//! The runtime of Fencepost: worlds, windows, epochs, transports, and the executor of verified schedules.
//!
//! What is deliberately absent: scheduling decisions (the planner's).
//!
//! Transports and jobs are crates of their own ([`fencepost_transport`], [`fencepost_job`]), and not part of this interface:
//! their functions believe addresses that ranks tell one another, and a program that called them could break what safe code
//! relies on.

mod api;
mod collect;
mod exchange;
mod fence;
mod kernel;
mod locks;
mod messages;
mod protocol;
mod state;
mod supersteps;
#[cfg(any(test, fuzzing))]
mod testing;

pub use api::access::Access;
pub use api::between::{Between, Borrowed};
pub use api::exposed::{Exposed, Tested, lends};
pub use api::group::Group;
pub use api::launch::{Process, launch, process};
pub use api::locked::Locked;
pub use api::locks::{LocalPart, Lock, LockAll, LockWindow};
pub use api::refused::Refused;
pub use api::requests::Request;
pub use api::requests::scope::Scope;
pub use api::requests::set::{Completed, Outcome, RequestSet, SomeFailed};
pub use api::run::{Ranks, collect, ranks, run};
pub use api::scoped;
pub use collect::operation::{Get, Put, Section, SliceSource, Source, TargetRegion, WindowSection};
pub use collect::ticket::Ticket;
pub use fencepost_planner::reference::LockType;
#[doc(hidden)]
pub use fencepost_transport::Route;
pub use fencepost_transport::{Count, Fault, FaultKind, Lose, Meter, SimConfig};
pub use kernel::element::{Element, ValueAt};
pub use state::assertions::Assertions;
pub use state::check::Check;
pub use state::handler::ErrorHandler;
pub use state::hints::Hints;
pub use state::messages::status::{Any, Sources, Status, Tags};
pub use state::stalls::Stall;
pub use state::traffic::{EpochKind, Traffic};
pub use state::transport_kind::TransportKind;
pub use state::window::Window;
pub use state::windows::{AnyWindow, Windows};
pub use state::world::World;
pub use supersteps::compiled::Compiled;
pub use supersteps::running::{KeptRow, Lent, Returns, Running, Taken};
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use testing::fuzzing;

/// What `#[superstep]` calls. Not for others: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::collect::operation::{Collect, SourceData, WindowKey};
    pub use crate::kernel::element::element_type;
    pub use crate::state::supersteps::{Known, Superstep};
    pub use crate::supersteps::compiled::{TellArgument, TellNothing, Told, compile};
    pub use crate::supersteps::enter::{Scope, enter, error_of, left, orders_nothing, zero, zeros};
    pub use crate::supersteps::prepare::{Prepared, Replays, adopt, load, prepare};
    pub use crate::supersteps::recorder::{PATTERN_CALLS_MAX, PATTERN_TURNS_MAX, Recorder, Recording};
    pub use crate::supersteps::uniform::{Uniform, UniformHash};
    pub use bytemuck::{self, Pod, Zeroable};
    pub use fencepost_planner::ir::pattern::Sync;
}
