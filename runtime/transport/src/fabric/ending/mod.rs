//! How a fabric ends: the steps that a rank still takes for each other rank when its program is
//! over.
//!
//! If a launcher reports how each rank ends, a rank that has finished does not notify ranks to
//! which it has no connection. Otherwise each pair of ranks would open a connection only for that
//! report. So when a rank has finished and its listener is gone, other ranks may still have
//! something for that rank: a release of a frame that it sent long ago, credit, or the report that
//! they have left as well. The finished rank needs none of that, but the other ranks cannot know
//! this. A fabric that ends therefore guarantees:
//!
//! - **Its rank has sent everything that another rank still needs**: frames, and the error with
//!   which it has left. The other rank has confirmed this with a farewell, or has agreed to close
//!   the connection.
//! - **Its rank waits only for ranks that can still answer.** It sends nothing to a rank that has
//!   died, that has sent a goodbye, or that cannot be reached any more. A rank cannot be reached if
//!   its listener refuses a connection, or if a connection ended without an agreement. The launcher
//!   of such a rank will report the reason. The bytes that this rank has written for such a rank
//!   are void, whatever the launcher reports.
//!
//! A connectionless carrier cannot see that a rank has ended, and delivers nothing to a rank that
//! has ended. With such a carrier, every rank sends a goodbye to each other rank and also waits for
//! the goodbye of that rank. So nothing is on its way to a rank when that rank ends.
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
    /// One of the two ranks is opening the connection.
    Opening,
    Open,
    /// This rank has announced that it sends nothing more on the connection.
    Resting,
}

/// What a rank that ends knows of another rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) link: Link,
    /// Whether bytes that are written for the other rank can no longer arrive.
    pub(super) is_gone: bool,
    /// Whether something was written for the other rank that the socket has not taken yet.
    pub(super) has_unsent: bool,
    /// Whether something was written for the other rank that needs a connection.
    pub(super) wants_connection: bool,
    pub(super) said_goodbye: bool,
    pub(super) heard_farewell: bool,
    /// Whether this rank also waits for the goodbye of the other rank.
    pub(super) awaits_goodbye: bool,
}

/// The next step that an ending rank takes towards one other rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Connect,
    SayGoodbye,
    Wait,
    /// No step is left. As far as the other rank is concerned, the fabric may end.
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
    /// Returns what this rank knows of the peer when this rank ends. If `defers`, this rank does
    /// not open a connection only for deferred bytes.
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
