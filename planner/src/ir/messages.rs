//! [`Messages`]: what travels, and between whom: one message a link.

use crate::ids::LinkId;
use crate::ir::pattern::Patterns;
use crate::ir::peers::Peers;
use crate::ir::schedule::Placement;
use crate::ir::transfers::Transfer;
use crate::table::Table;

/// What travels.
#[derive(Clone, PartialEq, Debug)]
pub struct Messages<'p> {
    /// What was asked for.
    pub patterns: &'p Patterns,
    /// Which ranks share memory.
    pub placement: Placement,
    /// Who sends what to whom.
    pub peers: Peers,
    /// The one message of each link: answers first; what one and the same window is written with stands together.
    pub links: Table<LinkId, Vec<Transfer>>,
}
