//! [`Log`]: records one after another, in memory that grows; and the [`LogWriter`] that fills a
//! log.
//!
//! While a log is filled, only the writer holds the end position, so an append costs the stores of
//! the record plus one store.

use crate::kernel::fetch_to_write;
use bytemuck::Pod;
use fencepost_transport::{Bytes, Memory};
use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::ops::Deref;
use std::ptr::{NonNull, null_mut};

/// How far ahead of a writer lines are prefetched, in bytes.
const AHEAD: usize = 1024;

/// The size of the first memory: a page.
const FIRST: usize = 4096;

/// Records one after another.
pub(crate) struct Log<R> {
    start: NonNull<R>,
    len: usize,
    room: usize,
    store: Option<Box<Bytes>>,
    memory: Memory,
    /// The maximum number of records that there is ever room for.
    most: usize,
}

/// Writes to a log until there is no more room.
pub(crate) struct LogWriter<R> {
    /// The place of the next record; null while the log itself holds the end position.
    next: Cell<*mut R>,
    /// The end of the room.
    end: Cell<*mut R>,
    /// The place of the first record in the log on which the writer was last lowered.
    start: Cell<*mut R>,
}

impl<R> Default for Log<R> {
    fn default() -> Self {
        Self::on(Memory::heap())
    }
}

impl<R> Log<R> {
    /// Returns an empty log. Its records go to this memory while the memory has room, else to the
    /// heap.
    pub(crate) fn on(memory: Memory) -> Self {
        Self { start: NonNull::dangling(), len: 0, room: 0, store: None, memory, most: usize::MAX }
    }

    /// Returns whether ranks that do not share values may read the records.
    pub(crate) fn is_reached(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.are_reached())
    }

    /// Returns the records of `log`.
    ///
    /// # Safety
    /// While the slice is used, the owner does not fill or change the log, and the memory of the
    /// records is not given away or freed.
    pub(crate) unsafe fn read<'l>(log: *const Self) -> &'l [R] {
        // SAFETY: the caller guarantees that the log and its memory do not change. The owner may
        // hold a shared reference to the log, so no `&mut` reference is made here.
        unsafe {
            let (start, len) = ((&raw const (*log).start).read(), (&raw const (*log).len).read());
            std::slice::from_raw_parts(start.as_ptr(), len)
        }
    }

    /// Gives away the memory, and with it all records.
    pub(crate) fn take_memory(&mut self) -> Option<Bytes> {
        (self.start, self.len, self.room) = (NonNull::dangling(), 0, 0);
        self.store.take().map(|store| *store)
    }
}

impl<R: Copy> Log<R> {
    /// Adds a record.
    pub(crate) fn push(&mut self, record: R) {
        if self.len == self.room && !self.reserve(1) {
            handle_alloc_error(Layout::new::<R>());
        }
        // SAFETY: there is room for one more.
        unsafe { self.start.add(self.len).write(record) };
        self.len += 1;
    }

    /// Forgets all records; the memory is kept.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Forgets all but the first `len` records.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Returns the records, to be overwritten.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [R] {
        // SAFETY: the first `len` records are written, and no other code touches them while the log
        // is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Makes room for `more` records, and returns whether there is room.
    #[must_use]
    pub(crate) fn reserve(&mut self, more: usize) -> bool {
        more <= self.room - self.len || self.grow(more)
    }

