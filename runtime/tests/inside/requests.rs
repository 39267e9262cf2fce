//! Tests that change requests to attendants, or the answers to them, while these travel over `sim`
//! or over TCP.
//!
//! Either a rank finds a fault, returns an error and names another rank, or no rank can detect the
//! change and the program completes. No rank panics or waits forever, and nothing outside windows
//! is touched.

use crate::api::run::ranks;
use crate::collect::datatypes::{Named, write_plain};
use crate::collect::visits::{Action, Visits, record};
use crate::locks::state::request::{HOLDER, Request, wide_records};
use crate::protocol::frames::kind;
use crate::state::transport_kind::TransportKind;
use crate::state::world::World;
use crate::testing::fuzzing;
use crate::testing::tampered::{self, ChangeFn, End, Tampered, simulated};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::Op;
use fencepost_planner::ir::calls::LockType;
use fencepost_planner::{ErrorClass, Result};
use fencepost_tests_support::random::Random;
use fencepost_transport::{Header, Hold};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Runs short and long epochs of locks, and accesses with gets. Their operations use irregular
/// datatypes. Each of these datatypes is given a number, and is later sent as this number.
fn program(world: &World) -> Result<()> {
    let me = world.rank();
    let irregular = || Datatype::elements([0, 3, 4, 9, 17, 20, 31]).unwrap();
    let u = world.lock_window::<u64>(40)?;
    if me == 0 {
        for round in 0..6_u64 {
            let lock = u.lock(1, LockType::Exclusive)?;
            lock.accumulate([round], Op::Sum, 5)?;
            lock.put([round; 7], irregular())?;
            let ticket = lock.get(irregular())?;
            if round % 2 == 0 {
                lock.flush()?;
            }
            let _ = lock.compare_and_swap(round, 1, 0)?;
            lock.unlock()?;
            ticket.take()?;
        }
    }
    let mut u = u.into_window()?;
    for _ in 0..6 {
        if me == 0 {
            let access = u.start(&world.group([1])?)?;
            let _ = (access.fetch(1, irregular())?, access.fetch(1, 2)?);
            access.put(&[5; 7]).to(1, irregular())?;
            access.complete()?;
        } else {
            u = u.post(&world.group([0])?)?.wait()?;
        }
    }
    world.barrier()
}

/// A function that changes a frame, given the number of the frame. Frames of the chosen kind are
/// counted from one. If the function returns a number, the connection breaks after that number of
/// bytes.
type ChangeNth = dyn Fn(u64, &mut Header, &mut Vec<u8>) -> Option<usize> + Send + Sync;

/// Returns two transports between two ranks, with links on which `change` changes the frames of
/// kind `of`.
///
/// Frames that ask which rank holds a lock are not counted, because their number depends on how
/// long the answers take.
fn links(of: u32, change: Arc<ChangeNth>) -> [TransportKind; 2] {
    let way = if of == kind::LOCK || of == kind::ASK || of == kind::ACCESS { [0, 1] } else { [1, 0] };
    let counting = || -> Arc<ChangeFn> {
        let (seen, change) = (Mutex::new(0), change.clone());
        Arc::new(move |on, header, payload| {
            if on != way || header.kind != of {
                return None;
            }
            let is_question = of == kind::LOCK && payload.first() == Some(&HOLDER);
            let number = {
                let seen = &mut *seen.lock().expect("no panic");
                *seen += u64::from(!is_question);
                if is_question { 0 } else { *seen }
            };
            change(number, header, payload)
        })
    };
    let frames = counting();
    let simulated = simulated(move |on, header, payload| _ = frames(on, header, payload));
    [simulated, Tampered::over(counting())]
}

/// Returns the result of each rank over these links.
fn ends_over(link: TransportKind, program: impl Fn(&World) -> Result<()> + Sync) -> [End; 2] {
    let world = ranks(2).transport(link).stall(Some(Duration::ZERO)).end_deadlocks(true);
    tampered::ends(&world.on_stall(|_| ()), program)
}

