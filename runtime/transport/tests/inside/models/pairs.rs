//! Models of the lines of a pair. A rank that reads the number of a post or an access also reads
//! all of its contents. No post or access overwrites an earlier one that the other rank has not
//! read.

use loom::thread;

use super::{model, rejected};
use crate::sync::{Arc, AtomicU64, Ordering};
use crate::{PairLines, Record};

/// The wait that a model leaves out.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    /// Without this wait, a rank ends an access before it has taken the previous post.
    PostBefore,
    /// Without this wait, a rank takes an access before the access has arrived.
    Access,
    /// Without this wait, a rank writes a post into the lines although the other rank has dropped
    /// its last access.
    Dropped,
}

fn record(number: u64) -> Record {
    Record { head: number, value: 10 * number }
}

/// Runs the target of the accesses. It posts, and takes the access of each post. Returns the number
/// of accesses that the target has taken.
fn expose(rounds: u64, (posts, accesses): (&PairLines, &PairLines), without: Without) -> u64 {
    let mut taken = 0;
    for number in 0..rounds {
        // SAFETY: the origin has taken post `number - 2`, since it has ended access `number - 1`.
        unsafe { posts.post(number, 100 + number) };
        loop {
            match accesses.ended(number) {
                Some((word, records)) => {
                    // SAFETY: the origin overwrites these records only after it has taken a post
                    // that the target makes after this read.
                    assert_eq!((word, unsafe { *records }), (number, record(number)));
                    taken += 1;
                    break;
                }
                None if without == Without::Access => break,
                None => thread::yield_now(),
            }
        }
    }
    taken
}

/// Runs the origin of the accesses, which only puts. Before it ends an access, it waits for the
/// previous post.
fn access(rounds: u64, (posts, accesses): (&PairLines, &PairLines), without: Without) {
    let mut taken = 0;
    for number in 0..rounds {
        while taken < number && without != Without::PostBefore {
            match posts.posted(taken) {
                Some(word) => {
                    assert_eq!(word, 100 + taken);
                    taken += 1;
                }
                None => thread::yield_now(),
            }
        }
        // SAFETY: the target had read access `number - 2` before it wrote post `number - 1`.
        // Otherwise loom reports a race.
        unsafe { accesses.end(number, number, &[record(number)]) };
    }
}

/// Runs a target and an origin, each in a thread.
fn one_way(rounds: u64, without: Without) {
    let lines = Arc::new([PairLines::default(), PairLines::default()]);
    let others = Arc::clone(&lines);
    let origin = thread::spawn(move || access(rounds, (&others[0], &others[1]), without));
    let taken = expose(rounds, (&lines[0], &lines[1]), without);
    assert_eq!((taken, origin.join().is_ok()), (rounds, true), "an access was not taken");
}

/// Runs two ranks that each post to the other and access the other. Each rank writes one of the two
/// lines.
fn both_ways(rounds: u64) {
    let lines = Arc::new([PairLines::default(), PairLines::default()]);
    let rank = move |rounds: u64, written: &PairLines, read: &PairLines| {
        let mut posts = 0;
        for number in 0..rounds {
            // SAFETY: the other rank has taken the post before the last one, since it has ended
            // access `number - 1`.
            unsafe { written.post(number, 100 + number) };
            while posts < number {
                match read.posted(posts) {
                    Some(_) => posts += 1,
                    None => thread::yield_now(),
                }
            }
            // SAFETY: the other rank had read access `number - 2` before it wrote post `number -
            // 1`, which this rank has taken.
            unsafe { written.end(number, number, &[record(number)]) };
            let access = loop {
                match read.ended(number) {
                    Some(access) => break access,
                    None => thread::yield_now(),
                }
            };
            // SAFETY: the other rank overwrites these records only after it has taken a post that
            // this rank makes after this read.
            assert_eq!((access.0, unsafe { *access.1 }), (number, record(number)));
        }
    };
    let others = Arc::clone(&lines);
    let other = thread::spawn(move || rank(rounds, &others[1], &others[0]));
    rank(rounds, &lines[0], &lines[1]);
    assert!(other.join().is_ok());
}

/// Runs two ranks. One posts three times. The other rank first drops two accesses, without waiting
/// for their posts, and then polls for the first post. The third post is a frame, which an atomic
/// number represents here.
fn dropped(without: Without) {
    let shared = Arc::new((PairLines::default(), AtomicU64::new(0), AtomicU64::new(0)));
    let others = Arc::clone(&shared);
    let source = thread::spawn(move || {
        let (lines, drops, frames) = &*others;
        for number in 0..2 {
            drops.store(number + 1, Ordering::Release);
        }
        let mut posts = 0;
        while posts < 3 {
            let come =
                lines.posted(posts).or_else(|| (frames.load(Ordering::Acquire) == posts).then_some(posts));
            match come {
                Some(word) => {
                    assert_eq!(word, posts);
                    posts += 1;
                }
                None => thread::yield_now(),
            }
        }
    });
    let (lines, drops, frames) = &*shared;
    for number in 0..3 {
        while drops.load(Ordering::Acquire) < number {
            thread::yield_now();
        }
        if number < 2 || without == Without::Dropped {
            // SAFETY: there were fewer than two posts before this one. Otherwise loom reports a
            // race.
            unsafe { lines.post(number, number) };
        } else {
            frames.store(number, Ordering::Release);
        }
    }
    drop(source.join());
}

#[test]
fn posts_and_accesses_are_seen_whole_and_in_order() {
    model(3, || one_way(3, Without::Nothing));
    model(2, || both_ways(3));
}

#[test]
fn w4_an_access_that_does_not_wait_for_the_post_before_is_caught() {
    let complaint = rejected(3, || one_way(3, Without::PostBefore));
    assert!(complaint.contains("Causality violation"), "{complaint}");
}

#[test]
fn w3_a_rank_that_does_not_wait_for_the_access_is_caught() {
    let complaint = rejected(3, || one_way(3, Without::Access));
    assert!(complaint.contains("Causality violation") || complaint.contains("not taken"), "{complaint}");
}

#[test]
fn a_post_after_dropped_accesses_is_a_frame() {
    model(3, || dropped(Without::Nothing));
}

#[test]
fn w4_a_post_over_one_that_a_source_of_dropped_accesses_has_not_read_is_caught() {
    let complaint = rejected(3, || dropped(Without::Dropped));
    assert!(complaint.contains("Causality violation") || complaint.contains("assertion"), "{complaint}");
}
