//! [`Core`]: the state of all connections and worlds of a process. The rank and the fabric's thread
//! use the core in turn, under one lock. The thread serves connections while the rank does not.
//! Nothing here waits.
//!
//! This file has the state and handles what arrives. [`send`](crate::fabric::send) sends the items
//! of ranks, [`failure`](crate::fabric::failure) handles lost ranks, and
//! [`timers`](crate::fabric::timers) does the work that is due by time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use crate::deadlock::Table;
use crate::fabric::Limits;
use crate::fabric::carrier::{Carrier, Connection, Found, ReadOutcome};
use crate::fabric::channel::Channel;
use crate::fabric::peer::Peer;
use crate::fabric::probes::Probes;
use crate::fabric::waker::EventWaker;
use crate::stream::{Decoder, Intake, Item, ReceiveBuffer};
use crate::{Alarms, Header, Leave, Loss, Port};

/// The maximum number of worlds for which items have arrived although this rank has not joined them
/// yet.
const AHEAD: usize = 1 << 10;

/// The number of bytes that one read takes in, in addition to a body that is received in place.
const SCRATCH: usize = 64 << 10;

/// The state of all connections and worlds of a process.
pub struct Core<C: Carrier> {
    pub(crate) carrier: C,
    pub(super) limits: Limits,
    /// This rank, as a rank of the job.
    pub(super) me: usize,
    /// The waker of the thread that serves.
    server: Arc<EventWaker>,
    /// The arrivals that the last wait has found. They are kept so that their memory is reused.
    pub(crate) ready: Found<C>,
    /// The other ranks, by rank. Empty until they are known.
    pub(crate) peers: Vec<Peer<C>>,
    /// The machine of each rank. A machine is identified by the lowest rank on it.
    pub(super) machines: Vec<usize>,
    /// The ranks that died, in the order in which this process found out.
    pub(super) deaths: Vec<u32>,
    /// The time at which the thread that serves first noticed that a rank had failed.
    failed_at: Option<Instant>,
    pub(super) channels: BTreeMap<u64, Channel>,
    /// The number of worlds that this rank has created.
    pub(super) created_worlds: u32,
    /// The number of events so far that a rank may wait for.
    pub(crate) events: u64,
    /// The number of reads that found something.
    pub(super) heard: u64,
    /// The number of calls of the rank itself.
    pub(super) calls: u64,
    /// The number of polls of the rank that found what they looked for.
    pub(super) found: u64,
    /// How many of the next polls need not read, because everything was read when the rank woke.
    pub(super) fresh: usize,
    pub(super) rank: RankState,
    /// Whether the rank was woken from its wait for arrivals and has not noticed yet.
    pub(super) woken: bool,
    /// The time at which the thread next checks whether the rank polls, if the thread is waiting
    /// for that time.
    pub(super) next_check: Option<Instant>,
    /// Whether the rank has slept since the thread last checked.
    pub(super) has_slept: bool,
    /// The rank from which the last poll found nothing. `all_awaited` has the ranks of all such
    /// polls since this rank slept.
    pub(super) awaited: Option<u32>,
    pub(super) all_awaited: Vec<u32>,
    /// The awaited rank, and the count of polls that found something, when the timers last ran.
    pub(super) awaited_before: (Option<u32>, u64),
    /// How many ranks share a core of this machine, at least 1.
    pub(super) crowd: u32,
    /// Wakes a rank of the job if it sleeps on its futex. The rank is this rank, or a rank that is
    /// reached by shared memory.
    waker: Option<Box<dyn Fn(usize) + Send>>,
    /// For each rank, whether it is on this node and reached by shared memory. This rank itself
    /// counts as such a rank. The core sends nothing to such ranks. Empty if all ranks are reached
    /// by connections.
    pub(super) intra_node: Vec<bool>,
    /// Whether the rank has left for good.
    pub(super) closing: bool,
    /// Whether the process of this rank ends while the rank is in a world.
    pub(super) abandoned: bool,
    /// The ranks for which something was written but not flushed.
    dirty: Vec<u32>,
    /// The worlds and ranks to which releases are to be reported when this rank has nothing better
    /// to do.
    pub(super) pending_releases: Vec<(u64, u32)>,
    pub(super) requests: Requests,
    scratch: Box<[u8]>,
    /// The bodies of frames that this rank posts to itself.
    pub(super) own: Decoder,
    pub(super) timed: Instant,
    /// The known waits of other ranks.
    pub(super) probes: Probes,
    /// The count of failures that this rank knows of.
    pub(super) alarms: Alarms,
}

