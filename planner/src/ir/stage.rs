//! [`Stage`]: the links between ranks, and the content of each of them.

use crate::ids::LinkId;
use crate::ir::pattern::Patterns;
use crate::ir::peers::Peers;
use crate::ir::schedule::Placement;
use crate::table::Table;

/// The links between all ranks. `L` is the type of the content of one link. `L` differs between the
/// passes, so that no pass accepts the stage of another pass.
#[derive(Clone, PartialEq, Debug)]
pub struct Stage<'p, L> {
    /// The patterns that the program requested.
    pub patterns: &'p Patterns,
    /// Which ranks share memory.
    pub placement: Placement,
    /// The classes of ranks, and the links between them.
    pub peers: Peers,
    /// The content of each distinct link.
    pub links: Table<LinkId, L>,
}
