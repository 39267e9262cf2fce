//! Tests of forged messages of a sparse or reduced census. The contents of such a message are
//! changed, and its digest matches the changed contents.
//!
//! If a message is wrong, every rank gets an error that names the sender, or has already completed
//! all of its calls. No rank gets a wrong result.

use crate::api::run::ranks;
use crate::census::state::items::digest;
use crate::fence::INLINE;
use crate::protocol::frames::kind;
use crate::state::world::World;
use crate::testing::tampered::{self, End, simulated};
use fencepost_planner::census::Census;
use fencepost_planner::element::Op;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::Header;
use std::sync::Mutex;

const RANKS: usize = 4;
/// The sender and the receiver of the changed messages, in the first round and in the last.
const WAYS: [[usize; 2]; 2] = [[0, 1], [0, 2]];
/// The number of the census of the first fence with operations. Censuses are counted from one.
const FENCE: u64 = 2;
/// The number of the census of an allreduce.
const ALLREDUCE: u64 = 4;

/// Creates a window, and then executes three steps. In each step, every rank puts to all others,
/// fences, and takes part in an allreduce. The first allreduce also creates a window of its own.
fn program(world: &World) -> Result<()> {
    let wrong = |what: String| Err(Error::new(ErrorClass::Other, format!("wrong: {what}")));
    let me = world.rank() as u64;
    let mut u = world.window::<u64>(RANKS)?;
    for step in 0..3 {
        for to in (0..RANKS).filter(|&to| to != world.rank()) {
            u.put([10 * step + me]).to(to, world.rank())?;
        }
        u.fence()?;
        let expected = (0..RANKS as u64).map(|from| if from == me { 0 } else { 10 * step + from });
        if !u.iter().copied().eq(expected) {
            return wrong(format!("{:?} in step {step}", &u[..]));
        }
        let mut sum = [step + me];
        world.allreduce(&mut sum, Op::Sum)?;
        if sum != [4 * step + 6] {
            return wrong(format!("the sum {sum:?} in step {step}"));
        }
    }
    world.barrier()
}

/// An encoded item: its origin, its target, and its bytes.
type Item = (u32, u32, Vec<u8>);

fn items(mut bytes: &[u8]) -> Vec<Item> {
    let mut items = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<16>() {
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let (own, rest) = rest.split_at(word(8) as usize);
        items.push((word(0), word(4), own.to_vec()));
        bytes = rest;
    }
    items
}

fn bytes(items: &[Item]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (origin, target, own) in items {
        bytes.extend([origin.to_le_bytes(), target.to_le_bytes()].concat());
        bytes.extend((own.len() as u64).to_le_bytes());
        bytes.extend(own);
    }
    bytes
}

/// Returns the result of each rank when `tamper` changes the messages of sparse censuses. The
/// messages are counted from one for each pair of sender and receiver.
fn ends(tamper: impl Fn([usize; 2], u64, &mut Header, &mut Vec<u8>) + Send + Sync + 'static) -> [End; RANKS] {
    ends_of(Census::Sparse, kind::CENSUS, tamper)
}

/// Does the same as [`ends`] with this census and for frames of this kind.
fn ends_of(
    census: Census,
    kind: u32,
    tamper: impl Fn([usize; 2], u64, &mut Header, &mut Vec<u8>) + Send + Sync + 'static,
) -> [End; RANKS] {
    let seen = Mutex::new([[0; RANKS]; RANKS]);
    let links = simulated(move |way, header, payload| {
        if header.kind == kind {
            let number = {
                let seen = &mut seen.lock().expect("no panic")[way[0]][way[1]];
                *seen += 1;
                *seen
            };
            tamper(way, number, header, payload);
        }
    });
    tampered::ends(&ranks(RANKS).transport(links).census(census), program)
}

/// Checks that some rank gets an error, and that each error names `rank`.
#[track_caller]
fn told(ends: &[End], rank: usize, what: &str) {
    let names = |(_, text): &(ErrorClass, String)| {
        assert!(!text.contains("wrong:"), "{what}: {text}");
        text.contains(&format!("rank {rank}"))
    };
    assert!(ends.iter().any(Option::is_some), "{what}: nobody is told");
    assert!(ends.iter().flatten().all(names), "{what}: {ends:?}");
}

/// Returns the result of each rank when the items of one message are changed. The digest of the
/// message matches the change.
fn forged(
    [from, to]: [usize; 2],
    census: u64,
    change: impl Fn(&mut Vec<Item>) + Send + Sync + 'static,
) -> [End; RANKS] {
    ends(move |way, number, header, payload| {
        if (way, number) == ([from, to], census) {
            let mut all = items(&payload[8..]);
            change(&mut all);
            let all = bytes(&all);
            payload.truncate(8);
            payload.extend(&all);
            let digest = digest(number, header.word, header.extra, &all);
            payload[..8].copy_from_slice(&digest.to_le_bytes());
        }
    })
}

