//! Every wait notices that a rank has failed, whichever ranks are awaited.

use fencepost::prelude::*;
use fencepost::{Census, TransportKind, ranks};
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::transports::transports;
use fencepost_tests_worlds::waits::{COMPUTES, FAILS, RANKS, WAITS, Wait};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

/// A wait takes this long only if it does not end before the computing rank has finished.
const LIMIT: Duration = Duration::from_secs(60);

/// Makes the call `wait` on the ranks that neither compute nor fail, and returns their errors. The
/// failing rank calls `fails`. The computing rank computes until each of these ranks has its error.
fn errors(transport: &TransportKind, wait: Wait, fails: impl Fn() -> Result<()> + Sync) -> Vec<Error> {
    let (notice, notices) = mpsc::channel();
    let (notice, notices) = (Mutex::new(notice), Mutex::new(notices));
    let errors = Mutex::new(Vec::new());
    // Ranks fail, so the run fails.
    let _: Result<()> = ranks(RANKS).transport(transport.clone()).run(|world| {
        let rank = world.rank();
        let meet = || {
            let met = world.barrier();
            if rank == COMPUTES {
                let notices = notices.lock().unwrap();
                (2..RANKS).for_each(|_| notices.recv_timeout(LIMIT).expect("each other rank has its error"));
                return Err(Error::new(ErrorClass::Other, "it has computed"));
            }
            met.and_then(|()| if rank == FAILS { fails() } else { Ok(()) })
        };
        let waited = wait(world, &meet);
        if rank == FAILS || rank == COMPUTES {
            return waited;
        }
        errors.lock().unwrap().extend(waited.err());
        notice.lock().unwrap().send(()).expect("the other rank computes");
        Ok(())
    });
    errors.into_inner().unwrap()
}

/// Checks on every transport between threads that each wait ends in errors that name the cause and
/// no later failure.
#[track_caller]
fn each_wait_ends(fails: impl Fn() -> Result<()> + Sync, cause: &str) {
    for transport in transports([7]) {
        for (name, wait) in WAITS {
            let errors = errors(&transport, *wait, &fails);
            assert_eq!(errors.len(), RANKS - 2, "{transport:?}, {name}: {errors:?}");
            for error in errors {
                let text = error.to_string();
                assert_eq!(error.class(), ErrorClass::ProcFailed, "{transport:?}, {name}: {text}");
                assert!(text.starts_with(&format!("PROC_FAILED: {cause}")), "{transport:?}, {name}: {text}");
                let nests = text.matches("PROC_FAILED").count() > 1 || text.contains("waits for");
                assert!(!nests, "{transport:?}, {name}: {text}");
            }
        }
    }
}

#[test]
fn an_error_of_a_rank_ends_each_wait_while_another_rank_computes() {
    let fails = || Err(Error::new(ErrorClass::Other, "it has had enough"));
    each_wait_ends(fails, "rank 2 left the world with an error: OTHER: it has had enough");
}

#[test]
fn a_panic_of_a_rank_ends_each_wait_while_another_rank_computes() {
    let silent = || std::panic::resume_unwind(Box::new("it has had enough"));
    each_wait_ends(silent, "rank 2 panicked: it has had enough");
}

/// A call in which all ranks exchange something.
type Exchange = fn(&World, &mut Window<u64>) -> Result<()>;

const EXCHANGES: [(&str, Exchange); 6] = [
    ("barrier", |world, _| world.barrier()),
    ("fence", |_, u| u.fence()),
    ("sum", |world, _| world.allreduce(&mut [1_u64], Op::Sum)),
    ("gather", |world, _| world.gather(3, &[1_u64]).map(drop)),
    ("split", |world, _| world.split(Some(0), 0).map(drop)),
    ("window", |world, _| world.window::<u8>(1).map(drop)),
];

#[test]
fn a_rank_that_finishes_ends_each_exchange_of_others_while_another_rank_computes() {
    for transport in transports([7]) {
        for (name, exchange) in EXCHANGES {
            exchange_ends(&transport, Census::Direct, name, exchange, 0, 2);
            // The census has rounds, in which one rank may wait for a rank that waits for the
            // computing rank.
            for census in [Census::Sparse, Census::Reduced] {
                (0..3).for_each(|computes| exchange_ends(&transport, census, name, exchange, computes, 3));
            }
        }
    }
}

/// One of four ranks leaves, and one computes. The two others make the exchange, and get an error.
fn exchange_ends(
    transport: &TransportKind,
    census: Census,
    name: &str,
    exchange: Exchange,
    computes: usize,
    leaves: usize,
) {
    let channel = || {
        let (notice, notices) = mpsc::channel();
        (Mutex::new(notice), Mutex::new(notices))
    };
    let ((begins, beginnings), (notice, notices)) = (channel(), channel());
    let case = format!("{transport:?}, {census}, {name}, rank {computes} computes");
    let ends = ranks(4).transport(transport.clone()).census(census).collect(|world| {
        let mut u = world.window::<u64>(4)?;
        u.fence()?;
        begins.lock().unwrap().send(()).expect("the rank that leaves takes it");
        if world.rank() == leaves {
            // This rank leaves only after all ranks have fenced. A rank still in its fence would
            // get the error there.
            let beginnings = beginnings.lock().unwrap();
            (0..4).for_each(|_| beginnings.recv_timeout(LIMIT).expect("each rank has fenced"));
            return Ok(None);
        } else if world.rank() == computes {
            let notices = notices.lock().unwrap();
            for _ in 0..2 {
                notices.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{case}: others are not told"));
            }
            return Ok(None);
        }
        let ended = exchange(world, &mut u);
        notice.lock().unwrap().send(()).expect("the other rank computes");
        Ok(ended.err().map(|error| error.to_string()))
    });
    let ends = ends.unwrap_or_else(|error| panic!("{case}: {error}"));
    let cause = format!("PROC_FAILED: rank {leaves} has finished and left the world, and rank ");
    for end in (0..4).filter(|&rank| rank != leaves && rank != computes).map(|rank| &ends[rank]) {
        assert!(end.as_ref().is_some_and(|text| text.starts_with(&cause)), "{case}: {ends:?}");
    }
}

