//! How connections are established. Two ranks have at most one connection. The first of the two
//! that needs the connection opens it. [`room`](crate::tcp::room) limits the number of connections
//! and closes unused ones.
//!
//! If two ranks connect to each other at once, the connection of the lower rank is used. The higher
//! rank is notified, and waits for this connection.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::auth::{HandshakeError, Opener, Opening, Session, Taker, Taking, Verdict, random_bytes};
use crate::fabric::core::Core;
use crate::tcp::Tcp;
use crate::tcp::connection::Connection;
use crate::tcp::opening::{Attempt, Dial, Incoming, read_some, write_some};
use crate::tcp::readiness::{Interest, Source};

/// How often this rank retries a connection that broke in its handshake.
const TRIES: u32 = 3;

impl Core<Tcp> {
    /// Ensures a connection to `to`: opens one, unless one exists or is being established.
    pub(super) fn ensure_connection(&mut self, to: usize) {
        if !self.lacks_connection(to) || self.peers[to].opening.queued {
            return;
        }
        if self.has_room() {
            self.connect(to);
        } else {
            self.peers[to].opening.queued = true;
            self.carrier.wanted.push_back(to as u32);
        }
    }

    /// Returns whether there is no connection to `to`, and none is being established, although one
    /// could be.
    pub(super) fn lacks_connection(&self, to: usize) -> bool {
        let peer = &self.peers[to];
        to != self.me() && peer.is_apart() && !peer.is_gone()
    }

    /// Begins to open a connection to `to`.
    pub(super) fn connect(&mut self, to: usize) {
        let peer = &mut self.peers[to];
        let opened = random_bytes().and_then(|nonce| {
            let (opener, hello) = Opener::new(self.carrier.identity.clone(), to as u32, nonce);
            let attempt = Attempt::new(peer.opening.address, opener, hello, Instant::now())?;
            self.carrier.readiness.add(&attempt.stream, Source::Attempt(to), Interest::Room)?;
            Ok(attempt)
        });
        match opened {
            Ok(attempt) => {
                peer.opening.attempt = Some(attempt);
                self.drive_attempt(to);
            }
            Err(error) => {
                let address = peer.opening.address;
                self.mark_failed(to, format!("cannot connect to it at {address}: {error}"));
            }
        }
    }

    /// Continues to open a connection to `to`.
    pub(super) fn drive_attempt(&mut self, to: usize) {
        self.drive_attempt_on(to);
        let Some(attempt) = &mut self.peers[to].opening.attempt else { return };
        let awaits_room = !attempt.out.is_empty();
        if attempt.awaits_room == awaits_room {
            return;
        }
        attempt.awaits_room = awaits_room;
        let interest = if awaits_room { Interest::Room } else { Interest::Bytes };
        if let Err(error) = self.carrier.readiness.modify(&attempt.stream, Source::Attempt(to), interest) {
            self.failed(to, &error);
        }
    }