#[test]
fn messages_that_nobody_has_changed_are_taken() {
    for way in WAYS {
        for census in [FENCE, ALLREDUCE] {
            let ends = forged(way, census, |items| assert!(!items.is_empty()));
            assert!(ends.iter().all(Option::is_none), "{ends:?}");
        }
    }
}

/// Replaces a message by the previous message, as if the previous message had been sent twice and
/// the other one lost.
#[test]
fn a_message_of_the_census_before_is_not_taken_for_one_of_this() {
    for way in WAYS {
        for census in 2..6 {
            let kept = Mutex::new(None);
            let ends = ends(move |on, number, header, payload| {
                let mut kept = kept.lock().expect("no panic");
                if (on, number + 1) == (way, census) {
                    *kept = Some((*header, payload.clone()));
                } else if (on, number) == (way, census) {
                    (*header, *payload) = kept.take().expect("the one before");
                }
            });
            told(&ends, 0, &format!("{way:?}, census {census}"));
        }
    }
}

/// Returns a change of the words that rank 0 sends to rank `to` in a fence: the flags, the count,
/// and the two words of the address.
fn saying(
    to: u32,
    change: impl Fn(&mut [u8]) + Send + Sync + 'static,
) -> impl Fn(&mut Vec<Item>) + Send + Sync {
    move |items: &mut Vec<Item>| {
        let mut own = items.iter_mut().filter(|item| (item.0, item.1) == (0, to));
        change(&mut own.next().expect("rank 0 puts to all").2);
    }
}

/// Returns the result of each rank when the note of the first fence is changed. The digest of the
/// note matches the change.
fn forged_note(
    [from, to]: [usize; 2],
    change: impl Fn(&mut Vec<Item>) + Send + Sync + 'static,
) -> [End; RANKS] {
    ends_of(Census::Reduced, kind::NOTE, move |way, number, header, payload| {
        if (way, number) == ([from, to], 1) {
            let mut all = vec![(from as u32, to as u32, payload.split_off(8))];
            change(&mut all);
            payload.extend(&all[0].2);
            let digest = digest(FENCE, header.word, header.extra, &all[0].2);
            payload[..8].copy_from_slice(&digest.to_le_bytes());
        }
    })
}

/// Returns the result of each rank when the counts of one message are changed. Each count is a
/// number of notes and the sum of the ranks that sent these notes.
fn forged_counts(
    [from, to]: [usize; 2],
    census: u64,
    change: impl Fn(&mut Vec<[u32; 2]>) + Send + Sync + 'static,
) -> [End; RANKS] {
    ends_of(Census::Reduced, kind::COUNTS, move |way, number, header, payload| {
        if (way, number) == ([from, to], census) {
            let word = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().expect("four bytes"));
            let mut all = (8..payload.len()).step_by(8).map(|at| [word(at), word(at + 4)]).collect();
            change(&mut all);
            let all: Vec<u8> = all.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
            payload.truncate(8);
            payload.extend(&all);
            let digest = digest(number, header.word, header.extra, &all);
            payload[..8].copy_from_slice(&digest.to_le_bytes());
        }
    })
}

#[test]
fn counts_and_notes_that_nobody_has_changed_are_taken() {
    for way in WAYS {
        for ends in [
            forged_note(way, |_| ()),
            forged_counts(way, FENCE, |_| ()),
            forged_counts(way, ALLREDUCE, |_| ()),
        ] {
            assert!(ends.iter().all(Option::is_none), "{ends:?}");
        }
    }
}

/// The counts that rank 0 sends to rank 2 include the note of rank 0. The counts that rank 0 sends
/// to rank 1 include the notes of ranks 0 and 2.
#[test]
fn counts_that_cannot_be_are_refused() {
    for way in WAYS {
        for census in [FENCE, ALLREDUCE] {
            let what = |change: &str| format!("{way:?}, census {census}: {change}");
            told(&forged_counts(way, census, |all| all.truncate(all.len() - 1)), 0, &what("cut short"));
            told(&forged_counts(way, census, |all| all.clear()), 0, &what("none"));
            told(&forged_counts(way, census, |all| all.push([0, 0])), 0, &what("one more"));
            told(&forged_counts(way, census, |all| all[0][0] += 2), 0, &what("more than it has heard of"));
            told(&forged_counts(way, census, |all| all[0] = [1, 3]), 0, &what("of a rank elsewhere"));
            told(&forged_counts(way, census, |all| all[0] = [0, 2]), 0, &what("nobody, and who it is"));
        }
    }
    let told = |notes: [u32; 2], what: &str| {
        told(&forged_counts(WAYS[0], FENCE, move |all| all[0] = notes), 0, what);
    };
    told([1, 2], "without its own");
    told([2, 9], "of another that is none");
    told([2, 1], "of the rank itself");
    told([2, 3], "of a rank that has come");
}

