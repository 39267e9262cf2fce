//! Random numbers that a seed determines.

use std::ops::Range;

/// A sequence of random numbers. Each seed gives the same sequence on every machine.
#[derive(Clone, Debug)]
pub struct Random(fastrand::Rng);

impl Random {
    /// Creates the sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Returns a number in `0..bound`, or 0 if this range is empty.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { self.0.usize(..bound) }
    }

    /// Returns one of the numbers of a range.
    ///
    /// # Panics
    ///
    /// Panics if the range is empty.
    pub fn within(&mut self, range: Range<i64>) -> i64 {
        self.0.i64(range)
    }

    /// Returns true once in `times` times on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of the values of a list.
    ///
    /// # Panics
    ///
    /// Panics if the list is empty.
    pub fn one_of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    /// Returns up to `most` values, each drawn by `draw`.
    pub fn many<T, C: FromIterator<T>>(&mut self, most: usize, mut draw: impl FnMut(&mut Self) -> T) -> C {
        let count = self.below(most + 1);
        (0..count).map(|_| draw(self)).collect()
    }
}
