//! Datatypes for ranks that do not reach each other's memory. A datatype is sent once, and
//! afterwards only its number is sent.

use fencepost::prelude::*;
use fencepost::{TransportKind, World, ranks};
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::transports::{sim, transports};

/// Returns the transports on which ranks 0 and 1 do not reach each other's memory.
fn apart() -> [TransportKind; 3] {
    [TransportKind::TcpThreads, TransportKind::MixedThreads(vec![0, 1]), sim(2)]
}

/// Returns the number of bytes that this rank sends in a call.
fn sent(world: &World, call: impl FnOnce() -> Result<()>) -> Result<u64> {
    let before = world.meter().total().bytes;
    call()?;
    Ok(world.meter().total().bytes - before)
}

/// Returns a datatype of `elements` elements at irregular distances.
fn irregular(dice: &mut Random, elements: usize) -> Datatype {
    Datatype::elements((0..elements).map(|at| (20 * at + dice.below(19)) as i64)).unwrap()
}

/// The description of an irregular datatype has at least this number of bytes. The description of a
/// regular datatype is shorter.
const FORM: u64 = 1000;

#[test]
fn the_second_epoch_with_an_irregular_datatype_sends_no_description_of_it() {
    for kind in apart() {
        let run = ranks(2).transport(kind.clone()).run(|world| {
            let remote = irregular(&mut Random::new(1), 500);
            let u = world.lock_window::<u8>(20 * 500)?;
            if world.rank() == 0 {
                let epoch = |value: u8| {
                    sent(world, || {
                        let lock = u.lock(1, LockType::Shared)?;
                        lock.put([value; 500], remote.clone())?;
                        lock.unlock()
                    })
                };
                let (first, second) = (epoch(1)?, epoch(2)?);
                assert!(first > second + FORM && second < 500 + 100, "{first} and {second} bytes");
                // The same holds for a get in an epoch that is flushed, and for several gets in one
                // epoch.
                let third = sent(world, || {
                    let lock = u.lock(1, LockType::Exclusive)?;
                    let ticket = lock.get(remote.clone())?;
                    lock.flush()?;
                    assert_eq!(ticket.take()?, [2; 500]);
                    let twice = [lock.get(remote.clone())?, lock.get(remote.clone())?];
                    lock.unlock()?;
                    twice
                        .into_iter()
                        .try_for_each(|ticket| ticket.take().map(|found| assert_eq!(found, [2; 500])))
                })?;
                assert!(third < 400, "{third} bytes");
            }
            let mut u = u.into_window()?;
            // The same holds for accesses, which get and put.
            let mut bytes = Vec::new();
            for round in 0..3 {
                if world.rank() == 1 {
                    u = u.post(&world.group([0])?)?.wait()?;
                    continue;
                }
                bytes.push(sent(world, || {
                    let access = u.start(&world.group([1])?)?;
                    let ticket = access.fetch(1, remote.clone())?;
                    access.put(&[10 + round; 500]).to(1, remote.clone())?;
                    access.complete()?;
                    assert_eq!(ticket.take()?, [if round == 0 { 2 } else { 9 + round }; 500]);
                    Ok(())
                })?);
            }
            if let [first, second, third] = bytes[..] {
                assert!(first > second + 2 * FORM && second < 500 + 300 && third <= second, "{bytes:?}");
            }
            // A post of a part also reports for each access whether the access fits.
            let mut bytes = Vec::new();
            for round in 0..3 {
                if world.rank() == 0 {
                    let access = u.start(&world.group([1])?)?;
                    access.put(&[20 + round; 500]).to(1, remote.clone())?;
                    access.complete()?;
                    continue;
                }
                let before = world.meter().total().bytes;
                u = u.post_part(&world.group([0])?, remote.clone())?.wait()?;
                bytes.push(world.meter().total().bytes - before);
                assert!(remote.element_iter().all(|at| u[at as usize] == 20 + round));
            }
            if let [first, second, third] = bytes[..] {
                assert!(first > second + FORM && second < 100 && third <= second, "{bytes:?}");
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}

/// There are more datatypes than numbers. Each datatype is chosen by one rank, for several targets
/// and in several windows.
#[test]
fn any_number_of_datatypes_names_the_right_elements() {
    for kind in transports([6]) {
        let run = ranks(3).transport(kind.clone()).run(|world| {
            let (me, mut dice) = (world.rank(), Random::new(world.rank() as u64));
            let all: Vec<Datatype> = (0..300).map(|at| irregular(&mut dice, 10 + at % 9)).collect();
            let windows = [world.lock_window::<u32>(400)?, world.lock_window::<u32>(400)?];
            let mut expected = vec![[[0_u32; 400]; 3]; 2];
            for step in 0..700 {
                let which = if step < 300 { step } else { dice.below(300) };
                let (window, target) = (step % 2, dice.below(3));
                let lock = windows[window].lock(target, LockType::Shared)?;
                // Each rank adds a number of its own.
                lock.accumulate(vec![1 << (10 * me); all[which].size()], Op::Sum, all[which].clone())?;
                if step % 50 == 0 {
                    lock.flush()?;
                }
                lock.unlock()?;
                for at in all[which].element_iter() {
                    expected[window][target][at as usize] += 1 << (10 * me);
                }
            }
            for (window, expected) in windows.into_iter().zip(expected) {
                let mut part = [0; 400];
                part.copy_from_slice(&window.into_window()?);
                for (target, expected) in expected.into_iter().enumerate() {
                    let own = part.map(|sum| sum >> (10 * me) & 1023).to_vec();
                    let mine = expected.map(|sum| sum >> (10 * me) & 1023).to_vec();
                    if target == me {
                        assert_eq!(own, mine, "what this rank has added to itself");
                    }
                    let mut all = expected.map(u64::from);
                    world.allreduce(&mut all, Op::Sum)?;
                    if target == me {
                        assert!(all.iter().copied().eq(part.iter().map(|&sum| u64::from(sum))), "{target}");
                    }
                }
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}
