//! Worlds, windows, epochs and messages are made and dropped in a job, and leave nothing in the
//! memory of the process. These tests are alone in their file, and run one at a time, since they
//! count the memory of the whole process.

use fencepost::prelude::*;
use fencepost::transport::SimConfig;
use fencepost::{Any, Group, TransportKind, ranks};
use fencepost_tests_support::counting::{Counting, live_of_process};
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A test holds this lock while it counts.
static ALONE: Mutex<()> = Mutex::new(());

#[superstep]
fn shift(u: &mut Window<u64>) -> Result<()> {
    u.put(0..4).to((u.rank() + 1) % u.size(), 4)?;
    Ok(())
}

/// Returns the number of allocated bytes at a moment at which every rank has arrived here and no
/// rank has continued.
fn held(world: &World) -> Result<i64> {
    // Two barriers, since the threads that the first barrier wakes may still be freeing memory.
    for _ in 0..2 {
        world.barrier()?;
    }
    let held = live_of_process();
    world.barrier()?;
    Ok(held)
}

/// Makes a world of some ranks with windows and an epoch of each kind, `times` times.
fn pass(world: &World, times: usize) -> Result<()> {
    for time in 0..times {
        // A part of all ranks, of neighbours, or of every other rank.
        let colour = [0, world.rank() / 2, world.rank() % 2][time % 3] as u32;
        let part = world.split(Some(colour), -(world.rank() as i64))?.expect("all are members");
        let mut u = part.window::<u64>(8)?;
        shift(&mut u)?;
        shift::prepare(&part)?.replay(&mut u)?;
        part.barrier()?;
    }
    Ok(())
}

#[test]
fn worlds_that_come_and_go_leave_nothing() -> Result<()> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    const TIMES: usize = 240;
    for transport in [
        TransportKind::Local,
        TransportKind::ShmThreads,
        TransportKind::TcpThreads,
        TransportKind::MixedThreads(vec![0, 0, 1, 1]),
        TransportKind::Sim(SimConfig { seed: 3, ..SimConfig::default() }),
    ] {
        let grown: Vec<i64> = ranks(4).transport(transport.clone()).collect(|world| {
            pass(world, TIMES)?;
            let before = held(world)?;
            pass(world, TIMES)?;
            Ok(held(world)? - before)
        })?;
        // This is the growth of all ranks together. Each rank was in one of the worlds each time.
        let each = grown[0] / (4 * TIMES as i64);
        assert!(each < 16, "{transport:?}: each of them left {each} bytes");
    }
    Ok(())
}

#[superstep(sync = pscw)]
fn shift_by_posts(u: &mut Window<u64>) -> Result<()> {
    u.put(0..4).to((u.rank() + 1) % u.size(), 4)?;
    Ok(())
}

/// The values that each round of a case uses: the ranks of a ring, the groups of the next rank and
/// of the previous one, a window, and a window for locks.
struct Kept<'w> {
    world: &'w World,
    next: usize,
    before: usize,
    to: Group,
    from: Group,
    window: Option<Window<u64>>,
    locks: Option<LockWindow<u64>>,
}

impl Kept<'_> {
    /// Replaces the window by the one that `act` returns.
    fn with(&mut self, act: impl FnOnce(&Self, Window<u64>) -> Result<Window<u64>>) -> Result<()> {
        let window = self.window.take().expect("each case gives it back");
        self.window = Some(act(self, window)?);
        Ok(())
    }
}

/// A case: its name, and a function that runs one round.
type Case = (&'static str, fn(&mut Kept<'_>, usize) -> Result<()>);

