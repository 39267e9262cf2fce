//! [`Channels`]: a first in, first out channel of frames for each ordered pair of ranks and each
//! [`Port`].
//!
//! - A frame never waits behind an unread frame of another port: each port has its own queue and
//!   its own credit.
//! - Posting never blocks. A posted frame arrives without further calls of its sender. As long as
//!   the sender does not end, it may compute or wait in another world.
//! - Memory that a frame refers to may be read once the frame has arrived (W1), and belongs to its
//!   owner again once the reader has released the frame (W2, W4).
//! - Memory of a rank that other ranks may read must remain unchanged until those ranks have
//!   released it. This also holds after the rank has left.

use crate::record::FrameLog;
use crate::{Attendant, Bytes, Frame, Header, Lost, Memory, Meter, PairLines, Payload, Port, Until};
use std::ptr::NonNull;

/// A receiver reports released frames to their sender once it has released this many frames of that
/// sender on one port, or frames with [`UNREPORTED_BYTES`] bytes. The report is sent with whatever
/// the receiver sends or flushes next. So once that report has arrived,
/// [`released`](Channels::released) lags by fewer frames and fewer bytes than these limits.
pub const UNREPORTED: u64 = 8;

/// The number of bytes of released frames at which a receiver reports them; see [`UNREPORTED`].
pub const UNREPORTED_BYTES: u64 = 2 << 20;

/// The largest payload, in bytes, that [`post_copy`](Channels::post_copy) copies on every
/// transport.
pub const COPIED: usize = 24;

/// The use that a transport makes of this rank's memory for another rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lent {
    /// The transport uses no memory of this rank.
    Nothing,
    /// The transport will never give the memory back, because the other rank's process has ended.
    /// The transport has only read the memory, and the memory stays at its address.
    ForGood,
    /// The memory is being read or written.
    InUse,
}

/// A first in, first out channel of frames for each ordered pair of ranks and each port.
#[enum_dispatch::enum_dispatch]
pub trait Channels {
    /// Posts a frame on a port; never blocks.
    ///
    /// # Errors
    /// Fails if the world was ended, or if this rank or `to` has left it. In these cases the frame
    /// is not posted.
    ///
    /// # Safety
    /// The frame's payload is valid for reads. The payload is not copied if
    /// [`shares(to)`](crate::Topology::shares), or if the payload is in [`memory`](Self::memory) of
    /// this end and [`reaches(to)`](crate::Topology::reaches). In these cases the payload must stay
    /// valid and unchanged until [`released(to, port)`](Self::released) counts this frame, no
    /// matter what happens meanwhile.
    unsafe fn post(&mut self, to: usize, port: Port, frame: Frame) -> Result<(), Lost>;

    /// Posts a frame whose payload the reader needs only until it releases the frame, even if the
    /// reader could read the payload in place. Does the same as [`post`](Self::post), but a
    /// transport may copy the payload so that the reader fetches less. Every transport copies
    /// payloads of up to [`COPIED`] bytes.
    ///
    /// # Errors
    /// As for [`post`](Self::post).
    ///
    /// # Safety
    /// As for [`post`](Self::post), except that a payload of at most [`COPIED`] bytes need not stay
    /// valid.
    unsafe fn post_copy(&mut self, to: usize, port: Port, frame: Frame) -> Result<(), Lost> {
        // SAFETY: the caller makes the same promise.
        unsafe { self.post(to, port, frame) }
    }

    /// Sends posted frames, and the releases that are due to be reported, as far as possible
    /// without waiting. A transport may gather frames until the rank polls for something that has
    /// not arrived. A rank flushes before it computes, so that no other rank waits for the frames
    /// meanwhile.
    fn flush(&mut self) {}

    /// Returns the oldest frame from `from` on this port that this rank has not released, if it has
    /// arrived.
    ///
    /// # Errors
    /// Fails if no frame has arrived and none can arrive, because `from` has left or the world was
    /// ended.
    fn poll(&mut self, from: usize, port: Port) -> Result<Option<Frame>, Lost>;

