//! One suite for all transports. Each test states a rule of the contract of `fencepost_transport`,
//! and runs on every transport and on several configurations of simulated links. No test waits for
//! a fixed time. A wait for something that cannot arrive must end with the error `Lost`.

mod attendants;
mod copied;
mod ends;
mod lines;
mod places;
mod planted;
mod polls;
mod ports;
mod taken;
#[path = "../waits/mod.rs"]
mod waits;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::thread;

use ends::*;
use fencepost_transport::{
    Cause, Channels, Endpoint, Frame, Header, Leave, Liveness, Lose, Loss, Lost, Notification, Notify, Pause,
    Port, Record, SimConfig, Topology,
};
use proptest::prelude::*;

#[test]
fn frames_of_every_pair_arrive_once_whole_and_in_order() {
    for size in 1..=8 {
        on_all(size, |end| {
            let (me, frames) = (end.rank(), 40);
            for n in 0..frames {
                for to in 0..size {
                    let header = Header { word: n as u64, kind: me as u32, extra: to as u32 };
                    post(end, to, header, piece(me, to, n)).unwrap();
                }
            }
            for n in 0..frames {
                for from in 0..size {
                    let (header, payload) = take(end, from).unwrap();
                    assert_eq!(header, Header { word: n as u64, kind: from as u32, extra: me as u32 });
                    assert_eq!(payload, piece(from, me, n));
                }
            }
            for to in 0..size {
                released(end, to, frames as u64);
                assert_eq!(end.released(to, Port::FENCE), frames as u64);
            }
            exchange(end, 0).unwrap();
            for from in 0..size {
                assert!(!matches!(end.poll(from, Port::FENCE), Ok(Some(_))), "a frame that nobody posted");
            }
        });
    }
}

#[test]
fn a_frame_stays_the_oldest_until_it_is_released_and_releases_are_counted_one_by_one() {
    on_all(2, |end| {
        let (me, peer) = (end.rank(), 1 - end.rank());
        if me == 0 {
            for n in 0..3 {
                post(end, peer, header(n), piece(0, 1, n as usize)).unwrap();
            }
            for n in 0..3 {
                assert_eq!(end.released(peer, Port::FENCE), n, "released before it was");
                exchange(end, n).unwrap();
                released(end, peer, n + 1);
            }
        } else {
            for n in 0..3 {
                for _ in 0..3 {
                    let frame = poll(end, peer).unwrap();
                    assert_eq!((frame.header.word, bytes(&frame)), (n, piece(0, 1, n as usize)));
                }
                exchange(end, n).unwrap();
                end.release(peer, Port::FENCE);
            }
        }
    });
}

#[test]
fn where_values_are_not_shared_a_payload_is_copied_at_once_and_begins_at_a_multiple_of_16() {
    for (name, ends) in transports(2) {
        run(ends, |end| {
            let peer = 1 - end.rank();
            let mut payload = [1u8; 100];
            let near = ["local", "shm", "mixed [0, 0]"].contains(&&name[..]);
            assert_eq!(end.reaches(peer), near);
            assert_eq!(end.host(0) == end.host(1), near);
            assert_eq!(end.shares(peer), name == "local");
            if end.shares(peer) {
                return;
            }
            // SAFETY: the ranks do not share values, and the payload is on the heap, so it is
            // copied.
            unsafe {
                end.post(peer, Port::FENCE, Frame { header: header(0), payload: payload.as_ptr(), len: 100 })
            }
            .unwrap();
            payload.fill(2);
            let frame = poll(end, peer).unwrap();
            assert_eq!((bytes(&frame), frame.payload.addr() % 16), (&[1; 100][..], 0));
            end.release(peer, Port::FENCE);
        });
    }
}

