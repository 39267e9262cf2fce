//! [`WAITS`] has each call that waits. The call is made while rank 1 of four ranks computes and
//! rank 2 fails.
//!
//! All four ranks prepare a wait together, and then call [`Meet`]. In [`Meet`], rank 1 begins to
//! compute and rank 2 fails. So only ranks 0 and 3 make the call, which needs something from rank
//! 1.

use fencepost::prelude::*;
use fencepost::{Any, Outcome, Refused, Tested};

/// The number of ranks.
pub const RANKS: usize = 4;

/// The rank that computes.
pub const COMPUTES: usize = 1;

/// The rank that fails.
pub const FAILS: usize = 2;

/// Each rank calls this function when it has prepared the wait. The function returns an error on
/// ranks 1 and 2.
pub type Meet<'a> = &'a dyn Fn() -> Result<()>;

/// A function that prepares a wait on all ranks, and then makes the call that waits.
pub type Wait = fn(&World, Meet<'_>) -> Result<()>;

#[superstep]
fn to_all(u: &mut Window<u64>) -> Result<()> {
    u.put(0..1).to((u.rank() + 1) % u.size(), 1)?;
    u.put(0..1).to((u.rank() + 2) % u.size(), 2)?;
    u.put(0..1).to((u.rank() + 3) % u.size(), 3)
}

#[superstep(sync = pscw)]
fn posted_to_all(u: &mut Window<u64>) -> Result<()> {
    u.put(0..1).to((u.rank() + 1) % u.size(), 1)?;
    u.put(0..1).to((u.rank() + 2) % u.size(), 2)?;
    u.put(0..1).to((u.rank() + 3) % u.size(), 3)
}

/// The number of elements of a message that is too long to be sent together with its elements.
const LONG: usize = 1 << 18;

/// Makes a window, and returns it once all ranks have met.
fn window(world: &World, meet: Meet<'_>) -> Result<Window<u64>> {
    let u = world.window::<u64>(RANKS)?;
    meet()?;
    Ok(u)
}

/// Returns a window for locks. Rank 1 holds the parts of all ranks except the failing rank.
fn held(world: &World, meet: Meet<'_>) -> Result<LockWindow<u64>> {
    let u = world.lock_window::<u64>(RANKS)?;
    let mut locks = Vec::new();
    for target in [0, COMPUTES, 3].into_iter().filter(|_| world.rank() == COMPUTES) {
        let lock = u.lock(target, LockType::Exclusive)?;
        lock.put([1], 0)?;
        lock.flush()?;
        locks.push(lock);
    }
    meet()?;
    drop(locks);
    Ok(u)
}

/// Returns the error of the first request that has failed.
fn first<B>(failed: Refused<Vec<Outcome<B>>>) -> Error {
    let (outcomes, error) = failed.into_parts();
    let failed = outcomes.into_iter().find_map(|outcome| match outcome {
        Outcome::Failed { error, .. } => Some(error),
        _ => None,
    });
    failed.unwrap_or(error)
}

/// Repeats a call that does not wait, until it fails or has found something.
fn until<R>(mut call: impl FnMut() -> Result<Option<R>>) -> Result<()> {
    while call()?.is_none() {
        std::thread::yield_now();
    }
    Ok(())
}

/// Each call that waits, and some calls that are repeated in place of a wait.
pub const WAITS: &[(&str, Wait)] = &[
    ("barrier", |world, meet| meet().and_then(|()| world.barrier())),
    ("fence", |world, meet| window(world, meet)?.fence()),
    ("fence of operations", |world, meet| {
        let mut u = window(world, meet)?;
        u.put([1]).to(COMPUTES, 0)?;
        u.get(0..1).from(COMPUTES, 0)?;
        u.fence()
    }),
    ("scoped epoch", |world, meet| window(world, meet)?.epoch(|_| Ok(()))),
    ("superstep", |world, meet| to_all(&mut window(world, meet)?)),
    ("broadcast", |world, meet| meet().and_then(|()| world.broadcast(COMPUTES, &mut [0u64]))),
    ("reduce", |world, meet| {
        meet()?;
        world.reduce(0, &[1u64], Op::Sum)?;
        world.barrier()
    }),
    ("allreduce", |world, meet| meet().and_then(|()| world.allreduce(&mut [1u64], Op::Sum))),
    ("scan", |world, meet| {
        meet()?;
        world.scan(&mut [1u64], Op::Sum)?;
        world.barrier()
    }),
    ("gather", |world, meet| {
        meet()?;
        world.gather(0, &[1u64])?;
        world.barrier()
    }),
    ("allgather", |world, meet| meet().and_then(|()| world.allgather(&[1u64]).map(drop))),
    ("all_to_all", |world, meet| {
        meet().and_then(|()| world.all_to_all(&[const { Vec::<u64>::new() }; RANKS]).map(drop))
    }),
    ("gather_into", |world, meet| {
        meet()?;
        world.gather_into(0, &[1u64], &mut [0; RANKS][..if world.rank() == 0 { RANKS } else { 0 }])?;
        world.barrier()
    }),
    ("allgather_into", |world, meet| meet().and_then(|()| world.allgather_into(&[1u64], &mut [0; RANKS]))),
    ("all_to_all_into", |world, meet| {
        meet().and_then(|()| world.all_to_all_into(&[1u64; RANKS], &mut [0; RANKS]))
    }),
    ("window", |world, meet| meet().and_then(|()| world.window::<u64>(1).map(drop))),
    ("lock_window", |world, meet| meet().and_then(|()| world.lock_window::<u64>(1).map(drop))),
    ("split", |world, meet| meet().and_then(|()| world.split(Some(0), 0).map(drop))),
    ("prepare", |world, meet| meet().and_then(|()| to_all::prepare(world).map(drop))),
    ("Window::free", |world, meet| Ok(window(world, meet)?.free()?)),
    ("Window::into_locked", |world, meet| Ok(window(world, meet)?.into_locked().map(drop)?)),
    ("LockWindow::into_window", |world, meet| {
        let u = world.lock_window::<u64>(RANKS)?;
        meet()?;
        Ok(u.into_window().map(drop)?)
    }),
    ("LockWindow::free", |world, meet| {
        let u = world.lock_window::<u64>(RANKS)?;
        meet()?;
        Ok(u.free()?)
    }),
    ("prepared run", |world, meet| {
        let mut prepared = to_all::prepare(world)?;
        let mut u = world.window::<u64>(RANKS)?;
        prepared.run(&mut u)?;
        meet()?;
        prepared.run(&mut u)
    }),
    ("prepared finish", |world, meet| {
        let mut prepared = to_all::prepare(world)?;
        let u = window(world, meet)?;
        prepared.begin(u)?.finish().map(drop)
    }),
    ("pscw run", |world, meet| {
        let mut prepared = posted_to_all::prepare(world)?;
        prepared.run(&mut window(world, meet)?)
    }),
    ("pscw finish", |world, meet| {
        let mut prepared = posted_to_all::prepare(world)?;
        let u = window(world, meet)?;
        prepared.begin(u)?.finish().map(drop)
    }),
    ("Exposed::wait", |world, meet| {
        let u = window(world, meet)?;
        Ok(u.post(&world.group([COMPUTES])?)?.wait().map(drop)?)
    }),
    ("Exposed::test", |world, meet| {
        let u = window(world, meet)?;
        let mut exposed = Some(u.post(&world.group([COMPUTES])?)?);
        until(|| match exposed.take().map(fencepost::Exposed::test) {
            Some(tested) => match tested? {
                Tested::Done(_) => Ok(Some(())),
                Tested::Open(again) => {
                    exposed = Some(again);
                    Ok(None)
                }
            },
            None => Ok(Some(())),
        })
    }),
    ("Exposed::iwait", |world, meet| {
        let u = window(world, meet)?;
        Ok(u.post(&world.group([COMPUTES])?)?.iwait().wait().map(drop)?)
    }),
    ("Access::complete", |world, meet| {
        let u = window(world, meet)?;
        let access = u.start(&world.group([COMPUTES])?)?;
        let _ticket = access.fetch(COMPUTES, 0)?;
        access.complete()
    }),
    ("Access::icomplete", |world, meet| {
        let u = window(world, meet)?;
        let access = u.start(&world.group([COMPUTES])?)?;
        let _ticket = access.fetch(COMPUTES, 0)?;
        Ok(access.icomplete().wait().map(drop)?)
    }),
    ("epoch_between", |world, meet| {
        let mut u = window(world, meet)?;
        let other = world.group([COMPUTES])?;
        u.epoch_between(&other, &other, |_| Ok(()))
    }),
    ("recv", |world, meet| meet().and_then(|()| world.recv::<u64>(COMPUTES, 0).map(drop))),
    ("recv of any", |world, meet| meet().and_then(|()| world.recv::<u64>(Any, Any).map(drop))),
    ("recv_into", |world, meet| meet().and_then(|()| world.recv_into(COMPUTES, 0, &mut [0u64]).map(drop))),
    ("probe", |world, meet| meet().and_then(|()| world.probe(COMPUTES, 0).map(drop))),
    ("try_probe", |world, meet| meet().and_then(|()| until(|| world.try_probe(COMPUTES, 0)))),
    ("send", |world, meet| meet().and_then(|()| world.message(COMPUTES, 0).send(vec![1u64; LONG]))),
    ("ssend", |world, meet| meet().and_then(|()| world.message(COMPUTES, 0).synchronous().send([1u64]))),
    ("sendrecv", |world, meet| {
        meet()?;
        world.sendrecv(COMPUTES, 0, [1u64], COMPUTES, 0, &mut [0u64]).map(drop)
    }),
    ("detach_buffer", |world, meet| {
        meet()?;
        world.attach_buffer(LONG * 8)?;
        world.message(COMPUTES, 0).buffered().send(vec![1u64; LONG])?;
        world.detach_buffer().map(drop)
    }),
    ("isend", |world, meet| {
        meet()?;
        Ok(world.message(COMPUTES, 0).isend(vec![1u64; LONG])?.wait().map(drop)?)
    }),
    ("irecv", |world, meet| {
        meet()?;
        Ok(world.irecv::<u64>(COMPUTES, 0)?.wait().map(drop)?)
    }),
    ("Request::test", |world, meet| {
        meet()?;
        let mut request = world.irecv::<u64>(COMPUTES, 0)?;
        until(|| Ok(request.test().then_some(())))?;
        Ok(request.wait().map(drop)?)
    }),
    ("wait_any", |world, meet| {
        meet()?;
        let mut set = world.requests();
        set.push(world.irecv::<u64>(COMPUTES, 0)?)?;
        Ok(set.wait_any().map(drop)?)
    }),
    ("wait_some", |world, meet| {
        meet()?;
        let mut set = world.requests();
        set.push(world.irecv::<u64>(COMPUTES, 0)?)?;
        set.wait_some().map(drop).map_err(first)
    }),
    ("wait_all", |world, meet| {
        meet()?;
        let mut set = world.requests();
        set.push(world.irecv::<u64>(COMPUTES, 0)?)?;
        set.wait_all().map(drop).map_err(first)
    }),
    ("test_any", |world, meet| {
        meet()?;
        let mut set = world.requests();
        set.push(world.irecv::<u64>(COMPUTES, 0)?)?;
        until(|| Ok(set.test_any().map(|tested| tested.is_ready().then_some(()))?))
    }),
    ("scope", |world, meet| {
        meet()?;
        let mut into = [0u64];
        world.scope(|scope| scope.irecv_into(COMPUTES, 0, &mut into).map(drop))
    }),
    ("unlock", |world, meet| {
        let u = held(world, meet)?;
        let lock = u.lock(COMPUTES, LockType::Exclusive)?;
        lock.put([2], 0)?;
        lock.unlock()
    }),
    ("flush", |world, meet| {
        let u = held(world, meet)?;
        let lock = u.lock(COMPUTES, LockType::Shared)?;
        lock.put([2], 0)?;
        lock.flush()
    }),
    ("lock_all", |world, meet| {
        let u = held(world, meet)?;
        let locks = u.lock_all()?;
        locks.on(COMPUTES)?.put([2], 0)?;
        locks.unlock()
    }),
    ("rget", |world, meet| {
        let u = held(world, meet)?;
        let lock = u.lock(COMPUTES, LockType::Shared)?;
        let got = lock.rget(0)?;
        Ok(got.wait().map(drop)?)
    }),
    ("local", |world, meet| held(world, meet)?.local(|_| Ok(()))),
    ("local_mut", |world, meet| held(world, meet)?.local_mut(|_| Ok(()))),
    ("epochs of a lock", |world, meet| {
        let u = world.lock_window::<u64>(RANKS)?;
        meet()?;
        until(|| {
            let lock = u.lock(COMPUTES, LockType::Exclusive)?;
            lock.put([2], 0)?;
            lock.unlock().map(|()| None::<()>)
        })
    }),
    ("flushes of a lock", |world, meet| {
        let u = world.lock_window::<u64>(RANKS)?;
        meet()?;
        let lock = u.lock(COMPUTES, LockType::Shared)?;
        until(|| {
            lock.accumulate([2], Op::Sum, 0)?;
            lock.flush().map(|()| None::<()>)
        })
    }),
    ("flushes of a part that is held by the one that fails", |world, meet| {
        let u = world.lock_window::<u64>(RANKS)?;
        let lock = u.lock(COMPUTES, LockType::Shared)?;
        if world.rank() == FAILS {
            lock.accumulate([2], Op::Sum, 0)?;
            lock.flush()?;
        }
        meet()?;
        until(|| {
            lock.accumulate([2], Op::Sum, 0)?;
            lock.flush().map(|()| None::<()>)
        })
    }),
];
