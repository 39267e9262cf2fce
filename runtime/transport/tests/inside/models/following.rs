//! Models of elements that are sent after the census of a fence, and are read into their place in
//! the target's window.
//!
//! Rank 0 puts its element into the window of rank 1. After the census it sends the element, and
//! rank 1 pre-posts the place. Rank 1 reads the element when it arrives. The thread of its
//! transport may also read it, at any moment. The element is read into the place if the place is
//! pre-posted, and otherwise into memory of the transport. Outside the fence, and as long as rank 1
//! still reads its own element there, only rank 1 may access the place.

use loom::cell::UnsafeCell;
use loom::thread;

use super::epochs::boards;
use super::{load, model, rejected, sent, store, stored, until};
use crate::shared::notify::NotificationBoard;
use crate::shared::slice::Heap;
use crate::sync::{Arc, Mutex};

const EPOCHS: u64 = 2;

/// The wait that a model leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// Without W1, the element is sent and the place is pre-posted before the other rank has
    /// entered.
    Entry,
    /// Without W2, the place is pre-posted although rank 1 still has to read its own element there.
    ReadsFirst,
    /// Without W3, rank 1 leaves before the element has arrived.
    Leaving,
}

/// The connection between the two ranks.
#[derive(Default)]
struct Wire {
    sent: Option<u64>,
    preposted: bool,
    /// `Some` after the element has arrived. The inner value is the element, or `None` if the
    /// element was read into its place.
    arrived: Option<Option<u64>>,
}

struct Job {
    wire: Mutex<Wire>,
    /// The elements of both ranks. The element of rank 1 is the place to which rank 0 puts.
    windows: [UnsafeCell<u64>; 2],
}

impl Job {
    fn new() -> Arc<Self> {
        Arc::new(Self { wire: Mutex::default(), windows: [0; 2].map(UnsafeCell::new) })
    }

    fn with_wire<R>(&self, act: impl FnOnce(&mut Wire) -> R) -> R {
        act(&mut self.wire.lock().expect("no panic"))
    }

    /// Reads the element that was sent to rank 1, as the transport of rank 1 does.
    fn read(&self) {
        self.with_wire(|wire| {
            let Some(element) = wire.sent.take() else { return };
            let placed = std::mem::take(&mut wire.preposted);
            if placed {
                store(&self.windows[1], element);
            }
            wire.arrived = Some((!placed).then_some(element));
        });
    }
}

fn sender(job: &Job, board: &mut NotificationBoard<2>, e: u64, without: Without) {
    store(&job.windows[0], sent(0, e));
    board.publish(e, &mut Heap).expect("a heap has room");
    if without != Without::Entry {
        until(|| board.arrived(1)); // W1
    }
    let element = load(&job.windows[0]);
    job.with_wire(|wire| wire.sent = Some(element));
    until(|| board.arrived(1));
}

fn receiver(job: &Job, board: &mut NotificationBoard<2>, e: u64, without: Without) {
    let prepost = || job.with_wire(|wire| wire.preposted = true);
    let read_m = || assert_eq!(load(&job.windows[1]), stored(1, e));
    if without == Without::Entry {
        prepost();
    }
    store(&job.windows[1], stored(1, e));
    board.publish(e, &mut Heap).expect("a heap has room");
    until(|| board.arrived(0)); // W1
    match without {
        Without::Entry => read_m(),
        Without::ReadsFirst => {
            prepost();
            read_m();
        }
        _ => {
            read_m(); // W2
            prepost();
        }
    }
    if without == Without::Leaving {
        return;
    }
    until(|| {
        job.read();
        job.with_wire(|wire| wire.arrived.is_some())
    });
    let arrived = job.with_wire(|wire| {
        wire.preposted = false;
        wire.arrived.take()
    });
    if let Some(Some(element)) = arrived {
        store(&job.windows[1], element);
    }
    assert_eq!(load(&job.windows[1]), sent(0, e));
}

fn epochs(without: Without) {
    let job = Job::new();
    let [mut first, mut second] = boards::<2>(2).try_into().ok().expect("two boards");
    let (other, server) = (job.clone(), job.clone());
    let receives = thread::spawn(move || {
        (0..EPOCHS).for_each(|e| receiver(&other, &mut second, e, without));
        second // the other rank may read its row
    });
    let serves = thread::spawn(move || (0..EPOCHS).for_each(|_| server.read()));
    (0..EPOCHS).for_each(|e| sender(&job, &mut first, e, without));
    drop((first, receives.join().expect("a panic ends the model")));
    serves.join().expect("a panic ends the model");
}

fn caught(without: Without) {
    let complaint = rejected(3, move || epochs(without));
    let value = complaint.contains("assertion `left == right` failed");
    assert!(value || complaint.contains("Causality violation"), "{complaint}");
}

#[test]
fn elements_that_follow_the_census_are_accepted() {
    model(2, || epochs(Without::Nothing));
}

#[test]
fn w1_a_place_that_is_pre_posted_before_all_have_entered_is_caught() {
    caught(Without::Entry);
}

#[test]
fn w2_a_place_that_is_pre_posted_before_it_was_read_is_caught() {
    caught(Without::ReadsFirst);
}

#[test]
fn w3_leaving_before_the_element_has_arrived_is_caught() {
    caught(Without::Leaving);
}

/// Rank 1 gives up because rank 0 is lost, and then uses its window. The element of rank 0 may
/// still arrive.
fn rank_1_gives_up(cancels: bool) {
    let job = Job::new();
    job.with_wire(|wire| wire.preposted = true);
    let (sender, server) = (job.clone(), job.clone());
    let sends = thread::spawn(move || sender.with_wire(|wire| wire.sent = Some(1)));
    let serves = thread::spawn(move || server.read());
    if cancels {
        job.with_wire(|wire| wire.preposted = false);
    }
    store(&job.windows[1], 2);
    sends.join().expect("a panic ends the model");
    serves.join().expect("a panic ends the model");
}

#[test]
fn a_place_that_is_cancelled_belongs_to_its_rank() {
    model(3, || rank_1_gives_up(true));
    let complaint = rejected(3, || rank_1_gives_up(false));
    assert!(complaint.contains("Causality violation"), "{complaint}");
}
