//! Threads that only exchange bytes, over links whose adversity a seed decides.
//!
//! Every ordered pair of ranks, a rank and itself included, has a link of its own: a stream of bytes with a limited
//! number in flight. The rest follows as there is room, whatever the sender does meanwhile: it may wait in another
//! world. The reader's polls are the clock, after a latency in time that is 0 unless set: bytes on a link become visible after some
//! polls for them, in pieces that split heads and payloads anywhere, so pairs overtake one another. Delays and pieces are drawn from a generator for
//! each link, by poll; a rank can be cut off at a chosen event, mostly in the middle of an item, and any one item can
//! suffer a [fault](crate::Fault). The seed reproduces the decisions of the links as far as the threads themselves are
//! reproducible.

pub(crate) mod config;
pub(crate) mod fault;
mod links;
mod random;

use std::collections::VecDeque;

use crate::meter::Meter;
use crate::ports::ClosedPorts;
use crate::shared::members::Membership;
use crate::shared::waker::{Pause, Wakers};
use crate::sim::config::{Lose, SimConfig};
use crate::sim::fault::{FaultKind, Outlet};
use crate::sim::links::{LinkReader, SimLink, SimPort, slot};
use crate::sim::random::Random;
use crate::stream::{CLOSED, ItemWriter};
use crate::sync::{Arc, Mutex, lock};
use crate::{
    Cause, Channels, CreateJoin, Frame, Header, Leave, Liveness, Loss, Lost, Notification, Notify, Port,
    Topology,
};

struct SimWorld {
    config: SimConfig,
    /// `[origin][target]`.
    links: Vec<Mutex<SimLink>>,
    wakers: Wakers,
    membership: Membership,
}

/// What goes to one rank.
#[derive(Default)]
struct LinkWriter {
    /// Items written since the last event.
    waiting: VecDeque<u8>,
    outlet: Outlet,
    draft: Notification,
}

/// One rank's end of a simulated world.
pub struct SimEnd {
    rank: usize,
    exchange: u64,
    unread: usize,
    events: u64,
    /// Items sent to other ranks.
    points: u64,
    crashed: bool,
    /// The ports that this rank has closed.
    closed: ClosedPorts,
    inbound: Vec<LinkReader>,
    outbound: Vec<LinkWriter>,
    random: Random,
    world: Arc<SimWorld>,
    meter: Meter,
}

/// Returns a world of `size` threads that exchange messages: one end for each.
pub fn sim(size: usize, config: SimConfig) -> Vec<SimEnd> {
    let seed = config.seed;
    let world = Arc::new(SimWorld {
        config,
        links: (0..size * size).map(|_| Mutex::new(SimLink::default())).collect(),
        wakers: Wakers::new(size),
        membership: Membership::new(size),
    });
    let end = |rank| SimEnd {
        rank,
        exchange: 0,
        unread: 0,
        events: 0,
        points: 0,
        crashed: false,
        closed: ClosedPorts::default(),
        inbound: (0..size).map(|from| LinkReader::new(Random::new(seed, from * size + rank))).collect(),
        outbound: (0..size).map(|_| LinkWriter::default()).collect(),
        random: Random::new(!seed, rank),
        world: Arc::clone(&world),
        meter: Meter::default(),
    };
    (0..size).map(end).collect()
}

/// Returns the bytes that travel instead of a payload that is reached.
fn reference_to(payload: *const u8, len: usize) -> [u8; 16] {
    bytemuck::cast([payload.expose_provenance() as u64, len as u64])
}

/// Returns the payload that [`reference_to`] refers to.
fn referenced(bytes: &[u8]) -> (*const u8, usize) {
    let [address, len]: [u64; 2] = bytemuck::pod_read_unaligned(&bytes[..16]);
    (std::ptr::with_exposed_provenance(address as usize), len as usize)
}

impl SimEnd {
    fn own_loss(&self) -> Option<Lost> {
        self.world.membership.lost(self.rank)
    }

