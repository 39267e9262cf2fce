//! Models of the queue of frames: wrap-around, growth, release, and the wait for the release of a
//! frame before its payload is reused.

use loom::cell::UnsafeCell;
use loom::thread;

use super::{load, model, pair, rejected, store, until};
use crate::sync::Arc;
use crate::{Channels, CreateJoin, Frame, Header, Leave, Liveness, LocalEnd, Notify, Port, Topology};

/// A payload whose accesses loom checks. Frames have its address.
type Payload = UnsafeCell<u64>;

fn post(end: &mut LocalEnd, word: u64, payload: &Payload) {
    let header = Header { word, kind: 0, extra: 0 };
    let address: *const Payload = payload;
    // SAFETY: the payload lives as long as the model. The model tests whether it stays unchanged.
    unsafe { end.post(1, Port::FENCE, Frame { header, payload: address.cast(), len: size_of::<Payload>() }) }
        .expect("the reader is here");
}

fn value(frame: &Frame) -> u64 {
    // SAFETY: this is the address of a payload that was passed to `post` and lives as long as the
    // model.
    load(unsafe { &*frame.payload.cast::<Payload>() })
}

fn take(end: &mut LocalEnd) -> Frame {
    loop {
        if let Some(frame) = end.poll(0, Port::FENCE).expect("the sender waits for all to be released") {
            return frame;
        }
        thread::yield_now();
    }
}

/// Sends `frames` frames, each with a payload of its own. At most `ahead` frames are unreleased at
/// a time. The frames that are sent ahead fill rings of one and two slots, so the queue wraps
/// around and grows.
fn stream(frames: u64, ahead: u64) {
    let payloads: Arc<Vec<Payload>> = Arc::new((0..frames).map(UnsafeCell::new).collect());
    let (mut sender, mut reader) = pair();
    let kept = Arc::clone(&payloads);
    let other = thread::spawn(move || {
        for n in 0..frames {
            let frame = take(&mut reader);
            assert_eq!((frame.header.word, value(&frame)), (n, n));
            reader.release(0, Port::FENCE);
        }
        drop(kept);
        reader
    });
    for n in 0..frames {
        until(|| sender.released(1, Port::FENCE) + ahead > n);
        post(&mut sender, n, &payloads[n as usize]);
    }
    until(|| sender.released(1, Port::FENCE) >= frames);
    drop(other.join());
}

#[test]
fn frames_that_wait_for_room_in_one_ring_arrive_in_order() {
    model(2, || stream(3, 1));
}

#[test]
fn frames_posted_ahead_of_every_ring_arrive_in_order() {
    model(2, || stream(4, 4));
}

#[test]
fn frames_that_wrap_around_a_ring_that_has_grown_arrive_in_order() {
    model(2, || stream(5, 2));
}

/// Sends two frames from one payload. The payload is written again for the second frame. If
/// `waits`, the sender first waits for the release of the first frame.
fn reuse(waits: bool) {
    let payload = Arc::new(UnsafeCell::new(0));
    let (mut sender, mut reader) = pair();
    let kept = Arc::clone(&payload);
    let other = thread::spawn(move || {
        for n in 0..2 {
            let frame = take(&mut reader);
            assert_eq!(value(&frame), n);
            reader.release(0, Port::FENCE);
        }
        drop(kept);
        reader
    });
    for n in 0..2 {
        until(|| !waits || sender.released(1, Port::FENCE) >= n);
        store(&payload, n);
        post(&mut sender, n, &payload);
    }
    until(|| sender.released(1, Port::FENCE) >= 2);
    drop(other.join());
}

#[test]
fn a_payload_may_be_written_again_once_it_was_released() {
    model(3, || reuse(true));
}

#[test]
fn w4_a_payload_written_before_its_release_is_caught() {
    let complaint = rejected(3, || reuse(false));
    assert!(complaint.contains("Causality violation"), "{complaint}");
}

#[test]
fn a_payload_may_be_written_again_once_its_reader_has_left() {
    model(3, || {
        let payload = Arc::new(UnsafeCell::new(5));
        let (mut sender, mut reader) = pair();
        let kept = Arc::clone(&payload);
        let other = thread::spawn(move || {
            assert_eq!(value(&take(&mut reader)), 5);
            drop(kept);
            reader.leave(Leave::Finished);
        });
        post(&mut sender, 0, &payload);
        until(|| sender.released(1, Port::FENCE) >= 1);
        store(&payload, 6);
        drop(other.join());
    });
}
