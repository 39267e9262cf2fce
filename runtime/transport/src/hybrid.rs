//! Ranks of several hosts: ranks of one host share memory, and exchange bytes with all other ranks
//! over a fabric.
//!
//! A [`HybridEnd`] consists of two ends. One belongs to the world of its host's ranks, in the
//! segment of the host. The other belongs to the whole world over the fabric, and sends nothing to
//! ranks of the same node. Each peer is reached through only one of the two ends, which keeps the
//! order that the contract requires for each pair of ranks and port. This file does the rest:
//!
//! - The intra-node world has its own rank numbers. When it reports a loss, the rank in the report
//!   is replaced by that rank's number in the whole world.
//! - The whole world ends as one: when one of the two ends finds out that its world was ended, the
//!   other end is ended as well. All ranks of a host see the first cause that reaches the host.
//! - A waiting rank sleeps on the futex on which the ranks of its node wake it. Meanwhile the
//!   fabric's thread serves the sockets, and wakes the rank on the same futex.
//! - Requests come from other hosts only, because a rank of the same host reaches this rank's
//!   memory. A rank of the same host nudges this rank's attendant over a connection, since this
//!   rank may be computing. The fabric's thread reads the connection.
//! - A rank reads the waits of the ranks of its node, and asks other ranks for their waits. A list
//!   of waits may return over a connection between two ranks of one node. Such a connection is
//!   opened only for these lists and for nudges.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::auth::{Secret, random_bytes};
use crate::deadlock::{Table, Waits};
use crate::fabric::carrier::Carrier;
use crate::fabric::{Fabric, FabricEnd};
use crate::record::{Counts, FrameLog};
use crate::tcp::{Settings, Tcp, listen};
use crate::{
    Alarms, Attendant, Bytes, Cause, Channels, CreateJoin, Created, Endpoint, Frame, Header, Leave, Lent,
    Liveness, Loss, Lost, Memory, Meter, Notification, Notify, Number, PairLines, Pause, Payload, Port,
    Segment, ShmEnd, TcpFabric, Topology, Until,
};

/// One rank's end of a world of several hosts.
pub struct HybridEnd<C: Carrier> {
    rank: usize,
    /// The end of the world of this host's ranks. That world numbers these ranks itself.
    intra_node: ShmEnd,
    /// The end of the world of all ranks.
    inter_node: FabricEnd<C>,
    host_map: HostMap,
    counts: Counts,
}

/// The ranks of each host.
struct HostMap {
    /// The host of each rank.
    hosts: Vec<u32>,
    /// The intra-node rank of each rank of this host.
    intra_node: Vec<Option<usize>>,
    /// The rank in the whole world of each intra-node rank.
    ranks: Vec<usize>,
}

impl HostMap {
    fn new(hosts: Vec<u32>, rank: usize) -> Self {
        let ranks: Vec<usize> = (0..hosts.len()).filter(|&peer| hosts[peer] == hosts[rank]).collect();
        let mut intra_node = vec![None; hosts.len()];
        ranks.iter().enumerate().for_each(|(host_rank, &rank)| intra_node[rank] = Some(host_rank));
        Self { hosts, intra_node, ranks }
    }

    /// Converts the rank in a loss of the intra-node world to its number in the whole world.
    fn named(&self, lost: Lost) -> Lost {
        match lost.how {
            Loss::Ended(_) => lost, // causes name ranks of the whole world
            _ => Lost { rank: self.ranks[lost.rank], ..lost },
        }
    }
}

/// Returns a world whose ranks are threads of this process. Each rank acts as if it ran on its host
/// in `hosts`. For tests.
///
/// # Errors
/// As for `shm` and `tcp`.
pub fn hybrid(hosts: &[u32]) -> io::Result<Vec<HybridEnd<Tcp>>> {
    let (secret, job) = (Secret::new()?, random_bytes()?);
    let fabric = |rank| TcpFabric::new(listen(None)?, secret.clone(), job, rank, Settings::default());
    let mut fabrics = (0..hosts.len()).map(fabric).collect::<io::Result<Vec<_>>>()?;
    let addresses = fabrics.iter().map(TcpFabric::address).collect::<io::Result<Vec<_>>>()?;
    fabrics.iter_mut().try_for_each(|fabric| fabric.table(&addresses))?;
    threads(hosts, fabrics)
}

