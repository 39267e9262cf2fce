//! Requests that are dropped, leaked, moved or unwound by a panic. Each request is completed, or
//! its buffer is never given to other code.

use fencepost::{Error, ErrorClass, Request, Result, ranks};
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::messages::{everywhere, kinds};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The lengths of two messages in bytes. The first message is sent together with its elements if
/// that is allowed. The second message is never sent together with its elements.
const LENGTHS: [usize; 2] = [100, 1 << 20];

#[test]
fn a_request_that_is_dropped_is_completed_first() {
    everywhere(2, |world| {
        for len in LENGTHS {
            if world.rank() == 0 {
                drop(world.message(1, 0).synchronous().isend(vec![1u8; len])?);
                // The message was taken.
                world.message(1, 1).send([0u8; 0])?;
                drop(world.irecv::<u8>(1, 2)?);
                assert_eq!(world.try_probe(1, 2)?, None);
            } else {
                assert_eq!(world.recv::<u8>(0, 0)?.0, vec![1; len]);
                world.recv::<u8>(0, 1)?;
                world.message(0, 2).send(vec![2u8; len])?;
            }
            world.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn requests_of_a_set_that_is_dropped_are_completed_first() {
    everywhere(2, |world| {
        let other = 1 - world.rank();
        let mut set = world.requests();
        for len in LENGTHS {
            set.push(world.irecv::<u8>(other, 0)?)?;
            set.push(world.message(other, 0).isend(vec![1u8; len])?)?;
        }
        let mut set = vec![set];
        drop(set.pop());
        assert_eq!(world.try_probe(other, 0)?, None);
        world.barrier()
    });
}

#[test]
fn what_a_leaked_receive_lands_in_is_written_by_nobody_who_can_see_it() {
    everywhere(2, |world| {
        for len in LENGTHS {
            if world.rank() == 0 {
                std::mem::forget(world.irecv_into(1, 0, vec![0u8; len])?);
                std::mem::forget(world.irecv::<u8>(1, 0)?);
                let others: Vec<Vec<u8>> = (0..8).map(|_| vec![9; len]).collect();
                world.barrier()?;
                // The leaked receives take their messages nevertheless.
                assert_eq!(world.recv::<u8>(1, 0)?.0, vec![3; len]);
                assert!(others.iter().all(|other| other.iter().all(|&byte| byte == 9)));
            } else {
                world.barrier()?;
                for value in 1..4u8 {
                    world.message(0, 0).send(vec![value; len])?;
                }
            }
            world.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn a_rank_that_leaves_with_a_leaked_send_has_failed_for_those_that_wait_for_it() {
    for transport in kinds(2) {
        let world = ranks(2).transport(transport.clone()).eager(0);
        let ends = ends(&world, &[], |world| {
            if world.rank() == 0 {
                std::mem::forget(world.message(1, 0).isend(vec![1u8; 1 << 20])?);
                return Ok(());
            }
            world.recv::<u8>(0, 7).map(drop)
        });
        let (class, text) = ends[1].as_ref().expect("rank 0 has left");
        assert_eq!(*class, ErrorClass::ProcFailed, "{transport:?}: {text}");
        for words in ["has not completed a request", "leaks.rs:"] {
            assert!(text.contains(words), "{transport:?}: no {words:?} in {text}");
        }
    }
}

#[test]
fn requests_that_are_panicked_over_are_given_up_and_the_others_are_told() {
    for transport in kinds(2) {
        for at in 0..4 {
            let world = ranks(2).transport(transport.clone()).eager(0);
            let ends = ends(&world, &[0], |world| {
                let mut set = world.requests();
                let (mut room, values) = (vec![0u8; 1 << 20], vec![1u8; 1 << 20]);
                if world.rank() == 0 {
                    match at {
                        0 => drop(set.push(world.irecv::<u8>(1, 0)?)?),
                        1 => drop(set.push(world.message(1, 0).isend(values)?)?),
                        2 => drop(set.push(world.irecv_into(1, 0, room)?)?),
                        _ => {
                            return world.scope(|scope| {
                                let _receive = scope.irecv_into(1, 0, &mut room)?;
                                let _send = scope.message(1, 0).isend(&values)?;
                                panic!("it gives up")
                            });
                        }
                    }
                    panic!("it gives up");
                }
                world.recv::<u8>(0, 9).map(drop)
            });
            let (class, text) = ends[1].as_ref().expect("rank 0 has panicked");
            assert_eq!(*class, ErrorClass::ProcFailed, "{transport:?}, {at}: {text}");
        }
    }
}

#[test]
fn a_receive_that_is_panicked_over_while_its_elements_come_keeps_no_sender_waiting() {
    everywhere(2, |world| {
        let values = vec![1u8; 1 << 20];
        if world.rank() == 0 {
            world.message(1, 0).send(&values[..])?;
            return world.message(1, 1).send(&values[..]);
        }
        world.probe(0, 0)?;
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let _receive = world.irecv::<u8>(0, 0).unwrap();
            panic!("it gives up");
        }));
        assert!(ended.is_err());
        assert_eq!(world.recv::<u8>(0, 1)?.0, values);
        Ok(())
    });
}

#[test]
fn a_scope_that_fails_cancels_its_receives_and_returns_its_own_error() {
    everywhere(2, |world| {
        let mut room = [7u8; 4];
        if world.rank() == 0 {
            let result: Result<()> = world.scope(|scope| {
                let _never = scope.irecv_into(1, 0, &mut room)?;
                let _taken = scope.message(1, 1).synchronous().isend([1u8; 1000])?;
                Err(Error::new(ErrorClass::Other, "it has had enough"))
            });
            assert_eq!(result.unwrap_err().class(), ErrorClass::Other);
            world.message(1, 2).send([0u8])?;
            assert_eq!(world.recv::<u8>(1, 0)?.0, [2; 4]);
            assert_eq!(room, [7; 4]);
        } else {
            assert_eq!(world.recv::<u8>(0, 1)?.0, [1; 1000]);
            world.recv::<u8>(0, 2)?;
            world.message(0, 0).send([2u8; 4])?;
        }
        Ok(())
    });
}

#[test]
fn a_request_outlives_the_set_and_the_scope_that_it_was_in() {
    everywhere(2, |world| {
        let other = 1 - world.rank();
        let mut room = [0u8; 3];
        let late = world.scope(|scope| {
            let _send = scope.message(other, 0).isend([world.rank() as u8; 3])?;
            scope.irecv_into(other, 0, &mut room)
        })?;
        assert_eq!(room, [other as u8; 3]);
        assert_eq!(late.wait()?.1.len, 3);
        Ok(())
    });
}

/// The elements of a send are read in place, or requested, while the peer leaves.
#[test]
fn a_peer_that_fails_leaves_each_request_its_buffer() {
    for transport in kinds(2) {
        for eager in [0, 1 << 14] {
            let returned = AtomicUsize::new(0);
            let world = ranks(2).transport(transport.clone()).eager(eager);
            let ends = ends(&world, &[], |world| {
                if world.rank() == 1 {
                    return Err(Error::new(ErrorClass::Other, "it has had enough"));
                }
                let mut requests = Vec::new();
                for len in LENGTHS {
                    match world.message(1, 0).synchronous().isend(vec![4u8; len]) {
                        Ok(request) => requests.push(request),
                        Err(refused) => drop(refused.into_parts().0),
                    }
                    requests.extend(world.irecv_into(1, 0, vec![4u8; len]).ok());
                }
                for request in requests {
                    let refused = request.wait().expect_err("rank 1 has left");
                    let (buffer, error) = refused.into_parts();
                    assert_eq!(error.class(), ErrorClass::ProcFailed);
                    assert!(buffer.iter().all(|&byte| byte == 4));
                    returned.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
            drop(ends);
            assert!(returned.load(Ordering::Relaxed) <= 4);
        }
    }
}

#[test]
fn a_test_of_a_request_after_its_world_has_ended_does_not_wait() {
    for transport in kinds(2) {
        let seen = AtomicBool::new(false);
        let run = ranks(2).transport(transport.clone()).run(|world| {
            if world.rank() == 1 {
                return Ok(());
            }
            let mut request = world.irecv::<u8>(1, 0)?;
            while !request.test() {
                std::thread::yield_now();
            }
            assert_eq!(request.wait().expect_err("rank 1 has left").error().class(), ErrorClass::ProcFailed);
            assert!(world.irecv::<u8>(0, 0).is_err());
            seen.store(true, Ordering::Relaxed);
            Ok(())
        });
        assert!(run.is_ok() && seen.load(Ordering::Relaxed), "{transport:?}: {run:?}");
    }
}

thread_local!(static KEPT: RefCell<Option<Request<Vec<u8>>>> = const { RefCell::new(None) });

/// The rank is in a wait when the request is dropped, so the request cannot be completed. The
/// request is given up, and stays open.
#[test]
fn a_request_that_is_dropped_by_a_function_called_in_a_wait_is_leaked_with_its_buffer() {
    const LEN: usize = LENGTHS[1];
    for transport in kinds(2) {
        for sends in [true, false] {
            let (tell, told) = channel();
            let (tell, told) = (Mutex::new(tell), Mutex::new(told));
            let world = ranks(2).transport(transport.clone()).stall(Some(Duration::ZERO));
            let world = world.on_stall(move |stall| {
                if stall.rank == 0 {
                    let kept = KEPT.take();
                    let _ = tell.lock().expect("no panic").send(());
                    drop(kept);
                }
            });
            let run = world.run(|world| {
                if world.rank() == 0 {
                    let request = match sends {
                        true => world.message(1, 0).synchronous().isend(vec![3u8; LEN])?,
                        false => world.irecv_into(1, 0, vec![9u8; LEN])?,
                    };
                    KEPT.set(Some(request));
                } else {
                    told.lock().expect("no panic").recv().expect("rank 0 stalls");
                    match sends {
                        true => assert_eq!(world.recv::<u8>(0, 0)?.0, vec![3; LEN]),
                        false => world.message(0, 0).synchronous().send(vec![4u8; LEN])?,
                    }
                }
                world.barrier()
            });
            run.unwrap_or_else(|error| panic!("{transport:?}, {sends}: {error}"));
        }
    }
}

/// The request is dropped when its thread ends, after its rank has left.
#[test]
fn a_request_that_outlives_its_world_is_given_up() {
    for transport in kinds(2) {
        let run = ranks(2).transport(transport.clone()).run(|world| {
            KEPT.set(Some(world.irecv::<u8>(1 - world.rank(), 0)?));
            world.barrier()
        });
        run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
    }
}
