//! Operations that no fence carries out. They are reported, unless the program has discarded them.

use crate::everywhere;
use fencepost::prelude::*;
use fencepost::{Check, Mode, ranks};
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::transports::transports;

/// Collects two operations, and then does not fence them.
type Forgets = fn(&World) -> Result<()>;

/// The line of the first operation of a [`window`].
const FIRST: u32 = line!() + 6;

fn window(world: &World) -> Result<Window<u64>> {
    let mut u = world.window::<u64>(100)?;
    u.put([6]).to(world.rank(), 3)?;
    u.fence()?;
    u.put([7]).to(1 - world.rank(), 0)?;
    u.put(vec![7; 50]).to(world.rank(), 10)?;
    Ok(u)
}

const TOLD: &[(&str, Forgets)] = &[
    ("dropped", |world| window(world).map(drop)),
    ("leaked", |world| window(world).map(std::mem::forget)),
    ("dropped in a part", |world| world.split(Some(0), 0)?.map_or(Ok(()), |part| window(&part).map(drop))),
    ("dropped before a fence of another window", |world| {
        drop(window(world)?);
        world.window::<u8>(1)?.fence()
    }),
];

const NOT_TOLD: &[(&str, Forgets)] = &[
    ("fenced", |world| window(world)?.fence()),
    ("given up", |world| {
        window(world)?.discard();
        Ok(())
    }),
];

#[test]
fn operations_that_are_not_fenced_are_an_error_where_mistakes_are_looked_for() {
    for transport in transports([5]) {
        for check in Check::ALL {
            let world = ranks(2).transport(transport.clone()).check(check);
            for (what, forgets) in TOLD {
                let run = world.run(forgets);
                if check == Check::Off {
                    run.unwrap_or_else(|error| panic!("{transport:?}, {what}: {error}"));
                    continue;
                }
                let error = run.expect_err(what);
                let text = error.to_string();
                assert_eq!(error.class(), ErrorClass::RmaSync, "{transport:?}, {check}, {what}: {text}");
                let first = format!("2 operations, the first at {}:{FIRST}, that", file!());
                assert!(text.contains(&first) && text.contains("`Window::discard`"), "{what}: {text}");
            }
            for (what, forgets) in NOT_TOLD {
                world.run(forgets).unwrap_or_else(|error| panic!("{transport:?}, {check}, {what}: {error}"));
            }
        }
    }
}

#[test]
fn an_error_of_the_program_is_not_hidden_by_operations_that_it_did_not_fence() {
    for transport in transports([5]) {
        let world = ranks(2).transport(transport.clone()).check(Check::Calls);
        let ends = ends(&world, &[], |world| {
            let _u = window(world)?;
            Err(Error::new(ErrorClass::Other, "it has had enough"))
        });
        for (class, text) in ends.into_iter().flatten() {
            assert!(class != ErrorClass::RmaSync, "{transport:?}: {text}");
        }
    }
}

#[test]
fn what_is_given_up_is_seen_by_nobody_and_what_follows_by_all() {
    for mode in [Mode::Auto, Mode::Aggressive, Mode::Aggregated] {
        for who in [&[0][..], &[0, 1]] {
            everywhere(2, |world, kind| {
                let (me, other) = (world.rank(), 1 - world.rank());
                let mut u = world.window::<u64>(200)?;
                for round in 1..4 {
                    u.fill(10 * me as u64);
                    u.fence()?;
                    let gives_up = who.contains(&me);
                    if gives_up {
                        u.put([1]).mode(mode).to(other, 0)?;
                        u.put(vec![2; 100]).mode(mode).to(other, 50)?;
                        u.accumulate([3], Op::Sum).mode(mode).to(me, 7)?;
                        let ticket = u.get(3..60).mode(mode).from(other, 3..60);
                        u.discard();
                        ticket?;
                    }
                    u.put([round]).mode(mode).to(other, 1)?;
                    let ticket = u.fetch(other, 5)?;
                    u.fence()?;
                    assert_eq!(ticket.take()?, [10 * other as u64], "{kind:?}, {mode:?}");
                    let mut expected = vec![10 * me as u64; 200];
                    expected[1] = round;
                    assert_eq!(u[..], expected, "{kind:?}, {mode:?}, round {round}");
                }
                world.barrier()
            });
        }
    }
}
