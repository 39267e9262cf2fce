//! Authentication: which peers are accepted, and how ranks handle strangers, replays, reflections,
//! and bytes that no rank would send. No input causes a panic. No input causes an allocation of a
//! size that the input claims but does not have. Ranks of the job continue.

#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "says how much was tried")]

mod fabrics;
mod waits;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use fabrics::fabrics;
use fencepost_tests_support::counting::{Counting, peak};
use fencepost_tests_support::random::Random;
use fencepost_transport::auth::{
    HandshakeError, Identity, Opener, Opening, Secret, Session, Taker, Taking, Verdict,
};
use fencepost_transport::{
    Channels, CreateJoin, Created, Frame, Header, Leave, Liveness, Loss, Lost, Pause, Port, Settings, TcpEnd,
    TcpFabric, Topology, fuzz, listen, tcp_with,
};
use waits::poll;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the peak number of bytes that `work` allocates.
fn most(work: impl FnOnce()) -> isize {
    peak(work).1
}

/// A limit on the bytes that are allocated for one input. The inputs here justify fewer bytes: two
/// steps of a payload.
const WORTH: isize = 5 << 20;

/// Changes the bytes at random: flips a bit, sets, inserts or repeats bytes, or truncates them.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = random.bits() as u8,
            2 => bytes.truncate(at),
            3 => bytes.insert(at, [0, 1, 0x7f, 0xff][random.below(4)]),
            4 => {
                let again = bytes[at..(at + random.below(64)).min(bytes.len())].to_vec();
                bytes.splice(at..at, again);
            }
            _ => {
                let end = (at + 8).min(bytes.len());
                let value = [0, 1, u64::MAX, 1 << 40, 1 << 63, 1 << 31][random.below(6)];
                bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            }
        }
    }
}

fn identity(secret: u8, rank: u32) -> Identity {
    Identity { secret: Secret::from_bytes([secret; 32]), job: [9; 16], rank, size: 4, sealed: false }
}

fn say(taken: Result<Taking, HandshakeError>) -> Vec<u8> {
    match taken {
        Ok(Taking::Say(words)) => words,
        other => panic!("the taker did not answer: {other:?}"),
    }
}

/// Runs a handshake. Returns the sessions of both sides, and all messages.
fn shake(
    opener: Identity,
    taker: Identity,
    verdict: Verdict,
) -> Result<([Session; 2], [Vec<u8>; 4]), HandshakeError> {
    let to = taker.rank;
    let (mut opener, hello) = Opener::new(opener, to, [1; 32]);
    let mut taker = Taker::new(taker, [2; 32]);
    let Taking::Say(answer) = taker.take(&hello)? else { panic!("no answer") };
    let Opening::Say(proof) = opener.take(&answer)? else { panic!("no proof") };
    let Taking::Proven(_) = taker.take(&proof)? else { panic!("no belief") };
    let (words, session) = taker.decide(verdict);
    let Opening::Done(opened) = opener.take(&words)? else { panic!("no end") };
    Ok(([opened, session], [hello, answer, proof, words]))
}

#[test]
fn ranks_of_one_job_know_one_another_and_have_the_same_seals_crosswise() {
    let ([opened, taken], _) = shake(identity(5, 3), identity(5, 1), Verdict::Welcome).unwrap();
    assert_eq!((opened.peer, taken.peer), (1, 3));
    let ([mut to, mut from], [mut back, mut forth]) = (opened.seals(), taken.seals());
    for record in [&b"one"[..], b"two", b""] {
        assert!(forth.is(record, to.tag(record)));
        assert!(from.is(record, back.tag(record)));
    }
    let tag = to.tag(b"three");
    assert!(!forth.is(b"thrEe", tag), "another record");
    assert!(!forth.is(b"three", tag), "the same tag again, later");
    assert!(!from.is(b"three", tag), "the other direction");
}

#[test]
fn who_has_another_secret_job_or_rank_is_not_let_in() {
    let refused = |opener, taker| shake(opener, taker, Verdict::Welcome).unwrap_err();
    assert_eq!(refused(identity(5, 3), identity(6, 1)), HandshakeError::Unproven);
    assert_eq!(
        refused(Identity { job: [8; 16], ..identity(5, 3) }, identity(5, 1)),
        HandshakeError::Stranger
    );
    assert_eq!(refused(identity(5, 4), identity(5, 1)), HandshakeError::Stranger, "there is no rank 4");
    assert_eq!(refused(identity(5, 1), identity(5, 1)), HandshakeError::Stranger, "oneself");
    let hello = Opener::new(identity(5, 3), 2, [1; 32]).1;
    assert!(
        matches!(Taker::new(identity(5, 1), [2; 32]).take(&hello), Err(HandshakeError::Stranger)),
        "for another"
    );
}

