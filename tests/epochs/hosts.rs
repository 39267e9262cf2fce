//! Worlds whose ranks are on several hosts. The ranks of a host reach each other's memory, and
//! exchange messages with the other ranks. A part that is split off may have any ranks in any
//! order, and works like any world.

use fencepost::{
    ErrorClass, Machine, Mode, Op, Options, Placement, Result, TransportKind, Window, World, ranks, superstep,
};
use fencepost_tests_support::random::Random;

/// The host of each rank. The layouts have equal and different numbers of ranks on the hosts,
/// single ranks, all ranks on one host, each rank on its own host, and mixed orders.
const LAYOUTS: [&[u32]; 9] = [
    &[0, 0, 1, 1],
    &[0, 1, 1, 1],
    &[0, 0, 1, 2, 2],
    &[0, 0, 0, 0],
    &[0, 1, 2, 3],
    &[0, 1, 0, 1],
    &[0, 1, 1, 0, 2],
    &[2, 0, 0, 1, 0, 1],
    &[5, 3, 5, 5, 3, 9, 3],
];

/// Exchanges elements with the next rank, the previous rank, and the first rank.
#[superstep]
fn around(u: &mut Window<u64>, v: &mut Window<u64>) -> Result<()> {
    let (me, size) = (u.rank(), u.size());
    u.put(0..2).to((me + 1) % size, 2)?;
    u.get(4..6).from((me + size - 1) % size, 0..2)?;
    v.accumulate(v.section(1..2), Op::Sum).to(0, 0)?;
    Ok(())
}

/// The placement of a world, or of a part of it, follows from the hosts of its ranks. A plan that
/// was compiled for that placement can be loaded.
#[test]
fn a_world_says_which_of_its_ranks_share_memory() -> Result<()> {
    let worlds = [
        (TransportKind::Local, [0; 4], Placement::Together),
        (TransportKind::ShmThreads, [0; 4], Placement::Together),
        (TransportKind::TcpThreads, [0, 1, 2, 3], Placement::Apart),
        (TransportKind::Sim(Default::default()), [0, 1, 2, 3], Placement::Apart),
        (TransportKind::MixedThreads(vec![0, 0, 1, 1]), [0, 0, 1, 1], Placement::Hosts { ranks_each: 2 }),
        (TransportKind::MixedThreads(vec![0, 1, 1, 1]), [0, 1, 1, 1], Placement::Apart),
    ];
    let compiled = around::compile(4, |_| Ok(()))?;
    let path = std::env::temp_dir().join(format!("fencepost-placement-{}.plan", std::process::id()));
    for (kind, hosts, expected) in worlds {
        let placements: Vec<Placement> =
            ranks(4).transport(kind.clone()).collect(|world| Ok(world.placement()))?;
        assert_eq!(placements, [expected; 4], "{kind:?}");
        compiled.with(placements[0], &Machine::default(), &Options::default())?.save(&path)?;
        ranks(4).transport(kind).run(|world| {
            around::load(world, &path)?;
            let half = world.rank() / 2;
            let part = world.split(Some(half as u32), 0)?.expect("it has a colour");
            let shares = hosts[2 * half] == hosts[2 * half + 1];
            assert_eq!(part.placement(), if shares { Placement::Together } else { Placement::Apart });
            Ok(())
        })?;
    }
    Ok(std::fs::remove_file(path)?)
}

/// Checks everything that a world does. The ranks of this world are the ranks `members` of another
/// world.
fn works(world: &World, members: &[usize]) -> Result<()> {
    let (me, size) = (world.rank(), world.size());
    let all: Vec<u64> = members.iter().map(|&member| member as u64).collect();
    assert_eq!(world.allgather(&[all[me]])?.concat(), all);
    let mut u = world.window::<u64>(6 + size)?;
    let mut v = world.window::<u64>(2)?;
    let (before, sum) = (all[(me + size - 1) % size], all.iter().sum::<u64>());
    let mut prepared = around::prepare(world)?;
    for round in 0..3 {
        let base = 100 * round;
        (u[0], u[1], v[0], v[1]) = (base + all[me], base, 0, all[me]);
        if round == 0 {
            around(&mut u, &mut v)?
        } else {
            prepared.replay(&mut u, &mut v)?
        }
        assert_eq!(u[2..6], [base + before, base, base + before, base], "round {round}");
        assert_eq!(v[0], if me == 0 { sum } else { 0 }, "round {round}");
        // Puts one element to every rank, by the fast path and the slow path in turn.
        for to in 0..size {
            u.put([base + all[me]]).to(to, 6 + me)?;
        }
        u.fence()?;
        let said: Vec<u64> = all.iter().map(|member| base + member).collect();
        assert_eq!(u[6..], said, "round {round}");
        for to in (0..size).rev() {
            u.get(6..6 + size).from(to, 6..6 + size)?;
            v.put(&[base; 2]).to(to, 0..2)?;
        }
        world.fence((&mut u, &mut v))?;
        assert_eq!(u[6..], said, "round {round}");
        assert_eq!(v[..], [base; 2]);
    }
    Ok(())
}

