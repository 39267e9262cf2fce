//! [`Pending`]: the gets that a window has collected for its next fence.

use crate::collect::log::Log;
use crate::collect::operation::WindowKey;
use crate::collect::outbox::DISPLACEMENTS;
use crate::collect::ticket::Slot;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::pattern::Mode;
use std::cell::Cell;
use std::panic::Location;
use std::ptr::with_exposed_provenance_mut;

/// A get of more than one element, waiting for its fence.
pub(crate) struct DatatypeGet {
    pub(crate) remote: Datatype,
    pub(crate) landing: Into,
    pub(crate) site: &'static Location<'static>,
    /// The mode that the call or its window requested.
    pub(crate) mode: Mode,
}

/// The destination of a get's elements.
pub(crate) enum Into {
    /// A section of a window in the same fence.
    Section(WindowKey, Datatype),
    /// A ticket.
    Ticket(Slot),
    /// A buffer that a scoped epoch has borrowed until after its fence: its first address, and the
    /// elements that are filled.
    Borrowed(*mut u8, Datatype),
}

/// A get of one element into the same window or into a borrowed buffer, or a wide get.
///
/// ```text
/// from  bits  0..40  one element: its displacement
///       bits 40..64  one element: its rank
///       all bits     one element that was read (`is_read`): its value; more than one: the rank
/// into  bits  0..62  one element: displacement or address where it lands; else the index in `wide`
///       bits 62..64  0 a displacement, 1 an address, 2 more than one element
/// ```
#[derive(Clone, Copy)]
pub(crate) struct Get {
    from: u64,
    into: u64,
}

/// The number of bits of the displacement.
const AT: u32 = DISPLACEMENTS.ilog2();
/// The number of lower bits that locate the destination.
const INTO: u32 = 62;
const BORROWED: u64 = 1 << INTO;
const WIDE: u64 = 2 << INTO;
/// Only gets from ranks below this number can be gets of one element. Gets from higher ranks are
/// wide.
pub(crate) const RANKS: usize = 1 << (64 - AT);

/// A streak: successive gets of a rank that belong to one window. The gets of this window from
/// index `first` on belong to the streak. A streak with a lower number comes earlier in program
/// order.
struct Streak {
    number: u64,
    first: usize,
}

/// The number of streaks of a rank, and the window and the target of its last get.
#[derive(Default)]
pub(crate) struct Streaks {
    /// The number of streaks so far.
    count: Cell<u64>,
    /// The window of the last get, and the rank from which the get reads.
    now: Cell<Asking>,
}

/// A window and the rank from which it gets. Both are encoded as their numbers plus 1. If there is
/// no rank, its place holds 0.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Asking(u64);

impl Asking {
    /// Returns the value for this window without a rank.
    pub(crate) fn nobody(window: u32) -> Self {
        Self((u64::from(window) + 1) << 32)
    }

    /// Returns this value, which has no rank, with `target` as its rank.
    #[inline(always)]
    pub(crate) fn from(self, target: usize) -> Self {
        Self(self.0 + (target as u64 + 1))
    }
}

impl Streaks {
    /// Returns whether the last get was of this window and from this rank.
    #[inline(always)]
    pub(crate) fn is_now(&self, asking: Asking) -> bool {
        self.now.get() == asking
    }

    /// Makes this the last get. If the get begins a streak, returns the number of the streak.
    pub(crate) fn take(&self, asking: Asking) -> Option<u64> {
        let is_other = self.now.replace(asking).0 >> 32 != asking.0 >> 32;
        self.count.set(self.count.get() + u64::from(is_other));
        is_other.then(|| self.count.get())
    }

    /// Forgets the rank of the last get, if that get was of this window.
    pub(crate) fn forget(&self, window: Asking) {
        if self.now.get().0 >> 32 == window.0 >> 32 {
            self.now.set(window);
        }
    }
}

/// The gets of a window's epoch, in program order, and room to stage their elements.
#[derive(Default)]
pub(crate) struct Pending {
    /// While a [writer](crate::collect::log::LogWriter) fills this log, some gets are not counted
    /// yet.
    pub(crate) gets: Log<Get>,
    pub(crate) wide: Vec<DatatypeGet>,
    /// The streaks of `gets`, in program order. At least one if there are gets.
    streaks: Vec<Streak>,
    pub(crate) staged: Vec<u8>,
    /// Whether [`read_words`](Self::read_words) has read the elements. All gets are then of one
    /// element of eight bytes, and each holds the value that was read and the place where it lands.
    pub(crate) is_read: bool,
    /// For each target, whether the window gets anything from it. Empty if there are no gets.
    asks: Vec<bool>,
}