#[test]
fn ranks_that_can_not_work_together_say_why_once_they_know_one_another() {
    let sealed = Identity { sealed: true, ..identity(5, 3) };
    let refusal = shake(sealed, identity(5, 1), Verdict::Mismatch).unwrap_err();
    assert!(refusal.to_string().contains("tags on every record"), "{refusal}");
    let hello = Opener::new(Identity { size: 9, ..identity(5, 3) }, 1, [1; 32]).1;
    let mut taker = Taker::new(identity(5, 1), [2; 32]);
    say(taker.take(&hello));
    assert!(taker.mismatch().unwrap().contains("9 ranks"), "{:?}", taker.mismatch());
    // Change the byte of a hello for the byte order (12), the pointer size (13) or the version (9).
    for (at, what) in [(12, "byte order"), (13, "pointer size"), (9, "version")] {
        let mut hello = Opener::new(identity(5, 3), 1, [1; 32]).1;
        hello[at] ^= 3;
        let mut taker = Taker::new(identity(5, 1), [2; 32]);
        say(taker.take(&hello));
        assert!(taker.mismatch().unwrap().contains(what), "{:?}", taker.mismatch());
    }
    assert_eq!(shake(identity(5, 3), identity(5, 1), Verdict::Crossed).unwrap_err(), HandshakeError::Crossed);
}

#[test]
fn what_was_said_before_proves_nothing_later() {
    let (_, [hello, answer, proof, verdict]) =
        shake(identity(5, 3), identity(5, 1), Verdict::Welcome).unwrap();
    // The opener's messages are replayed to a taker with a fresh nonce.
    let mut taker = Taker::new(identity(5, 1), [4; 32]);
    say(taker.take(&hello));
    assert_eq!(taker.take(&proof).unwrap_err(), HandshakeError::Unproven);
    // The taker's messages are replayed to an opener with a fresh nonce.
    let (mut opener, _) = Opener::new(identity(5, 3), 1, [3; 32]);
    assert_eq!(opener.take(&answer).unwrap_err(), HandshakeError::Unproven);
    // A message is sent in place of another one.
    let mut taker = Taker::new(identity(5, 1), [2; 32]);
    say(taker.take(&hello));
    assert_eq!(taker.take(&verdict[4..]).unwrap_err(), HandshakeError::Unproven);
    let mut taker = Taker::new(identity(5, 1), [2; 32]);
    let answer = say(taker.take(&hello));
    assert_eq!(taker.take(&answer[answer.len() - 32..]).unwrap_err(), HandshakeError::Unproven);
}

#[test]
fn a_mirror_proves_nothing() {
    // The opener receives its own messages back.
    let (mut opener, hello) = Opener::new(identity(5, 3), 1, [1; 32]);
    assert_eq!(opener.take(&hello[..opener.wants()]).unwrap_err(), HandshakeError::Unproven);
    // Rank 3 opens a connection to rank 1. A mirror opens a connection to rank 3 as if the mirror
    // were rank 1. The mirror then presents rank 3's answer as the answer of rank 1.
    let (mut opener, hello) = Opener::new(identity(5, 3), 1, [1; 32]);
    let (_, forged) = Opener::new(identity(0, 1), 3, [1; 32]);
    let mut taker = Taker::new(identity(5, 3), [2; 32]);
    let answer = say(taker.take(&forged));
    assert_eq!(opener.take(&answer).unwrap_err(), HandshakeError::Unproven);
    // The mirror sends rank 3's own hello to rank 3, with the two ranks exchanged.
    let mut turned = hello.clone();
    turned[40..44].copy_from_slice(&1u32.to_le_bytes());
    turned[44..48].copy_from_slice(&3u32.to_le_bytes());
    let mut taker = Taker::new(identity(5, 3), [2; 32]);
    let answer = say(taker.take(&turned));
    let (mut opener, _) = Opener::new(identity(5, 3), 1, [1; 32]);
    assert_eq!(opener.take(&answer).unwrap_err(), HandshakeError::Unproven);
}

