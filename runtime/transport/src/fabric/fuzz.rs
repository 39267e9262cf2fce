//! Entry points for a fuzzer. Each function must return for any bytes, and allocate no more memory
//! than the bytes justify. This module also creates the frames that tests corrupt.

use crate::auth::{Identity, Opener, Secret, Taker, Verdict};
use crate::deadlock::{Table, Waiting, Walk};
use crate::fabric::channel::Channel;
use crate::fabric::probes::{read, written};
use crate::stream::{Decoder, Item, ItemWriter};
use crate::{Header, Leave, Notification, Port, Record};

/// The channel that recorded items belong to.
const NUMBER: u64 = 7;

/// A port other than that of fences.
const PORT: Port = Port(3);

/// Reads `bytes` as if rank 1 had sent them to rank 0 of 3, in pieces whose lengths the first byte
/// decides. Takes in the items as far as they are valid. Returns the number of items, and whether
/// one was refused.
pub fn frames(bytes: &[u8]) -> (usize, bool) {
    let Some((&first, bytes)) = bytes.split_first() else { return (0, false) };
    let mut channel = Channel::new(3);
    channel.members = vec![0, 1, 2];
    let (mut decoder, mut items, mut refused, mut out) = (Decoder::default(), 0, false, Vec::new());
    for piece in bytes.chunks(usize::from(first) * 5 + 1) {
        let room = decoder.room();
        let n = if first.is_multiple_of(2) { room.len().min(piece.len()) } else { 0 };
        room[..n].copy_from_slice(&piece[..n]);
        decoder.filled(n);
        let fed = decoder.feed(&piece[n..], |_, item| {
            items += 1;
            refused |= !refused
                && match item {
                    Item::Probe { seen, list } => !probed(seen, &list),
                    item => channel.take(1, item).is_err(),
                };
        });
        refused |= fed.is_err();
        if refused {
            break;
        }
        // Between two pieces, this rank reads notifications, grants credit, and releases and posts
        // frames.
        channel.exchange += u64::from(channel.notification(1).is_some());
        channel.pairs[1].inbound.read = channel.exchange;
        let pair = &mut channel.pairs[1];
        for port in [Port::FENCE, PORT] {
            let queue = pair.open(port);
            queue.inbound.grant_wanted(NUMBER, port, &mut out);
            let released = queue.inbound.release(&mut false);
            if !queue.outbound.post(100) {
                queue.outbound.keep(vec![0; 148]);
            }
            queue.outbound.send_waiting(NUMBER, port, &mut out, &mut Vec::new(), false);
            if let Some((_, body, _)) = released {
                decoder.recycle(body);
                pair.note_unreported(port);
            }
        }
        channel.piggyback(NUMBER, 1, &mut out);
        if items % 64 == 63 {
            channel.close_port(Port(PORT.0 + items as u32));
        }
        let _ = (channel.gone(1), channel.drained(1), channel.mine(0));
        out.clear();
    }
    (items, refused)
}

/// Takes in a list of waits as rank 0 of 3 does, and continues it. Returns whether it is valid.
fn probed(seen: u64, list: &[u8]) -> bool {
    let Some(mut waits) = read(list, 0, 3) else { return false };
    if let Some(last) = waits.last_mut() {
        (last.awaited, last.seen) = (2, seen);
    }
    if let Walk::Remote(probe) = Table::alone(0, 3).walk(waits) {
        let again = read(&written(&probe.waits), probe.to, 3);
        assert!(again.is_some_and(|again| again.len() == probe.waits.len()), "the list handed on is invalid");
    }
    true
}

