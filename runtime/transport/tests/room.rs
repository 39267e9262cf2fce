//! Ranks that are allowed fewer connections than there are other ranks. Unused connections are
//! closed and later opened again, and no data is lost. These tests have a file of their own, since
//! they count the descriptors of the process.

mod fabrics;
mod waits;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use fabrics::job;
use fencepost_transport::{
    Channels, Frame, Header, Leave, Liveness, Loss, Lost, Pause, Port, Settings, TcpEnd, TcpFabric, Topology,
};
use waits::{bytes, poll};

/// Held by each test, so that only one test runs at a time, since the tests count descriptors.
static ALONE: Mutex<()> = Mutex::new(());

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn post(end: &mut TcpEnd, to: usize, word: u64, payload: &[u8]) {
    let header = Header { word, ..Header::default() };
    // SAFETY: the payload is copied.
    unsafe { end.post(to, Port::FENCE, Frame::of(header, payload)) }.unwrap();
}

/// Returns the bytes that `from` sends to `to` in a round. Some of these payloads are larger than a
/// socket takes at once.
fn payload(from: usize, to: usize, round: u64) -> Vec<u8> {
    let long = (from + 3 * to + round as usize).is_multiple_of(17);
    vec![(from * 31 + to * 7 + round as usize) as u8; if long { 3 << 20 } else { 40 * from + to }]
}

/// In each round, sends a frame to every other rank for which `talks` returns `true`, and takes all
/// frames that arrive.
fn rounds(end: &mut TcpEnd, rounds: std::ops::Range<u64>, talks: impl Fn(usize, usize, u64) -> bool) {
    let (me, size) = (end.rank(), end.size());
    for round in rounds {
        for to in (1..size).map(|by| (me + by) % size).filter(|&to| talks(me, to, round)) {
            post(end, to, round, &payload(me, to, round));
        }
        for from in (0..size).filter(|&from| from != me && talks(from, me, round)) {
            let frame = poll(end, from).unwrap();
            assert_eq!(frame.header.word, round, "from {from} to {me}");
            assert!(bytes(&frame) == payload(from, me, round), "from {from} to {me} in round {round}");
            end.release(from, Port::FENCE);
        }
    }
}

