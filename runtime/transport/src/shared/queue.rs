//! Frames where memory is shared: a first in, first out queue of descriptors for each ordered pair of ranks.
//!
//! A queue is a ring of slots, a cache line each, numbered by the frame they hold: a frame costs the reader one line. A
//! post that finds the ring full opens a larger one behind it and goes on there, so that posting never waits, and needs
//! nobody's later help to be seen. The reader moves over when it has released all of the old ring. The sender owns the
//! rings; it frees the old one when it sees that a frame of the next was released, since its reader has then moved over.
//! A queue whose reader keeps up stays in one ring and allocates nothing.

use std::io;
use std::ptr::NonNull;

use crate::shared::slice::{Kept, Placed, Places};
use crate::sync::{AtomicU64, Line, Ordering, SLOTS, UnsafeCell};
use crate::{Frame, Header};

#[repr(C, align(64))]
struct Slot {
    /// One more than the number of the frame in it; 0 while there was none.
    number: AtomicU64,
    frame: UnsafeCell<Frame>,
}

// SAFETY: a slot's frame is written by the one `Sender` and read by the one `Receiver`. The read follows the Acquire load
// of the number that the sender stored with Release after the frame. The next write to the slot follows the Acquire load
// of a count that the receiver stored with Release after its last look at the frame.
unsafe impl Sync for Slot {}
// SAFETY: a frame is plain data; what it points to is argued by who posts it.
unsafe impl Send for Slot {}

/// What a reader must know of a ring. Frame `n` lies in slot `(n - first) % slots`.
#[repr(C)]
struct Head {
    first: u64,
    /// Where the slots are, and how many.
    address: u64,
    slots: u64,
    /// The address of the next ring's head; 0 while there is none.
    next: AtomicU64,
}

/// What a queue's two sides share besides rings.
#[repr(C)]
pub(crate) struct Ends {
    /// How many frames the reader has released.
    released: AtomicU64,
    /// The address of the first ring's head; 0 while there is none.
    start: AtomicU64,
}

/// The queues of one world, `[origin][target]`.
pub(crate) type Queues = Placed<Line<Ends>>;

pub(crate) fn queues(size: usize, places: &mut impl Places) -> io::Result<Queues> {
    places.place(size * size, || Line(Ends { released: AtomicU64::new(0), start: AtomicU64::new(0) }))
}

/// A ring, and its memory.
struct Ring {
    head: Placed<Head>,
    slots: Placed<Slot>,
}

/// The posting side.
pub(crate) struct Sender {
    queues: Queues,
    queue: usize,
    ring: Option<Ring>,
    /// Rings that the reader may still look at, and the first frame of the ring after each.
    old: Vec<(Ring, u64)>,
    posted: u64,
    /// The queue's `released` as last seen.
    released: u64,
}

/// The reading side.
pub(crate) struct Receiver {
    queues: Queues,
    queue: usize,
    ring: Option<NonNull<Head>>,
    released: u64,
    /// The frame after those has come.
    open: bool,
}

// SAFETY: the ring is another's, who keeps it alive (see the top) and is no thread that it would be bound to.
unsafe impl Send for Receiver {}

impl Sender {
    /// The posting side of a queue, which has only one.
    pub(crate) fn new(queues: Queues, queue: usize) -> Self {
        Self { queues, queue, ring: None, old: Vec::new(), posted: 0, released: 0 }
    }

    /// Post a frame: never waits.
    ///
    /// # Errors
    /// There is no room for a larger ring: the frame was not posted.
    #[inline]
    pub(crate) fn post(&mut self, frame: Frame, places: &mut impl Places) -> io::Result<()> {
        if !self.has_room() {
            self.grow(places)?;
        }
        let ring = self.ring.as_ref().expect("`grow` has made one");
        let slot = ring.slot(self.posted);
        // SAFETY: only this sender writes the slot, and it is new, or its last frame was released (see `Slot`).
        slot.frame.with_mut(|place| unsafe { *place = frame });
        self.posted += 1;
        slot.number.store(self.posted, Ordering::Release); // the load in `has_come`
        Ok(())
    }

    /// How many frames were posted, ever.
    pub(crate) fn posted(&self) -> u64 {
        self.posted
    }

    /// How many frames were released, ever.
    #[inline]
    pub(crate) fn released(&mut self) -> u64 {
        if self.released < self.posted {
            self.released = self.queues[self.queue].0.released.load(Ordering::Acquire); // the store in `release`
        }
        self.released
    }

