//! Frames of real dynamic epochs, recorded and changed in every small way. A rank applies a changed
//! frame only if the frame is valid.
//!
//! No frame causes a panic, an access outside the windows, or unbounded memory use, and no rank
//! waits forever. If a frame is refused, every rank gets an error that names the sender of the
//! frame.

use crate::api::run::ranks;
use crate::collect::description::{FrameHead, HEAD, describe, fill};
use crate::collect::outbox::{DatatypeOperation, DatatypeSource, Head, Outbox, PUT};
use crate::fence::INLINE;
use crate::protocol::frames::kind;
use crate::state::transport_kind::TransportKind;
use crate::state::world::World;
use crate::testing::fuzzing::{input, operations};
use crate::testing::support::{Reach, with_a_byte};
use crate::testing::tampered::{self, End, simulated};
use fencepost_planner::census::Census;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::Op;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::{ErrorClass, Machine, Result};
use fencepost_tests_support::cases::every_case;
use fencepost_tests_support::random::Random;
use fencepost_transport::{Header, InFlight, Memory, Record, SimConfig, Tamper};
use std::panic::Location;
use std::sync::{Arc, Mutex};

const RANKS: usize = 3;
const LEN: usize = 24;
/// The number of elements of an operation whose frame is too long to piggyback on a census.
const LONG: usize = 300;
/// The number of elements of an operation whose elements are sent after the census. Each element is
/// one byte.
const LONGER: usize = 1000;

/// The sender and the receiver of the frames that are changed.
const WAY: [usize; 2] = [0, 1];

/// Executes epochs with all kinds of operations over several windows. Operations are described
/// once, described again, and sent early.
fn program(world: &World) -> Result<()> {
    let me = world.rank();
    let (mut u, mut v) = (world.window::<u64>(LEN)?, world.window::<u8>(LEN)?);
    let (mut w, mut long) = (world.window::<[u32; 3]>(LEN)?, world.window::<u8>(LONGER)?);
    u.fill(me as u64 + 1);
    v.fill(me as u8 + 1);
    for step in 0..4 {
        let mode = [Mode::Aggregated, Mode::Aggregated, Mode::Aggressive, Mode::Pipelined][step];
        u.set_mode(mode);
        v.set_mode(mode);
        w.set_mode(mode);
        long.set_mode(mode);
        for to in (0..RANKS).filter(|&to| to != me) {
            u.put([7]).to(to, 3)?;
            u.accumulate([2, 3], Op::Sum).to(to, 4..6)?;
            u.accumulate([1], Op::Max).to(to, 3)?;
            u.put(&[1, 2, 3][..]).to(to, Datatype::run(0..1).repeat(3, 5).unwrap())?;
            v.put([9, 8]).to(to, 1..3)?;
            v.accumulate([1; 4], Op::Bxor).to(to, Datatype::run(0..2).repeat(2, 9).unwrap())?;
            w.put([[5; 3]]).to(to, 2)?;
            let count = if step == 0 { LONGER } else { LONG };
            long.put(&[7; LONGER][..count]).to(to, 0..count)?;
            u.put(u.section(8..10)).to(to, 20..22)?;
            u.get(10..13).from(to, 0..3)?;
            v.get(Datatype::run(10..12).repeat(2, 4).unwrap())
                .from(to, Datatype::run(0..1).repeat(4, 0).unwrap())?;
        }
        let ticket = w.fetch((me + 1) % RANKS, 1..3)?;
        world.fence((&mut u, &mut v, &mut w, &mut long))?;
        drop(ticket);
    }
    world.barrier()
}

/// Returns the result of each rank with this census when `tamper` changes the frames.
fn ends(
    census: Census,
    tamper: impl Fn([usize; 2], &mut Header, &mut Vec<u8>) + Send + Sync + 'static,
) -> [End; RANKS] {
    let mut machine = Machine::default();
    machine.moving.pack = 24.0; // so that only `LONGER` bytes follow the census
    tampered::ends(&ranks(RANKS).transport(simulated(tamper)).census(census).machine(machine), program)
}

fn recorded(census: Census) -> Vec<(Header, Vec<u8>)> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&all);
    let ends = ends(census, move |way, header, payload| {
        if way == WAY {
            into.lock().unwrap().push((*header, payload.clone()));
        }
    });
    assert!(ends.iter().all(Option::is_none), "{ends:?}");
    std::mem::take(&mut all.lock().unwrap())
}

