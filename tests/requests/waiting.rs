//! The waits of ranks for each other, and the reports of these waits. Also the results of requests
//! whose peer leaves.

use fencepost::{Error, ErrorClass, LockType, Outcome, Stall, ranks};
use fencepost_tests_support::side_by_side::side_by_side;
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::messages::{everywhere, kinds};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::task::Poll;
use std::time::Duration;

#[test]
fn ranks_that_wait_for_each_other_s_requests_are_told_so() {
    let cases = kinds(2).into_iter().flat_map(|transport| (0..5).map(move |at| (transport.clone(), at)));
    side_by_side(usize::MAX, cases, |(transport, at)| {
        let world = ranks(2).transport(transport.clone()).eager(0).stall(Some(Duration::ZERO));
        let world = world.end_deadlocks(true).on_stall(|_| ());
        let ends = ends(&world, &[], |world| {
            let other = 1 - world.rank();
            match at {
                0 => drop(world.irecv::<u8>(other, 30)?.wait()?),
                1 => drop(world.message(other, 30).synchronous().isend(vec![0u8])?.wait()?),
                2 => {
                    let mut set = world.requests();
                    set.push(world.irecv::<u8>(other, 30)?)?;
                    set.wait_any()?;
                }
                3 => {
                    let (u, group) = (world.window::<u8>(1)?, world.group([other])?);
                    let mut set = world.requests();
                    set.push(u.post(&group)?.iwait().map(drop))?;
                    set.push(world.irecv::<u8>(other, 31)?.map(drop))?;
                    set.wait_all()?;
                }
                _ => {
                    let mut set = world.requests();
                    set.push(world.message(other, 30).isend(vec![0u8; 1000])?)?;
                    set.push(world.irecv::<u8>(other, 31)?)?;
                    set.wait_all()?;
                }
            }
            Ok(())
        });
        for (class, text) in ends.into_iter().map(|end| end.expect("it cannot go on")) {
            let class_of = if at >= 3 { ErrorClass::InStatus } else { ErrorClass::RmaSync };
            assert_eq!(class, class_of, "{transport:?}, {at}: {text}");
            for word in ["deadlock", "rank 0 waits for rank 1", "rank 1 waits for rank 0", "waiting.rs:"] {
                assert!(text.contains(word), "{transport:?}, {at}: no {word:?} in {text}");
            }
        }
    });
}

#[test]
fn a_stall_names_the_request_its_line_and_the_call_that_waits() {
    for transport in kinds(2) {
        for (at, words) in [
            (0, ["Request::wait (", "a receive from rank 1 with tag 9, begun at"]),
            (1, ["Request::wait (", "a send to rank 1 with tag 9, begun at"]),
            (2, ["RequestSet::wait_any (", "2 requests: a receive from any rank with tag 8, begun at"]),
            (3, ["RequestSet::wait_some (", "2 requests: a receive from any rank with tag 8, begun at"]),
            (4, ["RequestSet::wait_all (", "a receive from any rank with tag 8, begun at"]),
        ] {
            let (tell, told) = channel();
            let (tell, told) = (Mutex::new(tell), Mutex::new(told));
            let world = ranks(2).transport(transport.clone()).eager(0).stall(Some(Duration::ZERO));
            let world = world.on_stall(move |stall: &Stall| drop(tell.lock().unwrap().send(stall.clone())));
            let run = world.run(|world| {
                if world.rank() == 1 {
                    let told = told.lock().unwrap();
                    let stall = told.iter().find(|stall| stall.rank == 0).expect("rank 0 stalls");
                    assert_eq!((stall.awaited, stall.file), (1, file!()), "{stall}");
                    for word in words {
                        assert!(stall.to_string().contains(word), "{transport:?}, {at}: {stall}");
                    }
                    return Ok(());
                }
                let mut set = world.requests();
                if at > 1 {
                    set.push(world.irecv::<u8>(fencepost::Any, 8)?)?;
                    set.push(world.message(1, 9).isend(vec![0u8; 1000])?)?;
                }
                let ended: Result<(), Error> = match at {
                    0 => world.irecv::<u8>(1, 9)?.wait().map(drop).map_err(Error::from),
                    1 => world.message(1, 9).isend(vec![0u8; 1000])?.wait().map(drop).map_err(Error::from),
                    2 => set.wait_any().map(drop).map_err(Error::from),
                    3 => set.wait_some().map(drop).map_err(Error::from),
                    _ => set.wait_all().map(drop).map_err(Error::from),
                };
                let error = ended.expect_err("rank 1 leaves");
                assert!(error.message().contains("rank 1 has finished"), "{error}");
                Ok(())
            });
            run.unwrap_or_else(|error| panic!("{transport:?}, {at}: {error}"));
        }
    }
}

