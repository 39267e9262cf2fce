//! The examples of three texts on one-sided communication, run on every transport. The texts are
//! MPI 2.0 (post and start), MPI 2.2 (visibility of stores and puts) and the design notes of
//! MPICH2. MPI leaves the result of some examples open, or calls it an error. Here each example has
//! one result, or does not compile. Numbers in parentheses are paragraphs of `planner/README.md`.

use fencepost::prelude::*;
use fencepost::transport::SimConfig;
use fencepost::{TransportKind, World, ranks};
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs a program on every transport. The program runs on two hosts twice: once with ranks that
/// alternate between the hosts, and once with each half of the ranks on one host.
fn everywhere(size: usize, program: impl Fn(&World) -> Result<()> + Sync) {
    let hosts = |host: fn(usize, usize) -> usize| {
        TransportKind::MixedThreads((0..size).map(|rank| host(rank, size) as u32).collect())
    };
    let sim = |seed| TransportKind::Sim(SimConfig { seed, ..SimConfig::default() });
    let all = [
        TransportKind::Local,
        TransportKind::ShmThreads,
        sim(1),
        sim(2),
        TransportKind::TcpThreads,
        hosts(|rank, _| rank % 2),
        hosts(|rank, size| 2 * rank / size),
    ];
    for transport in all {
        let run = ranks(size).transport(transport.clone()).run(&program);
        run.unwrap_or_else(|error| panic!("{transport:?}: {error:?}"));
    }
}

mod post_and_start {
    use super::*;

    /// MPI leaves open which of start, put and complete waits for the post. Here a put copies its
    /// elements when it is called (13, 16), so all three return before the target posts.
    #[test]
    fn example_6_4_start_put_and_complete_return_before_the_post() {
        everywhere(2, |world| {
            let u = world.window::<u32>(2)?;
            if world.rank() == 0 {
                let access = u.start(&world.group([1])?)?;
                access.put([7]).to(1, 1)?;
                access.complete()?;
                return world.barrier();
            }
            world.barrier()?;
            let u = u.post(&world.group([0])?)?.wait()?;
            assert_eq!(u[..], [0, 7]);
            Ok(())
        });
    }

    /// Rank 0 puts to ranks 1 and 2, and rank 3 puts to rank 2. The `start` or `post` of each rank
    /// names only the ranks with which it exchanges elements. If ranks 0 and 3 put into the same
    /// element, the put of rank 3 is applied later, in the order of origins (15).
    #[test]
    fn figure_6_4_each_rank_names_those_that_it_meets() {
        everywhere(4, |world| {
            let u = world.window::<u32>(3)?;
            let me = world.rank();
            match me {
                0 | 3 => {
                    let targets: &[usize] = if me == 0 { &[1, 2] } else { &[2] };
                    let access = u.start(&world.group(targets.iter().copied())?)?;
                    for &to in targets {
                        access.put([10 + me as u32]).to(to, me.min(1))?;
                        access.put([me as u32 + 1]).to(to, 2)?;
                    }
                    access.complete()?;
                }
                1 => assert_eq!(u.post(&world.group([0])?)?.wait()?[..], [10, 0, 1]),
                _ => assert_eq!(u.post(&world.group([0, 3])?)?.wait()?[..], [10, 13, 4]),
            }
            Ok(())
        });
    }

