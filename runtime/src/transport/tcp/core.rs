//! [`Core`]: all that a process holds of its connections and worlds. Its rank and the thread that serves in its absence
//! take turns at it, under one lock; nothing here waits.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::super::wire::{Body, Decoder, Intake, Item, Pen, Place};
use super::super::{Cause, Header, Leave, Letter, Loss, Lost};
use super::Settings;
use super::channel::{Channel, Pair};
use super::peer::{Attempt, Looked, Peer, read_some, write_some};
use crate::security::{Identity, Opener, Opening, Refusal, Session, Taker, Taking, Verdict, chance};

/// Worlds at most that others are in and this rank is not yet.
const AHEAD: usize = 1 << 10;

/// Bytes that one read takes in, beside a body that is filled in place.
const SCRATCH: usize = 64 << 10;

/// How often a connection that broke off in its handshake is tried again.
const TRIES: u32 = 3;

pub(super) struct Core {
    pub(super) identity: Identity,
    pub(super) settings: Settings,
    pub(super) listener: Arc<TcpListener>,
    /// By rank; empty until the table of addresses is known.
    pub(super) peers: Vec<Peer>,
    halves: Vec<Half>,
    pub(super) channels: BTreeMap<u64, Channel>,
    /// Worlds that this rank has founded.
    pub(super) founded: u32,
    /// Counts what has come that somebody may wait for.
    pub(super) news: u64,
    /// Counts the looks that found something.
    heard: u64,
    /// Counts the calls of the rank itself.
    pub(super) calls: u64,
    /// The rank sleeps, and reads for itself when it wakes.
    pub(super) asleep: bool,
    /// The rank sleeps elsewhere, and had seen so much: whoever finds more wakes it.
    pub(super) minded: Option<u64>,
    /// What wakes it there.
    waker: Option<Box<dyn Fn() + Send>>,
    /// Which ranks are reached otherwise, this one too: nothing is said to them here. Empty where all are spoken to.
    beside: Vec<bool>,
    /// The rank has left for good.
    pub(super) closing: bool,
    /// To whom something was written that has not been tried to send.
    dirty: Vec<u32>,
    /// Who is to hear of releases when there is nothing better to do.
    owing: Vec<(u64, u32)>,
    scratch: Box<[u8]>,
    /// Bodies of frames to oneself.
    own: Decoder,
    timed: Instant,
}

/// A connection that somebody opens to this rank.
struct Half {
    stream: Arc<TcpStream>,
    taker: Taker,
    out: Vec<u8>,
    since: Instant,
    /// It is over once `out` is written; and was welcomed, if there is a session.
    decided: Option<Option<Session>>,
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

/// Where something may be read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    Listener,
    Peer(usize),
    /// A handshake.
    Other,
}

impl Core {
    pub(super) fn new(identity: Identity, settings: Settings, listener: TcpListener, now: Instant) -> Self {
        Self {
            identity,
            settings,
            listener: Arc::new(listener),
            peers: Vec::new(),
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
            scratch: vec![0; SCRATCH].into(),
            own: Decoder::default(),
            timed: now,
        }
    }

    pub(super) fn table(&mut self, addresses: &[SocketAddr], now: Instant) {
        self.identity.size = addresses.len() as u32;
        self.peers = addresses.iter().map(|address| Peer::new(*address, now)).collect();
    }

