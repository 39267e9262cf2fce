//! [`Core`]: all that a process holds of its connections and worlds. Its rank and the thread that serves in its absence
//! take turns at it, under one lock; nothing here waits.
//!
//! Here is what comes and how it is kept. What ranks say is in [`sayings`](crate::tcp::send), how connections come to be in
//! [`connecting`](crate::tcp::connect), what becomes of those that are lost in [`losses`](crate::tcp::failure), and what each turn
//! looks at in [`turns`](crate::tcp::poll).

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Instant;

use crate::auth::Identity;
use crate::deadlock::Table;
use crate::stream::{Decoder, Intake, Item, Place};
use crate::tcp::Settings;
use crate::tcp::channel::Channel;
use crate::tcp::connect::Half;
use crate::tcp::peer::{Looked, Peer};
use crate::tcp::probes::Probes;
use crate::{Header, Leave, Loss};

/// Worlds at most that others are in and this rank is not yet.
const AHEAD: usize = 1 << 10;

/// Bytes that one read takes in, beside a body that is filled in place.
const SCRATCH: usize = 64 << 10;

pub(super) struct Core {
    pub(super) identity: Identity,
    pub(super) settings: Settings,
    pub(super) listener: Arc<TcpListener>,
    /// By rank; empty until the table of addresses is known.
    pub(super) peers: Vec<Peer>,
    /// Those who have died, in the order that it was learnt in.
    pub(super) deaths: Vec<u32>,
    pub(super) halves: Vec<Half>,
    pub(super) channels: BTreeMap<u64, Channel>,
    /// Worlds that this rank has founded.
    pub(super) founded: u32,
    /// Counts what has come that somebody may wait for.
    pub(super) news: u64,
    /// Counts the looks that found something.
    pub(super) heard: u64,
    /// Counts the calls of the rank itself.
    pub(super) calls: u64,
    /// The rank sleeps, and reads for itself when it wakes.
    pub(super) asleep: bool,
    /// The rank sleeps elsewhere, and had seen so much: whoever finds more wakes it.
    pub(super) minded: Option<u64>,
    /// What wakes it there.
    waker: Option<Box<dyn Fn() + Send>>,
    /// Which ranks are reached otherwise, this one too: nothing is said to them here. Empty where all are spoken to.
    pub(super) beside: Vec<bool>,
    /// The rank has left for good.
    pub(super) closing: bool,
    /// To whom something was written that has not been tried to send.
    dirty: Vec<u32>,
    /// Who is to hear of releases when there is nothing better to do.
    pub(super) owing: Vec<(u64, u32)>,
    /// Some of them at once.
    pub(super) pressing: bool,
    scratch: Box<[u8]>,
    /// Bodies of frames to oneself.
    pub(super) own: Decoder,
    pub(super) timed: Instant,
    /// What is known of waits elsewhere.
    pub(super) probes: Probes,
}

/// What comes from one rank.
struct Coming<'a> {
    core: &'a mut Core,
    from: usize,
    /// Why nothing more is taken of it.
    wrong: Option<&'static str>,
}

impl Intake for Coming<'_> {
    #[inline]
    fn place(&mut self, channel: u64, header: Header, len: usize) -> Option<Place> {
        self.core.channels.get_mut(&channel)?.pairs[self.from].inbound.place(header, len)
    }

    #[inline]
    fn take(&mut self, channel: u64, item: Item) {
        if self.wrong.is_none() {
            self.wrong = self.core.take(self.from, channel, item).err();
        }
    }
}

impl Core {
    pub(super) fn new(identity: Identity, settings: Settings, listener: TcpListener, now: Instant) -> Self {
        Self {
            identity,
            settings,
            listener: Arc::new(listener),
            peers: Vec::new(),
            deaths: Vec::new(),
            halves: Vec::new(),
            channels: BTreeMap::new(),
            founded: 0,
            news: 0,
            heard: 0,
            calls: 0,
            asleep: false,
            minded: None,
            waker: None,
            beside: Vec::new(),
            closing: false,
            dirty: Vec::new(),
            owing: Vec::new(),
            pressing: false,
            scratch: vec![0; SCRATCH].into(),
            own: Decoder::default(),
            timed: now,
            probes: Probes::none(),
        }
    }

    pub(super) fn table(&mut self, addresses: &[SocketAddr], now: Instant) {
        self.identity.size = addresses.len() as u32;
        self.peers = addresses.iter().map(|address| Peer::new(*address, now)).collect();
        self.probes = Probes::new(Table::alone(self.me(), addresses.len()), addresses.len());
    }

    /// These ranks are reached otherwise, and so this wakes the one of this process where it waits for them, and these are
    /// their entries.
    pub(super) fn set_beside(&mut self, ranks: &[usize], waker: Box<dyn Fn() + Send>, waits: Table) {
        self.probes = Probes::new(waits, self.peers.len());
        self.beside = (0..self.peers.len()).map(|rank| ranks.contains(&rank)).collect();
        self.waker = Some(waker);
    }

    /// Whether nothing is said to `rank` here.
    #[inline]
    pub(super) fn is_beside(&self, rank: usize) -> bool {
        self.beside.get(rank).is_some_and(|&beside| beside)
    }

