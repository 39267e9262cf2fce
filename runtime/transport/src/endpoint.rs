//! [`Endpoint`]: whichever transport a world has, known by a tag instead of a type.

use std::io;

#[cfg(not(loom))]
use crate::MixedEnd;
#[cfg(not(loom))]
use crate::ShmEnd;
#[cfg(not(loom))]
use crate::TcpEnd;
use crate::{
    Bytes, Cause, Frame, Header, Leave, Letter, LocalEnd, Lost, Memory, Meter, Number, Pause, SimEnd,
    Transport, Until,
};

/// One rank's end of a world of any transport. A call costs a branch that is always the same.
#[allow(clippy::large_enum_variant, reason = "one of them a world, and it stays where it is")]
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
    Mixed(MixedEnd),
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
            Endpoint::Mixed($name) => $call,
        }
    };
}

impl Transport for Endpoint {
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

    fn found(&mut self, members: &[usize]) -> io::Result<Option<Number>> {
        each!(self, end => end.found(members))
    }

    fn enter(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        each!(self, end => end.enter(number, members, index))
    }

    fn memory(&self) -> Memory {
        each!(self, end => end.memory())
    }

    fn keep(&mut self, memory: Vec<Bytes>, until: Until) {
        each!(self, end => end.keep(memory, until))
    }

    #[inline]
    fn letter(&mut self, to: usize) -> &mut Letter {
        each!(self, end => end.letter(to))
    }

    #[inline]
    fn publish(&mut self, word: u64) -> Result<(), Lost> {
        each!(self, end => end.publish(word))
    }

    #[inline]
    fn read(&mut self, from: usize) -> Result<Option<&Letter>, Lost> {
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
    unsafe fn offer(&mut self, from: usize, ahead: u64, header: Header, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise is the same.
        each!(self, end => unsafe { end.offer(from, ahead, header, to, len) });
    }

    fn withdraw(&mut self, from: usize) {
        each!(self, end => end.withdraw(from));
    }

    #[inline]
    fn release(&mut self, from: usize) {
        each!(self, end => end.release(from))
    }

    #[inline]
    fn released(&mut self, to: usize) -> u64 {
        each!(self, end => end.released(to))
    }

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

    fn drained(&mut self, from: usize) -> bool {
        each!(self, end => end.drained(from))
    }

    fn quiet(&mut self, from: usize) -> bool {
        each!(self, end => end.quiet(from))
    }

    fn waits(&self) -> Option<crate::deadlock::Waits> {
        each!(self, end => end.waits())
    }

    #[inline]
    fn touching(&mut self, on: bool) -> bool {
        each!(self, end => end.touching(on))
    }

    fn is_touching(&self, peer: usize) -> bool {
        each!(self, end => end.is_touching(peer))
    }

    fn meter(&self) -> &Meter {
        each!(self, end => end.meter())
    }
}
