//! Waits for messages, and the reports of these waits. The ranks compute, wait for each other,
//! leave, or die.

use fencepost::{Any, Error, ErrorClass, Result, Stall, TransportKind, World, ranks};
use fencepost_tests_support::side_by_side::side_by_side;
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::messages::{everywhere, kinds};
use std::hint::spin_loop;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The lengths of two messages in bytes. The first message is sent together with its elements if
/// that is allowed. The second message is never sent together with its elements.
const LENGTHS: [usize; 2] = [100, 1 << 20];

/// Only a wait that is not reported takes this long.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn messages_of_buffered_sends_are_received_while_their_sender_computes() {
    for transport in kinds(2) {
        for eager in [0, 1 << 14] {
            let received = AtomicBool::new(false);
            let run = ranks(2).transport(transport.clone()).eager(eager).run(|world| {
                if world.rank() == 0 {
                    world.attach_buffer(4 << 20)?;
                    LENGTHS
                        .iter()
                        .try_for_each(|&len| world.message(1, 0).buffered().send(vec![7u8; len]))?;
                    // This rank calls nothing until the other rank has received everything.
                    while !received.load(Ordering::Acquire) {
                        spin_loop();
                    }
                    return world.detach_buffer().map(drop);
                }
                for len in LENGTHS {
                    assert_eq!(world.recv::<u8>(0, 0)?.0, vec![7u8; len]);
                }
                received.store(true, Ordering::Release);
                Ok(())
            });
            run.unwrap_or_else(|error| panic!("{transport:?}, {eager}: {error}"));
        }
    }
}

#[test]
fn messages_of_buffered_sends_are_received_after_their_sender_has_left() {
    for transport in kinds(2) {
        for eager in [0, 1 << 14] {
            let left = AtomicBool::new(false);
            let run = ranks(2).transport(transport.clone()).eager(eager).run(|world| {
                if world.rank() == 0 {
                    let part = world.split(Some(1), 0)?.unwrap();
                    part.attach_buffer(4 << 20)?;
                    LENGTHS.iter().try_for_each(|&len| part.message(1, 0).buffered().send(vec![7u8; len]))?;
                    part.message(1, 1).buffered().send([0u8; 0])?;
                    drop(part);
                    left.store(true, Ordering::Release);
                    return world.barrier();
                }
                let part = world.split(Some(1), 0)?.unwrap();
                // The probe is for the last message, so the messages before it are kept.
                assert_eq!(part.probe(0, 1)?.len, 0);
                while !left.load(Ordering::Acquire) {
                    spin_loop();
                }
                for len in LENGTHS {
                    assert_eq!(part.recv::<u8>(0, 0)?.0, vec![7u8; len]);
                }
                assert!(part.recv::<u8>(0, 1)?.0.is_empty());
                let error = part.recv::<u8>(0, 0).unwrap_err();
                assert_eq!(error.class(), ErrorClass::ProcFailed);
                world.barrier()
            });
            run.unwrap_or_else(|error| panic!("{transport:?}, {eager}: {error}"));
        }
    }
}

/// Two ranks make this call, and each waits for the other forever. Both get an error that names
/// both calls.
#[track_caller]
fn deadlocked(words: [&str; 2], call: impl Fn(&World) -> Result<()> + Sync) {
    side_by_side(usize::MAX, kinds(2), |transport| {
        let world = ranks(2).transport(transport.clone()).eager(0).stall(Some(Duration::ZERO));
        let world = world.end_deadlocks(true).on_stall(|_| ());
        let ends = ends(&world, &[], &call);
        for (class, text) in ends.into_iter().map(|end| end.expect("it cannot go on")) {
            assert_eq!(class, ErrorClass::RmaSync, "{transport:?}: {text}");
            for word in ["deadlock", "rank 0 waits for rank 1", "rank 1 waits for rank 0", "waiting.rs:"]
                .iter()
                .chain(&words)
            {
                assert!(text.contains(word), "{transport:?}: no {word:?} in {text}");
            }
        }
    });
}

#[test]
fn ranks_that_both_receive_first_are_told_so() {
    deadlocked(["World::recv", "from rank 1 with tag 30"], |world| {
        let other = 1 - world.rank();
        world.recv::<u8>(other, 30 + world.rank() as u32)?;
        world.message(other, 31 - world.rank() as u32).send([1u8])
    });
}

#[test]
fn ranks_that_both_send_first_where_nothing_is_buffered_are_told_so() {
    deadlocked(["Message::send", "to rank 1 with tag 5 and 8 bytes"], |world| {
        let other = 1 - world.rank();
        world.message(other, 5).send([1u64])?;
        world.recv::<u64>(other, 5).map(drop)
    });
}

