//! Wrong arguments of every call of posts, starts, accesses, exposures and locks. Each wrong
//! argument is an error of the expected class at the call. Afterwards the world continues, and the
//! window can be used as before.

use fencepost::prelude::*;
use fencepost::{Check, Group, Hints, Op, Refused, World, ranks};
use fencepost_tests_worlds::transports::transports;

/// Checks that a refused call has not changed its window. Returns the error of the call.
fn given_back(refused: Refused<Window<f32>>) -> Error {
    let (window, error) = refused.into_parts();
    assert_eq!(window[..], [0.0; 4], "nothing has changed: {error}");
    error
}

/// The values that the calls of a row use: a world of two ranks, groups of it, and a group of
/// another world. Each rank has a window of four elements.
struct With<'w> {
    world: &'w World,
    none: Group,
    own: Group,
    other: Group,
    foreign: Group,
}

/// The name of a call with its mistake, the class of its error, and the call itself.
type Row<T> = (&'static str, ErrorClass, fn(&With<'_>, T) -> Result<()>);

/// Like [`Row`], for a call that takes its second argument by reference.
type Borrowing<T> = (&'static str, ErrorClass, fn(&With<'_>, &T) -> Result<()>);

use ErrorClass::{Arg, Disp, NoMem, Op as Operator, Rank, RmaSync, Size};

const WINDOWS: &[Row<Window<f32>>] = &[
    ("group: a rank that there is not", Rank, |with, _| with.world.group([0, 2]).map(drop)),
    ("group: the greatest number", Rank, |with, _| with.world.group([usize::MAX]).map(drop)),
    ("post: a group of another world", Arg, |with, u| u.post(&with.foreign).map(drop).map_err(given_back)),
    ("post_read: a group of another world", Arg, |with, u| {
        u.post_read(&with.foreign).map(drop).map_err(given_back)
    }),
    ("post_part: a group of another world", Arg, |with, u| {
        u.post_part(&with.foreign, 0..1).map(drop).map_err(given_back)
    }),
    ("post_part: elements behind the end", Disp, |with, u| {
        u.post_part(&with.own, 2..5).map(drop).map_err(given_back)
    }),
    ("post_part: elements before the beginning", Disp, |with, u| {
        u.post_part(&with.own, Datatype::elements([-1]).unwrap()).map(drop).map_err(given_back)
    }),
    ("post_part: the greatest number", Disp, |with, u| {
        u.post_part(&with.own, Datatype::elements([(1_i64 << 62) - 1]).unwrap()).map(drop).map_err(given_back)
    }),
    ("post: with a put for the fence", RmaSync, |with, mut u| {
        u.put([0.0]).to(0, 0)?;
        let (back, error) = u.post(&with.none).map(drop).expect_err("a put waits").into_parts();
        u = back;
        u.fence()?;
        Err(error)
    }),
    ("start: a group of another world", Arg, |with, u| u.start(&with.foreign).map(drop)),
    ("start: with a put for the fence", RmaSync, |with, mut u| {
        u.put([0.0]).to(0, 0)?;
        let error = u.start(&with.none).map(drop);
        u.fence()?;
        error
    }),
    ("start: a target of another open access", RmaSync, |with, u| {
        let access = u.start(&with.none)?;
        let second = u.start(&with.own)?;
        let third = u.start(&with.own).map(drop);
        access.complete()?;
        second.complete()?;
        u.post(&with.own)?.wait()?;
        third
    }),
    ("put: while an access is open", RmaSync, |with, u| {
        let access = u.start(&with.none)?;
        let put = u.put([1.0]).to(0, 0);
        access.complete()?;
        put
    }),
    ("fence: while an access is open", RmaSync, |with, mut u| {
        let access = u.start(&with.none)?;
        let fence = u.fence();
        access.complete()?;
        fence
    }),
    ("epoch_between: sources of another world", Arg, |with, mut u| {
        u.epoch_between(&with.foreign, &with.none, |_| Ok(()))
    }),
    ("epoch_between: targets of another world", Arg, |with, mut u| {
        u.epoch_between(&with.none, &with.foreign, |_| Ok(()))
    }),
    ("epoch_between: a get of another length", Size, |with, mut u| {
        let mut into = [0.0; 2];
        let me = with.world.rank();
        u.epoch_between(&with.own, &with.own, |epoch| Ok(epoch.fetch_into(me, 0..3, &mut into)))?
    }),
    ("kept: elements that are lent", ErrorClass::RmaConflict, |with, u| {
        let exposed = u.post_part(&with.none, 1..3)?;
        let kept = exposed.kept(0..2).map(drop);
        exposed.wait()?;
        kept
    }),
    ("kept_mut: elements behind the end", Disp, |with, u| {
        let mut exposed = u.post_part(&with.none, 1..3)?;
        let kept = exposed.kept_mut(3..5).map(drop);
        exposed.wait()?;
        kept
    }),
    ("into_locked: with a put for the fence", RmaSync, |_, mut u| {
        u.put([0.0]).to(0, 0)?;
        let (back, error) = u.into_locked().map(drop).expect_err("a put waits").into_parts();
        u = back;
        u.fence()?;
        Err(error)
    }),
    ("free: with an access open", RmaSync, |with, u| {
        let access = u.start(&with.none)?;
        let freed = u.free().map_err(given_back);
        access.complete()?;
        freed
    }),
    ("into_vec: with an access open", RmaSync, |with, u| {
        let access = u.start(&with.none)?;
        let vec = u.into_vec().map(drop).map_err(given_back);
        access.complete()?;
        vec
    }),
];