impl Get {
    /// Returns a get of the element at `at` of rank `target`, which is below [`RANKS`]. The get
    /// lands in the element `into` of the window, or at the borrowed address `into`. Both have at
    /// most 62 bits.
    #[inline(always)]
    pub(crate) fn new(target: usize, at: usize, into: usize, borrowed: bool) -> Self {
        debug_assert!(target < RANKS && (at as u64) < DISPLACEMENTS && into as u64 >> INTO == 0);
        let kind = if borrowed { BORROWED } else { 0 };
        Self { from: at as u64 | (target as u64) << AT, into: into as u64 | kind }
    }

    /// Returns whether a get can hold this address of a borrowed element.
    #[inline(always)]
    pub(crate) fn reaches(address: usize) -> bool {
        address as u64 >> INTO == 0
    }

    /// Returns the get's place in [`Pending::wide`]; `None` for one element.
    #[inline]
    pub(crate) fn wide(&self) -> Option<usize> {
        (self.into & WIDE != 0).then_some((self.into & !WIDE) as usize)
    }

    /// Returns the rank whose element the get reads.
    #[inline]
    pub(crate) fn target(&self) -> usize {
        (if self.into & WIDE == 0 { self.from >> AT } else { self.from }) as usize
    }

    /// Returns the displacement of the target's element, for a get of one element.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        (self.from & (DISPLACEMENTS - 1)) as usize
    }

    /// Returns the element of the window itself in which a get of one element lands.
    pub(crate) fn lands_in(&self) -> Option<usize> {
        (self.into >> INTO == 0).then_some(self.into as usize)
    }

    /// Returns where a get of one element of `size` bytes lands, in the window at `base` or in a
    /// borrowed buffer.
    #[inline]
    pub(crate) fn landing(&self, base: *mut u8, size: usize) -> *mut u8 {
        let into = self.into as usize;
        if self.into >> INTO == 0 {
            base.wrapping_add(into * size)
        } else {
            with_exposed_provenance_mut((self.into & !BORROWED) as usize)
        }
    }
}

impl Pending {
    /// Adds a get of more than one element, or a get that lands elsewhere than in its own window or
    /// a borrowed buffer.
    pub(crate) fn push(&mut self, target: usize, get: DatatypeGet) {
        self.gets.push(Get { from: target as u64, into: self.wide.len() as u64 | WIDE });
        self.wide.push(get);
    }

    /// Notes that the get at `first` reads from `target`, one of the world's `ranks` ranks. If
    /// `streak` is a number, the get begins the streak with this number.
    pub(crate) fn ask(&mut self, (target, ranks): (usize, usize), streak: Option<u64>, first: usize) {
        if self.asks.is_empty() {
            self.asks.resize(ranks, false);
        }
        self.asks[target] = true;
        self.streaks.extend(streak.map(|number| Streak { number, first }));
    }

    /// Returns the number of the streak at `place`, and where its gets end; `None` if there are no
    /// more streaks.
    pub(crate) fn streak(&self, place: usize) -> Option<(u64, usize)> {
        let streak = self.streaks.get(place).filter(|_| !self.gets.is_empty())?;
        Some((streak.number, self.streaks.get(place + 1).map_or(self.gets.len(), |next| next.first)))
    }

    /// Reads each get's element of eight bytes. Afterwards the get holds the value, and the place
    /// where it lands. No get may be [wide](Get::wide). `read` receives the target and the
    /// displacement of each get.
    pub(crate) fn read_words(&mut self, read: impl Fn(usize, usize) -> u64) {
        self.gets.as_mut_slice().iter_mut().for_each(|get| {
            debug_assert!(get.wide().is_none());
            get.from = read((get.from >> AT) as usize, get.at());
        });
        self.is_read = true;
    }

    /// Returns, for each get whose word [was read](Self::read_words), the address where it lands,
    /// and the word.
    pub(crate) fn words(&self, base: *mut u8) -> impl Iterator<Item = (*mut u64, u64)> {
        self.gets.iter().map(move |get| (get.landing(base, 8).cast(), get.from))
    }

    /// Returns whether the window gets anything from `target`.
    pub(crate) fn asks(&self, target: usize) -> bool {
        self.asks.get(target).copied().unwrap_or_default()
    }

