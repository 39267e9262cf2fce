//! [`Log`]: records one after another, in memory that grows.
//!
//! While a log is filled, the next record's place is known to its [`Lane`](crate::lane::Lane) alone: a record is then two
//! stores of its own and one of that place. All memory that records lie in is got here.

use crate::transport::Record;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::ops::Deref;
use std::ptr::NonNull;

/// Records begin on a cache line.
const ALIGN: usize = 64;
/// How many records the first memory holds: a page of them.
const FIRST: usize = 4096 / size_of::<Record>();

/// Records one after another.
pub(crate) struct Log {
    start: NonNull<Record>,
    len: usize,
    room: usize,
}

impl Default for Log {
    fn default() -> Self {
        Self { start: NonNull::dangling(), len: 0, room: 0 }
    }
}

impl Log {
    /// One more record.
    pub(crate) fn push(&mut self, record: Record) {
        if self.len == self.room {
            self.grow();
        }
        // SAFETY: there is room for one more.
        unsafe { self.start.add(self.len).write(record) };
        self.len += 1;
    }

    /// Forget all records; the memory is kept.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Where the next record goes, and past how many from there on there is no room: what lies between may be written.
    pub(crate) fn ends(&self) -> (NonNull<Record>, NonNull<Record>) {
        // SAFETY: both are inside the memory or just past it.
        unsafe { (self.start.add(self.len), self.start.add(self.room)) }
    }

    /// The records end at `next`.
    ///
    /// # Safety
    /// `next` lies between the [`ends`](Self::ends), and all before it is written.
    pub(crate) unsafe fn end_at(&mut self, next: NonNull<Record>) {
        // SAFETY: both are of one allocation, and `next` is not before its start.
        self.len = unsafe { next.offset_from_unsigned(self.start) };
        debug_assert!(self.len <= self.room);
    }

    #[cold]
    fn grow(&mut self) {
        let layout = |room| Layout::array::<Record>(room).and_then(|array| array.align_to(ALIGN));
        let room = (2 * self.room).max(FIRST);
        let Ok(new) = layout(room) else { handle_alloc_error(Layout::new::<Record>()) };
        let memory = if self.room == 0 {
            // SAFETY: the layout has a size.
            unsafe { alloc(new) }
        } else {
            let Ok(old) = layout(self.room) else { handle_alloc_error(new) };
            // SAFETY: allocated here with that layout; the new size is more, and fits a layout.
            unsafe { realloc(self.start.as_ptr().cast(), old, new.size()) }
        };
        let Some(start) = NonNull::new(memory) else { handle_alloc_error(new) };
        (self.start, self.room) = (start.cast(), room);
    }
}

impl Deref for Log {
    type Target = [Record];
    fn deref(&self) -> &[Record] {
        // SAFETY: the first `len` records are written, and nobody writes them while the log is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if self.room > 0
            && let Ok(layout) = Layout::array::<Record>(self.room).and_then(|array| array.align_to(ALIGN))
        {
            // SAFETY: allocated in `grow` with this layout, freed once.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(value: u64) -> Record {
        Record { head: !value, value }
    }

    #[test]
    fn records_stay_in_order_as_the_memory_grows() {
        let mut log = Log::default();
        for n in 0..10_000 {
            assert_eq!(log.len(), n);
            log.push(record(n as u64));
        }
        assert!(log.iter().enumerate().all(|(n, &found)| found == record(n as u64)));
        assert_eq!(log.as_ptr() as usize % ALIGN, 0);
        let start = log.as_ptr();
        log.clear();
        assert!(log.is_empty());
        log.push(record(7));
        assert_eq!((&log[..], log.as_ptr()), (&[record(7)][..], start), "memory is kept");
    }

    #[test]
    fn what_is_written_between_the_ends_counts_up_to_where_it_is_said_to_end() {
        let mut log = Log::default();
        assert_eq!(log.ends().0, log.ends().1, "there is no room before the first record");
        log.push(record(0));
        let (next, end) = log.ends();
        // SAFETY: two records between the ends, both written before the log ends past them.
        unsafe {
            assert_eq!(end.offset_from(next), FIRST as isize - 1);
            next.write(record(1));
            next.add(1).write(record(2));
            log.end_at(next.add(2));
        }
        assert_eq!(&log[..], &[record(0), record(1), record(2)]);
    }
}
