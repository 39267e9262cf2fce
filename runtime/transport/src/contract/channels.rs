//! [`Channels`]: a first in, first out channel of frames for each ordered pair of ranks and each [`Port`].
//!
//! - Nothing waits behind what is not read on another port: each has a queue of its own, and credit.
//! - Posting never blocks. A posted frame arrives without further calls of its sender: the sender may compute, or wait
//!   in another world, until it ends.
//! - Memory that a frame refers to may be read once the frame has arrived (W1), and belongs to its owner again once the
//!   reader has released the frame (W2, W4).
//! - Memory of a rank that others may read remains unchanged until they have released it: leaving lifts no obligation.

use crate::{Attendant, Bytes, Frame, Header, Lost, Memory, Meter, PairLines, Payload, Port, Until};
use std::ptr::NonNull;

/// A receiver that has released this many frames of a sender on a port, or frames of [this many bytes](UNREPORTED_BYTES), reports
/// them with what it sends or flushes next. So [`released`](Channels::released) lacks fewer frames, and fewer bytes, once
/// that has arrived.
pub const UNREPORTED: u64 = 8;

/// See [`UNREPORTED`].
pub const UNREPORTED_BYTES: u64 = 2 << 20;

/// A payload of at most this number of bytes is copied by [`post_copy`](Channels::post_copy), by every transport.
pub const COPIED: usize = 24;

/// Memory of this rank that its transport uses for another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lent {
    /// There is none.
    Nothing,
    /// It was not given back, and never is, because that rank's process has ended: it was only read, for that rank, and
    /// stays where it is.
    ForGood,
    /// It is being read or written.
    InUse,
}

/// A first in, first out channel of frames for each ordered pair of ranks and each port.
#[enum_dispatch::enum_dispatch]
pub trait Channels {
    /// Posts a frame on a port; never blocks.
    ///
    /// # Errors
    /// The world was ended, or this rank or `to` left it: the frame was not posted.
    ///
    /// # Safety
    /// `payload` is valid for reads of `len` bytes. Where [`shares(to)`](crate::Topology::shares), and where it is in
    /// [`memory`](Self::memory) of this end and [`reaches(to)`](crate::Topology::reaches), it is not copied, and must
    /// stay valid and unchanged until [`released(to, port)`](Self::released) counts this frame, whatever happens meanwhile.
    unsafe fn post(
        &mut self,
        to: usize,
        port: Port,
        header: Header,
        payload: *const u8,
        len: usize,
    ) -> Result<(), Lost>;

