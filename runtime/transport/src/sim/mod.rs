//! Simulated ranks: threads that only exchange bytes, over links whose delays follow from a seed.
//!
//! Every ordered pair of ranks, including a rank and itself, has a link of its own. A link is a
//! stream of bytes. Only a limited number of bytes is in flight at once. Further bytes follow when
//! there is room, even if the sender is waiting in another world. Bytes arrive after a latency in
//! real time, which is 0 by default. After that, time is counted in polls of the reader. Bytes on a
//! link become visible after some polls of the link, in pieces that split heads and payloads
//! anywhere. So bytes of one pair of ranks can overtake bytes of another pair. Each link has a
//! generator of random numbers, and polls of the link take delays and lengths of pieces from it. A
//! rank can be cut off at a chosen event, usually in the middle of an item, and any one item can
//! suffer a [fault](crate::Fault). If the threads make the same calls in the same order, the seed
//! reproduces the decisions of the links.
//!
//! A rank that has an [`Attendant`](crate::Attendant) has a thread for it, so that requests are
//! answered even while the rank computes. The thread polls all links while bytes are on them. Its
//! polls count as polls of the rank.

use std::io;

#[cfg(not(loom))]
mod attending;
pub(crate) mod config;
mod core;
pub(crate) mod fault;
mod links;
mod random;

#[cfg(not(loom))]
use crate::Attendant;
use crate::meter::Meter;
use crate::record::{Counts, FrameLog};
use crate::shared::members::Membership;
use crate::shared::waker::{Pause, Wakers};
use crate::sim::config::SimConfig;
use crate::sim::core::{SimCore, SimWorld, WorldsOfRank};
use crate::sim::links::{SimLink, SimPort, slot};
use crate::sync::{Arc, Mutex, MutexGuard, lock};
use crate::{
    Alarms, Cause, Channels, CreateJoin, Created, Endpoint, Frame, Leave, Liveness, Loss, Lost, Notification,
    Notify, Payload, Port, Topology,
};

/// One rank's end of a simulated world.
pub struct SimEnd {
    rank: usize,
    unread: usize,
    drafts: Vec<Notification>,
    /// The notification that was read last.
    notification: Notification,
    core: Arc<Mutex<SimCore>>,
    world: Arc<SimWorld>,
    counts: Counts,
    #[cfg(not(loom))]
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Creates a world of `size` threads that exchange messages, and returns one end for each.
pub fn sim(size: usize, config: SimConfig) -> Vec<SimEnd> {
    world(config, Wakers::new(size), (0..size).map(|_| Arc::default()).collect())
}

/// Creates a world of ranks with these wakers, and returns one end for each rank. `worlds` lists,
/// for each rank, the worlds in which it already is.
fn world(config: SimConfig, wakers: Wakers, worlds: Vec<Arc<WorldsOfRank>>) -> Vec<SimEnd> {
    let size = worlds.len();
    let world = Arc::new(SimWorld {
        config,
        links: (0..size * size).map(|_| Mutex::new(SimLink::default())).collect(),
        wakers,
        attendants: Wakers::new(size),
        worlds,
        membership: Membership::new(size),
    });
    let end = |rank| {
        let core = Arc::new(Mutex::new(SimCore::new(rank, size, &world)));
        lock(&world.worlds[rank]).push(Arc::clone(&core));
        SimEnd {
            rank,
            unread: 0,
            drafts: vec![Notification::default(); size],
            notification: Notification::default(),
            core,
            world: Arc::clone(&world),
            counts: Counts::default(),
            #[cfg(not(loom))]
            thread: None,
        }
    };
    (0..size).map(end).collect()
}

impl SimEnd {
    fn core(&self) -> MutexGuard<'_, SimCore> {
        lock(&self.core)
    }
}

impl SimCore {
    /// Polls the link from `from`, on behalf of the rank itself.
    fn poll(&mut self, from: usize) {
        self.inbound[from].polled = true;
        self.poll_link(from, false);
    }
}

impl Topology for SimEnd {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.drafts.len()
    }

    fn reaches(&self, _peer: usize) -> bool {
        self.world.config.altered().reach
    }
}

