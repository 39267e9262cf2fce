//! Frames where memory is shared: a first in, first out queue of descriptors for each ordered pair of ranks.
//!
//! A queue is a ring of slots, a cache line each, numbered by the frame they hold: a frame costs the reader one line. A
//! post that finds the ring full opens a larger one behind it and goes on there, so that posting never waits, and needs
//! nobody's later help to be seen. The reader moves over when it has released all of the old ring, which is then freed.
//! A queue whose reader keeps up stays in one ring and allocates nothing.

use super::{Frame, Header};
use crate::sync::{Arc, AtomicBool, AtomicU64, Line, Mutex, Ordering, SLOTS, UnsafeCell, lock};

#[repr(align(64))]
struct Slot {
    /// One more than the number of the frame in it; 0 while there was none.
    number: AtomicU64,
    frame: UnsafeCell<Frame>,
}

/// A ring of slots. Frame `n` lies in slot `(n - first) % slots`.
struct Ring {
    first: u64,
    slots: Vec<Slot>,
    next: Link,
}

/// Where a queue goes on.
struct Link {
    set: AtomicBool,
    ring: Mutex<Option<Arc<Ring>>>,
}

struct Queue {
    start: Link,
    /// How many frames the reader has released.
    released: Line<AtomicU64>,
}

// SAFETY: a slot's frame is written by the one `Sender` and read by the one `Receiver`. The read follows the Acquire load
// of the number that the sender stored with Release after the frame. The next write to the slot follows the Acquire load
// of a count that the receiver stored with Release after its last look at the frame.
unsafe impl Sync for Ring {}
// SAFETY: a frame is plain data; what it points to is argued by who posts it.
unsafe impl Send for Ring {}

/// The posting side.
pub(super) struct Sender {
    queue: Arc<Queue>,
    ring: Option<Arc<Ring>>,
    posted: u64,
    /// `queue.released` as last seen.
    released: u64,
}

/// The reading side.
pub(super) struct Receiver {
    queue: Arc<Queue>,
    ring: Option<Arc<Ring>>,
    released: u64,
    /// The frame after those has come.
    open: bool,
}

/// A queue's two sides.
pub(super) fn queue() -> (Sender, Receiver) {
    let queue = Arc::new(Queue { start: Link::new(), released: Line(AtomicU64::new(0)) });
    (
        Sender { queue: Arc::clone(&queue), ring: None, posted: 0, released: 0 },
        Receiver { queue, ring: None, released: 0, open: false },
    )
}

impl Sender {
    /// Post a frame: never waits.
    #[inline]
    pub(super) fn post(&mut self, frame: Frame) {
        if !self.has_room() {
            self.grow();
        }
        let ring = self.ring.as_ref().expect("`grow` has made one");
        let slot = ring.slot(self.posted);
        // SAFETY: only this sender writes the slot, and it is new, or its last frame was released (see `Ring`).
        slot.frame.with_mut(|place| unsafe { *place = frame });
        self.posted += 1;
        slot.number.store(self.posted, Ordering::Release); // the load in `peek`
    }

    /// How many frames were posted, ever.
    pub(super) fn posted(&self) -> u64 {
        self.posted
    }

    /// How many frames were released, ever.
    #[inline]
    pub(super) fn released(&mut self) -> u64 {
        if self.released < self.posted {
            self.released = self.queue.released.0.load(Ordering::Acquire); // the store in `release`
        }
        self.released
    }

    /// Whether the slot of the next frame is free: it was never used, or its last frame was released.
    #[inline]
    fn has_room(&mut self) -> bool {
        let Some(ring) = &self.ring else { return false };
        let (first, slots) = (ring.first, ring.slots.len() as u64);
        let last = self.posted.wrapping_sub(slots);
        self.posted - first < slots || self.released > last || self.released() > last
    }

    #[cold]
    fn grow(&mut self) {
        let slots = self.ring.as_ref().map_or(SLOTS.0, |ring| SLOTS.1.min(2 * ring.slots.len()));
        let ring = Arc::new(Ring::new(self.posted, slots));
        let link = self.ring.as_ref().map_or(&self.queue.start, |ring| &ring.next);
        link.set(Arc::clone(&ring));
        self.ring = Some(ring);
    }
}

impl Receiver {
    /// The oldest frame that was not released, if it has come.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<Frame> {
        if !self.open {
            self.open = self.has_come() || self.has_come_beyond();
        }
        let ring = self.ring.as_ref().filter(|_| self.open)?;
        // SAFETY: the frame has come, and the sender writes the slot only after its release (see `Ring`).
        Some(ring.slot(self.released).frame.with(|frame| unsafe { *frame }))
    }

    /// The frame that `peek` gave may go. Gives whether there was one.
    #[inline]
    pub(super) fn release(&mut self) -> bool {
        let open = std::mem::replace(&mut self.open, false);
        if open {
            self.released += 1;
            self.queue.released.0.store(self.released, Ordering::Release); // the load in `released`
        }
        open
    }

    #[inline]
    fn has_come(&self) -> bool {
        // The store in `post`.
        let number = |ring: &Ring| ring.slot(self.released).number.load(Ordering::Acquire);
        self.ring.as_ref().is_some_and(|ring| number(ring) == self.released + 1)
    }

    /// The next frame is not in this ring, or was not when looked for: move over to the next ring if it starts there.
    fn has_come_beyond(&mut self) -> bool {
        let link = self.ring.as_ref().map_or(&self.queue.start, |ring| &ring.next);
        let Some(next) = link.get() else { return false };
        if next.first == self.released {
            self.ring = Some(next); // all of the old ring is released: its memory goes
        }
        self.has_come()
    }
}

impl Ring {
    fn new(first: u64, slots: usize) -> Self {
        let empty = Frame { header: Header::default(), payload: std::ptr::null(), len: 0 };
        let slot = || Slot { number: AtomicU64::new(0), frame: UnsafeCell::new(empty) };
        Self { first, slots: (0..slots).map(|_| slot()).collect(), next: Link::new() }
    }

    #[inline]
    fn slot(&self, frame: u64) -> &Slot {
        &self.slots[(frame - self.first) as usize & (self.slots.len() - 1)]
    }
}

impl Link {
    fn new() -> Self {
        Self { set: AtomicBool::new(false), ring: Mutex::new(None) }
    }

    fn set(&self, ring: Arc<Ring>) {
        *lock(&self.ring) = Some(ring);
        self.set.store(true, Ordering::Release); // the load in `get`
    }

    #[inline]
    fn get(&self) -> Option<Arc<Ring>> {
        if self.set.load(Ordering::Acquire) { lock(&self.ring).clone() } else { None } // the store in `set`
    }
}
