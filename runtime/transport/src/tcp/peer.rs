//! [`Peer`]: one other rank of the job, and the connection to it, if there is one yet.

use std::io::{self, ErrorKind, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use crate::Header;
use crate::auth::{Opener, Seal, Session};
use crate::stream::{Body, Decoder, Intake, Pen, Place};

/// Bytes at most of one record that carries a tag.
const RECORD: usize = 16 << 10;

/// Bytes of its length: the length, and its complement. The tag comes last, and who believed a length that was spoilt on
/// the way would wait for it until beats have filled the record.
const LENGTH: usize = 8;

/// Bytes of items that wait for the next write, at most; beyond, what is posted is written at once.
pub(super) const PACKED: usize = 32 << 10;

/// Bytes that are read beside a big payload, and how big it is.
const BESIDE: usize = 512;
const BIG: usize = 16 << 10;

/// Bytes that one look reads at most, so that nobody is looked at for ever.
const LOOK: usize = 16 << 20;

/// One other rank of the job.
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) link: Option<Box<Link>>,
    pub(super) attempt: Option<Attempt>,
    /// A connection that it opened was welcomed, and comes as soon as it can be told so.
    pub(super) promised: bool,
    /// How often I have tried, and when I may try again.
    pub(super) tries: u32,
    pub(super) retry: Option<Instant>,
    /// What goes to it, from `sent` on.
    pub(super) out: Vec<u8>,
    pub(super) sent: usize,
    /// The error that it has left a world with, if it has left none without one since.
    pub(super) failed: Option<String>,
    /// It has died, as this says.
    pub(super) died: Option<String>,
    /// It seems to have died, as this says; should nobody know better until then, that is it.
    pub(super) doomed: Option<(Instant, String)>,
    /// It has said goodbye; should nobody say until then what became of it, it ended well.
    pub(super) parting: Option<Instant>,
    /// I look for something from it in vain.
    pub(super) missed: bool,
    pub(super) said_goodbye: bool,
    pub(super) heard_goodbye: bool,
    pub(super) heard_farewell: bool,
    /// Something was heard, or sent, since the times below.
    pub(super) heard: bool,
    pub(super) spoke: bool,
    pub(super) heard_at: Instant,
    pub(super) spoke_at: Instant,
}

/// A connection that both sides have proven.
pub(super) struct Link {
    pub(super) stream: Arc<TcpStream>,
    sealed: Option<Sealed>,
    decoder: Decoder,
    /// The last frame had a big payload.
    big: bool,
}

/// Records with tags, on their way.
struct Sealed {
    seals: [Seal; 2],
    out: Vec<u8>,
    sent: usize,
    got: Vec<u8>,
}

/// A connection that is being opened.
pub(super) struct Attempt {
    pub(super) stream: Arc<TcpStream>,
    pub(super) opener: Opener,
    /// What the handshake has still to say.
    pub(super) out: Vec<u8>,
    pub(super) since: Instant,
}

/// What a look at a connection gave.
pub(super) enum Looked {
    /// Nothing was there.
    Nothing,
    /// Something was.
    Something,
    /// The connection has ended, as this says.
    Ended(String),
    /// What came is nothing that a rank would send, as this says.
    Garbled(String),
}

impl Peer {
    pub(super) fn new(address: SocketAddr, now: Instant) -> Self {
        Self {
            address,
            link: None,
            attempt: None,
            promised: false,
            tries: 0,
            retry: None,
            out: Vec::new(),
            sent: 0,
            failed: None,
            died: None,
            doomed: None,
            parting: None,
            missed: false,
            said_goodbye: false,
            heard_goodbye: false,
            heard_farewell: false,
            heard: false,
            spoke: false,
            heard_at: now,
            spoke_at: now,
        }
    }

    /// The connection stands.
    pub(super) fn open(&mut self, stream: Arc<TcpStream>, session: &Session, sealed: bool, now: Instant) {
        let sealed =
            sealed.then(|| Sealed { seals: session.seals(), out: Vec::new(), sent: 0, got: Vec::new() });
        self.link = Some(Box::new(Link { stream, sealed, decoder: Decoder::default(), big: false }));
        (self.attempt, self.promised, self.retry, self.heard_at, self.spoke_at) =
            (None, false, None, now, now);
    }