/// Returns the ends of a world whose ranks are threads of this process, over these fabrics.
pub(crate) fn threads<C: Carrier>(hosts: &[u32], fabrics: Vec<Fabric<C>>) -> io::Result<Vec<HybridEnd<C>>> {
    let mut segments = BTreeMap::new();
    for host in hosts {
        let ranks = hosts.iter().filter(|&other| other == host).count();
        if let Entry::Vacant(vacant) = segments.entry(host) {
            vacant.insert(Arc::new(Segment::create(ranks)?));
        }
    }
    let end = |(rank, fabric): (usize, Fabric<C>)| {
        HybridEnd::of_job(&segments[&hosts[rank]], &fabric.into(), hosts, 0, rank)
    };
    fabrics.into_iter().enumerate().map(end).collect()
}

impl<C: Carrier> HybridEnd<C> {
    /// Returns the end of `rank` in world `world` of the job. `hosts` has the host of each rank. A
    /// rank takes its end of each world once. `segment` is the segment of the rank's host. The
    /// segment numbers the ranks of the host in the order of the job.
    ///
    /// # Errors
    /// As for `ShmEnd::of_job` and `FabricEnd::of_job`.
    pub fn of_job(
        segment: &Arc<Segment>,
        fabric: &Arc<Fabric<C>>,
        hosts: &[u32],
        world: u32,
        rank: usize,
    ) -> io::Result<Self> {
        if rank >= hosts.len() {
            return Err(io::Error::other(format!(
                "rank {rank} has no host: the list of hosts has {} ranks",
                hosts.len()
            )));
        }
        let host_map = HostMap::new(hosts.to_vec(), rank);
        let host_rank = host_map.intra_node[rank].unwrap_or_default();
        let intra_node = ShmEnd::of_job(segment, world, host_rank, host_map.ranks.len())?;
        let waits = Table::of(segment.waits().clone(), hosts.len(), &host_map.ranks);
        let (wake, host_ranks) = (intra_node.waker(), host_map.intra_node.clone());
        let waker = move |rank: usize| host_ranks[rank].into_iter().for_each(&wake);
        fabric.set_intra_node(&host_map.ranks, Box::new(waker), waits, intra_node.alarms());
        let inter_node = FabricEnd::of_job(fabric, world, rank, hosts.len())?;
        Ok(Self::new(intra_node, inter_node, host_map, rank))
    }

    fn new(intra_node: ShmEnd, inter_node: FabricEnd<C>, host_map: HostMap, rank: usize) -> Self {
        Self { rank, intra_node: intra_node.called(rank), inter_node, host_map, counts: Counts::default() }
    }

    /// Converts the rank in a loss of the intra-node world to its number in the whole world. If the
    /// intra-node world was ended, ends the whole world as well.
    #[cold]
    fn intra_node_lost(host_map: &HostMap, inter_node: &mut FabricEnd<C>, lost: Lost) -> Lost {
        let lost = host_map.named(lost);
        if let Loss::Ended(what) = &lost.how {
            inter_node.end(Cause { rank: lost.rank, what: what.clone() });
        }
        lost
    }

    /// Handles a loss between nodes. If the whole world was ended, ends the intra-node world as
    /// well, unless that world has a cause already.
    #[cold]
    fn inter_node_lost(host_map: &HostMap, intra_node: &mut ShmEnd, lost: Lost) -> Lost {
        if let Loss::Ended(what) = &lost.how
            && !intra_node.ended()
        {
            intra_node.end(Cause { rank: lost.rank, what: what.clone() });
        }
        // A rank of another host may have left because a rank of this host ended the world
        // meanwhile.
        Self::over(host_map, intra_node).unwrap_or(lost)
    }

    /// Returns why the world is over, if the intra-node world was ended.
    #[inline]
    fn over(host_map: &HostMap, intra_node: &mut ShmEnd) -> Option<Lost> {
        if !intra_node.ended() {
            return None;
        }
        let me = intra_node.rank();
        intra_node.lost(me).map(|lost| host_map.named(lost))
    }

    /// Takes in everything that has arrived from other nodes. If the whole world was ended, ends
    /// the intra-node world as well.
    fn serve(&mut self) {
        if let Some(cause) = self.inter_node.serve()
            && !self.intra_node.ended()
        {
            self.intra_node.end(cause);
        }
    }
}

impl<C: Carrier> Topology for HybridEnd<C> {
    #[inline]
    fn rank(&self) -> usize {
        self.rank
    }

    #[inline]
    fn size(&self) -> usize {
        self.host_map.hosts.len()
    }

