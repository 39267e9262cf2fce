//! [`Peer`]: one other rank of the job, and the connection to it, if it exists.

use std::io::{self, ErrorKind, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use crate::auth::{Opener, Seal, Session};
use crate::stream::{Body, Decoder, Intake, ItemWriter, KEPT, ReceiveBuffer};
use crate::tcp::pace_nothing_within_machine;
use crate::{Header, Port, watch};

/// The longest record that carries a tag, in bytes.
const RECORD: usize = 16 << 10;

/// Bytes of its length field: the length, and its complement. The tag comes last, and a receiver that believed a
/// corrupted length would wait for the tag until heartbeats have filled the record.
const LENGTH: usize = 8;

/// The most bytes of items that wait for the next write; beyond, what is posted is written at once.
pub(super) const PACKED: usize = 32 << 10;

/// Bytes that are read in addition to a large payload, and the least that is missing of one.
const EXTRA: usize = 512;
const BIG: usize = 16 << 10;

/// The size of a payload that is better read where it belongs, by a read more, than with its head and copied.
const IN_PLACE: usize = 32 << 10;

/// The most bytes that one poll reads, so that no peer is read forever.
const MAX_READ: usize = 16 << 20;

/// One other rank of the job.
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) link: Option<Box<Connection>>,
    pub(super) attempt: Option<Attempt>,
    /// A connection to it is wanted as soon as there is room for one.
    pub(super) queued: bool,
    /// It sends nothing more on this connection.
    pub(super) heard_rest: bool,
    /// This rank has welcomed a connection that the peer opened, and uses it as soon as the verdict is written.
    pub(super) welcomed: bool,
    /// How often this rank has tried to connect, and when it may retry.
    pub(super) tries: u32,
    pub(super) retry: Option<Instant>,
    /// Bytes for that rank; those before `sent` are with the socket.
    pub(super) out: Vec<u8>,
    pub(super) sent: usize,
    /// Memory for a frame that has to wait.
    pub(super) spare: Vec<u8>,
    /// How many bytes of `out` need no connection of their own: they say that this rank has left worlds as finished, or which
    /// had ended, or that a world has ended because of a death that the launcher reports to all.
    pub(super) deferred: usize,
    /// The error with which it left a world, if it left none without an error since.
    pub(super) failed: Option<String>,
    /// It has died, for this reason.
    pub(super) died: Option<String>,
    /// Its launcher has reported that to all ranks.
    pub(super) reported: bool,
    /// It is suspected to have died, for this reason; it is marked failed at this time, unless its launcher reports
    /// another.
    pub(super) suspected: Option<(Instant, String)>,
    /// Its launcher has reported that it left all its worlds as finished, and ended.
    pub(super) finished: bool,
    /// This rank knows that from the launcher only.
    pub(super) untold: bool,
    /// It has sent a goodbye; it has succeeded, unless its launcher reports otherwise before this time.
    pub(super) closing: Option<Instant>,
    /// A poll of this rank found nothing from it.
    pub(super) awaited_by_us: bool,
    /// Something was written that is to be flushed.
    pub(super) dirty: bool,
    pub(super) said_goodbye: bool,
    pub(super) heard_goodbye: bool,
    pub(super) heard_farewell: bool,
    /// Something was received, or sent, since the times below.
    pub(super) heard: bool,
    pub(super) spoke: bool,
    pub(super) heard_at: Instant,
    pub(super) spoke_at: Instant,
}

/// A connection whose two sides are authenticated.
pub(super) struct Connection {
    pub(super) stream: Arc<TcpStream>,
    /// Whether room at the socket is waited for.
    pub(super) awaits_room: bool,
    /// Whether the socket is registered.
    pub(super) watched: bool,
    /// Whether this rank has opened it.
    pub(super) ours: bool,
    /// Orders the connections by their last use.
    pub(super) used: u64,
    /// The last use that the timers saw, and when they saw it first.
    pub(super) used_before: (u64, Instant),
    /// How many bytes of what is written are sent on this connection, once it is to be closed. The rest waits for the next one.
    last: Option<usize>,
    sealed: Option<Sealed>,
    decoder: Decoder,
    /// Of the frames that began last one has a large payload.
    big: bool,
}

