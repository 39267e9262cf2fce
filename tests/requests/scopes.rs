//! Requests in a scope, which may borrow. The tests cover sources, cancelled receives, and requests
//! that outlive the scope.

use fencepost::{Error, ErrorClass, Result, World};
use fencepost_tests_worlds::messages::everywhere;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

const LEN: usize = 50_000;

/// A source whose drop calls a function of the program.
struct Source<F: FnMut()>(Vec<u64>, F);

impl<F: FnMut()> AsRef<[u64]> for Source<F> {
    fn as_ref(&self) -> &[u64] {
        &self.0
    }
}

impl<F: FnMut()> Drop for Source<F> {
    fn drop(&mut self) {
        (self.1)();
    }
}

/// Makes sends, and returns when they are complete. Dropping one of their sources calls `dropped`.
/// The other rank [takes](take) the messages.
fn complete_some<'s, 'env: 's>(
    world: &World,
    scope: &'s fencepost::scoped::Scope<'s, 'env>,
    dropped: impl FnMut() + Clone + 'env,
) -> Result<()> {
    for _ in 0..8 {
        drop(scope.message(1, 0).synchronous().isend((Source(vec![7; 10], dropped.clone()), 0..10))?);
    }
    world.recv::<u8>(1, 1)?;
    world.try_probe(1, 9).map(drop) // notices that the messages were taken
}

fn take(world: &World) -> Result<()> {
    (0..8).try_for_each(|_| world.recv::<u64>(0, 0).map(drop))?;
    world.message(0, 1).send([0u8])
}

#[test]
fn a_source_whose_drop_panics_leaves_the_send_just_begun_to_its_scope() {
    everywhere(2, |world| {
        if world.rank() == 1 {
            take(world)?;
            for _ in 0..world.recv::<u64>(0, 3)?.0[0] {
                assert_eq!(world.recv::<u64>(0, 2)?.0, [7; LEN]);
            }
            return Ok(());
        }
        let (armed, last) = (Cell::new(false), Rc::new(Cell::new(false)));
        world.scope(|scope| {
            complete_some(world, scope, || assert!(!armed.replace(false), "the drop of a source"))?;
            armed.set(true);
            let mut begun = 0u64;
            while armed.get() {
                begun += 1;
                let is_dropped = last.clone();
                last.set(false);
                let source = Source(vec![7; LEN], move || is_dropped.set(true));
                let send = catch_unwind(AssertUnwindSafe(|| {
                    scope.message(1, 2).synchronous().isend((source, 0..LEN)).map(drop)
                }));
                assert_eq!(send.is_err(), !armed.get());
            }
            assert!(!last.get(), "the scope keeps the source of a send that was begun");
            world.message(1, 3).send([begun])
        })?;
        assert!(last.get(), "the scope has dropped it");
        Ok(())
    });
}

#[test]
fn a_source_whose_drop_panics_leaves_the_receive_just_begun_to_its_scope() {
    everywhere(2, |world| {
        if world.rank() == 1 {
            take(world)?;
            // This message comes last. Only a scope that kept the receive waits for this message.
            let last = world.recv::<u64>(0, 3)?.0[0];
            let others = (0..8).filter(|&value| value != last);
            return others
                .chain([last])
                .try_for_each(|value| world.message(0, 10 + value as u32).send(vec![value; LEN]));
        }
        let (armed, mut rooms) = (Cell::new(false), vec![vec![99u64; LEN]; 8]);
        world.scope(|scope| {
            complete_some(world, scope, || assert!(!armed.replace(false), "the drop of a source"))?;
            armed.set(true);
            let mut panicked = Vec::new();
            for (value, room) in (0u64..).zip(&mut rooms) {
                let begin = move || scope.irecv_into(1, 10 + value as u32, room).map(drop);
                if catch_unwind(AssertUnwindSafe(begin)).is_err() {
                    panicked.push(value);
                }
            }
            assert_eq!(panicked.len(), 1);
            world.message(1, 3).send(panicked)
        })?;
        for (value, room) in rooms.iter().enumerate() {
            assert_eq!(*room, [value as u64; LEN], "the scope has waited for the receive");
        }
        Ok(())
    });
}

