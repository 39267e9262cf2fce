//! The meaning of requests and of sets of requests, one rule in each test.

use fencepost::{Any, Datatype, ErrorClass, Request, Result, Status};
use fencepost_tests_worlds::messages::{everywhere, status};
use std::task::Poll;

/// Waits for a request by testing it repeatedly.
pub fn tested<B>(mut request: Request<B>) -> Request<B> {
    while !request.test() {
        std::thread::yield_now();
    }
    request
}

#[test]
fn what_was_begun_is_completed_by_a_wait_or_by_tests() {
    everywhere(2, |world| {
        let other = 1 - world.rank();
        for len in [0, 1, 1000, 200_000] {
            for waits in [true, false] {
                let receive = world.irecv::<u64>(other, 5)?;
                let send = world.message(other, 5).isend(vec![world.rank() as u64; len])?;
                let (receive, send) = if waits { (receive, send) } else { (tested(receive), tested(send)) };
                let (values, found) = receive.wait()?;
                assert_eq!((values, found), (vec![other as u64; len], status(other, 5, len)));
                let (buffer, found) = send.wait()?;
                assert_eq!((buffer, found), (vec![world.rank() as u64; len], Status::default()));
            }
        }
        Ok(())
    });
}

#[test]
fn receives_take_messages_in_the_order_in_which_they_were_begun() {
    everywhere(2, |world| {
        if world.rank() == 0 {
            let named =
                [(Some(0), Some(1)), (None, Some(1)), (Some(0), None), (None, None), (Some(0), Some(1))];
            let receives = named.map(|(source, tag): (Option<usize>, Option<u32>)| {
                let source = source.map_or(fencepost::Sources::Any, |_| fencepost::Sources::Rank(1));
                let tag = tag.map_or(fencepost::Tags::Any, fencepost::Tags::Tag);
                world.irecv::<u32>(source, tag)
            });
            world.barrier()?;
            let came: Vec<u32> =
                receives.into_iter().map(|receive| Ok(receive?.wait()?.0[0])).collect::<Result<_>>()?;
            assert_eq!(came, [1, 3, 0, 2, 4]);
        } else {
            world.barrier()?;
            for (value, tag) in [(0u32, 2), (1, 1), (2, 2), (3, 1), (4, 1)] {
                world.message(0, tag).send([value])?;
            }
        }
        world.barrier()
    });
}

/// Example 3.15 of the MPI standard.
#[test]
fn a_synchronous_send_is_complete_though_its_receive_is_not_waited_for_yet() {
    everywhere(2, |world| {
        if world.rank() == 0 {
            world.message(1, 0).synchronous().send([1.0])?;
            world.message(1, 1).send([2.0])
        } else {
            let receive = world.irecv::<f64>(0, 0)?;
            assert_eq!(world.recv::<f64>(0, 1)?.0, [2.0]);
            assert_eq!(receive.wait()?.0, [1.0]);
            Ok(())
        }
    });
}

#[test]
fn a_receive_that_has_taken_nothing_is_cancelled_and_takes_nothing_afterwards() {
    everywhere(2, |world| {
        if world.rank() == 0 {
            let first = world.irecv_into(1, 3, vec![7u8; 4])?;
            let second = world.irecv_into(1, 3, vec![8u8; 4])?;
            assert_eq!(first.cancel().expect("nothing was sent"), [7; 4]);
            world.barrier()?;
            let second = tested(second);
            let second = second.cancel().expect_err("it has taken the message");
            assert_eq!(second.wait()?, (vec![1, 2, 8, 8], status(1, 3, 2)));
            let send = world.message(1, 0).isend(vec![0u8; 1 << 20])?;
            assert!(send.cancel().expect_err("it is a send").wait().is_ok());
        } else {
            world.barrier()?;
            world.message(0, 3).send([1u8, 2])?;
            world.recv::<u8>(0, 0)?;
        }
        Ok(())
    });
}

