//! [`CreateJoin`]: a new world of some ranks of this one.
//!
//! The first member creates the world, and so does the first member on each [`host`](crate::Topology::host). Where that
//! gives a number, they hand it to the other members, and each member then joins. Threads of one process get their ends
//! at once, from the first member.

use std::io;

use crate::{Endpoint, Number};

/// A new world, as the rank that has created it can hand it to the others.
pub enum Created {
    /// Its number, by which each member joins it.
    Number(Number),
    /// The end of each member, in their order: the ranks are threads of this process.
    Ends(Vec<Endpoint>),
}

/// A new world of some ranks of this one.
#[enum_dispatch::enum_dispatch]
pub trait CreateJoin {
    /// Creates a world of these ranks, in their order in it.
    ///
    /// # Errors
    /// There is no room for it, or a member is no rank of this world.
    fn create(&mut self, members: &[usize]) -> io::Result<Created>;

    /// Returns this rank's end of the world that [`create`](Self::create) gave this number to: the world's number by
    /// its first member, the part's by the first member on this rank's host. This rank is `members[index]`. A rank
    /// joins each world once.
    ///
    /// # Errors
    /// No world has this number, or there is no room; threads of one process join none.
    fn join(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        let _ = (number, members, index);
        Err(io::ErrorKind::Unsupported.into())
    }
}
