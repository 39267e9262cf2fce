//! [`Own`]: the elements of one target's part that one rank has touched in an epoch, to detect at
//! each call whether the operation conflicts with an earlier one.
//!
//! Each element has two bits, in pages that are created when they are first touched. The two bits
//! of an element are in two words, so that in a page with marks of puts only, one instruction reads
//! a mark and sets it. If accesses of several kinds touch an element, it has the mark that
//! conflicts with most. So an incompatible mark means a conflict, and there is no conflict without
//! one. The only thing that two bits do not record is the operator: from the second operator on,
//! each has marks of its own.
//!
//! While all calls so far are accumulates with one operator, or gets, or a single operation of many
//! runs, nothing is marked, since no two of them conflict. A caller that adds anything else marks
//! these operations first.

use crate::element::Op;
use crate::ir::pattern::Kind;
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;

/// The number of elements whose marks are one block.
const PER_BLOCK: usize = 64;
/// The number of blocks of a page.
const BLOCKS: usize = 32;
/// The number of elements whose marks are one page.
const PER_PAGE: usize = BLOCKS * PER_BLOCK;

/// The marks of the elements of a block. Each element has one bit in each word.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Block {
    /// The elements that were written or accumulated into.
    changed: u64,
    /// The elements that were read or accumulated into.
    other: u64,
}

impl Block {
    /// Returns the marks of these elements after an access of this kind.
    #[inline(always)]
    fn of(elements: u64, kind: Kind) -> Self {
        Self {
            changed: if kind == Kind::Get { 0 } else { elements },
            other: if kind == Kind::Put { 0 } else { elements },
        }
    }

    /// Returns the elements with which an access of this kind conflicts.
    #[inline(always)]
    fn unfit(self, kind: Kind) -> u64 {
        match kind {
            Kind::Get => self.changed,
            Kind::Put => self.changed | self.other,
            Kind::Accumulate(_) => self.changed ^ self.other,
        }
    }

    /// Returns the elements that were accumulated into.
    fn accumulated(self) -> u64 {
        self.changed & self.other
    }

    /// Returns the marks after an access of this kind to these elements as well. Elements that are
    /// touched in two ways count as written.
    fn touched(self, elements: u64, kind: Kind) -> Self {
        let own = Self::of(elements, kind);
        let free = elements & !(self.changed | self.other);
        let unlike = (self.changed ^ own.changed | self.other ^ own.other) & elements & !free;
        let changed = self.changed | free & own.changed | unlike;
        Self { changed, other: self.other & !unlike | free & own.other }
    }
}

/// The marks of adjacent elements.
#[derive(Debug)]
struct Page {
    /// The epoch in which the marks were made. Marks of other epochs do not count.
    epoch: Cell<u32>,
    /// The same epoch while all marks are of puts, in which case `other` is 0. Otherwise 0.
    puts: Cell<u32>,
    /// The two words of each block, as in [`Block`].
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

    /// Clears all marks, since epochs are about to be counted from the first again.
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
    /// Several operators, each with marks of its own.
    Several,
}

/// The marks that one rank has made on one target's part: a quarter of a byte for each element that
/// is touched, in pages of 2,048 elements.
#[doc(hidden)]
#[derive(Debug)]
pub struct Own {
    pages: Vec<OnceCell<Box<Page>>>,
    /// Elements below this index may be touched [quickly](Self::touch_quickly).
    quick: usize,
    /// The number of the epoch, from 1 on.
    epoch: Cell<u32>,
    operators: Cell<Operators>,
    by_operator: RefCell<Vec<(Op, Own)>>,
    /// The kind of all calls so far, if no two of these operations conflict and none is marked.
    sole: Cell<Option<Kind>>,
    /// Whether there was a call in this epoch.
    used: Cell<bool>,
    /// Whether there was a call that is not marked, and that may conflict.
    partial: Cell<bool>,
    /// The number that an operation on element 0 would have if it resembled the one
    /// [recorded](Self::learns) last; [`NONE`] if there is no such operation.
    number: Cell<u64>,
}

/// Differs from every number that a caller uses by more than a displacement.
const NONE: u64 = u64::MAX;

impl Own {
    /// Creates the marks of a part of `len` elements, none of which is touched.
    pub fn new(len: usize) -> Self {
        let pages = (0..len.div_ceil(PER_PAGE)).map(|_| OnceCell::new()).collect();
        let (epoch, operators) = (Cell::new(1), Cell::new(Operators::None));
        let (sole, used, partial) = (Cell::new(None), Cell::new(false), Cell::new(false));
        let (by_operator, number) = (RefCell::default(), Cell::new(NONE));
        Self { pages, quick: len, epoch, operators, by_operator, sole, used, partial, number }
    }

    /// Restricts [quick access](Self::touch_quickly) to elements below `quick`.
    #[must_use]
    pub fn quick_below(self, quick: usize) -> Self {
        Self { quick, ..self }
    }

    /// Begins an epoch, in which nothing is touched yet.
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

