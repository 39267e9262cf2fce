//! Lines of a pair. Each rank reads the posts and accesses that the other rank has written for it,
//! until both ranks have closed the port.

use crate::ends::*;
use fencepost_transport::{Channels, Endpoint, Liveness, PairLines, Port, Record, Topology};
use std::ptr::NonNull;

const PORT: Port = Port(9);

/// Returns the word that `from` writes for `to` in a round.
fn word(from: usize, to: usize, round: u64) -> u64 {
    1000 * round + 10 * from as u64 + to as u64
}

fn lines<'l>(lines: NonNull<PairLines>) -> &'l PairLines {
    // SAFETY: the lines stay until this rank closes the port, and the test uses them before that.
    unsafe { lines.as_ref() }
}

/// Waits until `from` has created the lines that it writes for this rank, and returns them.
fn lines_of<'l>(end: &mut Endpoint, from: usize) -> &'l PairLines {
    lines(wait(end, |end| Ok(end.lines_of(from, PORT))).unwrap())
}

#[test]
fn lines_are_there_where_memory_is_reached_and_posts_and_accesses_are_read_there_in_order() {
    for size in 2..=4 {
        on_all(size, |end| {
            let me = end.rank();
            let others: Vec<usize> = (0..size).filter(|&peer| peer != me).collect();
            for &peer in &others {
                assert!(end.lines_of(peer, Port(8)).is_none(), "nobody has made any on this port");
                let (mine, again) = (end.lines(peer, PORT), end.lines(peer, PORT));
                assert_eq!((mine.is_some(), mine), (end.reaches(peer), again));
            }
            let reached: Vec<usize> = others.into_iter().filter(|&peer| end.reaches(peer)).collect();
            for round in 0..100 {
                for &peer in &reached {
                    let mine = lines(end.lines(peer, PORT).unwrap());
                    // SAFETY: the peer has read this rank's lines of the round before the previous
                    // one, as its post of the previous round shows.
                    unsafe { mine.post(round, word(me, peer, round)) };
                    end.wake(peer);
                }
                for &peer in &reached {
                    let theirs = lines_of(end, peer);
                    let posted = wait(end, |_| Ok(theirs.posted(round))).unwrap();
                    assert_eq!(posted, word(peer, me, round));
                    let record = Record { head: round, value: word(me, peer, round) };
                    let records = [record; 2];
                    // SAFETY: as above.
                    unsafe {
                        lines(end.lines(peer, PORT).unwrap()).end(
                            round,
                            round,
                            &records[..round as usize % 3],
                        )
                    };
                    end.wake(peer);
                }
                for &peer in &reached {
                    let theirs = lines_of(end, peer);
                    let (number, records) = wait(end, |_| Ok(theirs.ended(round))).unwrap();
                    assert_eq!(number, round);
                    // SAFETY: there is room for two records, and these were written.
                    let records = unsafe { std::slice::from_raw_parts(records, round as usize % 3) };
                    let value = word(peer, me, round);
                    assert!(records.iter().all(|record| *record == Record { head: round, value }));
                }
            }
            end.close(PORT);
        });
    }
}
