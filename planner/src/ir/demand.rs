//! [`Demand`]: the messages, bytes and operations that each rank sends and must expect.

use crate::ids::ClassId;
use crate::table::Table;
use crate::units::Bytes;

/// The load of each rank, by class of [`Routed`](super::routed::Routed).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demand {
    /// The load of a rank of each class.
    pub classes: Table<ClassId, Load>,
    /// The largest number of messages that a rank sends or receives. No order of issue has fewer
    /// rounds.
    pub h: u32,
}

/// The load of one rank. What the rank sends to itself is not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// Messages sent; all direct copies to one peer count as one.
    pub messages_out: u32,
    /// Messages received; all direct copies from one peer count as one.
    pub messages_in: u32,
    /// Bytes sent.
    pub bytes_out: Bytes,
    /// Bytes received.
    pub bytes_in: Bytes,
    /// Operations whose elements arrive: puts and accumulates of other ranks, and the rank's own
    /// gets.
    pub operations_in: u32,
}
