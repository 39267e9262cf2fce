//! [`Own`]: what one rank has touched of one target's part in an epoch, which tells at each call whether the operation conflicts
//! with one before it.
//!
//! Two bits for each element, as in [`Marks`](super::Marks), in pages that are made as they are touched. An element has the mark
//! of what conflicts with most, so a mark that does not fit is a conflict, and no mark that does not fit means that there is none.
//! The one thing that two bits do not tell is the operator: from the second one on, each operator has marks of its own.
//! While all that was called are accumulates with one operator nothing is marked, since no two of them conflict; who calls
//! something else marks them before it.

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
    /// From 1 on.
    epoch: Cell<u32>,
    operators: Cell<Operators>,
    by_operator: RefCell<Vec<(Op, Own)>>,
    /// The operator, if all that was called are accumulates with it, and none is marked.
    sole: Cell<Option<Op>>,
    /// Whether something was called.
    used: Cell<bool>,
    /// Whether something was called that is not marked, and not accumulated with the sole operator.
    partial: Cell<bool>,
}

impl Own {
    /// Of a part of `len` elements, none of which is touched.
    pub fn new(len: usize) -> Self {
        let pages = (0..len.div_ceil(PER_PAGE)).map(|_| OnceCell::new()).collect();
        let (epoch, operators) = (Cell::new(1), Cell::new(Operators::None));
        let (sole, used, partial) = (Cell::new(None), Cell::new(false), Cell::new(false));
        Self { pages, epoch, operators, by_operator: RefCell::default(), sole, used, partial }
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
    /// operator.
    pub fn is_sole(&self, kind: Kind) -> bool {
        match kind {
            Kind::Accumulate(op) if !self.used.replace(true) => {
                self.sole.set(Some(op));
                true
            }
            Kind::Accumulate(op) => self.sole.get() == Some(op),
            _ => {
                self.used.set(true);
                false
            }
        }
    }

    /// Returns whether all that was called are accumulates with one operator, which are not marked; from now on they have to be.
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

    /// Calls `act` with the number of each page and its marks, if they tell all that was called, with one operator at most.
    /// Returns the number of pages and the operator; `None` where they do not.
    pub fn pages(&self, mut act: impl FnMut(usize, &[Cell<u64>])) -> Option<(usize, Option<Op>)> {
        let op = match self.operators.get() {
            Operators::None => None,
            Operators::One(op) => Some(op),
            Operators::Several => return None,
        };
        if self.sole.get().is_some() || self.partial.get() {
            return None;
        }
        let epoch = self.epoch.get();
        let pages = self.pages.iter().enumerate().filter_map(|(at, page)| Some((at, page.get()?)));
        let mut count = 0;
        for (at, page) in pages.filter(|(_, page)| page.epoch.get() == epoch) {
            act(at, &page.words);
            count += 1;
        }
        Some((count, op))
    }

    /// Marks one element as touched by one more operation, if that can be told at once and no operation before it conflicts with
    /// it; else nothing has happened.
    #[inline(always)]
    pub fn touch_one(&self, at: usize, kind: Kind) -> bool {
        let mark = match kind {
            Kind::Get => READ,
            Kind::Put => WRITTEN,
            Kind::Accumulate(op) if self.sole.get() == Some(op) => return true,
            Kind::Accumulate(op) if self.operators.get() == Operators::One(op) => ACCUMULATED,
            Kind::Accumulate(_) => return false,
        };
        let Some(page) = self.pages.get(at / PER_PAGE).and_then(OnceCell::get) else { return false };
        if page.epoch.get() != self.epoch.get() {
            return false;
        }
        let (word, first) = (&page.words[at / PER_WORD % WORDS], 2 * (at % PER_WORD));
        let there = word.get() >> first & 3;
        let fits = there == 0 || there == mark && mark != WRITTEN;
        if fits {
            word.set(word.get() | mark << first);
        }
        fits
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
    use super::super::marks::Marks;
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
        assert!(own.is_sole(sum) && own.is_sole(sum) && own.touch_one(3, sum) && own.touch_one(3, sum));
        assert!(!own.touch_one(3, max) && !own.touch_one(4, Kind::Put) && !own.is_sole(max));
        assert!(own.pages(|_, _| ()).is_none());
        assert!(own.ends_sole() && !own.ends_sole());
        own.touch(3..4, sum);
        assert!(own.conflicts(3..4, max) && own.touch_one(3, sum) && !own.is_sole(sum));
        assert_eq!(own.pages(|_, _| ()), Some((1, Some(Op::Sum))));
        own.skip();
        assert!(own.pages(|_, _| ()).is_none());
        own.begin();
        assert!(!own.is_sole(Kind::Put) && !own.is_sole(sum));
        assert_eq!(own.pages(|_, _| ()), Some((0, None)));
    }

    #[test]
    fn marks_of_others_hit_where_their_operations_would() {
        let kinds = [Kind::Get, Kind::Put, Kind::Accumulate(Op::Sum), Kind::Accumulate(Op::Max)];
        let (mut one, mut all) = (Marks::default(), Marks::default());
        let mut state = 3_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        let (mut some, mut none) = (0, 0);
        let len = 5000;
        let ranks = [Own::new(len), Own::new(len), Own::new(len)];
        for _ in 0..2000 {
            one.begin(len);
            all.begin(len);
            let (mut hit, mut merged) = (false, false);
            for own in &ranks {
                own.begin();
                let (at, kind) = (draw(len), kinds[draw(4)]);
                let run = at..(at + 1 + draw(2) * draw(4000)).min(len);
                own.touch(run.clone(), kind);
                hit |= one.touch(run, kind);
                let mut pages = Vec::new();
                let told = own.pages(|page, words| {
                    pages.push((page, words.iter().map(|word| word.get()).collect::<Vec<_>>()))
                });
                let (count, op) = told.expect("it has one operator at most");
                assert_eq!(count, pages.len());
                for (page, words) in pages {
                    merged |= all.merge(page, words.into_iter(), op);
                }
            }
            assert_eq!(hit, merged);
            *(if hit { &mut some } else { &mut none }) += 1;
        }
        assert!(some > 300 && none > 300, "{some} hits, {none} none");
        assert!(!all.merge(usize::MAX, [u64::MAX].into_iter(), None));
    }

    #[test]
    fn marks_of_epochs_long_ago_are_not_there_when_their_number_comes_again() {
        let own = Own::new(100);
        own.touch(0..100, Kind::Put);
        own.epoch.set(u32::MAX);
        own.begin();
        assert!(!own.conflicts(0..100, Kind::Put) && !own.touch_one(3, Kind::Put));
        own.touch(5..6, Kind::Get);
        assert!(own.touch_one(3, Kind::Put) && !own.touch_one(3, Kind::Put));
        assert!(own.touch_one(5, Kind::Get) && !own.touch_one(5, Kind::Put));
    }
}