    /// Looks for a frame from `from` on this port, and for nothing else, for about a microsecond at
    /// most. Does nothing unless each of the two ranks has a core and they reach each other's
    /// memory. The caller finds out with [`poll`](Self::poll) whether a frame has arrived.
    fn look_for_frame(&mut self, from: usize, port: Port) {
        let _ = (from, port);
    }

    /// Returns whether the transport may use memory of this rank for `peer` after a call has
    /// returned. If so, payloads that [`post_in_place`](Self::post_in_place) has posted may still
    /// be read, and buffers that [`cancel`](Self::cancel) has cancelled may still be written.
    fn lends_to(&self, peer: usize) -> bool {
        let _ = peer;
        false
    }

    /// Posts a frame as [`post`](Self::post) does, but a transport may still read the payload in
    /// its place after this call has returned.
    ///
    /// # Errors
    /// As for [`post`](Self::post).
    ///
    /// # Safety
    /// As for [`post`](Self::post). In addition, if [`lends_to(to)`](Self::lends_to), nobody writes
    /// the payload before [`lent(to)`](Self::lent) returns [`Lent::Nothing`], and until then the
    /// payload stays at its address.
    unsafe fn post_in_place(&mut self, to: usize, port: Port, frame: Frame) -> Result<(), Lost> {
        // SAFETY: the caller makes the same promise, or a stronger one.
        unsafe { self.post(to, port, frame) }
    }

    /// Returns how the transport still uses memory of this rank for `peer`. This covers payloads
    /// that were posted [in place](Self::post_in_place), and [cancelled](Self::cancel) buffers on
    /// [`Port::FENCE`].
    fn lent(&mut self, peer: usize) -> Lent {
        let _ = peer;
        Lent::Nothing
    }

    /// Pre-posts a receive buffer for one frame from `from` on this port. `ahead` is the number of
    /// earlier frames that this rank has not released. If the frame has this header and a payload
    /// as long as `to`, the payload may be written to `to` as it arrives, and [`poll`](Self::poll)
    /// then returns the frame with its payload in `to`. A transport may ignore the buffer. If it
    /// fills the buffer, it does so before the frame is polled.
    ///
    /// # Safety
    /// `to` is valid for reads and writes of initialised bytes until that frame is released, and
    /// nobody else accesses these bytes until the frame is polled. Both conditions end when the
    /// buffers of `from` on this port are [cancelled](Self::cancel), or when this end is dropped.
    /// On [`Port::FENCE`], both conditions hold at least as long as [`lent(from)`](Self::lent)
    /// reports that memory is in use.
    unsafe fn prepost(&mut self, from: usize, port: Port, ahead: u64, header: Header, to: *mut [u8]) {
        let _ = (from, port, ahead, header, to);
    }

    /// Returns the header and payload length of the next long frame from `from` on this port, so
    /// that a buffer can be [pre-posted](Self::prepost) for it. That frame is the first one that
    /// this rank has not released. Returns `None` unless the payload is long, a part of it has
    /// arrived, and no buffer was pre-posted for it. A transport may always return `None`.
    fn coming(&mut self, from: usize, port: Port) -> Option<(Header, usize)> {
        let _ = (from, port);
        None
    }

    /// Cancels all buffers that this rank pre-posted for frames from `from` on this port. The
    /// transport no longer accesses the buffers, and it copies a payload that has arrived in one of
    /// them. There is one exception if [`lends_to(from)`](Self::lends_to): a payload may be
    /// arriving in a buffer on [`Port::FENCE`] at this moment. This buffer is still written to
    /// until [`lent(from)`](Self::lent) reports that no memory is in use.
    fn cancel(&mut self, from: usize, port: Port) {
        let _ = (from, port);
    }