    /// Returns the number of elements of all gets; `None` if that is more than can be counted.
    pub(crate) fn elements(&self) -> Option<usize> {
        let ones = self.gets.len() - self.wide.len();
        self.wide.iter().try_fold(ones, |sum, get| sum.checked_add(get.remote.size()))
    }

    /// Returns the number of elements of a get.
    #[inline]
    pub(crate) fn count(&self, get: &Get) -> usize {
        get.wide().map_or(1, |wide| self.wide[wide].remote.size())
    }

    /// Returns the elements that a get reads.
    pub(crate) fn remote(&self, get: &Get) -> Datatype {
        let one = || Datatype::run(get.at()..get.at() + 1);
        get.wide().map_or_else(one, |wide| self.wide[wide].remote.clone())
    }

    /// Forgets all gets, so this window's next get counts as its first.
    pub(crate) fn clear(&mut self, streaks: &Streaks, window: Asking) {
        streaks.forget(window);
        self.gets.clear();
        // This avoids the call of `clear` on an empty list, which has nothing to drop.
        if !self.wide.is_empty() {
            self.wide.clear();
        }
        self.is_read = false;
        // The next get may belong to the same streak as the last get.
        if let Some(streak) = self.streaks.pop() {
            self.streaks.clear();
            self.streaks.push(Streak { first: 0, ..streak });
        }
        self.asks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_get_says_what_it_was_given() {
        let most = (RANKS - 1, DISPLACEMENTS as usize - 1, (1 << (INTO - 3)) - 1);
        for (target, at, into) in [(0, 0, 0), (3, 77, 5), most] {
            for borrowed in [false, true] {
                let get = Get::new(target, at, into, borrowed);
                assert_eq!((get.target(), get.at(), get.wide()), (target, at, None));
                assert_eq!(get.lands_in(), (!borrowed).then_some(into));
                let base = std::ptr::without_provenance_mut(64);
                let expected = if borrowed { into } else { 64 + 8 * into };
                assert_eq!(get.landing(base, 8).addr(), expected);
            }
        }
        assert!(Get::reaches((1 << INTO) - 1) && !Get::reaches(1 << INTO));
    }

    #[test]
    fn a_wide_get_is_of_any_rank() {
        let mut pending = Pending::default();
        for target in [0, 7, RANKS, u32::MAX as usize] {
            let get = DatatypeGet {
                remote: Datatype::run(0..2),
                landing: Into::Ticket(Slot::default()),
                site: Location::caller(),
                mode: Mode::Auto,
            };
            pending.push(target, get);
            let get = pending.gets[pending.gets.len() - 1];
            assert_eq!((get.target(), get.wide()), (target, Some(pending.gets.len() - 1)));
            assert_eq!((get.lands_in(), pending.count(&get)), (None, 2));
        }
    }

    #[test]
    fn a_streak_goes_on_from_epoch_to_epoch() {
        let (streaks, u, v) = (Streaks::default(), Asking::nobody(0), Asking::nobody(u32::MAX));
        let mut pending = Pending::default();
        let get = |pending: &mut Pending, asking: Asking, target: usize| {
            if !streaks.is_now(asking.from(target)) {
                let first = pending.gets.len();
                pending.ask((target, 3), streaks.take(asking.from(target)), first);
            }
            pending.gets.push(Get::new(target, 0, 0, false));
        };
        assert_eq!(pending.streak(0), None);
        get(&mut pending, u, 1);
        get(&mut pending, u, 2);
        assert_eq!(streaks.take(v.from(0)), Some(2));
        get(&mut pending, u, 2);
        assert_eq!([0, 1, 2].map(|place| pending.streak(place)), [Some((1, 2)), Some((3, 3)), None]);
        assert_eq!([0, 1, 2].map(|target| pending.asks(target)), [false, true, true]);
        pending.clear(&streaks, u);
        assert!(pending.streak(0).is_none() && !pending.asks(2) && !streaks.is_now(u.from(2)));
        get(&mut pending, u, 2);
        assert_eq!(
            (pending.streak(0), pending.streak(1)),
            (Some((3, 1)), None),
            "no other window got anything"
        );
        assert!(pending.asks(2) && !pending.asks(1), "it is told again");
        assert_eq!(streaks.take(v.from(2)), Some(4));
        pending.clear(&streaks, u);
        assert!(streaks.is_now(v.from(2)), "the last get was of another window");
        get(&mut pending, u, 2);
        assert_eq!(pending.streak(1), Some((5, 1)));
    }
}
