//! The meaning of posts and starts, by the paragraphs of `planner/README.md`.

use fencepost::transport::SimConfig;
use fencepost::{ErrorClass, Op, Tested, TransportKind, Window, World, ranks};
use fencepost_planner::Result;

/// Returns the transports on which programs of this number of ranks run.
pub fn transports(size: usize) -> Vec<TransportKind> {
    let sim = |seed| TransportKind::Sim(SimConfig { seed, ..SimConfig::default() });
    let mut all =
        vec![TransportKind::Local, TransportKind::ShmThreads, sim(1), sim(2), TransportKind::TcpThreads];
    // Hosts with two consecutive ranks each, and ranks that alternate between the hosts.
    all.push(TransportKind::MixedThreads((0..size as u32).map(|rank| rank / 2).collect()));
    all.push(TransportKind::MixedThreads((0..size as u32).map(|rank| rank % 2).collect()));
    all
}

/// Returns a window of `len` elements, in which element `i` is 100 times the rank plus `i`.
pub fn window(world: &World, len: usize) -> Result<Window<i32>> {
    let mut u = world.window::<i32>(len)?;
    let rank = world.rank();
    u.iter_mut().enumerate().for_each(|(at, element)| *element = (100 * rank + at) as i32);
    Ok(u)
}

pub fn everywhere(size: usize, program: impl Fn(&World) -> Result<()> + Sync) {
    for transport in transports(size) {
        if let Err(error) = ranks(size).transport(transport.clone()).run(&program) {
            panic!("{transport:?}: {error:?}");
        }
    }
}

#[test]
fn puts_and_sums_are_applied_by_source_in_the_wait() {
    everywhere(4, |world| {
        let mut u = window(world, 4)?;
        for round in 0..20 {
            match world.rank() {
                0 => {
                    u[3] = 7;
                    let exposed = u.post(&world.group([1, 2, 3])?)?;
                    u = exposed.wait()?;
                    assert_eq!(u[..], [3, 1 + 2 + 3 + round, 2, 7 + 8 * 3], "round {round}");
                    u[1] = round + 1;
                    u[3] = 0;
                }
                me => {
                    let access = u.start(&world.group([0])?)?;
                    access.put([me as i32]).to(0, 0)?;
                    if round > 0 || me == 3 {
                        access.accumulate([me as i32], Op::Sum).to(0, 1)?;
                    } else {
                        access.accumulate([me as i32 - i32::from(me == 1)], Op::Sum).to(0, 1)?;
                    }
                    if me == 2 {
                        access.put(&[2]).to(0, 2..3)?;
                    }
                    access.accumulate([4, 4], Op::Sum).to(0, 2..4)?;
                    if me < 3 {
                        access.accumulate([4], Op::Sum).to(0, 3)?;
                    } else {
                        access.put([2]).to(0, 2)?;
                        access.accumulate([4], Op::Sum).to(0, 3)?;
                    }
                    access.complete()?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn gets_read_what_was_lent_and_may_be_both_ways() {
    everywhere(3, |world| {
        let (me, mut u) = (world.rank(), window(world, 4)?);
        let all = world.group(0..3)?;
        for _ in 0..10 {
            let exposed = u.post(&all)?;
            let access = exposed.start(&all)?;
            let tickets: Vec<_> = (0..3).map(|from| access.fetch(from, 1..3)).collect::<Result<_>>()?;
            (0..3).try_for_each(|to| access.put([-(me as i32)]).to(to, 0))?;
            access.complete()?;
            for (from, ticket) in tickets.iter().enumerate() {
                assert_eq!(ticket.take()?, [100 * from as i32 + 1, 100 * from as i32 + 2]);
            }
            u = exposed.wait()?;
            assert_eq!(u[0], -2);
        }
        Ok(())
    });
}

#[test]
fn a_test_is_a_wait_that_does_not_wait() {
    everywhere(2, |world| {
        let mut u = window(world, 1)?;
        if world.rank() == 0 {
            let Tested::Open(exposed) = u.post(&world.group([1])?)?.test()? else {
                panic!("rank 1 has not started");
            };
            world.barrier()?;
            world.barrier()?;
            match exposed.test()? {
                Tested::Done(u) => assert_eq!(u[..], [5]),
                Tested::Open(_) => panic!("the access has been completed"),
            }
        } else {
            world.barrier()?;
            let access = u.start(&world.group([0])?)?;
            access.put([5]).to(0, 0)?;
            access.complete()?;
            world.barrier()?;
            u[0] = 1;
        }
        Ok(())
    });
}

#[test]
fn what_is_not_lent_is_refused_at_both_ends() {
    everywhere(2, |world| {
        let u = window(world, 4)?;
        let group = world.group([1 - world.rank()])?;
        if world.rank() == 0 {
            let mut exposed = u.post_part(&group, 1..3)?;
            assert_eq!(exposed.kept(3..4)?, [3]);
            exposed.kept_mut(0..1)?[0] = 9;
            assert_eq!(exposed.kept(2..4).unwrap_err().class(), ErrorClass::RmaConflict);
            assert_eq!(exposed.kept(2..5).unwrap_err().class(), ErrorClass::Disp);
            let (u, error) = exposed.wait().unwrap_err().into_parts();
            assert_eq!(error.class(), ErrorClass::Disp, "{error}");
            assert!(error.message().contains("rank 1") && error.message().contains("meaning.rs"), "{error}");
            assert_eq!(u[..], [9, 1, 2, 3]);
            let read = u.post_read(&group)?;
            assert_eq!(read[1], 1);
            let (u, error) = read.wait().unwrap_err().into_parts();
            assert_eq!(error.class(), ErrorClass::Assert, "{error}");
            assert_eq!(u[..], [9, 1, 2, 3]);
        } else {
            let access = u.start(&group)?;
            access.put([1]).to(0, 1)?;
            let wide = access.fetch(0, 0..3)?;
            let fits = access.fetch(0, 1..3)?;
            let error = access.complete().unwrap_err();
            assert_eq!(error.class(), ErrorClass::Disp, "{error}");
            assert!(error.message().contains("rank 0"), "{error}");
            assert_eq!(wide.take().unwrap_err().class(), ErrorClass::Disp);
            assert_eq!(fits.take()?, [1, 2]);
            let access = u.start(&group)?;
            let fits = access.fetch(0, 0..2)?;
            access.accumulate([1], Op::Sum).to(0, 1)?;
            assert_eq!(access.complete().unwrap_err().class(), ErrorClass::Assert);
            assert_eq!(fits.take()?, [9, 1]);
        }
        Ok(())
    });
}

#[test]
fn a_dropped_access_fails_the_wait() {
    everywhere(2, |world| {
        let u = window(world, 2)?;
        let group = world.group([1 - world.rank()])?;
        if world.rank() == 0 {
            let (u, error) = u.post(&group)?.wait().unwrap_err().into_parts();
            assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
            assert!(error.message().contains("rank 1"), "{error}");
            assert_eq!(u.post(&group)?.wait()?[..], [8, 1]);
        } else {
            let access = u.start(&group)?;
            access.put([7]).to(0, 0)?;
            let ticket = access.fetch(0, 1)?;
            drop(access);
            assert_eq!(ticket.take().unwrap_err().class(), ErrorClass::RmaSync);
            let access = u.start(&group)?;
            access.put([8]).to(0, 0)?;
            access.complete()?;
        }
        Ok(())
    });
}
