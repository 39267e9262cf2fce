//! The kinds and headers of this runtime's frames.

use fencepost_planner::census::Census;
use fencepost_transport::Header;

/// The kinds of frames. The kinds from 22 to 28 are those of
/// [messages](crate::messages::state::frames).
pub(crate) mod kind {
    /// Operations for one window; `extra` is the window.
    pub(crate) const DATA: u32 = 1;
    /// The elements that were requested.
    pub(crate) const REPLY: u32 = 2;
    /// The reason why a fence failed.
    pub(crate) const EXPLAIN: u32 = 3;
    /// The setup of windows and worlds.
    pub(crate) const SETUP: u32 = 4;
    /// Operations for one window that were sent before its fence; `extra` is the window.
    pub(crate) const EARLY: u32 = 5;
    /// Records for one window, which are read where the sender collected them; `extra` is the
    /// window.
    pub(crate) const LOG: u32 = 6;
    /// Elements that are read where the sender collected them. Their operations are in the next
    /// frame; `extra` is the window.
    pub(crate) const ELEMENTS: u32 = 7;
    /// The elements of operations that came in a frame before the census; `extra` is the window.
    pub(crate) const FOLLOWING: u32 = 31;
    /// Compiled supersteps.
    pub(crate) const ENTRY: u32 = 8;
    /// Compiled supersteps.
    pub(crate) const PAYLOAD: u32 = 9;
    /// Compiled supersteps.
    pub(crate) const DONE: u32 = 10;
    /// A message of a sparse census. `extra` contains the flags of a notification.
    pub(crate) const CENSUS: u32 = 11;
    /// In a reduced census: the item that the sender has for the receiver.
    pub(crate) const NOTE: u32 = 29;
    /// A message of a reduced census. `extra` contains the flags of a notification.
    pub(crate) const COUNTS: u32 = 30;
    /// After a census: the sender has finished its reads of the receiver's memory.
    pub(crate) const SETTLED: u32 = 12;
    /// A post of a window.
    pub(crate) const POST: u32 = 13;
    /// An access that was completed: records, all from one line.
    pub(crate) const RECORDS: u32 = 14;
    /// An access that was completed: its operations, described.
    pub(crate) const ACCESS: u32 = 15;
    /// An access that was dropped, or that has an operation on elements that are not exposed to it.
    pub(crate) const FAILED: u32 = 16;
    /// Sent before a post or an access if a check is on: the sender's vector clock, and for an
    /// access also its calls.
    pub(crate) const CHECK: u32 = 19;
    /// To an attendant: a request for the elements that an access gets. `extra` is the window.
    pub(crate) const ASK: u32 = 17;
    /// From an attendant: the elements that were requested.
    pub(crate) const ANSWER: u32 = 18;
    /// To an attendant: operations under a lock. `extra` is the window.
    pub(crate) const LOCK: u32 = 20;
    /// From an attendant: the outcome of the operations, and the elements that they return. `extra`
    /// is the window.
    pub(crate) const LOCKED: u32 = 21;
}

/// Returns the census whose messages are of this kind.
pub(crate) fn census_of(kind: u32) -> Option<Census> {
    match kind {
        kind::CENSUS => Some(Census::Sparse),
        kind::COUNTS => Some(Census::Reduced),
        _ => None,
    }
}

/// A frame header of this protocol.
pub(crate) fn header(word: u64, kind: u32, extra: u32) -> Header {
    Header { word, kind, extra }
}
