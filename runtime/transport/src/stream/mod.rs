//! How letters and frames are written where they travel as bytes, and read back from pieces of any length.
//!
//! An item is a head of 48 bytes, little endian: tag, kind, extra and nothing (`u32` each), channel, word, one number
//! more and length of the body (`u64` each), and then the body. A channel is one world among those that share a
//! connection. The decoder believes nothing: what it has not checked it does not allocate for.

mod body;
mod codec;
mod decoder;
#[cfg(test)]
mod tests;

pub(crate) use body::{Body, Place};
pub(crate) use codec::{HEAD, Item, PROBE, Pen};
#[cfg(any(feature = "testing", fuzzing))]
pub use decoder::decode;
pub(crate) use decoder::{Decoder, Intake};
