//! [`Connection`]: a connection to one other rank, authenticated on both sides.

use std::io::{self, ErrorKind, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use rustix::net::SendFlags;

use crate::auth::{Seal, Session};
use crate::fabric::carrier::{self, BIG, Outgoing, ReadOutcome};
use crate::stream::{Decoder, Intake, ItemWriter, KEPT};
use crate::watch;

/// The longest record that carries a tag, in bytes.
const RECORD: usize = 16 << 10;

/// The size in bytes of the length and its complement, with which a record begins. A record ends
/// with the tag. Without the complement, a receiver might accept a corrupted length, and wait until
/// heartbeats have filled the record.
const LENGTH: usize = 8;

/// How many bytes one read may take in addition to a large payload.
const EXTRA: usize = 512;

/// The smallest payload that is cheaper to read into its final memory, with one more read, than to
/// read together with its head and then copy.
const IN_PLACE: usize = 32 << 10;

/// The largest number of bytes that one poll reads, so that a poll of a fast peer ends.
const MAX_READ: usize = 16 << 20;

/// A connection that is authenticated on both sides.
pub struct Connection {
    pub(super) stream: Arc<TcpStream>,
    /// Whether the connection awaits room at the socket.
    pub(super) awaits_room: bool,
    /// Whether the socket is registered.
    pub(super) watched: bool,
    /// Whether this rank has opened the connection.
    pub(super) ours: bool,
    /// The number of the last use of the connection, by which the connections are ordered.
    pub(super) used: u64,
    /// The number of the last use that the timers saw, and the time when they saw it first.
    pub(super) used_before: (u64, Instant),
    /// If this connection is about to be closed, the number of written bytes that are still sent on
    /// it. The other bytes wait for the next connection.
    last: Option<usize>,
    sealed: Option<Sealed>,
    decoder: Decoder,
    /// Whether a large payload is expected, because the frame that began last has one.
    big: bool,
}

/// The state of a connection whose records have tags.
struct Sealed {
    seals: [Seal; 2],
    out: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
}

impl Connection {
    /// Creates a connection over this stream. `ours` is set if this rank has opened the connection.
    pub(super) fn new(
        stream: Arc<TcpStream>,
        session: &Session,
        sealed: bool,
        ours: bool,
        now: Instant,
    ) -> Self {
        let sealed =
            sealed.then(|| Sealed { seals: session.seals(), out: Vec::new(), sent: 0, received: Vec::new() });
        Self::over(stream, sealed, ours, now)
    }

    fn over(stream: Arc<TcpStream>, sealed: Option<Sealed>, ours: bool, now: Instant) -> Self {
        Self {
            stream,
            awaits_room: false,
            watched: true,
            ours,
            used: 0,
            used_before: (0, now),
            last: None,
            sealed,
            decoder: Decoder::default(),
            big: false,
        }
    }

    /// Announces that this rank sends nothing on this connection after the bytes that are written
    /// so far.
    pub(super) fn begin_rest(&mut self, out: &mut Outgoing) {
        ItemWriter(&mut out.bytes, 0).rest();
        self.last = Some(out.bytes.len());
    }

    /// Closes the connection after both sides have announced that they send nothing more. Bytes
    /// that were written after this rank's announcement are kept.
    pub(super) fn rest(self, out: &mut Outgoing) {
        out.bytes.drain(..self.last.unwrap_or(0));
        out.bytes.shrink_to_fit();
        (out.sent, out.spare) = (0, Vec::new());
    }
}

impl<C> carrier::Connection<C> for Connection {
    fn read(&mut self, scratch: &mut [u8], intake: &mut impl Intake) -> ReadOutcome {
        let mut total = 0;
        let half_here = self.decoder.lacks_buffer(0);
        let mut all = true;
        loop {
            // While large payloads arrive, a read takes few bytes in addition to a payload, so that
            // the next payload is read into its final buffer.
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
                // `room` may be elements whose loads are watched.
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

    fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    fn decoder_mut(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    fn flush(&mut self, _: &mut C, Outgoing { bytes, sent, spare }: &mut Outgoing) -> io::Result<bool> {
        let end = self.last.unwrap_or(bytes.len());
        let (out, sent, end) = match &mut self.sealed {
            None => (bytes, sent, end),
            Some(sealed) => {
                for record in bytes[*sent..end].chunks(RECORD) {
                    let len = record.len() as u32;
                    sealed.out.extend_from_slice(bytemuck::bytes_of(&[len, !len]));
                    sealed.out.extend_from_slice(record);
                    sealed.out.extend_from_slice(&sealed.seals[0].tag(record));
                }
                bytes.drain(..end);
                bytes.shrink_to(1 << 20);
                (*sent, self.last) = (0, self.last.map(|_| 0));
                let end = sealed.out.len();
                (&mut sealed.out, &mut sealed.sent, end)
            }
        };
        let mut wrote = false;
        while *sent < end {
            match (&*self.stream).write(&out[*sent..end]) {
                Ok(n) => {
                    *sent += n;
                    wrote = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if *sent == out.len() {
            out.clear();
            (*sent, self.last) = (0, self.last.map(|_| 0));
            out.shrink_to(KEPT);
            if out.capacity() + spare.capacity() > KEPT {
                *spare = Vec::new();
            }
        } else if *sent > 1 << 20 && *sent > out.len() / 2 && self.last.is_none() {
            out.drain(..*sent);
            *sent = 0;
        }
        Ok(wrote)
    }

    fn pass_in_place(&mut self, _: &mut C, out: &mut Outgoing, payload: &[u8]) -> io::Result<(bool, usize)> {
        let head = &out.bytes[out.sent..];
        let pieces = [io::IoSlice::new(head), io::IoSlice::new(payload)];
        let mut nothing = rustix::net::SendAncillaryBuffer::default();
        let mut write = || {
            rustix::io::retry_on_intr(|| {
                rustix::net::sendmsg(&*self.stream, &pieces, &mut nothing, SendFlags::NOSIGNAL)
            })
        };
        // The payload may be elements whose loads are watched.
        let wrote = match write() {
            Err(rustix::io::Errno::FAULT) if watch::open(payload.as_ptr(), payload.len()) => write(),
            wrote => wrote,
        };
        let wrote = match wrote {
            Ok(n) => n,
            Err(rustix::io::Errno::AGAIN) => 0,
            Err(error) => return Err(error.into()),
        };
        if wrote < head.len() {
            out.sent += wrote;
            return Ok((wrote > 0, 0));
        }
        let of_payload = wrote - head.len();
        out.bytes.clear();
        out.sent = 0;
        Ok((wrote > 0, of_payload))
    }

    fn takes_in_place(&self) -> bool {
        self.sealed.is_none() && self.last.is_none()
    }

    fn is_behind(&self, out: &Outgoing) -> bool {
        let end = self.last.unwrap_or(out.bytes.len());
        out.sent < end || self.sealed.as_ref().is_some_and(|sealed| sealed.sent < sealed.out.len())
    }

    fn awaits_room(&self) -> bool {
        self.awaits_room
    }

    fn is_resting(&self) -> bool {
        self.last.is_some()
    }

    fn close(self) {
        let _: io::Result<()> = self.stream.shutdown(Shutdown::Both);
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

/// Returns whether a system call failed because its buffer is protected memory.
fn is_fault(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::FAULT.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Item, ReceiveBuffer};
    use crate::{Header, Port};

    /// Returns the two ends of a connection: a [`Connection`] and a plain stream.
    fn connected() -> (Connection, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        (Connection::over(stream, None, true, Instant::now()), listener.accept().unwrap().0)
    }

    #[test]
    fn memory_of_what_was_sent_is_kept_and_bounded() {
        let (mut link, mut reader) = connected();
        let reader = std::thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
        let mut out = Outgoing::default();
        for (bytes, spare) in [(8 << 20, 8 << 20), (KEPT, 8 << 20), (KEPT + 1, 100)] {
            out.bytes.resize(bytes, 1);
            out.spare = Vec::with_capacity(spare);
            while carrier::Connection::<()>::is_behind(&link, &out) {
                carrier::Connection::flush(&mut link, &mut (), &mut out).unwrap();
            }
            assert!(out.bytes.capacity() >= bytes.min(KEPT), "{bytes} bytes are faulted in again");
            assert!(out.bytes.capacity() + out.spare.capacity() <= KEPT, "{bytes} bytes");
        }
        carrier::Connection::<()>::close(link);
        assert_eq!(reader.join().unwrap().unwrap(), (8 << 20) + 2 * KEPT as u64 + 1);
    }

    /// A counter of frames.
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
        // One read takes each frame as a whole, except the end of the largest one.
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
                assert!(matches!(
                    carrier::Connection::<()>::read(&mut link, &mut scratch, &mut frames),
                    ReadOutcome::Something { .. }
                ));
            }
            assert_eq!(link.big, large, "{bytes} bytes");
        }
    }
}