#[test]
fn a_bit_flipped_in_any_message_of_a_handshake_is_noticed_and_a_part_of_one_is_waited_for() {
    let (_, all) = shake(identity(5, 3), identity(5, 1), Verdict::Welcome).unwrap();
    let [hello, answer, proof, verdict] = &all;
    for (message, bytes) in all.iter().enumerate() {
        for bit in 0..8 * bytes.len() {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let (mut opener, _) = Opener::new(identity(5, 3), 1, [1; 32]);
            let mut taker = Taker::new(identity(5, 1), [2; 32]);
            match message {
                0 => {
                    let Ok(taking) = taker.take(&bad) else { continue };
                    assert!(opener.take(&say(Ok(taking))).is_err(), "bit {bit} of the hello");
                }
                1 => assert!(opener.take(&bad).is_err(), "bit {bit} of the answer"),
                2 => {
                    say(taker.take(hello));
                    assert!(taker.take(&bad).is_err(), "bit {bit} of the proof");
                }
                _ => {
                    assert!(matches!(opener.take(answer), Ok(Opening::Say(_))));
                    assert!(opener.take(&bad).is_err(), "bit {bit} of the verdict");
                }
            }
        }
    }
    for cut in 0..answer.len() {
        let (mut opener, _) = Opener::new(identity(5, 3), 1, [1; 32]);
        assert!(matches!(opener.take(&answer[..cut]), Ok(Opening::More)));
        assert_eq!(opener.wants(), answer.len() - cut);
        assert!(matches!(opener.take(&answer[cut..]), Ok(Opening::Say(words)) if words == *proof));
        assert!(matches!(opener.take(verdict), Ok(Opening::Done(_))));
    }
}

const MUTATIONS: usize = 1_000_000;

#[test]
fn mutated_handshakes_and_frames_are_refused_or_read_and_allocate_nothing_for_what_is_claimed() {
    let mut random = Random::new(11);
    let (items, spoken) = (fuzz::recorded(200), fuzz::spoken(40));
    assert!(spoken.iter().all(|words| fuzz::handshake(words)), "what is not broken is believed");
    let (mut refused, mut read) = (0, 0);
    for n in 0..MUTATIONS {
        let mut most_of_it = 0;
        if n % 4 == 0 {
            let mut bytes = spoken[n / 4 % 2].clone();
            mutate(&mut bytes, &mut random);
            // The first byte selects the nonce. Bytes after the last message do not belong to the
            // handshake.
            let whole = &spoken[n / 4 % 2];
            let changed = bytes.len() < whole.len() || bytes[..whole.len()] != whole[..];
            let changed = changed && bytes.first() == Some(&40);
            most_of_it = most_of_it.max(most(|| assert!(!fuzz::handshake(&bytes) || !changed)));
        } else {
            let from = random.below(items.len());
            let count = 1 + random.below(8);
            let mut bytes = vec![random.bits() as u8];
            items[from..].iter().take(count).for_each(|item| bytes.extend_from_slice(item));
            mutate(&mut bytes, &mut random);
            most_of_it = most_of_it.max(most(|| {
                let (items, no) = fuzz::frames(&bytes);
                read += items;
                refused += usize::from(no);
            }));
        }
        assert!(most_of_it < WORTH, "mutation {n} made it allocate {most_of_it} bytes");
    }
    println!("{MUTATIONS} mutations: {read} items read, {refused} refused, no panic");
    assert!(refused > MUTATIONS / 8 && read > MUTATIONS / 8, "{refused} refused, {read} read");
}

#[test]
fn every_bit_flipped_in_two_hundred_recorded_frames_is_refused_or_read() {
    let items = fuzz::recorded(200);
    let (mut flips, mut refused) = (0, 0);
    for (at, item) in items.iter().enumerate() {
        for bit in 0..8 * item.len() {
            let mut bytes = vec![at as u8];
            bytes.extend_from_slice(item);
            bytes[1 + bit / 8] ^= 1 << (bit % 8);
            items[at + 1..].iter().take(3).for_each(|item| bytes.extend_from_slice(item));
            let allocated = most(|| refused += usize::from(fuzz::frames(&bytes).1));
            assert!(allocated < WORTH, "bit {bit} of item {at} made it allocate {allocated} bytes");
            flips += 1;
        }
    }
    println!("{flips} bits flipped, {refused} refused, no panic");
    assert!(refused > flips / 4);
}

const fn header(word: u64) -> Header {
    Header { word, kind: 1, extra: 0 }
}

fn post(end: &mut TcpEnd, to: usize, word: u64, payload: &[u8]) -> Result<(), Lost> {
    // SAFETY: the payload is copied, since memory is not reached.
    unsafe { end.post(to, Port::FENCE, Frame::of(header(word), payload)) }
}

