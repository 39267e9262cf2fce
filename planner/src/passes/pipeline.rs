//! Each message is laid out as frames: one, or, where it is pipelined, several.
//!
//! ```text
//! pipelined: put w0 0..4096 -> w0 0..4096      frame: put w0 0..2048 -> w0 0..2048
//!                                              frame: put w0 2048..4096 -> w0 2048..4096
//! ```
//!
//! **Requires** nothing. **Ensures** a frame is cut at elements; it holds at least one, and beyond that at most the
//! model's chunk, if it is pipelined; in a frame each transfer begins at a multiple of the largest
//! power of two, up to 16, that its elements' size is a multiple of. **Cost** follows the frames and, for each, the
//! pieces of the datatypes cut.

use crate::ids::LinkId;
use crate::ir::chunks::{Chunk, Chunks, Cut};
use crate::ir::pattern::Mode;
use crate::ir::rounds::Rounds;
use crate::ir::routed::{Message, Ways};
use crate::machine::Machine;
use crate::options::Options;
use crate::table::Table;

/// See the [module](self).
pub fn pipeline<'p>(rounds: Rounds<'p>, machine: &Machine, options: &Options) -> Chunks<'p> {
    let Rounds { patterns, placement, peers, links, turns, rounds, demand } = rounds;
    let mut shared = vec![false; links.len()];
    for peer in peers.classes.values().flat_map(|class| &class.peers) {
        for link in [peer.sends, peer.receives].into_iter().flatten() {
            shared[link.0 as usize] = peer.shared;
        }
    }
    let links: Table<LinkId, Cut> =
        links.into_values().zip(shared).map(|(ways, shared)| cut(ways, shared, machine, options)).collect();
    Chunks { patterns, placement, peers, links, turns, rounds, demand }
}

fn cut(ways: Ways, shared: bool, machine: &Machine, options: &Options) -> Cut {
    let mut frames = Vec::new();
    for (index, message) in ways.messages.into_iter().enumerate() {
        let bytes: u64 = message.transfers.iter().map(|transfer| transfer.bytes()).sum();
        let limit = match (message.mode, options.chunk) {
            (Mode::Pipelined, Some(chunk)) => chunk.0,
            (Mode::Pipelined, None) => machine.chunk(shared, bytes),
            _ => u64::MAX,
        };
        frames_of(message, index, limit, &mut frames);
    }
    Cut { direct: ways.direct, frames }
}

fn frames_of(message: Message, index: usize, limit: u64, frames: &mut Vec<Chunk>) {
    let empty =
        || Chunk { message: index, mode: message.mode, transfers: Vec::new(), at: Vec::new(), bytes: 0 };
    let mut frame = empty();
    for transfer in message.transfers {
        let (size, mut first) = (u64::from(transfer.element.size), 0);
        let align = 1 << size.trailing_zeros().min(4);
        while first < transfer.size() {
            let at = frame.bytes.next_multiple_of(align);
            let room = limit.saturating_sub(at) / size;
            if room == 0 && !frame.transfers.is_empty() {
                frames.push(std::mem::replace(&mut frame, empty()));
                continue;
            }
            let count = (transfer.size() - first).min(usize::try_from(room.max(1)).unwrap_or(usize::MAX));
            frame.at.push(at);
            frame.bytes = at + count as u64 * size;
            let whole = count == transfer.size();
            frame.transfers.push(if whole { transfer.clone() } else { transfer.slice(first, count) });
            first += count;
        }
    }
    frames.push(frame);
}
