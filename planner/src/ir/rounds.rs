//! [`Rounds`]: the order of issue.

use crate::ids::{ClassId, LinkId, RoundId};
use crate::ir::demand::Demand;
use crate::ir::pattern::Patterns;
use crate::ir::peers::Peers;
use crate::ir::routed::Route;
use crate::ir::schedule::Placement;
use crate::table::Table;
use smallvec::SmallVec;

/// All messages with their modes and their rounds.
#[derive(Clone, PartialEq, Debug)]
pub struct Rounds<'p> {
    /// The patterns that the program asked for.
    pub patterns: &'p Patterns,
    /// Which ranks share memory.
    pub placement: Placement,
    /// The classes of ranks, and the links between them.
    pub peers: Peers,
    /// The routes of each link.
    pub links: Table<LinkId, Route>,
    /// The rounds of each class's links, peer by peer.
    pub assignments: Table<ClassId, Vec<RoundAssignment>>,
    /// The number of rounds.
    pub rounds: u32,
    /// The load of each rank, by class of this stage.
    pub demand: Demand,
}

/// The rounds of the links to and from one peer, ascending: first the direct copies' if there are any, then each
/// message's. Empty for what a rank sends itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RoundAssignment {
    /// Of what is sent to it.
    pub sends: SmallVec<[RoundId; 1]>,
    /// Of what it sends.
    pub receives: SmallVec<[RoundId; 1]>,
}
