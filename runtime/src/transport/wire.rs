//! How letters and frames are written where they travel as bytes, and read back from pieces of any length.
//!
//! An item is a head of 48 bytes, little endian: tag, kind, extra and nothing (`u32` each), channel, word, one number
//! more and length of the body (`u64` each), and then the body. A channel is one world among those that share a
//! connection. The decoder believes nothing: what it has not checked it does not allocate for.

use std::collections::VecDeque;
use std::fmt;

use super::{Header, Leave, Letter, Record};

/// Bytes before a body.
pub(super) const HEAD: usize = 48;
const LETTER: usize = 40;

/// The longest payload that is believed.
pub(super) const LONGEST: u64 = 1 << 40;

/// The longest text that is believed; a longer one is cut by who writes it.
const TEXT: usize = 1 << 12;

/// Bytes at most that are set aside for a payload before it comes.
const STEP: usize = 1 << 20;

/// Bodies at most that are kept to be filled again.
const SPARE: usize = 16;

const TAG_FRAME: u32 = 1;
const TAG_LETTER: u32 = 2;
const TAG_SETTLE: u32 = 3;
const TAG_RELEASE: u32 = 4;
const TAG_WANT: u32 = 5;
const TAG_ANNOUNCE: u32 = 6;
const TAG_LEFT: u32 = 7;
const TAG_END: u32 = 8;
const TAG_BEAT: u32 = 9;
const TAG_GOODBYE: u32 = 10;
const TAG_FAREWELL: u32 = 11;
const TAG_ASK: u32 = 12;
const TAG_WAITS: u32 = 13;
const TAG_PROBE: u32 = 14;
const TAG_AGREE: u32 = 15;

/// Items of which each belongs to no world.
const OF_NONE: std::ops::RangeInclusive<u32> = TAG_BEAT..=TAG_AGREE;

/// The longest list of waits that is believed.
pub(super) const PROBE: usize = 1 << 16;

/// What travels. Numbers of frames and bytes count from the beginning of the world, for the pair.
#[derive(Debug, PartialEq)]
pub(super) enum Item {
    Frame(Header, Body),
    /// A letter, and how many frames were posted before it.
    Letter(Letter, u64),
    /// The exchange of this number is settled.
    Settle(u64),
    /// So many frames have been released, and so many bytes of frames may be sent.
    Release {
        frames: u64,
        granted: u64,
    },
    /// There are frames to send, up to so many bytes.
    Want(u64),
    /// The superstep of this word was entered, after so many frames were posted.
    Announce {
        word: u64,
        frames: u64,
    },
    /// The sender has left, after so many frames were posted.
    Left {
        how: Leave,
        frames: u64,
    },
    /// The world has ended, because of this rank.
    End {
        rank: u32,
        what: String,
    },
    /// The sender is there.
    Beat,
    /// The sender has left all worlds, and sends nothing more but a farewell.
    Goodbye,
    /// All before a goodbye has come.
    Farewell,
    /// In which wait are you?
    Ask,
    /// The sender waits for this rank of the job, in the wait of this number, or in none: 0.
    Waits {
        number: u64,
        awaited: u32,
        text: String,
    },
    /// A list of waits, of which the last has seen this wait of the receiver.
    Probe {
        seen: u64,
        list: Vec<u8>,
    },
    /// The sender knows to be in a ring in the wait of this number.
    Agree(u64),
}

/// A payload, on a multiple of 16, or in the place that was offered for it.
#[derive(Default)]
pub(super) struct Body {
    /// Room, all of it initialised.
    units: Vec<u128>,
    len: usize,
    /// It is read to there instead.
    place: Option<Place>,
}

/// Memory that somebody offers for a payload.
pub(super) struct Place {
    to: *mut u8,
    len: usize,
}

// SAFETY: who makes a place promises that nobody else touches that memory meanwhile, in whichever thread this is used.
unsafe impl Send for Place {}

