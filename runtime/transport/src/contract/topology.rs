//! [`Topology`]: the ranks of a world, and the ranks whose memory this rank can access.
//!
//! There are three relations between two ranks, and each implies the next. They may be *threads of
//! one process*, and pass values of Rust types by reference. They may *reach* each other, and read
//! each other's shared memory in place. They always exchange bytes.

/// The ranks of a world, and the ranks whose memory this rank can access.
#[enum_dispatch::enum_dispatch]
pub trait Topology {
    /// Returns this rank.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn size(&self) -> usize;

    /// Returns whether this rank can access the memory of `peer`. If so, the windows of `peer` and
    /// the payloads that `peer` posts have the same addresses on both ranks.
    fn reaches(&self, peer: usize) -> bool;

    /// Returns whether `peer` is a thread of this process, so that values of Rust types may be
    /// passed by reference. Implies [`reaches`](Self::reaches).
    fn shares(&self, peer: usize) -> bool {
        self.reaches(peer)
    }

    /// Returns the host of `peer`. Two ranks reach each other if and only if their hosts are equal.
    /// By default, either all ranks reach one another or none do.
    fn host(&self, peer: usize) -> usize {
        if self.reaches(peer) { 0 } else { peer }
    }

    /// Returns the machine of `peer`. Ranks with equal machines share the cores of that machine,
    /// even if they do not reach each other. All ranks of a world agree on whether two ranks share
    /// a machine. By default this is the [`host`](Self::host).
    fn machine(&self, peer: usize) -> usize {
        self.host(peer)
    }
}