/// Changes the `nth` frame of [`WAY`], and returns whether the change causes an error.
///
/// Checks that all ranks succeed, or that all get an error that names the sender of the frame.
fn told(
    census: Census,
    nth: usize,
    what: &str,
    change: impl Fn(&mut Header, &mut Vec<u8>) + Send + Sync + 'static,
) -> bool {
    let seen = Mutex::new(0);
    let ends = ends(census, move |way, header, payload| {
        if way == WAY {
            let mut seen = seen.lock().unwrap();
            if *seen == nth {
                change(header, payload);
            }
            *seen += 1;
        }
    });
    // The changed frame may request other elements than its sender meant. Rank 1 then answers the
    // request, and the sender finds that the answer is wrong.
    let named = |end: &End| {
        let text = end.as_ref().map_or("", |(_, text)| text);
        text.contains("rank 0")
            || text.contains("rank 1: it sent an answer that does not match the gets that it answers")
    };
    let none = ends.iter().all(Option::is_none);
    // Other ranks may have completed the last census before rank 1 reads the changed frame. In a
    // sparse census, rank 0 receives from rank 1 only after rank 1 has read the frame. In a reduced
    // census, rank 0 may have received from rank 1 before.
    let completed = |rank: usize| {
        ends[rank].is_none()
            && match census {
                Census::Direct => false,
                Census::Sparse => rank == 2,
                Census::Reduced => rank != 1,
            }
    };
    let all = (0..RANKS).all(|rank| named(&ends[rank]) || completed(rank));
    assert!(none || all, "{census}, frame {nth}, {what}: {ends:?}");
    !none
}

/// Changes a few bytes, or leaves out, doubles or moves some bytes.
fn change(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        let len = bytes.len();
        if len == 0 {
            return;
        }
        let (at, n) = (random.below(len), 1 + random.below(9));
        let end = len.min(at + n);
        match random.below(8) {
            0 => bytes[at] = random.below(256) as u8,
            1 => bytes[at..end].fill(0),
            2 => bytes[at..end].fill(0xff),
            3 => bytes[at] = bytes[at].wrapping_add(1),
            4 => drop(bytes.drain(at..end)),
            5 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            6 => bytes.swap(at, len - 1),
            _ => bytes[at] ^= 1 << random.below(8),
        }
    }
}

mod a_frame_that_is_changed_on_its_way_is_an_error_on_all_ranks_or_harmless {
    use super::*;

    #[test]
    fn with_the_direct_census() {
        every_frame_is_changed(Census::Direct, kind::SETUP);
    }

    #[test]
    fn with_the_sparse_census() {
        every_frame_is_changed(Census::Sparse, kind::CENSUS);
    }

    #[test]
    fn with_the_reduced_census() {
        every_frame_is_changed(Census::Reduced, kind::NOTE);
    }
}

/// Changes each frame in every way. In a run that is only a sample, changes each frame in every
/// fourth way, and in different ways from frame to frame.
///
/// Expects frames of kind `own` with this census.
fn every_frame_is_changed(census: Census, own: u32) {
    let step = if every_case() { 1 } else { 4 };
    let frames = recorded(census);
    let kinds: Vec<u32> = frames.iter().map(|(header, _)| header.kind).collect();
    for kind in [own, kind::DATA, kind::FOLLOWING, kind::REPLY, kind::EARLY] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let (mut random, mut errors) = (Random::new(1), 0);
    for (nth, (_, payload)) in frames.iter().enumerate() {
        let first = nth % step;
        let mut change_word = |what: &str, change: &dyn Fn(u32) -> (u64, u32, u32), bits: u32| {
            for bit in (0..bits).skip(first).step_by(step) {
                let (word, kind, extra) = change(bit);
                errors += usize::from(told(census, nth, what, move |header, _| {
                    header.word ^= word;
                    header.kind ^= kind;
                    header.extra ^= extra;
                }));
            }
        };
        change_word("a bit of its word", &|bit| (1 << bit, 0, 0), 64);
        change_word("a bit of its kind", &|bit| (0, 1 << bit, 0), 32);
        change_word("a bit of its window", &|bit| (0, 0, 1 << (4 * bit)), 8);
        for other in (1..14).chain([kind::NOTE, kind::FOLLOWING]).skip(first).step_by(step) {
            errors += usize::from(told(census, nth, "its kind", move |header, _| header.kind = other));
        }
        for _ in 0..12 / step {
            let (bit, len) = (random.below(payload.len().max(1) * 8), random.below(payload.len().max(1)));
            let flip = move |_: &mut Header, payload: &mut Vec<u8>| {
                payload.iter_mut().skip(bit / 8).take(1).for_each(|byte| *byte ^= 1 << (bit % 8));
            };
            errors += usize::from(told(census, nth, "a bit", flip));
            if !payload.is_empty() {
                assert!(
                    told(census, nth, "cut", move |_, payload| payload.truncate(len)),
                    "frame {nth} cut to {len}"
                );
            }
            let seed = random.below(1 << 30) as u64;
            let changed =
                move |_: &mut Header, payload: &mut Vec<u8>| change(&mut Random::new(seed), payload);
            errors += usize::from(told(census, nth, "bytes", changed));
        }
    }
    assert!(errors * step > frames.len() * 50, "{errors} errors of {} frames", frames.len());
}

