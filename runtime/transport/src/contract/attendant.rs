//! [`Attendant`]: what serves the requests of other ranks, whatever its rank does.
//!
//! Requests are the frames of [`Port::SERVICE`]: nobody polls them. The attendant of a world has each as it is read, in the
//! order of its sender: by a call of the rank, or by a thread of the transport while the rank computes, or is in a call of
//! another world. Answers are frames on other ports, which the ranks that asked poll for.
//!
//! - An attendant is called under a lock of its rank's end. It never waits, and never calls an endpoint. If it shares a lock
//!   with its rank, the rank calls no endpoint while it holds that lock.
//! - Requests that arrive before a world has an attendant wait for it; their senders are granted no more credit, where there
//!   is credit.
//! - From when its rank has left, an attendant is not called any more: it is dropped.
//! - Where memory is reached there are no requests: the rank that would ask does everything itself. What it has done there
//!   may let the attendant go on with what it has kept for others: then that rank [nudges](crate::Liveness::nudge) it.

use crate::{Header, Port};

/// Serves the frames of [`Port::SERVICE`] of one world.
pub trait Attendant: Send {
    /// Serves a request of `from`, whose bytes no rank has checked. They are aligned to 16.
    ///
    /// An attendant that panics ends the world: its rank is the cause.
    fn attend(&mut self, from: usize, header: Header, payload: &[u8], answers: &mut dyn Answers);

    /// A rank that reaches this rank's memory has [nudged](crate::Liveness::nudge) the attendant: requests that were kept may go on.
    fn nudged(&mut self, answers: &mut dyn Answers) {
        let _ = answers;
    }
}

/// Where an attendant posts.
pub trait Answers {
    /// Posts a frame to `to`, a copy of these bytes: in order with what this rank posts to it on this port. An answer to a
    /// rank that is lost is dropped. Answers are not [metered](crate::Meter).
    fn post(&mut self, to: usize, port: Port, header: Header, bytes: &[u8]);

    /// Ends the world because of `from`, which has sent a request that no rank sends, for this
    /// reason, which does not name it. Nobody can know where that rank waits for an answer.
    fn refuse(&mut self, from: usize, what: &str);

    /// Wakes `rank`, which may wait for what the attendant has just stored: this rank, or one that reaches its memory. Does
    /// nothing for another one.
    fn wake(&mut self, rank: usize);
}

/// Why the world ends in which an attendant has panicked.
pub(crate) const PANICKED: &str = "its attendant panicked while it served another rank";
