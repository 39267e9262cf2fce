//! [`Demand`]: who must expect what.

use crate::ids::ClassId;
use crate::table::Table;
use crate::units::Bytes;

/// What leaves and reaches each rank, by class of [`Routed`](super::routed::Routed).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demand {
    /// By class.
    pub classes: Table<ClassId, Load>,
    /// The most messages that any rank sends or receives: no order of issue has fewer rounds.
    pub h: u32,
}

/// What leaves and reaches one rank; what it sends itself is not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// Messages that leave, the direct copies to one peer being one.
    pub messages_out: u32,
    /// Messages that arrive, the direct copies from one peer being one.
    pub messages_in: u32,
    /// Bytes that leave.
    pub bytes_out: Bytes,
    /// Bytes that arrive.
    pub bytes_in: Bytes,
    /// Operations whose elements arrive: puts and accumulates of others, and gets of its own.
    pub operations_in: u32,
}