/// The requests that no attendant has seen yet.
#[derive(Default)]
pub(super) struct Requests {
    /// The world and the sender of each request, in order of arrival. A nudge has no sender.
    pub(super) list: VecDeque<(u64, Option<u32>)>,
    /// Whether requests have to wait, because an attendant is at work or a payload is being
    /// written.
    pub(super) held: bool,
    /// The number of worlds that have an attendant.
    pub(super) attended: usize,
}

/// What the rank of this process is doing, as far as its fabric knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RankState {
    /// The rank computes, or it polls. When it polls, it counts its calls.
    Busy,
    /// The rank is in one step of a wait, perhaps without a core, and polls afterwards.
    Waits,
    /// The rank waits for arrivals, and reads them without the thread.
    AwaitsArrivals,
    /// The rank has slept on its futex since this event count. A thread that advances the count
    /// must wake the rank.
    SleepsOnFutex(u64),
}

/// Takes in the items that arrive from one rank.
struct ItemSink<'a, C: Carrier> {
    core: &'a mut Core<C>,
    from: usize,
    /// The reason why nothing more is taken in from the rank.
    wrong: Option<&'static str>,
}

impl<C: Carrier> Intake for ItemSink<'_, C> {
    #[inline]
    fn buffer(&mut self, channel: u64, port: Port, header: Header, len: usize) -> Option<ReceiveBuffer> {
        self.core.channels.get_mut(&channel)?.pairs[self.from].queue_mut(port)?.inbound.buffer(header, len)
    }

    #[inline]
    fn take(&mut self, channel: u64, item: Item) {
        if self.wrong.is_none() {
            self.wrong = self.core.take(self.from, channel, item).err();
        }
    }
}

impl<C: Carrier> Core<C> {
    pub(super) fn new(carrier: C, me: usize, limits: Limits, server: Arc<EventWaker>, now: Instant) -> Self {
        Self {
            carrier,
            limits,
            me,
            server,
            ready: Found::<C>::default(),
            peers: Vec::new(),
            machines: Vec::new(),
            deaths: Vec::new(),
            failed_at: None,
            channels: BTreeMap::new(),
            created_worlds: 0,
            events: 0,
            heard: 0,
            calls: 0,
            found: 0,
            fresh: 0,
            rank: RankState::Busy,
            woken: false,
            awaited: None,
            all_awaited: Vec::new(),
            awaited_before: (None, 0),
            crowd: 1,
            next_check: None,
            has_slept: false,
            waker: None,
            intra_node: Vec::new(),
            closing: false,
            abandoned: false,
            dirty: Vec::new(),
            pending_releases: Vec::new(),
            requests: Requests::default(),
            scratch: vec![0; SCRATCH].into(),
            own: Decoder::default(),
            timed: now,
            probes: Probes::none(),
            alarms: Alarms::new(),
        }
    }

    /// Sets the ranks of the job. For each rank, `openings` has the state of opening a connection
    /// to it, and `machines` has the lowest rank on its machine.
    pub(super) fn set_ranks(&mut self, openings: Vec<C::Opening>, machines: Vec<usize>, now: Instant) {
        self.peers = openings.into_iter().map(|opening| Peer::new(opening, now)).collect();
        self.probes = Probes::new(Table::alone(self.me, self.peers.len()), self.peers.len());
        let here = machines.iter().filter(|&&machine| machine == machines[self.me]).count();
        self.crowd = u32::try_from(here.div_ceil(crate::cores::cores())).unwrap_or(u32::MAX);
        self.machines = machines;
    }

    /// Returns whether `rank` runs on the machine of this rank.
    pub(crate) fn is_on_this_machine(&self, rank: usize) -> bool {
        self.machines[rank] == self.machines[self.me]
    }

    /// Declares these ranks to be on this node, reached by shared memory. `waker` wakes one of
    /// these ranks if it waits for another of them. `waits` has the entries of all of them.
    pub(super) fn set_intra_node(&mut self, ranks: &[usize], waker: Box<dyn Fn(usize) + Send>, waits: Table) {
        self.probes = Probes::new(waits, self.peers.len());
        self.intra_node = (0..self.peers.len()).map(|rank| ranks.contains(&rank)).collect();
        self.waker = Some(waker);
    }

    /// Returns whether `rank` is reached by shared memory. If so, nothing is sent to it here.
    #[inline]
    pub(super) fn is_intra_node(&self, rank: usize) -> bool {
        self.intra_node.get(rank).is_some_and(|&intra_node| intra_node)
    }

    /// Wakes the rank of this process if it sleeps on its futex and has not seen all events.
    pub(super) fn wake_rank(&self) {
        if let (RankState::SleepsOnFutex(seen), Some(waker)) = (self.rank, &self.waker)
            && seen != self.events
        {
            waker(self.me());
        }
    }

