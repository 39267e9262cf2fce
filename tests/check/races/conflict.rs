//! Two accesses that nothing separates.

use super::How::{Defined, Refused, Runs, Told};
use super::{Case, loaded, over, shared, under};
use fencepost::prelude::*;

const COPIED: &str = "a put reads its slice at the call";
const STORED: &str = "A store into a window that others access under locks.";

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    ("001-put-load-local-no", Runs(|world| {
        let u = world.lock_window::<u64>(16)?;
        let ended = if world.rank() == 0 {
            under(&u, LockType::Shared, |lock| {
                let value = [7];
                lock.put(value, 3)?;
                assert_eq!(value[0], 7);
                Ok(())
            })
        } else {
            Ok(())
        };
        over(u, ended)
    })),
    ("002-put-store-local-yes", Defined(COPIED, |world| {
        let u = world.lock_window::<u64>(16)?;
        if world.rank() == 0 {
            under(&u, LockType::Shared, |lock| {
                let mut value = [7];
                lock.put(value, 3)?;
                value[0] = 8;
                assert_eq!(value, [8]);
                Ok(())
            })?;
        }
        let u = u.into_window()?;
        assert_eq!(u[3], if world.rank() == 1 { 7 } else { 0 });
        Ok(())
    })),
    ("003-put-put-local-no", Runs(|world| {
        let u = world.lock_window::<u64>(16)?;
        let ended = if world.rank() == 0 {
            under(&u, LockType::Shared, |lock| {
                let value = [7];
                lock.put(value, 3)?;
                lock.put(value, 4)
            })
        } else {
            Ok(())
        };
        over(u, ended)
    })),
    ("004-get-load-local-yes", Told(ErrorClass::RmaSync, |world| {
        let u = world.lock_window::<u64>(16)?;
        let ended = if world.rank() == 0 {
            under(&u, LockType::Shared, |lock| {
                let value = lock.get(3)?;
                assert_eq!(value.take()?, [0]); // CONFLICT
                Ok(())
            })
        } else {
            Ok(())
        };
        over(u, ended)
    })),
    ("005-get-store-local-yes", Refused("A store into what a get borrows.")),
    ("006-get-put-local-yes", Runs(|world| {
        // The get writes the same section of rank 1 that the put reads.
        let mut u = world.window::<u64>(16)?;
        let mut ended = Ok(());
        if world.rank() == 1 {
            u.get(0..1).from(0, 3)?; // CONFLICT
            ended = u.put(0..1).to(2, 4); // CONFLICT
        }
        u.fence()?;
        ended
    })),
    ("007-get-get-local-yes", Runs(|world| {
        let mut u = world.window::<u64>(16)?;
        let mut ended = Ok(());
        if world.rank() == 1 {
            u.get(0..1).from(0, 3)?; // CONFLICT
            ended = u.get(0..1).from(2, 3); // CONFLICT
        }
        u.fence()?;
        ended
    })),
    ("008-acc-store-local-yes", Defined(COPIED, |world| {
        let u = world.lock_window::<u64>(16)?;
        if world.rank() == 0 {
            under(&u, LockType::Shared, |lock| {
                let mut value = [7];
                lock.accumulate(value, Op::Sum, 3)?;
                value[0] = 8;
                assert_eq!(value, [8]);
                Ok(())
            })?;
        }
        let u = u.into_window()?;
        assert_eq!(u[3], if world.rank() == 1 { 7 } else { 0 });
        Ok(())
    })),
    ("009-acc-load-local-no", Runs(|world| {
        let u = world.lock_window::<u64>(16)?;
        let ended = if world.rank() == 0 {
            under(&u, LockType::Shared, |lock| {
                let value = [7];
                lock.accumulate(value, Op::Sum, 3)?;
                assert_eq!(value[0], 7);
                Ok(())
            })
        } else {
            Ok(())
        };
        over(u, ended)
    })),
    ("016-get-load-remote-no", Runs(|world| loaded(
        world,
        |lock| lock.get(3).map(drop),
        |part| part.get(3),
    ))),
    ("017-get-get-remote-no", Runs(|world| shared(
        world,
        |lock| lock.get(3).map(drop),
        |lock| lock.get(0..4).map(drop),
    ))),
    ("018-get-store-remote-yes", Refused(STORED)),
    ("019-get-put-remote-yes", Runs(|world| shared(
        world,
        |lock| lock.get(3).map(drop), // CONFLICT
        |lock| lock.put([1], 3), // CONFLICT
    ))),
    ("021-get-acc-remote-yes", Runs(|world| shared(
        world,
        |lock| lock.get(3).map(drop), // CONFLICT
        |lock| lock.accumulate([1], Op::Sum, 3), // CONFLICT
    ))),
    ("022-put-load-remote-yes", Runs(|world| loaded(
        world,
        |lock| lock.put([1], 3), // CONFLICT
        |part| part.get(3), // CONFLICT
    ))),
    ("023-put-store-remote-yes", Refused(STORED)),
    ("024-put-put-remote-yes", Runs(|world| shared(
        world,
        |lock| lock.put([1, 1], 2), // CONFLICT
        |lock| lock.put([2], 3), // CONFLICT
    ))),
    ("026-put-acc-remote-yes", Runs(|world| shared(
        world,
        |lock| lock.put([1], 3), // CONFLICT
        |lock| lock.accumulate([1], Op::Sum, 3), // CONFLICT
    ))),
    ("027-acc-load-remote-yes", Runs(|world| loaded(
        world,
        |lock| lock.accumulate([1], Op::Sum, 3), // CONFLICT
        |part| part.get(3), // CONFLICT
    ))),
    ("028-acc-store-remote-yes", Refused(STORED)),
    ("029-acc-acc-remote-no", Runs(|world| shared(
        world,
        |lock| lock.accumulate([1], Op::Sum, 3),
        |lock| lock.accumulate([1], Op::Sum, 3),
    ))),
];