impl Place {
    /// # Safety
    /// `to` is valid for reads and writes of `len` bytes, all of them initialised, and nobody else touches them, until
    /// the place, or the body that was read to it, is dropped, recycled, or moved out of it.
    pub(super) unsafe fn new(to: *mut u8, len: usize) -> Self {
        Self { to, len }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

/// Why bytes are not what a rank would send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Garbled {
    Tag(u32),
    Reserved,
    Length(u64),
}

impl fmt::Display for Garbled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Garbled::Tag(tag) => write!(f, "it sent an item of unknown kind {tag}"),
            Garbled::Reserved => f.write_str("it sent an item with a field set that must be zero"),
            Garbled::Length(len) => write!(f, "it sent an item whose length can't be {len} bytes"),
        }
    }
}

impl Body {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        self.place.as_ref().map_or(self.units.as_ptr().cast(), |place| place.to)
    }

    /// What a payload that did not travel would be.
    pub(super) fn of(payload: &[u8], mut spare: Body) -> Self {
        spare.len = 0;
        spare.fill(&mut &*payload, payload.len());
        spare
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match &self.place {
            // SAFETY: as `Place::new` says; no more has come than there is room for.
            Some(place) => unsafe { std::slice::from_raw_parts(place.to, self.len) },
            None => &bytemuck::cast_slice(&self.units)[..self.len],
        }
    }

    /// Move what has come out of the place that was offered for it.
    pub(super) fn move_out(&mut self) {
        if self.place.is_some() {
            let mut own = Self { units: std::mem::take(&mut self.units), ..Self::default() };
            own.fill(&mut self.bytes(), self.len);
            *self = own;
        }
    }

    /// Room for the next bytes of a payload of `whole`.
    fn room(&mut self, whole: usize) -> &mut [u8] {
        if let Some(place) = &mut self.place {
            // SAFETY: as `Place::new` says; its length is that of the whole, of which so much has come.
            return unsafe { std::slice::from_raw_parts_mut(place.to.add(self.len), place.len - self.len) };
        }
        let end = self.len + (whole - self.len).min(STEP);
        if self.units.len() * 16 < end {
            self.units.resize(end.div_ceil(16), 0);
        }
        let end = whole.min(self.units.len() * 16);
        &mut bytemuck::cast_slice_mut::<u128, u8>(&mut self.units)[self.len..end]
    }

    /// Take bytes from the front of `from` until there are `whole`.
    fn fill(&mut self, from: &mut &[u8], whole: usize) {
        while self.len < whole && !from.is_empty() {
            let room = self.room(whole);
            let n = from.len().min(room.len());
            room[..n].copy_from_slice(&from[..n]);
            self.len += n;
            *from = &from[n..];
        }
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

/// Where items are written to.
pub(super) trait Out {
    fn put(&mut self, bytes: &[u8]);
}

impl Out for VecDeque<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend(bytes);
    }
}

impl Out for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Writes items of one channel.
pub(super) struct Pen<'a, O>(pub(super) &'a mut O, pub(super) u64);

