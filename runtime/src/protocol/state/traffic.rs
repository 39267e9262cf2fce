//! [`Traffic`] and [`EpochKind`]: what a rank can read about its last epochs.

/// The traffic of this rank in dynamic epochs so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// The number of successful epochs.
    pub epochs: u64,
    /// The number of frames sent.
    pub messages: u64,
    /// The number of bytes sent in them.
    pub bytes: u64,
    /// The number of those bytes that describe operations.
    pub described: u64,
}

/// The kind of an epoch that was not prepared, by what is known of its operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochKind {
    /// Some rank's operations differed from those of the last epoch that the same line ended there,
    /// so they were described. This is also the kind in a world in which some ranks reach each
    /// other's memory, since their operations are read in place and not remembered.
    Dynamic,
    /// Every rank's operations were the same as in the last epoch that the same line ended, so
    /// nothing was described.
    Replayed,
}