#[test]
fn a_receive_and_a_send_of_other_tags_are_told_so() {
    deadlocked(["Message::send", "World::recv_into"], |world| {
        if world.rank() == 0 {
            world.message(1, 1).synchronous().send([1u8])
        } else {
            world.recv_into(0, 2, &mut [0u8]).map(drop)
        }
    });
}

/// The wait is reported only after the rank has found that no other rank can end the wait. The
/// report describes the call once.
#[test]
fn a_wait_for_oneself_is_reported_once_and_ends_the_world() {
    let calls =
        [(0, 0, "Message::send"), (1, 0, "Message::send"), (2, 100, "World::recv"), (3, 100, "World::probe")];
    let each = kinds(1).into_iter().flat_map(|kind| calls.map(|call| (kind.clone(), call)));
    side_by_side(usize::MAX, each, |(transport, (at, eager, call))| {
        let (tell, told) = channel();
        let tell = Mutex::new(tell);
        let world = ranks(1).transport(transport.clone()).eager(eager).stall(Some(Duration::ZERO));
        let world = world.on_stall(move |stall| drop(tell.lock().unwrap().send(stall.clone())));
        let error = world.end_deadlocks(true).run(|world| match at {
            0 => world.message(0, 0).send([1u8]),
            1 => world.message(0, 0).synchronous().send([1u8]),
            2 => world.recv::<u8>(0, 0).map(drop),
            _ => world.probe(Any, 0).map(drop),
        });
        let error = error.unwrap_err();
        assert_eq!(error.class(), ErrorClass::RmaSync, "{transport:?}, {call}: {error}");
        assert!(error.message().contains("rank 0 waits for rank 0"), "{error}");
        let reports: Vec<Stall> = told.try_iter().collect();
        let [report] = &reports[..] else { panic!("{transport:?}, {call}: {reports:#?}") };
        let text = report.to_string();
        assert_eq!(text.matches(&format!("{call} (")).count(), 1, "{transport:?}: {text}");
        assert!(report.deadlock.is_some(), "{transport:?}: {text}");
    });
}

#[test]
fn a_stall_names_the_call_its_rank_and_its_tag() {
    for transport in kinds(2) {
        for (at, words) in [
            (0, ["World::recv (", "from rank 1 with tag 9"]),
            (1, ["World::recv (", "from any rank with any tag"]),
            (2, ["World::probe (", "from rank 1 with any tag"]),
            (3, ["Message::send (", "to rank 1 with tag 9 and 1000 bytes, which no receive has taken"]),
            (4, ["World::detach_buffer (", "a buffered send to rank 1"]),
        ] {
            let (tell, told) = channel();
            let (tell, told) = (Mutex::new(tell), Mutex::new(told));
            let world = ranks(2).transport(transport.clone()).eager(0).stall(Some(Duration::ZERO));
            let world = world.on_stall(move |stall: &Stall| drop(tell.lock().unwrap().send(stall.clone())));
            let run = world.run(|world| {
                if world.rank() == 0 {
                    let ended = match at {
                        0 => world.recv::<u8>(1, 9).map(drop),
                        1 => world.recv::<u8>(Any, Any).map(drop),
                        2 => world.probe(1, Any).map(drop),
                        3 => world.message(1, 9).send([0u8; 1000]),
                        _ => {
                            world.attach_buffer(10)?;
                            world.message(1, 9).buffered().send([0u8; 10])?;
                            world.detach_buffer().map(drop)
                        }
                    };
                    let error = ended.expect_err("rank 1 leaves");
                    assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
                    assert!(error.message().contains("rank 1 has finished"), "{error}");
                    return Ok(());
                }
                let told = told.lock().unwrap();
                let stall = told.iter().find(|stall| stall.rank == 0).expect("rank 0 stalls");
                assert_eq!(
                    (stall.awaited, stall.file, stall.came, stall.expected),
                    (1, file!(), 0, 1),
                    "{stall}"
                );
                for word in words {
                    assert!(stall.to_string().contains(word), "{transport:?}: {stall}");
                }
                Ok(())
            });
            run.unwrap_or_else(|error| panic!("{transport:?}, {at}: {error}"));
        }
    }
}

#[test]
fn a_rank_that_fails_is_named_to_those_that_wait_for_it() {
    for transport in kinds(3) {
        for at in 0..5 {
            let world = ranks(3).transport(transport.clone()).eager(0);
            let ends = ends(&world, &[], |world| {
                if world.rank() == 2 {
                    return Err(Error::new(ErrorClass::Other, "it has had enough"));
                }
                match at {
                    0 => world.recv::<u8>(2, 0).map(drop),
                    1 => world.recv::<u8>(Any, 0).map(drop),
                    2 => world.message(2, 0).send(vec![0u8; 1 << 20]),
                    3 => world.probe(2, Any).map(drop),
                    _ => world.sendrecv(1 - world.rank(), 0, [1u8], 2, 0, &mut [1u8]).map(drop),
                }
            });
            for end in &ends[..2] {
                let (class, text) = end.as_ref().expect("rank 2 has left");
                assert_eq!(*class, ErrorClass::ProcFailed, "{transport:?}, {at}: {text}");
                assert!(
                    text.contains("rank 2") && text.contains("had enough"),
                    "{transport:?}, {at}: {text}"
                );
            }
        }
    }
}