impl<O: Out> Pen<'_, O> {
    /// Write a frame.
    pub(super) fn frame(&mut self, header: Header, payload: &[u8]) {
        self.frame_head(header, payload.len());
        self.0.put(payload);
    }

    /// Write all of a frame but its payload, which must follow.
    pub(super) fn frame_head(&mut self, header: Header, len: usize) {
        self.head(TAG_FRAME, header, 0, len);
    }

    /// Write a letter, after so many frames.
    pub(super) fn letter(&mut self, letter: &Letter, frames: u64) {
        let header = Header { word: letter.word, kind: letter.flags, extra: letter.count };
        self.head(TAG_LETTER, header, frames, LETTER);
        let mut body = [0; LETTER];
        let [first, second] = letter.inline;
        let words = [letter.address as u64, first.head, first.value, second.head, second.value];
        for (bytes, word) in body.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        self.0.put(&body);
    }

    /// Write that an exchange is settled.
    pub(super) fn settle(&mut self, exchange: u64) {
        self.bare(TAG_SETTLE, exchange, 0);
    }

    /// Write how many frames have been released, and how many bytes may be sent.
    pub(super) fn release(&mut self, frames: u64, granted: u64) {
        self.bare(TAG_RELEASE, frames, granted);
    }

    /// Write how many bytes there are to send.
    pub(super) fn want(&mut self, bytes: u64) {
        self.bare(TAG_WANT, bytes, 0);
    }

    /// Write which superstep was entered, after so many frames.
    pub(super) fn announce(&mut self, word: u64, frames: u64) {
        self.bare(TAG_ANNOUNCE, word, frames);
    }

    /// Write that and how this rank has left, after so many frames.
    pub(super) fn left(&mut self, how: &Leave, frames: u64) {
        let (kind, text) = match how {
            Leave::Finished => (0, ""),
            Leave::Failed(why) => (1, cut(why)),
            Leave::Panicked(why) => (2, cut(why)),
        };
        self.head(TAG_LEFT, Header { kind, ..Header::default() }, frames, text.len());
        self.0.put(text.as_bytes());
    }

    /// Write that the world has ended, and why.
    pub(super) fn end(&mut self, rank: u32, what: &str) {
        let what = cut(what);
        self.head(TAG_END, Header { extra: rank, ..Header::default() }, 0, what.len());
        self.0.put(what.as_bytes());
    }

    /// Write that this rank is there.
    pub(super) fn beat(&mut self) {
        self.bare(TAG_BEAT, 0, 0);
    }

    /// Write that nothing follows.
    pub(super) fn goodbye(&mut self) {
        self.bare(TAG_GOODBYE, 0, 0);
    }

    /// Write that all before a goodbye has come.
    pub(super) fn farewell(&mut self) {
        self.bare(TAG_FAREWELL, 0, 0);
    }

    /// Ask in which wait the other is.
    pub(super) fn ask(&mut self) {
        self.bare(TAG_ASK, 0, 0);
    }

    /// Write in which wait this rank is, and for which rank of the job.
    pub(super) fn waits(&mut self, number: u64, awaited: u32, text: &str) {
        let text = cut(text);
        self.head(TAG_WAITS, Header { word: number, extra: awaited, ..Header::default() }, 0, text.len());
        self.0.put(text.as_bytes());
    }

    /// Write a list of waits, and which wait of the other the last of them has seen.
    pub(super) fn probe(&mut self, seen: u64, list: &[u8]) {
        self.head(TAG_PROBE, Header { word: seen, ..Header::default() }, 0, list.len());
        self.0.put(list);
    }

    /// Write in which wait this rank knows to be in a ring.
    pub(super) fn agree(&mut self, number: u64) {
        self.bare(TAG_AGREE, number, 0);
    }

    fn bare(&mut self, tag: u32, word: u64, more: u64) {
        self.head(tag, Header { word, ..Header::default() }, more, 0);
    }

    fn head(&mut self, tag: u32, header: Header, more: u64, len: usize) {
        let mut head = [0; HEAD];
        head[0..4].copy_from_slice(&tag.to_le_bytes());
        head[4..8].copy_from_slice(&header.kind.to_le_bytes());
        head[8..12].copy_from_slice(&header.extra.to_le_bytes());
        head[16..24].copy_from_slice(&self.1.to_le_bytes());
        head[24..32].copy_from_slice(&header.word.to_le_bytes());
        head[32..40].copy_from_slice(&more.to_le_bytes());
        head[40..48].copy_from_slice(&(len as u64).to_le_bytes());
        self.0.put(&head);
    }
}

/// What of a text travels.
fn cut(text: &str) -> &str {
    let fits = |at: &usize| text.is_char_boundary(*at);
    &text[..(0..=TEXT.min(text.len())).rev().find(fits).unwrap_or(0)]
}

/// Who gets what is read.
pub(super) trait Intake {
    /// The head of a frame of this channel has come: where its payload is to be read to, if not to memory of its own.
    fn place(&mut self, channel: u64, header: Header, len: usize) -> Option<Place>;

    /// An item of this channel is complete.
    fn take(&mut self, channel: u64, item: Item);
}

/// Offers no places.
struct Plain<F>(F);

impl<F: FnMut(u64, Item)> Intake for Plain<F> {
    fn place(&mut self, _channel: u64, _header: Header, _len: usize) -> Option<Place> {
        None
    }

    fn take(&mut self, channel: u64, item: Item) {
        self.0(channel, item);
    }
}

/// Reads items from pieces.
#[derive(Default)]
pub(super) struct Decoder {
    head: Head,
    have: usize,
    /// The length of the body that the head tells of.
    whole: usize,
    body: Body,
    /// Bodies of frames that were released, to be filled again.
    spare: Vec<Body>,
    /// Items that were complete so far.
    items: u64,
}

struct Head([u8; HEAD]);

