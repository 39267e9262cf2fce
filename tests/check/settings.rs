//! The ranks that are checked, and the effects of a check.

use fencepost::prelude::*;
use fencepost::{Assertions, Census, Check, TransportKind, ranks};
use fencepost_tests_worlds::transports::transports;

#[superstep]
fn two_puts(u: &mut Window<u64>, at: usize) -> Result<()> {
    let (me, size) = (u.rank(), u.size());
    u.put(0..4).to((me + 1) % size, 8)?;
    u.put(0..4).to((me + 2) % size, at)?;
    Ok(())
}

#[test]
fn a_superstep_with_a_conflict_is_not_prepared_where_conflicts_are_looked_for() {
    for transport in transports([5]) {
        for check in Check::ALL {
            let run = ranks(4).transport(transport.clone()).check(check).run(|world| {
                let mut u = world.window::<u64>(16)?;
                two_puts::prepare(world, 12)?.run(&mut u, 12)?;
                let prepared = two_puts::prepare(world, 9).err();
                let finds = check >= Check::Conflicts;
                assert_eq!(prepared.is_some(), finds, "{transport:?} {check}");
                if let Some(error) = prepared {
                    assert_eq!(error.class(), ErrorClass::RmaConflict, "{error}");
                    let lines = [line!() - 17, line!() - 16].map(|line| format!("{}:{line}", file!()));
                    assert!(lines.iter().all(|line| error.message().contains(line)), "{lines:?}: {error}");
                }
                u.fence()
            });
            run.expect("the world goes on");
        }
    }
}

#[test]
fn names_are_read_and_written() {
    for check in Check::ALL {
        assert_eq!(check.to_string().parse::<Check>().expect("a name"), check);
    }
    for (name, words) in [
        ("marks", "`off`, `calls`, `conflicts` or `mpi`"),
        ("mark", "use `conflicts`"),
        ("log", "use `conflicts`"),
    ] {
        let error = name.parse::<Check>().expect_err("no name");
        assert!(error.class() == ErrorClass::Arg && error.message().contains(words), "{error}");
    }
}

#[test]
fn conflicts_are_found_in_each_census() {
    for census in Census::ALL {
        for transport in transports([1]) {
            let world = ranks(4).transport(transport.clone()).census(census).check(Check::Conflicts);
            let run = world.run(|world| {
                let mut u = world.window::<u64>(8)?;
                for epoch in 0..6 {
                    if world.rank() < 2 {
                        u.put([1]).to(3, if epoch % 2 == 0 { 4 } else { world.rank() })?;
                    }
                    let class = u.fence().err().map(|error| error.class());
                    let expected = match (epoch % 2, world.rank()) {
                        (1, _) => None,
                        (_, 2) => Some(ErrorClass::RmaSync),
                        _ => Some(ErrorClass::RmaConflict),
                    };
                    assert_eq!(class, expected, "{transport:?} {census}");
                }
                assert!(u[4] == 0 && (world.rank() < 3 || u[..2] == [1, 1]));
                Ok(())
            });
            run.expect("the world goes on");
        }
    }
}

#[test]
fn nothing_more_is_sent_where_nothing_is_checked() {
    let messages = |check: Check| {
        let sent = ranks(2).transport(TransportKind::TcpThreads).check(check).collect(|world| {
            let mut u = world.window::<u64>(8)?;
            let before = world.meter().total().frames;
            for _ in 0..10 {
                u.put([1]).to(1 - world.rank(), 3)?;
                u.fence()?;
            }
            Ok(world.meter().total().frames - before)
        });
        sent.expect("no error")
    };
    assert_eq!(messages(Check::Off), messages(Check::Calls));
    assert!(messages(Check::Conflicts)[0] > messages(Check::Off)[0]);
}

