//! Payloads that are copied when they are posted.

use crate::ends::*;
use fencepost_transport::{COPIED, Channels, Frame, Header, Port, Topology};

#[test]
fn a_short_payload_may_be_used_again_once_it_was_posted_as_a_copy() {
    on_all(4, |end| {
        let me = end.rank();
        for len in 0..=COPIED {
            for to in (0..4).filter(|to| *to != me) {
                let mut payload = vec![(10 * me + to) as u8; len];
                // SAFETY: the payload is copied.
                unsafe {
                    end.post_copy(
                        to,
                        Port(7),
                        Frame { header: Header::default(), payload: payload.as_ptr(), len },
                    )
                }
                .unwrap();
                payload.fill(0xff);
            }
        }
        for from in (0..4).filter(|from| *from != me) {
            for len in 0..=COPIED {
                let frame = wait(end, |end| end.poll(from, Port(7))).unwrap();
                assert_eq!(bytes(&frame), vec![(10 * from + me) as u8; len]);
                end.release(from, Port(7));
            }
        }
    });
}
