//! How ranks determine which ranks take part in a fence. The tests count the messages that this
//! takes, and check that the results do not depend on the method.

use fencepost::prelude::*;
use fencepost::{Census, Machine, Mode, Op, Ranks, TransportKind, ranks};
use fencepost_tests_worlds::transports::{sim, transports};
use std::sync::Mutex;

/// Returns the number of rounds of a sparse census. Each rank sends one message in each round.
fn rounds(size: usize) -> u64 {
    u64::from(size.next_power_of_two().trailing_zeros())
}

/// Returns the number of frames that this rank sends in `call`, and the number of exchanges in
/// which it notifies all other ranks.
fn sent(world: &World, call: impl FnOnce() -> Result<()>) -> Result<(u64, u64)> {
    let before = world.meter();
    call()?;
    let after = world.meter();
    Ok((after.total().frames - before.total().frames, after.exchanges - before.exchanges))
}

fn sparse(size: usize, transport: TransportKind) -> Ranks {
    ranks(size).transport(transport).census(Census::Sparse)
}

#[test]
fn an_empty_fence_takes_a_message_of_each_rank_in_each_round() -> Result<()> {
    let many = [(16, TransportKind::Local), (64, TransportKind::Local), (256, TransportKind::Local)];
    for (size, transport) in many.into_iter().chain([(16, sim(1)), (37, sim(2)), (64, sim(3))]) {
        let counts = sparse(size, transport).collect(|world| {
            let mut u = world.window::<u64>(1)?;
            Ok([sent(world, || u.fence())?, sent(world, || world.barrier())?])
        })?;
        for (rank, counts) in counts.iter().enumerate() {
            assert_eq!(counts, &[(rounds(size), 0); 2], "rank {rank} of {size}");
        }
    }
    Ok(())
}

/// Short frames are piggybacked on the messages of the census.
#[test]
fn a_ring_takes_one_message_more_only_where_it_is_long() -> Result<()> {
    for size in [16, 64] {
        let counts = sparse(size, sim(4)).collect(|world| {
            let (me, next) = (world.rank(), (world.rank() + 1) % size);
            let mut u = world.window::<u64>(100)?;
            let mut ring = |elements: usize| -> Result<(u64, u64)> {
                let counts = sent(world, || {
                    u.put(vec![me as u64; elements]).to(next, 0)?;
                    u.fence()
                })?;
                assert!(u[..elements].iter().all(|&from| from as usize == (me + size - 1) % size));
                u.fill(0);
                Ok(counts)
            };
            Ok([ring(1)?, ring(100)?])
        })?;
        assert_eq!(counts, vec![[(rounds(size), 0), (rounds(size) + 1, 0)]; size]);
    }
    Ok(())
}

#[superstep]
fn shift(u: &mut Window<u64>, next: usize) -> Result<()> {
    u.put(0..1).to(next, 1)?;
    Ok(())
}

/// Counts all messages of all ranks. A prepared ring is counted too; it sends only its data.
#[test]
#[expect(clippy::print_stdout, reason = "the numbers of messages are the result")]
fn messages_grow_with_the_logarithm_of_the_ranks_and_are_printed() -> Result<()> {
    println!("ranks, empty fence (2 p log2 p), ring at a fence (2 p (log2 p + 2)), prepared ring (p)");
    for size in [16, 64, 256] {
        let counts = sparse(size, sim(6)).collect(|world| {
            let next = (world.rank() + 1) % size;
            let (mut u, mut prepared) = (world.window::<u64>(100)?, shift::prepare(world, next)?);
            prepared.replay(&mut u)?;
            let long = vec![1; 98];
            Ok([
                sent(world, || u.fence())?.0,
                sent(world, || {
                    u.put(&long).to(next, 2)?;
                    u.fence()
                })?
                .0,
                sent(world, || prepared.replay(&mut u))?.0,
            ])
        })?;
        let [fence, ring, prepared] = [0, 1, 2].map(|which| counts.iter().map(|of| of[which]).sum::<u64>());
        let (ranks, rounds) = (size as u64, rounds(size));
        let most = [2 * ranks * rounds, 2 * ranks * (rounds + 2)];
        println!("{size}, {fence} ({}), {ring} ({}), {prepared} ({ranks})", most[0], most[1]);
        assert!(fence <= most[0] && ring <= most[1] && prepared == ranks, "{size} ranks");
    }
    Ok(())
}

