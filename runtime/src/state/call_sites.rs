//! [`CallSites`]: what errors report of other ranks, which is the call that each entered last, and
//! the error with which the world ended.
//!
//! Ranks that do not agree find out by words and frames, which show that two calls differ, but not
//! which calls they are. If ranks are of one process, each also writes here what it enters. Only
//! the text of messages depends on it.

use fencepost_planner::ErrorClass;
use std::fmt::Write;
use std::ops::Range;
use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The number of windows that are remembered of a call.
const WINDOWS: usize = 4;

/// The call sites of one world.
pub(crate) struct CallSites {
    /// The first rank of `ranks`.
    first: usize,
    /// The ranks that write here: all, or the one that is a process.
    ranks: Vec<Entered>,
    /// The class of the error that ended the world.
    ended: OnceLock<ErrorClass>,
}

/// The call that one rank entered last, in a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Entered {
    site: AtomicPtr<Location<'static>>,
    /// The numbers of its windows plus one, sixteen bits each; the first is lowest.
    windows: AtomicU64,
}

impl CallSites {
    /// Returns the call sites of these ranks, which write here.
    pub(crate) fn new(ranks: Range<usize>) -> Self {
        Self {
            first: ranks.start,
            ranks: ranks.map(|_| Entered::default()).collect(),
            ended: OnceLock::new(),
        }
    }

    /// Notes that `rank` enters the call at `site` on `windows`.
    ///
    /// The stores are relaxed: the call is announced to the others afterwards, and a rank that
    /// reads a later call, or the windows of one, only names that call in its message.
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
        // SAFETY: it is null, or one of the `&'static` that `enter` stored: valid, and never
        // written to.
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

    /// Notes that the world ends with an error of this class, unless it has ended.
    pub(crate) fn end(&self, class: ErrorClass) {
        let _ = self.ended.set(class);
    }

    /// Returns the class of the error with which the world ended, if a rank ended it.
    pub(crate) fn ended(&self) -> Option<ErrorClass> {
        self.ended.get().copied()
    }
}