    /// Wake the rank where it sleeps elsewhere, if there is something that it has not seen.
    pub(super) fn rouse(&self) {
        if let (Some(seen), Some(waker)) = (self.minded, &self.waker)
            && seen != self.news
        {
            waker();
        }
    }

    pub(super) fn me(&self) -> usize {
        self.identity.rank as usize
    }

    /// The channel of this number, entered or not.
    pub(super) fn channel(&mut self, number: u64) -> &mut Channel {
        let ranks = self.peers.len();
        self.channels.entry(number).or_insert_with(|| Channel::new(ranks))
    }

    /// A world that I have closed is forgotten when nobody can say anything in it any more.
    pub(super) fn forget_if_over(&mut self, number: u64) {
        let me = self.me();
        let over = self.channels.get(&number).is_some_and(|channel| {
            let silent = |rank: usize| {
                let peer = &self.peers[rank];
                rank == me
                    || self.is_beside(rank)
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

    /// The other members of a world that can still be told something.
    pub(super) fn members(&self, number: u64) -> Vec<usize> {
        let Some(channel) = self.channels.get(&number) else { return Vec::new() };
        let members = channel.members.iter().map(|&to| to as usize);
        members.filter(|&to| self.listens(channel, to)).collect()
    }

    /// Whether `to` can still be told something in this world.
    pub(super) fn listens(&self, channel: &Channel, to: usize) -> bool {
        let peer = &self.peers[to];
        to != self.me()
            && !self.is_beside(to)
            && peer.died.is_none()
            && !peer.heard_goodbye
            && !channel.has_left(to)
    }

    pub(super) fn numbers(&self) -> Vec<u64> {
        self.channels.keys().copied().collect()
    }

    /// Look at what comes from `from`.
    pub(super) fn look(&mut self, from: usize) {
        let Some(mut link) = self.peers[from].link.take() else { return };
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut coming = Coming { core: self, from, wrong: None };
        let looked = link.look(&mut scratch, &mut coming);
        let wrong = coming.wrong;
        self.peers[from].link = Some(link);
        if matches!(looked, Looked::Something) {
            self.peers[from].heard = true;
            self.heard += 1;
        }
        self.scratch = scratch;
        match (looked, wrong) {
            (Looked::Garbled(what), _) => self.garbled(from, what),
            (_, Some(what)) => self.garbled(from, what.into()),
            (Looked::Ended(what), None) => self.ended(from, what),
            (Looked::Something | Looked::Nothing, None) => {}
        }
        if self.peers[from].unsent() {
            self.soil(from);
        }
    }

    /// Take in an item.
    pub(super) fn take(&mut self, from: usize, number: u64, item: Item) -> Result<(), &'static str> {
        match item {
            Item::Beat => return Ok(()),
            Item::Goodbye => {
                self.news += 1;
                let peer = &mut self.peers[from];
                peer.heard_goodbye = true;
                if !self.settings.obituary.is_zero() {
                    peer.parting = Some(Instant::now() + self.settings.obituary);
                }
                peer.say(|pen| pen.farewell());
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
            Item::Waits { number, awaited, text } => {
                return self.answered(from, number, awaited as usize, text);
            }
            Item::Probe { seen, list } => return self.probed(seen, &list),
            Item::Agree(number) => {
                self.agreed(from, number);
                return Ok(());
            }
            _ => {}
        }
        self.news += 1;
        if !self.channels.contains_key(&number) {
            let ahead = self.channels.values().filter(|channel| channel.members.is_empty()).count();
            if ahead >= AHEAD {
                return Err("it speaks of too many worlds that this rank is not in");
            }
        }
        let released = matches!(item, Item::Release { .. });
        let left = matches!(item, Item::Left { .. });
        let channel = self.channel(number);
        channel.take(from, item)?;
        let leaving = left.then(|| channel.leaving(from)).flatten();
        if released && channel.pairs[from].outbound.waits() {
            let Some(channel) = self.channels.get_mut(&number) else { return Ok(()) };
            channel.pairs[from].outbound.let_go(number, &mut self.peers[from].out, false);
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

    /// I look for something from `from` in vain.
    pub(super) fn miss(&mut self, number: u64, from: usize) {
        if from == self.me() {
            return;
        }
        let peer = &mut self.peers[from];
        peer.missed = true;
        if let Some(channel) = self.channels.get_mut(&number)
            && channel.left.is_none()
            && channel.pairs[from].inbound.solicit(number, &mut peer.out)
        {
            self.send(from);
        }
        self.tidy();
        if self.pressing {
            self.pay();
        }
    }

    /// Something was written to `to`: it is sent with what follows, or when somebody looks.
    pub(super) fn soil(&mut self, to: usize) {
        if !self.dirty.contains(&(to as u32)) {
            self.dirty.push(to as u32);
        }
    }

    /// Send what was written.
    #[inline]
    pub(super) fn tidy(&mut self) {
        while let Some(to) = self.dirty.pop() {
            self.send(to as usize);
        }
    }

    /// Send what is written to `to`, as far as it goes.
    pub(super) fn send(&mut self, to: usize) {
        let peer = &mut self.peers[to];
        if peer.link.is_none() {
            self.need(to);
        } else if let Err(error) = peer.flush() {
            self.broke(to, &error.to_string());
        }
    }
}
