//! [`Hints`]: the promises that a program makes about a window when it makes the window.

use std::fmt;

/// The promises of a program about a window that has locks:
/// `world.lock_window_with(len, Hints::new().sole_origin())?`.
///
/// A program makes only the promises of the methods that it calls. An untrue hint never costs
/// memory safety. Each method states its gain in time or memory, and the consequence of an untrue
/// hint. All ranks must give the same [`sole_origin`](Self::sole_origin),
/// [`disjoint`](Self::disjoint) and [`regions`](Self::regions); otherwise the window is not made
/// (`ARG`, on all ranks). The [`memory`](Self::memory) may differ between ranks.
///
/// There is no hint for a window without locks (MPI's `no_locks`), since a window has no locks
/// before it is changed over to locks.
///
/// ```
/// # use fencepost_planner::{element::Op, ir::calls::LockType};
/// # use fencepost_runtime::Hints;
/// # fencepost_runtime::ranks(2).run(|world| {
/// // Each rank counts in the part of the next one, and nobody else does.
/// let u = world.lock_window_with::<u64>(1, Hints::new().sole_origin())?;
/// let lock = u.lock(1 - world.rank(), LockType::Exclusive)?;
/// lock.accumulate([5], Op::Sum, 0)?;
/// lock.unlock()?;
/// assert_eq!(u.into_window()?[0], 5);
/// # Ok(()) }).unwrap();
/// ```
///
/// # Source
/// MPI 4.1, section 12.2.1 (info keys of windows). Unlike in MPI, each key affects the behaviour.
#[must_use = "hints are given to a call that makes a window"]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hints {
    pub(crate) is_sole: bool,
    pub(crate) is_disjoint: bool,
    /// The maximum number of regions; 0 for the default.
    pub(crate) regions: u32,
    /// The maximum number of bytes that are collected for a target under locks; `None` for no
    /// limit.
    pub(crate) memory: Option<usize>,
}

impl Hints {
    /// The maximum number of regions of a part.
    pub(crate) const REGIONS_MAX: usize = 16;

    /// Returns hints that promise nothing.
    pub const fn new() -> Self {
        Self { is_sole: false, is_disjoint: false, regions: 0, memory: None }
    }

    /// Promises that only one rank accesses each part, from the time when the window is changed
    /// over to locks until it is changed back.
    ///
    /// Different parts may have different origins. The owner's [`local`](crate::LockWindow::local)
    /// and [`local_mut`](crate::LockWindow::local_mut) count as accesses. With this promise, no
    /// lock is taken, no operation is atomic, and the words of locks take no memory.
    ///
    /// If the promise is broken, the first rank whose epoch is carried out keeps the part. Each
    /// epoch of another rank on that part does nothing, and fails with `ASSERT` when it is carried
    /// out.
    pub const fn sole_origin(self) -> Self {
        Self { is_sole: true, ..self }
    }

    /// Promises that if epochs under shared locks overlap in time and visit the same element, they
    /// only get that element.
    ///
    /// Accumulates are then not atomic, and elements of more than eight bytes are visited without a
    /// second lock.
    ///
    /// If the promise is broken, one of two visits to an element may be lost, and elements of more
    /// than eight bytes may have some words of one visit and some of the other. If conflicts are
    /// checked ([`Ranks::check`](crate::Ranks::check)), the check reports a broken promise as
    /// `RMA_CONFLICT`, because it treats all accumulates as accumulates with different operators.
    /// Without a check, a broken promise is not detected.
    pub const fn disjoint(self) -> Self {
        Self { is_disjoint: true, ..self }
    }

    /// Divides each part into at most `most` regions of equal length, which are locked separately.
    ///
    /// An epoch locks the regions that it touches, and an epoch that is flushed locks all of them.
    /// With one region, a flushed epoch takes one lock instead of up to 16. With more regions,
    /// exclusive epochs in small parts wait less for each other. Without this hint, a part has a
    /// region for each 4 KiB, and at most 16.
    ///
    /// If `most` is 0 or more than 16, the call that makes the window fails with `ARG`.
    pub const fn regions(self, most: usize) -> Self {
        // A number that is not allowed is replaced by a number above the maximum, which is refused.
        let regions = if most == 0 || most > Self::REGIONS_MAX { u32::MAX } else { most as u32 };
        Self { regions, ..self }
    }

    /// Limits the bytes that this rank collects for each target, under locks, before the operations
    /// are carried out.
    ///
    /// Each operation takes 16 bytes. An operation on more than one element also takes its elements
    /// and its description. A call beyond the limit fails with `NO_MEM`, and its operation is not
    /// part of the epoch. The epoch goes on: flush it, or unlock.
    ///
    /// ```
    /// # use fencepost_planner::{ErrorClass, ir::calls::LockType};
    /// # use fencepost_runtime::Hints;
    /// # fencepost_runtime::ranks(2).run(|world| {
    /// let u = world.lock_window_with::<u64>(8, Hints::new().memory(2 * 16))?;
    /// let lock = u.lock(1 - world.rank(), LockType::Shared)?;
    /// lock.put([1], 0)?;
    /// lock.put([2], 1)?;
    /// assert_eq!(lock.put([3], 2).unwrap_err().class(), ErrorClass::NoMem);
    /// lock.flush()?; // now there is room again
    /// lock.put([3], 2)?;
    /// lock.unlock()?;
    /// world.barrier() // before the other rank drops its part
    /// # }).unwrap();
    /// ```
    pub const fn memory(self, bytes: usize) -> Self {
        Self { memory: Some(bytes), ..self }
    }

    /// Returns the hints that are the same on all ranks, as a number.
    pub(crate) fn word(self) -> u64 {
        u64::from(self.is_sole) | u64::from(self.is_disjoint) << 1 | u64::from(self.regions) << 32
    }

    /// Returns the hints that this number contains.
    pub(crate) fn of_word(word: u64) -> Self {
        Self {
            is_sole: word & 1 != 0,
            is_disjoint: word & 2 != 0,
            regions: (word >> 32) as u32,
            ..Self::new()
        }
    }

    /// Returns whether this number of regions is possible.
    pub(crate) fn are_possible(self) -> bool {
        self.regions as usize <= Self::REGIONS_MAX
    }
}

/// Formats the hints that are the same on all ranks, as `sole origin, at most 4 regions` or `none`.
impl fmt::Display for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = Vec::new();
        all.extend(self.is_sole.then(|| "sole origin".to_owned()));
        all.extend(self.is_disjoint.then(|| "disjoint".to_owned()));
        match self.regions as usize {
            0 => {}
            regions if regions <= Self::REGIONS_MAX => all.push(format!("at most {regions} regions")),
            _ => all.push(format!("a number of regions that is not from 1 to {}", Self::REGIONS_MAX)),
        }
        f.write_str(&if all.is_empty() { "none".to_owned() } else { all.join(", ") })
    }
}