/// Rank 1 sees that rank 0 has failed, and then gives up a send. Rank 2 waits for rank 1 only.
#[test]
fn a_rank_that_gives_up_a_request_later_is_not_the_cause() {
    for transport in transports([7]) {
        let (noticed, notices) = mpsc::channel();
        let (noticed, notices) = (Mutex::new(noticed), Mutex::new(notices));
        let errors = Mutex::new(Vec::new());
        let _: Result<()> = ranks(3).transport(transport.clone()).run(|world| {
            let ended = match world.rank() {
                0 => return Err(Error::new(ErrorClass::Other, "it has had enough")),
                1 => {
                    let send = world.message(2, 0).isend(vec![1u64; 200_000])?;
                    let received = world.recv::<u64>(0, 0).map(drop);
                    drop(send);
                    noticed.lock().unwrap().send(()).expect("the other rank waits");
                    received
                }
                _ => {
                    notices.lock().unwrap().recv_timeout(LIMIT).expect("rank 1 has its error");
                    world.recv::<u64>(1, 5).map(drop)
                }
            };
            errors.lock().unwrap().extend(ended.err());
            Ok(())
        });
        let errors = errors.into_inner().unwrap();
        assert_eq!(errors.len(), 2, "{transport:?}: {errors:?}");
        for error in errors {
            let text = error.to_string();
            let cause = "PROC_FAILED: rank 0 left the world with an error: OTHER: it has had enough";
            assert!(text.starts_with(cause), "{transport:?}: {text}");
        }
    }
}

/// Rank 1 waits for rank 2 in a part of the world, in which these ranks have the numbers 0 and 1.
/// Rank 2 fails.
#[test]
fn a_rank_that_failed_in_a_part_is_named_in_the_world_above() {
    for transport in transports([7]) {
        for nested in [false, true] {
            let ends = ends(&ranks(4).transport(transport.clone()), &[], |world| {
                let colour = u32::from(matches!(world.rank(), 1 | 2));
                let mut part = world.split(Some(colour), 0)?.expect("it is in a part");
                if nested {
                    part = part.split(Some(0), 0)?.expect("it is in a part");
                }
                match world.rank() {
                    1 => part.recv::<u64>(1, 0).map(drop),
                    2 => Err(Error::new(ErrorClass::Other, "it has had enough")),
                    _ => world.barrier(),
                }
            });
            for rank in [0, 3] {
                let (class, text) = ends[rank].as_ref().expect("rank 2 does not come");
                assert_eq!(*class, ErrorClass::ProcFailed, "{transport:?}: {text}");
                assert!(text.starts_with("PROC_FAILED: rank 2 "), "{transport:?}: {text}");
            }
        }
    }
}

/// Rank 1 fails in one part of the world. Rank 0 waits for rank 1 in that part, and continues after
/// the error. Then rank 3 fails in another part, and rank 0 returns the error that it gets in that
/// other part.
#[test]
fn a_rank_that_failed_in_a_part_is_not_blamed_for_a_later_failure_in_another_one() {
    for transport in transports([7]) {
        for meets in [true, false] {
            let ends = ends(&ranks(4).transport(transport.clone()), &[], |world| {
                let rank = world.rank();
                let parts =
                    [world.split((rank < 2).then_some(0), 0)?, world.split((rank % 3 == 0).then_some(0), 0)?];
                for (round, part) in parts.iter().enumerate() {
                    if let Some(part) = part {
                        let u = part.window::<u8>(1)?;
                        let error = if part.rank() == 1 {
                            // No other rank can end this wait, so the wait is refused, and the part
                            // ends.
                            u.post(&part.group([1usize])?)?
                                .wait()
                                .map(drop)
                                .expect_err("it has no access")
                                .into()
                        } else {
                            part.recv::<u8>(1, 0).map(drop).expect_err("the part ends")
                        };
                        if round == 1 && rank == 0 {
                            return Err(error);
                        }
                    }
                    if meets {
                        world.barrier()?;
                    }
                }
                world.barrier()
            });
            let (class, text) = ends[2].as_ref().expect("rank 0 does not come");
            assert_eq!(*class, ErrorClass::ProcFailed, "{transport:?}: {text}");
            let cause = "PROC_FAILED: rank 3 failed in a part of the world, as rank 1 of it: ";
            assert!(text.starts_with(cause), "{transport:?}, {meets}: {text}");
        }
    }
}

/// In a nested run, rank 1 does not send the message for which rank 0 waits.
#[test]
fn a_rank_that_failed_in_another_run_is_not_taken_for_one_of_this_run() {
    for transport in transports([7]) {
        let ends = ends(&ranks(3).transport(transport.clone()), &[], |world| {
            if world.rank() > 0 {
                return world.barrier();
            }
            ranks(2).run(|inner| if inner.rank() == 0 { inner.recv::<u8>(1, 0).map(drop) } else { Ok(()) })
        });
        let (_, text) = ends[2].as_ref().expect("rank 0 does not come");
        assert!(
            text.starts_with("PROC_FAILED: rank 0 left the world with an error"),
            "{transport:?}: {text}"
        );
    }
}
