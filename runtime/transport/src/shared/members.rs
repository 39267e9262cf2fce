//! The membership table: which ranks have left, whether the world was ended, and the superstep that
//! each rank is in. A rank reads the table only after a poll that found nothing.
//!
//! The table consists of flags, and of texts that are written once. So a rank that dies while it
//! writes leaves nothing locked.

use std::io;

use crate::deadlock::cut;
use crate::shared::slice::{Heap, Placement, SharedSlice};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Line, Ordering, UnsafeCell, fence, yield_now};
use crate::{Cause, Leave, Loss, Lost};

/// The membership table of one world.
#[derive(Clone)]
pub struct Membership {
    ended: SharedSlice<AtomicBool>,
    why_ended: SharedSlice<LossCell>,
    gone: SharedSlice<AtomicBool>,
    /// Which ranks have dropped their ends. The next field has the ranks that no longer read this
    /// table, because they have seen that all ends are dropped.
    detached: SharedSlice<AtomicBool>,
    #[cfg_attr(loom, expect(dead_code, reason = "only segments outlive worlds"))]
    swept: SharedSlice<AtomicBool>,
    why_gone: SharedSlice<LossCell>,
    /// The word of the superstep that each rank entered last.
    at: SharedSlice<Line<AtomicU64>>,
    /// Whether each rank may be accessing memory of other ranks.
    touching: SharedSlice<Line<AtomicBool>>,
    /// The ranks whose death a watcher reported, if ranks can die separately.
    failed: Option<FailedRanks>,
    alarms: Alarms,
}

/// A count of failures. It changes after a rank has died or left with an error, and after a world
/// has ended. Ranks read the count on paths on which they read nothing else of other ranks. A rank
/// that finds a changed count checks which rank has failed.
#[derive(Clone)]
pub struct Alarms(SharedSlice<AtomicU32>);

impl Alarms {
    /// Creates a count on this process's heap.
    pub(crate) fn new() -> Self {
        Self(Heap::list(1, || AtomicU32::new(0)))
    }

    /// Counts a failure, which the caller has recorded.
    pub fn raise(&self) {
        self.0[0].fetch_add(1, Ordering::Release); // the loads in `count`
    }

    /// Returns how many failures were counted. Acquire: the records of these failures are visible.
    #[inline]
    pub fn count(&self) -> u32 {
        self.0[0].load(Ordering::Acquire)
    }
}

/// The ranks that a watcher marked failed, in all worlds at once.
#[derive(Clone)]
pub(crate) struct FailedRanks {
    /// The number of failed ranks.
    count: SharedSlice<AtomicU32>,
    /// The count of failures of all worlds of the job.
    alarms: SharedSlice<AtomicU32>,
    why: SharedSlice<LossCell>,
    /// Why each rank left its last world, if it left with an error and then ended by itself,
    /// outside of all worlds.
    exit_reasons: SharedSlice<LossCell>,
    /// The index in these lists of each rank of this world.
    of: std::sync::Arc<[u32]>,
}

/// The longest text in bytes. A longer one is cut.
const TEXT: usize = 1000;

/// What became of a rank. Written once.
#[repr(C)]
pub(crate) struct LossCell {
    state: AtomicU32,
    text: UnsafeCell<LossText>,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct LossText {
    rank: u32,
    kind: u32,
    len: u32,
    bytes: [u8; TEXT],
}

/// States of [`LossCell`].
const UNWRITTEN: u32 = 0;
const CLAIMED: u32 = 1;
const WRITTEN: u32 = 2;

// SAFETY: a text is written once, by the thread that claimed it. A reader reads it after an Acquire
// load of the state, which the writer stored with Release after the text.
unsafe impl Sync for LossCell {}
// SAFETY: the value is plain data.
unsafe impl Send for LossCell {}

impl LossCell {
    pub(crate) fn new() -> Self {
        let text = LossText { rank: 0, kind: 0, len: 0, bytes: [0; TEXT] };
        Self { state: AtomicU32::new(UNWRITTEN), text: UnsafeCell::new(text) }
    }

