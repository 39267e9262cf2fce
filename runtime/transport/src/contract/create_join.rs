//! [`CreateJoin`]: a new world of some ranks of this one.
//!
//! The first member of the new world calls `create`, and so does the first member on each
//! [`host`](crate::Topology::host). If `create` returns a number, these members pass the number to
//! the other members, and then each member joins. Threads of one process receive their ends at
//! once, from the first member.

use std::io;

use crate::{Endpoint, Number};

/// A new world, in the form in which its creator passes it to the other members.
pub enum Created {
    /// The world's number, by which each member joins it.
    Number(Number),
    /// The ends of the members, in the order of the members, if the ranks are threads of this
    /// process.
    Ends(Vec<Endpoint>),
}

/// A new world of some ranks of this one.
#[enum_dispatch::enum_dispatch]
pub trait CreateJoin {
    /// Creates a world of these ranks. Their order here is their order in the new world.
    ///
    /// # Errors
    /// Fails if there is no room for the world, or if a member is not a rank of this world.
    fn create(&mut self, members: &[usize]) -> io::Result<Created>;

    /// Joins the world of this number as the rank `members[index]`, and returns this rank's end of
    /// that world. [`create`](Self::create) has returned `number.world` on the first member, and
    /// `number.part` on the first member on this rank's host. A rank joins each world once.
    ///
    /// # Errors
    /// Fails if no world has this number, or if there is no room. Fails for threads of one process,
    /// which never join.
    fn join(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        let _ = (number, members, index);
        Err(io::ErrorKind::Unsupported.into())
    }
}
