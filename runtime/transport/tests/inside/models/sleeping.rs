//! Models of sleeping: no rank misses the event for which it waits. `park` has no time limit here,
//! so a lost wake-up is a deadlock.

use std::mem::ManuallyDrop;

use loom::cell::UnsafeCell;
use loom::thread;

use super::{model, pair, rejected};
use crate::sync::{Arc, without_fences};
use crate::{
    Cause, Channels, CreateJoin, Frame, Header, Leave, Liveness, LocalEnd, Loss, Lost, Notify, Pause, Port,
    Topology, local,
};

fn wait<T>(end: &mut LocalEnd, mut look: impl FnMut(&mut LocalEnd) -> Option<T>) -> T {
    let mut pause = Pause::new();
    loop {
        if let Some(found) = look(end) {
            return found;
        }
        end.idle(&mut pause);
    }
}

fn post(end: &mut LocalEnd, to: usize) {
    // SAFETY: an empty payload needs no memory.
    unsafe { end.post(to, Port::FENCE, Frame::bare(Header::default())) }.expect("the other is here");
}

fn a_frame_and_its_release() {
    let (a, b) = pair();
    // `ManuallyDrop`, because a dropped end leaves its world, which is not possible while a
    // rejected model unwinds.
    let (mut a, mut b) = (ManuallyDrop::new(a), ManuallyDrop::new(b));
    let other = thread::spawn(move || {
        wait(&mut b, |b| b.poll(0, Port::FENCE).expect("rank 0 does not leave before its frame is released"));
        b.release(0, Port::FENCE);
        b
    });
    post(&mut a, 1);
    wait(&mut a, |a| (a.released(1, Port::FENCE) == 1).then_some(()));
    drop((ManuallyDrop::into_inner(a), other.join().map(ManuallyDrop::into_inner)));
}

#[test]
fn who_waits_for_a_frame_or_a_release_is_woken() {
    model(3, a_frame_and_its_release);
}

#[test]
fn without_the_fences_a_wake_up_is_lost() {
    let complaint = without_fences(|| rejected(3, a_frame_and_its_release));
    assert!(complaint.contains("deadlock"), "{complaint}");
}

#[test]
fn who_waits_for_notifications_and_for_settling_is_woken() {
    model(2, || {
        fn fence(mut end: LocalEnd) -> LocalEnd {
            end.publish(7).expect("nobody leaves");
            for from in 0..2 {
                wait(&mut end, |end| {
                    end.read(from)
                        .expect("nobody leaves")
                        .map(|notification| assert_eq!(notification.word, 7))
                });
            }
            end.settle().expect("nobody leaves");
            wait(&mut end, |end| end.settled(1 - end.rank()).expect("nobody leaves").then_some(()));
            end
        }
        let (a, b) = pair();
        let other = thread::spawn(move || fence(b));
        let a = fence(a);
        drop((a, other.join()));
    });
}

#[test]
fn three_ranks_that_wait_for_one_another_are_woken() {
    model(1, || {
        fn exchange(mut end: LocalEnd) -> LocalEnd {
            end.publish(7).expect("nobody leaves");
            for from in 0..3 {
                wait(&mut end, |end| {
                    end.read(from)
                        .expect("nobody leaves")
                        .map(|notification| assert_eq!(notification.word, 7))
                });
            }
            end
        }
        let mut ends = local(3);
        let first = ends.remove(0);
        let others: Vec<_> = ends.into_iter().map(|end| thread::spawn(move || exchange(end))).collect();
        let first = exchange(first);
        drop((first, others.into_iter().map(|other| other.join()).collect::<Vec<_>>()));
    });
}

#[test]
fn who_waits_for_one_that_leaves_gets_what_it_sent_and_then_the_loss() {
    model(2, || {
        let (mut a, mut b) = pair();
        let other = thread::spawn(move || {
            post(&mut b, 0);
            b.publish(5).expect("rank 0 is here");
            b.leave(Leave::Finished);
        });
        a.publish(5).expect("I am here");
        let lost = Lost { rank: 1, how: Loss::Left(Leave::Finished) };
        wait(&mut a, |a| a.poll(1, Port::FENCE).expect("it was posted before it left"));
        a.release(1, Port::FENCE);
        assert_eq!(wait(&mut a, |a| a.poll(1, Port::FENCE).err()), lost);
        assert_eq!(
            wait(&mut a, |a| a.read(1).expect("it was published").map(|notification| notification.word)),
            5
        );
        assert_eq!(wait(&mut a, |a| a.settled(1).err()), lost);
        drop(other.join());
    });
}

#[test]
fn who_waits_for_a_release_of_one_that_leaves_is_woken() {
    model(3, || {
        let (mut a, mut b) = pair();
        post(&mut a, 1);
        let other = thread::spawn(move || b.leave(Leave::Finished));
        wait(&mut a, |a| (a.released(1, Port::FENCE) == 1).then_some(()));
        drop(other.join());
    });
}

#[test]
fn who_waits_when_the_world_is_ended_is_woken() {
    model(3, || {
        let (mut a, mut b) = pair();
        let other = thread::spawn(move || {
            b.end(Cause { rank: 1, what: "enough".into() });
            b
        });
        let lost = wait(&mut a, |a| a.poll(1, Port::FENCE).err());
        assert_eq!(lost, Lost { rank: 1, how: Loss::Ended("enough".into()) });
        drop(other.join());
    });
}

/// A rank ends the world and then writes its own memory. If `asks`, it first waits until the other
/// rank no longer accesses this memory.
fn end_while_another_touches(asks: bool) {
    let memory = Arc::new(UnsafeCell::new(1));
    let (a, b) = pair();
    let (mut a, mut b) = (ManuallyDrop::new(a), ManuallyDrop::new(b));
    let kept = Arc::clone(&memory);
    let other = thread::spawn(move || {
        if b.touching(true) {
            // SAFETY: loom checks that no rank writes meanwhile; this is what the model tests.
            kept.with(|value| assert_eq!(unsafe { *value }, 1));
        }
        b.touching(false);
        drop(kept);
        b
    });
    a.end(Cause { rank: 0, what: "enough".into() });
    while asks && a.is_touching(1) {
        thread::yield_now();
    }
    // SAFETY: the other rank no longer accesses the memory, and does not begin again. Otherwise
    // loom reports a race.
    memory.with_mut(|value| unsafe { *value = 2 });
    drop((ManuallyDrop::into_inner(a), other.join().map(ManuallyDrop::into_inner)));
}

#[test]
fn who_ended_the_world_may_use_its_memory_when_nobody_touches_it() {
    model(3, || end_while_another_touches(true));
}

#[test]
fn memory_used_while_another_may_touch_it_is_caught() {
    let complaint = rejected(3, || end_while_another_touches(false));
    assert!(complaint.contains("Causality violation"), "{complaint}");
}

#[test]
fn without_the_fences_one_begins_to_touch_unseen() {
    let complaint = without_fences(|| rejected(3, || end_while_another_touches(true)));
    assert!(complaint.contains("Causality violation") || complaint.contains("left == right"), "{complaint}");
}