/// Calls on an access in which each rank accesses its own part of a window of four elements.
const ACCESSES: &[Borrowing<fencepost::Access<f32>>] = &[
    ("put: a target that there is not", Rank, |_, a| a.put([1.0]).to(2, 0)),
    ("put: the greatest target", Rank, |_, a| a.put([1.0]).to(usize::MAX, 0)),
    ("put: a target that was not named", RmaSync, |with, a| a.put([1.0]).to(1 - with.world.rank(), 0)),
    ("put: an element behind the end", Disp, |with, a| a.put([1.0]).to(with.world.rank(), 4)),
    ("put: the greatest displacement", Disp, |with, a| a.put([1.0]).to(with.world.rank(), usize::MAX)),
    ("put: more than there are left", Disp, |with, a| a.put(&[1.0; 3]).to(with.world.rank(), 2)),
    ("put: the greatest displacement of several", Disp, |with, a| {
        a.put(&[1.0; 3]).to(with.world.rank(), usize::MAX - 1)
    }),
    ("put: fewer than the range", Size, |with, a| a.put([1.0]).to(with.world.rank(), 0..2)),
    ("put: more than the datatype", Size, |with, a| {
        a.put(&[1.0; 3]).to(with.world.rank(), Datatype::elements([0, 2]).unwrap())
    }),
    ("put: a datatype before the beginning", Disp, |with, a| {
        a.put([1.0]).to(with.world.rank(), Datatype::elements([-4]).unwrap())
    }),
    ("put: a part that is not in the slice", Disp, |with, a| {
        a.put((&[1.0, 2.0], 1..3)).to(with.world.rank(), 0)
    }),
    ("accumulate: an operator of integers", Operator, |with, a| {
        a.accumulate([1.0], Op::Bxor).to(with.world.rank(), 0)
    }),
    ("accumulate: an operator of pairs", Operator, |with, a| {
        a.accumulate(&[1.0; 2], Op::MaxLoc).to(with.world.rank(), 0)
    }),
    ("fetch: a target that there is not", Rank, |_, a| a.fetch(2, 0).map(drop)),
    ("fetch: a target that was not named", RmaSync, |with, a| a.fetch(1 - with.world.rank(), 0).map(drop)),
    ("fetch: elements behind the end", Disp, |with, a| a.fetch(with.world.rank(), 1..5).map(drop)),
    ("fetch: an element before the beginning", Disp, |with, a| {
        a.fetch(with.world.rank(), Datatype::elements([-1]).unwrap()).map(drop)
    }),
    ("fetch: more than any memory", NoMem, |_, a| a.fetch(None, 0..usize::MAX / 8).map(drop)),
];

