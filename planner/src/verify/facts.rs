//! [`Facts`]: the effects of one program, and the traffic between its rank and each peer.

use super::error::{Finding, VerifyError};
use crate::ids::{BufferId, ClassId, Delta, OperationId, Rank};
use crate::ir::schedule::{Frame, Program};
use crate::table::Table;
use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;
use std::collections::BTreeMap;

/// The number of unused bytes that a buffer may have for each pack into it and each send from it.
const PADDING: u64 = 64;

/// The facts of one program, as seen from its own rank. Its lists are allocated in the arena of the
/// verification.
pub(super) struct Facts<'s> {
    pub class: ClassId,
    /// The lowest rank of the class.
    pub rank: Rank,
    pub program: &'s Program,
    /// The use of each buffer.
    pub packed: Table<BufferId, Packed>,
    /// Every rank that the program or the pattern refers to, which may include the rank itself.
    pub peers: BTreeMap<Delta, Peer<'s>>,
    /// The instructions that access the rank's own windows or move elements to its own parts.
    pub own: Vec<usize>,
}

/// The use of a buffer in one run.
#[derive(Clone, Copy, Default)]
pub(super) struct Packed {
    /// The number of bytes that are packed into the buffer.
    pub bytes: u64,
    /// The number of packs into the buffer and sends from it.
    pub things: usize,
    /// The first instruction that packs into the buffer.
    pub first: Option<usize>,
    /// The instruction that awaits the release of the buffer.
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
    /// The copies that touch the peer's windows.
    pub copies: ArenaVec<'s, usize>,
    /// The operations that target the peer and move something.
    pub operations: ArenaVec<'s, OperationId>,
    /// The buffers that are sent to the peer.
    pub buffers: ArenaVec<'s, BufferId>,
}

impl<'s> Peer<'s> {
    /// Creates the record of a peer without any traffic yet.
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
    /// For data: the first byte of the frame in its buffer.
    pub at: u64,
    /// For data: the packed bytes of the frame, ascending. Each entry holds the first byte in the
    /// buffer, the end, and the instruction.
    pub packs: ArenaVec<'s, (u64, u64, usize)>,
    /// For data: the combinations into the packed bytes.
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
    /// Checks that no buffer is much longer than what is packed into it, since the executor
    /// allocates every buffer with the length that the program states.
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

    /// Creates a finding about an instruction of this program.
    pub fn finding(&self, rank: Rank, instruction: Option<usize>, what: String) -> Box<Finding> {
        Box::new(Finding { rank, class: self.class, instruction, operation: None, what })
    }
}
