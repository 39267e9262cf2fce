//! [`SimCore`]: the state of the links of one rank of a simulated world. The rank and the thread of
//! its attendant share it under one lock. No function here waits.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::contract::PANICKED;
use crate::ports::ClosedPorts;
use crate::shared::members::Membership;
use crate::shared::waker::Wakers;
use crate::sim::config::{Lose, SimConfig};
use crate::sim::fault::{FaultKind, Outlet};
use crate::sim::links::{LinkReader, SimLink, SimPort};
use crate::sim::random::Random;
use crate::stream::{Body, CLOSED, ItemWriter};
use crate::sync::{Arc, Mutex, lock};
use crate::{Answers, Attendant, Cause, Frame, Header, Loss, Lost, Port};

/// The worlds of one rank, each as the state of the rank's links. A rank that waits in one of these
/// worlds waits for arrivals in all of them.
pub(super) type WorldsOfRank = Mutex<Vec<Arc<Mutex<SimCore>>>>;

pub(super) struct SimWorld {
    pub(super) config: SimConfig,
    /// The link of each ordered pair, by `[origin][target]`.
    pub(super) links: Vec<Mutex<SimLink>>,
    pub(super) wakers: Wakers,
    /// The wakers of the ranks' attendants.
    pub(super) attendants: Wakers,
    /// The worlds of each rank, by rank.
    pub(super) worlds: Vec<Arc<WorldsOfRank>>,
    pub(super) membership: Membership,
}

/// The sending side of the link to one rank.
#[derive(Default)]
struct LinkWriter {
    /// Items written since the last event.
    waiting: VecDeque<u8>,
    outlet: Outlet,
}

pub(super) struct SimCore {
    rank: usize,
    pub(super) exchange: u64,
    events: u64,
    /// The number of items sent to other ranks.
    points: u64,
    crashed: bool,
    /// The ports that this rank has closed.
    closed: ClosedPorts,
    pub(super) inbound: Vec<LinkReader>,
    outbound: Vec<LinkWriter>,
    random: Random,
    /// The server of the frames of [`Port::SERVICE`], until this rank leaves.
    pub(super) attendant: Option<Box<dyn Attendant>>,
    pub(super) world: Arc<SimWorld>,
}

/// Returns the bytes that are sent instead of a payload if the receiver can read the sender's
/// memory.
fn reference_to(payload: *const u8, len: usize) -> [u8; 16] {
    bytemuck::cast([payload.expose_provenance() as u64, len as u64])
}

/// Returns the payload that [`reference_to`] refers to.
fn referenced(bytes: &[u8]) -> (*const u8, usize) {
    let [address, len]: [u64; 2] = bytemuck::pod_read_unaligned(&bytes[..16]);
    (std::ptr::with_exposed_provenance(address as usize), len as usize)
}

impl SimCore {
    pub(super) fn new(rank: usize, size: usize, world: &Arc<SimWorld>) -> Self {
        let seed = world.config.seed;
        Self {
            rank,
            exchange: 0,
            events: 0,
            points: 0,
            crashed: false,
            closed: ClosedPorts::default(),
            inbound: (0..size).map(|from| LinkReader::new(Random::new(seed, from * size + rank))).collect(),
            outbound: (0..size).map(|_| LinkWriter::default()).collect(),
            random: Random::new(!seed, rank),
            attendant: None,
            world: Arc::clone(world),
        }
    }

    pub(super) fn own_loss(&self) -> Option<Lost> {
        self.world.membership.lost(self.rank)
    }

