//! [`Pending`]: what a window has collected for its next fence besides its outboxes: the gets.

use crate::call::WindowKey;
use crate::ticket::Slot;
use fencepost_planner::datatype::Datatype;
use std::panic::Location;

/// A get, waiting for its fence.
pub(crate) struct Request {
    pub(crate) target: usize,
    pub(crate) remote: Datatype,
    pub(crate) landing: Into,
    pub(crate) site: &'static Location<'static>,
    /// Its place among all gets of this rank.
    pub(crate) sequence: u64,
}

/// Where the elements of a get land.
pub(crate) enum Into {
    /// A section of a window in the same fence.
    Section(WindowKey, Datatype),
    /// A ticket.
    Ticket(Slot),
    /// A buffer that a scoped epoch has borrowed until after its fence: where it begins.
    Borrowed(*mut u8),
}

/// The gets of a window's epoch, in program order, and room to stage what they bring.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) gets: Vec<Request>,
    pub(crate) staged: Vec<u8>,
}
