//! [`FastPath`]: the fast path of an operation on one small element to its target.
//!
//! Two comparisons decide whether an operation takes the fast path: the operation's displacement is
//! compared with the fast path's bound, and the place of the next record is compared with the end
//! of the room. Every other reason for the slow path (NOSUCCEED, calls that are matched with a
//! plan, memory that is not reached) sets the bound to 0 beforehand.

use crate::collect::log::LogWriter;
use fencepost_transport::Record;
use std::cell::Cell;
use std::ptr::null;

/// All fields that a small operation reads, in one cache line.
#[repr(align(64))]
pub(crate) struct FastPath {
    /// Displacements below this bound take the fast path. 0 while the fast path is closed.
    below: Cell<usize>,
    /// Gets of displacements below this bound take the fast path, to the window's list of gets.
    gets_below: Cell<usize>,
    /// The writer that fills the outbox's records.
    pub(crate) writer: LogWriter<Record>,
    /// The target's elements, if its memory is reached.
    memory: Cell<*const u8>,
}

impl Default for FastPath {
    fn default() -> Self {
        Self {
            below: Cell::new(0),
            gets_below: Cell::new(0),
            writer: LogWriter::default(),
            memory: Cell::new(null()),
        }
    }
}

impl FastPath {
    /// Collects an operation on the element at `at` if it takes the fast path. Returns whether the
    /// operation was collected. If not, the call has no effect.
    #[inline(always)]
    pub(crate) fn push(&self, at: usize, record: Record) -> bool {
        let is_written = at < self.below.get() && self.writer.write(record);
        if is_written {
            self.writer.fetch_ahead();
        }
        is_written
    }

    /// Returns whether a get of the element at `at` takes the fast path.
    #[inline(always)]
    pub(crate) fn is_open_to_get(&self, at: usize) -> bool {
        at < self.gets_below.get()
    }

    /// Lets gets of displacements below `below` take the fast path.
    pub(crate) fn open_to_gets(&self, below: usize) {
        self.gets_below.set(below);
    }

    /// Returns the target's elements; null if its memory is not reached.
    #[inline(always)]
    pub(crate) fn memory(&self) -> *const u8 {
        self.memory.get()
    }

    /// Points the fast path to the elements at `memory`, for displacements below `below`.
    pub(crate) fn lead(&self, memory: *const u8, below: usize) {
        self.memory.set(memory);
        self.below.set(below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::log::Log;

    #[test]
    fn an_operation_takes_the_fast_path_below_the_bound_and_while_there_is_room() {
        let (fast_path, mut log) = (FastPath::default(), Log::default());
        let record = Record { head: 3, value: 4 };
        log.push(record);
        // SAFETY: the log is not moved, and is touched only while the writer is lifted.
        unsafe { fast_path.writer.lower(&log) };
        assert!(!fast_path.push(0, record), "it leads nowhere yet");
        fast_path.lead(null(), 2);
        assert_eq!([0, 1, 2, usize::MAX].map(|at| fast_path.push(at, record)), [true, true, false, false]);
        fast_path.lead(null(), 0);
        assert!(!fast_path.push(0, record), "it is closed");
        fast_path.lead(null(), 2);
        // SAFETY: as above.
        unsafe { fast_path.writer.lift(&mut log) };
        assert!(!fast_path.push(0, record), "there is nowhere to write");
        assert_eq!(&log[..], &[record; 3]);
    }
}
