//! Requests of a set, completed in the order in which they become ready. In some tests, functions
//! of the program panic meanwhile.

use fencepost::{Completed, ErrorHandler, LockType, RequestSet, Result, Window, World};
use fencepost_tests_worlds::messages::everywhere;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Poll;
use std::thread::yield_now;

/// The ways to complete all requests of a set.
const WAYS: [&str; 7] = ["wait_all", "wait_some", "wait_any", "test_all", "test_some", "test_any", "drop"];

/// Completes requests of a set in one call.
fn complete_once<B>(set: &mut RequestSet<B>, way: &str) -> Result<Vec<Completed<B>>> {
    Ok(match way {
        "wait_all" => set.wait_all()?,
        "wait_some" => set.wait_some()?.unwrap_or_default(),
        "wait_any" => set.wait_any()?.into_iter().collect(),
        "test_all" => set.test_all()?.unwrap_or_default(),
        "test_some" => set.test_some()?.unwrap_or_default(),
        _ => match set.test_any()? {
            Poll::Ready(completed) => completed.into_iter().collect(),
            Poll::Pending => vec![],
        },
    })
}

/// Completes all requests of a set. Returns them, unless the set is dropped.
fn complete<B>(mut set: RequestSet<B>, way: &str) -> Result<Vec<Completed<B>>> {
    let mut all = Vec::new();
    while way != "drop" && !set.is_empty() {
        all.extend(complete_once(&mut set, way)?);
        yield_now();
    }
    Ok(all)
}

/// The set of each of two ranks has an exposure and an access to the other rank, in either order.
/// The exposure of each rank ends with the access of the other rank.
#[test]
fn an_access_is_carried_out_while_its_set_waits_for_an_exposure_before_it() {
    everywhere(2, |world| {
        let (me, other) = (world.rank(), 1 - world.rank());
        let group = world.group([other])?;
        for way in WAYS {
            for exposure_first in [true, false] {
                let u = world.window::<u64>(2)?;
                let access = u.start(&group)?;
                access.put([me as u64 + 1]).to(other, 0)?;
                let got = access.fetch(other, 1)?;
                let mut requests = vec![access.icomplete().map(|()| None), u.post(&group)?.iwait().map(Some)];
                if exposure_first {
                    requests.reverse();
                }
                let mut set = world.requests();
                requests.into_iter().try_for_each(|request| set.push(request).map(drop))?;
                let all = complete(set, way)?;
                assert_eq!(got.take()?, [0], "{way}");
                if way != "drop" {
                    let u = all.into_iter().find_map(|completed| completed.buffer).expect("the window");
                    assert_eq!(u[..], [other as u64 + 1, 0], "{way}");
                }
                world.barrier()?;
            }
        }
        Ok(())
    });
}

/// Rank 1 sends after its exposure. The exposure ends with an access of rank 0. In rank 0's set,
/// that access comes after the receive.
#[test]
fn an_access_is_carried_out_while_its_set_waits_for_a_message_before_it() {
    everywhere(2, |world| {
        for way in WAYS {
            let u = world.window::<u64>(1)?;
            let group = world.group([1 - world.rank()])?;
            if world.rank() == 0 {
                let access = u.start(&group)?;
                access.put([7]).to(1, 0)?;
                let mut set = world.requests();
                set.push(world.irecv::<u64>(1, 5)?)?;
                set.push(access.icomplete().map(|()| vec![]))?;
                let sum: u64 = complete(set, way)?.iter().flat_map(|completed| &completed.buffer).sum();
                assert_eq!(sum, if way == "drop" { 0 } else { 7 }, "{way}");
            } else {
                let u = u.post(&group)?.wait()?;
                world.message(0, 5).send([u[0]])?;
            }
            world.barrier()?;
        }
        Ok(())
    });
}