#[test]
fn a_set_completes_requests_in_the_order_in_which_they_became_complete() {
    everywhere(2, |world| {
        const ORDER: [u32; 5] = [3, 0, 4, 1, 2];
        if world.rank() == 1 {
            return ORDER
                .into_iter()
                .try_for_each(|tag| world.message(0, tag).synchronous().send(vec![tag; 3]));
        }
        let mut set = world.requests();
        for tag in 0..5 {
            assert_eq!(set.push(world.irecv::<u32>(1, tag)?)?, tag as usize);
        }
        for (at, tag) in ORDER.into_iter().enumerate() {
            assert_eq!(set.len(), 5 - at);
            let completed = set.wait_any()?.expect("some are left");
            assert_eq!((completed.place, completed.buffer), (tag as usize, vec![tag; 3]));
            assert_eq!(completed.status, status(1, tag, 3));
        }
        assert_eq!(set.wait_any()?, None);
        Ok(())
    });
}

#[test]
fn calls_of_an_empty_set_return_at_once_with_none() {
    everywhere(1, |world| {
        let mut set = world.requests::<Vec<u8>>();
        assert_eq!(set.wait_any()?, None);
        assert_eq!(set.test_any()?, Poll::Ready(None));
        assert_eq!(set.wait_some()?, None);
        assert_eq!(set.test_some()?, None);
        assert_eq!(set.wait_all()?, []);
        assert_eq!(set.test_all()?, Some(vec![]));
        Ok(())
    });
}

#[test]
fn a_test_of_a_set_completes_what_is_complete_and_waits_for_nothing() {
    everywhere(2, |world| {
        if world.rank() == 1 {
            world.recv::<u8>(0, 9)?;
            world.message(0, 1).synchronous().send([1u8])?;
            world.message(0, 2).synchronous().send([2u8])?;
            world.recv::<u8>(0, 9)?;
            return world.message(0, 3).send([3u8]);
        }
        let mut set = world.requests();
        for tag in 1..4 {
            set.push(world.irecv::<u8>(1, tag)?)?;
        }
        assert_eq!(set.test_any()?, Poll::Pending);
        assert_eq!(set.test_some()?, Some(vec![]));
        assert_eq!(set.test_all()?, None);
        world.message(1, 9).send([0u8])?;
        let mut places = Vec::new();
        while places.len() < 2 {
            places.extend(set.test_some()?.unwrap().into_iter().map(|completed| completed.place));
        }
        assert_eq!(places, [0, 1]);
        assert_eq!((set.test_all()?, set.len()), (None, 1));
        world.message(1, 9).send([0u8])?;
        let last = loop {
            if let Some(all) = set.test_all()? {
                break all;
            }
        };
        assert_eq!((last[0].place, last[0].buffer.as_slice()), (2, &[3][..]));
        Ok(())
    });
}

#[test]
fn requests_of_several_kinds_are_in_one_set() {
    everywhere(3, |world| {
        let (rank, size) = (world.rank(), world.size());
        let mut set = world.requests();
        for other in (0..size).filter(|&other| other != rank) {
            set.push(world.irecv::<u32>(other, 0)?.map(|values| values[0] as usize))?;
            set.push(world.message(other, 0).synchronous().isend(vec![rank as u32; 5])?.map(|_| usize::MAX))?;
        }
        let all = set.wait_all()?;
        let mut came: Vec<usize> = all.iter().map(|one| one.buffer).filter(|&one| one < size).collect();
        came.sort_unstable();
        assert_eq!(came, (0..size).filter(|&other| other != rank).collect::<Vec<_>>());
        assert!(set.is_empty());
        Ok(())
    });
}

