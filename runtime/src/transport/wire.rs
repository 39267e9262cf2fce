//! How letters and frames are written where they travel as bytes, and read back from pieces of any length.
//!
//! An item is a head of 32 bytes, little endian: tag, kind, extra and nothing (`u32` each), word and length of the body
//! (`u64` each), and then the body. The decoder believes nothing: what it has not checked it does not allocate for.

use std::collections::VecDeque;
use std::fmt;

use super::{Header, Letter, Record};

const HEAD: usize = 32;
const LETTER: usize = 48;

/// The longest payload that is believed.
pub(super) const LONGEST: u64 = 1 << 40;

/// Bytes at most that are set aside for a payload before it comes.
const STEP: usize = 1 << 20;

const TAG_FRAME: u32 = 1;
const TAG_LETTER: u32 = 2;
const TAG_SETTLE: u32 = 3;
const TAG_RELEASE: u32 = 4;

/// What travels.
#[derive(Debug, PartialEq)]
pub(super) enum Item {
    Frame(Header, Body),
    Letter(Letter),
    /// The exchange of this number is settled.
    Settle(u64),
    /// So many frames have been released, ever.
    Release(u64),
}

/// A payload, on a multiple of 16.
#[derive(Default, Debug, PartialEq)]
pub(super) struct Body {
    units: Vec<u128>,
    len: usize,
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
        self.units.as_ptr().cast()
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.units)[..self.len]
    }

    fn reset(&mut self) {
        self.units.clear();
        self.len = 0;
    }

    /// Take bytes from the front of `from` until there are `whole`.
    fn fill(&mut self, from: &mut &[u8], whole: usize) {
        while self.len < whole && !from.is_empty() {
            let room = (whole - self.len).min(STEP);
            let n = from.len().min(room);
            self.units.resize((self.len + room).div_ceil(16), 0);
            bytemuck::cast_slice_mut::<u128, u8>(&mut self.units)[self.len..self.len + n]
                .copy_from_slice(&from[..n]);
            self.len += n;
            *from = &from[n..];
        }
    }
}

/// Write a frame.
pub(super) fn frame(out: &mut VecDeque<u8>, header: Header, payload: &[u8]) {
    head(out, TAG_FRAME, header, payload.len());
    out.extend(payload);
}

/// Write a letter.
pub(super) fn letter(out: &mut VecDeque<u8>, letter: &Letter) {
    head(out, TAG_LETTER, Header { word: letter.word, kind: letter.flags, extra: letter.count }, LETTER);
    out.extend((letter.address as u64).to_le_bytes());
    out.extend(0u64.to_le_bytes());
    for record in &letter.inline {
        out.extend(record.head.to_le_bytes());
        out.extend(record.value.to_le_bytes());
    }
}

/// Write that an exchange is settled.
pub(super) fn settle(out: &mut VecDeque<u8>, exchange: u64) {
    head(out, TAG_SETTLE, Header { word: exchange, ..Header::default() }, 0);
}

/// Write how many frames have been released, ever.
pub(super) fn release(out: &mut VecDeque<u8>, frames: u64) {
    head(out, TAG_RELEASE, Header { word: frames, ..Header::default() }, 0);
}

fn head(out: &mut VecDeque<u8>, tag: u32, header: Header, len: usize) {
    let mut head = [0; HEAD];
    head[0..4].copy_from_slice(&tag.to_le_bytes());
    head[4..8].copy_from_slice(&header.kind.to_le_bytes());
    head[8..12].copy_from_slice(&header.extra.to_le_bytes());
    head[16..24].copy_from_slice(&header.word.to_le_bytes());
    head[24..32].copy_from_slice(&(len as u64).to_le_bytes());
    out.extend(head);
}

/// Reads items from pieces.
#[derive(Default)]
pub(super) struct Decoder {
    head: [u8; HEAD],
    have: usize,
    body: Body,
    /// Bodies of frames that were released, to be filled again.
    spare: Vec<Body>,
}

