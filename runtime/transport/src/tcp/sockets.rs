//! Reads and writes at the sockets that are ready.

use std::time::{Duration, Instant};

use crate::fabric::carrier::{Arrivals, Carrier};
use crate::fabric::core::Core;
use crate::tcp::connection::Connection;
use crate::tcp::opening::Dial;
use crate::tcp::readiness::{Interest, Readiness, Source};
use crate::tcp::{Settings, Tcp};

/// The largest number of connections that a process registers only before a thread waits.
const FEW: usize = 4;

impl Carrier for Tcp {
    type Connection = Connection;
    type Opening = Dial;
    type Arrivals = Readiness;

    fn serve_ready(core: &mut Core<Self>) {
        let mut i = 0;
        while let Some(&rank) = core.carrier.few.get(i) {
            i += 1;
            let rank = rank as usize;
            if core.peers[rank].link.as_ref().is_some_and(|link| !link.watched) {
                core.serve_peer(rank);
            }
        }
        let mut ready = std::mem::take(&mut core.ready);
        core.carrier.readiness.wait(Duration::ZERO, &mut ready);
        Self::serve(core, &ready);
        core.ready = ready;
        core.send_pending_releases();
    }

    fn serve(core: &mut Core<Self>, ready: &Vec<Source>) {
        for source in ready {
            match *source {
                Source::Listener => core.accept(),
                Source::Peer(rank) => core.serve_peer(rank),
                Source::Attempt(rank) => core.drive_attempt(rank),
                Source::Incoming(descriptor) => core.drive_incoming_of(descriptor),
                Source::Waker => {}
            }
        }
        core.flush_dirty();
        core.make_room();
    }

    fn watch(core: &mut Core<Self>) {
        let mut i = 0;
        while let Some(&rank) = core.carrier.few.get(i) {
            i += 1;
            let rank = rank as usize;
            let Some(link) = core.peers[rank].link.as_mut().filter(|link| !link.watched) else { continue };
            let interest = if link.awaits_room { Interest::Both } else { Interest::Bytes };
            match core.carrier.readiness.add(&link.stream, Source::Peer(rank), interest) {
                Ok(()) => link.watched = true,
                Err(error) => {
                    core.connection_ended(rank, format!("its connection cannot be watched: {error}"));
                }
            }
        }
    }

    fn unwatch(core: &mut Core<Self>) {
        for &rank in &core.carrier.few {
            if let Some(link) = core.peers[rank as usize].link.as_mut().filter(|link| link.watched) {
                link.watched = core.carrier.readiness.remove(&link.stream).is_err();
            }
        }
    }

    fn connect(core: &mut Core<Self>, to: usize) {
        core.ensure_connection(to);
    }

    fn disconnect(core: &mut Core<Self>, rank: usize) {
        core.unregister(rank);
    }

    fn send(core: &mut Core<Self>, to: usize) {
        if let Some(link) = &mut core.peers[to].link {
            core.carrier.note_use(link);
        }
        Self::send_beat(core, to);
    }

    fn send_beat(core: &mut Core<Self>, to: usize) {
        let peer = &mut core.peers[to];
        if peer.heard_rest && !peer.is_resting() {
            core.begin_rest(to);
        }
        if let Err(error) = core.peers[to].flush(&mut core.carrier).and_then(|()| core.watch_for_room(to)) {
            core.write_failed(to, &error.to_string());
        } else if core.peers[to].has_rested() {
            core.rested(to);
        }
    }

    fn note_use(&mut self, connection: &mut Connection) {
        self.uses += 1;
        connection.used = self.uses;
    }

    fn has_ended_by_agreement(core: &mut Core<Self>, from: usize) -> bool {
        let agreed = core.peers[from].has_rested();
        if agreed {
            core.rested(from);
        }
        agreed
    }

    fn is_limited(core: &Core<Self>) -> bool {
        core.is_limited()
    }

    fn run_timers(core: &mut Core<Self>, now: Instant, stopped: Option<Duration>, patience: u32) {
        let Settings { handshake, .. } = core.carrier.settings;
        if let Some(step) = stopped {
            let begun = |since: &mut Instant| *since = (*since + step).min(now);
            core.carrier.incoming.iter_mut().for_each(|incoming| begun(&mut incoming.since));
            let attempts = core.peers.iter_mut().filter_map(|peer| peer.opening.attempt.as_mut());
            attempts.for_each(|attempt| begun(&mut attempt.since));
        }
        for i in (0..core.carrier.incoming.len()).rev() {
            if now - core.carrier.incoming[i].since > handshake * patience {
                core.drop_incoming(i);
            }
        }
        core.drop_slow(handshake * patience, now);
        for rank in 0..core.peers.len() {
            let peer = &mut core.peers[rank];
            let Dial { address, attempt, retry, .. } = &mut peer.opening;
            if attempt.as_ref().is_some_and(|attempt| now - attempt.since > handshake * patience) {
                let what = format!("no answer at {address} within {:?}", handshake * patience);
                core.mark_failed(rank, what);
            } else if retry.take_if(|retry| now > *retry).is_some() && (peer.unsent() || peer.awaited_by_us) {
                core.ensure_connection(rank);
            }
        }
        core.close_idle(now);
        core.make_room();
    }
}

impl Core<Tcp> {
    fn serve_peer(&mut self, rank: usize) {
        self.read_from(rank);
        let room = self.peers[rank].link.as_ref().is_some_and(|link| link.awaits_room);
        if room || self.peers[rank].unsent() {
            self.send(rank);
        }
    }

    /// Registers the connection to `rank`, which was just opened.
    pub(super) fn opened(&mut self, rank: usize) {
        let links = self.peers.iter().filter(|peer| peer.link.is_some()).count();
        if links > FEW {
            Tcp::watch(self);
            self.carrier.few.clear();
        } else {
            self.carrier.few.retain(|&few| few as usize != rank && self.peers[few as usize].link.is_some());
            self.carrier.few.push(rank as u32);
        }
    }

    /// Watches for room at the socket of `to` if and only if bytes to `to` are unsent.
    fn watch_for_room(&mut self, to: usize) -> std::io::Result<()> {
        let unsent = self.peers[to].unsent();
        let Some(link) = self.peers[to].link.as_mut().filter(|link| link.awaits_room != unsent) else {
            return Ok(());
        };
        link.awaits_room = unsent;
        if unsent {
            self.wake_server(); // the server sends the rest, in case the rank computes
        }
        let Some(link) = self.peers[to].link.as_ref().filter(|link| link.watched) else { return Ok(()) };
        let interest = if unsent { Interest::Both } else { Interest::Bytes };
        self.carrier.readiness.modify(&link.stream, Source::Peer(to), interest)
    }
}
