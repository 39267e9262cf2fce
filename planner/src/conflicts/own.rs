//! [`Own`]: what one rank has touched of one target's part in an epoch, which tells at each call whether the operation conflicts
//! with one before it.
//!
//! Two bits for each element, as in [`Marks`](super::Marks), in pages that are made as they are touched. An element has the mark
//! of what conflicts with most, so a mark that does not fit is a conflict, and no mark that does not fit means that there is none.
//! The one thing that two bits do not tell is the operator: from the second one on, each operator has marks of its own.
//! While all that was called are accumulates with one operator, or gets or one operation of many runs, nothing is marked, since
//! no two of them conflict; who calls something else marks them before it.

use super::marks::{ACCUMULATED, LOW, PAGE, PER_WORD, READ, WRITTEN, of_mark};
use crate::element::Op;
use crate::ir::pattern::Kind;
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;

/// Words of a page.
const WORDS: usize = PAGE;
/// Elements whose marks are one page.
const PER_PAGE: usize = WORDS * PER_WORD;

/// The marks of some elements next to each other.
#[derive(Debug)]
struct Page {
    /// The epoch in which they were made: those of others are none.
    epoch: Cell<u32>,
    words: [Cell<u64>; WORDS],
}

impl Page {
    fn new() -> Box<Self> {
        Box::new(Self { epoch: Cell::new(0), words: [const { Cell::new(0) }; WORDS] })
    }

    /// Clears marks of another epoch.
    #[inline]
    fn renew(&self, epoch: u32) {
        if self.epoch.get() != epoch {
            self.epoch.set(epoch);
            self.words.iter().for_each(|word| word.set(0));
        }
    }
}

/// The operators of the accumulates of an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operators {
    None,
    One(Op),
    /// Each has marks of its own.
    Several,
}

/// The marks of one target's part by one rank: a quarter of a byte for each element that is touched, in pages of 2,048 elements.
#[doc(hidden)]
#[derive(Debug)]
pub struct Own {
    pages: Vec<OnceCell<Box<Page>>>,
    /// Elements below this may be touched [quickly](Self::touch_quickly).
    quick: usize,
    /// From 1 on.
    epoch: Cell<u32>,
    operators: Cell<Operators>,
    by_operator: RefCell<Vec<(Op, Own)>>,
    /// How all that was called touches its elements, if no two of these operations conflict, and none is marked.
    sole: Cell<Option<Kind>>,
    /// Whether something was called.
    used: Cell<bool>,
    /// Whether something was called that is not marked, and conflicts perhaps.
    partial: Cell<bool>,
}

impl Own {
    /// Of a part of `len` elements, none of which is touched.
    pub fn new(len: usize) -> Self {
        let pages = (0..len.div_ceil(PER_PAGE)).map(|_| OnceCell::new()).collect();
        let (epoch, operators) = (Cell::new(1), Cell::new(Operators::None));
        let (sole, used, partial) = (Cell::new(None), Cell::new(false), Cell::new(false));
        Self { pages, quick: len, epoch, operators, by_operator: RefCell::default(), sole, used, partial }
    }

    /// The same, of which elements below this only may be touched [quickly](Self::touch_quickly).
    #[must_use]
    pub fn quick_below(self, quick: usize) -> Self {
        Self { quick, ..self }
    }

    /// Begins an epoch: nothing is touched.
    pub fn begin(&self) {
        if self.epoch.get() == u32::MAX {
            self.pages.iter().filter_map(OnceCell::get).for_each(|page| page.epoch.set(0));
            self.epoch.set(0);
        }
        self.epoch.set(self.epoch.get() + 1);
        if self.operators.replace(Operators::None) == Operators::Several {
            self.by_operator.borrow_mut().clear();
        }
        self.sole.set(None);
        self.used.set(false);
        self.partial.set(false);
    }

    /// An access of this kind is called: returns whether that needs no mark, since all that was called are accumulates with its
    /// operator, or gets, or it alone. Of gets, and of what is called alone, that is so only where the first `has_many_runs`: to mark
    /// a few is less than to look at them again.
    pub fn is_sole(&self, kind: Kind, has_many_runs: bool) -> bool {
        let is_first = !self.used.replace(true);
        if is_first && (has_many_runs || matches!(kind, Kind::Accumulate(_))) {
            self.sole.set(Some(kind));
            return true;
        }
        kind != Kind::Put && self.sole.get() == Some(kind)
    }