#[test]
fn a_frame_that_is_one_byte_too_long_is_an_error_on_all_ranks() {
    for census in [Census::Direct, Census::Sparse, Census::Reduced] {
        for (nth, (header, _)) in recorded(census).into_iter().enumerate() {
            let longer = |_: &mut Header, payload: &mut Vec<u8>| payload.push(0);
            assert!(
                told(census, nth, "a byte more", longer),
                "{census}: frame {nth}, of kind {}",
                header.kind
            );
        }
    }
}

/// After a census, a rank that has read another rank's memory reports that by a frame without
/// bytes.
#[test]
fn a_report_that_memory_was_read_with_a_byte_is_refused() {
    for reach in [Reach::SparseMemory, Reach::ReducedMemory] {
        let world = ranks(2).transport(with_a_byte(kind::SETTLED, reach)).census(reach.census());
        let run = world.run(|world| {
            let mut u = world.window::<u64>(LEN)?;
            u.get(0..2).from(1 - world.rank(), 4..6)?;
            u.fence()?;
            world.barrier()
        });
        let error = run.expect_err("the frame is too long");
        assert_eq!(error.class(), ErrorClass::ProcFailed, "{reach:?}: {error}");
        assert!(error.message().contains("it did not say that it has read"), "{reach:?}: {error}");
    }
}

/// Ranks that reach each other's memory put a record or two into their notifications. Records in a
/// notification that arrived as a message are not accepted.
#[test]
fn records_in_a_notification_that_was_a_message_are_not_applied() {
    for at in [0, 1 << 20] {
        let forged = Head::new(at, PUT, Location::caller()).0;
        let forge = move |_, item: InFlight<'_>| {
            if let InFlight::Notification(notification) = item {
                notification.address = INLINE;
                notification.inline = [Record { head: forged, value: 99 }; 2];
            }
        };
        let config =
            SimConfig { max_delay: 0, tamper: Some(Tamper(Arc::new(forge))), ..SimConfig::default() };
        let parts = ranks(2).transport(TransportKind::Sim(config)).collect(|world| {
            let (me, other) = (world.rank(), 1 - world.rank());
            let mut u = world.window::<u64>(4)?;
            for step in 1..4 {
                u.put([step + me as u64]).to(other, 3)?;
                u.fence()?;
            }
            Ok(u.to_vec())
        });
        assert_eq!(parts.unwrap(), [[0, 0, 0, 4], [0, 0, 0, 3]]);
    }
}

/// Returns the frames of one window in the order of their arrival, each with a flag that is true if
/// the frame was sent early.
fn of_window(frames: &[(Header, Vec<u8>)], window: u32) -> Vec<(bool, Vec<u8>)> {
    let operations = frames
        .iter()
        .filter(|(header, _)| header.extra == window && [kind::DATA, kind::EARLY].contains(&header.kind));
    operations.map(|(header, payload)| (header.kind == kind::EARLY, payload.clone())).collect()
}

#[test]
fn changed_operations_are_refused_or_stay_in_their_window() {
    let every = if every_case() { 1 } else { 5 }; // 5: other bits in each byte
    let recorded = recorded(Census::Direct);
    let mut random = Random::new(2);
    for which in 0..3 {
        let frames = of_window(&recorded, u32::from(which));
        let feed = |last: usize, changed: &[u8]| {
            let whole = frames[..last].iter().map(|(early, bytes)| (*early, &bytes[..]));
            // The frames after a changed frame are read too, as if the change had gone unnoticed.
            let rest = frames[last + 1..].iter().map(|(early, bytes)| (*early, &bytes[..]));
            operations(&input(which, whole.chain([(frames[last].0, changed)]).chain(rest)))
        };
        assert!(frames.len() >= 4, "{}", frames.len());
        for (last, (_, bytes)) in frames.iter().enumerate() {
            assert_eq!(feed(last, bytes), frames.len(), "window {which}, frame {last}");
            let mut changed = bytes.clone();
            for bit in (0..bytes.len() * 8).step_by(every) {
                changed[bit / 8] ^= 1 << (bit % 8);
                feed(last, &changed);
                changed[bit / 8] ^= 1 << (bit % 8);
            }
            for len in 0..bytes.len() {
                assert!(feed(last, &bytes[..len]) < frames.len(), "cut to {len}");
            }
            for _ in 0..1000 / every {
                let mut changed = bytes.clone();
                change(&mut random, &mut changed);
                feed(last, &changed);
            }
        }
    }
}

