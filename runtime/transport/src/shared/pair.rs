//! [`PairLines`]: cache lines that one rank writes and another reads, to announce posts and
//! accesses.
//!
//! There are two [cells](NumberedCell) for posts and two for accesses. Posts and accesses with even
//! numbers use the first cell, and those with odd numbers the second. The number of a cell is one
//! more than the number of its post or access. Each cell has a line of its own, for two reasons. A
//! rank that waits for an access reads the line of that access again and again. If a post were in
//! the same line, this reader would take the line away from a rank that has written its post but
//! not yet its access. And if two posts shared a line, a rank that looks for the earlier post would
//! wait for the line while the later post is being written.
//!
//! # Why nothing is written that is still read (W4)
//!
//! - Access `n` replaces access `n - 2`. Access `n` may be written once the writer has taken post
//!   `n - 1` of the reader. The reader posts again only after it has waited for all earlier
//!   accesses, so the reader has read access `n - 2` by then.
//! - Post `n` replaces post `n - 2`. Post `n` may be written once access `n - 1` of the reader has
//!   arrived, provided that the reader had taken post `n - 2` before the reader ended that access.
//!   An access that was dropped has waited for nothing, and so proves nothing.
//!
//! If the condition does not hold, a rank posts a frame instead of writing the line. The numbers
//! put frames and lines in one order. If a reader finds a frame with a later number than it
//! expects, then the expected post or access is in its line, since that line was written before the
//! frame.

use crate::Record;
use crate::shared::cell::NumberedCell;
use crate::sync::Line;

/// The maximum number of records of an access in a line.
pub const RECORDS: usize = 2;

/// An access that has ended.
#[derive(Clone, Copy, Default)]
struct Access {
    word: u64,
    records: [Record; RECORDS],
}

/// The lines that one rank writes for another, for one window.
#[repr(C)]
#[derive(Default)]
pub struct PairLines {
    /// The word of each post.
    posts: [Line<NumberedCell<u64>>; 2],
    accesses: [Line<NumberedCell<Access>>; 2],
}

/// Returns the cell of a number.
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
        // SAFETY: the reader has finished with the word, as the caller promises.
        unsafe { post.write(|to| *to = word) };
        post.publish(number + 1);
    }

    /// Returns the word of the post of this number, if it is here.
    #[inline(always)]
    pub fn posted(&self, number: u64) -> Option<u64> {
        let post = &self.posts[turn(number)].0;
        // SAFETY: the word is published, and is not written before this rank has read it.
        post.has(number + 1).then(|| unsafe { post.read(|word| *word) })
    }

    /// Publishes to the reader that the access of this number has ended, with these records.
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
        let copy = |to: &mut Access| {
            to.word = word;
            // A loop, since copying a slice of variable length takes a function call.
            to.records.iter_mut().zip(records).for_each(|(to, from)| *to = *from);
        };
        // SAFETY: as in `post`.
        unsafe { access.write(|to| copy(&mut *to)) };
        access.publish(number + 1);
    }

    /// If the access of this number is here, returns its word and its records. The records remain
    /// unchanged until the writer has taken this rank's next post.
    #[inline(always)]
    pub fn ended(&self, number: u64) -> Option<(u64, *const Record)> {
        let access = &self.accesses[turn(number)].0;
        // SAFETY: as in `posted`.
        access
            .has(number + 1)
            .then(|| unsafe { access.read(|access| ((*access).word, (&raw const (*access).records).cast())) })
    }
}