    /// Records that an operation on the element `at` was [touched quickly](Self::touch_quickly).
    ///
    /// The caller identifies the operation by a number: the element in the low bits, and above them
    /// one value for each kind and line. From here on, similar operations are [known](Self::knows),
    /// if they are puts, or accumulates that need no mark.
    #[inline]
    pub fn learns(&self, number: u64, at: usize, kind: Kind) {
        if kind == Kind::Put || self.sole.get() == Some(kind) {
            self.number.set(number ^ at as u64);
        }
    }

    /// Forgets the recorded operation: from here on no number is known.
    pub fn forget(&self) {
        self.number.set(NONE);
    }

    /// Returns whether this is the number of an operation on the element `at` that resembles the
    /// one [recorded](Self::learns) last, and may be touched quickly.
    ///
    /// If so, an accumulate needs no mark, and a put needs [one](Self::put_one).
    #[inline(always)]
    pub fn knows(&self, number: u64, at: usize) -> bool {
        // An invalid displacement also changes the bits above those of the displacement.
        at < self.quick && number ^ self.number.get() == at as u64
    }

    /// Marks one element as written by another put. Returns `false` if nothing has happened.
    ///
    /// This requires that the element's page was marked in this epoch, for puts only, that no
    /// earlier operation conflicts with the put, and that it `is_kept`, which is called last.
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

    /// Records a call of this kind, and returns whether it needs no mark.
    ///
    /// No mark is needed if all calls so far are accumulates with the same operator, or gets, or
    /// this call alone. For gets and for a single call, this holds only if the first call
    /// `has_many_runs`: marking a few runs costs less than looking at them again.
    pub fn is_sole(&self, kind: Kind, has_many_runs: bool) -> bool {
        let is_first = !self.used.replace(true);
        if is_first && (has_many_runs || matches!(kind, Kind::Accumulate(_))) {
            self.sole.set(Some(kind));
            return true;
        }
        kind != Kind::Put && self.sole.get() == Some(kind)
    }

    /// Ends the state in which calls are not marked, and returns whether it was active. From now on
    /// all calls must be marked.
    pub fn ends_sole(&self) -> bool {
        self.forget();
        self.sole.take().is_some()
    }

    /// Records that there is a call.
    pub fn uses(&self) {
        self.used.set(true);
    }

    /// Records a call that is not marked.
    pub fn skip(&self) {
        self.used.set(true);
        self.partial.set(true);
    }

    /// Returns whether each operation of this epoch was compared at its call with all earlier ones,
    /// so that no two of them conflict.
    pub fn has_compared(&self) -> bool {
        !self.partial.get()
    }

    /// Marks one element as touched by another operation. Returns `false` if nothing has happened.
    ///
    /// This requires that the answer is available at once, and that no earlier operation conflicts
    /// with this one.
    #[inline(always)]
    pub fn touch_one(&self, at: usize, kind: Kind) -> bool {
        self.touch_one_if(at, kind, || true)
    }

    /// Marks one element as `touch_one` does, if the element may be touched quickly and the
    /// operation `is_kept`, which is called last.
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

    /// Prepares this page for its first mark in this epoch. Returns whether all earlier calls are
    /// marked.
    #[cold]
    fn begins(&self, page: &Page) -> bool {
        let is_marked = self.sole.get().is_none();
        if is_marked {
            self.used.set(true);
            page.renew(self.epoch.get());
        }
        is_marked
    }

    /// Marks these elements as touched by another operation. Returns `false` if an earlier
    /// operation conflicts with it, in which case nothing has happened.
    ///
    /// If an operation touches several runs, those before a conflicting one stay marked.
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

    /// Returns whether an access of this kind to these elements conflicts with an earlier
    /// operation.
    ///
    /// # Cost
    /// A step for each 64 elements.
    pub fn conflicts(&self, elements: Range<usize>, kind: Kind) -> bool {
        let by_operator = self.by_operator.borrow();
        let of_operator = match (kind, self.operators.get()) {
            // Elements that another operator has touched conflict.
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
            // Elements that this operator has marked, and that nothing else has touched, do not
            // conflict.
            let of_others = of_operator.map_or(0, |own| there.accumulated() & !own.block(at).changed);
            (there.unfit(kind) | of_others) & elements != 0
        })
    }

    /// Returns whether any of these elements is touched.
    fn any(&self, elements: Range<usize>) -> bool {
        blocks_of(elements).any(|(at, elements)| self.block(at).unfit(Kind::Put) & elements != 0)
    }

    /// Returns the marks of the elements from `64 * at` on.
    fn block(&self, at: usize) -> Block {
        let page = self.pages.get(at / BLOCKS).and_then(OnceCell::get);
        let page = page.filter(|page| page.epoch.get() == self.epoch.get());
        page.map_or_else(Block::default, |page| page.block(at))
    }

    /// Marks these elements as touched in this way.
    ///
    /// An operation touches its runs one after another. Elements that it touches in two ways count
    /// as written. Elements past the end are not marked.
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

    /// Records the use of an operator. From the second one on, each operator has its own marks.
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

/// Returns the blocks that contain the marks of these elements, and the bits of the elements in
/// each block.
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
                    // The section of an operation, which the operation also reads or writes.
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
        // Invalid displacements, whose bits reach into those of the kind.
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
        // Marks of gets are gone as well. A page that had only puts in the second epoch has none in
        // it now.
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
