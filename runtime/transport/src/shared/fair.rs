//! [`FairLock`]: a lock in memory that ranks reach. Ranks get the lock first come, first served,
//! and shared holders hold it together.
//!
//! One word counts the turns that were handed out, the turns that have *entered*, and the turns
//! that are *over*. A shared turn counts as entered as soon as it holds the lock, so that the next
//! turn can follow it. An exclusive turn counts as entered only when it is over. A shared turn
//! enters when all turns before it have entered, and an exclusive turn enters when all turns before
//! it are over. So no turn overtakes another. While a rank waits for the lock, every rank that came
//! later stays behind it, and every rank that came before holds the lock once.
//!
//! Every change of the word is one compare-and-swap, so a rank that dies leaves no change half
//! done. A turn is never given back: a rank that takes a turn enters and leaves, or the lock is
//! lost with the rank.
//!
//! Only the first turn that waits can enter next. The rank of a waiting turn is in the turn's slot.
//! The index of the slot is the turn's number modulo the number of slots. Each rank has one turn at
//! a time, so the waiting ranks are in different slots. A slot is not cleared. If a stale entry
//! wakes a rank, that rank looks, finds nothing, and continues to wait.
//!
//! # Why nobody sleeps forever
//!
//! A waiter stores its rank in its slot, announces that it is about to sleep, and looks at the word
//! again. A fence in between keeps that order ([`waker`](crate::shared::waker)). A rank that
//! changes the word reads the slot afterwards, also with a fence in between. So either the waiter
//! sees the change, or the other rank sees the waiter. An attendant that takes turns for others
//! does not sleep. The attendant looks at the word again after
//! [`take_nudged`](FairLock::take_nudged), which has the same fence, and then whenever it is
//! nudged.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// How a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// Together with other shared holders.
    Shared,
    /// Alone.
    Exclusive,
}

/// A lock: the word, and the slots of the ranks that wait.
#[derive(Clone, Copy)]
pub struct FairLock<'a> {
    word: &'a AtomicU64,
    slots: &'a [AtomicU32],
}

/// A turn that could not enter a lock at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position(u32);

/// The rank to [wake](crate::Liveness::wake), if a rank waits for the change.
#[must_use = "the rank that waits sleeps on"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Next(pub Option<usize>);

/// The number of bits of each count.
const BITS: u32 = 21;
const MASK: u64 = (1 << BITS) - 1;

/// The counts in the word.
#[derive(Clone, Copy)]
struct Counts {
    turns: u32,
    entered: u32,
    over: u32,
}

impl Counts {
    fn of(word: u64) -> Self {
        let part = |at: u32| (word >> (at * BITS) & MASK) as u32;
        Self { turns: part(0), entered: part(1), over: part(2) }
    }

    fn word(self) -> u64 {
        u64::from(self.turns) | u64::from(self.entered) << BITS | u64::from(self.over) << (2 * BITS)
    }

    /// Returns whether the next turn may enter now, if it holds the lock as `hold`.
    fn admits(self, hold: Hold) -> bool {
        hold == Hold::Shared || self.over == self.entered
    }
}

fn after(count: u32) -> u32 {
    (count + 1) & MASK as u32
}

impl<'a> FairLock<'a> {
    /// The maximum number of ranks that may use one lock.
    pub const RANKS_MAX: usize = 1 << (BITS - 1);

    /// Returns the lock of this word and these slots, which are all zero at first.
    ///
    /// # Panics
    /// Panics if the number of slots is not a power of two. There must be a slot for each rank that
    /// may take a turn, and at most [`RANKS_MAX`](Self::RANKS_MAX) slots.
    #[inline]
    pub fn new(word: &'a AtomicU64, slots: &'a [AtomicU32]) -> Self {
        debug_assert!(slots.len().is_power_of_two() && slots.len() <= Self::RANKS_MAX);
        Self { word, slots }
    }

