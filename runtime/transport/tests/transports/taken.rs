//! Payloads that a rank takes out of their frames.

use crate::ends::*;
use fencepost_transport::{Channels, Header, Port, Topology};

/// A rank can take a payload if it does not reach the memory of the sender and has not offered
/// memory for the payload. It can also take payloads of its own frames. Otherwise the payload stays
/// in the frame.
#[test]
fn a_payload_that_is_taken_stays_readable_when_its_frame_is_released_and_others_come() {
    on_all(3, |end| {
        let (me, size) = (end.rank(), end.size());
        for round in 0..3 {
            for to in 0..size {
                for n in 0..4 {
                    let header = Header { word: n as u64, ..Header::default() };
                    post(end, to, header, piece(me, to, 4 * round + n)).unwrap();
                }
            }
            let mut taken = Vec::new();
            for from in 0..size {
                for n in 0..4 {
                    let frame = poll(end, from).unwrap();
                    assert_eq!(frame.header.word, n as u64, "the frame before was released");
                    let expected = piece(from, me, 4 * round + n);
                    let payload = end.take(from, Port::FENCE);
                    if end.reaches(from) && from != me {
                        assert!(payload.is_none(), "it is in memory of its sender");
                    }
                    match payload {
                        Some(payload) => taken.push((from, payload, expected)),
                        None => {
                            assert_eq!(bytes(&poll(end, from).unwrap()), expected, "it is not released");
                            end.release(from, Port::FENCE);
                        }
                    }
                }
            }
            let far = (0..size).filter(|&from| from != me && !end.reaches(from)).count();
            assert!(taken.len() >= 4 * far, "{} of {far} ranks", taken.len());
            for to in 0..size {
                released(end, to, 4 * (round as u64 + 1));
            }
            for (at, (from, payload, expected)) in taken.into_iter().enumerate() {
                assert_eq!(payload.bytes(), expected);
                if at % 2 == 0 {
                    end.recycle(from, payload);
                }
            }
        }
        exchange(end, 0).unwrap();
    });
}
