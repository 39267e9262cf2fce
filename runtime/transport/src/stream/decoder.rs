//! [`Decoder`]: reads items from pieces of any length.

use super::body::{Body, ReceiveBuffer};
use super::codec::*;
use crate::{Header, Leave, Notification, Port, Record};

/// A receiver of the items that a [`Decoder`] reads.
pub trait Intake {
    /// Called when the head of a frame of this channel and port has arrived. Returns the receive
    /// buffer for its payload. If it returns `None`, the payload gets memory of its own.
    fn buffer(&mut self, channel: u64, port: Port, header: Header, len: usize) -> Option<ReceiveBuffer>;

    /// Called when an item of this channel is complete.
    fn take(&mut self, channel: u64, item: Item);
}

/// An intake without receive buffers.
struct Plain<F>(F);

impl<F: FnMut(u64, Item)> Intake for Plain<F> {
    fn buffer(&mut self, _: u64, _: Port, _: Header, _: usize) -> Option<ReceiveBuffer> {
        None
    }

    fn take(&mut self, channel: u64, item: Item) {
        self.0(channel, item);
    }
}

/// A reader of items from pieces of any length.
#[derive(Default)]
pub struct Decoder {
    head: ItemHead,
    have: usize,
    /// The length of the body, from the head.
    whole: usize,
    pub(super) body: Body,
    /// Bodies of released frames, kept to be filled again.
    spare: Vec<Body>,
    /// The number of complete items so far.
    items: u64,
    /// The length of the longest payload of all frames whose head has arrived since the last call
    /// of [`longest`](Self::longest).
    longest: Option<usize>,
}

impl Decoder {
    /// Reads one piece. Calls `take` with the channel and the item for each item that is complete.
    pub(crate) fn feed(&mut self, bytes: &[u8], take: impl FnMut(u64, Item)) -> Result<(), DecodeError> {
        self.feed_to(bytes, &mut Plain(take))
    }

    /// Reads one piece. The intake may have receive buffers for payloads.
    pub(crate) fn feed_to(&mut self, bytes: &[u8], intake: &mut impl Intake) -> Result<(), DecodeError> {
        self.feed_until(bytes, intake, usize::MAX).map(drop)
    }

