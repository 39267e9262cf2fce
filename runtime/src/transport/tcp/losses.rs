//! What becomes of a rank that is lost, and what those who wait for it are told.

use std::time::Instant;

use super::super::{Cause, Leave, Loss, Lost};
use super::channel::Channel;
use super::core::Core;

impl Core {
    /// What `from` sent is nothing that a rank would send.
    pub(super) fn garbled(&mut self, from: usize, what: String) {
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
    pub(super) fn ended(&mut self, from: usize, what: String) {
        if self.peers[from].heard_goodbye {
            self.peers[from].close();
            self.news += 1;
            self.numbers().into_iter().for_each(|number| self.forget_if_over(number));
        } else {
            self.doom(from, what);
        }
    }

    /// `rank` has died, as far as can be seen from here.
    pub(super) fn doom(&mut self, rank: usize, what: String) {
        if self.settings.obituary.is_zero() {
            return self.die(rank, what);
        }
        let peer = &mut self.peers[rank];
        peer.close();
        peer.doomed.get_or_insert((Instant::now() + self.settings.obituary, what));
    }

    /// A write to `to` failed: it may have said why before.
    pub(super) fn broke(&mut self, to: usize, what: &str) {
        for _ in 0..1 << 12 {
            let heard = self.heard;
            if self.peers[to].link.is_none() {
                return;
            }
            self.look(to);
            if self.heard == heard {
                break;
            }
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
        if !peer.heard_goodbye {
            return None;
        }
        if let Some(how) = channel.leaving(from) {
            return Some(how); // what it says to have posted before would have come
        }
        // What it said when it left another world is why it did not come into this one.
        let said = self.channels.values().find_map(|channel| match channel.leaving(from) {
            Some(Loss::Left(Leave::Failed(why) | Leave::Panicked(why))) => Some(format!(": {why}")),
            _ => None,
        });
        if said.is_none() && peer.parting.is_some() {
            return None; // whoever started it knows how it ended, and is about to say so
        }
        let why = format!("it ended without having been in this world{}", said.unwrap_or_default());
        Some(Loss::Left(Leave::Failed(why)))
    }

    /// Whether there is nobody at the other end who would read what is posted.
    pub(super) fn is_gone(&self, number: u64, to: usize) -> bool {
        let peer = &self.peers[to];
        peer.died.is_some()
            || peer.heard_goodbye
            || self.channels.get(&number).is_some_and(|channel| channel.has_left(to))
    }
}
