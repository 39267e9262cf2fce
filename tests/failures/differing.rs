//! If ranks make different calls, the errors name the difference.

use fencepost::prelude::*;
use fencepost::ranks;
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::transports::transports;

/// A collective that rank 1 calls differently, and words of the errors: those about the call of the
/// other ranks, about the call of rank 1, and about both calls.
type Case = (fn(&World, bool) -> Result<()>, [&'static str; 2], &'static str);

const CASES: &[Case] = &[
    (
        |world, other| world.broadcast(usize::from(other), &mut [0u64]),
        ["with root 0, 1 element of u64", "with root 1, 1 element of u64"],
        "World::broadcast (",
    ),
    (
        |world, other| world.allreduce(&mut [0i64], if other { Op::Max } else { Op::Sum }),
        ["with operator SUM, 1 element of i64", "with operator MAX, 1 element of i64"],
        "World::allreduce (",
    ),
    (
        |world, other| world.reduce(0, &vec![1.0; if other { 5 } else { 10 }], Op::Sum).map(drop),
        ["with root 0, operator SUM, 10 elements of f64", "with root 0, operator SUM, 5 elements of f64"],
        "World::reduce (",
    ),
    (
        |world, other| match other {
            true => world.gather(0, &[1u32]).map(drop),
            false => world.gather(0, &[1u8]).map(drop),
        },
        ["with root 0, elements of u8", "with root 0, elements of u32"],
        "World::gather (",
    ),
];

#[test]
fn a_collective_that_ranks_call_with_other_arguments_is_told_with_both() {
    for transport in transports([4]) {
        for (call, [own, others], name) in CASES {
            let ends = ends(&ranks(3).transport(transport.clone()), &[], |world| {
                let called = call(world, world.rank() == 1);
                world.barrier()?; // the world goes on
                called
            });
            for (rank, end) in ends.into_iter().enumerate() {
                let (class, text) = end.expect("they differ");
                assert_eq!(class, ErrorClass::RmaSync, "{transport:?}: {text}");
                let [first, second] = if rank == 1 { [others, own] } else { [own, others] };
                for words in [
                    format!("this rank is in {name}").as_str(),
                    first,
                    second,
                    "all ranks must give a collective the same root, operator, number of elements and element type",
                ] {
                    assert!(text.contains(words), "{transport:?}: no {words:?} in {text}");
                }
            }
        }
    }
}

#[test]
fn a_ticket_that_is_taken_too_early_or_twice_names_the_line_that_asked_for_it() {
    for transport in transports([4]) {
        let run = ranks(2).transport(transport.clone()).run(|world| {
            let mut u = world.window::<u64>(1)?;
            let (asked, ticket) = (line!(), u.fetch(1 - world.rank(), 0)?);
            let place = format!("differing.rs:{asked} ");
            let early = ticket.take().expect_err("it is too early");
            assert!(early.message().contains(&format!("{place}have not arrived")), "{early}");
            u.fence()?;
            ticket.take()?;
            let twice = ticket.take().expect_err("they were taken");
            assert!(twice.message().contains(&format!("{place}were taken before")), "{twice}");
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
    }
}

#[test]
fn operators_take_usize_and_say_what_they_do_not_take() {
    ranks(2)
        .run(|world| {
            let mut counts = [1usize, world.rank()];
            world.allreduce(&mut counts, Op::Sum)?;
            assert_eq!(counts, [2, 1]);
            let error = world.allreduce(&mut [[1.0; 2]], Op::Sum).expect_err("it is an array");
            let words = "SUM is not defined for elements of 16 bytes that are not one number, such as arrays and structs: it takes integers and floating-point numbers, so use a window of numbers";
            assert_eq!((error.class(), error.message()), (ErrorClass::Op, words));
            let error = world.allreduce(&mut [1.0], Op::Bxor).expect_err("it is no integer");
            assert!(error.message().ends_with("is not defined for f64: it takes integers"), "{error}");
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_vector_of_windows_is_fenced_together() {
    for transport in transports([4]) {
        let run = ranks(2).transport(transport.clone()).run(|world| {
            let mut windows = (0..7).map(|_| world.window::<u64>(1)).collect::<Result<Vec<_>>>()?;
            for (at, u) in windows.iter().enumerate() {
                u.put([at as u64]).to(1 - world.rank(), 0)?;
            }
            world.fence(&mut windows)?;
            assert!(windows.iter().map(|u| u[0]).eq(0..7));
            windows[0].put([9]).to(1 - world.rank(), 0)?;
            world.fence(&mut windows[..2])?;
            assert_eq!(windows[0][0], 9);
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
    }
}
