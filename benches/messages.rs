//! How long does a message to another rank and back take, compared with the least time that the
//! machine needs for such a message?
//!
//! The limits are the time that a cache line takes to another core and back, the time of one copy
//! of the elements, and the time of messages that a program writes directly to sockets.

use fencepost::{RequestSet, Result, TransportKind, World};
use fencepost_benches::limits::team;
use fencepost_benches::limits::wire::Wire;
use fencepost_benches::{Contest, ours};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A word in cache lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// The number of elements of a mebibyte.
const LONG: usize = 1 << 17;

/// Each of two threads stores to its own line and waits for the store to the other line.
fn line(iterations: u64) -> Duration {
    let lines = [(); 2].map(|()| Line::default());
    team(2, iterations, |beat, iterations| {
        // The lines continue from the values that the warm-up has left.
        let begin = lines[beat.me].0.load(Ordering::Relaxed);
        for k in begin + 1..=begin + iterations {
            let wait = |line: &Line| {
                while line.0.load(Ordering::Acquire) < k {
                    spin_loop();
                }
            };
            if beat.me == 1 {
                wait(&lines[0]);
            }
            lines[beat.me].0.store(k, Ordering::Release);
            if beat.me == 0 {
                wait(&lines[1]);
            }
        }
    })
}

/// Copies the elements on one thread. The source and the target are equally warm in the cache.
fn copies(iterations: u64) -> Duration {
    team(1, iterations, |_, iterations| {
        let (from, mut to) = (vec![1u64; LONG], vec![0u64; LONG]);
        for _ in 0..iterations {
            to.copy_from_slice(black_box(&from));
            black_box(&mut to);
        }
    })
}

/// Rank 0 sends a message, and rank 1 sends it back.
fn there_and_back(world: &World, mine: &[u64], room: &mut [u64]) -> Result<()> {
    if world.rank() == 0 {
        world.message(1, 1).send(mine)?;
        world.recv_into(1, 1, room)?;
    } else {
        world.recv_into(0, 1, room)?;
        world.message(0, 1).send(mine)?;
    }
    Ok(())
}

fn messages(len: usize, iterations: u64) -> Duration {
    let make = |_: &World| Ok((vec![1; len], vec![0; len]));
    ours::team(2, iterations, make, |world, (mine, room), _| there_and_back(world, mine, room))
}

/// Times messages that go to the other rank and come back. Each direction counts as one message.
fn one_way(len: usize, iterations: u64) -> Duration {
    messages(len, iterations.div_ceil(2))
}

fn over_tcp(len: usize, iterations: u64) -> Duration {
    let make = |_: &World| Ok((vec![1; len], vec![0; len]));
    let epoch = |world: &World, (mine, room): &mut (Vec<u64>, Vec<u64>), _| there_and_back(world, mine, room);
    ours::team_over(TransportKind::TcpThreads, 2, iterations, make, epoch)
}

/// Receives of rank 0 from rank 1, each with a different tag.
struct Receives(RequestSet<Vec<u64>>, u32);

impl Drop for Receives {
    fn drop(&mut self) {
        // The receives are cancelled, since no message is sent that they could take.
        (0..self.1 as usize).for_each(|place| drop(self.0.cancel(place)));
    }
}

/// Rank 1 sends a message that completes one of rank 0's `count` receives, and gets a reply. Rank 0
/// begins each completed receive again.
fn wait_any(count: u32, iterations: u64) -> Duration {
    let make = |world: &World| {
        let mut set = world.requests();
        for tag in (0..count).filter(|_| world.rank() == 0) {
            set.push(world.irecv::<u64>(1, tag)?)?;
        }
        Ok(Receives(set, count))
    };
    ours::team(2, iterations, make, |world, receives, k| {
        let tag = (k as u32).wrapping_mul(0x9e37_79b9) >> 7;
        let (tag, back) = (tag % count, count);
        if world.rank() == 1 {
            world.message(0, tag).send([k as u64])?;
            return world.recv_into(0, back, &mut [0u64]).map(drop);
        }
        let came = receives.0.wait_any()?.filter(|came| came.status.tag == Some(tag));
        assert!(came.is_some_and(|came| came.buffer == [k as u64]), "another receive was completed");
        receives.0.push(world.irecv(1, tag)?)?;
        world.message(1, back).send([0u64])
    })
}

fn main() {
    let (small, large) = (Wire::new(Vec::new()), Wire::new(Vec::new()));
    fencepost_benches::main(vec![
        Contest::new("message of 8 bytes, there and back", 1)
            .side("a cache line, there and back", line)
            .held("local", 2.5, |n| messages(1, n))
            .held("shm", 2.5, ours::shm(|n| messages(1, n))),
        Contest::new("message of 1 MiB, one way", 1)
            .side("one copy", copies)
            .held("local", 1.2, |n| one_way(LONG, n))
            .held("shm", 1.2, ours::shm(|n| one_way(LONG, n))),
        Contest::new("tcp: message of 8 bytes, there and back", 1)
            .side("sockets by hand", move |n| small.round_trip(8, n))
            .held("Fencepost", 1.3, |n| over_tcp(1, n)),
        Contest::new("tcp: message of 1 MiB, there and back", 1)
            .side("sockets by hand", move |n| large.round_trip(1 << 20, n))
            .held("Fencepost", 1.1, |n| over_tcp(LONG, n)),
        Contest::new("wait-any", 1).side("over 10 requests", |n| wait_any(10, n)).held(
            "over 1,000",
            1.2,
            |n| wait_any(1000, n),
        ),
        Contest::new("shm: wait-any", 1).side("over 10 requests", ours::shm(|n| wait_any(10, n))).held(
            "over 1,000",
            1.2,
            ours::shm(|n| wait_any(1000, n)),
        ),
    ]);
}
