//! How a fabric ends: what a rank still does for each other rank when its program is over, and when
//! it has finished.
//!
//! If a launcher reports how each rank ends, a rank that has finished ends without notifying any
//! rank that it has no connection to. Otherwise one connection for each pair of ranks would be
//! opened only to report that. So other ranks may still have something for it when its listener is
//! gone: a release of a frame that it sent long ago, credit, or the report that they have left as
//! well. The rank that has finished needs none of that, but the other ranks cannot know. A fabric
//! that ends therefore guarantees:
//!
//! - **Everything that a rank still needs has been sent to it**: frames, and the error with which
//!   this rank has left. The other rank has confirmed it with a farewell, or had agreed to close
//!   the connection.
//! - **It waits only for ranks that can still answer.** A rank that has died, that sent a goodbye,
//!   or that cannot be reached any more gets nothing. A rank cannot be reached if its listener
//!   refuses a connection, or if a connection ended without an agreement. The launcher of such a
//!   rank will report the reason. The bytes that this rank has written for such a rank are void,
//!   whatever that report contains.
//!
//! A connectionless carrier cannot see that a rank has ended, and delivers nothing to one that has.
//! With such a carrier, every rank sends a goodbye to each other rank and also waits for the
//! goodbye of that rank. So no rank ends while anything is on its way to it.
//!
//! Both guarantees hold in every order of events: `model.rs` explores all orders, for two ranks
//! whose connection is closed at any time.

use crate::fabric::carrier::{Carrier, Opening};
use crate::fabric::peer::Peer;

#[cfg(test)]
mod model;

/// The connection to another rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Link {
    None,
    /// One of the two ranks opens it.
    Opening,
    Open,
    /// This rank has announced that it sends nothing more on it.
    Resting,
}

/// What a rank that ends knows of another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) link: Link,
    /// Whether nothing that is written for it can arrive any more.
    pub(super) is_gone: bool,
    /// Whether something was written for it that is not with the socket yet.
    pub(super) has_unsent: bool,
    /// Whether something was written for it that is worth a connection.
    pub(super) wants_connection: bool,
    pub(super) said_goodbye: bool,
    pub(super) heard_farewell: bool,
    /// Whether this rank also waits for the other one's goodbye.
    pub(super) awaits_goodbye: bool,
}

/// The next step that an ending rank takes towards one other rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Connect,
    SayGoodbye,
    Wait,
    /// Nothing: as far as this rank is concerned, the fabric may end.
    Nothing,
}

impl Facts {
    /// Returns what an ending rank does next towards the other rank, which these facts describe.
    pub(super) fn next(self) -> Next {
        match self.link {
            Link::None if self.wants_connection && !self.is_gone => Next::Connect,
            Link::None => Next::Nothing,
            Link::Open if !self.said_goodbye => Next::SayGoodbye,
            Link::Open if self.heard_farewell && !self.has_unsent && !self.awaits_goodbye => Next::Nothing,
            Link::Open | Link::Opening | Link::Resting => Next::Wait,
        }
    }
}

impl<C: Carrier> Peer<C> {
    /// Returns what this rank knows of the peer when it ends. `defers` is whether this rank opens
    /// no connection just for deferred bytes.
    pub(super) fn facts(&self, defers: bool) -> Facts {
        let link = match &self.link {
            None if self.opening.is_under_way() => Link::Opening,
            None => Link::None,
            Some(_) if self.is_resting() => Link::Resting,
            Some(_) => Link::Open,
        };
        Facts {
            link,
            is_gone: self.is_gone(),
            has_unsent: self.unsent(),
            wants_connection: C::IS_CONNECTIONLESS && !self.said_goodbye
                || if defers { self.wants_connection() } else { self.unsent() },
            said_goodbye: self.said_goodbye,
            heard_farewell: self.heard_farewell,
            awaits_goodbye: C::IS_CONNECTIONLESS && !self.heard_goodbye,
        }
    }
}