/// Sends `frames` frames to each of `peers`, and receives as many from each.
fn talk(end: &mut TcpEnd, peers: &[usize], frames: u64) -> Result<(), Lost> {
    for word in 0..frames {
        for &to in peers {
            post(end, to, word, &[to as u8; 300])?;
        }
        for &from in peers {
            assert_eq!(poll(end, from)?.header.word, word);
            end.release(from, Port::FENCE);
        }
    }
    Ok(())
}

/// Returns the secret of a job of `size` ranks, the ends of its first ranks, and all addresses.
/// `others` are the addresses of the other ranks.
fn ends(size: usize, others: &[SocketAddr], settings: Settings) -> (Secret, Vec<TcpEnd>, Vec<SocketAddr>) {
    let secret = Secret::new().unwrap();
    let mut fabrics: Vec<TcpFabric> = (0..size - others.len())
        .map(|rank| TcpFabric::new(listen(None).unwrap(), secret.clone(), [3; 16], rank, settings).unwrap())
        .collect();
    let mut table: Vec<SocketAddr> = fabrics.iter().map(|fabric| fabric.address().unwrap()).collect();
    table.extend(others);
    fabrics.iter_mut().for_each(|fabric| fabric.table(&table).unwrap());
    let ends = fabrics.into_iter().enumerate();
    let ends = ends.map(|(rank, fabric)| TcpEnd::of_job(&Arc::new(fabric), 0, rank, size).unwrap());
    (secret, ends.collect(), table)
}

/// Opens a connection as rank `rank` of a job of `size` ranks. Returns the connection when both
/// sides are authenticated.
fn open(at: SocketAddr, secret: &Secret, rank: u32, size: u32, to: u32) -> Option<TcpStream> {
    let me = Identity { secret: secret.clone(), job: [3; 16], rank, size, sealed: false };
    let (mut opener, hello) = Opener::new(me, to, [rank as u8; 32]);
    let mut stream = TcpStream::connect(at).ok()?;
    stream.write_all(&hello).ok()?;
    let mut bytes = [0; 128];
    loop {
        let wants = opener.wants();
        stream.read_exact(&mut bytes[..wants]).ok()?;
        match opener.take(&bytes[..wants]).ok()? {
            Opening::Say(words) => stream.write_all(&words).ok()?,
            Opening::Done(_) => return Some(stream),
            Opening::More => {}
        }
    }
}

#[test]
fn strangers_of_all_kinds_neither_get_in_nor_get_in_the_way() {
    let settings = Settings { half_open: 6, ..Settings::default() };
    let (_, ends, table) = ends(3, &[], settings);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let strangers: Vec<_> = (0..3usize)
            .map(|kind| {
                let (table, over) = (&table, &over);
                scope.spawn(move || {
                    let (mut random, mut held, mut let_in) = (Random::new(kind as u64), Vec::new(), 0);
                    let other = Secret::from_bytes([1; 32]);
                    // Make at least 20 attempts, even if the ranks of the job finish before.
                    for round in 0..500 {
                        if round > 20 && over.load(Ordering::Relaxed) {
                            break;
                        }
                        let at = table[round % table.len()];
                        match kind {
                            // This stranger sends nothing, or half of a message, and stays.
                            0 => {
                                let Ok(mut stream) = TcpStream::connect(at) else { continue };
                                let _ = stream.write_all(&b"fencepst..."[..random.below(11)]);
                                held.push(stream);
                                held.truncate(40);
                            }
                            // This stranger sends arbitrary bytes.
                            1 => {
                                let Ok(mut stream) = TcpStream::connect(at) else { continue };
                                let words: Vec<u8> = (0..4096).map(|_| random.bits() as u8).collect();
                                let _ = stream.write_all(&words);
                                let_in += usize::from(matches!(stream.read(&mut [0; 8]), Ok(1..)));
                            }
                            // This stranger knows the protocol, but not the secret.
                            _ => {
                                let to = (round % 3) as u32;
                                let_in += usize::from(open(at, &other, (to + 1) % 3, 3, to).is_some());
                            }
                        }
                    }
                    let_in
                })
            })
            .collect();
        let honest: Vec<_> = ends
            .into_iter()
            .map(|mut end| {
                scope.spawn(move || {
                    let peers: Vec<usize> = (0..3).filter(|&peer| peer != end.rank()).collect();
                    let talked = talk(&mut end, &peers, 300);
                    end.leave(Leave::Finished);
                    talked
                })
            })
            .collect();
        for rank in honest {
            rank.join().unwrap().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        for stranger in strangers {
            assert_eq!(stranger.join().unwrap(), 0, "somebody was let in");
        }
    });
}