/// Returns the result of each rank, over `sim` and over TCP, when `tamper` changes frames of kind
/// `of`. The frames are counted from one.
fn ends(of: u32, tamper: impl Fn(u64, &mut Header, &mut Vec<u8>) + Send + Sync + 'static) -> [[End; 2]; 2] {
    let change = move |number, header: &mut Header, payload: &mut Vec<u8>| {
        tamper(number, header, payload);
        None
    };
    links(of, Arc::new(change)).map(|link| ends_over(link, program))
}

/// Returns whether each error names a rank.
///
/// An error about a frame names the rank from which the frame came. Both ranks have handled the
/// frame, so the error may name either of them.
fn named(ends: &[End; 2]) -> bool {
    ends.iter().flatten().all(|(_, text)| text.contains("rank 0") || text.contains("rank 1"))
}

/// Checks that some rank gets an error with these words, and that each error names a rank.
#[track_caller]
fn told(of: u32, words: &str, tamper: impl Fn(u64, &mut Header, &mut Vec<u8>) + Send + Sync + 'static) {
    for ends in ends(of, tamper) {
        assert!(ends.iter().flatten().any(|(_, text)| text.contains(words)), "{words}: {ends:?}");
        assert!(named(&ends), "{ends:?}");
    }
}

/// The kinds of frames that are changed.
const KINDS: [u32; 5] = [kind::LOCK, kind::LOCKED, kind::ASK, kind::ANSWER, kind::ACCESS];

#[test]
fn nothing_is_wrong_with_what_is_not_changed() {
    for of in KINDS {
        let seen = Arc::new(Mutex::new(0));
        let count = seen.clone();
        for ends in ends(of, move |n, _, _| *count.lock().expect("no panic") = n) {
            assert_eq!(ends, [None, None]);
        }
        assert!(*seen.lock().expect("no panic") >= 6, "kind {of} is sent");
    }
}

#[test]
fn requests_that_no_origin_sends_are_refused() {
    const REFUSED: &str = "rank 1 has refused a request of this rank as one that no rank sends";
    told(kind::LOCK, REFUSED, |n, _, payload| payload.truncate(payload.len() - usize::from(n == 3)));
    told(kind::LOCK, REFUSED, |n, _, payload| payload.truncate(if n == 3 { 0 } else { payload.len() }));
    told(kind::LOCK, REFUSED, |n, _, payload| payload[0] |= if n == 2 { 64 } else { 0 });
    // A region that does not exist.
    told(kind::LOCK, REFUSED, |n, _, payload| payload[4] |= if n == 2 { 8 } else { 0 });
    told(kind::LOCK, REFUSED, |n, _, payload| payload[8] ^= if n == 2 { 1 } else { 0 });
    told(kind::LOCK, REFUSED, |n, _, payload| payload[12] ^= if n == 2 { 1 } else { 0 });
    told(kind::ASK, "it did not answer what an access gets", |n, _, payload| {
        payload.truncate(payload.len() - usize::from(n == 2));
    });
    told(kind::ASK, "it did not answer what an access gets", |n, _, payload| payload[15] |= u8::from(n == 2));
    told(kind::ACCESS, "it sent an access that no rank sends", |n, _, payload| {
        payload.truncate(payload.len() - usize::from(n == 2));
    });
}

#[test]
fn requests_of_another_number_kind_or_window_are_refused_and_hang_nobody() {
    let invalid = "it sent an invalid answer to an epoch of a lock";
    told(kind::LOCK, invalid, |n, header, _| header.word += u64::from(n == 4));
    told(kind::LOCK, invalid, |n, header, _| header.word -= u64::from(n == 4));
    let gets = "it did not answer what an access gets";
    told(kind::ASK, gets, |n, header, _| header.word += u64::from(n == 2) << 32);
}

