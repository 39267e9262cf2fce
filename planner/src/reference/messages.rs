//! The calls of programs of messages and requests, and their results (24 to 27).

use crate::element::ElementType;
use crate::error::ErrorClass;
use crate::ids::Rank;

/// One call of one rank, with what it brought: `None` where that is not known. Calls name a request by the place of the call
/// that began it, in the program of the rank, from 0. A call that blocks is one that begins and one that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageCall {
    /// Begins to send.
    Send {
        /// The time at which the send is complete.
        mode: SendMode,
        /// The receiver, which may be the rank itself.
        to: Rank,
        /// The tag.
        tag: u32,
        /// The type of the elements.
        element: ElementType,
        /// The elements, as bytes.
        bytes: Vec<u8>,
        /// Whether it was sent; a buffered send may find no room.
        sent: Option<bool>,
    },
    /// Begins to receive.
    Receive {
        /// The messages that it takes.
        from: Envelope,
        /// The type of the elements that there is room for.
        element: ElementType,
        /// The number of their bytes.
        room: usize,
    },
    /// Tries to cancel a receive.
    Cancel {
        /// The request.
        request: usize,
    },
    /// Completes some of these requests.
    Complete {
        /// The requests; those that were completed before are not active any more.
        requests: Vec<usize>,
        /// The number of requests that it completes.
        count: Completion,
        /// Whether the call waits until it can; else it may return without having completed any.
        waits: bool,
        /// The requests that it completed, in ascending order, and what became of each.
        completed: Option<Vec<(usize, Completed)>>,
    },
    /// Looks at the message that a receive would take.
    Probe {
        /// The messages that the receive would take.
        from: Envelope,
        /// Whether the call waits until there is one.
        waits: bool,
        /// Sender, tag and length of the message, if there was one.
        found: Option<Option<(Rank, u32, usize)>>,
    },
}

/// The time at which a send is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendMode {
    /// At some time between its call and its match.
    Standard,
    /// At its match.
    Synchronous,
    /// At its call, which fails where the buffer has no room.
    Buffered,
    /// As a standard send; it promises that a receive waits for it.
    Ready,
}

/// The messages that a receive takes: those of one rank, or of any, with one tag, or with any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// The sender.
    pub source: Option<Rank>,
    /// The tag.
    pub tag: Option<u32>,
}

/// The number of requests that a call completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// All.
    All,
    /// One that can be completed.
    Any,
    /// All that can be completed, one at least.
    Some,
}

/// The outcome of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Completed {
    /// The message was sent.
    Sent,
    /// A message was received.
    Received {
        /// Its sender.
        source: Rank,
        /// Its tag.
        tag: u32,
        /// Its elements.
        bytes: Vec<u8>,
    },
    /// A message was taken that does not fit, or that was sent in the belief that a receive waited.
    Failed {
        /// Its sender.
        source: Rank,
        /// Its tag.
        tag: u32,
        /// The class of the error.
        class: ErrorClass,
    },
    /// The receive was cancelled before it took a message.
    Cancelled,
}

/// The time at which the standard sends of a program are complete: where a program ends in either case, it needs no buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// At once: there is room for all messages.
    AtOnce,
    /// At their match: there is room for none.
    AtMatch,
}

impl Envelope {
    /// Returns whether a message from `source` with `tag` is one of these.
    pub(super) fn takes(&self, source: usize, tag: u32) -> bool {
        self.source.is_none_or(|rank| rank.0 as usize == source)
            && self.tag.is_none_or(|wanted| wanted == tag)
    }
}
