//! Ports. The frames of each port arrive in order, and do not wait for unread frames on other
//! ports.

use crate::ends::*;
use fencepost_tests_support::random::Random;
use fencepost_transport::{
    Cause, Channels, Endpoint, Leave, Liveness, Lose, Loss, Lost, Notify, Port, SimConfig, Topology,
};
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The ports that are used at the same time, among them adjacent ports and the largest port.
const PORTS: [Port; 6] = [Port::FENCE, Port(2), Port(3), Port(4), Port(1000), Port(u32::MAX)];

fn released_on(end: &mut Endpoint, to: usize, port: Port, frames: u64) {
    wait(end, |end| Ok((end.released(to, port) >= frames).then_some(()))).unwrap();
    assert_eq!(end.released(to, port), frames);
}

/// The port of the frames with which a rank gives the turn to the other rank. Tests examine frames
/// of other ports.
const TURN: Port = Port(77);

fn give_turn(end: &mut Endpoint, to: usize) {
    post_on(end, to, TURN, header(0), &[]).unwrap();
    end.flush();
}

fn take_turn(end: &mut Endpoint, from: usize) {
    take_on(end, from, TURN).unwrap();
}

/// The frames of one world in the order in which they are posted, with the sender, the receiver,
/// the port and the length of each.
#[derive(Clone, Debug)]
struct Traffic {
    size: usize,
    posts: Vec<(usize, usize, Port, usize)>,
    seed: u64,
    config: SimConfig,
    transport: u8,
    hosts: [u32; 4],
}