/// The target cannot know on which port the origin waits for the answer. So the target ends the
/// world, and the errors of both ranks name the origin.
#[test]
fn requests_of_a_kind_or_of_a_window_that_does_not_exist_end_the_world() {
    type Change = fn(u64, &mut Header);
    let kinds = "it sent a request of a kind that no rank sends";
    let parts = "it sent a request to lock a part of a window that does not exist";
    let gets = "it asked for what an access gets, of a window that does not exist";
    let changes: [(u32, &str, Change); 8] = [
        (kind::LOCK, kinds, |n, header| header.kind += if n == 2 { 70 } else { 0 }),
        (kind::LOCK, kinds, |n, header| header.kind = if n == 2 { kind::ASK } else { header.kind }),
        (kind::LOCK, parts, |n, header| header.extra += if n == 2 { 9 } else { 0 }),
        (kind::LOCK, parts, |_, header| header.extra += 9),
        (kind::LOCK, parts, |_, header| header.extra = u32::MAX),
        (kind::ASK, kinds, |n, header| header.kind += if n == 2 { 70 } else { 0 }),
        (kind::ASK, gets, |n, header| header.extra += if n == 2 { 9 } else { 0 }),
        (kind::ASK, gets, |n, header| header.extra = if n == 2 { u32::MAX } else { header.extra }),
    ];
    for (of, why, change) in changes {
        for ends in ends(of, move |n, header, _| change(n, header)) {
            for (rank, end) in ends.iter().enumerate() {
                let (class, text) = end.as_ref().unwrap_or_else(|| panic!("rank {rank}, {why}: {ends:?}"));
                assert!(text.starts_with(&format!("PROC_FAILED: rank 0: {why}")), "rank {rank}: {text}");
                assert_eq!(*class, ErrorClass::ProcFailed, "{text}");
            }
        }
    }
}

#[test]
fn frames_that_are_one_byte_too_long_are_refused() {
    for of in KINDS {
        for number in 1..=6 {
            let longer = move |n, _: &mut Header, payload: &mut Vec<u8>| {
                if n == number {
                    payload.push(0);
                }
            };
            for ends in ends(of, longer) {
                assert!(ends.iter().any(Option::is_some) && named(&ends), "kind {of}, {number}: {ends:?}");
            }
        }
    }
}

/// Replaces a frame by the previous frame, as if one frame had been doubled and the next one lost.
#[test]
fn doubled_and_reordered_frames_are_refused() {
    for of in KINDS {
        for number in 2..6 {
            let kept = Mutex::new(None);
            let all = ends(of, move |n, header, payload| {
                let mut kept = kept.lock().expect("no panic");
                if n == number {
                    *kept = Some((*header, payload.clone()));
                } else if n == number + 1 {
                    (*header, *payload) = kept.take().expect("the one before");
                }
            });
            for ends in all {
                assert!(ends.iter().any(Option::is_some) && named(&ends), "kind {of}, {number}: {ends:?}");
            }
        }
    }
}

/// Breaks a connection at a frame: before its head, after a part of the head, after the whole head,
/// or after some of the payload.
#[test]
fn frames_that_are_cut_are_told_of_the_rank_that_sent_them() {
    for of in KINDS {
        for (number, bytes) in [(2, 0), (3, 17), (4, 48), (5, 51)] {
            let cut = move |n, _: &mut Header, _: &mut Vec<u8>| (n == number).then_some(bytes);
            let [_, tcp] = links(of, Arc::new(cut));
            let ends = ends_over(tcp, program);
            assert!(ends.iter().any(Option::is_some) && named(&ends), "kind {of}, {bytes} bytes: {ends:?}");
        }
    }
}

