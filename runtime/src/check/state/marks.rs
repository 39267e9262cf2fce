//! [`Marks`]: the elements of a part that the operations of an epoch have touched. At each access,
//! the marks show whether the access conflicts with an earlier one.
//!
//! Each kind of access has a plane of marks, with one bit for each element. An access conflicts if
//! one of its elements has a mark of a kind that conflicts with the kind of the access. Planes
//! consist of pages, which are made when they are first touched. A page has the number of the epoch
//! of its marks, so nothing is cleared when an epoch ends.
//!
//! While all accesses are accumulates with one operator, nothing is marked, since no two such
//! accumulates conflict. The first access of an epoch is not marked either if it has many runs,
//! since it is often the only access, as in an exchange of halos. After an unmarked access, the
//! marks do not show whether a different access conflicts, until all earlier accesses are
//! [marked](Marks::renew).

use crate::check::state::kinds::code;
use crate::check::state::touched::Touched;
use fencepost_planner::ir::pattern::Kind;
use std::cell::{Cell, OnceCell};

/// The number of kinds of accesses.
const KINDS: usize = 32;
/// The number of elements whose marks are one word.
const PER_WORD: usize = u64::BITS as usize;
/// The number of words of a page.
const WORDS: usize = 32;
/// The value of [`Marks::last`] if there is no last operation. The number of every operation
/// differs from this value in bits above the displacement.
const NONE: u64 = u64::MAX;

/// The first access of an epoch is marked only if it has at most this number of runs.
const FEW_RUNS: usize = 32;
/// The bit of puts among the bits of all kinds.
const PUTS: u32 = 1 << PUT;
/// The place of puts among the kinds.
const PUT: usize = code(Kind::Put) as usize;

/// The marks of adjacent elements.
struct Page {
    /// The epoch in which the marks were made. Marks of other epochs do not count.
    epoch: Cell<u64>,
    words: [Cell<u64>; WORDS],
}

impl Page {
    /// Removes marks of other epochs than this one.
    #[inline(always)]
    fn renew(&self, epoch: u64) {
        if self.epoch.replace(epoch) != epoch {
            self.words.iter().for_each(|word| word.set(0));
        }
    }
}

/// The marks of one kind: the pages that were touched.
type Plane = Box<[OnceCell<Box<Page>>]>;

/// The accesses of an epoch so far.
#[derive(Clone, Copy)]
enum Accesses {
    None,
    /// Accumulates with one operator, which are not marked.
    Unmarked(Kind),
    /// One access of many runs, which is not marked.
    One,
    Marked,
}

/// The marks on a part. Each kind of access has one bit for each element, in pages of 2,048
/// elements.
pub(crate) struct Marks {
    len: usize,
    planes: [OnceCell<Plane>; KINDS],
    /// The number of the epoch, from 1 on.
    epoch: Cell<u64>,
    accesses: Cell<Accesses>,
    /// The kinds that have marks in this epoch, one bit each.
    used: Cell<u32>,
    /// Whether there was an access that is not marked, and that may conflict.
    partial: Cell<bool>,
    /// The number that an operation on element 0 would have if it were like the
    /// [last](Self::keep_last) operation.
    last: Cell<u64>,
}

impl Marks {
    /// Creates the marks of a part of `len` elements. No element is touched yet.
    pub(crate) fn new(len: usize) -> Self {
        Self {
            len,
            planes: [const { OnceCell::new() }; KINDS],
            epoch: Cell::new(1),
            accesses: Cell::new(Accesses::None),
            used: Cell::new(0),
            partial: Cell::new(false),
            last: Cell::new(NONE),
        }
    }

    /// Begins an epoch, in which nothing is touched yet.
    pub(crate) fn begin(&self) {
        self.renew();
        self.accesses.set(Accesses::None);
        self.partial.set(false);
        self.forget_last();
    }

    /// Removes all marks. From here on, all accesses of this epoch can be marked.
    pub(crate) fn renew(&self) {
        self.epoch.set(self.epoch.get() + 1);
        self.used.set(0);
        self.accesses.set(Accesses::Marked);
    }

