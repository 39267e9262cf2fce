//! Tests that change the frames of messages on their way.
//!
//! Either a rank finds a fault, ends the world and names the sender, or no rank can detect the
//! change and the program completes. No rank panics, waits forever or keeps more messages than
//! allowed.

use crate::api::run::ranks;
use crate::messages::state::frames::kind;
use crate::messages::state::status::Any;
use crate::state::world::World;
use crate::testing::tampered::{self, End, simulated};
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_tests_support::random::Random;
use fencepost_transport::Header;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Exchanges short messages and long messages in both directions, and one synchronous message. The
/// receiver requests the elements of long messages.
///
/// One of the long messages is sent and received by nonblocking calls.
fn program(world: &World) -> Result<()> {
    let other = 1 - world.rank();
    world.attach_buffer(1 << 20)?;
    for round in 0..8u64 {
        let (mut short, mut long) = ([0u64; 3], vec![0u64; 50_000]);
        let late = world.irecv_into(other, 5, vec![0u64; 40_000])?;
        world.sendrecv(other, 1, [round, 2, 3], other, 1, &mut short)?;
        world.message(other, 2).buffered().send([round; 100])?;
        world.sendrecv(other, 3, vec![round; 50_000], Any, 3, &mut long)?;
        let (values, _) = world.recv::<u64>(other, 2)?;
        if values.len() > 100 {
            return Err(Error::new(ErrorClass::Other, format!("{} elements came", values.len())));
        }
        if world.rank() == 0 {
            world.message(1, 4).synchronous().send([round])?;
        } else {
            world.recv_into(0, 4, &mut short)?;
        }
        let send = world.message(other, 5).isend(vec![round; 40_000])?;
        late.wait()?;
        send.wait()?;
    }
    world.detach_buffer()?;
    world.barrier()
}

/// Sends a buffered message in a part of the world, and leaves that part before the message is
/// received.
fn leaving(world: &World) -> Result<()> {
    let part = world.split(Some(0), 0)?.expect("a part of the world");
    if world.rank() == 0 {
        part.attach_buffer(1 << 20)?;
        part.message(1, 0).buffered().send(vec![1u64; 50_000])?;
        drop(part);
        return world.barrier();
    }
    world.barrier()?;
    part.recv::<u64>(0, 0).map(drop)
}

/// Runs `program`, and returns the result of each rank when `tamper` changes the frames of rank 0.
/// The frames of each kind are counted from one.
fn ends(
    program: fn(&World) -> Result<()>,
    tamper: impl Fn(u64, &mut Header, &mut Vec<u8>) + Send + Sync + 'static,
) -> [End; 2] {
    let seen = Mutex::new([0; 32]);
    let links = simulated(move |way, header, payload| {
        if way == [0, 1] && (kind::MESSAGE..=kind::LEFT).contains(&header.kind) {
            let number = {
                let seen = &mut seen.lock().expect("no panic")[header.kind as usize];
                *seen += 1;
                *seen
            };
            tamper(number, header, payload);
        }
    });
    let world = ranks(2).transport(links).eager(64).unexpected(4096).end_deadlocks(true);
    tampered::ends(&world, program)
}

/// Checks that both ranks get the error that rank 1 found, and that the error names rank 0.
#[track_caller]
fn told(why: &str, tamper: impl Fn(u64, &mut Header, &mut Vec<u8>) + Send + Sync + 'static) {
    let ends = ends(program, tamper);
    for (rank, end) in ends.iter().enumerate() {
        let (class, text) = end.as_ref().unwrap_or_else(|| panic!("rank {rank} is not told: {ends:?}"));
        assert!(text.contains("rank 0") && text.contains(why), "rank {rank}: {text}");
        assert_eq!(*class, ErrorClass::ProcFailed, "{text}");
    }
}

#[test]
fn nothing_is_wrong_with_what_is_not_changed() {
    assert_eq!(ends(program, |_, _, _| ()), [None, None]);
    assert_eq!(ends(leaving, |_, _, _| ()), [None, None]);
}

