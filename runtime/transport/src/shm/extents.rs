//! [`Extents`]: the free ranges of an interval of numbers. Adjacent ranges are merged.

use std::collections::BTreeMap;

/// Free ranges, by their first number.
#[derive(Default, Debug)]
pub(super) struct Extents {
    free: BTreeMap<u64, u64>,
    total: u64,
}

impl Extents {
    /// Returns how many numbers are free in total.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Takes `len` numbers, starting at a multiple of `align`, from the first range that has
    /// enough.
    pub(super) fn take(&mut self, len: u64, align: u64) -> Option<u64> {
        let skipped = |start: u64| start.next_multiple_of(align) - start;
        let has_it = |start: u64, has: u64| has >= skipped(start) && has - skipped(start) >= len;
        let (&start, &has) = self.free.iter().find(|&(&start, &has)| has_it(start, has))?;
        let taken = start + skipped(start);
        self.free.remove(&start);
        if taken > start {
            self.free.insert(start, taken - start);
        }
        if start + has > taken + len {
            self.free.insert(taken + len, start + has - (taken + len));
        }
        self.total -= len;
        Some(taken)
    }

    /// Inserts a range that was taken before, or a new range.
    pub(super) fn insert(&mut self, start: u64, len: u64) {
        let (mut from, mut to) = (start, start + len);
        if let Some((&before, &has)) = self.free.range(..start).next_back() {
            debug_assert!(before + has <= start, "inserted twice");
            if before + has == start {
                self.free.remove(&before);
                from = before;
            }
        }
        if let Some((&after, &has)) = self.free.range(start..).next() {
            debug_assert!(to <= after, "inserted twice");
            if after == to {
                self.free.remove(&after);
                to = after + has;
            }
        }
        self.free.insert(from, to - from);
        self.total += len;
    }

    /// Removes all extents and returns them, each as its address and length.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u64, u64)> + use<> {
        self.total = 0;
        std::mem::take(&mut self.free).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn what_is_taken_is_nobody_elses_and_all_comes_together_again(
            steps in prop::collection::vec((1u64..50, any::<prop::sample::Index>(), any::<bool>(), 0u32..4), 1..100),
        ) {
            let mut extents = Extents::default();
            extents.insert(0, 1000);
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (len, which, gives, shift) in steps {
                if gives && !taken.is_empty() {
                    let (start, len) = taken.swap_remove(which.index(taken.len()));
                    extents.insert(start, len);
                } else if let Some(start) = extents.take(len, 1_u64 << shift) {
                    prop_assert_eq!(start % (1_u64 << shift), 0);
                    prop_assert!(start + len <= 1000);
                    prop_assert!(taken.iter().all(|&(other, has)| start + len <= other || other + has <= start));
                    taken.push((start, len));
                }
                let used: u64 = taken.iter().map(|(_, len)| len).sum();
                prop_assert_eq!(extents.total(), 1000 - used);
            }
            for (start, len) in taken {
                extents.insert(start, len);
            }
            prop_assert_eq!(extents.take(1000, 1), Some(0));
        }
    }
}
