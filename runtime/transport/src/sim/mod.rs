//! Threads that only exchange bytes, over links that are as unpleasant as the seed says.
//!
//! Every ordered pair of ranks, a rank and itself too, has a link of its own: a stream of bytes with room for so many at a
//! time. What does not fit follows as there is room, whatever the sender does meanwhile: it may wait in another world. The
//! reader's looks are the clock: bytes on a link show after some looks for them, in pieces that split heads and payloads
//! anywhere, so pairs overtake one another. Delays and pieces are drawn from a generator for each link, by look; a rank can
//! be cut off at a chosen event, mostly in the middle of an item, and any one item can meet with a [fault](crate::Fault).
//! What the links decide is reproduced by the seed as far as the threads themselves are.

pub(crate) mod config;
pub(crate) mod fault;
mod links;
mod random;

use std::collections::VecDeque;

use crate::meter::Meter;
use crate::shared::members::Roll;
use crate::shared::waker::{Bells, Pause};
use crate::sim::config::{Lose, SimConfig};
use crate::sim::fault::{Mishap, Outlet};
use crate::sim::links::{Inbound, Link, slot};
use crate::sim::random::Random;
use crate::stream::Pen;
use crate::sync::{Arc, Mutex, lock};
use crate::{Cause, Frame, Header, Leave, Letter, Loss, Lost, Transport};

struct Shared {
    config: SimConfig,
    /// `[origin][target]`.
    links: Vec<Mutex<Link>>,
    bells: Bells,
    roll: Roll,
}

/// What goes to one rank.
#[derive(Default)]
struct Outbound {
    /// What was said since the last event.
    waiting: VecDeque<u8>,
    outlet: Outlet,
    posted: u64,
    /// How many of its frames I have released, ever.
    releases: u64,
    draft: Letter,
}

/// One rank's end of a simulated world.
pub struct SimEnd {
    rank: usize,
    exchange: u64,
    unread: usize,
    events: u64,
    /// Items said to others.
    points: u64,
    crashed: bool,
    inbound: Vec<Inbound>,
    outbound: Vec<Outbound>,
    random: Random,
    shared: Arc<Shared>,
    meter: Meter,
}

/// A world of `size` threads that exchange messages: an end for each.
pub fn sim(size: usize, config: SimConfig) -> Vec<SimEnd> {
    let seed = config.seed;
    let shared = Arc::new(Shared {
        config,
        links: (0..size * size).map(|_| Mutex::new(Link::default())).collect(),
        bells: Bells::new(size),
        roll: Roll::new(size),
    });
    let end = |rank| SimEnd {
        rank,
        exchange: 0,
        unread: 0,
        events: 0,
        points: 0,
        crashed: false,
        inbound: (0..size).map(|from| Inbound::new(Random::new(seed, from * size + rank))).collect(),
        outbound: (0..size).map(|_| Outbound::default()).collect(),
        random: Random::new(!seed, rank),
        shared: Arc::clone(&shared),
        meter: Meter::default(),
    };
    (0..size).map(end).collect()
}

/// What travels instead of a payload that is reached.
fn lead_to(payload: *const u8, len: usize) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(payload.expose_provenance() as u64).to_le_bytes());
    bytes[8..].copy_from_slice(&(len as u64).to_le_bytes());
    bytes
}

/// The payload that [`lead_to`] leads to.
fn led(bytes: &[u8]) -> (*const u8, usize) {
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i])) as usize;
    (std::ptr::with_exposed_provenance(word(0)), word(8))
}

impl SimEnd {
    fn me(&self) -> Option<Lost> {
        self.shared.roll.lost(self.rank)
    }

    /// One look at what comes from `from`; all that is there, if nothing more can come.
    fn look(&mut self, from: usize, all: bool) {
        if self.me().is_some() && !all {
            return;
        }
        let inbound = &mut self.inbound[from];
        inbound.looked = true;
        let mut link = lock(&self.shared.links[from * self.outbound.len() + self.rank]);
        let available = link.bytes.len();
        let late = !all && link.hold > 0;
        link.hold = link.hold.saturating_sub(1);
        let n = match available {
            _ if late => 0,
            n if all => n,
            n => inbound.piece(n.min(self.shared.config.room()), &self.shared.config),
        };
        let mut taken = inbound.take(&mut link.bytes, n, &self.shared.config);
        if self.shared.config.fault.is_some()
            && let Some(what) = inbound.inlet.looked(link.owes(inbound.inlet.opened))
        {
            taken = taken.and(Err(what));
        }
        drop(link);
        if let Err(what) = taken {
            self.end(Cause { rank: from, what });
        }
    }

    /// What a fruitless look for something of `from` means; `found` looks again.
    fn missing(&mut self, from: usize, found: impl Fn(&Self) -> bool) -> Result<bool, Lost> {
        let Some(lost) = self.me().or_else(|| self.shared.roll.lost(from)) else { return Ok(false) };
        if lost.rank != self.rank || lost.how != Loss::Cut {
            self.look(from, true);
        }
        if found(self) { Ok(true) } else { Err(lost) }
    }

