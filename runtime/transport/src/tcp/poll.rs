//! What each turn polls: sockets that are ready, and what is due by time.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::tcp::Settings;
use crate::tcp::core::Core;

/// A source of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    Listener,
    Peer(usize),
    /// A handshake.
    Other,
}

/// A socket, kept open while a thread waits for it.
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

impl Core {
    /// Returns the sources to wait for.
    pub(super) fn sources(&self) -> Vec<(Source, Stream, PollFlags)> {
        let mut all = vec![(Source::Listener, Stream::Listener(self.listener.clone()), PollFlags::IN)];
        for half in &self.incoming {
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

    /// Serves the sources that are ready.
    pub(super) fn serve(&mut self, ready: &[Source]) {
        for source in ready {
            match *source {
                Source::Listener => self.accept(),
                Source::Peer(rank) => {
                    self.read_from(rank);
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
        self.flush_dirty();
    }

    /// Polls everything.
    pub(super) fn serve_all(&mut self) {
        self.accept();
        self.handshakes();
        for rank in 0..self.peers.len() {
            self.read_from(rank);
            if self.peers[rank].unsent() {
                self.send(rank);
            }
        }
        self.flush_dirty();
        self.send_pending_releases();
    }

    /// Called before sleeping: ranks from which this rank awaits something must be connected, and may themselves wait
    /// for credit.
    pub(super) fn serve_awaited(&mut self) {
        for rank in 0..self.peers.len() {
            if std::mem::take(&mut self.peers[rank].awaited_by_us) {
                self.ensure_connection(rank);
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
        let Settings { beat, limit, handshake, .. } = self.settings;
        for i in (0..self.incoming.len()).rev() {
            if now - self.incoming[i].since > handshake {
                self.drop_incoming(i);
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
            }
            if peer.attempt.as_ref().is_some_and(|attempt| now - attempt.since > handshake) {
                let address = peer.address;
                self.mark_failed(rank, format!("no answer at {address} within {handshake:?}"));
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
            if step > (limit / 2).max(Duration::from_secs(1)) {
                // This process itself was not running, and cannot tell which ranks were silent meanwhile.
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
                peer.write_item(|writer| writer.beat());
                self.send(rank);
            }
        }
    }

    /// Sends a goodbye where everything is sent; returns whether all connections are closed.
    pub(super) fn close_all(&mut self) -> bool {
        let me = self.me();
        let mut over = true;
        for rank in (0..self.peers.len()).filter(|&rank| rank != me) {
            let peer = &mut self.peers[rank];
            if peer.link.is_some() && !peer.said_goodbye {
                peer.said_goodbye = true;
                peer.write_item(|writer| writer.goodbye());
                self.send(rank);
            }
            let peer = &mut self.peers[rank];
            if peer.link.is_none() && peer.unsent() && peer.died.is_none() && !peer.heard_goodbye {
                over = false;
                self.ensure_connection(rank);
                continue;
            }
            over &= match &peer.link {
                None => peer.attempt.is_none() && !peer.welcomed,
                Some(_) => peer.heard_farewell && !peer.unsent(),
            };
        }
        over
    }
}
