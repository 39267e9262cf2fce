//! [`Words`]: the words of one rank's locks, in memory that other ranks reach.
//!
//! A part is divided into regions of equal length. Each region has a lock, which epochs hold. If
//! elements are not atomic, each region has a second lock, and a shared epoch holds the second lock
//! while it visits elements. A rank takes the locks of its regions in ascending order, and takes
//! second locks after all first locks. This order prevents deadlocks.
//!
//! Each rank also has a *note* in each part. The rank writes the note itself if it reaches the
//! part. Otherwise the attendant of the part writes it. The note contains the [`Presence`] of the
//! rank in the part, and the source line at which the rank began to wait for a lock or took all
//! locks. No protocol depends on notes. They show which rank keeps another rank waiting, and
//! whether a rank that died held a lock.
//!
//! ```text
//! line 0             whether the owner has opened or dropped the part; if only one rank accesses
//!                    the part, the number of that rank, plus one
//! lines 1..1+ranks   the notes
//! then, for each lock: a line with its word, and the slots of the waiting ranks
//! then, if conflicts are checked: the logs
//! ```

use crate::check::state::logs::Logs;
use crate::locks::state::hints::Hints;
use fencepost_planner::element::ElementType;
use fencepost_transport::{FairLock, Hold, Position};
use std::panic::Location;
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The number of words in a cache line.
const LINE: usize = 8;
/// The minimum number of bytes of a region. Locking several smaller regions would cost more than
/// waiting for one region.
const REGION_MIN: usize = 4096;
/// The number of bytes of a note that contain a source line, as text.
const SITE: usize = (LINE - 1) * 8;
/// The value of the first word after the owner has changed its window over to locks. Other ranks
/// may then access the part. Before that, the value is 0.
const OPEN: u64 = 1;
/// The values of the first word after the owner has dropped the part. `OVER` means that the owner
/// already knew that the world was over.
const CLOSED: u64 = 2;
const OVER: u64 = 3;

/// The places of the words of one part, and the regions of its elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    ranks: usize,
    slots: usize,
    /// The base-2 logarithm of the number of elements of a region.
    shift: u32,
    regions: usize,
    /// The number of words of a lock.
    lock_words: usize,
    /// Whether elements are atomic. If they are, there are no second locks.
    pub(crate) is_atomic: bool,
    /// Whether only one rank accesses the part. In that case there are no locks.
    pub(crate) is_sole: bool,
    /// Whether the program promises that shared epochs visit different elements.
    pub(crate) is_disjoint: bool,
    /// The number of words of all logs. `log_entries` is the number of entries of each log.
    log_words: usize,
    log_entries: usize,
}

impl Layout {
    pub(crate) fn new(ranks: usize, len: usize, element: ElementType, hints: Hints) -> Self {
        let least = match hints.regions as usize {
            0 => (REGION_MIN / element.size as usize).max(len.div_ceil(Hints::REGIONS_MAX)).max(1),
            most => len.div_ceil(most).max(1),
        };
        let shift = least.next_power_of_two().trailing_zeros();
        let regions = ((len.max(1) - 1) >> shift) + 1;
        let is_atomic = crate::kernel::atomic::is_atomic(element);
        let slots = ranks.next_power_of_two();
        let lock_words = LINE + slots.div_ceil(2).next_multiple_of(LINE);
        let (is_sole, is_disjoint) = (hints.is_sole, hints.is_disjoint);
        Self {
            ranks,
            slots,
            shift,
            regions,
            lock_words,
            is_atomic,
            is_sole,
            is_disjoint,
            log_words: 0,
            log_entries: 0,
        }
    }

    /// Returns this layout for a part of `words` words. If words are left after the locks, they
    /// contain logs.
    pub(crate) fn within(self, words: usize) -> Self {
        let log_words = words.saturating_sub(self.lock_end());
        Self { log_words, log_entries: Logs::entries(self.ranks, log_words), ..self }
    }

    /// Returns the number of words before the logs.
    fn lock_end(&self) -> usize {
        let locks = match self.takes_second(Hold::Shared) {
            _ if self.is_sole => 0,
            true => 2 * self.regions,
            false => self.regions,
        };
        (1 + self.ranks) * LINE + locks * self.lock_words
    }

    /// Returns whether an epoch that holds its regions with this `hold` takes second locks while it
    /// visits elements.
    #[inline]
    pub(crate) fn takes_second(&self, hold: Hold) -> bool {
        hold == Hold::Shared && !self.is_atomic && !self.is_disjoint && !self.is_sole
    }