#[test]
fn a_recorded_connection_played_again_does_nothing() {
    // A proxy takes the place of rank 1, and records what rank 0 sent to it.
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let (secret, settings) = (Secret::new().unwrap(), Settings::default());
    let mut fabrics: Vec<TcpFabric> = (0..2)
        .map(|rank| TcpFabric::new(listen(None).unwrap(), secret.clone(), [3; 16], rank, settings).unwrap())
        .collect();
    let real: Vec<SocketAddr> = fabrics.iter().map(|fabric| fabric.address().unwrap()).collect();
    fabrics[0].table(&[real[0], proxy.local_addr().unwrap()]).unwrap();
    fabrics[1].table(&real).unwrap();
    let mut ends = fabrics.into_iter().enumerate();
    let mut next = || {
        let (rank, fabric) = ends.next().unwrap();
        TcpEnd::of_job(&Arc::new(fabric), 0, rank, 2).unwrap()
    };
    let (mut zero, mut one) = (next(), next());
    // Rank 1 waits until rank 0 has connected. Otherwise rank 1 would open the connection.
    let connected = Barrier::new(2);
    thread::scope(|scope| {
        let connected = &connected;
        let recorded = scope.spawn(|| {
            let (mut from, to) = (proxy.accept().unwrap().0, TcpStream::connect(real[1]).unwrap());
            connected.wait();
            let (mut back, mut there) = (to.try_clone().unwrap(), from.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut back, &mut there));
            let (mut bytes, mut to, mut all) = ([0; 4096], to, Vec::new());
            while all.len() < 3000 {
                let n = from.read(&mut bytes).unwrap();
                all.extend_from_slice(&bytes[..n]);
                to.write_all(&bytes[..n]).unwrap();
            }
            // Send the same bytes again while the first connection still exists.
            let mut again = TcpStream::connect(real[1]).unwrap();
            let _ = again.write_all(&all);
            let mut answer = Vec::new();
            let _ = again.read_to_end(&mut answer);
            assert!(answer.len() <= 76, "no verdict was given");
            std::io::copy(&mut from, &mut to)
        });
        scope.spawn(move || {
            post(&mut zero, 1, 0, &[0; 10]).unwrap();
            talk(&mut zero, &[1], 200).unwrap();
            zero.leave(Leave::Finished);
        });
        scope.spawn(move || {
            connected.wait();
            assert_eq!(poll(&mut one, 0).unwrap().len, 10);
            one.release(0, Port::FENCE);
            talk(&mut one, &[0], 200).unwrap();
            one.leave(Leave::Finished);
        });
        let _ = recorded.join().unwrap();
    });
}

#[test]
fn a_rank_that_sends_garbled_items_is_named_by_each_that_gets_them() {
    let items = fuzz::recorded(60);
    let mut random = Random::new(5);
    for round in 0..30 {
        let talked = Barrier::new(3);
        let talked = &talked;
        let hostile = TcpListener::bind("127.0.0.1:0").unwrap();
        let (secret, ends, table) = ends(3, &[hostile.local_addr().unwrap()], Settings::default());
        thread::scope(|scope| {
            let honest: Vec<_> = ends
                .into_iter()
                .map(|mut end| {
                    scope.spawn(move || {
                        let peer = 1 - end.rank();
                        talk(&mut end, &[peer], 20).unwrap();
                        talked.wait();
                        // Some of the changed items may be valid frames.
                        let lost = loop {
                            match poll(&mut end, 2) {
                                Ok(_) => end.release(2, Port::FENCE),
                                Err(lost) => break lost,
                            }
                        };
                        end.leave(Leave::Finished);
                        lost
                    })
                })
                .collect();
            // These streams are opened before the ranks poll for rank 2, since a rank that polls
            // would open a connection itself.
            let mut streams: Vec<TcpStream> = (0..2)
                .map(|to| open(table[to], &secret, 2, 3, to as u32).expect("it has the secret"))
                .collect();
            talked.wait();
            for stream in &mut streams {
                let mut bytes = Vec::new();
                // Set the channel of the items to that of this world.
                for item in &items[..1 + random.below(8)] {
                    let at = bytes.len() + 16;
                    bytes.extend_from_slice(item);
                    bytes[at..at + 8].fill(0);
                }
                if round % 3 > 0 {
                    mutate(&mut bytes, &mut random);
                }
                bytes.extend_from_slice(&[0xff; 64]);
                let _ = stream.write_all(&bytes);
            }
            drop(streams);
            for rank in honest {
                let lost = rank.join().unwrap();
                assert_eq!(lost.rank, 2, "{lost}");
                let said = matches!(lost.how, Loss::Ended(_) | Loss::Died(_));
                assert!(said || round % 3 > 0, "{lost}");
            }
        });
    }
}