#[test]
fn notifications_of_many_exchanges_come_each_in_its_own_whatever_their_words() {
    for size in 1..=8 {
        on_all(size, |end| {
            let me = end.rank();
            for e in 0..60u64 {
                let word = [0, 0, e << 32 | 7, u64::MAX, 5, (e / 8) << 40][e as usize % 6];
                let notification = |from: usize, to: usize| Notification {
                    word,
                    flags: e as u32,
                    count: from as u32,
                    address: to,
                    inline: [
                        Record { head: e, value: !e },
                        Record { head: (from * size + to) as u64, value: 1 },
                    ],
                };
                for to in 0..size {
                    *end.draft(to) = notification(me, to);
                }
                end.publish(word).unwrap();
                if (me as u64 + e).is_multiple_of(3) {
                    thread::yield_now();
                }
                for from in (me..size).chain(0..me) {
                    assert_eq!(read(end, from).unwrap(), notification(from, me));
                }
                assert_eq!(
                    end.read(me).unwrap(),
                    Some(&notification(me, me)),
                    "a notification may be read again"
                );
            }
        });
    }
}

/// A rank must read all notifications of an exchange, except its own, before the next exchange.
#[test]
fn a_notification_to_oneself_need_not_be_read() {
    on_all(3, |end| {
        let me = end.rank();
        for e in 0..60u64 {
            end.draft(me).count = e as u32;
            end.publish(e).unwrap();
            for from in (0..3).filter(|&from| from != me) {
                assert_eq!(read(end, from).unwrap().word, e);
            }
            if e % 7 == 0 {
                assert_eq!(read(end, me).unwrap().count, e as u32);
            }
        }
    });
}

#[test]
fn what_was_posted_before_a_notification_is_there_when_the_notification_is() {
    on_all(3, |end| {
        for e in 0..20 {
            for to in 0..3 {
                for n in 0..=to {
                    post(end, to, header(e), piece(end.rank(), to, n)).unwrap();
                }
            }
            end.publish(e).unwrap();
            for from in 0..3 {
                read(end, from).unwrap();
                for n in 0..=end.rank() {
                    let frame =
                        end.poll(from, Port::FENCE).unwrap().expect("a frame posted before the notification");
                    assert_eq!((frame.header.word, bytes(&frame)), (e, piece(from, end.rank(), n)));
                    end.release(from, Port::FENCE);
                }
            }
        }
    });
}

#[test]
fn an_exchange_is_settled_by_a_rank_when_it_says_so_and_not_before() {
    on_all(2, |end| {
        let peer = 1 - end.rank();
        for e in 0..20 {
            exchange(end, e).unwrap();
            if e % 5 == 3 {
                continue; // an exchange that no rank settles
            }
            if end.rank() == 0 {
                take(end, peer).unwrap(); // the peer has seen that this rank has not settled
                end.settle().unwrap();
            } else {
                assert!(!end.settled(peer).unwrap());
                post(end, peer, header(e), &[]).unwrap();
                end.settle().unwrap();
            }
            settled(end, peer).unwrap();
            settled(end, end.rank()).unwrap();
        }
    });
}

#[test]
fn a_rank_may_publish_the_next_exchange_while_another_has_read_nothing_of_this_one() {
    on_all(2, |end| {
        let peer = 1 - end.rank();
        for e in 0..20 {
            end.draft(peer).count = e;
            end.publish(0).unwrap();
            if end.rank() == 1 {
                // Rank 0 posts this frame after it has published the next notification.
                take(end, peer).unwrap();
            }
            for from in 0..2 {
                let notification = read(end, from).unwrap();
                assert!(from != peer || notification.count == e);
            }
            if end.rank() == 0 {
                end.draft(peer).count = e + 100;
                end.publish(0).unwrap();
                post(end, peer, header(0), &[]).unwrap();
            } else {
                end.draft(peer).count = e + 100;
                end.publish(0).unwrap();
            }
            for from in 0..2 {
                let notification = read(end, from).unwrap();
                assert!(from != peer || notification.count == e + 100);
            }
        }
    });
}

#[test]
fn publishing_with_a_notification_unread_is_refused() {
    for (_, mut ends) in transports(2) {
        let end = &mut ends[0];
        end.publish(1).unwrap();
        assert!(end.read(1).unwrap().is_none());
        assert!(catch_unwind(AssertUnwindSafe(|| end.publish(2))).is_err());
    }
}

