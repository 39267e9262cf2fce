//! Waits inside prepared supersteps are reported and recognised like the waits of a fence. No test
//! depends on time.

use fencepost::prelude::*;
use fencepost::transport::SimConfig;
use fencepost::{Census, Ranks, Stall, TransportKind, ranks};
use fencepost_tests_support::side_by_side::side_by_side;
use fencepost_tests_worlds::transports::requested;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn worlds(size: usize) -> Vec<(String, Ranks)> {
    let sim = |seed| TransportKind::Sim(SimConfig { seed, ..SimConfig::default() });
    let mut all = vec![TransportKind::Local, sim(3)];
    #[cfg(target_os = "linux")]
    all.extend([TransportKind::ShmThreads, TransportKind::TcpThreads]);
    #[cfg(target_os = "linux")]
    all.extend(
        [1, 2].map(|each| TransportKind::MixedThreads((0..size as u32).map(|rank| rank / each).collect())),
    );
    let world = |kind: TransportKind| {
        Census::ALL
            .map(|census| (format!("{kind:?}, {census}"), ranks(size).transport(kind.clone()).census(census)))
    };
    requested(all)
        .into_iter()
        .flat_map(world)
        .map(|(name, ranks)| (name, ranks.stall(Some(Duration::ZERO))))
        .collect()
}

/// Puts the first two elements of each rank to the next rank.
#[superstep]
fn shift(u: &mut Window<u64>) -> Result<()> {
    let to = (u.rank() + 1) % u.size();
    u.put(0..2).to(to, 2)
}

#[test]
fn a_wait_in_a_prepared_superstep_is_reported_with_its_peer_and_what_came() {
    for (name, world) in worlds(3) {
        let (tell, told) = channel();
        let (tell, told) = (Mutex::new(tell), Mutex::new(told));
        let world = world.on_stall(move |stall| {
            // The receiver is gone once rank 1 has received the report.
            let _ = tell.lock().expect("no panic").send(stall.clone());
        });
        let said: Vec<Option<(Stall, u32)>> = world
            .collect(|world| {
                let mut u = world.window::<u64>(4)?;
                let mut prepared = shift::prepare(world)?;
                let told = (world.rank() == 1).then(|| {
                    let told = told.lock().expect("no panic");
                    // While a rank prepares, it waits for notifications.
                    let waits = |stall: &Stall| (stall.rank, stall.awaited, stall.what) == (2, 1, "frames");
                    told.iter().find(waits)
                });
                let line = line!() + 1;
                prepared.replay(&mut u)?;
                Ok(told.flatten().map(|stall| (stall, line)))
            })
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let (stall, line) = said[1].as_ref().expect("it was said");
        assert_eq!((stall.file, stall.line), (file!(), *line), "{name}: {stall}");
        assert_eq!(stall.superstep, Some("shift"), "{name}: {stall}");
        assert!(stall.came < stall.expected, "{name}: {stall}");
        assert_eq!(stall.deadlock, None, "{name}");
    }
}

#[test]
fn a_cycle_of_waits_in_prepared_supersteps_is_recognised_and_ends_both_worlds() {
    side_by_side(usize::MAX, worlds(2), |(name, world)| {
        let said = Arc::new(Mutex::new(Vec::new()));
        let told = said.clone();
        let ends: Vec<String> = world
            .end_deadlocks(true)
            .on_stall(move |stall: &Stall| told.lock().expect("no panic").push(stall.clone()))
            .collect(|world| {
                let other = world.split(Some(0), 0)?.expect("it has a colour");
                let (mut u, mut v) = (world.window::<u64>(4)?, other.window::<u64>(4)?);
                let (mut first, mut second) = (shift::prepare(world)?, shift::prepare(&other)?);
                first.replay(&mut u)?;
                second.replay(&mut v)?;
                let end = if world.rank() == 0 {
                    first.replay(&mut u).and_then(|()| second.replay(&mut v))
                } else {
                    second.replay(&mut v).and_then(|()| first.replay(&mut u))
                };
                Ok(end.expect_err("nobody can go on").to_string())
            })
            .expect("the ranks go on");
        for (rank, error) in ends.iter().enumerate() {
            for wait in
                ["rank 0 waits for rank 1 in superstep shift", "rank 1 waits for rank 0 in superstep shift"]
            {
                assert!(error.contains("deadlock: ") && error.contains(wait), "{name}, rank {rank}: {error}");
            }
        }
        let said = said.lock().expect("no panic");
        for rank in 0..2 {
            let in_ring = |stall: &&Stall| stall.rank == rank && stall.deadlock.is_some();
            let stall =
                said.iter().find(in_ring).unwrap_or_else(|| panic!("{name}: rank {rank} said nothing"));
            assert_eq!((stall.superstep, stall.what), (Some("shift"), "frames"), "{name}: {stall}");
            assert_eq!(said.iter().filter(in_ring).count(), 1, "{name}: {said:?}");
            let text = stall.deadlock.as_deref().expect("it is in the ring");
            if rank == 0 {
                assert!(text.contains("rank 1 waits for rank 0 in superstep shift"), "{name}: {text}");
            } else {
                assert_eq!(text, "deadlock of ranks 0, 1: see the report of rank 0", "{name}");
            }
        }
    });
}

/// The waiting rank is in the middle of a protocol, and others use its memory. So it must not leave
/// the wait by unwinding.
#[test]
fn a_panic_in_the_stall_handler_does_not_reach_the_wait() {
    for prepared in [false, true] {
        for (name, world) in worlds(2) {
            let (tell, told) = channel();
            let (tell, told) = (Mutex::new(tell), Mutex::new(told));
            let world = world.on_stall(move |stall| {
                let _ = tell.lock().expect("no panic holds it").send(stall.rank);
                std::panic::resume_unwind(Box::new("planned"));
            });
            let values: Vec<u64> = world
                .collect(|world| {
                    let me = world.rank();
                    let mut u = world.window::<u64>(4)?;
                    let mut shift = shift::prepare(world)?;
                    u[0] = 10 + me as u64;
                    if me == 1 {
                        // Rank 0 waits, and has reported its wait.
                        let told = told.lock().expect("no panic holds it");
                        while told.recv().expect("rank 0 is told") != 0 {}
                    }
                    if prepared {
                        shift.replay(&mut u)?;
                    } else {
                        u.put([u[0]]).to(1 - me, 2)?;
                        u.fence()?;
                    }
                    Ok(u[2])
                })
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(values, [11, 10], "{name}");
        }
    }
}

/// A value that panics when it is dropped.
pub struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the drop of a payload");
    }
}

#[test]
fn a_function_whose_panic_has_a_payload_that_panics_once_more_ends_no_wait() {
    for (name, world) in worlds(2) {
        let (tell, told) = channel();
        let (tell, told) = (Mutex::new(tell), Mutex::new(told));
        let world = world.on_stall(move |stall| {
            if stall.rank == 0 {
                let _ = tell.lock().expect("no panic").send(());
                std::panic::panic_any(Bomb);
            }
        });
        let run = world.run(|world| {
            if world.rank() == 1 {
                told.lock().expect("no panic").recv().expect("rank 0 stalls");
            }
            world.barrier()
        });
        run.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
