//! Room for connections: a rank closes unused connections, and does not exceed the allowed number.
//!
//! An unused connection is closed by agreement. Each side announces that it sends nothing more on
//! it ([`Item::Rest`]). A side closes the connection when it has sent its announcement, has
//! received the announcement of the other side, and has passed everything written before its own
//! announcement to the socket. Bytes that are written after the announcement wait for the next
//! connection. So nothing is lost. If a connection ends without this agreement, the other rank has
//! died. A rank that has closed the connection may connect again at once, although the other rank
//! may not have read everything on the old connection. In that case the other rank first reads the
//! rest of the old connection, and then gives its verdict on the new connection.
//!
//! In a job of many ranks, a rank may have something for every other rank, so some connections are
//! opened as others are closed. This rank opens up to half of the allowed connections, and further
//! ones wait in a queue. Other ranks open up to the other half, and further ones wait at the
//! listener. The least recently used connection is closed first. Two ranks never wait for each
//! other's room: a receiver always reads the data for which a connection was opened, so every
//! accepted connection can be closed.
//!
//! [`Item::Rest`]: crate::stream::Item::Rest

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use crate::fabric::core::Core;
use crate::fabric::peer::Peer;
use crate::tcp::Tcp;
use crate::tcp::opening::Incoming;
use crate::tcp::readiness::{Interest, Source};

impl Core<Tcp> {
    /// Returns whether the number of connections is limited, because the job has many ranks.
    pub(super) fn is_limited(&self) -> bool {
        self.peers.len() > 2 * self.carrier.settings.connections
    }

    fn half(&self) -> usize {
        (self.carrier.settings.connections / 2).max(1)
    }

    /// Returns how many connections this rank has opened or is opening, and how many connections
    /// other ranks have opened or are opening to this rank.
    fn occupied(&self) -> [usize; 2] {
        let mut occupied = [0, self.carrier.incoming.len()];
        for peer in &self.peers {
            match &peer.link {
                Some(link) => occupied[usize::from(!link.ours)] += 1,
                None => occupied[0] += usize::from(peer.opening.attempt.is_some()),
            }
        }
        occupied
    }

    /// Returns whether this rank may open a connection.
    pub(super) fn has_room(&self) -> bool {
        !self.is_limited() || self.carrier.wanted.is_empty() && self.occupied()[0] < self.half()
    }

    /// Returns whether this rank may accept a waiting connection. If not, stops watching the
    /// listener until there is room.
    pub(super) fn may_accept(&mut self) -> bool {
        if self.is_limited() && self.occupied()[1] >= self.half() {
            self.carrier.accepts = self
                .carrier
                .readiness
                .modify(&self.carrier.listener, Source::Listener, Interest::Nothing)
                .is_err();
            return false;
        }
        true
    }

    /// Opens connections that wait, as far as there is room. Begins to close other connections to
    /// make room for those that still wait.
    pub(super) fn make_room(&mut self) {
        self.decide_proven();
        if self.carrier.wanted.is_empty() && self.carrier.accepts {
            return;
        }
        let half = self.half();
        let [mut ours, theirs] = self.occupied();
        while ours < half
            && let Some(to) = self.carrier.wanted.pop_front()
        {
            let to = to as usize;
            let waits = self.is_awaiting(to);
            let queued = std::mem::take(&mut self.peers[to].opening.queued);
            if queued && (waits || self.peers[to].wants_connection()) && self.lacks_connection(to) {
                self.connect(to);
                ours += 1;
            }
        }
        if !self.carrier.accepts && theirs < half {
            self.carrier.accepts = self
                .carrier
                .readiness
                .modify(&self.carrier.listener, Source::Listener, Interest::Bytes)
                .is_ok();
        }
        self.rest_oldest(true, self.carrier.wanted.len().min(half));
        self.rest_oldest(false, if self.carrier.accepts { 0 } else { half.div_ceil(4) });
    }

