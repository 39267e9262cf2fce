//! Every call with arguments that are not valid.

use fencepost::{Any, Datatype, Error, ErrorClass, Result, Status, World, ranks};
use fencepost_tests_worlds::messages::{everywhere, kinds};

#[track_caller]
fn refused(result: Result<()>, class: ErrorClass, words: &[&str]) {
    let error: Error = result.expect_err("it is refused");
    assert_eq!(error.class(), class, "{error}");
    let text = error.to_string();
    for word in words.iter().chain(&["misuse.rs:", "rank 0"]) {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

fn alone(program: impl Fn(&World) -> Result<()> + Sync) {
    ranks(1).run(program).unwrap();
}

#[test]
fn a_rank_that_the_world_does_not_have_is_refused_by_every_call() {
    everywhere(2, |world| {
        if world.rank() == 0 {
            let words = &["rank 2 is not one of the world's 2 ranks (0 to 1)"][..];
            world.attach_buffer(100)?;
            refused(world.message(2, 0).send([1u8]), ErrorClass::Rank, words);
            refused(world.message(2, 0).synchronous().send([1u8]), ErrorClass::Rank, words);
            refused(world.message(2, 0).buffered().send([1u8]), ErrorClass::Rank, words);
            refused(world.message(2, 0).ready().send([1u8]), ErrorClass::Rank, words);
            refused(world.recv::<u8>(2, 0).map(drop), ErrorClass::Rank, words);
            refused(world.recv_into(2, 0, &mut [1u8]).map(drop), ErrorClass::Rank, words);
            refused(world.probe(2, 0).map(drop), ErrorClass::Rank, words);
            refused(world.try_probe(2, 0).map(drop), ErrorClass::Rank, words);
            let mut room = [0u8];
            refused(world.sendrecv(2, 0, [1u8], 1, 0, &mut room).map(drop), ErrorClass::Rank, words);
            refused(world.sendrecv(1, 0, [1u8], 2, 0, &mut room).map(drop), ErrorClass::Rank, words);
        }
        // The refused calls have sent nothing, and wait for no message.
        world.barrier()?;
        assert_eq!(world.try_probe(Any, Any)?, None);
        world.barrier()?;
        let mut came = [0];
        world.sendrecv(1 - world.rank(), 1, [world.rank()], Any, Any, &mut came)?;
        assert_eq!(came, [1 - world.rank()]);
        Ok(())
    });
}

#[test]
fn elements_that_a_slice_does_not_have_are_refused_on_both_sides() {
    alone(|world| {
        let mut room = [5u32; 4];
        let words = &["elements 2..5 are not all in the slice of 4 elements"][..];
        refused(world.message(0, 0).send((&room, 2..5)), ErrorClass::Disp, words);
        refused(world.recv_into(0, 0, (&mut room, 2..5)).map(drop), ErrorClass::Disp, words);
        let (source, all) = ([1u32; 4], Datatype::run(0..4));
        refused(
            world.sendrecv(0, 0, (source, 2..5), 0, 0, (&mut room, all)).map(drop),
            ErrorClass::Disp,
            words,
        );
        refused(world.sendrecv(0, 0, source, 0, 0, (&mut room, 2..5)).map(drop), ErrorClass::Disp, words);
        assert_eq!((room, world.try_probe(Any, Any)?), ([5; 4], None));
        Ok(())
    });
}

#[test]
fn a_buffer_is_attached_once_and_what_has_no_room_in_it_is_not_sent() {
    everywhere(2, |world| {
        if world.rank() == 0 {
            refused(
                world.message(1, 0).buffered().send([1u8]),
                ErrorClass::Buffer,
                &["none is attached", "attach_buffer"],
            );
            refused(world.detach_buffer().map(drop), ErrorClass::Buffer, &["no buffer is attached"]);
            world.attach_buffer(10)?;
            refused(world.attach_buffer(10), ErrorClass::Buffer, &["a buffer of 10 bytes is attached, at"]);
            let words = &["has no room for 11 bytes: 0 of 10 are in use"][..];
            refused(world.message(1, 0).buffered().send([1u8; 11]), ErrorClass::Buffer, words);
            world.message(1, 0).buffered().send([2u8; 10])?;
        } else {
            assert_eq!(world.recv::<u8>(0, Any)?.0, [2; 10]);
            world.message(0, 0).synchronous().send([0u8; 0])?;
        }
        if world.rank() == 0 {
            world.recv::<u8>(1, 0)?;
            // The first message was received.
            world.message(1, 0).buffered().send([3u8; 10])?;
            world.message(1, 0).buffered().send([0u8; 0])?;
            assert_eq!(world.detach_buffer()?, 10);
        } else {
            assert_eq!(world.recv::<u8>(0, Any)?.0, [3; 10]);
            assert!(world.recv::<u8>(0, Any)?.0.is_empty());
        }
        Ok(())
    });
}

#[test]
fn buffered_sends_with_their_elements_in_the_message_take_no_room_in_the_buffer() {
    for transport in kinds(2) {
        let world = ranks(2).transport(transport.clone()).end_deadlocks(true);
        let run = world.run(|world| {
            if world.rank() == 0 {
                world.attach_buffer(10)?;
                // Rank 1 has received none of the messages, and detaching the buffer waits for none
                // of them.
                (0..100).try_for_each(|i| world.message(i % 2, 0).buffered().send([i as u8; 8]))?;
                assert_eq!(world.detach_buffer()?, 10);
            }
            world.barrier()?;
            let own = 100 / 2;
            (0..own).try_for_each(|i| {
                assert_eq!(world.recv::<u8>(0, 0)?.0, [2 * i + world.rank() as u8; 8]);
                Ok(())
            })
        });
        run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
    }
}

#[test]
fn sends_to_nobody_and_receives_from_nobody_do_nothing() {
    alone(|world| {
        world.message(None, 0).send([1u8])?;
        world.message(None, 0).synchronous().send([1u8])?;
        world.message(None, 0).ready().send([1u8])?;
        let mut room = [1u8];
        assert_eq!(world.recv_into(None, 3, &mut room)?, Status::default());
        assert_eq!(world.recv::<u8>(None, Any)?, (vec![], Status::default()));
        assert_eq!(world.probe(None, Any)?, Status::default());
        assert_eq!(world.sendrecv(None, 0, [2u8], None, 0, &mut room)?, Status::default());
        assert_eq!((room, world.try_probe(Any, Any)?), ([1], None));
        Ok(())
    });
}

#[test]
fn a_ready_send_that_no_receive_waits_for_is_told_to_the_receiver() {
    everywhere(2, |world| {
        if world.rank() == 1 {
            world.message(0, 3).ready().send([1u8; 4])?;
            world.recv::<u8>(0, 0)?;
            return world.message(0, 5).ready().send([2u8; 4]);
        }
        // The message has arrived.
        world.probe(1, 3)?;
        let mut room = [9u8; 4];
        let words = &["the message of rank 1 with tag 3", "ready send", "lost"];
        refused(world.recv_into(1, 3, &mut room).map(drop), ErrorClass::Assert, words);
        assert_eq!(room, [9; 4]);
        world.sendrecv(1, 0, [0u8], 1, 5, &mut room)?;
        assert_eq!(room, [2; 4]);
        Ok(())
    });
}

#[test]
fn calls_after_the_world_has_ended_are_refused() {
    let world = ranks(2);
    let run = world.run(|world| {
        if world.rank() == 1 {
            return Ok(());
        }
        let lost = world.recv::<u8>(1, 0).unwrap_err();
        assert_eq!(lost.class(), ErrorClass::ProcFailed);
        for error in [
            world.message(0, 0).send([1u8]),
            world.message(None, 0).send([1u8]),
            world.recv::<u8>(0, 0).map(drop),
            world.recv_into(None, 0, &mut [0u8]).map(drop),
            world.sendrecv(0, 0, [1u8], 0, 0, &mut [0u8]).map(drop),
            world.probe(0, 0).map(drop),
            world.try_probe(0, 0).map(drop),
            world.attach_buffer(1),
            world.detach_buffer().map(drop),
        ] {
            assert_eq!(error.unwrap_err().class(), ErrorClass::ProcFailed);
        }
        Ok(())
    });
    assert!(run.is_ok(), "{run:?}");
}
