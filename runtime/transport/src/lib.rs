//! The communication between ranks: the contract that every protocol of the runtime uses, and the
//! transports that implement this contract.
//!
//! Ranks communicate in two ways. *Notifications* are an all-to-all exchange, one for each fence of
//! the whole world: a rank drafts a notification to every rank (itself included), publishes them
//! together, and reads the notifications of the others. *Frames* travel first in, first out, for
//! each ordered pair of ranks and each [`Port`]. Posting, polling and waiting are separate: only
//! [`Liveness::idle`] ever waits, so the waiting caller decides what it polls meanwhile. Frames of
//! [`Port::SERVICE`] are requests, which an [`Attendant`] serves whatever its rank is doing. Two
//! ranks that reach each other's memory may also have [lines](PairLines). One of the two ranks
//! writes into these lines instead of posting a short frame.
//!
//! Each part of the contract is a trait: [`Topology`], [`Notify`], [`Channels`], [`Liveness`],
//! [`CreateJoin`] and [`Attendant`]. The rules of each part are at the top of its file.

#![cfg_attr(
    loom,
    expect(clippy::arc_with_non_send_sync, reason = "loom's cells are not Sync: loom checks instead")
)]

#[cfg(not(target_os = "linux"))]
compile_error!("Fencepost supports Linux only: build it for a Linux target");

#[cfg(not(loom))]
pub mod auth;
mod budget;
pub mod bytes;
pub mod clock;
mod contract;
mod cores;
#[cfg_attr(loom, allow(dead_code, reason = "no model uses the wait-for table"))]
pub mod deadlock;
mod endpoint;
#[cfg(loom)]
#[doc(hidden)]
pub mod explore;
#[cfg(not(loom))]
mod fabric;
#[cfg(not(loom))]
mod hybrid;
mod large_pages;
mod local;
mod memory;
mod meter;
#[cfg(all(loom, test))]
#[path = "../tests/inside/models/mod.rs"]
mod models;
#[cfg(not(loom))]
pub mod mpi;
#[cfg_attr(loom, allow(dead_code, reason = "no model closes ports of messages"))]
mod ports;
mod record;
mod shared;
#[cfg(not(loom))]
mod shm;
mod sim;
#[cfg_attr(loom, allow(dead_code, unused_imports, reason = "some items are sent over sockets only"))]
mod stream;
mod sync;
mod system;
#[cfg(not(loom))]
mod tcp;
mod watch;
mod zeros;

use std::fmt;

pub use contract::{
    Answers, Attendant, COPIED, Channels, CreateJoin, Created, Lent, Liveness, Notify, Topology, UNREPORTED,
    UNREPORTED_BYTES,
};
pub use cores::set_cores;
pub use endpoint::Endpoint;
#[cfg(not(loom))]
pub use fabric::Limits;
#[doc(hidden)]
#[cfg(not(loom))]
pub use fabric::fuzz;
#[cfg(not(loom))]
use fabric::{Fabric, FabricEnd};
#[cfg(not(loom))]
pub use hybrid::{HybridEnd, hybrid};
pub use local::{LocalEnd, local};
pub use memory::{Bytes, Done, Memory, Until};
pub use meter::{Count, Meter};
#[cfg(not(loom))]
pub use mpi::{MpiEnd, MpiFabric, MpiReports};
pub use record::{FrameLog, Ring, head};
pub use shared::fair::{FairLock, Hold, Next, Position};
pub use shared::members::Alarms;
pub use shared::pair::{PairLines, RECORDS};
pub use shared::waker::Pause;
#[cfg(not(loom))]
pub use shm::{Segment, ShmEnd, shm};
#[cfg(feature = "testing")]
pub use sim::config::{Altered, InFlight, Tamper, TamperFn};
pub use sim::config::{Lose, SimConfig};
pub use sim::fault::{Fault, FaultKind};
pub use sim::{SimEnd, sim};
#[cfg(any(feature = "testing", fuzzing))]
#[doc(hidden)]
pub use stream::decode;
#[cfg(not(loom))]
pub use system::call_failed;
#[cfg(not(loom))]
pub use tcp::{Route, Settings, TcpEnd, TcpFabric, TcpReports, listen, tcp, tcp_by, tcp_with};
pub use watch::Watched;

/// One record: a one-element operation in wire form.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Record {
    /// What the operation does, its target, and the line that called it.
    pub head: u64,
    /// The operand's bits.
    pub value: u64,
}

/// The report of one rank to another at a fence of the whole world. Together with the exchange's
/// number, it fills one cache line.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Notification {
    /// A hash of the epoch's number, superstep and windows, written by [`Notify::publish`].
    pub word: u64,
    /// Further facts about the fence, one bit each.
    pub flags: u32,
    /// The number of records.
    pub count: u32,
    /// The address of the items that `count` counts, if the reader reaches the sender's memory;
    /// otherwise 0.
    pub address: usize,
    /// The first records. If `count` is 0, any bytes may arrive here.
    pub inline: [Record; 2],
}