/// Calls on a window for locks, of four elements.
const LOCKS: &[Borrowing<LockWindow<f32>>] = &[
    ("lock: a target that there is not", Rank, |_, u| u.lock(2, LockType::Shared).map(drop)),
    ("lock: the greatest target", Rank, |_, u| u.lock(usize::MAX, LockType::Exclusive).map(drop)),
    ("lock: what is locked", RmaSync, |_, u| {
        let _lock = u.lock(1, LockType::Shared)?;
        u.lock(1, LockType::Exclusive).map(drop)
    }),
    ("lock_all: with a part locked", RmaSync, |_, u| {
        let _lock = u.lock(1, LockType::Shared)?;
        u.lock_all().map(drop)
    }),
    ("lock_all: what is locked so", RmaSync, |_, u| {
        let _all = u.lock_all()?;
        u.lock_all().map(drop)
    }),
    ("on: a target that there is not", Rank, |_, u| u.lock_all()?.on(2).map(drop)),
    ("local: inside of it", RmaSync, |_, u| u.local(|_| u.local(|_| Ok(())))),
    ("local_mut: inside of it", RmaSync, |_, u| u.local_mut(|_| u.local_mut(|_| Ok(())))),
    ("local_mut: with the part locked", RmaSync, |with, u| {
        let _lock = u.lock(with.world.rank(), LockType::Shared)?;
        u.local_mut(|_| Ok(()))
    }),
    ("get of a part: an element behind the end", Disp, |_, u| u.local(|part| part.get(4)).map(drop)),
    ("get of a part: the greatest number", Disp, |_, u| u.local(|part| part.get(usize::MAX)).map(drop)),
    ("put: an element behind the end", Disp, |_, u| u.lock(1, LockType::Shared)?.put([1.0], 4)),
    ("put: the greatest displacement", Disp, |_, u| u.lock(1, LockType::Shared)?.put([1.0; 2], usize::MAX)),
    ("put: fewer than the range", Size, |_, u| u.lock(1, LockType::Shared)?.put([1.0], 0..2)),
    ("put: a section", Arg, |_, u| u.lock(1, LockType::Shared)?.put(0..1, 0)),
    ("put: a part that is not in the slice", Disp, |_, u| {
        u.lock(1, LockType::Shared)?.put((&[1.0], 1..2), 0)
    }),
    ("put: a datatype before the beginning", Disp, |_, u| {
        u.lock(1, LockType::Shared)?.put([1.0], Datatype::elements([-1]).unwrap())
    }),
    ("accumulate: an operator of integers", Operator, |_, u| {
        u.lock(1, LockType::Shared)?.accumulate([1.0], Op::Band, 0)
    }),
    ("accumulate: an operator that changes nothing", Operator, |_, u| {
        u.lock(1, LockType::Shared)?.accumulate([1.0], Op::NoOp, 0)
    }),
    ("accumulate: an operator of pairs", Operator, |_, u| {
        u.lock(1, LockType::Shared)?.accumulate([1.0; 2], Op::MinLoc, 0)
    }),
    ("get: elements behind the end", Disp, |_, u| u.lock(1, LockType::Exclusive)?.get(3..5).map(drop)),
    ("get: an element before the beginning", Disp, |_, u| {
        u.lock(1, LockType::Exclusive)?.get(Datatype::elements([-9]).unwrap()).map(drop)
    }),
    ("get_accumulate: more than the range", Size, |_, u| {
        u.lock(0, LockType::Shared)?.get_accumulate([1.0; 3], Op::Sum, 0..2).map(drop)
    }),
    ("get_accumulate: an operator of integers", Operator, |_, u| {
        u.lock(0, LockType::Shared)?.get_accumulate([1.0; 2], Op::Lxor, 0..2).map(drop)
    }),
    ("fetch_and: an element behind the end", Disp, |_, u| {
        u.lock(0, LockType::Shared)?.fetch_and(Op::Sum, 1.0, 4).map(drop)
    }),
    ("fetch_and: an operator of pairs", Operator, |_, u| {
        u.lock(0, LockType::Shared)?.fetch_and(Op::MaxLoc, 1.0, 0).map(drop)
    }),
    ("compare_and_swap: an element behind the end", Disp, |_, u| {
        u.lock(0, LockType::Shared)?.compare_and_swap(1.0, 2.0, 4).map(drop)
    }),
    ("take: before the epoch ends", RmaSync, |_, u| u.lock(0, LockType::Shared)?.get(0)?.take().map(drop)),
    ("take: twice", Arg, |_, u| {
        let lock = u.lock(0, LockType::Shared)?;
        let ticket = lock.get(0)?;
        lock.unlock()?;
        ticket.take()?;
        ticket.take().map(drop)
    }),
    ("lock_window_with: hints that cannot be", Arg, |with, _| {
        with.world.lock_window_with::<f32>(1, Hints::new().regions(17)).map(drop)
    }),
    ("lock_window: more than any memory", NoMem, |with, _| {
        with.world.lock_window::<f32>(usize::MAX).map(drop)
    }),
];

