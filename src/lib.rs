//! Fencepost compiles communication schedules for bulk-synchronous programs.
//!
//! A program runs as a number of *ranks*, and each rank holds its part of one or more *windows*. A
//! *superstep* is local work, then puts, gets and accumulates, then one *fence*. Before the fence,
//! a program observes no effect of these operations; after the fence, it observes all of them. The
//! meaning of an epoch is defined once, in [its definition](fencepost_planner), and results have
//! the same bits in every mode and on every transport.
//!
//! # A first superstep
//!
//! ```
//! use fencepost::prelude::*;
//!
//! /// Sends the next rank the number of this one.
//! #[superstep]
//! fn greet(u: &mut Window<u64>, next: usize) -> Result<()> {
//!     u.put(0..1).to(next, 1)?; // my element 0 into element 1 of the next rank
//!     Ok(())
//! } // a superstep ends in a fence
//!
//! fn main() -> Result<()> {
//!     fencepost::run(|world| {
//!         let mut u = world.window::<u64>(2)?;
//!         u[0] = world.rank() as u64;
//!         greet(&mut u, (world.rank() + 1) % world.size())?;
//!         let before = (world.rank() + world.size() - 1) % world.size();
//!         assert_eq!(u[1], before as u64);
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Elements of your own
//!
//! Windows hold Rust's numbers directly. They hold a struct of numbers if it derives `Element` and
//! has no padding.
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
//!     fencepost::run(|world| {
//!         let mut u = world.window::<Particle>(2)?;
//!         let mine = Particle { place: [0.5; 3], charge: -1.0, kind: world.rank() as u32 };
//!         let next = (world.rank() + 1) % world.size();
//!         let before = (world.rank() + world.size() - 1) % world.size();
//!         u.put([mine]).to(next, 1)?;
//!         u.fence()?;
//!         assert_eq!(u[1], Particle { kind: before as u32, ..mine });
//!         Ok(())
//!     })
//! }
//! ```
//!
//! Every [`bytemuck::Pod`] type is an element as well. Fencepost re-exports the crate [`bytemuck`],
//! so a package that derives `Pod` need not depend on that crate. The derive macros need the path
//! of the re-export:
//!
//! ```
//! use fencepost::bytemuck::{Pod, Zeroable};
//! use fencepost::prelude::*;
//!
//! #[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
//! #[bytemuck(crate = "fencepost::bytemuck")]
//! #[repr(C)]
//! struct Complex {
//!     re: f64,
//!     im: f64,
//! }
//!
//! fn main() -> Result<()> {
//!     fencepost::run(|world| {
//!         let mut u = world.window::<Complex>(1)?;
//!         let next = (world.rank() + 1) % world.size();
//!         let before = (world.rank() + world.size() - 1) % world.size();
//!         u.put([Complex { re: 1.0, im: world.rank() as f64 }]).to(next, 0)?;
//!         u.fence()?;
//!         let parts: &[f64] = fencepost::bytemuck::cast_slice(&u);
//!         assert_eq!(parts, [1.0, before as f64]);
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Compiled ahead
//! A superstep whose pattern follows from its arguments can be compiled without a world, for any
//! number of ranks. `compile` takes a closure that returns the arguments of a rank in a `Result`.
//! Several arguments form a tuple. For an argument that the function takes by reference, the
//! closure returns the value. One process saves the plan to a file. Every rank loads the file and
//! passes its arguments again, which are then compared with the plan.
//!
//! ```
//! use fencepost::prelude::*;
//!
//! #[superstep]
//! fn shift(u: &mut Window<f64>, block: &Block<1>, wide: usize) -> Result<()> {
//!     let right = (block.rank() + 1) % block.ranks();
//!     u.put(0..wide).to(right, wide..2 * wide)
//! }
//!
//! fn main() -> Result<()> {
//!     # let plan = std::env::temp_dir().join(format!("shift-{}.plan", std::process::id()));
//!     # let plan = &plan;
//!     # #[cfg(any())]
//!     let plan = "shift.plan";
//!     // In a program of its own, in a test, or here before any rank begins:
//!     shift::compile(4, |rank| Ok((Block::at(rank, 4, [64])?, 8)))?.save(plan)?;
//!     fencepost::ranks(4).run(|world| {
//!         let block = Block::new(world, [64])?;
//!         let mut u = world.window::<f64>(block.len())?;
//!         let mut shift = shift::load(world, plan, &block, 8)?;
//!         for _ in 0..10 {
//!             shift.replay(&mut u)?; // nothing is counted, described or planned
//!         }
//!         Ok(())
//!     })
//! }
//! ```
//!
//! If ranks are processes, each of them runs `main`. Let one process compile and save the plan
//! before the job starts, or let rank 0 do both in the closure, followed by a barrier. The plan
//! assumes that ranks share memory, unless [`Compiled::with`] selects another placement. If the
//! ranks do not share memory, the plan is compiled again for their placement.
//!
//! # Computing while data travels
//!
//! A prepared superstep can run in two halves. [`begin`](Running) takes the window and sends the
//! data for which other ranks wait. `begin` itself does not wait. [`Running::finish`] waits, and
//! returns the window. In between, a rank computes values that need no incoming data. With
//! [`Running::inside`], the example first computes the cells of a block that need no halo. After
//! `finish` it computes the other cells, with [`Block::rows_rest`].
//!
//! ```
//! use fencepost::prelude::*;
//!
//! #[superstep]
//! fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
//!     for n in block.faces() {
//!         u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
//!     }
//!     Ok(())
//! }
//!
//! /// The mean of the cells around each cell of a row.
//! fn relax([up, down, left, right]: [&[f64]; 4], mean: &mut [f64]) {
//!     for j in 0..mean.len() {
//!         mean[j] = 0.25 * ((up[j] + down[j]) + (left[j] + right[j]));
//!     }
//! }
//!
//! fn main() -> Result<()> {
//!     fencepost::run(|world| {
//!         let block = Block::new(world, [32, 32])?.star(1)?;
//!         let mut u = world.window::<f64>(block.len())?;
//!         let mut next = world.window::<f64>(block.len())?;
//!         block.fill(&mut u, |[i, j]| (i * j) as f64);
//!         block.fill(&mut next, |[i, j]| (i * j) as f64);
//!         let mut exchange = exchange::prepare(world, &block)?;
//!         for _ in 0..10 {
//!             let running = exchange.begin(u)?;
//!             for row in running.inside(&block)? {
//!                 relax([row.up(), row.down(), row.left(), row.right()], row.of_mut(&mut next));
//!             }
//!             u = running.finish()?;
//!             for row in block.rows_rest(1) {
//!                 let around = [row.up(&u), row.down(&u), row.left(&u), row.right(&u)];
//!                 relax(around, row.of_mut(&mut next));
//!             }
//!             std::mem::swap(&mut u, &mut next);
//!         }
//!         let [i, j] = block.origin();
//!         assert_eq!(u[block.index([3, 3])], ((i + 3) * (j + 3)) as f64); // it was smooth
//!         Ok(())
//!     })
//! }
//! ```
//!
//! If the superstep puts values, or has tickets or a result, `begin` takes the arguments of the
//! function, and `finish` also returns the result of the function:
//! `let (u, ticket) = ask.begin(u, from)?.finish()?`.
//!
//! Between the two halves, a rank can read the elements that no call of the superstep writes, with
//! [`Running::kept`]. For other elements, this method returns an error that names the line of the
//! call that writes them.
//!
//! # Several steps to an exchange
//!
//! A block with a halo of `k` cells needs one exchange for `k` steps. [`Block::tiles`] visits the
//! rows of these steps band by band. It visits each row soon after the rows from which that row is
//! computed, so a grid larger than the caches is read from memory once for `k` steps. The example
//! computes the residual over each rank's own cells only, since another rank also computes the
//! cells of the halo:
//!
//! ```
//! use fencepost::prelude::*;
//!
//! #[superstep]
//! fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
//!     for n in block.neighbours() {
//!         u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
//!     }
//!     Ok(())
//! }
//!
//! fn main() -> Result<()> {
//!     fencepost::run(|world| {
//!         let block = Block::new(world, [256, 256])?.halo(4)?;
//!         let mut u = world.window::<f64>(block.len())?;
//!         let mut v = world.window::<f64>(block.len())?;
//!         // 0 at the edges, as in `v`
//!         block.fill(&mut u, |[i, j]| (i * (255 - i) * j * (255 - j)) as f64);
//!         let mut exchange = exchange::prepare(world, &block)?;
//!         let tiles = block.tiles(4)?;
//!         for _ in 0..5 {
//!             exchange.replay(&mut u)?;
//!             let mut residual = 0.0_f64;
//!             for row in tiles.rows_inside(1) {
//!                 let [now, next] = row.turn([&mut *u, &mut *v]);
//!                 let (up, down) = (row.up(now), row.down(now));
//!                 let (left, right) = (row.left(now), row.right(now));
//!                 for (j, mean) in row.of_mut(next).iter_mut().enumerate() {
//!                     *mean = 0.25 * ((up[j] + down[j]) + (left[j] + right[j]));
//!                 }
//!                 if row.step() + 1 == tiles.steps() {
//!                     let (old, new) = (row.of(now), row.of(next));
//!                     row.own().for_each(|j| residual = residual.max((new[j] - old[j]).abs()));
//!                 }
//!             }
//!             [u, v] = tiles.turn([u, v]);
//!             if world.allreduce_one(residual, Op::Max)? < 1e-3 {
//!                 break;
//!             }
//!         }
//!         Ok(())
//!     })
//! }
//! ```
//!
//! The order of visits depends on the bands and on the blocks. So the bits of a floating-point sum
//! over visits also depend on the bands and the blocks. The bits of a maximum do not.
//! [`Block::advise`] returns the number of steps and the bands that cost least with the links and
//! the caches of a [`Machine`]. Loops over rows contain no checks, so the compiler vectorizes them.
//! `RUSTFLAGS="-C target-cpu=native"` compiles for the vectors of the processor at hand; the crate
//! `multiversion` selects among several versions at run time.
//!
//! # The tour
//!
//! - **Enter a world**: [`run()`], [`collect`] if each rank returns a value, and [`ranks`]. A
//!   [`World`] creates windows, splits itself, and has the collectives ([`World::allreduce`],
//!   [`World::gather_block`], ..).
//! - **A window** derefs to a slice of its local part. [`Window::put`], [`Window::accumulate`],
//!   [`Window::get`] and [`Window::fetch`] determine what the next [`Window::fence`] does. Without
//!   an attribute on the function, these operations are scheduled at run time.
//! - **Messages** go from rank to rank ([`World::message`], [`World::recv`]). A [`Request`] is a
//!   send or a receive that was begun ([`Message::isend`], [`World::irecv`]), and a [`RequestSet`]
//!   completes several in any order.
//! - **A [`Datatype`]** selects elements. [`Block`] has the datatypes for blocks of a grid: halos,
//!   faces, edges and corners.
//! - **`#[superstep]`** ([`macro@superstep`]) makes a function compilable. `name::compile(ranks,
//!   |rank| ..)` needs no world. `name::prepare(world, ..)` and `name::load(world, plan, ..)`
//!   return a superstep that is replayed without counting, descriptions or planning. Several
//!   windows of one type are passed as a list: `fields: &mut [Window<f64>; 7]`.
//! - **A [`Mode`]** determines how bytes travel. The mode `auto` chooses by the [`Machine`] model.
//!   The result has the same bits in every mode.
//! - **An [`Error`]** has MPI's [`ErrorClass`], and states what was given, what is allowed, where
//!   it happened, and the [`State`] afterwards. A world or a window may have an [`ErrorHandler`],
//!   which receives the error first.
//!
//! # From MPI
//!
//! If you search these pages for a name of MPI, you find the equivalent. Operations of a window
//! differ from those of MPI in one respect. They take effect at the fence, in the order of ranks
//! and then of calls, so overlapping puts are not an error and have one result.
//!
#![doc = include_str!("mpi.md")]
//!
//! # Calls and states
//!
#![doc = include_str!("states.md")]
//!
//! # Classes of errors
//!
//! This table has every class, with some of the calls that return it. The documentation of a call
//! lists all the classes that it returns. The other classes of MPI are for mistakes that a program
//! cannot make here: a tag, a count and a lock type are never out of range (TAG, COUNT, LOCKTYPE),
//! a program does not choose the base address of a window (BASE), and a program cannot use a world
//! or a request that was freed (COMM, REQUEST).
//!
#![doc = include_str!("classes.md")]
//!
//! # What a check reports
//!
//! With [`Check`] (`FENCEPOST_CHECK`), a program is checked while it runs, and mistakes in its
//! communication are reported. These are the reports of five small programs, on two ranks.
//!
#![doc = include_str!("reports.md")]
//!
//! # Environment variables
//!
//! `fencepost env` lists the variables with their current values. A program reports a variable if
//! its name begins with `FENCEPOST_` and nothing reads it.
//!
#![doc = include_str!("variables.md")]
//!
//! # What is stable
//!
//! `src/surface.txt` lists each item that a program can reach, with its declaration. A change of
//! the list is a change of the interface. CI compares the list with the interface. Until 1.0 a
//! minor release (0.2) may change listed items, and `CHANGELOG.md` then mentions it; a patch
//! release (0.1.1) only adds items. The same rule holds for the meaning of an epoch ([its
//! definition](fencepost_planner)), for the bits of its results, and for the names and values of
//! the `FENCEPOST_` variables. A plan file names the version of its format. A release that cannot
//! read that version returns an error when it loads the file.
//!
//! Not stable, in any release: items that the documentation hides, the text of errors and reports
//! (an error's [`ErrorClass`] and [`State`] are stable), the schedule that is chosen and the order
//! in which it moves bytes, the crates on which this one depends, and the counts in [`transport`].
//!
//! # The map
//!
//! This package re-exports three others. `fencepost-macros` reads syntax and writes calls.
//! `fencepost-planner` is a pure function from patterns to a verified schedule. `fencepost-runtime`
//! has worlds, windows and the executor. It is built on `fencepost-transport` and `fencepost-job`,
//! which programs do not reach. `ARCHITECTURE.md` names the place where each rule is kept.
//!
//! [`Block`]: grid::Block
//! [`Block::advise`]: grid::Block::advise
//! [`Block::coords`]: grid::Block::coords
//! [`Block::dims`]: grid::Block::dims
//! [`Block::neighbours`]: grid::Block::neighbours
//! [`Block::new`]: grid::Block::new
//! [`Block::rows_rest`]: grid::Block::rows_rest
//! [`Block::tiles`]: grid::Block::tiles

