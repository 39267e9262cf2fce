//! Records and frames that a fence adds to notifications and to the census instead of sending them
//! separately.

use crate::census::riding::are_riding;
use crate::fence::Fence;
use crate::fence::remote::Frames;
use crate::protocol::frames::kind;
use fencepost_planner::Result;
use fencepost_transport::{Notification, Notify, Topology};

impl Fence<'_> {
    /// Prepares to add frames to the census. Called before frames are sent in an exchange with a
    /// census. If all ranks repeat an exchange, the items of the exchange are first given back to
    /// the world, since `send` looks for them there.
    pub(super) fn begin_rides(&mut self) {
        if let Some(items) = self.items.take() {
            self.world.census.items.replace(items);
        }
        self.world.census.items.borrow_mut().rides.begin();
    }

    /// Takes in the frames that the census carried here from a rank that has sent `count` frames.
    /// Returns the number of these frames.
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

    /// Returns whether the notification for `to` contains everything that this rank has for `to`:
    /// at most two plain records of one window. This rank reads the elements of its gets directly
    /// from `to`, so gets need no frame if they are not listed.
    pub(super) fn in_notification(&self, to: usize) -> bool {
        let [window] = self.windows else { return false };
        if self.listed && window.filling.pending.borrow().asks(to) {
            return false;
        }
        // SAFETY: only this rank touches the set of outboxes that it is filling.
        let outbox = unsafe { &*window.region.outbox(window.filling.set.get(), to) };
        outbox.records.len() <= 2 && outbox.wide.is_empty() && self.endpoint.reaches(to)
    }

    /// Returns whether the notification of `from` contains all operations of `from`.
    ///
    /// Only ranks that reach each other's memory send such notifications, and only their records
    /// are applied without a check. A notification that came as a message may contain anything, so
    /// a census refuses notifications of this form.
    pub(super) fn rides(&mut self, from: usize) -> bool {
        self.endpoint.reaches(from)
            && self.notification(from).is_some_and(|notification| are_riding(notification.address))
    }

    /// Returns the notification of `from`, if it is known. In a census, only a rank that has
    /// something for this rank has a notification.
    #[inline(always)]
    pub(super) fn notification(&mut self, from: usize) -> Option<&Notification> {
        match &self.items {
            Some(items) if self.counted => items.notification(from),
            _ => self.endpoint.read(from).ok().flatten(),
        }
    }
}
