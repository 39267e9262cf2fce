//! [`FabricEnd`]: one rank's end of a world over a [`Fabric`].

use std::io;
use std::sync::{Arc, MutexGuard};

use crate::deadlock::Waits;
use crate::fabric::carrier::{BIG, Carrier, Connection};
use crate::fabric::core::{Core, RankState};
use crate::fabric::peer::Peer;
use crate::fabric::server::{Fabric, FabricShared};
use crate::meter::Meter;
use crate::record::{Counts, FrameLog};
use crate::shared::waker::{Backoff, Pause};
use crate::stream::ReceiveBuffer;
use crate::{
    Alarms, Attendant, Cause, Channels, CreateJoin, Created, Endpoint, Frame, Header, Leave, Lent, Liveness,
    Loss, Lost, Notification, Notify, Number, Payload, Port, Topology,
};

/// One rank's end of a world over a fabric.
pub struct FabricEnd<C: Carrier> {
    /// This rank, as a rank of this world.
    rank: usize,
    /// For each rank of this world, its rank in the job.
    members: Vec<u32>,
    number: u64,
    exchange: u64,
    unread: usize,
    /// The number of other members that are reached by connections.
    remote_members: usize,
    drafts: Vec<Notification>,
    /// The notification that was read last.
    notification: Notification,
    /// The event count when this end last fell asleep or woke.
    seen: u64,
    touching: bool,
    backoff: Backoff,
    counts: Counts,
    alarms: Alarms,
    fabric: Arc<Fabric<C>>,
}

impl<C: Carrier> FabricEnd<C> {
    /// Returns the end of `rank` in world `world` of the job. That world has all `size` ranks of
    /// the job. A rank takes its end of each world once.
    ///
    /// # Errors
    /// Fails if the job does not have `size` ranks, if this process is not `rank`, or if this
    /// process has taken its end of that world before.
    pub fn of_job(fabric: &Arc<Fabric<C>>, world: u32, rank: usize, size: usize) -> io::Result<Self> {
        let members: Vec<u32> = (0..size as u32).collect();
        let ranks = fabric.shared().lock().peers.len();
        if size != ranks {
            return Err(io::Error::other(format!(
                "cannot join a world of {size} ranks: the job has {ranks}"
            )));
        }
        Self::new(fabric, world.into(), members, rank)
    }

    fn new(fabric: &Arc<Fabric<C>>, number: u64, members: Vec<u32>, rank: usize) -> io::Result<Self> {
        // Ranks on one machine share its cores.
        let (local_ranks, remote_members, alarms) = {
            let mut core = fabric.shared().lock();
            let (me, ranks) = (core.me() as u32, core.peers.len());
            let here = members.get(rank) == Some(&me) && members.iter().all(|&to| (to as usize) < ranks);
            let channel = core.channel(number);
            if !here || !channel.members.is_empty() {
                return Err(io::Error::other(
                    "this rank is not a member of the world, or has joined it before",
                ));
            }
            channel.members.clone_from(&members);
            let machine = |rank: u32| core.machines[rank as usize];
            let local_ranks = members.iter().filter(|&&to| machine(to) == machine(me)).count();
            let remote = members.iter().filter(|&&to| to != me && !core.is_intra_node(to as usize));
            (local_ranks, remote.count(), core.alarms.clone())
        };
        Ok(Self {
            rank,
            number,
            exchange: 0,
            unread: 0,
            remote_members,
            drafts: vec![Notification::default(); members.len()],
            notification: Notification::default(),
            seen: 0,
            touching: false,
            backoff: Backoff::of(local_ranks),
            counts: Counts::default(),
            members,
            alarms,
            fabric: fabric.clone(),
        })
    }

    /// See [`CreateJoin::join`].
    pub(crate) fn joined(&self, number: Number, members: &[usize], index: usize) -> io::Result<Self> {
        let of = |&rank: &usize| self.members.get(rank).copied();
        let members: Option<Vec<u32>> = members.iter().map(of).collect();
        let members = members
            .ok_or_else(|| io::Error::other("every member of the new world must be a rank of this one"))?;
        Self::new(&self.fabric, number.world, members, index)
    }

    fn shared(&self) -> &FabricShared<C> {
        self.fabric.shared()
    }

