//! One rank's end of a world whose ranks reach one another's memory, whatever that memory stands on.
//!
//! Letters are cells that the reader looks at in place, frames are descriptors of memory that the reader looks at in place.

use std::io;

use crate::sync::Arc;

use crate::deadlock::Waits;
use crate::meter::Meter;
use crate::shared::members::{Dead, Roll};
use crate::shared::notify::{Desk, Matrix};
use crate::shared::queue::{Queues, Receiver, Sender, queues};
use crate::shared::slice::{Kept, Places};
use crate::shared::waker::{Bells, Pause};
use crate::{
    Bytes, Cause, Done, Endpoint, Frame, Header, Leave, Letter, Loss, Lost, Memory, Number, Transport, Until,
};

/// What the memory of a world stands on.
pub trait Ground {
    /// Whether all ranks are threads of one process.
    const SHARES: bool;

    /// Where rings go.
    fn places(&mut self) -> &mut impl Places;

    /// Where others may read `len` bytes that are to be frame `number` to `to`; the frames before `released` were released.
    ///
    /// # Errors
    /// There is no room.
    ///
    /// # Safety
    /// As [`Transport::post`].
    unsafe fn carry(
        &mut self,
        to: usize,
        number: u64,
        released: u64,
        payload: *const u8,
        len: usize,
    ) -> io::Result<*const u8>;

    /// See [`Transport::memory`].
    fn memory(&self) -> Memory;

    /// Keep memory until `done`; see [`Transport::keep`].
    fn keep(&mut self, memory: Vec<Bytes>, done: Done);

    /// The end is dropped: keep this, and all that was kept so far, until nobody of this world may read it any more.
    fn leave_behind(&mut self, roll: &Roll, kept: Vec<Kept>);

    /// See [`Transport::waits`].
    fn waits(&self) -> Option<Waits> {
        None
    }

    /// See [`Transport::found`].
    fn found(&mut self, members: &[usize]) -> io::Result<Option<Number>>;

    /// See [`Transport::enter`].
    fn enter(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint>;
}

/// What the ranks of one world share.
#[derive(Clone)]
pub(crate) struct Common {
    matrix: Matrix,
    queues: Queues,
    pub(crate) roll: Roll,
}

impl Common {
    pub(crate) fn place(size: usize, dead: Option<Dead>, places: &mut impl Places) -> io::Result<Self> {
        Ok(Self {
            matrix: Matrix::place(size, 2, places)?,
            queues: queues(size, places)?,
            roll: Roll::place(size, dead, places)?,
        })
    }
}

/// One rank's end of a world whose ranks reach one another's memory.
pub struct SharedEnd<G: Ground> {
    rank: usize,
    /// This rank, as the causes that it gives name it.
    called: usize,
    desk: Desk,
    /// To each rank.
    senders: Vec<Sender>,
    /// From each rank.
    receivers: Vec<Receiver>,
    bells: Bells,
    roll: Roll,
    meter: Meter,
    /// Payloads of frames that some rank may not have released, which nobody else here needs any more: the rank, its last frame.
    lent: Vec<(usize, u64, Vec<Bytes>)>,
    ground: G,
}

impl<G: Ground> SharedEnd<G> {
    /// The end of `rank`, which has only one.
    pub(crate) fn new(rank: usize, size: usize, common: &Common, bells: Bells, ground: G) -> Self {
        let queues = || common.queues.clone();
        Self {
            rank,
            called: rank,
            desk: Desk::new(rank, size, common.matrix.clone()),
            senders: (0..size).map(|to| Sender::new(queues(), rank * size + to)).collect(),
            receivers: (0..size).map(|from| Receiver::new(queues(), from * size + rank)).collect(),
            bells,
            roll: common.roll.clone(),
            meter: Meter::default(),
            lent: Vec::new(),
            ground,
        }
    }

    /// There is no room for what I would send: the world ends.
    #[cold]
    fn no_room(&mut self, error: &io::Error) -> Lost {
        let rank = self.called;
        self.end(Cause { rank, what: error.to_string() });
        self.roll.lost(self.rank).unwrap_or(Lost { rank, how: Loss::Ended(error.to_string()) })
    }

    /// Name this rank so in causes: where this world is a part of another.
    #[cfg(not(loom))]
    pub(crate) fn called(mut self, rank: usize) -> Self {
        self.called = rank;
        self
    }

    /// Whether the world was ended.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn ended(&self) -> bool {
        self.roll.ended()
    }

    /// Whether the next step of this wait sleeps, unless somebody rings before.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn sleeps_next(&self, pause: &Pause) -> bool {
        self.bells.sleeps_next(self.rank, pause)
    }

    /// What wakes this rank, called by any thread after it stored what the rank may wait for.
    #[cfg(not(loom))]
    pub(crate) fn waker(&self) -> Box<dyn Fn() + Send> {
        let (bells, rank) = (self.bells.clone(), self.rank);
        Box::new(move || bells.ring([rank]))
    }

    /// Whether I may send to `to`.
    #[inline]
    fn may_send(&self, to: usize) -> Result<(), Lost> {
        let roll = &self.roll;
        match roll.lost(self.rank).or_else(|| roll.lost(to)) {
            Some(lost) => Err(lost),
            None => Ok(()),
        }
    }

    /// What a fruitless look for something of `from` means; `again` looks again.
    #[inline]
    fn missing<T>(
        &mut self,
        from: usize,
        again: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Result<Option<T>, Lost> {
        match self.roll.lost(from) {
            None => Ok(None),
            // What it sent before can be seen now, if it could not before.
            Some(lost) => again(self).map(Some).ok_or(lost),
        }
    }
}

