//! One rank's end of a world whose ranks reach one another's memory, for any memory backend.
//!
//! Notifications are cells, and frames are descriptors of memory. The reader reads both in place.

use std::io;
use std::ptr::NonNull;

use crate::sync::Arc;

use crate::deadlock::Waits;
use crate::meter::Meter;
use crate::record::{Counts, FrameLog};
use crate::shared::members::{FailedRanks, Membership};
use crate::shared::notify::{NotificationBoard, NotificationTables};
use crate::shared::queue::{Inboxes, Receivers, SHORT, Senders, inboxes};
use crate::shared::slice::{KeepAlive, Placement};
use crate::shared::waker::{Pause, Wakers};
use crate::{
    Alarms, Bytes, Cause, Channels, CreateJoin, Created, Done, Endpoint, Frame, Leave, Liveness, Loss, Lost,
    Memory, Notification, Notify, Number, PairLines, Port, Topology, Until,
};

/// Why no rank posts to [`Port::SERVICE`] here.
const REACHED: &str =
    "a request to a rank whose memory is reached: the rank that asks does everything itself";

/// The memory that a world is built on.
pub trait Backend {
    /// Whether all ranks are threads of one process.
    const SHARES: bool;

    /// Returns the allocator of rings.
    fn placement(&mut self) -> &mut impl Placement;

    /// Returns an address at which the receiver may read the `len` bytes of frame `number`. `to` is
    /// the receiver and the port. The receiver has released the frames before frame `released`.
    ///
    /// # Errors
    /// Fails if there is no room.
    ///
    /// # Safety
    /// As for [`Channels::post`].
    unsafe fn make_readable(
        &mut self,
        to: (usize, Port),
        number: u64,
        released: u64,
        payload: *const u8,
        len: usize,
    ) -> io::Result<*const u8>;

    /// Frees the copies that [`make_readable`](Self::make_readable) has made for released frames.
    /// Calls `released` with the rank, the port and the number of each copied frame, and frees the
    /// copy if `released` returns `true`.
    fn free_copies(&mut self, released: impl FnMut(usize, Port, u64) -> bool) {
        let _ = released;
    }

    /// See [`Channels::memory`].
    fn memory(&self) -> Memory;

    /// Keeps memory until `done` returns `true`. See [`Channels::keep`].
    fn keep(&mut self, memory: Vec<Bytes>, done: Done);

    /// Called when the end is dropped. Keeps this memory, and all that was kept so far, until no
    /// rank of this world can read it any more.
    fn retain_after_drop(&mut self, membership: &Membership, kept: Vec<KeepAlive>);

    /// See [`Liveness::waits`].
    fn waits(&self) -> Option<Waits> {
        None
    }

    /// See [`CreateJoin::create`].
    fn create(&mut self, members: &[usize]) -> io::Result<Created>;

    /// See [`CreateJoin::join`].
    fn join(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint>;
}

/// The tables that all ranks of one world share. They take a few cache lines for each rank.
/// Everything that only two ranks share is in memory of one of the two, and is allocated when they
/// first communicate.
#[derive(Clone)]
pub(crate) struct WorldTables {
    notifications: NotificationTables,
    inboxes: Inboxes,
    pub(crate) membership: Membership,
}

impl WorldTables {
    pub(crate) fn place(
        size: usize,
        dead: Option<FailedRanks>,
        placement: &mut impl Placement,
    ) -> io::Result<Self> {
        Ok(Self {
            notifications: NotificationTables::place(size, placement)?,
            inboxes: inboxes(size, placement)?,
            membership: Membership::place(size, dead, placement)?,
        })
    }
}

/// One rank's end of a world whose ranks reach one another's memory.
pub struct SharedEnd<G: Backend> {
    rank: usize,
    /// The number of this rank in the causes that it reports.
    called: usize,
    board: NotificationBoard,
    senders: Senders,
    receivers: Receivers,
    wakers: Wakers,
    membership: Membership,
    counts: Counts,
    /// Memory with payloads that the sender no longer needs, but that the receiver may not have
    /// released. Each entry has the receiver, the port, the number of the last frame with a payload
    /// in that memory, and the memory.
    retained: Vec<(usize, Port, u64, Vec<Bytes>)>,
    backend: G,
}

impl<G: Backend> SharedEnd<G> {
    /// Creates the end of `rank`. A rank has one end in each world.
    pub(crate) fn new(rank: usize, size: usize, tables: &WorldTables, wakers: Wakers, backend: G) -> Self {
        Self {
            rank,
            called: rank,
            board: NotificationBoard::new(rank, size, tables.notifications.clone()),
            senders: Senders::new(rank, tables.inboxes.clone()),
            receivers: Receivers::new(rank, tables.inboxes.clone()),
            wakers,
            membership: tables.membership.clone(),
            counts: Counts::default(),
            retained: Vec::new(),
            backend,
        }
    }

