//! [`PairLines`]: what one rank tells another of posts and accesses: cache lines that the one writes and the other reads.
//!
//! There is room for two posts and for two accesses, used in turn: those of even numbers are in the first place, and the others in
//! the second. Each is stored before its number, and the reader waits for the numbers that it expects. Each has a line of its own:
//! a rank that waits for an access reads its line again and again, and would take it away from one that has written its post there
//! and not yet its access; and one that looks for the post before would wait for the line of a post that is just being written.
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

#[derive(Default)]
struct Post {
    /// One more than the number of the post; 0 before the first.
    number: AtomicU64,
    word: UnsafeCell<u64>,
}

#[derive(Default)]
struct Access {
    /// One more than the number of the access; 0 before the first.
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

// SAFETY: one rank writes the words and records, and one reads them. A read follows the Acquire load of the number that was
// stored with Release afterwards; the next write follows that read, as `post` and `end` have their callers promise.
unsafe impl Sync for PairLines {}
// SAFETY: words and records are plain data.
unsafe impl Send for PairLines {}

/// The place of a number.
#[inline(always)]
fn turn(number: u64) -> usize {
    (number & 1) as usize
}

impl PairLines {
    /// Tells the reader of the post of this number.
    ///
    /// # Safety
    /// This rank alone writes these lines. The reader has read post `number - 2`, if that was in them, and this rank has
    /// since read something that it stored afterwards.
    #[inline(always)]
    pub unsafe fn post(&self, number: u64, word: u64) {
        let post = &self.posts[turn(number)].0;
        // SAFETY: the reader has finished with the word, as the caller promises, and reads it again after the store below.
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

    /// Has the line of the post of this number fetched, which this rank will read soon.
    #[inline(always)]
    pub fn expect_post(&self, number: u64) {
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let post = &self.posts[turn(number)];
            // SAFETY: to prefetch is no access.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(post).cast()) };
        }
        let _ = number; // elsewhere it is fetched when it is read
    }

    /// Tells the reader of the access of this number that has ended, with these records.
    ///
    /// # Safety
    /// As [`post`](Self::post), of access `number - 2`.
    ///
    /// # Panics
    /// If there are more than [`RECORDS`].
    #[inline(always)]
    pub unsafe fn end(&self, number: u64, word: u64, records: &[Record]) {
        let access = &self.accesses[turn(number)].0;
        assert!(records.len() <= RECORDS, "more records than a line has room for");
        // By a loop, since to copy a slice of any length takes a call.
        let copy = |to: &mut [Record; RECORDS]| to.iter_mut().zip(records).for_each(|(to, from)| *to = *from);
        // SAFETY: as in `post`.
        access.records.with_mut(|to| copy(unsafe { &mut *to }));
        // SAFETY: as above.
        access.word.with_mut(|to| unsafe { *to = word });
        access.number.store(number + 1, Ordering::Release); // the load in `ended`
    }

    /// Returns the word of the access of this number, if it is here, and its records, which stay as they are until this
    /// rank's next post to the writer was taken.
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
