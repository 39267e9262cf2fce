//! Tests of items that are cut into pieces, corrupted or malicious.

use super::codec::*;
use super::*;
use crate::{Header, Leave, Notification, Port, Record};
use proptest::prelude::*;
use std::collections::VecDeque;

fn feed(decoder: &mut Decoder, bytes: &[u8]) -> Result<Vec<Item>, DecodeError> {
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
        word: u64, kind: u32, extra: u32, port: u32, value: u64,
    ) {
        let (header, port) = (Header { word, kind, extra }, Port(port));
        let sent = Notification { word, flags: kind, count: extra, address: 77, inline: [Record { head: word, value }; 2] };
        let mut out = VecDeque::new();
        let mut expected = Vec::new();
        for (i, len) in lens.iter().enumerate() {
            let payload: Vec<u8> = (0..*len).map(|b| (b + i) as u8).collect();
            let mut writer = ItemWriter(&mut out, CHANNEL);
            writer.frame(port, header, &payload);
            expected.push(Item::Frame(port, header, body(&payload)));
            writer.notification(&sent, value);
            expected.push(Item::Notification(sent, value));
            writer.settle(word);
            writer.release(port, value, word);
            writer.want(port, value);
            writer.announce(word, value);
            let left = [Leave::Finished, Leave::Failed("ä".repeat(*len)), Leave::Panicked("why".into())];
            left.iter().for_each(|how| writer.left(how, value));
            writer.end(extra, "enough");
            expected.extend([
                Item::Settle(word),
                Item::Release { port, frames: value, granted: word },
                Item::Want { port, bytes: value },
                Item::Announce { word, frames: value },
            ]);
            expected.extend(left.map(|how| Item::Left { how, frames: value }));
            expected.push(Item::End { rank: extra, what: "enough".into() });
        }
        let bytes: Vec<u8> = out.into();
        let (mut at, mut got, mut decoder) = (0, Vec::new(), Decoder::default());
        for (i, cut) in cuts.iter().cycle().enumerate() {
            let end = bytes.len().min(at + cut);
            // Sometimes, bytes of a body are read in place.
            let room = decoder.room();
            let n = if i % 3 == 0 { room.len().min(end - at) } else { 0 };
            room[..n].copy_from_slice(&bytes[at..at + n]);
            decoder.filled(n);
            for item in feed(&mut decoder, &bytes[at + n..end]).unwrap() {
                if let Item::Frame(.., payload) = &item {
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
            ItemWriter(&mut bytes, CHANNEL).frame(Port::FENCE, header, &payload(i, len));
            ItemWriter(&mut bytes, CHANNEL).frame(Port(7), header, b"of another port, which has no buffer");
            ItemWriter(&mut bytes, CHANNEL).settle(i as u64);
        }
        // Adjacent buffers. Some of them are too long or too short by one byte.
        let mut memory = vec![0xee_u8; 202 * frames.len()];
        let start = memory.as_mut_ptr();
        struct Buffers<'a> { start: *mut u8, frames: &'a [(usize, u8)], got: Vec<Body> }
        impl Intake for Buffers<'_> {
            fn buffer(&mut self, channel: u64, port: Port, header: Header, len: usize) -> Option<ReceiveBuffer> {
                assert_eq!(channel, CHANNEL);
                if port != Port::FENCE {
                    return None;
                }
                let i = header.word as usize;
                assert_eq!(len, self.frames[i].0);
                let len = (len + 1).checked_sub(usize::from(self.frames[i].1))?;
                // SAFETY: this is one of the buffers in `memory`, which nobody accesses until
                // everything is read.
                Some(unsafe { ReceiveBuffer::new(self.start.add(202 * i), len) })
            }
            fn take(&mut self, _channel: u64, item: Item) {
                if let Item::Frame(Port::FENCE, _, body) = item {
                    self.got.push(body);
                }
            }
        }
        let mut places = Buffers { start, frames: &frames, got: Vec::new() };
        let (mut decoder, mut at, mut moved) = (Decoder::default(), 0, None);
        for (n, cut) in cuts.iter().cycle().enumerate() {
            let end = bytes.len().min(at + cut);
            let room = decoder.room();
            let read = if n % 3 == 0 { room.len().min(end - at) } else { 0 };
            room[..read].copy_from_slice(&bytes[at..at + read]);
            decoder.filled(read);
            decoder.feed_to(&bytes[at + read..end], &mut places).unwrap();
            at = end;
            decoder.move_out(CHANNEL ^ 1, None); // another channel
            decoder.move_out(CHANNEL, Some(Port::ELEMENTS)); // another port
            if n == out_at {
                decoder.move_out(CHANNEL, Some(Port::FENCE));
                places.got.iter_mut().for_each(Body::move_out);
                moved = Some(places.got.len());
            }
            if at == bytes.len() { break }
        }
        prop_assert_eq!(places.got.len(), frames.len());
        for (i, (body, &(len, fits))) in places.got.iter().zip(&frames).enumerate() {
            prop_assert_eq!(body.bytes(), payload(i, len));
            let there = body.as_ptr() == start.wrapping_add(202 * i).cast_const();
            // The item that was half received when buffers were cancelled may be in either memory.
            match moved {
                Some(moved) if i < moved => prop_assert!(!there),
                Some(moved) if i == moved => {}
                _ => prop_assert_eq!(there, fits == 1),
            }
        }
        drop(places);
        for (place, &(len, fits)) in memory.chunks(202).zip(&frames) {
            let used = if fits == 1 { len } else { 0 };
            prop_assert!(place[used..].iter().all(|&byte| byte == 0xee), "written outside a buffer");
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
    ItemWriter(&mut good, CHANNEL).settle(9);
    let refusal = |at: usize, value: u8| {
        let mut bad = good.clone();
        bad[at] = value;
        feed(&mut Decoder::default(), &bad)
    };
    assert_eq!(refusal(0, 0), Err(DecodeError::Tag(0)));
    assert_eq!(refusal(1, 1), Err(DecodeError::Tag(TAG_SETTLE + 256)));
    for at in [4, 8, 12, 32] {
        assert_eq!(refusal(at, 1), Err(DecodeError::Reserved));
    }
    assert_eq!(refusal(40, 1), Err(DecodeError::Length(1)));
    for tag in OF_NONE {
        assert_eq!(refusal(0, tag as u8), Err(DecodeError::Reserved), "{tag} belongs to no world");
    }
    let mut long = good.clone();
    long[0] = TAG_FRAME as u8;
    long[46] = 1;
    assert_eq!(feed(&mut Decoder::default(), &long), Err(DecodeError::Length(1 << 48)));
}

#[test]
fn what_is_said_of_waits_comes_back_as_it_was_said() {
    let mut bytes = Vec::new();
    let mut writer = ItemWriter(&mut bytes, 0);
    writer.ask();
    writer.waits(7, 2, &[3; 26], "a fence");
    writer.waits(0, 0, &[], "");
    writer.probe(9, &[1; 100]);
    writer.agree(7);
    writer.rest();
    writer.nudge();
    let mut items = Vec::new();
    Decoder::default().feed(&bytes, |_, item| items.push(item)).unwrap();
    let waits = |number, awaited, about, text: &str| Item::Waits {
        number,
        awaited,
        about: vec![3; about],
        text: text.into(),
    };
    let probe = Item::Probe { seen: 9, list: vec![1; 100] };
    assert_eq!(
        items,
        [
            Item::Ask,
            waits(7, 2, 26, "a fence"),
            waits(0, 0, 0, ""),
            probe,
            Item::Agree(7),
            Item::Rest,
            Item::Nudge
        ]
    );
    let mut long = Vec::new();
    ItemWriter(&mut long, 0).probe(9, &vec![1; PROBE + 1]);
    let refused = Decoder::default().feed(&long, |_, _| {});
    assert_eq!(refused, Err(DecodeError::Length(PROBE as u64 + 1)));
}

#[test]
fn a_length_that_is_only_claimed_is_not_allocated() {
    let mut bytes = Vec::new();
    ItemWriter(&mut bytes, CHANNEL).frame(Port(1), Header::default(), &[1]);
    bytes[40..48].copy_from_slice(&LONGEST.to_le_bytes());
    let mut decoder = Decoder::default();
    assert_eq!(feed(&mut decoder, &bytes), Ok(vec![]));
    assert!(decoder.body.units.capacity() * 16 <= 2 * STEP);
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let mut bytes = Vec::new();
    ItemWriter(&mut bytes, CHANNEL).end(3, &"€".repeat(TEXT));
    let items = feed(&mut Decoder::default(), &bytes).unwrap();
    assert_eq!(items, [Item::End { rank: 3, what: "€".repeat(TEXT / 3) }]);
}

/// Feeds frames of these lengths as a whole, and returns their bodies.
fn bodies(decoder: &mut Decoder, lens: &[usize]) -> Vec<Body> {
    let mut bytes = Vec::new();
    for &len in lens {
        ItemWriter(&mut bytes, CHANNEL).frame(Port(len as u32), Header::default(), &vec![1; len]);
        ItemWriter(&mut bytes, CHANNEL).settle(1);
    }
    let frames = feed(decoder, &bytes).unwrap().into_iter();
    frames.filter_map(|item| if let Item::Frame(.., body) = item { Some(body) } else { None }).collect()
}

#[test]
fn a_long_payload_is_read_to_the_memory_of_the_last_one_whatever_came_between() {
    const LONG: usize = 8 << 20;
    let mut decoder = Decoder::default();
    let first = bodies(&mut decoder, &[100, LONG, 3]);
    let memory = first[1].as_ptr();
    first.into_iter().for_each(|body| decoder.recycle(body));
    for lens in [&[1, 2, 3, LONG][..], &[LONG, 8], &[50, LONG - 1, 70, 90], &[LONG - 16]] {
        let all = bodies(&mut decoder, lens);
        assert_eq!(all.iter().map(Body::len).collect::<Vec<_>>(), lens);
        let long = all.iter().find(|body| body.len() >= LONG - 16).unwrap();
        assert_eq!(long.as_ptr(), memory, "{lens:?}");
        all.into_iter().for_each(|body| decoder.recycle(body));
    }
}

#[test]
fn memory_of_payloads_is_kept_and_bounded() {
    let mut decoder = Decoder::default();
    let all = bodies(&mut decoder, &[5 << 20; 10]);
    all.into_iter().for_each(|body| decoder.recycle(body));
    let kept = decoder.kept();
    assert!((KEPT / 2..=KEPT).contains(&kept), "{kept} bytes are kept");
}

#[test]
fn a_long_payload_without_a_buffer_is_left_wherever_the_bytes_are_cut() {
    const LONG: usize = 100;
    let mut bytes = Vec::new();
    for payload in [&[1; 3][..], &[2; LONG], &[3; LONG - 1], &[4; LONG + 5]] {
        ItemWriter(&mut bytes, 1).frame(Port(1), Header::default(), payload);
    }
    for cut in 0..bytes.len() {
        let (mut decoder, mut lengths, mut stops) = (Decoder::default(), Vec::new(), 0);
        for mut rest in [&bytes[..cut], &bytes[cut..]] {
            while !rest.is_empty() {
                let mut intake = Lengths(&mut lengths);
                rest = decoder.feed_until(rest, &mut intake, LONG).expect("valid items");
                stops += usize::from(!rest.is_empty());
            }
        }
        assert_eq!(lengths, [3, LONG, LONG - 1, LONG + 5], "cut at {cut}");
        // If the cut is just after a head, nothing is left of that piece's bytes.
        assert!((1..=2).contains(&stops), "cut at {cut}: {stops} stops");
    }
}

#[test]
fn a_payload_that_comes_in_memory_of_its_own_stays_there_where_it_is_the_next_one() {
    let mut decoder = Decoder::default();
    let whole = |byte: u8, len: usize| {
        let mut body = Body::default();
        body.whole_room(len, 0).fill(byte);
        body
    };
    let mut bodies = Bodies(Vec::new());
    let mut head = Vec::new();
    ItemWriter(&mut head, 1).frame_head(Port(1), Header::default(), 100);
    // The decoder refuses a whole payload before the head, within the head, and after the first
    // byte of the payload. It also refuses a payload whose length is not the one in the head.
    let refused = |decoder: &mut Decoder, body: Body, bodies: &mut Bodies| {
        let (len, at) = (body.len(), body.as_ptr());
        let back = decoder.feed_whole(body, bodies).expect("it is not the next payload");
        assert_eq!((back.len(), back.as_ptr()), (len, at));
        back
    };
    let payload = refused(&mut decoder, whole(7, 100), &mut bodies);
    assert!(decoder.feed_until(&head[..20], &mut bodies, usize::MAX).expect("valid").is_empty());
    let payload = refused(&mut decoder, payload, &mut bodies);
    assert!(decoder.feed_until(&head[20..], &mut bodies, usize::MAX).expect("valid").is_empty());
    refused(&mut decoder, whole(8, 99), &mut bodies);
    refused(&mut decoder, whole(8, 101), &mut bodies);
    let at = payload.as_ptr();
    assert!(decoder.feed_whole(payload, &mut bodies).is_none());
    assert_eq!((bodies.0[0].as_ptr(), bodies.0[0].bytes()), (at, &[7; 100][..]));
    assert!(decoder.feed_until(&head, &mut bodies, usize::MAX).expect("valid").is_empty());
    assert!(decoder.feed_until(&[1], &mut bodies, usize::MAX).expect("valid").is_empty());
    refused(&mut decoder, whole(9, 100), &mut bodies);
    assert!(decoder.feed_until(&[1; 99], &mut bodies, usize::MAX).expect("valid").is_empty());
    assert_eq!(bodies.0[1].bytes(), [1; 100]);
    // If the payload has a receive buffer, it is read into that buffer.
    let mut place = [0_u8; 100];
    // SAFETY: nobody else accesses `place` before the body is moved out.
    let buffer = unsafe { ReceiveBuffer::new(place.as_mut_ptr(), 100) };
    assert!(decoder.feed_until(&head, &mut bodies, usize::MAX).expect("valid").is_empty());
    assert!(decoder.adopt(1, Port(1), Header::default(), buffer).is_ok());
    let payload = refused(&mut decoder, whole(5, 100), &mut bodies);
    assert!(decoder.feed_until(payload.bytes(), &mut bodies, usize::MAX).expect("valid").is_empty());
    bodies.0[2].move_out();
    assert_eq!((bodies.0[2].bytes(), place), (&[5; 100][..], [5; 100]));
}

/// The payloads that arrive.
struct Bodies(Vec<Body>);

impl Intake for Bodies {
    fn buffer(&mut self, _: u64, _: Port, _: Header, _: usize) -> Option<ReceiveBuffer> {
        None
    }

    fn take(&mut self, _: u64, item: Item) {
        if let Item::Frame(.., body) = item {
            self.0.push(body);
        }
    }
}

/// The lengths of the payloads that arrive.
struct Lengths<'a>(&'a mut Vec<usize>);

impl Intake for Lengths<'_> {
    fn buffer(&mut self, _: u64, _: Port, _: Header, _: usize) -> Option<ReceiveBuffer> {
        None
    }

    fn take(&mut self, _: u64, item: Item) {
        if let Item::Frame(.., body) = item {
            self.0.push(body.len());
        }
    }
}
