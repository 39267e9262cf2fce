//! [`Calls`]: the count of a rank's collective calls in a world.
//!
//! Ranks meet in exchanges of notifications: the n-th exchange of one rank is the n-th exchange of
//! every other rank. Suppose a rank left a call without its exchange. From then on its exchanges
//! would meet exchanges of other calls, and ranks would take data of other calls for data of their
//! own calls. So every rank counts its collective calls as they begin, even calls that fail, and
//! each notification carries the count. [`Fence`](crate::fence) compares the counts first. A call
//! that is behind fails, and a call that is ahead exchanges again until the others have reached it.
//! Frames of prepared runs carry the count in their word.
//!
//! A superstep is one call. A scoped epoch is one call too, and so is a prepared superstep. If the
//! plan of a prepared superstep synchronises by posts and starts, only some ranks may run it, and
//! it is not counted. Calls in the bodies, closures and patterns of supersteps have a separate
//! count, which starts at 0 in each outermost superstep. If a rank leaves a body early, its count
//! agrees with the counts of the others again at its next call.

use crate::state::call_sites::CallSites;
use crate::state::key::Key;
use std::cell::Cell;
use std::sync::Arc;

/// The collective calls of a rank in a world: how many it has begun, and the key by which they are
/// compared.
pub(crate) struct Calls {
    /// The key by which ranks compare their calls.
    pub(crate) key: Key,
    pub(crate) sites: Arc<CallSites>,
    /// The number of windows, splits, and plans of posts and starts that were made so far.
    pub(crate) made: Cell<u32>,
    /// The number of supersteps so far, which is the high half of every word.
    supersteps: Cell<u32>,
    /// The number of calls outside of supersteps, including outermost supersteps.
    number: Cell<u32>,
    /// The number of calls in the body of the outermost superstep, including its end.
    inner: Cell<u32>,
    /// The number of nested supersteps that the rank is in.
    depth: Cell<u32>,
}

/// The number of bits of the call number that a notification carries.
const BITS: u32 = 16;

impl Calls {
    pub(crate) fn new(key: Key, sites: Arc<CallSites>) -> Self {
        let [made, supersteps, number, inner, depth] = [const { Cell::new(0) }; 5];
        Self { key, sites, made, supersteps, number, inner, depth }
    }

    /// Counts a superstep that begins. Returns its word.
    #[inline]
    pub(crate) fn next_word(&self, hash: u32) -> u64 {
        let number = self.supersteps.get().wrapping_add(1);
        self.supersteps.set(number);
        u64::from(number) << 32 | u64::from(hash)
    }

    /// Returns the number of supersteps so far.
    #[inline]
    pub(crate) fn supersteps(&self) -> u32 {
        self.supersteps.get()
    }

    /// Counts a collective call that begins.
    #[inline]
    pub(crate) fn begin(&self) {
        if self.depth.get() == 0 {
            self.number.set(self.number.get().wrapping_add(1));
            self.inner.set(0);
        } else {
            self.inner.set(self.inner.get().wrapping_add(1));
        }
    }

    /// Counts a superstep that begins.
    pub(crate) fn enter(&self) {
        self.begin();
        self.depth.set(self.depth.get() + 1);
    }

    /// Notes the beginning of a superstep that is not a call of all ranks. Calls in its body are
    /// counted as in any other body.
    pub(crate) fn enter_apart(&self) {
        if self.depth.get() == 0 {
            self.inner.set(0);
        }
        self.depth.set(self.depth.get() + 1);
    }

    /// Notes that a superstep has ended.
    pub(crate) fn leave(&self) {
        self.depth.set(self.depth.get() - 1);
    }

    /// Returns the number that notifications carry, shifted left by `flags` bits.
    #[inline]
    pub(crate) fn tag(&self, flags: u32) -> u32 {
        self.number.get() << flags
    }

    /// Returns the position of this call. No other call has the same position. The hash of each
    /// call includes its position.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        u64::from(self.number.get()) << 32 | u64::from(self.inner.get())
    }

    /// Runs code of the user that must not call the world. Collective calls that the code begins
    /// nevertheless are not counted.
    pub(crate) fn uncounted<R>(&self, call: impl FnOnce() -> R) -> R {
        let kept = [&self.number, &self.inner, &self.depth].map(Cell::get);
        let result = call();
        [&self.number, &self.inner, &self.depth]
            .into_iter()
            .zip(kept)
            .for_each(|(cell, value)| cell.set(value));
        result
    }

    /// Returns the number of calls outside of supersteps that have begun.
    pub(crate) fn number(&self) -> u32 {
        self.number.get()
    }

    /// Sets the numbers of supersteps and windows so far, so that tests can begin near the largest
    /// numbers.
    pub(crate) fn begin_at(&self, supersteps: u32, made: u32) {
        self.supersteps.set(supersteps);
        self.number.set(supersteps);
        self.made.set(made);
    }
}

/// Returns by how many calls the first of two tags is ahead of the second. The number wraps. Ranks
/// that exchange notifications are never 2^15 or more calls apart.
pub(crate) fn ahead(first: u32, second: u32) -> i32 {
    let unused = u32::BITS - BITS;
    (((first >> unused).wrapping_sub(second >> unused) << unused) as i32) >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls() -> Calls {
        Calls::new(Key::default(), Arc::new(CallSites::new(0..1)))
    }

    #[test]
    fn calls_in_a_body_are_counted_apart() {
        let calls = calls();
        calls.begin();
        calls.enter();
        calls.begin();
        calls.begin();
        assert_eq!(calls.position(), 2 << 32 | 2);
        calls.leave();
        calls.begin();
        assert_eq!(calls.position(), 3 << 32);
    }

    #[test]
    fn what_only_some_ranks_run_is_not_counted() {
        let (some, others) = (calls(), calls());
        some.begin();
        others.begin();
        some.enter_apart();
        some.begin();
        some.leave();
        some.begin();
        others.begin();
        assert_eq!((some.position(), some.number()), (others.position(), others.number()));
    }

    #[test]
    fn tags_are_compared_across_the_wrap() {
        let tag = |number: u32| number << 16;
        for (first, second, apart) in [(5, 5, 0), (6, 5, 1), (5, 6, -1), (0, 0xffff, 1), (0xffff, 1, -2)] {
            assert_eq!(ahead(tag(first), tag(second)), apart, "{first} and {second}");
        }
        let calls = calls();
        calls.begin_at(u32::MAX, 0);
        let before = calls.tag(16);
        calls.begin();
        assert_eq!(ahead(calls.tag(16), before), 1);
    }
}