    /// Polls the link from `from`. If `all` is set, because nothing more can be sent on that link,
    /// takes everything in flight.
    pub(super) fn poll_link(&mut self, from: usize, all: bool) {
        if self.own_loss().is_some() && !all {
            return;
        }
        let inbound = &mut self.inbound[from];
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
            self.end(Cause { rank: from, what: format!("rank {from}: {what}") });
        }
        while let Some(port) = self.inbound[from].refused.pop() {
            self.report_releases(from, port, CLOSED);
        }
        self.answer(from);
    }

    /// Reports how many frames of `to` this rank has released.
    pub(super) fn report_releases(&mut self, to: usize, port: Port, releases: u64) {
        if self.may_send(to).is_ok() {
            self.send_item(to, |writer| writer.release(port, releases, 0));
            if self.crashed {
                return self.cut_off();
            }
            self.flush(to);
        }
    }

    /// Handles a poll that found nothing from `from`. Returns `false` if more can arrive. Otherwise
    /// takes everything in flight. Then returns `true` if `found` returns `true`, and otherwise the
    /// loss.
    pub(super) fn missing(&mut self, from: usize, found: impl Fn(&Self) -> bool) -> Result<bool, Lost> {
        let Some(lost) = self.own_loss().or_else(|| self.world.membership.lost(from)) else {
            return Ok(false);
        };
        if lost.rank != self.rank || lost.how != Loss::Cut {
            self.poll_link(from, true);
        }
        if found(self) { Ok(true) } else { Err(lost) }
    }

    /// Writes an item to `to`. If the world has a fault, seals the item, and applies the fault if
    /// this is the faulty item.
    pub(super) fn send_item(&mut self, to: usize, write: impl FnOnce(&mut ItemWriter<'_, VecDeque<u8>>)) {
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
    pub(super) fn flush(&mut self, to: usize) {
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
        self.world.attendants.wake([to]);
        if to != self.rank {
            self.world.wakers.wake([to]);
        }
    }

    /// Counts an event. Then cuts this rank off if that is due, and otherwise flushes the links to
    /// `targets`.
    pub(super) fn event(&mut self, targets: impl Iterator<Item = usize>) -> Result<(), Lost> {
        self.events += 1;
        let lose = |Lose { rank, after }| rank == self.rank && self.events > after;
        if self.crashed || self.world.config.lose.is_some_and(lose) {
            self.cut_off();
            return Err(Lost { rank: self.rank, how: Loss::Cut });
        }
        targets.for_each(|to| self.flush(to));
        Ok(())
    }

    /// Cuts this rank off. Items in flight still arrive, and also a part of the items that would
    /// follow. Nothing arrives after them.
    fn cut_off(&mut self) {
        for to in 0..self.inbound.len() {
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

    pub(super) fn mark_gone(&mut self, how: Loss) {
        if self.world.membership.mark_gone(self.rank, how) {
            self.wake_others();
        }
    }

    /// Wakes the other ranks, and all attendants.
    fn wake_others(&self) {
        self.world.wakers.wake_others(self.rank);
        self.world.attendants.wake(0..self.inbound.len());
    }

    pub(super) fn end(&mut self, cause: Cause) {
        self.world.membership.end(cause);
        self.wake_others();
    }

    /// Returns an error if this rank may not send to `to`.
    pub(super) fn may_send(&self, to: usize) -> Result<(), Lost> {
        self.own_loss().or_else(|| self.world.membership.lost(to)).map_or(Ok(()), Err)
    }

    pub(super) fn notification_arrived(&self, from: usize) -> bool {
        self.exchange != 0 && self.inbound[from].arrived >= self.exchange
    }

    /// Returns whether the next item of `from` was lost.
    pub(super) fn is_item_lost(&self, link: &SimLink, from: usize) -> bool {
        self.world.config.fault.is_some() && link.item_lost(self.inbound[from].inlet.opened)
    }

    /// Returns whether the links for which `polled` returns `true` have bytes that will arrive
    /// without a wake-up. If so, this rank has to poll these links again.
    pub(super) fn busy(&self, polled: impl Fn(&LinkReader) -> bool) -> bool {
        let size = self.inbound.len();
        let comes = |from: usize| {
            let link = lock(&self.world.links[from * size + self.rank]);
            !link.bytes.is_empty() || self.is_item_lost(&link, from)
        };
        (0..size).any(|from| polled(&self.inbound[from]) && comes(from))
    }

    /// Posts a frame. The payload is copied unless the receiver can read this rank's memory.
    ///
    /// # Errors
    /// As for [`Channels::post`](crate::Channels::post).
    pub(super) fn post(&mut self, to: usize, port: Port, header: Header, bytes: &[u8]) -> Result<(), Lost> {
        self.may_send(to)?;
        let reference;
        let bytes = if self.world.config.altered().reach {
            reference = reference_to(bytes.as_ptr(), bytes.len());
            &reference[..]
        } else {
            bytes
        };
        #[cfg(feature = "testing")]
        let tampered = self.world.config.tampered([self.rank, to], header, bytes);
        #[cfg(feature = "testing")]
        let (header, bytes) =
            tampered.as_ref().map_or((header, bytes), |(header, bytes)| (*header, &bytes[..]));
        self.send_item(to, |writer| writer.frame(port, header, bytes));
        self.inbound[to].ports.entry(port).or_default().posted += 1;
        self.event(to..to + 1)
    }

    /// Returns the oldest frame of `from` on this port that was not released.
    pub(super) fn front(&self, from: usize, port: Port) -> Option<Frame> {
        let (header, body) = self.inbound[from].ports.get(&port)?.frames.front()?;
        let reaches = self.world.config.altered().reach;
        let (payload, len) = if reaches { referenced(body.bytes()) } else { (body.as_ptr(), body.len()) };
        Some(Frame { header: *header, payload, len })
    }

    /// Releases the oldest frame of `from` on this port. Returns whether there was one.
    pub(super) fn release(&mut self, from: usize, port: Port) -> bool {
        let Some(body) = self.take(from, port) else { return false };
        self.recycle(from, body);
        true
    }

    /// Releases the oldest frame of `from` on this port, and returns its payload.
    pub(super) fn take(&mut self, from: usize, port: Port) -> Option<Body> {
        let of_port = self.inbound[from].ports.get_mut(&port)?;
        let (_, body) = of_port.frames.pop_front()?;
        of_port.releases += 1;
        let releases = of_port.releases;
        self.report_releases(from, port, releases);
        Some(body)
    }

    /// Keeps the memory of a frame of `from` for another frame.
    pub(super) fn recycle(&mut self, from: usize, body: Body) {
        self.inbound[from].decoder.recycle(body);
    }

    /// Closes a port.
    pub(super) fn close(&mut self, port: Port) {
        self.closed.insert(port);
        for from in 0..self.inbound.len() {
            if let Some(SimPort { frames, releases, .. }) = self.inbound[from].ports.remove(&port)
                && !(frames.is_empty() && releases == 0)
            {
                self.report_releases(from, port, CLOSED);
            }
        }
    }

    /// If there is an attendant, lets it answer the requests of `from` that have arrived.
    pub(super) fn answer(&mut self, from: usize) {
        let waits = |port: &SimPort| !port.frames.is_empty();
        if !self.inbound[from].ports.get(&Port::SERVICE).is_some_and(waits) || self.own_loss().is_some() {
            return;
        }
        // The attendant does not poll when it answers, so this function is not called again before
        // the attendant is put back.
        let Some(mut attendant) = self.attendant.take() else { return };
        let of_port = |core: &mut Self| core.inbound[from].ports.get_mut(&Port::SERVICE)?.frames.pop_front();
        while let Some((header, body)) = of_port(self) {
            let attended =
                catch_unwind(AssertUnwindSafe(|| attendant.attend(from, header, body.bytes(), self)));
            if attended.is_err() {
                return self.end(Cause { rank: self.rank, what: format!("rank {}: {PANICKED}", self.rank) });
            }
            self.inbound[from].decoder.recycle(body);
            if let Some(port) = self.inbound[from].ports.get_mut(&Port::SERVICE) {
                port.releases += 1;
                let releases = port.releases;
                self.report_releases(from, Port::SERVICE, releases);
            }
        }
        self.attendant = Some(attendant);
    }
}

impl Answers for SimCore {
    fn post(&mut self, to: usize, port: Port, header: Header, bytes: &[u8]) {
        let reached = self.world.config.altered().reach; // then an answer's bytes would have to stay
        if to < self.inbound.len() && !reached {
            // A rank that is lost needs no answer.
            let _: Result<(), Lost> = Self::post(self, to, port, header, bytes);
        }
    }

    fn refuse(&mut self, from: usize, what: &str) {
        self.end(Cause { rank: from, what: format!("rank {from}: {what}") });
        self.world.wakers.wake([self.rank]);
    }

    fn wake(&mut self, rank: usize) {
        if rank == self.rank {
            self.world.wakers.wake([rank]);
        }
    }
}
