//! Memory that a rank offers for payloads. The payload of the expected frame is written to this
//! memory. Nothing is written outside of the offered memory.

use crate::ends::*;
use fencepost_transport::{Channels, Endpoint, Header, Port, Topology};
use std::ptr::slice_from_raw_parts_mut;

/// The payload is long enough to arrive in several pieces.
static LONG: [u8; 300_000] = {
    let mut long = [0; 300_000];
    let mut i = 0;
    while i < long.len() {
        long[i] = (i * 7 % 249 + i / 1000 % 3) as u8;
        i += 1;
    }
    long
};

/// Memory of this rank. The transport may write to it only between pre-posting and the end of
/// cancelling.
struct Posted(Vec<u8>);

impl Posted {
    const UNTOUCHED: u8 = 250; // a byte that LONG does not contain

    fn new() -> Self {
        Self(vec![Self::UNTOUCHED; LONG.len() + 16])
    }

    /// Pre-posts all bytes except eight on either side. Returns the address.
    fn prepost(
        &mut self,
        end: &mut Endpoint,
        from: usize,
        port: Port,
        ahead: u64,
        header: Header,
        less: usize,
    ) -> *const u8 {
        let to = self.0.as_mut_ptr().wrapping_add(8);
        // SAFETY: the memory has this number of bytes. The tests access it only after the frame was
        // released or the buffer was cancelled.
        unsafe { end.prepost(from, port, ahead, header, slice_from_raw_parts_mut(to, LONG.len() - less)) };
        to
    }

    /// Returns whether the memory has the expected contents: the buffer has the payload if it was
    /// `used`, and all other bytes are unchanged.
    fn is_kept(&self, used: bool) -> bool {
        let (before, rest) = self.0.split_at(8);
        let (place, after) = rest.split_at(LONG.len());
        let whole = |bytes: &[u8]| bytes.iter().all(|&byte| byte == Self::UNTOUCHED);
        whole(before) && whole(after) && (if used { place == LONG } else { whole(place) })
    }
}

/// Returns the ends of two ranks on every transport, once with the port of fences and once with
/// another port.
fn on_ports() -> impl Iterator<Item = ((String, Vec<Endpoint>), Port)> {
    [Port::FENCE, Port::ELEMENTS].into_iter().flat_map(|port| transports(2).map(move |ends| (ends, port)))
}

#[test]
fn a_payload_comes_to_the_place_that_was_offered_for_it_if_it_is_the_right_one() {
    for ((name, ends), port) in on_ports() {
        run(ends, |end| {
            let peer = 1 - end.rank();
            if end.rank() == 0 {
                exchange(end, 0).unwrap(); // all buffers are pre-posted
                post_on(end, peer, port, header(0), piece(0, 1, 5)).unwrap();
                for word in 1..=4 {
                    post_on(end, peer, port, header(word), &LONG).unwrap();
                }
                return;
            }
            let mut buffers: Vec<Posted> = (0..4).map(|_| Posted::new()).collect();
            let mut places = [std::ptr::null(); 4];
            // The order is arbitrary. The buffer of the third frame expects another header, and the
            // buffer of the fourth expects another length.
            for (n, word, less) in [(1, 2, 0), (0, 1, 0), (3, 4, 1), (2, 7, 0)] {
                places[n] = buffers[n].prepost(end, peer, port, 1 + n as u64, header(word), less);
            }
            exchange(end, 0).unwrap();
            take_on(end, peer, port).unwrap();
            for n in 0..4 {
                let frame = poll_on(end, peer, port).unwrap();
                assert!(frame.header == header(1 + n as u64) && bytes(&frame) == LONG, "{name}, frame {n}");
                let far = ["tcp", "mpi", "mixed [0, 1]", "MPI and [0, 1]"].contains(&&name[..]);
                let there = frame.payload == places[n];
                assert_eq!(there, far && n < 2, "{name}, frame {n}: where it came to");
                end.release(peer, port);
                assert!(buffers[n].is_kept(there), "{name}, frame {n}");
            }
            cancel(end, peer, port);
        });
    }
}

#[test]
fn a_place_that_is_withdrawn_is_not_touched_any_more_and_what_had_come_is_elsewhere() {
    for ((name, ends), port) in on_ports() {
        run(ends, |end| {
            let peer = 1 - end.rank();
            if end.rank() == 0 {
                exchange(end, 0).unwrap();
                for word in 0..3 {
                    post_on(end, peer, port, header(word), &LONG).unwrap();
                }
                return;
            }
            let mut buffers: Vec<Posted> = (0..3).map(|_| Posted::new()).collect();
            for (n, buffer) in buffers.iter_mut().enumerate() {
                buffer.prepost(end, peer, port, n as u64, header(n as u64), 0);
            }
            exchange(end, 0).unwrap();
            poll_on(end, peer, port).unwrap();
            cancel(end, peer, port); // when the first frame has arrived, and an unknown part of the others
            for mut buffer in buffers {
                buffer.0.fill(Posted::UNTOUCHED);
                let frame = poll_on(end, peer, port).unwrap();
                assert!(bytes(&frame) == LONG, "{name}");
                assert!(buffer.is_kept(false), "{name}");
                end.release(peer, port);
            }
        });
    }
}

