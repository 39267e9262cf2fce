//! Fencepost compiles communication schedules for bulk-synchronous programs.

extern crate self as fencepost;

pub use bytemuck;
pub use fencepost_macros::superstep;
pub use fencepost_planner::datatype::{self, Datatype};
pub use fencepost_planner::element::Op;
pub use fencepost_planner::grid::{Block, Neighbour};
pub use fencepost_planner::ir::pattern::{Mode, Order};
pub use fencepost_planner::ir::schedule::Placement;
pub use fencepost_planner::{Class, Error, Machine, Options, Result, State};
pub use fencepost_runtime::*;

/// All that most programs name.
pub mod prelude {
    pub use crate::{
        Block, Class, Datatype, Element, Error, Mode, Op, Result, Ticket, ValueAt, Window, World, superstep,
    };
}

#[cfg(doctest)]
mod refused;