/// Splits the world, and tests the ranks of each part, their order, and the operations in the part.
fn splits(world: &World, random: &mut Random, depth: u32) -> Result<Option<(World, Vec<usize>)>> {
    let drawn: Vec<(Option<u32>, i64)> = (0..world.size())
        .map(|_| (random.below(4).checked_sub(1).map(|colour| colour as u32 % 2), random.below(5) as i64 - 2))
        .collect();
    let (colour, key) = drawn[world.rank()];
    let mut members: Vec<usize> =
        (0..world.size()).filter(|&rank| colour.is_some() && drawn[rank].0 == colour).collect();
    members.sort_by_key(|&rank| drawn[rank].1); // ranks with equal keys keep their order
    let part = world.split(colour, key)?;
    assert_eq!(part.is_some(), colour.is_some());
    let Some(part) = part else { return Ok(None) };
    assert_eq!((part.size(), members[part.rank()]), (members.len(), world.rank()));
    works(&part, &members)?;
    if depth > 0 {
        // All ranks of the part draw the same numbers.
        let mut random = Random::new(u64::from(depth) << 8 | u64::from(colour.unwrap_or_default()));
        splits(&part, &mut random, depth - 1)?;
        works(&part, &members)?;
    }
    Ok(Some((part, members)))
}

#[test]
fn parts_of_any_ranks_in_any_order_are_worlds() -> Result<()> {
    for (at, layout) in LAYOUTS.iter().enumerate() {
        let mode = Mode::ALL[at % Mode::ALL.len()];
        let world = ranks(layout.len()).transport(TransportKind::MixedThreads(layout.to_vec())).mode(mode);
        world.run(|world| {
            let mut random = Random::new(at as u64 + 1);
            let whole: Vec<usize> = (0..world.size()).collect();
            works(world, &whole)?;
            let mut kept = Vec::new();
            for round in 0..6 {
                let part = splits(world, &mut random, 2)?;
                // Some parts are dropped at once, and some are kept while later ones are used.
                kept.extend(part.filter(|_| round % 2 == 0));
            }
            for (part, members) in &kept {
                works(part, members)?;
            }
            works(world, &whole)
        })?;
    }
    Ok(())
}

/// One rank of a part leaves the part early. The other ranks of the part get an error that names
/// this rank.
#[test]
fn a_rank_that_leaves_a_part_is_named_by_its_rank_there_and_the_whole_goes_on() -> Result<()> {
    for layout in LAYOUTS {
        for gone in 0..layout.len() {
            let world = ranks(layout.len()).transport(TransportKind::MixedThreads(layout.to_vec()));
            world.run(|world| {
                let (me, size) = (world.rank(), world.size());
                // All ranks but one, in reverse order.
                let colour = (me != (gone + 1) % size).then_some(7);
                if let Some(part) = world.split(colour, -(me as i64))? {
                    let mut members = (0..size).rev().filter(|&rank| rank != (gone + 1) % size);
                    let there = members.position(|rank| rank == gone).expect("it is a member");
                    part.barrier()?;
                    if me != gone {
                        let error = part.barrier().expect_err("one has left");
                        assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
                        let says = format!("rank {there} has finished and left the world");
                        assert!(error.to_string().contains(&says), "{layout:?}, {gone} of all: {error}");
                    }
                }
                works(world, &(0..size).collect::<Vec<_>>())
            })?;
        }
    }
    Ok(())
}

/// A plan assumes that ranks of two hosts share memory. When the plan is loaded, it is compiled
/// again, and `explain` reports this.
#[test]
fn a_plan_for_other_hosts_is_compiled_again_and_has_the_same_result() -> Result<()> {
    let path = std::env::temp_dir().join(format!("fencepost-hosts-{}.plan", std::process::id()));
    let compiled = around::compile(4, |_| Ok(()))?;
    let layout = vec![0, 0, 1, 1];
    for (ranks_each, fits) in [(4, false), (3, false), (2, true), (1, true)] {
        let placement = Placement::Hosts { ranks_each };
        compiled.with(placement, &Machine::default(), &Options::default())?.save(&path)?;
        let kinds = [
            (TransportKind::MixedThreads(layout.clone()), fits),
            (TransportKind::TcpThreads, ranks_each == 1),
            (TransportKind::Local, true),
        ];
        for (kind, fits) in kinds {
            ranks(4).transport(kind).run(|world| {
                let mut loaded = around::load(world, &path)?;
                let again = loaded.explain().to_string().contains("compiled again for this world");
                assert_eq!(again, !fits, "{placement:?}");
                let mut results = Vec::new();
                for replays in [true, false] {
                    let (mut u, mut v) = (world.window::<u64>(6)?, world.window::<u64>(2)?);
                    (u[0], u[1], v[1]) = (7, world.rank() as u64, 5);
                    match replays {
                        true => loaded.replay(&mut u, &mut v)?,
                        false => around(&mut u, &mut v)?,
                    }
                    results.push((u.to_vec(), v.to_vec()));
                }
                assert_eq!(results[0], results[1], "{placement:?}");
                works(world, &[0, 1, 2, 3])
            })?;
        }
    }
    Ok(std::fs::remove_file(path)?)
}
