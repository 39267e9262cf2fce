//! [`Remembered`]: what a window remembers of frames that travelled.

use crate::collect::description::Description;
use fencepost_transport::{Payload, Record};

/// The number of descriptions that each pair remembers for a window.
pub(crate) const SLOTS: usize = 8;

/// The data that a window remembers of its frames to and from the ranks whose memory it does not reach.
#[derive(Default)]
pub(crate) struct Remembered {
    pub(crate) sent: Vec<Memory<Sendings>>,
    pub(crate) got: Vec<Memory<Description>>,
    pub(crate) arrived: Vec<Vec<Arrived>>,
    /// The elements that each rank lends, until the operations come that they are for.
    pub(crate) lent: Vec<Option<Elements>>,
    /// Payloads that were applied, by the ranks that they came from: their memory goes back to the transport.
    pub(crate) applied: Vec<(usize, Payload)>,
    /// Room for the values of frames that fences post, to be filled again: as many as ranks sent one in one epoch.
    pub(crate) spare: Vec<Vec<u8>>,
    /// Descriptions of what left early are read into this, one after another.
    pub(crate) early: Description,
    /// The elements that operations touch which ride in the notifications of a fence, a put of each, by their origins: noted
    /// where it matters.
    pub(crate) riders: Vec<(usize, Record)>,
    /// The counts of what has left early for each rank.
    pub(crate) left: Vec<Left>,
    /// Epochs so far, given up ones too: what left early in one is never taken for another's.
    pub(crate) generation: u32,
    pub(crate) frame: Vec<u8>,
}

/// The counts of what has left early for a rank.
#[derive(Clone, Copy, Default)]
pub(crate) struct Left {
    /// Frames in this epoch.
    pub(crate) frames: u32,
    /// Bytes in them.
    pub(crate) bytes: u64,
    /// Bytes of operations on more than an element in them.
    pub(crate) wide: u64,
    /// Whether anything has since the last fence that went through: the target has to be told what became of it.
    pub(crate) open: bool,
}

#[derive(Default)]
pub(crate) struct Sendings {
    /// The last description.
    pub(crate) description: Vec<u8>,
    /// Whether the last of these epochs had any operations.
    pub(crate) any: bool,
    /// Whether some of them had left early.
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

/// The elements of operations that are described.
pub(crate) struct Arrived {
    pub(crate) described: Described,
    pub(crate) values: Vec<u8>,
    pub(crate) records: usize,
    /// The elements of datatype operations where they are not among the values.
    pub(crate) lent: Option<Elements>,
}

/// The elements of datatype operations that came in a frame of their own.
pub(crate) enum Elements {
    /// As many bytes in memory of the sender.
    InPlace(*const u8, usize),
    /// The payload of that frame.
    Payload(Payload),
}

impl Elements {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::InPlace(_, len) => *len,
            Self::Payload(payload) => payload.bytes().len(),
        }
    }
}

/// The place of the description of what arrived.
pub(crate) enum Described {
    /// Remembered, in this slot.
    Slot(usize),
    /// The values are whole frames that left early, each with its own; those of this epoch count.
    Early(u32),
    /// There is none: as many records lie here, in memory of the sender.
    InPlace(*const Record),
}

impl Arrived {
    /// Nobody needs it any more. What left early is freed: only frames that fences post are read into room that is kept.
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
    /// After an epoch that failed: its frames were dropped unread, so nothing that was sent counts as remembered.
    pub(crate) fn forget(&mut self) {
        self.forget_descriptions();
        self.lent.fill_with(|| None);
        for arrived in self.arrived.iter_mut().flat_map(|arrived| arrived.drain(..)) {
            arrived.give_back(&mut self.spare);
        }
        self.generation = self.generation.wrapping_add(1);
        self.left.iter_mut().for_each(|left| *left = Left { open: left.open, ..Left::default() });
    }

    /// Whether elements of `from` have come without the operations that they are for.
    pub(crate) fn has_elements(&self, from: usize) -> bool {
        self.lent[from].is_some()
    }

    /// Describe everything again, in the same epoch: what was sent in an exchange that did not pair was dropped.
    pub(crate) fn forget_descriptions(&mut self) {
        self.sent.iter_mut().for_each(|memory| memory.slots.clear());
    }

    /// After an epoch that went through.
    pub(crate) fn settled(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.left.fill(Left::default());
    }

    /// Start as if `frames` frames had left early for `to` in this epoch: a test begins near the end of what is counted.
    #[cfg(test)]
    pub(crate) fn begin_at(&mut self, to: usize, frames: u32) {
        self.left[to].frames = frames;
    }

    /// Whether operations of this epoch have left already.
    pub(crate) fn has_left(&self) -> bool {
        self.left.iter().any(|left| left.frames > 0)
    }
}