    /// These ranks are reached otherwise, and so this wakes the one of this process where it waits for them.
    pub(super) fn set_beside(&mut self, ranks: &[usize], waker: Box<dyn Fn() + Send>) {
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

    fn me(&self) -> usize {
        self.identity.rank as usize
    }

    /// The channel of this number, entered or not.
    pub(super) fn channel(&mut self, number: u64) -> &mut Channel {
        let ranks = self.peers.len();
        self.channels.entry(number).or_insert_with(|| Channel::new(ranks))
    }

    // ---- what ranks say ----

    /// Post a frame.
    pub(super) fn post(&mut self, number: u64, to: usize, header: Header, payload: &[u8]) {
        let me = self.me();
        let ranks = self.peers.len();
        let channel = self.channels.entry(number).or_insert_with(|| Channel::new(ranks));
        let peer = &mut self.peers[to];
        let fits = channel.pairs[to].outbound.posts(payload.len());
        if to == me {
            let body = Body::of(payload, self.own.spare());
            let Pair { inbound, outbound } = &mut channel.pairs[to];
            inbound.arrived = outbound.posted;
            inbound.frames.push_back((header, body));
            return;
        }
        let mut wrote = Ok(());
        if fits {
            channel.tidings(number, to, &mut peer.out);
            Pen(&mut peer.out, number).frame_head(header, payload.len());
            wrote = if peer.writes_in_place(payload.len()) {
                self.write(to, payload)
            } else {
                peer.pack(payload)
            };
        } else {
            let mut frame = Vec::with_capacity(super::channel::cost(payload.len()) as usize);
            Pen(&mut frame, number).frame(header, payload);
            let outbound = &mut channel.pairs[to].outbound;
            outbound.keep(frame);
            outbound.let_go(number, &mut peer.out, false);
        }
        match wrote {
            Ok(()) => self.soil(to),
            Err(error) => self.broke(to, &error.to_string()),
        }
    }

    /// Write a payload from where it lies. As long as something goes in either direction, go on; copy what is left.
    fn write(&mut self, to: usize, payload: &[u8]) -> std::io::Result<()> {
        let mut rest = payload;
        let mut said = Vec::new();
        loop {
            let wrote = self.peers[to].write_in_place(rest)?;
            rest = &rest[wrote..];
            // Nothing else may be written while a payload is in the middle, so what a look would say is kept.
            if rest.is_empty() || self.peers[to].unsent() || self.peers[to].link.is_none() {
                break;
            }
            let before = self.heard;
            self.look(to);
            said = std::mem::take(&mut self.peers[to].out);
            if wrote == 0 && self.heard == before || !said.is_empty() || self.peers[to].link.is_none() {
                break;
            }
        }
        let out = &mut self.peers[to].out;
        out.extend_from_slice(rest);
        out.extend_from_slice(&said);
        Ok(())
    }

    /// Publish: a letter to each member.
    pub(super) fn publish(&mut self, number: u64, letters: &[Letter]) {
        let me = self.me();
        let Some(channel) = self.channels.get_mut(&number) else { return };
        channel.exchange += 1;
        for (i, letter) in letters.iter().enumerate() {
            let to = channel.members[i] as usize;
            if self.beside.get(to).is_some_and(|&beside| beside) {
                continue;
            }
            let frames = channel.pairs[to].outbound.posted;
            if to == me {
                // It can't be too early: the caller has read all letters before.
                let taken = channel.take(me, Item::Letter(*letter, frames));
                debug_assert!(taken.is_ok(), "a letter to oneself was refused");
                continue;
            }
            if self.peers[to].died.is_some() || self.peers[to].heard_goodbye || channel.has_left(to) {
                continue;
            }
            let out = &mut self.peers[to].out;
            channel.tidings(number, to, out);
            Pen(out, number).letter(letter, frames);
        }
        self.tell_members(number);
    }

    /// Settle the exchange that was published last.
    pub(super) fn settle(&mut self, number: u64) {
        let Some(channel) = self.channels.get_mut(&number) else { return };
        let exchange = channel.exchange;
        for i in 0..channel.members.len() {
            let Some(channel) = self.channels.get(&number) else { return };
            let to = channel.members[i] as usize;
            if !self.listens(channel, to) {
                continue;
            }
            let Some(channel) = self.channels.get_mut(&number) else { return };
            channel.tidings(number, to, &mut self.peers[to].out);
            Pen(&mut self.peers[to].out, number).settle(exchange);
        }
        let me = self.me();
        self.channel(number).pairs[me].inbound.settled = exchange;
        self.tell_members(number);
    }

    /// The world ends.
    pub(super) fn end(&mut self, number: u64, cause: Cause) {
        let channel = self.channel(number);
        if channel.ended.is_some() {
            return;
        }
        channel.ended = Some(cause.clone());
        self.news += 1;
        for to in self.members(number) {
            Pen(&mut self.peers[to].out, number).end(cause.rank as u32, &cause.what);
        }
        self.tell_members(number);
    }

    /// I leave a world: what waits for credit leaves, too.
    pub(super) fn leave(&mut self, number: u64, how: &Leave) {
        if self.channel(number).left.is_some() {
            return;
        }
        self.channel(number).left = Some(how.clone());
        for to in self.members(number) {
            let Some(channel) = self.channels.get_mut(&number) else { return };
            let out = &mut self.peers[to].out;
            channel.tidings(number, to, out);
            let outbound = &mut channel.pairs[to].outbound;
            outbound.let_go(number, out, true);
            Pen(out, number).left(how, outbound.posted);
        }
        self.tell_members(number);
    }

    /// My end of a world is dropped.
    pub(super) fn close(&mut self, number: u64) {
        let channel = self.channel(number);
        channel.closed = true;
        channel.pairs.iter_mut().for_each(|pair| pair.inbound.frames.clear());
        (0..self.peers.len()).for_each(|from| self.withdraw(number, from));
        self.forget_if_over(number);
    }

    /// A world that I have closed is forgotten when nobody can say anything in it any more.
    fn forget_if_over(&mut self, number: u64) {
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
    fn members(&self, number: u64) -> Vec<usize> {
        let Some(channel) = self.channels.get(&number) else { return Vec::new() };
        let members = channel.members.iter().map(|&to| to as usize);
        members.filter(|&to| self.listens(channel, to)).collect()
    }

    /// Whether `to` can still be told something in this world.
    fn listens(&self, channel: &Channel, to: usize) -> bool {
        let peer = &self.peers[to];
        to != self.me()
            && !self.is_beside(to)
            && peer.died.is_none()
            && !peer.heard_goodbye
            && !channel.has_left(to)
    }

    fn tell_members(&mut self, number: u64) {
        for i in 0..self.channels.get(&number).map_or(0, |channel| channel.members.len()) {
            let Some(channel) = self.channels.get(&number) else { return };
            let to = channel.members[i] as usize;
            if to != self.me() && !self.is_beside(to) && self.peers[to].unsent() {
                self.send(to);
            }
        }
    }

    /// The oldest frame from `from` is done with. Gives whether there was one.
    pub(super) fn release(&mut self, number: u64, from: usize) -> bool {
        let me = self.me();
        let Some(channel) = self.channels.get_mut(&number) else { return false };
        let Pair { inbound, outbound } = &mut channel.pairs[from];
        let Some((body, due)) = inbound.release(outbound) else { return false };
        if from == me {
            self.own.recycle(body);
            outbound.released += 1;
            return true;
        }
        if let Some(link) = &mut self.peers[from].link {
            link.recycle(body);
        }
        if due && !self.owing.contains(&(number, from as u32)) {
            self.owing.push((number, from as u32));
        }
        true
    }

    /// A place for a payload that is still to come from `from`.
    pub(super) fn offer(&mut self, number: u64, from: usize, ahead: u64, header: Header, place: Place) {
        if let Some(channel) = self.channels.get_mut(&number) {
            channel.pairs[from].inbound.offer(ahead, header, place);
        }
    }

    /// Places that were offered for payloads from `from` are not touched any more.
    pub(super) fn withdraw(&mut self, number: u64, from: usize) {
        if let Some(channel) = self.channels.get_mut(&number) {
            channel.pairs[from].inbound.withdraw();
        }
        if let Some(link) = &mut self.peers[from].link {
            link.move_out(number);
        }
    }

    /// Tell of releases whoever would hear of them in no other way.
    pub(super) fn pay(&mut self) {
        while let Some((number, to)) = self.owing.pop() {
            self.tell_releases(number, to as usize);
        }
    }

    fn tell_releases(&mut self, number: u64, to: usize) {
        let Some(channel) = self.channels.get_mut(&number) else { return };
        if channel.pairs[to].inbound.owes() && !channel.has_left(to) && self.peers[to].died.is_none() {
            channel.pairs[to].inbound.tell(number, &mut self.peers[to].out);
            self.send(to);
        }
    }

    fn numbers(&self) -> Vec<u64> {
        self.channels.keys().copied().collect()
    }

    /// Tell everybody what else they should know: releases, and in which superstep I am.
    pub(super) fn pay_all(&mut self) {
        for number in self.numbers() {
            for to in self.members(number) {
                if self.peers[to].link.is_none() {
                    continue;
                }
                let Some(channel) = self.channels.get_mut(&number) else { break };
                let before = self.peers[to].out.len();
                channel.tidings(number, to, &mut self.peers[to].out);
                if self.peers[to].out.len() > before {
                    self.send(to);
                }
            }
        }
    }

    // ---- what comes ----

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
    fn take(&mut self, from: usize, number: u64, item: Item) -> Result<(), &'static str> {
        match item {
            Item::Beat => return Ok(()),
            Item::Goodbye => {
                self.news += 1;
                let peer = &mut self.peers[from];
                peer.heard_goodbye = true;
                peer.say(|pen| pen.farewell());
                return Ok(());
            }
            Item::Farewell => {
                self.peers[from].heard_farewell = true;
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
        if released && channel.pairs[from].outbound.waits() {
            let Some(channel) = self.channels.get_mut(&number) else { return Ok(()) };
            channel.pairs[from].outbound.let_go(number, &mut self.peers[from].out, false);
        }
        if left {
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
            && channel.pairs[from].inbound.solicit(number, &mut peer.out)
        {
            self.send(from);
        }
        self.tidy();
        if !self.owing.is_empty() {
            self.pay();
        }
    }

    /// What `from` sent is nothing that a rank would send.
    fn garbled(&mut self, from: usize, what: String) {
        for number in self.numbers() {
            let channel = &self.channels[&number];
            let rank = channel.members.iter().position(|&member| member as usize == from);
            if let Some(rank) = rank.filter(|_| !channel.has_left(from)) {
                self.end(number, Cause { rank, what: what.clone() });
            }
        }
        self.die(from, what);
    }

    /// The connection to `from` has ended.
    fn ended(&mut self, from: usize, what: String) {
        if self.peers[from].heard_goodbye {
            self.peers[from].close();
            self.news += 1;
            self.numbers().into_iter().for_each(|number| self.forget_if_over(number));
        } else {
            self.doom(from, what);
        }
    }

    /// `rank` has died, as far as can be seen from here.
    fn doom(&mut self, rank: usize, what: String) {
        if self.settings.obituary.is_zero() {
            return self.die(rank, what);
        }
        let peer = &mut self.peers[rank];
        peer.close();
        peer.doomed.get_or_insert((Instant::now() + self.settings.obituary, what));
    }

    /// A write to `to` failed: it may have said why before.
    fn broke(&mut self, to: usize, what: &str) {
        for _ in 0..64 {
            if self.peers[to].link.is_none() {
                return;
            }
            self.look(to);
        }
        if self.peers[to].link.is_some() {
            self.ended(to, format!("its connection broke: {what}"));
        }
    }

    /// `rank` has died.
    pub(super) fn die(&mut self, rank: usize, what: String) {
        let Some(peer) = self.peers.get_mut(rank) else { return };
        peer.close();
        peer.doomed = None;
        peer.died.get_or_insert(what);
        self.news += 1;
        self.channels.values_mut().for_each(|channel| channel.pairs[rank].outbound.forget());
        self.numbers().into_iter().for_each(|number| self.forget_if_over(number));
    }

    /// Why nothing more comes from member `index` of a world, rank `from` of the job, if it can't.
    pub(super) fn lost(&self, number: u64, index: usize, from: usize) -> Option<Lost> {
        let channel = self.channels.get(&number)?;
        let how = channel.gone(from).or_else(|| self.dead(channel, from))?;
        // One that never came into this world, and did not die, did not come because of one that did.
        let absent = !channel.has_left(from) && self.peers[from].died.is_none();
        let died = |&member: &u32| self.peers[member as usize].died.clone();
        let fault = channel.members.iter().enumerate().find_map(|(rank, member)| Some((rank, died(member)?)));
        Some(match fault {
            Some((rank, what)) if absent => Lost { rank, how: Loss::Died(what) },
            _ => Lost { rank: index, how },
        })
    }

    /// What became of `from`, as far as is known, even if not all that it sent has come.
    pub(super) fn gone_of(&self, number: u64, from: usize) -> Option<Loss> {
        let channel = self.channels.get(&number)?;
        channel.leaving(from).or_else(|| self.dead(channel, from))
    }

    fn dead(&self, channel: &Channel, from: usize) -> Option<Loss> {
        let peer = &self.peers[from];
        if let Some(what) = &peer.died {
            return Some(Loss::Died(what.clone()));
        }
        let silent = peer.heard_goodbye && !channel.has_left(from);
        silent.then(|| {
            // What it said when it left another world is why it did not come into this one.
            let said = self.channels.values().find_map(|channel| match channel.leaving(from) {
                Some(Loss::Left(Leave::Failed(why) | Leave::Panicked(why))) => Some(why),
                _ => None,
            });
            let why = said.map(|why| format!("it ended without having been in this world: {why}"));
            Loss::Left(Leave::Failed(
                why.unwrap_or_else(|| "it ended without having been in this world".into()),
            ))
        })
    }

    /// Whether there is nobody at the other end who would read what is posted.
    pub(super) fn is_gone(&self, number: u64, to: usize) -> bool {
        let peer = &self.peers[to];
        peer.died.is_some()
            || peer.heard_goodbye
            || self.channels.get(&number).is_some_and(|channel| channel.has_left(to))
    }

    // ---- connections ----

    /// Something was written to `to`: it is sent with what follows, or when somebody looks.
    fn soil(&mut self, to: usize) {
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

    /// A connection to `to` is needed: open one, unless one stands or comes.
    pub(super) fn need(&mut self, to: usize) {
        let me = self.me();
        let peer = &mut self.peers[to];
        let stands = peer.link.is_some() || peer.attempt.is_some() || peer.promised || peer.retry.is_some();
        let gone = peer.died.is_some() || peer.doomed.is_some() || peer.heard_goodbye;
        if to == me || stands || gone {
            return;
        }
        let opened = chance().and_then(|nonce| {
            let (opener, hello) = Opener::new(self.identity.clone(), to as u32, nonce);
            Attempt::new(peer.address, opener, hello, Instant::now())
        });
        match opened {
            Ok(attempt) => {
                peer.attempt = Some(attempt);
                self.drive_attempt(to);
            }
            Err(error) => {
                let address = peer.address;
                self.die(to, format!("there is no way to it at {address}: {error}"));
            }
        }
    }

    /// Go on with opening a connection to `to`.
    fn drive_attempt(&mut self, to: usize) {
        loop {
            let peer = &mut self.peers[to];
            let Some(attempt) = &mut peer.attempt else { return };
            let stream = attempt.stream.clone();
            let mut buffer = [0; 128];
            let went = write_some(&stream, &mut attempt.out)
                .and_then(|()| read_some(&stream, &mut buffer, attempt.opener.wants()));
            let bytes = match went {
                Ok([]) => return,
                Ok(bytes) => bytes,
                Err(error) => return self.failed(to, &error),
            };
            match attempt.opener.take(bytes) {
                Ok(Opening::More) => {}
                Ok(Opening::Say(words)) => attempt.out.extend_from_slice(&words),
                Ok(Opening::Done(session)) => return self.open(to, stream, &session),
                Err(Refusal::Crossed) => {
                    // Its connection to me is the one that is used; should it not come, I try again.
                    peer.attempt = None;
                    peer.retry = Some(Instant::now() + self.settings.handshake);
                    return;
                }
                Err(refusal) => {
                    let address = peer.address;
                    return self.die(to, format!("at {address}, {refusal}"));
                }
            }
        }
    }

    /// An attempt came to nothing.
    fn failed(&mut self, to: usize, error: &std::io::Error) {
        let peer = &mut self.peers[to];
        peer.attempt = None;
        peer.tries += 1;
        if error.kind() == ErrorKind::ConnectionRefused || peer.tries > TRIES {
            let address = peer.address;
            self.doom(to, format!("there is no way to it at {address}: {error}"));
        } else {
            peer.retry = Some(Instant::now() + Duration::from_millis(10 << (2 * peer.tries)));
        }
    }

    fn open(&mut self, to: usize, stream: Arc<TcpStream>, session: &Session) {
        let sealed = self.identity.sealed;
        self.peers[to].open(stream, session, sealed, Instant::now());
        self.news += 1;
        self.send(to);
    }

    /// Take who knocks.
    fn accept(&mut self) {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return, // nobody is there, or there is no descriptor for now: whoever knocks goes on to
            };
            let ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            let (Ok(()), Ok(nonce)) = (ready, chance()) else { continue };
            let limit = self.settings.half_open.max(1);
            if self.halves.len() >= limit {
                // The oldest goes: a rank needs no time to speak of, and is back at once.
                self.halves.remove(0);
            }
            self.halves.push(Half {
                stream: Arc::new(stream),
                taker: Taker::new(self.identity.clone(), nonce),
                out: Vec::new(),
                since: Instant::now(),
                decided: None,
            });
        }
    }

    /// Go on with the handshakes that others have begun.
    fn drive_halves(&mut self) {
        let mut i = 0;
        while i < self.halves.len() {
            if self.drive_half(i) { i += 1 } else { drop(self.halves.remove(i)) }
        }
    }

    /// Gives whether it is still one.
    fn drive_half(&mut self, i: usize) -> bool {
        loop {
            let half = &mut self.halves[i];
            if write_some(&half.stream, &mut half.out).is_err() {
                if let Some(Some(session)) = &half.decided {
                    self.peers[session.peer as usize].promised = false;
                }
                return false;
            }
            if let Some(decided) = &mut half.decided {
                if !half.out.is_empty() {
                    return true;
                }
                if let Some(session) = decided.take() {
                    let stream = half.stream.clone();
                    self.open(session.peer as usize, stream, &session);
                }
                return false;
            }
            let mut buffer = [0; 128];
            let Ok(bytes) = read_some(&half.stream, &mut buffer, half.taker.wants()) else { return false };
            if bytes.is_empty() {
                return true;
            }
            match half.taker.take(bytes) {
                Ok(Taking::More) => {}
                Ok(Taking::Say(words)) => half.out.extend_from_slice(&words),
                Ok(Taking::Proven(from)) => self.decide(i, from as usize),
                Err(_) => return false,
            }
        }
    }

    /// `from` is proven: whether its connection is the one that is used.
    fn decide(&mut self, i: usize, from: usize) {
        let me = self.me();
        let half = &mut self.halves[i];
        let peer = &mut self.peers[from];
        let unlike = half.taker.unlike().map(str::to_owned);
        let verdict = if unlike.is_some() {
            Verdict::Unlike
        } else if peer.link.is_some()
            || peer.promised
            || peer.died.is_some()
            || peer.attempt.is_some() && me < from
        {
            Verdict::Crossed
        } else {
            Verdict::Welcome
        };
        let (words, session) = half.taker.decide(verdict);
        half.out.extend_from_slice(&words);
        half.decided = Some((verdict == Verdict::Welcome).then_some(session));
        if verdict == Verdict::Welcome {
            (peer.attempt, peer.promised) = (None, true);
        }
        if let Some(how) = unlike {
            self.die(from, format!("it can't work with this rank: {how}"));
        }
    }

    // ---- turns ----

    /// What there is to wait for.
    pub(super) fn sources(&self) -> Vec<(Source, Stream, PollFlags)> {
        let mut all = vec![(Source::Listener, Stream::Listener(self.listener.clone()), PollFlags::IN)];
        for half in &self.halves {
            let flags = if half.out.is_empty() { PollFlags::IN } else { PollFlags::OUT };
            all.push((Source::Other, Stream::Connection(half.stream.clone()), flags));
        }
        for (rank, peer) in self.peers.iter().enumerate() {
            if let Some(link) = &peer.link {
                let out = if peer.unsent() { PollFlags::OUT } else { PollFlags::empty() };
                let flags = PollFlags::IN | out;
                all.push((Source::Peer(rank), Stream::Connection(link.stream.clone()), flags));
            } else if let Some(attempt) = &peer.attempt {
                let flags = if attempt.out.is_empty() { PollFlags::IN } else { PollFlags::OUT };
                all.push((Source::Other, Stream::Connection(attempt.stream.clone()), flags));
            }
        }
        all
    }

    /// Serve those where something can be done.
    pub(super) fn serve(&mut self, ready: &[Source]) {
        for source in ready {
            match *source {
                Source::Listener => self.accept(),
                Source::Peer(rank) => {
                    self.look(rank);
                    if self.peers[rank].unsent() {
                        self.send(rank);
                    }
                }
                Source::Other => {}
            }
        }
        if ready.iter().any(|source| !matches!(source, Source::Peer(_))) {
            self.handshakes();
        }
        self.tidy();
    }

    /// Go on with all handshakes.
    fn handshakes(&mut self) {
        self.drive_halves();
        for to in 0..self.peers.len() {
            if self.peers[to].attempt.is_some() {
                self.drive_attempt(to);
            }
        }
    }

    /// Look at everything.
    pub(super) fn serve_all(&mut self) {
        self.accept();
        self.handshakes();
        for rank in 0..self.peers.len() {
            self.look(rank);
            if self.peers[rank].unsent() {
                self.send(rank);
            }
        }
        self.tidy();
    }

    /// Before sleeping: those from whom something is awaited must be reached, and may themselves wait for credit.
    pub(super) fn face_missed(&mut self) {
        for rank in 0..self.peers.len() {
            if std::mem::take(&mut self.peers[rank].missed) {
                self.need(rank);
                let mut from = 0;
                while let Some((&number, _)) = self.channels.range(from..).next() {
                    self.tell_releases(number, rank);
                    let Some(next) = number.checked_add(1) else { break };
                    from = next;
                }
            }
        }
    }

    /// What is due by time: beats, limits, tries.
    pub(super) fn times(&mut self, now: Instant) {
        let step = now - self.timed;
        self.timed = now;
        let Settings { beat, limit, handshake, .. } = self.settings;
        for i in (0..self.halves.len()).rev() {
            if now - self.halves[i].since > handshake {
                if let Some(Some(session)) = &self.halves[i].decided {
                    self.peers[session.peer as usize].promised = false;
                }
                self.halves.remove(i);
            }
        }
        for rank in 0..self.peers.len() {
            let peer = &mut self.peers[rank];
            if let Some((_, what)) = peer.doomed.take_if(|(until, _)| *until <= now) {
                self.die(rank, what);
                continue;
            }
            if peer.attempt.as_ref().is_some_and(|attempt| now - attempt.since > handshake) {
                let address = peer.address;
                self.die(rank, format!("nobody answered at {address} within {handshake:?}"));
                continue;
            }
            if peer.retry.is_some_and(|retry| now > retry) {
                peer.retry = None;
                if peer.unsent() || peer.missed {
                    self.need(rank);
                }
                continue;
            }
            if peer.link.is_none() {
                continue;
            }
            if std::mem::take(&mut peer.heard) {
                peer.heard_at = now;
            }
            if step > (limit / 2).max(Duration::from_secs(1)) {
                // This process itself was not running, and can't tell who was silent meanwhile.
                peer.heard_at = now;
            }
            if std::mem::take(&mut peer.spoke) {
                peer.spoke_at = now;
            }
            if now - peer.heard_at > limit {
                let what = format!("nothing was heard from it for {limit:?}");
                self.look(rank);
                if !self.peers[rank].heard {
                    self.ended(rank, what);
                }
            } else if now - peer.spoke_at > beat && !peer.said_goodbye && !peer.heard_goodbye {
                peer.say(|pen| pen.beat());
                self.send(rank);
            }
        }
    }

    /// Say goodbye where all is said; gives whether all is over.
    pub(super) fn part(&mut self) -> bool {
        let me = self.me();
        let mut over = true;
        for rank in (0..self.peers.len()).filter(|&rank| rank != me) {
            let peer = &mut self.peers[rank];
            if peer.link.is_some() && !peer.said_goodbye {
                peer.said_goodbye = true;
                peer.say(|pen| pen.goodbye());
                self.send(rank);
            }
            let peer = &mut self.peers[rank];
            if peer.link.is_none() && peer.unsent() && peer.died.is_none() && !peer.heard_goodbye {
                over = false;
                self.need(rank);
                continue;
            }
            over &= match &peer.link {
                None => peer.attempt.is_none() && !peer.promised,
                Some(_) => peer.heard_farewell && !peer.unsent(),
            };
        }
        over
    }
}

/// A socket, kept open while somebody waits for it.
pub(super) enum Stream {
    Listener(Arc<TcpListener>),
    Connection(Arc<TcpStream>),
}

impl std::os::fd::AsFd for Stream {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self {
            Stream::Listener(listener) => listener.as_fd(),
            Stream::Connection(stream) => stream.as_fd(),
        }
    }
}
