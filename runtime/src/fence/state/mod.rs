//! The data that a rank and its windows keep for fences, without any protocol.

pub(crate) mod history;
pub(crate) mod remembered;

use crate::census::state::staged::Staged;
use crate::fence::state::history::History;
use crate::fence::state::remembered::Remembered;
use fencepost_planner::ir::pattern::Mode;
use std::cell::{Cell, RefCell};

/// The data that a rank of a world keeps for its fences.
pub(crate) struct FenceState {
    /// Operations that came before their fence.
    pub(crate) staged: RefCell<Staged>,
    /// A digest of the prepared supersteps that were run since the last exchange in which all ranks
    /// agreed.
    pub(crate) ran: Cell<u64>,
    /// Whether the operations of some rank in the last dynamic epoch differed, or may have
    /// differed, from those of the epoch before.
    pub(crate) changed: Cell<bool>,
    /// Whether in the last dynamic epoch some rank described operations to a rank with which it
    /// exchanges messages.
    pub(crate) described: Cell<bool>,
    /// Payloads that others may still read. Each entry is the rank that reads the payload, the
    /// number of the frame, and the payload.
    pub(crate) kept: RefCell<Vec<(usize, u64, Vec<u8>)>>,
    /// The number of frames posted to each rank on the port of fences.
    posts: RefCell<Vec<u64>>,
    /// A buffer for copies of sections that others have exposed to this rank.
    pub(crate) copied: Cell<Vec<u8>>,
}

impl FenceState {
    pub(crate) fn new(ranks: usize) -> Self {
        Self {
            staged: RefCell::new(Staged::new(ranks)),
            ran: Cell::new(0),
            changed: Cell::new(true),
            described: Cell::new(true),
            kept: RefCell::default(),
            posts: RefCell::new(vec![0; ranks]),
            copied: Cell::default(),
        }
    }

    /// Counts a frame that was posted to `to`. Returns its number.
    pub(crate) fn posted(&self, to: usize) -> u64 {
        let posts = &mut self.posts.borrow_mut()[to];
        *posts += 1;
        *posts - 1
    }
}

/// The data that a window keeps for its fences.
pub(crate) struct FenceOfWindow {
    /// The preferred mode of operations that have no mode of their own.
    pub(crate) mode: Cell<Mode>,
    /// Descriptions and frames of the ranks whose outboxes are not read in place.
    pub(crate) remembered: RefCell<Remembered>,
    /// The history of the operations that were sent to the ranks whose outboxes are not read in
    /// place, by the line at which each epoch began.
    pub(crate) history: RefCell<History>,
}

impl FenceOfWindow {
    pub(crate) fn new(ranks: usize, mode: Mode) -> Self {
        Self {
            mode: Cell::new(mode),
            remembered: RefCell::new(Remembered::new(ranks)),
            history: RefCell::default(),
        }
    }
}