impl Default for Head {
    fn default() -> Self {
        Self([0; HEAD])
    }
}

impl Decoder {
    /// Read one piece; `take` gets the channel of each item that it completes, and the item.
    pub(super) fn feed(&mut self, bytes: &[u8], take: impl FnMut(u64, Item)) -> Result<(), Garbled> {
        self.feed_to(bytes, &mut Plain(take))
    }

    /// The same, for one who may offer places for payloads.
    pub(super) fn feed_to(&mut self, mut bytes: &[u8], intake: &mut impl Intake) -> Result<(), Garbled> {
        loop {
            if self.have < HEAD {
                let n = bytes.len().min(HEAD - self.have);
                self.head.0[self.have..self.have + n].copy_from_slice(&bytes[..n]);
                self.have += n;
                bytes = &bytes[n..];
                if self.have < HEAD {
                    return Ok(());
                }
                self.whole = self.head.check().inspect_err(|_| self.have = 0)?;
                if self.head.is_frame() {
                    let place = intake.place(self.head.u64(16), self.head.header(), self.whole);
                    self.body.place = place.filter(|place| place.len == self.whole);
                }
            }
            self.body.fill(&mut bytes, self.whole);
            if self.body.len < self.whole {
                return Ok(());
            }
            self.have = 0;
            self.items += 1;
            intake.take(self.head.u64(16), self.item());
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// Where the next bytes of a body go, so that they can be read in place; empty outside one. After
    /// [`filled`](Self::filled), [`feed`](Self::feed) with nothing completes it.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.have < HEAD { &mut [] } else { self.body.room(self.whole) }
    }

    /// So many bytes were read in place.
    pub(super) fn filled(&mut self, n: usize) {
        self.body.len += n;
    }

    /// Give back the body of a frame.
    pub(super) fn recycle(&mut self, mut body: Body) {
        (body.len, body.place) = (0, None);
        if self.spare.len() < SPARE {
            self.spare.push(body);
        }
    }

    /// Read to this place what is half here, if it is a frame of this channel with this header; else gives it back.
    pub(super) fn adopt(&mut self, channel: u64, header: Header, place: Place) -> Option<Place> {
        let head = &self.head;
        let fits = self.have == HEAD
            && (head.is_frame(), head.u64(16), head.header()) == (true, channel, header)
            && self.whole == place.len
            && self.body.place.is_none();
        if !fits {
            return Some(place);
        }
        let come = self.body.bytes();
        // SAFETY: as `Place::new` says; no more has come than the whole, and it lies in an allocation of its own.
        unsafe { std::ptr::copy_nonoverlapping(come.as_ptr(), place.to, come.len()) };
        self.body.place = Some(place);
        None
    }

    /// Which item is half here, if it is a payload of which so many bytes are missing and that has no place: who needs it
    /// may offer one before it is read.
    pub(super) fn unplaced(&self, bytes: usize) -> Option<u64> {
        let long = self.have == HEAD && self.whole - self.body.len >= bytes;
        (long && self.body.place.is_none()).then_some(self.items)
    }

    /// Read a frame of this channel that is half here to memory of its own.
    pub(super) fn move_out(&mut self, channel: u64) {
        if self.have == HEAD && self.head.u64(16) == channel {
            self.body.move_out();
        }
    }

    /// A body to be filled.
    pub(super) fn spare(&mut self) -> Body {
        self.spare.pop().unwrap_or_default()
    }

    /// The item that is complete.
    fn item(&mut self) -> Item {
        let head = &self.head;
        let header = head.header();
        let more = head.u64(32);
        if head.is_frame() {
            let spare = self.spare();
            return Item::Frame(header, std::mem::replace(&mut self.body, spare));
        }
        let bytes = self.body.bytes();
        let text = || String::from_utf8_lossy(bytes).into_owned();
        let item = match head.u32(0) {
            TAG_LETTER => {
                let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[8 * i + k]));
                let letter = Letter {
                    word: header.word,
                    flags: header.kind,
                    count: header.extra,
                    address: word(0) as usize,
                    inline: [1, 3].map(|i| Record { head: word(i), value: word(i + 1) }),
                };
                Item::Letter(letter, more)
            }
            TAG_SETTLE => Item::Settle(header.word),
            TAG_RELEASE => Item::Release { frames: header.word, granted: more },
            TAG_WANT => Item::Want(header.word),
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
            TAG_WAITS => Item::Waits { number: header.word, awaited: header.extra, text: text() },
            TAG_PROBE => Item::Probe { seen: header.word, list: bytes.to_vec() },
            TAG_AGREE => Item::Agree(header.word),
            _ => Item::Farewell,
        };
        self.body.len = 0;
        item
    }
}

