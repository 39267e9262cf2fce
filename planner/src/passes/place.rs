//! Assigns every frame a position in a buffer, and every buffer a number of copies.
//!
//! ```text
//! l0: frame 24 B, frame 8 B      l0: frame 24 B at 0, frame 8 B at 32
//! c0: +1 sends l0                c0: +1 sends l0, buffer 40 B x 2
//! ```
//!
//! All frames to one peer are in one buffer, one after another. Two copies, used in turn, are
//! enough if the peer sends a frame back in every run. Before the peer sends that frame, it has
//! released all frames of the previous run. If the peer sends nothing, the sender awaits the
//! release of a copy before it writes to the copy again (W4).
//!
//! The cap limits all staging memory of a rank. If two copies of every buffer exceed the cap, the
//! longest buffers get a single copy, whose release is awaited as well. A run then waits until the
//! peer has read the frames of the previous run.
//!
//! **Requires** nothing.
//! **Ensures** that frames begin at multiples of 16 bytes and do not overlap. The peak is known. It
//! exceeds [`Options::cap`] only if a single copy of each buffer exceeds the cap.
//! **Cost** proportional to the links and classes.

use crate::ids::{ClassId, Delta, LinkId};
use crate::ir::chunks::{Chunks, Cut};
use crate::ir::peers::Peer;
use crate::ir::placed::{Placed, Staging};
use crate::options::Options;
use crate::table::Table;
use crate::units::Bytes;

/// See the [module](self).
pub fn place<'p>(chunks: Chunks<'p>, options: &Options) -> Placed<'p> {
    let (mut at, mut sizes): (Table<LinkId, Vec<u64>>, Table<LinkId, u64>) = (Table::new(), Table::new());
    for cut in chunks.cuts.links.values() {
        let mut end = 0_u64;
        at.push(
            cut.frames
                .iter()
                .map(|frame| {
                    let start = end.next_multiple_of(16);
                    end = start + frame.bytes;
                    start
                })
                .collect(),
        );
        sizes.push(end);
    }
    let staging = |peer: &Peer| {
        let bytes = sizes[peer.sends?];
        let reclaim = peer.delta != Delta::SELF && !flows_back(peer, &chunks.cuts.links);
        (bytes > 0).then_some(Staging { bytes, copies: 2, reclaim })
    };
    let buffers: Table<ClassId, Vec<Option<Staging>>> = chunks
        .cuts
        .peers
        .classes
        .values()
        .map(|class| {
            let mut row: Vec<Option<Staging>> = class.peers.iter().map(staging).collect();
            within(&mut row, options.cap.map_or(u64::MAX, |cap| cap.0), &class.peers);
            row
        })
        .collect();
    let peak = Bytes(buffers.values().map(|row| all(row)).max().unwrap_or(0));
    Placed { chunks, at, buffers, peak }
}

/// Returns the bytes of all copies of all buffers.
fn all(row: &[Option<Staging>]) -> u64 {
    row.iter().flatten().map(|staging| staging.bytes * u64::from(staging.copies)).sum()
}

/// Reduces buffers to one copy instead of two, longest first, until all copies together take at
/// most `cap` bytes.
fn within(row: &mut [Option<Staging>], cap: u64, peers: &[Peer]) {
    let mut total = all(row);
    let mut by_length: Vec<usize> = (0..row.len()).collect();
    by_length.sort_by_key(|&place| std::cmp::Reverse(row[place].map_or(0, |staging| staging.bytes)));
    for place in by_length {
        if total <= cap {
            return;
        }
        if let Some(staging) = &mut row[place] {
            (staging.copies, staging.reclaim) = (1, peers[place].delta != Delta::SELF);
            total -= staging.bytes;
        }
    }
}

/// Returns whether the peer sends this rank a frame of any kind in every run.
fn flows_back(peer: &Peer, links: &Table<LinkId, Cut>) -> bool {
    let data_back = peer.receives.is_some_and(|link| !links[link].frames.is_empty());
    // A rank that touches another rank's windows awaits that rank's entry and sends that rank a
    // done.
    let touches = |cut: &Cut| !cut.direct.is_empty();
    data_back || [peer.sends, peer.receives].into_iter().flatten().any(|link| touches(&links[link]))
}