    /// Say an item to `to`: under a seal, and with what happens to it, where there is a fault.
    fn say(&mut self, to: usize, write: impl FnOnce(&mut Pen<'_, VecDeque<u8>>)) {
        let Outbound { waiting, outlet, .. } = &mut self.outbound[to];
        let Some(fault) = &self.shared.config.fault else { return write(&mut Pen(waiting, 0)) };
        let mut mishap = None;
        if to != self.rank {
            mishap = fault.at(self.rank, self.points);
            self.points += 1;
        }
        self.crashed |= mishap == Some(Mishap::Crash);
        if !self.crashed {
            let mut item = VecDeque::new();
            write(&mut Pen(&mut item, 0));
            outlet.say(item.make_contiguous(), mishap, &mut self.random, waiting);
        }
    }

    /// Put on the link to `to` what was said.
    fn flush(&mut self, to: usize) {
        let Outbound { waiting, outlet, .. } = &mut self.outbound[to];
        let news = std::mem::take(&mut outlet.news);
        if waiting.is_empty() && !news {
            return;
        }
        if self.shared.roll.gone(to) {
            waiting.clear();
            return;
        }
        let mut link = lock(&self.shared.links[self.rank * self.inbound.len() + to]);
        link.bytes.append(waiting);
        (link.said, link.mute) = (outlet.said, outlet.mute);
        link.hold += std::mem::take(&mut outlet.hold);
        drop(link);
        if to != self.rank {
            self.shared.bells.ring([to]);
        }
    }

    /// An event has happened: flush, or be cut off.
    fn event(&mut self, targets: impl Iterator<Item = usize>) -> Result<(), Lost> {
        self.events += 1;
        let lose = |Lose { rank, after }| rank == self.rank && self.events > after;
        if self.crashed || self.shared.config.lose.is_some_and(lose) {
            self.cut_off();
            return Err(Lost { rank: self.rank, how: Loss::Cut });
        }
        targets.for_each(|to| self.flush(to));
        Ok(())
    }

    /// What is under way still comes, and some of what would follow; nothing afterwards.
    fn cut_off(&mut self) {
        for to in 0..self.size() {
            let mut link = lock(&self.shared.links[self.rank * self.inbound.len() + to]);
            let comes = link.bytes.len().min(self.shared.config.room());
            link.bytes.append(&mut self.outbound[to].waiting);
            let more = link.bytes.len() - comes;
            link.bytes.truncate(comes + self.random.below(more as u64 + 1) as usize);
            drop(link);
            self.flush(to);
        }
        self.strike(Loss::Cut);
    }

    fn strike(&mut self, how: Loss) {
        if self.shared.roll.strike(self.rank, how) {
            self.shared.bells.ring_others(self.rank);
        }
    }

    /// Whether I may send.
    fn may_send(&self, to: usize) -> Result<(), Lost> {
        self.me().or_else(|| self.shared.roll.lost(to)).map_or(Ok(()), Err)
    }

    fn letter_arrived(&self, from: usize) -> bool {
        self.exchange != 0 && self.inbound[from].arrived >= self.exchange
    }

    /// Whether something of `from` was lost that would come next.
    fn owed(&self, link: &Link, from: usize) -> bool {
        self.shared.config.fault.is_some() && link.owes(self.inbound[from].inlet.opened)
    }

    /// Whether looking again may show something, with nobody ringing.
    fn busy(&self) -> bool {
        let size = self.size();
        let comes = |from: usize| {
            let link = lock(&self.shared.links[from * size + self.rank]);
            !link.bytes.is_empty() || self.owed(&link, from)
        };
        (0..size).any(|from| self.inbound[from].looked && comes(from))
    }
}

impl Transport for SimEnd {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.inbound.len()
    }

    fn reaches(&self, _peer: usize) -> bool {
        self.shared.config.altered().reach
    }

    fn letter(&mut self, to: usize) -> &mut Letter {
        &mut self.outbound[to].draft
    }

    fn publish(&mut self, word: u64) -> Result<(), Lost> {
        self.may_send(self.rank)?;
        let skips = self.shared.config.altered().unread;
        assert!(self.unread == 0 || skips, "a letter of the exchange before was not read");
        self.exchange += 1;
        self.unread = self.size() - 1;
        for to in 0..self.size() {
            let Outbound { draft, posted, .. } = &mut self.outbound[to];
            draft.word = word;
            let (letter, posted) = (*draft, *posted);
            self.say(to, |pen| pen.letter(&letter, posted));
        }
        self.event(0..self.size())?;
        self.inbound[self.rank].read = self.exchange;
        self.look(self.rank, true);
        self.meter.exchanges += 1;
        Ok(())
    }

