//! [`Lines`]: the lines that two ranks write for each other, from the view of one of them.

use fencepost_transport::{Channels, Endpoint, PairLines, Port, Topology};
use std::ptr::NonNull;

/// The [`PairLines`] of two ranks for one window: the lines that this rank writes, and the lines
/// that it reads.
#[derive(Default)]
pub(crate) struct Lines {
    written: Option<NonNull<PairLines>>,
    read: Option<NonNull<PairLines>>,
    /// Whether the lines that this rank writes were requested.
    asked: bool,
}

impl Lines {
    /// Returns the lines that this rank writes for `to`, if this rank reaches `to`. The port stays
    /// open while the window is used.
    #[inline(always)]
    pub(crate) fn written(&mut self, endpoint: &mut Endpoint, to: usize, port: Port) -> Option<&PairLines> {
        if !self.asked {
            self.make(endpoint, to, port);
        }
        // SAFETY: the lines exist until this rank closes the port, which happens when the window
        // that owns this value is dropped.
        self.written.map(|lines| unsafe { lines.as_ref() })
    }

    /// Returns the lines that `from` writes for this rank, if `from` has made them.
    #[inline(always)]
    pub(crate) fn read(&mut self, endpoint: &mut Endpoint, from: usize, port: Port) -> Option<&PairLines> {
        if self.read.is_none() {
            self.find(endpoint, from, port);
        }
        // SAFETY: as above.
        self.read.map(|lines| unsafe { lines.as_ref() })
    }

    #[cold]
    fn make(&mut self, endpoint: &mut Endpoint, to: usize, port: Port) {
        self.asked = true;
        self.written = if endpoint.reaches(to) { endpoint.lines(to, port) } else { None };
    }

    #[cold]
    fn find(&mut self, endpoint: &mut Endpoint, from: usize, port: Port) {
        if endpoint.reaches(from) {
            self.read = endpoint.lines_of(from, port);
        }
    }
}
