//! [`Own`]: what one rank has touched of one target's part in an epoch, which tells at each call whether the operation conflicts
//! with one before it.
//!
//! Two bits for each element, in pages that are made as they are touched. The bits of an element are in two words, so that where
//! a page has marks of puts only, one instruction looks at a mark and sets it. An element has the mark
//! of what conflicts with most, so a mark that does not fit is a conflict, and no mark that does not fit means that there is none.
//! The one thing that two bits do not tell is the operator: from the second one on, each operator has marks of its own.
//! While all that was called are accumulates with one operator, or gets or one operation of many runs, nothing is marked, since
//! no two of them conflict; who calls something else marks them before it.

use crate::element::Op;
use crate::ir::pattern::Kind;
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;

/// Elements whose marks are one block.
const PER_BLOCK: usize = 64;
/// Blocks of a page.
const BLOCKS: usize = 32;
/// Elements whose marks are one page.
const PER_PAGE: usize = BLOCKS * PER_BLOCK;

/// The marks of the elements of a block, a bit of each word for each element.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Block {
    /// Written or accumulated into.
    changed: u64,
    /// Read or accumulated into.
    other: u64,
}

impl Block {
    /// These elements, touched in this way.
    #[inline(always)]
    fn of(elements: u64, kind: Kind) -> Self {
        Self {
            changed: if kind == Kind::Get { 0 } else { elements },
            other: if kind == Kind::Put { 0 } else { elements },
        }
    }

    /// The elements that an access of this kind does not fit.
    #[inline(always)]
    fn unfit(self, kind: Kind) -> u64 {
        match kind {
            Kind::Get => self.changed,
            Kind::Put => self.changed | self.other,
            Kind::Accumulate(_) => self.changed ^ self.other,
        }
    }

    /// The elements that were accumulated into.
    fn accumulated(self) -> u64 {
        self.changed & self.other
    }

    /// With these elements touched in one more way. Those that are touched in two ways are as if they were written.
    fn touched(self, elements: u64, kind: Kind) -> Self {
        let own = Self::of(elements, kind);
        let free = elements & !(self.changed | self.other);
        let unlike = (self.changed ^ own.changed | self.other ^ own.other) & elements & !free;
        let changed = self.changed | free & own.changed | unlike;
        Self { changed, other: self.other & !unlike | free & own.other }
    }
}

/// The marks of some elements next to each other.
#[derive(Debug)]
struct Page {
    /// The epoch in which they were made: those of others are none.
    epoch: Cell<u32>,
    /// The same epoch, while all of them are of puts: then `other` is 0. Otherwise 0.
    puts: Cell<u32>,
    /// As in [`Block`], of the blocks.
    changed: [Cell<u64>; BLOCKS],
    other: [Cell<u64>; BLOCKS],
}

impl Page {
    fn new() -> Box<Self> {
        let (epoch, puts) = (Cell::new(0), Cell::new(0));
        let [changed, other] = [const { [const { Cell::new(0) }; BLOCKS] }; 2];
        Box::new(Self { epoch, puts, changed, other })
    }

    /// Clears marks of another epoch.
    #[inline]
    fn renew(&self, epoch: u32) {
        if self.epoch.get() != epoch {
            if self.puts.get() != self.epoch.get() {
                self.other.iter().for_each(|word| word.set(0));
            }
            self.epoch.set(epoch);
            self.puts.set(epoch);
            self.changed.iter().for_each(|word| word.set(0));
        }
    }

    /// Epochs are counted from the first again.
    fn forget(&self) {
        self.epoch.set(0);
        self.puts.set(0);
        self.other.iter().for_each(|word| word.set(0));
    }

    #[inline(always)]
    fn block(&self, at: usize) -> Block {
        Block { changed: self.changed[at % BLOCKS].get(), other: self.other[at % BLOCKS].get() }
    }