    fn read(&mut self, from: usize) -> Result<Option<&Letter>, Lost> {
        if !self.letter_arrived(from) {
            self.look(from, false);
            if !self.letter_arrived(from) && !self.missing(from, |end| end.letter_arrived(from))? {
                return Ok(None);
            }
        }
        let inbound = &mut self.inbound[from];
        if inbound.read < self.exchange {
            inbound.read = self.exchange;
            self.unread -= 1;
        }
        Ok(Some(&inbound.letters[slot(self.exchange, self.shared.config.altered())]))
    }

    fn settle(&mut self) -> Result<(), Lost> {
        self.may_send(self.rank)?;
        let exchange = self.exchange;
        (0..self.size()).for_each(|to| self.say(to, |pen| pen.settle(exchange)));
        self.event(0..self.size())?;
        self.meter.settles += 1;
        Ok(())
    }

    fn settled(&mut self, from: usize) -> Result<bool, Lost> {
        let settled = |end: &Self| end.inbound[from].settled >= end.exchange;
        if !settled(self) {
            self.look(from, false);
        }
        if settled(self) { Ok(true) } else { self.missing(from, settled) }
    }

    unsafe fn post(&mut self, to: usize, header: Header, payload: *const u8, len: usize) -> Result<(), Lost> {
        self.may_send(to)?;
        let lead;
        let bytes = if self.reaches(to) {
            lead = lead_to(payload, len);
            &lead[..]
        } else if len == 0 {
            &[]
        } else {
            // SAFETY: the caller promises that the payload is readable.
            unsafe { std::slice::from_raw_parts(payload, len) }
        };
        #[cfg(feature = "testing")]
        let (header, bytes) = &self.shared.config.tampered([self.rank, to], header, bytes);
        #[cfg(feature = "testing")]
        let (header, bytes) = (*header, &bytes[..]);
        self.say(to, |pen| pen.frame(header, bytes));
        self.outbound[to].posted += 1;
        self.event(to..to + 1)?;
        self.meter.count(header, len);
        Ok(())
    }

    fn poll(&mut self, from: usize) -> Result<Option<Frame>, Lost> {
        let has_come = |end: &Self| !end.inbound[from].frames.is_empty();
        if !has_come(self) {
            self.look(from, false);
        }
        if !has_come(self) {
            self.missing(from, has_come)?;
        }
        let front = self.inbound[from].frames.front();
        let reaches = self.reaches(from);
        Ok(front.map(|(header, body)| {
            let (payload, len) = if reaches { led(body.bytes()) } else { (body.as_ptr(), body.len()) };
            Frame { header: *header, payload, len }
        }))
    }

    fn release(&mut self, from: usize) {
        let inbound = &mut self.inbound[from];
        let front = inbound.frames.pop_front();
        assert!(front.is_some(), "no frame of rank {from} is open");
        if let Some((_, body)) = front {
            inbound.decoder.recycle(body);
        }
        self.meter.releases += 1;
        let outbound = &mut self.outbound[from];
        outbound.releases += 1;
        if self.may_send(from).is_ok() {
            let releases = self.outbound[from].releases;
            self.say(from, |pen| pen.release(releases, 0));
            if self.crashed {
                return self.cut_off();
            }
            self.flush(from);
        }
    }

    fn released(&mut self, to: usize) -> u64 {
        let posted = self.outbound[to].posted;
        if self.shared.roll.gone(to) {
            return posted;
        }
        if self.inbound[to].released < posted {
            self.look(to, false);
        }
        self.inbound[to].released
    }

    fn lost(&mut self, peer: usize) -> Option<Lost> {
        self.me().or_else(|| self.shared.roll.lost(peer))
    }

    fn idle(&mut self, pause: &mut Pause) {
        self.shared.bells.rest_unless(self.rank, pause, || self.busy());
        self.inbound.iter_mut().for_each(|inbound| inbound.looked = false);
    }

    fn leave(&mut self, how: Leave) {
        if self.me().is_none_or(|lost| matches!(lost.how, Loss::Ended(_))) {
            (0..self.size()).for_each(|to| self.flush(to));
        }
        self.strike(Loss::Left(how));
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
        self.shared.roll.touch(self.rank, on)
    }

    fn is_touching(&self, peer: usize) -> bool {
        self.shared.roll.touches(peer)
    }

    fn drained(&mut self, from: usize) -> bool {
        let link = lock(&self.shared.links[from * self.outbound.len() + self.rank]);
        let inbound = &self.inbound[from];
        link.bytes.is_empty() && inbound.frames.is_empty() && !self.owed(&link, from)
    }

    fn quiet(&mut self, from: usize) -> bool {
        let link = lock(&self.shared.links[from * self.outbound.len() + self.rank]);
        link.bytes.is_empty()
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }
}

impl Drop for SimEnd {
    fn drop(&mut self) {
        self.leave(crate::dropped());
    }
}