    /// Returns whether what was called is not marked, since no two operations conflict; from now on all have to be.
    pub fn ends_sole(&self) -> bool {
        self.sole.take().is_some()
    }

    /// Something is called.
    pub fn uses(&self) {
        self.used.set(true);
    }

    /// Something is called that is not marked.
    pub fn skip(&self) {
        self.used.set(true);
        self.partial.set(true);
    }

    /// Whether each operation of this epoch was compared at its call with all before it, so that no two of them conflict.
    pub fn has_compared(&self) -> bool {
        !self.partial.get()
    }

    /// Marks one element as touched by one more operation, if that can be told at once and no operation before it conflicts with
    /// it; else nothing has happened.
    #[inline(always)]
    pub fn touch_one(&self, at: usize, kind: Kind) -> bool {
        self.touch_one_if(at, kind, || true)
    }

    /// The same for an element of those that may be touched quickly, if the operation `is_kept` besides, which is asked last.
    #[inline(always)]
    pub fn touch_quickly(&self, at: usize, kind: Kind, is_kept: impl FnOnce() -> bool) -> bool {
        at < self.quick && self.touch_one_if(at, kind, is_kept)
    }

    #[inline(always)]
    fn touch_one_if(&self, at: usize, kind: Kind, is_kept: impl FnOnce() -> bool) -> bool {
        let mark = match kind {
            Kind::Put => WRITTEN,
            kind if self.sole.get() == Some(kind) => return is_kept(),
            Kind::Get => READ,
            Kind::Accumulate(op) if self.operators.get() == Operators::One(op) => ACCUMULATED,
            Kind::Accumulate(_) => return false,
        };
        let Some(page) = self.pages.get(at / PER_PAGE).and_then(OnceCell::get) else { return false };
        if page.epoch.get() != self.epoch.get() && !self.begins(page) {
            return false;
        }
        let (word, first) = (&page.words[at / PER_WORD % WORDS], 2 * (at % PER_WORD));
        let there = word.get();
        let of_element = there >> first & 3;
        if of_element != 0 && (mark == WRITTEN || of_element != mark) || !is_kept() {
            return false;
        }
        word.set(there | mark << first);
        true
    }

    /// An element of this page is about to be marked, the first in this epoch; returns whether all before are marked.
    #[cold]
    fn begins(&self, page: &Page) -> bool {
        let is_marked = self.sole.get().is_none();
        if is_marked {
            self.used.set(true);
            page.renew(self.epoch.get());
        }
        is_marked
    }

    /// Marks these elements as touched by one more operation, if no operation before it conflicts with that; else nothing has
    /// happened. Of an operation that touches several runs, those before one that conflicts stay marked.
    #[inline]
    pub fn touch_fitting(&self, elements: Range<usize>, kind: Kind) -> bool {
        if elements.len() == 1 && self.touch_one(elements.start, kind) {
            return true;
        }
        let fits = !self.conflicts(elements.clone(), kind);
        if fits {
            self.touch(elements, kind);
        }
        fits
    }

    /// Whether an access of this kind to these elements conflicts with an operation before.
    ///
    /// # Cost
    /// A step for each 32 elements.
    pub fn conflicts(&self, elements: Range<usize>, kind: Kind) -> bool {
        let mark = mark_of(kind);
        let by_operator = self.by_operator.borrow();
        let of_operator = match (kind, self.operators.get()) {
            // What others have accumulated into does not fit.
            (Kind::Accumulate(op), Operators::One(other)) if op != other => return self.any(elements, !0),
            (Kind::Accumulate(op), Operators::Several) => {
                match by_operator.iter().find(|(other, _)| *other == op) {
                    Some((_, own)) => Some(own),
                    None => return self.any(elements, !0),
                }
            }
            _ => None,
        };
        words_of(elements).any(|(at, bits)| {
            let there = self.word(at) & bits;
            // All that the operator has marked there, and nothing else has touched, fits.
            let accumulated = there & there >> 1 & LOW;
            match of_operator {
                Some(own) => of_mark(there, mark) != 0 || accumulated & !(own.word(at) & LOW) != 0,
                None => of_mark(there, mark) != 0,
            }
        })
    }