#[test]
fn releasing_what_did_not_come_is_refused() {
    for (_, mut ends) in transports(2) {
        assert!(catch_unwind(AssertUnwindSafe(|| ends[0].release(1, Port::FENCE))).is_err());
    }
}

#[test]
fn before_the_first_exchange_there_are_no_notifications() {
    for (_, mut ends) in transports(2) {
        assert_eq!(ends[0].read(1), Ok(None));
        assert_eq!(ends[0].read(0), Ok(None));
    }
}

#[test]
fn a_rank_that_leaves_is_seen_by_every_waiter_after_all_that_it_sent() {
    let ways =
        [Leave::Finished, Leave::Failed("no such file".into()), Leave::Panicked("index out of range".into())];
    for size in [2, 3, 5] {
        for way in &ways {
            on_all(size, |end| {
                let gone = size - 1;
                exchange(end, 1).unwrap();
                if end.rank() == gone {
                    for to in 0..size {
                        for n in 0..50 {
                            post(end, to, header(n), piece(gone, to, n as usize)).unwrap();
                        }
                        end.draft(to).count = 77;
                    }
                    end.publish(2).unwrap();
                    end.leave(way.clone());
                    let lost = Lost { rank: gone, how: Loss::Left(way.clone()) };
                    assert_eq!(end.publish(3), Err(lost.clone()));
                    assert_eq!(post(end, 0, header(0), &[]), Err(lost));
                    return;
                }
                let lost = Lost { rank: gone, how: Loss::Left(way.clone()) };
                end.publish(2).unwrap();
                // A rank that leaves counts as having released all frames, so no rank waits for the
                // release forever.
                if post(end, gone, header(0), &PATTERN).is_ok() {
                    released(end, gone, 1);
                }
                assert_eq!(settled(end, gone), Err(lost.clone()), "it never settled");
                assert_eq!(read(end, gone).unwrap().count, 77);
                for n in 0..50 {
                    assert_eq!(take(end, gone).unwrap().1, piece(gone, end.rank(), n));
                }
                assert_eq!(poll(end, gone).unwrap_err(), lost);
                assert_eq!(end.lost(gone), Some(lost.clone()));
                for from in 0..gone {
                    read(end, from).unwrap();
                }
                end.publish(3).unwrap();
                assert_eq!(read(end, gone), Err(lost.clone()));
                assert_eq!(post(end, gone, header(0), &[]), Err(lost));
                // The other ranks are still here.
                let peer = (end.rank() + 1) % gone;
                post(end, peer, header(5), &[]).unwrap();
                assert_eq!(take(end, (end.rank() + gone - 1) % gone).unwrap().0.word, 5);
                for from in 0..gone {
                    read(end, from).unwrap();
                }
            });
        }
    }
}

#[test]
fn an_end_that_is_dropped_has_failed_and_one_that_is_unwound_has_panicked() {
    for (_, mut ends) in transports(3) {
        let panicking = ends.pop().unwrap();
        drop(ends.pop());
        let unwound = thread::spawn(move || {
            let _end = panicking;
            std::panic::resume_unwind(Box::new("quietly"));
        });
        assert!(unwound.join().is_err());
        let mut end = ends.pop().unwrap();
        let lost = |end: &mut Endpoint, from| poll(end, from).unwrap_err();
        assert!(matches!(lost(&mut end, 1), Lost { rank: 1, how: Loss::Left(Leave::Failed(_)) }));
        assert!(matches!(lost(&mut end, 2), Lost { rank: 2, how: Loss::Left(Leave::Panicked(_)) }));
    }
}