    /// [`post`](Self::post), for a reader that needs the payload only until it releases the frame, also where it could be
    /// read in place: a transport may copy it, so that the reader fetches less, and does so up to [`COPIED`] bytes.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    ///
    /// # Safety
    /// As [`post`](Self::post); a payload of at most [`COPIED`] bytes need not stay.
    unsafe fn post_copy(
        &mut self,
        to: usize,
        port: Port,
        header: Header,
        payload: *const u8,
        len: usize,
    ) -> Result<(), Lost> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.post(to, port, header, payload, len) }
    }

    /// Sends what was posted, and the releases that are to be reported, as far as that is possible without waiting. A
    /// transport may gather frames until the rank polls for something that has not arrived; a rank flushes before it
    /// computes, so that no other rank waits for its work.
    fn flush(&mut self) {}

    /// Returns the oldest frame from `from` on this port that this rank has not released, if it has arrived.
    ///
    /// # Errors
    /// There is none, and none can arrive: `from` left, or the world was ended.
    fn poll(&mut self, from: usize, port: Port) -> Result<Option<Frame>, Lost>;

    /// Looks for a frame from `from` on this port, and for nothing else, about a microsecond long at most, where both ranks have
    /// a core and reach each other's memory; else not at all. Whether one has arrived is for [`poll`](Self::poll) to tell.
    fn look_for_frame(&mut self, from: usize, port: Port) {
        let _ = (from, port);
    }

    /// Returns whether [`post_in_place`](Self::post_in_place) may leave payloads for `peer` where they are, or
    /// [`cancel`](Self::cancel) buffers for its payloads that are still written to.
    fn lends_to(&self, peer: usize) -> bool {
        let _ = peer;
        false
    }

    /// [`post`](Self::post), of a payload that a transport may send from where it is, after this has returned.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    ///
    /// # Safety
    /// As [`post`](Self::post); and where [`lends_to(to)`](Self::lends_to), nobody writes the payload before
    /// [`lent(to)`](Self::lent) says that nothing is lent to that rank, and it stays where it is as long as that says.
    unsafe fn post_in_place(
        &mut self,
        to: usize,
        port: Port,
        header: Header,
        payload: *const u8,
        len: usize,
    ) -> Result<(), Lost> {
        // SAFETY: the caller's promise is the same, or more.
        unsafe { self.post(to, port, header, payload, len) }
    }

    /// Returns what the transport still reads or writes for `peer`: payloads that were posted
    /// [in place](Self::post_in_place), and buffers on [`Port::FENCE`] that were [cancelled](Self::cancel).
    fn lent(&mut self, peer: usize) -> Lent {
        let _ = peer;
        Lent::Nothing
    }

    /// Pre-posts a receive buffer: the payload of the frame from `from` on this port that follows `ahead` others which this rank has
    /// not released may be written to `to` as it arrives, if the frame has this header and is `len` bytes long;
    /// [`poll`](Self::poll) then returns it there. A transport may ignore the buffer: it has filled it before the frame
    /// is polled, or never will.
    ///
    /// # Safety
    /// `to` is valid for reads and writes of `len` initialised bytes until that frame is released, and nobody else
    /// accesses them until the frame is polled; or until the buffers of `from` on this port are [cancelled](Self::cancel),
    /// or this end is dropped. On [`Port::FENCE`] they are valid, and nobody else accesses them, as long as
    /// [`lent(from)`](Self::lent) says that something is in use.
    unsafe fn prepost(
        &mut self,
        from: usize,
        port: Port,
        ahead: u64,
        header: Header,
        to: *mut u8,
        len: usize,
    ) {
        let _ = (from, port, ahead, header, to, len);
    }

    /// Returns the header of the frame from `from` on this port that follows those which this rank has released, and the length of
    /// its payload, if it is long, a part of it has arrived, and no buffer was [pre-posted](Self::prepost) for it: one may be now.
    /// A transport may return `None` always.
    fn coming(&mut self, from: usize, port: Port) -> Option<(Header, usize)> {
        let _ = (from, port);
        None
    }

    /// Cancels all buffers that this rank pre-posted for frames from `from` on this port: they are not accessed any more, and
    /// a payload that has arrived in one is copied. But a buffer on [`Port::FENCE`] to which a payload is just being received
    /// is still written to, where [`lends_to(from)`](Self::lends_to), until [`lent(from)`](Self::lent) says otherwise.
    fn cancel(&mut self, from: usize, port: Port) {
        let _ = (from, port);
    }

    /// Releases the frame that [`poll`](Self::poll) returned from `from` on this port: this rank has finished with its payload.
    ///
    /// # Panics
    /// If there is no such frame.
    fn release(&mut self, from: usize, port: Port);

    /// Releases the frame that [`poll`](Self::poll) returned from `from` on this port, like [`release`](Self::release), and returns its
    /// payload, which stays readable. `None`, and the frame is not released, where the payload is not in memory of this end.
    fn take(&mut self, from: usize, port: Port) -> Option<Payload> {
        let _ = (from, port);
        None
    }

    /// Takes the memory of a payload of `from` that was [taken](Self::take), for further frames. A payload may as well be dropped.
    fn recycle(&mut self, from: usize, payload: Payload) {
        drop((from, payload));
    }

    /// Returns how many of the frames that this rank posted to `to` on this port have been released there, in total; all
    /// of them, once `to` has left or has [closed](Self::close) the port.
    fn released(&mut self, to: usize, port: Port) -> u64;

    /// Returns the lines that go with the queue of frames to `to` on this port, which this rank writes and `to` reads; `None`
    /// where `to` is not reached, or there is no room. They stay until this rank has closed the port or left. It
    /// [wakes](crate::Liveness::wake) `to` after it has written them.
    fn lines(&mut self, to: usize, port: Port) -> Option<NonNull<PairLines>> {
        let _ = (to, port);
        None
    }

    /// Returns the lines that `from` has made for this rank with its queue on this port, if it has. They stay until this rank
    /// has closed the port or left.
    fn lines_of(&mut self, from: usize, port: Port) -> Option<NonNull<PairLines>> {
        let _ = (from, port);
        None
    }

    /// Closes a port that is neither [`Port::FENCE`] nor [`Port::SERVICE`]: this rank neither posts nor polls on it again. Frames on it that have
    /// arrived are released, and those that arrive later are dropped; those that this rank posted still arrive. A rank
    /// closes its ports when it needs them no more: what it knows of a port is kept until then.
    ///
    /// # Panics
    /// If the port is one of these.
    fn close(&mut self, port: Port);

    /// Has this attendant serve the frames of [`Port::SERVICE`] from now on, until this rank leaves. Called once for each
    /// world. Does nothing where all ranks are reached.
    ///
    /// # Panics
    /// If the world has an attendant.
    fn attend(&mut self, attendant: Box<dyn Attendant>) {
        drop(attendant); // no request is ever posted
    }

    /// Returns the allocator of memory that other ranks are to read in place.
    fn memory(&self) -> Memory {
        Memory::heap()
    }

    /// Takes memory that this rank needs no more, but that ranks of this world may still read `until` then: a later
    /// call frees it, or the end of the world. It was allocated from [`memory`](Self::memory).
    fn keep(&mut self, memory: Vec<Bytes>, until: Until) {
        drop((memory, until)); // a rank that does not reach it has a copy, and the caller keeps what is lent
    }

    /// Returns whether all frames that `from` has posted so far have arrived, on all ports, and whether this rank has
    /// released those of [`Port::FENCE`], as far as it can tell.
    fn drained(&mut self, from: usize) -> bool;

    /// Returns whether nothing is in flight that `from` had sent to this rank before it began the wait which this rank
    /// has just read that it is in: polling finds all of it. False where this rank cannot tell.
    fn nothing_in_flight(&mut self, from: usize) -> bool {
        let _ = from;
        false
    }

    /// Returns what this rank has sent so far.
    fn meter(&self) -> &Meter;
}