    /// The connection is of no use any more.
    pub(super) fn close(&mut self) {
        if let Some(link) = self.link.take() {
            let _ = link.stream.shutdown(Shutdown::Both);
        }
        self.attempt = None;
        (self.out, self.sent) = (Vec::new(), 0);
    }

    /// What it failed of before it ended by itself, in no world.
    pub(super) fn regret(&self) -> Option<&str> {
        self.failed.as_deref().filter(|_| self.heard_goodbye)
    }

    /// Whether anything is still to be written.
    pub(super) fn unsent(&self) -> bool {
        let sealed = self.link.as_ref().and_then(|link| link.sealed.as_ref());
        self.sent < self.out.len() || sealed.is_some_and(|sealed| sealed.sent < sealed.out.len())
    }

    /// Write as much as can be written now.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Some(link) = &mut self.link else { return Ok(()) };
        let (out, sent) = match &mut link.sealed {
            None => (&mut self.out, &mut self.sent),
            Some(sealed) => {
                for record in self.out[self.sent..].chunks(RECORD) {
                    let len = record.len() as u32;
                    sealed.out.extend_from_slice(&len.to_le_bytes());
                    sealed.out.extend_from_slice(&(!len).to_le_bytes());
                    sealed.out.extend_from_slice(record);
                    sealed.out.extend_from_slice(&sealed.seals[0].tag(record));
                }
                self.out.clear();
                self.sent = 0;
                (&mut sealed.out, &mut sealed.sent)
            }
        };
        while *sent < out.len() {
            match (&*link.stream).write(&out[*sent..]) {
                Ok(n) => {
                    *sent += n;
                    self.spoke = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if *sent == out.len() {
            out.clear();
            *sent = 0;
            out.shrink_to(1 << 20);
        } else if *sent > 1 << 20 && *sent > out.len() / 2 {
            out.drain(..*sent);
            *sent = 0;
        }
        Ok(())
    }

    /// Whether a payload of so many bytes is better written from where it lies than packed first.
    pub(super) fn writes_in_place(&self, bytes: usize) -> bool {
        bytes > PACKED / 4 && self.link.as_ref().is_some_and(|link| link.sealed.is_none())
    }

    /// Pack a payload, and write what waits if it is enough.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn pack(&mut self, payload: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(payload);
        if self.out.len() - self.sent > PACKED { self.flush() } else { Ok(()) }
    }

    /// Write what waits and then of this payload what goes; gives how many of its bytes.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn write_in_place(&mut self, payload: &[u8]) -> io::Result<usize> {
        let Some(link) = &self.link else { return Ok(0) };
        let head = &self.out[self.sent..];
        let pieces = [io::IoSlice::new(head), io::IoSlice::new(payload)];
        let mut nothing = rustix::net::SendAncillaryBuffer::default();
        let wrote = rustix::io::retry_on_intr(|| {
            rustix::net::sendmsg(&*link.stream, &pieces, &mut nothing, SendFlags::NOSIGNAL)
        });
        let wrote = match wrote {
            Ok(n) => n,
            Err(rustix::io::Errno::AGAIN) => 0,
            Err(error) => return Err(error.into()),
        };
        self.spoke |= wrote > 0;
        if wrote < head.len() {
            self.sent += wrote;
            return Ok(0);
        }
        let of_payload = wrote - head.len();
        self.out.clear();
        self.sent = 0;
        Ok(of_payload)
    }

