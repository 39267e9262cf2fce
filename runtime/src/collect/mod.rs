//! The calls that a rank has collected since the last fence. All of it concerns one rank, without
//! any protocol.

pub(crate) mod datatypes;
pub(crate) mod description;
pub(crate) mod fast_path;
pub(crate) mod filling;
pub(crate) mod lent;
pub(crate) mod limits;
pub(crate) mod log;
pub(crate) mod operands;
pub mod operation;
pub(crate) mod outbox;
pub(crate) mod pending;
pub(crate) mod region;
pub(crate) mod ticket;
pub(crate) mod visits;