#[test]
fn a_peer_that_leaves_fails_its_requests_and_those_of_others_are_complete_or_pending() {
    for transport in kinds(3) {
        for eager in [0, 1 << 14] {
            let world = ranks(3).transport(transport.clone()).eager(eager);
            let run = world.run(|world| {
                if world.rank() == 2 {
                    return Ok(());
                }
                if world.rank() == 1 {
                    // This message is sent before rank 0 knows that rank 2 has left.
                    world.message(0, 0).synchronous().send([1u8; 5])?;
                    return world.recv::<u8>(0, 9).map(drop).or(Ok(()));
                }
                let mut set = world.requests();
                set.push(world.irecv::<u8>(1, 0)?)?;
                let mut first = set.test_all()?;
                while first.is_none() {
                    first = set.test_all()?;
                }
                assert_eq!(first.unwrap()[0].buffer, [1; 5]);
                let done = world.irecv::<u8>(None, 0)?;
                set.push(done)?;
                set.push(world.irecv::<u8>(2, 0)?)?;
                set.push(world.irecv::<u8>(1, 1)?)?;
                let refused = set.wait_all().expect_err("rank 2 has left");
                assert_eq!(refused.error().class(), ErrorClass::InStatus);
                let (outcomes, _) = refused.into_parts();
                let mut classes: Vec<_> = outcomes.iter().map(Outcome::class).collect();
                classes.sort_by_key(|class| class.map(|class| format!("{class:?}")));
                let expected = [None, Some(ErrorClass::Pending), Some(ErrorClass::ProcFailed)];
                assert_eq!(classes, expected, "{transport:?}");
                assert_eq!(set.len(), 1);
                let (last, error) = set.wait_any().expect_err("the world has ended").into_parts();
                assert_eq!((last.1, error.class()), (vec![], ErrorClass::ProcFailed));
                assert!(set.is_empty());
                Ok(())
            });
            run.unwrap_or_else(|error| panic!("{transport:?}, {eager}: {error}"));
        }
    }
}

#[test]
fn a_set_of_many_clients_starves_none() {
    const ROUNDS: u64 = 30;
    everywhere(4, |world| {
        if world.rank() > 0 {
            return (0..ROUNDS).try_for_each(|value| world.message(0, 0).send([value]));
        }
        let mut set = world.requests();
        for client in 1..world.size() {
            set.push(world.irecv::<u64>(client, 0)?)?;
        }
        let mut served = vec![0; world.size()];
        while let Some(all) = set.wait_some()? {
            let mut clients: Vec<_> = all.iter().map(|came| came.status.source.unwrap()).collect();
            clients.sort_unstable();
            clients.dedup();
            assert_eq!(clients.len(), all.len(), "a call serves each client once");
            for came in all {
                let client = came.status.source.unwrap();
                assert_eq!(came.buffer, [served[client]]);
                served[client] += 1;
                if served[client] < ROUNDS {
                    set.push(world.irecv(client, 0)?)?;
                }
            }
        }
        assert_eq!(served, [0, ROUNDS, ROUNDS, ROUNDS]);
        Ok(())
    });
}

#[test]
fn what_is_posted_in_one_world_goes_on_while_its_rank_waits_in_a_fence_of_that_world() {
    everywhere(2, |world| {
        let mut u = world.window::<u64>(2)?;
        for len in [10, 100_000] {
            if world.rank() == 0 {
                let receive = world.irecv::<u64>(1, 0)?;
                u.fence()?;
                assert_eq!(receive.wait()?.0, vec![7; len]);
            } else {
                // The message is received while rank 0 is in its fence.
                world.message(0, 0).synchronous().send(vec![7u64; len])?;
                u.fence()?;
            }
        }
        Ok(())
    });
}

/// Requests belong to one world, while their ranks wait in another world. One of the two worlds is
/// a part of the other, or both are parts of the same world.
#[test]
fn what_is_begun_in_one_world_goes_on_while_its_rank_waits_in_another_one() {
    for transport in kinds(2) {
        for eager in [0, 1 << 14] {
            let world = ranks(2).transport(transport.clone()).eager(eager).end_deadlocks(true);
            let run = world.run(|world| {
                let parts = [world.split(Some(0), 0)?.unwrap(), world.split(Some(0), 0)?.unwrap()];
                let below = parts[0].split(Some(0), 0)?.unwrap();
                for (begins, waits) in
                    [(&parts[0], world), (world, &parts[1]), (&below, &parts[1]), (&parts[1], &below)]
                {
                    if world.rank() == 0 {
                        let receive = begins.irecv::<u64>(1, 0)?;
                        waits.barrier()?;
                        assert_eq!(receive.wait()?.0, vec![7; 50_000]);
                    } else {
                        begins.message(0, 0).synchronous().send(vec![7u64; 50_000])?;
                        waits.barrier()?;
                    }
                }
                world.barrier()
            });
            run.unwrap_or_else(|error| panic!("{transport:?}, {eager}: {error}"));
        }
    }
}