/// The drop of a source may call anything, since nothing is borrowed while the drop runs.
#[test]
fn the_drop_of_a_source_may_call_the_world() {
    everywhere(2, |world| {
        if world.rank() == 1 {
            take(world)?;
            return (0..12).try_for_each(|_| world.recv::<u64>(0, 2).map(drop));
        }
        let calls = Rc::new(Cell::new(0));
        world.scope(|scope| {
            let calls = calls.clone();
            let dropped = move || {
                calls.set(calls.get() + 1);
                world
                    .scope(|inner| inner.message(1, 2).isend([9u64; 4]).map(drop))
                    .expect("a scope in a drop");
                world.try_probe(1, 9).expect("a probe in a drop");
            };
            complete_some(world, scope, dropped)?;
            (0..4).try_for_each(|_| scope.message(1, 2).synchronous().isend(vec![7u64; LEN]).map(drop))
        })?;
        assert_eq!(calls.get(), 8);
        Ok(())
    });
}

#[test]
fn a_receive_that_was_cancelled_is_not_waited_for_by_its_scope() {
    everywhere(2, |world| {
        let other = 1 - world.rank();
        for fails in [false, true] {
            let (mut room, mut next, mut last) = ([5u8; 4], [5u8; 4], [5u8; 4]);
            let ended = world.scope(|scope| {
                let mut set = world.requests();
                let place = set.push(scope.irecv_into(other, 0, &mut room)?)?;
                assert_eq!(set.cancel(place), Some(()));
                // The position is free for another request, and only that request is completed
                // below.
                assert_eq!(set.push(scope.irecv_into(other, 0, &mut next)?)?, place);
                assert_eq!(set.test_some()?, Some(vec![]));
                world.barrier()?;
                world.message(other, 0).send([world.rank() as u8; 4])?;
                assert_eq!(set.wait_all()?.len(), 1);
                assert_eq!(scope.irecv_into(other, 1, &mut last)?.cancel().ok(), Some(()));
                if fails { Err(Error::new(ErrorClass::Other, "enough")) } else { Ok(()) }
            });
            assert_eq!(ended.err().map(|error| error.message().to_owned()), fails.then(|| "enough".into()));
            assert_eq!((room, next, last), ([5; 4], [other as u8; 4], [5; 4]));
            world.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn a_receive_that_its_scope_cancels_fails_and_the_world_goes_on() {
    everywhere(2, |world| {
        let other = 1 - world.rank();
        let (mut room, mut rooms, mut kept, mut set) = ([5u8; 4], [5u8; 4], None, world.requests());
        let ended: Result<()> = world.scope(|scope| {
            kept = Some(scope.irecv_into(other, 0, &mut room)?);
            set.push(scope.irecv_into(other, 0, &mut rooms)?)?;
            Err(Error::new(ErrorClass::Other, "enough"))
        });
        assert_eq!(ended.expect_err("the closure failed").message(), "enough");
        set.push(world.irecv::<u8>(other, 1)?.map(drop))?;
        world.message(other, 1).send([0u8])?;
        let refused = kept.expect("it is begun").wait().expect_err("it was cancelled");
        assert_eq!(refused.error().class(), ErrorClass::Other);
        assert!(refused.error().message().contains("its scope returned an error"), "{refused}");
        let (outcomes, _) = set.wait_all().expect_err("one of them was cancelled").into_parts();
        let classes: Vec<_> = outcomes.iter().map(fencepost::Outcome::class).collect();
        assert_eq!(classes, [Some(ErrorClass::Other), None]);
        world.barrier()
    });
}

/// Timing decides whether the receive fails before the scope ends, and whether the scope then still
/// keeps the receive.
#[test]
fn the_error_of_a_receive_is_returned_by_its_request_or_by_its_scope() {
    everywhere(2, |world| {
        for (fails_first, waits, more) in
            [(false, false, 0), (true, false, 0), (true, false, 20), (true, true, 0), (true, true, 20)]
        {
            world.barrier()?;
            if world.rank() == 1 {
                world.message(0, 0).send([7u8; 2])?;
                (0..more).try_for_each(|_| world.recv::<u8>(0, 1).map(drop))?;
                continue;
            }
            let mut room = [0u8; 1];
            let ended = world.scope(|scope| {
                let mut receive = scope.irecv_into(1, 0, &mut room)?;
                while fails_first && !receive.test() {
                    std::thread::yield_now();
                }
                if waits {
                    let error = receive.wait().expect_err("it is too long");
                    assert_eq!(error.error().class(), ErrorClass::Truncate);
                }
                (0..more).try_for_each(|_| scope.message(1, 1).isend([1u8; 1]).map(drop))
            });
            let class = ended.err().map(|error| error.class());
            assert_eq!(class, (!waits).then_some(ErrorClass::Truncate), "{fails_first}, {more}");
        }
        Ok(())
    });
}
