//! The encoding of notifications and frames that travel as bytes, and their decoding from pieces of
//! any length.
//!
//! An item is a head of 48 bytes and then a body. The head is in the byte order that the handshake
//! compares. Its fields are `tag`, `kind`, `extra` and `port` (`u32` each), then `channel`, `word`,
//! `more` and the length of the body (`u64` each). The channel is the number of one of the worlds
//! that share a connection. The decoder does not trust its input, and allocates only for lengths
//! that it has checked.

mod body;
mod codec;
mod decoder;
#[cfg(test)]
mod tests;

pub(crate) use body::{Body, ReceiveBuffer};
#[cfg(test)]
pub(crate) use codec::ABOUT;
pub(crate) use codec::{CLOSED, HEAD, Item, ItemWriter, KEPT, PROBE};
#[cfg(any(feature = "testing", fuzzing))]
pub use decoder::decode;
pub(crate) use decoder::{Decoder, Intake};