/// The ranks form a ring. The access of each rank gets from the exposure of the next rank, and that
/// exposure ends when the access has been carried out.
#[test]
fn exposures_and_accesses_of_a_ring_are_completed_whatever_their_places() {
    everywhere(4, |world| {
        let (me, size) = (world.rank(), world.size());
        let (before, after) = ((me + size - 1) % size, (me + 1) % size);
        for way in WAYS {
            let mut set = world.requests();
            let windows: Vec<Window<u64>> = (0..3).map(|_| world.window(1)).collect::<Result<_>>()?;
            for (at, u) in windows.into_iter().enumerate() {
                let access = u.start(&world.group([after])?)?;
                access.put([10 * at as u64 + me as u64]).to(after, 0)?;
                let exposed = u.post(&world.group([before])?)?;
                if (me + at) % 2 == 0 {
                    set.push(exposed.iwait().map(Some))?;
                    set.push(access.icomplete().map(|()| None))?;
                } else {
                    set.push(access.icomplete().map(|()| None))?;
                    set.push(exposed.iwait().map(Some))?;
                }
            }
            let all = complete(set, way)?;
            let mut came: Vec<u64> = all.iter().filter_map(|one| Some(one.buffer.as_ref()?[0])).collect();
            came.sort_unstable();
            let expected: Vec<u64> = (0..3).map(|at| 10 * at + before as u64).collect();
            assert_eq!(came, if way == "drop" { vec![] } else { expected }, "{way}");
            world.barrier()?;
        }
        Ok(())
    });
}

/// Returns a set of three complete receives, each mapped by a function. The functions count their
/// calls, and those at the positions `panics` panic.
fn mapped(world: &World, panics: &'static [usize], calls: &Rc<Cell<usize>>) -> Result<RequestSet<u64>> {
    let mut set = world.requests();
    for at in 0..3 {
        let calls = calls.clone();
        let mut request = world.irecv::<u64>(1, at as u32)?.map(move |values| {
            calls.set(calls.get() + 1);
            assert!(!panics.contains(&at), "a function of the program");
            values[0]
        });
        while !request.test() {
            yield_now();
        }
        set.push(request)?;
    }
    Ok(set)
}

fn send_three(world: &World, times: usize) -> Result<()> {
    (0..times).try_for_each(|_| (0..3).try_for_each(|tag| world.message(0, tag).send([u64::from(tag) + 10])))
}

/// Returns the requests that are left in a set, one after the other.
fn rest<B>(set: &mut RequestSet<B>) -> Vec<(usize, B)> {
    std::iter::from_fn(|| match set.wait_any() {
        Ok(completed) => completed.map(|completed| (completed.place, completed.buffer)),
        Err(refused) => Some(refused.into_parts().0),
    })
    .collect()
}

#[test]
fn a_function_that_panics_loses_its_own_request_only() {
    everywhere(2, |world| {
        if world.rank() == 1 {
            send_three(world, WAYS.len() - 1)?;
            return world.barrier();
        }
        for way in &WAYS[..WAYS.len() - 1] {
            let calls = Rc::default();
            let set = &mut mapped(world, &[1], &calls)?;
            let mut first = Vec::new();
            let caught = catch_unwind(AssertUnwindSafe(|| {
                while !set.is_empty() {
                    first.extend(complete_once(set, way).unwrap());
                }
            }));
            assert!(caught.is_err(), "{way}");
            let first = first.into_iter().map(|one| (one.place, one.buffer));
            let left = first.chain(rest(set)).collect::<Vec<_>>();
            assert_eq!(left, [(0, 10), (2, 12)], "{way}");
            assert_eq!((calls.get(), set.len()), (3, 0), "{way}");
        }
        world.barrier()
    });
}

#[test]
fn a_function_that_panics_when_its_request_is_cancelled_leaves_its_place() {
    everywhere(1, |world| {
        let mut set = world.requests();
        let map = |_| panic!("a function of the program");
        let place = set.push(world.irecv::<u64>(0, 0)?.map(map))?;
        assert!(catch_unwind(AssertUnwindSafe(|| set.cancel(place))).is_err());
        assert_eq!((set.len(), set.wait_any()?), (0, None));
        assert_eq!(set.push(world.irecv::<u64>(0, 1)?.map(|values| values[0]))?, place);
        world.message(0, 1).send([7u64])?;
        assert_eq!(rest(&mut set), [(place, 7)]);
        Ok(())
    });
}

#[test]
fn no_function_is_called_while_its_thread_panics() {
    everywhere(2, |world| {
        if world.rank() == 1 {
            send_three(world, 2)?;
            return world.barrier();
        }
        for waits in [true, false] {
            let calls = Rc::default();
            let set = mapped(world, &[1, 2], &calls)?;
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let mut set = set;
                if waits {
                    set.wait_all().map(drop).unwrap();
                }
            }));
            assert!(caught.is_err());
            assert_eq!(calls.get(), 2, "those of places 0 and 1");
        }
        world.barrier()
    });
}