    /// Polls what arrives from `from`; takes everything in flight, if nothing more can arrive.
    fn poll_link(&mut self, from: usize, all: bool) {
        if self.own_loss().is_some() && !all {
            return;
        }
        let inbound = &mut self.inbound[from];
        inbound.polled = true;
        let mut link = lock(&self.world.links[from * self.outbound.len() + self.rank]);
        let available = if all { link.bytes.len() } else { link.arrived(self.world.config.latency) };
        let late = !all && link.hold > 0;
        link.hold = link.hold.saturating_sub(1);
        let n = match available {
            _ if late => 0,
            n if all => n,
            n => inbound.visible(n.min(self.world.config.room()), &self.world.config),
        };
        let mut taken = inbound.take(&mut link.bytes, n, &self.world.config, &self.closed);
        link.taken(n);
        if self.world.config.fault.is_some()
            && let Some(what) = inbound.inlet.polled(link.item_lost(inbound.inlet.opened))
        {
            taken = taken.and(Err(what));
        }
        drop(link);
        if let Err(what) = taken {
            self.end(Cause { rank: from, what });
        }
        while let Some(port) = self.inbound[from].refused.pop() {
            self.report_releases(from, port, CLOSED);
        }
    }

    /// Reports how many frames of `to` this rank has released.
    fn report_releases(&mut self, to: usize, port: Port, releases: u64) {
        if self.may_send(to).is_ok() {
            self.send_item(to, |writer| writer.release(port, releases, 0));
            if self.crashed {
                return self.cut_off();
            }
            self.flush(to);
        }
    }

    /// Decides what a poll that found nothing from `from` means; `found` checks again.
    fn missing(&mut self, from: usize, found: impl Fn(&Self) -> bool) -> Result<bool, Lost> {
        let Some(lost) = self.own_loss().or_else(|| self.world.membership.lost(from)) else {
            return Ok(false);
        };
        if lost.rank != self.rank || lost.how != Loss::Cut {
            self.poll_link(from, true);
        }
        if found(self) { Ok(true) } else { Err(lost) }
    }

    /// Writes an item to `to`: sealed, and with the fault applied to it, where there is one.
    fn send_item(&mut self, to: usize, write: impl FnOnce(&mut ItemWriter<'_, VecDeque<u8>>)) {
        let LinkWriter { waiting, outlet, .. } = &mut self.outbound[to];
        let Some(fault) = &self.world.config.fault else { return write(&mut ItemWriter(waiting, 0)) };
        let mut kind = None;
        if to != self.rank {
            kind = fault.at(self.rank, self.points);
            self.points += 1;
        }
        self.crashed |= kind == Some(FaultKind::Crash);
        if !self.crashed {
            let mut item = VecDeque::new();
            write(&mut ItemWriter(&mut item, 0));
            outlet.write(item.make_contiguous(), kind, &mut self.random, waiting);
        }
    }

    /// Puts the written items on the link to `to`.
    fn flush(&mut self, to: usize) {
        let LinkWriter { waiting, outlet, .. } = &mut self.outbound[to];
        let changed = std::mem::take(&mut outlet.changed);
        if waiting.is_empty() && !changed {
            return;
        }
        if self.world.membership.gone(to) {
            waiting.clear();
            return;
        }
        let mut link = lock(&self.world.links[self.rank * self.inbound.len() + to]);
        link.append(waiting, self.world.config.latency);
        (link.sent, link.mute) = (outlet.sent, outlet.mute);
        link.hold += std::mem::take(&mut outlet.hold);
        drop(link);
        if to != self.rank {
            self.world.wakers.wake([to]);
        }
    }

    /// Counts an event: flushes, or cuts this rank off.
    fn event(&mut self, targets: impl Iterator<Item = usize>) -> Result<(), Lost> {
        self.events += 1;
        let lose = |Lose { rank, after }| rank == self.rank && self.events > after;
        if self.crashed || self.world.config.lose.is_some_and(lose) {
            self.cut_off();
            return Err(Lost { rank: self.rank, how: Loss::Cut });
        }
        targets.for_each(|to| self.flush(to));
        Ok(())
    }

    /// What is in flight still arrives, and a part of what would follow; nothing afterwards.
    fn cut_off(&mut self) {
        for to in 0..self.size() {
            let mut link = lock(&self.world.links[self.rank * self.inbound.len() + to]);
            let comes = link.bytes.len().min(self.world.config.room());
            link.bytes.append(&mut self.outbound[to].waiting);
            let more = link.bytes.len() - comes;
            link.bytes.truncate(comes + self.random.below(more as u64 + 1) as usize);
            drop(link);
            self.flush(to);
        }
        self.mark_gone(Loss::Cut);
    }

    fn mark_gone(&mut self, how: Loss) {
        if self.world.membership.mark_gone(self.rank, how) {
            self.world.wakers.wake_others(self.rank);
        }
    }

    /// Returns an error if this rank may not send to `to`.
    fn may_send(&self, to: usize) -> Result<(), Lost> {
        self.own_loss().or_else(|| self.world.membership.lost(to)).map_or(Ok(()), Err)
    }

    fn notification_arrived(&self, from: usize) -> bool {
        self.exchange != 0 && self.inbound[from].arrived >= self.exchange
    }

    /// Returns whether the next item of `from` was lost.
    fn is_item_lost(&self, link: &SimLink, from: usize) -> bool {
        self.world.config.fault.is_some() && link.item_lost(self.inbound[from].inlet.opened)
    }

    /// Returns whether polling again may show something that nobody wakes this rank for.
    fn busy(&self) -> bool {
        let size = self.size();
        let comes = |from: usize| {
            let link = lock(&self.world.links[from * size + self.rank]);
            !link.bytes.is_empty() || self.is_item_lost(&link, from)
        };
        (0..size).any(|from| self.inbound[from].polled && comes(from))
    }
}

impl Topology for SimEnd {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.inbound.len()
    }