/// The receiver asks for the elements, or reads the envelopes, while the sender leaves.
#[test]
fn messages_of_buffered_sends_are_received_while_their_sender_leaves() {
    for transport in kinds(2) {
        for (round, len) in [10, 3 << 20, 100_000, 1 << 20, 20, 2 << 20].into_iter().enumerate() {
            let run = ranks(2).transport(transport.clone()).eager(0).run(|world| {
                if world.rank() == 0 {
                    world.attach_buffer(16 << 20)?;
                    return [len, 30, len]
                        .into_iter()
                        .try_for_each(|len| world.message(1, 0).buffered().send(vec![7u8; len]));
                }
                for len in [len, 30, len] {
                    assert_eq!(world.recv::<u8>(0, 0)?.0, vec![7u8; len]);
                }
                Ok(())
            });
            run.unwrap_or_else(|error| panic!("{transport:?}, round {round}: {error}"));
        }
    }
}

/// A message that was sent with its elements is no longer in the buffer, whatever its receiver
/// does.
#[test]
fn a_buffer_of_short_messages_is_detached_while_their_receiver_waits_for_its_owner() {
    for transport in kinds(2) {
        let run = ranks(2).transport(transport.clone()).run(|world| {
            if world.rank() == 0 {
                world.attach_buffer(100)?;
                world.message(1, 0).buffered().send([1u8; 60])?;
                world.message(1, 0).buffered().send([2u8; 60])?;
                assert_eq!(world.detach_buffer()?, 100);
                return world.barrier();
            }
            world.barrier()?;
            assert_eq!(world.recv::<u8>(0, 0)?.0, [1u8; 60]);
            assert_eq!(world.recv::<u8>(0, 0)?.0, [2u8; 60]);
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
    }
}

#[test]
fn a_buffer_is_detached_after_its_receiver_has_left_if_that_has_received_all_of_it() {
    for transport in kinds(2) {
        for takes_all in [true, false] {
            let run = ranks(2).transport(transport.clone()).eager(0).run(|world| {
                let part = world.split(Some(1), 0)?.unwrap();
                if world.rank() == 0 {
                    part.attach_buffer(4 << 20)?;
                    LENGTHS.iter().try_for_each(|&len| part.message(1, 0).buffered().send(vec![7u8; len]))?;
                    world.barrier()?;
                    world.barrier()?; // the receiver has left by now
                    match part.detach_buffer() {
                        Ok(size) => assert!(takes_all && size == 4 << 20, "{transport:?}"),
                        Err(error) => {
                            assert!(!takes_all && error.class() == ErrorClass::ProcFailed, "{error}");
                            assert!(error.message().contains("rank 1 has finished"), "{error}");
                        }
                    }
                    return Ok(());
                }
                world.barrier()?;
                for len in &LENGTHS[..if takes_all { 2 } else { 1 }] {
                    assert_eq!(part.recv::<u8>(0, 0)?.0, vec![7u8; *len]);
                }
                drop(part);
                world.barrier()
            });
            run.unwrap_or_else(|error| panic!("{transport:?}, {takes_all}: {error}"));
        }
    }
}

#[test]
fn a_receiver_that_panics_while_it_reads_nothing_leaves_its_sender_an_error_and_its_elements() {
    for transport in kinds(2) {
        let sent = AtomicUsize::new(0);
        let world = ranks(2).transport(transport.clone());
        let ends = ends(&world, &[1], |world| {
            if world.rank() == 1 {
                panic!("it gives up");
            }
            let values = vec![3u8; 2 << 20];
            let result = world.message(1, 0).send(&values);
            assert!(values.iter().all(|&value| value == 3));
            sent.fetch_add(1, Ordering::Relaxed);
            result
        });
        let (class, text) = ends[0].as_ref().expect("rank 1 has panicked");
        assert_eq!(*class, ErrorClass::ProcFailed, "{text}");
        assert!(text.contains("it gives up"), "{text}");
        assert_eq!(sent.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn many_messages_to_a_rank_that_does_not_receive_wait_with_their_sender_and_come_in_order() {
    const MESSAGES: u64 = 2000;
    for transport in kinds(2) {
        let (tell, told) = channel();
        let (tell, told) = (Mutex::new(tell), Mutex::new(told));
        // There is room for about 15 messages of each rank.
        let world = ranks(2).transport(transport.clone()).unexpected(2 << 15).stall(Some(Duration::ZERO));
        let world = world.on_stall(move |stall: &Stall| drop(tell.lock().unwrap().send(stall.clone())));
        let sent = AtomicUsize::new(0);
        let run = world.run(|world| {
            if world.rank() == 0 {
                for value in 0..MESSAGES {
                    world.message(1, 4).send([value; 256])?;
                    sent.fetch_add(1, Ordering::Release);
                }
                return Ok(());
            }
            {
                let told = told.lock().unwrap();
                let stall = told.iter().find(|stall| stall.rank == 0).expect("rank 0 waits");
                assert!(stall.call.contains("Message::send") && stall.call.contains("tag 4"), "{stall}");
            }
            let at_first = sent.load(Ordering::Acquire);
            assert!((10..20).contains(&at_first), "{at_first} messages were sent");
            for value in 0..MESSAGES {
                let mut room = [0; 256];
                world.recv_into(0, Any, &mut room)?;
                assert_eq!(room, [value; 256]);
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
    }
}

#[test]
fn messages_of_buffered_sends_need_no_credit_and_hold_no_other_message_up() {
    everywhere(2, |world| {
        if world.rank() == 0 {
            world.attach_buffer(1 << 22)?;
            for value in 0..1000u32 {
                world.message(1, 1).buffered().send([value; 1000])?;
            }
            world.message(1, 2).synchronous().send([7u8])?;
            world.detach_buffer()?;
        } else {
            assert_eq!(world.recv::<u8>(0, 2)?.0, [7]);
            for value in 0..1000u32 {
                assert_eq!(world.recv::<u32>(0, 1)?.0, [value; 1000]);
            }
        }
        Ok(())
    });
}

/// The sender sends twenty times as many messages as are kept. It waits, and reports the wait. No
/// message is lost or overtaken.
#[test]
fn two_hundred_thousand_messages_to_a_rank_that_does_not_receive_stay_under_the_cap() {
    const CAP: usize = 16 << 20;
    for transport in kinds(2) {
        // Simulated links deliver about ten thousand messages in a second.
        let messages = if matches!(transport, TransportKind::Sim(_)) { 20_000 } else { 200_000 };
        let (tell, told) = channel();
        let (tell, told) = (Mutex::new(tell), Mutex::new(told));
        let world = ranks(2).transport(transport.clone()).unexpected(CAP).stall(Some(Duration::ZERO));
        let world = world.on_stall(move |stall: &Stall| drop(tell.lock().unwrap().send(stall.clone())));
        let sent = AtomicUsize::new(0);
        let run = world.run(|world| {
            if world.rank() == 0 {
                for value in 0..messages {
                    world.message(1, 4).send([value as u64; 128])?;
                    sent.fetch_add(1, Ordering::Release);
                }
                return Ok(());
            }
            {
                let told = told.lock().unwrap();
                let stall = told.iter().find(|stall| stall.rank == 0).expect("rank 0 waits");
                assert!(stall.call.contains("Message::send") && stall.call.contains("tag 4"), "{stall}");
            }
            let kept = sent.load(Ordering::Acquire) * 1024;
            assert!((CAP / 4..CAP).contains(&kept), "{kept} bytes were sent");
            let mut room = [0; 128];
            for value in 0..messages {
                world.recv_into(0, Any, &mut room)?;
                assert_eq!((room[0], room[127]), (value as u64, value as u64));
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
    }
}

/// Rank 1 waits in a part of the world for a message. Rank 0 sends this message only after the wait
/// was reported. Rank 1 has also begun to receive in the world itself, where no message arrives
/// until then.
#[test]
fn a_wait_is_reported_while_a_receive_in_another_world_is_open() {
    for transport in kinds(2) {
        let (tell, told) = channel();
        let (tell, told) = (Mutex::new(tell), Mutex::new(told));
        let world = ranks(2).transport(transport.clone()).stall(Some(Duration::ZERO));
        let world = world.on_stall(move |stall: &Stall| drop(tell.lock().unwrap().send(stall.clone())));
        let run = world.run(|world| {
            let part = world.split(Some(0), 0)?.unwrap();
            if world.rank() == 0 {
                let told = told.lock().unwrap();
                let is_it = |stall: &Stall| stall.rank == 1 && stall.call.contains("World::recv (");
                while !is_it(&told.recv_timeout(LIMIT).expect("rank 1 stalls")) {}
                part.message(1, 0).send([1u8])?;
                return world.message(1, 9).send([9u8]);
            }
            let above = world.irecv::<u8>(0, 9)?;
            assert_eq!(part.recv::<u8>(0, 0)?.0, [1]);
            assert_eq!(above.wait()?.0, [9]);
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
    }
}
