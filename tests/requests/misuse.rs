//! Every call with arguments that are not valid.

use fencepost::{Check, Error, ErrorClass, Refused, Result, ranks};
use fencepost_tests_worlds::messages::everywhere;

#[track_caller]
fn refused(error: &Error, class: ErrorClass, words: &[&str]) {
    assert_eq!(error.class(), class, "{error}");
    for word in words.iter().chain(&["misuse.rs:"]) {
        assert!(error.to_string().contains(word), "no {word:?} in {error}");
    }
}

#[track_caller]
fn given_back<T: std::fmt::Debug>(result: Result<T, Refused<Vec<u8>>>, class: ErrorClass, words: &[&str]) {
    let (buffer, error) = result.expect_err("it is refused").into_parts();
    assert_eq!(buffer, [5; 3]);
    refused(&error, class, words);
}

#[test]
fn a_rank_that_the_world_does_not_have_is_refused_and_the_buffer_given_back() {
    everywhere(2, |world| {
        let (words, values) = (&["rank 2 is not one of the world's 2 ranks (0 to 1)"][..], || vec![5u8; 3]);
        world.attach_buffer(100)?;
        given_back(world.message(2, 0).isend(values()), ErrorClass::Rank, words);
        given_back(world.message(2, 0).synchronous().isend(values()), ErrorClass::Rank, words);
        given_back(world.message(2, 0).buffered().isend(values()), ErrorClass::Rank, words);
        given_back(world.message(2, 0).ready().isend(values()), ErrorClass::Rank, words);
        given_back(world.irecv_into(2, 0, values()), ErrorClass::Rank, words);
        refused(&world.irecv::<u8>(2, 0).expect_err("no such rank"), ErrorClass::Rank, words);
        let mut room = [0u8; 3];
        let in_scope = world.scope(|scope| {
            refused(&scope.message(2, 0).isend(values()).expect_err("no such rank"), ErrorClass::Rank, words);
            scope.irecv_into(2, 0, &mut room).map(drop)
        });
        refused(&in_scope.expect_err("no such rank"), ErrorClass::Rank, words);
        Ok(())
    });
}

#[test]
fn elements_that_a_slice_does_not_have_are_refused_in_a_scope() {
    everywhere(1, |world| {
        let words = &["elements 2..5 are not all in the slice of 4 elements"][..];
        let (values, mut room) = ([1u32; 4], [2u32; 4]);
        world.scope(|scope| {
            let error = scope.message(0, 0).isend((&values, 2..5)).expect_err("there are four");
            refused(&error, ErrorClass::Disp, words);
            let error = scope.irecv_into(0, 0, (&mut room, 2..5)).expect_err("there are four");
            refused(&error, ErrorClass::Disp, words);
            Ok(())
        })?;
        assert_eq!(room, [2; 4]);
        Ok(())
    });
}

#[test]
fn a_buffered_send_without_room_is_refused_and_the_buffer_given_back() {
    everywhere(1, |world| {
        given_back(
            world.message(0, 0).buffered().isend(vec![5u8; 3]),
            ErrorClass::Buffer,
            &["none is attached"],
        );
        world.attach_buffer(2)?;
        given_back(
            world.message(0, 0).buffered().isend(vec![5u8; 3]),
            ErrorClass::Buffer,
            &["has no room for 3 bytes"],
        );
        Ok(())
    });
}

#[test]
fn a_request_of_another_world_is_refused_by_a_set_and_given_back() {
    everywhere(2, |world| {
        let part = world.split(Some(0), 0)?.expect("it is in one");
        let other = 1 - world.rank();
        let mut set = world.requests();
        let foreign = set.push(part.irecv::<u8>(other, 0)?).expect_err("it is of another world");
        let (request, error) = foreign.into_parts();
        refused(&error, ErrorClass::Arg, &["another world"]);
        part.message(other, 0).send([other as u8])?;
        assert_eq!(request.wait()?.0, [world.rank() as u8]);
        assert!(set.is_empty());
        Ok(())
    });
}

#[test]
fn places_that_no_request_has_are_not_cancelled() {
    everywhere(1, |world| {
        let mut set = world.requests();
        assert_eq!(set.cancel(0), None);
        let place = set.push(world.irecv_into(0, 0, vec![1u8])?)?;
        assert_eq!(
            (set.cancel(place + 1), set.cancel(place), set.cancel(place)),
            (None, Some(vec![1]), None)
        );
        assert_eq!((set.len(), set.wait_any()?), (0, None));
        Ok(())
    });
}

#[test]
fn no_more_sends_wait_for_receives_than_a_rank_keeps() {
    let run = ranks(1).eager(0).run(|world| {
        let mut sends = Vec::new();
        let error = loop {
            match world.message(0, 0).isend(vec![5u8; 3]) {
                Ok(request) => sends.push(request),
                Err(refused) => break refused,
            }
        };
        assert_eq!(sends.len(), 65_536);
        given_back(
            Err::<(), _>(error),
            ErrorClass::NoMem,
            &["65536 messages of this rank wait for receives"],
        );
        for send in sends {
            assert_eq!(world.recv::<u8>(0, 0)?.0, [5; 3]);
            send.wait()?;
        }
        Ok(())
    });
    run.unwrap();
}

#[test]
fn sends_that_only_a_check_lets_wait_are_as_many_as_are_kept_for_receives() {
    const SENDS: usize = 70_000;
    let run = ranks(1).check(Check::Mpi).run(|world| {
        let sends = (0..SENDS).map(|number| world.message(0, 0).isend(vec![number]));
        let sends = sends.collect::<Result<Vec<_>, _>>().expect("unchecked they would be complete");
        for (number, mut send) in sends.into_iter().enumerate() {
            assert!(!send.test(), "no receive has taken it");
            assert_eq!(world.recv::<usize>(0, 0)?.0, [number]);
            send.wait()?;
        }
        // The sends below would wait without a check, too. The check does not raise the limit on
        // the number of such sends.
        let long = || world.message(0, 0).isend(vec![0u8; 100_000]);
        let mut waiting = vec![long()?];
        while waiting.len() < 65_536 {
            waiting.push(world.message(0, 0).synchronous().isend(Vec::<u8>::new())?);
        }
        world.message(0, 0).isend(vec![0u8]).map(drop).expect_err("there are as many as may wait");
        for send in waiting {
            drop(world.recv::<u8>(0, 0)?);
            send.wait()?;
        }
        Ok(())
    });
    run.unwrap();
}

#[test]
fn a_request_that_fails_at_the_end_of_a_scope_names_the_line_of_the_scope() {
    everywhere(2, |world| {
        let other = 1 - world.rank();
        let mut room = [0u8; 2];
        let sent = world.message(other, 0).isend(vec![5u8; 3])?;
        let line = line!() + 1;
        let ended = world.scope(|scope| scope.irecv_into(other, 0, &mut room).map(drop));
        let error = ended.expect_err("the message is longer than the room");
        refused(&error, ErrorClass::Truncate, &[&format!("misuse.rs:{line}:")]);
        assert_eq!(room, [0; 2]);
        Ok(sent.wait().map(drop)?)
    });
}
