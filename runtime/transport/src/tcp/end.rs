//! [`TcpEnd`]: one rank's end of a world over a [`Fabric`].

use std::io;
use std::sync::{Arc, MutexGuard};

use crate::deadlock::Waits;
use crate::meter::Meter;
use crate::shared::waker::{Pause, ROUND, Rhythm};
use crate::stream::Place;
use crate::sync::{spin_loop, yield_now};
use crate::tcp::core::Core;
use crate::tcp::fabric::{Fabric, Shared};
use crate::{Cause, Endpoint, Frame, Header, Leave, Letter, Loss, Lost, Number, Transport};

/// One rank's end of a world over TCP.
pub struct TcpEnd {
    /// Rank in this world.
    rank: usize,
    /// Ranks of the job, by rank in this world.
    members: Vec<u32>,
    number: u64,
    exchange: u64,
    unread: usize,
    /// Other members that are spoken to here.
    far: usize,
    drafts: Vec<Letter>,
    /// The letter that was read last.
    letter: Letter,
    /// What has come when this end last fell asleep or woke.
    seen: u64,
    touching: bool,
    rhythm: Rhythm,
    meter: Meter,
    fabric: Arc<Fabric>,
}

impl TcpEnd {
    /// The end of `rank` of world `world` of the job, which has all of its `size` ranks. Once for each world.
    ///
    /// # Errors
    /// The job has another size, this process is another rank, or it is in that world already.
    pub fn of_job(fabric: &Arc<Fabric>, world: u32, rank: usize, size: usize) -> io::Result<Self> {
        let members: Vec<u32> = (0..size as u32).collect();
        let ranks = fabric.shared().lock().peers.len();
        if size != ranks {
            return Err(io::Error::other(format!("a world of {size} ranks in a job of {ranks}")));
        }
        Self::new(fabric, world.into(), members, rank)
    }

    fn new(fabric: &Arc<Fabric>, number: u64, members: Vec<u32>, rank: usize) -> io::Result<Self> {
        // Ranks at one address share its cores.
        let (near, far) = {
            let mut core = fabric.shared().lock();
            let (me, ranks) = (core.identity.rank, core.peers.len());
            let here = members.get(rank) == Some(&me) && members.iter().all(|&to| (to as usize) < ranks);
            let channel = core.channel(number);
            if !here || !channel.members.is_empty() {
                return Err(io::Error::other("a world that this rank can't enter, or has entered"));
            }
            channel.members.clone_from(&members);
            let host = |rank: u32| core.peers[rank as usize].address.ip();
            let near = members.iter().filter(|&&to| host(to) == host(me)).count();
            (near, members.iter().filter(|&&to| to != me && !core.is_beside(to as usize)).count())
        };
        Ok(Self {
            rank,
            number,
            exchange: 0,
            unread: 0,
            far,
            drafts: vec![Letter::default(); members.len()],
            letter: Letter::default(),
            seen: 0,
            touching: false,
            rhythm: Rhythm::of(near),
            meter: Meter::default(),
            members,
            fabric: fabric.clone(),
        })
    }

    fn shared(&self) -> &Shared {
        self.fabric.shared()
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        let mut core = self.shared().lock();
        core.calls += 1;
        core
    }

    fn of(&self, rank: usize) -> usize {
        self.members[rank] as usize
    }

    fn me(&self, core: &Core) -> Option<Lost> {
        core.channels.get(&self.number)?.mine(self.rank)
    }

    /// Look at all that has come; why the world has ended, if it has.
    pub(crate) fn serve(&mut self) -> Option<Cause> {
        let mut core = self.core();
        core.serve_all();
        core.channels.get(&self.number)?.ended.clone()
    }

    /// Fall asleep elsewhere, while the fabric's thread serves and wakes this rank when something comes; not if something
    /// has come since the last time, which is what this gives. To be followed by [`wake`](Self::wake).
    pub(crate) fn hand_over(&mut self) -> bool {
        let mut seen = self.seen;
        let handed = self.shared().hand_over(&mut seen);
        self.seen = seen;
        handed
    }

