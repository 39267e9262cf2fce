//! Ranks that poll and never wait.

use std::thread;
use std::time::{Duration, Instant};

use crate::ends::*;
use fencepost_transport::{Channels, Endpoint, Frame, Header, Port, Topology};

/// The longest time that any test here may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Polls until something is found, and never calls `idle`.
fn find<T>(end: &mut Endpoint, mut look: impl FnMut(&mut Endpoint) -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look(end) {
            return found;
        }
        let waited = begun.elapsed();
        assert!(waited < LIMIT, "rank {} has polled for {waited:?}, and nothing came", end.rank());
        thread::yield_now();
    }
}

/// Each frame is the first one of its pair of ranks, so a connection may have to be opened for it.
#[test]
fn a_rank_that_polls_and_never_waits_takes_what_others_send_and_sends() {
    on_all(4, |end| {
        let me = end.rank();
        let others = || (0..4).filter(move |to| *to != me);
        if me == 0 {
            for from in others() {
                let frame = find(end, |end| end.poll(from, Port(7)).unwrap());
                assert_eq!(bytes(&frame), [from as u8]);
                end.release(from, Port(7));
            }
            for to in others() {
                // SAFETY: the payload is copied.
                unsafe {
                    end.post_copy(to, Port(7), Frame { header: Header::default(), payload: &0, len: 1 })
                }
                .unwrap();
                find(end, |end| (end.released(to, Port(7)) == 1).then_some(()));
            }
        } else {
            // SAFETY: the payload is copied.
            unsafe {
                end.post_copy(0, Port(7), Frame { header: Header::default(), payload: &(me as u8), len: 1 })
            }
            .unwrap();
            end.flush();
            let frame = wait(end, |end| end.poll(0, Port(7))).unwrap();
            assert_eq!(bytes(&frame), [0]);
            end.release(0, Port(7));
            end.flush();
        }
    });
}