/// No rank sends a note for an allreduce, since the contents of an allreduce are sent with the
/// counts.
#[test]
fn a_count_of_notes_that_nobody_has_sent_is_told() {
    for notes in [[1, 0], [1, 2], [2, 2]] {
        let ends = forged_counts(WAYS[0], ALLREDUCE, move |all| all[0] = notes);
        told(&ends, 0, &format!("{notes:?}"));
    }
}

/// Replaces each frame by the frame of the previous census, or truncates it.
#[test]
fn a_note_of_the_census_before_or_cut_short_is_not_taken() {
    for kind in [kind::NOTE, kind::COUNTS] {
        for way in WAYS {
            // Only the three fences have notes.
            for census in 2..if kind == kind::NOTE { 4 } else { 6 } {
                let kept = Mutex::new(None);
                let ends = ends_of(Census::Reduced, kind, move |on, number, header, payload| {
                    let mut kept = kept.lock().expect("no panic");
                    if (on, number + 1) == (way, census) {
                        *kept = Some((*header, payload.clone()));
                    } else if (on, number) == (way, census) {
                        (*header, *payload) = kept.take().expect("the one before");
                    }
                });
                told(&ends, 0, &format!("{way:?}, census {census}"));
                let ends = ends_of(Census::Reduced, kind, move |on, number, _, payload| {
                    if (on, number) == (way, census) {
                        payload.pop();
                    }
                });
                told(&ends, 0, &format!("{way:?}, census {census}, cut short"));
            }
        }
    }
}

#[test]
fn what_a_rank_cannot_say_in_a_fence_is_refused() {
    for way in WAYS {
        refused_in_a_fence(way, |change| forged(way, FENCE, change));
        refused_in_a_fence(way, |change| forged_note(way, change));
    }
}

/// A change of the items of a message. A note is one item.
type Change = Box<dyn Fn(&mut Vec<Item>) + Send + Sync>;

/// Checks that ranks refuse changed words of rank 0 in a fence. `forged` makes a change and returns
/// the result of each rank.
fn refused_in_a_fence(way: [usize; 2], forged: impl Fn(Change) -> [End; RANKS]) {
    let to = way[1] as u32;
    // Some of these flags mean that a rank has failed, that it reads and exposes memory, that it
    // lists its reads, or that it is in another call.
    for flag in [0, 1, 3, 4, 5, 6, 7, 8, 15, 16, 31] {
        let ends = forged(Box::new(saying(to, move |own| own[flag / 8] ^= 1 << (flag % 8))));
        told(&ends, 0, &format!("{way:?}, flag {flag}"));
    }
    let rides = |own: &mut [u8]| own[8..16].copy_from_slice(&(INLINE as u64).to_le_bytes());
    told(&forged(Box::new(saying(to, rides))), 0, "a record that rides");
    for count in [0, 2, 3, 255] {
        told(&forged(Box::new(saying(to, move |own| own[4] = count))), 0, "another number of frames");
    }
    let whether = forged(Box::new(saying(to, |own| own[0] ^= 4)));
    assert!(whether.iter().all(Option::is_none), "whether its operations have changed is up to it");
}

#[test]
fn items_that_are_left_out_doubled_or_elsewhere_are_refused() {
    for way in WAYS {
        let to = way[1] as u32;
        for census in [FENCE, ALLREDUCE] {
            let own = move |item: &Item| item.0 == 0 && (item.1 == to || item.1 == u32::MAX);
            let ends = forged(way, census, move |items| items.retain(|item| !own(item)));
            told(&ends, 0, &format!("{way:?}, census {census}: without it"));
            let ends = forged(way, census, move |items| {
                let at = items.iter().position(own).expect("rank 0 has something for all");
                items.insert(at, items[at].clone());
            });
            told(&ends, 0, &format!("{way:?}, census {census}: twice"));
            for other in [1, 2, 3, 4, 9] {
                let ends = forged(way, census, move |items| {
                    let own = items.iter_mut().find(|item| own(item));
                    own.expect("rank 0 has something for all").0 = other;
                });
                told(&ends, 0, &format!("{way:?}, census {census}: from {other}"));
            }
            let ends = forged(way, census, move |items| items[0].1 = (to + 1) % RANKS as u32);
            told(&ends, 0, &format!("{way:?}, census {census}: for another"));
            let ends = forged(way, census, |items| items[0].2.push(0));
            told(&ends, 0, &format!("{way:?}, census {census}: longer"));
        }
    }
}