    #[inline]
    fn reaches(&self, peer: usize) -> bool {
        self.host_map.intra_node[peer].is_some()
    }

    #[inline]
    fn shares(&self, _peer: usize) -> bool {
        false
    }

    fn host(&self, peer: usize) -> usize {
        self.host_map.hosts[peer] as usize
    }
}

impl<C: Carrier> Notify for HybridEnd<C> {
    #[inline]
    fn draft(&mut self, to: usize) -> &mut Notification {
        match self.host_map.intra_node[to] {
            Some(host_rank) => self.intra_node.draft(host_rank),
            None => self.inter_node.draft(to),
        }
    }

    fn publish(&mut self, word: u64) -> Result<(), Lost> {
        let Self { intra_node, inter_node, host_map, .. } = self;
        intra_node.publish(word).map_err(|lost| Self::intra_node_lost(host_map, inter_node, lost))?;
        inter_node.publish(word).map_err(|lost| Self::inter_node_lost(host_map, intra_node, lost))?;
        self.counts.meter.exchanges += 1;
        Ok(())
    }

    #[inline]
    fn read(&mut self, from: usize) -> Result<Option<&Notification>, Lost> {
        let Self { intra_node, inter_node, host_map, .. } = self;
        match host_map.intra_node[from] {
            Some(host_rank) => {
                intra_node.read(host_rank).map_err(|lost| Self::intra_node_lost(host_map, inter_node, lost))
            }
            None => match inter_node.read(from) {
                Ok(None) => Self::over(host_map, intra_node).map_or(Ok(None), Err),
                Ok(notification) => Ok(notification),
                Err(lost) => Err(Self::inter_node_lost(host_map, intra_node, lost)),
            },
        }
    }

    #[inline]
    fn await_briefly(&mut self, from: usize) -> Option<&Notification> {
        match self.host_map.intra_node[from] {
            Some(host_rank) => self.intra_node.await_briefly(host_rank),
            None => self.read(from).ok().flatten(),
        }
    }

    fn settle(&mut self) -> Result<(), Lost> {
        let Self { intra_node, inter_node, host_map, .. } = self;
        intra_node.settle().map_err(|lost| Self::intra_node_lost(host_map, inter_node, lost))?;
        inter_node.settle().map_err(|lost| Self::inter_node_lost(host_map, intra_node, lost))?;
        self.counts.meter.settles += 1;
        Ok(())
    }

    #[inline]
    fn settled(&mut self, from: usize) -> Result<bool, Lost> {
        let Self { intra_node, inter_node, host_map, .. } = self;
        match host_map.intra_node[from] {
            Some(host_rank) => intra_node
                .settled(host_rank)
                .map_err(|lost| Self::intra_node_lost(host_map, inter_node, lost)),
            None => match inter_node.settled(from) {
                Ok(false) => Self::over(host_map, intra_node).map_or(Ok(false), Err),
                settled => settled.map_err(|lost| Self::inter_node_lost(host_map, intra_node, lost)),
            },
        }
    }
}

impl<C: Carrier> Channels for HybridEnd<C> {
    #[inline]
    unsafe fn post(&mut self, to: usize, port: Port, frame: Frame) -> Result<(), Lost> {
        let before = self.counts.before_post();
        let Self { intra_node, inter_node, host_map, .. } = self;
        match host_map.intra_node[to] {
            // SAFETY: the caller makes the same promise. A payload that the intra-node end does not
            // copy is in this end's memory.
            Some(host_rank) => unsafe { intra_node.post(host_rank, port, frame) }
                .map_err(|lost| Self::intra_node_lost(host_map, inter_node, lost))?,
            None => {
                Self::over(host_map, intra_node).map_or(Ok(()), Err)?;
                // SAFETY: as above; the payload is copied.
                unsafe { inter_node.post(to, port, frame) }
                    .map_err(|lost| Self::inter_node_lost(host_map, intra_node, lost))?;
                self.counts.meter.copied = inter_node.meter().copied;
            }
        }
        self.counts.posted(before, to, port, &frame);
        Ok(())
    }

    unsafe fn post_copy(&mut self, to: usize, port: Port, frame: Frame) -> Result<(), Lost> {
        let before = self.counts.before_post();
        let Self { intra_node, inter_node, host_map, .. } = self;
        let Some(host_rank) = host_map.intra_node[to] else {
            // SAFETY: the caller makes the same promise; the payload is copied.
            return unsafe { self.post(to, port, frame) };
        };
        // SAFETY: the caller makes the same promise.
        unsafe { intra_node.post_copy(host_rank, port, frame) }
            .map_err(|lost| Self::intra_node_lost(host_map, inter_node, lost))?;
        self.counts.posted(before, to, port, &frame);
        Ok(())
    }