impl Head {
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|i| self.0[at + i]))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.0[at + i]))
    }

    fn is_frame(&self) -> bool {
        self.u32(0) == TAG_FRAME
    }

    fn header(&self) -> Header {
        Header { word: self.u64(24), kind: self.u32(4), extra: self.u32(8) }
    }

    /// The length of the body, where the head is one that a rank would send.
    fn check(&self) -> Result<usize, Garbled> {
        let (tag, len) = (self.u32(0), self.u64(40));
        // Which of kind, extra, word and the number more an item has.
        let (fields, longest) = match tag {
            TAG_FRAME => ([1, 1, 1, 0], LONGEST),
            TAG_LETTER => ([1, 1, 1, 1], LETTER as u64),
            TAG_SETTLE | TAG_WANT => ([0, 0, 1, 0], 0),
            TAG_RELEASE | TAG_ANNOUNCE => ([0, 0, 1, 1], 0),
            TAG_LEFT => ([1, 0, 0, 1], TEXT as u64),
            TAG_END => ([0, 1, 0, 0], TEXT as u64),
            TAG_BEAT | TAG_GOODBYE | TAG_FAREWELL | TAG_ASK => ([0; 4], 0),
            TAG_WAITS => ([0, 1, 1, 0], TEXT as u64),
            TAG_PROBE => ([0, 0, 1, 0], PROBE as u64),
            TAG_AGREE => ([0, 0, 1, 0], 0),
            _ => return Err(Garbled::Tag(tag)),
        };
        let values = [u64::from(self.u32(4)), u64::from(self.u32(8)), self.u64(24), self.u64(32)];
        let of_none = OF_NONE.contains(&tag) && self.u64(16) != 0;
        let unknown = tag == TAG_LEFT && values[0] > 2;
        if self.u32(12) != 0
            || of_none
            || unknown
            || values.iter().zip(fields).any(|(v, f)| f == 0 && *v != 0)
        {
            return Err(Garbled::Reserved);
        }
        let short = tag == TAG_LETTER && len != LETTER as u64;
        match usize::try_from(len) {
            Ok(whole) if len <= longest && !short => Ok(whole),
            _ => Err(Garbled::Length(len)),
        }
    }
}