/// Records with tags, in flight.
struct Sealed {
    seals: [Seal; 2],
    out: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
}

/// A connection that is being opened.
pub(super) struct Attempt {
    pub(super) stream: Arc<TcpStream>,
    pub(super) opener: Opener,
    /// What the handshake has still to send.
    pub(super) out: Vec<u8>,
    /// Whether room at the socket is waited for, and not bytes.
    pub(super) awaits_room: bool,
    pub(super) since: Instant,
}

/// The result of a poll of a connection.
pub(super) enum ReadOutcome {
    /// Nothing was there.
    Nothing,
    /// Something was there; whether that was all, as far as this end can tell.
    Something { all: bool },
    /// The connection has ended, for this reason.
    Ended(String),
    /// No rank would send what arrived, for this reason.
    Malformed(String),
}

impl Peer {
    pub(super) fn new(address: SocketAddr, now: Instant) -> Self {
        Self {
            address,
            link: None,
            attempt: None,
            queued: false,
            heard_rest: false,
            welcomed: false,
            tries: 0,
            retry: None,
            out: Vec::new(),
            sent: 0,
            deferred: 0,
            spare: Vec::new(),
            failed: None,
            died: None,
            reported: false,
            suspected: None,
            finished: false,
            untold: false,
            closing: None,
            awaited_by_us: false,
            dirty: false,
            said_goodbye: false,
            heard_goodbye: false,
            heard_farewell: false,
            heard: false,
            spoke: false,
            heard_at: now,
            spoke_at: now,
        }
    }

    /// Uses this connection from now on.
    pub(super) fn open(
        &mut self,
        stream: Arc<TcpStream>,
        session: &Session,
        sealed: bool,
        ours: bool,
        now: Instant,
    ) {
        let sealed =
            sealed.then(|| Sealed { seals: session.seals(), out: Vec::new(), sent: 0, received: Vec::new() });
        let decoder = Decoder::default();
        self.link = Some(Box::new(Connection {
            stream,
            awaits_room: false,
            watched: true,
            ours,
            used: 0,
            used_before: (0, now),
            last: None,
            sealed,
            decoder,
            big: false,
        }));
        (self.attempt, self.welcomed, self.retry, self.heard_at, self.spoke_at) =
            (None, false, None, now, now);
        (self.deferred, self.heard_rest, self.tries) = (0, false, 0);
    }

    /// Says that this rank sends nothing more on the connection than what is written now.
    pub(super) fn begin_rest(&mut self) {
        let Some(link) = &mut self.link else { return };
        ItemWriter(&mut self.out, 0).rest();
        link.last = Some(self.out.len());
    }

