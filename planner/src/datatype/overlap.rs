//! Whether two typemaps share an element, and whether one visits an element twice.

use super::form::Datatype;

impl Datatype {
    /// Whether some element is in both.
    #[must_use]
    pub fn overlaps(&self, other: &Datatype) -> bool {
        self.overlap(other).is_some()
    }

    /// The lowest element that is in both.
    #[must_use]
    pub fn overlap(&self, other: &Datatype) -> Option<i64> {
        let (low, high) = (self.low().max(other.low()), self.high().min(other.high()));
        if low >= high || self.is_empty() || other.is_empty() {
            return None;
        }
        if self.as_run().is_some() && other.as_run().is_some() {
            return Some(low);
        }
        sweep(self, other)
    }

    /// Whether it visits an element twice.
    #[must_use]
    pub fn overlaps_itself(&self) -> bool {
        let runs = sorted(self);
        runs.windows(2).any(|pair| pair[0].0 + pair[0].1 as i64 > pair[1].0)
    }

    /// Whether it visits an element twice: [`Datatype::overlaps_itself`] by another name.
    #[must_use]
    pub fn has_duplicates(&self) -> bool {
        self.overlaps_itself()
    }
}

/// The runs by their first element.
fn sorted(datatype: &Datatype) -> Vec<(i64, usize)> {
    let mut runs: Vec<_> = datatype.run_iter().collect();
    runs.sort_unstable();
    runs
}

/// The lowest common element, by going up both.
fn sweep(a: &Datatype, b: &Datatype) -> Option<i64> {
    let (a, b) = (sorted(a), sorted(b));
    let (mut i, mut j) = (0, 0);
    while let (Some(&(a_low, a_run)), Some(&(b_low, b_run))) = (a.get(i), b.get(j)) {
        let (a_high, b_high) = (a_low + a_run as i64, b_low + b_run as i64);
        let low = a_low.max(b_low);
        if low < a_high.min(b_high) {
            return Some(low);
        }
        if a_high <= b_high {
            i += 1;
        } else {
            j += 1;
        }
    }
    None
}
