//! If the reader keeps up, long traffic needs no more memory than short traffic. Between threads,
//! long traffic makes no allocations at all. The test is alone in its file, since it counts the
//! allocations of the whole process.

mod waits;

use std::thread;

use fencepost_tests_support::counting::{Counting, allocations_of_process, live_of_process};
use fencepost_transport::{
    Channels, Endpoint, Frame, Header, Leave, Liveness, Notify, Port, SimConfig, Topology, local, sim,
};
use waits::{poll, read, released};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const AHEAD: u64 = 8;

/// Sends `frames` frames from each rank to the other, and takes the same number. At most `AHEAD` of
/// the frames that a rank has sent are unreleased at a time. Sometimes a rank sends a notification.
fn traffic(end: &mut Endpoint, frames: u64) {
    static PAYLOAD: [u8; 24] = [7; 24];
    let peer = 1 - end.rank();
    let posted_before = end.released(peer, Port::FENCE);
    for n in 0..frames {
        released(end, peer, (posted_before + n + 1).saturating_sub(AHEAD));
        // SAFETY: the payload is never freed.
        unsafe { end.post(peer, Port::FENCE, Frame::of(Header::default(), &PAYLOAD)) }.unwrap();
        poll(end, peer).unwrap();
        end.release(peer, Port::FENCE);
        if n % 100 == 0 {
            exchange(end);
        }
    }
    released(end, peer, posted_before + frames);
    exchange(end);
}

fn exchange(end: &mut Endpoint) {
    end.publish(0).unwrap();
    for from in 0..2 {
        read(end, from).unwrap();
    }
}

/// Sends 1,000 frames in each direction and then 100,000 more. Returns the number of allocations
/// that the 100,000 frames make, and by how many bytes the memory grows meanwhile.
fn measure(ends: Vec<Endpoint>) -> (u64, i64) {
    let rank = |mut end: Endpoint| {
        traffic(&mut end, 1_000);
        let before = (allocations_of_process(), live_of_process());
        exchange(&mut end); // no rank continues before both have read the counts
        traffic(&mut end, 100_000);
        let after = (allocations_of_process(), live_of_process());
        exchange(&mut end); // no rank ends before both have read the counts
        end.leave(Leave::Finished);
        (after.0 - before.0, after.1 - before.1)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = ends.into_iter().map(|end| scope.spawn(move || rank(end))).collect();
        let grown: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        (grown.iter().map(|grown| grown.0).max().unwrap(), grown.iter().map(|grown| grown.1).max().unwrap())
    })
}

#[test]
fn a_hundred_thousand_frames_need_no_more_memory_than_a_few() {
    let (allocations, grown) = measure(local(2).into_iter().map(Endpoint::Local).collect());
    assert_eq!((allocations, grown), (0, 0), "on threads");
    let (_, grown) = measure(sim(2, SimConfig::default()).into_iter().map(Endpoint::Sim).collect());
    assert!(grown < 1 << 16, "{grown} bytes more on sim");
}
