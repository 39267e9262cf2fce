//! The runtime of Fencepost: worlds, windows, epochs, transports, and the executor of verified
//! schedules.
//!
//! The runtime deliberately takes no scheduling decisions: the planner takes them.
//!
//! Transports and jobs are separate crates ([`fencepost_transport`], [`fencepost_job`]) and not
//! part of this interface. Their functions trust addresses that ranks send one another. A program
//! that called these functions could break guarantees that safe code relies on.

#![cfg_attr(
    loom,
    allow(dead_code, unused_imports, reason = "the models take the floors below and those of messages only")
)]

#[cfg(not(loom))]
mod api;
#[cfg(not(loom))]
mod census;
#[cfg(not(loom))]
mod check;
mod collect;
#[cfg(not(loom))]
mod collectives;
#[cfg(not(loom))]
mod fence;
mod kernel;
#[cfg(not(loom))]
mod locks;
mod messages;
#[cfg(not(loom))]
mod posts;
mod protocol;
#[cfg(not(loom))]
mod record;
mod state;
#[cfg(not(loom))]
mod supersteps;
#[cfg(loom)]
mod census {
    pub(crate) mod state;
}
#[cfg(loom)]
mod check {
    pub(crate) mod state;
}
#[cfg(loom)]
mod fence {
    pub(crate) mod state;
}
#[cfg(loom)]
mod locks {
    pub(crate) mod state;
}
#[cfg(loom)]
mod posts {
    pub(crate) mod state;
}
#[cfg(loom)]
mod supersteps {
    pub(crate) mod state;
}
#[cfg(any(test, fuzzing))]
#[path = "../tests/inside/mod.rs"]
mod testing;

#[cfg(not(loom))]
mod names {
    pub use crate::api::access::Access;
    pub use crate::api::exposed::{Exposed, Tested, lends};
    pub use crate::api::group::Group;
    pub use crate::api::launch::{Process, launch, process};
    pub use crate::api::locked::Locked;
    pub use crate::api::locks::{LocalPart, Lock, LockAll, LockWindow};
    pub use crate::api::messages::Message;
    pub use crate::api::refused::Refused;
    pub use crate::api::requests::Request;
    pub use crate::api::requests::scope::Scope;
    pub use crate::api::requests::set::{Completed, Outcome, RequestSet};
    pub use crate::api::run::{Ranks, collect, ranks, run};
    pub use crate::api::scoped;
    pub use crate::check::state::checks::Check;
    pub use crate::collect::operation::{
        Get, Put, Section, SliceSource, Source, TargetRegion, WindowSection,
    };
    pub use crate::collect::ticket::Ticket;
    pub use crate::kernel::element::{Element, ValueAt};
    pub use crate::locks::state::hints::Hints;
    pub use crate::messages::state::status::{Any, Sources, Status, Tags};
    pub use crate::protocol::state::stalls::Stall;
    pub use crate::protocol::state::traffic::{EpochKind, Traffic};
    pub use crate::state::assertions::Assertions;
    pub use crate::state::handler::ErrorHandler;
    pub use crate::state::transport_kind::TransportKind;
    pub use crate::state::window::Window;
    pub use crate::state::windows::{AnyWindow, Windows};
    pub use crate::state::world::World;
    pub use crate::supersteps::compiled::Compiled;
    pub use crate::supersteps::explained;
    #[doc(hidden)]
    pub use crate::supersteps::recipe;
    pub use crate::supersteps::recipe::{Ask, PlanValue};
    pub use crate::supersteps::running::{KeptRow, Lent, Returns, Running, Taken};
    pub use fencepost_planner::ir::calls::LockType;
    #[doc(hidden)]
    pub use fencepost_transport::Route;
    pub use fencepost_transport::{Count, Fault, FaultKind, Lose, Meter, SimConfig};
}
#[cfg(not(loom))]
pub use names::*;
#[cfg(all(any(test, fuzzing), not(loom)))]
#[doc(hidden)]
pub use testing::fuzzing;

/// The functions that `#[superstep]` calls. Private to the macro; not covered by semver.
#[cfg(not(loom))]
#[doc(hidden)]
pub mod __private {
    pub use crate::api::allocate::untyped;
    pub use crate::collect::operation::{Collect, SourceData, WindowKey};
    pub use crate::kernel::element::element_type;
    pub use crate::state::windows::UntypedWindow;
    pub use crate::supersteps::compiled::{TellArgument, TellNothing, Told, compile, of_patterns};
    pub use crate::supersteps::enter::{Scope, enter, error_of, left, zero, zeros};
    pub use crate::supersteps::prepare::{Prepared, Replays, adopt, load, prepare};
    pub use crate::supersteps::recipe::Registered;
    pub use crate::supersteps::recorder::{PATTERN_CALLS_MAX, PATTERN_TURNS_MAX, Recorder, Recording};
    pub use crate::supersteps::source::PlanSource;
    pub use crate::supersteps::state::{Known, Superstep};
    pub use crate::supersteps::uniform::{Uniform, UniformHash};
    pub use bytemuck::{self, Pod, Zeroable};
    pub use fencepost_planner::ir::pattern::Sync;
    pub use inventory;
}