/// The last frames of a fence are short here, so they travel through other ranks. They must not
/// overtake frames that left before them.
#[test]
fn what_left_early_is_not_overtaken_by_what_rides() -> Result<()> {
    for transport in (0..30).map(sim).chain([TransportKind::TcpThreads]) {
        for census in Census::ALL {
            ranks(6).transport(transport.clone()).census(census).run(|world| {
                let (me, size) = (world.rank(), world.size());
                let (mut u, mut v) = (world.window::<u64>(4)?, world.window::<u64>(1)?);
                for epoch in 1..4 {
                    for to in (0..size).filter(|&to| to != me) {
                        u.accumulate([1], Op::Sum).mode(Mode::Aggressive).to(to, 0)?;
                        u.accumulate([10], Op::Sum).mode(Mode::Aggressive).to(to, 0)?;
                        v.accumulate([1], Op::Sum).to(to, 0)?;
                        if epoch == 2 {
                            u.put(u.section(2..3)).to(to, 3)?;
                        }
                    }
                    world.fence((&mut u, &mut v))?;
                    let others = size as u64 - 1;
                    assert_eq!((u[0], v[0]), (11 * epoch * others, epoch * others), "rank {me}");
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

#[test]
fn short_frames_ride_from_several_windows_gets_and_long_ones_among_them() -> Result<()> {
    for transport in [sim(5), TransportKind::TcpThreads, TransportKind::MixedThreads(vec![0, 0, 1, 1, 2])] {
        for census in Census::ALL {
            ranks(5).transport(transport.clone()).census(census).run(|world| {
                let (me, size) = (world.rank(), world.size());
                let mut u = world.window::<u64>(200 * size)?;
                let mut v = world.window::<i32>(size)?;
                let mut w = world.window::<i32>(size)?;
                for epoch in 1..4 {
                    u.fill(me as u64);
                    v.fill(-(me as i32));
                    w.fill(-(me as i32));
                    world.barrier()?;
                    for to in 0..size {
                        // Each rank sends each rank a frame that is short enough to be piggybacked.
                        // It also sends some ranks a frame that is too long for that.
                        let elements = if (me + to) % 3 == 0 { 200 } else { 1 };
                        u.put(vec![(epoch * me) as u64; elements]).to(to, 200 * me)?;
                        v.accumulate([epoch as i32], Op::Sum).to(to, me)?;
                        w.get(to..to + 1).from(to, (to + 1) % size)?;
                    }
                    world.fence((&mut u, &mut v, &mut w))?;
                    for from in 0..size {
                        assert_eq!(u[200 * from], (epoch * from) as u64, "of rank {from} to {me}");
                        assert_eq!(v[from], epoch as i32 - me as i32);
                        assert_eq!(w[from], -(from as i32), "gets read M");
                    }
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn reduced(size: usize, transport: TransportKind) -> Ranks {
    ranks(size).transport(transport).census(Census::Reduced)
}

/// Returns the number of messages that each rank sends in a reduced census without groups: one in
/// each round. A rank beyond the largest power of two sends one message before the rounds instead,
/// and its receiver sends one message back after the rounds.
fn halvings(rank: usize, size: usize) -> u64 {
    let within = 1 << size.ilog2();
    if rank >= within { 1 } else { u64::from(size.ilog2()) + u64::from(rank + within < size) }
}

#[test]
fn a_reduced_census_takes_a_message_of_each_rank_in_each_round_and_a_note_for_each_target() -> Result<()> {
    let many = [(64, TransportKind::Local), (256, TransportKind::Local)];
    for (size, transport) in many.into_iter().chain([(2, sim(1)), (3, sim(1)), (16, sim(1)), (37, sim(2))]) {
        let memory = matches!(transport, TransportKind::Local);
        let counts = reduced(size, transport).collect(|world| {
            let (me, next) = (world.rank(), (world.rank() + 1) % size);
            let mut u = world.window::<u64>(size)?;
            let empty = [sent(world, || u.fence())?, sent(world, || world.barrier())?];
            let ring = sent(world, || {
                u.put([me as u64]).to(next, me)?;
                u.fence()
            })?;
            let before = (me + size - 1) % size;
            assert_eq!(u[before] as usize, before);
            let all = sent(world, || {
                (0..size).try_for_each(|to| u.put([1 + me as u64]).to(to, me).map(drop))?;
                u.fence()
            })?;
            assert!(u.iter().copied().eq(1..=size as u64));
            Ok((empty, ring, all))
        })?;
        for (rank, (empty, ring, all)) in counts.into_iter().enumerate() {
            let rounds = halvings(rank, size);
            // The note contains the element, or the address of the element.
            let each = if memory || size - 1 <= 37 { 1 } else { 2 };
            assert_eq!(empty, [(rounds, 0); 2], "rank {rank} of {size}");
            assert_eq!(ring, (rounds + each, 0), "rank {rank} of {size}");
            assert_eq!(all, (rounds + each * (size as u64 - 1), 0), "rank {rank} of {size}");
        }
    }
    Ok(())
}

/// The number of bytes of the census does not depend on the number of ranks that send something,
/// nor on the number of their targets.
#[test]
fn the_messages_of_a_reduced_census_are_as_long_whatever_there_is_to_say() -> Result<()> {
    let size = 16;
    let bytes = |census: Census| {
        ranks(size).transport(sim(3)).census(census).collect(|world| {
            let mut u = world.window::<u64>(size)?;
            let mut bytes = |targets: usize| -> Result<u64> {
                // The second fence sends no descriptions.
                let mut last = 0;
                for _ in 0..2 {
                    let me = world.rank();
                    (1..=targets).try_for_each(|far| u.put([1]).to((me + far) % size, me).map(drop))?;
                    let before = world.meter().total().bytes;
                    u.fence()?;
                    last = world.meter().total().bytes - before;
                }
                Ok(last)
            };
            Ok([bytes(0)?, bytes(7)?, bytes(15)?])
        })
    };
    // In addition to the counts, each target gets a note and the frame of its operations.
    for [none, some, all] in bytes(Census::Reduced)? {
        assert_eq!((all - none) * 7, (some - none) * 15, "{none}, {some}, {all}");
    }
    let sparse = bytes(Census::Sparse)?;
    assert!(sparse.iter().all(|[none, some, all]| (all - none) * 7 > (some - none) * 15), "{sparse:?}");
    Ok(())
}

#[test]
fn ranks_that_have_something_for_most_others_take_the_reduced_census_in_the_next_fence() -> Result<()> {
    let size = 64;
    // The model of a link on which bytes are expensive.
    let mut machine = Machine::default();
    machine.network.per_byte = 100.0;
    let texts = ranks(size).transport(sim(8)).machine(machine).explain(true).collect(|world| {
        let mut u = world.window::<u64>(size)?;
        let mut fence = |targets: usize| -> Result<String> {
            let me = world.rank();
            (1..=targets).try_for_each(|far| u.put([far as u64]).to((me + far) % size, me).map(drop))?;
            u.fence()?;
            let expected = |from: usize| (me + size - from) % size;
            let wrong = (0..size)
                .find(|&from| (1..=targets).contains(&expected(from)) && u[from] as usize != expected(from));
            assert_eq!(wrong, None);
            Ok(world.explain_last())
        };
        let texts = [fence(size - 1)?, fence(size - 1)?, fence(1)?, fence(1)?];
        world.barrier()?;
        Ok(texts)
    })?;
    for [first, dense, after, last] in texts {
        assert!(first.contains("census: sparse, 6 rounds"), "{first}");
        let why = "census: reduced, 6 rounds of 1 message for each rank: each rank had something for ";
        assert!(dense.contains(why), "{dense}");
        assert!(after.contains(why) && last.contains("census: sparse, 6 rounds"), "{after}, {last}");
    }
    Ok(())
}

/// One rank of each host takes part in the rounds of the hosts, and sends a message in each round.
/// It also sends one message to each other rank of its host, and receives one from each of these
/// ranks.
#[test]
fn where_some_share_memory_the_rounds_are_of_hosts() -> Result<()> {
    for hosts in
        [&[0, 0, 0, 1, 1, 1][..], &[0, 1, 2, 0, 1, 2, 0, 0], &[3, 3, 1], &[0, 0, 0, 0, 1, 2, 2, 2, 4, 4]]
    {
        let (size, first) = (hosts.len(), |host| hosts.iter().position(|&other| other == host));
        let leaders = (0..size).filter(|&rank| first(hosts[rank]) == Some(rank)).count();
        let counts = sparse(size, TransportKind::MixedThreads(hosts.to_vec())).collect(|world| {
            let (me, next) = (world.rank(), (world.rank() + 1) % size);
            let mut u = world.window::<u64>(2)?;
            let empty = [sent(world, || u.fence())?, sent(world, || world.barrier())?];
            let ring = sent(world, || {
                u.put([me as u64]).to(next, 0)?;
                u.fence()
            })?;
            assert_eq!(u[0] as usize, (me + size - 1) % size);
            u.get(1..2).from(next, 0..1)?;
            u.fence()?;
            assert_eq!(u[1] as usize, me);
            let mut sum = [me as u64];
            world.allreduce(&mut sum, Op::Sum)?;
            assert_eq!(sum, [(size * (size - 1) / 2) as u64]);
            Ok((empty, ring))
        })?;
        for (rank, (empty, ring)) in counts.into_iter().enumerate() {
            let leads = first(hosts[rank]) == Some(rank);
            let others = hosts.iter().filter(|&&host| host == hosts[rank]).count() as u64 - 1;
            let expected = if leads { rounds(leaders) + others } else { 1 };
            assert_eq!(empty, [(expected, 0); 2], "rank {rank} of {hosts:?}");
            // The element is piggybacked on a notification if ranks reach each other's memory, and
            // on the census otherwise.
            assert_eq!(ring, (expected, 0), "rank {rank} of {hosts:?}");
        }
    }
    Ok(())
}

/// Ranks that have the same address but share no memory form groups. A group has at most eight
/// ranks, and at most half of all ranks.
#[test]
fn where_some_share_a_machine_and_no_memory_the_rounds_are_of_groups() -> Result<()> {
    for (size, each) in [(3, 1), (5, 2), (8, 4), (20, 8)] {
        let counts = sparse(size, TransportKind::TcpThreads).explain(true).collect(|world| {
            let (me, next) = (world.rank(), (world.rank() + 1) % size);
            let mut u = world.window::<u64>(1)?;
            let empty = [sent(world, || u.fence())?, sent(world, || world.barrier())?];
            let ring = sent(world, || {
                u.put([me as u64]).to(next, 0)?;
                u.fence()
            })?;
            assert_eq!(u[0] as usize, (me + size - 1) % size);
            let said = world.explain_last();
            assert_eq!(said.contains("groups of a machine"), each > 1, "{said}");
            Ok((empty, ring))
        })?;
        let groups = size.div_ceil(each);
        for (rank, (empty, ring)) in counts.into_iter().enumerate() {
            let others = (size - rank / each * each).min(each) as u64 - 1;
            let expected = if rank.is_multiple_of(each) { rounds(groups) + others } else { 1 };
            assert_eq!(empty, [(expected, 0); 2], "rank {rank} of {size}");
            assert_eq!(ring, (expected, 0), "rank {rank} of {size}");
        }
    }
    Ok(())
}

#[test]
fn short_collectives_take_no_message_more() -> Result<()> {
    for size in [8, 64] {
        let counts = sparse(size, sim(5)).collect(|world| {
            let me = world.rank();
            let sum = |op: Op| -> Result<(f64, u64)> {
                let mut values = [0.1 * (me as f64 + 1.0)];
                world.allreduce(&mut values, op)?; // the first call makes a window, which is kept
                values = [0.1 * (me as f64 + 1.0)];
                let (frames, notified) = sent(world, || world.allreduce(&mut values, op))?;
                assert_eq!(notified, 0);
                Ok((values[0], frames))
            };
            let mut from = [me as u32];
            world.broadcast(3, &mut from)?;
            let broadcast = sent(world, || world.broadcast(3, &mut from))?;
            assert_eq!((from, broadcast), ([3], (rounds(size), 0)));
            sum(Op::Sum)
        })?;
        let direct = ranks(size).collect(|world| {
            let mut values = [0.1 * (world.rank() as f64 + 1.0)];
            world.allreduce(&mut values, Op::Sum)?;
            Ok(values[0])
        })?;
        for ((value, frames), direct) in counts.into_iter().zip(direct) {
            assert_eq!((value.to_bits(), frames), (direct.to_bits(), rounds(size)), "{value} and {direct}");
        }
    }
    Ok(())
}

#[test]
fn the_census_is_chosen_by_ranks_and_links_and_explained() -> Result<()> {
    for (size, transport, chosen, says) in [
        (2, sim(6), None, "census: direct, 1 round of 1 message for each rank: by the model"),
        (16, sim(6), None, "census: sparse, 4 rounds of 1 message for each rank: by the model"),
        (
            16,
            sim(6),
            Some(Census::Direct),
            "census: direct, 1 round of 15 messages for each rank: the program",
        ),
        (
            16,
            TransportKind::Local,
            None,
            "census: direct, 1 round of 15 messages for each rank: all ranks share",
        ),
        (
            8,
            TransportKind::MixedThreads(vec![0, 0, 0, 0, 1, 1, 1, 1]),
            None,
            "census: sparse, 1 round of 1 message for one rank of each of 2 hosts, which sends for the others: by",
        ),
    ] {
        let world = ranks(size).transport(transport).explain(true);
        let world = chosen.map_or(world.clone(), |census| world.census(census));
        let texts = world.collect(|world| {
            let mut u = world.window::<u8>(1)?;
            u.fence()?;
            Ok(world.explain_last())
        })?;
        assert!(texts.iter().all(|text| text.contains(says)), "{}", texts[0]);
    }
    Ok(())
}

/// Rank 0 sends two elements to rank 3.
#[superstep]
fn hand_over(u: &mut Window<u64>, to: usize) -> Result<()> {
    if u.rank() == 0 {
        u.put(0..2).to(to, 2)?;
    }
    Ok(())
}

/// Rank 3 waits for rank 0 in a prepared superstep. Rank 0 is in a barrier, and sends rank 3
/// nothing there.
#[test]
fn a_rank_that_waits_elsewhere_for_one_that_does_not_send_it_anything_is_told() {
    for transport in transports([5]) {
        let transport = match transport {
            TransportKind::MixedThreads(_) => TransportKind::MixedThreads(vec![0, 0, 1, 1, 2, 2, 3, 3]),
            other => other,
        };
        let told = Mutex::new(Vec::new());
        let ended = sparse(8, transport.clone()).run(|world| {
            let mut u = world.window::<u64>(4)?;
            let mut prepared = hand_over::prepare(world, 3)?;
            let ended = if world.rank() == 3 { prepared.replay(&mut u) } else { world.barrier() };
            let error = ended.as_ref().expect_err("ranks are in different calls");
            told.lock().expect("no panic").push((error.class(), error.to_string()));
            ended
        });
        assert!(ended.is_err());
        for (class, text) in told.into_inner().expect("no panic") {
            assert_eq!(class, ErrorClass::RmaSync, "{transport:?}: {text}");
            assert!(text.contains("hand_over") && text.contains("rank 0 is in"), "{transport:?}: {text}");
        }
    }
}

/// One of eight ranks is in another call. All ranks get an error, and the world goes on.
#[test]
fn one_rank_of_many_in_another_call_is_named_by_all() -> Result<()> {
    for transport in transports([6]) {
        let transport = match transport {
            TransportKind::MixedThreads(_) => TransportKind::MixedThreads(vec![0, 0, 1, 1, 2, 2, 3, 3]),
            other => other,
        };
        sparse(8, transport)
            .run(|world| {
                let mut u = world.window::<u64>(1)?;
                u.put([1]).to((world.rank() + 3) % 8, 0)?;
                let odd = world.rank() == 5;
                let told = if odd { world.barrier() } else { u.fence() }.expect_err("one is elsewhere");
                assert_eq!(told.class(), ErrorClass::RmaSync);
                let text = told.message();
                assert!(text.contains("World::barrier") && text.contains("a fence at"), "{text}");
                if !odd {
                    assert!(text.contains("rank 5"), "{text}");
                }
                assert_eq!(u[0], 0, "nothing was applied");
                if odd {
                    u.fence()?; // drops the operations that the rank had collected
                } else {
                    world.barrier()?;
                }
                Ok(())
            })
            .expect_err("they differ again");
    }
    Ok(())
}
