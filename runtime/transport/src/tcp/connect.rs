//! How connections come to be: one for each two ranks, whichever of them needs it first.
//!
//! Where both call at once, that of the lower rank is used; the other is told so, and waits for it.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::auth::{Opener, Opening, Refusal, Session, Taker, Taking, Verdict, chance};
use crate::tcp::core::Core;
use crate::tcp::peer::{Attempt, read_some, write_some};

/// How often a connection that broke off in its handshake is tried again.
const TRIES: u32 = 3;

/// A connection that somebody opens to this rank.
pub(super) struct Half {
    pub(super) stream: Arc<TcpStream>,
    taker: Taker,
    pub(super) out: Vec<u8>,
    pub(super) since: Instant,
    /// It is over once `out` is written; and was welcomed, if there is a session.
    decided: Option<Option<Session>>,
}

impl Core {
    /// A connection to `to` is needed: open one, unless one stands or comes.
    pub(super) fn need(&mut self, to: usize) {
        let me = self.me();
        let peer = &mut self.peers[to];
        let stands = peer.link.is_some() || peer.attempt.is_some() || peer.promised || peer.retry.is_some();
        let gone = peer.died.is_some() || peer.doomed.is_some() || peer.heard_goodbye;
        if to == me || stands || gone {
            return;
        }
        let opened = chance().and_then(|nonce| {
            let (opener, hello) = Opener::new(self.identity.clone(), to as u32, nonce);
            Attempt::new(peer.address, opener, hello, Instant::now())
        });
        match opened {
            Ok(attempt) => {
                peer.attempt = Some(attempt);
                self.drive_attempt(to);
            }
            Err(error) => {
                let address = peer.address;
                self.die(to, format!("there is no way to it at {address}: {error}"));
            }
        }
    }

    /// Go on with opening a connection to `to`.
    fn drive_attempt(&mut self, to: usize) {
        loop {
            let peer = &mut self.peers[to];
            let Some(attempt) = &mut peer.attempt else { return };
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
                Ok(Opening::Done(session)) => return self.open(to, stream, &session),
                Err(Refusal::Crossed) => {
                    // Its connection to me is the one that is used; should it not come, I try again.
                    peer.attempt = None;
                    peer.retry = Some(Instant::now() + self.settings.handshake);
                    return;
                }
                Err(refusal) => {
                    let address = peer.address;
                    return self.die(to, format!("at {address}, {refusal}"));
                }
            }
        }
    }

    /// An attempt came to nothing.
    fn failed(&mut self, to: usize, error: &std::io::Error) {
        let peer = &mut self.peers[to];
        peer.attempt = None;
        peer.tries += 1;
        if error.kind() == ErrorKind::ConnectionRefused || peer.tries > TRIES {
            let address = peer.address;
            self.doom(to, format!("there is no way to it at {address}: {error}"));
        } else {
            peer.retry = Some(Instant::now() + Duration::from_millis(10 << (2 * peer.tries)));
        }
    }

    pub(super) fn open(&mut self, to: usize, stream: Arc<TcpStream>, session: &Session) {
        if self.peers[to].died.is_some() {
            return; // meanwhile
        }
        let sealed = self.identity.sealed;
        self.peers[to].open(stream, session, sealed, Instant::now());
        self.news += 1;
        self.send(to);
    }

    /// Take who knocks; of a crowd so many at a time.
    pub(super) fn accept(&mut self) {
        let limit = self.settings.half_open.max(1);
        for _ in 0..limit {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return, // nobody is there, or there is no descriptor for now: whoever knocks goes on to
            };
            let ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            let (Ok(()), Ok(nonce)) = (ready, chance()) else { continue };
            if self.halves.len() >= limit {
                // The oldest goes: a rank needs no time to speak of, and is back at once.
                self.give_up_half(0);
            }
            self.halves.push(Half {
                stream: Arc::new(stream),
                taker: Taker::new(self.identity.clone(), nonce),
                out: Vec::new(),
                since: Instant::now(),
                decided: None,
            });
        }
    }

    /// A handshake that somebody has begun is given up.
    pub(super) fn give_up_half(&mut self, i: usize) {
        if let Some(Some(session)) = self.halves.remove(i).decided {
            self.peers[session.peer as usize].promised = false;
        }
    }

    /// Go on with the handshakes that others have begun.
    fn drive_halves(&mut self) {
        let mut i = 0;
        while i < self.halves.len() {
            if self.drive_half(i) { i += 1 } else { self.give_up_half(i) }
        }
    }

    /// Gives whether it is still one.
    fn drive_half(&mut self, i: usize) -> bool {
        loop {
            let half = &mut self.halves[i];
            if write_some(&half.stream, &mut half.out).is_err() {
                return false;
            }
            if let Some(decided) = &mut half.decided {
                if !half.out.is_empty() {
                    return true;
                }
                if let Some(session) = decided.take() {
                    let stream = half.stream.clone();
                    self.open(session.peer as usize, stream, &session);
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
                Ok(Taking::Proven(from)) => self.decide(i, from as usize),
                Err(_) => return false,
            }
        }
    }

    /// `from` is proven: whether its connection is the one that is used.
    pub(super) fn decide(&mut self, i: usize, from: usize) {
        let me = self.me();
        let half = &mut self.halves[i];
        let peer = &mut self.peers[from];
        let unlike = half.taker.unlike().map(str::to_owned);
        let verdict = if unlike.is_some() {
            Verdict::Unlike
        } else if peer.died.is_some() {
            Verdict::GivenUp
        } else if peer.link.is_some() || peer.promised || peer.attempt.is_some() && me < from {
            Verdict::Crossed
        } else {
            Verdict::Welcome
        };
        let (words, session) = half.taker.decide(verdict);
        half.out.extend_from_slice(&words);
        half.decided = Some((verdict == Verdict::Welcome).then_some(session));
        if verdict == Verdict::Welcome {
            (peer.attempt, peer.promised) = (None, true);
        }
        if let Some(how) = unlike {
            self.die(from, format!("it can't work with this rank: {how}"));
        }
    }

    /// Go on with all handshakes.
    pub(super) fn handshakes(&mut self) {
        self.drive_halves();
        for to in 0..self.peers.len() {
            if self.peers[to].attempt.is_some() {
                self.drive_attempt(to);
            }
        }
    }
}