    /// Whether some of these elements have one of these bits.
    fn any(&self, elements: Range<usize>, mask: u64) -> bool {
        words_of(elements).any(|(at, bits)| self.word(at) & bits & mask != 0)
    }

    /// The marks of the elements from `32 * at` on.
    fn word(&self, at: usize) -> u64 {
        let page = self.pages.get(at / WORDS).and_then(OnceCell::get);
        let page = page.filter(|page| page.epoch.get() == self.epoch.get());
        page.map_or(0, |page| page.words[at % WORDS].get())
    }

    /// Marks these elements as touched in this way. An operation touches those of several runs one after another; elements that it
    /// touches in two ways are as if it had written them. Elements past the end are not marked.
    pub fn touch(&self, elements: Range<usize>, kind: Kind) {
        if let Kind::Accumulate(op) = kind {
            self.note(op);
            let by_operator = &mut *self.by_operator.borrow_mut();
            if self.operators.get() == Operators::Several {
                let known = by_operator.iter().position(|(other, _)| *other == op);
                let place = known.unwrap_or_else(|| {
                    by_operator.push((op, Own::new(self.pages.len() * PER_PAGE)));
                    by_operator.len() - 1
                });
                by_operator[place].1.mark(elements.clone(), ACCUMULATED);
            }
        }
        self.mark(elements, mark_of(kind));
    }

    /// One more operator is used: from the second one on each has its own marks.
    fn note(&self, op: Op) {
        match self.operators.get() {
            Operators::None => self.operators.set(Operators::One(op)),
            Operators::One(first) if first != op => {
                let own = Own::new(self.pages.len() * PER_PAGE);
                let made = self.pages.iter().enumerate().filter(|(_, page)| page.get().is_some());
                for at in made.flat_map(|(page, _)| page * WORDS..(page + 1) * WORDS) {
                    let there = self.word(at);
                    let accumulated = there & there >> 1 & LOW;
                    if accumulated != 0 {
                        own.set(at, accumulated * ACCUMULATED);
                    }
                }
                self.by_operator.borrow_mut().push((first, own));
                self.operators.set(Operators::Several);
            }
            _ => {}
        }
    }

    fn mark(&self, elements: Range<usize>, mark: u64) {
        for (at, bits) in words_of(elements) {
            let there = self.word(at);
            let free = bits & LOW & !(there | there >> 1);
            let unlike = there ^ (LOW * mark);
            let other = bits & LOW & !free & (unlike | unlike >> 1);
            let kept = there & !(other * 3);
            self.set(at, kept | (free * mark) | (other * WRITTEN));
        }
    }

    fn set(&self, at: usize, marks: u64) {
        let Some(page) = self.pages.get(at / WORDS) else { return };
        let page = page.get_or_init(Page::new);
        page.renew(self.epoch.get());
        page.words[at % WORDS].set(marks);
    }
}

fn mark_of(kind: Kind) -> u64 {
    match kind {
        Kind::Get => READ,
        Kind::Put => WRITTEN,
        Kind::Accumulate(_) => ACCUMULATED,
    }
}

