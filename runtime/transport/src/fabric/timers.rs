//! Work that is due by time, and work that a rank does for other ranks before it sleeps and when it
//! ends.

use std::time::{Duration, Instant};

use crate::fabric::Limits;
use crate::fabric::carrier::Carrier;
use crate::fabric::core::{Core, RankState};
use crate::fabric::ending::Next;

/// If at least this many ranks share a core, handshakes are given more time, in proportion.
const CROWD: u32 = 16;

/// The longest time between two runs of the timers in a process that was not stopped. The timers
/// are due ten times a second.
const STOPPED: Duration = Duration::from_secs(1);

/// If a process has at least this many connections, heartbeats become rarer, in proportion.
const BEATS: usize = 16;

impl<C: Carrier> Core<C> {
    /// Called before this rank sleeps. Connects to the ranks from which this rank awaits something,
    /// and reports releases to them, since they may be waiting for credit.
    pub(super) fn serve_awaited(&mut self) {
        while let Some(rank) = self.all_awaited.pop() {
            let rank = rank as usize;
            if std::mem::take(&mut self.peers[rank].awaited_by_us) {
                if !C::is_limited(self) {
                    C::connect(self, rank);
                }
                let mut from = 0;
                while let Some((&number, _)) = self.channels.range(from..).next() {
                    self.report_releases(number, rank);
                    let Some(next) = number.checked_add(1) else { break };
                    from = next;
                }
            }
        }
    }

    /// Does the work that is due by time: heartbeats, time limits, retries.
    pub(crate) fn run_timers(&mut self, now: Instant) {
        let step = now - self.timed;
        self.timed = now;
        let Limits { beat, limit, obituary, .. } = self.limits;
        // All heartbeats of a process together take no more time than those on [`BEATS`]
        // connections.
        let links = self.peers.iter().filter(|peer| peer.link.is_some()).count();
        let beat = (beat * (1 + links / BEATS) as u32).min(limit / 4).max(beat);
        // A rank that shares its core with many others answers only when it has the core.
        let patience = 1 + self.crowd / CROWD;
        // This process itself may not have been running, for example while its job was suspended.
        // In that case this process cannot know what other ranks have done meanwhile.
        let stopped = (step > STOPPED).then_some(step);
        if let Some(step) = stopped {
            let ends = |until: &mut Instant| *until = (*until + step).min(now + obituary);
            for peer in &mut self.peers {
                peer.heard_at = now;
                peer.suspected.iter_mut().for_each(|(until, _)| ends(until));
                peer.closing.iter_mut().for_each(ends);
            }
        }
        for rank in 0..self.peers.len() {
            let peer = &mut self.peers[rank];
            if let Some((_, what)) = peer.suspected.take_if(|(until, _)| *until <= now) {
                self.mark_failed(rank, what);
                continue;
            }
            if peer.closing.take_if(|until| *until <= now).is_some() {
                self.events += 1;
                self.alarms.raise();
            }
            if peer.link.is_none() {
                continue;
            }
            if std::mem::take(&mut peer.heard) {
                peer.heard_at = now;
            }
            if std::mem::take(&mut peer.spoke) {
                peer.spoke_at = now;
            }
            if now - peer.heard_at > limit {
                let what = format!("nothing was heard from it for {limit:?}");
                self.read_from(rank);
                if !self.peers[rank].heard {
                    self.connection_ended(rank, what);
                }
            } else if now - peer.spoke_at > beat && !peer.has_parted() {
                peer.write_item(|writer| writer.beat());
                C::send_beat(self, rank);
            }
        }
        C::run_timers(self, now, stopped, patience);
    }

    /// If this rank has awaited the same rank since the last run of the timers and has found
    /// nothing, asks the awaited rank in which wait that rank is. The answer has the superstep of
    /// the asked rank.
    pub(super) fn ask_awaited(&mut self, now: Instant) {
        let waits = (self.awaited.filter(|_| self.rank != RankState::Busy), self.found);
        let before = std::mem::replace(&mut self.awaited_before, waits);
        if let (Some(rank), _) = waits
            && before == waits
        {
            C::connect(self, rank as usize);
            self.ask(rank as usize, now);
        }
    }

    /// Takes one step of [ending](crate::fabric::ending). Returns whether nothing is left to do for
    /// any rank.
    pub(super) fn close_all(&mut self) -> bool {
        let (me, defers, limited) = (self.me(), self.defers(), C::is_limited(self));
        let mut over = true;
        for rank in (0..self.peers.len()).filter(|&rank| rank != me) {
            let mut next = self.peers[rank].facts(defers).next();
            if next == Next::SayGoodbye {
                let peer = &mut self.peers[rank];
                peer.said_goodbye = true;
                peer.write_item(|writer| writer.goodbye());
                self.send(rank);
                next = self.peers[rank].facts(defers).next();
            }
            match next {
                Next::Nothing if limited && self.peers[rank].link.is_some() => self.close_connection(rank),
                Next::Connect => C::connect(self, rank),
                Next::SayGoodbye | Next::Wait | Next::Nothing => {}
            }
            over &= next == Next::Nothing;
        }
        over
    }
}
