//! [`Watched`] for systems on which loads cannot be watched. The type has no values.

use std::ops::Range;

/// A mapping of memory whose loads can be seen. No such mapping exists on this system.
pub enum Watched {}

impl Watched {
    /// Returns the first byte of the elements.
    pub fn base(&self) -> *mut u8 {
        match *self {}
    }

    /// Begins to watch. Returns whether loads are seen.
    pub fn begin(&self) -> bool {
        match *self {}
    }

    /// Ends watching.
    pub fn open(&self) {
        match *self {}
    }

    /// Returns the elements that were loaded.
    pub fn loaded(&self) -> Vec<Range<usize>> {
        match *self {}
    }
}

/// Returns whether protected memory was opened.
#[cfg_attr(loom, allow(dead_code, reason = "called by what sockets need"))]
pub(crate) fn open(_first: *const u8, _len: usize) -> bool {
    false
}