    /// Wakes `rank`, which may be waiting for a value that this process has just stored. `rank` is
    /// this rank, or a rank that is reached by shared memory.
    pub(super) fn wake_there(&mut self, rank: usize) {
        if rank == self.me() {
            self.events += 1;
            self.wake_rank();
        } else if let Some(waker) = self.waker.as_ref().filter(|_| self.is_intra_node(rank)) {
            waker(rank);
        }
    }

    /// Returns whether this rank knows of a failed rank.
    pub(crate) fn has_failures(&self) -> bool {
        self.abandoned || !self.deaths.is_empty()
    }

    /// Returns whether a rank has failed and the time for which other ranks may continue is over.
    pub(super) fn grace_is_over(&mut self, now: Instant) -> bool {
        let Some(grace) = self.limits.grace.filter(|_| self.has_failures()) else { return false };
        now - *self.failed_at.get_or_insert(now) >= grace
    }

    /// Returns whether bytes are left to send that a connection could not take.
    pub(super) fn is_stuck(&self) -> bool {
        self.peers.iter().any(|peer| peer.link.as_ref().is_some_and(|link| link.awaits_room()))
    }

    /// Returns whether the rank is in a wait and has last looked for something from `rank`.
    pub(crate) fn is_awaiting(&self, rank: usize) -> bool {
        self.rank != RankState::Busy && self.awaited == Some(rank as u32)
    }

    /// Returns this rank, as a rank of the job.
    pub(crate) fn me(&self) -> usize {
        self.me
    }

    /// Returns the channel of this number, whether or not this rank has joined it.
    pub(super) fn channel(&mut self, number: u64) -> &mut Channel {
        let ranks = self.peers.len();
        self.channels.entry(number).or_insert_with(|| Channel::new(ranks))
    }

    /// Forgets a world that this rank has closed, if no rank can send anything more in that world.
    pub(super) fn forget_if_over(&mut self, number: u64) {
        let me = self.me();
        let over = self.channels.get(&number).is_some_and(|channel| {
            let silent = |rank: usize| {
                let peer = &self.peers[rank];
                rank == me
                    || self.is_intra_node(rank)
                    || channel.has_left(rank)
                    || peer.died.is_some()
                    || peer.heard_goodbye
            };
            channel.closed && channel.members.iter().all(|&rank| silent(rank as usize))
        });
        if over {
            self.channels.remove(&number);
        }
    }

    /// Returns the other members of a world that still read what is sent to them.
    pub(super) fn members(&self, number: u64) -> Vec<usize> {
        let Some(channel) = self.channels.get(&number) else { return Vec::new() };
        let members = channel.members.iter().map(|&to| to as usize);
        members.filter(|&to| self.listens(channel, to)).collect()
    }

    /// Returns whether `to` still reads what is sent in this world.
    pub(super) fn listens(&self, channel: &Channel, to: usize) -> bool {
        let peer = &self.peers[to];
        to != self.me()
            && !self.is_intra_node(to)
            && peer.died.is_none()
            && !peer.heard_goodbye
            && !channel.has_left(to)
    }

    pub(super) fn numbers(&self) -> Vec<u64> {
        self.channels.keys().copied().collect()
    }

    /// Reads what has arrived from `from`.
    pub(crate) fn read_from(&mut self, from: usize) {
        let Some(mut link) = self.peers[from].link.take() else { return };
        let received = link.receive(&mut self.carrier);
        let mut scratch = std::mem::take(&mut self.scratch);
        let events = self.events;
        let mut coming = ItemSink { core: self, from, wrong: None };
        let outcome = link.read(&mut scratch, &mut coming);
        let wrong = coming.wrong;
        if self.events != events {
            self.carrier.note_use(&mut link);
        }
        self.peers[from].link = Some(link);
        if let ReadOutcome::Something { all } = outcome {
            self.peers[from].heard = true;
            self.heard += 1;
            if !all {
                self.fresh = 0;
            }
        }
        self.scratch = scratch;
        match (outcome, wrong) {
            (ReadOutcome::Malformed(what), _) => self.reject(from, what),
            (_, Some(what)) => self.reject(from, what.into()),
            (ReadOutcome::Ended(what), None) => self.connection_ended(from, what),
            (ReadOutcome::Something { .. } | ReadOutcome::Nothing, None) => {
                if let Err(error) = received {
                    self.connection_ended(from, format!("its connection broke: {error}"));
                }
            }
        }
        if self.peers[from].unsent() || self.peers[from].heard_rest {
            self.mark_dirty(from);
        }
        self.answer_requests();
    }