impl Notify for SimEnd {
    fn draft(&mut self, to: usize) -> &mut Notification {
        &mut self.drafts[to]
    }

    fn publish(&mut self, word: u64) -> Result<(), Lost> {
        let size = self.size();
        let mut core = lock(&self.core);
        core.may_send(self.rank)?;
        let skips = self.world.config.altered().unread;
        assert!(
            self.unread == 0 || skips,
            "published before every notification of the previous exchange was read"
        );
        core.exchange += 1;
        self.unread = size - 1;
        for (to, draft) in self.drafts.iter_mut().enumerate() {
            draft.word = word;
            let notification = *draft;
            let posted = core.inbound[to].ports.get(&Port::FENCE).map_or(0, |port| port.posted);
            #[cfg(feature = "testing")]
            let notification = self.world.config.tampered_notification([self.rank, to], notification);
            core.send_item(to, |writer| writer.notification(&notification, posted));
        }
        core.event(0..size)?;
        core.inbound[self.rank].read = core.exchange;
        core.poll_link(self.rank, true);
        drop(core);
        self.counts.meter.exchanges += 1;
        Ok(())
    }

    fn read(&mut self, from: usize) -> Result<Option<&Notification>, Lost> {
        let mut core = lock(&self.core);
        if !core.notification_arrived(from) {
            core.poll(from);
            if !core.notification_arrived(from)
                && !core.missing(from, |core| core.notification_arrived(from))?
            {
                return Ok(None);
            }
        }
        let exchange = core.exchange;
        let inbound = &mut core.inbound[from];
        if inbound.read < exchange {
            inbound.read = exchange;
            self.unread -= 1;
        }
        self.notification = inbound.notifications[slot(exchange, self.world.config.altered())];
        Ok(Some(&self.notification))
    }

    fn settle(&mut self) -> Result<(), Lost> {
        let mut core = self.core();
        core.may_send(self.rank)?;
        let exchange = core.exchange;
        (0..self.size()).for_each(|to| core.send_item(to, |writer| writer.settle(exchange)));
        core.event(0..self.size())?;
        drop(core);
        self.counts.meter.settles += 1;
        Ok(())
    }

    fn settled(&mut self, from: usize) -> Result<bool, Lost> {
        let settled = |core: &SimCore| core.inbound[from].settled >= core.exchange;
        let mut core = self.core();
        if !settled(&core) {
            core.poll(from);
        }
        if settled(&core) { Ok(true) } else { core.missing(from, settled) }
    }
}

impl Channels for SimEnd {
    unsafe fn post(&mut self, to: usize, port: Port, frame: Frame) -> Result<(), Lost> {
        debug_assert!(port != Port::SERVICE || !self.reaches(to), "a rank that is reached serves nobody");
        let before = self.counts.before_post();
        // SAFETY: the caller promises that the payload is readable.
        self.core().post(to, port, frame.header, unsafe { frame.bytes() })?;
        self.counts.posted(before, to, port, &frame);
        Ok(())
    }

    fn poll(&mut self, from: usize, port: Port) -> Result<Option<Frame>, Lost> {
        let mut core = self.core();
        if core.front(from, port).is_none() {
            core.poll(from);
        }
        if core.front(from, port).is_none() {
            core.missing(from, |core| core.front(from, port).is_some())?;
        }
        Ok(core.front(from, port))
    }

    fn release(&mut self, from: usize, port: Port) {
        let released = self.core().release(from, port);
        assert!(released, "release without a polled frame: rank {from} has no open frame");
        self.counts.released(from, port);
    }

    fn take(&mut self, from: usize, port: Port) -> Option<Payload> {
        let taken = self.core().take(from, port)?;
        self.counts.released(from, port);
        Some(Payload(taken))
    }

    fn recycle(&mut self, from: usize, payload: Payload) {
        self.core().recycle(from, payload.0);
    }

    fn released(&mut self, to: usize, port: Port) -> u64 {
        let counts = |core: &SimCore| core.inbound[to].ports.get(&port).map_or((0, 0), SimPort::counts);
        let mut core = self.core();
        let (posted, released) = counts(&core);
        if self.world.membership.gone(to) {
            return posted;
        }
        if released < posted {
            core.poll(to);
        }
        counts(&core).1
    }