    /// Writes the cell, unless another thread has claimed it. Returns whether the cell now holds
    /// this value.
    fn write(&self, lost: &Lost) -> bool {
        if self.state.compare_exchange(UNWRITTEN, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        let (kind, reason) = match &lost.how {
            Loss::Left(Leave::Finished) => (0, ""),
            Loss::Left(Leave::Failed(why)) => (1, &why[..]),
            Loss::Left(Leave::Panicked(why)) => (2, &why[..]),
            Loss::Cut => (3, ""),
            Loss::Died(how) => (4, &how[..]),
            Loss::Ended(why) => (5, &why[..]),
        };
        let len = cut(reason, TEXT).len();
        // SAFETY: this thread has claimed the cell, and nobody reads it before it is marked
        // written.
        self.text.with_mut(|text| unsafe {
            (*text).rank = lost.rank as u32;
            (*text).kind = kind;
            (*text).len = len as u32;
            (&mut (*text).bytes)[..len].copy_from_slice(&reason.as_bytes()[..len]);
        });
        self.state.store(WRITTEN, Ordering::Release); // the loads in `read` and `is_written`
        true
    }

    fn is_written(&self) -> bool {
        self.state.load(Ordering::Acquire) == WRITTEN
    }

    fn read(&self) -> Option<Lost> {
        if !self.is_written() {
            return None;
        }
        // SAFETY: the cell was written, and is not written again.
        let text = self.text.with(|text| unsafe { *text });
        let text_of = || {
            let bytes = &text.bytes[..TEXT.min(text.len as usize)];
            String::from_utf8_lossy(bytes).into_owned()
        };
        let how = match text.kind {
            0 => Loss::Left(Leave::Finished),
            1 => Loss::Left(Leave::Failed(text_of())),
            2 => Loss::Left(Leave::Panicked(text_of())),
            3 => Loss::Cut,
            4 => Loss::Died(text_of()),
            _ => Loss::Ended(text_of()),
        };
        Some(Lost { rank: text.rank as usize, how })
    }
}

#[cfg(not(loom))]
impl FailedRanks {
    /// Places the lists of a job of `ranks` ranks. No rank has failed.
    pub(crate) fn place(ranks: usize, placement: &mut impl Placement) -> io::Result<Self> {
        Ok(Self {
            count: placement.place(1, || AtomicU32::new(0))?,
            alarms: placement.place(1, || AtomicU32::new(0))?,
            why: placement.place(ranks, LossCell::new)?,
            exit_reasons: placement.place(ranks, LossCell::new)?,
            of: (0..ranks as u32).collect(),
        })
    }

    /// Returns the same lists, for a world of some of these ranks.
    pub(crate) fn of(&self, members: &[u32]) -> Self {
        Self { of: members.iter().map(|&member| self.of[member as usize]).collect(), ..self.clone() }
    }

    /// Records the error with which `rank`, the caller, left its last world. The rank is about to
    /// end by itself, outside of all worlds.
    pub(crate) fn record_exit(&self, rank: usize, why: &str) {
        let reason = format!("it ended without having been in this world: {why}");
        self.exit_reasons[self.of[rank] as usize]
            .write(&Lost { rank, how: Loss::Left(Leave::Failed(reason)) });
    }

    /// Marks `rank` failed. Returns whether it was not marked before.
    pub(crate) fn mark_failed(&self, rank: usize, how: &str) -> bool {
        let news = self.why[self.of[rank] as usize].write(&Lost { rank, how: Loss::Died(how.into()) });
        if news {
            self.count[0].fetch_add(1, Ordering::Release); // the load in `has`
            self.alarms().raise();
        }
        news
    }
}

impl FailedRanks {
    fn alarms(&self) -> Alarms {
        Alarms(self.alarms.clone())
    }

