//! Dynamic epochs between ranks that do not share values: operations as frames, checked before they are believed.
//!
//! A frame describes its operations (displacements, operators, datatypes) and carries their elements. The description
//! of the last epochs ended at each line is remembered on both sides, a slot each: where it is the same again, it is not sent again.

mod arrive;
mod describe;
mod gets;
#[cfg(any(test, fuzzing))]
mod trial;

pub(crate) use arrive::{MOST_TIMES, apply, discard, most_answered, receive};
pub(crate) use gets::{answer, take_answers};
#[cfg(any(test, fuzzing))]
pub(crate) use trial::{forget_all, trial};

use crate::early;
use crate::fence::{Call, header, kind};
use crate::outbox::Outbox;
use crate::pending::ONE;
use crate::window::WindowCore;
use crate::world::WorldCore;
use describe::{Description, FAR, HEAD, describe, fill};
use fencepost_planner::{Class, Error, Result};
use fencepost_transport::{Endpoint, Record, Transport};

/// How many descriptions each pair remembers for a window.
const SLOTS: usize = 8;

/// What a window remembers of what it sent to and got from the ranks whose memory it does not reach.
#[derive(Default)]
pub(crate) struct Wire {
    sent: Vec<Memory<Sendings>>,
    got: Vec<Memory<Description>>,
    arrived: Vec<Vec<Arrived>>,
    /// Room for the values of frames that fences post, to be filled again: as many as ranks sent one in one epoch.
    spare: Vec<Vec<u8>>,
    /// Descriptions of what left early are read into this, one after another.
    early: Description,
    /// What has left early for each rank.
    pub(crate) left: Vec<Left>,
    /// Epochs so far, given up ones too: what left early in one is never taken for another's.
    generation: u32,
    frame: Vec<u8>,
}

/// What has left early for a rank.
#[derive(Clone, Copy, Default)]
pub(crate) struct Left {
    /// In this epoch.
    pub(crate) frames: u32,
    /// Bytes in them.
    pub(crate) bytes: u64,
    /// Bytes of operations on more than an element in them.
    pub(crate) wide: u64,
    /// Whether anything has since the last fence that went through: the target has to be told what became of it.
    open: bool,
}

#[derive(Default)]
struct Sendings {
    /// The last description.
    description: Vec<u8>,
    /// Whether the last of these epochs had any operations.
    any: bool,
    /// Whether some of them had left early.
    early: bool,
}

struct Memory<D> {
    slots: Vec<(usize, D)>,
    next: usize,
}

impl<D> Default for Memory<D> {
    fn default() -> Self {
        Self { slots: Vec::new(), next: 0 }
    }
}

/// The elements of operations that are described.
struct Arrived {
    described: Described,
    values: Vec<u8>,
    records: usize,
}

/// Where the description of what arrived is.
enum Described {
    /// Remembered, in this slot.
    Slot(usize),
    /// The values are whole frames that left early, each with its own; those of this epoch count.
    Early(u32),
    /// There is none: as many records lie here, in memory of the sender.
    InPlace(*const Record),
}

impl Arrived {
    /// Nobody needs it any more. What left early is freed: only frames that fences post are read into room that is kept.
    fn give_back(self, spare: &mut Vec<Vec<u8>>) {
        let Arrived { described: Described::Slot(_), mut values, .. } = self else { return };
        values.clear();
        spare.push(values);
    }
}

impl Wire {
    pub(crate) fn new(ranks: usize) -> Self {
        Self {
            sent: (0..ranks).map(|_| Memory::default()).collect(),
            got: (0..ranks).map(|_| Memory::default()).collect(),
            arrived: (0..ranks).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            early: Description::default(),
            left: vec![Left::default(); ranks],
            generation: 0,
            frame: Vec::new(),
        }
    }
}