    fn reaches(&self, _peer: usize) -> bool {
        self.world.config.altered().reach
    }
}

impl Notify for SimEnd {
    fn draft(&mut self, to: usize) -> &mut Notification {
        &mut self.outbound[to].draft
    }

    fn publish(&mut self, word: u64) -> Result<(), Lost> {
        self.may_send(self.rank)?;
        let skips = self.world.config.altered().unread;
        assert!(
            self.unread == 0 || skips,
            "published before every notification of the previous exchange was read"
        );
        self.exchange += 1;
        self.unread = self.size() - 1;
        for to in 0..self.size() {
            let LinkWriter { draft, .. } = &mut self.outbound[to];
            draft.word = word;
            let notification = *draft;
            let posted = self.inbound[to].ports.get(&Port::FENCE).map_or(0, |port| port.posted);
            #[cfg(feature = "testing")]
            let notification = self.world.config.tampered_notification([self.rank, to], notification);
            self.send_item(to, |writer| writer.notification(&notification, posted));
        }
        self.event(0..self.size())?;
        self.inbound[self.rank].read = self.exchange;
        self.poll_link(self.rank, true);
        self.meter.exchanges += 1;
        Ok(())
    }

    fn read(&mut self, from: usize) -> Result<Option<&Notification>, Lost> {
        if !self.notification_arrived(from) {
            self.poll_link(from, false);
            if !self.notification_arrived(from)
                && !self.missing(from, |end| end.notification_arrived(from))?
            {
                return Ok(None);
            }
        }
        let inbound = &mut self.inbound[from];
        if inbound.read < self.exchange {
            inbound.read = self.exchange;
            self.unread -= 1;
        }
        Ok(Some(&inbound.notifications[slot(self.exchange, self.world.config.altered())]))
    }

    fn settle(&mut self) -> Result<(), Lost> {
        self.may_send(self.rank)?;
        let exchange = self.exchange;
        (0..self.size()).for_each(|to| self.send_item(to, |writer| writer.settle(exchange)));
        self.event(0..self.size())?;
        self.meter.settles += 1;
        Ok(())
    }

    fn settled(&mut self, from: usize) -> Result<bool, Lost> {
        let settled = |end: &Self| end.inbound[from].settled >= end.exchange;
        if !settled(self) {
            self.poll_link(from, false);
        }
        if settled(self) { Ok(true) } else { self.missing(from, settled) }
    }
}

impl Channels for SimEnd {
    unsafe fn post(
        &mut self,
        to: usize,
        port: Port,
        header: Header,
        payload: *const u8,
        len: usize,
    ) -> Result<(), Lost> {
        self.may_send(to)?;
        let reference;
        let bytes = if self.reaches(to) {
            reference = reference_to(payload, len);
            &reference[..]
        } else if len == 0 {
            &[]
        } else {
            // SAFETY: the caller promises that the payload is readable.
            unsafe { std::slice::from_raw_parts(payload, len) }
        };
        #[cfg(feature = "testing")]
        let tampered = self.world.config.tampered([self.rank, to], header, bytes);
        #[cfg(feature = "testing")]
        let (header, bytes) =
            tampered.as_ref().map_or((header, bytes), |(header, bytes)| (*header, &bytes[..]));
        self.send_item(to, |writer| writer.frame(port, header, bytes));
        self.inbound[to].ports.entry(port).or_default().posted += 1;
        self.event(to..to + 1)?;
        self.meter.count(header, len);
        Ok(())
    }

