//! [`Rounds`]: the order of issue.

use crate::ids::{ClassId, RoundId};
use crate::ir::routed::Routed;
use crate::table::Table;
use smallvec::SmallVec;

/// All messages with their modes and their rounds.
#[derive(Clone, PartialEq, Debug)]
pub struct Rounds<'p> {
    /// All messages; classes of ranks of this stage differ if their rounds do.
    pub routed: Routed<'p>,
    /// The rounds of each class's links, peer by peer.
    pub assignments: Table<ClassId, Vec<RoundAssignment>>,
    /// The number of rounds.
    pub rounds: u32,
    /// The least number of rounds that there could be: [`Demand::h`](super::demand::Demand::h).
    pub h: u32,
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
