//! Random numbers that a seed determines.

use std::ops::Range;

/// A sequence of random numbers, the same for each seed on every machine.
#[derive(Clone, Debug)]
pub struct Random(fastrand::Rng);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// One of `0..bound`; 0 where that is empty.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { self.0.usize(..bound) }
    }

    /// One of the numbers of a range.
    ///
    /// # Panics
    ///
    /// Panics if the range is empty.
    pub fn within(&mut self, range: Range<i64>) -> i64 {
        self.0.i64(range)
    }

    /// True once in `times` times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of the values of a list.
    ///
    /// # Panics
    ///
    /// Panics if the list is empty.
    pub fn one_of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    /// Up to `most` values, each of which `draw` draws.
    pub fn many<T, C: FromIterator<T>>(&mut self, most: usize, mut draw: impl FnMut(&mut Self) -> T) -> C {
        let count = self.below(most + 1);
        (0..count).map(|_| draw(self)).collect()
    }
}
