//! Supersteps with too many calls for every rank to plan all of them. Rank 0 plans for all, and the
//! other ranks get their shares.

use fencepost::{Census, Datatype, ErrorClass, Result, TransportKind, Window, ranks, superstep};
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::transports::transports;

const RANKS: usize = 4;
/// The number of elements of a rank's window that other ranks read. `GOT` is the number of elements
/// that a rank gets from each rank.
const OWN: usize = 20_000;
const GOT: usize = 4_500;

/// Returns the elements of rank `of` that `rank` gets. They are too irregular for a short
/// description.
fn wanted(rank: usize, of: usize) -> Vec<usize> {
    let mut dice = Random::new((rank * RANKS + of) as u64);
    let mut all: Vec<usize> = (0..GOT).map(|_| dice.below(OWN)).collect();
    all.sort_unstable();
    all
}

/// Gets the elements that `wanted` lists by rank, and puts element `put` to the right neighbour.
#[superstep(prepared = Fetch)]
fn fetch(u: &mut Window<u64>, wanted: &[Vec<usize>], put: usize) -> Result<()> {
    for (from, elements) in wanted.iter().enumerate() {
        let first = OWN + from * GOT;
        u.get(first..first + GOT).from(from, Datatype::elements(elements.iter().copied())?)?;
    }
    u.put(OWN - 2..OWN - 1).to((u.rank() + 1) % u.size(), put)?;
    Ok(())
}

fn lists(rank: usize) -> Vec<Vec<usize>> {
    (0..RANKS).map(|of| wanted(rank, of)).collect()
}

/// Runs the superstep twice on each rank, prepared or not. Returns the contents of the windows.
fn run(transport: TransportKind, census: Census, prepared: bool) -> Result<Vec<Vec<u64>>> {
    let has_whole = matches!(transport, TransportKind::Local);
    ranks(RANKS).transport(transport).census(census).collect(|world| {
        let rank = world.rank();
        let lists = lists(rank);
        let mut u = world.window::<u64>(OWN + RANKS * GOT)?;
        u.iter_mut().enumerate().for_each(|(i, element)| *element = (rank * 1_000_000 + i) as u64);
        if prepared {
            let mut fetch = fetch::prepare(world, &lists, OWN - 1)?;
            fetch.replay(&mut u)?;
            u[OWN - 2] += 7;
            let running = fetch.begin(u)?;
            // The first element that no rank gets is kept for writing. The element to which a rank
            // puts is not kept.
            let named: Vec<usize> = (0..RANKS).flat_map(|other| wanted(other, rank)).collect();
            let free = (0..OWN).find(|element| !named.contains(element)).expect("some are not wanted");
            assert_eq!(running.kept(free..free + 1)?.len(), 1);
            let refused = running.kept(OWN - 1..OWN).expect_err("another rank puts to it");
            assert_eq!(refused.class(), ErrorClass::RmaConflict);
            u = running.finish()?;
            let said = fetch.explain().to_string();
            assert_eq!(said.contains(&format!("rank {rank} of {RANKS}")), !has_whole && rank > 0, "{said}");
        } else {
            fetch(&mut u, &lists, OWN - 1)?;
            u[OWN - 2] += 7;
            fetch(&mut u, &lists, OWN - 1)?;
        }
        Ok(u.to_vec())
    })
}

#[test]
fn ranks_with_shares_leave_what_a_plain_call_leaves() -> Result<()> {
    let expected = run(TransportKind::Local, Census::Direct, false)?;
    for (transport, census) in transports([1]).into_iter().zip(Census::ALL.into_iter().cycle()) {
        assert!(run(transport.clone(), census, true)? == expected, "{transport:?}, {census:?}");
    }
    assert!(run(TransportKind::TcpThreads, Census::Direct, true)? == expected);
    assert!(run(TransportKind::ShmThreads, Census::Direct, true)? == expected);
    Ok(())
}

/// Gets the same lists in each of several epochs.
#[superstep]
fn again(u: &mut Window<u64>, wanted: &[Vec<usize>], #[uniform] epochs: usize) -> Result<()> {
    for _ in 0..epochs {
        for (from, elements) in wanted.iter().enumerate() {
            let first = OWN + from * GOT;
            u.get(first..first + GOT).from(from, Datatype::elements(elements.iter().copied())?)?;
        }
        u.fence()?;
    }
    Ok(())
}

#[test]
fn an_error_that_the_rank_that_plans_finds_is_that_of_all() -> Result<()> {
    for transport in transports([1]) {
        ranks(RANKS).transport(transport.clone()).run(|world| {
            let lists = lists(world.rank());
            let epochs = 1 + usize::from(world.rank() == 2);
            let error = again::prepare(world, &lists, epochs).expect_err("rank 2 fences twice");
            assert_eq!(error.class(), ErrorClass::Plan, "{transport:?}: {error}");
            let said = error.message();
            assert!(said.contains("rank 2 has 2 epochs, and rank 0 has 1"), "{transport:?}: {said}");
            // The world goes on.
            world.barrier()
        })?;
    }
    Ok(())
}