    fn poll(&mut self, from: usize, port: Port) -> Result<Option<Frame>, Lost> {
        let has_come =
            |end: &Self| end.inbound[from].ports.get(&port).is_some_and(|port| !port.frames.is_empty());
        if !has_come(self) {
            self.poll_link(from, false);
        }
        if !has_come(self) {
            self.missing(from, has_come)?;
        }
        let front = self.inbound[from].ports.get(&port).and_then(|port| port.frames.front());
        let reaches = self.reaches(from);
        Ok(front.map(|(header, body)| {
            let (payload, len) = if reaches { referenced(body.bytes()) } else { (body.as_ptr(), body.len()) };
            Frame { header: *header, payload, len }
        }))
    }

    fn release(&mut self, from: usize, port: Port) {
        let inbound = &mut self.inbound[from];
        let of_port = inbound.ports.get_mut(&port);
        let front = of_port.and_then(|port| Some((port.frames.pop_front()?, &mut port.releases)));
        let Some(((_, body), releases)) = front else {
            panic!("release without a polled frame: rank {from} has no open frame");
        };
        inbound.decoder.recycle(body);
        *releases += 1;
        let releases = *releases;
        self.meter.releases += 1;
        self.report_releases(from, port, releases);
    }

    fn released(&mut self, to: usize, port: Port) -> u64 {
        let counts = |end: &Self| end.inbound[to].ports.get(&port).map_or((0, 0), SimPort::counts);
        let (posted, released) = counts(self);
        if self.world.membership.gone(to) {
            return posted;
        }
        if released < posted {
            self.poll_link(to, false);
        }
        counts(self).1
    }

    fn close(&mut self, port: Port) {
        assert!(port != Port::FENCE, "the port of fences is never closed");
        self.closed.insert(port);
        for from in 0..self.size() {
            if let Some(SimPort { frames, releases, .. }) = self.inbound[from].ports.remove(&port)
                && !(frames.is_empty() && releases == 0)
            {
                self.report_releases(from, port, CLOSED);
            }
        }
    }

    fn drained(&mut self, from: usize) -> bool {
        let link = lock(&self.world.links[from * self.outbound.len() + self.rank]);
        let inbound = &self.inbound[from];
        let unread = inbound.ports.get(&Port::FENCE).is_some_and(|port| !port.frames.is_empty());
        link.bytes.is_empty() && !unread && !self.is_item_lost(&link, from)
    }

    fn nothing_in_flight(&mut self, from: usize) -> bool {
        let link = lock(&self.world.links[from * self.outbound.len() + self.rank]);
        link.bytes.is_empty()
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }
}

impl Liveness for SimEnd {
    fn lost(&mut self, peer: usize) -> Option<Lost> {
        self.own_loss().or_else(|| self.world.membership.lost(peer))
    }

    fn idle(&mut self, pause: &mut Pause) {
        self.world.wakers.wait_step_unless(self.rank, pause, || self.busy());
        self.inbound.iter_mut().for_each(|inbound| inbound.polled = false);
    }

    fn leave(&mut self, how: Leave) {
        if self.own_loss().is_none_or(|lost| matches!(lost.how, Loss::Ended(_))) {
            (0..self.size()).for_each(|to| self.flush(to));
        }
        self.mark_gone(Loss::Left(how));
    }

    fn end(&mut self, cause: Cause) {
        self.world.membership.end(cause);
        self.world.wakers.wake_others(self.rank);
    }

    #[inline]
    fn announce(&mut self, word: u64) {
        self.world.membership.announce(self.rank, word);
    }

    fn announced(&self, peer: usize) -> u64 {
        self.world.membership.announced(peer)
    }

    #[inline]
    fn touching(&mut self, on: bool) -> bool {
        self.world.membership.touch(self.rank, on)
    }

    fn is_touching(&self, peer: usize) -> bool {
        self.world.membership.touches(peer)
    }
}

impl CreateJoin for SimEnd {}

impl Drop for SimEnd {
    fn drop(&mut self) {
        self.leave(crate::dropped());
    }
}
