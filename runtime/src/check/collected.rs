//! Methods that keep the operations that a window has collected for its next fence, if conflicts
//! are checked.

use crate::check::state::touched::Touched;
use crate::collect::fast_path::FastPath;
use crate::collect::operation::WindowKey;
use crate::collect::outbox::Head;
use crate::state::window_core::WindowCore;
use fencepost_planner::ir::pattern::Kind;
use fencepost_transport::Record;
use std::panic::Location;

impl WindowCore {
    /// If conflicts are checked, keeps an operation on elements of `target` and on the section of
    /// the operation, if it has one. `records` is the number of records of the operation, which are
    /// still to be written.
    #[inline]
    pub(crate) fn keep_call(
        &self,
        (kind, target, touched): (Kind, usize, Touched<'_>),
        section: Option<(Option<WindowKey>, Touched<'_>)>,
        records: usize,
        site: &'static Location<'static>,
    ) {
        if self.checked.is_on() {
            let other = |key: Option<WindowKey>| key.filter(|key| *key != self.key).map(|key| key.window);
            let section = section.map(|(key, section)| (other(key), section));
            let so_far = |target: usize| self.records_that_stay(target);
            self.checked.add((kind, target, touched), section, (self.world.rank, records), so_far, site);
        }
    }

    /// Returns whether the records for `target` are kept unchanged until the fence.
    #[inline(always)]
    fn stay(&self, target: usize) -> bool {
        !self.peers[target].base.is_null()
    }

    /// Returns the number of records for `target`, or `None` if these records may change before the
    /// fence.
    pub(crate) fn records_that_stay(&self, target: usize) -> Option<usize> {
        // SAFETY: only this rank, the owner, touches the set being filled.
        let records = unsafe { &(*self.region.outbox(self.filling.set.get(), target)).records };
        self.stay(target).then(|| self.fast_paths[target].writer.count(records))
    }

    /// Collects an operation on one small element. The operation must be in no conflict, and must
    /// differ from the previous operation to the same target only in its element and value.
    /// Otherwise, or if conflicts are not checked, does nothing and returns `false`.
    ///
    /// The code for an accumulate that needs no mark is inlined into the loop that calls it. All
    /// other code is cold. If the other code were inlined, too, an unchecked loop would take 1.05
    /// times as long.
    #[inline(always)]
    pub(crate) fn push_checked(
        &self,
        path: &FastPath,
        kind: Kind,
        (target, at): (usize, usize),
        record: Record,
    ) -> bool {
        let is_accumulate = kind != Kind::Put;
        is_accumulate
            && self
                .checked
                .marks(target)
                .is_some_and(|marks| marks.is_like_last(record.head, at) && marks.needs_no_mark(kind))
            && path.writer.write(record)
            || self.push_marked(path, kind, (target, at), record)
    }

    #[cold]
    #[inline(never)]
    fn push_marked(&self, path: &FastPath, kind: Kind, (target, at): (usize, usize), record: Record) -> bool {
        self.checked.marks(target).is_some_and(|marks| {
            let write = || path.writer.write(record);
            marks.is_like_last(record.head, at)
                && (kind == Kind::Put && marks.put_one(at, write) || marks.touch_one(at, kind, write))
        })
    }

    /// Called when an operation on one small element is about to become a record. If the record
    /// contains everything about the operation except its source line, keeps the line. Returns
    /// whether the line was kept. The operation was already compared with the earlier operations.
    pub(crate) fn keep_line(&self, target: usize, head: Head, site: &'static Location<'static>) -> bool {
        let says_all = self.checked.is_on() && self.stay(target);
        if says_all {
            self.checked.add_line(head, site);
            if let Some(marks) = self.checked.marks(target).filter(|_| self.is_gate_open()) {
                marks.keep_last(head.0, head.at());
            }
        }
        says_all
    }
}
