//! Ranks of several hosts: those of one host share memory, and speak to all others over TCP.
//!
//! An end is two: one of a world of the ranks of its host in their segment, and one of the whole world over the fabric,
//! which says nothing to those who are near. Each peer is spoken to by one of them only, so the order that the contract
//! asks for, which is one of each pair of ranks, is kept by whichever it is. What remains to be done here:
//!
//! - The near world has ranks of its own, so who is lost there is named anew.
//! - The end of the world is one for both: where one side learns of it, the other is told. The first cause that a host
//!   learns of is the one that all of its ranks see.
//! - A rank that waits sleeps where the near ones wake it. Meanwhile the fabric's thread looks after the sockets, and wakes
//!   it there as well.
//! - Waits of near ranks are read, and those of others asked for; a list of them may come home over a connection of near
//!   ranks, which is opened for nothing else.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc;

use crate::auth::{Secret, chance};
use crate::deadlock::{Table, Waits};
use crate::tcp::{Settings, listen};
use crate::{
    Bytes, Cause, Endpoint, Fabric, Frame, Header, Leave, Letter, Loss, Lost, Memory, Meter, Number, Pause,
    Segment, ShmEnd, TcpEnd, Transport, Until,
};

/// One rank's end of a world of several hosts.
pub struct MixedEnd {
    rank: usize,
    /// Where the ranks of this host are ranks of their own.
    near: ShmEnd,
    /// Where all ranks are.
    far: TcpEnd,
    seats: Seats,
    meter: Meter,
}

/// Who is where.
struct Seats {
    /// The host of each rank.
    hosts: Vec<u32>,
    /// The near rank of each rank of this host.
    near: Vec<Option<usize>>,
    /// The rank of each near one.
    ranks: Vec<usize>,
}

impl Seats {
    fn new(hosts: Vec<u32>, rank: usize) -> Self {
        let ranks: Vec<usize> = (0..hosts.len()).filter(|&peer| hosts[peer] == hosts[rank]).collect();
        let mut near = vec![None; hosts.len()];
        ranks.iter().enumerate().for_each(|(seat, &rank)| near[rank] = Some(seat));
        Self { hosts, near, ranks }
    }

    /// What was lost, as the near world says, in words of the whole one.
    fn named(&self, lost: Lost) -> Lost {
        match lost.how {
            Loss::Ended(_) => lost, // causes name ranks of the whole world
            _ => Lost { rank: self.ranks[lost.rank], ..lost },
        }
    }
}

/// A world whose ranks are threads of this process, as if each were on the host that is given for it: for tests.
///
/// # Errors
/// As `shm` and `tcp`.
pub fn mixed(hosts: &[u32]) -> io::Result<Vec<MixedEnd>> {
    let (secret, job) = (Secret::new()?, chance()?);
    let mut segments = BTreeMap::new();
    for host in hosts {
        let ranks = hosts.iter().filter(|&other| other == host).count();
        if let Entry::Vacant(vacant) = segments.entry(host) {
            vacant.insert(Arc::new(Segment::create(ranks)?));
        }
    }
    let fabrics = (0..hosts.len())
        .map(|rank| Fabric::new(listen(None)?, secret.clone(), job, rank, Settings::default()))
        .collect::<io::Result<Vec<_>>>()?;
    let addresses = fabrics.iter().map(Fabric::address).collect::<io::Result<Vec<_>>>()?;
    let end = |(rank, mut fabric): (usize, Fabric)| {
        fabric.table(&addresses)?;
        MixedEnd::of_job(&segments[&hosts[rank]], &fabric.into(), hosts, 0, rank)
    };
    fabrics.into_iter().enumerate().map(end).collect()
}

impl MixedEnd {
    /// The end of `rank` of world `world` of the job, whose ranks are on these `hosts`. Once for each world. The segment is
    /// that of the rank's host, where ranks stand in the order that they have in the job.
    ///
    /// # Errors
    /// As `ShmEnd::of_job` and `TcpEnd::of_job`.
    pub fn of_job(
        segment: &Arc<Segment>,
        fabric: &Arc<Fabric>,
        hosts: &[u32],
        world: u32,
        rank: usize,
    ) -> io::Result<Self> {
        if rank >= hosts.len() {
            return Err(io::Error::other(format!("rank {rank} of {} is on no host", hosts.len())));
        }
        let seats = Seats::new(hosts.to_vec(), rank);
        let seat = seats.near[rank].unwrap_or_default();
        let near = ShmEnd::of_job(segment, world, seat, seats.ranks.len())?;
        let waits = Table::of(segment.waits().clone(), hosts.len(), &seats.ranks);
        fabric.beside(&seats.ranks, near.waker(), waits);
        let far = TcpEnd::of_job(fabric, world, rank, hosts.len())?;
        Ok(Self::new(near, far, seats, rank))
    }