impl Wire {
    /// After an epoch that failed: its frames were dropped unread, so nothing that was sent counts as remembered.
    pub(crate) fn forget(&mut self) {
        self.forget_descriptions();
        for arrived in self.arrived.iter_mut().flat_map(|arrived| arrived.drain(..)) {
            arrived.give_back(&mut self.spare);
        }
        self.generation = self.generation.wrapping_add(1);
        self.left.iter_mut().for_each(|left| *left = Left { open: left.open, ..Left::default() });
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

    /// Let so many frames have left early for `to` in this epoch: a test begins near the end of what is counted.
    #[cfg(test)]
    pub(crate) fn begin_at(&mut self, to: usize, frames: u32) {
        self.left[to].frames = frames;
    }

    /// Whether operations of this epoch have left already.
    pub(crate) fn has_left(&self) -> bool {
        self.left.iter().any(|left| left.frames > 0)
    }
}

/// What [`send`] did.
pub(crate) struct Sent {
    /// A frame went out.
    pub(crate) frames: bool,
    /// It is not what the last epoch that this line ended had.
    pub(crate) changed: bool,
}

/// Send what `window` has for `to`, if anything.
pub(crate) fn send(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    window: &WindowCore,
    to: usize,
    word: u64,
    call: &Call,
) -> Result<Sent> {
    // SAFETY: the set being filled is touched by its owner only.
    let outbox: &Outbox = unsafe { &*window.region.outbox(window.set.get(), to) };
    let pending = window.pending.borrow();
    let asks = !endpoint.reaches(to); // else it reads by itself
    let gets = || pending.gets.iter().filter(|get| asks && get.target as usize == to);
    let wire = &mut *window.wire.borrow_mut();
    let key = std::ptr::from_ref(call.site) as usize;
    let left = wire.left[to];
    if outbox.is_empty() && gets().next().is_none() && !left.open {
        let sendings = wire.sent[to].slots.iter_mut().find(|(other, _)| *other == key);
        let changed = sendings.is_some_and(|(_, sendings)| std::mem::take(&mut sendings.any));
        return Ok(Sent { frames: false, changed });
    }
    if endpoint.reaches(to) && outbox.wide.is_empty() && outbox.records.is_reached() {
        let head = header(word, kind::LOG, window.key.window);
        let records = outbox.records.as_ptr().cast::<u8>();
        // SAFETY: they stay as they are until the fence after the next, which waits for the reader's next letter.
        unsafe { endpoint.post(to, head, records, size_of_val(&outbox.records[..])) }
            .map_err(|lost| world.lost(&lost, call))?;
        world.posted(to);
        world.count_sent(size_of_val(&outbox.records[..]), 0);
        return Ok(Sent { frames: true, changed: false }); // nothing was described
    }
    let frame = &mut wire.frame;
    describe(frame, outbox, gets().count())?;
    for get in gets() {
        frame.extend_from_slice(&if get.wide == ONE { get.at } else { FAR }.to_le_bytes());
    }
    gets().filter(|get| get.wide != ONE).for_each(|get| pending.remote(get).encode(frame));
    let described = frame.len();

    // Remember it under the line that ends the epoch; leave it out where it is what that line sent last.
    let memory = &mut wire.sent[to];
    let slot = memory.slots.iter().position(|(other, _)| *other == key);
    let (slot, same) = match slot {
        Some(slot) if memory.slots[slot].1.description == frame[HEAD..described] => (slot, true),
        Some(slot) => (slot, false),
        None if memory.slots.len() < SLOTS => {
            memory.slots.push((key, Sendings::default()));
            (memory.slots.len() - 1, false)
        }
        None => {
            memory.next = (memory.next + 1) % SLOTS;
            memory.slots[memory.next].0 = key;
            (memory.next, false)
        }
    };
    let sendings = &mut memory.slots[slot].1;
    let changed = !same || !std::mem::replace(&mut sendings.any, true) || left.frames > 0 || sendings.early;
    sendings.early = left.frames > 0;
    if same {
        frame.truncate(HEAD);
    } else {
        sendings.any = true;
        sendings.description.clear();
        sendings.description.extend_from_slice(&frame[HEAD..described]);
    }
    frame[0] = slot as u8;
    frame[1] = u8::from(same);
    frame[16..20].copy_from_slice(&wire.generation.to_le_bytes());
    frame[20..24].copy_from_slice(&left.frames.to_le_bytes());
    let described = fill(frame, outbox);
    let head = header(word, kind::DATA, window.key.window);
    // SAFETY: where values are not shared, what lies on the heap is copied.
    unsafe { endpoint.post(to, head, frame.as_ptr(), frame.len()) }
        .map_err(|lost| world.lost(&lost, call))?;
    world.posted(to);
    world.count_sent(frame.len(), described);
    Ok(Sent { frames: true, changed })
}

/// Send `to` what is in its outbox, before the fence.
///
/// # Errors
/// It was not posted: `to` has left, or the world was ended. The fence finds that out too, so the caller need not say so.
pub(crate) fn send_early(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    window: &WindowCore,
    to: usize,
    outbox: &Outbox,
) -> Result<()> {
    let wire = &mut *window.wire.borrow_mut();
    let too_many =
        || Error::new(Class::Size, "more frames than an epoch counts: the rest waits for the fence");
    let frames = wire.left[to].frames.checked_add(1).ok_or_else(too_many)?;
    let frame = &mut wire.frame;
    describe(frame, outbox, 0)?;
    frame[16..20].copy_from_slice(&wire.generation.to_le_bytes());
    let described = fill(frame, outbox);
    let head = early::header(world.number(), window.key.window);
    // SAFETY: where values are not shared, what lies on the heap is copied.
    unsafe { endpoint.post(to, head, frame.as_ptr(), frame.len()) }
        .map_err(|lost| Error::new(Class::ProcFailed, lost.to_string()))?;
    world.posted(to);
    world.count_sent(frame.len(), described);
    let left = &mut wire.left[to];
    *left = Left {
        frames,
        bytes: left.bytes + frame.len() as u64,
        wide: left.wide + outbox.bytes.len() as u64,
        open: true,
    };
    Ok(())
}