    /// Ends the world because there is no room for something that this rank sends.
    #[cold]
    fn no_room(&mut self, error: &io::Error) -> Lost {
        let rank = self.called;
        let what = format!("rank {rank}: {error}");
        self.end(Cause { rank, what: what.clone() });
        self.membership.lost(self.rank).unwrap_or(Lost { rank, how: Loss::Ended(what) })
    }

    /// Sets the number by which causes name this rank, if this world is a part of another world.
    #[cfg(not(loom))]
    pub(crate) fn called(mut self, rank: usize) -> Self {
        self.called = rank;
        self
    }

    /// Returns whether the world was ended.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn ended(&self) -> bool {
        self.membership.ended()
    }

    /// Returns whether this rank sleeps in the next step of this wait, unless another rank wakes it
    /// before.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn sleeps_next(&self, pause: &Pause) -> bool {
        self.wakers.sleeps_next(self.rank, pause)
    }

    /// Returns the function that wakes a rank. Any thread may call the function, after the thread
    /// has stored something that the rank may wait for.
    #[cfg(not(loom))]
    pub(crate) fn waker(&self) -> impl Fn(usize) + Send + use<G> {
        let wakers = self.wakers.clone();
        move |rank| wakers.wake([rank])
    }

    /// Returns an error if this rank may not send to `to`.
    #[inline]
    fn may_send(&self, to: usize) -> Result<(), Lost> {
        let membership = &self.membership;
        if !membership.ended() && !membership.gone(self.rank) && !membership.gone(to) {
            return Ok(());
        }
        membership.lost(self.rank).or_else(|| membership.lost(to)).map_or(Ok(()), Err)
    }

    /// Puts a frame into the queue to `to`, and its payload where `to` can read it.
    #[inline]
    fn send(&mut self, to: usize, port: Port, mut frame: Frame) -> io::Result<()> {
        if !G::SHARES && frame.len > 0 {
            let (posted, released) = self.senders.counts(to, port);
            // SAFETY: the caller of `post` promised the same.
            frame.payload = unsafe {
                self.backend.make_readable((to, port), posted, released, frame.payload, frame.len)
            }?;
        }
        let placement = self.backend.placement();
        self.senders.open(to, port, placement)?.post(frame, placement)
    }

    /// Puts a frame into the queue to `to`, and its payload into the frame's slot.
    ///
    /// # Safety
    /// As for [`Channels::post_copy`].
    #[inline]
    unsafe fn send_copy(&mut self, to: usize, port: Port, frame: Frame) -> io::Result<()> {
        let placement = self.backend.placement();
        // SAFETY: the caller makes the same promise.
        unsafe { self.senders.open(to, port, placement)?.post_copy(frame, placement) }
    }

    /// Handles a poll that found nothing from `from`. Returns `None` if more can arrive. Otherwise
    /// polls once more through `again` before it returns the loss.
    #[inline]
    fn missing<T>(
        &mut self,
        from: usize,
        again: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Result<Option<T>, Lost> {
        match self.membership.lost(from) {
            None => Ok(None),
            // Everything that `from` sent before it left is visible now, even if the first poll did
            // not find it.
            Some(lost) => again(self).map(Some).ok_or(lost),
        }
    }
}

