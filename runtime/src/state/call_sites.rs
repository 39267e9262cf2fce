//! [`CallSites`]: facts about other ranks for error messages. These facts are the call that each
//! rank entered last, and the class of the error that ended the world.
//!
//! From words and frames, ranks find out that their calls differ, but not which calls they are in.
//! So each rank of a process also writes here which call it enters. Only the texts of error
//! messages depend on these entries.

use fencepost_planner::ErrorClass;
use std::fmt::Write;
use std::ops::Range;
use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The maximum number of windows that are recorded for a call.
const WINDOWS: usize = 4;

/// The call sites of one world.
pub(crate) struct CallSites {
    /// The first rank of `ranks`.
    first: usize,
    /// The ranks that write here: all ranks, or the only rank of this process.
    ranks: Vec<Entered>,
    /// The class of the error that ended the world.
    ended: OnceLock<ErrorClass>,
}

/// The call that one rank entered last, in a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Entered {
    site: AtomicPtr<Location<'static>>,
    /// The numbers of the windows of the call, each plus one, in sixteen bits each. The first
    /// window has the lowest bits.
    windows: AtomicU64,
}

impl CallSites {
    /// Returns empty call sites for these ranks.
    pub(crate) fn new(ranks: Range<usize>) -> Self {
        Self {
            first: ranks.start,
            ranks: ranks.map(|_| Entered::default()).collect(),
            ended: OnceLock::new(),
        }
    }

    /// Notes that `rank` enters the call at `site` on `windows`.
    ///
    /// The stores are relaxed. The call is announced to the other ranks afterwards. A rank may read
    /// a later call, or the windows of a later call. Its error message then names the later call,
    /// and nothing else is affected.
    #[inline(always)]
    pub(crate) fn enter(
        &self,
        rank: usize,
        site: &'static Location<'static>,
        windows: impl DoubleEndedIterator<Item = u32> + ExactSizeIterator,
    ) {
        let mut numbers = 0;
        for window in windows.take(WINDOWS).rev() {
            numbers = numbers << 16 | (u64::from(window) + 1) & 0xffff;
        }
        let entered = &self.ranks[rank - self.first];
        entered.windows.store(numbers, Ordering::Relaxed);
        entered.site.store(std::ptr::from_ref(site).cast_mut(), Ordering::Relaxed);
    }

    /// Returns a description of the call that `rank` entered last, if it is known.
    pub(crate) fn entered(&self, rank: usize) -> Option<String> {
        let entered = self.ranks.get(rank.checked_sub(self.first)?)?;
        let site = entered.site.load(Ordering::Relaxed);
        // SAFETY: the pointer is null, or `enter` stored it from a `&'static`, which is valid and
        // never written to.
        let site = (unsafe { site.as_ref() })?;
        let mut text = format!("the call at {}:{}", site.file(), site.line());
        let mut numbers = entered.windows.load(Ordering::Relaxed);
        let mut between = " of window";
        while numbers != 0 {
            let _ = write!(text, "{between} {}", (numbers & 0xffff) - 1);
            numbers >>= 16;
            between = ",";
        }
        Some(text)
    }

    /// Notes that the world ends with an error of this class, unless it has already ended.
    pub(crate) fn end(&self, class: ErrorClass) {
        let _ = self.ended.set(class);
    }

    /// Returns the class of the error with which the world ended, if a rank ended it.
    pub(crate) fn ended(&self) -> Option<ErrorClass> {
        self.ended.get().copied()
    }
}
