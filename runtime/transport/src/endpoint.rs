//! [`Endpoint`]: an end of a world of any transport, distinguished by a tag instead of a type.

use std::io;

#[cfg(not(loom))]
use crate::HybridEnd;
#[cfg(not(loom))]
use crate::ShmEnd;
#[cfg(not(loom))]
use crate::TcpEnd;
use crate::{
    Bytes, Cause, Channels, CreateJoin, Frame, Header, Leave, Liveness, LocalEnd, Lost, Memory, Meter,
    Notification, Notify, Number, Pause, SimEnd, Topology, Until,
};

/// One rank's end of a world of any transport. A call costs a branch that always goes the same way.
#[allow(clippy::large_enum_variant, reason = "there is one for each world, and it is not moved")]
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
    /// Ranks that share memory with those of their host, and exchange bytes over TCP with the others.
    #[cfg(not(loom))]
    Hybrid(HybridEnd),
}

macro_rules! each {
    ($end:expr, $name:ident => $call:expr) => {
        match $end {
            Endpoint::Local($name) => $call,
            #[cfg(not(loom))]
            Endpoint::Shm($name) => $call,
            Endpoint::Sim($name) => $call,
            #[cfg(not(loom))]
            Endpoint::Tcp($name) => $call,
            #[cfg(not(loom))]
            Endpoint::Hybrid($name) => $call,
        }
    };
}

impl Topology for Endpoint {
    #[inline]
    fn rank(&self) -> usize {
        each!(self, end => end.rank())
    }

    #[inline]
    fn size(&self) -> usize {
        each!(self, end => end.size())
    }

    #[inline]
    fn reaches(&self, peer: usize) -> bool {
        each!(self, end => end.reaches(peer))
    }

    #[inline]
    fn shares(&self, peer: usize) -> bool {
        each!(self, end => end.shares(peer))
    }

    fn host(&self, peer: usize) -> usize {
        each!(self, end => end.host(peer))
    }
}

impl Notify for Endpoint {
    #[inline]
    fn draft(&mut self, to: usize) -> &mut Notification {
        each!(self, end => end.draft(to))
    }

    #[inline]
    fn publish(&mut self, word: u64) -> Result<(), Lost> {
        each!(self, end => end.publish(word))
    }

    #[inline]
    fn read(&mut self, from: usize) -> Result<Option<&Notification>, Lost> {
        each!(self, end => end.read(from))
    }

    #[inline]
    fn settle(&mut self) -> Result<(), Lost> {
        each!(self, end => end.settle())
    }

    #[inline]
    fn settled(&mut self, from: usize) -> Result<bool, Lost> {
        each!(self, end => end.settled(from))
    }
}

impl Channels for Endpoint {
    #[inline]
    unsafe fn post(&mut self, to: usize, header: Header, payload: *const u8, len: usize) -> Result<(), Lost> {
        // SAFETY: the caller's promise is the same.
        each!(self, end => unsafe { end.post(to, header, payload, len) })
    }

    #[inline]
    fn poll(&mut self, from: usize) -> Result<Option<Frame>, Lost> {
        each!(self, end => end.poll(from))
    }

    #[inline]
    unsafe fn prepost(&mut self, from: usize, ahead: u64, header: Header, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise is the same.
        each!(self, end => unsafe { end.prepost(from, ahead, header, to, len) });
    }

    fn cancel(&mut self, from: usize) {
        each!(self, end => end.cancel(from));
    }

    #[inline]
    fn release(&mut self, from: usize) {
        each!(self, end => end.release(from))
    }

    #[inline]
    fn released(&mut self, to: usize) -> u64 {
        each!(self, end => end.released(to))
    }

    fn memory(&self) -> Memory {
        each!(self, end => end.memory())
    }

    fn keep(&mut self, memory: Vec<Bytes>, until: Until) {
        each!(self, end => end.keep(memory, until))
    }

    fn drained(&mut self, from: usize) -> bool {
        each!(self, end => end.drained(from))
    }

    fn nothing_in_flight(&mut self, from: usize) -> bool {
        each!(self, end => end.nothing_in_flight(from))
    }

    fn meter(&self) -> &Meter {
        each!(self, end => end.meter())
    }
}

impl Liveness for Endpoint {
    #[inline]
    fn lost(&mut self, peer: usize) -> Option<Lost> {
        each!(self, end => end.lost(peer))
    }

    #[inline]
    fn idle(&mut self, pause: &mut Pause) {
        each!(self, end => end.idle(pause))
    }

    fn leave(&mut self, how: Leave) {
        each!(self, end => end.leave(how))
    }

    fn end(&mut self, cause: Cause) {
        each!(self, end => end.end(cause))
    }

    #[inline]
    fn announce(&mut self, word: u64) {
        each!(self, end => end.announce(word))
    }

    fn announced(&self, peer: usize) -> u64 {
        each!(self, end => end.announced(peer))
    }

    #[inline]
    fn touching(&mut self, on: bool) -> bool {
        each!(self, end => end.touching(on))
    }

    fn is_touching(&self, peer: usize) -> bool {
        each!(self, end => end.is_touching(peer))
    }

    fn waits(&self) -> Option<crate::deadlock::Waits> {
        each!(self, end => end.waits())
    }
}

impl CreateJoin for Endpoint {
    fn create(&mut self, members: &[usize]) -> io::Result<Option<Number>> {
        each!(self, end => end.create(members))
    }

    fn join(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        each!(self, end => end.join(number, members, index))
    }
}
