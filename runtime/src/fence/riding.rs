//! Records and frames that notifications carry.
//!
//! A notification carries records between ranks that reach each other's memory, and nothing else is
//! sent then. Elsewhere, in a census, it carries short frames. The records are of one window of the
//! fence or of two, and the address of the notification encodes which, by their places in the
//! fence.

use crate::collect::limits::count_more;
use crate::fence::remote::Frames;
use crate::fence::{Fence, INLINE};
use crate::protocol::frames::kind;
use crate::state::window_core::FEW;
use fencepost_planner::Result;
use fencepost_transport::{Notification, Notify, Record, Topology};
use std::ptr::with_exposed_provenance;

/// The number of places of windows that the address of a notification can encode.
pub(super) const MOST_WINDOWS: usize = FEW;

/// Returns whether a notification with this address contains records, or the address of records.
#[inline(always)]
pub(super) fn are_riding(address: usize) -> bool {
    address > INLINE - MOST_WINDOWS * (MOST_WINDOWS + 1)
}

/// Adds the records of the window at this place to the notification: one or two as they are, more
/// by their address.
#[inline(always)]
pub(super) fn of_one(notification: &mut Notification, place: usize, records: &[Record]) {
    notification.count = records.len() as u32;
    notification.address = INLINE - place;
    match records {
        [] => (),
        [one] => notification.inline[0] = *one,
        [one, two] => notification.inline = [*one, *two],
        more => notification.inline[0].value = more.as_ptr().expose_provenance() as u64,
    }
}

/// Adds the records of the windows at these two places to the notification: one of each as they
/// are, otherwise by their address and number.
pub(super) fn of_two(
    notification: &mut Notification,
    (first, ones): (usize, &[Record]),
    (second, others): (usize, &[Record]),
) {
    notification.count = count_more(ones.len() as u32, others.len());
    notification.address = INLINE - (MOST_WINDOWS * (first + 1) + second);
    notification.inline = match (ones, others) {
        ([one], [other]) => [*one, *other],
        _ => [ones, others].map(|records| Record {
            head: records.len() as u64,
            value: records.as_ptr().expose_provenance() as u64,
        }),
    };
}

/// Returns the records of the window at this place, from the notification or from the address that
/// it contains.
///
/// # Safety
/// [`are_riding`] is true of the address of this notification, which is of this
/// exchange: its sender leaves the records unchanged until its fence after the next, which waits
/// for this rank's next notification.
#[inline(always)]
pub(super) unsafe fn riders(notification: &Notification, place: usize) -> &[Record] {
    // SAFETY: there are as many at that address, by the caller's promise.
    let far = |address: u64, count| unsafe {
        std::slice::from_raw_parts(with_exposed_provenance(address as usize), count)
    };
    let (places, count, inline) = (INLINE - notification.address, notification.count, &notification.inline);
    if places < MOST_WINDOWS {
        return match count as usize {
            _ if places != place => &[],
            count @ 0..=2 => &inline[..count],
            more => far(inline[0].value, more),
        };
    }
    let which = match (places / MOST_WINDOWS - 1, places % MOST_WINDOWS) {
        (first, _) if first == place => 0,
        (_, second) if second == place => 1,
        _ => return &[],
    };
    if count == 2 { &inline[which..=which] } else { far(inline[which].value, inline[which].head as usize) }
}

impl Fence<'_> {
    /// Prepares to add frames to the census, before frames are sent in an exchange with a census.
    /// The items of an exchange that all ranks take again are given back first, since `send` looks
    /// for them in the world.
    pub(super) fn begin_rides(&mut self) {
        if let Some(items) = self.items.take() {
            self.world.census.items.replace(items);
        }
        self.world.census.items.borrow_mut().rides.begin();
    }

    /// Takes in the frames that the census carried here from a rank that has sent `count` frames.
    /// Returns how many they are.
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

    /// Returns whether all that there is for `to` is a plain record or two of one window, which the
    /// notification contains. Gets are read directly there, and need no frame if they are not
    /// listed.
    pub(super) fn in_notification(&self, to: usize) -> bool {
        let [window] = self.windows else { return false };
        if self.listed && window.filling.pending.borrow().asks(to) {
            return false;
        }
        // SAFETY: only its owner touches the set being filled.
        let outbox = unsafe { &*window.region.outbox(window.filling.set.get(), to) };
        outbox.records.len() <= 2 && outbox.wide.is_empty() && self.endpoint.reaches(to)
    }

    /// Returns whether what there is from `from` is in its notification.
    ///
    /// Only ranks that reach each other's memory do that, and only such a rank's records are
    /// applied without a check. A notification that came as a message may contain anything; a
    /// census refuses this form there.
    pub(super) fn rides(&mut self, from: usize) -> bool {
        self.endpoint.reaches(from)
            && self.notification(from).is_some_and(|notification| are_riding(notification.address))
    }

    /// Returns the notification of `from`, if it is known. In a census, only ranks that have
    /// something for this rank have one.
    #[inline(always)]
    pub(super) fn notification(&mut self, from: usize) -> Option<&Notification> {
        match &self.items {
            Some(items) if self.counted => items.notification(from),
            _ => self.endpoint.read(from).ok().flatten(),
        }
    }
}