    /// Records that the operation on the element `at` was collected.
    ///
    /// The caller identifies the operation by a number. The low bits of the number are the element,
    /// and the bits above have one value for each kind and line.
    #[inline]
    pub(crate) fn keep_last(&self, number: u64, at: usize) {
        self.last.set(number ^ at as u64);
    }

    /// Forgets the last operation: from here on no operation is like it.
    pub(crate) fn forget_last(&self) {
        self.last.set(NONE);
    }

    /// Returns whether this is the number of an operation on the element `at` that differs from the
    /// last operation only in its element.
    #[inline(always)]
    pub(crate) fn is_like_last(&self, number: u64, at: usize) -> bool {
        at < self.len && number ^ self.last.get() == at as u64
    }

    /// Records an access that is not marked.
    pub(crate) fn skip(&self) {
        self.partial.set(true);
    }

    /// Returns whether each operation of this epoch was compared at its call with all earlier ones.
    /// If so, no two operations conflict.
    pub(crate) fn has_compared(&self) -> bool {
        !self.partial.get()
    }

    /// Returns whether this access and all earlier accesses of the epoch are accumulates with one
    /// operator, so that this access needs no mark.
    #[inline(always)]
    pub(crate) fn needs_no_mark(&self, kind: Kind) -> bool {
        matches!(self.accesses.get(), Accesses::Unmarked(all) if all == kind)
    }

    /// Marks one element as written and returns `true`, if all marks of the epoch are of puts, the
    /// element's page exists, the put fits, and `is_kept` returns `true`. `is_kept`, which keeps
    /// the operation, is called last. Otherwise returns `false` without any effect.
    #[inline(always)]
    pub(crate) fn put_one(&self, at: usize, is_kept: impl FnOnce() -> bool) -> bool {
        let (word, bit) = (at / PER_WORD, 1 << (at % PER_WORD));
        let plane = self.planes[PUT].get().filter(|_| self.used.get() == PUTS);
        let Some(page) = plane.and_then(|plane| plane.get(word / WORDS)?.get()) else { return false };
        page.renew(self.epoch.get());
        let word = &page.words[word % WORDS];
        let before = word.get();
        let puts = at < self.len && before & bit == 0 && is_kept();
        if puts {
            word.set(before | bit);
        }
        puts
    }

    /// Marks one element as touched by an access of this kind and returns `true`, if the access
    /// fits and `is_kept` returns `true`. `is_kept`, which keeps the operation, is called last.
    /// Otherwise returns `false` without any effect.
    #[inline(always)]
    pub(crate) fn touch_one(&self, at: usize, kind: Kind, is_kept: impl FnOnce() -> bool) -> bool {
        if self.needs_no_mark(kind) {
            return at < self.len && is_kept();
        }
        let (word, bit) = (at / PER_WORD, 1 << (at % PER_WORD));
        let fits = at < self.len
            && matches!(self.accesses.get(), Accesses::Marked)
            && !self.conflicts(word, bit, kind);
        let touches = fits && is_kept();
        if touches {
            self.mark(word, bit, kind);
        }
        touches
    }

    /// Marks these elements as touched by an access of this kind. Returns whether the access fits,
    /// which means that all earlier accesses are marked and none of them conflicts with this
    /// access.
    ///
    /// # Cost
    /// A step for each 64 elements of a run, for each kind of access in the epoch.
    pub(crate) fn touch(&self, kind: Kind, touched: Touched<'_>) -> bool {
        match (self.accesses.get(), kind) {
            (Accesses::None, Kind::Accumulate(_)) => {
                self.accesses.set(Accesses::Unmarked(kind));
                return true;
            }
            (Accesses::None, _) if touched.is_of_more_runs(FEW_RUNS) => {
                self.accesses.set(Accesses::One);
                return true;
            }
            (Accesses::None, _) => self.accesses.set(Accesses::Marked),
            (Accesses::Unmarked(all), _) => return all == kind,
            (Accesses::One, _) => return false,
            (Accesses::Marked, _) => {}
        }
        let mut fits = true;
        touched.all_runs(|run| {
            fits &= run.end <= self.len;
            let (mut at, end) = (run.start, run.end.min(self.len));
            while at < end {
                let (word, first) = (at / PER_WORD, at % PER_WORD);
                let count = (PER_WORD - first).min(end - at);
                let bits = (u64::MAX >> (PER_WORD - count)) << first;
                fits &= !self.conflicts(word, bits, kind);
                self.mark(word, bits, kind);
                at += count;
            }
            true
        });
        fits
    }