#[test]
fn an_error_handler_that_panics_leaves_all_requests_in_their_set() {
    everywhere(2, |world| {
        if world.rank() == 1 {
            send_three(world, 4)?;
            return world.barrier();
        }
        for way in ["wait_some", "wait_all", "test_some", "test_all"] {
            let mut set = world.requests();
            for at in 0..3 {
                let mut request = world.irecv_into(1, at as u32, vec![5u64; usize::from(at != 1)])?;
                while !request.test() {
                    yield_now();
                }
                set.push(request)?;
            }
            world.on_error(ErrorHandler::call(|_| panic!("the error handler")));
            let caught = catch_unwind(AssertUnwindSafe(|| complete_once(&mut set, way).map(drop)));
            world.on_error(ErrorHandler::Return);
            assert!(caught.is_err(), "{way}");
            assert_eq!(rest(&mut set), [(0, vec![10]), (1, vec![]), (2, vec![12])], "{way}");
        }
        world.barrier()
    });
}

#[test]
fn a_test_of_any_request_distinguishes_none_that_is_complete_from_none_at_all() {
    everywhere(2, |world| {
        let other = 1 - world.rank();
        let mut set = world.requests();
        assert_eq!(set.test_any()?, Poll::Ready(None));
        let place = set.push(world.irecv::<u8>(other, 0)?)?;
        assert_eq!(set.test_any()?, Poll::Pending);
        world.barrier()?;
        world.message(other, 0).send([world.rank() as u8])?;
        let completed = loop {
            match set.test_any()? {
                Poll::Pending => yield_now(),
                Poll::Ready(completed) => break completed.expect("one is active"),
            }
        };
        assert_eq!((completed.place, completed.buffer), (place, vec![other as u8]));
        assert_eq!(set.test_any()?, Poll::Ready(None));
        world.barrier()
    });
}

/// Each rank ends the exposure to itself with an access that is in the same set.
#[test]
fn an_access_to_oneself_is_carried_out_while_its_set_waits_for_ones_own_exposure() {
    for size in [1, 2] {
        everywhere(size, |world| {
            let (me, group) = (world.rank() as u64, world.group(0..world.size())?);
            for (way, exposure_first) in WAYS.iter().flat_map(|way| [(way, true), (way, false)]) {
                let u = world.window::<u64>(2)?;
                let access = u.start(&group)?;
                (0..world.size()).try_for_each(|to| access.put([me + 1]).to(to, me as usize))?;
                let mut requests = vec![access.icomplete().map(|()| None), u.post(&group)?.iwait().map(Some)];
                if exposure_first {
                    requests.reverse();
                }
                let mut set = world.requests();
                requests.into_iter().try_for_each(|request| set.push(request).map(drop))?;
                let mut all = Vec::new();
                if size == 1 && *way == "test_all" {
                    all = complete_once(&mut set, way)?;
                    assert_eq!(all.len(), 2, "a wait for all would not wait");
                }
                all.extend(complete(set, way)?);
                if *way != "drop" {
                    let u = all.into_iter().find_map(|completed| completed.buffer).expect("the window");
                    assert_eq!(u[..size], [1, 2][..size], "{way}");
                }
                world.barrier()?;
            }
            Ok(())
        });
    }
}

/// A get waits for a lock. Rank 1 holds that lock until the access of rank 0 has ended.
#[test]
fn an_access_is_carried_out_before_a_get_of_its_set_waits_for_a_lock() {
    everywhere(2, |world| {
        for way in ["wait_all", "wait_some", "test_all", "test_some", "drop"] {
            let (u, locked) = (world.window::<u64>(1)?, world.lock_window::<u64>(1)?);
            let group = world.group([1 - world.rank()])?;
            if world.rank() == 0 {
                world.barrier()?;
                let lock = locked.lock(1, LockType::Shared)?;
                let access = u.start(&group)?;
                access.put([7]).to(1, 0)?;
                let mut set = world.requests();
                set.push(lock.rget(0)?)?;
                set.push(access.icomplete().map(|()| vec![]))?;
                let all = complete(set, way)?;
                assert_eq!(all.len(), if way == "drop" { 0 } else { 2 }, "{way}");
            } else {
                let lock = locked.lock(1, LockType::Exclusive)?;
                lock.put([5], 0)?;
                lock.flush()?;
                world.barrier()?;
                let u = u.post(&group)?.wait()?;
                assert_eq!(u[..], [7], "{way}");
                lock.unlock()?;
            }
            world.barrier()?;
        }
        Ok(())
    });
}