    /// Begins to close the least recently used connections, until `count` connections are being
    /// closed. If `ours`, these are connections that this rank has opened, and otherwise
    /// connections that other ranks have opened.
    fn rest_oldest(&mut self, ours: bool, count: usize) {
        if count == 0 {
            return;
        }
        let of_kind = |peer: &Peer<Tcp>| peer.link.as_ref().is_some_and(|link| link.ours == ours);
        let resting = self.peers.iter().filter(|peer| of_kind(peer) && peer.is_resting()).count();
        let mut quiet: Vec<(u64, usize)> = (0..self.peers.len())
            .filter(|&rank| of_kind(&self.peers[rank]) && self.may_rest(rank))
            .map(|rank| (self.peers[rank].link.as_ref().map_or(0, |link| link.used), rank))
            .collect();
        quiet.sort_unstable();
        for &(_, rank) in quiet.iter().take(count.saturating_sub(resting)) {
            self.begin_rest(rank);
            self.send(rank);
        }
    }

    /// Returns whether this rank may close its connection to `rank`.
    fn may_rest(&self, rank: usize) -> bool {
        let peer = &self.peers[rank];
        let awaited = self.is_awaiting(rank);
        let parts = peer.said_goodbye || peer.heard_goodbye;
        peer.link.is_some() && !peer.is_resting() && !peer.unsent() && !peer.dirty && !awaited && !parts
    }

    /// Closes connections that have not been used for long, if more than a third of the allowed
    /// number are open.
    pub(super) fn close_idle(&mut self, now: Instant) {
        let open = self.peers.iter().filter(|peer| peer.link.is_some() && !peer.is_resting()).count();
        let mut beyond = open.saturating_sub(self.carrier.settings.connections / 3);
        for rank in 0..self.peers.len() {
            let Some(link) = &mut self.peers[rank].link else { continue };
            if link.used_before.0 != link.used {
                link.used_before = (link.used, now);
            } else if now - link.used_before.1 > self.carrier.settings.idle
                && beyond > 0
                && self.may_rest(rank)
            {
                beyond -= 1;
                self.begin_rest(rank);
                self.send(rank);
            }
        }
    }

    /// Announces that this rank sends nothing on its connection to `rank` after the bytes that are
    /// written so far.
    pub(super) fn begin_rest(&mut self, rank: usize) {
        let Peer { link, out, .. } = &mut self.peers[rank];
        if let Some(link) = link {
            link.begin_rest(out);
        }
    }

    /// Closes the connection to `rank`, after both sides have announced that they send nothing
    /// more.
    pub(super) fn rested(&mut self, rank: usize) {
        self.unregister(rank);
        let peer = &mut self.peers[rank];
        if let Some(link) = peer.link.take() {
            link.rest(&mut peer.out);
            peer.heard_rest = false;
        }
        if peer.wants_connection() {
            self.ensure_connection(rank);
        }
    }

    /// Removes the registration of the connection to `rank`.
    pub(super) fn unregister(&mut self, rank: usize) {
        if let Some(link) = self.peers[rank].link.as_ref().filter(|link| link.watched) {
            // If this fails, the socket is removed when it is closed.
            let _: std::io::Result<()> = self.carrier.readiness.remove(&link.stream);
        }
    }

    /// If other connections wait for room, drops incoming connections that have not proven to come
    /// from a rank within an eighth of `handshake`.
    pub(super) fn drop_slow(&mut self, handshake: Duration, now: Instant) {
        for i in (0..self.carrier.incoming.len()).rev() {
            let half = &self.carrier.incoming[i];
            if !self.carrier.accepts && half.is_unknown() && now - half.since > handshake / 8 {
                self.drop_incoming(i);
            }
        }
    }

    /// Gives the verdict on new connections of ranks, if this rank has closed their old connections
    /// by now.
    fn decide_proven(&mut self) {
        if self.carrier.incoming.iter().all(|half| half.proven.is_none()) {
            return;
        }
        let ready = |half: &&Incoming| half.proven.is_some_and(|from| !self.peers[from].is_resting());
        let ready: Vec<_> =
            self.carrier.incoming.iter().filter(ready).map(|half| half.stream.as_raw_fd()).collect();
        ready.into_iter().for_each(|descriptor| self.drive_incoming_of(descriptor));
    }
}
