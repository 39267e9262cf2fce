//! [`Placed`]: where each frame is stored until it is released.

use crate::ids::{ClassId, LinkId};
use crate::ir::chunks::Chunks;
use crate::table::Table;
use crate::units::Bytes;

/// The frames and their positions in buffers.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed<'p> {
    /// The frames.
    pub chunks: Chunks<'p>,
    /// For each link, the byte at which each of its frames begins in the buffer for the peer.
    pub at: Table<LinkId, Vec<u64>>,
    /// For each class, the buffer for each peer to which it sends frames.
    pub buffers: Table<ClassId, Vec<Option<Staging>>>,
    /// The largest number of bytes of buffers that one rank needs, all copies together.
    pub peak: Bytes,
}

/// A buffer from which frames to one peer are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Staging {
    /// Bytes of one copy.
    pub bytes: u64,
    /// The number of copies, used in turn.
    pub copies: u32,
    /// Whether the sender must await the release of a copy before it writes that copy again. It
    /// must do so if the peer is another rank, and either there is a single copy or the peer does
    /// not send a frame back in every run.
    pub reclaim: bool,
}