    /// Reads one piece, but stops before a payload of at least `long` bytes that has no receive
    /// buffer. Returns the rest.
    pub(crate) fn feed_until<'b>(
        &mut self,
        mut bytes: &'b [u8],
        intake: &mut impl Intake,
        long: usize,
    ) -> Result<&'b [u8], DecodeError> {
        loop {
            if self.have < HEAD {
                let n = bytes.len().min(HEAD - self.have);
                bytemuck::bytes_of_mut(&mut self.head)[self.have..][..n].copy_from_slice(&bytes[..n]);
                self.have += n;
                bytes = &bytes[n..];
                if self.have < HEAD {
                    return Ok(bytes);
                }
                self.whole = self.head.check().inspect_err(|_| self.have = 0)?;
                if self.head.is_frame() {
                    self.longest = self.longest.max(Some(self.whole));
                    let head = &self.head;
                    let buffer = intake.buffer(head.channel, head.port(), head.header(), self.whole);
                    let buffer = buffer.filter(|buffer| buffer.len == self.whole);
                    if buffer.is_none() && self.whole > self.body.capacity() {
                        let body = self.spare(self.whole);
                        let small = std::mem::replace(&mut self.body, body);
                        self.recycle(small);
                    }
                    self.body.buffer = buffer;
                    if self.whole >= long && self.body.buffer.is_none() {
                        return Ok(bytes);
                    }
                }
            }
            self.body.fill(&mut bytes, self.whole);
            if self.body.len < self.whole {
                return Ok(bytes);
            }
            self.have = 0;
            self.items += 1;
            intake.take(self.head.channel, self.item());
            if bytes.is_empty() {
                return Ok(bytes);
            }
        }
    }

    /// Returns the receive buffer of the next payload, so that the caller can receive the whole
    /// payload there and pass it to [`feed_whole`](Self::feed_whole). Returns `None` unless the
    /// payload has a receive buffer, has this length, and belongs to a fence.
    pub(crate) fn place(&self, len: usize) -> Option<Body> {
        let is_whole = self.have == HEAD
            && self.head.is_frame()
            && self.head.port() == Port::FENCE
            && (self.body.len, self.whole) == (0, len);
        let ReceiveBuffer { to, len } = *self.body.buffer.as_ref().filter(|_| is_whole)?;
        Some(Body { buffer: Some(ReceiveBuffer { to, len }), ..Body::default() })
    }

    /// Takes in a whole payload without a copy. The decoder must be at the beginning of a payload
    /// of this length. That payload must have no receive buffer, or `payload` must be in that
    /// buffer. Otherwise returns `payload`.
    pub(crate) fn feed_whole(&mut self, payload: Body, intake: &mut impl Intake) -> Option<Body> {
        let place = |body: &Body| body.buffer.as_ref().map(|buffer| buffer.to);
        let fits = self.have == HEAD
            && self.head.is_frame()
            && (self.body.len, self.whole) == (0, payload.len)
            && place(&self.body) == place(&payload);
        if !fits {
            return Some(payload);
        }
        let unused = std::mem::replace(&mut self.body, payload);
        self.recycle(unused);
        self.have = 0;
        self.items += 1;
        intake.take(self.head.channel, self.item());
        None
    }

    /// Returns the memory for the next bytes of a body, so that they can be read in place. Returns
    /// an empty slice outside a body. After [`filled`](Self::filled), [`feed`](Self::feed) with no
    /// bytes completes the body.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.have < HEAD { &mut [] } else { self.body.room(self.whole) }
    }

    /// Counts `n` bytes that were read in place.
    pub(crate) fn filled(&mut self, n: usize) {
        self.body.len += n;
    }

    /// Returns the length of the longest payload of all frames whose head has arrived since the
    /// last call, or `None` if there are no such frames.
    pub(crate) fn longest(&mut self) -> Option<usize> {
        self.longest.take()
    }

    /// Keeps the body of a frame for reuse, or frees it if enough bodies are kept.
    pub(crate) fn recycle(&mut self, mut body: Body) {
        (body.len, body.buffer) = (0, None);
        if body.capacity() > 0 && self.spare.len() < SPARE && self.kept() + body.capacity() <= KEPT {
            self.spare.push(body);
        }
    }

    /// Returns the total size of the kept bodies in bytes.
    pub(super) fn kept(&self) -> usize {
        self.spare.iter().map(Body::capacity).sum()
    }

    /// Makes this buffer the receive buffer of the half-received item, if that item is a frame of
    /// this channel and port with this header. Copies the received bytes of the payload into the
    /// buffer, and returns their number.
    ///
    /// # Errors
    /// Returns the buffer if the half-received item is another one.
    pub(crate) fn adopt(
        &mut self,
        channel: u64,
        port: Port,
        header: Header,
        buffer: ReceiveBuffer,
    ) -> Result<usize, ReceiveBuffer> {
        let head = &self.head;
        let fits = self.have == HEAD
            && (head.is_frame(), head.port(), head.channel) == (true, port, channel)
            && head.header() == header
            && self.whole == buffer.len
            && self.body.buffer.is_none();
        if !fits {
            return Err(buffer);
        }
        let come = self.body.bytes();
        // SAFETY: as `ReceiveBuffer::new` requires; no more bytes have arrived than the buffer
        // holds, and they are in an allocation of their own.
        unsafe { std::ptr::copy_nonoverlapping(come.as_ptr(), buffer.to, come.len()) };
        self.body.buffer = Some(buffer);
        Ok(self.body.len)
    }

    /// Returns the header and payload length of the half-received frame of this channel and port,
    /// if at least `bytes` bytes of the payload are missing and it has no receive buffer.
    pub(crate) fn coming(&self, channel: u64, port: Port, bytes: usize) -> Option<(Header, usize)> {
        self.lacks_buffer(bytes)?;
        let head = &self.head;
        let is_it = (head.is_frame(), head.port(), head.channel) == (true, port, channel);
        is_it.then(|| (head.header(), self.whole))
    }

    /// Returns the number of the half-received item, if its payload has no receive buffer and at
    /// least `bytes` bytes of it are missing. The receiver may then pre-post a buffer before the
    /// rest is read.
    pub(crate) fn lacks_buffer(&self, bytes: usize) -> Option<u64> {
        let long = self.have == HEAD && self.whole - self.body.len >= bytes;
        (long && self.body.buffer.is_none()).then_some(self.items)
    }

    /// Moves a half-received frame of this channel to memory of its own. If a port is given, only a
    /// frame of this port is moved.
    pub(crate) fn move_out(&mut self, channel: u64, port: Option<Port>) {
        let is_of_port = || port.is_none_or(|port| self.head.port() == port);
        if self.have == HEAD && self.head.channel == channel && is_of_port() {
            self.body.move_out();
        }
    }

    /// Returns a body to be filled with `len` bytes: the smallest kept body that has room for them,
    /// or otherwise the largest. Bodies that are much larger are left for long payloads.
    pub(crate) fn spare(&mut self, len: usize) -> Body {
        let fit = |at: usize| (self.spare[at].capacity() < len, self.spare[at].capacity().abs_diff(len));
        let longest = 4 * len.max(SHORT);
        let best = (0..self.spare.len())
            .filter(|&at| self.spare[at].capacity() <= longest)
            .min_by_key(|&at| fit(at));
        best.map_or_else(Body::default, |at| self.spare.swap_remove(at))
    }

    /// Returns the complete item.
    fn item(&mut self) -> Item {
        let head = self.head;
        let (header, more) = (head.header(), head.more);
        if head.is_frame() {
            let spare = self.spare(0);
            return Item::Frame(head.port(), header, std::mem::replace(&mut self.body, spare));
        }
        let bytes = self.body.bytes();
        let text = || String::from_utf8_lossy(bytes).into_owned();
        let item = match head.tag {
            TAG_NOTIFICATION => {
                let body: Riding = bytemuck::pod_read_unaligned(bytes);
                let notification = Notification {
                    word: header.word,
                    flags: header.kind,
                    count: header.extra,
                    address: body[0] as usize,
                    inline: [1, 3].map(|i| Record { head: body[i], value: body[i + 1] }),
                };
                Item::Notification(notification, more)
            }
            TAG_SETTLE => Item::Settle(header.word),
            TAG_RELEASE => Item::Release { port: head.port(), frames: header.word, granted: more },
            TAG_WANT => Item::Want { port: head.port(), bytes: header.word },
            TAG_ANNOUNCE => Item::Announce { word: header.word, frames: more },
            TAG_LEFT => {
                let how = match header.kind {
                    0 => Leave::Finished,
                    1 => Leave::Failed(text()),
                    _ => Leave::Panicked(text()),
                };
                Item::Left { how, frames: more }
            }
            TAG_END => Item::End { rank: header.extra, what: text() },
            TAG_BEAT => Item::Beat,
            TAG_GOODBYE => Item::Goodbye,
            TAG_ASK => Item::Ask,
            TAG_WAITS => {
                let (about, text) = bytes.split_at(bytes.len().min(more as usize));
                let text = String::from_utf8_lossy(text).into_owned();
                Item::Waits { number: header.word, awaited: header.extra, about: about.to_vec(), text }
            }
            TAG_PROBE => Item::Probe { seen: header.word, list: bytes.to_vec() },
            TAG_AGREE => Item::Agree(header.word),
            TAG_REST => Item::Rest,
            TAG_NUDGE => Item::Nudge,
            _ => Item::Farewell,
        };
        self.body.len = 0;
        item
    }
}