    #[inline(always)]
    fn set(&self, at: usize, block: Block) {
        self.changed[at % BLOCKS].set(block.changed);
        if block.other != 0 || self.puts.get() != self.epoch.get() {
            self.puts.set(0);
            self.other[at % BLOCKS].set(block.other);
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
    /// The number of an operation on element 0 that is like the one [learnt](Self::learns) last; [`NONE`] where none is.
    number: Cell<u64>,
}

/// Differs from each number that a caller has by more than a displacement.
const NONE: u64 = u64::MAX;

impl Own {
    /// Of a part of `len` elements, none of which is touched.
    pub fn new(len: usize) -> Self {
        let pages = (0..len.div_ceil(PER_PAGE)).map(|_| OnceCell::new()).collect();
        let (epoch, operators) = (Cell::new(1), Cell::new(Operators::None));
        let (sole, used, partial) = (Cell::new(None), Cell::new(false), Cell::new(false));
        let (by_operator, number) = (RefCell::default(), Cell::new(NONE));
        Self { pages, quick: len, epoch, operators, by_operator, sole, used, partial, number }
    }

    /// The same, of which elements below this only may be touched [quickly](Self::touch_quickly).
    #[must_use]
    pub fn quick_below(self, quick: usize) -> Self {
        Self { quick, ..self }
    }

    /// Begins an epoch: nothing is touched.
    pub fn begin(&self) {
        if self.epoch.get() == u32::MAX {
            self.pages.iter().filter_map(OnceCell::get).for_each(|page| page.forget());
            self.epoch.set(0);
        }
        self.epoch.set(self.epoch.get() + 1);
        if self.operators.replace(Operators::None) == Operators::Several {
            self.by_operator.borrow_mut().clear();
        }
        self.sole.set(None);
        self.used.set(false);
        self.partial.set(false);
        self.forget();
    }

    /// An operation on this element was [touched quickly](Self::touch_quickly). The caller knows it by a number: the element in
    /// the low bits, and above them one value for each kind and line. Others like it are [known](Self::knows) from here on, if they
    /// are puts, or accumulates that need no mark.
    #[inline]
    pub fn learns(&self, number: u64, at: usize, kind: Kind) {
        if kind == Kind::Put || self.sole.get() == Some(kind) {
            self.number.set(number ^ at as u64);
        }
    }

    /// From here on no number is known.
    pub fn forget(&self) {
        self.number.set(NONE);
    }

    /// Whether this is the number of an operation like the one that was [learnt](Self::learns) last, on this element, and that may be
    /// touched quickly. An accumulate needs no mark then; a put has [one](Self::put_one).
    #[inline(always)]
    pub fn knows(&self, number: u64, at: usize) -> bool {
        // A displacement that is none changes the bits above it as well.
        at < self.quick && number ^ self.number.get() == at as u64
    }

    /// Marks one element as written by one more put, if its page was marked in this epoch, for puts only, no operation before
    /// conflicts with it, and it `is_kept`, which is asked last; else nothing has happened.
    #[inline(always)]
    pub fn put_one(&self, at: usize, is_kept: impl FnOnce() -> bool) -> bool {
        let Some(page) = self.pages.get(at / PER_PAGE).and_then(OnceCell::get) else { return false };
        if page.puts.get() != self.epoch.get() {
            return false;
        }
        let word = &page.changed[at / PER_BLOCK % BLOCKS];
        let (before, after) = (word.get(), word.get() | 1 << (at % PER_BLOCK));
        if before == after || !is_kept() {
            return false;
        }
        word.set(after);
        true
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
        self.forget();
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
        if kind != Kind::Put && self.sole.get() == Some(kind) {
            return is_kept();
        }
        if matches!(kind, Kind::Accumulate(op) if self.operators.get() != Operators::One(op)) {
            return false;
        }
        let Some(page) = self.pages.get(at / PER_PAGE).and_then(OnceCell::get) else { return false };
        if page.epoch.get() != self.epoch.get() && !self.begins(page) {
            return false;
        }
        let (at, element) = (at / PER_BLOCK, 1 << (at % PER_BLOCK));
        let there = page.block(at);
        if there.unfit(kind) & element != 0 || !is_kept() {
            return false;
        }
        let own = Block::of(element, kind);
        page.set(at, Block { changed: there.changed | own.changed, other: there.other | own.other });
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
    /// A step for each 64 elements.
    pub fn conflicts(&self, elements: Range<usize>, kind: Kind) -> bool {
        let by_operator = self.by_operator.borrow();
        let of_operator = match (kind, self.operators.get()) {
            // What others have accumulated into does not fit.
            (Kind::Accumulate(op), Operators::One(other)) if op != other => return self.any(elements),
            (Kind::Accumulate(op), Operators::Several) => {
                match by_operator.iter().find(|(other, _)| *other == op) {
                    Some((_, own)) => Some(own),
                    None => return self.any(elements),
                }
            }
            _ => None,
        };
        blocks_of(elements).any(|(at, elements)| {
            let there = self.block(at);
            // All that the operator has marked there, and nothing else has touched, fits.
            let of_others = of_operator.map_or(0, |own| there.accumulated() & !own.block(at).changed);
            (there.unfit(kind) | of_others) & elements != 0
        })
    }

    /// Whether some of these elements are touched.
    fn any(&self, elements: Range<usize>) -> bool {
        blocks_of(elements).any(|(at, elements)| self.block(at).unfit(Kind::Put) & elements != 0)
    }

    /// The marks of the elements from `64 * at` on.
    fn block(&self, at: usize) -> Block {
        let page = self.pages.get(at / BLOCKS).and_then(OnceCell::get);
        let page = page.filter(|page| page.epoch.get() == self.epoch.get());
        page.map_or_else(Block::default, |page| page.block(at))
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
                by_operator[place].1.mark(elements.clone(), kind);
            }
        }
        self.mark(elements, kind);
    }

    /// One more operator is used: from the second one on each has its own marks.
    fn note(&self, op: Op) {
        match self.operators.get() {
            Operators::None => self.operators.set(Operators::One(op)),
            Operators::One(first) if first != op => {
                let own = Own::new(self.pages.len() * PER_PAGE);
                let made = self.pages.iter().enumerate().filter(|(_, page)| page.get().is_some());
                for at in made.flat_map(|(page, _)| page * BLOCKS..(page + 1) * BLOCKS) {
                    let accumulated = self.block(at).accumulated();
                    if accumulated != 0 {
                        own.set(at, Block::of(accumulated, Kind::Accumulate(first)));
                    }
                }
                self.by_operator.borrow_mut().push((first, own));
                self.operators.set(Operators::Several);
            }
            _ => {}
        }
    }

    fn mark(&self, elements: Range<usize>, kind: Kind) {
        blocks_of(elements).for_each(|(at, elements)| self.set(at, self.block(at).touched(elements, kind)));
    }

    fn set(&self, at: usize, marks: Block) {
        let Some(page) = self.pages.get(at / BLOCKS) else { return };
        let page = page.get_or_init(Page::new);
        page.renew(self.epoch.get());
        page.set(at, marks);
    }
}

/// The blocks that have the marks of these elements, and the bits of those in each.
fn blocks_of(elements: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let mut at = elements.start;
    std::iter::from_fn(move || {
        (at < elements.end).then(|| {
            let (block, first) = (at / PER_BLOCK, at % PER_BLOCK);
            let count = (PER_BLOCK - first).min(elements.end - at);
            at += count;
            (block, (u64::MAX >> (PER_BLOCK - count)) << first)
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
                    let at_once = match kind {
                        _ if run.len() > 1 => false,
                        Kind::Put if draw(2) == 0 => own.put_one(run.start, || true),
                        _ => own.touch_one(run.start, kind),
                    };
                    if at_once {
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
    fn operations_like_the_last_one_are_known_while_they_may_be_marked_in_the_same_way() {
        let (own, number) = (Own::new(100).quick_below(90), |at: usize, kind: u64| kind << 40 | at as u64);
        let (sum, max) = (Kind::Accumulate(Op::Sum), Kind::Accumulate(Op::Max));
        assert!(!own.knows(number(3, 2), 3) && own.is_sole(sum, false));
        own.learns(number(3, 2), 3, sum);
        assert!([0, 3, 7, 89].iter().all(|at| own.knows(number(*at, 2), *at)));
        assert!(!own.knows(number(90, 2), 90) && !own.knows(number(7, 1), 7) && !own.knows(number(7, 3), 7));
        // Displacements that are none: their bits reach into those of the kind.
        let none = [usize::MAX, usize::MAX - 3, 2 << 40 | 5, 1 << 40];
        assert!(
            none.iter().all(|at| !own.knows(number(*at, 2), *at) && !Own::new(9).knows(number(*at, 2), *at))
        );
        own.learns(number(3, 3), 3, max);
        assert!(!own.knows(number(3, 3), 3), "it is to be marked");
        assert!(own.ends_sole() && !own.knows(number(3, 2), 3), "all are to be marked");
        own.touch(3..4, sum);
        own.learns(number(4, 1), 4, Kind::Put);
        assert!(own.knows(number(5, 1), 5) && !own.put_one(5, || true), "its page has other marks");
        own.begin();
        assert!(!own.knows(number(5, 1), 5) && !own.put_one(5, || true), "its page has no marks");
        assert!(own.touch_one(4, Kind::Put) && own.put_one(5, || true) && own.put_one(64, || true));
        assert!(!own.put_one(4, || true) && !own.put_one(5, || true) && !own.put_one(64, || true));
        assert!(!own.put_one(6, || false) && own.put_one(6, || true), "it was not kept");
        assert!(!own.touch_one(5, Kind::Get) && own.touch_one(7, Kind::Get) && !own.touch_one(7, Kind::Put));
        own.learns(number(4, 1), 4, Kind::Put);
        own.forget();
        assert!(!own.knows(number(4, 1), 4));
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
        // Marks of gets are gone as well, and a page that had puts only in the second epoch has none in it now.
        own.epoch.set(u32::MAX);
        own.begin();
        assert!(!own.conflicts(0..100, Kind::Put) && own.touch_one(4, Kind::Put) && own.put_one(5, || true));
        own.begin();
        assert!(own.touch_one(6, Kind::Put));
        own.epoch.set(u32::MAX);
        own.begin();
        own.begin();
        assert!(!own.put_one(7, || true) && !own.conflicts(0..100, Kind::Put));
    }
}