    /// From here on, limits the room to this number of bytes. Records that are already in the log
    /// stay.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.most = bytes / size_of::<R>();
        self.room = self.room.min(self.most.max(self.len));
    }

    #[cold]
    fn grow(&mut self, more: usize) -> bool {
        let Some(least) = self.len.checked_add(more).filter(|&least| least <= self.most) else {
            return false;
        };
        let room = least.max(2 * self.room).max(FIRST / size_of::<R>()).min(self.most);
        let bytes = room.saturating_mul(size_of::<R>());
        let store = self.memory.zeroed(bytes).or_else(|_| Memory::heap().zeroed(bytes));
        let Ok(store) = store else { return false };
        let start = NonNull::new(store.base().cast::<R>()).unwrap_or(NonNull::dangling());
        // SAFETY: there are `len` records, and room for more in the new memory.
        unsafe { start.copy_from_nonoverlapping(self.start, self.len) };
        // The old memory is freed, since no rank reads a log while it is filled.
        (self.start, self.room, self.store) = (start, room, Some(Box::new(store)));
        true
    }
}

impl<R: Pod> Log<R> {
    /// Adds `more` records, for which there is [room](Self::reserve). Each of them is zero, or has
    /// the content of an earlier record that was forgotten.
    pub(crate) fn append(&mut self, more: usize) -> &mut [R] {
        assert!(more <= self.room - self.len, "room was made before");
        let first = self.len;
        self.len += more;
        // The memory was zero at first, and was then written with records. Any bits are a valid
        // record.
        &mut self.as_mut_slice()[first..]
    }
}

impl<R: Copy> LogWriter<R> {
    /// Writes one more record if there is room for it. Returns whether it was written. If not, the
    /// call has no effect.
    #[inline(always)]
    pub(crate) fn write(&self, record: R) -> bool {
        let next = self.next.get();
        let room = next != self.end.get();
        if room {
            // SAFETY: `lower` got both pointers from the log, which no other code touches, so there
            // is room for a record between them.
            unsafe {
                next.write(record);
                self.next.set(next.add(1));
            }
        }
        room
    }

    /// Prefetches the cache lines that the writer will write soon. Another processor may have read
    /// these lines last, and then has them in its cache.
    #[inline(always)]
    pub(crate) fn fetch_ahead(&self) {
        fetch_to_write(self.next.get().wrapping_byte_add(AHEAD));
    }

    /// Returns whether this writer fills a log that has no records. Returns `false` if the writer
    /// fills no log. For such a writer, use [`has_none`](Self::has_none) with a given log.
    #[inline(always)]
    pub(crate) fn fills_none(&self) -> bool {
        let next = self.next.get();
        next == self.start.get() && !next.is_null()
    }

    /// Returns whether `log` has no records, including records that are not counted yet. If this
    /// writer fills a log, it must fill `log`.
    pub(crate) fn has_none(&self, log: &Log<R>) -> bool {
        let next = self.next.get();
        if next.is_null() { log.len == 0 } else { next == log.start.as_ptr() }
    }

    /// Returns the record in `log`, which this writer fills, if there is exactly one record.
    #[inline]
    pub(crate) fn only<'l>(&self, log: &'l Log<R>) -> Option<&'l R> {
        if self.next.get() != log.start.as_ptr().wrapping_add(1) {
            return None;
        }
        // SAFETY: the writer fills the log, and has written one record at the log's start.
        Some(unsafe { log.start.as_ref() })
    }

    /// Returns the number of records in `log`, including records that are not counted yet. If this
    /// writer fills a log, it must fill `log`.
    pub(crate) fn count(&self, log: &Log<R>) -> usize {
        let next = self.next.get();
        // SAFETY: `lower` began at the log's end, and `write` advanced record by record, inside its
        // memory.
        if next.is_null() { log.len } else { unsafe { next.offset_from_unsigned(log.start.as_ptr()) } }
    }

    /// Forgets all records of `log`, which this writer fills.
    #[inline]
    pub(crate) fn rewind(&self, log: &Log<R>) {
        debug_assert!(!self.next.get().is_null(), "it fills no log");
        self.next.set(log.start.as_ptr());
    }

    /// Fills `log` from here on, until this writer is lifted.
    ///
    /// # Safety
    /// Until the writer is lifted, the log is not moved, and no other code touches it.
    pub(crate) unsafe fn lower(&self, log: &Log<R>) {
        // SAFETY: both pointers are inside the log's memory or just past it.
        unsafe {
            self.start.set(log.start.as_ptr());
            self.next.set(log.start.add(log.len).as_ptr());
            self.end.set(log.start.add(log.room).as_ptr());
        }
    }

    /// Makes the writer fill no log from here on. Until now it must have filled no log, or a log
    /// that has no more room.
    pub(crate) fn leave(&self) {
        self.next.set(null_mut());
        self.end.set(null_mut());
    }

    /// Adds to the length of `log` the records that this writer has written. If this writer was not
    /// lowered on `log`, the length stays the same. Afterwards the writer has no room.
    ///
    /// # Safety
    /// The writer was lowered on no other log since it was last lifted.
    pub(crate) unsafe fn lift(&self, log: &mut Log<R>) {
        self.end.set(null_mut());
        let next = self.next.replace(null_mut());
        if !next.is_null() {
            // SAFETY: `lower` began at the log's end, and `write` advanced record by record, inside
            // its memory.
            log.len = unsafe { next.offset_from_unsigned(log.start.as_ptr()) };
            debug_assert!(log.len <= log.room);
        }
    }
}

