//! [`Endpoint`]: an end of a world of any transport. An endpoint is an enum, so that code does not
//! need a type parameter for the transport.

use crate::record::FrameLog;
use crate::{
    Alarms, Attendant, Bytes, Cause, Channels, CreateJoin, Created, Frame, Header, Leave, Lent, Liveness,
    LocalEnd, Lost, Memory, Meter, Notification, Notify, Number, PairLines, Pause, Payload, Port, SimEnd,
    Topology, Until, deadlock,
};
#[cfg(not(loom))]
use crate::{HybridEnd, MpiEnd, ShmEnd, TcpEnd, mpi::OverMpi, tcp::Tcp};
use enum_dispatch::enum_dispatch;
use std::io;
use std::ptr::NonNull;

/// One rank's end of a world of any transport. A call costs a branch that always goes the same way.
#[allow(clippy::large_enum_variant, reason = "there is one for each world, and it is not moved")]
#[enum_dispatch(Topology, Notify, Channels, Liveness, CreateJoin)]
pub enum Endpoint {
    /// Threads that reach one another's memory.
    Local(LocalEnd),
    /// Processes that reach one another's memory.
    #[cfg(not(loom))]
    Shm(ShmEnd),
    /// Threads that only exchange messages.
    Sim(SimEnd),
    /// Ranks that exchange bytes over TCP.
    #[cfg(not(loom))]
    Tcp(TcpEnd),
    /// Ranks that exchange bytes over MPI.
    #[cfg(not(loom))]
    Mpi(MpiEnd),
    /// Ranks that share memory with the ranks of their host, and exchange bytes over TCP with the
    /// others.
    #[cfg(not(loom))]
    Hybrid(HybridEnd<Tcp>),
    /// Ranks that share memory with the ranks of their host, and exchange bytes over MPI with the
    /// others.
    #[cfg(not(loom))]
    HybridMpi(HybridEnd<OverMpi>),
}
