//! What a rank says in its worlds: frames, letters, what it has released, and how it leaves.

use crate::stream::{Body, Item, Pen, Place};
use crate::tcp::channel::{Channel, Due, Pair, cost};
use crate::tcp::core::Core;
use crate::{Cause, Header, Leave, Letter};

impl Core {
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
            let mut frame = Vec::with_capacity(cost(payload.len()) as usize);
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
    pub(super) fn write(&mut self, to: usize, payload: &[u8]) -> std::io::Result<()> {
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
                channel.pairs[me].inbound.read = channel.exchange;
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
        for i in 0..self.channel(number).members.len() {
            let Some(channel) = self.channels.get_mut(&number) else { return };
            let to = channel.members[i] as usize;
            let peer = &mut self.peers[to];
            let beside = self.beside.get(to).is_some_and(|&beside| beside);
            if to == self.identity.rank as usize || beside || peer.died.is_some() || peer.heard_goodbye {
                continue;
            }
            // One that has left, too, only waits for this to forget the world.
            if !channel.has_left(to) {
                channel.tidings(number, to, &mut peer.out);
                channel.pairs[to].outbound.let_go(number, &mut peer.out, true);
            }
            Pen(&mut peer.out, number).left(how, channel.pairs[to].outbound.posted);
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
        if due != Due::Later && !self.owing.contains(&(number, from as u32)) {
            self.owing.push((number, from as u32));
        }
        self.pressing |= due == Due::Now;
        true
    }

    /// A place for a payload that is still to come from `from`.
    pub(super) fn offer(&mut self, number: u64, from: usize, ahead: u64, header: Header, place: Place) {
        if let Some(channel) = self.channels.get_mut(&number) {
            let adopt = |place| match &mut self.peers[from].link {
                Some(link) => link.adopt(number, header, place),
                None => Some(place),
            };
            channel.pairs[from].inbound.offer(ahead, header, place, adopt);
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
        self.pressing = false;
        while let Some((number, to)) = self.owing.pop() {
            self.tell_releases(number, to as usize);
        }
    }

    pub(super) fn tell_releases(&mut self, number: u64, to: usize) {
        let Some(channel) = self.channels.get_mut(&number) else { return };
        // Who has left says nothing more; it may be forgotten there already.
        if channel.left.is_none()
            && channel.pairs[to].inbound.owes()
            && !channel.has_left(to)
            && self.peers[to].died.is_none()
        {
            channel.pairs[to].inbound.tell(number, &mut self.peers[to].out);
            self.send(to);
        }
    }

    /// Tell everybody what else they should know: releases, and in which superstep I am.
    pub(super) fn pay_all(&mut self) {
        for number in self.numbers() {
            for to in self.members(number) {
                if self.peers[to].link.is_none() {
                    continue;
                }
                let Some(channel) = self.channels.get_mut(&number) else { break };
                if channel.left.is_some() {
                    break;
                }
                let before = self.peers[to].out.len();
                channel.tidings(number, to, &mut self.peers[to].out);
                if self.peers[to].out.len() > before {
                    self.send(to);
                }
            }
        }
    }
}
