//! [`ByRank`]: the values that a rank keeps for some other ranks.

/// A value for each of some ranks. The value of a rank is made when it is first requested. The rank
/// that was requested last and the rank after it are found without a search.
#[derive(Default)]
pub(crate) struct ByRank<T> {
    /// The values, by ascending rank.
    all: Vec<(usize, Box<T>)>,
    /// The index of the rank that was found last.
    last: std::cell::Cell<usize>,
}

impl<T: Default> ByRank<T> {
    /// Returns the index of the value of a rank, or `Err` with the index at which to insert it.
    #[inline(always)]
    fn find(&self, rank: usize) -> Result<usize, usize> {
        let last = self.last.get();
        if self.all.get(last).is_some_and(|(known, _)| *known == rank) { Ok(last) } else { self.search(rank) }
    }

    #[inline(never)]
    fn search(&self, rank: usize) -> Result<usize, usize> {
        let next = self.last.get() + 1;
        let is_next = self.all.get(next).is_some_and(|(known, _)| *known == rank);
        let by_key = || self.all.binary_search_by_key(&rank, |(known, _)| *known);
        let found = if is_next { Ok(next) } else { by_key() };
        if let Ok(at) = found {
            self.last.set(at);
        }
        found
    }

    #[inline]
    pub(crate) fn get(&self, rank: usize) -> Option<&T> {
        self.find(rank).ok().map(|at| &*self.all[at].1)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, rank: usize) -> Option<&mut T> {
        self.find(rank).ok().map(|at| &mut *self.all[at].1)
    }

    /// Returns the value of a rank, and makes it if it is missing.
    #[inline(always)]
    pub(crate) fn of(&mut self, rank: usize) -> &mut T {
        let at = self.find(rank).unwrap_or_else(|at| self.make(rank, at));
        &mut self.all[at].1
    }

    #[cold]
    fn make(&mut self, rank: usize, at: usize) -> usize {
        self.all.insert(at, (rank, Box::default()));
        at
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = (usize, T)> {
        self.all.into_iter().map(|(rank, value)| (rank, *value))
    }
}

#[cfg(test)]
mod tests {
    use super::ByRank;

    #[test]
    fn each_rank_has_its_value_in_whatever_order_they_are_named() {
        let mut values = ByRank::<usize>::default();
        for rank in [5, 6, 2, 9, 6, 5, 0, 2, 3, 9] {
            *values.of(rank) += 10 + rank;
        }
        assert_eq!((values.get(6), values.get(0), values.get(4)), (Some(&32), Some(&10), None));
        assert_eq!(values.get_mut(3).copied(), Some(13));
        let all: Vec<(usize, usize)> = values.into_iter().collect();
        assert_eq!(all, [(0, 10), (2, 24), (3, 13), (5, 30), (6, 32), (9, 38)]);
    }
}
