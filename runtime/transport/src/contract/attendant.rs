//! [`Attendant`]: serves the requests of other ranks, no matter what its own rank does.
//!
//! Requests are the frames of [`Port::SERVICE`], which nobody polls. The attendant of a world
//! receives each frame when the frame is read. The frames of one sender reach the attendant in the
//! order in which they were posted. A call of the rank may read a frame. While the rank computes or
//! is in a call of another world, a thread of the transport may read the frame. Answers are frames
//! on other ports, which the requesting ranks poll.
//!
//! - An attendant is called under a lock of its rank's end. It never waits, and never calls an
//!   endpoint. If it shares a lock with its rank, the rank calls no endpoint while the rank holds
//!   that lock.
//! - Requests that arrive before a world has an attendant wait until the world has one. On
//!   transports with credit, their senders get no more credit meanwhile.
//! - Once its rank has left, an attendant is dropped and no longer called.
//! - A rank that reaches the memory of a peer sends no requests to that peer, because it does
//!   everything itself in that memory. An access to that memory may allow the peer's attendant to
//!   continue with requests that it has kept, for example if a lock is released. In that case the
//!   rank [nudges](crate::Liveness::nudge) the attendant.

use crate::{Header, Port};

/// A server of the frames of [`Port::SERVICE`] of one world.
pub trait Attendant: Send {
    /// Serves a request of `from`. The bytes of `payload` are aligned to 16, and no rank has
    /// checked them.
    ///
    /// An attendant that panics ends the world, with its rank as the cause.
    fn attend(&mut self, from: usize, header: Header, payload: &[u8], answers: &mut dyn Answers);

    /// Called after a rank that reaches this rank's memory has [nudged](crate::Liveness::nudge) the
    /// attendant: requests that the attendant has kept may now continue.
    fn nudged(&mut self, answers: &mut dyn Answers) {
        let _ = answers;
    }
}

/// The side of a transport that posts an attendant's answers.
pub trait Answers {
    /// Posts a frame with a copy of these bytes to `to`, in order with the other frames that this
    /// rank posts to `to` on this port. An answer to a rank that is lost is dropped. Answers are
    /// not [metered](crate::Meter).
    fn post(&mut self, to: usize, port: Port, header: Header, bytes: &[u8]);

    /// Ends the world because `from` has sent a request that no correct rank sends. `what` is the
    /// reason, without the rank's name. The world must end because nobody can know in which call
    /// that rank waits for an answer.
    fn refuse(&mut self, from: usize, what: &str);

    /// Wakes `rank`, which may be waiting for what the attendant has just stored. Does nothing
    /// unless `rank` is this rank, or a rank that reaches this rank's memory.
    fn wake(&mut self, rank: usize);
}

/// The reason for the end of a world whose attendant has panicked.
pub(crate) const PANICKED: &str = "its attendant panicked while it served another rank";