fn is_refused(what: &str, class: ErrorClass, result: Result<()>) {
    let Err(error) = result else { panic!("{what}: it is refused") };
    assert_eq!(error.class(), class, "{what}: {error}");
    assert!(!error.world_ended(), "{what}: {error}");
    // If the error names a line, the line is in this file.
    assert!(error.site().is_none_or(|site| site.file() == file!()), "{what}: {error}");
}

#[test]
fn each_wrong_argument_has_its_class_at_the_call_and_changes_nothing() {
    for kind in transports([9]) {
        let run = ranks(2).transport(kind.clone()).run(|world| {
            let me = world.rank();
            let part = world.split(Some(0), 0)?.expect("both ranks are in it");
            let [none, own, other] = [world.group([])?, world.group([me])?, world.group([1 - me])?];
            let with = With { world, none, own, other, foreign: part.group([0])? };
            for (what, class, call) in WINDOWS {
                is_refused(what, *class, call(&with, world.window(4)?));
                world.barrier()?;
            }
            let u = world.window::<f32>(4)?.post(&with.own)?;
            let access = u.start(&with.own)?;
            ACCESSES.iter().for_each(|(what, class, call)| is_refused(what, *class, call(&with, &access)));
            access.put([2.0]).to(me, 1)?;
            access.complete()?;
            let u = u.wait()?;
            assert_eq!(u[..], [0.0, 2.0, 0.0, 0.0], "what was refused is no part of the access");
            let u = u.into_locked()?;
            for (what, class, call) in LOCKS {
                is_refused(what, *class, call(&with, &u));
                world.barrier()?;
            }
            let lock = u.lock(1 - me, LockType::Exclusive)?;
            lock.put([3.0], 2)?;
            lock.unlock()?;
            let u = u.into_window()?;
            assert_eq!(u[..], [0.0, 2.0, 3.0, 0.0], "what was refused is no part of an epoch");
            // Both ranks can still access each other.
            let exposed = u.post(&with.other)?;
            let access = exposed.start(&with.other)?;
            access.put([4.0]).to(1 - me, 3)?;
            access.complete()?;
            assert_eq!(exposed.wait()?[..], [0.0, 2.0, 3.0, 4.0]);
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}

/// With a check for conflicts, an operation that repeats the previous operation is recognised by
/// its displacement. This shortcut must not accept invalid displacements.
#[test]
fn displacements_beyond_the_part_are_refused_where_conflicts_are_looked_for() {
    for check in [Check::Conflicts, Check::Mpi] {
        let run = ranks(2).check(check).run(|world| {
            let mut u = world.window::<u64>(8)?;
            let all_refused = |u: &mut Window<u64>| {
                for at in [usize::MAX, usize::MAX - 5, 1 << 40, 63 << 40 | 5, 5 << 40, 8] {
                    let sum = u.accumulate([1], Op::Sum).to(1, at);
                    assert_eq!(sum.expect_err("there is no such element").class(), Disp, "{check}: {at}");
                    let put = u.put([1]).to(1, at);
                    assert_eq!(put.expect_err("there is no such element").class(), Disp, "{check}: {at}");
                }
            };
            for epoch in 0..3 {
                all_refused(&mut u);
                u.accumulate([1], Op::Sum).to(1, 2)?;
                u.accumulate([1], Op::Sum).to(1, 7)?;
                u.fence()?;
                assert_eq!(
                    (u[2], u[7]),
                    if world.rank() == 1 { (2 * epoch + 2, 2 * epoch + 2) } else { (0, 0) }
                );
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{check}: {error}"));
    }
}

/// Returns a datatype that names one element 2^40 times, and a datatype that names four elements
/// 2^40 times in total.
fn often() -> [Datatype; 2] {
    [
        Datatype::nest(1, &[(1 << 40, 0)], 1).unwrap(),
        Datatype::nest(1, &[(1 << 38, 0), (2, 2), (2, -1)], 1).unwrap(),
    ]
}

/// Every call checks whether there is memory for the elements of a datatype before it spends time
/// or memory on them.
#[test]
fn elements_that_are_named_2_to_the_40_times_are_refused_in_every_call() {
    fn too_many<R>(what: &str, result: Result<R>) {
        let Err(error) = result else { panic!("{what}: it is refused") };
        assert!(matches!(error.class(), NoMem | Size), "{what}: {error}");
    }
    for kind in transports([9]) {
        for check in Check::ALL {
            let run = ranks(2).transport(kind.clone()).check(check).run(|world| {
                let other = 1 - world.rank();
                let (mut u, mut v) = (world.window::<u8>(8)?, world.window::<u8>(8)?);
                let mut room = [0_u8; 8];
                for many in &often() {
                    // On all ranks, the fence refuses each operation that was not refused at its
                    // call. The next epoch runs as if nothing had been called.
                    for operation in 0..5 {
                        let called = match operation {
                            0 => u.put((&[1; 8][..], many)).to(other, many),
                            1 => u.accumulate((&[1; 8][..], many), Op::Sum).to(other, many),
                            2 => u.put(v.section(many)).to(other, many),
                            3 => u.get(many).from(other, many),
                            _ => u.fetch(other, many).map(drop),
                        };
                        let fenced = world.fence((&mut u, &mut v));
                        match called {
                            Err(error) => {
                                assert!(
                                    matches!(error.class(), NoMem | Size | ErrorClass::RmaConflict),
                                    "{error}"
                                );
                                fenced?;
                            }
                            Ok(()) => too_many(&format!("operation {operation}"), fenced),
                        }
                    }
                    let got: Result<()> =
                        u.epoch(|epoch| epoch.fetch_into(other, many, (&mut room[..], many)));
                    assert!(got.is_err(), "an element lands more than once");
                    too_many("send", world.message(other, 0).send((&room[..], many)));
                    too_many(
                        "scope",
                        world.scope(|scope| scope.message(other, 0).isend((&room[..], many)).map(drop)),
                    );
                }
                let w = u.into_locked()?;
                for many in &often() {
                    for kind in [LockType::Shared, LockType::Exclusive] {
                        let lock = w.lock(other, kind)?;
                        too_many("get", lock.get(many));
                        too_many("put", lock.put((&[1; 8][..], many), many));
                        too_many("accumulate", lock.accumulate((&[1; 8][..], many), Op::Sum, many));
                        too_many("get_accumulate", lock.get_accumulate((&[1; 8][..], many), Op::Sum, many));
                        lock.unlock()?;
                        world.barrier()?;
                    }
                }
                Ok(())
            });
            run.unwrap_or_else(|error| panic!("{kind:?} {check}: {error}"));
        }
    }
}
