//! The same accesses as in the other suites, but through functions, pointers and copies. Tools that
//! only read the source code miss such accesses.

use super::How::{Refused, Runs, Told};
use super::{Case, loaded, over, under};
use fencepost::prelude::*;
use fencepost::{LocalPart, Locked};

const STORED: &str = "A store into a window that others access under locks.";

#[inline(never)]
#[track_caller]
fn deep(depth: usize, lock: &Locked<'_, u64>) -> Result<Ticket<u64>> {
    if depth > 0 { deep(depth - 1, lock) } else { lock.get(3) }
}

#[inline(never)]
#[track_caller]
fn deep_put(depth: usize, lock: &Locked<'_, u64>, value: &[u64; 1]) -> Result<()> {
    if depth > 0 { deep_put(depth - 1, lock, value) } else { lock.put(value, 3) }
}

#[inline(never)]
fn returned(value: &[u64; 1]) -> &[u64; 1] {
    value
}

/// Rank 0 puts in a shared epoch, and loads the elements that it has put.
fn put_and_load(world: &World, act: fn(&Locked<'_, u64>, &[u64; 1]) -> Result<u64>) -> Result<()> {
    let u = world.lock_window::<u64>(16)?;
    let ended = if world.rank() == 0 {
        under(&u, LockType::Shared, |lock| {
            assert_eq!(act(lock, &[7])?, 7);
            Ok(())
        })
    } else {
        Ok(())
    };
    over(u, ended)
}

/// Rank 0 gets in a shared epoch, and uses the ticket before the epoch ends.
fn get_and(world: &World, act: fn(&Locked<'_, u64>) -> Result<()>) -> Result<()> {
    let u = world.lock_window::<u64>(16)?;
    let ended = if world.rank() == 0 { under(&u, LockType::Shared, act) } else { Ok(()) };
    over(u, ended)
}

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    ("001-misc-put-load-deep-nesting-local-no", Runs(|world| put_and_load(world, |lock, value| {
        deep_put(9, lock, value)?;
        Ok(value[0])
    }))),
    ("002-misc-put-load-aliasing-local-no", Runs(|world| put_and_load(world, |lock, value| {
        let (alias, other) = (value, value);
        lock.put(alias, 3)?;
        Ok(other[0])
    }))),
    ("003-misc-put-load-retval-local-no", Runs(|world| put_and_load(world, |lock, value| {
        lock.put(returned(value), 3)?;
        Ok(returned(value)[0])
    }))),
    ("004-misc-put-load-memcpy-local-no", Runs(|world| put_and_load(world, |lock, value| {
        lock.put(value, 3)?;
        let mut copy = [0];
        copy.copy_from_slice(value);
        Ok(copy[0])
    }))),
    ("005-misc-get-load-deep-nesting-local-yes", Told(ErrorClass::RmaSync, |world| get_and(world, |lock| {
        let value = deep(9, lock)?;
        value.take().map(drop) // CONFLICT
    }))),
    ("006-misc-get-load-aliasing-local-yes", Told(ErrorClass::RmaSync, |world| get_and(world, |lock| {
        let value = lock.get(3)?;
        let alias = &value;
        alias.take().map(drop) // CONFLICT
    }))),
    ("007-misc-get-load-retval-local-yes", Told(ErrorClass::RmaSync, |world| get_and(world, |lock| {
        fn same(value: &Ticket<u64>) -> &Ticket<u64> {
            value
        }
        let value = lock.get(3)?;
        same(&value).take().map(drop) // CONFLICT
    }))),
    ("008-misc-get-load-memcpy-local-yes", Told(ErrorClass::RmaSync, |world| get_and(world, |lock| {
        let value = lock.get(3)?;
        let mut copy = [0];
        copy.copy_from_slice(&value.take()?); // CONFLICT
        Ok(())
    }))),
    ("009-misc-get-load-deep-nesting-remote-no", Runs(|world| loaded(
        world,
        |lock| deep(9, lock).map(drop),
        |part| part.get(3),
    ))),
    ("010-misc-get-load-funcpointer-remote-no", Runs(|world| loaded(
        world,
        |lock| {
            let get: fn(usize, &Locked<'_, u64>) -> Result<Ticket<u64>> = deep;
            get(0, lock).map(drop)
        },
        |part| {
            let load: fn(&LocalPart<'_, u64>) -> Result<u64> = |part| part.get(3);
            load(part)
        },
    ))),
    ("011-misc-get-load-aliasing-remote-no", Runs(|world| loaded(
        world,
        |lock| lock.get(3).map(drop),
        |part| {
            let alias = part;
            alias.get(3)
        },
    ))),
    ("012-misc-get-load-retval-remote-no", Runs(|world| loaded(
        world,
        |lock| lock.get(3).map(drop),
        |part| {
            let index = || 3;
            part.get(index())
        },
    ))),
    ("013-misc-get-load-memcpy-remote-no", Runs(|world| loaded(
        world,
        |lock| lock.get(3).map(drop),
        |part| {
            let mut copy = [0; 16];
            for (at, element) in copy.iter_mut().enumerate() {
                *element = part.get(at)?;
            }
            Ok(copy[3])
        },
    ))),
    ("014-misc-get-store-deep-nesting-remote-yes", Refused(STORED)),
    ("015-misc-get-store-funcpointer-remote-yes", Refused(STORED)),
    ("016-misc-get-store-aliasing-remote-yes", Refused(STORED)),
    ("017-misc-get-store-retval-remote-yes", Refused(STORED)),
    ("018-misc-get-store-memcpy-remote-yes", Refused(STORED)),
];
