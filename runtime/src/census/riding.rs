//! Records and frames that notifications carry.
//!
//! Between ranks that reach each other's memory, a notification carries records, and nothing else
//! is sent. Between other ranks, a notification of a census carries short frames. The records
//! belong to one or two windows of the fence. The address of the notification encodes the places of
//! these windows in the fence.

use crate::census::state::items::INLINE;
use crate::collect::limits::count_more;
use crate::state::window_core::FEW;
use fencepost_transport::{Notification, Record};
use std::ptr::with_exposed_provenance;

/// The number of places of windows that the address of a notification can encode.
pub(crate) const MOST_WINDOWS: usize = FEW;

/// Returns whether a notification with this address contains records, or the address of records.
#[inline(always)]
pub(crate) fn are_riding(address: usize) -> bool {
    address > INLINE - MOST_WINDOWS * (MOST_WINDOWS + 1)
}

/// Adds the records of the window at this place to the notification. One or two records are added
/// by value. If there are more records, their address is added.
#[inline(always)]
pub(crate) fn of_one(notification: &mut Notification, place: usize, records: &[Record]) {
    notification.count = records.len() as u32;
    notification.address = INLINE - place;
    match records {
        [] => (),
        [one] => notification.inline[0] = *one,
        [one, two] => notification.inline = [*one, *two],
        more => notification.inline[0].value = more.as_ptr().expose_provenance() as u64,
    }
}

/// Adds the records of the windows at these two places to the notification. If each window has one
/// record, both are added by value. Otherwise the address and the number of the records of each
/// window are added.
pub(crate) fn of_two(
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
/// [`are_riding`] is true of the address of this notification, and the notification is of this
/// exchange. So the sender leaves the records unchanged until the sender's fence after the next
/// one, and that fence waits for this rank's next notification.
#[inline(always)]
pub(crate) unsafe fn riders(notification: &Notification, place: usize) -> &[Record] {
    // SAFETY: the caller guarantees that this number of records begins at the address.
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