#[test]
fn an_envelope_that_no_rank_writes_is_refused() {
    let why = "it sent a message that no rank sends";
    let of = |number: u64, header: &Header| header.kind == kind::MESSAGE && number == 3;
    told(why, move |n, header, _| header.word |= if of(n, header) { 1 << 50 } else { 0 });
    told(why, move |n, header, _| header.word |= if of(n, header) { 200 << 32 } else { 0 });
    told(why, move |n, header, _| header.word ^= if of(n, header) { 8 } else { 0 });
    told(why, move |n, header, payload| {
        if of(n, header) {
            payload.pop();
        }
    });
    told(why, move |n, header, payload| {
        if of(n, header) {
            payload[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        }
    });
}

#[test]
fn frames_that_belong_to_nothing_are_refused() {
    told("no rank sends", |n, header, _| {
        header.kind += if header.kind == kind::MESSAGE && n == 2 { 7 } else { 0 }
    });
    told("it took a message that was not sent", |n, header, _| {
        header.word += if header.kind == kind::TAKEN && n == 2 { 1000 } else { 0 };
    });
    told("it took a message that was not sent", |n, header, _| {
        if header.kind == kind::TAKEN && n == 2 {
            header.word = 0;
        }
    });
    told("it granted more than it was sent", |n, header, _| {
        if header.kind == kind::GRANT && n == 1 {
            header.word = u64::MAX;
        }
    });
}

#[test]
fn elements_that_were_not_asked_for_are_refused() {
    let why = "it sent elements that this rank has not asked for";
    let of = |n: u64, header: &Header| header.kind == kind::ELEMENTS && n == 2;
    told(why, move |n, header, _| header.word += if of(n, header) { 1 << 40 } else { 0 });
    told(why, move |n, header, _| header.extra += if of(n, header) { 5 } else { 0 });
    told(why, move |n, header, payload| {
        if of(n, header) {
            payload.push(0);
        }
    });
}

#[test]
fn elements_that_a_sender_leaves_of_no_message_or_not_in_order_are_refused() {
    let left = |what: &str, tamper: fn(&mut Header, &mut Vec<u8>)| {
        let [_, receiver] = ends(leaving, move |n, header, payload| {
            if header.kind == kind::LEFT && n == 1 {
                tamper(header, payload);
            }
        });
        let (class, text) = receiver.unwrap_or_else(|| panic!("{what}: it is not told"));
        assert!(text.contains("rank 0") && text.contains("has not asked for"), "{text}");
        assert_eq!(class, ErrorClass::ProcFailed, "{text}");
    };
    left("of the next message", |header, _| header.word += 1);
    left("of the last message", |header, _| header.word = u64::MAX);
    left("the next chunk", |header, _| header.extra += 1);
    left("a byte less", |_, payload| payload.truncate(payload.len() - 1));
    left("no elements", |_, payload| payload.clear());
}

#[test]
fn a_message_that_is_longer_than_it_says_where_is_refused_or_does_not_fit() {
    // The message announces far more elements than it has. The receiver refuses it, or requests
    // elements that do not exist.
    let ends = ends(program, |n, header, payload| {
        if header.kind == kind::MESSAGE && n == 2 {
            payload[..8].copy_from_slice(&(1u64 << 40).to_le_bytes());
        }
    });
    assert!(ends.iter().any(Option::is_some), "{ends:?}");
}

#[test]
fn frames_that_are_one_byte_too_long_are_refused() {
    let mut kinds = BTreeSet::new();
    for of in kind::MESSAGE..=kind::LEFT {
        for number in 1..=4 {
            let is_sent = Arc::new(AtomicBool::new(false));
            let sent = is_sent.clone();
            let ends = ends(program, move |n, header, payload| {
                if header.kind == of && n == number {
                    payload.push(0);
                    sent.store(true, Ordering::Relaxed);
                }
            });
            if is_sent.load(Ordering::Relaxed) {
                kinds.insert(of);
                let named = |end: &Option<(ErrorClass, String)>| {
                    end.as_ref().is_some_and(|(_, text)| text.contains("rank 0"))
                };
                assert!(ends.iter().all(named), "kind {of}, {number}: {ends:?}");
            }
        }
    }
    assert!(kinds.len() > 4, "{kinds:?}");
}

#[test]
fn more_than_a_rank_keeps_is_refused() {
    // A grant that comes too late or too early is not detected, but a message that exceeds the
    // credit is.
    told("it sent more messages than this rank keeps", |_, header, payload| {
        if header.kind == kind::MESSAGE && header.extra == 1 {
            payload.resize(4096, 0);
        }
    });
}

#[test]
fn any_bit_that_is_changed_is_told_or_harmless() {
    let mut wrong = 0;
    for seed in 0..if cfg!(debug_assertions) { 60 } else { 1000 } {
        let mut random = Random::new(seed);
        let (of, number, bit, deep) = (
            kind::MESSAGE + random.below(5) as u32,
            1 + random.below(8) as u64,
            random.below(96),
            random.once_in(3),
        );
        let ends = ends(program, move |n, header, payload| {
            if header.kind != of || n != number {
                return;
            }
            match bit {
                _ if deep && !payload.is_empty() => {
                    let at = bit % payload.len();
                    payload[at] ^= 1 << (bit % 8);
                }
                0..64 => header.word ^= 1 << bit,
                64..80 => header.extra ^= 1 << (bit - 64),
                _ => drop(payload.pop()),
            }
        });
        wrong += usize::from(ends.iter().any(Option::is_some));
    }
    assert!(wrong > 20, "{wrong} were told");
}