#[test]
fn collectives_and_other_calls_are_as_they_were() {
    let run = ranks(4).check(Check::Conflicts).run(|world| {
        let mut u = world.window::<u64>(8)?;
        let all = world.allgather(&vec![world.rank() as u64; 100 * world.rank()])?;
        assert!(all.iter().enumerate().all(|(rank, list)| list.len() == 100 * rank));
        u.put([1]).to(0, world.rank())?;
        u.fence_with(Assertions::NOSUCCEED)?;
        assert_eq!(u.put([1]).to(0, 1).expect_err("it was promised").class(), ErrorClass::Assert);
        u.fence_with(Assertions::NOPRECEDE)?;
        u.put([1]).to(0, 1)?;
        let error = u.fence_with(Assertions::NOPRECEDE).expect_err("operations wait");
        assert_eq!(error.class(), ErrorClass::Assert);
        u.fence()
    });
    run.expect("no error");
}

#[test]
fn a_rank_that_leaves_is_named_by_those_that_wait_in_the_exchange_of_a_check() {
    for transport in transports([2]) {
        let run = ranks(4).transport(transport.clone()).check(Check::Conflicts).run(|world| {
            // When rank 2 leaves, another rank may still be in the call that makes the window. That
            // rank gets the error from this call.
            let ended = world.window::<u64>(8).and_then(|mut u| {
                u.put([1]).to(0, world.rank())?;
                if world.rank() == 2 {
                    u.discard();
                    return Ok(());
                }
                let error = u.fence().expect_err("rank 2 has left");
                assert_eq!(u[..], [0; 8], "{error}");
                Err(error)
            });
            if let Err(error) = ended {
                assert_eq!(error.class(), ErrorClass::ProcFailed, "{transport:?}: {error}");
                assert!(world.rank() != 2 && error.message().contains("rank 2"), "{error}");
            }
            Ok(())
        });
        assert!(run.is_ok(), "{run:?}");
    }
}

/// Rank 1 is in a barrier while the other ranks are in a fence, and all ranks get an error.
/// Afterwards the ranks are in step again, and their next fences match.
#[test]
fn ranks_in_other_calls_are_brought_into_step() {
    for transport in transports([4]) {
        let run = ranks(4).transport(transport).check(Check::Conflicts).run(|world| {
            let mut u = world.window::<u64>(8)?;
            u.put([1]).to(0, world.rank())?;
            let ended = if world.rank() == 1 { world.barrier() } else { u.fence() };
            assert_eq!(ended.expect_err("they are in other calls").class(), ErrorClass::RmaSync);
            u.put([1]).to(0, 4 + world.rank())?;
            match world.rank() {
                1 => assert!(u.fence().is_ok()),
                _ => u.fence()?,
            }
            assert!(world.rank() > 0 || u[..] == [0, 1, 0, 0, 1, 1, 1, 1], "{:?}", &u[..]);
            Ok(())
        });
        run.expect("the world goes on");
    }
}

#[test]
fn windows_are_checked_after_fences_that_were_refused() {
    let run = ranks(2).check(Check::Conflicts).run(|world| {
        let mut u = world.window::<u64>(8)?;
        let mut v = world.window::<u64>(8)?;
        u.put([1]).to(0, 3)?;
        v.put(u.section(0..1)).to(0, 3)?;
        assert!(v.fence().is_err(), "the section is of a window that is not fenced");
        assert_eq!(u.fence().expect_err("both put").class(), ErrorClass::RmaConflict);
        u.put([1]).to(0, world.rank())?;
        u.fence()
    });
    run.expect("the world goes on");
}

#[test]
fn a_get_of_more_runs_than_can_be_looked_at_is_not_looked_at_in_its_call() {
    for transport in transports([5]) {
        for check in Check::ALL {
            let run = ranks(2).transport(transport.clone()).check(check).run(|world| {
                let mut u = world.window::<u64>(16)?;
                // The ticket names one element 2^40 times, and there is no memory for the values.
                let ticket = u.fetch(1 - world.rank(), Datatype::nest(0, &[(1 << 40, 0)], 1).unwrap())?;
                let error = u.fence().expect_err("8 TiB");
                assert_eq!(error.class(), ErrorClass::NoMem, "{transport:?} {check}: {error}");
                drop(ticket);
                world.barrier()
            });
            run.expect("the world goes on");
        }
    }
}
