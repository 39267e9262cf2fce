//! The encoding of notifications and frames where they travel as bytes, and their decoding from pieces of any length.
//!
//! An item is a head of 48 bytes, in the byte order that the handshake compares: tag, kind, extra and port (`u32` each), channel, word, one further
//! number and length of the body (`u64` each), and then the body. A channel is one of the worlds that share a
//! connection. The decoder trusts nothing: it allocates only for what it has checked.

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
