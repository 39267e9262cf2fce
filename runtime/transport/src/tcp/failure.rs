//! What becomes of a rank that is lost, and what those who wait for it are told.

use std::time::Instant;

use crate::tcp::channel::Channel;
use crate::tcp::core::Core;
use crate::{Cause, Leave, Loss, Lost};

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
        if peer.died.is_none() {
            peer.died = Some(what);
            self.deaths.push(rank as u32);
        }
        self.news += 1;
        self.channels.values_mut().for_each(|channel| channel.pairs[rank].outbound.forget());
        self.numbers().into_iter().for_each(|number| self.forget_if_over(number));
    }

    /// Why nothing more comes from member `index` of a world, rank `from` of the job, if it can't.
    pub(super) fn lost(&self, number: u64, index: usize, from: usize) -> Option<Lost> {
        let channel = self.channels.get(&number)?;
        let how = channel.gone(from).or_else(|| self.dead(channel, from))?;
        if channel.has_left(from) {
            return Some(Lost { rank: index, how });
        }
        // One that did not come to the end of this world may have died of another's death: that one is named.
        let fault = self.deaths.iter().find_map(|&dead| {
            let peer = &self.peers[dead as usize];
            let rank = channel.members.iter().position(|&member| member == dead)?;
            let named = !channel.has_left(dead as usize) && peer.regret().is_none();
            let what = peer.died.clone().filter(|_| named)?;
            Some(Lost { rank, how: Loss::Died(what) })
        });
        Some(fault.unwrap_or(Lost { rank: index, how }))
    }

    /// What became of `from`, as far as is known, even if not all that it sent has come.
    pub(super) fn gone_of(&self, number: u64, from: usize) -> Option<Loss> {
        let channel = self.channels.get(&number)?;
        channel.leaving(from).or_else(|| self.dead(channel, from))
    }

    fn dead(&self, channel: &Channel, from: usize) -> Option<Loss> {
        let peer = &self.peers[from];
        let absent = |why: &str| {
            Some(Loss::Left(Leave::Failed(format!("it ended without having been in this world{why}"))))
        };
        match (channel.leaving(from), peer.regret(), &peer.died) {
            // What it says to have posted before would have come.
            (Some(how), ..) if peer.heard_goodbye => Some(how),
            // What it failed of before is why it did not come into this world.
            (_, Some(why), _) => absent(&format!(": {why}")),
            (_, _, Some(what)) => Some(Loss::Died(what.clone())),
            _ if !peer.heard_goodbye => None,
            // Whoever started it knows how it ended, and is about to say so.
            _ if peer.parting.is_some() => None,
            _ => absent(""),
        }
    }

    /// Whether there is nobody at the other end who would read what is posted.
    pub(super) fn is_gone(&self, number: u64, to: usize) -> bool {
        let peer = &self.peers[to];
        peer.died.is_some()
            || peer.heard_goodbye
            || self.channels.get(&number).is_some_and(|channel| channel.has_left(to))
    }
}