extern crate self as fencepost;

#[doc(no_inline)]
pub use bytemuck;
pub use fencepost_macros::{Element, superstep};
pub use fencepost_planner::census::Census;
pub use fencepost_planner::conflicts::Conflict;
pub use fencepost_planner::datatype::Datatype;
pub use fencepost_planner::element::Op;
pub use fencepost_planner::ir::pattern::{Mode, Order};
pub use fencepost_planner::ir::schedule::Placement;
pub use fencepost_planner::units::{Bytes, Nanos};
pub use fencepost_planner::{Error, ErrorClass, Machine, Options, Result, State};
#[doc(hidden)]
pub use fencepost_runtime::{__private, EpochKind, Traffic};
pub use fencepost_runtime::{
    Access, Any, AnyWindow, Assertions, Check, Compiled, Completed, Element, ErrorHandler, Exposed, Get,
    Group, Hints, Lent, LocalPart, Lock, LockAll, LockType, LockWindow, Locked, Message, Outcome, Process,
    Put, Ranks, Refused, Request, RequestSet, Returns, Running, Section, SliceSource, Source, Sources, Stall,
    Status, Tags, Taken, TargetRegion, Tested, Ticket, TransportKind, ValueAt, Window, WindowSection,
    Windows, World, collect, launch, lends, process, ranks, run,
};

