//! [`Peers`]: ranks grouped by their operations and by the operations of other ranks on them. Every
//! stage before `lower` refers to a [`Peers`].
//!
//! Everything that goes from one rank to another is a *link*. A link is interned by content, and
//! both of its ends store its id. A pass stores its decision about a link only once, in the link,
//! so the two ends of the link cannot disagree.

use crate::ids::{ClassId, Delta, LinkId};
use crate::table::Table;

/// The ranks by class, with their peers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peers {
    /// Each distinct neighbourhood.
    pub classes: Table<ClassId, RankClass>,
    /// The class of each rank, by rank.
    pub class_of: Vec<ClassId>,
}

/// A rank's neighbourhood, the same for all ranks of the class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankClass {
    /// The pattern of the class, in [`Patterns::classes`](crate::ir::pattern::Patterns::classes).
    pub pattern: ClassId,
    /// The ranks that a rank of the class communicates with, by ascending delta. The rank itself is
    /// among them if it has operations on itself.
    pub peers: Vec<Peer>,
    /// The smallest valid length of each window, for the rank's own sections and for the operations
    /// of other ranks.
    pub least_len: Vec<usize>,
}

/// A peer of a rank, and the links to and from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The peer's position relative to this rank.
    pub delta: Delta,
    /// Whether the peer and this rank share memory.
    pub shared: bool,
    /// The link to the peer.
    pub sends: Option<LinkId>,
    /// The link from the peer. For the rank itself, `sends` and `receives` both hold its link to
    /// itself.
    pub receives: Option<LinkId>,
}

impl RankClass {
    /// Returns the links that leave this rank for another one, deltas ascending.
    pub fn out(&self) -> impl Iterator<Item = (Delta, LinkId)> + '_ {
        self.others().filter_map(|peer| Some((peer.delta, peer.sends?)))
    }

    /// Returns the links that arrive from another rank, deltas ascending.
    pub fn into(&self) -> impl Iterator<Item = (Delta, LinkId)> + '_ {
        self.others().filter_map(|peer| Some((peer.delta, peer.receives?)))
    }

    /// Returns the link from this rank to itself.
    pub fn own(&self) -> Option<LinkId> {
        self.place(Delta::SELF).and_then(|place| self.peers[place].sends)
    }

    /// Returns the index in `peers` of the peer at `delta`.
    pub fn place(&self, delta: Delta) -> Option<usize> {
        self.peers.binary_search_by_key(&delta, |peer| peer.delta).ok()
    }

    fn others(&self) -> impl Iterator<Item = &Peer> + '_ {
        self.peers.iter().filter(|peer| peer.delta != Delta::SELF)
    }
}
