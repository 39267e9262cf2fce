//! [`Traffic`] and [`EpochKind`]: what a rank can read of its last epochs.

/// The traffic of this rank in dynamic epochs so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Successful epochs.
    pub epochs: u64,
    /// Frames sent.
    pub messages: u64,
    /// Bytes sent in them.
    pub bytes: u64,
    /// Of those, bytes that describe operations.
    pub described: u64,
}

/// The kind of an epoch that was not prepared, by what is known of its operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochKind {
    /// Some rank's operations were not those of the last epoch that the same line ended there: they were described.
    /// Also in a world where some ranks reach each other's memory: what they do there is read in place, and nobody
    /// remembers it.
    Dynamic,
    /// Every rank's operations were those of the last epoch that the same line ended: nothing was described.
    Replayed,
}