/// The target reads its part of the window after the origin got the error. Only the requests before
/// the refused request have changed the part.
#[test]
fn requests_that_are_refused_have_changed_nothing() {
    type Change = fn(&mut Header, &mut Vec<u8>);
    let changes: [(&str, Change); 6] = [
        ("cut", |_, payload| payload.truncate(payload.len() - 1)),
        ("empty", |_, payload| payload.clear()),
        ("a flag", |_, payload| payload[0] |= 64),
        ("a region", |_, payload| payload[4] |= 8),
        ("a number from later", |header, _| header.word += 1),
        ("a number from before", |header, _| header.word -= 1),
    ];
    for (what, change) in changes {
        let change = move |n, header: &mut Header, payload: &mut Vec<u8>| {
            if n == 4 {
                change(header, payload);
            }
            None
        };
        for link in links(kind::LOCK, Arc::new(change)) {
            let (told, looked, seen) = (AtomicBool::new(false), AtomicBool::new(false), Mutex::new(None));
            let ends = ends_over(link, |world| {
                let u = world.lock_window::<u64>(40)?;
                if world.rank() == 0 {
                    let add = || {
                        let lock = u.lock(1, LockType::Exclusive)?;
                        lock.accumulate([1; 5], Op::Sum, 20)?;
                        lock.unlock()
                    };
                    let result = (0..6).try_for_each(|_| add());
                    told.store(true, Ordering::Release);
                    // The error of this rank becomes an error of the world once the rank leaves.
                    while !looked.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                    return result;
                }
                while !told.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                let result = u.local(|part| {
                    let part = (0..part.len()).map(|at| part.get(at)).collect::<Result<Vec<u64>>>()?;
                    *seen.lock().expect("no panic") = Some(part);
                    Ok(())
                });
                looked.store(true, Ordering::Release);
                result
            });
            assert!(ends[0].is_some() && named(&ends), "{what}: {ends:?}");
            let sums: Vec<u64> = (0..40).map(|at| if (20..25).contains(&at) { 3 } else { 0 }).collect();
            match seen.into_inner().expect("no panic") {
                Some(part) => assert_eq!(part, sums, "{what}"),
                // The answer has another number, and so the world ends before rank 1 reads its
                // part.
                None => assert!(what.starts_with("a number") && ends[1].is_some(), "{what}: {ends:?}"),
            }
        }
    }
}

#[test]
fn answers_that_no_attendant_sends_are_refused() {
    let invalid = "it sent an invalid answer to an epoch of a lock";
    told(kind::LOCKED, invalid, |n, header, _| header.word += u64::from(n == 2));
    told(kind::LOCKED, invalid, |n, header, _| header.kind += u32::from(n == 2));
    told(kind::LOCKED, invalid, |n, _, payload| payload.truncate(if n == 2 { 7 } else { payload.len() }));
    told(kind::LOCKED, invalid, |n, _, payload| payload[0] |= if n == 2 { 32 } else { 0 });
    told(kind::LOCKED, "with more or fewer bytes than it was asked for", |n, _, payload| {
        payload.resize(payload.len() + usize::from(n == 2), 0)
    });
    told(kind::LOCKED, invalid, |n, _, payload| payload[0] = if n == 2 { 3 } else { payload[0] });
    told(kind::LOCKED, "has refused a request", |n, _, payload| {
        if n == 2 {
            payload[0] = 3;
            payload.truncate(8);
        }
    });
    told(kind::ANSWER, "it did not answer what an access gets", |n, _, payload| {
        payload.resize(payload.len() + usize::from(n == 2), 0);
    });
}

/// Makes the target answer that it does not know the number of a datatype. The origin sends the
/// request again, and nothing else happens.
#[test]
fn a_number_that_is_not_known_is_asked_for_again() {
    let missing = |n, header: &mut Header, payload: &mut Vec<u8>| {
        if n == 3 && header.kind == kind::LOCKED {
            (payload[0], payload[4]) = (7, 0);
            payload.truncate(8);
        }
    };
    // The first answer is lost, so the request is carried out twice: a put of the same elements,
    // and a sum that no rank checks.
    assert!(ends(kind::LOCKED, missing).iter().flatten().all(Option::is_none));
    let missing = |n, header: &mut Header, payload: &mut Vec<u8>| {
        if n == 3 {
            header.kind = kind::FAILED;
            *payload = vec![1];
        }
    };
    assert!(ends(kind::ANSWER, missing).iter().flatten().all(Option::is_none));
    // If the number stays unknown, the origin gets an error.
    told(kind::LOCKED, "has refused a request", |n, _, payload| {
        if n >= 3 {
            payload[0] = 7;
            payload.truncate(8);
        }
    });
    told(kind::ANSWER, "it did not answer", |n, header, payload| {
        if n >= 3 {
            header.kind = kind::FAILED;
            *payload = vec![1];
        }
    });
}

