//! Ranks that exchange bytes: processes anywhere, or threads of one process in tests.
//!
//! A process has one [`Fabric`]: its connections to the other ranks, and what they carry. Every
//! world of the process is a channel of these connections; a [`FabricEnd`] is one rank's end of one
//! world. What moves the bytes is a [`Carrier`](carrier::Carrier), which knows nothing of worlds.
//!
//! - Nothing here blocks. Every poll takes in what has arrived from the rank that it is for, small
//!   items are packed, large payloads are passed on from the sender's memory, and
//!   [`idle`](crate::Liveness::idle) waits for all ranks at once.
//! - A thread of the fabric serves while the rank computes, and only then ([`server`]).
//! - Requests are answered by the thread that reads them ([`requests`]).
//! - Frames are sent as far as there is credit, for each pair and port ([`queue`]); everything else
//!   overtakes them ([`channel`]).
//! - Releases and announcements piggyback on other items; a rank that sends nothing reports
//!   releases now and then ([`UNREPORTED`](crate::UNREPORTED)), so that no sender waits for work of
//!   its receiver, and answers a rank that waits for it in which superstep it is.
//! - Memory of large messages is kept for the next ones: for each pair of ranks at most 32 MiB at
//!   either end of each direction, until the connection closes. A receiver that does not poll holds
//!   16 MiB a pair at most, and 4 MiB more for each port that is in use besides that of fences.
//! - A rank that waits long asks the rank that it waits for; so ranks detect that they wait for one
//!   another ([`probes`]).
//! - A rank that leaves reports it in each world, and its fabric sends a goodbye at the end
//!   ([`ending`]). A connection that ends without one is a death; so is silence beyond a limit, as
//!   every rank sends heartbeats. Where a launcher reports how each rank ends, ranks that never had
//!   anything to say to each other do not connect to say that they have finished.

pub(crate) mod carrier;
mod channel;
pub(crate) mod core;
pub(crate) mod end;
mod ending;
mod failure;
#[doc(hidden)]
pub mod fuzz;
pub(crate) mod peer;
mod probes;
mod queue;
mod requests;
mod send;
mod server;
mod timers;
pub(crate) mod waker;

use std::time::Duration;

pub use end::FabricEnd;
pub use server::{Fabric, Reports};

/// The time limits of a fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// A rank that has sent nothing for this long sends a heartbeat.
    pub beat: Duration,
    /// A rank that was silent for this long is marked failed.
    pub limit: Duration,
    /// How long a rank that ended its connection without a goodbye is only suspected, until its
    /// launcher reports what became of it.
    pub obituary: Duration,
    /// How long this rank goes on, or waits for the others at its end, once one has failed, if that is limited: then it ends
    /// all of them.
    pub grace: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        let (beat, limit) = (Duration::from_secs(1), Duration::from_secs(10));
        Self { beat, limit, obituary: Duration::ZERO, grace: None }
    }
}