/// A payload that was [taken](Channels::take) out of its frame.
#[derive(Debug)]
pub struct Payload(pub(crate) stream::Body);

impl Payload {
    /// Returns a payload of these bytes, in memory of its own.
    pub fn copy_of(bytes: &[u8]) -> Self {
        Self(stream::Body::of(bytes, stream::Body::default()))
    }

    /// Returns the payload's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// One of the channels between two ranks. Frames of different ports are not ordered, and do not
/// wait for each other. A port exists from its first frame on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Port(pub u32);

impl Port {
    /// The port of calls that all ranks make: epochs, schedules, and the setup of windows and
    /// worlds.
    pub const FENCE: Self = Self(0);

    /// The port of requests, which the world's [`Attendant`] serves.
    pub const SERVICE: Self = Self(1);

    /// The port of messages between two ranks.
    pub const MESSAGES: Self = Self(2);

    /// The port of elements of messages that their receivers have requested.
    pub const ELEMENTS: Self = Self(3);

    /// The port of the records of a run, which ranks exchange before and after the run.
    pub const RECORDS: Self = Self(4);
}

/// The fixed part of a frame, which comes before its payload.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Header {
    /// The epoch's number (high half) and half of a hash of superstep, schedule and windows. Every
    /// waiting rank compares this word (W1).
    pub word: u64,
    /// The frame's kind. Transports use it for counting only.
    pub kind: u32,
    /// One more number, for the protocol. Compiled supersteps use it for the other half of the
    /// hash.
    pub extra: u32,
}

/// A frame that is posted or has arrived. The payload of a frame that has arrived is readable until
/// the frame is released, and no longer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The frame's header.
    pub header: Header,
    /// The payload's first byte. If the receiver does not reach the sender's memory, the payload is
    /// aligned to 16 bytes, or is in the buffer that was [pre-posted](Channels::prepost).
    pub payload: *const u8,
    /// The payload's length in bytes.
    pub len: usize,
}

impl Frame {
    /// Returns a frame with these bytes as its payload.
    #[inline]
    pub fn of(header: Header, bytes: &[u8]) -> Self {
        Self { header, payload: bytes.as_ptr(), len: bytes.len() }
    }

    /// Returns a frame without a payload.
    #[inline]
    pub fn bare(header: Header) -> Self {
        Self::of(header, &[])
    }

    /// Returns the payload.
    ///
    /// # Safety
    /// Unless it is empty, the payload is readable, and nobody changes it, for as long as the slice
    /// is used.
    #[inline]
    pub unsafe fn bytes<'b>(&self) -> &'b [u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.payload, self.len) }
    }
}

/// The identity of a world that was created, for the ranks that join it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Number {
    /// The world's number, assigned by its first member.
    pub world: u64,
    /// The number of the part of the world on one [`host`](Topology::host), assigned by the first
    /// member on that host.
    pub part: u64,
}

/// How a rank leaves its world.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Leave {
    /// The rank's closure returned a value.
    Finished,
    /// The rank's closure returned this error.
    Failed(String),
    /// The rank panicked with this message.
    Panicked(String),
}

/// Why the world ends, and which rank caused it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause {
    /// The rank that caused the end.
    pub rank: usize,
    /// What happened, as a sentence that names that rank.
    pub what: String,
}

/// Why nothing more arrives from a rank, and which rank caused this.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// The rank that caused the loss.
    pub rank: usize,
    /// What became of that rank.
    pub how: Loss,
}

/// What became of a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The rank left.
    Left(Leave),
    /// The connection to the rank was cut.
    Cut,
    /// The rank died without leaving; its watcher reports this.
    Died(String),
    /// The world was ended because of the rank, for this reason.
    Ended(String),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.rank;
        match &self.how {
            Loss::Left(Leave::Finished) => write!(f, "rank {rank} has finished and left the world"),
            Loss::Left(Leave::Failed(why)) => write!(f, "rank {rank} left the world with an error: {why}"),
            Loss::Left(Leave::Panicked(why)) => write!(f, "rank {rank} panicked: {why}"),
            Loss::Died(how) => write!(f, "rank {rank} died: {how}"),
            Loss::Cut => write!(f, "rank {rank} was cut off"),
            // The reason already names the rank.
            Loss::Ended(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Lost {}

/// Returns how an end leaves its world if it is dropped before it has left.
fn dropped() -> Leave {
    if std::thread::panicking() {
        Leave::Panicked("its thread was unwound".into())
    } else {
        Leave::Failed("its end of the world was dropped".into())
    }
}
