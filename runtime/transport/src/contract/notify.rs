//! [`Notify`]: the all-to-all exchange of notifications between all ranks of a world.
//!
//! A rank drafts a notification to every rank, itself included, publishes them together, and reads
//! the notification of every other rank.
//!
//! - If a rank posts a frame before it publishes an exchange, the frame has arrived once its
//!   receiver has read the rank's notification of that exchange.
//! - Each draft exists twice, because a rank may publish the next exchange while other ranks still
//!   read the present one. A rank cannot run further ahead: before it publishes an exchange, it
//!   must have read every other rank's notification of the previous exchange (W5).
//! - Memory that a notification refers to may be read once the notification has arrived (W1), and
//!   belongs to its owner again once the reader has settled the exchange (W2, W4).

use crate::{Lost, Notification};

/// The all-to-all exchange of notifications.
#[enum_dispatch::enum_dispatch]
pub trait Notify {
    /// Returns the draft of this rank's notification to `to` for the next exchange. The draft still
    /// holds what was last written to it, so the caller writes every field.
    fn draft(&mut self, to: usize) -> &mut Notification;

    /// Sends all drafts, each with this word. Every word is valid, even the word of the previous
    /// exchange.
    ///
    /// # Errors
    /// Fails if the world was ended, or if this rank has left it or was cut off.
    ///
    /// # Panics
    /// Panics if this rank has not read every other rank's notification of the previous exchange
    /// (W5).
    fn publish(&mut self, word: u64) -> Result<(), Lost>;

    /// Returns the notification of `from` for the exchange that this rank published last, once it
    /// has arrived. The notification may be read again until this rank publishes the next exchange.
    /// Before the first exchange there are no notifications.
    ///
    /// # Errors
    /// Fails if the notification has not arrived and cannot arrive, because `from` has left or the
    /// world was ended.
    fn read(&mut self, from: usize) -> Result<Option<&Notification>, Lost>;

    /// Returns the same as [`read`](Self::read). If the notification has not arrived, first looks
    /// for it for about a microsecond, provided that each of the two ranks has a core and they
    /// reach each other's memory. The caller calls `read` to find out whether the notification can
    /// still arrive.
    fn await_briefly(&mut self, from: usize) -> Option<&Notification> {
        self.read(from).ok().flatten()
    }

    /// Reports to every rank that this rank no longer accesses that rank's memory. This is the
    /// second half of an exchange. Only some exchanges need a second half.
    ///
    /// # Errors
    /// As for [`publish`](Self::publish).
    fn settle(&mut self) -> Result<(), Lost>;

    /// Returns whether `from` has settled the exchange that this rank published last.
    ///
    /// # Errors
    /// Fails if `from` has not settled the exchange and cannot settle it, because `from` has left
    /// or the world was ended. A rank that has left accesses no memory any more.
    fn settled(&mut self, from: usize) -> Result<bool, Lost>;
}
