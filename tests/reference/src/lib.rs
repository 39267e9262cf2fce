//! The simplest possible interpreter, which defines the meaning of an epoch. Everything else is
//! tested against this interpreter.
//!
//! The interpreter follows the numbered paragraphs of `planner/README.md`, one element at a time.
//! Numbers in parentheses refer to these paragraphs. The interpreter shares nothing with the passes
//! except the types of a [`Pattern`](fencepost_planner::ir::pattern::Pattern). Nothing here makes
//! the interpreter fast, and nothing should be added to make it faster, except in [`explains`] and
//! [`explains_messages`], which are searches. Each file holds one idea:
//!
//! - `world`: the windows, and whether operations fit them. `values`: one operator on one element.
//! - `epoch`: the epoch between two fences. `conflicts`: the conflicts in such an epoch. `calls`,
//!   `exchange`: programs of posts and starts.
//! - `locks`: programs of locks. `steps`: the steps of these programs and the order that they must
//!   keep. `explains`: whether some order of the steps gives the results of the programs.
//! - `stores`: the stores and loads that MPI does not define in an epoch between two fences.
//! - `unfenced`: conflicts in programs of posts and starts, and in programs of locks.
//! - `draw`: random values, worlds, and programs of posts and starts.
//! - `messages`: programs of messages and requests. `delivery`: the results that these programs can
//!   have, and the calls in which they can stop.

mod calls;
mod conflicts;
mod delivery;
pub mod draw;
mod epoch;
mod exchange;
mod explains;
mod locks;
mod messages;
mod steps;
mod stores;
mod unfenced;
mod values;
mod world;

pub use calls::{Call, Lent, Outcome};
pub use conflicts::{Conflicting, conflicts, refused};
pub use delivery::{explains_messages, stops};
pub use epoch::{Buffers, Difference, Epoch, allows, run};
pub use exchange::exchange;
pub use explains::{Unexplained, explains};
pub use locks::{Action, LockCall};
pub use messages::{Completed, Completion, Envelope, MessageCall, Standard};
pub use stores::{Undefined, undefined_loads, undefined_stores};
pub use unfenced::{Unfenced, exposure_conflicts, lock_conflicts};
pub use values::apply;
pub use world::World;
