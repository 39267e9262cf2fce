//! [`Facts`]: what one program does, and what passes between its rank and each peer.

use super::error::{Finding, VerifyError};
use crate::ids::{BufferId, ClassId, Delta, OperationId, Rank};
use crate::ir::schedule::{Frame, Program};
use crate::table::Table;
use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;
use std::collections::BTreeMap;

/// The unused bytes that are allowed next to each item that is packed or sent.
const PADDING: u64 = 64;

/// The facts of one program, seen from its own rank. Its lists are in the arena of the verification.
pub(super) struct Facts<'s> {
    pub class: ClassId,
    /// The lowest rank of that class.
    pub rank: Rank,
    pub program: &'s Program,
    /// The use of each buffer.
    pub packed: Table<BufferId, Packed>,
    /// Every rank that the program or the pattern has to do with, itself included where it has.
    pub peers: BTreeMap<Delta, Peer<'s>>,
    /// Own accesses to own windows, and movements to own parts, by instruction.
    pub own: Vec<usize>,
}

/// The use of a buffer in one run.
#[derive(Clone, Copy, Default)]
pub(super) struct Packed {
    /// Bytes in all.
    pub bytes: u64,
    /// The number of times that something is packed into it or sent from it.
    pub things: usize,
    /// The first that is packed into it, by instruction.
    pub first: Option<usize>,
    /// The instruction that awaits its release.
    pub reclaim: Option<usize>,
}

/// The traffic between a rank and one peer, by instruction.
pub(super) struct Peer<'s> {
    /// Frames to the peer, in order.
    pub sent: ArenaVec<'s, Sent<'s>>,
    /// Frames from the peer, in order.
    pub awaited: ArenaVec<'s, Awaited<'s>>,
    pub expose: Option<usize>,
    pub done_in: Option<usize>,
    pub entry_in: Option<usize>,
    pub done_out: Option<usize>,
    /// Copies that touch the peer's windows.
    pub copies: ArenaVec<'s, usize>,
    /// Operations that target the peer and move something.
    pub operations: ArenaVec<'s, OperationId>,
    /// Buffers that are sent to the peer.
    pub buffers: ArenaVec<'s, BufferId>,
}

impl<'s> Peer<'s> {
    /// Nothing passes yet.
    pub fn new(arena: &'s Bump) -> Self {
        Self {
            sent: ArenaVec::new_in(arena),
            awaited: ArenaVec::new_in(arena),
            expose: None,
            done_in: None,
            entry_in: None,
            done_out: None,
            copies: ArenaVec::new_in(arena),
            operations: ArenaVec::new_in(arena),
            buffers: ArenaVec::new_in(arena),
        }
    }
}

/// A frame that is sent.
pub(super) struct Sent<'s> {
    pub instruction: usize,
    pub frame: Frame,
    /// For data: from which byte of its buffer.
    pub at: u64,
    /// For data: its packed bytes, ascending: first byte and past the last in the buffer, and the instruction.
    pub packs: ArenaVec<'s, (u64, u64, usize)>,
    /// For data: what is combined into them.
    pub folds: ArenaVec<'s, Folded>,
    pub buffer: BufferId,
}

/// A combination into packed bytes: the range of the bytes, and the instruction.
#[derive(Clone, Copy)]
pub(super) struct Folded {
    pub low: u64,
    pub high: u64,
    pub instruction: usize,
}

/// A frame that is awaited.
pub(super) struct Awaited<'s> {
    pub instruction: usize,
    pub frame: Frame,
    pub unpacks: ArenaVec<'s, usize>,
    /// The instruction that releases a data frame.
    pub released: usize,
}

impl<'s> Facts<'s> {
    /// The executor allocates the buffers of a program, so they may hold little more than what is packed.
    pub fn lengths(&self) -> Result<(), VerifyError> {
        for (id, buffer) in self.program.buffers.iter() {
            let Packed { bytes, things, .. } = self.packed[id];
            if buffer.bytes > bytes.saturating_add(PADDING * (things as u64)) {
                let what = format!("{id} has {} bytes for {bytes} that are packed into it", buffer.bytes);
                return Err(VerifyError::Malformed(self.finding(self.rank, None, what)));
            }
        }
        Ok(())
    }

    /// A finding about an instruction of this program.
    pub fn finding(&self, rank: Rank, instruction: Option<usize>, what: String) -> Box<Finding> {
        Box::new(Finding { rank, class: self.class, instruction, operation: None, what })
    }
}
