//! Tests that long waits are reported, and that wait-for cycles are found. No test depends on time:
//! a test waits for each report that must come, and fails on a wrong report no matter when it
//! comes.

use fencepost_planner::{Error, Result};
use fencepost_runtime::{Ranks, Stall, TransportKind, World, ranks};
use fencepost_tests_support::side_by_side::side_by_side;
use fencepost_transport::SimConfig;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Returns all transports. `hosts` has the host of each rank, for transports with several hosts.
fn all(hosts: &[u32]) -> Vec<(&'static str, TransportKind)> {
    let mut all = vec![
        ("local", TransportKind::Local),
        ("sim", TransportKind::Sim(SimConfig { seed: 7, ..SimConfig::default() })),
    ];
    #[cfg(target_os = "linux")]
    all.extend([
        ("shm", TransportKind::ShmThreads),
        ("tcp", TransportKind::TcpThreads),
        ("mixed", TransportKind::MixedThreads(hosts.to_vec())),
        ("a host each", TransportKind::MixedThreads((0..hosts.len() as u32).collect())),
    ]);
    all
}

/// The stalls that were reported.
type Said = Arc<Mutex<Vec<Stall>>>;

/// Returns a world in which a wait is reported as soon as the rank may sleep, and the list of the
/// reports.
fn watched(size: usize, transport: TransportKind) -> (Ranks, Said) {
    let said = Said::default();
    let told = said.clone();
    let ranks = ranks(size)
        .transport(transport)
        .stall(Some(Duration::ZERO))
        .on_stall(move |stall| told.lock().expect("no panic").push(stall.clone()));
    (ranks, said)
}

#[test]
fn a_rank_that_does_not_come_is_named_with_its_place_and_what_came() {
    for (name, transport) in all(&[0, 0, 1]) {
        let (tell, told) = channel();
        let told: Mutex<Receiver<Stall>> = Mutex::new(told);
        let tell = Mutex::new(tell);
        let world = ranks(3).transport(transport).stall(Some(Duration::ZERO)).on_stall(move |stall| {
            // After both ranks have reported the stall, there is no receiver any more.
            let _ = tell.lock().expect("no panic").send(stall.clone());
        });
        let said: Vec<Vec<Stall>> = world
            .collect(|world| {
                let mut u = world.window::<u8>(1)?;
                u.fence()?;
                let mut said: Vec<Stall> = Vec::new();
                if world.rank() == 1 {
                    // This rank waits until both other ranks have reported that they wait only for
                    // this rank, at this fence.
                    let all = told.lock().expect("no panic");
                    // Ranks without shared memory may know the state of this rank from an earlier
                    // wait. Such ranks ask again.
                    let known = "rank 1 has entered number 2 last";
                    let at_last = |stall: &Stall| {
                        stall.number == 3 && stall.missing == [1] && stall.peer.contains(known)
                    };
                    while ![0, 2].iter().all(|&rank| said.iter().any(|stall| stall.rank == rank)) {
                        said.extend(Some(all.recv().map_err(|_| gone())?).filter(at_last));
                    }
                }
                u.fence()?;
                Ok(said)
            })
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for stall in &said[1] {
            assert_eq!((stall.awaited, stall.size, stall.rank_of_all), (1, 3, None), "{name}: {stall}");
            assert_eq!((stall.came, stall.expected, stall.what), (1, 2, "notifications"), "{name}: {stall}");
            assert_eq!(stall.number, 3, "{name}: window, fence, fence; {stall}");
            assert_eq!(stall.file, file!(), "{name}");
            assert_eq!(stall.deadlock, None, "{name}");
            let text = stall.to_string();
            let starts = format!("rank {} has waited ", stall.rank);
            let call =
                format!(" for rank 1 in a fence at {}:{} of window 0, number 3: ", file!(), stall.line);
            assert!(text.starts_with(&starts) && text.contains(&call), "{name}: {text}");
            assert!(text.contains("received 1 of 2 notifications"), "{name}: {text}");
        }
    }
}

fn gone() -> Error {
    Error::new(fencepost_planner::ErrorClass::Other, "nobody says anything any more")
}

/// Two worlds have the same ranks. Each rank chooses the world whose window it fences first, so
/// ranks that choose differently wait for each other forever. Returns the lines of the two fences.
fn apart(world: &World, first: bool) -> (Result<()>, [u32; 2]) {
    let lines = [line!() + 5, line!() + 8];
    let go = || {
        let other = world.split(Some(0), 0)?.ok_or_else(gone)?;
        let (mut u, mut v) = (world.window::<u8>(1)?, other.window::<u8>(1)?);
        if first {
            u.fence()?;
            v.fence()
        } else {
            v.fence()?;
            u.fence()
        }
    };
    (go(), lines)
}

#[test]
fn fences_of_two_worlds_in_different_order_end_both_and_say_who_waits_where() {
    side_by_side(usize::MAX, all(&[0, 0]), |(name, transport)| {
        let (ranks, said) = watched(2, transport);
        let ends: Vec<(String, [u32; 2])> = ranks
            .end_deadlocks(true)
            .collect(|world| {
                let (end, lines) = apart(world, world.rank() == 0);
                Ok((end.expect_err("nobody can go on").to_string(), lines))
            })
            .expect("the ranks go on");
        let [u, v] = ends[0].1;
        let [u, v] = [u, v].map(|line| format!("{}:{line}", file!()));
        for (rank, (error, _)) in ends.iter().enumerate() {
            let error = error.as_str();
            assert!(
                error.contains("deadlock: rank 0 waits for rank 1 in a fence at "),
                "{name} {rank}: {error}"
            );
            assert!(error.contains("; rank 1 waits for rank 0 in a fence at "), "{name} {rank}: {error}");
            let (zero, one) = error.split_once("; rank 1 waits").expect("two waits");
            assert!(zero.contains(&u) || zero.contains(&v), "{name} {rank}: {error}");
            assert!(one.contains(&u) || one.contains(&v), "{name} {rank}: {error}");
        }
        let said = said.lock().expect("no panic");
        for rank in 0..2 {
            let found = said.iter().any(|stall| stall.rank == rank && stall.deadlock.is_some());
            assert!(found, "{name}: rank {rank} has said nothing of a deadlock: {said:?}");
        }
    });
}