    fn core(&self) -> MutexGuard<'_, Core<C>> {
        let mut core = self.shared().lock();
        core.calls += 1;
        core.rank = RankState::Busy;
        core
    }

    fn of(&self, rank: usize) -> usize {
        self.members[rank] as usize
    }

    fn own_loss(&self, core: &Core<C>) -> Option<Lost> {
        core.channels.get(&self.number)?.mine(self.rank)
    }

    /// Takes in everything that has arrived. Returns why the world ended, if it has.
    pub(crate) fn serve(&mut self) -> Option<Cause> {
        let mut core = self.core();
        C::serve_ready(&mut core);
        core.channels.get(&self.number)?.ended.clone()
    }

    /// Returns whether this rank has written anything that no connection has taken yet. For tests.
    #[doc(hidden)]
    pub fn holds_back(&self) -> bool {
        self.core().peers.iter().any(Peer::unsent)
    }

    /// Prepares this rank to sleep on its futex. The fabric's thread serves meanwhile, and wakes
    /// the rank when something arrives. Returns `false`, and does nothing, if something has arrived
    /// since the last call. The caller calls [`wake`](Self::wake) afterwards.
    pub(crate) fn hand_over(&mut self) -> bool {
        let mut seen = self.seen;
        let handed = self.shared().hand_over(&mut seen);
        self.seen = seen;
        handed
    }

    /// Ends the sleep on the futex.
    pub(crate) fn wake(&mut self) {
        drop(self.core());
    }

    /// Returns an error if this rank may not send.
    fn may_send(&self, core: &Core<C>, to: usize) -> Result<(), Lost> {
        if let Some(lost) = self.own_loss(core) {
            return Err(lost);
        }
        if to == self.rank || !core.is_gone(self.number, self.of(to)) {
            return Ok(());
        }
        self.lost_of(core, to).map_or(Ok(()), Err)
    }

    /// Returns why `peer` sends nothing more, or `None` if it may send more. Items that `peer` has
    /// sent may not have arrived yet.
    fn lost_of(&self, core: &Core<C>, peer: usize) -> Option<Lost> {
        self.own_loss(core).or_else(|| {
            let from = self.of(peer);
            core.gone_of(self.number, from).map(|how| Lost { rank: peer, how })
        })
    }

    /// Posts a frame. Lends the payload to the carrier if the payload `may_stay`.
    ///
    /// # Errors
    /// As for [`Channels::post`].
    ///
    /// # Safety
    /// As for [`Channels::post`], or if the payload `may_stay`, as for [`Channels::post_in_place`].
    unsafe fn post_any(&mut self, to: usize, port: Port, frame: Frame, may_stay: bool) -> Result<(), Lost> {
        let before = self.counts.before_post();
        let mut core = self.core();
        self.may_send(&core, to)?;
        // SAFETY: the caller's promise.
        let copied =
            unsafe { core.post_any((self.number, self.of(to), port), frame.header, frame.bytes(), may_stay) };
        drop(core);
        self.counts.meter.copied += copied as u64;
        self.counts.posted(before, to, port, &frame);
        Ok(())
    }

    /// Looks for something from `from` by calling `found`. If `found` returns `None`, reads what
    /// has arrived and calls `found` again. Returns the result of `found`. If the caller looks for
    /// a frame, `port` is the port of the frame.
    fn find<T>(
        &self,
        from: usize,
        port: Port,
        found: impl Fn(&mut Core<C>) -> Option<T>,
    ) -> Result<Option<T>, Lost> {
        let mut core = self.core();
        if let Some(it) = found(&mut core) {
            core.found += 1;
            return Ok(Some(it));
        }
        let of = self.of(from);
        core.flush_dirty();
        core.poll_from(of);
        if let Some(it) = found(&mut core) {
            core.found += 1;
            return Ok(Some(it));
        }
        if let Some(lost) = self.own_loss(&core).or_else(|| core.lost(self.number, from, of)) {
            return Err(lost);
        }
        core.note_missing(self.number, of, port);
        Ok(None)
    }
}

impl<C: Carrier> Topology for FabricEnd<C> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn reaches(&self, _peer: usize) -> bool {
        false
    }

    fn machine(&self, peer: usize) -> usize {
        let core = self.shared().lock();
        let machine = |rank: u32| core.machines[rank as usize];
        let of_peer = machine(self.members[peer]);
        self.members.iter().position(|&rank| machine(rank) == of_peer).unwrap_or(peer)
    }
}

impl<C: Carrier> Notify for FabricEnd<C> {
    #[inline]
    fn draft(&mut self, to: usize) -> &mut Notification {
        &mut self.drafts[to]
    }

    fn publish(&mut self, word: u64) -> Result<(), Lost> {
        self.may_send(&self.core(), self.rank)?;
        assert!(self.unread == 0, "published before every notification of the previous exchange was read");
        self.exchange += 1;
        self.unread = self.remote_members;
        self.drafts.iter_mut().for_each(|draft| draft.word = word);
        self.core().publish(self.number, &self.drafts);
        self.counts.meter.exchanges += 1;
        Ok(())
    }