    /// Returns whether an access of this kind to these elements of a word conflicts with an earlier
    /// access.
    #[inline(always)]
    fn conflicts(&self, word: usize, bits: u64, kind: Kind) -> bool {
        let mut others = self.used.get() & against(kind);
        while others != 0 {
            let plane = self.planes[others.trailing_zeros() as usize % KINDS].get();
            let page = plane.and_then(|plane| plane.get(word / WORDS)?.get());
            if let Some(page) = page
                && page.epoch.get() == self.epoch.get()
                && page.words[word % WORDS].get() & bits != 0
            {
                return true;
            }
            others &= others - 1;
        }
        false
    }

    #[inline(always)]
    fn mark(&self, word: usize, bits: u64, kind: Kind) {
        let code = code(kind) as usize % KINDS;
        self.used.set(self.used.get() | 1 << code);
        let pages = || (0..self.len.div_ceil(WORDS * PER_WORD)).map(|_| OnceCell::new()).collect();
        let page = || Box::new(Page { epoch: Cell::new(0), words: [const { Cell::new(0) }; WORDS] });
        let page = self.planes[code].get_or_init(pages)[word / WORDS].get_or_init(page);
        page.renew(self.epoch.get());
        let word = &page.words[word % WORDS];
        word.set(word.get() | bits);
    }
}