fn traffic() -> impl Strategy<Value = Traffic> {
    (1usize..5).prop_flat_map(|size| {
        let post = (0..size, 0..size, prop::sample::select(&PORTS), 0usize..3000);
        let posts = prop::collection::vec(post, 0..120);
        let config = (any::<u64>(), 0u32..20, any::<bool>(), 1usize..5000);
        let world = (0u8..8, [0u32..3, 0u32..3, 0u32..3, 0u32..3], any::<u64>());
        (posts, config, world).prop_map(
            move |(posts, (link, max_delay, short_reads, link_bytes), (transport, hosts, seed))| {
                let config =
                    SimConfig { seed: link, max_delay, short_reads, link_bytes, ..SimConfig::default() };
                Traffic { size, posts, seed, config, transport, hosts }
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn frames_of_each_pair_and_port_are_in_order_whatever_order_ports_are_read_in(traffic in traffic()) {
        let Traffic { size, posts, seed, config, transport, hosts: layout } = traffic;
        let ends = match transport {
            0 => threads(size),
            1 => processes(size),
            2 => sockets(size),
            3 | 4 => hosts(&layout[..size]),
            _ => simulated(size, config),
        };
        run(ends, |end| {
            let me = end.rank();
            for (n, &(from, to, port, len)) in posts.iter().enumerate() {
                if from == me {
                    post_on(end, to, port, header(n as u64), &PATTERN[..len]).unwrap();
                }
            }
            let mut random = Random::new(seed ^ me as u64);
            let mut unread: Vec<usize> = (0..posts.len()).filter(|&n| posts[n].1 == me).collect();
            while !unread.is_empty() {
                // Take the first unread frame of a random sender and port.
                let (from, _, port, _) = posts[unread[random.below(unread.len())]];
                let of_channel = |n: &usize| (posts[*n].0, posts[*n].2) == (from, port);
                let at = unread.iter().position(of_channel).unwrap();
                let n = unread.remove(at);
                let expected = (header(n as u64), PATTERN[..posts[n].3].to_vec());
                assert_eq!(take_on(end, from, port).unwrap(), expected, "from {from} on {port:?}");
            }
            for to in 0..size {
                for port in PORTS {
                    let of_channel = |post: &&(usize, usize, Port, usize)| (post.0, post.1, post.2) == (me, to, port);
                    released_on(end, to, port, posts.iter().filter(of_channel).count() as u64);
                }
            }
        });
    }
}

static LARGE: [u8; 300_000] = {
    let mut large = [0; 300_000];
    let mut i = 0;
    while i < large.len() {
        large[i] = (i * 5 % 253) as u8;
        i += 1;
    }
    large
};

/// Returns a payload and a number. This number of frames with the payload exceeds the credit of a
/// pair, and the room of a link or a ring.
fn many(transport: &str) -> (&'static [u8], u64) {
    if transport.contains("Sim") { (&LARGE[..9000], 8) } else { (&LARGE, 70) }
}

#[test]
fn nothing_waits_for_what_is_not_read_on_another_port() {
    for (name, ends) in transports(2) {
        let (large, frames) = many(&name);
        run(ends, |end| {
            let peer = 1 - end.rank();
            for n in 0..frames {
                post_on(end, peer, Port(2), header(n), large).unwrap();
            }
            for word in 0..3 {
                for port in [Port::FENCE, Port(3)] {
                    post_on(end, peer, port, header(word), large).unwrap();
                }
            }
            end.publish(9).unwrap();
            end.settle().unwrap();
            assert_eq!(read(end, peer).unwrap().word, 9);
            settled(end, peer).unwrap();
            for port in [Port(3), Port::FENCE] {
                for word in 0..3 {
                    assert!(take_on(end, peer, port).unwrap() == (header(word), large.to_vec()), "{name}");
                }
                released_on(end, peer, port, 3);
            }
            assert_eq!(end.released(peer, Port(2)), 0, "{name}");
            give_turn(end, peer); // all other frames were read
            take_turn(end, peer);
            for n in 0..frames {
                assert!(take_on(end, peer, Port(2)).unwrap() == (header(n), large.to_vec()), "{name}");
            }
            released_on(end, peer, Port(2), frames);
        });
    }
}

#[test]
fn no_port_waits_for_fences_that_are_not_read() {
    for (name, ends) in transports(2) {
        let (large, frames) = many(&name);
        run(ends, |end| {
            let peer = 1 - end.rank();
            for n in 0..frames {
                post_on(end, peer, Port::FENCE, header(n), large).unwrap();
            }
            for word in 0..20 {
                post_on(end, peer, Port(5), header(word), large).unwrap();
                assert!(take_on(end, peer, Port(5)).unwrap() == (header(word), large.to_vec()), "{name}");
            }
            released_on(end, peer, Port(5), 20);
            for n in 0..frames {
                assert!(take_on(end, peer, Port::FENCE).unwrap() == (header(n), large.to_vec()), "{name}");
            }
        });
    }
}

#[test]
fn releases_are_counted_for_each_port() {
    on_all(2, |end| {
        let peer = 1 - end.rank();
        if end.rank() == 0 {
            for (port, frames) in [(Port::FENCE, 2), (Port(2), 3), (Port(9), 4)] {
                (0..frames).for_each(|n| post_on(end, peer, port, header(n), &PATTERN[..9]).unwrap());
            }
            take_turn(end, peer);
            assert_eq!([Port::FENCE, Port(2), Port(9)].map(|port| end.released(peer, port)), [0, 0, 0]);
            give_turn(end, peer);
            released_on(end, peer, Port(9), 2);
            take_turn(end, peer);
            assert_eq!([Port::FENCE, Port(2)].map(|port| end.released(peer, port)), [0, 0]);
            assert_eq!(end.released(peer, Port(4)), 0, "nothing was posted on it");
            give_turn(end, peer);
            released_on(end, peer, Port::FENCE, 2);
            released_on(end, peer, Port(2), 3);
            released_on(end, peer, Port(9), 4);
        } else {
            give_turn(end, peer);
            take_turn(end, peer);
            (0..2).for_each(|n| assert_eq!(take_on(end, peer, Port(9)).unwrap().0.word, n));
            give_turn(end, peer);
            take_turn(end, peer);
            (2..4).for_each(|n| assert_eq!(take_on(end, peer, Port(9)).unwrap().0.word, n));
            (0..3).for_each(|n| assert_eq!(take_on(end, peer, Port(2)).unwrap().0.word, n));
            (0..2).for_each(|n| assert_eq!(take_on(end, peer, Port::FENCE).unwrap().0.word, n));
        }
    });
}

#[test]
fn releasing_on_a_port_what_did_not_come_there_is_refused() {
    for (name, mut ends) in transports(2) {
        let end = &mut ends[0];
        post_on(end, 0, Port(2), header(0), &[]).unwrap();
        poll_on(end, 0, Port(2)).unwrap();
        for port in [Port::FENCE, Port(3)] {
            assert!(catch_unwind(AssertUnwindSafe(|| end.release(0, port))).is_err(), "{name}, {port:?}");
        }
        end.release(0, Port(2));
    }
}

#[test]
fn more_ports_than_a_few_are_in_use_at_a_time() {
    for (name, ends) in transports(2) {
        let ports = if name.contains("link_bytes: 7") { 50 } else { 1500 };
        run(ends, |end| {
            let peer = 1 - end.rank();
            for port in 100..100 + ports {
                for word in 0..2 {
                    post_on(end, peer, Port(port), header(word), &PATTERN[..port as usize % 40]).unwrap();
                }
            }
            for port in (100..100 + ports).rev() {
                for word in 0..2 {
                    let expected = (header(word), PATTERN[..port as usize % 40].to_vec());
                    assert_eq!(take_on(end, peer, Port(port)).unwrap(), expected, "{name}");
                }
            }
            for port in (100..100 + ports).step_by(7) {
                released_on(end, peer, Port(port), 2);
            }
            exchange(end, 1).unwrap();
            (100..100 + ports).for_each(|port| end.close(Port(port)));
            exchange(end, 2).unwrap();
        });
    }
}

#[test]
fn frames_of_a_closed_port_count_as_released_and_its_own_still_arrive() {
    for (name, ends) in transports(2) {
        let (large, frames) = many(&name);
        run(ends, |end| {
            let peer = 1 - end.rank();
            let (port, other) = (Port(2), Port(3));
            if end.rank() == 0 {
                for n in 0..frames {
                    post_on(end, peer, port, header(n), large).unwrap(); // more than there is credit for
                }
                (0..2).for_each(|n| post_on(end, peer, other, header(n), &PATTERN).unwrap());
                give_turn(end, peer);
                released_on(end, peer, port, frames);
                // Frames that the other rank had posted before it closed the port still arrive.
                for n in 0..frames {
                    assert!(take_on(end, peer, port).unwrap() == (header(n), large.to_vec()), "{name}");
                }
                // No rank reads frames that are posted now.
                post_on(end, peer, port, header(0), large).unwrap();
                released_on(end, peer, port, frames + 1);
                assert_eq!(end.released(peer, other), 0, "{name}: another port");
                end.close(port);
                give_turn(end, peer);
                released_on(end, peer, other, 2);
            } else {
                take_turn(end, peer);
                poll_on(end, peer, port).unwrap();
                for n in 0..frames {
                    post_on(end, peer, port, header(n), large).unwrap();
                }
                end.close(port);
                take_turn(end, peer);
                (0..2).for_each(|n| assert_eq!(take_on(end, peer, other).unwrap().0.word, n, "{name}"));
            }
            exchange(end, 1).unwrap();
            end.close(other);
            exchange(end, 2).unwrap();
        });
    }
}

#[test]
fn ports_are_opened_and_closed_by_all_in_turn_for_as_long_as_the_world_lasts() {
    on_all(3, |end| {
        let (me, size) = (end.rank(), end.size());
        for round in 0..60 {
            let port = |from: usize| Port(2 + 3 * round + from as u32);
            for to in 0..size {
                post_on(end, to, port(me), header(u64::from(round)), piece(me, to, round as usize)).unwrap();
            }
            for from in 0..size {
                let expected = (header(u64::from(round)), piece(from, me, round as usize).to_vec());
                assert_eq!(take_on(end, from, port(from)).unwrap(), expected);
            }
            (0..size).for_each(|of| end.close(port(of)));
        }
    });
}

#[test]
fn what_a_rank_sent_on_any_port_before_it_left_is_received() {
    let how = Leave::Failed("no luck".into());
    for (name, ends) in transports(3) {
        let (large, frames) = many(&name);
        let ports = [Port(7), Port::FENCE, Port(3)];
        run(ends, |end| {
            let gone = 2;
            if end.rank() == gone {
                for n in 0..frames {
                    for to in 0..gone {
                        ports.iter().for_each(|port| post_on(end, to, *port, header(n), large).unwrap());
                    }
                }
                end.leave(how.clone());
                return;
            }
            let lost = Lost { rank: gone, how: Loss::Left(how.clone()) };
            for port in ports {
                for n in 0..frames {
                    assert!(take_on(end, gone, port).unwrap() == (header(n), large.to_vec()), "{name}");
                }
                assert_eq!(poll_on(end, gone, port).unwrap_err(), lost, "{name}");
                assert_eq!(post_on(end, gone, port, header(0), &[]), Err(lost.clone()), "{name}");
            }
            assert_eq!(poll_on(end, gone, Port(1000)).unwrap_err(), lost, "{name}: it was never used");
        });
    }
}

#[test]
fn a_rank_that_leaves_has_released_all_that_was_posted_on_any_port() {
    on_all(2, |end| {
        let peer = 1 - end.rank();
        if end.rank() == 0 {
            take_turn(end, peer);
            for port in [Port(2), Port(4)] {
                // The other rank may have left already.
                if post_on(end, peer, port, header(0), &PATTERN).is_ok() {
                    wait(end, |end| Ok((end.released(peer, port) == 1).then_some(()))).unwrap();
                }
            }
        } else {
            give_turn(end, peer);
        }
    });
}

#[test]
fn the_end_of_the_world_reaches_who_waits_on_any_port() {
    on_all(3, |end| {
        let lost = Lost { rank: 1, how: Loss::Ended("the disk is full".into()) };
        if end.rank() == 1 {
            (0..3).for_each(|to| post_on(end, to, Port(2), header(0), &PATTERN).unwrap());
            take_turn(end, 0);
            end.end(Cause { rank: 1, what: "the disk is full".into() });
        } else {
            if end.rank() == 0 {
                give_turn(end, 1);
            }
            assert_eq!(poll_on(end, (end.rank() + 2) % 3, Port(3)).unwrap_err(), lost);
        }
        assert_eq!(poll_on(end, 1, Port(6)).unwrap_err(), lost);
    });
}

#[test]
fn a_rank_that_is_cut_off_is_named_by_who_waits_on_any_port() {
    for after in 0..30 {
        let lose = Some(Lose { rank: 1, after });
        let config = SimConfig { seed: after, lose, link_bytes: 200, ..SimConfig::default() };
        let ended = run(simulated(2, config), |end| -> Result<(), Lost> {
            let peer = 1 - end.rank();
            for n in 0..20 {
                for port in PORTS {
                    post_on(end, peer, port, header(n), &PATTERN[..100])?;
                }
                for port in PORTS.iter().rev() {
                    assert_eq!(take_on(end, peer, *port)?, (header(n), PATTERN[..100].to_vec()));
                }
            }
            Ok(())
        });
        assert_eq!(ended, [Err(Lost { rank: 1, how: Loss::Cut }), Err(Lost { rank: 1, how: Loss::Cut })]);
    }
}

#[test]
fn a_rank_is_drained_once_its_frames_have_arrived_on_all_ports_though_others_are_not_read() {
    on_all(2, |end| {
        let peer = 1 - end.rank();
        for e in 1..6 {
            for port in PORTS {
                post_on(end, peer, port, header(e), &PATTERN).unwrap();
            }
            end.announce(e);
            exchange(end, e).unwrap();
            assert_eq!(take_on(end, peer, Port::FENCE).unwrap().0.word, e);
            wait(end, |end| {
                assert!(end.poll(peer, TURN)?.is_none()); // reads what has arrived
                Ok((end.announced(peer) >= e && end.drained(peer)).then_some(()))
            })
            .unwrap();
            for port in &PORTS[1..] {
                assert!(end.poll(peer, *port).unwrap().is_some(), "it is drained, and {port:?} has nothing");
                end.release(peer, *port);
            }
            exchange(end, 0).unwrap();
        }
    });
}
