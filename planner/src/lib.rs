#![doc = include_str!("../README.md")]

pub mod adaptive;
pub mod argument;
pub mod census;
pub mod check;
pub mod collect;
pub mod collective;
pub mod compile;
pub mod conflicts;
pub mod datatype;
pub mod element;
pub mod error;
pub mod explain;
pub mod grid;
pub mod ids;
pub mod intern;
pub mod ir;
pub mod kept;
pub mod machine;
pub mod options;
mod packets;
pub mod passes;
pub mod plan;
pub mod probes;
pub mod profile;
pub mod share;
pub mod simulate;
pub mod table;
pub mod text;
pub mod trace;
pub mod units;
mod varint;
pub mod verify;

pub use compile::compile;
pub use conflicts::conflicts;
#[doc(hidden)]
pub use error::FailedRank;
pub use error::{Error, ErrorClass, Result, State};
pub use explain::explain;
pub use machine::Machine;
pub use options::Options;
pub use verify::{Verified, VerifyError, verify};