    /// The ranks put along the edges of a directed graph. Each rank posts to the ranks from which
    /// an edge leads to it, and starts on the ranks to which an edge leads from it. Groups differ
    /// at each call, and a rank without edges calls nothing (13).
    #[test]
    fn any_directed_graph_is_a_group_in_and_a_group_out_for_each_rank() {
        const SIZE: usize = 5;
        everywhere(SIZE, |world| {
            let mut u = world.window::<u64>(SIZE)?;
            let me = world.rank();
            for round in 1..6 {
                let has_edge = |from: usize, to: usize| (from * 7 + to * 3 + round * round).is_multiple_of(3);
                let ins: Vec<usize> = (0..SIZE).filter(|&from| has_edge(from, me)).collect();
                let outs: Vec<usize> = (0..SIZE).filter(|&to| has_edge(me, to)).collect();
                u.fill(0);
                let value = |from: usize, to: usize| (round * 100 + from * 10 + to) as u64;
                if ins.is_empty() && outs.is_empty() {
                    continue;
                }
                let exposed = u.post(&world.group(ins.iter().copied())?)?;
                if !outs.is_empty() {
                    let access = exposed.start(&world.group(outs.iter().copied())?)?;
                    for &to in &outs {
                        access.put([value(me, to)]).to(to, me)?;
                    }
                    access.complete()?;
                }
                u = exposed.wait()?;
                for from in 0..SIZE {
                    assert_eq!(u[from], if has_edge(from, me) { value(from, me) } else { 0 });
                }
            }
            Ok(())
        });
    }

    /// Two windows are used in turn. While the neighbours get from one window, the rank computes in
    /// the other window. When a wait has returned, the neighbours have posted the other window. An
    /// MPI program has to assert that, and here nothing is asserted.
    #[test]
    fn a_double_buffer_is_gotten_from_while_the_other_half_is_computed() {
        const STEPS: u64 = 6;
        everywhere(4, |world| {
            let (me, size) = (world.rank(), world.size());
            let neighbours = world.group([(me + 1) % size, (me + size - 1) % size])?;
            let (mut now, mut next) = (world.window::<u64>(1)?, world.window::<u64>(1)?);
            now[0] = me as u64;
            let mut expected: Vec<u64> = (0..size as u64).collect();
            for _ in 0..STEPS {
                let exposed = now.post_read(&neighbours)?;
                let access = exposed.start(&neighbours)?;
                let tickets = [access.fetch((me + 1) % size, 0)?, access.fetch((me + size - 1) % size, 0)?];
                access.complete()?;
                next[0] = exposed[0] + tickets[0].take()?[0] + 2 * tickets[1].take()?[0];
                now = exposed.wait()?;
                std::mem::swap(&mut now, &mut next);
                let at = |rank: usize| expected[rank % size];
                expected = (0..size).map(|r| at(r) + at(r + 1) + 2 * at(r + size - 1)).collect();
                assert_eq!(now[0], expected[me]);
            }
            Ok(())
        });
    }

    /// An origin may be ahead of its target. The origin's accesses are queued in order until their
    /// posts arrive, and at most one access waits at a target (16). So the second complete returns
    /// when the first post has arrived.
    #[test]
    fn accesses_are_queued_for_their_posts() {
        everywhere(2, |world| {
            let mut u = world.window::<u32>(1)?;
            let other = world.group([1 - world.rank()])?;
            if world.rank() == 0 {
                for value in [5, 6] {
                    let access = u.start(&other)?;
                    access.put([value]).to(1, 0)?;
                    access.complete()?;
                }
                return world.barrier();
            }
            for value in [5, 6] {
                u = u.post(&other)?.wait()?;
                assert_eq!(u[0], value);
            }
            world.barrier()
        });
    }
}

mod visible_when {
    use super::*;

    /// Rule 5. The owner stores under its own exclusive lock. A get under a later lock finds the
    /// store, since the owner's epoch is over before the barrier (19).
    #[test]
    fn example_11_11_a_store_under_a_lock_is_gotten_after_a_barrier() {
        everywhere(2, |world| {
            let u = world.lock_window::<u32>(1)?;
            if world.rank() == 1 {
                u.local_mut(|part| {
                    part[0] = 7;
                    Ok(())
                })?;
                world.barrier()?;
                return world.barrier();
            }
            world.barrier()?;
            let lock = u.lock(1, LockType::Exclusive)?;
            let x = lock.get(0)?;
            lock.unlock()?;
            assert_eq!(x.take()?, [7]);
            world.barrier() // the owner keeps its part until here
        });
    }