#[test]
fn the_end_of_the_world_reaches_every_waiter_with_its_first_cause() {
    for size in [1, 2, 4] {
        on_all(size, |end| {
            exchange(end, 1).unwrap();
            let first = Lost { rank: 0, how: Loss::Ended("the disk is full".into()) };
            if end.rank() == 0 {
                (1..size).for_each(|from| drop(take(end, from).unwrap()));
                end.end(Cause { rank: 0, what: "the disk is full".into() });
            } else {
                post(end, 0, header(0), &[]).unwrap();
                assert_eq!(settled(end, 0), Err(first.clone()));
                end.end(Cause { rank: end.rank(), what: "later".into() });
            }
            for from in 0..size {
                assert_eq!(poll(end, from).unwrap_err(), first);
            }
            assert_eq!(end.publish(2), Err(first.clone()));
            assert_eq!(post(end, 0, header(0), &[]), Err(first.clone()));
            assert_eq!(end.settle(), Err(first));
        });
    }
}

#[test]
fn big_payloads_pass_both_ways_at_once() {
    static BIG: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..4 << 20).map(|i: usize| (i ^ (i >> 9)) as u8).collect());
    let big: &'static [u8] = &BIG;
    let calm = SimConfig { seed: 3, ..SimConfig::default() };
    for ends in [threads(2), processes(2), simulated(2, calm), sockets(2), hosts(&[0, 0]), hosts(&[0, 1])] {
        run(ends, |end| {
            for peer in 0..2 {
                post(end, peer, header(0), big).unwrap();
            }
            for peer in 0..2 {
                assert!(take(end, peer).unwrap().1 == big);
            }
        });
    }
}

#[test]
fn what_was_sent_comes_whatever_its_sender_waits_for_then() {
    // More bytes than there is credit for, and more than a link has room for.
    static LONG: [u8; 17 << 20] = [7; 17 << 20];
    for (name, ends) in transports(2) {
        let long = if name.contains("Sim") { &LONG[..5 << 20] } else { &LONG };
        let turn = std::sync::Barrier::new(2);
        run(ends, |end| {
            if end.rank() == 0 {
                post(end, 1, header(1), long).unwrap();
                end.publish(1).unwrap();
                end.settle().unwrap();
                turn.wait(); // waits for the other rank without polling this end
                return;
            }
            end.publish(1).unwrap();
            assert_eq!(read(end, 0).map(|notification| notification.word), Ok(1), "{name}");
            assert_eq!(poll(end, 0).map(|frame| frame.len), Ok(long.len()), "{name}");
            end.release(0, Port::FENCE);
            settled(end, 0).unwrap();
            turn.wait();
        });
    }
}

#[test]
fn a_simulated_link_moves_by_the_looks_at_it_alone() {
    for link_bytes in [1, 8, 24, 64] {
        for seed in 0..8 {
            let config = SimConfig { seed, link_bytes, ..SimConfig::default() };
            let mut ends = simulated(2, config.clone());
            post(&mut ends[0], 1, header(1), b"more than there is room for at a time").unwrap();
            ends[0].publish(1).unwrap();
            ends[1].publish(1).unwrap();
            // Each poll takes at least one byte once its delay is over.
            let looks = 1000 * (config.max_delay + 1);
            let come = (0..looks).any(|_| ends[1].read(0).unwrap().is_some());
            assert!(come, "{link_bytes} bytes, seed {seed}");
            assert!(ends[1].poll(0, Port::FENCE).unwrap().is_some(), "{link_bytes} bytes, seed {seed}");
        }
    }
}

#[test]
fn a_hundred_thousand_frames_posted_ahead_are_kept() {
    let calm = SimConfig::default();
    for ends in [threads(2), processes(2), simulated(2, calm), sockets(2), hosts(&[0, 0]), hosts(&[0, 1])] {
        run(ends, |end| {
            let (peer, frames) = (1 - end.rank(), 100_000);
            for n in 0..frames {
                post(end, peer, header(n), &PATTERN[..8]).unwrap();
            }
            for n in 0..frames {
                assert_eq!(take(end, peer).unwrap(), (header(n), PATTERN[..8].to_vec()));
            }
            released(end, peer, frames);
        });
    }
}