/// Returns the kinds with which an access of this kind conflicts, one bit each. An epoch has no
/// accumulates with `Op::NoOp`.
#[inline(always)]
fn against(kind: Kind) -> u32 {
    if kind == Kind::Put { u32::MAX } else { !(1 << code(kind)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::conflicts::conflict;
    use fencepost_planner::datatype::Datatype;
    use fencepost_planner::element::Op;

    #[test]
    fn an_access_fits_unless_it_conflicts_with_an_earlier_one() {
        let kinds: Vec<Kind> =
            [Kind::Get, Kind::Put].into_iter().chain(Op::ALL.map(Kind::Accumulate)).collect();
        let mut state = 7_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        let (mut hits, mut fits) = (0, 0);
        for len in [1, 63, 64, 70, 5000] {
            let marks = Marks::new(len);
            for _ in 0..1000 {
                marks.begin();
                let mut touched: Vec<Vec<Kind>> = vec![Vec::new(); len];
                let mut before: Vec<(Datatype, Kind)> = Vec::new();
                // Few kinds, so that some epochs have one operator, and most have several.
                let few = [0, 1, 2, 3].map(|_| kinds[draw(kinds.len())]);
                for _ in 0..9 {
                    let (kind, at) = (few[draw(4) % (1 + draw(4))], draw(len));
                    let run = at..(at + 1 + draw(2) * draw(140)).min(len);
                    let conflicts = touched[run.clone()].iter().flatten().any(|other| conflict(*other, kind));
                    let elements = Datatype::run(run.clone());
                    let mark = || match run.len() {
                        1 => {
                            kind == Kind::Put && marks.put_one(at, || true)
                                || marks.touch_one(at, kind, || true)
                                || marks.touch(kind, Touched::Run(at, 1))
                        }
                        _ => marks.touch(kind, Touched::Type(&elements)),
                    };
                    let mut is_fit = mark();
                    if !is_fit {
                        marks.renew();
                        before.iter().for_each(|(elements, kind)| {
                            marks.touch(*kind, Touched::Type(elements));
                        });
                        is_fit = mark();
                    }
                    assert_eq!(is_fit, !conflicts, "{run:?} {kind:?} of {len}");
                    *(if conflicts { &mut hits } else { &mut fits }) += 1;
                    // A conflicting access is also marked, as if the handler had let the conflict
                    // pass.
                    touched[run].iter_mut().for_each(|before| before.push(kind));
                    before.push((elements, kind));
                }
            }
        }
        assert!(hits > 2000 && fits > 2000, "{hits} hits, {fits} fit");
    }

    #[test]
    fn accumulates_with_one_operator_are_marked_only_once_something_else_is_called() {
        let (marks, element) = (Marks::new(100), Touched::Run(3, 1));
        let [sum, max] = [Op::Sum, Op::Max].map(Kind::Accumulate);
        assert!(!marks.touch_one(3, sum, || true), "nothing was called yet");
        assert!(marks.touch(sum, element) && marks.touch(sum, element) && marks.needs_no_mark(sum));
        assert!(marks.touch_one(3, sum, || true) && !marks.touch_one(100, sum, || true));
        assert!(!marks.touch(max, Touched::Run(4, 1)) && !marks.touch_one(4, Kind::Put, || true));
        marks.renew();
        assert!(marks.touch(sum, element) && !marks.needs_no_mark(sum));
        assert!(marks.touch(max, Touched::Run(4, 1)) && !marks.touch(max, element));
    }

    #[test]
    fn an_access_of_many_runs_is_marked_once_another_follows() {
        let (marks, runs) = (Marks::new(200), Datatype::nest(0, &[(FEW_RUNS + 1, 3)], 1).expect("a column"));
        let column = Touched::Type(&runs);
        assert!(marks.touch(Kind::Put, column), "the first access");
        assert!(!marks.put_one(1, || true) && !marks.touch_one(1, Kind::Put, || true));
        assert!(!marks.touch(Kind::Put, Touched::Run(1, 1)), "nothing is marked");
        marks.renew();
        assert!(marks.touch(Kind::Put, column) && marks.touch(Kind::Put, Touched::Run(1, 1)));
        assert!(!marks.touch(Kind::Put, Touched::Run(3, 1)) && !marks.put_one(6, || true));
        assert!(marks.put_one(2, || true) && !marks.put_one(2, || true));
    }

    #[test]
    fn one_element_is_marked_only_if_it_fits_and_is_kept() {
        let marks = Marks::new(100);
        assert!(marks.touch(Kind::Put, Touched::Run(3, 1)));
        assert!(!marks.touch_one(3, Kind::Put, || true) && !marks.touch_one(3, Kind::Get, || true));
        assert!(!marks.touch_one(4, Kind::Put, || false) && marks.touch_one(4, Kind::Put, || true));
        assert!(!marks.touch_one(4, Kind::Put, || true) && !marks.touch_one(100, Kind::Put, || true));
        assert!(!marks.touch(Kind::Get, Touched::Run(90, 11)), "past the end nothing is known");
    }

    #[test]
    fn operations_are_like_the_last_one_if_they_differ_from_it_in_their_element_only() {
        let (marks, number) = (Marks::new(100), |at: usize, kind: u64| kind << 40 | at as u64);
        assert!(!marks.is_like_last(number(3, 2), 3));
        marks.keep_last(number(3, 2), 3);
        assert!([0, 3, 7, 99].iter().all(|at| marks.is_like_last(number(*at, 2), *at)));
        assert!(!marks.is_like_last(number(7, 1), 7) && !marks.is_like_last(number(7, 3), 7));
        // Invalid displacements, whose bits reach into the bits of the kind.
        let none = [100, usize::MAX, usize::MAX - 3, 2 << 40 | 5, 1 << 40];
        assert!(none.iter().all(|at| !marks.is_like_last(number(*at, 2), *at)));
        marks.forget_last();
        assert!(!marks.is_like_last(number(3, 2), 3));
        marks.keep_last(number(3, 2), 3);
        marks.begin();
        assert!(!marks.is_like_last(number(3, 2), 3));
    }

    #[test]
    fn what_was_not_compared_is_known_until_the_epoch_ends() {
        let marks = Marks::new(100);
        assert!(marks.has_compared());
        marks.skip();
        marks.renew();
        assert!(!marks.has_compared());
        marks.begin();
        assert!(marks.has_compared());
    }
}