/// Registers a plan under a name, so that recipes can request it.
///
/// ```
/// use fencepost::prelude::*;
///
/// /// Sends the next rank a part of a window.
/// #[superstep]
/// fn pass_on(u: &mut Window<f64>, next: usize, count: usize) -> Result<()> {
///     u.put(0..count).to(next, count..2 * count)
/// }
///
/// fencepost::plan!(pass_on = |ask| {
///     let (ranks, count) = (ask.ranks(), ask.value("count", 64)?);
///     pass_on::compile(ranks, |rank| Ok(((rank + 1) % ranks, count)))
/// });
/// # fn main() {}
/// ```
///
/// Recipes refer to the plan by the name before the `=`, which need not be the name of the
/// superstep. The expression receives an [`Ask`](plans::Ask) and returns `Result<`[`Compiled`]`>`.
/// The expression runs only when the plan is requested: by the command `fencepost` (`plan`,
/// `predict`, `compare`), or by `fencepost_tool::plans::check` in a test. A recipe is a table of
/// the file `plans/plans.toml`:
///
/// ```toml
/// [pass_on-64]
/// plan = "pass_on"
/// ranks = 64
/// values.count = 1000
/// ```
///
/// Each recipe produces a plan file with the recipe's name, here `plans/pass_on-64.plan`, and a
/// file that describes the plan as text. In a world of 64 ranks, `pass_on::load(world, "plans",
/// ..)` reads the file `pass_on-64.plan`.
#[macro_export]
macro_rules! plan {
    ($name:ident = |$ask:ident| $compile:expr) => {
        $crate::__private::inventory::submit! {
            $crate::__private::Registered::new(
                stringify!($name),
                (file!(), line!()),
                |$ask: &$crate::plans::Ask| -> $crate::Result<$crate::Compiled> { $compile },
            )
        }
    };
}

