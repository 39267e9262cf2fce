//! [`Stage`]: the links between ranks, and what each of them holds.

use crate::ids::LinkId;
use crate::ir::pattern::Patterns;
use crate::ir::peers::Peers;
use crate::ir::schedule::Placement;
use crate::table::Table;

/// The links between all ranks, where `L` is what one link holds: the passes differ by it, so that none takes the
/// stage of another.
#[derive(Clone, PartialEq, Debug)]
pub struct Stage<'p, L> {
    /// The patterns that the program asked for.
    pub patterns: &'p Patterns,
    /// Which ranks share memory.
    pub placement: Placement,
    /// The classes of ranks, and the links between them.
    pub peers: Peers,
    /// The content of each distinct link.
    pub links: Table<LinkId, L>,
}
