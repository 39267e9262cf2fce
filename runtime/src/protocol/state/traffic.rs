//! [`Traffic`] and [`EpochKind`]: data about past epochs that a rank can read.

/// The traffic of this rank in dynamic epochs so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// The number of successful epochs.
    pub epochs: u64,
    /// The number of frames sent.
    pub messages: u64,
    /// The number of bytes sent in these frames.
    pub bytes: u64,
    /// The number of those bytes that describe operations.
    pub described: u64,
}

/// The kind of an epoch that was not prepared. It depends on whether the operations were described.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochKind {
    /// The operations were described, since on some rank they differed from those of the last epoch
    /// that the same line ended on that rank. If some ranks of a world reach each other's memory,
    /// all epochs of the world are of this kind, since operations of such ranks are read in place
    /// and not remembered.
    Dynamic,
    /// Every rank's operations were the same as in the last epoch that the same line ended, so
    /// nothing was described.
    Replayed,
}