    /// Returns the number of words of the part.
    pub(crate) fn words(&self) -> usize {
        self.lock_end() + self.log_words
    }

    /// Returns the regions of elements `low..high`, one bit each.
    #[inline]
    pub(crate) fn regions(&self, low: usize, high: usize) -> u32 {
        let (first, last) = (low >> self.shift, (high - 1) >> self.shift);
        (2 << last) - (1 << first)
    }

    /// Returns the region of an element.
    #[inline]
    pub(crate) fn region(&self, at: usize) -> usize {
        at >> self.shift
    }

    /// Returns whether there is a rank of this number.
    pub(crate) fn has_rank(&self, rank: usize) -> bool {
        rank < self.ranks
    }

    /// Returns all regions, one bit each.
    #[inline]
    pub(crate) fn all(&self) -> u32 {
        (1 << self.regions) - 1
    }
}

/// The words of one part.
#[derive(Clone, Copy)]
pub(crate) struct Words {
    first: *const u64,
    pub(crate) layout: Layout,
}

/// The activity of a rank in a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Presence {
    /// The rank has no lock of the part, and does not wait for a lock.
    Absent,
    /// The rank is about to take locks, or about to leave locks.
    Passing,
    /// The rank holds the locks of all regions until it unlocks the part.
    Holding,
    /// The rank waits for a shared or an exclusive lock.
    WaitingShared,
    WaitingExclusive,
}

impl Words {
    /// Returns the words at `first`.
    ///
    /// # Safety
    /// `first` points to as many words as the layout has, and they are zero at first. As long as
    /// this value or a copy of it is used, only this module accesses the words.
    pub(crate) unsafe fn new(first: *const u64, layout: Layout) -> Self {
        Self { first, layout }
    }

    /// Returns whether this rank reaches the words.
    pub(crate) fn are_reached(&self) -> bool {
        !self.first.is_null()
    }

    /// Returns the number of ranks.
    pub(crate) fn ranks(&self) -> usize {
        self.layout.ranks
    }

    /// Returns the number that identifies the attendant of the part in the queue of a lock. No rank
    /// has this number.
    pub(crate) fn attendant(&self) -> usize {
        self.layout.ranks
    }

    fn at(&self, word: usize) -> &AtomicU64 {
        debug_assert!(self.are_reached() && word < self.layout.words());
        // SAFETY: this is one of the words, and all accesses to them are atomic.
        unsafe { AtomicU64::from_ptr(self.first.add(word).cast_mut()) }
    }