#[test]
fn a_place_that_is_offered_too_late_is_not_touched() {
    for ((name, ends), port) in on_ports() {
        run(ends, |end| {
            let peer = 1 - end.rank();
            if end.rank() == 0 {
                for word in [0, 0, 1] {
                    post_on(end, peer, port, header(word), &LONG).unwrap();
                }
                exchange(end, 0).unwrap();
                return;
            }
            exchange(end, 0).unwrap(); // everything has arrived
            let mut buffer = Posted::new();
            for _ in 0..3 {
                buffer.prepost(end, peer, port, 0, header(0), 0);
                buffer.prepost(end, peer, port, 0, header(0), 0);
                assert!(take_on(end, peer, port).unwrap().1 == LONG, "{name}");
            }
            assert!(buffer.is_kept(false), "{name}");
        });
    }
}

/// Over a connection, all of a payload may have arrived when the receiver polls, even if the
/// connection is slow. So payloads are sent until the receiver finds one that is still arriving.
#[test]
fn a_place_may_be_offered_for_a_payload_that_is_coming() {
    const MOST: u64 = 20_000;
    for ((name, ends), port) in on_ports() {
        run(ends, |end| {
            let peer = 1 - end.rank();
            if end.rank() == 0 {
                for word in 0.. {
                    post_on(end, peer, port, header(word), &LONG).unwrap();
                    let (answer, _) = take_on(end, peer, port).unwrap();
                    if answer == header(0) {
                        break;
                    }
                }
                exchange(end, 0).unwrap();
                return;
            }
            let mut in_place = 0;
            for word in 0.. {
                let (mut buffer, mut place) = (Posted::new(), std::ptr::null::<u8>());
                let frame = wait(end, |end| {
                    let frame = end.poll(peer, port)?;
                    if let (None, true, Some(coming)) = (frame, place.is_null(), end.coming(peer, port)) {
                        assert_eq!(coming, (header(word), LONG.len()), "{name}");
                        place = buffer.prepost(end, peer, port, 0, coming.0, 0);
                    }
                    Ok(frame)
                });
                let frame = frame.unwrap();
                assert_eq!(end.coming(peer, port), None, "{name}: the frame was not released");
                assert!(bytes(&frame) == LONG, "{name}");
                let is_there = frame.payload == place;
                in_place += usize::from(is_there);
                end.release(peer, port);
                cancel(end, peer, port);
                assert!(buffer.is_kept(is_there), "{name}");
                let shown = if name == "tcp" || name == "mpi" { in_place > 0 } else { word == 2 };
                assert!(shown || word < MOST, "none of {MOST} payloads came to its place");
                post_on(end, peer, port, header(u64::from(!shown)), &[]).unwrap();
                if shown {
                    break;
                }
            }
            exchange(end, 0).unwrap();
        });
    }
}

#[test]
fn places_may_be_offered_by_a_rank_whose_end_is_dropped() {
    for ((_, ends), port) in on_ports() {
        let mut ends = ends;
        let mut buffer = Posted::new();
        buffer.prepost(&mut ends[1], 0, port, 0, header(0), 0);
        drop(ends.pop());
        let end = &mut ends[0];
        let ended = wait(end, |end| {
            post_on(end, 1, port, header(0), &LONG)?;
            end.poll(1, port)
        });
        assert!(ended.is_err_and(|lost| lost.rank == 1));
        assert!(buffer.is_kept(false));
    }
}

#[test]
fn places_of_one_port_are_not_those_of_another_one() {
    const PORTS: [Port; 2] = [Port::FENCE, Port::ELEMENTS];
    on_all(2, |end| {
        let peer = 1 - end.rank();
        if end.rank() == 0 {
            exchange(end, 0).unwrap();
            for port in [PORTS[1], PORTS[0], PORTS[0], PORTS[1]] {
                post_on(end, peer, port, header(0), &LONG).unwrap();
            }
            return;
        }
        let mut buffers = PORTS.map(|_| [Posted::new(), Posted::new()]);
        let mut places = [std::ptr::null(); 2];
        for (at, &port) in PORTS.iter().enumerate() {
            places[at] = buffers[at][0].prepost(end, peer, port, 0, header(0), 0);
            buffers[at][1].prepost(end, peer, port, 1, header(0), 0);
        }
        exchange(end, 0).unwrap();
        for (at, &port) in PORTS.iter().enumerate() {
            let frame = poll_on(end, peer, port).unwrap();
            assert_eq!(bytes(&frame), LONG);
            let there = frame.payload == places[at];
            end.release(peer, port);
            // The memory on the other port is still offered, unless its payload has arrived.
            cancel(end, peer, port);
            buffers[at][1].0.fill(Posted::UNTOUCHED);
            assert!(buffers[at][0].is_kept(there), "{port:?}");
        }
        for (at, &port) in PORTS.iter().enumerate() {
            assert_eq!(take_on(end, peer, port).unwrap().1, LONG);
            assert!(buffers[at][1].is_kept(false), "{port:?}");
        }
    });
}

#[test]
fn a_payload_in_a_place_that_was_offered_is_not_taken() {
    on_all(2, |end| {
        let (me, peer) = (end.rank(), 1 - end.rank());
        if me == 0 {
            assert_eq!(take(end, peer).unwrap().0.word, 1, "the place is offered");
            post(end, peer, header(2), &PATTERN).unwrap();
        } else {
            let mut place = vec![0_u8; PATTERN.len()];
            // SAFETY: the memory lives until the frame is released, and is not used before the
            // frame is polled.
            unsafe { end.prepost(peer, Port::FENCE, 0, header(2), &raw mut place[..]) };
            post(end, peer, header(1), &[]).unwrap();
            let frame = poll(end, peer).unwrap();
            if frame.payload == place.as_ptr() {
                assert!(end.take(peer, Port::FENCE).is_none());
            }
            assert_eq!(bytes(&poll(end, peer).unwrap()), PATTERN);
            end.release(peer, Port::FENCE);
        }
        exchange(end, 0).unwrap();
    });
}
