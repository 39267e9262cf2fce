//! [`PairLines`]: cache lines that one rank writes and another reads, to announce posts and
//! accesses.
//!
//! There is room for two posts and for two accesses, used in turn: even numbers use the first slot,
//! and odd numbers the second. Each post or access is stored before its number, and the reader
//! waits for the number that it expects. Each has a line of its own, for two reasons. A rank that
//! waits for an access reads its line again and again. If the post were in the same line, the
//! reader would take that line away from a rank that has written its post but not yet its access.
//! And if two posts shared a line, a rank that looks for the earlier one would wait for the line
//! while the later one is being written.
//!
//! # Why nothing is written that is still read (W4)
//!
//! - Access `n` replaces access `n - 2`. It may be written once post `n - 1` of the reader has been
//!   taken: the reader posts again only after it has waited for all accesses before, and so has
//!   read access `n - 2`.
//! - Post `n` replaces post `n - 2`. It may be written once access `n - 1` of the reader has
//!   arrived, provided that the reader had taken post `n - 2` before it ended that access. An
//!   access that was dropped waits for nothing, and so proves nothing.
//!
//! If the condition does not hold, a rank posts a frame instead of writing the line. The numbers
//! put frames and lines in one order. If a reader finds a frame with a later number than it
//! expects, then the expected post or access is in its line, since it was written before the frame.

use crate::Record;
use crate::sync::{AtomicU64, Line, Ordering, UnsafeCell};

/// The most records of an access that a line has room for.
pub const RECORDS: usize = 2;

#[derive(Default)]
struct Post {
    /// One more than the number of the post, or 0 before the first.
    number: AtomicU64,
    word: UnsafeCell<u64>,
}

#[derive(Default)]
struct Access {
    /// One more than the number of the access, or 0 before the first.
    number: AtomicU64,
    word: UnsafeCell<u64>,
    records: UnsafeCell<[Record; RECORDS]>,
}

/// The lines that one rank writes for another, for one window.
#[repr(C)]
#[derive(Default)]
pub struct PairLines {
    posts: [Line<Post>; 2],
    accesses: [Line<Access>; 2],
}

// SAFETY: one rank writes the words and records, and one reads them. A read follows the Acquire
// load of the number that was stored with Release afterwards; the next write follows that read, as
// the callers of `post` and `end` promise.
unsafe impl Sync for PairLines {}
// SAFETY: words and records are plain data.
unsafe impl Send for PairLines {}

/// Returns the slot of a number.
#[inline(always)]
fn turn(number: u64) -> usize {
    (number & 1) as usize
}

impl PairLines {
    /// Publishes the post of this number to the reader.
    ///
    /// # Safety
    /// This rank alone writes these lines. If post `number - 2` was in them, the reader has read
    /// it, and this rank has since read something that the reader stored after that.
    #[inline(always)]
    pub unsafe fn post(&self, number: u64, word: u64) {
        let post = &self.posts[turn(number)].0;
        // SAFETY: the reader has finished with the word, as the caller promises, and reads it again
        // after the store below.
        post.word.with_mut(|to| unsafe { *to = word });
        post.number.store(number + 1, Ordering::Release); // the load in `posted`
    }

    /// Returns the word of the post of this number, if it is here.
    #[inline(always)]
    pub fn posted(&self, number: u64) -> Option<u64> {
        let post = &self.posts[turn(number)].0;
        if post.number.load(Ordering::Acquire) != number + 1 {
            return None;
        }
        // SAFETY: it was stored before its number, and is not written before this rank has read it.
        Some(post.word.with(|word| unsafe { *word }))
    }

    /// Publishes the access of this number, which has ended, to the reader, with these records.
    ///
    /// # Safety
    /// As for [`post`](Self::post), with access `number - 2` in place of the post.
    ///
    /// # Panics
    /// Panics if there are more than [`RECORDS`] records.
    #[inline(always)]
    pub unsafe fn end(&self, number: u64, word: u64, records: &[Record]) {
        let access = &self.accesses[turn(number)].0;
        assert!(records.len() <= RECORDS, "more records than a line has room for");
        // Copies in a loop, since copying a slice of any length takes a call.
        let copy = |to: &mut [Record; RECORDS]| to.iter_mut().zip(records).for_each(|(to, from)| *to = *from);
        // SAFETY: as in `post`.
        access.records.with_mut(|to| copy(unsafe { &mut *to }));
        // SAFETY: as above.
        access.word.with_mut(|to| unsafe { *to = word });
        access.number.store(number + 1, Ordering::Release); // the load in `ended`
    }

    /// Returns the word of the access of this number, if it is here, and its records. The records
    /// remain unchanged until the writer has taken this rank's next post.
    #[inline(always)]
    pub fn ended(&self, number: u64) -> Option<(u64, *const Record)> {
        let access = &self.accesses[turn(number)].0;
        if access.number.load(Ordering::Acquire) != number + 1 {
            return None;
        }
        // SAFETY: as in `posted`.
        let word = access.word.with(|word| unsafe { *word });
        Some((word, access.records.with(|records| records.cast())))
    }
}