    fn drive_attempt_on(&mut self, to: usize) {
        loop {
            let peer = &mut self.peers[to];
            let Some(attempt) = &mut peer.opening.attempt else { return };
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
                Ok(Opening::Done(session)) => return self.open(to, stream, &session, true),
                Err(HandshakeError::Crossed) => {
                    // This rank uses the connection that the peer opens to it. If that connection
                    // does not arrive, this rank retries.
                    peer.opening.attempt = None;
                    peer.opening.retry = Some(Instant::now() + self.carrier.settings.handshake);
                    return;
                }
                Err(error) => {
                    let address = peer.opening.address;
                    return self.mark_failed(to, format!("at {address}, {error}"));
                }
            }
        }
    }

    /// Handles an attempt that failed.
    fn failed(&mut self, to: usize, error: &std::io::Error) {
        let limited = self.is_limited(); // then the other rank may have had no room
        let peer = &mut self.peers[to];
        peer.opening.attempt = None;
        peer.opening.tries += 1;
        let tries = if limited { 10 * TRIES } else { TRIES };
        if error.kind() == ErrorKind::ConnectionRefused || peer.opening.tries > tries {
            let address = peer.opening.address;
            self.suspect(to, format!("cannot connect to it at {address}: {error}"));
        } else {
            peer.opening.retry =
                Some(Instant::now() + Duration::from_millis(10 << (2 * peer.opening.tries.min(TRIES))));
        }
    }

    /// Uses this connection from now on. `ours` is set if this rank has opened the connection.
    fn open(&mut self, to: usize, stream: Arc<TcpStream>, session: &Session, ours: bool) {
        self.peers[to].opening.welcomed = false;
        if self.peers[to].died.is_some() {
            return; // the rank died meanwhile
        }
        if let Err(error) = self.carrier.readiness.modify(&stream, Source::Peer(to), Interest::Bytes) {
            return self.connection_ended(to, format!("its connection cannot be watched: {error}"));
        }
        let (sealed, now) = (self.carrier.identity.sealed, Instant::now());
        let peer = &mut self.peers[to];
        peer.open(Connection::new(stream, session, sealed, ours, now), now);
        peer.opening = Dial::new(peer.opening.address);
        self.opened(to);
        self.events += 1;
        self.send(to);
    }

    /// Accepts incoming connections, up to a limit in one call.
    pub(super) fn accept(&mut self) {
        let limit = self.carrier.settings.half_open.max(1);
        for _ in 0..limit {
            if !self.may_accept() {
                return;
            }
            let stream = match self.carrier.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return, // none waits, or no descriptor is left: the peer keeps trying
            };
            let ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            let (Ok(()), Ok(nonce)) = (ready, random_bytes()) else { continue };
            if self.carrier.incoming.len() >= limit {
                // Drop the oldest connection. That connection is probably not from a rank of the
                // job, because a rank's handshake takes little time. If it is from a rank, that
                // rank reconnects at once.
                self.drop_incoming(0);
            }
            let source = Source::Incoming(stream.as_raw_fd());
            if self.carrier.readiness.add(&stream, source, Interest::Bytes).is_err() {
                continue;
            }
            self.carrier.incoming.push(Incoming {
                stream: Arc::new(stream),
                taker: Taker::new(self.carrier.identity.clone(), nonce),
                out: Vec::new(),
                awaits_room: false,
                since: Instant::now(),
                proven: None,
                decided: None,
            });
        }
    }

    /// Drops an incoming connection.
    pub(super) fn drop_incoming(&mut self, i: usize) {
        if let Some(Some(session)) = self.carrier.incoming.remove(i).decided {
            self.peers[session.peer as usize].opening.welcomed = false;
        }
    }

    /// Continues the handshake of the incoming connection with this descriptor.
    pub(super) fn drive_incoming_of(&mut self, descriptor: RawFd) {
        let has = |half: &Incoming| half.stream.as_raw_fd() == descriptor;
        let Some(i) = self.carrier.incoming.iter().position(has) else { return };
        if !self.drive_incoming(i) {
            return self.drop_incoming(i);
        }
        let half = &mut self.carrier.incoming[i];
        let awaits_room = !half.out.is_empty();
        if half.awaits_room == awaits_room {
            return;
        }
        half.awaits_room = awaits_room;
        let interest = if awaits_room { Interest::Room } else { Interest::Bytes };
        if self.carrier.readiness.modify(&half.stream, Source::Incoming(descriptor), interest).is_err() {
            self.drop_incoming(i);
        }
    }

    /// Continues the handshake of an incoming connection. Returns whether the handshake is
    /// unfinished.
    fn drive_incoming(&mut self, i: usize) -> bool {
        loop {
            if let Some(from) = self.carrier.incoming[i].proven {
                if self.peers[from].is_resting() {
                    return true; // this rank must close the old connection first, as the other did
                }
                self.carrier.incoming[i].proven = None;
                self.decide(i, from);
            }
            let half = &mut self.carrier.incoming[i];
            if write_some(&half.stream, &mut half.out).is_err() {
                return false;
            }
            if let Some(decided) = &mut half.decided {
                if !half.out.is_empty() {
                    return true;
                }
                if let Some(session) = decided.take() {
                    let stream = half.stream.clone();
                    self.open(session.peer as usize, stream, &session, false);
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
                Ok(Taking::Proven(from)) => half.proven = Some(from as usize),
                Err(_) => return false,
            }
        }
    }

    /// Decides whether to use the connection of `from`, which has proven its identity.
    fn decide(&mut self, i: usize, from: usize) {
        let me = self.me();
        let half = &mut self.carrier.incoming[i];
        let peer = &mut self.peers[from];
        let mismatch = half.taker.mismatch().map(str::to_owned);
        let verdict = if mismatch.is_some() {
            Verdict::Mismatch
        } else if peer.died.is_some() {
            Verdict::GivenUp
        } else if peer.link.is_some() || peer.opening.welcomed || peer.opening.attempt.is_some() && me < from
        {
            Verdict::Crossed
        } else {
            Verdict::Welcome
        };
        let (words, session) = half.taker.decide(verdict);
        half.out.extend_from_slice(&words);
        half.decided = Some((verdict == Verdict::Welcome).then_some(session));
        if verdict == Verdict::Welcome {
            (peer.opening.attempt, peer.opening.welcomed) = (None, true);
        }
        if let Some(how) = mismatch {
            self.mark_failed(from, format!("it is incompatible with this rank: {how}"));
        }
    }
}
