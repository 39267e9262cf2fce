//! [`Pace`]: converts an interval between snapshots into a number of offers, on rank 0.

use std::time::{Duration, Instant};

/// The longest time between two agreements. At an agreement the ranks notice signals, and whether
/// all ranks have finished writing.
const LOOK: Duration = Duration::from_secs(1);

/// The largest number of offers until the next agreement. It is limited because later steps may
/// take longer than the steps so far.
const OFFERS_MAX: u64 = 1 << 10;

/// How often a snapshot is due: after a time, or after a number of offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Every {
    #[doc(hidden)]
    Time(Duration),
    #[doc(hidden)]
    Offers(u64),
}

impl From<Duration> for Every {
    fn from(interval: Duration) -> Self {
        Every::Time(interval)
    }
}

impl From<u64> for Every {
    fn from(offers: u64) -> Self {
        Every::Offers(offers.max(1))
    }
}

/// The clock of rank 0.
#[derive(Debug)]
pub(crate) struct Pace {
    pub(crate) every: Every,
    /// The time at which the last snapshot was taken. Before the first snapshot, the time at which
    /// the clock was created. `since` is the number of offers since then.
    taken: Instant,
    since: u64,
    /// The time at which the ranks last agreed. `offers` is the number of offers since then.
    agreed: Instant,
    offers: u64,
    /// The number of offers after which the ranks agree again.
    granted: u64,
    /// Whether a snapshot was due at the last agreement and has not been taken since.
    is_due: bool,
}

impl Pace {
    pub(crate) fn new(every: Every, now: Instant) -> Self {
        Self { every, taken: now, since: 0, agreed: now, offers: 1, granted: 1, is_due: false }
    }

    /// Returns whether a snapshot is due at this agreement, and after how many offers ranks agree
    /// again. This number at most doubles from one agreement to the next, so the first agreements
    /// are 1, 2, 4, .. offers apart. `is_busy` is set if ranks are still writing the previous
    /// snapshot.
    pub(crate) fn agree(&mut self, now: impl FnOnce() -> Instant, is_busy: bool) -> (bool, u64) {
        self.since += self.granted;
        if self.is_due && is_busy {
            // The snapshot stays due, so the time need not be read.
            self.offers += self.granted;
            return (true, self.granted);
        }
        let now = now();
        let since = now - self.taken;
        self.is_due = match self.every {
            Every::Time(interval) => since >= interval,
            Every::Offers(offers) => self.since >= offers,
        };
        // If a snapshot is due while ranks still write, the ranks agree several times in an
        // interval.
        let (until, offers) = match self.every {
            Every::Time(interval) if !self.is_due => (interval - since, u64::MAX),
            Every::Time(interval) => (if is_busy { interval / 4 } else { interval }, u64::MAX),
            Every::Offers(offers) if !self.is_due => (LOOK, offers - self.since),
            Every::Offers(offers) => (LOOK, if is_busy { offers / 4 } else { offers }),
        };
        let each = (now - self.agreed).as_secs_f64() / self.offers as f64;
        let fits = (until.min(LOOK).as_secs_f64() / each.max(1e-9)) as u64;
        self.granted = fits.min(offers).min(OFFERS_MAX).clamp(1, 2 * self.granted);
        (self.agreed, self.offers) = (now, self.granted);
        (self.is_due, self.granted)
    }

    /// Begins the next interval, since a snapshot is taken now.
    pub(crate) fn begin(&mut self, now: Instant) {
        (self.taken, self.since, self.is_due) = (now, 0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the offers at which the ranks agree and the offers at which a snapshot is due, for a
    /// program whose steps take `step`.
    fn agreements(every: Every, step: Duration, count: usize) -> (Vec<u64>, Vec<u64>) {
        let mut now = Instant::now();
        let mut pace = Pace::new(every, now);
        let (mut offers, mut next, mut all, mut due) = (0, 1, Vec::new(), Vec::new());
        for _ in 0..count {
            offers += next;
            now += step * next as u32;
            let (is_due, granted) = pace.agree(|| now, false);
            all.push(offers);
            if is_due {
                due.push(offers);
                pace.begin(now);
            }
            next = granted;
        }
        (all, due)
    }

    #[test]
    fn the_first_agreements_come_after_1_2_4_offers_and_later_ones_each_second() {
        let (all, due) = agreements(Every::Time(Duration::from_secs(10)), Duration::from_millis(10), 40);
        assert_eq!(all[..8], [1, 3, 7, 15, 31, 63, 127, 227]);
        assert_eq!(all[8] - all[7], 100);
        assert!((1000..=1002).contains(&due[0]) && (2000..=2004).contains(&due[1]), "{due:?}");
    }

    #[test]
    fn a_step_that_takes_longer_than_the_interval_is_offered_with_an_agreement_each_time() {
        let (all, due) = agreements(Every::Time(Duration::from_secs(5)), Duration::from_secs(7), 4);
        assert_eq!((all, due), (vec![1, 2, 3, 4], vec![1, 2, 3, 4]));
    }

    #[test]
    fn a_number_of_offers_is_met_exactly() {
        let (_, due) = agreements(Every::Offers(6), Duration::from_micros(1), 30);
        assert_eq!(due[..4], [6, 12, 18, 24]);
        let (all, due) = agreements(Every::Offers(1), Duration::from_secs(1), 3);
        assert_eq!((all, due), (vec![1, 2, 3], vec![1, 2, 3]));
    }
}
