//! [`PairLines`]: what one rank tells another of posts and accesses: two cache lines, used in turn, that the one writes and the
//! other reads.
//!
//! A line has the post of a number and the access of a number, each stored before its number; the reader waits for the numbers
//! that it expects. Posts and accesses of even numbers are in the first line, and the others in the second. A rank that posts
//! its window to another one and accesses that one's window at about the same time writes one line for both, and the other
//! rank fetches it once.
//!
//! # Why nothing is written that is still read (W4)
//!
//! - Access `n` takes the place of access `n - 2`. It may be written once post `n - 1` of the reader has been taken: the reader
//!   posts again only after it has waited for all accesses before, and so read access `n - 2`.
//! - Post `n` takes the place of post `n - 2`. It may be written once access `n - 1` of the reader has come, if that was ended by
//!   a rank which had taken post `n - 2` before. An access that was dropped waits for nothing, and says nothing of it.
//!
//! Who keeps neither posts a frame instead. Frames and lines are in one order by their numbers: a reader that finds a frame with
//! a later number than it expects finds the one that it expects in the line, since that was written before.

use crate::Record;
use crate::sync::{AtomicU64, Line, Ordering, UnsafeCell};

/// The most records of an access that a line has room for.
pub const RECORDS: usize = 2;

/// A post and an access.
#[repr(C, align(64))]
#[derive(Default)]
struct PairLine {
    /// One more than the number of the post; 0 before the first.
    post: AtomicU64,
    post_word: UnsafeCell<u64>,
    /// One more than the number of the access; 0 before the first.
    access: AtomicU64,
    access_word: UnsafeCell<u64>,
    records: UnsafeCell<[Record; RECORDS]>,
}

/// The lines that one rank writes for another, for one window.
#[repr(C)]
#[derive(Default)]
pub struct PairLines([Line<PairLine>; 2]);

// SAFETY: one rank writes the words and records, and one reads them. A read follows the Acquire load of the number that was
// stored with Release afterwards; the next write follows that read, as `post` and `end` have their callers promise.
unsafe impl Sync for PairLines {}
// SAFETY: words and records are plain data.
unsafe impl Send for PairLines {}

impl PairLines {
    #[inline(always)]
    fn line(&self, number: u64) -> &PairLine {
        &self.0[(number & 1) as usize].0
    }

    /// Tells the reader of the post of this number.
    ///
    /// # Safety
    /// This rank alone writes these lines. The reader has read post `number - 2`, if that was in them, and this rank has
    /// since read something that it stored afterwards.
    #[inline]
    pub unsafe fn post(&self, number: u64, word: u64) {
        let line = self.line(number);
        // SAFETY: the reader has finished with the word, as the caller promises, and reads it again after the store below.
        line.post_word.with_mut(|to| unsafe { *to = word });
        line.post.store(number + 1, Ordering::Release); // the load in `posted`
    }

    /// Returns the word of the post of this number, if it is here.
    #[inline]
    pub fn posted(&self, number: u64) -> Option<u64> {
        let line = self.line(number);
        if line.post.load(Ordering::Acquire) != number + 1 {
            return None;
        }
        // SAFETY: it was stored before its number, and is not written before this rank has read it.
        Some(line.post_word.with(|word| unsafe { *word }))
    }

    /// Tells the reader of the access of this number that has ended, with these records.
    ///
    /// # Safety
    /// As [`post`](Self::post), of access `number - 2`.
    ///
    /// # Panics
    /// If there are more than [`RECORDS`].
    #[inline]
    pub unsafe fn end(&self, number: u64, word: u64, records: &[Record]) {
        let line = self.line(number);
        assert!(records.len() <= RECORDS, "more records than a line has room for");
        // SAFETY: as in `post`. By a loop, since to copy a slice of any length takes a call.
        line.records
            .with_mut(|to| unsafe { (*to).iter_mut().zip(records).for_each(|(to, record)| *to = *record) });
        // SAFETY: as above.
        line.access_word.with_mut(|to| unsafe { *to = word });
        line.access.store(number + 1, Ordering::Release); // the load in `ended`
    }

    /// Returns the word of the access of this number, if it is here, and its records, which stay as they are until this
    /// rank's next post to the writer was taken.
    #[inline]
    pub fn ended(&self, number: u64) -> Option<(u64, *const Record)> {
        let line = self.line(number);
        if line.access.load(Ordering::Acquire) != number + 1 {
            return None;
        }
        // SAFETY: as in `posted`.
        let word = line.access_word.with(|word| unsafe { *word });
        Some((word, line.records.with(|records| records.cast())))
    }
}
