//! What a window has collected for its next fence: forgotten, kept apart, or asked about.

use crate::window::WindowCore;
use std::panic::Location;

impl WindowCore {
    /// After a fence that went through, at this line: fill the other set, which nobody reads any more.
    pub(super) fn next_set(&self, site: &'static Location<'static>) {
        self.closed.set(false);
        if self.apart {
            self.watch();
            self.begins(site);
        }
        let set = self.set.get() ^ 1;
        self.turn(set, true);
        for target in 0..self.world.size {
            // SAFETY: readers of this set finished before they sent the letters of the fence that has just ended.
            unsafe { &mut *self.region.outbox(set, target) }.clear();
        }
        self.pending.borrow_mut().clear();
        if self.apart {
            self.wire.borrow_mut().settled();
        }
    }

    /// The epoch that begins here begins at this line.
    pub(crate) fn begins(&self, site: &'static Location<'static>) {
        self.habit.borrow_mut().begins(std::ptr::from_ref(site).addr());
    }

    /// Keep how much the epoch that has ended sent to ranks whose memory is not reached.
    fn watch(&self) {
        let wire = self.wire.borrow();
        let sent = (0..self.world.size).filter(|&target| self.peers[target].region.is_none()).map(|target| {
            // SAFETY: the set that was filled is touched by its owner only.
            wire.left[target].bytes + unsafe { &*self.region.outbox(self.set.get(), target) }.bytes()
        });
        self.habit.borrow_mut().ended(sent.max().unwrap_or(0), self.world.changed.get());
    }

    /// Whether NOSUCCEED was asserted for the epoch that begins: its operations are refused.
    pub(super) fn close(&self, closed: bool) {
        self.closed.set(closed);
        self.turn(self.set.get(), !closed);
    }

    /// Forget what is pending.
    pub(crate) fn discard(&self) {
        for target in 0..self.world.size {
            // SAFETY: after a fence that failed on all ranks, or before one: nobody reads the set being filled.
            unsafe { &mut *self.region.outbox(self.set.get(), target) }.clear();
        }
        self.pending.borrow_mut().clear();
        self.notes.borrow_mut().clear();
        self.wire.borrow_mut().forget();
    }

    /// Whether operations wait for this window's fence.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.borrow().gets.is_empty()
            || self.wire.borrow().has_left()
            // SAFETY: the set being filled is touched by its owner only.
            || (0..self.world.size).any(|target| !unsafe { &*self.region.outbox(self.set.get(), target) }.is_empty())
    }
}