    /// Releases the frame that [`poll`](Self::poll) returned from `from` on this port. This rank no
    /// longer needs the payload.
    ///
    /// # Panics
    /// Panics if there is no such frame.
    fn release(&mut self, from: usize, port: Port);

    /// Releases the frame that [`poll`](Self::poll) returned from `from` on this port, like
    /// [`release`](Self::release), and returns its payload, which stays readable. Returns `None`,
    /// and does not release the frame, if the payload is not in memory of this end.
    fn take(&mut self, from: usize, port: Port) -> Option<Payload> {
        let _ = (from, port);
        None
    }

    /// Takes back the memory of a payload of `from` that was [taken](Self::take), to use it for
    /// further frames. A payload may also simply be dropped.
    fn recycle(&mut self, from: usize, payload: Payload) {
        drop((from, payload));
    }

    /// Returns how many of the frames that this rank posted to `to` on this port have been released
    /// there, in total. All of them count as released once `to` has left or has
    /// [closed](Self::close) the port.
    fn released(&mut self, to: usize, port: Port) -> u64;

    /// Returns the cache lines that belong to the queue of frames to `to` on this port. This rank
    /// writes the lines, and `to` reads them. Returns `None` if `to` is not reached, or if there is
    /// no room. The lines stay until this rank has closed the port or left. After this rank has
    /// written the lines, it [wakes](crate::Liveness::wake) `to`.
    fn lines(&mut self, to: usize, port: Port) -> Option<NonNull<PairLines>> {
        let _ = (to, port);
        None
    }

    /// Returns the cache lines that belong to the queue of frames from `from` to this rank on this
    /// port, if `from` has created them. The lines stay until this rank has closed the port or
    /// left.
    fn lines_of(&mut self, from: usize, port: Port) -> Option<NonNull<PairLines>> {
        let _ = (from, port);
        None
    }

    /// Closes a port other than [`Port::FENCE`] and [`Port::SERVICE`]: this rank neither posts nor
    /// polls on it again. Frames that have arrived on it are released, and frames that arrive later
    /// are dropped. Frames that this rank posted still arrive. The state of a port is kept until it
    /// is closed, so a rank closes the ports that it no longer needs.
    ///
    /// # Panics
    /// Panics if the port is [`Port::FENCE`] or [`Port::SERVICE`].
    fn close(&mut self, port: Port);

    /// Lets this attendant serve the frames of [`Port::SERVICE`] from now on, until this rank
    /// leaves. Called once for each world. Does nothing if all ranks are reached.
    ///
    /// # Panics
    /// Panics if the world already has an attendant.
    fn attend(&mut self, attendant: Box<dyn Attendant>) {
        drop(attendant); // no request is ever posted
    }

    /// Returns the allocator of memory that other ranks read in place.
    fn memory(&self) -> Memory {
        Memory::heap()
    }

    /// Keeps memory that this rank no longer needs, but that ranks of this world may still read up
    /// to the point that `until` describes. A later call, or the end of the world, frees the
    /// memory. The memory was allocated from [`memory`](Self::memory).
    fn keep(&mut self, memory: Vec<Bytes>, until: Until) {
        drop((memory, until)); // ranks without reach have copies, and the caller keeps lent memory
    }

    /// Returns `true` if, as far as this rank can know, all frames that `from` has posted so far on
    /// any port have arrived, and if this rank has released those of [`Port::FENCE`].
    fn drained(&mut self, from: usize) -> bool;

    /// Called when this rank has just read the present wait of `from`. Returns whether everything
    /// that `from` sent to this rank before that wait has arrived. If so, polling finds all of it.
    /// Returns `false` if this rank cannot know.
    fn nothing_in_flight(&mut self, from: usize) -> bool {
        let _ = from;
        false
    }

    /// Returns what this rank has sent so far.
    fn meter(&self) -> &Meter;

    /// Records the frames that this rank posts and releases from now on, as events in the ring of
    /// `log`.
    fn record(&mut self, log: FrameLog);
}