const CASES: &[Case] = &[
    ("windows that are dropped", |kept, _| kept.world.window::<u64>(8).map(drop)),
    ("windows that are freed", |kept, _| Ok(kept.world.window::<u64>(8)?.free()?)),
    ("windows that are fenced", |kept, _| {
        let mut u = kept.world.window::<u64>(8)?;
        u.put([1]).to(kept.next, 0)?;
        u.fence()
    }),
    ("windows that are posted and accessed", |kept, _| {
        let u = kept.world.window::<u64>(8)?;
        let access = u.start(&kept.to)?;
        access.put([1]).to(kept.next, 0)?;
        let exposed = u.post(&kept.from)?;
        access.complete()?;
        Ok(exposed.wait().map(drop)?)
    }),
    ("windows whose accesses are dropped and that nobody posts", |kept, _| {
        drop(kept.world.window::<u64>(8)?.start(&kept.to)?);
        kept.world.barrier()
    }),
    ("windows of locks that are dropped", |kept, _| {
        drop(kept.world.lock_window::<u64>(8)?);
        kept.world.barrier()
    }),
    ("windows of locks that are locked", |kept, _| {
        let locks = kept.world.lock_window::<u64>(8)?;
        let lock = locks.lock(kept.next, LockType::Exclusive)?;
        lock.put([1], 0)?;
        lock.unlock()?;
        kept.world.barrier()
    }),
    ("windows of locks that are changed over", |kept, _| {
        let locks = kept.locks.take().expect("it is given back");
        kept.locks = Some(locks.into_window()?.into_locked()?);
        Ok(())
    }),
    ("windows that cannot be made", |kept, _| {
        let len = if kept.next == 0 { usize::MAX / 4 } else { 8 };
        kept.world.window::<u64>(len).map(drop).expect_err("there is no memory");
        Ok(())
    }),
    ("parts of the world with windows of locks", |kept, _| {
        let part = kept.world.split(Some(0), 0)?.expect("all are members");
        let locks = part.lock_window::<u64>(8)?;
        let lock = locks.lock(kept.next, LockType::Shared)?;
        lock.put([1], 0)?;
        lock.unlock()?;
        part.barrier()
    }),
    ("parts of the world with messages", |kept, _| {
        let part = kept.world.split(Some(0), 0)?.expect("all are members");
        let sent = part.message(kept.next, 0).isend(vec![1_u64; 100])?;
        part.recv::<u64>(kept.before, 0)?;
        sent.wait()?;
        part.barrier()
    }),
    ("fences", |kept, round| {
        let (next, at) = (kept.next, 10 * (round % 4));
        let u = kept.window.as_mut().expect("it is there");
        u.put(&vec![1; 20 + at]).to(next, at)?;
        u.accumulate([1], Op::Sum).to(next, at)?;
        u.put(&Datatype::nest(at as i64, &[(3, 7)], 2).unwrap())
            .to(next, Datatype::nest(0, &[(2, 5)], 3).unwrap())?;
        drop(u.fetch(next, at..at + 30)?);
        u.fence()
    }),
    ("fences that fail", |kept, _| {
        let (next, fails) = (kept.next, kept.before == 0);
        let u = kept.window.as_mut().expect("it is there");
        u.put([1]).to(next, 0)?;
        let failed: Result<()> = u.epoch(|_| match fails {
            true => Err(Error::new(ErrorClass::Other, "as it should")),
            false => Ok(()),
        });
        failed.expect_err("one rank fails");
        Ok(())
    }),
    ("epochs in a closure", |kept, _| {
        let (mut buffer, next) = (vec![0; 20], kept.next);
        kept.window.as_mut().expect("it is there").epoch(|epoch| epoch.fetch_into(next, 0, &mut buffer))
    }),
    ("exposures", |kept, round| {
        kept.with(|kept, u| {
            let (access, at) = (u.start(&kept.to)?, 10 * (round % 4));
            match round % 4 {
                0 => access.put([1]).to(kept.next, at)?,
                1 => access.put(&vec![1; 60]).to(kept.next, at)?,
                2 => drop(access.fetch(kept.next, at..at + 30)?),
                _ => access
                    .accumulate(&[1; 6], Op::Sum)
                    .to(kept.next, Datatype::nest(0, &[(3, 7)], 2).unwrap())?,
            }
            let exposed = u.post(&kept.from)?;
            access.complete()?;
            Ok(exposed.wait()?)
        })
    }),
    ("exposures of parts", |kept, round| {
        kept.with(|kept, u| {
            let access = u.start(&kept.to)?;
            access.put([1]).to(kept.next, 0)?;
            let exposed =
                u.post_part(&kept.from, Datatype::nest(0, &[(3, 7 + round as i64 % 4)], 2).unwrap())?;
            access.complete()?;
            Ok(exposed.wait()?)
        })
    }),
    ("exposures whose accesses are dropped", |kept, _| kept.with(dropped)),
    ("exposures some of whose accesses are dropped", |kept, round| {
        kept.with(|kept, u| match round % 3 {
            0 => {
                let (access, exposed) = (u.start(&kept.to)?, u.post(&kept.from)?);
                access.complete()?;
                Ok(exposed.wait()?)
            }
            _ => dropped(kept, u),
        })
    }),
    ("epochs of locks", |kept, round| {
        let (locks, at) = (kept.locks.as_ref().expect("it is there"), 10 * (round % 4));
        let kind = [LockType::Exclusive, LockType::Shared][round % 2];
        let lock = locks.lock(kept.next, kind)?;
        lock.put(vec![1; 20], at)?;
        lock.accumulate(vec![1; 20], Op::Sum, at)?;
        drop(lock.get(Datatype::nest(at as i64, &[(3, 7)], 2).unwrap())?);
        lock.flush()?;
        drop(lock.fetch_and(Op::Sum, 1, at)?);
        lock.unlock()
    }),
    ("messages", |kept, round| {
        let sent = kept.world.message(kept.next, 1).isend(vec![1_u64; [1, 3000][round % 2]])?;
        match round % 3 {
            0 => drop(kept.world.recv::<u64>(Any, 1)?),
            _ => drop(kept.world.recv::<u64>(kept.before, 1)?),
        }
        Ok(sent.wait().map(drop)?)
    }),
    ("messages that are received in another order", |kept, _| {
        for tag in 0..10 {
            kept.world.message(kept.next, tag).isend(vec![1_u64; 10])?.wait()?;
        }
        (0..10).rev().try_for_each(|tag| kept.world.recv::<u64>(kept.before, tag).map(drop))
    }),
    ("synchronous messages", |kept, _| {
        let sent = kept.world.message(kept.next, 1).synchronous().isend(vec![1_u64; 10])?;
        kept.world.recv::<u64>(kept.before, 1)?;
        Ok(sent.wait().map(drop)?)
    }),
    ("receives that are cancelled", |kept, _| {
        let one = kept.world.irecv::<u64>(kept.before, 7)?;
        let other = kept.world.irecv_into::<u64>(Any, 8, vec![0; 100])?;
        assert!(one.cancel().is_ok() && other.cancel().is_ok());
        Ok(())
    }),
    ("sets of requests", |kept, _| {
        let mut all = kept.world.requests();
        for tag in 0..4 {
            all.push(kept.world.irecv::<u64>(kept.before, tag)?)?;
        }
        for tag in 0..4 {
            all.push(kept.world.message(kept.next, tag).isend(vec![1; 1000])?)?;
        }
        Ok(all.wait_all().map(drop)?)
    }),
    ("scopes of requests", |kept, _| {
        let (source, mut came) = (vec![1_u64; 1000], vec![0_u64; 1000]);
        kept.world.scope(|scope| {
            let _received = scope.irecv_into(kept.before, 1, &mut came)?;
            let _sent = scope.message(kept.next, 1).isend(&source)?;
            Ok(())
        })
    }),
    ("collectives", |kept, _| {
        let mut values = vec![1_u64; 10];
        kept.world.allreduce(&mut values, Op::Sum)?;
        kept.world.allgather(&values)?;
        kept.world.broadcast(0, &mut values)?;
        kept.world.scan(&mut values, Op::Sum)
    }),
    ("supersteps that are prepared", |kept, _| {
        let mut prepared = shift::prepare(kept.world)?;
        prepared.replay(kept.window.as_mut().expect("it is there"))
    }),
    ("supersteps that are prepared with posts and starts", |kept, _| {
        kept.with(|kept, u| shift_by_posts::prepare(kept.world)?.begin(u)?.finish())
    }),
];

