//! [`Marks`]: two bits for each element of a window, which quickly show that no operations of an
//! epoch conflict.
//!
//! An element is untouched, read, written or accumulated into. An access that does not fit the
//! element's mark is a *hit*. A hit is a conflict, or one of two things that are not: two accesses
//! of one operation, or a second operator in a window. So after a hit the operations themselves
//! must be examined, and without a hit there is no conflict.

use crate::element::Op;
use crate::ir::pattern::Kind;
use std::ops::Range;

/// The number of elements whose marks are one word.
const PER_WORD: usize = 32;
/// The number of words that are cleared together, when the first of them is used in an epoch.
const PAGE: usize = 64;
/// The lower bit of each mark.
const LOW: u64 = 0x5555_5555_5555_5555;

const READ: u64 = 1;
const WRITTEN: u64 = 2;
const ACCUMULATED: u64 = 3;

/// Returns those marks in a word that are set and do not fit an access with this mark.
#[inline]
fn of_mark(there: u64, mark: u64) -> u64 {
    match mark {
        READ => there & !LOW,
        WRITTEN => there,
        _ => (there ^ there >> 1) & LOW,
    }
}

/// The marks of one rank's part of a window: a quarter of a byte for each element, and two bytes
/// for each thousand elements.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Marks {
    words: Vec<u64>,
    /// The epoch in which each page was last used. Pages of other epochs are not read, so none is
    /// cleared at the end of an epoch.
    pages: Vec<u32>,
    epoch: u32,
    /// The operator of this epoch's accumulates.
    op: Option<Op>,
}

impl Marks {
    /// Begins an epoch of `len` elements, none of which is touched.
    ///
    /// # Cost
    /// Allocates the marks the first time, and if the length of the window changes; otherwise
    /// nothing.
    pub fn begin(&mut self, len: usize) {
        let words = len.div_ceil(PER_WORD);
        if self.words.len() != words || self.epoch == u32::MAX {
            *self = Self { words: vec![0; words], pages: vec![0; words.div_ceil(PAGE)], ..Self::default() };
        }
        self.epoch += 1;
        self.op = None;
    }

    /// Marks one element as touched in this way, and returns whether that is a hit. An element past
    /// the end is not marked.
    #[inline]
    pub fn touch_one(&mut self, at: usize, kind: Kind) -> bool {
        let Some(mark) = self.mark(kind) else { return true };
        let (word, first) = (at / PER_WORD, 2 * (at % PER_WORD));
        let (Some(marks), Some(page)) = (self.words.get_mut(word), self.pages.get(word / PAGE)) else {
            return false;
        };
        if *page != self.epoch {
            return self.touch(at..at + 1, kind);
        }
        let there = *marks >> first & 3;
        *marks |= mark << first;
        there != 0 && (there != mark || mark == WRITTEN)
    }

    /// Marks about `count` elements, one after another, as touched in this way. Returns whether any
    /// of them is a hit. Elements past the end are not marked.
    ///
    /// # Cost
    /// A few instructions for each element. If there are many, all of the window's marks are
    /// cleared first, unless they already are.
    #[inline]
    pub fn touch_each(&mut self, elements: impl Iterator<Item = usize>, count: usize, kind: Kind) -> bool {
        let Some(mark) = self.mark(kind) else {
            elements.for_each(drop);
            return true;
        };
        if count < self.words.len() {
            return elements.fold(false, |hit, at| hit | self.touch_one(at, kind));
        }
        (0..self.pages.len()).for_each(|page| self.renew(page));
        let words = &mut self.words[..];
        match mark {
            READ => touch_words(words, elements, mark, |there| there & !LOW),
            WRITTEN => touch_words(words, elements, mark, |there| there),
            _ => touch_words(words, elements, mark, |there| (there ^ there >> 1) & LOW),
        }
    }

    /// Clears the marks of a page if they were made in another epoch.
    #[inline]
    fn renew(&mut self, page: usize) {
        if self.pages[page] != self.epoch {
            self.pages[page] = self.epoch;
            let last = self.words.len().min((page + 1) * PAGE);
            self.words[page * PAGE..last].fill(0);
        }
    }