    /// Returns whether this rank has said that it sends nothing more on the connection.
    pub(super) fn is_resting(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.last.is_some())
    }

    /// Returns whether both sides have said so, and nothing is to be sent any more.
    pub(super) fn has_rested(&self) -> bool {
        self.heard_rest && self.is_resting() && !self.unsent()
    }

    /// Closes the connection, of which both sides have said that they send nothing more. What was written since is kept.
    pub(super) fn rest(&mut self) {
        let Some(link) = self.link.take() else { return };
        self.out.drain(..link.last.unwrap_or(0));
        self.out.shrink_to_fit();
        (self.sent, self.heard_rest, self.spare) = (0, false, Vec::new());
    }

    /// Returns whether nothing that is written for it arrives any more: it has died, cannot be
    /// reached, or has sent a goodbye.
    pub(super) fn is_gone(&self) -> bool {
        self.died.is_some() || self.suspected.is_some() || self.heard_goodbye
    }

    /// Returns whether there is no connection to it, nor one that is being established.
    pub(super) fn is_apart(&self) -> bool {
        self.link.is_none() && self.attempt.is_none() && !self.welcomed && self.retry.is_none()
    }

    /// Returns whether it is apart, and nothing was written or waits for credit (`waiting`) that needs a connection.
    pub(super) fn needs_nothing(&self, waiting: bool) -> bool {
        self.is_apart() && !self.wants_connection() && !waiting
    }

    /// Returns whether something was written that needs a connection.
    pub(super) fn wants_connection(&self) -> bool {
        self.out.len() > self.deferred
    }

    /// Closes the connection.
    pub(super) fn close(&mut self) {
        if let Some(link) = self.link.take() {
            let _ = link.stream.shutdown(Shutdown::Both);
        }
        self.attempt = None;
        (self.out, self.sent, self.deferred, self.spare) = (Vec::new(), 0, 0, Vec::new());
        (self.queued, self.heard_rest) = (false, false);
    }

    /// Returns the error with which it left its last world before it ended by itself, in no world.
    pub(super) fn last_error(&self) -> Option<&str> {
        self.failed.as_deref().filter(|_| self.heard_goodbye)
    }

    /// Returns whether anything is still to be written.
    pub(super) fn unsent(&self) -> bool {
        let link = self.link.as_ref();
        let end = link.and_then(|link| link.last).unwrap_or(self.out.len());
        let sealed = link.and_then(|link| link.sealed.as_ref());
        self.sent < end || sealed.is_some_and(|sealed| sealed.sent < sealed.out.len())
    }

    /// Writes as much as the socket takes.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Some(link) = &mut self.link else { return Ok(()) };
        let end = link.last.unwrap_or(self.out.len());
        let (out, sent, end) = match &mut link.sealed {
            None => (&mut self.out, &mut self.sent, end),
            Some(sealed) => {
                for record in self.out[self.sent..end].chunks(RECORD) {
                    let len = record.len() as u32;
                    sealed.out.extend_from_slice(bytemuck::bytes_of(&[len, !len]));
                    sealed.out.extend_from_slice(record);
                    sealed.out.extend_from_slice(&sealed.seals[0].tag(record));
                }
                self.out.drain(..end);
                self.out.shrink_to(1 << 20);
                (self.sent, link.last) = (0, link.last.map(|_| 0));
                let end = sealed.out.len();
                (&mut sealed.out, &mut sealed.sent, end)
            }
        };
        while *sent < end {
            match (&*link.stream).write(&out[*sent..end]) {
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
            (*sent, link.last) = (0, link.last.map(|_| 0));
            out.shrink_to(KEPT);
            if out.capacity() + self.spare.capacity() > KEPT {
                self.spare = Vec::new();
            }
        } else if *sent > 1 << 20 && *sent > out.len() / 2 && link.last.is_none() {
            out.drain(..*sent);
            *sent = 0;
        }
        Ok(())
    }

    /// Returns whether a payload of `bytes` bytes is better written from where it is than packed first.
    pub(super) fn writes_in_place(&self, bytes: usize) -> bool {
        let takes = |link: &Connection| link.sealed.is_none() && link.last.is_none();
        bytes > PACKED / 4 && self.link.as_deref().is_some_and(takes)
    }

    /// Packs a payload, and writes what waits if that is enough.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn pack(&mut self, payload: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(payload);
        if self.out.len() - self.sent > PACKED { self.flush() } else { Ok(()) }
    }

    /// Writes what waits and then as much of this payload as the socket takes; returns how many of its bytes were
    /// written.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn write_in_place(&mut self, payload: &[u8]) -> io::Result<usize> {
        let Some(link) = &self.link else { return Ok(0) };
        let head = &self.out[self.sent..];
        let pieces = [io::IoSlice::new(head), io::IoSlice::new(payload)];
        let mut nothing = rustix::net::SendAncillaryBuffer::default();
        let mut write = || {
            rustix::io::retry_on_intr(|| {
                rustix::net::sendmsg(&*link.stream, &pieces, &mut nothing, SendFlags::NOSIGNAL)
            })
        };
        // The payload may be in elements whose loads are watched.
        let wrote = match write() {
            Err(rustix::io::Errno::FAULT) if watch::open(payload.as_ptr(), payload.len()) => write(),
            wrote => wrote,
        };
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

    /// Writes an item that belongs to no world.
    pub(super) fn write_item(&mut self, what: impl FnOnce(&mut ItemWriter<'_, Vec<u8>>)) {
        what(&mut ItemWriter(&mut self.out, 0));
    }
}

