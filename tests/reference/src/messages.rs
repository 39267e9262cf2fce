//! The calls of programs of messages and requests, and their results (24 to 27).

use fencepost_planner::element::ElementType;
use fencepost_planner::error::ErrorClass;
use fencepost_planner::ids::Rank;
use fencepost_planner::ir::calls::SendMode;

/// One call of one rank, with its results. A result that is not known is `None`.
///
/// Calls identify a request by the call that began it: by the position of that call in the rank's
/// program, counted from 0. A blocking call is represented by a call that begins the request and a
/// call that waits for it.
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
        /// Whether the message was sent. A buffered send may find no room.
        sent: Option<bool>,
    },
    /// Begins to receive.
    Receive {
        /// The messages that the receive takes.
        from: Envelope,
        /// The type of the elements for which there is room.
        element: ElementType,
        /// The number of bytes for which there is room.
        room: usize,
    },
    /// Tries to cancel a receive.
    Cancel {
        /// The request.
        request: usize,
    },
    /// Completes some of these requests.
    Complete {
        /// The requests. Those that were completed before are no longer active.
        requests: Vec<usize>,
        /// The number of requests that the call completes.
        count: Completion,
        /// Whether the call waits until it can complete that many requests. Otherwise it may return
        /// without having completed any.
        waits: bool,
        /// The requests that the call completed, in ascending order, with the outcome of each.
        completed: Option<Vec<(usize, Completed)>>,
    },
    /// Looks at the message that a receive would take.
    Probe {
        /// The messages that the receive would take.
        from: Envelope,
        /// Whether the call waits until there is such a message.
        waits: bool,
        /// The sender, tag and length of the message, if there was one.
        found: Option<Option<(Rank, u32, usize)>>,
    },
}

/// The messages that a receive takes: from one rank or from any rank, with one tag or with any tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// The sender; any sender if `None`.
    pub source: Option<Rank>,
    /// The tag; any tag if `None`.
    pub tag: Option<u32>,
}

/// The number of requests that a call completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// All.
    All,
    /// One that can be completed.
    Any,
    /// All that can be completed, but at least one.
    Some,
}

/// The outcome of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Completed {
    /// The message was sent.
    Sent,
    /// A message was received.
    Received {
        /// The sender of the message.
        source: Rank,
        /// The tag of the message.
        tag: u32,
        /// The elements of the message.
        bytes: Vec<u8>,
    },
    /// The receive took a message that does not fit, or that was sent in ready mode when no receive
    /// was waiting.
    Failed {
        /// The sender of the message.
        source: Rank,
        /// The tag of the message.
        tag: u32,
        /// The class of the error.
        class: ErrorClass,
    },
    /// The receive was cancelled before it took a message.
    Cancelled,
}

/// The time at which the standard sends of a program are complete. A program that ends in both
/// cases needs no buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// At once: there is room for all messages.
    AtOnce,
    /// When a receive takes the message: there is room for no message.
    AtMatch,
}

impl Envelope {
    /// Returns whether the receive takes a message from `source` with `tag`.
    pub(super) fn takes(&self, source: usize, tag: u32) -> bool {
        self.source.is_none_or(|rank| rank.0 as usize == source)
            && self.tag.is_none_or(|wanted| wanted == tag)
    }
}