    fn new(near: ShmEnd, far: TcpEnd, seats: Seats, rank: usize) -> Self {
        Self { rank, near: near.called(rank), far, seats, meter: Meter::default() }
    }

    /// What the near world lost, in words of the whole one; its end is that of the whole one.
    #[cold]
    fn near_lost(seats: &Seats, far: &mut TcpEnd, lost: Lost) -> Lost {
        let lost = seats.named(lost);
        if let Loss::Ended(what) = &lost.how {
            far.end(Cause { rank: lost.rank, what: what.clone() });
        }
        lost
    }

    /// What was lost far away; its end is that of those near by, if they know of no other.
    #[cold]
    fn far_lost(seats: &Seats, near: &mut ShmEnd, lost: Lost) -> Lost {
        let Loss::Ended(what) = &lost.how else { return lost };
        if !near.ended() {
            near.end(Cause { rank: lost.rank, what: what.clone() });
        }
        Self::over(seats, near).unwrap_or(lost)
    }

    /// Why the world is over, if those near by know that it is.
    #[inline]
    fn over(seats: &Seats, near: &mut ShmEnd) -> Option<Lost> {
        if !near.ended() {
            return None;
        }
        let me = near.rank();
        near.lost(me).map(|lost| seats.named(lost))
    }

    /// Look at what has come from afar.
    fn serve(&mut self) {
        if let Some(cause) = self.far.serve()
            && !self.near.ended()
        {
            self.near.end(cause);
        }
    }
}

impl Transport for MixedEnd {
    #[inline]
    fn rank(&self) -> usize {
        self.rank
    }

    #[inline]
    fn size(&self) -> usize {
        self.seats.hosts.len()
    }

    #[inline]
    fn reaches(&self, peer: usize) -> bool {
        self.seats.near[peer].is_some()
    }

    #[inline]
    fn shares(&self, _peer: usize) -> bool {
        false
    }

    fn host(&self, peer: usize) -> usize {
        self.seats.hosts[peer] as usize
    }

    fn found(&mut self, members: &[usize]) -> io::Result<Option<Number>> {
        let near: Vec<usize> = members.iter().filter_map(|&member| self.seats.near[member]).collect();
        let (near, far) = (self.near.found(&near)?, self.far.found(members)?);
        Ok(near.zip(far).map(|(near, far)| Number { world: far.world, part: near.part }))
    }

    fn enter(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        let none = || io::Error::other("a world of ranks that this one does not have");
        let hosts: Option<Vec<u32>> =
            members.iter().map(|&member| self.seats.hosts.get(member).copied()).collect();
        let seats = Seats::new(hosts.filter(|hosts| index < hosts.len()).ok_or_else(none)?, index);
        let near: Vec<usize> =
            seats.ranks.iter().filter_map(|&rank| self.seats.near[members[rank]]).collect();
        let seat = seats.near[index].filter(|_| near.len() == seats.ranks.len()).ok_or_else(none)?;
        let near = self.near.enter(number, &near, seat)?;
        if seats.ranks.len() == members.len() {
            return Ok(near); // there is nobody far away
        }
        let far = self.far.enter(number, members, index)?;
        let (Endpoint::Shm(near), Endpoint::Tcp(far)) = (near, far) else { return Err(none()) };
        Ok(Endpoint::Mixed(Self::new(near, far, seats, index)))
    }

    fn memory(&self) -> Memory {
        self.near.memory()
    }

    fn keep(&mut self, memory: Vec<Bytes>, until: Until) {
        let until = match until {
            Until::Done(done) => Until::Done(done),
            Until::Released { to, frame } => match self.seats.near[to] {
                Some(to) => Until::Released { to, frame },
                None => return, // what is posted to a rank of another host is copied
            },
        };
        self.near.keep(memory, until);
    }

    #[inline]
    fn letter(&mut self, to: usize) -> &mut Letter {
        match self.seats.near[to] {
            Some(seat) => self.near.letter(seat),
            None => self.far.letter(to),
        }
    }

    fn publish(&mut self, word: u64) -> Result<(), Lost> {
        let Self { near, far, seats, .. } = self;
        near.publish(word).map_err(|lost| Self::near_lost(seats, far, lost))?;
        far.publish(word).map_err(|lost| Self::far_lost(seats, near, lost))?;
        self.meter.exchanges += 1;
        Ok(())
    }

    #[inline]
    fn read(&mut self, from: usize) -> Result<Option<&Letter>, Lost> {
        let Self { near, far, seats, .. } = self;
        match seats.near[from] {
            Some(seat) => near.read(seat).map_err(|lost| Self::near_lost(seats, far, lost)),
            None => match far.read(from) {
                Ok(None) => Self::over(seats, near).map_or(Ok(None), Err),
                Ok(letter) => Ok(letter),
                Err(lost) => Err(Self::far_lost(seats, near, lost)),
            },
        }
    }

