//! One rank has no memory. Every rank gets an error, and no rank waits for something that will not
//! come.
//!
//! This program's allocator refuses large allocations on threads that request this, so that single
//! ranks can be without memory.

use fencepost::transport::SimConfig;
use fencepost::{Datatype, ErrorClass, Mode, Ranks, Result, State, TransportKind, World, ranks};
use fencepost_tests_support::counting::with_at_most;
use fencepost_tests_worlds::ends::ends;

/// A number of elements for which the rank without memory gets no allocation. Three lists of `LEN`
/// elements are less than 2 MiB. From 2 MiB on, memory is mapped, and the allocator is not called.
const LEN: usize = 1 << 16;

/// Returns the result of `call`. Meanwhile rank 1 of the world has no memory for `LEN` elements.
fn short_of_memory<R>(world: &World, call: impl FnOnce() -> R) -> R {
    with_at_most(if world.rank() == 1 { LEN } else { usize::MAX }, call)
}

fn worlds() -> [Ranks; 3] {
    [TransportKind::Local, TransportKind::TcpThreads, TransportKind::Sim(SimConfig::default())]
        .map(|transport| ranks(3).transport(transport))
}

type Collective = (&'static str, fn(&World, &[u64]) -> Result<()>);

/// Collectives of lists whose lengths only their owners know at first.
const COLLECTIVES: [Collective; 2] = [
    ("gather", |world, mine| world.gather(0, mine).map(drop)),
    ("allgather", |world, mine| world.allgather(mine).map(drop)),
];

#[test]
fn a_rank_that_cannot_begin_a_collective_is_named_by_all_and_the_world_goes_on() -> Result<()> {
    for world in worlds() {
        for (what, call) in COLLECTIVES {
            for equal_lengths in [true, false] {
                world.run(|world| {
                    let mine = vec![world.rank() as u64; LEN + if equal_lengths { 0 } else { world.rank() }];
                    for _ in 0..2 {
                        let error = short_of_memory(world, || call(world, &mine)).expect_err("no memory");
                        assert!(!error.world_ended(), "{what}: {error}");
                        assert!(error.to_string().contains("rank 1"), "{what}: {error}");
                        assert_eq!(world.allgather(&[1u8])?.concat(), [1; 3]);
                    }
                    (0..2).try_for_each(|_| call(world, &mine))
                })?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_ticket_without_memory_is_an_error_at_the_fence_on_all() -> Result<()> {
    for world in worlds() {
        world.run(|world| {
            let mut u = world.window::<u64>(LEN)?;
            u.fill(world.rank() as u64);
            // There is memory to stage the elements of a get. A ticket would need more.
            u.get(0..LEN).mode(Mode::Aggregated).from(world.rank(), 0..LEN)?;
            u.fence()?;
            let ticket = u.fetch(0, 0..LEN)?;
            u.put([7]).to((world.rank() + 1) % 3, 0)?;
            let error = short_of_memory(world, || u.fence()).expect_err("rank 1 has no memory");
            let (class, what) = if world.rank() == 1 {
                (ErrorClass::NoMem, format!("{} bytes", LEN * 8))
            } else {
                (ErrorClass::RmaSync, "rank 1".into())
            };
            assert_eq!((error.class(), error.state()), (class, State::Unchanged), "{error}");
            assert!(error.to_string().contains(&what) && !error.world_ended(), "{error}");
            assert_eq!(u[0], world.rank() as u64);
            assert_eq!(ticket.take().expect_err("the epoch failed").class(), ErrorClass::RmaSync);
            let ticket = u.fetch(1, 0..LEN)?;
            u.fence()?;
            // The elements that have arrived stay until there is memory for them.
            let elements = short_of_memory(world, || ticket.take());
            assert_eq!(elements.is_err(), world.rank() == 1);
            let elements = elements.or_else(|error| {
                assert_eq!(error.class(), ErrorClass::NoMem);
                ticket.take()
            })?;
            assert_eq!(elements, [1; LEN]);
            Ok(())
        })?;
    }
    Ok(())
}

/// Rank 1 receives a put from a section. Rank 1 has to stage the section, since the put writes
/// elements that rank 2 reads.
#[test]
fn a_rank_that_cannot_stage_what_is_lent_to_it_ends_the_world_and_says_why() {
    for transport in [TransportKind::Local, TransportKind::ShmThreads] {
        let errors = ends(&ranks(3).transport(transport.clone()), &[], |world| {
            let mut u = world.window::<u64>(LEN)?;
            let mut v = world.window::<u64>(LEN)?;
            u.fill(world.rank() as u64);
            match world.rank() {
                0 => u.put(0..LEN).mode(Mode::Direct).to(1, 0..LEN)?,
                2 => u.get(v.section(0..LEN)).mode(Mode::Direct).from(1, 0..LEN)?,
                _ => {}
            }
            short_of_memory(world, || world.fence((&mut u, &mut v)))?;
            world.barrier()
        });
        for (rank, error) in errors.into_iter().enumerate() {
            let (class, text) =
                error.unwrap_or_else(|| panic!("{transport:?}: rank {rank} was told nothing"));
            assert_eq!(class, ErrorClass::NoMem, "{transport:?}, rank {rank}: {text}");
            assert!(
                text.contains(&format!("{} bytes", LEN * 8)) && text.contains("256 times"),
                "{transport:?}, rank {rank}: {text}"
            );
        }
    }
}

/// A window is lent to one target at most 256 times. The remaining elements are copied, and arrive
/// nevertheless.
#[test]
fn what_is_lent_to_one_rank_is_bounded() -> Result<()> {
    const SMALL: usize = 1 << 15;
    for transport in [TransportKind::Local, TransportKind::ShmThreads] {
        ranks(2).transport(transport).explain(true).run(|world| {
            let mut u = world.window::<u64>(SMALL)?;
            u.fill(world.rank() as u64 + 1);
            for _ in 0..600 {
                u.put(0..SMALL / 2).mode(Mode::Direct).to(1 - world.rank(), SMALL / 2..SMALL)?;
            }
            u.fence()?;
            assert_eq!(u[SMALL / 2..], [2 - world.rank() as u64; SMALL / 2]);
            let said = world.explain_last();
            assert!(said.contains("direct: 512 sections"), "{said}");
            Ok(())
        })?;
    }
    Ok(())
}

/// A send that has no memory for its copy has sent nothing. The numbers of messages, the credit and
/// the buffer are unchanged.
#[test]
fn a_send_without_memory_leaves_numbers_credit_and_buffer_as_they_were() {
    const BYTES: usize = 8 * LEN;
    let refused = |call: &dyn Fn() -> Result<()>| {
        let error = with_at_most(LEN, call).expect_err("there is no memory");
        assert_eq!(error.class(), ErrorClass::NoMem, "{error}");
        assert!(error.to_string().contains("memory") && !error.world_ended(), "{error}");
    };
    for (transport, size, is_eager) in [
        (TransportKind::Local, 1, true),
        (TransportKind::Local, 1, false),
        (TransportKind::Local, 2, true),
        (TransportKind::Local, 2, false),
        (TransportKind::TcpThreads, 2, false),
        (TransportKind::Sim(SimConfig::default()), 2, false),
    ] {
        // There is credit for the elements of one message at a time, or for none. The buffer has
        // room for one message.
        let (eager, unexpected) = if is_eager { (BYTES, size * (BYTES + 1000)) } else { (0, 1 << 24) };
        let world = ranks(size).transport(transport.clone()).end_deadlocks(true);
        let run = world.eager(eager).unexpected(unexpected).run(|world| {
            let values = vec![5u64; LEN];
            if world.rank() == 0 {
                world.attach_buffer(BYTES)?;
                for _ in 0..2 {
                    (0..size).for_each(|to| refused(&|| world.message(to, 0).buffered().send(&values)));
                    if is_eager {
                        refused(&|| world.message(size - 1, 0).send(&values));
                        refused(&|| world.message(size - 1, 0).synchronous().send(&values));
                    }
                }
                // No receive waits for the message.
                match is_eager {
                    true => world.message(size - 1, 0).send(&values)?,
                    false => world.message(size - 1, 0).buffered().send(&values)?,
                }
            }
            world.barrier()?;
            if world.rank() == size - 1 {
                assert!(world.recv::<u64>(0, 0)?.0 == values);
            }
            if world.rank() == 0 {
                assert_eq!(world.detach_buffer()?, BYTES, "it waits for no message that was not sent");
            }
            // The answer to a synchronous send identifies the message by its number.
            if size == 1 {
                let mut came = vec![0; LEN];
                world.sendrecv(0, 1, &values, 0, 1, &mut came)?;
                assert!(came == values);
            } else if world.rank() == 0 {
                world.message(1, 1).synchronous().send(&values)?;
            } else {
                assert!(world.recv::<u64>(0, 1)?.0 == values);
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{transport:?}, {size} ranks, eager: {is_eager}: {error}"));
    }
}

#[test]
fn a_part_whose_runs_there_is_no_memory_for_is_refused_and_the_window_is_as_it_was() -> Result<()> {
    for world in worlds() {
        world.run(|world| {
            let mut u = world.window::<u8>(LEN)?;
            let group = world.group([(world.rank() + 1) % 3])?;
            let part = Datatype::nest(0, &[(LEN / 2, 2)], 1).unwrap();
            if world.rank() == 1 {
                let refused = short_of_memory(world, || u.post_part(&group, &part)).expect_err("no memory");
                let (window, error) = refused.into_parts();
                assert_eq!(error.class(), ErrorClass::NoMem, "{error}");
                u = window;
            }
            u.fence()
        })?;
    }
    Ok(())
}