    /// Rule 6. The owner loads elements of a put whose lock was released before the barrier. MPI
    /// requires a lock and an unlock around the load. Here `local` takes a lock itself, so every
    /// load is under a lock. The owner also loads the elements after the window is changed back to
    /// a window for fences (18).
    #[test]
    fn example_11_12_a_put_that_was_unlocked_is_loaded_after_a_barrier() {
        everywhere(2, |world| {
            let u = world.lock_window::<u32>(2)?;
            if world.rank() == 0 {
                let lock = u.lock(1, LockType::Exclusive)?;
                lock.put([7, 8], 0)?;
                lock.unlock()?;
            }
            world.barrier()?;
            if world.rank() == 1 {
                assert_eq!(u.local(|part| part.get(0))?, 7);
                u.local_mut(|part| {
                    assert_eq!(part[..], [7, 8]);
                    Ok(())
                })?;
            }
            let u = u.into_window()?;
            assert_eq!(u[..], if world.rank() == 1 { [7, 8] } else { [0, 0] });
            Ok(())
        });
    }

    /// MPI lets the get miss the store that the owner made before taking a shared lock. Here the
    /// store is an epoch that is over before the barrier. So each get finds the store, even while
    /// the owner holds its own lock.
    #[test]
    fn example_11_13_a_store_before_a_shared_lock_is_found() {
        everywhere(2, |world| {
            let mut u = world.window::<u32>(2)?;
            u[0] = 6;
            let u = u.into_locked()?;
            if world.rank() == 1 {
                u.local_mut(|part| {
                    part[1] = 7;
                    Ok(())
                })?;
                let lock = u.lock(1, LockType::Shared)?;
                let own = lock.get(0..2)?;
                lock.flush()?;
                world.barrier()?;
                world.barrier()?;
                assert_eq!(own.take()?, [6, 7]);
                return lock.unlock();
            }
            world.barrier()?;
            let lock = u.lock(1, LockType::Shared)?;
            let x = lock.get(0..2)?;
            lock.unlock()?;
            assert_eq!(x.take()?, [6, 7]);
            world.barrier()
        });
    }

    /// Rank 0 posts to itself and to rank 1. MPI lets a get under a later lock miss the elements
    /// that rank 0 stored while the window was posted. Here a window that is posted whole allows no
    /// store. A put of the owner to itself is applied in its wait (15). Elements that are not
    /// exposed may be stored. All three elements are found later, since all ranks change the window
    /// over to locks together (18).
    #[test]
    fn example_11_14_what_changed_while_posted_is_found_under_a_later_lock() {
        everywhere(2, |world| {
            let mut u = world.window::<u32>(3)?;
            let zero = world.group([0])?;
            if world.rank() == 0 {
                u[1] = 8;
                let mut exposed = u.post_part(&world.group([0, 1])?, 0..2)?;
                let access = exposed.start(&zero)?;
                access.put([7]).to(0, 0)?;
                access.complete()?;
                exposed.kept_mut(2..3)?[0] = 9;
                u = exposed.wait()?;
            } else {
                let access = u.start(&zero)?;
                let early = access.fetch(0, 0..2)?;
                access.complete()?;
                assert_eq!(early.take()?, [0, 8], "what 0 held at its post");
            }
            let u = u.into_locked()?;
            if world.rank() == 1 {
                let lock = u.lock(0, LockType::Exclusive)?;
                let all = lock.get(0..3)?;
                lock.unlock()?;
                assert_eq!(all.take()?, [7, 8, 9]);
            }
            u.into_window()?;
            Ok(())
        });
    }

