//! [`Chunks`]: the contents of each frame.

use crate::ids::ClassId;
use crate::ir::pattern::Mode;
use crate::ir::rounds::RoundAssignment;
use crate::ir::stage::Stage;
use crate::ir::transfers::Transfer;
use crate::table::Table;

/// All messages with their modes, their rounds and their frames.
#[derive(Clone, PartialEq, Debug)]
pub struct Chunks<'p> {
    /// The contents of each link, frame by frame.
    pub cuts: Stage<'p, Cut>,
    /// The rounds of each class's links, peer by peer.
    pub assignments: Table<ClassId, Vec<RoundAssignment>>,
}

/// The contents of a link: its direct copies and its frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Transfers that their origin copies from source to target.
    pub direct: Vec<Transfer>,
    /// The frames, in the order in which they are sent; answers to gets come first.
    pub frames: Vec<Chunk>,
}

/// The contents of one frame: a message, or a piece of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// The index of the message, among the packed messages of the link.
    pub message: usize,
    /// The message's mode.
    pub mode: Mode,
    /// The transfers that the frame carries, in order.
    pub transfers: Vec<Transfer>,
    /// The byte of the frame at which each transfer begins.
    pub at: Vec<u64>,
    /// The total number of bytes.
    pub bytes: u64,
}

impl Cut {
    /// Returns all transfers, or pieces of them: the direct ones, then frame by frame.
    pub fn transfers(&self) -> impl Iterator<Item = &Transfer> {
        self.direct.iter().chain(self.frames.iter().flat_map(|frame| &frame.transfers))
    }

    /// Returns whether the sender copies into the receiver's windows.
    pub fn stores(&self) -> bool {
        self.direct.iter().any(|transfer| !transfer.is_answer())
    }

    /// Returns whether the receiver copies out of the sender's windows.
    pub fn loads(&self) -> bool {
        self.direct.iter().any(Transfer::is_answer)
    }
}
