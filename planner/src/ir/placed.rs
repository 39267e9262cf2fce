//! [`Placed`]: where each frame is stored until it is released.

use crate::ids::{ClassId, LinkId};
use crate::ir::chunks::Chunks;
use crate::table::Table;
use crate::units::Bytes;

/// The frames, and their positions in buffers.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed<'p> {
    /// The frames.
    pub chunks: Chunks<'p>,
    /// For each link, at which byte of the buffer to that peer each of its frames begins.
    pub at: Table<LinkId, Vec<u64>>,
    /// For each class, the buffer to each peer that it sends frames to.
    pub buffers: Table<ClassId, Vec<Option<Staging>>>,
    /// The most bytes of buffers that one rank needs, all copies together.
    pub peak: Bytes,
}

/// A buffer that frames to one peer are sent from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Staging {
    /// Bytes of one copy.
    pub bytes: u64,
    /// The number of copies, used in turn.
    pub copies: u32,
    /// Whether the sender must await a copy's release before it writes the copy again, since the peer does not send it
    /// a frame in every run.
    pub reclaim: bool,
}
