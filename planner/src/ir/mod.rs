//! The stages through which a schedule is made. Each stage has a type in a file of its own. The
//! stages from `Transfers` to `Chunks` are or contain a [`Stage`](stage::Stage). The stages follow
//! each other in this order:
//!
//! [`Patterns`](pattern::Patterns), [`Transfers`](transfers::Transfers),
//! [`Messages`](messages::Messages), [`Routed`](routed::Routed), [`Demand`](demand::Demand),
//! [`Rounds`](rounds::Rounds), [`Chunks`](chunks::Chunks), [`Placed`](placed::Placed),
//! [`Schedule`](schedule::Schedule). [`calls`] names the kinds of calls that no schedule replaces.

pub mod calls;
pub mod chunks;
pub mod class_map;
pub mod demand;
pub mod messages;
pub mod pattern;
pub mod peers;
pub mod placed;
pub mod rounds;
pub mod routed;
pub mod schedule;
pub mod stage;
pub mod transfers;