impl Connection {
    /// Reads what has arrived; but where a long payload begins that has no receive buffer yet, stops before it, and the
    /// next poll reads it.
    pub(super) fn read(&mut self, scratch: &mut [u8], intake: &mut impl Intake) -> ReadOutcome {
        let mut total = 0;
        let half_here = self.decoder.lacks_buffer(0);
        let mut all = true;
        loop {
            // Where large payloads arrive, little is read in addition to them, so that they are read to their final
            // buffer.
            let scratch = if self.big { &mut scratch[..EXTRA] } else { &mut *scratch };
            let room = if self.sealed.is_none() { self.decoder.room() } else { &mut [] };
            let (room_at, in_place, offered) = (room.as_ptr(), room.len(), room.len() + scratch.len());
            let read = if in_place == 0 {
                (&*self.stream).read(scratch)
            } else {
                let mut pieces = [IoSliceMut::new(room), IoSliceMut::new(scratch)];
                (&*self.stream).read_vectored(&mut pieces)
            };
            let n = match read {
                Ok(0) => return ReadOutcome::Ended("its connection was closed without a goodbye".into()),
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // The room may be in elements whose loads are watched.
                Err(error) if is_fault(&error) && watch::open(room_at, in_place) => continue,
                Err(error) => return ReadOutcome::Ended(format!("its connection broke: {error}")),
            };
            total += n;
            let fed = match &mut self.sealed {
                Some(sealed) => sealed.open(&scratch[..n], &mut self.decoder, intake),
                None => {
                    self.decoder.filled(n.min(in_place));
                    let rest = &scratch[..n.saturating_sub(in_place)];
                    self.decoder.feed_to(rest, intake).map_err(|malformed| malformed.to_string())
                }
            };
            if let Err(what) = fed {
                return ReadOutcome::Malformed(what);
            }
            if self.sealed.is_none() {
                self.big = match self.decoder.longest() {
                    Some(bytes) => bytes >= IN_PLACE,
                    None => self.decoder.room().len() >= BIG || self.big && (in_place > 0 || n < offered),
                };
            }
            let lacks_buffer = self.decoder.lacks_buffer(BIG);
            if n < offered || total > MAX_READ || lacks_buffer.is_some() && lacks_buffer != half_here {
                all = n < offered;
                break;
            }
        }
        if total > 0 { ReadOutcome::Something { all } } else { ReadOutcome::Nothing }
    }

    /// Takes a receive buffer for a payload of this channel that is half received; returns the buffer if there is none.
    pub(super) fn adopt(
        &mut self,
        channel: u64,
        port: Port,
        header: Header,
        buffer: ReceiveBuffer,
    ) -> Option<ReceiveBuffer> {
        self.decoder.adopt(channel, port, header, buffer)
    }

    /// Returns the header and the length of the payload of a frame of this channel and port that is half received, if it is large and
    /// has no receive buffer.
    pub(super) fn coming(&self, channel: u64, port: Port) -> Option<(Header, usize)> {
        self.decoder.coming(channel, port, BIG)
    }

    /// Cancels the buffer that a frame of this channel, and of this port or any, is half received in.
    pub(super) fn move_out(&mut self, channel: u64, port: Option<Port>) {
        self.decoder.move_out(channel, port);
    }

    /// Returns the body of a frame, to be filled again.
    pub(super) fn recycle(&mut self, body: Body) {
        self.decoder.recycle(body);
    }
}

