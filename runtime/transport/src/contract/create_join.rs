//! [`CreateJoin`]: a new world of some ranks of this one.
//!
//! The first member creates the world, and so does the first member on each [`host`](crate::Topology::host); they hand
//! their numbers to the other members, and each member then joins.

use std::io;

use crate::{Endpoint, Number};

/// A new world of some ranks of this one.
#[enum_dispatch::enum_dispatch]
pub trait CreateJoin {
    /// Creates a world of these ranks, in their order in it. Returns `None` where the program that started the ranks
    /// creates worlds, as for threads of one process.
    ///
    /// # Errors
    /// There is no room for it.
    fn create(&mut self, members: &[usize]) -> io::Result<Option<Number>> {
        let _ = members;
        Ok(None)
    }

    /// Returns this rank's end of the world that [`create`](Self::create) gave this number to: the world's number by
    /// its first member, the part's by the first member on this rank's host. This rank is `members[index]`. A rank
    /// joins each world once.
    ///
    /// # Errors
    /// No world has this number, or there is no room.
    fn join(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        let _ = (number, members, index);
        Err(io::ErrorKind::Unsupported.into())
    }
}
