//! [`Outbox`]: the elements of messages that receivers request or read after they have taken the
//! messages.

use fencepost_transport::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::PoisonError;

#[cfg(loom)]
use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// The number of bytes that a rank requests at a time.
const CHUNK: usize = 256 << 10;

/// The elements of messages that were sent without their elements, by receiver and message number.
/// The attendant of the rank also reads these elements.
#[derive(Default)]
pub(crate) struct Outbox {
    all: Mutex<BTreeMap<(usize, u64), Waiting>>,
    /// Whether this rank has left. If so, all elements are sent without a request. Written under
    /// the lock.
    left: AtomicBool,
    /// The rank that has made an invalid request, plus one. 0 if there is no such rank.
    wrong: AtomicUsize,
}

/// A message that was sent without its elements.
struct Waiting {
    /// The number of chunks that were requested.
    asked: u32,
    elements: Elements,
}

/// A message whose elements were copied, and whose receiver has not taken all of them.
pub(crate) struct Left {
    pub(crate) to: usize,
    pub(crate) number: u64,
    /// The memory, which begins with the elements.
    pub(crate) bytes: Bytes,
    /// The number of bytes of the elements.
    pub(crate) len: usize,
    /// The number of chunks that were handed out.
    pub(crate) asked: usize,
}

/// The elements of a message that was sent without them.
enum Elements {
    /// The elements are in memory of a call that waits.
    Borrowed(*const u8, usize),
    /// The elements were copied to the front of this memory.
    Owned(Bytes, usize),
}

// SAFETY: borrowed elements are only read, under the lock, and are taken out before their memory is
// written or freed.
unsafe impl Send for Elements {}

impl Outbox {
    fn all(&self) -> MutexGuard<'_, BTreeMap<(usize, u64), Waiting>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds elements without copying them.
    ///
    /// # Safety
    /// The bytes can be read, and no code writes or frees them before they are
    /// [removed](Self::remove).
    pub(crate) unsafe fn expose(&self, to: usize, number: u64, bytes: &[u8]) {
        self.insert(to, number, Elements::Borrowed(bytes.as_ptr(), bytes.len()));
    }

    /// Adds elements that were copied.
    pub(crate) fn keep(&self, to: usize, number: u64, bytes: Bytes, len: usize) {
        self.insert(to, number, Elements::Owned(bytes, len));
    }

    fn insert(&self, to: usize, number: u64, elements: Elements) {
        self.all().insert((to, number), Waiting { asked: 0, elements });
    }

    /// Returns a rank that has made an invalid request.
    pub(crate) fn wrong(&self) -> Option<usize> {
        self.wrong.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Removes the elements of a message, if the outbox has them. Afterwards no code reads them
    /// through the outbox.
    pub(crate) fn remove(&self, to: usize, number: u64) {
        self.all().remove(&(to, number));
    }

    /// Removes all elements, because this rank leaves, and returns those that were copied. From
    /// then on no elements are [shown](Self::show).
    pub(crate) fn take_owned(&self) -> Vec<Left> {
        let mut all = self.all();
        self.left.store(true, Ordering::Relaxed);
        let all = std::mem::take(&mut *all);
        let owned = all.into_iter().filter_map(|((to, number), waiting)| match waiting.elements {
            Elements::Owned(bytes, len) => {
                Some(Left { to, number, bytes, len, asked: waiting.asked as usize })
            }
            Elements::Borrowed(..) => None,
        });
        owned.collect()
    }

    /// Passes chunk `at` of the elements of a message to `told`, because rank `to` requests it.
    /// This chunk must be the next one of the message. For an invalid request, passes an empty
    /// slice and remembers that `to` has made the request. After this rank has left, does not call
    /// `told`.
    pub(crate) fn show(&self, to: usize, number: u64, at: u32, told: impl FnOnce(&[u8])) {
        let mut all = self.all();
        if self.left.load(Ordering::Relaxed) {
            return;
        }
        let waiting = all.get_mut(&(to, number)).filter(|waiting| waiting.asked == at);
        let bytes = waiting.map_or(&[][..], |waiting| {
            waiting.asked += 1;
            match &waiting.elements {
                // SAFETY: the caller of `expose` guarantees that the bytes can be read, and the
                // lock is held.
                Elements::Borrowed(first, len) => unsafe { std::slice::from_raw_parts(*first, *len) },
                // SAFETY: the bytes were written before they were added.
                Elements::Owned(bytes, len) => unsafe { std::slice::from_raw_parts(bytes.base(), *len) },
            }
        });
        let part = bytes.get(chunk(at as usize, bytes.len())).unwrap_or_default();
        if part.is_empty() {
            self.wrong.store(to + 1, Ordering::Relaxed);
        }
        told(part);
    }
}

/// Returns the number of chunks of a message of this number of bytes.
pub(crate) fn chunks(bytes: usize) -> usize {
    bytes.div_ceil(CHUNK)
}

/// Returns the range of chunk `at` in a message of this number of bytes. The range is empty if
/// there is no such chunk.
pub(crate) fn chunk(at: usize, bytes: usize) -> Range<usize> {
    let first = at.saturating_mul(CHUNK).min(bytes);
    first..bytes.min(first + CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_transport::Memory;

    /// Returns an outbox with a message of two chunks to rank 1.
    fn outbox() -> Outbox {
        let outbox = Outbox::default();
        outbox.keep(1, 5, Memory::heap().zeroed(2 * CHUNK).expect("memory"), CHUNK + 7);
        outbox
    }

    #[test]
    fn chunks_are_shown_once_and_in_order_and_nothing_else_is() {
        let outbox = outbox();
        let shown = |to, number, at| {
            let mut shown = None;
            outbox.show(to, number, at, |bytes| shown = Some(bytes.len()));
            shown
        };
        assert_eq!([shown(1, 5, 0), shown(1, 5, 1)], [Some(CHUNK), Some(7)]);
        assert_eq!(outbox.wrong(), None);
        for (to, number, at) in [(1, 5, 0), (1, 5, 2), (1, 5, 3), (1, 4, 0), (2, 5, 0)] {
            outbox.wrong.store(0, Ordering::Relaxed);
            assert_eq!((shown(to, number, at), outbox.wrong()), (Some(0), Some(to)));
        }
    }

    #[test]
    fn nothing_is_shown_and_nobody_is_wrong_once_the_rank_has_left() {
        let outbox = outbox();
        outbox.show(1, 5, 0, |bytes| assert_eq!(bytes.len(), CHUNK));
        let owned = outbox.take_owned();
        assert_eq!(
            owned.iter().map(|left| (left.to, left.number, left.len, left.asked)).collect::<Vec<_>>(),
            [(1, 5, CHUNK + 7, 1)]
        );
        outbox.show(1, 5, 1, |_| panic!("all of it is sent unasked"));
        assert_eq!(outbox.wrong(), None);
    }
}