/// Drops an access, and waits for the exposure to which the access belonged.
fn dropped(kept: &Kept<'_>, u: Window<u64>) -> Result<Window<u64>> {
    drop(u.start(&kept.to)?);
    let refused = u.post(&kept.from)?.wait().expect_err("the access was dropped");
    Ok(refused.into_parts().0)
}

/// Repeated rounds of a case leave no memory allocated.
#[test]
fn what_comes_and_goes_in_a_world_leaves_nothing() {
    const ROUNDS: usize = 128;
    const MOST: i64 = 4 * ROUNDS as i64;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut wrong = Vec::new();
    for transport in [TransportKind::Local, TransportKind::ShmThreads, TransportKind::TcpThreads] {
        for (name, round_of) in CASES {
            let grown = ranks(2).transport(transport.clone()).collect(|world| {
                let (me, size) = (world.rank(), world.size());
                let (next, before) = ((me + 1) % size, (me + size - 1) % size);
                let mut kept = Kept {
                    world,
                    next,
                    before,
                    to: world.group([next])?,
                    from: world.group([before])?,
                    window: Some(world.window(100)?),
                    locks: Some(world.lock_window(100)?),
                };
                let mut some = || -> Result<i64> {
                    (0..ROUNDS).try_for_each(|round| round_of(&mut kept, round))?;
                    held(world)
                };
                // Buffers and caches may still grow to their final size. A leak would grow in every
                // round.
                let mut least = [i64::MAX];
                let mut before = some()?;
                for _ in 0..6 {
                    let after = some()?;
                    least = [least[0].min(after - before)];
                    world.allreduce(&mut least, Op::Min)?;
                    if least[0] < MOST {
                        break;
                    }
                    before = after;
                }
                Ok(least[0])
            });
            match grown {
                Ok(grown) if grown[0] < MOST => {}
                grown => wrong.push(format!("{transport:?}: {name}: {grown:?} bytes in {ROUNDS} rounds")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