#[test]
fn a_cycle_of_three_ranks_in_three_worlds_is_named_by_ranks_of_all() {
    side_by_side(usize::MAX, all(&[0, 0, 1, 1]), |(name, transport)| {
        let (ranks, said) = watched(4, transport);
        let ends: Vec<Option<String>> = ranks
            .end_deadlocks(true)
            .collect(|world| {
                // Rank 0 is in no cycle. Each other rank is in two worlds of two ranks, one with
                // each of its neighbours.
                let me = world.rank();
                let pair = |a: usize, b: usize| world.split((me == a || me == b).then_some(0), 0);
                let worlds = [pair(1, 2)?, pair(2, 3)?, pair(3, 1)?];
                let first = match me {
                    0 => return Ok(None),
                    rank => worlds[rank - 1].as_ref().ok_or_else(gone)?,
                };
                let error = first.barrier().expect_err("each waits for the next");
                Ok(Some(error.to_string()))
            })
            .expect("the ranks go on");
        for error in ends.iter().skip(1) {
            let error = error.as_deref().expect("an error");
            for ring in
                ["rank 1 waits for rank 2 in", "rank 2 waits for rank 3 in", "rank 3 waits for rank 1 in"]
            {
                assert!(error.contains("deadlock: ") && error.contains(ring), "{name}: {error}");
            }
            assert!(error.contains("World::barrier"), "{name}: {error}");
        }
        let said = said.lock().expect("no panic");
        let in_ring = |stall: &&Stall| stall.deadlock.is_some();
        assert!(said.iter().filter(in_ring).all(|stall| stall.rank_of_all.is_some()), "{name}: {said:?}");
    });
}

#[test]
fn a_world_that_works_is_never_taken_for_a_deadlock() {
    let narrow = |link_bytes| SimConfig { seed: 7, link_bytes, ..SimConfig::default() };
    let links = [1, 24].map(|link_bytes| ("a narrow sim", TransportKind::Sim(narrow(link_bytes))));
    for (name, transport) in all(&[0, 1, 0, 1, 1, 0]).into_iter().chain(links) {
        let (ranks, said) = watched(6, transport);
        let sums: Vec<u64> = ranks
            .end_deadlocks(true)
            .collect(|world| {
                let other = world.split(Some(world.rank() as u32 % 2), 0)?.ok_or_else(gone)?;
                let mut u = world.window::<u64>(6)?;
                let mut v = other.window::<u64>(3)?;
                let mut sum = 0;
                for round in 0..8 {
                    // The rank whose turn it is computes until the others sleep in their waits.
                    if world.rank() == round % 6 {
                        sum = (0..2_000_000_u64).fold(sum, |sum, k| sum ^ std::hint::black_box(k));
                    }
                    u.put([round as u64]).to((world.rank() + round) % 6, world.rank())?;
                    u.fence()?;
                    v.put(other.rank()..other.rank() + 1).to((other.rank() + 1) % 3, other.rank())?;
                    v.get(0..1).from((other.rank() + 2) % 3, 1)?;
                    v.fence()?;
                    world.barrier()?;
                }
                Ok(sum)
            })
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(sums.len(), 6);
        let said = said.lock().expect("no panic");
        let wrong: Vec<&Stall> = said.iter().filter(|stall| stall.deadlock.is_some()).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
}

/// Ranks 1 and 3 are on one host and wait for each other, each in another world. Each of the other
/// ranks is on another host, waits in the same world as one of these two ranks, and is in no cycle.
#[cfg(target_os = "linux")]
#[test]
fn a_cycle_on_one_host_ends_worlds_of_several_for_all_their_ranks() {
    let (ranks, said) = watched(4, TransportKind::MixedThreads(vec![2, 0, 1, 0]));
    let ends: Vec<String> = ranks
        .end_deadlocks(true)
        .collect(|world| {
            // The new world has the same ranks, with rank 1 first: the other ranks wait for the
            // first rank before any other.
            let other = world.split(Some(0), -i64::from(world.rank() == 1))?.ok_or_else(gone)?;
            let end = if world.rank() == 3 { other.barrier() } else { world.barrier() };
            Ok(end.expect_err("nobody can go on").to_string())
        })
        .expect("the ranks go on");
    for (rank, error) in ends.iter().enumerate() {
        let ring = ["deadlock: rank 1 waits for rank 3 in", "; rank 3 waits for rank 1 in"];
        let told = ring.iter().all(|wait| error.contains(wait));
        // A rank that is in no cycle may first notice that rank 3 has left with its error.
        let left = rank % 2 == 0 && error.contains("rank 3 has finished and left");
        assert!(told || left, "rank {rank}: {error}");
    }
    let said = said.lock().expect("no panic");
    let ring: Vec<usize> =
        said.iter().filter(|stall| stall.deadlock.is_some()).map(|stall| stall.rank).collect();
    assert!(
        [1, 3].iter().all(|rank| ring.contains(rank)) && ring.iter().all(|rank| rank % 2 == 1),
        "{said:?}"
    );
}