    /// After a put under a lock and a barrier, the owner posts to itself and loads. MPI lets the
    /// load miss the put. Here the window was changed back before the post, and so contains the put
    /// (18).
    #[test]
    fn example_11_15_a_put_under_a_lock_is_loaded_while_posted() {
        everywhere(2, |world| {
            let u = world.lock_window::<u32>(1)?;
            if world.rank() == 0 {
                let lock = u.lock(1, LockType::Exclusive)?;
                lock.put([7], 0)?;
                lock.unlock()?;
            }
            world.barrier()?;
            let u = u.into_window()?;
            if world.rank() == 1 {
                let own = world.group([1])?;
                let exposed = u.post_read(&own)?;
                let access = exposed.start(&own)?;
                assert_eq!(exposed[0], 7);
                access.complete()?;
                exposed.wait()?;
            }
            Ok(())
        });
    }
}

mod design_notes {
    use super::*;

    /// An epoch under an exclusive lock gets some elements and adds to others. Its operations are
    /// collected, and all of them happen at the moment when the epoch ends (20). So the elements
    /// that are gotten belong together.
    #[test]
    fn gets_and_sums_under_an_exclusive_lock_happen_at_one_moment() {
        everywhere(3, |world| {
            let u = world.lock_window::<u64>(4)?;
            let mut seen = Vec::new();
            for _ in 0..20 {
                let lock = u.lock(1, LockType::Exclusive)?;
                let both = lock.get(0..2)?;
                lock.accumulate([1, 10], Op::Sum, 2..4)?;
                lock.accumulate([1, 1], Op::Sum, 0..2)?;
                lock.unlock()?;
                seen.extend(both.take()?);
            }
            assert!(seen.chunks(2).all(|both| both[0] == both[1]), "{seen:?}");
            let u = u.into_window()?;
            assert_eq!(u[..], if world.rank() == 1 { [60, 60, 60, 600] } else { [0; 4] });
            Ok(())
        });
    }

    /// Under shared locks, any number of ranks add to one element, any number of times. Each access
    /// to the element is atomic (20), and sums of integers do not depend on the order.
    #[test]
    fn sums_under_shared_locks_into_one_element_are_all_there() {
        everywhere(3, |world| {
            let u = world.lock_window::<u64>(2)?;
            for _ in 0..10 {
                let lock = u.lock(0, LockType::Shared)?;
                (0..20).try_for_each(|_| lock.accumulate([1], Op::Sum, 0))?;
                lock.accumulate([1; 5], Op::Sum, Datatype::elements([1; 5]).unwrap())?;
                lock.unlock()?;
            }
            let u = u.into_window()?;
            assert_eq!(u[..], if world.rank() == 0 { [600, 150] } else { [0, 0] });
            Ok(())
        });
    }

    /// A target that posts to one origin gives this origin the same guarantee as an exclusive lock:
    /// no other rank accesses the part between the origin's get and put. The difference is that the
    /// target waits instead of the origin.
    #[test]
    fn a_post_to_one_origin_is_like_an_exclusive_lock() {
        everywhere(3, |world| {
            let mut u = world.window::<u64>(1)?;
            if world.rank() == 2 {
                for source in [0, 1, 0, 1] {
                    u = u.post(&world.group([source])?)?.wait()?;
                }
                assert_eq!(u[0], 20);
                return Ok(());
            }
            for round in 0..2 {
                let access = u.start(&world.group([2])?)?;
                let before = access.fetch(2, 0)?;
                access.accumulate([5], Op::Sum).to(2, 0)?;
                access.complete()?;
                assert_eq!(before.take()?, [10 * round + 5 * world.rank() as u64]);
            }
            Ok(())
        });
    }

    /// The rank whose part is locked computes meanwhile, and makes no calls. Ranks on the same node
    /// take the lock in shared memory, and ranks on other nodes take it through the attendant. Both
    /// kinds of ranks wait in one queue.
    #[test]
    fn ranks_of_two_nodes_lock_one_window_while_its_owner_computes() {
        let runs = AtomicU64::new(0);
        let done = AtomicU64::new(0);
        everywhere(4, |world| {
            let u = world.lock_window::<u64>(1)?;
            if world.rank() == 0 {
                let until = 3 * (runs.fetch_add(1, Ordering::AcqRel) + 1);
                while done.load(Ordering::Acquire) < until {
                    std::hint::spin_loop();
                }
                assert_eq!(u.local(|part| part.get(0))?, 30);
                return world.barrier();
            }
            for _ in 0..10 {
                u.lock(0, LockType::Exclusive)?.accumulate([1], Op::Sum, 0)?;
            }
            done.fetch_add(1, Ordering::AcqRel);
            world.barrier()
        });
    }

