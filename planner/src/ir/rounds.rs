//! [`Rounds`]: the order in which messages are issued.

use crate::ids::{ClassId, RoundId};
use crate::ir::routed::Routed;
use crate::table::Table;
use smallvec::SmallVec;

/// All messages with their modes and their rounds.
#[derive(Clone, PartialEq, Debug)]
pub struct Rounds<'p> {
    /// All messages. In this stage, ranks with different rounds are in different classes.
    pub routed: Routed<'p>,
    /// The rounds of each class's links, peer by peer.
    pub assignments: Table<ClassId, Vec<RoundAssignment>>,
    /// The number of rounds.
    pub rounds: u32,
    /// The smallest possible number of rounds: [`Demand::h`](super::demand::Demand::h).
    pub h: u32,
}

/// The rounds of the links to and from one peer, ascending: first the round of the direct copies,
/// if there are any, then the round of each message. Both lists are empty for the rank itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RoundAssignment {
    /// The rounds of the link to the peer.
    pub sends: SmallVec<[RoundId; 1]>,
    /// The rounds of the link from the peer.
    pub receives: SmallVec<[RoundId; 1]>,
}