    /// Takes a turn for `rank`, which must not have a turn, and enters unless another rank's hold
    /// or wait prevents that.
    ///
    /// # Errors
    /// Returns the turn, if it has to wait. `rank` is woken when it may [enter](Self::enter).
    #[inline]
    pub fn take(&self, hold: Hold, rank: usize) -> Result<(), Position> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let counts = Counts::of(word);
            let turn = counts.turns;
            let enters = counts.entered == turn && counts.admits(hold);
            // An exclusive turn counts as entered only when it is over, so that no turn follows
            // while it holds the lock.
            let entered = if enters && hold == Hold::Shared { after(turn) } else { counts.entered };
            let new = Counts { turns: after(turn), entered, over: counts.over }.word();
            // Acquire: pairs with the exchange in `leave`.
            match self.word.compare_exchange_weak(word, new, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) if enters => return Ok(()),
                Ok(_) => {
                    self.slot(turn).store(rank as u32 + 1, Ordering::Relaxed);
                    return Err(Position(turn));
                }
                Err(now) => word = now,
            }
        }
    }

    /// Takes a turn for an attendant, like [`take`](Self::take). The slot of the turn gets
    /// `number`, which is not the number of a rank. If the turn has to wait, the attendant tries to
    /// [enter](Self::enter) once, and again whenever it is [nudged](crate::Liveness::nudge).
    ///
    /// # Errors
    /// As for [`take`](Self::take), except that the attendant is to be nudged when the turn may
    /// enter.
    pub fn take_nudged(&self, hold: Hold, number: usize) -> Result<(), Position> {
        let taken = self.take(hold, number);
        fence(Ordering::SeqCst); // pairs with the fence in `next`
        taken
    }

    /// Takes a turn and enters, if nobody holds the lock and nobody waits for it. Returns whether
    /// it has entered. If not, nothing has changed.
    #[inline]
    pub fn take_free(&self, hold: Hold) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        let counts = Counts::of(word);
        if counts.turns != counts.over {
            return false;
        }
        let turns = after(counts.turns);
        let new = match hold {
            Hold::Shared => Counts { turns, entered: turns, ..counts }.word(),
            Hold::Exclusive => Counts { turns, ..counts }.word(),
        };
        // Acquire: pairs with the exchange in `leave`.
        self.word.compare_exchange(word, new, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Enters, if this turn may enter now. The caller must then wake the returned rank, which may
    /// follow at once.
    #[inline]
    pub fn enter(&self, turn: Position, hold: Hold) -> Option<Next> {
        let mut word = self.word.load(Ordering::Acquire); // the exchange in `leave`
        loop {
            let counts = Counts::of(word);
            if counts.entered != turn.0 || !counts.admits(hold) {
                return None;
            }
            if hold == Hold::Exclusive {
                return Some(Next(None));
            }
            let counts = Counts { entered: after(turn.0), ..counts };
            match self.word.compare_exchange_weak(word, counts.word(), Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(self.next(counts)),
                Err(now) => word = now,
            }
        }
    }

    /// Returns the ranks that wait before this turn, which has not entered. A rank that has not
    /// stored its number in its slot yet is left out. Used for reports of waits.
    pub fn before(&self, turn: Position) -> impl Iterator<Item = usize> + use<'_, 'a> {
        let mut at = Counts::of(self.word.load(Ordering::Relaxed)).entered;
        let most = self.slots.len();
        let turns = std::iter::from_fn(move || {
            let before = at;
            at = after(at);
            (before != turn.0).then_some(before)
        });
        let rank = |turn| self.slot(turn).load(Ordering::Relaxed).checked_sub(1);
        turns.take(most).filter_map(rank).map(|rank| rank as usize)
    }

    /// Leaves the lock, which the caller holds as `hold`.
    #[inline(always)]
    pub fn leave(&self, hold: Hold) -> Next {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let counts = Counts::of(word);
            let over = after(counts.over);
            let entered = if hold == Hold::Exclusive { over } else { counts.entered };
            let counts = Counts { entered, over, ..counts };
            // Release: everything that was done under the lock happens before the accesses of the
            // next holder.
            match self.word.compare_exchange_weak(word, counts.word(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) if counts.over == counts.entered => return self.next(counts),
                Ok(_) => return Next(None), // shared holders remain, and an exclusive turn waits
                Err(now) => word = now,
            }
        }
    }

    /// Returns the rank of the turn that enters next, if it waits.
    #[inline]
    fn next(&self, counts: Counts) -> Next {
        if counts.turns == counts.entered {
            return Next(None);
        }
        fence(Ordering::SeqCst); // pairs with the fence of a rank that falls asleep
        let rank = self.slot(counts.entered).load(Ordering::Relaxed);
        // A slot is 0 until a waiter has stored its rank there. A waiter looks at the word after it
        // has stored its rank.
        Next(rank.checked_sub(1).map(|rank| rank as usize))
    }

    fn slot(&self, turn: u32) -> &AtomicU32 {
        &self.slots[turn as usize & (self.slots.len() - 1)]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use Hold::{Exclusive, Shared};

    fn with_lock(begin: u32, test: impl FnOnce(FairLock<'_>)) {
        let counts = Counts { turns: begin, entered: begin, over: begin };
        let (word, slots) = (AtomicU64::new(counts.word()), [const { AtomicU32::new(0) }; 8]);
        test(FairLock::new(&word, &slots));
    }

    #[test]
    fn turns_enter_in_the_order_in_which_they_were_taken() {
        // Also tests counts that wrap around.
        for begin in [0, MASK as u32 - 2, MASK as u32] {
            with_lock(begin, |lock| {
                assert_eq!(lock.take(Shared, 0), Ok(()));
                assert_eq!(lock.take(Shared, 1), Ok(()), "shared holders hold it together");
                let third = lock.take(Exclusive, 2).expect_err("it is held");
                let fourth = lock.take(Shared, 3).expect_err("an exclusive turn waits before it");
                let fifth = lock.take(Shared, 4).expect_err("others wait");
                let sixth = lock.take(Exclusive, 5).expect_err("others wait");
                assert!(lock.before(sixth).eq([2, 3, 4]) && lock.before(third).eq([]));
                assert_eq!(lock.leave(Shared), Next(None));
                assert_eq!(lock.enter(third, Exclusive), None);
                assert_eq!(lock.leave(Shared), Next(Some(2)));
                assert_eq!((lock.enter(fourth, Shared), lock.enter(sixth, Exclusive)), (None, None));
                assert_eq!(lock.enter(third, Exclusive), Some(Next(None)));
                assert_eq!(lock.enter(fourth, Shared), None);
                assert_eq!(lock.leave(Exclusive), Next(Some(3)));
                assert_eq!(lock.enter(fifth, Shared), None, "its turn comes next");
                assert_eq!(lock.enter(fourth, Shared), Some(Next(Some(4))));
                assert_eq!(lock.enter(fifth, Shared), Some(Next(Some(5))));
                assert_eq!(lock.leave(Shared), Next(None));
                assert_eq!(lock.enter(sixth, Exclusive), None);
                assert_eq!(lock.leave(Shared), Next(Some(5)));
                assert_eq!(lock.enter(sixth, Exclusive), Some(Next(None)));
                assert_eq!(lock.leave(Exclusive), Next(None));
                assert_eq!(lock.take(Exclusive, 0), Ok(()));
            });
        }
    }

    #[test]
    fn only_a_free_lock_is_taken_without_a_wait() {
        for begin in [0, MASK as u32] {
            for hold in [Exclusive, Shared] {
                with_lock(begin, |lock| {
                    assert!(lock.take_free(hold) && !lock.take_free(hold), "it is held");
                    assert_eq!(lock.take(Exclusive, 1), Err(Position(after(begin))));
                    assert_eq!(lock.leave(hold), Next(Some(1)));
                    assert!(!lock.take_free(hold), "another rank waits");
                    assert_eq!(lock.enter(Position(after(begin)), Exclusive), Some(Next(None)));
                    assert_eq!(lock.leave(Exclusive), Next(None));
                    assert!(lock.take_free(hold));
                });
            }
        }
    }

    /// For each wait of a rank, counts the turns of other ranks that entered after the rank took
    /// its turn and before that turn entered. Only turns that were taken earlier can enter in that
    /// time, at most one for each other rank.
    #[test]
    fn a_rank_that_waits_is_overtaken_by_each_other_rank_once_at_most() {
        const TIMES: u64 = 5_000;
        for ranks in [4, 8] {
            let (word, slots) = (AtomicU64::new(0), [const { AtomicU32::new(0) }; 8]);
            let (entries, most) = (AtomicU64::new(0), AtomicU64::new(0));
            let hold_one = |rank: usize, i: u64| {
                let lock = FairLock::new(&word, &slots);
                let hold = if (i + rank as u64).is_multiple_of(3) { Shared } else { Exclusive };
                let waits = lock.take(hold, rank);
                let before = entries.load(Ordering::Relaxed);
                if let Err(turn) = waits {
                    while lock.enter(turn, hold).is_none() {
                        std::thread::yield_now();
                    }
                }
                let overtaken = entries.fetch_add(1, Ordering::Relaxed) - before;
                if waits.is_err() && hold == Exclusive {
                    // After a shared turn has entered, other turns may enter before this test
                    // counts it.
                    most.fetch_max(overtaken, Ordering::Relaxed);
                }
                if i.is_multiple_of(4) {
                    // Lets other threads find the lock held, even if all threads share a core.
                    std::thread::yield_now();
                }
                let _ = lock.leave(hold);
            };
            let (all, hold_one) = (std::sync::Barrier::new(ranks), &hold_one);
            std::thread::scope(|scope| {
                for rank in 0..ranks {
                    let all = &all;
                    scope.spawn(move || {
                        all.wait();
                        (0..TIMES).for_each(|i| hold_one(rank, i));
                    });
                }
            });
            let most = most.into_inner();
            assert!(0 < most && most < ranks as u64, "overtaken by {most} turns of {ranks} ranks");
            assert_eq!(entries.into_inner(), TIMES * ranks as u64);
        }
    }
}