    /// What the reader may still look at when this side is gone.
    pub(crate) fn into_kept(self) -> impl Iterator<Item = Kept> {
        let rings = self.old.into_iter().map(|(ring, _)| ring).chain(self.ring);
        rings.flat_map(|ring| [ring.head.into_kept(), ring.slots.into_kept()])
    }

    /// Whether the slot of the next frame is free: it was never used, or its last frame was released.
    #[inline]
    fn has_room(&mut self) -> bool {
        let Some(ring) = &self.ring else { return false };
        let (first, slots) = (ring.head[0].first, ring.slots.len() as u64);
        let last = self.posted.wrapping_sub(slots);
        self.posted - first < slots || self.released > last || self.released() > last
    }

    #[cold]
    fn grow(&mut self, places: &mut impl Places) -> io::Result<()> {
        let slots = self.ring.as_ref().map_or(SLOTS.0, |ring| SLOTS.1.min(2 * ring.slots.len()));
        let empty = Frame { header: Header::default(), payload: std::ptr::null(), len: 0 };
        let slots =
            places.place(slots, || Slot { number: AtomicU64::new(0), frame: UnsafeCell::new(empty) })?;
        let head = places.place(1, || Head {
            first: self.posted,
            address: slots.address(),
            slots: slots.len() as u64,
            next: AtomicU64::new(0),
        })?;
        let address = head.address();
        let old = self.ring.replace(Ring { head, slots });
        let link = old.as_ref().map_or(&self.queues[self.queue].0.start, |ring| &ring.head[0].next);
        link.store(address, Ordering::Release); // the load in `has_come_beyond`
        let released = self.released();
        self.old.retain(|(_, next)| released <= *next);
        self.old.extend(old.map(|ring| (ring, self.posted)));
        Ok(())
    }
}

impl Ring {
    #[inline]
    fn slot(&self, frame: u64) -> &Slot {
        &self.slots[(frame - self.head[0].first) as usize & (self.slots.len() - 1)]
    }
}

impl Receiver {
    /// The reading side of a queue, which has only one.
    pub(crate) fn new(queues: Queues, queue: usize) -> Self {
        Self { queues, queue, ring: None, released: 0, open: false }
    }

    /// The oldest frame that was not released, if it has come.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<Frame> {
        if !self.open {
            self.open = self.has_come() || self.has_come_beyond();
        }
        let slot = self.slot().filter(|_| self.open)?;
        // SAFETY: the frame has come, and the sender writes the slot only after its release (see `Slot`).
        Some(slot.frame.with(|frame| unsafe { *frame }))
    }

    /// The frame that `peek` gave may go. Gives whether there was one.
    #[inline]
    pub(crate) fn release(&mut self) -> bool {
        let open = std::mem::replace(&mut self.open, false);
        if open {
            self.released += 1;
            let ends = &self.queues[self.queue].0;
            ends.released.store(self.released, Ordering::Release); // the loads of the sender
        }
        open
    }

    /// The slot of the next frame, in the ring that the reader is in.
    #[inline]
    fn slot(&self) -> Option<&Slot> {
        // SAFETY: the sender frees a ring only when a frame of the next was released, which is after this side has moved
        // over; what it leaves behind is kept until this side is gone, too.
        let head = unsafe { self.ring?.as_ref() };
        let at = (self.released - head.first) & (head.slots - 1);
        // SAFETY: `slots` values lie there as long as the head does.
        Some(unsafe { &*(head.address as *const Slot).add(at as usize) })
    }

    #[inline]
    fn has_come(&self) -> bool {
        // The store in `post`.
        self.slot().is_some_and(|slot| slot.number.load(Ordering::Acquire) == self.released + 1)
    }

    /// The next frame is not in this ring, or was not when looked for: move over to the next ring if it starts there.
    fn has_come_beyond(&mut self) -> bool {
        let link = match self.ring {
            // SAFETY: as in `slot`.
            Some(head) => unsafe { &(*head.as_ptr()).next },
            None => &self.queues[self.queue].0.start,
        };
        let next = link.load(Ordering::Acquire) as *mut Head; // the store in `grow`
        let Some(next) = NonNull::new(next) else { return false };
        // SAFETY: its sender has linked it, and frees it later than the ring before.
        if unsafe { next.as_ref() }.first == self.released {
            self.ring = Some(next);
        }
        self.has_come()
    }
}