/// The requests are an exposure that waits for an access of its own rank, an access that waits for
/// a post of its own rank, or both.
#[test]
fn a_set_of_requests_that_wait_for_their_own_rank_only_is_refused_at_once() {
    for transport in kinds(2) {
        for way in ["wait_any", "wait_some", "wait_all"] {
            for (exposes, accesses) in [(true, false), (false, true), (true, true)] {
                // Deadlocks of several ranks are not detected here.
                let ends = ends(&ranks(2).transport(transport.clone()).stall(None), &[], |world| {
                    let (u, v) = (world.window::<u8>(1)?, world.window::<u8>(1)?);
                    if world.rank() == 1 {
                        return world.recv::<u8>(0, 0).map(drop);
                    }
                    let own = world.group([0])?;
                    let mut set = world.requests();
                    if exposes {
                        set.push(u.post(&own)?.iwait().map(drop))?;
                    }
                    if accesses {
                        let access = v.start(&own)?;
                        drop(access.fetch(0, 0)?);
                        set.push(access.icomplete())?;
                    }
                    match way {
                        "wait_any" => set.wait_any().map(drop)?,
                        "wait_some" => set.wait_some().map(drop)?,
                        _ => set.wait_all().map(drop)?,
                    }
                    Ok(())
                });
                let class = if way == "wait_any" { ErrorClass::RmaSync } else { ErrorClass::InStatus };
                let expected = [class, ErrorClass::RmaSync];
                for (end, class) in ends.into_iter().zip(expected) {
                    let (found, text) = end.expect("nobody ends the wait");
                    assert_eq!(found, class, "{transport:?}, {way}: {text}");
                    assert!(text.contains("rank 0 waits for rank 0"), "{transport:?}, {way}: {text}");
                }
            }
        }
    }
}

/// The set has an exposure that waits for an access of rank 0 itself, and a receive. The set can
/// wait for the receive, although only rank 0 could end that access.
#[test]
fn a_set_with_a_request_that_waits_for_its_own_rank_completes_another_one() {
    everywhere(2, |world| {
        let u = world.window::<u8>(1)?;
        if world.rank() == 1 {
            return world.message(0, 0).send([5u8]).and_then(|()| world.barrier());
        }
        let own = world.group([0])?;
        let access = u.start(&own)?;
        access.put([7]).to(0, 0)?;
        let mut set = world.requests();
        set.push(u.post(&own)?.iwait().map(|u| u[..].to_vec()))?;
        set.push(world.irecv::<u8>(1, 0)?)?;
        assert_eq!(set.wait_any()?.map(|completed| completed.buffer), Some(vec![5]));
        assert_eq!(set.test_all()?, None);
        access.complete()?;
        assert_eq!(set.wait_any()?.map(|completed| completed.buffer), Some(vec![7]));
        world.barrier()
    });
}

/// Rank 0 waits for a lock that rank 1 holds until rank 0 has completed its access.
#[test]
fn an_access_that_is_ready_is_carried_out_before_a_get_waits_for_its_lock() {
    for transport in kinds(3) {
        for way in ["wait_any", "wait_some", "wait_all", "test_any", "test_some", "test_all"] {
            let world = ranks(3).transport(transport.clone()).end_deadlocks(true);
            let run = world.run(|world| {
                let (locked, u) = (world.lock_window::<u32>(1)?, world.window::<u32>(1)?);
                match world.rank() {
                    1 => {
                        let lock = locked.lock(2, LockType::Exclusive)?;
                        lock.put([7u32], 0)?;
                        lock.flush()?;
                        let exposed = u.post(&world.group([0usize])?)?;
                        world.barrier()?;
                        drop(exposed.wait()?);
                        lock.unlock()?;
                    }
                    0 => {
                        world.barrier()?;
                        let lock = locked.lock(2, LockType::Shared)?;
                        let access = u.start(&world.group([1usize])?)?;
                        let mut set = world.requests();
                        set.push(lock.rget(0..1)?.map(Some))?;
                        set.push(access.icomplete().map(|()| None))?;
                        let mut got = Vec::new();
                        while !set.is_empty() {
                            match way {
                                "wait_any" => got.extend(set.wait_any()?),
                                "wait_some" => got.extend(set.wait_some()?.into_iter().flatten()),
                                "wait_all" => got.extend(set.wait_all()?),
                                "test_any" => {
                                    if let Poll::Ready(some) = set.test_any()? {
                                        got.extend(some);
                                    }
                                }
                                "test_some" => got.extend(set.test_some()?.into_iter().flatten()),
                                _ => got.extend(set.test_all()?.into_iter().flatten()),
                            }
                        }
                        assert_eq!(got.into_iter().find_map(|completed| completed.buffer), Some(vec![7]));
                        lock.unlock()?;
                    }
                    _ => world.barrier()?,
                }
                world.barrier()
            });
            run.unwrap_or_else(|error| panic!("{transport:?}, {way}: {error}"));
        }
    }
}