/// Returns a frame of puts of exposed sections. Each put has the number of the window, the section,
/// and the target region.
fn exposing(puts: &[(u32, Datatype, Datatype)]) -> Vec<u8> {
    let mut outbox = Outbox::new(&Memory::heap());
    for (window, section, remote) in puts {
        let source = DatatypeSource::Exposed(*window, section.clone());
        let put = DatatypeOperation { code: PUT, remote: remote.clone(), source, mode: Mode::Auto };
        outbox.push_datatype(put, Location::caller());
    }
    let mut frame = Vec::new();
    describe(&mut frame, &outbox, 0).expect("few operations");
    fill(&mut frame, &outbox, FrameHead::default());
    frame
}

#[test]
fn sections_are_read_only_from_where_their_owner_has_them() {
    let run = |range| Datatype::run(range);
    let believed = |puts: &[(u32, Datatype, Datatype)]| operations(&input(0, [(false, &exposing(puts)[..])]));
    let good = [(0, run(0..4), run(20..24)), (0, run(1..3).repeat(2, 8).unwrap(), run(3..7))];
    assert_eq!(believed(&good), 1);
    for (what, window, section, remote) in [
        ("of another size", 0, run(0..4), run(0..5)),
        ("past the end of the owner's part", 0, run(LEN - 3..LEN + 1), run(0..4)),
        ("before its beginning", 0, run(0..4).shift(-1).unwrap(), run(0..4)),
        ("past the end of the target's part", 0, run(0..4), run(LEN - 3..LEN + 1)),
        ("of a window that is not in the fence", 1, run(0..4), run(0..4)),
        (
            "that names more elements than there are",
            0,
            run(0..1).repeat(LEN + 1, 0).unwrap(),
            run(0..1).repeat(LEN + 1, 0).unwrap(),
        ),
    ] {
        assert_eq!(believed(&[good[0].clone(), (window, section, remote)]), 0, "a section {what}");
    }
    // Operations that use a section twice, or use sections in another order than the description
    // does.
    let bytes = exposing(&good);
    let heads = HEAD + 16;
    for (first, second) in [(0, 0), (1, 0), (1, 1)] {
        let mut changed = bytes.clone();
        changed[heads] = first;
        changed[heads + 8] = second;
        assert_eq!(operations(&input(0, [(false, &changed[..])])), 0, "{first}, {second}");
    }
    let feed = |changed: &[u8]| operations(&input(0, [(false, changed), (false, &bytes[..])]));
    let mut random = Random::new(4);
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        feed(&changed);
    }
    for _ in 0..1000 {
        let mut changed = bytes.clone();
        change(&mut random, &mut changed);
        feed(&changed);
    }
}

#[test]
fn more_than_is_answered_is_refused_on_both_sides() {
    // Returns a short request that asks for one element `count` times.
    let request = |count: usize| {
        let often = Datatype::run(0..1).repeat(count, 0).unwrap();
        let mut description =
            [&0u32.to_le_bytes()[..], &0u32.to_le_bytes(), &1u32.to_le_bytes(), &[0; 4]].concat();
        description.extend(u64::MAX.to_le_bytes()); // more than one element
        often.encode(&mut description);
        let mut frame = vec![0; 24];
        frame[8..16].copy_from_slice(&(description.len() as u64).to_le_bytes());
        frame.extend(description);
        frame
    };
    let most = 16 << 20;
    for (count, believed) in [(most / 8, 1), (most / 8 + 1, 0), (1 << 40, 0), (1 << 59, 0)] {
        assert_eq!(operations(&input(0, [(false, &request(count)[..])])), believed, "{count} elements");
    }
    ranks(2)
        .transport(TransportKind::Sim(SimConfig::default()))
        .run(|world| {
            let mut u = world.window::<u64>(LEN)?;
            let often = Datatype::run(0..1).repeat(most / 8 + 1, 0).unwrap();
            if world.rank() == 0 {
                u.get(&often).from(1, &often)?;
            }
            let class = u.fence().expect_err("more than is answered").class();
            assert_eq!(class, [ErrorClass::Size, ErrorClass::RmaSync][world.rank()]);
            // A get from the rank itself is not limited, because its elements are not sent.
            u.get(&often).from(world.rank(), &often)?;
            u.fence()
        })
        .unwrap();
}

#[test]
fn any_bytes_are_read_by_what_fuzzers_call() {
    let mut random = Random::new(3);
    for _ in 0..10_000 {
        let len = random.below(120);
        let bytes: Vec<u8> =
            (0..len).map(|_| [random.below(256) as u8, random.below(3) as u8][random.below(2)]).collect();
        operations(&bytes);
        fencepost_transport::decode(&bytes);
    }
}