    /// Returns whether `rank` was marked failed.
    #[inline]
    pub(crate) fn has(&self, rank: usize) -> bool {
        self.count[0].load(Ordering::Acquire) != 0 && self.why[self.of[rank] as usize].is_written()
    }

    /// Returns what became of `rank`, which has not left the caller's world. A rank records its
    /// exit only outside of all worlds, so a `rank` with a recorded exit has never been in that
    /// world.
    fn how(&self, rank: usize) -> Option<Loss> {
        let at = self.of[rank] as usize;
        let died = self.why[at].read()?;
        Some(self.exit_reasons[at].read().unwrap_or(died).how)
    }
}

impl Membership {
    /// Creates a membership table on this process's heap.
    pub(crate) fn new(size: usize) -> Self {
        Self::place(size, None, &mut Heap).expect("a heap has room")
    }

    pub(crate) fn place(
        size: usize,
        failed: Option<FailedRanks>,
        placement: &mut impl Placement,
    ) -> io::Result<Self> {
        Ok(Self {
            ended: placement.place(1, || AtomicBool::new(false))?,
            why_ended: placement.place(1, LossCell::new)?,
            gone: placement.place(size, || AtomicBool::new(false))?,
            detached: placement.place(size, || AtomicBool::new(false))?,
            swept: placement.place(size, || AtomicBool::new(false))?,
            why_gone: placement.place(size, LossCell::new)?,
            at: placement.place(size, || Line(AtomicU64::new(0)))?,
            touching: placement.place(size, || Line(AtomicBool::new(false)))?,
            alarms: failed.as_ref().map_or_else(Alarms::new, FailedRanks::alarms),
            failed,
        })
    }

    /// Marks `rank` gone, which means that it sends nothing any more. Returns whether it was not
    /// marked before.
    pub(crate) fn mark_gone(&self, rank: usize, how: Loss) -> bool {
        let fails = how != Loss::Left(Leave::Finished);
        let news = self.why_gone[rank].write(&Lost { rank, how });
        if news {
            // Release: a rank that sees the flag sees all that `rank` sent before.
            self.gone[rank].store(true, Ordering::Release);
            if fails {
                self.alarms.raise();
            }
        }
        news
    }

    /// Ends the world, unless it was ended before.
    pub(crate) fn end(&self, cause: Cause) {
        let is_first = self.why_ended[0].write(&Lost { rank: cause.rank, how: Loss::Ended(cause.what) });
        self.ended[0].store(true, Ordering::Release);
        fence(Ordering::SeqCst); // pairs with the fence in `touch`
        if is_first {
            self.alarms.raise();
        }
    }

    /// Returns the count of failures that concern this world.
    pub(crate) fn alarms(&self) -> &Alarms {
        &self.alarms
    }

    #[inline]
    pub(crate) fn ended(&self) -> bool {
        self.ended[0].load(Ordering::Acquire)
    }

    /// Publishes that `rank` has entered the superstep of `word`. Release: a rank that sees the
    /// word also sees everything that `rank` sent before.
    #[inline]
    pub(crate) fn announce(&self, rank: usize, word: u64) {
        self.at[rank].0.store(word, Ordering::Release);
    }

    /// Returns the word of the superstep that `rank` entered last.
    #[inline]
    pub(crate) fn announced(&self, rank: usize) -> u64 {
        self.at[rank].0.load(Ordering::Acquire)
    }

    /// Declares that `rank` begins or ceases to access memory of other ranks. Returns `false` if
    /// `rank` must not begin, because the world was ended. In that case `rank` has not begun. The
    /// fence ensures that at least one of two things happens: this rank sees that the world was
    /// ended, or the rank that ended the world sees that this rank accesses memory.
    #[inline]
    pub(crate) fn touch(&self, rank: usize, on: bool) -> bool {
        self.touching[rank].0.store(on, Ordering::Release); // the load in `touches`
        if !on {
            return true;
        }
        fence(Ordering::SeqCst); // pairs with the fence in `end`
        let may = !self.ended();
        if !may {
            self.touching[rank].0.store(false, Ordering::Release);
        }
        may
    }