    fn read(&mut self, from: usize) -> Result<Option<&Notification>, Lost> {
        let (number, exchange, of) = (self.number, self.exchange, self.of(from));
        let found = self.find(from, Port::FENCE, |core| {
            let channel = core.channels.get_mut(&number)?;
            let notification = *channel.notification(of)?;
            let inbound = &mut channel.pairs[of].inbound;
            let first = inbound.read < exchange;
            inbound.read = exchange;
            Some((notification, first))
        })?;
        let Some((notification, first)) = found else { return Ok(None) };
        self.unread -= usize::from(first);
        self.notification = notification;
        Ok(Some(&self.notification))
    }

    fn settle(&mut self) -> Result<(), Lost> {
        let mut core = self.core();
        self.may_send(&core, self.rank)?;
        core.settle(self.number);
        drop(core);
        self.counts.meter.settles += 1;
        Ok(())
    }

    fn settled(&mut self, from: usize) -> Result<bool, Lost> {
        let (number, exchange, of) = (self.number, self.exchange, self.of(from));
        let found = self.find(from, Port::FENCE, |core| {
            (core.channels.get(&number)?.pairs[of].inbound.settled >= exchange).then_some(())
        })?;
        Ok(found.is_some())
    }
}

impl<C: Carrier> Channels for FabricEnd<C> {
    unsafe fn post(&mut self, to: usize, port: Port, frame: Frame) -> Result<(), Lost> {
        // SAFETY: the caller's promise; the payload is copied.
        unsafe { self.post_any(to, port, frame, false) }
    }

    fn lends_to(&self, peer: usize) -> bool {
        C::LENDS && peer != self.rank
    }

    unsafe fn post_in_place(&mut self, to: usize, port: Port, frame: Frame) -> Result<(), Lost> {
        // SAFETY: the caller's promise.
        unsafe { self.post_any(to, port, frame, C::LENDS) }
    }

    fn lent(&mut self, peer: usize) -> Lent {
        if !C::LENDS {
            return Lent::Nothing;
        }
        let of = self.of(peer);
        let mut core = self.core();
        match (C::lent(&mut core, of), core.peers[of].has_ended) {
            (Lent::ForGood, false) => Lent::InUse,
            (lent, _) => lent,
        }
    }

    #[inline]
    fn flush(&mut self) {
        self.core().flush_dirty();
    }

    fn poll(&mut self, from: usize, port: Port) -> Result<Option<Frame>, Lost> {
        let (number, of) = (self.number, self.of(from));
        self.find(from, port, |core| {
            let queue = core.channels.get(&number)?.pairs[of].queue(port)?;
            let (header, body) = queue.inbound.frames.front()?;
            Some(Frame { header: *header, payload: body.as_ptr(), len: body.len() })
        })
    }

    unsafe fn prepost(&mut self, from: usize, port: Port, ahead: u64, header: Header, to: *mut [u8]) {
        // SAFETY: the caller promises what `ReceiveBuffer::new` requires until `release` or
        // `cancel`, or until this end is dropped. In each of these cases the body is recycled,
        // moved out, or dropped.
        let buffer = unsafe { ReceiveBuffer::new(to.cast(), to.len()) };
        let moved = self.core().prepost(self.number, self.of(from), port, ahead, header, buffer);
        self.counts.meter.copied += moved as u64;
    }

    fn coming(&mut self, from: usize, port: Port) -> Option<(Header, usize)> {
        let of = self.of(from);
        let core = self.core();
        let queue = core.channels.get(&self.number)?.pairs[of].queue(port);
        queue.is_none_or(|queue| queue.inbound.frames.is_empty()).then_some(())?;
        core.peers[of].link.as_ref()?.decoder().coming(self.number, port, BIG)
    }

    fn cancel(&mut self, from: usize, port: Port) {
        self.core().cancel(self.number, self.of(from), port);
    }

    fn release(&mut self, from: usize, port: Port) {
        let released = self.core().release(self.number, self.of(from), port);
        assert!(released, "release without a polled frame: rank {from} has no open frame");
        self.counts.released(from, port);
    }

    fn take(&mut self, from: usize, port: Port) -> Option<Payload> {
        let of = self.of(from);
        let taken = self.core().take_payload(self.number, of, port)?;
        self.counts.released(from, port);
        Some(Payload(taken))
    }

    fn recycle(&mut self, from: usize, payload: Payload) {
        let of = self.of(from);
        self.core().recycle(of, payload.0);
    }