    /// Say a thing that belongs to no world.
    pub(super) fn say(&mut self, what: impl FnOnce(&mut Pen<'_, Vec<u8>>)) {
        what(&mut Pen(&mut self.out, 0));
    }
}

impl Link {
    /// Read what has come; but where a long payload begins for which there is no place yet, the next look goes on.
    pub(super) fn look(&mut self, scratch: &mut [u8], intake: &mut impl Intake) -> Looked {
        let mut looked = 0;
        let half_here = self.decoder.unplaced(0);
        loop {
            // Where big payloads come, little is read beside them, so that they are read to where they stay.
            let scratch = if self.big { &mut scratch[..BESIDE] } else { &mut *scratch };
            let room = if self.sealed.is_none() { self.decoder.room() } else { &mut [] };
            let (in_place, offered) = (room.len(), room.len() + scratch.len());
            let read = if in_place == 0 {
                (&*self.stream).read(scratch)
            } else {
                let mut pieces = [IoSliceMut::new(room), IoSliceMut::new(scratch)];
                (&*self.stream).read_vectored(&mut pieces)
            };
            let n = match read {
                Ok(0) => return Looked::Ended("its connection was closed without a goodbye".into()),
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Looked::Ended(format!("its connection broke: {error}")),
            };
            looked += n;
            let fed = match &mut self.sealed {
                Some(sealed) => sealed.open(&scratch[..n], &mut self.decoder, intake),
                None => {
                    self.decoder.filled(n.min(in_place));
                    let rest = &scratch[..n.saturating_sub(in_place)];
                    self.decoder.feed_to(rest, intake).map_err(|garbled| garbled.to_string())
                }
            };
            if let Err(what) = fed {
                return Looked::Garbled(what);
            }
            if self.sealed.is_none() {
                let big = self.decoder.room().len() >= BIG;
                self.big = big || self.big && (in_place > 0 || n < offered);
            }
            let unplaced = self.decoder.unplaced(BIG);
            if n < offered || looked > LOOK || unplaced.is_some() && unplaced != half_here {
                break;
            }
        }
        if looked > 0 { Looked::Something } else { Looked::Nothing }
    }

    /// A place for a payload of this channel, which may be half here; gives it back if it is not.
    pub(super) fn adopt(&mut self, channel: u64, header: Header, place: Place) -> Option<Place> {
        self.decoder.adopt(channel, header, place)
    }

    /// Places that were offered in this channel are not touched any more.
    pub(super) fn move_out(&mut self, channel: u64) {
        self.decoder.move_out(channel);
    }

    /// Give back the body of a frame.
    pub(super) fn recycle(&mut self, body: Body) {
        self.decoder.recycle(body);
    }
}

impl Sealed {
    fn open(&mut self, bytes: &[u8], decoder: &mut Decoder, intake: &mut impl Intake) -> Result<(), String> {
        self.got.extend_from_slice(bytes);
        let mut at = 0;
        while let Some((head, rest)) = self.got[at..].split_first_chunk::<LENGTH>() {
            let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
            let len = half(0) as usize;
            if len == 0 || len > RECORD || half(0) != !half(4) {
                return Err(format!("it sent a record whose length can't be {len} bytes"));
            }
            let Some((record, rest)) = rest.split_at_checked(len) else { break };
            let Some((tag, _)) = rest.split_first_chunk::<{ Seal::TAG }>() else { break };
            if !self.seals[1].is(record, *tag) {
                return Err("it sent a record with a wrong tag".into());
            }
            decoder.feed_to(record, intake).map_err(|garbled| garbled.to_string())?;
            at += LENGTH + len + Seal::TAG;
        }
        self.got.drain(..at);
        Ok(())
    }
}

impl Attempt {
    /// Begin to open a connection.
    ///
    /// # Errors
    /// There is no socket, or nobody listens.
    pub(super) fn new(address: SocketAddr, opener: Opener, hello: Vec<u8>, now: Instant) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(Self { stream: Arc::new(stream), opener, out: hello, since: now })
    }
}

/// Write of `out` what can be written now.
///
/// # Errors
/// The connection has ended.
pub(super) fn write_some(stream: &TcpStream, out: &mut Vec<u8>) -> io::Result<()> {
    while !out.is_empty() {
        match (&*stream).write(out) {
            Ok(n) => drop(out.drain(..n)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Read at most `wants` bytes, no more than 128: none, if none are there.
///
/// # Errors
/// The connection has ended.
pub(super) fn read_some<'b>(
    stream: &TcpStream,
    buffer: &'b mut [u8; 128],
    wants: usize,
) -> io::Result<&'b [u8]> {
    let wants = wants.min(buffer.len());
    match (&*stream).read(&mut buffer[..wants]) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(n) => Ok(&buffer[..n]),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected
            ) =>
        {
            Ok(&[])
        }
        Err(error) => Err(error),
    }
}
