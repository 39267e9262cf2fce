//! What each turn polls: sockets that are ready, and what is due by time.

use std::time::{Duration, Instant};

use crate::tcp::Settings;
use crate::tcp::core::{Core, RankState};
use crate::tcp::ending::Next;
use crate::tcp::readiness::{Interest, Source};

/// The most connections that a process registers only before a thread waits.
const FEW: usize = 4;

/// Ranks that share a core above which handshakes are given more time: as many more, as much more.
const CROWD: u32 = 16;

/// A process that did nothing by time for longer was stopped: it is due ten times a second.
const STOPPED: Duration = Duration::from_secs(1);

/// Connections of a process above which heartbeats become rarer: as many more, as much rarer.
const BEATS: usize = 16;

impl Core {
    /// Serves the sources that are ready.
    pub(super) fn serve(&mut self, ready: &[Source]) {
        for source in ready {
            match *source {
                Source::Listener => self.accept(),
                Source::Peer(rank) => self.serve_peer(rank),
                Source::Attempt(rank) => self.drive_attempt(rank),
                Source::Incoming(descriptor) => self.drive_incoming_of(descriptor),
                Source::Waker => {}
            }
        }
        self.flush_dirty();
        self.make_room();
    }

    fn serve_peer(&mut self, rank: usize) {
        self.read_from(rank);
        let room = self.peers[rank].link.as_ref().is_some_and(|link| link.awaits_room);
        if room || self.peers[rank].unsent() {
            self.send(rank);
        }
    }

    /// Called when the connection to `rank` was opened: it is registered.
    pub(super) fn opened(&mut self, rank: usize) {
        let links = self.peers.iter().filter(|peer| peer.link.is_some()).count();
        if links > FEW {
            self.watch_few();
            self.few.clear();
        } else {
            self.few.retain(|&few| few as usize != rank && self.peers[few as usize].link.is_some());
            self.few.push(rank as u32);
        }
    }

    /// Registers all connections, before a thread waits.
    pub(super) fn watch_few(&mut self) {
        let mut i = 0;
        while let Some(&rank) = self.few.get(i) {
            i += 1;
            let rank = rank as usize;
            let Some(link) = self.peers[rank].link.as_mut().filter(|link| !link.watched) else { continue };
            let interest = if link.awaits_room { Interest::Both } else { Interest::Bytes };
            match self.readiness.add(&link.stream, Source::Peer(rank), interest) {
                Ok(()) => link.watched = true,
                Err(error) => {
                    self.connection_ended(rank, format!("its connection cannot be watched: {error}"));
                }
            }
        }
    }

    /// No thread waits any more: connections are not registered where there are few.
    pub(super) fn unwatch_few(&mut self) {
        for &rank in &self.few {
            if let Some(link) = self.peers[rank as usize].link.as_mut().filter(|link| link.watched) {
                link.watched = self.readiness.remove(&link.stream).is_err();
            }
        }
    }

    /// Serves all that is ready now, without waiting.
    pub(super) fn serve_ready(&mut self) {
        let mut i = 0;
        while let Some(&rank) = self.few.get(i) {
            i += 1;
            let rank = rank as usize;
            if self.peers[rank].link.as_ref().is_some_and(|link| !link.watched) {
                self.serve_peer(rank);
            }
        }
        let mut ready = std::mem::take(&mut self.ready);
        self.readiness.wait(Duration::ZERO, &mut ready);
        self.serve(&ready);
        self.ready = ready;
        self.send_pending_releases();
    }

    /// Called before sleeping: ranks from which this rank awaits something must be connected, and may themselves wait
    /// for credit.
    pub(super) fn serve_awaited(&mut self) {
        while let Some(rank) = self.all_awaited.pop() {
            let rank = rank as usize;
            if std::mem::take(&mut self.peers[rank].awaited_by_us) {
                if !self.is_limited() {
                    self.ensure_connection(rank);
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

    /// Does what is due by time: heartbeats, time limits, retries.
    pub(super) fn run_timers(&mut self, now: Instant) {
        let step = now - self.timed;
        self.timed = now;
        let Settings { beat, limit, handshake, obituary, .. } = self.settings;
        // All heartbeats of a process together take no more time than those on some connections.
        let links = self.peers.iter().filter(|peer| peer.link.is_some()).count();
        let beat = (beat * (1 + links / BEATS) as u32).min(limit / 4).max(beat);
        // A rank that shares its core with many others answers when it has the core.
        let patience = 1 + self.crowd / CROWD;
        // This process itself may not have been running, as when its job was suspended: it cannot
        // tell what others have done meanwhile.
        let was_stopped = step > STOPPED;
        if was_stopped {
            let begun = |since: &mut Instant| *since = (*since + step).min(now);
            let ends = |until: &mut Instant| *until = (*until + step).min(now + obituary);
            self.incoming.iter_mut().for_each(|incoming| begun(&mut incoming.since));
            for peer in &mut self.peers {
                peer.heard_at = now;
                peer.attempt.iter_mut().for_each(|attempt| begun(&mut attempt.since));
                peer.suspected.iter_mut().for_each(|(until, _)| ends(until));
                peer.closing.iter_mut().for_each(ends);
            }
        }
        for i in (0..self.incoming.len()).rev() {
            if now - self.incoming[i].since > handshake * patience {
                self.drop_incoming(i);
            }
        }
        self.drop_slow(handshake * patience, now);
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
            if peer.attempt.as_ref().is_some_and(|attempt| now - attempt.since > handshake * patience) {
                let address = peer.address;
                self.mark_failed(rank, format!("no answer at {address} within {:?}", handshake * patience));
                continue;
            }
            if peer.retry.is_some_and(|retry| now > retry) {
                peer.retry = None;
                if peer.unsent() || peer.awaited_by_us {
                    self.ensure_connection(rank);
                }
                continue;
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
            } else if now - peer.spoke_at > beat && !peer.said_goodbye && !peer.heard_goodbye {
                let used = peer.link.as_ref().map(|link| link.used);
                peer.write_item(|writer| writer.beat());
                self.send(rank);
                if let (Some(link), Some(used)) = (&mut self.peers[rank].link, used) {
                    link.used = used;
                }
            }
        }
        self.close_idle(now);
        self.make_room();
    }

    /// Asks the rank that this rank has waited for since the timers ran last, and without which it has found nothing: its
    /// answer says in which superstep it is.
    pub(super) fn ask_awaited(&mut self, now: Instant) {
        let waits = (self.awaited.filter(|_| self.rank != RankState::Busy), self.found);
        let before = std::mem::replace(&mut self.awaited_before, waits);
        if let (Some(rank), _) = waits
            && before == waits
        {
            self.ensure_connection(rank as usize);
            self.ask(rank as usize, now);
        }
    }

    /// Takes a turn of [ending](crate::tcp::ending); returns whether nothing is left to do for any
    /// rank.
    pub(super) fn close_all(&mut self) -> bool {
        let (me, defers, limited) = (self.me(), self.defers(), self.is_limited());
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
                Next::Connect => self.ensure_connection(rank),
                Next::SayGoodbye | Next::Wait | Next::Nothing => {}
            }
            over &= next == Next::Nothing;
        }
        over
    }
}
