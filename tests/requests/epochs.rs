//! Accesses and exposures as requests.

use fencepost::{ErrorClass, LockType, Op};
use fencepost_tests_worlds::messages::everywhere;

#[test]
fn accesses_and_exposures_are_completed_in_a_set_with_messages() {
    everywhere(3, |world| {
        let (rank, size) = (world.rank(), world.size());
        let mut u = world.window::<u64>(size)?;
        for round in 0..5 {
            let others: Vec<usize> = (0..size).filter(|&other| other != rank).collect();
            let group = world.group(others.iter().copied())?;
            let access = u.start(&group)?;
            for &other in &others {
                access.put([10 * round + rank as u64]).to(other, rank)?;
            }
            let got = access.fetch(others[0], 0)?;
            let mut set = world.requests();
            set.push(world.irecv::<u64>((rank + 1) % size, 0)?.map(|_| None))?;
            set.push(access.icomplete().map(|()| None))?;
            set.push(u.post(&group)?.iwait().map(Some))?;
            world.message((rank + size - 1) % size, 0).send([round])?;
            let mut back = None;
            while let Some(completed) = set.wait_any()? {
                back = back.or(completed.buffer);
            }
            u = back.expect("the exposure has returned it");
            assert!(others.iter().all(|&other| u[other] == 10 * round + other as u64));
            got.take()?;
        }
        Ok(())
    });
}

#[test]
fn an_exposure_that_fails_returns_its_window_with_the_error_of_its_request() {
    everywhere(2, |world| {
        let mut u = world.window::<f64>(2)?;
        if world.rank() == 0 {
            u.fill(5.0);
            let exposed = u.post(&world.group([1])?)?;
            let refused = exposed.iwait().wait().expect_err("its source drops the access");
            assert_eq!(refused.error().class(), ErrorClass::RmaSync);
            assert_eq!(refused.into_parts().0[..], [5.0; 2]);
        } else {
            let access = u.start(&world.group([0])?)?;
            access.accumulate([1.0], Op::Sum).to(0, 0)?;
            drop(access);
        }
        world.barrier()
    });
}

#[test]
fn a_request_of_an_access_that_is_dropped_completes_it() {
    everywhere(2, |world| {
        let u = world.window::<u64>(1)?;
        if world.rank() == 0 {
            let u = u.post(&world.group([1])?)?.iwait().wait()?.0;
            assert_eq!(u[..], [3]);
        } else {
            let access = u.start(&world.group([0])?)?;
            access.put([3]).to(0, 0)?;
            drop(access.icomplete());
        }
        Ok(())
    });
}

#[test]
fn operations_under_locks_are_completed_in_a_set_with_messages() {
    everywhere(3, |world| {
        let (rank, size) = (world.rank(), world.size());
        let u = world.lock_window::<u64>(4)?;
        world.barrier()?;
        for kind in [LockType::Shared, LockType::Exclusive] {
            let lock = u.lock((rank + 1) % size, kind)?;
            let mut set = world.requests();
            set.push(world.irecv::<u64>((rank + 1) % size, 0)?)?;
            set.push(lock.rput([rank as u64 + 5], 1)?.map(|()| vec![]))?;
            set.push(lock.raccumulate([1], Op::Sum, 0)?.map(|()| vec![]))?;
            let got = set.push(lock.rget(0..2)?)?;
            world.message((rank + size - 1) % size, 0).send([9u64])?;
            let all = set.wait_all()?;
            assert!((1..=2).contains(&all[got].buffer[0]));
            assert_eq!((all[got].buffer[1], &all[0].buffer[..]), (rank as u64 + 5, &[9][..]));
            lock.unlock()?;
        }
        world.barrier()?;
        assert_eq!(u.into_window()?[..2], [2, (rank + size - 1) as u64 % size as u64 + 5]);
        Ok(())
    });
}

#[test]
fn a_get_under_a_lock_is_completed_after_its_epoch_and_fails_after_its_window() {
    everywhere(2, |world| {
        let u = world.lock_window::<u64>(1)?;
        let lock = u.lock(1 - world.rank(), LockType::Shared)?;
        let got = lock.rget(0)?;
        lock.unlock()?;
        assert_eq!(got.wait()?.0, [0]);
        let lock = u.lock(1 - world.rank(), LockType::Shared)?;
        let late = lock.rget(0)?;
        std::mem::forget(lock);
        world.barrier()?;
        drop(u);
        let refused = late.wait().expect_err("the window is gone");
        assert_eq!(refused.error().class(), ErrorClass::RmaSync);
        world.barrier()
    });
}

/// Ranks may post and complete in any order. So the request for which a set waits first may be the
/// last to become ready.
#[test]
fn an_exposure_whose_source_is_late_holds_no_message_up() {
    everywhere(2, |world| {
        let u = world.window::<u64>(1)?;
        if world.rank() == 0 {
            let mut set = world.requests();
            set.push(u.post(&world.group([1])?)?.iwait().map(Some))?;
            set.push(world.irecv::<u8>(1, 0)?.map(|_| None))?;
            let first = set.wait_any()?.expect("the message has come");
            assert_eq!((first.place, first.buffer.is_none()), (1, true));
            assert!(set.test_any()?.is_pending());
            world.message(1, 1).send([0u8])?;
            let u = set.wait_any()?.and_then(|one| one.buffer).expect("the window");
            assert_eq!(u[..], [4]);
        } else {
            let access = u.start(&world.group([0])?)?;
            access.put([4]).to(0, 0)?;
            world.message(0, 0).send([0u8])?;
            world.recv::<u8>(0, 1)?;
            access.complete()?;
        }
        world.barrier()
    });
}