#[test]
fn the_meter_counts_what_was_sent_and_nothing_else() {
    on_all(2, |end| {
        let peer = 1 - end.rank();
        let before = end.meter().clone();
        exchange(end, 1).unwrap();
        for kind in [2, 2, 99] {
            post(end, peer, Header { word: 0, kind, extra: 0 }, &PATTERN[..10]).unwrap();
        }
        for _ in 0..3 {
            take(end, peer).unwrap();
        }
        end.settle().unwrap();
        let meter = end.meter();
        assert_eq!((meter.of(2).frames, meter.of(2).bytes, meter.of(99).frames), (2, 20, 1));
        assert_eq!((meter.total().frames, meter.exchanges, meter.settles, meter.releases), (3, 1, 1, 3));
        assert_eq!(before, Default::default());
    });
}

#[test]
fn a_rank_that_is_cut_off_at_any_event_is_named_by_all_and_sees_it_itself() {
    for (seed, after) in (0..24).flat_map(|after| [(2 * after, after), (2 * after + 1, after)]) {
        let lose = Some(Lose { rank: 1, after });
        let config = SimConfig { seed, lose, link_bytes: 200, ..SimConfig::default() };
        let ended = run(simulated(3, config), |end| -> Result<(), Lost> {
            for e in 0..8 {
                for to in 0..3 {
                    post(end, to, header(e), piece(end.rank(), to, e as usize))?;
                }
                for (from, notification) in exchange(end, e)?.iter().enumerate() {
                    assert_eq!(notification.word, e);
                    assert_eq!(take(end, from)?, (header(e), piece(from, end.rank(), e as usize).to_vec()));
                }
                end.settle()?;
                (0..3).try_for_each(|from| settled(end, from))?;
            }
            Ok(())
        });
        // Ranks 0 and 2 may also lose each other, since the first rank that sees the loss leaves.
        assert_eq!(ended[1], Err(Lost { rank: 1, how: Loss::Cut }));
        let named = |lost: &Lost| lost.rank == 1 && lost.how == Loss::Cut;
        assert!(ended[0].as_ref().is_err_and(named) || ended[2].as_ref().is_err_and(named), "{ended:?}");
        assert!(ended.iter().all(Result::is_err), "{ended:?}");
    }
}

#[test]
fn what_was_posted_before_an_announcement_comes_before_its_sender_is_drained() {
    on_all(2, |end| {
        let (me, peer) = (end.rank(), 1 - end.rank());
        for e in 1..30 {
            end.announce(e);
            post(end, peer, header(e), &PATTERN).unwrap();
            if me == 1 {
                take(end, peer).unwrap();
                continue; // the next announcement follows at once, or the rank leaves
            }
            let mut pause = Pause::new();
            let frame = loop {
                let elsewhere = end.announced(peer) > e;
                if let Some(frame) = end.poll(peer, Port::FENCE).unwrap() {
                    break frame;
                }
                assert!(!(elsewhere && end.drained(peer)), "drained, though a frame was under way");
                end.idle(&mut pause);
            };
            assert_eq!(bytes(&frame), PATTERN);
            assert!(!end.drained(peer) || end.reaches(peer), "a frame was not taken");
            end.release(peer, Port::FENCE);
        }
        if me == 0 {
            exchange(end, 0).unwrap();
            assert_eq!(end.announced(peer), 29);
            assert!(end.drained(peer));
        } else {
            exchange(end, 0).unwrap();
        }
    });
}

#[test]
fn of_a_rank_that_has_left_it_is_known_what_it_entered_last() {
    on_all(2, |end| {
        let peer = 1 - end.rank();
        exchange(end, 0).unwrap();
        // No other message follows these announcements, so they cannot be sent together with one.
        (1..4).for_each(|number| end.announce(number));
        if end.rank() == 1 {
            end.leave(Leave::Finished);
            return;
        }
        let mut pause = Pause::new();
        let word = loop {
            if let Some(word) = end.left_at(peer) {
                break word;
            }
            let _ = poll(end, peer);
            end.idle(&mut pause);
        };
        assert_eq!(word, 3);
    });
}