impl ItemHead {
    fn is_frame(&self) -> bool {
        self.tag == TAG_FRAME
    }

    fn header(&self) -> Header {
        Header { word: self.word, kind: self.kind, extra: self.extra }
    }

    fn port(&self) -> Port {
        Port(self.port)
    }

    /// Returns the length of the body. Fails if no rank would send this head.
    fn check(&self) -> Result<usize, DecodeError> {
        let Self { tag, kind, extra, port, channel, word, more, len } = *self;
        // `fields` marks which of `kind`, `extra`, `word` and `more` an item of this tag uses.
        let (fields, longest) = match tag {
            TAG_FRAME => ([1, 1, 1, 0], LONGEST),
            TAG_NOTIFICATION => ([1, 1, 1, 1], NOTIFICATION as u64),
            TAG_SETTLE | TAG_WANT => ([0, 0, 1, 0], 0),
            TAG_RELEASE | TAG_ANNOUNCE => ([0, 0, 1, 1], 0),
            TAG_LEFT => ([1, 0, 0, 1], TEXT as u64),
            TAG_END => ([0, 1, 0, 0], TEXT as u64),
            TAG_BEAT | TAG_GOODBYE | TAG_FAREWELL | TAG_ASK | TAG_REST | TAG_NUDGE => ([0; 4], 0),
            TAG_WAITS => ([0, 1, 1, 1], (TEXT + ABOUT) as u64),
            TAG_PROBE => ([0, 0, 1, 0], PROBE as u64),
            TAG_AGREE => ([0, 0, 1, 0], 0),
            _ => return Err(DecodeError::Tag(tag)),
        };
        let values = [kind.into(), extra.into(), word, more];
        let of_none = OF_NONE.contains(&tag) && channel != 0;
        let unknown = tag == TAG_LEFT && kind > 2;
        let of_no_port = !matches!(tag, TAG_FRAME | TAG_RELEASE | TAG_WANT) && port != 0;
        if of_no_port || of_none || unknown || values.iter().zip(fields).any(|(v, f)| f == 0 && *v != 0) {
            return Err(DecodeError::Reserved);
        }
        let too_short = tag == TAG_WAITS && (more > len || len - more > TEXT as u64);
        let short = tag == TAG_NOTIFICATION && len != NOTIFICATION as u64 || too_short;
        match usize::try_from(len) {
            Ok(whole) if len <= longest && !short => Ok(whole),
            _ => Err(DecodeError::Length(len)),
        }
    }
}

/// Reads bytes as the pieces of a stream. The first byte of each piece is its length. For fuzzers.
#[cfg(any(feature = "testing", fuzzing))]
pub fn decode(data: &[u8]) {
    let (mut decoder, mut rest) = (Decoder::default(), data);
    while let Some((&len, bytes)) = rest.split_first() {
        let (piece, after) = bytes.split_at(usize::from(len).min(bytes.len()));
        rest = after;
        let mut bodies = Vec::new();
        let read = decoder.feed(piece, |_, item| {
            if let Item::Frame(.., body) = item {
                assert!(body.len() <= data.len(), "a body longer than the input");
                bodies.push(body);
            }
        });
        bodies.into_iter().for_each(|body| decoder.recycle(body));
        assert!(
            decoder.body.units.capacity() * 16 <= 2 * STEP + 2 * data.len(),
            "more is allocated than arrived"
        );
        if read.is_err() {
            return;
        }
    }
}
