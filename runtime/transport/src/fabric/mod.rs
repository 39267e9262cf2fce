//! Ranks that exchange bytes: processes anywhere, or threads of one process in tests.
//!
//! A process has one [`Fabric`]: its connections to the other ranks, and what they carry. Every
//! world of the process is a channel of these connections, and a [`FabricEnd`] is one rank's end of
//! one world. A [`Carrier`](carrier::Carrier), which knows nothing of worlds, moves the bytes.
//!
//! - Nothing here blocks. Every poll takes in everything that has arrived from the polled rank.
//!   Small items are packed. Large payloads are sent from the sender's own memory.
//!   [`idle`](crate::Liveness::idle) waits for all ranks at once.
//! - A thread of the fabric serves while the rank computes, and only then ([`server`]).
//! - The thread that reads a request also answers it ([`requests`]).
//! - Each pair of ranks and each port has its own credit for frames, and a frame waits until there
//!   is enough credit ([`queue`]). Everything else overtakes waiting frames ([`channel`]).
//! - Releases and announcements piggyback on other items. A rank that sends nothing else still
//!   reports releases now and then ([`UNREPORTED`](crate::UNREPORTED)), so that no sender waits for
//!   its receiver to finish computing. A rank also reports its superstep to each rank that waits
//!   for it.
//! - Memory of large messages is kept for later messages. For each pair of ranks and direction,
//!   each end keeps at most 32 MiB, until the connection closes. A receiver that does not poll
//!   holds at most 16 MiB for each pair, and 4 MiB more for each port in use other than the port of
//!   fences.
//! - A rank that has waited for long asks the awaited rank which rank the awaited rank waits for.
//!   In this way ranks detect that they wait for one another ([`probes`]).
//! - A rank that leaves reports this in each world, and its fabric sends a goodbye at the end
//!   ([`ending`]). A connection that ends without a goodbye counts as a death. So does silence
//!   beyond a limit, since every rank sends heartbeats. If a launcher reports how each rank ends,
//!   two ranks that never had anything to send to each other do not connect just to report that
//!   they have finished.

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
    /// How long a rank is only suspected after its connection has ended without a goodbye.
    /// Meanwhile its launcher may report what became of the rank.
    pub obituary: Duration,
    /// How long this rank continues, or waits for the others at its end, after a rank has failed.
    /// After this time, this rank ends all ranks of the job. `None` is no limit.
    pub grace: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        let (beat, limit) = (Duration::from_secs(1), Duration::from_secs(10));
        Self { beat, limit, obituary: Duration::ZERO, grace: None }
    }
}