    #[inline]
    fn poll(&mut self, from: usize, port: Port) -> Result<Option<Frame>, Lost> {
        let Self { intra_node, inter_node, host_map, .. } = self;
        match host_map.intra_node[from] {
            Some(host_rank) => intra_node
                .poll(host_rank, port)
                .map_err(|lost| Self::intra_node_lost(host_map, inter_node, lost)),
            None => match inter_node.poll(from, port) {
                Ok(None) => Self::over(host_map, intra_node).map_or(Ok(None), Err),
                frame => frame.map_err(|lost| Self::inter_node_lost(host_map, intra_node, lost)),
            },
        }
    }

    #[inline]
    fn look_for_frame(&mut self, from: usize, port: Port) {
        if let Some(host_rank) = self.host_map.intra_node[from] {
            self.intra_node.look_for_frame(host_rank, port);
        }
    }

    unsafe fn prepost(&mut self, from: usize, port: Port, ahead: u64, header: Header, to: *mut [u8]) {
        if self.host_map.intra_node[from].is_none() {
            // SAFETY: the caller makes the same promise.
            unsafe { self.inter_node.prepost(from, port, ahead, header, to) };
            self.counts.meter.copied = self.inter_node.meter().copied;
        }
    }

    fn lends_to(&self, peer: usize) -> bool {
        self.host_map.intra_node[peer].is_none() && self.inter_node.lends_to(peer)
    }

    unsafe fn post_in_place(&mut self, to: usize, port: Port, frame: Frame) -> Result<(), Lost> {
        let before = self.counts.before_post();
        let Self { intra_node, inter_node, host_map, .. } = self;
        if host_map.intra_node[to].is_some() {
            // SAFETY: the caller makes the same promise, or a stronger one.
            return unsafe { self.post(to, port, frame) };
        }
        Self::over(host_map, intra_node).map_or(Ok(()), Err)?;
        // SAFETY: the caller's promise.
        unsafe { inter_node.post_in_place(to, port, frame) }
            .map_err(|lost| Self::inter_node_lost(host_map, intra_node, lost))?;
        self.counts.posted(before, to, port, &frame);
        Ok(())
    }

    fn lent(&mut self, peer: usize) -> Lent {
        if self.host_map.intra_node[peer].is_some() { Lent::Nothing } else { self.inter_node.lent(peer) }
    }

    fn coming(&mut self, from: usize, port: Port) -> Option<(Header, usize)> {
        match self.host_map.intra_node[from] {
            Some(_) => None,
            None => self.inter_node.coming(from, port),
        }
    }

    fn cancel(&mut self, from: usize, port: Port) {
        self.inter_node.cancel(from, port);
    }

    fn flush(&mut self) {
        self.inter_node.flush();
    }

    #[inline]
    fn release(&mut self, from: usize, port: Port) {
        match self.host_map.intra_node[from] {
            Some(host_rank) => self.intra_node.release(host_rank, port),
            None => self.inter_node.release(from, port),
        }
        self.counts.released(from, port);
    }

    fn take(&mut self, from: usize, port: Port) -> Option<Payload> {
        if self.host_map.intra_node[from].is_some() {
            return None;
        }
        let taken = self.inter_node.take(from, port)?;
        self.counts.released(from, port);
        Some(taken)
    }

    fn recycle(&mut self, from: usize, payload: Payload) {
        self.inter_node.recycle(from, payload);
    }

    #[inline]
    fn released(&mut self, to: usize, port: Port) -> u64 {
        match self.host_map.intra_node[to] {
            Some(host_rank) => self.intra_node.released(host_rank, port),
            None => self.inter_node.released(to, port),
        }
    }

    fn lines(&mut self, to: usize, port: Port) -> Option<NonNull<PairLines>> {
        self.intra_node.lines(self.host_map.intra_node[to]?, port)
    }

    fn lines_of(&mut self, from: usize, port: Port) -> Option<NonNull<PairLines>> {
        self.intra_node.lines_of(self.host_map.intra_node[from]?, port)
    }

    fn close(&mut self, port: Port) {
        self.counts.closed(port);
        self.intra_node.close(port);
        self.inter_node.close(port);
    }