impl Decoder {
    /// Read one piece; `take` gets each item that it completes.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut take: impl FnMut(Item)) -> Result<(), Garbled> {
        while !bytes.is_empty() {
            if self.have < HEAD {
                let n = bytes.len().min(HEAD - self.have);
                self.head[self.have..self.have + n].copy_from_slice(&bytes[..n]);
                self.have += n;
                bytes = &bytes[n..];
                if self.have < HEAD {
                    return Ok(());
                }
            }
            let whole = self.check()?;
            self.body.fill(&mut bytes, whole);
            if self.body.len < whole {
                return Ok(());
            }
            take(self.item());
            self.have = 0;
        }
        Ok(())
    }

    /// Give back the body of a frame.
    pub(super) fn recycle(&mut self, mut body: Body) {
        body.reset();
        self.spare.push(body);
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|i| self.head[at + i]))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.head[at + i]))
    }

    /// The length of the body, where the head is one that a rank would send.
    fn check(&self) -> Result<usize, Garbled> {
        let (tag, len) = (self.u32(0), self.u64(24));
        let right = match tag {
            TAG_FRAME => len <= LONGEST,
            TAG_LETTER => len == LETTER as u64,
            TAG_SETTLE | TAG_RELEASE => len == 0,
            _ => return Err(Garbled::Tag(tag)),
        };
        let bare = matches!(tag, TAG_SETTLE | TAG_RELEASE);
        if self.u32(12) != 0 || bare && (self.u32(4), self.u32(8)) != (0, 0) {
            return Err(Garbled::Reserved);
        }
        if right { Ok(len as usize) } else { Err(Garbled::Length(len)) }
    }

    /// The item that is complete.
    fn item(&mut self) -> Item {
        let header = Header { word: self.u64(16), kind: self.u32(4), extra: self.u32(8) };
        match self.u32(0) {
            TAG_FRAME => {
                let spare = self.spare.pop().unwrap_or_default();
                Item::Frame(header, std::mem::replace(&mut self.body, spare))
            }
            TAG_LETTER => {
                let bytes = bytemuck::cast_slice::<u128, u8>(&self.body.units);
                let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[8 * i + k]));
                let letter = Letter {
                    word: header.word,
                    flags: header.kind,
                    count: header.extra,
                    address: word(0) as usize,
                    inline: [2, 4].map(|i| Record { head: word(i), value: word(i + 1) }),
                };
                self.body.reset();
                Item::Letter(letter)
            }
            TAG_SETTLE => Item::Settle(header.word),
            _ => Item::Release(header.word),
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
        let read = decoder.feed(piece, |item| {
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
        decoder.feed(bytes, |item| items.push(item))?;
        Ok(items)
    }

    fn body(bytes: &[u8]) -> Body {
        let mut body = Body::default();
        body.fill(&mut &*bytes, bytes.len());
        body
    }

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
                frame(&mut out, header, &payload);
                expected.push(Item::Frame(header, body(&payload)));
                letter(&mut out, &sent);
                expected.push(Item::Letter(sent));
                settle(&mut out, word);
                release(&mut out, value);
                expected.extend([Item::Settle(word), Item::Release(value)]);
            }
            let bytes: Vec<u8> = out.into();
            let (mut at, mut got, mut decoder) = (0, Vec::new(), Decoder::default());
            for cut in cuts.iter().cycle() {
                let end = bytes.len().min(at + cut);
                for item in feed(&mut decoder, &bytes[at..end]).unwrap() {
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
        fn any_bytes_are_read_or_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = feed(&mut Decoder::default(), &bytes);
        }
    }

    #[test]
    fn heads_that_no_rank_sends_are_refused() {
        let mut out = VecDeque::new();
        settle(&mut out, 9);
        let good: Vec<u8> = out.into();
        let refusal = |at: usize, value: u8| {
            let mut bad = good.clone();
            bad[at] = value;
            feed(&mut Decoder::default(), &bad)
        };
        assert_eq!(refusal(0, 0), Err(Garbled::Tag(0)));
        assert_eq!(refusal(1, 1), Err(Garbled::Tag(TAG_SETTLE + 256)));
        assert_eq!(refusal(4, 1), Err(Garbled::Reserved));
        assert_eq!(refusal(12, 1), Err(Garbled::Reserved));
        assert_eq!(refusal(24, 1), Err(Garbled::Length(1)));
        let mut long = good.clone();
        long[0] = TAG_FRAME as u8;
        long[30] = 1;
        assert_eq!(feed(&mut Decoder::default(), &long), Err(Garbled::Length(1 << 48)));
    }

    #[test]
    fn a_length_that_is_only_claimed_is_not_allocated() {
        let mut out = VecDeque::new();
        frame(&mut out, Header::default(), &[1]);
        let mut bytes: Vec<u8> = out.into();
        bytes[24..32].copy_from_slice(&LONGEST.to_le_bytes());
        let mut decoder = Decoder::default();
        assert_eq!(feed(&mut decoder, &bytes), Ok(vec![]));
        assert!(decoder.body.units.capacity() * 16 <= 2 * STEP);
    }
}