    /// Returns the mark of an access of this kind, or `None` for an accumulate with another
    /// operator than earlier ones.
    #[inline]
    fn mark(&mut self, kind: Kind) -> Option<u64> {
        match kind {
            Kind::Get => Some(READ),
            Kind::Put => Some(WRITTEN),
            Kind::Accumulate(op) => (*self.op.get_or_insert(op) == op).then_some(ACCUMULATED),
        }
    }

    /// Marks these elements as touched in this way, and returns whether that is a hit. Elements
    /// past the end are not marked.
    ///
    /// # Cost
    /// One step for each 32 elements.
    #[inline]
    pub fn touch(&mut self, elements: Range<usize>, kind: Kind) -> bool {
        let Some(mark) = self.mark(kind) else { return true };
        let end = elements.end.min(self.words.len() * PER_WORD);
        let (mut at, mut hit) = (elements.start, 0);
        while at < end {
            let (word, first) = (at / PER_WORD, at % PER_WORD);
            let count = (PER_WORD - first).min(end - at);
            let own = (u64::MAX >> (64 - 2 * count)) << (2 * first);
            self.renew(word / PAGE);
            let marks = &mut self.words[word];
            let there = *marks & own;
            hit |= of_mark(there, mark);
            *marks |= own & (LOW * mark);
            at += count;
        }
        hit != 0
    }
}

/// Marks each of these elements. Returns whether `hits` returns a bit for the earlier mark of any
/// of them.
#[inline(always)]
fn touch_words(
    words: &mut [u64],
    elements: impl Iterator<Item = usize>,
    mark: u64,
    hits: impl Fn(u64) -> u64,
) -> bool {
    let hit = elements.fold(0, |hit, at| {
        let first = 2 * (at % PER_WORD);
        let Some(marks) = words.get_mut(at / PER_WORD) else { return hit };
        let there = *marks >> first & 3;
        *marks |= mark << first;
        hit | hits(there)
    });
    hit != 0
}

#[cfg(test)]
mod tests {
    use super::super::rule::conflict;
    use super::*;

    #[test]
    fn a_hit_is_what_conflicts_with_something_before_it() {
        let kinds = [Kind::Get, Kind::Put, Kind::Accumulate(Op::Sum), Kind::Accumulate(Op::Max)];
        let mut marks = Marks::default();
        for len in [1, 31, 32, 33, 5000] {
            let mut state = len as u64;
            let mut draw = |below: usize| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as usize % below
            };
            let (mut hits, mut epochs) = (0, 0);
            for _ in 0..2000 {
                marks.begin(len);
                let mut touched: Vec<Option<Kind>> = vec![None; len];
                for _ in 0..6 {
                    let at = draw(len);
                    let run = at..(at + 1 + draw(2) * draw(40)).min(len);
                    let kind = kinds[draw(4)];
                    let hit = match (run.len(), draw(3)) {
                        (1, 0) => marks.touch_one(at, kind),
                        (_, 1) => marks.touch_each(run.clone(), [1, len][draw(2)], kind),
                        _ => marks.touch(run.clone(), kind),
                    };
                    let conflicts =
                        touched[run.clone()].iter().flatten().any(|before| conflict(*before, kind));
                    let op = |kind: Kind| matches!(kind, Kind::Accumulate(_));
                    let second_op =
                        op(kind) && touched.iter().flatten().any(|&before| op(before) && before != kind);
                    assert_eq!(hit, conflicts || second_op, "{run:?} {kind:?} of {len}");
                    if hit {
                        hits += 1;
                        break;
                    }
                    touched[run].fill(Some(kind));
                }
                epochs += 1;
            }
            assert!(hits > 20 && (len == 1 || hits < epochs), "{hits} of {epochs} with {len} elements");
        }
    }

    #[test]
    fn marks_of_epochs_long_ago_are_not_there_when_their_number_comes_again() {
        let mut marks = Marks::default();
        marks.begin(100);
        assert!(!marks.touch(0..100, Kind::Put));
        marks.epoch = u32::MAX;
        marks.begin(100);
        assert!(!marks.touch(0..100, Kind::Get));
        assert!(marks.touch(99..100, Kind::Put) && !marks.touch(100..200, Kind::Put));
    }
}