/// Read bytes as the pieces of a stream: the first byte of each says how long it is. For fuzzers.
#[cfg(any(test, fuzzing))]
pub fn decode(data: &[u8]) {
    let (mut decoder, mut rest) = (Decoder::default(), data);
    while let Some((&len, bytes)) = rest.split_first() {
        let (piece, after) = bytes.split_at(usize::from(len).min(bytes.len()));
        rest = after;
        let mut bodies = Vec::new();
        let read = decoder.feed(piece, |_, item| {
            if let Item::Frame(_, body) = item {
                assert!(body.len() <= data.len(), "more than came");
                bodies.push(body);
            }
        });
        bodies.into_iter().for_each(|body| decoder.recycle(body));
        assert!(
            decoder.body.units.capacity() * 16 <= 2 * STEP + 2 * data.len(),
            "more is set aside than came"
        );
        if read.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn feed(decoder: &mut Decoder, bytes: &[u8]) -> Result<Vec<Item>, Garbled> {
        let mut items = Vec::new();
        decoder.feed(bytes, |channel, item| {
            assert_eq!(channel, CHANNEL);
            items.push(item);
        })?;
        Ok(items)
    }

    fn body(bytes: &[u8]) -> Body {
        Body::of(bytes, Body::default())
    }

    const CHANNEL: u64 = 0xc0ff_ee00_0000_0001;

    proptest! {
        #[test]
        fn items_cut_into_any_pieces_come_back_whole_and_in_order(
            lens in proptest::collection::vec(0usize..100, 1..8),
            cuts in proptest::collection::vec(1usize..50, 1..20),
            word: u64, kind: u32, extra: u32, value: u64,
        ) {
            let header = Header { word, kind, extra };
            let sent = Letter { word, flags: kind, count: extra, address: 77, inline: [Record { head: word, value }; 2] };
            let mut out = VecDeque::new();
            let mut expected = Vec::new();
            for (i, len) in lens.iter().enumerate() {
                let payload: Vec<u8> = (0..*len).map(|b| (b + i) as u8).collect();
                let mut pen = Pen(&mut out, CHANNEL);
                pen.frame(header, &payload);
                expected.push(Item::Frame(header, body(&payload)));
                pen.letter(&sent, value);
                expected.push(Item::Letter(sent, value));
                pen.settle(word);
                pen.release(value, word);
                pen.want(value);
                pen.announce(word, value);
                let left = [Leave::Finished, Leave::Failed("ä".repeat(*len)), Leave::Panicked("why".into())];
                left.iter().for_each(|how| pen.left(how, value));
                pen.end(extra, "enough");
                expected.extend([
                    Item::Settle(word),
                    Item::Release { frames: value, granted: word },
                    Item::Want(value),
                    Item::Announce { word, frames: value },
                ]);
                expected.extend(left.map(|how| Item::Left { how, frames: value }));
                expected.push(Item::End { rank: extra, what: "enough".into() });
            }
            let bytes: Vec<u8> = out.into();
            let (mut at, mut got, mut decoder) = (0, Vec::new(), Decoder::default());
            for (i, cut) in cuts.iter().cycle().enumerate() {
                let end = bytes.len().min(at + cut);
                // Now and then, what of it is in a body is read in place.
                let room = decoder.room();
                let n = if i % 3 == 0 { room.len().min(end - at) } else { 0 };
                room[..n].copy_from_slice(&bytes[at..at + n]);
                decoder.filled(n);
                for item in feed(&mut decoder, &bytes[at + n..end]).unwrap() {
                    if let Item::Frame(_, payload) = &item {
                        prop_assert_eq!(payload.as_ptr().addr() % 16, 0);
                    }
                    got.push(item);
                }
                at = end;
                if at == bytes.len() { break }
            }
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn payloads_are_read_to_places_that_fit_and_may_be_moved_out_at_any_byte(
            frames in proptest::collection::vec((1usize..200, 0u8..4), 1..8),
            cuts in proptest::collection::vec(1usize..150, 1..20),
            out_at in 0usize..40,
        ) {
            let mut bytes = Vec::new();
            let payload = |i: usize, len: usize| -> Vec<u8> { (0..len).map(|b| (7 * b + i) as u8).collect() };
            for (i, &(len, _)) in frames.iter().enumerate() {
                let header = Header { word: i as u64, kind: 1, extra: 0 };
                Pen(&mut bytes, CHANNEL).frame(header, &payload(i, len));
                Pen(&mut bytes, CHANNEL).settle(i as u64);
            }
            // Places side by side, some of them too long or too short by one.
            let mut memory = vec![0xee_u8; 202 * frames.len()];
            let start = memory.as_mut_ptr();
            struct Places<'a> { start: *mut u8, frames: &'a [(usize, u8)], got: Vec<Body> }
            impl Intake for Places<'_> {
                fn place(&mut self, channel: u64, header: Header, len: usize) -> Option<Place> {
                    assert_eq!(channel, CHANNEL);
                    let i = header.word as usize;
                    assert_eq!(len, self.frames[i].0);
                    let len = (len + 1).checked_sub(usize::from(self.frames[i].1))?;
                    // SAFETY: one of the places below, which nobody touches until all is read.
                    Some(unsafe { Place::new(self.start.add(202 * i), len) })
                }
                fn take(&mut self, _channel: u64, item: Item) {
                    if let Item::Frame(_, body) = item {
                        self.got.push(body);
                    }
                }
            }
            let mut places = Places { start, frames: &frames, got: Vec::new() };
            let (mut decoder, mut at, mut moved) = (Decoder::default(), 0, None);
            for (n, cut) in cuts.iter().cycle().enumerate() {
                let end = bytes.len().min(at + cut);
                let room = decoder.room();
                let read = if n % 3 == 0 { room.len().min(end - at) } else { 0 };
                room[..read].copy_from_slice(&bytes[at..at + read]);
                decoder.filled(read);
                decoder.feed_to(&bytes[at + read..end], &mut places).unwrap();
                at = end;
                if n == out_at {
                    decoder.move_out(CHANNEL ^ 1); // another one's
                    decoder.move_out(CHANNEL);
                    places.got.iter_mut().for_each(Body::move_out);
                    moved = Some(places.got.len());
                }
                if at == bytes.len() { break }
            }
            prop_assert_eq!(places.got.len(), frames.len());
            for (i, (body, &(len, fits))) in places.got.iter().zip(&frames).enumerate() {
                prop_assert_eq!(body.bytes(), payload(i, len));
                let there = body.as_ptr() == start.wrapping_add(202 * i).cast_const();
                // The one that was half here when places were withdrawn may be either.
                match moved {
                    Some(moved) if i < moved => prop_assert!(!there),
                    Some(moved) if i == moved => {}
                    _ => prop_assert_eq!(there, fits == 1),
                }
            }
            drop(places);
            for (place, &(len, fits)) in memory.chunks(202).zip(&frames) {
                let used = if fits == 1 { len } else { 0 };
                prop_assert!(place[used..].iter().all(|&byte| byte == 0xee), "written beside a place");
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Decoder::default().feed(&bytes, |_, _| {});
        }
    }

    #[test]
    fn heads_that_no_rank_sends_are_refused() {
        let mut good = Vec::new();
        Pen(&mut good, CHANNEL).settle(9);
        let refusal = |at: usize, value: u8| {
            let mut bad = good.clone();
            bad[at] = value;
            feed(&mut Decoder::default(), &bad)
        };
        assert_eq!(refusal(0, 0), Err(Garbled::Tag(0)));
        assert_eq!(refusal(1, 1), Err(Garbled::Tag(TAG_SETTLE + 256)));
        for at in [4, 8, 12, 32] {
            assert_eq!(refusal(at, 1), Err(Garbled::Reserved));
        }
        assert_eq!(refusal(40, 1), Err(Garbled::Length(1)));
        for tag in OF_NONE {
            assert_eq!(refusal(0, tag as u8), Err(Garbled::Reserved), "{tag} belongs to no world");
        }
        let mut long = good.clone();
        long[0] = TAG_FRAME as u8;
        long[46] = 1;
        assert_eq!(feed(&mut Decoder::default(), &long), Err(Garbled::Length(1 << 48)));
    }

    #[test]
    fn what_is_said_of_waits_comes_back_as_it_was_said() {
        let mut bytes = Vec::new();
        let mut pen = Pen(&mut bytes, 0);
        pen.ask();
        pen.waits(7, 2, "a fence");
        pen.waits(0, 0, "");
        pen.probe(9, &[1; 100]);
        pen.agree(7);
        let mut items = Vec::new();
        Decoder::default().feed(&bytes, |_, item| items.push(item)).unwrap();
        let waits = |number, awaited, text: &str| Item::Waits { number, awaited, text: text.into() };
        let probe = Item::Probe { seen: 9, list: vec![1; 100] };
        assert_eq!(items, [Item::Ask, waits(7, 2, "a fence"), waits(0, 0, ""), probe, Item::Agree(7)]);
        let mut long = Vec::new();
        Pen(&mut long, 0).probe(9, &vec![1; PROBE + 1]);
        let refused = Decoder::default().feed(&long, |_, _| {});
        assert_eq!(refused, Err(Garbled::Length(PROBE as u64 + 1)));
    }

    #[test]
    fn a_length_that_is_only_claimed_is_not_allocated() {
        let mut bytes = Vec::new();
        Pen(&mut bytes, CHANNEL).frame(Header::default(), &[1]);
        bytes[40..48].copy_from_slice(&LONGEST.to_le_bytes());
        let mut decoder = Decoder::default();
        assert_eq!(feed(&mut decoder, &bytes), Ok(vec![]));
        assert!(decoder.body.units.capacity() * 16 <= 2 * STEP);
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        let mut bytes = Vec::new();
        Pen(&mut bytes, CHANNEL).end(3, &"€".repeat(TEXT));
        let items = feed(&mut Decoder::default(), &bytes).unwrap();
        assert_eq!(items, [Item::End { rank: 3, what: "€".repeat(TEXT / 3) }]);
    }
}
