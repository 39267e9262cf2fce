//! What a window has collected for its next fence: forgotten, kept apart, or asked about.

use crate::window::WindowCore;

impl WindowCore {
    /// After a fence that went through: fill the other set, which nobody reads any more.
    pub(super) fn next_set(&self) {
        self.closed.set(false);
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
