//! [`Topology`]: the ranks of a world, and whose memory can be accessed from where.
//!
//! Three relations hold between two ranks, each implying the next: they are *threads of one process*, and hand over
//! values of Rust types by reference; they *reach* each other, and read each other's shared memory in place; they
//! exchange bytes.

/// The ranks of a world, and whose memory can be accessed from where.
#[enum_dispatch::enum_dispatch]
pub trait Topology {
    /// Returns this rank.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn size(&self) -> usize;

    /// Returns whether this rank can access the memory of `peer`: its windows, and the payloads that it posts, have the
    /// same addresses for both.
    fn reaches(&self, peer: usize) -> bool;

    /// Returns whether `peer` is a thread of this process, so that values of Rust types may be handed over by
    /// reference. Implies [`reaches`](Self::reaches).
    fn shares(&self, peer: usize) -> bool {
        self.reaches(peer)
    }

    /// Returns the host of `peer`: two ranks reach each other if and only if their hosts are equal. By default, either
    /// all ranks reach one another or none do.
    fn host(&self, peer: usize) -> usize {
        if self.reaches(peer) { 0 } else { peer }
    }

    /// Returns the machine of `peer`: ranks whose machines are equal share its cores, whether they reach each other or not.
    /// All ranks of a world say the same of any two. By default the [`host`](Self::host).
    fn machine(&self, peer: usize) -> usize {
        self.host(peer)
    }
}