    /// Awake again.
    pub(crate) fn wake(&mut self) {
        self.core().minded = None;
    }

    /// Whether I may send.
    fn may_send(&self, core: &Core, to: usize) -> Result<(), Lost> {
        if let Some(lost) = self.me(core) {
            return Err(lost);
        }
        if to == self.rank || !core.is_gone(self.number, self.of(to)) {
            return Ok(());
        }
        self.lost_of(core, to).map_or(Ok(()), Err)
    }

    /// Why nobody at `peer` sends any more, if so, even if not all that it sent has come.
    fn lost_of(&self, core: &Core, peer: usize) -> Option<Lost> {
        self.me(core).or_else(|| {
            let from = self.of(peer);
            core.gone_of(self.number, from).map(|how| Lost { rank: peer, how })
        })
    }

    /// Look for something of `from`: gives what `found` does, at once or after a look.
    fn find<T>(&self, from: usize, found: impl Fn(&mut Core) -> Option<T>) -> Result<Option<T>, Lost> {
        let mut core = self.core();
        if let Some(it) = found(&mut core) {
            return Ok(Some(it));
        }
        let of = self.of(from);
        core.look(of);
        if let Some(it) = found(&mut core) {
            return Ok(Some(it));
        }
        if let Some(lost) = self.me(&core).or_else(|| core.lost(self.number, from, of)) {
            return Err(lost);
        }
        core.miss(self.number, of);
        Ok(None)
    }
}

impl Transport for TcpEnd {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn reaches(&self, _peer: usize) -> bool {
        false
    }

    fn found(&mut self, _members: &[usize]) -> io::Result<Option<Number>> {
        let mut core = self.core();
        core.founded += 1;
        let world = u64::from(core.identity.rank + 1) << 32 | u64::from(core.founded);
        Ok(Some(Number { world, part: world }))
    }

    fn enter(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        let of = |&rank: &usize| self.members.get(rank).copied();
        let members: Option<Vec<u32>> = members.iter().map(of).collect();
        let members =
            members.ok_or_else(|| io::Error::other("a world of ranks that this one does not have"))?;
        Self::new(&self.fabric, number.world, members, index).map(Endpoint::Tcp)
    }

    #[inline]
    fn letter(&mut self, to: usize) -> &mut Letter {
        &mut self.drafts[to]
    }

    fn publish(&mut self, word: u64) -> Result<(), Lost> {
        self.may_send(&self.core(), self.rank)?;
        assert!(self.unread == 0, "a letter of the exchange before was not read");
        self.exchange += 1;
        self.unread = self.far;
        self.drafts.iter_mut().for_each(|draft| draft.word = word);
        self.core().publish(self.number, &self.drafts);
        self.meter.exchanges += 1;
        Ok(())
    }

    fn read(&mut self, from: usize) -> Result<Option<&Letter>, Lost> {
        let (number, exchange, of) = (self.number, self.exchange, self.of(from));
        let found = self.find(from, |core| {
            let channel = core.channels.get_mut(&number)?;
            let letter = *channel.letter(of)?;
            let inbound = &mut channel.pairs[of].inbound;
            let first = inbound.read < exchange;
            inbound.read = exchange;
            Some((letter, first))
        })?;
        let Some((letter, first)) = found else { return Ok(None) };
        self.unread -= usize::from(first);
        self.letter = letter;
        Ok(Some(&self.letter))
    }

    fn settle(&mut self) -> Result<(), Lost> {
        let mut core = self.core();
        self.may_send(&core, self.rank)?;
        core.settle(self.number);
        drop(core);
        self.meter.settles += 1;
        Ok(())
    }

