//! The meaning of sends and receives, one rule in each test.

use fencepost::{Any, Datatype, ErrorClass, Result, TransportKind, ranks};
use fencepost_tests_worlds::messages::{everywhere, status};

#[test]
fn a_message_of_any_length_arrives_as_it_was_sent() {
    everywhere(2, |world| {
        for len in [0, 1, 2, 3, 4, 100, 1000, 5000, 200_000] {
            let values: Vec<u64> = (0..len as u64).map(|value| value * value).collect();
            if world.rank() == 0 {
                world.message(1, 5).send(&values)?;
                let back = world.recv::<u64>(1, 6)?;
                assert_eq!(back, (values, status(1, 6, len)));
            } else {
                let mut room = vec![u64::MAX; len + 1];
                assert_eq!(world.recv_into(0, 5, &mut room)?, status(0, 5, len));
                assert_eq!(room[..len], values);
                assert_eq!(room[len], u64::MAX);
                world.message(0, 6).send(&room[..len])?;
            }
        }
        Ok(())
    });
}

#[test]
fn long_messages_arrive_whole_however_they_are_sent_and_wherever_they_land() {
    const LEN: usize = 50_000;
    everywhere(2, |world| {
        let (other, mut room) = (1 - world.rank(), vec![0u64; 2 * LEN]);
        world.attach_buffer(8 * LEN)?;
        for round in 1..5u64 {
            let values: Vec<u64> = (0..LEN as u64).map(|value| value << 8 | round).collect();
            let even = Datatype::nest(0, &[(LEN, 2)], 1).unwrap();
            if world.rank() == 0 {
                world.message(other, 0).send(&values)?;
                world.message(other, 1).synchronous().send(&values)?;
                world.message(other, 2).isend(values.clone())?.wait()?;
                world.message(other, 3).buffered().send(&values)?;
                world.barrier()?;
            } else {
                // Receives into every other element, into consecutive elements, and into a list.
                world.recv_into(other, 0, (&mut room, &even))?;
                assert!(room.iter().step_by(2).eq(&values));
                world.recv_into(other, 1, &mut room)?;
                assert!(room[..LEN] == values);
                assert!(world.recv::<u64>(other, 2)?.0 == values);
                world.barrier()?;
                assert!(world.recv::<u64>(other, 3)?.0 == values);
            }
        }
        // The sender leaves as soon as it can.
        match world.rank() {
            0 => world.message(other, 4).send(vec![7u64; 2 * LEN]),
            _ => world.recv_into(other, 4, &mut room).map(|_| assert!(room == [7; 2 * LEN])),
        }
    });
}

#[test]
fn messages_of_a_pair_are_received_in_the_order_of_their_sends_as_far_as_receives_name_them() {
    everywhere(2, |world| {
        if world.rank() == 0 {
            world.attach_buffer(1 << 20)?;
            for (tag, value) in [(1, 10), (2, 20), (1, 11), (2, 21), (1, 12)] {
                world.message(1, tag).buffered().send([value; 3])?;
            }
            assert_eq!(world.detach_buffer()?, 1 << 20);
        } else {
            let take = |from: usize, tag: Option<u32>| -> Result<(i32, u32)> {
                let (values, status) = match tag {
                    Some(tag) => world.recv::<i32>(from, tag)?,
                    None => world.recv::<i32>(Any, Any)?,
                };
                assert!(values.iter().all(|value| *value == values[0]));
                Ok((values[0], status.tag.unwrap()))
            };
            assert_eq!(take(0, Some(2))?, (20, 2));
            assert_eq!(take(0, None)?, (10, 1));
            assert_eq!(take(0, Some(1))?, (11, 1));
            assert_eq!(take(0, None)?, (21, 2));
            assert_eq!(take(0, None)?, (12, 1));
        }
        world.barrier()
    });
}

#[test]
fn what_does_not_fit_is_lost_and_the_room_is_as_it_was() {
    everywhere(2, |world| {
        if world.rank() == 0 {
            world.message(1, 0).synchronous().send([1u32; 5])?;
            world.message(1, 0).synchronous().send([2u64; 2])?;
            world.message(1, 0).synchronous().send([3u32; 4])?;
        } else {
            let mut room = [9u32; 4];
            let error = world.recv_into(0, 0, &mut room).unwrap_err();
            assert_eq!(error.class(), ErrorClass::Truncate, "{error}");
            assert!(
                error.to_string().contains("5 elements") && error.to_string().contains("room for 4"),
                "{error}"
            );
            let error = world.recv_into(0, 0, &mut room).unwrap_err();
            assert_eq!(error.class(), ErrorClass::Type, "{error}");
            assert!(error.to_string().contains("of type u64, and this receive is for u32"), "{error}");
            assert_eq!(room, [9; 4]);
            world.recv_into(0, 0, &mut room)?;
            assert_eq!(room, [3; 4]);
        }
        Ok(())
    });
}

#[test]
fn ranks_that_all_send_and_receive_at_once_do_not_wait_for_each_other() {
    everywhere(4, |world| {
        let (rank, size) = (world.rank(), world.size());
        let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
        for len in [1, 100_000] {
            let mut came = vec![0; len];
            let found = world.sendrecv(next, 3, vec![rank; len], last, 3, &mut came)?;
            assert_eq!(found, status(last, 3, len));
            assert!(came.iter().all(|&value| value == last));
            // A rank exchanges with itself.
            let found = world.sendrecv(rank, 4, vec![rank; len], Any, 4, &mut came)?;
            assert_eq!(found, status(rank, 4, len));
            assert!(came.iter().all(|&value| value == rank));
        }
        Ok(())
    });
}