/// Runs `each` on a thread for each rank. Returns the largest number of descriptors that are open
/// at a time.
fn run(ranks: Vec<(Arc<TcpFabric>, TcpEnd)>, each: impl Fn(&mut TcpEnd) + Sync) -> usize {
    let (most, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(descriptors(), Ordering::Relaxed);
                thread::yield_now();
            }
        });
        let each = &each;
        let ranks = ranks.into_iter().map(|(_, mut end)| {
            scope.spawn(move || {
                each(&mut end);
                end.leave(Leave::Finished);
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        over.store(true, Ordering::Relaxed);
    });
    most.into_inner()
}

#[test]
fn ranks_that_all_talk_to_all_have_no_more_connections_than_they_may() {
    let _alone = ALONE.lock();
    let (size, connections) = (14, 4);
    for (sealed, obituary) in
        [(false, Duration::from_secs(600)), (true, Duration::from_secs(600)), (false, Duration::ZERO)]
    {
        let settings = Settings { connections, sealed, obituary, ..Settings::default() };
        let ranks = job(size, settings);
        let before = descriptors();
        let most = run(ranks, |end| rounds(end, 0..4, |_, _, _| true)) - before;
        // Each rank may just be accepting one more connection for which it has no room.
        assert!(most <= size * (connections + 1), "{most} of {}", size * connections);
        assert!(most > size * connections / 2, "{most}: there was room for more");
    }
}

#[test]
fn connections_that_are_not_used_are_closed_and_opened_again() {
    let _alone = ALONE.lock();
    let size = 5;
    // The fabric's thread checks connections ten times a second. It closes each connection that was
    // not used between two checks.
    let settings = Settings {
        connections: 2,
        idle: Duration::ZERO,
        obituary: Duration::from_secs(600),
        ..Settings::default()
    };
    let ranks = job(size, Settings { connections: 3, ..settings });
    let before = descriptors();
    let quiet = Barrier::new(size);
    run(ranks, |end| {
        let mut all = end.rank() as u64;
        rounds(end, 0..2, |_, _, _| true);
        quiet.wait();
        let (_sender, nothing) = mpsc::channel::<()>();
        // Each rank keeps one connection, a third of the largest allowed number.
        while descriptors() > before + 2 * size {
            let _ = nothing.recv_timeout(Duration::from_millis(20));
        }
        quiet.wait();
        rounds(end, 2..4, |_, _, _| true);
        // Ranks pause for different times. So a rank closes a connection while the other rank
        // begins to use it.
        for round in 4..40 {
            all = all.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
            let _ = nothing.recv_timeout(Duration::from_millis(all >> 58));
            rounds(end, round..round + 1, |from, to, round| (from + to + round as usize).is_multiple_of(3));
        }
    });
}

/// Rank 1 reads two frames, and then rank 0, their sender, ends. Rank 1 releases one frame, and
/// finds that rank 0 no longer listens. It releases the other frame, leaves and ends. There are no
/// reports of a launcher.
#[test]
fn a_rank_ends_though_it_has_written_something_for_one_that_has_ended() {
    let _alone = ALONE.lock();
    // The ranks keep no unused connection.
    let settings = Settings {
        connections: 1,
        idle: Duration::ZERO,
        obituary: Duration::from_secs(600),
        ..Settings::default()
    };
    let mut ranks = job(2, settings);
    let before = descriptors();
    // Each payload is so long that its release is reported at once.
    let long = vec![1; 2 << 20];
    (1..=2).for_each(|word| post(&mut ranks[0].1, 1, word, &long));
    let (_sender, nothing) = mpsc::channel::<()>();
    let mut has_come = false;
    // Wait until both sides have agreed to close the connection. Each has then read everything.
    while !has_come || descriptors() > before {
        has_come |= ranks[1].1.poll(0, Port::FENCE).unwrap().is_some();
        let _ = nothing.recv_timeout(Duration::from_millis(5));
    }
    ranks[0].1.leave(Leave::Finished);
    drop(ranks.remove(0));
    let (fabric, mut end) = ranks.remove(0);
    end.release(0, Port::FENCE);
    end.flush();
    let mut pause = Pause::new();
    while end.holds_back() {
        end.idle(&mut pause); // until the listener has refused the connection
    }
    assert_eq!(poll(&mut end, 0).unwrap().header.word, 2);
    end.release(0, Port::FENCE);
    end.flush();
    assert!(end.holds_back(), "the release is written, and cannot be sent");
    end.leave(Leave::Finished);
    let (ends, ended) = mpsc::channel();
    thread::spawn(move || {
        drop((end, fabric));
        ends.send(())
    });
    let ended = ended.recv_timeout(Duration::from_secs(30));
    assert!(ended.is_ok(), "a rank waits for one that has ended, until its obituary");
}

#[test]
fn a_rank_that_fails_without_connections_is_named() {
    let _alone = ALONE.lock();
    let settings = Settings {
        connections: 3,
        idle: Duration::ZERO,
        obituary: Duration::from_secs(600),
        ..Settings::default()
    };
    let mut ranks = job(3, settings);
    let before = descriptors();
    post(&mut ranks[1].1, 0, 1, b"first");
    assert_eq!(bytes(&poll(&mut ranks[0].1, 1).unwrap()), b"first");
    ranks[0].1.release(1, Port::FENCE);
    ranks[0].1.flush();
    // The rank may keep one connection, so it closes one only when it has a second.
    post(&mut ranks[2].1, 0, 1, b"second");
    assert_eq!(bytes(&poll(&mut ranks[0].1, 2).unwrap()), b"second");
    ranks[0].1.release(2, Port::FENCE);
    ranks[0].1.flush();
    let (_sender, nothing) = mpsc::channel::<()>();
    while descriptors() > before + 2 {
        let _ = nothing.recv_timeout(Duration::from_millis(20));
    }
    let why = Leave::Failed("no luck".into());
    let (_, mut first) = ranks.remove(0);
    ranks.iter_mut().for_each(|(_, end)| end.leave(why.clone()));
    for rank in [1, 2] {
        let lost = poll(&mut first, rank).map(|_| ()).unwrap_err();
        assert_eq!(lost, Lost { rank, how: Loss::Left(why.clone()) });
    }
}