    fn settled(&mut self, from: usize) -> Result<bool, Lost> {
        let (number, exchange, of) = (self.number, self.exchange, self.of(from));
        let found = self.find(from, |core| {
            (core.channels.get(&number)?.pairs[of].inbound.settled >= exchange).then_some(())
        })?;
        Ok(found.is_some())
    }

    unsafe fn post(&mut self, to: usize, header: Header, payload: *const u8, len: usize) -> Result<(), Lost> {
        // SAFETY: the caller promises that the payload is readable, and an empty one may have any address.
        let payload = if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(payload, len) } };
        let mut core = self.core();
        self.may_send(&core, to)?;
        core.post(self.number, self.of(to), header, payload);
        drop(core);
        self.meter.count(header, len);
        Ok(())
    }

    fn poll(&mut self, from: usize) -> Result<Option<Frame>, Lost> {
        let (number, of) = (self.number, self.of(from));
        self.find(from, |core| {
            let (header, body) = core.channels.get(&number)?.pairs[of].inbound.frames.front()?;
            Some(Frame { header: *header, payload: body.as_ptr(), len: body.len() })
        })
    }

    unsafe fn offer(&mut self, from: usize, ahead: u64, header: Header, to: *mut u8, len: usize) {
        // SAFETY: the caller promises the same until `release` or `withdraw`, or until this end is dropped: then the
        // body is recycled, moved out, or dropped.
        let place = unsafe { Place::new(to, len) };
        self.core().offer(self.number, self.of(from), ahead, header, place);
    }

    fn withdraw(&mut self, from: usize) {
        self.core().withdraw(self.number, self.of(from));
    }

    fn release(&mut self, from: usize) {
        let released = self.core().release(self.number, self.of(from));
        assert!(released, "no frame of rank {from} is open");
        self.meter.releases += 1;
    }

    fn released(&mut self, to: usize) -> u64 {
        let (number, of) = (self.number, self.of(to));
        let mut core = self.core();
        let counts = |core: &Core| {
            let outbound = &core.channels.get(&number)?.pairs[of].outbound;
            Some((outbound.posted, outbound.released))
        };
        let (posted, released) = counts(&core).unwrap_or_default();
        if to != self.rank && released < posted {
            core.look(of);
            if core.is_gone(number, of) {
                return posted;
            }
            core.miss(number, of);
        }
        counts(&core).unwrap_or_default().1
    }

    fn lost(&mut self, peer: usize) -> Option<Lost> {
        self.lost_of(&self.core(), peer)
    }

    fn idle(&mut self, pause: &mut Pause) {
        match self.rhythm.step(pause) {
            Some(step) => {
                if step % ROUND == ROUND - 1 {
                    self.core().serve_all();
                }
                if step < self.rhythm.spins { spin_loop() } else { yield_now() }
            }
            None => {
                let mut seen = self.seen;
                self.shared().sleep(&mut seen);
                self.seen = seen;
            }
        }
    }

    fn leave(&mut self, how: Leave) {
        self.core().leave(self.number, &how);
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

    fn drained(&mut self, from: usize) -> bool {
        let of = self.of(from);
        self.core().channels.get(&self.number).is_none_or(|channel| channel.drained(of))
    }

    fn quiet(&mut self, _: usize) -> bool {
        true // who says that it waits has sent all else before
    }

    fn waits(&self) -> Option<Waits> {
        let table = self.core().probes.table.clone();
        Some(Waits::afar(table, self.fabric.shared().clone(), self.members.clone().into()))
    }

    fn touching(&mut self, on: bool) -> bool {
        self.touching = on;
        let core = self.core();
        !on || !self.me(&core).is_some_and(|lost| matches!(lost.how, Loss::Ended(_)))
    }

    fn is_touching(&self, peer: usize) -> bool {
        // Nobody's memory is reached from anywhere else.
        peer == self.rank && self.touching
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }
}

impl Drop for TcpEnd {
    fn drop(&mut self) {
        self.leave(crate::dropped());
        self.core().close(self.number);
    }
}
