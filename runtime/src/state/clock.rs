//! [`Clock`]: what a rank knows to be over before what it calls next, for the search for conflicts between epochs that no
//! fence ends (planner/README.md, 32).
//!
//! It is a vector clock (Fidge, Mattern) that calls of all ranks cut short: a *time* of a rank is the number of the last
//! exchange of all ranks, above a count of what the rank has ended since. After an exchange every rank knows that all times of
//! smaller numbers are over, and nothing has to be sent for it. What is known besides travels with messages, posts and
//! accesses, and is kept with the locks of each part.

use std::cell::{Cell, RefCell};

/// What a rank knows of the times of all ranks.
#[derive(Default)]
pub(crate) struct Clock {
    /// The number of the last exchange of all ranks.
    exchange: Cell<u32>,
    /// What this rank has ended since.
    ended: Cell<u32>,
    /// The times of others that this rank has heard of, by rank; none yet where it is empty.
    heard: RefCell<Vec<u64>>,
    /// Another number whenever more is known.
    version: Cell<u64>,
    /// Whether exchanges of all ranks order nothing for now.
    ignores_exchanges: Cell<bool>,
}

/// The first time after an exchange of this number.
pub(crate) fn after_exchange(number: u32) -> u64 {
    u64::from(number) << 32
}

/// The number of the exchange before this time.
pub(crate) fn exchange_of(time: u64) -> u64 {
    time >> 32
}

/// The later of two times, rank by rank.
pub(crate) fn merge(into: &mut [u64], more: &[u64]) {
    into.iter_mut().zip(more).for_each(|(time, more)| *time = (*time).max(*more));
}

impl Clock {
    /// All ranks have met in an exchange of this number: all that they ended before is over.
    pub(crate) fn met(&self, number: u32) {
        if !self.ignores_exchanges.get() && self.exchange.replace(number) != number {
            self.ended.set(0);
            self.version.set(self.version.get() + 1);
        }
    }

    /// Runs a call of all ranks that does not order all that they have ended: its exchanges are not counted.
    pub(crate) fn ignoring_exchanges<R>(&self, call: impl FnOnce() -> R) -> R {
        let before = self.ignores_exchanges.replace(true);
        let result = call();
        self.ignores_exchanges.set(before);
        result
    }

    /// This rank's time: what it has ended has an earlier one.
    pub(crate) fn time(&self) -> u64 {
        after_exchange(self.exchange.get()) | u64::from(self.ended.get())
    }

    /// This rank ends something, whose time is returned.
    pub(crate) fn end(&self) -> u64 {
        let time = self.time();
        self.ended.set(self.ended.get().saturating_add(1));
        time
    }

    /// The times of all `ranks` that are known to this rank, `me`: what has an earlier time than its rank's is over.
    pub(crate) fn now(&self, me: usize, ranks: usize) -> Vec<u64> {
        let mut all = vec![after_exchange(self.exchange.get()); ranks];
        merge(&mut all, &self.heard.borrow());
        all[me] = self.time();
        all
    }

    /// These times, of all ranks, are known as well.
    pub(crate) fn hear(&self, times: &[u64]) {
        let heard = &mut *self.heard.borrow_mut();
        heard.resize(times.len().max(heard.len()), 0);
        if times.iter().zip(&*heard).any(|(time, heard)| time > heard) {
            merge(heard, times);
            self.version.set(self.version.get() + 1);
        }
    }

    /// A number that changes when more is known.
    pub(crate) fn version(&self) -> u64 {
        self.version.get()
    }
}

/// Appends times to `out`.
pub(crate) fn write(times: &[u64], out: &mut Vec<u8>) {
    out.extend(times.iter().flat_map(|time| time.to_le_bytes()));
}

/// The times of all `ranks` at the front of `bytes`, which is left at what follows.
pub(crate) fn read(ranks: usize, bytes: &mut &[u8]) -> Option<Vec<u64>> {
    let (times, rest) = bytes.split_at_checked(ranks.checked_mul(8)?)?;
    *bytes = rest;
    Some(times.chunks_exact(8).map(|time| u64::from_le_bytes(time.try_into().expect("eight"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ended_is_over_for_who_heard_of_it_or_met_since() {
        let [a, b, c] = [(); 3].map(|()| Clock::default());
        [&a, &b, &c].iter().for_each(|clock| clock.met(7));
        let ended = a.end();
        let knows = |clock: &Clock, me| clock.now(me, 3)[0] > ended;
        assert!(knows(&a, 0) && !knows(&b, 1));
        let version = b.version();
        b.hear(&a.now(0, 3));
        assert!(knows(&b, 1) && !knows(&c, 2) && b.version() != version);
        c.hear(&b.now(1, 3));
        assert!(knows(&c, 2));
        let later = a.end();
        assert!(later > ended && b.now(1, 3)[0] <= later);
        b.met(8);
        assert!(b.now(1, 3)[0] > later && b.now(1, 3)[2] > c.end());
    }

    #[test]
    fn an_exchange_that_is_ignored_orders_nothing() {
        let [a, b] = [(); 2].map(|()| Clock::default());
        let ended = a.end();
        [&a, &b].iter().for_each(|clock| clock.ignoring_exchanges(|| clock.met(7)));
        assert!(b.now(1, 2)[0] <= ended);
        [&a, &b].iter().for_each(|clock| clock.met(8));
        assert!(b.now(1, 2)[0] > ended);
    }

    #[test]
    fn times_are_read_as_they_were_written() {
        let mut out = Vec::new();
        write(&[1, u64::MAX], &mut out);
        out.push(9);
        let mut bytes = &out[..];
        assert_eq!((read(2, &mut bytes), bytes), (Some(vec![1, u64::MAX]), &[9][..]));
        assert_eq!(read(3, &mut &out[..]), None);
    }
}