    /// Returns the first lock of a region, or its second lock if `second` is set.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn lock(&self, region: usize, second: bool) -> FairLock<'_> {
        let index = if second { self.layout.regions + region } else { region };
        let word = (1 + self.layout.ranks) * LINE + index * self.layout.lock_words;
        debug_assert!(word + self.layout.lock_words <= self.layout.words());
        // SAFETY: the words after the lock's own word are its slots, two in each word, and all
        // accesses to them are atomic.
        let slots =
            unsafe { from_raw_parts(self.first.add(word + LINE).cast::<AtomicU32>(), self.layout.slots) };
        FairLock::new(self.at(word), slots)
    }

    /// Panics. No model of this package locks a window, because the words of a lock are not loom's
    /// atomics.
    #[cfg(loom)]
    pub(crate) fn lock(&self, _: usize, _: bool) -> FairLock<'_> {
        unreachable!("no model locks a window")
    }

    /// Returns whether the owner has opened the part to others, and has not dropped it.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.at(0).load(Ordering::Acquire) == OPEN
    }

    /// Returns whether the owner has dropped the part.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.at(0).load(Ordering::Acquire) >= CLOSED
    }

    /// Returns whether the owner has dropped the part and already knew that the world was over.
    pub(crate) fn is_over(&self) -> bool {
        self.at(0).load(Ordering::Acquire) == OVER
    }

    /// Opens the part to other ranks. From then on, the owner also accesses it only under its
    /// locks.
    pub(crate) fn open(&self) {
        self.at(0).store(OPEN, Ordering::Release);
    }

    pub(crate) fn close(&self, is_over: bool) {
        self.at(0).store(if is_over { OVER } else { CLOSED }, Ordering::Release);
    }

    /// Returns whether `rank` is the only rank that accesses the part. If no rank was the only rank
    /// before, `rank` becomes the only rank.
    #[inline]
    pub(crate) fn is_of(&self, rank: usize) -> bool {
        let (word, own) = (self.at(1), rank as u64 + 1);
        word.load(Ordering::Relaxed) == own
            || word.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns the only rank that accesses the part, if there is one.
    pub(crate) fn sole_rank(&self) -> Option<usize> {
        self.at(1).load(Ordering::Relaxed).checked_sub(1).map(|rank| rank as usize)
    }

    /// Writes the presence of `rank` into its note.
    #[inline]
    pub(crate) fn note(&self, rank: usize, presence: Presence) {
        // Release: a rank that reads this presence also reads the line that was written before it.
        self.at((1 + rank) * LINE).store(presence as u64, Ordering::Release);
    }

    /// Notes that `rank` holds all regions since this line.
    pub(crate) fn note_holding(&self, rank: usize, site: &str) {
        self.note_line(rank, Presence::Holding, site);
    }

    /// Notes that `rank` waits at this line for a lock, which it will hold with this `hold`.
    pub(crate) fn note_waiting(&self, rank: usize, hold: Hold, site: &str) {
        let presence = match hold {
            Hold::Shared => Presence::WaitingShared,
            Hold::Exclusive => Presence::WaitingExclusive,
        };
        self.note_line(rank, presence, site);
    }

    fn note_line(&self, rank: usize, presence: Presence, site: &str) {
        let mut bytes = [0; SITE];
        let tail = &site.as_bytes()[site.len().saturating_sub(SITE)..];
        bytes[..tail.len()].copy_from_slice(tail);
        for (word, bytes) in bytes.chunks_exact(8).enumerate() {
            let word = self.at((1 + rank) * LINE + 1 + word);
            word.store(u64::from_le_bytes(bytes.try_into().expect("chunks of eight")), Ordering::Relaxed);
        }
        self.note(rank, presence);
    }

    /// Returns the presence of `rank` from its note.
    #[inline]
    pub(crate) fn presence(&self, rank: usize) -> Presence {
        match self.at((1 + rank) * LINE).load(Ordering::Acquire) {
            0 => Presence::Absent,
            1 => Presence::Passing,
            2 => Presence::Holding,
            3 => Presence::WaitingShared,
            _ => Presence::WaitingExclusive,
        }
    }

    /// Returns the logs of the part, if conflicts are checked.
    pub(crate) fn logs(&self) -> Option<Logs> {
        let Layout { ranks, log_words, log_entries, is_disjoint, .. } = self.layout;
        // SAFETY: these are all words after those of the locks.
        let logs = || unsafe { Logs::new(self.first.add(self.layout.lock_end()), ranks, log_entries) };
        let are_there = self.are_reached() && log_words >= Logs::least(ranks);
        are_there.then(|| logs().promised(is_disjoint))
    }

    /// Returns a rank other than `me` that holds all regions.
    pub(crate) fn holder(&self, me: usize) -> Option<usize> {
        (0..self.layout.ranks).find(|&rank| rank != me && self.presence(rank) == Presence::Holding)
    }

    /// Returns the line since which `rank` holds all regions, or `None` if it does not hold them.
    pub(crate) fn held_since(&self, rank: usize) -> Option<String> {
        self.line(rank, Presence::Holding)
    }

    /// Describes the ranks in the queue before rank `me`. Rank `me` waits for `lock` at position
    /// `at`, while `holder` holds all regions.
    pub(crate) fn queue(&self, holder: usize, (me, lock, at): (usize, FairLock<'_>, Position)) -> String {
        let since = self.held_since(holder).unwrap_or_default();
        let mut text = format!("rank {holder} holds the lock since {since}");
        let waits = |rank: usize| (rank != me).then(|| self.line(rank, Presence::WaitingExclusive)).flatten();
        // The attendant waits on behalf of a rank that the queue does not name, so any rank is
        // possible.
        let stand = |number: usize| {
            if number < self.layout.ranks { number..number + 1 } else { 0..self.layout.ranks }
        };
        let mut before = lock.before(at).flat_map(stand).filter_map(|rank| Some((rank, waits(rank)?)));
        if let Some((rank, line)) = before.next() {
            text.push_str(&format!(
                "; before this rank, rank {rank} waits for it at {line}, for an exclusive epoch that others follow"
            ));
        }
        text
    }

    /// Returns the line in the note of `rank`, if the rank has this presence.
    fn line(&self, rank: usize, presence: Presence) -> Option<String> {
        if self.presence(rank) != presence {
            return None;
        }
        let words = (1..LINE).map(|word| self.at((1 + rank) * LINE + word).load(Ordering::Relaxed));
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).take_while(|&byte| byte != 0).collect();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Formats a source line as in notes.
pub(crate) fn site_text(site: &Location<'_>) -> String {
    format!("{}:{}", site.file(), site.line())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::element::Scalar;

    #[test]
    fn regions_cover_a_part_and_are_as_many_as_there_are_bits() {
        for element in
            [ElementType::scalar(Scalar::U8), ElementType::scalar(Scalar::F64), ElementType::opaque(24)]
        {
            for len in [0, 1, 511, 512, 513, 4096, 4097, 8192, 65_536, 65_537, 1_000_000] {
                let layout = Layout::new(4, len, element, Hints::new());
                assert!((1..=Hints::REGIONS_MAX).contains(&layout.regions), "{len}: {layout:?}");
                if len > 0 {
                    assert_eq!(layout.regions(0, len), layout.all(), "{len}: {layout:?}");
                    assert_eq!(layout.regions(len - 1, len), 1 << (layout.regions - 1));
                    assert_eq!(layout.regions(0, 1), 1);
                }
            }
        }
    }

    #[test]
    fn a_part_has_at_most_the_regions_that_hints_ask_for() {
        let element = ElementType::scalar(Scalar::F64);
        for most in 1..=Hints::REGIONS_MAX {
            for len in [0, 1, 5, 16, 17, 1000, 65_536] {
                let layout = Layout::new(4, len, element, Hints::new().regions(most));
                assert!((1..=most).contains(&layout.regions), "{len}, {most}: {layout:?}");
                assert!(len == 0 || layout.regions(0, len) == layout.all(), "{len}, {most}");
            }
        }
        let whole = Layout::new(4, 1 << 16, element, Hints::new());
        assert_eq!(Layout::new(4, 16, element, Hints::new().regions(16)).regions, 16);
        let sole = Layout::new(4, 1 << 16, element, Hints::new().sole_origin());
        assert!(sole.words() == 5 * LINE && whole.words() > 16 * LINE, "there are no locks");
    }

    #[test]
    fn the_first_rank_that_accesses_a_part_of_a_sole_origin_has_it() {
        let layout = Layout::new(3, 8, ElementType::scalar(Scalar::U8), Hints::new().sole_origin());
        let memory: Vec<AtomicU64> = (0..layout.words()).map(|_| AtomicU64::new(0)).collect();
        // SAFETY: `memory` has the layout's number of words and outlives the value.
        let words = unsafe { Words::new(memory.as_ptr().cast(), layout) };
        assert_eq!(words.sole_rank(), None);
        assert!(words.is_of(2) && words.is_of(2) && !words.is_of(0) && !words.is_of(1));
        assert_eq!(words.sole_rank(), Some(2));
    }

    #[test]
    fn locks_and_notes_do_not_overlap() {
        let layout = Layout::new(5, 100_000, ElementType::opaque(24), Hints::new());
        let memory: Vec<AtomicU64> = (0..layout.words()).map(|_| AtomicU64::new(0)).collect();
        // SAFETY: `memory` has the layout's number of words and outlives the value.
        let words = unsafe { Words::new(memory.as_ptr().cast(), layout) };
        for rank in 0..5 {
            words.note_holding(
                rank,
                &format!("a/very/long/path/that/does/not/fit/into/a/note/at/all.rs:{rank}"),
            );
        }
        for region in 0..layout.regions {
            for second in [false, true] {
                assert_eq!(words.lock(region, second).take(Hold::Exclusive, 4), Ok(()));
                assert!(words.lock(region, second).take(Hold::Shared, 3).is_err());
            }
        }
        assert!(!words.is_open() && !words.is_closed());
        words.open();
        assert!(words.is_open() && !words.is_closed());
        words.close(false);
        assert!(!words.is_over());
        for rank in 0..5 {
            let site = words.held_since(rank).expect("it holds the part");
            assert!(site.ends_with(&format!("at/all.rs:{rank}")), "{site}");
            words.note(rank, Presence::Absent);
            assert_eq!(words.held_since(rank), None);
        }
        assert!(words.is_closed() && !words.is_open());
    }
}