#[test]
fn a_connection_that_ends_without_a_goodbye_is_a_death_and_names_the_rank() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (secret, mut ends, table) = ends(2, &[silent.local_addr().unwrap()], Settings::default());
    let mut end = ends.remove(0);
    let stream = open(table[0], &secret, 1, 2, 0).expect("it has the secret");
    drop(stream);
    let lost = poll(&mut end, 1).unwrap_err();
    assert_eq!(lost.rank, 1);
    assert!(matches!(&lost.how, Loss::Died(how) if how.contains("without a goodbye")), "{lost}");
    assert_eq!(post(&mut end, 1, 0, &[]), Err(lost));
}

#[test]
fn a_rank_that_was_given_up_is_told_so_when_it_connects() {
    let mut fabrics = fabrics(2, Settings::default());
    fabrics[0].mark_failed(1, "as a test has it");
    let mut end = TcpEnd::of_job(&Arc::new(fabrics.pop().unwrap()), 0, 1, 2).unwrap();
    let lost = poll(&mut end, 0).unwrap_err();
    assert_eq!(lost.rank, 0);
    assert!(matches!(&lost.how, Loss::Died(how) if how.contains("marked this rank failed")), "{lost}");
}

#[test]
fn of_those_that_have_died_the_first_is_named() {
    for order in [[1, 2], [2, 1]] {
        let fabric = Arc::new(fabrics(3, Settings::default()).remove(0));
        let mut end = TcpEnd::of_job(&fabric, 0, 0, 3).unwrap();
        order.iter().for_each(|&rank| fabric.mark_failed(rank, &format!("{rank} was killed")));
        for waited in [1, 2] {
            let how = Loss::Died(format!("{} was killed", order[0]));
            assert_eq!(poll(&mut end, waited).unwrap_err(), Lost { rank: order[0], how });
        }
    }
}

#[test]
fn a_rank_that_failed_and_did_not_come_says_of_what_whatever_it_exited_with() {
    let mut fabrics = fabrics(3, Settings { obituary: Duration::from_secs(3600), ..Settings::default() });
    let (_silent, leaves, stays) =
        (fabrics.pop(), fabrics.pop().map(Arc::new).unwrap(), fabrics.remove(0).into());
    let mut before = TcpEnd::of_job(&leaves, 0, 1, 3).unwrap();
    post(&mut before, 0, 1, &[]).unwrap();
    before.leave(Leave::Failed("of what another did".into()));
    let mut end = TcpEnd::of_job(&stays, 0, 0, 3).unwrap();
    poll(&mut end, 1).unwrap();
    drop((before, leaves)); // the rank sends a goodbye, and ends
    stays.mark_failed(1, "exited with code 1");
    let mut next = TcpEnd::of_job(&stays, 1, 0, 3).unwrap();
    let lost = poll(&mut next, 1).unwrap_err();
    assert!(
        matches!(&lost, Lost { rank: 1, how: Loss::Left(Leave::Failed(why)) } if why.ends_with(": of what another did")),
        "{lost}"
    );
    // If it is known which rank failed first, the error names that rank.
    stays.mark_failed(2, "was killed");
    assert_eq!(poll(&mut next, 1).unwrap_err(), Lost { rank: 2, how: Loss::Died("was killed".into()) });
}

