//! Deliberate races. `.ci/run threads` runs each of these tests under the thread sanitizer, which
//! must report the race. Otherwise the sanitizer would miss a real race as well. Without the
//! sanitizer these tests show nothing.
//!
//! A race is reported only if nothing happens to order its two accesses. For example, a rank's
//! check whether the other rank has left may order them. So each pair of accesses is repeated in
//! many rounds.

use crate::ends::{PATTERN, exchange, header, poll, post, released, run, settled, threads};
use fencepost_transport::{Channels, Endpoint, Frame, Notify, Port, Topology};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const ROUNDS: u64 = 500;

/// Plain memory, like a payload or a window.
struct Plain(UnsafeCell<[u8; 8]>);

// SAFETY: this is not sound, since these tests race deliberately.
unsafe impl Sync for Plain {}

impl Plain {
    const fn new() -> Self {
        Self(UnsafeCell::new([0; 8]))
    }

    fn write(&self, byte: u8) {
        // SAFETY: this is not sound, as above.
        unsafe { self.0.get().write_volatile([byte; 8]) };
    }

    fn read(&self) -> u8 {
        // SAFETY: this is not sound, as above.
        unsafe { self.0.get().read_volatile()[0] }
    }
}

#[test]
#[ignore = "a race on purpose, for the thread sanitizer"]
fn a_payload_is_written_before_it_is_released() {
    static PAYLOAD: Plain = Plain::new();
    run(threads(2), |end| {
        for round in 1..=ROUNDS {
            if end.rank() == 0 {
                PAYLOAD.write(1);
                // SAFETY: this is not sound, since the payload does not stay unchanged.
                unsafe {
                    end.post(
                        1,
                        Port::FENCE,
                        Frame { header: header(1), payload: PAYLOAD.0.get().cast(), len: 8 },
                    )
                }
                .unwrap();
                PAYLOAD.write(2);
                released(end, 1, round);
            } else {
                poll(end, 0).unwrap();
                assert!((1..3).contains(&PAYLOAD.read()));
                end.release(0, Port::FENCE);
            }
        }
    });
}

#[test]
#[ignore = "a race on purpose, for the thread sanitizer"]
fn memory_is_written_after_the_notification_that_leads_to_it() {
    static WINDOW: Plain = Plain::new();
    run(threads(2), |end| {
        for round in 1..=ROUNDS {
            exchange(end, round).unwrap();
            if end.rank() == 0 {
                WINDOW.write(1);
            } else {
                assert!(WINDOW.read() < 2);
            }
        }
    });
}

#[test]
#[ignore = "a race on purpose, for the thread sanitizer"]
fn memory_is_read_after_the_exchange_was_settled() {
    static WINDOW: Plain = Plain::new();
    run(threads(2), |end| {
        for round in 1..=ROUNDS {
            exchange(end, round).unwrap();
            end.settle().unwrap();
            if end.rank() == 0 {
                settled(end, 1).unwrap();
                WINDOW.write(1);
            } else {
                assert!(WINDOW.read() < 2);
            }
        }
    });
}

/// An end that two threads use.
struct Shared(*mut Endpoint);

// SAFETY: this is not sound. An end belongs to one thread, and this test races deliberately.
unsafe impl Send for Shared {}

#[test]
#[ignore = "a race on purpose, for the thread sanitizer"]
fn two_threads_post_to_one_ring() {
    let mut ends = threads(2);
    // The ring has room for all frames. A thread that creates a ring takes locks, which would order
    // the threads.
    post(&mut ends[0], 1, header(1), &PATTERN[..16]).unwrap();
    let end: *mut Endpoint = &mut ends[0];
    let running = AtomicUsize::new(0); // relaxed, so that it orders nothing either
    thread::scope(|scope| {
        for _ in 0..2 {
            let shared = Shared(end);
            let running = &running;
            scope.spawn(move || {
                let shared = shared;
                running.fetch_add(1, Ordering::Relaxed);
                while running.load(Ordering::Relaxed) < 2 {
                    thread::yield_now();
                }
                for _ in 0..4 {
                    // SAFETY: this is not sound, as above. The end outlives the scope.
                    post(unsafe { &mut *shared.0 }, 1, header(1), &PATTERN[..16]).unwrap();
                }
            });
        }
    });
}