impl<R> Default for LogWriter<R> {
    fn default() -> Self {
        Self { next: Cell::new(null_mut()), end: Cell::new(null_mut()), start: Cell::new(null_mut()) }
    }
}

impl<R> Deref for Log<R> {
    type Target = [R];
    fn deref(&self) -> &[R] {
        // SAFETY: the first `len` records are written, and no code writes them while the log is
        // borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stay_in_order_as_the_memory_grows() {
        let mut log = Log::default();
        for n in 0..10_000_u32 {
            assert_eq!(log.len(), n as usize);
            log.push([n, !n]);
        }
        assert!(log.iter().zip(0..).all(|(&found, n)| found == [n, !n]));
        assert_eq!(log.as_ptr() as usize % 64, 0);
        let start = log.as_ptr();
        log.clear();
        assert!(log.is_empty());
        log.push([7, 8]);
        assert_eq!((&log[..], log.as_ptr()), (&[[7, 8]][..], start), "memory is kept");
    }

    #[test]
    fn a_writer_appends_while_there_is_room_and_its_records_count_when_it_is_lifted() {
        let (mut log, writer) = (Log::<u64>::default(), LogWriter::default());
        assert!(!writer.write(0), "it is on no log");
        // SAFETY: there is one log, and it is touched only while the writer is lifted.
        unsafe {
            writer.lower(&log);
            assert!(!writer.write(0), "there is no room before the first record");
            assert!(writer.has_none(&log) && writer.fills_none());
            writer.lift(&mut log);
            assert!(writer.has_none(&log) && !writer.fills_none(), "it fills nothing");
            log.push(0);
            assert!(!writer.has_none(&log));
            writer.lower(&log);
            assert!(!writer.has_none(&log) && !writer.fills_none());
            assert!((1..FIRST as u64 / 8).all(|n| writer.write(n)) && !writer.write(0));
            assert_eq!(writer.count(&log), FIRST / 8);
            writer.lift(&mut log);
            assert_eq!(writer.count(&log), FIRST / 8);
            assert!(!writer.write(0) && log.iter().copied().eq(0..FIRST as u64 / 8));
            writer.lift(&mut log);
            assert_eq!(log.len(), FIRST / 8, "lifting it again counts nothing");
            assert_eq!(writer.only(&log), None, "it fills nothing");
            writer.lower(&log);
            assert_eq!(writer.only(&log), None, "there are more");
            writer.rewind(&log);
            assert!(writer.has_none(&log) && writer.fills_none() && writer.only(&log).is_none());
            assert!(writer.write(7) && !writer.fills_none());
            assert_eq!(writer.only(&log), Some(&7));
            writer.lift(&mut log);
            assert_eq!(&log[..], &[7]);
        }
    }
}