/// The words that have the marks of these elements, and the bits of those in each.
fn words_of(elements: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let mut at = elements.start;
    std::iter::from_fn(move || {
        (at < elements.end).then(|| {
            let (word, first) = (at / PER_WORD, at % PER_WORD);
            let count = (PER_WORD - first).min(elements.end - at);
            at += count;
            (word, (u64::MAX >> (64 - 2 * count)) << (2 * first))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::rule::conflict;
    use super::*;

    #[test]
    fn an_operation_that_conflicts_with_one_before_is_told_and_no_other_is() {
        let kinds = [
            Kind::Get,
            Kind::Put,
            Kind::Accumulate(Op::Sum),
            Kind::Accumulate(Op::Max),
            Kind::Accumulate(Op::Replace),
        ];
        let mut state = 7_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        let (mut hits, mut fits, mut quick) = (0, 0, 0);
        for len in [1, 31, 33, 70, 5000] {
            let own = Own::new(len);
            for _ in 0..1000 {
                own.begin();
                let mut touched: Vec<Vec<Kind>> = vec![Vec::new(); len];
                for _ in 0..9 {
                    let mut kind = kinds[draw(5)];
                    let mut run = || {
                        let at = draw(len);
                        at..(at + 1 + draw(2) * draw(40)).min(len)
                    };
                    let (run, second) = (run(), run());
                    if len > 1000 && kind == Kind::Put {
                        kind = Kind::Accumulate(Op::Sum);
                    }
                    let conflicts =
                        touched[run.clone()].iter().flatten().any(|before| conflict(*before, kind));
                    if run.len() == 1 && own.touch_one(run.start, kind) {
                        assert!(!conflicts, "{run:?} {kind:?} of {len}");
                        touched[run.start].push(kind);
                        quick += 1;
                        continue;
                    }
                    assert_eq!(own.conflicts(run.clone(), kind), conflicts, "{run:?} {kind:?} of {len}");
                    *(if conflicts { &mut hits } else { &mut fits }) += 1;
                    if conflicts {
                        continue;
                    }
                    // The section of an operation, which it reads or writes besides.
                    let besides = if kind == Kind::Get { Kind::Put } else { Kind::Get };
                    let has_section = draw(4) == 0 && !own.conflicts(second.clone(), besides);
                    own.touch(run.clone(), kind);
                    touched[run].iter_mut().for_each(|before| before.push(kind));
                    if has_section {
                        own.touch(second.clone(), besides);
                        touched[second].iter_mut().for_each(|before| before.push(besides));
                    }
                }
            }
        }
        assert!(hits > 2000 && fits > 2000 && quick > 1000, "{hits} hits, {fits} fit, {quick} at once");
    }

    #[test]
    fn accumulates_with_one_operator_are_not_marked_before_something_else_is_called() {
        let (own, sum, max) = (Own::new(100), Kind::Accumulate(Op::Sum), Kind::Accumulate(Op::Max));
        assert!(
            own.is_sole(sum, false)
                && own.is_sole(sum, true)
                && own.touch_one(3, sum)
                && own.touch_one(3, sum)
        );
        assert!(!own.touch_one(3, max) && !own.touch_one(4, Kind::Put) && !own.is_sole(max, true));
        assert!(own.ends_sole() && !own.ends_sole());
        own.touch(3..4, sum);
        assert!(own.conflicts(3..4, max) && own.touch_one(3, sum) && !own.is_sole(sum, true));
        assert!(own.has_compared());
        own.skip();
        assert!(!own.has_compared());
        own.begin();
        assert!(!own.is_sole(Kind::Put, false) && !own.is_sole(sum, false));
        assert!(own.has_compared());
    }

    #[test]
    fn gets_or_one_operation_of_many_runs_are_not_marked_before_something_else_is_called() {
        let own = Own::new(100);
        own.touch(0..100, Kind::Put);
        own.begin();
        assert!(own.is_sole(Kind::Get, true) && own.is_sole(Kind::Get, false) && own.touch_one(3, Kind::Get));
        assert!(!own.touch_one(3, Kind::Put) && !own.is_sole(Kind::Put, true) && own.ends_sole());
        own.touch(3..4, Kind::Get);
        assert!(!own.touch_one(3, Kind::Put) && own.touch_one(4, Kind::Put));
        own.begin();
        assert!(own.is_sole(Kind::Put, true) && !own.touch_one(3, Kind::Put));
        assert!(!own.is_sole(Kind::Put, true) && own.ends_sole() && own.touch_one(3, Kind::Put));
        own.begin();
        assert!(own.touch_one(3, Kind::Put), "the page is there");
        let sum = Kind::Accumulate(Op::Sum);
        assert!(!own.is_sole(sum, false) && !own.is_sole(Kind::Get, true), "something was called");
    }

    #[test]
    fn marks_of_epochs_long_ago_are_not_there_when_their_number_comes_again() {
        let own = Own::new(100);
        own.touch(0..100, Kind::Put);
        own.epoch.set(u32::MAX);
        own.begin();
        assert!(!own.conflicts(0..100, Kind::Put));
        own.touch(5..6, Kind::Get);
        assert!(own.touch_one(3, Kind::Put) && !own.touch_one(3, Kind::Put));
        assert!(own.touch_one(5, Kind::Get) && !own.touch_one(5, Kind::Put));
    }
}