    fn attend(&mut self, attendant: Box<dyn Attendant>) {
        self.inter_node.attend(attendant); // ranks of this host reach this rank's memory
    }

    fn memory(&self) -> Memory {
        self.intra_node.memory()
    }

    fn keep(&mut self, memory: Vec<Bytes>, until: Until) {
        let until = match until {
            Until::Done(done) => Until::Done(done),
            Until::Released { to, port, frame } => match self.host_map.intra_node[to] {
                Some(to) => Until::Released { to, port, frame },
                None => return, // payloads for ranks of other hosts are copied
            },
        };
        self.intra_node.keep(memory, until);
    }

    fn drained(&mut self, from: usize) -> bool {
        self.host_map.intra_node[from].is_some() || self.inter_node.drained(from)
    }

    fn nothing_in_flight(&mut self, from: usize) -> bool {
        match self.host_map.intra_node[from] {
            Some(host_rank) => self.intra_node.nothing_in_flight(host_rank),
            None => self.inter_node.nothing_in_flight(from),
        }
    }

    fn meter(&self) -> &Meter {
        &self.counts.meter
    }

    fn record(&mut self, log: FrameLog) {
        self.counts.record(log);
    }
}

impl<C: Carrier> Liveness for HybridEnd<C> {
    fn lost(&mut self, peer: usize) -> Option<Lost> {
        let Self { intra_node, inter_node, host_map, .. } = self;
        match host_map.intra_node[peer] {
            Some(host_rank) => {
                intra_node.lost(host_rank).map(|lost| Self::intra_node_lost(host_map, inter_node, lost))
            }
            None => {
                let over = Self::over(host_map, intra_node);
                over.or_else(|| {
                    inter_node.lost(peer).map(|lost| Self::inter_node_lost(host_map, intra_node, lost))
                })
            }
        }
    }

    fn alarms(&self) -> Alarms {
        self.intra_node.alarms() // includes the alarms of the connections
    }

    fn idle(&mut self, pause: &mut Pause) {
        if !self.intra_node.sleeps_next(pause) {
            if pause.full_poll_due() {
                self.serve();
            }
            return self.intra_node.idle(pause);
        }
        if self.inter_node.hand_over() {
            self.intra_node.idle(pause);
            self.inter_node.wake();
        } else {
            pause.long = true; // a failure may have arrived, after which nothing else arrives
        }
        self.serve();
    }

    fn wake(&mut self, peer: usize) {
        if let Some(host_rank) = self.host_map.intra_node[peer] {
            self.intra_node.wake(host_rank);
        }
    }

    fn nudge(&mut self, peer: usize) {
        if peer != self.rank && self.host_map.intra_node[peer].is_some() {
            self.inter_node.nudge(peer);
        }
    }

    fn leave(&mut self, how: Leave) {
        self.intra_node.leave(how.clone());
        self.inter_node.leave(how);
    }

    fn end(&mut self, cause: Cause) {
        // One of the two ends may know of an earlier cause. Then both ends keep that cause.
        let cause = self.inter_node.serve().unwrap_or(cause);
        self.intra_node.end(cause);
        let Self { intra_node, inter_node, host_map, .. } = self;
        if let Some(Lost { rank, how: Loss::Ended(what) }) = Self::over(host_map, intra_node) {
            inter_node.end(Cause { rank, what });
        }
    }

    #[inline]
    fn announce(&mut self, word: u64) {
        self.intra_node.announce(word);
        self.inter_node.announce(word);
    }

    fn announced(&self, peer: usize) -> u64 {
        match self.host_map.intra_node[peer] {
            Some(host_rank) => self.intra_node.announced(host_rank),
            None => self.inter_node.announced(peer),
        }
    }

    fn left_at(&self, peer: usize) -> Option<u64> {
        match self.host_map.intra_node[peer] {
            Some(host_rank) => self.intra_node.left_at(host_rank),
            None => self.inter_node.left_at(peer),
        }
    }

    #[inline]
    fn touching(&mut self, on: bool) -> bool {
        self.intra_node.touching(on)
    }

    fn is_touching(&self, peer: usize) -> bool {
        self.host_map.intra_node[peer].is_some_and(|host_rank| self.intra_node.is_touching(host_rank))
    }

    fn waits(&self) -> Option<Waits> {
        self.inter_node.waits()
    }
}

