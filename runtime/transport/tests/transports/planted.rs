//! Races on purpose: `.ci/run threads` runs each of these under the thread sanitizer, which must report it, or it would
//! not see a real one either. Without the sanitizer they show nothing.
//!
//! A race is seen only where nothing orders its two accesses by chance, such as a rank that looks whether the other has
//! left: so what two ranks do is done in many rounds.

use crate::ends::{PATTERN, exchange, header, poll, post, released, run, settled, threads};
use fencepost_transport::{Endpoint, Transport};
use std::cell::UnsafeCell;
use std::thread;

const ROUNDS: u64 = 500;

/// Plain memory, as a payload or a window is.
struct Plain(UnsafeCell<[u8; 8]>);

// SAFETY: it isn't: these tests race on purpose.
unsafe impl Sync for Plain {}

impl Plain {
    const fn new() -> Self {
        Self(UnsafeCell::new([0; 8]))
    }

    fn write(&self, byte: u8) {
        // SAFETY: none, as above.
        unsafe { self.0.get().write_volatile([byte; 8]) };
    }

    fn read(&self) -> u8 {
        // SAFETY: none, as above.
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
                // SAFETY: none: the payload does not stay as it is.
                unsafe { end.post(1, header(1), PAYLOAD.0.get().cast(), 8) }.unwrap();
                PAYLOAD.write(2);
                released(end, 1, round);
            } else {
                poll(end, 0).unwrap();
                assert!((1..3).contains(&PAYLOAD.read()));
                end.release(0);
            }
        }
    });
}

#[test]
#[ignore = "a race on purpose, for the thread sanitizer"]
fn memory_is_written_after_the_letter_that_leads_to_it() {
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

/// One end in two threads.
struct Shared(*mut Endpoint);

// SAFETY: it isn't: an end belongs to one thread, and this test races on purpose.
unsafe impl Send for Shared {}

#[test]
#[ignore = "a race on purpose, for the thread sanitizer"]
fn two_threads_post_to_one_ring() {
    let mut ends = threads(2);
    let end: *mut Endpoint = &mut ends[0];
    thread::scope(|scope| {
        for _ in 0..2 {
            let shared = Shared(end);
            scope.spawn(move || {
                let shared = shared;
                // SAFETY: none, as above; the end outlives the scope.
                post(unsafe { &mut *shared.0 }, 1, header(1), &PATTERN[..16]).unwrap();
            });
        }
    });
}
