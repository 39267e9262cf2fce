//! [`Outbox`]: the elements of messages that their receivers ask for, or read, when they have taken them.

use fencepost_transport::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bytes that a rank asks for at a time.
const CHUNK: usize = 256 << 10;

/// The elements of messages that were sent without them, by receiver and number of the message. The attendant of the rank
/// reads them as well.
#[derive(Default)]
pub(crate) struct Outbox(Mutex<BTreeMap<(usize, u64), Waiting>>);

/// The elements of a message that was sent without them.
enum Waiting {
    /// They are in memory of a call that waits.
    Borrowed(*const u8, usize),
    /// They were copied to the front of this memory.
    Owned(Bytes, usize),
}

// SAFETY: borrowed elements are only read, under the lock, and are taken out before their memory is written or freed.
unsafe impl Send for Waiting {}

impl Outbox {
    fn all(&self) -> MutexGuard<'_, BTreeMap<(usize, u64), Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds elements that stay where they are.
    ///
    /// # Safety
    /// The bytes can be read, and nobody writes or frees them before they are [removed](Self::remove).
    pub(crate) unsafe fn expose(&self, to: usize, number: u64, bytes: &[u8]) {
        self.all().insert((to, number), Waiting::Borrowed(bytes.as_ptr(), bytes.len()));
    }

    /// Adds elements that were copied.
    pub(crate) fn keep(&self, to: usize, number: u64, bytes: Bytes, len: usize) {
        self.all().insert((to, number), Waiting::Owned(bytes, len));
    }

    /// Removes the elements of a message, if they are here: nobody reads them here any more.
    pub(crate) fn remove(&self, to: usize, number: u64) {
        self.all().remove(&(to, number));
    }

    /// Removes all elements that were copied.
    pub(crate) fn take_owned(&self) -> Vec<((usize, u64), Bytes, usize)> {
        let all = std::mem::take(&mut *self.all());
        let owned = all.into_iter().filter_map(|(message, waiting)| match waiting {
            Waiting::Owned(bytes, len) => Some((message, bytes, len)),
            Waiting::Borrowed(..) => None,
        });
        owned.collect()
    }

    /// Shows a chunk of the elements of a message to `told`, or nothing where there is none.
    pub(crate) fn show(&self, to: usize, number: u64, at: u32, told: impl FnOnce(&[u8])) {
        let all = self.all();
        let bytes = match all.get(&(to, number)) {
            // SAFETY: of `expose`; the lock is held.
            Some(Waiting::Borrowed(first, len)) => unsafe { std::slice::from_raw_parts(*first, *len) },
            // SAFETY: the bytes were written before they were added.
            Some(Waiting::Owned(bytes, len)) => unsafe { std::slice::from_raw_parts(bytes.base(), *len) },
            None => &[],
        };
        told(bytes.get(chunk(at as usize, bytes.len())).unwrap_or_default());
    }
}

/// The number of chunks of this number of bytes.
pub(crate) fn chunks(bytes: usize) -> usize {
    bytes.div_ceil(CHUNK)
}

/// The bytes of a chunk, of as many in all; none where there is no such chunk.
pub(crate) fn chunk(at: usize, bytes: usize) -> Range<usize> {
    let first = at.saturating_mul(CHUNK).min(bytes);
    first..bytes.min(first + CHUNK)
}