#[test]
fn a_rank_that_parts_without_having_come_ended_as_its_starter_says_and_else_as_it_said() {
    for told in [true, false] {
        let quiet = TcpListener::bind("127.0.0.1:0").unwrap();
        let obituary = if told { Duration::from_secs(3600) } else { Duration::from_millis(50) };
        let settings = Settings { obituary, ..Settings::default() };
        let secret = Secret::new().unwrap();
        let mut fabric = TcpFabric::new(listen(None).unwrap(), secret.clone(), [3; 16], 0, settings).unwrap();
        let table = [fabric.address().unwrap(), quiet.local_addr().unwrap()];
        fabric.table(&table).unwrap();
        let fabric = Arc::new(fabric);
        let mut end = TcpEnd::of_job(&fabric, 0, 0, 2).unwrap();
        let mut stream = open(table[0], &secret, 1, 2, 0).expect("it has the secret");
        let mut words = [0; 48];
        words[0] = 10; // a goodbye
        stream.write_all(&words).unwrap();
        while words[0] != 11 {
            stream.read_exact(&mut words).unwrap(); // until a farewell, so the goodbye was received
        }
        if told {
            assert_eq!(
                end.poll(1, Port::FENCE).map(|frame| frame.is_some()),
                Ok(false),
                "nobody has said how it ended"
            );
            fabric.mark_failed(1, "exited with code 7");
        }
        let how = match poll(&mut end, 1).unwrap_err() {
            Lost { rank: 1, how } => how,
            other => panic!("{other}"),
        };
        if told {
            assert_eq!(how, Loss::Died("exited with code 7".into()));
        } else {
            assert!(
                matches!(&how, Loss::Left(Leave::Failed(why)) if why.contains("without having been")),
                "{how:?}"
            );
        }
    }
}

#[test]
fn a_second_goodbye_is_refused() {
    let quiet = TcpListener::bind("127.0.0.1:0").unwrap();
    let (secret, mut ends, table) = ends(2, &[quiet.local_addr().unwrap()], Settings::default());
    let mut end = ends.remove(0);
    let mut stream = open(table[0], &secret, 1, 2, 0).expect("it has the secret");
    let mut goodbyes = [0; 96];
    (goodbyes[0], goodbyes[48]) = (10, 10);
    stream.write_all(&goodbyes).unwrap();
    // The connection stays open, so only these items can end the wait.
    let Lost { rank: 1, how: Loss::Ended(why) } = poll(&mut end, 1).unwrap_err() else {
        panic!("rank 1 is not named")
    };
    assert!(why.contains("left all its worlds twice"), "{why}");
    drop(stream);
}

#[test]
fn an_end_of_a_rank_that_never_came_raises_the_alarm() {
    for finished in [true, false] {
        let fabric = Arc::new(fabrics(2, Settings::default()).remove(0));
        let mut end = TcpEnd::of_job(&fabric, 0, 0, 2).unwrap();
        let (alarms, before) = (end.alarms(), end.alarms().count());
        assert_eq!(end.lost(1), None);
        if finished {
            fabric.mark_finished(1)
        } else {
            fabric.mark_failed(1, "was killed")
        }
        assert!(end.lost(1).is_some() && alarms.count() != before, "{finished}");
    }
}

#[test]
fn who_claims_to_have_posted_more_than_it_did_when_it_leaves_is_named_at_once() {
    for says_goodbye in [false, true] {
        let quiet = TcpListener::bind("127.0.0.1:0").unwrap();
        let (secret, mut ends, table) = ends(2, &[quiet.local_addr().unwrap()], Settings::default());
        let mut end = ends.remove(0);
        let mut stream = open(table[0], &secret, 1, 2, 0).expect("it has the secret");
        let (mut left, mut goodbye) = ([0; 48], [0; 48]);
        (left[0], left[32], goodbye[0]) = (7, 5, 10); // after five frames
        stream.write_all(&[left, goodbye][..1 + usize::from(says_goodbye)].concat()).unwrap();
        // The connection stays open, so only these items can end the wait.
        let Lost { rank: 1, how: Loss::Ended(why) } = poll(&mut end, 1).unwrap_err() else {
            panic!("rank 1 is not named")
        };
        assert!(why.contains("left a world after another number of frames"), "{why}");
        drop(stream);
    }
}

#[test]
fn what_is_released_after_leaving_harms_no_other_world() {
    let mut two = fencepost_transport::tcp(2).unwrap();
    let (mut b, mut a) = (two.pop().unwrap(), two.pop().unwrap());
    let Created::Number(number) = a.create(&[0, 1]).unwrap() else { panic!("no number") };
    let mut short = a.join(number, &[0, 1], 0).unwrap();
    let mut other = b.join(number, &[0, 1], 1).unwrap();
    for word in 0..3 {
        // SAFETY: there is no payload.
        unsafe { short.post(1, Port::FENCE, Frame::bare(header(word))) }.unwrap();
    }
    let mut pause = Pause::new();
    while short.released(1, Port::FENCE) < 3 {
        if other.lost(0).is_none() && other.poll(0, Port::FENCE).unwrap().is_some() && other.lost(1).is_none()
        {
            other.leave(Leave::Finished);
        }
        short.idle(&mut pause); // leaving ends this sleep as well
    }
    assert!(short.lost(1).is_some());
    drop(short);
    for _ in 0..3 {
        while other.poll(0, Port::FENCE).unwrap().is_none() {}
        other.release(0, Port::FENCE);
    }
    while !pause.lasts() {
        other.idle(&mut pause);
    }
    thread::scope(|scope| {
        scope.spawn(|| talk(&mut a, &[1], 3).unwrap());
        talk(&mut b, &[0], 3).unwrap();
    });
}