#[test]
fn datatypes_name_elements_on_both_sides() {
    everywhere(2, |world| {
        // Receives a column of 300 rows of 100 elements into every third element, backwards.
        let (rows, column) = (300, Datatype::nest(7, &[(300, 100)], 1).unwrap());
        let thirds = Datatype::nest(3 * (rows - 1), &[(rows as usize, -3)], 1).unwrap();
        for shorter in [0, 1] {
            if world.rank() == 0 {
                let values: Vec<u32> = (0..30_000).collect();
                let part = column.slice(0, 300 - shorter)?;
                world.message(1, 0).send((&values, &part))?;
                world.message(1, 0).send((&values, 10..20_010))?;
            } else {
                let mut room = vec![u32::MAX; 900];
                let status = world.recv_into(0, 0, (&mut room, &thirds))?;
                assert_eq!(status.len, 300 - shorter);
                for (at, &value) in room.iter().enumerate() {
                    let row = 299 - at / 3;
                    let expected =
                        if at % 3 == 0 && row < 300 - shorter { 7 + 100 * row as u32 } else { u32::MAX };
                    assert_eq!(value, expected, "element {at}");
                }
                let mut room = vec![0; 40_000];
                world.recv_into(0, 0, (&mut room, Datatype::nest(0, &[(20_000, 2)], 1).unwrap()))?;
                assert!((0..20_000).all(|at| room[2 * at] == at as u32 + 10 && room[2 * at + 1] == 0));
            }
        }
        Ok(())
    });
}

#[test]
fn messages_mix_neither_with_windows_nor_with_other_worlds() {
    everywhere(4, |world| {
        let parts =
            [world.split(Some(0), 0)?.unwrap(), world.split(Some(world.rank() as u32 / 2), 0)?.unwrap()];
        let mut u = world.window::<u64>(4)?;
        let (rank, size) = (world.rank(), world.size());
        parts.iter().chain([world]).try_for_each(|world| world.attach_buffer(1000))?;
        for round in 0..20 {
            let next = (rank + 1) % size;
            parts[0].message(next, 1).buffered().send([1000 + round])?;
            u.put([round as u64]).to(next, rank)?;
            world.message(next, 1).buffered().send([2000 + round])?;
            parts[1].message(1 - parts[1].rank(), 1).buffered().send([3000 + round])?;
            u.fence()?;
            assert_eq!(parts[1].recv::<i32>(Any, Any)?.0, [3000 + round]);
            assert_eq!(world.recv::<i32>(Any, 1)?.0, [2000 + round]);
            assert_eq!(parts[0].recv::<i32>((rank + size - 1) % size, Any)?.0, [1000 + round]);
            assert_eq!(u[(rank + size - 1) % size], round as u64);
        }
        assert_eq!(world.try_probe(Any, Any)?, None);
        world.barrier()
    });
}

#[test]
fn messages_to_oneself_come_in_order_as_far_as_they_are_kept() {
    for eager in [0, 100] {
        ranks(1)
            .eager(eager)
            .run(|world| {
                world.attach_buffer(1000)?;
                world.message(0, 1).buffered().send([1u8; 50])?;
                if eager > 0 {
                    world.message(0, 2).send([2u8; 50])?;
                }
                world.message(0, 1).buffered().send([3u8; 200])?;
                assert_eq!(world.probe(Any, 1)?, status(0, 1, 50));
                if eager > 0 {
                    assert_eq!(world.recv::<u8>(0, 2)?.0, [2; 50]);
                }
                assert_eq!(world.recv::<u8>(0, Any)?.0, [1; 50]);
                assert_eq!(world.recv::<u8>(Any, 1)?.0, [3; 200]);
                assert_eq!(world.detach_buffer()?, 1000);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn a_message_that_was_probed_is_the_one_that_its_sender_and_tag_name() {
    everywhere(3, |world| {
        if world.rank() > 0 {
            for tag in [4, 5] {
                world.message(0, tag).send(vec![world.rank() as u8; world.rank() + 10 * tag as usize])?;
            }
            return Ok(());
        }
        for _ in 0..4 {
            let found = world.probe(Any, Any)?;
            assert_eq!(world.try_probe(Any, Any)?, Some(found));
            let (source, tag) = (found.source.unwrap(), found.tag.unwrap());
            let (values, status) = world.recv::<u8>(source, tag)?;
            assert_eq!((values.len(), status), (source + 10 * tag as usize, found));
        }
        Ok(())
    });
}

#[test]
fn a_rank_keeps_as_many_short_messages_as_there_is_credit_for() {
    // Without its elements, each message takes 64 bytes. There are 8 MiB for such messages.
    const MESSAGES: usize = (8 << 20) / 64;
    for transport in [TransportKind::Local, TransportKind::TcpThreads] {
        let run = ranks(2).transport(transport.clone()).end_deadlocks(true).run(|world| {
            if world.rank() == 0 {
                // No receive waits for any of these sends.
                (0..MESSAGES).try_for_each(|i| world.message(1, i as u32).send([0u8; 0]))?;
                return world.barrier();
            }
            // The first call about messages reads the messages that have arrived.
            assert_eq!(world.try_probe(0, u32::MAX)?, None);
            world.barrier()?;
            (0..MESSAGES).try_for_each(|i| world.recv_into(0, i as u32, &mut [0u8; 0]).map(drop))
        });
        run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
    }
}
