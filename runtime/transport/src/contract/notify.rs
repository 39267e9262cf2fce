//! [`Notify`]: the all-to-all exchange of notifications, in turn, by the whole world.
//!
//! A rank drafts a notification to every rank, itself included, publishes them together, and reads the notification of
//! every other rank.
//!
//! - A frame that a rank posts before it publishes has arrived at every rank that has read its notification of that
//!   exchange.
//! - Each draft exists twice: a rank may publish the next exchange while other ranks still read this one. It cannot run
//!   further ahead, since it must have read every other rank's notification of an exchange before it publishes the next
//!   (W5).
//! - Memory that a notification refers to may be read once the notification has arrived (W1), and belongs to its owner
//!   again once the reader has settled the exchange (W2, W4).

use crate::{Lost, Notification};

/// The all-to-all exchange of notifications.
#[enum_dispatch::enum_dispatch]
pub trait Notify {
    /// Returns the draft of this rank's notification to `to` for the next exchange. It holds what was last written to
    /// it: the caller writes every field.
    fn draft(&mut self, to: usize) -> &mut Notification;

    /// Sends all drafts, each with this word. Every word is valid, also the same one twice.
    ///
    /// # Errors
    /// The world was ended, or this rank left it, or was cut off.
    ///
    /// # Panics
    /// If this rank has not read the notification of every other rank of the previous exchange (W5).
    fn publish(&mut self, word: u64) -> Result<(), Lost>;

    /// Returns the notification of `from` of the exchange that this rank published last, once it has arrived. It may be
    /// read again until this rank publishes the next exchange. Before the first exchange there are no notifications.
    ///
    /// # Errors
    /// The notification has not arrived and cannot: `from` left, or the world was ended.
    fn read(&mut self, from: usize) -> Result<Option<&Notification>, Lost>;

    /// Returns what [`read`](Self::read) does; and where both ranks have a core and reach each other's memory, looks for it about a
    /// microsecond long before it returns that it has not arrived. Whether it still can is for `read` to tell.
    fn await_briefly(&mut self, from: usize) -> Option<&Notification> {
        self.read(from).ok().flatten()
    }

    /// The second half of the same exchange, where it needs one: reports to every rank that this rank has finished with
    /// their memory.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    fn settle(&mut self) -> Result<(), Lost>;

    /// Returns whether `from` has settled the exchange that this rank published last.
    ///
    /// # Errors
    /// It has not and cannot: `from` left, or the world was ended. A rank that left accesses nothing any more.
    fn settled(&mut self, from: usize) -> Result<bool, Lost>;
}