#[test]
fn a_rank_that_is_silent_beyond_the_limit_has_died() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (beat, limit) = (Duration::from_millis(30), Duration::from_millis(150));
    let settings = Settings { beat, limit, ..Settings::default() };
    let (secret, mut ends, table) = ends(2, &[silent.local_addr().unwrap()], settings);
    let mut end = ends.remove(0);
    let mut stream = open(table[0], &secret, 1, 2, 0).expect("it has the secret");
    let lost = poll(&mut end, 1).unwrap_err();
    assert!(matches!(&lost.how, Loss::Died(how) if how.contains("nothing was heard")), "{lost}");
    let mut beats = Vec::new();
    let _ = stream.read_to_end(&mut beats);
    assert!(beats.len() >= 48, "it was sent beats: {} bytes", beats.len());
}

#[test]
fn nobody_at_an_address_and_somebody_without_the_secret_are_deaths_of_that_rank() {
    let empty = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (_, mut two, _) = ends(2, &[empty], Settings::default());
    let lost = poll(&mut two[0], 1).unwrap_err();
    assert!(matches!(&lost.how, Loss::Died(how) if how.contains("cannot connect to it")), "{lost}");
    let impostor = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_, mut two, _) = ends(2, &[impostor.local_addr().unwrap()], Settings::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = impostor.accept().unwrap().0;
            let _ = stream.write_all(&[7; 76]);
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let lost = poll(&mut two[0], 1).unwrap_err();
        assert!(matches!(&lost.how, Loss::Died(how) if how.contains("secret")), "{lost}");
    });
}

#[test]
fn records_with_tags_carry_all_that_others_do_and_a_changed_one_ends_the_world() {
    let settings = Settings { sealed: true, ..Settings::default() };
    let mut ends = tcp_with(2, settings).unwrap();
    let mut other = ends.pop().unwrap();
    let mut end = ends.pop().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            talk(&mut other, &[0], 50).unwrap();
            post(&mut other, 0, 9, &vec![3; 3_000_000]).unwrap();
            other.leave(Leave::Finished);
        });
        talk(&mut end, &[1], 50).unwrap();
        assert_eq!(poll(&mut end, 1).unwrap().len, 3_000_000);
        end.release(1, Port::FENCE);
        end.leave(Leave::Finished);
    });
    // A peer that has the secret changes a record. It is treated as a rank that sends invalid
    // bytes.
    let changed = TcpListener::bind("127.0.0.1:0").unwrap();
    let (secret, mut two, table) = self::ends(2, &[changed.local_addr().unwrap()], settings);
    let me = Identity { secret, job: [3; 16], rank: 1, size: 2, sealed: true };
    let (mut opener, hello) = Opener::new(me, 0, [1; 32]);
    let mut stream = TcpStream::connect(table[0]).unwrap();
    stream.write_all(&hello).unwrap();
    let mut bytes = [0; 128];
    let session = loop {
        let wants = opener.wants();
        stream.read_exact(&mut bytes[..wants]).unwrap();
        match opener.take(&bytes[..wants]).unwrap() {
            Opening::Say(words) => stream.write_all(&words).unwrap(),
            Opening::Done(session) => break session,
            Opening::More => {}
        }
    };
    let mut record = fuzz::recorded(1).remove(0);
    let tag = session.seals()[0].tag(&record);
    record[16] ^= 1;
    let len = record.len() as u32;
    stream.write_all(&[len.to_le_bytes(), (!len).to_le_bytes()].concat()).unwrap();
    stream.write_all(&record).unwrap();
    stream.write_all(&tag).unwrap();
    let lost = poll(&mut two[0], 1).unwrap_err();
    assert!(lost.to_string().contains("wrong tag"), "{lost}");
    assert!(!matches!(stream.read(&mut bytes), Err(error) if error.kind() == ErrorKind::WouldBlock));
}