#[test]
fn the_error_of_a_request_is_its_own_and_the_others_are_completed() {
    everywhere(2, |world| {
        use fencepost::Outcome::{Failed, Success};
        if world.rank() == 1 {
            world.recv::<u8>(0, 0)?;
            world.message(0, 1).synchronous().send([1u8; 9])?;
            world.message(0, 2).synchronous().send([2u16])?;
            return world.message(0, 3).synchronous().send([3u8; 2]);
        }
        {
            let mut set = world.requests();
            for tag in 1..4 {
                set.push(world.irecv_into(1, tag, vec![0u8; 4])?)?;
            }
            world.message(1, 0).send([0u8])?;
            let refused = set.wait_all().expect_err("two do not fit");
            assert_eq!(refused.error().class(), ErrorClass::InStatus);
            assert!(refused.to_string().contains("2 of 3 requests"), "{refused}");
            let (outcomes, _) = refused.into_parts();
            let classes: Vec<_> = outcomes.iter().map(|outcome| outcome.class()).collect();
            assert_eq!(classes, [Some(ErrorClass::Truncate), Some(ErrorClass::Type), None]);
            let [Failed { buffer, .. }, Failed { .. }, Success(last)] = &outcomes[..] else {
                panic!("{outcomes:?}")
            };
            assert_eq!((&buffer[..], &last.buffer[..]), (&[0; 4][..], &[3, 3, 0, 0][..]));
        }
        Ok(())
    });
}

#[test]
fn requests_of_a_scope_borrow_slices_and_parts_of_them() {
    everywhere(2, |world| {
        let other = 1 - world.rank();
        for len in [4, 100_000] {
            let values: Vec<usize> = (0..2 * len).map(|at| 2 * at + world.rank()).collect();
            let odd = Datatype::nest(1, &[(len, 2)], 1).unwrap();
            let (mut all, mut part) = (vec![0; 2 * len], vec![0; 2 * len]);
            world.scope(|scope| {
                let first = scope.irecv_into(other, 0, &mut all)?;
                drop(scope.irecv_into(other, 1, (&mut part, &odd))?);
                std::mem::forget(scope.message(other, 0).isend(&values)?);
                let last = scope.message(other, 1).synchronous().isend((&values, odd.clone()))?;
                assert_eq!(first.wait()?.1, status(other, 0, 2 * len));
                std::mem::forget(last);
                Ok(())
            })?;
            assert!((0..2 * len).all(|at| all[at] == 2 * at + other));
            assert!((0..len).all(|at| part[2 * at + 1] == 4 * at + 2 + other && part[2 * at] == 0));
        }
        Ok(())
    });
}

#[test]
fn buffered_and_ready_sends_are_begun_as_well() {
    everywhere(2, |world| {
        if world.rank() == 0 {
            world.attach_buffer(10_000)?;
            let mut buffered = world.message(1, 0).buffered().isend(vec![1u8; 5000])?;
            assert!(buffered.test(), "a buffered send is complete at its call");
            assert_eq!(buffered.wait()?.0, [1; 5000]);
            world.recv::<u8>(1, 0)?;
            world.message(1, 1).ready().isend(vec![2u8; 5000])?.wait()?;
            assert_eq!(world.detach_buffer()?, 10_000);
        } else {
            let receive = world.irecv::<u8>(0, 1)?;
            world.message(0, 0).send([0u8])?;
            assert_eq!(world.recv::<u8>(0, 0)?.0, [1; 5000]);
            assert_eq!(receive.wait()?.0, [2; 5000]);
        }
        Ok(())
    });
}

#[test]
fn requests_with_nobody_are_complete_and_empty() {
    everywhere(1, |world| {
        let receive = world.irecv::<u8>(None, Any)?;
        assert_eq!(receive.wait()?, (vec![], Status::default()));
        let send = world.message(None, 0).synchronous().isend(vec![3u8])?;
        assert_eq!(send.wait()?, (vec![3], Status::default()));
        world.scope(|scope| scope.message(None, 0).isend([1u8])?.wait().map_err(Into::into).map(drop))
    });
}

#[test]
fn messages_to_oneself_are_sent_and_received_by_requests() {
    everywhere(1, |world| {
        let send = world.message(0, 1).synchronous().isend(vec![1u8; 100])?;
        let other = world.message(0, 2).isend(vec![2u8; 100_000])?;
        assert_eq!(world.recv::<u8>(0, 2)?.0, [2; 100_000]);
        assert_eq!(world.recv::<u8>(Any, Any)?.0, [1; 100]);
        assert_eq!(send.wait()?.0, [1; 100]);
        assert_eq!(other.wait()?.0, [2; 100_000]);
        Ok(())
    });
}