impl Sealed {
    fn open(&mut self, bytes: &[u8], decoder: &mut Decoder, intake: &mut impl Intake) -> Result<(), String> {
        self.received.extend_from_slice(bytes);
        let mut at = 0;
        while let Some((head, rest)) = self.received[at..].split_first_chunk::<LENGTH>() {
            let [len, complement]: [u32; 2] = bytemuck::pod_read_unaligned(head);
            let (whole, len) = (len == !complement, len as usize);
            if len == 0 || len > RECORD || !whole {
                return Err(format!("it sent a record with an invalid length of {len} bytes"));
            }
            let Some((record, rest)) = rest.split_at_checked(len) else { break };
            let Some((tag, _)) = rest.split_first_chunk::<{ Seal::TAG }>() else { break };
            if !self.seals[1].is(record, *tag) {
                return Err("it sent a record with a wrong tag".into());
            }
            decoder.feed_to(record, intake).map_err(|malformed| malformed.to_string())?;
            at += LENGTH + len + Seal::TAG;
        }
        self.received.drain(..at);
        Ok(())
    }
}

impl Attempt {
    /// Begins to open a connection.
    ///
    /// # Errors
    /// There is no socket, or no listener.
    pub(super) fn new(address: SocketAddr, opener: Opener, hello: Vec<u8>, now: Instant) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        pace_nothing_within_machine(&socket, address.ip());
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(Self { stream: Arc::new(stream), opener, out: hello, awaits_room: true, since: now })
    }
}

/// Whether a system call was handed memory that is protected.
fn is_fault(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::FAULT.raw_os_error())
}

/// Writes as much of `out` as the socket takes.
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

/// Reads at most `wants` bytes, no more than 128; returns an empty slice if none have arrived.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Item;

    /// The two ends of a connection, one of them as a rank uses it.
    fn connected() -> (Box<Connection>, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let link = Connection {
            stream,
            awaits_room: false,
            watched: true,
            ours: true,
            used: 0,
            used_before: (0, Instant::now()),
            last: None,
            sealed: None,
            decoder: Decoder::default(),
            big: false,
        };
        (Box::new(link), listener.accept().unwrap().0)
    }

    #[test]
    fn memory_of_what_was_sent_is_kept_and_bounded() {
        let (link, mut reader) = connected();
        let reader = std::thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
        let mut peer = Peer::new(link.stream.peer_addr().unwrap(), Instant::now());
        peer.link = Some(link);
        for (bytes, spare) in [(8 << 20, 8 << 20), (KEPT, 8 << 20), (KEPT + 1, 100)] {
            peer.out.resize(bytes, 1);
            peer.spare = Vec::with_capacity(spare);
            while peer.unsent() {
                peer.flush().unwrap();
            }
            assert!(peer.out.capacity() >= bytes.min(KEPT), "{bytes} bytes are faulted in again");
            assert!(peer.out.capacity() + peer.spare.capacity() <= KEPT, "{bytes} bytes");
        }
        peer.close();
        assert_eq!(reader.join().unwrap().unwrap(), (8 << 20) + 2 * KEPT as u64 + 1);
    }

    /// Counts frames.
    struct Frames(usize);

    impl Intake for Frames {
        fn buffer(&mut self, _: u64, _: Port, _: Header, _: usize) -> Option<ReceiveBuffer> {
            None
        }

        fn take(&mut self, _: u64, item: Item) {
            self.0 += usize::from(matches!(item, Item::Frame(..)));
        }
    }

    #[test]
    fn after_a_large_payload_the_next_is_read_where_it_belongs_even_if_a_read_took_all_of_the_first() {
        let (mut link, mut writer) = connected();
        // One read takes all of each but the largest, and of that all but the end.
        let mut scratch = vec![0; 64 << 10];
        let mut frames = Frames(0);
        let sizes =
            [(100, false), (IN_PLACE, true), (BIG - 1, false), (64 << 10, true), (40_000, true), (3, false)];
        for (number, (bytes, large)) in sizes.into_iter().enumerate() {
            let mut out = Vec::new();
            ItemWriter(&mut out, 1).frame(Port(1), Header::default(), &vec![1; bytes]);
            writer.write_all(&out).unwrap();
            while frames.0 == number {
                link.stream.peek(&mut [0]).unwrap();
                assert!(matches!(link.read(&mut scratch, &mut frames), ReadOutcome::Something { .. }));
            }
            assert_eq!(link.big, large, "{bytes} bytes");
        }
    }
}