#[test]
fn any_bit_that_is_changed_is_told_or_harmless() {
    let mut wrong = 0;
    for seed in 0..if cfg!(debug_assertions) { 50 } else { 800 } {
        let mut random = Random::new(seed);
        let (of, number) = (random.one_of(&KINDS), 1 + random.below(8) as u64);
        let (bit, deep) = (random.below(112), random.once_in(2));
        let ends = ends(of, move |n, header, payload| {
            if n != number {
                return;
            }
            match bit {
                _ if deep && !payload.is_empty() => {
                    let at = (bit * 7919) % payload.len();
                    payload[at] ^= 1 << (bit % 8);
                }
                0..64 => header.word ^= 1 << bit,
                64..80 => header.extra ^= 1 << (bit - 64),
                80..96 => header.kind ^= 1 << (bit - 80),
                _ => drop(payload.pop()),
            }
        });
        wrong += usize::from(ends[0].iter().any(Option::is_some));
    }
    assert!(wrong > 15, "{wrong} were told");
}

/// Returns a request of a lock with operations of each kind, as [`fuzzing::requests`] reads it.
fn good(dice: &mut Random, named: &mut Named) -> Vec<u8> {
    let mut visits = Visits::default();
    let remote = Datatype::elements([1, 2, 5, 11, 13, 20]).unwrap();
    visits.records.push(record(Action::Put, dice.below(24), 1));
    assert!(visits.push_wide(Action::Get, &remote, [&[], &[]]));
    let (records, wide) = (visits.records.to_vec(), visits.wide.clone());
    let forms = wide_records(&records).map(|_| wide.len()).collect();
    let hold = dice.one_of(&[Hold::Shared, Hold::Exclusive]);
    let (holds, ends, site) = (dice.once_in(4), dice.once_in(2), "a.rs:1".to_owned());
    let mut bytes = Vec::new();
    Request { hold, holds, ends, regions: 1, records, wide, forms, site, entering: Vec::new() }
        .write(named, &mut bytes);
    bytes
}

#[test]
fn requests_with_bytes_that_were_changed_touch_nothing_outside_the_window() {
    let (mut dice, mut done) = (Random::new(17), 0);
    for _ in 0..if cfg!(debug_assertions) { 4000 } else { 40_000 } {
        let mut data = vec![dice.bits() as u8];
        let mut named = [(); 4].map(|()| Named::default());
        for _ in 0..1 + dice.below(12) {
            let (of_access, from) = (dice.once_in(3), dice.below(4));
            let mut request = if of_access {
                let window = (dice.below(8) as u64) << 32 | 5;
                let mut bytes = [(dice.below(3) as u64).to_le_bytes(), window.to_le_bytes()].concat();
                write_plain(&Datatype::nest(dice.below(9) as i64, &[(2, 8)], 3).unwrap(), &mut bytes);
                bytes
            } else {
                good(&mut dice, &mut named[from])
            };
            if dice.once_in(2) {
                for _ in 0..1 + dice.below(3) {
                    let at = dice.below(request.len());
                    request[at] = dice.bits() as u8;
                }
                if dice.once_in(4) {
                    request.truncate(dice.below(request.len()));
                }
            }
            data.push(u8::from(of_access) | (from as u8) << 1 | u8::from(dice.once_in(20)) << 3);
            data.extend((request.len() as u16).to_le_bytes());
            data.extend(request);
        }
        done += fuzzing::requests(&data);
    }
    assert!(done > 1000, "{done} requests were carried out");
}