    fn released(&mut self, to: usize, port: Port) -> u64 {
        let (number, of) = (self.number, self.of(to));
        let mut core = self.core();
        let counts = |core: &Core<C>| {
            let outbound = &core.channels.get(&number)?.pairs[of].queue(port)?.outbound;
            Some((outbound.posted, outbound.released()))
        };
        let (posted, released) = counts(&core).unwrap_or_default();
        if to != self.rank && released < posted {
            core.poll_from(of);
            if core.is_gone(number, of) {
                return posted;
            }
            core.note_missing(number, of, port);
        }
        counts(&core).unwrap_or_default().1
    }

    fn drained(&mut self, from: usize) -> bool {
        let of = self.of(from);
        self.core().channels.get(&self.number).is_none_or(|channel| channel.drained(of))
    }

    fn nothing_in_flight(&mut self, _: usize) -> bool {
        true // a rank reports its wait after everything else that it sent
    }

    fn close(&mut self, port: Port) {
        self.counts.closed(port);
        assert!(port > Port::SERVICE, "only ports of windows are closed");
        self.core().close_port(self.number, port);
    }

    fn attend(&mut self, attendant: Box<dyn Attendant>) {
        self.core().attend(self.number, attendant);
    }

    fn meter(&self) -> &Meter {
        &self.counts.meter
    }

    fn record(&mut self, log: FrameLog) {
        self.counts.record(log);
    }
}

impl<C: Carrier> Liveness for FabricEnd<C> {
    fn lost(&mut self, peer: usize) -> Option<Lost> {
        let core = self.core();
        self.own_loss(&core).or_else(|| core.lost(self.number, peer, self.of(peer)))
    }

    fn alarms(&self) -> Alarms {
        self.alarms.clone()
    }

    fn idle(&mut self, pause: &mut Pause) {
        if pause.full_poll_due() {
            let mut core = self.core();
            C::serve_ready(&mut core);
            C::unwatch(&mut core);
        }
        if self.backoff.yields_next(pause) {
            self.core().rank = RankState::Waits;
        }
        if !self.backoff.step(pause) {
            pause.long = true;
            let mut seen = self.seen;
            self.shared().sleep(&mut seen);
            self.seen = seen;
            self.backoff.woken(pause);
        }
    }

    fn nudge(&mut self, peer: usize) {
        let (number, of) = (self.number, self.of(peer));
        self.core().nudge(number, of);
    }

    fn leave(&mut self, how: Leave) {
        let mut core = self.core();
        core.leave(self.number, &how);
        let attendant = core.dismiss(self.number);
        drop(core);
        drop(attendant);
    }

    fn end(&mut self, cause: Cause) {
        self.core().end(self.number, cause);
    }

    #[inline]
    fn announce(&mut self, word: u64) {
        self.core().channel(self.number).word = word;
    }

    fn announced(&self, peer: usize) -> u64 {
        let of = self.of(peer);
        self.core().channels.get(&self.number).map_or(0, |channel| {
            if peer == self.rank { channel.word } else { channel.pairs[of].inbound.announced }
        })
    }

    fn left_at(&self, peer: usize) -> Option<u64> {
        let (core, of) = (self.core(), self.of(peer));
        let channel = core.channels.get(&self.number)?;
        // The peer's announcement arrived before its report that it left, on the same connection.
        channel.has_left(of).then(|| channel.pairs[of].inbound.announced)
    }

    fn touching(&mut self, on: bool) -> bool {
        let may = !self.own_loss(&self.core()).is_some_and(|lost| matches!(lost.how, Loss::Ended(_)));
        self.touching = on && may;
        !on || may
    }

    fn is_touching(&self, peer: usize) -> bool {
        // No rank's memory is accessed from another process.
        peer == self.rank && self.touching
    }

    fn waits(&self) -> Option<Waits> {
        let table = self.core().probes.table.clone();
        Some(Waits::remote(table, self.fabric.shared().clone(), self.members.clone().into()))
    }
}

impl<C: Carrier> CreateJoin for FabricEnd<C>
where
    Self: Into<Endpoint>,
{
    fn create(&mut self, _members: &[usize]) -> io::Result<Created> {
        let mut core = self.core();
        core.created_worlds += 1;
        let world = (core.me() as u64 + 1) << 32 | u64::from(core.created_worlds);
        Ok(Created::Number(Number { world, part: world }))
    }

    fn join(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        self.joined(number, members, index).map(Into::into)
    }
}

impl<C: Carrier> Drop for FabricEnd<C> {
    fn drop(&mut self) {
        self.leave(crate::dropped());
        self.core().close(self.number);
    }
}