impl<G: Ground> Transport for SharedEnd<G> {
    #[inline]
    fn rank(&self) -> usize {
        self.rank
    }

    #[inline]
    fn size(&self) -> usize {
        self.senders.len()
    }

    #[inline]
    fn reaches(&self, _peer: usize) -> bool {
        true
    }

    #[inline]
    fn shares(&self, _peer: usize) -> bool {
        G::SHARES
    }

    fn found(&mut self, members: &[usize]) -> io::Result<Option<Number>> {
        self.ground.found(members)
    }

    fn enter(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        self.ground.enter(number, members, index)
    }

    fn memory(&self) -> Memory {
        self.ground.memory()
    }

    fn keep(&mut self, memory: Vec<Bytes>, until: Until) {
        let mut lent = std::mem::take(&mut self.lent);
        match until {
            Until::Done(done) => self.ground.keep(memory, done),
            Until::Released { to, frame } => lent.push((to, frame, memory)),
        }
        lent.retain(|(to, frame, _)| self.released(*to) <= *frame);
        self.lent = lent;
    }

    #[inline]
    fn letter(&mut self, to: usize) -> &mut Letter {
        self.desk.draft(to)
    }

    #[inline]
    fn publish(&mut self, word: u64) -> Result<(), Lost> {
        self.may_send(self.rank)?;
        self.desk.publish(word);
        self.meter.exchanges += 1;
        self.bells.ring_others(self.rank);
        Ok(())
    }

    #[inline]
    fn read(&mut self, from: usize) -> Result<Option<&Letter>, Lost> {
        if !self.desk.arrived(from)
            && self.missing(from, |end| end.desk.arrived(from).then_some(()))?.is_none()
        {
            return Ok(None);
        }
        Ok(self.desk.read(from))
    }

    #[inline]
    fn settle(&mut self) -> Result<(), Lost> {
        self.may_send(self.rank)?;
        self.desk.settle();
        self.meter.settles += 1;
        self.bells.ring_others(self.rank);
        Ok(())
    }

    #[inline]
    fn settled(&mut self, from: usize) -> Result<bool, Lost> {
        if self.desk.settled(from) {
            return Ok(true);
        }
        let settled = self.missing(from, |end| end.desk.settled(from).then_some(()))?;
        Ok(settled.is_some())
    }

    #[inline]
    unsafe fn post(&mut self, to: usize, header: Header, payload: *const u8, len: usize) -> Result<(), Lost> {
        self.may_send(to)?;
        let sender = &mut self.senders[to];
        let payload = if G::SHARES || len == 0 {
            payload
        } else {
            // SAFETY: the caller's promise is the same.
            unsafe { self.ground.carry(to, sender.posted(), sender.released(), payload, len) }
                .map_err(|error| self.no_room(&error))?
        };
        self.senders[to]
            .post(Frame { header, payload, len }, self.ground.places())
            .map_err(|error| self.no_room(&error))?;
        self.meter.count(header, len);
        self.bells.ring([to]);
        Ok(())
    }

    #[inline]
    fn poll(&mut self, from: usize) -> Result<Option<Frame>, Lost> {
        match self.receivers[from].peek() {
            Some(frame) => Ok(Some(frame)),
            None => self.missing(from, |end| end.receivers[from].peek()),
        }
    }

    #[inline]
    fn release(&mut self, from: usize) {
        assert!(self.receivers[from].release(), "no frame of rank {from} is open");
        self.meter.releases += 1;
        self.bells.ring([from]);
    }

    #[inline]
    fn released(&mut self, to: usize) -> u64 {
        // One that has left reads nothing any more.
        if self.roll.gone(to) { self.senders[to].posted() } else { self.senders[to].released() }
    }

    fn lost(&mut self, peer: usize) -> Option<Lost> {
        self.roll.lost(peer)
    }

    #[inline]
    fn idle(&mut self, pause: &mut Pause) {
        self.bells.rest(self.rank, pause);
    }

    fn leave(&mut self, how: Leave) {
        if self.roll.strike(self.rank, Loss::Left(how)) {
            self.bells.ring_others(self.rank);
        }
    }

    fn end(&mut self, cause: Cause) {
        self.roll.end(cause);
        self.bells.ring_others(self.rank);
    }

    #[inline]
    fn announce(&mut self, word: u64) {
        self.roll.announce(self.rank, word);
    }

    fn announced(&self, peer: usize) -> u64 {
        self.roll.announced(peer)
    }

    #[inline]
    fn touching(&mut self, on: bool) -> bool {
        let goes_on = self.roll.touch(self.rank, on);
        if !on && self.roll.ended() {
            self.bells.ring_others(self.rank); // who ended it may wait for that
        }
        goes_on
    }

    fn is_touching(&self, peer: usize) -> bool {
        self.roll.touches(peer)
    }

    fn drained(&mut self, _: usize) -> bool {
        true // a post shows at once
    }

    fn quiet(&mut self, _: usize) -> bool {
        true // whatever is sent shows at once
    }

    fn waits(&self) -> Option<Waits> {
        self.ground.waits()
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }
}

impl<G: Ground> Drop for SharedEnd<G> {
    fn drop(&mut self) {
        self.leave(crate::dropped());
        let lent = self.lent.drain(..).map(|(.., memory)| Arc::new(memory) as Kept);
        let kept = self.senders.drain(..).flat_map(Sender::into_kept).chain(lent).collect();
        self.roll.detach(self.rank);
        self.ground.leave_behind(&self.roll, kept);
    }
}