    /// Returns whether `rank` may be accessing memory of other ranks. A rank that has left no
    /// longer accesses such memory, even if it left by unwinding. Acquire: if `rank` has ceased,
    /// its accesses happened before.
    pub(crate) fn touches(&self, rank: usize) -> bool {
        self.touching[rank].0.load(Ordering::Acquire) && !self.gone(rank)
    }

    /// Returns whether `rank` has left, was cut off, or has died. Acquire: everything that it sent
    /// is visible now.
    #[inline]
    pub(crate) fn gone(&self, rank: usize) -> bool {
        self.gone[rank].load(Ordering::Acquire) || self.failed.as_ref().is_some_and(|failed| failed.has(rank))
    }

    /// Declares that the end of `rank` is dropped. From now on `rank` reads nothing of the world's
    /// memory except this membership table.
    pub(crate) fn detach(&self, rank: usize) {
        self.detached[rank].store(true, Ordering::Release);
    }

    /// Returns why nothing more can arrive from `rank`: because the world was ended, or because
    /// `rank` has left. Returns `None` if more can arrive.
    #[inline]
    pub(crate) fn lost(&self, rank: usize) -> Option<Lost> {
        if self.ended() || self.gone(rank) { self.why(rank) } else { None }
    }

    #[cold]
    fn why(&self, rank: usize) -> Option<Lost> {
        if self.ended() {
            // The first rank to end the world may still be writing the cause, or have died while
            // writing.
            for _ in 0..WRITE_ATTEMPTS {
                if let Some(lost) = self.why_ended[0].read() {
                    return Some(lost);
                }
                yield_now();
            }
            let how = "the rank that ended the world died before it recorded why".to_owned();
            return Some(self.why_gone(rank).unwrap_or(Lost { rank, how: Loss::Ended(how) }));
        }
        self.why_gone(rank)
    }

    fn why_gone(&self, rank: usize) -> Option<Lost> {
        let left = self.why_gone[rank].read();
        left.or_else(|| Some(Lost { rank, how: self.failed.as_ref()?.how(rank)? }))
    }
}

/// Methods that decide when this table's memory may be freed.
#[cfg(not(loom))]
impl Membership {
    /// Returns whether all ends are dropped. Acquire: all their reads happened before.
    pub(crate) fn all_detached(&self) -> bool {
        self.all(&self.detached)
    }

    /// Declares that `rank` no longer reads this membership table. Returns `true`.
    pub(crate) fn sweep(&self, rank: usize) -> bool {
        self.swept[rank].store(true, Ordering::Release);
        true
    }

    /// Returns whether only the caller still reads this membership table.
    pub(crate) fn all_swept(&self) -> bool {
        self.all(&self.swept)
    }

    fn all(&self, flags: &SharedSlice<AtomicBool>) -> bool {
        let dead = |rank| self.failed.as_ref().is_some_and(|failed| failed.has(rank));
        flags.iter().enumerate().all(|(rank, flag)| flag.load(Ordering::Acquire) || dead(rank))
    }
}

/// How often a reader looks for a text that is being written.
const WRITE_ATTEMPTS: usize = 1000;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_may_not_begin_to_access_memory_has_not_begun() {
        let table = Membership::new(2);
        assert!(table.touch(0, true) && table.touches(0));
        assert!(table.touch(0, false) && !table.touches(0));
        assert!(table.touch(1, true));
        table.end(Cause { rank: 1, what: "enough".into() });
        assert!(table.touches(1), "it has begun before");
        assert!(!table.touch(0, true), "the world was ended");
        assert!(!table.touches(0), "nobody waits for a rank that was refused");
        assert!(table.touch(1, false) && !table.touches(1), "to cease is always allowed");
    }
}
