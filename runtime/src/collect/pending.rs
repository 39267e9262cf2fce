//! [`Pending`]: what a window has collected for its next fence besides its outboxes: the gets.

use crate::collect::log::Log;
use crate::collect::operation::WindowKey;
use crate::collect::ticket::Slot;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::pattern::Mode;
use std::panic::Location;
use std::ptr::with_exposed_provenance_mut;

/// A get of more than one element, waiting for its fence.
pub(crate) struct DatatypeGet {
    pub(crate) remote: Datatype,
    pub(crate) landing: Into,
    pub(crate) site: &'static Location<'static>,
    /// The mode asked for, by the call or by its window.
    pub(crate) mode: Mode,
}

/// Where the elements of a get land.
pub(crate) enum Into {
    /// A section of a window in the same fence.
    Section(WindowKey, Datatype),
    /// A ticket.
    Ticket(Slot),
    /// A buffer that a scoped epoch has borrowed until after its fence: where it begins, and which elements of it.
    Borrowed(*mut u8, Datatype),
}

/// A get in program order: one element into the same window, or more than that.
#[derive(Clone, Copy)]
pub(crate) struct Get {
    /// The rank that it reads.
    pub(crate) target: u32,
    /// Its place in [`Pending::wide`]; [`ONE`] or [`BORROWED`] for one element.
    wide: u32,
    /// One element: from here,
    pub(crate) at: u64,
    /// to here: a displacement, or an address.
    into: u64,
    /// Its place among all gets of this rank.
    pub(crate) sequence: u64,
}

/// A get of one element into the window that it is from: all is in the [`Get`].
const ONE: u32 = u32::MAX;
/// A get of one element into a buffer that a scoped epoch has borrowed until after its fence: the same.
const BORROWED: u32 = u32::MAX - 1;

/// The gets of a window's epoch, in program order, and room to stage what they bring.
#[derive(Default)]
pub(crate) struct Pending {
    /// While a [writer](crate::collect::log::LogWriter) is on them, some are not counted yet.
    pub(crate) gets: Log<Get>,
    pub(crate) wide: Vec<DatatypeGet>,
    pub(crate) staged: Vec<u8>,
    /// The same where all gets are of one element of eight bytes, in reach; else empty.
    pub(crate) words: Vec<u64>,
    /// By target, whether something is got from it; no list at all where nothing is got. Known once the fence is entered.
    pub(crate) asks: Vec<bool>,
}

impl Get {
    /// One element of `target`, from `at` to the element `into` of the window, or to the address `into` that is borrowed.
    #[inline(always)]
    pub(crate) fn new(target: usize, at: usize, into: usize, borrowed: bool, sequence: u64) -> Self {
        let wide = if borrowed { BORROWED } else { ONE };
        Self { target: target as u32, wide, at: at as u64, into: into as u64, sequence }
    }

    /// Its place in [`Pending::wide`]; `None` for one element.
    #[inline]
    pub(crate) fn wide(&self) -> Option<usize> {
        (self.wide < BORROWED).then_some(self.wide as usize)
    }

    /// The element of the window itself that one element lands in.
    pub(crate) fn lands_in(&self) -> Option<usize> {
        (self.wide == ONE).then_some(self.into as usize)
    }

    /// Where one element lands, of `size` bytes, in the window at `base` or in a borrowed buffer.
    #[inline]
    pub(crate) fn landing(&self, base: *mut u8, size: usize) -> *mut u8 {
        let into = self.into as usize;
        if self.wide == BORROWED { with_exposed_provenance_mut(into) } else { base.wrapping_add(into * size) }
    }
}

impl Pending {
    /// A get that is more than one element, or lands elsewhere.
    pub(crate) fn push(&mut self, target: usize, get: DatatypeGet, sequence: u64) {
        let wide = self.wide.len() as u32;
        self.wide.push(get);
        self.gets.push(Get { target: target as u32, wide, at: 0, into: 0, sequence });
    }

    /// Called as the fence is entered: notes which ranks this rank gets from.
    pub(crate) fn ask(&mut self, ranks: usize) {
        self.asks.clear();
        if !self.gets.is_empty() {
            self.asks.resize(ranks, false);
            self.gets.iter().for_each(|get| self.asks[get.target as usize] = true);
        }
    }

    /// Whether something is got from `target`.
    pub(crate) fn asks(&self, target: usize) -> bool {
        self.asks.get(target).copied().unwrap_or_default()
    }

    /// How many elements all of them bring; `None` for more than can be counted.
    pub(crate) fn elements(&self) -> Option<usize> {
        let ones = self.gets.len() - self.wide.len();
        self.wide.iter().try_fold(ones, |sum, get| sum.checked_add(get.remote.size()))
    }

    /// How many elements a get brings.
    #[inline]
    pub(crate) fn count(&self, get: &Get) -> usize {
        get.wide().map_or(1, |wide| self.wide[wide].remote.size())
    }

    /// Which elements a get asks for.
    pub(crate) fn remote(&self, get: &Get) -> Datatype {
        let one = || Datatype::run(get.at as usize..get.at as usize + 1);
        get.wide().map_or_else(one, |wide| self.wide[wide].remote.clone())
    }

    /// Forget all.
    pub(crate) fn clear(&mut self) {
        self.gets.clear();
        // An empty list is cleared by a call that drops nothing.
        if !self.wide.is_empty() {
            self.wide.clear();
        }
        self.words.clear();
        self.asks.clear();
    }
}