    /// Takes in an item.
    pub(super) fn take(&mut self, from: usize, number: u64, item: Item) -> Result<(), &'static str> {
        match item {
            Item::Beat => return Ok(()),
            Item::Goodbye => {
                self.events += 1;
                let peer = &mut self.peers[from];
                if peer.heard_goodbye {
                    return Err("it left all its worlds twice");
                }
                peer.heard_goodbye = true;
                self.alarms.raise();
                if !self.limits.obituary.is_zero() {
                    peer.closing = Some(Instant::now() + self.limits.obituary);
                }
                peer.write_item(|writer| writer.farewell());
                return Ok(());
            }
            Item::Farewell => {
                self.peers[from].heard_farewell = true;
                return Ok(());
            }
            Item::Ask => {
                self.answer(from);
                return Ok(());
            }
            Item::Waits { number, awaited, about, text } => {
                return self.answered(from, number, awaited as usize, &about, text);
            }
            Item::Probe { seen, list } => return self.probed(seen, &list),
            Item::Agree(number) => {
                self.agreed(from, number);
                return Ok(());
            }
            Item::Nudge => {
                self.note_nudge(number);
                return Ok(());
            }
            Item::Rest => {
                self.peers[from].heard_rest = true;
                return Ok(());
            }
            _ => {}
        }
        self.events += 1;
        if !self.channels.contains_key(&number) {
            let ahead = self.channels.values().filter(|channel| channel.members.is_empty()).count();
            if ahead >= AHEAD {
                return Err("it sent items of too many worlds that this rank has not joined");
            }
        }
        let (mut released, mut came, left) = (None, Port::FENCE, matches!(item, Item::Left { .. }));
        match item {
            Item::Release { port, .. } => released = Some(port),
            Item::Frame(port, ..) | Item::Want { port, .. } => came = port,
            _ => {}
        }
        let wants = matches!(item, Item::Want { .. });
        let fails =
            matches!(&item, Item::End { .. } | Item::Left { how: Leave::Failed(_) | Leave::Panicked(_), .. });
        let channel = self.channel(number);
        channel.take(from, item)?;
        if fails {
            self.alarms.raise();
        }
        let channel = self.channel(number);
        let leaving = left.then(|| channel.gone(from)).flatten();
        if let Some(port) = released {
            self.send_waiting(number, from, port);
        }
        match came {
            Port::FENCE => {}
            Port::SERVICE if wants => self.grant_request(number, from),
            Port::SERVICE => self.note_request(number, from),
            port if self.channel(number).has_closed(port) => self.report_releases(number, from),
            _ => {}
        }
        if let Some(how) = leaving {
            self.peers[from].failed = match how {
                Loss::Left(Leave::Failed(why) | Leave::Panicked(why)) => Some(why),
                _ => None,
            };
            self.forget_if_over(number);
        }
        Ok(())
    }

    /// Reads what has arrived from `from`, for a poll of the rank.
    pub(super) fn poll_from(&mut self, from: usize) {
        match self.fresh.checked_sub(1) {
            Some(fresh) => self.fresh = fresh,
            None => {
                if C::IS_CONNECTIONLESS && self.peers[from].link.is_none() {
                    C::connect(self, from);
                }
                self.read_from(from);
            }
        }
    }

    /// Called when a poll finds nothing from `from` on this port.
    pub(super) fn note_missing(&mut self, number: u64, from: usize, port: Port) {
        if from == self.me() {
            return;
        }
        self.awaited = Some(from as u32);
        let peer = &mut self.peers[from];
        if !std::mem::replace(&mut peer.awaited_by_us, true) {
            self.all_awaited.push(from as u32);
        }
        if let Some(channel) = self.channels.get_mut(&number)
            && channel.left.is_none()
            && let Some(queue) = channel.pairs[from].queue_mut(port)
            && queue.inbound.grant_wanted(number, port, &mut peer.out.bytes)
        {
            self.send(from);
        }
        self.flush_dirty();
    }

    /// Marks that something was written to `to`. The bytes are sent together with bytes that
    /// follow, or at the next poll.
    pub(super) fn mark_dirty(&mut self, to: usize) {
        if !std::mem::replace(&mut self.peers[to].dirty, true) {
            self.dirty.push(to as u32);
        }
    }

    /// Sends what was written.
    #[inline]
    pub(crate) fn flush_dirty(&mut self) {
        while let Some(to) = self.dirty.pop() {
            self.peers[to as usize].dirty = false;
            self.send(to as usize);
        }
    }

    /// Sends what was written to `to`, as far as its connection takes it.
    #[inline]
    pub(crate) fn send(&mut self, to: usize) {
        let peer = &self.peers[to];
        if peer.link.is_some() {
            C::send(self, to);
        } else if peer.wants_connection() {
            C::connect(self, to);
        }
    }

    /// Wakes the thread, so that bytes that a connection did not take are sent even while the rank
    /// computes.
    pub(crate) fn wake_server(&self) {
        self.server.wake();
    }
}
