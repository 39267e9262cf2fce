//! How lost ranks are handled, and which errors the ranks that wait for them receive.

use std::time::Instant;

use crate::fabric::carrier::Carrier;
use crate::fabric::core::Core;
use crate::{Cause, Leave, Loss, Lost};

impl<C: Carrier> Core<C> {
    /// Handles items that no correct rank would send.
    pub(super) fn reject(&mut self, from: usize, what: String) {
        for number in self.numbers() {
            let channel = &self.channels[&number];
            let rank = channel.members.iter().position(|&member| member as usize == from);
            if let Some(rank) = rank.filter(|_| !channel.has_left(from)) {
                self.end(number, Cause { rank, what: format!("rank {rank}: {what}") });
            }
        }
        self.mark_failed(from, what);
    }

    /// Handles the end of the connection to `from`.
    pub(crate) fn connection_ended(&mut self, from: usize, what: String) {
        if C::has_ended_by_agreement(self, from) {
            return;
        }
        if self.peers[from].heard_goodbye {
            self.close_connection(from);
            self.events += 1;
            self.numbers().into_iter().for_each(|number| self.forget_if_over(number));
        } else {
            self.suspect(from, what);
        }
    }

    /// Closes the connection to `rank`, and drops the bytes that were not sent.
    pub(crate) fn close_connection(&mut self, rank: usize) {
        C::disconnect(self, rank);
        self.peers[rank].close();
    }

    /// Records that `rank` has left all its worlds as finished, and has ended. Items that it has
    /// sent on an open connection are still read.
    pub(super) fn mark_finished(&mut self, rank: usize) {
        let Some(peer) = self.peers.get_mut(rank) else { return };
        peer.finished = true;
        if peer.link.is_none() && peer.died.is_none() && !peer.heard_goodbye {
            self.close_connection(rank);
            let peer = &mut self.peers[rank];
            (peer.heard_goodbye, peer.untold, peer.suspected) = (true, true, None);
            self.events += 1;
            self.alarms.raise();
            self.numbers().into_iter().for_each(|number| self.forget_if_over(number));
        }
    }

    /// Marks `rank` as suspected to have died, until its launcher reports how it ended.
    pub(crate) fn suspect(&mut self, rank: usize, what: String) {
        if self.peers[rank].finished {
            self.close_connection(rank);
            return self.mark_finished(rank);
        }
        if self.limits.obituary.is_zero() {
            return self.mark_failed(rank, what);
        }
        self.close_connection(rank);
        let peer = &mut self.peers[rank];
        peer.suspected.get_or_insert((Instant::now() + self.limits.obituary, what));
    }

    /// Handles a failed write to `to`. First reads what has arrived from `to`, which may contain
    /// the reason for the failure.
    pub(crate) fn write_failed(&mut self, to: usize, what: &str) {
        for _ in 0..1 << 12 {
            let heard = self.heard;
            if self.peers[to].link.is_none() {
                return;
            }
            self.read_from(to);
            if self.heard == heard {
                break;
            }
        }
        if self.peers[to].link.is_some() {
            self.connection_ended(to, format!("its connection broke: {what}"));
        }
    }

    /// Ends and leaves all worlds that this rank is in, because its process ends.
    pub(super) fn abandon(&mut self, what: &str) {
        self.abandoned = true;
        for number in self.numbers() {
            let me = self.me();
            let channel = self.channel(number);
            if let Some(rank) = channel.index_of(me).filter(|_| channel.left.is_none()) {
                self.end(number, Cause { rank, what: format!("rank {rank}: {what}") });
                self.leave(number, &Leave::Failed(what.into()));
            }
        }
    }

    /// Marks `rank` failed.
    pub(crate) fn mark_failed(&mut self, rank: usize, what: String) {
        if rank >= self.peers.len() {
            return;
        }
        self.close_connection(rank);
        let peer = &mut self.peers[rank];
        peer.suspected = None;
        if peer.died.is_none() {
            peer.died = Some(what);
            self.deaths.push(rank as u32);
            self.alarms.raise();
        }
        self.events += 1;
        self.channels.values_mut().for_each(|channel| channel.pairs[rank].forget());
        self.numbers().into_iter().for_each(|number| self.forget_if_over(number));
    }

    /// Returns why nothing more can arrive from member `index` of a world, or `None` if something
    /// still can. The member is rank `from` of the job.
    pub(super) fn lost(&self, number: u64, index: usize, from: usize) -> Option<Lost> {
        let channel = self.channels.get(&number)?;
        let how = self.gone_of(number, from)?;
        if channel.has_left(from) {
            return Some(Lost { rank: index, how });
        }
        // A rank that did not reach the end of this world may have died because another rank died.
        // The error then names that other rank.
        let fault = self.deaths.iter().find_map(|&dead| {
            let peer = &self.peers[dead as usize];
            let rank = channel.members.iter().position(|&member| member == dead)?;
            let named = !channel.has_left(dead as usize) && peer.last_error().is_none();
            let what = peer.died.clone().filter(|_| named)?;
            Some(Lost { rank, how: Loss::Died(what) })
        });
        Some(fault.unwrap_or(Lost { rank: index, how }))
    }

    /// Returns how `from` was lost, or `None` if it is not known to be lost.
    pub(super) fn gone_of(&self, number: u64, from: usize) -> Option<Loss> {
        let channel = self.channels.get(&number)?;
        channel.gone(from).or_else(|| self.dead(from))
    }

    fn dead(&self, from: usize) -> Option<Loss> {
        let peer = &self.peers[from];
        let absent = |why: &str| {
            Some(Loss::Left(Leave::Failed(format!("it ended without having been in this world{why}"))))
        };
        match (peer.last_error(), &peer.died) {
            // The error of the rank's last world is the reason why it did not join this world.
            (Some(why), _) => absent(&format!(": {why}")),
            (_, Some(what)) => Some(Loss::Died(what.clone())),
            _ if !peer.heard_goodbye => None,
            _ if peer.untold => Some(Loss::Left(Leave::Finished)),
            // The launcher knows how the rank ended, and may still report it.
            _ if peer.closing.is_some() => None,
            _ => absent(""),
        }
    }

    /// Returns whether rank `to` no longer reads frames that are posted to it.
    pub(super) fn is_gone(&self, number: u64, to: usize) -> bool {
        let peer = &self.peers[to];
        peer.died.is_some()
            || peer.heard_goodbye
            || self.channels.get(&number).is_some_and(|channel| channel.has_left(to))
    }
}