impl<G: Backend> Topology for SharedEnd<G> {
    #[inline]
    fn rank(&self) -> usize {
        self.rank
    }

    #[inline]
    fn size(&self) -> usize {
        self.senders.size()
    }

    #[inline]
    fn reaches(&self, _peer: usize) -> bool {
        true
    }

    #[inline]
    fn shares(&self, _peer: usize) -> bool {
        G::SHARES
    }
}

impl<G: Backend> Notify for SharedEnd<G> {
    #[inline]
    fn draft(&mut self, to: usize) -> &mut Notification {
        self.board.draft(to)
    }

    #[inline(always)]
    fn publish(&mut self, word: u64) -> Result<(), Lost> {
        if let Some(lost) = self.membership.lost(self.rank) {
            return Err(lost);
        }
        self.board.publish(word, self.backend.placement()).map_err(|error| self.no_room(&error))?;
        self.counts.meter.exchanges += 1;
        self.wakers.wake_others(self.rank);
        Ok(())
    }

    #[inline]
    fn read(&mut self, from: usize) -> Result<Option<&Notification>, Lost> {
        if !self.board.arrived(from)
            && self.missing(from, |end| end.board.arrived(from).then_some(()))?.is_none()
        {
            return Ok(None);
        }
        Ok(self.board.read(from))
    }

    #[inline(always)]
    fn await_briefly(&mut self, from: usize) -> Option<&Notification> {
        self.board.await_briefly(from, self.wakers.backoff())
    }

    #[inline]
    fn settle(&mut self) -> Result<(), Lost> {
        self.may_send(self.rank)?;
        self.board.settle();
        self.counts.meter.settles += 1;
        self.wakers.wake_others(self.rank);
        Ok(())
    }

    #[inline]
    fn settled(&mut self, from: usize) -> Result<bool, Lost> {
        if self.board.settled(from) {
            return Ok(true);
        }
        let settled = self.missing(from, |end| end.board.settled(from).then_some(()))?;
        Ok(settled.is_some())
    }
}

impl<G: Backend> Channels for SharedEnd<G> {
    #[inline]
    unsafe fn post(&mut self, to: usize, port: Port, frame: Frame) -> Result<(), Lost> {
        debug_assert!(port != Port::SERVICE, "{REACHED}");
        self.may_send(to)?;
        let before = self.counts.before_post();
        self.send(to, port, frame).map_err(|error| self.no_room(&error))?;
        self.counts.posted(before, to, port, &frame);
        self.wakers.wake([to]);
        Ok(())
    }

    #[inline]
    unsafe fn post_copy(&mut self, to: usize, port: Port, frame: Frame) -> Result<(), Lost> {
        if frame.len > SHORT {
            // SAFETY: the caller makes the same promise.
            return unsafe { self.post(to, port, frame) };
        }
        debug_assert!(port != Port::SERVICE, "{REACHED}");
        self.may_send(to)?;
        let before = self.counts.before_post();
        // SAFETY: the caller's promise.
        unsafe { self.send_copy(to, port, frame) }.map_err(|error| self.no_room(&error))?;
        self.counts.posted(before, to, port, &frame);
        self.wakers.wake([to]);
        Ok(())
    }

    #[inline]
    fn poll(&mut self, from: usize, port: Port) -> Result<Option<Frame>, Lost> {
        match self.receivers.peek(from, port) {
            Some(frame) => Ok(Some(frame)),
            None => self.missing(from, |end| end.receivers.peek(from, port)),
        }
    }

    #[inline]
    fn look_for_frame(&mut self, from: usize, port: Port) {
        let Self { receivers, wakers, .. } = self;
        receivers.look_out(from, port, wakers.backoff());
    }

    #[inline]
    fn release(&mut self, from: usize, port: Port) {
        assert!(
            self.receivers.release(from, port),
            "release without a polled frame: rank {from} has no open frame"
        );
        self.counts.released(from, port);
        self.wakers.wake([from]);
    }

    #[inline]
    fn released(&mut self, to: usize, port: Port) -> u64 {
        // A rank that has left reads nothing any more.
        let (posted, released) = self.senders.counts(to, port);
        if released < posted && self.membership.gone(to) { posted } else { released }
    }