/// Arrays that are spread over all ranks in a grid: blocks with halos, their rows, and several
/// steps of a kernel between two exchanges.
pub mod grid {
    pub use fencepost_planner::grid::{Advice, Block, Neighbour, Row, Tiles, Visit};
    pub use fencepost_runtime::KeptRow;
}

/// The values that [`plan!`](crate::plan) passes to the expression that compiles a plan.
pub mod plans {
    pub use fencepost_runtime::{Ask, PlanValue};
}

/// Explanations of how the operations of a superstep travel, and why. [`Compiled::explain`] and
/// `explain` of a prepared superstep return an explanation. An explanation prints as text. To show
/// it in another form, a program reads its values, epoch by epoch and rank by rank.
pub mod explain {
    #[doc(hidden)]
    pub use fencepost_planner::explain::{
        Cost, Costs, ExplainedPlan, Member, Route, Row, Sent, Staging, Terms,
    };
    pub use fencepost_runtime::explained::Explained;
    #[doc(hidden)]
    pub use fencepost_runtime::explained::{ExplainedEpoch, ExplainedShare};
}

/// Calls that borrow their buffers: see [`Window::epoch`], [`Window::epoch_between`] and
/// [`World::scope`].
pub mod scoped {
    pub use fencepost_runtime::Scope;
    pub use fencepost_runtime::scoped::{Destination, Epoch};
}

/// [`Snapshots`](snapshots::Snapshots), from which a program continues after a failure, and
/// [`Field`](snapshots::Field), the array of a block in one file in NumPy's format.
///
/// The module needs the feature `snapshots`, which is on by default.
#[cfg(feature = "snapshots")]
pub mod snapshots {
    pub use fencepost_snapshots::{Field, Items, Snapshots};
}

/// The parts of transports that a program may set and read: the simulated network, and counts of
/// what was sent.
pub mod transport {
    pub use fencepost_runtime::{Count, Meter, SimConfig};
    #[doc(hidden)]
    pub use fencepost_runtime::{Fault, FaultKind, Lose, Route};
}

/// The items that most programs use.
pub mod prelude {
    pub use crate::grid::Block;
    pub use crate::{
        Datatype, Element, Error, ErrorClass, LockType, LockWindow, Mode, Op, Result, Ticket, ValueAt,
        Window, World, superstep,
    };
}

#[cfg(doctest)]
mod refused;
