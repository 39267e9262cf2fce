//! The data that a rank keeps about waits and epochs, to report them. Contains no protocol.

pub(crate) mod explained;
pub(crate) mod recorder;
pub(crate) mod stalls;
pub(crate) mod traffic;

use crate::protocol::state::explained::Explained;
use crate::protocol::state::recorder::Recorder;
use crate::protocol::state::traffic::Traffic;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

/// The data that a rank keeps to count and explain its epochs.
#[derive(Default)]
pub(crate) struct Reports {
    pub(crate) traffic: Cell<Traffic>,
    /// Whether data about epochs is kept to explain them.
    pub(crate) explains: Cell<bool>,
    pub(crate) explained: RefCell<Explained>,
    /// The recorder of calls and waits, if they are recorded.
    pub(crate) recorder: OnceCell<Rc<Recorder>>,
    /// The number that identifies this world in recorded events of frames. The world of all ranks
    /// has 0.
    pub(crate) traced_as: Cell<u32>,
}

impl Reports {
    /// Counts a dynamic epoch that has succeeded.
    #[inline]
    pub(crate) fn count_epoch(&self) {
        let traffic = self.traffic.get();
        self.traffic.set(Traffic { epochs: traffic.epochs + 1, ..traffic });
    }

    /// Counts a message of `bytes` bytes. `described` of its bytes describe operations.
    pub(crate) fn count_sent(&self, bytes: usize, described: usize) {
        let traffic = self.traffic.get();
        self.traffic.set(Traffic {
            messages: traffic.messages + 1,
            bytes: traffic.bytes + bytes as u64,
            described: traffic.described + described as u64,
            ..traffic
        });
    }
}