    fn lines(&mut self, to: usize, port: Port) -> Option<NonNull<PairLines>> {
        self.senders.lines(to, port, self.backend.placement()).ok()
    }

    fn lines_of(&mut self, from: usize, port: Port) -> Option<NonNull<PairLines>> {
        self.receivers.lines(from, port)
    }

    fn close(&mut self, port: Port) {
        self.counts.closed(port);
        assert!(port > Port::SERVICE, "only ports of windows are closed");
        self.receivers.close(port);
        let Self { senders, backend, .. } = self;
        backend.free_copies(|to, port, frame| senders.is_released(to, port, frame));
        senders.close(port);
        self.wakers.wake_others(self.rank); // a rank may wait for a release
    }

    fn memory(&self) -> Memory {
        self.backend.memory()
    }

    fn keep(&mut self, memory: Vec<Bytes>, until: Until) {
        match until {
            Until::Done(done) => self.backend.keep(memory, done),
            Until::Released { to, port, frame } => self.retained.push((to, port, frame, memory)),
        }
        let Self { retained, senders, membership, .. } = self;
        retained
            .retain(|(to, port, frame, _)| !senders.is_released(*to, *port, *frame) && !membership.gone(*to));
    }

    fn drained(&mut self, _: usize) -> bool {
        true // a posted frame is visible at once
    }

    fn nothing_in_flight(&mut self, _: usize) -> bool {
        true // everything that is sent is visible at once
    }

    fn meter(&self) -> &Meter {
        &self.counts.meter
    }

    fn record(&mut self, log: FrameLog) {
        self.counts.record(log);
    }
}

impl<G: Backend> Liveness for SharedEnd<G> {
    fn lost(&mut self, peer: usize) -> Option<Lost> {
        self.membership.lost(peer)
    }

    fn alarms(&self) -> Alarms {
        self.membership.alarms().clone()
    }

    #[inline]
    fn idle(&mut self, pause: &mut Pause) {
        self.wakers.wait_step(self.rank, pause);
    }

    #[inline]
    fn wake(&mut self, peer: usize) {
        self.wakers.wake([peer]);
    }

    fn leave(&mut self, how: Leave) {
        if self.membership.mark_gone(self.rank, Loss::Left(how)) {
            self.wakers.wake_others(self.rank);
        }
    }

    fn end(&mut self, cause: Cause) {
        self.membership.end(cause);
        self.wakers.wake_others(self.rank);
    }

    #[inline]
    fn announce(&mut self, word: u64) {
        self.membership.announce(self.rank, word);
    }

    fn announced(&self, peer: usize) -> u64 {
        self.membership.announced(peer)
    }

    fn left_at(&self, peer: usize) -> Option<u64> {
        self.membership.gone(peer).then(|| self.membership.announced(peer))
    }

    #[inline]
    fn touching(&mut self, on: bool) -> bool {
        let goes_on = self.membership.touch(self.rank, on);
        if !goes_on || !on && self.membership.ended() {
            self.wakers.wake_others(self.rank); // the rank that ended the world may wait for that
        }
        goes_on
    }

    fn is_touching(&self, peer: usize) -> bool {
        self.membership.touches(peer)
    }

    fn waits(&self) -> Option<Waits> {
        self.backend.waits()
    }
}

impl<G: Backend> CreateJoin for SharedEnd<G> {
    fn create(&mut self, members: &[usize]) -> io::Result<Created> {
        self.backend.create(members)
    }

    fn join(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        self.backend.join(number, members, index)
    }
}

impl<G: Backend> Drop for SharedEnd<G> {
    fn drop(&mut self) {
        self.leave(crate::dropped());
        let retained = self.retained.drain(..).map(|(.., memory)| Arc::new(memory) as KeepAlive);
        let kept = self.senders.take_kept().chain(self.board.take_kept()).chain(retained).collect();
        self.membership.detach(self.rank);
        self.backend.retain_after_drop(&self.membership, kept);
    }
}
