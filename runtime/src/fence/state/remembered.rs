//! [`Remembered`]: the data that a window remembers about the frames that it sent and received.

use crate::collect::description::Description;
use fencepost_transport::{Payload, Record};

/// The number of descriptions that each pair of ranks remembers for a window.
pub(crate) const SLOTS: usize = 8;

/// The data that a window remembers of its frames to and from the ranks whose memory it does not
/// reach.
#[derive(Default)]
pub(crate) struct Remembered {
    pub(crate) sent: Vec<Memory<Sendings>>,
    pub(crate) got: Vec<Memory<Description>>,
    pub(crate) arrived: Vec<Vec<Arrived>>,
    /// The elements that each rank sent in a separate frame or in place, until their operations
    /// arrive.
    pub(crate) lent: Vec<Option<Elements>>,
    /// The ranks to which this rank sends elements after the census.
    pub(crate) owed: Vec<usize>,
    /// The ranks that send elements after the census, for operations that have arrived.
    pub(crate) awaited: Vec<usize>,
    /// Applied payloads, by the ranks that sent them. Their memory goes back to the transport.
    pub(crate) applied: Vec<(usize, Payload)>,
    /// Buffers to reuse for the values of frames that fences post. An epoch takes one buffer for
    /// each rank that sends such a frame.
    pub(crate) spare: Vec<Vec<u8>>,
    /// A buffer into which descriptions of frames that were sent early are read, one after another.
    pub(crate) early: Description,
    /// The elements that operations in notifications of a fence touch. Each entry is an origin and
    /// a put on one element. Noted only if a check needs them.
    pub(crate) riders: Vec<(usize, Record)>,
    /// The counts of early frames, for each rank.
    pub(crate) left: Vec<Left>,
    /// The number of epochs so far, including abandoned ones. The number distinguishes operations
    /// that were sent early in different epochs.
    pub(crate) generation: u32,
    pub(crate) frame: Vec<u8>,
}

/// The counts of the frames that were sent early to a rank.
#[derive(Clone, Copy, Default)]
pub(crate) struct Left {
    /// The number of frames that were sent early in this epoch.
    pub(crate) frames: u32,
    /// The number of bytes in these frames.
    pub(crate) bytes: u64,
    /// The number of these bytes that belong to operations on more than one element.
    pub(crate) wide: u64,
    /// Whether anything was sent early since the last fence that succeeded. If so, the target has
    /// to be notified whether those frames count.
    pub(crate) open: bool,
}

#[derive(Default)]
pub(crate) struct Sendings {
    /// The last description that was sent.
    pub(crate) description: Vec<u8>,
    /// Whether the last epoch that ended at this line had any operations.
    pub(crate) any: bool,
    /// Whether some operations of the last epoch that ended at this line had been sent early.
    pub(crate) early: bool,
}

pub(crate) struct Memory<D> {
    pub(crate) slots: Vec<(usize, D)>,
    pub(crate) next: usize,
}

impl<D> Default for Memory<D> {
    fn default() -> Self {
        Self { slots: Vec::new(), next: 0 }
    }
}

impl Memory<Sendings> {
    /// Notes that an epoch that ended at the line `key` has no operations. Returns whether the last
    /// epoch of this line had operations.
    pub(crate) fn sends_nothing(&mut self, key: usize) -> bool {
        let sendings = self.slots.iter_mut().find(|(other, _)| *other == key);
        sendings.is_some_and(|(_, sendings)| std::mem::take(&mut sendings.any))
    }

    /// Remembers the description of an epoch that ends at the line `key`. `early` is whether some
    /// of its operations were sent early. Returns the slot, whether this line sent the same
    /// description last, and whether the epoch differs from the last epoch of this line.
    pub(crate) fn sends(&mut self, key: usize, description: &[u8], early: bool) -> (usize, bool, bool) {
        let slot = self.slot_of(key);
        let sendings = &mut self.slots[slot].1;
        let same = sendings.description == description;
        let changed = !same || !sendings.any || early || sendings.early;
        (sendings.any, sendings.early) = (true, early);
        if !same {
            sendings.description.clear();
            sendings.description.extend_from_slice(description);
        }
        (slot, same, changed)
    }

