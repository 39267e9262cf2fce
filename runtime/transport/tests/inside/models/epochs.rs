//! Models of epochs over the exchange of notifications. One model has all waits. Each of the others
//! leaves out one of the waits.
//!
//! Two ranks each have a window, and arenas for the elements that they send. In an epoch a rank
//! stores into its window, fills an arena, and publishes. It reads the window of the other rank,
//! and settles. It applies the arena of the other rank to its own window, and leaves.

use loom::cell::UnsafeCell;
use loom::thread;

use super::{load, model, rejected, sent, store, stored, until};
use crate::shared::notify::{NotificationBoard, NotificationTables};
use crate::shared::slice::Heap;
use crate::sync::Arc;
use crate::{Cause, Channels, CreateJoin, Liveness, Notify, Topology, local};

/// The wait that a model leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// Without W1, a rank accesses the other rank's window before the other rank has entered.
    Entry,
    /// Without W2, a rank changes its window before the other rank has read this window.
    ReadsFirst,
    /// Without W3, a rank leaves before the other rank has read this rank's window. Nothing is
    /// applied.
    Leaving,
    /// Without W4, a rank uses one arena instead of two alternating ones.
    Reuse,
    /// Without W6, ranks leave out the entry of the second epoch, because the first one ended
    /// without failure.
    Composition,
}

struct Memory {
    windows: [UnsafeCell<u64>; 2],
    /// The arenas, by `[rank][set]`.
    arenas: [[UnsafeCell<u64>; 2]; 2],
}

impl Memory {
    fn new() -> Self {
        Self {
            windows: [0; 2].map(UnsafeCell::new),
            arenas: [[0; 2]; 2].map(|sets| sets.map(UnsafeCell::new)),
        }
    }
}

/// Returns a board for each rank.
pub(super) fn boards<const SETS: usize>(size: usize) -> Vec<NotificationBoard<SETS>> {
    let tables = NotificationTables::place(size, &mut Heap).expect("a heap has room");
    (0..size).map(|rank| NotificationBoard::new(rank, size, tables.clone())).collect()
}

fn epoch<const SETS: usize>(
    rank: usize,
    e: u64,
    board: &mut NotificationBoard<SETS>,
    memory: &Memory,
    without: Without,
) {
    let peer = 1 - rank;
    let set = if without == Without::Reuse { 0 } else { e as usize % 2 };
    let only_gets = without == Without::Leaving;
    store(&memory.windows[rank], stored(rank, e));
    store(&memory.arenas[rank][set], sent(rank, e));
    board.draft(peer).count = e as u32;
    board.publish(e, &mut Heap).expect("a heap has room");
    until(|| board.arrived(rank));
    let enters = match without {
        Without::Entry => false,
        Without::Composition => e == 0,
        _ => true,
    };
    if enters {
        until(|| board.arrived(peer)); // W1
    }
    let got = load(&memory.windows[peer]);
    assert!(!enters || got == stored(peer, e));
    until(|| board.arrived(peer));
    assert_eq!(
        board.read(peer).map(|notification| (notification.word, notification.count)),
        Some((e, e as u32))
    );
    board.settle();
    if !matches!(without, Without::ReadsFirst | Without::Leaving) {
        until(|| board.settled(peer)); // W2, or W3 if nothing is applied
    }
    if !only_gets {
        let value = load(&memory.arenas[peer][set]);
        assert_eq!(value, sent(peer, e));
        store(&memory.windows[rank], value);
    }
}

fn epochs<const SETS: usize>(count: u64, without: Without) {
    let memory = Arc::new(Memory::new());
    let mut boards = boards::<SETS>(2);
    let run = move |rank: usize, mut board: NotificationBoard<SETS>, memory: Arc<Memory>| {
        for e in 0..count {
            epoch(rank, e, &mut board, &memory, without);
        }
        board // others may read its row
    };
    let (second, first) = (boards.pop().expect("two boards"), boards.pop().expect("two boards"));
    let others = Arc::clone(&memory);
    let other = thread::spawn(move || run(1, second, others));
    let first = run(0, first, memory);
    drop((first, other.join().expect("a panic ends the model")));
}

fn caught(without: Without) {
    let complaint = rejected(3, move || epochs::<2>(2, without));
    assert!(complaint.contains("Causality violation"), "{complaint}");
}

