//! [`Liveness`]: how ranks wait, leave and fail, and how a world ends.
//!
//! - Whatever a rank sent before it left is still received; then every wait for more ends in [`Lost`], naming it.
//! - A rank that has left accesses nobody's memory any more.
//!
//! # How to wait
//!
//! The caller polls everything that it waits for; calls [`idle`](Liveness::idle) if that found nothing; polls again. It
//! must poll between any two calls of `idle` with the same [`Pause`]: that poll is what makes falling asleep safe.

use crate::{Alarms, Cause, Leave, Lost, Pause, deadlock};

/// How ranks wait, leave and fail, and how a world ends.
#[enum_dispatch::enum_dispatch]
pub trait Liveness {
    /// Returns what keeps `peer` from sending anything more to this rank, if something does; what `peer` sent before
    /// may still be unread.
    fn lost(&mut self, peer: usize) -> Option<Lost>;

    /// Returns the count of failures that concern this rank: whenever [`lost`](Self::lost) would
    /// return another rank's failure, or an end of the world, that it has not returned before, the
    /// count has changed. A rank that waits is woken then.
    fn alarms(&self) -> Alarms;

    /// One step of waiting after a poll that found nothing: spins, then yields, then sleeps in the kernel until
    /// something happens that may concern this rank (and at most a second, so that the caller can report a stall).
    fn idle(&mut self, pause: &mut Pause);

    /// Wakes `peer`, which reaches this rank's memory and may wait for what this rank has just stored there. Does nothing
    /// where it does not.
    fn wake(&mut self, peer: usize) {
        let _ = peer;
    }

    /// Has the [attendant](crate::Attendant) of `peer`, which this rank reaches, go on with what it keeps for ranks that do not
    /// reach it, whatever `peer` itself does. Does nothing where all ranks are reached, or none.
    fn nudge(&mut self, peer: usize) {
        let _ = peer;
    }

    /// Leaves the world for good: how, and why. Later calls return [`Lost`], or nothing. Dropping an end leaves as
    /// well, as a failure.
    fn leave(&mut self, how: Leave);

    /// Ends the world for all ranks; the first cause is the one that every rank sees, and keeps.
    fn end(&mut self, cause: Cause);

    /// Publishes which superstep this rank has entered, by its word, so that a peer waiting for another one can detect
    /// the mismatch. Wakes nobody: a sleeping rank sees it when it polls again, within a second.
    fn announce(&mut self, word: u64);

    /// Returns the word of the superstep that `peer` entered last; 0 before the first.
    fn announced(&self, peer: usize) -> u64;

    /// Returns the word of the superstep that `peer` entered last, if `peer` has left the world and
    /// that is known from `peer` itself; 0 where it has entered none.
    fn left_at(&self, peer: usize) -> Option<u64>;

    /// Declares that this rank begins, or has ceased, to access memory of other ranks. Returns whether it may begin:
    /// not once the world was ended.
    fn touching(&mut self, on: bool) -> bool;

    /// Returns whether `peer` may be accessing memory of other ranks. Once the world was ended and this is false, it
    /// stays false.
    fn is_touching(&self, peer: usize) -> bool;

    /// Returns the wait-for table of the job, where ranks are not threads that share one by other means. This end
    /// belongs to one of the worlds that all ranks of the job are in.
    #[doc(hidden)]
    fn waits(&self) -> Option<deadlock::Waits> {
        None
    }
}