    fn close(&mut self, port: Port) {
        self.counts.closed(port);
        assert!(port > Port::SERVICE, "only ports of windows are closed");
        self.core().close(port);
    }

    #[cfg(not(loom))]
    fn attend(&mut self, attendant: Box<dyn Attendant>) {
        let mut core = lock(&self.core);
        assert!(self.thread.is_none(), "a world has one attendant");
        if core.own_loss().is_some() {
            return; // nothing is served any more
        }
        core.attendant = Some(attendant);
        (0..self.drafts.len()).for_each(|from| core.answer(from));
        self.thread = Some(attending::start(&self.core, self.rank));
    }

    fn drained(&mut self, from: usize) -> bool {
        let core = self.core();
        let link = lock(&self.world.links[from * self.size() + self.rank]);
        let unread = core.front(from, Port::FENCE).is_some();
        link.bytes.is_empty() && !unread && !core.is_item_lost(&link, from)
    }

    fn nothing_in_flight(&mut self, from: usize) -> bool {
        let link = lock(&self.world.links[from * self.size() + self.rank]);
        link.bytes.is_empty()
    }

    fn meter(&self) -> &Meter {
        &self.counts.meter
    }

    fn record(&mut self, log: FrameLog) {
        self.counts.record(log);
    }
}

impl Liveness for SimEnd {
    fn lost(&mut self, peer: usize) -> Option<Lost> {
        let core = self.core();
        core.own_loss().or_else(|| self.world.membership.lost(peer))
    }

    fn alarms(&self) -> Alarms {
        self.world.membership.alarms().clone()
    }

    fn idle(&mut self, pause: &mut Pause) {
        let all = &self.world.worlds[self.rank];
        let busy = || lock(all).iter().any(|core| lock(core).busy(|inbound| inbound.polled));
        self.world.wakers.wait_step_unless(self.rank, pause, busy);
        for core in lock(all).iter() {
            lock(core).inbound.iter_mut().for_each(|inbound| inbound.polled = false);
        }
    }

    fn leave(&mut self, how: Leave) {
        let mut core = lock(&self.core);
        if core.own_loss().is_none_or(|lost| matches!(lost.how, Loss::Ended(_))) {
            (0..self.drafts.len()).for_each(|to| core.flush(to));
        }
        core.mark_gone(Loss::Left(how));
        let attendant = core.attendant.take();
        drop(core);
        drop(attendant);
    }

    fn end(&mut self, cause: Cause) {
        self.core().end(cause);
    }

    #[inline]
    fn announce(&mut self, word: u64) {
        self.world.membership.announce(self.rank, word);
    }

    fn announced(&self, peer: usize) -> u64 {
        self.world.membership.announced(peer)
    }

    fn left_at(&self, peer: usize) -> Option<u64> {
        let membership = &self.world.membership;
        membership.gone(peer).then(|| membership.announced(peer))
    }

    #[inline]
    fn touching(&mut self, on: bool) -> bool {
        self.world.membership.touch(self.rank, on)
    }

    fn is_touching(&self, peer: usize) -> bool {
        self.world.membership.touches(peer)
    }
}

impl CreateJoin for SimEnd {
    fn create(&mut self, members: &[usize]) -> io::Result<Created> {
        let wakers = self.world.wakers.part(members)?;
        let worlds = members.iter().map(|&member| Arc::clone(&self.world.worlds[member])).collect();
        let ends = world(self.world.config.clone(), wakers, worlds);
        Ok(Created::Ends(ends.into_iter().map(Endpoint::Sim).collect()))
    }
}

impl Drop for SimEnd {
    fn drop(&mut self) {
        self.leave(crate::dropped());
        lock(&self.world.worlds[self.rank]).retain(|core| !Arc::ptr_eq(core, &self.core));
        #[cfg(not(loom))]
        if let Some(thread) = self.thread.take() {
            self.world.attendants.wake([self.rank]);
            let _: std::thread::Result<()> = thread.join();
        }
    }
}
