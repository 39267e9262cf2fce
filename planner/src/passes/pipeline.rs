//! Lays out each message as frames: as several if it is pipelined, otherwise as one.
//!
//! ```text
//! pipelined: put w0 0..4096 -> w0 0..4096      frame: put w0 0..2048 -> w0 0..2048
//!                                              frame: put w0 2048..4096 -> w0 2048..4096
//! ```
//!
//! **Requires** nothing. **Ensures** that frames are cut between elements. A frame holds at least
//! one element. A frame of a pipelined message is no longer than the chunk, unless it holds a
//! single element, or a single transfer whose parts would have no short form. The chunk is longer
//! than requested if the message would otherwise have more than `MOST_FRAMES` frames. In a frame,
//! each transfer begins at a multiple of the largest power of two, up to 16, that divides the size
//! of its elements. **Cost** proportional to the frames and, for each, to the pieces of the
//! datatypes that are cut.

use crate::error::Result;
use crate::ids::LinkId;
use crate::ir::chunks::{Chunk, Chunks, Cut};
use crate::ir::pattern::Mode;
use crate::ir::rounds::Rounds;
use crate::ir::routed::{Message, Route, Routed};
use crate::ir::stage::Stage;
use crate::ir::transfers::Transfer;
use crate::machine::Machine;
use crate::options::Options;
use crate::table::Table;

/// The largest number of frames of a message, however long the message is. A frame takes about a
/// hundred bytes of a plan.
const MOST_FRAMES: u64 = 1 << 16;

/// See the [module](self).
pub fn pipeline<'p>(rounds: Rounds<'p>, machine: &Machine, options: &Options) -> Chunks<'p> {
    let Rounds { routed: Routed { patterns, placement, peers, links }, assignments, .. } = rounds;
    let mut shared = vec![false; links.len()];
    for peer in peers.classes.values().flat_map(|class| &class.peers) {
        for link in [peer.sends, peer.receives].into_iter().flatten() {
            shared[link.0 as usize] = peer.shared;
        }
    }
    let links: Table<LinkId, Cut> =
        links.into_values().zip(shared).map(|(route, shared)| cut(route, shared, machine, options)).collect();
    Chunks { cuts: Stage { patterns, placement, peers, links }, assignments }
}

fn cut(route: Route, shared: bool, machine: &Machine, options: &Options) -> Cut {
    let mut frames = Vec::new();
    for (index, message) in route.messages.into_iter().enumerate() {
        let bytes: u64 = message.transfers.iter().map(|transfer| transfer.bytes()).sum();
        let limit = match (message.mode, options.chunk) {
            (Mode::Pipelined, Some(chunk)) => chunk.0,
            (Mode::Pipelined, None) => machine.chunk(shared, bytes),
            _ => u64::MAX,
        };
        let limit = limit.max(bytes.div_ceil(MOST_FRAMES));
        frames_of(message, index, limit, &mut frames);
    }
    Cut { direct: route.direct, frames }
}

fn frames_of(message: Message, index: usize, limit: u64, frames: &mut Vec<Chunk>) {
    let empty = Chunk { message: index, mode: message.mode, transfers: Vec::new(), at: Vec::new(), bytes: 0 };
    let mut frame = empty.clone();
    for transfer in message.transfers {
        let (begun, kept, bytes) = (frames.len(), frame.transfers.len(), frame.bytes);
        if lay_out(&transfer, limit, &empty, &mut frame, frames).is_ok() {
            continue;
        }
        // The parts of this transfer have no short form. Remove the parts that were laid out, and
        // give the transfer a frame of its own.
        frames.push(frame);
        frames.truncate(begun + 1);
        frame = frames.pop().unwrap_or_else(|| empty.clone());
        frame.transfers.truncate(kept);
        frame.at.truncate(kept);
        frame.bytes = bytes;
        if kept > 0 {
            frames.push(std::mem::replace(&mut frame, empty.clone()));
        }
        frame.bytes = transfer.bytes();
        frame.at.push(0);
        frame.transfers.push(transfer);
    }
    frames.push(frame);
}

/// Puts as much of `transfer` into `frame` as there is room for, and the rest into new frames.
fn lay_out(
    transfer: &Transfer,
    limit: u64,
    empty: &Chunk,
    frame: &mut Chunk,
    frames: &mut Vec<Chunk>,
) -> Result<()> {
    let (size, mut first) = (u64::from(transfer.element.size), 0);
    let align = 1 << size.trailing_zeros().min(4);
    while first < transfer.size() {
        let at = frame.bytes.next_multiple_of(align);
        let room = limit.saturating_sub(at) / size;
        if room == 0 && !frame.transfers.is_empty() {
            frames.push(std::mem::replace(frame, empty.clone()));
            continue;
        }
        let count = (transfer.size() - first).min(usize::try_from(room.max(1)).unwrap_or(usize::MAX));
        let whole = count == transfer.size();
        frame.transfers.push(if whole { transfer.clone() } else { transfer.slice(first, count)? });
        frame.at.push(at);
        frame.bytes = at + count as u64 * size;
        first += count;
    }
    Ok(())
}