impl<C: Carrier> CreateJoin for HybridEnd<C>
where
    FabricEnd<C>: Into<Endpoint>,
    Self: Into<Endpoint>,
{
    fn create(&mut self, members: &[usize]) -> io::Result<Created> {
        let intra_node: Vec<usize> =
            members.iter().filter_map(|&member| self.host_map.intra_node[member]).collect();
        match (self.intra_node.create(&intra_node)?, self.inter_node.create(members)?) {
            (Created::Number(intra_node), Created::Number(inter_node)) => {
                Ok(Created::Number(Number { world: inter_node.world, part: intra_node.part }))
            }
            _ => Err(io::ErrorKind::Unsupported.into()), // neither call returns `Created::Ends`
        }
    }

    fn join(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        let none = || io::Error::other("every member of the new world must be a rank of this one");
        let hosts: Option<Vec<u32>> =
            members.iter().map(|&member| self.host_map.hosts.get(member).copied()).collect();
        let host_map = HostMap::new(hosts.filter(|hosts| index < hosts.len()).ok_or_else(none)?, index);
        let intra_node: Vec<usize> =
            host_map.ranks.iter().filter_map(|&rank| self.host_map.intra_node[members[rank]]).collect();
        let host_rank = host_map.intra_node[index]
            .filter(|_| intra_node.len() == host_map.ranks.len())
            .ok_or_else(none)?;
        let intra_node = self.intra_node.join(number, &intra_node, host_rank)?;
        if host_map.ranks.len() == members.len() {
            return Ok(intra_node); // all members are on this host
        }
        let inter_node = self.inter_node.joined(number, members, index)?;
        let Endpoint::Shm(intra_node) = intra_node else { return Err(none()) };
        Ok(Self::new(intra_node, inter_node, host_map, index).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fabrics of the ranks on these hosts, and the segment of each host. The addresses
    /// of the fabrics are set.
    fn prepared(hosts: &[u32]) -> (Vec<Arc<TcpFabric>>, Vec<Arc<Segment>>) {
        let (secret, job) = (Secret::new().expect("chance"), random_bytes().expect("chance"));
        let fabric = |rank| {
            let listener = listen(None).expect("a port");
            TcpFabric::new(listener, secret.clone(), job, rank, Settings::default()).expect("a thread")
        };
        let mut fabrics: Vec<TcpFabric> = (0..hosts.len()).map(fabric).collect();
        let addresses: Vec<_> = fabrics.iter().map(|fabric| fabric.address().expect("it listens")).collect();
        fabrics.iter_mut().for_each(|fabric| fabric.table(&addresses).expect("a thread"));
        let segment = |host: &u32| {
            let ranks = hosts.iter().filter(|other| *other == host).count();
            Arc::new(Segment::create(ranks).expect("a file in memory"))
        };
        (fabrics.into_iter().map(Arc::new).collect(), (0..=1).map(|host| segment(&host)).collect())
    }

    /// The launcher may report a death before a rank has entered its first world.
    #[test]
    fn failures_before_a_world_is_entered_are_counted() {
        let hosts = [0, 1, 1];
        let (fabrics, segments) = prepared(&hosts);
        fabrics[1].mark_failed(0, "killed");
        let end = HybridEnd::of_job(&segments[1], &fabrics[1], &hosts, 0, 1).expect("there is room");
        assert!(end.alarms().count() > 0, "a rank that looks only at changes asks nobody");
        fabrics[2].mark_failed(0, "killed");
        fabrics[0].mark_failed(1, "killed");
        fabrics[0].mark_failed(2, "killed");
        for (from, to) in [(1, 2), (2, 1)] {
            fabrics[from].mark_finished(to);
        }
    }

    /// Something may arrive after a rank has announced that it sleeps and before it sleeps. It may
    /// be the last thing that ever arrives, so the rank must not sleep.
    #[test]
    fn a_rank_that_something_keeps_from_sleeping_looks_around() {
        let hosts = [0, 1];
        let (fabrics, segments) = prepared(&hosts);
        let mut end = HybridEnd::of_job(&segments[0], &fabrics[0], &hosts, 0, 0).expect("there is room");
        let mut pause = Pause::new();
        while !end.intra_node.sleeps_next(&pause) {
            end.idle(&mut pause);
        }
        pause.lasts();
        fabrics[0].mark_failed(1, "killed");
        end.idle(&mut pause);
        assert!(pause.lasts(), "it does not look for failures, and sleeps next");
        fabrics[1].mark_failed(0, "killed");
    }
}