#[test]
fn epochs_with_all_waits_are_accepted() {
    model(2, || epochs::<2>(3, Without::Nothing));
}

#[test]
fn w1_a_window_touched_before_its_owner_has_entered_is_caught() {
    caught(Without::Entry);
}

#[test]
fn w2_an_element_written_before_it_was_read_is_caught() {
    caught(Without::ReadsFirst);
}

#[test]
fn w3_leaving_before_the_reader_has_finished_is_caught() {
    caught(Without::Leaving);
}

#[test]
fn w4_an_arena_used_again_at_once_is_caught() {
    caught(Without::Reuse);
}

/// Exchanges notifications only, without windows. So only the two sets of notifications keep a
/// notification from being overwritten. Each rank sends a count to the next rank. Its notifications
/// to the remaining ranks are equal.
fn notifications<const SETS: usize>(ranks: usize, exchanges: u64) {
    let said = move |from: usize, to: usize| if to == (from + 1) % ranks { 10 * from as u32 + 1 } else { 0 };
    let run = move |rank: usize, mut board: NotificationBoard<SETS>| {
        for e in 0..exchanges {
            for to in 0..ranks {
                board.draft(to).count = said(rank, to);
            }
            board.publish(e, &mut Heap).expect("a heap has room");
            for from in 0..ranks {
                until(|| board.arrived(from));
                let notification =
                    board.read(from).map(|notification| (notification.word, notification.count));
                assert_eq!(notification, Some((e, said(from, rank))));
            }
        }
        board // others may read its row
    };
    let mut boards = boards::<SETS>(ranks).into_iter().enumerate();
    let (rank, first) = boards.next().expect("a board");
    let others: Vec<_> = boards.map(|(rank, board)| thread::spawn(move || run(rank, board))).collect();
    let first = run(rank, first);
    let others: Vec<_> =
        others.into_iter().map(|other| other.join().expect("a panic ends the model")).collect();
    drop((first, others));
}

#[test]
fn notifications_are_read_whole_in_their_own_exchange() {
    model(3, || notifications::<2>(2, 3));
    model(0, || notifications::<2>(3, 2));
}

#[test]
fn w5_one_set_of_notifications_instead_of_two_is_caught() {
    for ranks in [2, 3] {
        let complaint = rejected(3, move || notifications::<1>(ranks, 2));
        assert!(complaint.contains("Causality violation"), "{complaint}");
    }
}

#[test]
fn w6_an_epoch_that_trusts_how_the_last_one_ended_is_caught() {
    caught(Without::Composition);
}

/// Runs a model in which rank 2 dies after it has notified rank 1 and before it notifies rank 0.
/// Rank 1 reads the window of rank 0. Rank 0 ends the world and then writes its window. If `waits`,
/// rank 0 waits before that write until rank 1 no longer accesses the window.
fn one_notification_is_missing(waits: bool) {
    let memory = Arc::new(UnsafeCell::new(1));
    let mut ends = local(3);
    let (dead, mut b, mut a) = (ends.pop(), ends.pop().expect("an end"), ends.pop().expect("an end"));
    let mut boards = boards::<2>(3);
    let mut died = boards.pop().expect("a board");
    died.publish(1, &mut Heap).expect("a heap has room");
    let (mut second, mut first) = (boards.pop().expect("a board"), boards.pop().expect("a board"));
    let kept = Arc::clone(&memory);
    let other = thread::spawn(move || {
        second.publish(1, &mut Heap).expect("a heap has room");
        until(|| second.arrived(0)); // the notification of rank 2 has arrived as well
        assert!(second.arrived(2));
        if b.touching(true) {
            assert_eq!(load(&kept), 1);
        }
        b.touching(false);
        drop(kept);
        (b, second)
    });
    first.publish(1, &mut Heap).expect("a heap has room");
    // No notification of rank 2 arrives.
    a.end(Cause { rank: 2, what: "it died".into() });
    while waits && a.is_touching(1) {
        thread::yield_now();
    }
    store(&memory, 2);
    drop((a, other.join(), dead, first, died));
}

#[test]
fn a_rank_that_misses_a_notification_waits_until_nobody_touches_its_window() {
    model(2, || one_notification_is_missing(true));
}

#[test]
fn a_rank_that_misses_a_notification_and_leaves_at_once_is_caught() {
    let complaint = rejected(3, || one_notification_is_missing(false));
    assert!(complaint.contains("Causality violation"), "{complaint}");
}