    /// Ranks 0 and 1 put to each other. If `other_reading` is set, rank 0 also puts to rank 3, and
    /// rank 1 to rank 2, as in the other reading of the puzzles' table.
    fn put_for_the_fence(u: &mut Window<u32>, world: &World, other_reading: bool) -> Result<()> {
        let me = world.rank();
        u.put([me as u32 + 1]).to(1 - me, 0)?;
        if other_reading {
            u.put([me as u32 + 5]).to(3 - me, 0)?;
        }
        Ok(())
    }

    fn put_by_start_and_complete(u: &Window<u32>, world: &World) -> Result<()> {
        let access = u.start(&world.group([3])?)?;
        access.put([7, 8]).to(3, 0)?;
        access.complete()
    }

    /// The first puzzle. Operations that are collected for a fence access windows only in that
    /// fence (17). So ranks 2 and 3 may exchange by start and post between two fences, while ranks
    /// 0 and 1 put for the second fence. An element that was put to rank 3 is in rank 3's window
    /// once rank 3's wait has returned. The second fence then applies the operations that were
    /// collected for it, in both readings of the puzzles' table.
    #[test]
    fn the_first_puzzle_has_one_result() {
        for other_reading in [false, true] {
            everywhere(4, |world| {
                let mut u = world.window::<u32>(2)?;
                u.fence()?;
                match world.rank() {
                    0 | 1 => put_for_the_fence(&mut u, world, other_reading)?,
                    2 => put_by_start_and_complete(&u, world)?,
                    _ => {
                        u = u.post(&world.group([2])?)?.wait()?;
                        assert_eq!(u[..], [7, 8]);
                    }
                }
                u.fence()?;
                let expected = match (world.rank(), other_reading) {
                    (0, _) => [2, 0],
                    (1, _) => [1, 0],
                    (2, false) => [0, 0],
                    (2, true) => [6, 0],
                    (_, false) => [7, 8],
                    (_, true) => [5, 8],
                };
                assert_eq!(u[..], expected);
                Ok(())
            });
        }
    }

    /// The second puzzle continues the first. After their exchange, ranks 2 and 3 meet at a
    /// barrier, and put to each other for the second fence. No access is open any more, so these
    /// puts are two more operations of this fence. They are applied after the operations of ranks 0
    /// and 1. The meeting of ranks 2 and 3 imposes no order. Before its wait, rank 3 has no window
    /// from which to put: such a put does not compile.
    #[test]
    fn the_second_puzzle_has_one_result() {
        for other_reading in [false, true] {
            everywhere(4, |world| {
                let pair = world.split(Some(world.rank() as u32 / 2), 0)?.expect("each rank is in one");
                let mut u = world.window::<u32>(2)?;
                u.fence()?;
                match world.rank() {
                    0 | 1 => put_for_the_fence(&mut u, world, other_reading)?,
                    2 => {
                        put_by_start_and_complete(&u, world)?;
                        pair.barrier()?;
                        u.put([9]).to(3, 0)?;
                    }
                    _ => {
                        u = u.post(&world.group([2])?)?.wait()?;
                        pair.barrier()?;
                        u.put([4]).to(2, 0)?;
                        assert_eq!(u[..], [7, 8], "the fence applies what was collected for it");
                    }
                }
                u.fence()?;
                let expected = [[2, 0], [1, 0], [4, 0], [9, 8]][world.rank()];
                assert_eq!(u[..], expected);
                Ok(())
            });
        }
    }
}
