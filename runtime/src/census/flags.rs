//! The flags of notifications.

/// The superstep of this rank failed: nothing may be applied.
pub(crate) const FAILED: u32 = 1;
/// The gets of this rank read memory of the receiver.
pub(crate) const READS: u32 = 2;
/// The operations of this rank differ from its operations in the last epoch that a fence at this
/// line ended.
pub(crate) const CHANGED: u32 = 4;
/// Sections for the receiver are exposed: the receiver reads memory of this rank.
pub(crate) const EXPOSES: u32 = 8;
/// The outbox lists everything that this rank reads from the receiver's memory.
pub(crate) const LISTED: u32 = 16;
/// In a census: among the ranks whose contributions have reached this rank, some are in different
/// calls.
pub(crate) const DIFFERS: u32 = 32;
/// In a census: some ranks have something for only a few others
/// ([`dense`](fencepost_planner::census::dense)).
pub(crate) const FEW: u32 = 64;
/// The flags that reach all ranks if any rank has them. The other flags concern only two ranks.
pub(crate) const OF_ALL: u32 = FAILED | CHANGED | DIFFERS | FEW;
/// The first bit of an eight-bit digest in the flags. The digest is of the prepared supersteps that
/// were run since the last exchange in which all ranks agreed.
pub(crate) const RUNS: u32 = 8;
/// The first bit of the number of the call that the rank is in.
pub(crate) const CALL: u32 = 16;
