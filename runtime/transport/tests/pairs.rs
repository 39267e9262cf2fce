//! The shared memory that ranks take: a constant amount for each rank, and a little for each rank
//! with which it communicates. The amount is measured for several numbers of ranks, so that a table
//! of all pairs of ranks would be noticed.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use fencepost_transport::{Channels, Frame, Header, Leave, Liveness, Notify, Port, Segment, ShmEnd};

/// Returns how many bytes of the segment are allocated.
fn granted(segment: &Segment) -> u64 {
    let file = File::from(segment.fd().try_clone_to_owned().unwrap());
    file.metadata().unwrap().blocks() * 512
}

/// Creates a world of `ranks` ranks. Each rank sends a frame to each of the `peers` ranks that
/// follow it, and receives the frames of the `peers` ranks before it.
fn world(ranks: usize, peers: usize) -> (Arc<Segment>, Vec<ShmEnd>) {
    let segment = Arc::new(Segment::create(ranks).unwrap());
    let end = |rank| ShmEnd::of_job(&segment, 0, rank, ranks).unwrap();
    let mut ends: Vec<ShmEnd> = (0..ranks).map(end).collect();
    for (rank, end) in ends.iter_mut().enumerate() {
        for step in 1..=peers {
            // SAFETY: an empty payload needs no memory.
            unsafe { end.post((rank + step) % ranks, Port::FENCE, Frame::bare(Header::default())) }.unwrap();
        }
    }
    for (rank, end) in ends.iter_mut().enumerate() {
        for step in 1..=peers {
            let from = (rank + ranks - step) % ranks;
            assert!(end.poll(from, Port::FENCE).unwrap().is_some(), "{from} to {rank}");
            end.release(from, Port::FENCE);
        }
    }
    (segment, ends)
}

/// Returns the number of allocated bytes for each of `ranks` ranks.
fn each(ranks: usize, peers: usize) -> u64 {
    let (segment, mut ends) = world(ranks, peers);
    let bytes = granted(&segment) / ranks as u64;
    ends.iter_mut().for_each(|end| end.leave(Leave::Finished));
    bytes
}

#[test]
fn what_a_rank_takes_does_not_grow_with_the_number_of_ranks() {
    let sizes = [16, 64, 256, 512].map(|ranks| (ranks, each(ranks, 2)));
    let shrink = sizes.is_sorted_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    assert!(shrink, "bytes of shared memory for each rank, by ranks: {sizes:?}");
    // A rank takes memory for each rank with which it communicates. A queue is a head, and a ring
    // with a line for each of 16 frames.
    let (few, many) = (each(64, 2), each(64, 63));
    assert!(many > few && many - few <= 63 * 4096, "{few} bytes with 2 peers, {many} with 63");
}

#[test]
fn lines_of_notifications_exist_where_a_rank_notifies_one_of_something() {
    let (segment, mut ends) = world(64, 2);
    let before = granted(&segment);
    ends.iter_mut().for_each(|end| end.settle().unwrap());
    assert_eq!(granted(&segment), before, "no rank has notified");
    ends[4].publish(7).unwrap();
    assert_eq!(granted(&segment), before, "it has told all the same");
    ends[5].draft(6).count = 1;
    ends[5].publish(7).unwrap();
    let taken = granted(&segment) - before;
    assert!((8 << 10..=16 << 10).contains(&taken), "the lines of one rank: {taken} bytes");
    assert!(ends[6].read(5).unwrap().is_none(), "it has published nothing itself");
    ends[6].publish(7).unwrap();
    let mut read =
        |from| ends[6].read(from).unwrap().map(|notification| (notification.word, notification.count));
    assert_eq!((read(4), read(5)), (Some((7, 0)), Some((7, 1))));
    ends.iter_mut().for_each(|end| end.leave(Leave::Finished));
}
