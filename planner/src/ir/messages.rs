//! [`Messages`]: the elements that travel between each two ranks: one message a link.

use crate::ids::LinkId;
use crate::ir::pattern::Patterns;
use crate::ir::peers::Peers;
use crate::ir::schedule::Placement;
use crate::ir::transfers::Transfer;
use crate::table::Table;

/// One message for each link.
#[derive(Clone, PartialEq, Debug)]
pub struct Messages<'p> {
    /// The patterns that the program asked for.
    pub patterns: &'p Patterns,
    /// Which ranks share memory.
    pub placement: Placement,
    /// The classes of ranks, and the links between them.
    pub peers: Peers,
    /// The message of each link: answers first; transfers into the same window are adjacent.
    pub links: Table<LinkId, Vec<Transfer>>,
}
