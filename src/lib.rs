//! Fencepost compiles communication schedules for bulk-synchronous programs.
//!
//! A program is a number of *ranks* that each hold a part of some *windows*. A *superstep* is local work, then puts,
//! gets and accumulates, then one *fence*: between two fences nothing moves as far as anybody can see, and after the
//! fence everything has. What an epoch means is written once, in `planner/README.md`, and holds bit for bit in every mode
//! and on every transport.
//!
//! # A first superstep
//!
//! ```
//! use fencepost::prelude::*;
//!
//! /// Tell the next rank who is before it.
//! #[superstep]
//! fn greet(u: &mut Window<u64>, next: usize) -> Result<()> {
//!     u.put(0..1).to(next, 1)?; // my element 0 into element 1 of the next rank
//!     Ok(())
//! } // a superstep ends in a fence
//!
//! fn main() -> Result<()> {
//!     fencepost::ranks(3).run(|world| {
//!         let mut u = world.window::<u64>(2)?;
//!         u[0] = world.rank() as u64;
//!         greet(&mut u, (world.rank() + 1) % world.size())?;
//!         assert_eq!(u[1], (world.rank() as u64 + 2) % 3);
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Elements of your own
//!
//! Numbers of Rust live in windows as they are; a struct of them does if it says so and has no padding.
//!
//! ```
//! use fencepost::prelude::*;
//!
//! #[derive(Clone, Copy, PartialEq, Debug, Element)]
//! #[repr(C)]
//! struct Particle {
//!     place: [f64; 3],
//!     charge: f32,
//!     kind: u32,
//! }
//!
//! fn main() -> Result<()> {
//!     fencepost::ranks(2).run(|world| {
//!         let mut u = world.window::<Particle>(2)?;
//!         let mine = Particle { place: [0.5; 3], charge: -1.0, kind: world.rank() as u32 };
//!         u.put([mine]).to(1 - world.rank(), 1)?;
//!         u.fence()?;
//!         assert_eq!(u[1], Particle { kind: 1 - mine.kind, ..mine });
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # The tour
//!
//! - **Enter a world**: [`run()`], [`collect`] where each rank returns a value, and [`ranks`]; a [`World`] makes windows, divides itself and has the collectives.
//! - **A window** derefs to a slice of its local part; [`Window::put`], [`Window::accumulate`], [`Window::get`] and
//!   [`Window::fetch`] say what the next [`Window::fence`] does. Without any attribute they are scheduled at run time.
//! - **Which elements** is a [`Datatype`]; for blocks of a grid, [`Block`] has them all: halos, faces, edges and corners.
//! - **`#[superstep]`** ([`macro@superstep`]) makes a function compilable: `name::compile(ranks, |rank| ..)` with no world at all,
//!   `name::prepare(world, ..)` and `name::load(world, path, ..)` for replay with no counting, no descriptions, no planning.
//! - **A [`Mode`]** is how bytes travel; `auto` chooses by the [`Machine`] model, and the result has the same bits in each.
//! - **An [`Error`]** has MPI's [`ErrorClass`], says what was given and what was allowed, where, and what [`State`] is left. A world or
//!   a window may have an [`ErrorHandler`], which sees it first.
//!
//! # What is stable
//!
//! `src/surface.txt` lists each item that a program can reach, as it is declared; a change of the list is a change of the
//! interface, and CI compares the two. Until 1.0 a minor release (0.2) may change what is listed, and says so in `CHANGELOG.md`;
//! a patch release (0.1.1) adds only. What an epoch means (`planner/README.md`), the bits that it leaves, and the names and
//! values of the `FENCEPOST_` variables follow the same rule. A plan file names the version of its format, and a release
//! that cannot read a version says so when it loads one.
//!
//! Not stable, in any release: items that the documentation hides, the text of errors and reports (an error's
//! [`ErrorClass`] and [`State`] are stable), the schedule that is chosen and the order in which it moves bytes, the crates below
//! this one, and what [`transport`] counts.
//!
//! # The map
//!
//! This package re-exports three: `fencepost-macros` reads syntax and writes calls; `fencepost-planner` is a pure function from
//! patterns to a verified schedule; `fencepost-runtime` has worlds, windows and the executor, above `fencepost-transport` and
//! `fencepost-job`, which programs do not reach.
//! `ARCHITECTURE.md` says where each rule is kept.

extern crate self as fencepost;

pub use fencepost_macros::{Element, superstep};
pub use fencepost_planner::conflicts::{Conflict, Touch};
pub use fencepost_planner::datatype::{Datatype, Repeat};
pub use fencepost_planner::element::Op;
pub use fencepost_planner::grid::{Advice, Block, Neighbour, Row, Step};
pub use fencepost_planner::ir::pattern::{Kind, Mode, Order, Site};
pub use fencepost_planner::ir::schedule::Placement;
pub use fencepost_planner::units::{Bytes, Nanos};
pub use fencepost_planner::{Error, ErrorClass, Machine, Options, Result, State};
#[doc(hidden)]
pub use fencepost_runtime::__private;
pub use fencepost_runtime::{
    AnyWindow, Assertions, Compiled, Element, EpochKind, ErrorHandler, Get, Process, Put, Ranks, Section,
    Source, Stall, TargetRegion, Ticket, Traffic, TransportKind, ValueAt, Window, WindowSection, Windows,
    World, collect, launch, process, ranks, run,
};

/// Epochs whose operations borrow their buffers: see [`Window::epoch`].
pub mod scoped {
    pub use fencepost_runtime::scoped::{BorrowingGet, Destination, Epoch};
}

/// What a program may set and read of transports: the simulated network, its faults, and counts of what was sent.
pub mod transport {
    pub use fencepost_runtime::{Count, Fault, FaultKind, Lose, Meter, SimConfig};
}

/// All that most programs name.
pub mod prelude {
    pub use crate::{
        Block, Datatype, Element, Error, ErrorClass, Mode, Op, Result, Ticket, ValueAt, Window, World,
        superstep,
    };
}

#[cfg(doctest)]
mod refused;
