//! Tests of windows in shared memory: a window is refused if there is no memory for it, and freed
//! memory is used again.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;

use fencepost_planner::ErrorClass;
use fencepost_runtime::{Ranks, TransportKind, ranks};
use fencepost_transport::{Channels, Endpoint, Frame, Port, shm};

fn shared(size: usize) -> Ranks {
    ranks(size).transport(TransportKind::ShmThreads)
}

#[test]
fn a_window_that_there_is_no_memory_for_is_refused_on_all_ranks_with_what_there_is_and_the_world_goes_on() {
    for bytes in [1 << 62, 1 << 50, 1 << 44] {
        shared(3)
            .run(|world| {
                let len = if world.rank() == 1 { bytes / 8 } else { 5 };
                let error = world.window::<u64>(len).map(drop).unwrap_err();
                assert_eq!(error.class(), ErrorClass::NoMem);
                let message = error.message();
                assert!(message.starts_with("rank 1 asked for "), "{message}");
                let said = message.contains("of memory, and ") && message.contains(" is available (");
                assert!(said, "{message}");
                let mut u = world.window::<u64>(3)?;
                u.put([7]).to((world.rank() + 1) % 3, 2)?;
                u.fence()?;
                assert_eq!(u[2], 7);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn memory_of_windows_that_all_ranks_have_dropped_is_used_again_and_is_zeroed() {
    for len in [0, 10, 100_000] {
        let distinct: Vec<usize> = shared(3)
            .collect(|world| {
                let mut places = BTreeSet::new();
                for round in 0..100u64 {
                    let mut u = world.window::<u64>(len + 1)?;
                    assert!(u.iter().all(|&element| element == 0), "round {round}");
                    places.insert(u.as_ptr() as usize);
                    u.put([round + 1]).to((world.rank() + 1) % 3, len)?;
                    for n in 0..10.min(len) {
                        u.put([n as u64]).to((world.rank() + 2) % 3, n)?;
                    }
                    u.fence()?;
                    assert_eq!(u[len], round + 1);
                    u.fill(round);
                }
                Ok(places.len())
            })
            .unwrap();
        assert!(distinct.iter().all(|&places| places < 30), "{len}: {distinct:?}");
    }
}

#[test]
fn memory_of_worlds_that_all_ranks_have_left_is_used_again() {
    let distinct: Vec<usize> = shared(4)
        .collect(|world| {
            let mut places = BTreeSet::new();
            for round in 0..60 {
                let colour = (world.rank() + round) as u32 % 2;
                let part = world.split(Some(colour), 0)?.expect("all take part");
                let mut u = part.window::<u64>(1000)?;
                places.insert(u.as_ptr() as usize);
                u.put([round as u64]).to(1 - part.rank(), 999)?;
                u.fence()?;
                assert_eq!(u[999], round as u64);
            }
            Ok(places.len())
        })
        .unwrap();
    assert!(distinct.iter().all(|&places| places < 30), "{distinct:?}");
}

#[test]
fn copies_of_payloads_are_given_back_as_they_are_released() {
    let mut ends: Vec<Endpoint> = shm(2).unwrap().into_iter().map(Endpoint::Shm).collect();
    let (mut reader, mut sender) = (ends.pop().unwrap(), ends.pop().unwrap());
    let payload = vec![3u8; 100_000];
    let mut places = BTreeSet::new();
    for round in 0..200 {
        // SAFETY: the payload is readable. It is on the heap, so it is copied.
        unsafe { sender.post(1, Port::FENCE, Frame::of(Default::default(), &payload)) }.unwrap();
        if round > 5 {
            let frame = reader.poll(0, Port::FENCE).unwrap().expect("it was posted");
            places.insert(frame.payload as usize);
            reader.release(0, Port::FENCE);
        }
    }
    assert!(places.len() < 20, "{}", places.len());
}