#[test]
fn who_ended_the_world_sees_when_the_others_have_ceased_to_touch_and_they_do_not_begin_again() {
    on_all(2, |end| {
        let peer = 1 - end.rank();
        assert!(end.touching(true));
        assert!(end.is_touching(end.rank()));
        end.touching(false);
        assert!(!end.is_touching(end.rank()));
        let seen = |end: &mut Endpoint| end.is_touching(peer) || !end.reaches(peer);
        if end.rank() == 0 {
            assert!(end.touching(true));
            post(end, peer, header(0), &[]).unwrap();
            assert!(poll(end, peer).is_err());
            end.touching(false);
            assert!(!end.touching(true), "the world was ended");
            end.touching(false);
        } else {
            take(end, peer).unwrap();
            assert!(seen(end));
            end.end(Cause { rank: 1, what: "enough".into() });
            let mut pause = Pause::new();
            while end.is_touching(peer) {
                end.idle(&mut pause);
            }
        }
    });
}

#[test]
fn a_rank_that_was_unwound_while_it_touched_memory_touches_it_no_more() {
    for (_, mut ends) in transports(2) {
        assert!(ends[1].touching(true));
        assert!(ends[0].is_touching(1) || !ends[0].reaches(1));
        drop(ends.pop());
        assert!(!ends[0].is_touching(1));
    }
}

/// The traffic of the random test. In each step, one rank posts some bytes to a rank, and that rank
/// takes the frame.
#[derive(Clone, Debug)]
struct Traffic {
    size: usize,
    posts: Vec<(usize, usize, usize)>,
    config: SimConfig,
    real: u8,
    /// The host of each rank, if there are several hosts.
    hosts: [u32; 5],
}

fn traffic() -> impl Strategy<Value = Traffic> {
    (1usize..6).prop_flat_map(|size| {
        let posts = prop::collection::vec((0..size, 0..size, 0usize..3000), 0..80);
        let config = (any::<u64>(), 0u32..20, any::<bool>(), 1usize..5000);
        let real = (0u8..6, [0u32..3, 0u32..3, 0u32..3, 0u32..3, 0u32..3]);
        (posts, config, real).prop_map(
            move |(posts, (seed, max_delay, short_reads, link_bytes), (real, hosts))| {
                let config = SimConfig {
                    seed,
                    max_delay,
                    short_reads,
                    link_bytes,
                    lose: None,
                    fault: None,
                    ..SimConfig::default()
                };
                Traffic { size, posts, config, real, hosts }
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn random_traffic_arrives_as_it_was_sent(traffic in traffic()) {
        let Traffic { size, posts, config, real, hosts: layout } = traffic;
        let ends = match real {
            0 => threads(size),
            1 => processes(size),
            2 | 3 => hosts(&layout[..size]),
            _ => simulated(size, config),
        };
        run(ends, |end| {
            let me = end.rank();
            // Each rank goes through the list. The rank makes its own posts. At some steps and at
            // the end, it takes all frames that were sent to it and that it has not taken yet.
            let mut behind = Vec::new();
            for (n, &(from, to, len)) in posts.iter().enumerate() {
                if from == me {
                    post(end, to, header(n as u64), &PATTERN[..len]).unwrap();
                }
                if to == me {
                    behind.push((from, n, len));
                }
                let drain = n % 7 == 6 || n % 5 == me;
                if n % 10 == 9 {
                    assert!(exchange(end, n as u64).unwrap().iter().all(|notification| notification.word == n as u64));
                }
                for (from, n, len) in behind.drain(..if drain { behind.len() } else { 0 }) {
                    assert_eq!(take(end, from).unwrap(), (header(n as u64), PATTERN[..len].to_vec()));
                }
            }
            for (from, n, len) in behind {
                assert_eq!(take(end, from).unwrap(), (header(n as u64), PATTERN[..len].to_vec()));
            }
            for to in 0..size {
                released(end, to, posts.iter().filter(|post| (post.0, post.1) == (me, to)).count() as u64);
            }
        });
    }
}