    /// Returns the slot of this line. A line without a slot gets a new slot, or takes the slot of
    /// another line.
    fn slot_of(&mut self, key: usize) -> usize {
        if let Some(slot) = self.slots.iter().position(|(other, _)| *other == key) {
            return slot;
        }
        if self.slots.len() < SLOTS {
            self.slots.push((key, Sendings::default()));
            return self.slots.len() - 1;
        }
        self.next = (self.next + 1) % SLOTS;
        self.slots[self.next] = (key, Sendings::default());
        self.next
    }
}

/// Operations that have arrived from one rank.
pub(crate) struct Arrived {
    pub(crate) described: Described,
    pub(crate) values: Vec<u8>,
    pub(crate) records: usize,
    /// The elements of datatype operations, if they are not among the values.
    pub(crate) lent: Option<Elements>,
}

/// The elements of datatype operations that travel in a separate frame.
pub(crate) enum Elements {
    /// The elements come in a frame after the census. They have this number of bytes.
    Following(usize),
    /// The bytes are in the window already: they arrived where their operation puts them.
    InWindow,
    /// The elements are at this address in the sender's memory. They have this number of bytes.
    InPlace(*const u8, usize),
    /// The payload of the separate frame.
    Payload(Payload),
}

impl Elements {
    /// Returns how many bytes are still to be applied.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Following(len) | Self::InPlace(_, len) => *len,
            Self::InWindow => 0,
            Self::Payload(payload) => payload.bytes().len(),
        }
    }
}

/// The place where the description of arrived operations is found.
pub(crate) enum Described {
    /// The description is remembered in this slot.
    Slot(usize),
    /// The values are whole frames that were sent early, each with its own description. Only the
    /// frames of this epoch count.
    Early(u32),
    /// There is no description: the records are at this address, in memory of the sender.
    InPlace(*const Record),
}

impl Arrived {
    /// Gives back the buffer of values when it is no longer needed. Frames that were sent early are
    /// freed: only frames that fences post are read into buffers that are kept.
    pub(crate) fn give_back(self, spare: &mut Vec<Vec<u8>>) {
        let Arrived { described: Described::Slot(_), mut values, .. } = self else { return };
        values.clear();
        spare.push(values);
    }
}

impl Remembered {
    pub(crate) fn new(ranks: usize) -> Self {
        Self {
            sent: (0..ranks).map(|_| Memory::default()).collect(),
            got: (0..ranks).map(|_| Memory::default()).collect(),
            arrived: (0..ranks).map(|_| Vec::new()).collect(),
            lent: (0..ranks).map(|_| None).collect(),
            owed: Vec::new(),
            awaited: Vec::new(),
            applied: Vec::new(),
            spare: Vec::new(),
            early: Description::default(),
            riders: Vec::new(),
            left: vec![Left::default(); ranks],
            generation: 0,
            frame: Vec::new(),
        }
    }
}

impl Remembered {
    /// Forgets an epoch that failed. Its frames were dropped unread, so the target remembers
    /// nothing of them.
    pub(crate) fn forget(&mut self) {
        self.forget_descriptions();
        self.lent.fill_with(|| None);
        self.awaited.clear();
        for arrived in self.arrived.iter_mut().flat_map(|arrived| arrived.drain(..)) {
            arrived.give_back(&mut self.spare);
        }
        self.generation = self.generation.wrapping_add(1);
        self.left.iter_mut().for_each(|left| *left = Left { open: left.open, ..Left::default() });
    }

    /// Returns whether elements of `from` have come without their operations.
    pub(crate) fn has_elements(&self, from: usize) -> bool {
        self.lent[from].is_some()
    }

    /// Forgets the descriptions that were sent, so that everything is described again in the same
    /// epoch. Called after an exchange in which ranks were in different calls, because the frames
    /// of that exchange were dropped.
    pub(crate) fn forget_descriptions(&mut self) {
        self.sent.iter_mut().for_each(|memory| memory.slots.clear());
        self.owed.clear();
    }

    /// Begins the next epoch, after one that succeeded.
    pub(crate) fn settled(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.left.fill(Left::default());
    }

    /// Continues as if `frames` frames had been sent early for `to` in this epoch, so that a test
    /// begins near the end of the counter.
    #[cfg(test)]
    pub(crate) fn begin_at(&mut self, to: usize, frames: u32) {
        self.left[to].frames = frames;
    }

    /// Returns whether operations of this epoch have been sent already.
    pub(crate) fn has_left(&self) -> bool {
        self.left.iter().any(|left| left.frames > 0)
    }
}
