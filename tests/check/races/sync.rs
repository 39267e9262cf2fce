//! Accesses that are separated, and accesses that only seem to be separated.

use super::How::{Defined, Refused, Runs, Told};
use super::{Case, over, shared, under};
use fencepost::prelude::*;

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    ("001-fence-local-yes", Told(ErrorClass::RmaSync, |world| {
        let mut u = world.window::<u64>(16)?;
        let mut ended = Ok(());
        if world.rank() == 0 {
            let value = u.fetch(1, 3)?;
            ended = value.take().map(drop); // CONFLICT
        }
        u.fence()?;
        ended
    })),
    ("002-fence-local-no", Runs(|world| {
        let mut u = world.window::<u64>(16)?;
        let value = if world.rank() == 0 { Some(u.fetch(1, 3)?) } else { None };
        u.fence()?;
        value.map_or(Ok(()), |value| value.take().map(drop))
    })),
    ("003-lock-local-yes", Told(ErrorClass::RmaSync, |world| {
        let u = world.lock_window::<u64>(16)?;
        let mut ended = Ok(());
        if world.rank() == 0 {
            let lock = u.lock(1, LockType::Exclusive)?;
            let value = lock.get(3)?;
            ended = value.take().map(drop); // CONFLICT
            lock.unlock()?;
        }
        over(u, ended)
    })),
    ("004-lock-local-no", Runs(|world| {
        let u = world.lock_window::<u64>(16)?;
        let mut ended = Ok(());
        if world.rank() == 0 {
            let lock = u.lock(1, LockType::Exclusive)?;
            let value = lock.get(3)?;
            lock.unlock()?;
            ended = value.take().map(drop);
        }
        over(u, ended)
    })),
    ("011-pscw-local-yes", Told(ErrorClass::RmaSync, |world| {
        let u = world.window::<u64>(16)?;
        let (sources, targets) = (world.group([0])?, world.group([1])?);
        match world.rank() {
            0 => {
                let access = u.start(&targets)?;
                let value = access.fetch(1, 3)?;
                let ended = value.take().map(drop); // CONFLICT
                access.complete()?;
                ended
            }
            1 => u.post(&sources)?.wait().map(drop).map_err(Into::into),
            _ => Ok(()),
        }
    })),
    ("012-pscw-local-no", Runs(|world| {
        let u = world.window::<u64>(16)?;
        let (sources, targets) = (world.group([0])?, world.group([1])?);
        match world.rank() {
            0 => {
                let access = u.start(&targets)?;
                let value = access.fetch(1, 3)?;
                access.complete()?;
                value.take().map(drop)
            }
            1 => u.post(&sources)?.wait().map(drop).map_err(Into::into),
            _ => Ok(()),
        }
    })),
    ("018-fence-3procs-remote-yes", Runs(|world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.put([1]).to(1, 3)?, // CONFLICT
            2 => drop(u.fetch(1, 3)?), // CONFLICT
            _ => {}
        }
        u.fence()
    })),
    ("019-fence-3procs-remote-no", Runs(|world| {
        let mut u = world.window::<u64>(16)?;
        if world.rank() == 0 {
            u.put([1]).to(1, 3)?;
        }
        u.fence()?;
        if world.rank() == 2 {
            drop(u.fetch(1, 3)?);
        }
        u.fence()
    })),
    ("020-lock-barrier-nonconsistent-remote-yes", Runs(|world| {
        let u = world.lock_window::<u64>(16)?;
        let lock = if world.rank() == 0 { Some(u.lock(1, LockType::Shared)?) } else { None };
        if let Some(lock) = &lock {
            lock.put([1], 3)?; // CONFLICT
        }
        world.barrier()?;
        let mut ended = Ok(());
        if world.rank() == 1 {
            ended = u.local(|part| part.get(3)).map(drop); // CONFLICT
        }
        ended = ended.and(lock.map_or(Ok(()), |lock| lock.unlock()));
        over(u, ended)
    })),
    ("021-lock-barrier-remote-yes", Runs(|world| {
        // The barrier comes before both accesses.
        world.barrier()?;
        shared(
            world,
            |lock| lock.put([1], 3), // CONFLICT
            |lock| lock.get(3).map(drop), // CONFLICT
        )
    })),
    ("022-lock-barrier-remote-no", Runs(|world| {
        let u = world.lock_window::<u64>(16)?;
        let mut ended = Ok(());
        if world.rank() == 0 {
            ended = under(&u, LockType::Shared, |lock| lock.put([1], 3));
        }
        ended = ended.and(world.barrier());
        if world.rank() == 2 {
            ended = ended.and(under(&u, LockType::Shared, |lock| lock.get(3).map(drop)));
        }
        over(u, ended)
    })),
    ("023-lock-barrier-sameorigin-remote-no", Runs(|world| {
        let u = world.lock_window::<u64>(16)?;
        let mut ended = Ok(());
        for value in 0..2 {
            if world.rank() == 0 {
                ended = ended.and(under(&u, LockType::Shared, |lock| lock.put([value], 3)));
            }
            ended = ended.and(world.barrier());
        }
        over(u, ended)
    })),
    ("024-lock-barrier-sameorigin-remote-yes", Defined("one epoch visits an element in program order", |world| {
        let u = world.lock_window::<u64>(16)?;
        let lock = if world.rank() == 0 { Some(u.lock(1, LockType::Shared)?) } else { None };
        for value in [1, 2] {
            if let Some(lock) = &lock {
                lock.put([value], 3)?;
            }
            world.barrier()?;
        }
        lock.map_or(Ok(()), |lock| lock.unlock())?;
        let u = u.into_window()?;
        assert_eq!(u[3], if world.rank() == 1 { 2 } else { 0 });
        Ok(())
    })),
    ("027-lock-exclusive-remote-no", Runs(|world| {
        let u = world.lock_window::<u64>(16)?;
        let ended = match world.rank() {
            0 => under(&u, LockType::Exclusive, |lock| lock.put([1], 3)),
            1 => u.local_mut(|part| {
                part[3] += 1;
                Ok(())
            }),
            _ => Ok(()),
        };
        over(u, ended)
    })),
    ("028-lock-exclusive-3procs-remote-no", Runs(|world| {
        let u = world.lock_window::<u64>(16)?;
        let ended = match world.rank() {
            0 => under(&u, LockType::Exclusive, |lock| lock.put([1], 3)),
            2 => under(&u, LockType::Exclusive, |lock| lock.get(3).map(drop)),
            _ => Ok(()),
        };
        over(u, ended)
    })),
    ("029-lock-exclusive-remote-yes", Refused("A store into a window that others access under locks.")),
    ("030-lock-sendrecv-remote-yes", Runs(|world| {
        let u = world.lock_window::<u64>(16)?;
        let ended = match world.rank() {
            0 => {
                let lock = u.lock(1, LockType::Shared)?;
                lock.put([1], 3)?; // CONFLICT
                world.message(1, 0).send([1_u8])?;
                lock.unlock()
            }
            1 => world.recv::<u8>(0, 0).and_then(|_| {
                u.local(|part| part.get(3)).map(drop) // CONFLICT
            }),
            _ => Ok(()),
        };
        over(u, ended)
    })),
    ("031-lock-sendrecv-remote-no", Runs(|world| {
        let u = world.lock_window::<u64>(16)?;
        let ended = match world.rank() {
            0 => under(&u, LockType::Shared, |lock| lock.put([1], 3))
                .and_then(|()| world.message(1, 0).send([1_u8])),
            1 => world.recv::<u8>(0, 0).and_then(|_| u.local(|part| part.get(3)).map(drop)),
            _ => Ok(()),
        };
        over(u, ended)
    })),
    ("032-lock-sendrecv-3procs-remote-no", Runs(|world| {
        let u = world.lock_window::<u64>(16)?;
        let ended = match world.rank() {
            0 => under(&u, LockType::Shared, |lock| lock.put([1], 3))
                .and_then(|()| world.message(2, 0).send([1_u8])),
            2 => world.recv::<u8>(0, 0)
                .and_then(|_| under(&u, LockType::Shared, |lock| lock.get(3).map(drop))),
            _ => Ok(()),
        };
        over(u, ended)
    })),
    ("033-lock-sendrecv-3procs-remote-yes", Runs(|world| {
        // The message goes to a rank that accesses nothing.
        let u = world.lock_window::<u64>(16)?;
        let ended = match world.rank() {
            0 => under(&u, LockType::Shared, |lock| lock.put([1], 3)) // CONFLICT
                .and_then(|()| world.message(1, 0).send([1_u8])),
            1 => world.recv::<u8>(0, 0).map(drop),
            2 => under(&u, LockType::Shared, |lock| lock.get(3).map(drop)), // CONFLICT
            _ => Ok(()),
        };
        // Rank 1 must receive the message even if rank 0 has found the conflict.
        if world.rank() == 0 && ended.is_err() {
            world.message(1, 0).send([1_u8])?;
        }
        over(u, ended)
    })),
    ("035-pscw-remote-yes", Runs(|world| {
        let u = world.window::<u64>(16)?;
        let (sources, targets) = (world.group([0, 2])?, world.group([1])?);
        match world.rank() {
            0 => {
                let access = u.start(&targets)?;
                access.put([1]).to(1, 3)?; // CONFLICT
                access.complete()
            }
            1 => u.post(&sources)?.wait().map(drop).map_err(Into::into),
            2 => {
                let access = u.start(&targets)?;
                access.put([1]).to(1, 3)?; // CONFLICT
                access.complete()
            }
            _ => Ok(()),
        }
    })),
];
