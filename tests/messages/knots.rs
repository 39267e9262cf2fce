//! Ranks that wait for any of several ranks. A knot of such ranks is reported. Other waits are not
//! reported.

use fencepost::{Any, ErrorClass, Result, World, ranks};
use fencepost_tests_support::side_by_side::side_by_side;
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::messages::kinds;
use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// Three ranks make this call, and `waiting` of them wait forever. Each waiting rank gets an error
/// with these words.
#[track_caller]
fn knotted(waiting: usize, words: &[&str], call: impl Fn(&World) -> Result<()> + Sync) {
    side_by_side(usize::MAX, kinds(3), |transport| {
        let world = ranks(3).transport(transport.clone()).eager(0).stall(Some(Duration::ZERO));
        let world = world.end_deadlocks(true).on_stall(|_| ());
        let ends = ends(&world, &[], &call);
        let told: Vec<_> = ends.into_iter().flatten().collect();
        assert_eq!(told.len(), waiting, "{transport:?}: {told:?}");
        for (class, text) in told {
            let is_of_many = text.contains("requests have failed");
            let expected = if is_of_many { ErrorClass::InStatus } else { ErrorClass::RmaSync };
            assert_eq!(class, expected, "{transport:?}: {text}");
            for word in ["deadlock", "knots.rs:"].iter().chain(words) {
                assert!(text.contains(word), "{transport:?}: no {word:?} in {text}");
            }
        }
    });
}

#[test]
fn ranks_that_all_receive_from_any_are_told_so() {
    let words = [
        "rank 0 waits for any of ranks 1, 2 in World::recv",
        "rank 1 waits for any of ranks 0, 2 in World::recv",
        "rank 2 waits for any of ranks 0, 1 in World::recv",
        "from any rank with tag 31",
    ];
    knotted(3, &words, |world| {
        let (me, next) = (world.rank(), (world.rank() + 1) % 3);
        world.recv::<u8>(Any, 30 + me as u32)?;
        world.message(next, 31).send([1u8])
    });
}

#[test]
fn a_receive_from_any_and_ranks_that_wait_for_its_rank_are_told_so() {
    let words = [
        "rank 0 waits for any of ranks 1, 2 in World::probe",
        "rank 1 waits for rank 0 in World::recv",
        "rank 2 waits for rank 0 in Message::send",
        "to rank 0 with tag 6 and 1 bytes",
    ];
    knotted(3, &words, |world| match world.rank() {
        0 => world.probe(Any, 5).map(drop),
        1 => world.recv::<u8>(0, 5).map(drop),
        _ => world.message(0, 6).send([1u8]),
    });
}

#[test]
fn a_wait_for_any_of_several_requests_is_told_with_their_ranks_and_tags() {
    let words = [
        "rank 0 waits for any of ranks 1, 2 in RequestSet::wait_any",
        "a receive from rank 1 with tag 7, begun at",
        "a send to rank 2 with tag 8, begun at",
        "rank 1 waits for rank 2 in World::recv",
        "rank 2 waits for any of ranks 0, 1 in RequestSet::wait_some",
    ];
    knotted(3, &words, |world| {
        let mut set = world.requests();
        match world.rank() {
            0 => {
                set.push(world.irecv::<u8>(1, 7)?)?;
                set.push(world.message(2, 8).isend(vec![1u8; 100])?)?;
                set.wait_any().map(drop)?;
            }
            1 => drop(world.recv::<u8>(2, 9)?),
            _ => {
                set.push(world.irecv::<u8>(Any, 7)?)?;
                set.wait_some().map(drop)?;
            }
        }
        Ok(())
    });
}

#[test]
fn ranks_that_receive_from_any_after_the_others_have_left_are_told_so() {
    let words = ["rank 0 waits for rank 1 in World::recv", "rank 1 waits for rank 0 in World::recv"];
    knotted(2, &words, |world| match world.rank() {
        2 => Ok(()),
        _ => world.recv::<u8>(Any, 5).map(drop),
    });
}

/// Rank 0 waits for rank 1, rank 1 waits for rank 2, and rank 2 waits until rank 0 has taken its
/// message. This would be a cycle, but rank 0 takes the message meanwhile. Then rank 2 computes for
/// a while before it sends the messages for which the other ranks wait.
#[test]
fn ranks_that_wait_for_long_and_go_on_are_told_nothing() {
    for transport in kinds(3) {
        let world = ranks(3).transport(transport.clone()).eager(0).stall(Some(Duration::ZERO));
        let run = world.end_deadlocks(true).on_stall(|_| ()).run(|world| {
            for round in 0..20u64 {
                match world.rank() {
                    0 => {
                        let receive = world.irecv::<u64>(2, 1)?;
                        assert_eq!(world.recv::<u64>(1, 2)?.0, [round]);
                        assert_eq!(receive.wait()?.0, [round]);
                        assert_eq!(world.recv::<u64>(Any, 4)?.0, [round]);
                    }
                    1 => {
                        assert_eq!(world.recv::<u64>(2, 3)?.0, [round]);
                        world.message(0, 2).send([round])?;
                        world.recv::<u64>(Any, 5)?;
                    }
                    _ => {
                        world.message(0, 1).synchronous().send([round])?;
                        world.message(1, 3).send([round])?;
                        let begin = Instant::now();
                        while begin.elapsed() < Duration::from_millis(5) {
                            spin_loop(); // the rank computes
                        }
                        world.message(0, 4).send([round])?;
                        world.message(1, 5).send([round])?;
                    }
                }
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
    }
}