/// Returns the bytes of `items` items as a rank sends them, one vector for each item.
pub fn recorded(items: usize) -> Vec<Vec<u8>> {
    let mut released = 0;
    let waiting = |rank: usize| {
        let (text, others) = ("a fence".into(), Vec::new());
        Waiting { rank, awaited: 0, text, number: 5, seen: 0, others }
    };
    let lasting = [waiting(2), waiting(1)];
    let one = |n: usize| {
        let mut bytes = Vec::new();
        let of_none = n % 12 > 7 || n % 12 == 7 && n + 12 < items;
        let mut writer = ItemWriter(&mut bytes, if of_none { 0 } else { NUMBER });
        let word = n as u64;
        match n % 12 {
            0 => writer.frame(Port::FENCE, Header { word, kind: 9, extra: 3 }, &[n as u8; 100][..n % 101]),
            1 => writer.frame(PORT, Header { word, kind: 9, extra: 3 }, &[n as u8; 100][..n % 101]),
            2 => {
                let inline = [Record { head: word, value: !word }; 2];
                writer.notification(&Notification { word, flags: 1, count: 2, address: 3, inline }, word / 4);
            }
            3 => writer.settle(word / 8),
            4 => {
                writer.release([Port::FENCE, PORT][n / 12 % 2], released / 2, 1 << 22);
                released += 1;
            }
            5 => writer.announce(word, word / 4),
            6 => writer.want([Port::FENCE, PORT][n / 12 % 2], word << 20),
            8 => writer.ask(),
            9 => writer.waits(word, 2, &[1; 13], "a fence"),
            10 => writer.probe(word, &written(&lasting)),
            11 => writer.agree(word),
            _ if of_none && n % 24 < 12 => writer.beat(),
            _ if of_none => writer.rest(),
            _ => {
                writer.nudge();
                writer.end(2, "enough");
                // Two of twelve items are frames.
                writer.left(&Leave::Failed("why".into()), 2 * (word / 12 + 1));
            }
        }
        bytes
    };
    (0..items).map(one).collect()
}

fn identity(rank: u32) -> Identity {
    Identity { secret: Secret::from_bytes([7; 32]), job: [1; 16], rank, size: 3, sealed: false }
}

/// Returns the opener, the taker, and the four messages of a handshake between ranks 0 and 1.
fn handshake_of(nonce: u8) -> (Opener, Taker, [Vec<u8>; 4]) {
    use crate::auth::{Opening, Taking};
    let (mut opener, hello) = Opener::new(identity(0), 1, [nonce; 32]);
    let mut taker = Taker::new(identity(1), [!nonce; 32]);
    let Ok(Taking::Say(answer)) = taker.take(&hello) else { unreachable!("a rank of the job says hello") };
    let Ok(Opening::Say(proof)) = opener.take(&answer) else { unreachable!("a rank of the job answers") };
    let Ok(Taking::Proven(_)) = taker.take(&proof) else { unreachable!("a rank of the job proves itself") };
    let verdict = taker.decide(Verdict::Welcome).0;
    (
        Opener::new(identity(0), 1, [nonce; 32]).0,
        Taker::new(identity(1), [!nonce; 32]),
        [hello, answer, proof, verdict],
    )
}

/// Feeds these bytes to both sides of a handshake, in pieces whose lengths the first byte decides.
/// Returns whether one side accepted the other.
pub fn handshake(bytes: &[u8]) -> bool {
    use crate::auth::{Opening, Taking};
    let Some((&first, mut bytes)) = bytes.split_first() else { return false };
    let (mut opener, mut taker, _) = handshake_of(first);
    let (mut opened, mut taken) = (true, true);
    let mut all = bytes;
    while opened && !bytes.is_empty() {
        let n = bytes.len().min(opener.wants()).min(usize::from(first) + 1);
        match opener.take(&bytes[..n]) {
            Ok(Opening::Done(_)) => return true,
            other => opened = other.is_ok(),
        }
        bytes = &bytes[n..];
    }
    while taken && !all.is_empty() {
        let n = all.len().min(taker.wants()).min(usize::from(first) + 1);
        match taker.take(&all[..n]) {
            Ok(Taking::Proven(_)) => return true,
            other => taken = other.is_ok(),
        }
        all = &all[n..];
    }
    false
}

/// Returns the bytes that the opener of the handshake with this nonce accepts, and the bytes that
/// its taker accepts.
pub fn spoken(nonce: u8) -> [Vec<u8>; 2] {
    let (_, _, [hello, answer, proof, verdict]) = handshake_of(nonce);
    [[&[nonce], &answer[..], &verdict].concat(), [&[nonce], &hello[..], &proof].concat()]
}