    fn settle(&mut self) -> Result<(), Lost> {
        let Self { near, far, seats, .. } = self;
        near.settle().map_err(|lost| Self::near_lost(seats, far, lost))?;
        far.settle().map_err(|lost| Self::far_lost(seats, near, lost))?;
        self.meter.settles += 1;
        Ok(())
    }

    #[inline]
    fn settled(&mut self, from: usize) -> Result<bool, Lost> {
        let Self { near, far, seats, .. } = self;
        match seats.near[from] {
            Some(seat) => near.settled(seat).map_err(|lost| Self::near_lost(seats, far, lost)),
            None => match far.settled(from) {
                Ok(false) => Self::over(seats, near).map_or(Ok(false), Err),
                settled => settled.map_err(|lost| Self::far_lost(seats, near, lost)),
            },
        }
    }

    #[inline]
    unsafe fn post(&mut self, to: usize, header: Header, payload: *const u8, len: usize) -> Result<(), Lost> {
        let Self { near, far, seats, .. } = self;
        match seats.near[to] {
            // SAFETY: the caller's promise is the same: what is not copied there lies in this end's memory.
            Some(seat) => unsafe { near.post(seat, header, payload, len) }
                .map_err(|lost| Self::near_lost(seats, far, lost))?,
            None => {
                Self::over(seats, near).map_or(Ok(()), Err)?;
                // SAFETY: as above; it is copied.
                unsafe { far.post(to, header, payload, len) }
                    .map_err(|lost| Self::far_lost(seats, near, lost))?;
            }
        }
        self.meter.count(header, len);
        Ok(())
    }

    #[inline]
    fn poll(&mut self, from: usize) -> Result<Option<Frame>, Lost> {
        let Self { near, far, seats, .. } = self;
        match seats.near[from] {
            Some(seat) => near.poll(seat).map_err(|lost| Self::near_lost(seats, far, lost)),
            None => match far.poll(from) {
                Ok(None) => Self::over(seats, near).map_or(Ok(None), Err),
                frame => frame.map_err(|lost| Self::far_lost(seats, near, lost)),
            },
        }
    }

    unsafe fn offer(&mut self, from: usize, ahead: u64, header: Header, to: *mut u8, len: usize) {
        if self.seats.near[from].is_none() {
            // SAFETY: the caller's promise is the same.
            unsafe { self.far.offer(from, ahead, header, to, len) };
        }
    }

    fn withdraw(&mut self, from: usize) {
        self.far.withdraw(from);
    }

    #[inline]
    fn release(&mut self, from: usize) {
        match self.seats.near[from] {
            Some(seat) => self.near.release(seat),
            None => self.far.release(from),
        }
        self.meter.releases += 1;
    }

    #[inline]
    fn released(&mut self, to: usize) -> u64 {
        match self.seats.near[to] {
            Some(seat) => self.near.released(seat),
            None => self.far.released(to),
        }
    }

    fn lost(&mut self, peer: usize) -> Option<Lost> {
        let Self { near, far, seats, .. } = self;
        match seats.near[peer] {
            Some(seat) => near.lost(seat).map(|lost| Self::near_lost(seats, far, lost)),
            None => {
                let over = Self::over(seats, near);
                over.or_else(|| far.lost(peer).map(|lost| Self::far_lost(seats, near, lost)))
            }
        }
    }

    fn idle(&mut self, pause: &mut Pause) {
        if !self.near.sleeps_next(pause) {
            if pause.rounds() {
                self.serve();
            }
            return self.near.idle(pause);
        }
        if self.far.hand_over() {
            self.near.idle(pause);
            self.far.wake();
        }
        self.serve();
    }

    fn leave(&mut self, how: Leave) {
        self.near.leave(how.clone());
        self.far.leave(how);
    }

    fn end(&mut self, cause: Cause) {
        self.near.end(cause.clone());
        self.far.end(cause);
    }

    #[inline]
    fn announce(&mut self, word: u64) {
        self.near.announce(word);
        self.far.announce(word);
    }

    fn announced(&self, peer: usize) -> u64 {
        match self.seats.near[peer] {
            Some(seat) => self.near.announced(seat),
            None => self.far.announced(peer),
        }
    }

    fn drained(&mut self, from: usize) -> bool {
        self.seats.near[from].is_some() || self.far.drained(from)
    }

    fn quiet(&mut self, from: usize) -> bool {
        match self.seats.near[from] {
            Some(seat) => self.near.quiet(seat),
            None => self.far.quiet(from),
        }
    }

    fn waits(&self) -> Option<Waits> {
        self.far.waits()
    }

    #[inline]
    fn touching(&mut self, on: bool) -> bool {
        self.near.touching(on)
    }

    fn is_touching(&self, peer: usize) -> bool {
        self.seats.near[peer].is_some_and(|seat| self.near.is_touching(seat))
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }
}
