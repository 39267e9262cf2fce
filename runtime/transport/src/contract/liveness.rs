//! [`Liveness`]: how ranks wait, leave and fail, and how a world ends.
//!
//! - Everything that a rank sent before it left is still received. After that, every wait for
//!   something more from that rank returns [`Lost`], which names the rank.
//! - A rank that has left no longer accesses the memory of any rank.
//!
//! # How to wait
//!
//! The caller polls everything that it waits for, calls [`idle`](Liveness::idle) if no poll found
//! anything, and polls again. The caller must poll between any two calls of `idle` with the same
//! [`Pause`], because a rank may fall asleep only if a poll has found nothing just before.

use crate::{Alarms, Cause, Leave, Lost, Pause, deadlock};

/// How ranks wait, leave and fail, and how a world ends.
#[enum_dispatch::enum_dispatch]
pub trait Liveness {
    /// Returns why `peer` can send nothing more to this rank, or `None` if it still can. Frames
    /// that `peer` sent before may still be unread.
    fn lost(&mut self, peer: usize) -> Option<Lost>;

    /// Returns the count of failures that concern this rank. The count changes whenever
    /// [`lost`](Self::lost) begins to return a further failure of another rank, or an end of the
    /// world. Each change wakes a waiting rank.
    fn alarms(&self) -> Alarms;

    /// Takes one step of waiting after a poll that found nothing. The first steps spin, later ones
    /// yield, and then the rank sleeps in the kernel until something happens that may concern it.
    /// The rank sleeps for a second at most, so that the caller can report a stall.
    fn idle(&mut self, pause: &mut Pause);

    /// Wakes `peer`, which may be waiting for a value that this rank has just stored in memory that
    /// both reach. Does nothing if `peer` does not reach this rank's memory.
    fn wake(&mut self, peer: usize) {
        let _ = peer;
    }

    /// Lets the [attendant](crate::Attendant) of `peer`, which this rank reaches, continue with the
    /// requests that the attendant keeps. These are requests of ranks that do not reach `peer`.
    /// Works no matter what `peer` itself does. Does nothing if all ranks are reached, or if none
    /// are.
    fn nudge(&mut self, peer: usize) {
        let _ = peer;
    }

    /// Leaves the world for good, for the reason `how`. Later calls return [`Lost`], or nothing. If
    /// an end is dropped without this call, the rank leaves with a failure.
    fn leave(&mut self, how: Leave);

    /// Ends the world for all ranks. Every rank sees the first cause, which never changes.
    fn end(&mut self, cause: Cause);

    /// Publishes the word of the superstep that this rank has entered, so that a peer waiting for
    /// another superstep can detect the mismatch. Wakes nobody: a sleeping rank sees the word when
    /// it polls again, within a second.
    fn announce(&mut self, word: u64);

    /// Returns the word of the superstep that `peer` entered last, or 0 before the first.
    fn announced(&self, peer: usize) -> u64;

    /// Returns the word of the superstep that `peer` entered last, or 0 if it has entered none.
    /// Returns `None` unless `peer` has left the world and has itself reported that it left.
    fn left_at(&self, peer: usize) -> Option<u64>;

    /// Declares that this rank begins to access memory of other ranks if `on` is set, and otherwise
    /// that it has stopped. Returns whether this rank may begin, which is `false` once the world
    /// was ended.
    fn touching(&mut self, on: bool) -> bool;

    /// Returns whether `peer` may be accessing memory of other ranks. Once the world was ended and
    /// this function has returned `false` for `peer`, it always returns `false`.
    fn is_touching(&self, peer: usize) -> bool;

    /// Returns the job's wait-for table, unless the ranks are threads that share a table in another
    /// way. The world of this end must have all ranks of the job.
    #[doc(hidden)]
    fn waits(&self) -> Option<deadlock::Waits> {
        None
    }
}
