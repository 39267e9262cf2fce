//! Threads of one process, which reach one another's memory.
//!
//! Letters are cells that the reader looks at in place, frames are descriptors of memory that the reader looks at in place.

use super::bell::{Bells, Pause};
use super::letters::{Desk, desks};
use super::meter::Meter;
use super::ring::{Receiver, Sender, queue};
use super::roll::Roll;
use super::{Cause, Frame, Header, Leave, Letter, Loss, Lost, Transport};
use crate::sync::Arc;

/// What the ranks of one world share beyond letters and frames.
struct Shared {
    bells: Bells,
    roll: Roll,
}

/// One rank's end of a world of threads.
pub struct LocalEnd {
    rank: usize,
    desk: Desk,
    /// To each rank.
    senders: Vec<Sender>,
    /// From each rank.
    receivers: Vec<Receiver>,
    shared: Arc<Shared>,
    meter: Meter,
}

/// A world of `size` threads: an end for each.
pub fn local(size: usize) -> Vec<LocalEnd> {
    let shared = Arc::new(Shared { bells: Bells::new(size), roll: Roll::new(size) });
    let mut ends: Vec<LocalEnd> = desks(size)
        .into_iter()
        .enumerate()
        .map(|(rank, desk)| LocalEnd {
            rank,
            desk,
            senders: Vec::with_capacity(size),
            receivers: Vec::with_capacity(size),
            shared: Arc::clone(&shared),
            meter: Meter::default(),
        })
        .collect();
    for from in 0..size {
        for to in 0..size {
            let (sender, receiver) = queue();
            ends[from].senders.push(sender);
            ends[to].receivers.push(receiver);
        }
    }
    ends
}

impl LocalEnd {
    /// Whether I may send to `to`.
    #[inline]
    fn may_send(&self, to: usize) -> Result<(), Lost> {
        let roll = &self.shared.roll;
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
        match self.shared.roll.lost(from) {
            None => Ok(None),
            // What it sent before can be seen now, if it could not before.
            Some(lost) => again(self).map(Some).ok_or(lost),
        }
    }
}

impl Transport for LocalEnd {
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
    fn letter(&mut self, to: usize) -> &mut Letter {
        self.desk.draft(to)
    }

    #[inline]
    fn publish(&mut self, word: u64) -> Result<(), Lost> {
        self.may_send(self.rank)?;
        self.desk.publish(word);
        self.meter.exchanges += 1;
        self.shared.bells.ring_others(self.rank);
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
        self.shared.bells.ring_others(self.rank);
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
        self.senders[to].post(Frame { header, payload, len });
        self.meter.count(header, len);
        self.shared.bells.ring([to]);
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
        self.shared.bells.ring([from]);
    }

    #[inline]
    fn released(&mut self, to: usize) -> u64 {
        // One that has left reads nothing any more.
        if self.shared.roll.gone(to) { self.senders[to].posted() } else { self.senders[to].released() }
    }

    fn lost(&mut self, peer: usize) -> Option<Lost> {
        self.shared.roll.lost(peer)
    }

    #[inline]
    fn idle(&mut self, pause: &mut Pause) {
        self.shared.bells.rest(self.rank, pause);
    }

    fn leave(&mut self, how: Leave) {
        if self.shared.roll.strike(self.rank, Loss::Left(how)) {
            self.shared.bells.ring_others(self.rank);
        }
    }

    fn end(&mut self, cause: Cause) {
        self.shared.roll.end(cause);
        self.shared.bells.ring_others(self.rank);
    }

    #[inline]
    fn announce(&mut self, word: u64) {
        self.shared.roll.announce(self.rank, word);
    }

    fn announced(&self, peer: usize) -> u64 {
        self.shared.roll.announced(peer)
    }

    #[inline]
    fn touching(&mut self, on: bool) -> bool {
        let goes_on = self.shared.roll.touch(self.rank, on);
        if !on && self.shared.roll.ended() {
            self.shared.bells.ring_others(self.rank); // who ended it may wait for that
        }
        goes_on
    }

    fn is_touching(&self, peer: usize) -> bool {
        self.shared.roll.touches(peer)
    }

    fn drained(&mut self, _: usize) -> bool {
        true // a post shows at once
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }
}

impl Drop for LocalEnd {
    fn drop(&mut self) {
        self.leave(super::dropped());
    }
}
