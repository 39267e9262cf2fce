//! What rides in a notification: records, where the ranks reach each other's memory, and nothing else is sent then; elsewhere, in
//! a census, short frames.

use crate::fence::remote::Frames;
use crate::fence::{Fence, INLINE};
use crate::protocol::frames::kind;
use fencepost_planner::Result;
use fencepost_transport::{Notification, Notify, Record, Topology};
use std::ptr::with_exposed_provenance;

impl Fence<'_> {
    /// Before frames are sent, in an exchange with a census: none rides yet. The items of an exchange that all ranks take again are
    /// given back first, since what is sent finds them in the world.
    pub(super) fn begin_rides(&mut self) {
        if let Some(items) = self.items.take() {
            self.world.items.replace(items);
        }
        self.world.items.borrow_mut().rides.begin();
    }

    /// Takes in the frames that rode here from a rank that has sent `count` frames: returns how many they are.
    pub(super) fn take_ridden(&mut self, frames: &Frames<'_>, count: u32) -> Result<u32> {
        let Some(items) = self.items.as_ref().filter(|_| self.counted) else { return Ok(0) };
        let mut taken = 0;
        for frame in items.ridden(frames.from, kind::DATA) {
            let good = taken < count && frames.take_in(self.endpoint, &frame).is_some();
            if !good {
                return Err(self.world.corrupt(self.endpoint, frames.from, self.call));
            }
            taken += 1;
        }
        Ok(taken)
    }

    /// Whether all that there is for `to` is a plain record or two of one window, which the notification holds. Gets are read
    /// directly there, and need nothing to be sent if they are not listed.
    pub(super) fn in_notification(&self, to: usize) -> bool {
        let [window] = self.windows else { return false };
        if self.listed && window.pending.borrow().asks(to) {
            return false;
        }
        // SAFETY: the set being filled is touched by its owner only.
        let outbox = unsafe { &*window.region.outbox(window.set.get(), to) };
        outbox.records.len() <= 2 && outbox.wide.is_empty() && self.endpoint.reaches(to)
    }

    /// Whether what there is from `from` rides in its notification. Only ranks that reach each other's memory do that, and only
    /// what such a rank says is applied as it is: a notification that came as a message may say anything; in a census it is
    /// refused there.
    pub(super) fn rides(&mut self, from: usize) -> bool {
        self.endpoint.reaches(from)
            && self.notification(from).is_some_and(|notification| notification.address == INLINE)
    }

    /// The records that ride in a notification, or that it says the address of.
    ///
    /// # Safety
    /// It [`rides`](Self::rides), and is of this exchange: its sender leaves the records as they are until its fence after the
    /// next, which waits for this rank's next notification.
    pub(super) unsafe fn riders(notification: &Notification) -> &[Record] {
        let count = notification.count as usize;
        notification.inline.get(..count).unwrap_or_else(|| {
            let first = with_exposed_provenance(notification.inline[0].value as usize);
            // SAFETY: there are as many at that address, by the caller's promise.
            unsafe { std::slice::from_raw_parts(first, count) }
        })
    }

    /// The notification of `from`, as far as it is known: in a census, only of those who have something for this rank.
    #[inline(always)]
    pub(super) fn notification(&mut self, from: usize) -> Option<&Notification> {
        match &self.items {
            Some(items) if self.counted => items.notification(from),
            _ => self.endpoint.read(from).ok().flatten(),
        }
    }
}
