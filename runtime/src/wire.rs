//! Dynamic epochs between ranks that only exchange messages: operations as frames, checked before they are believed.
//!
//! A frame describes its operations (displacements, operators, datatypes) and carries their elements. The description
//! of the last epochs ended at each line is remembered on both sides, a slot each: where it is the same again, it is not sent again.

use crate::early;
use crate::fence::{Call, Items, header, kind, wait};
use crate::kernel;
use crate::outbox::{Head, Outbox, PUT, WIDE, Wide, WideSource, op_of};
use crate::transport::{Endpoint, Lost, Transport};
use crate::waits::{Wait, without};
use crate::window::WindowCore;
use crate::world::WorldCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::{Class, Error, Result};

/// How many descriptions each pair remembers for a window.
const SLOTS: usize = 8;

/// What a window remembers of what it sent to and got from the ranks whose memory it does not reach.
#[derive(Default)]
pub(crate) struct Wire {
    sent: Vec<Memory<Sendings>>,
    got: Vec<Memory<Description>>,
    arrived: Vec<Vec<Arrived>>,
    /// Room for values, to be filled again.
    spare: Vec<Vec<u8>>,
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
    /// Whether anything has since the last fence that went through: the target has to be told what became of it.
    open: bool,
}

/// Bytes before a frame's description:
///
/// ```text
/// 0  slot, 1 whether it is remembered, 4 records (u32), 8 bytes of description (u64)
/// 16 the epoch among the sender's (u32), 20 how many frames of it left early (u32)
/// ```
const HEAD: usize = 24;

/// What was sent for the epochs that one line ends.
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

/// Operations without their elements.
#[derive(Default)]
struct Description {
    heads: Vec<u64>,
    wide: Vec<Wide>,
    gets: Vec<Datatype>,
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
    /// Its own.
    Own(Description),
}

impl Wire {
    pub(crate) fn new(ranks: usize) -> Self {
        Self {
            sent: (0..ranks).map(|_| Memory::default()).collect(),
            got: (0..ranks).map(|_| Memory::default()).collect(),
            arrived: (0..ranks).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            left: vec![Left::default(); ranks],
            generation: 0,
            frame: Vec::new(),
        }
    }
}

impl Wire {
    /// After an epoch that failed: its frames were dropped unread, so nothing that was sent counts as remembered.
    pub(crate) fn forget(&mut self) {
        self.sent.iter_mut().for_each(|memory| memory.slots.clear());
        for arrived in self.arrived.iter_mut().flat_map(|arrived| arrived.drain(..)) {
            self.spare.push(emptied(arrived.values));
        }
        self.generation = self.generation.wrapping_add(1);
        self.left.iter_mut().for_each(|left| *left = Left { open: left.open, ..Left::default() });
    }

    /// After an epoch that went through.
    pub(crate) fn settled(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.left.fill(Left::default());
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
    let gets = || pending.gets.iter().filter(|get| get.target as usize == to);
    let wire = &mut *window.wire.borrow_mut();
    let key = std::ptr::from_ref(call.site) as usize;
    let left = wire.left[to];
    if outbox.is_empty() && gets().next().is_none() && !left.open {
        let sendings = wire.sent[to].slots.iter_mut().find(|(other, _)| *other == key);
        let changed = sendings.is_some_and(|(_, sendings)| std::mem::take(&mut sendings.any));
        return Ok(Sent { frames: false, changed });
    }
    let frame = &mut wire.frame;
    describe(frame, outbox, gets().count())?;
    gets().for_each(|get| pending.remote(get).encode(frame));
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
    // SAFETY: a transport that does not reach `to` copies the payload.
    unsafe { endpoint.post(to, head, frame.as_ptr(), frame.len()) }
        .map_err(|lost| world.lost(&lost, call))?;
    world.posted(to);
    world.count_sent(frame.len(), described);
    Ok(Sent { frames: true, changed })
}

/// Begin a frame: room for its head, and the description of what is in the outbox; that of `gets` gets is to follow.
fn describe(frame: &mut Vec<u8>, outbox: &Outbox, gets: usize) -> Result<()> {
    frame.clear();
    frame.extend_from_slice(&[0; HEAD]);
    frame.extend_from_slice(&(outbox.records.len() as u32).to_le_bytes());
    frame.extend_from_slice(&(outbox.wide.len() as u32).to_le_bytes());
    frame.extend_from_slice(&(gets as u32).to_le_bytes());
    frame.extend_from_slice(&[0; 4]);
    outbox.records.iter().for_each(|record| frame.extend_from_slice(&record.head.to_le_bytes()));
    for wide in &outbox.wide {
        let WideSource::Bytes(at) = wide.source else {
            return Err(Error::new(Class::Intern, "a section was not read before its frame was sent"));
        };
        frame.push(wide.code as u8);
        frame.extend_from_slice(&(at as u64).to_le_bytes());
        wide.remote.encode(frame);
    }
    Ok(())
}

/// End a frame: the elements, and how much there is of what. Gives the bytes of the description.
fn fill(frame: &mut Vec<u8>, outbox: &Outbox) -> usize {
    let described = frame.len() - HEAD;
    frame[4..8].copy_from_slice(&(outbox.records.len() as u32).to_le_bytes());
    frame[8..16].copy_from_slice(&(described as u64).to_le_bytes());
    outbox.records.iter().for_each(|record| frame.extend_from_slice(&record.value.to_le_bytes()));
    frame.extend_from_slice(&outbox.bytes);
    described
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
    let frame = &mut wire.frame;
    describe(frame, outbox, 0)?;
    frame[16..20].copy_from_slice(&wire.generation.to_le_bytes());
    let described = fill(frame, outbox);
    let head = early::header(world.number(), window.key.window);
    // SAFETY: a transport that does not reach `to` copies the payload.
    unsafe { endpoint.post(to, head, frame.as_ptr(), frame.len()) }
        .map_err(|lost| Error::new(Class::ProcFailed, lost.to_string()))?;
    world.posted(to);
    world.count_sent(frame.len(), described);
    let left = &mut wire.left[to];
    *left = Left { frames: left.frames + 1, bytes: left.bytes + frame.len() as u64, open: true };
    Ok(())
}

/// Take in one frame of operations from `from`.
pub(crate) fn receive(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    windows: &[&WindowCore],
    from: usize,
    word: u64,
    call: &Call,
) -> Result<()> {
    // It was posted before the letter, which has been read, so it is here.
    let frame = world.poll(endpoint, from).map_err(|lost| world.lost(&lost, call))?;
    let Some(frame) = frame else { return Err(world.corrupt(endpoint, from, call)) };
    // SAFETY: a frame is readable until it is released, below.
    let payload = unsafe { std::slice::from_raw_parts(frame.payload, frame.len) };
    let window = windows.iter().find(|window| window.key.window == frame.header.extra);
    let taken = match window {
        Some(window)
            if frame.header.kind == kind::DATA && (frame.header.word == word || without(Wait::Word)) =>
        {
            take(window, from, payload).and_then(|()| take_early(world, window, from, word, payload))
        }
        _ => None,
    };
    endpoint.release(from);
    taken.ok_or_else(|| world.corrupt(endpoint, from, call))
}

/// Check a frame and keep it until it is applied. `None` for one that cannot be.
fn take(window: &WindowCore, from: usize, payload: &[u8]) -> Option<()> {
    let wire = &mut *window.wire.borrow_mut();
    if !wire.arrived[from].is_empty() {
        return None; // one frame an epoch: a second one could change what the first was checked against
    }
    let Parts { slot, same, records, description, values } = parts(payload)?;
    let memory = &mut wire.got[from];
    if same {
        memory.slots.get(slot)?;
    } else {
        if slot >= SLOTS || slot > memory.slots.len() {
            return None;
        }
        if slot == memory.slots.len() {
            memory.slots.push((0, Description::default()));
        }
        read_description(&mut memory.slots[slot].1, description)?;
    }
    let description = &memory.slots[slot].1;
    check(window, description, records, values.len())?;
    let mut kept = wire.spare.pop().unwrap_or_default();
    kept.extend_from_slice(values);
    wire.arrived[from].push(Arrived { described: Described::Slot(slot), values: kept, records });
    Some(())
}

/// A frame, taken apart.
struct Parts<'a> {
    slot: usize,
    same: bool,
    records: usize,
    description: &'a [u8],
    values: &'a [u8],
}

fn parts(payload: &[u8]) -> Option<Parts<'_>> {
    let (head, rest) = payload.split_at_checked(HEAD)?;
    let records = u32::from_le_bytes(head[4..8].try_into().ok()?) as usize;
    let described = usize::try_from(u64::from_le_bytes(head[8..16].try_into().ok()?)).ok()?;
    let (description, values) = rest.split_at_checked(described)?;
    Some(Parts { slot: head[0] as usize, same: head[1] == 1, records, description, values })
}

/// Take in what left early, now that the frame of the fence says which of it counts; the rest was given up.
fn take_early(world: &WorldCore, window: &WindowCore, from: usize, word: u64, fence: &[u8]) -> Option<()> {
    let left = u32::from_le_bytes(fence.get(20..24)?.try_into().ok()?);
    let epoch = fence.get(16..20)?;
    let staged = world.staged.borrow_mut().take(from, window.key.window, word);
    let mut arrived = Vec::new();
    for payload in staged.into_iter().filter(|payload| payload.get(16..20) == Some(epoch)) {
        let Parts { records, description, values, .. } = parts(&payload)?;
        let mut own = Description::default();
        read_description(&mut own, description)?;
        check(window, &own, records, values.len())?;
        if !own.gets.is_empty() {
            return None;
        }
        arrived.push(Arrived { described: Described::Own(own), values: values.to_vec(), records });
    }
    let all = arrived.len() == left as usize;
    window.wire.borrow_mut().arrived[from].splice(0..0, arrived);
    all.then_some(())
}

fn read_description(into: &mut Description, mut bytes: &[u8]) -> Option<()> {
    let number = |bytes: &mut &[u8]| -> Option<usize> {
        let (four, rest) = bytes.split_first_chunk::<4>()?;
        *bytes = rest;
        Some(u32::from_le_bytes(*four) as usize)
    };
    let (records, wide, gets) = (number(&mut bytes)?, number(&mut bytes)?, number(&mut bytes)?);
    number(&mut bytes)?;
    let (heads, mut bytes) = bytes.split_at_checked(records.checked_mul(8)?)?;
    into.heads.clear();
    into.heads.extend(
        heads.chunks_exact(8).map(|head| u64::from_le_bytes(head.try_into().expect("chunks of eight"))),
    );
    into.wide.clear();
    for _ in 0..wide {
        let (head, rest) = bytes.split_first_chunk::<9>()?;
        bytes = rest;
        let at = usize::try_from(u64::from_le_bytes(head[1..9].try_into().ok()?)).ok()?;
        let remote = Datatype::decode(&mut bytes).ok()?;
        into.wide.push(Wide { code: u64::from(head[0]), remote, source: WideSource::Bytes(at) });
    }
    into.gets.clear();
    for _ in 0..gets {
        into.gets.push(Datatype::decode(&mut bytes).ok()?);
    }
    bytes.is_empty().then_some(())
}

/// The most bytes that one rank gets in one epoch from another's window of `len` elements. Few bytes can ask for very much,
/// since a datatype may name an element many times, so there has to be a limit: 256 times all there is, and 16 MiB at least.
pub(crate) fn most_answered(len: usize, size: usize) -> usize {
    len.saturating_mul(size).saturating_mul(256).clamp(16 << 20, isize::MAX as usize)
}

/// Whether all that is described lies in this rank's window and in the values that came.
fn check(window: &WindowCore, description: &Description, records: usize, values: usize) -> Option<()> {
    let len = window.peers[window.world.rank].len;
    let size = window.element.size as usize;
    let inside = |datatype: &Datatype| datatype.low() >= 0 && datatype.high() <= len as i64;
    let operator = |code: u64| code == PUT || op_of(code).is_some_and(|op| op.takes(window.element));
    let arena = values.checked_sub(records.checked_mul(8)?)?;
    let heads = description.heads.iter().all(|&head| {
        let head = Head(head);
        match head.code() {
            WIDE => head.at() < description.wide.len(),
            code => head.at() < len && size <= 8 && operator(code),
        }
    });
    let wide = description.wide.iter().all(|wide| {
        let WideSource::Bytes(at) = wide.source else { return false };
        let end = wide.remote.size().checked_mul(size).and_then(|bytes| at.checked_add(bytes));
        inside(&wide.remote) && operator(wide.code) && end.is_some_and(|end| end <= arena)
    });
    let gets = description.gets.iter().all(inside)
        && description
            .gets
            .iter()
            .try_fold(0usize, |sum, get| {
                get.size().checked_mul(size).and_then(|bytes| sum.checked_add(bytes))
            })
            .is_some_and(|bytes| bytes <= most_answered(len, size));
    (heads && wide && gets && description.heads.len() == records).then_some(())
}

/// Answer the gets of ranks that do not reach this rank's memory, from M.
pub(crate) fn answer(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    windows: &[&WindowCore],
    word: u64,
) -> Result<(), Lost> {
    for window in windows {
        let wire = &mut *window.wire.borrow_mut();
        let size = window.element.size as usize;
        for to in 0..world.size {
            wire.frame.clear();
            let mut asked = false;
            for arrived in &wire.arrived[to] {
                let Described::Slot(slot) = arrived.described else { continue };
                for get in &wire.got[to].slots[slot].1.gets {
                    asked = true;
                    let at = wire.frame.len();
                    if wire.frame.try_reserve(get.size() * size).is_err() {
                        return Err(world.refuse(endpoint, to, "it asked for more than there is memory for"));
                    }
                    wire.frame.resize(at + get.size() * size, 0);
                    // SAFETY: checked against this rank's window when it came; this rank has not yet written to it.
                    unsafe { kernel::pack(window.region.base(), get, size, wire.frame[at..].as_mut_ptr()) };
                }
            }
            if asked {
                let head = header(word, kind::REPLY, window.key.window);
                // SAFETY: a transport that does not reach `to` copies the payload.
                unsafe { endpoint.post(to, head, wire.frame.as_ptr(), wire.frame.len()) }?;
                world.posted(to);
                world.count_sent(wire.frame.len(), 0);
            }
        }
    }
    Ok(())
}

/// Stage the answers to this rank's gets.
pub(crate) fn take_answers(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    windows: &[&WindowCore],
    word: u64,
) -> Result<(), Lost> {
    for window in windows {
        let pending = &mut *window.pending.borrow_mut();
        let size = window.element.size as usize;
        for from in (0..world.size).filter(|&from| from != world.rank) {
            if endpoint.reaches(from) || !pending.gets.iter().any(|get| get.target as usize == from) {
                continue;
            }
            let frame = wait(endpoint, |endpoint| world.poll(endpoint, from))?;
            // SAFETY: readable until released, below.
            let mut payload = unsafe { std::slice::from_raw_parts(frame.payload, frame.len) };
            let expected: usize = pending
                .gets
                .iter()
                .filter(|get| get.target as usize == from)
                .map(|get| pending.count(get) * size)
                .sum();
            let good =
                frame.header.kind == kind::REPLY && frame.header.word == word && payload.len() == expected;
            if good {
                let mut at = 0;
                for i in 0..pending.gets.len() {
                    let get = pending.gets[i];
                    let len = pending.count(&get) * size;
                    if get.target as usize == from {
                        pending.staged[at..at + len].copy_from_slice(&payload[..len]);
                        payload = &payload[len..];
                    }
                    at += len;
                }
            }
            endpoint.release(from);
            if !good {
                return Err(world.refuse(endpoint, from, "it sent an answer that is not one"));
            }
        }
    }
    Ok(())
}

/// Apply what came from `origin`.
pub(crate) fn apply(window: &WindowCore, origin: usize, base: *mut u8, len: usize) {
    let wire = &mut *window.wire.borrow_mut();
    let Wire { got, arrived, spare, .. } = wire;
    for arrived in arrived[origin].drain(..) {
        let description = match &arrived.described {
            Described::Slot(slot) => &got[origin].slots[*slot].1,
            Described::Own(own) => own,
        };
        let (values, bytes) = arrived.values.split_at(arrived.records * 8);
        // SAFETY: this rank's own memory, in its own fence, all reads of M done; everything was checked on arrival.
        unsafe {
            (window.apply)(base, len, Items::Split(&description.heads, values), &description.wide, bytes)
        };
        spare.push(emptied(arrived.values));
    }
}

fn emptied(mut values: Vec<u8>) -> Vec<u8> {
    values.clear();
    values
}

/// Forget what was described so far, as if nothing had ever come.
#[cfg(any(test, fuzzing))]
pub(crate) fn forget_all(window: &WindowCore) {
    *window.wire.borrow_mut() = Wire::new(window.world.size);
    window.world.drop_early(0, window, u64::MAX);
}

/// Take in a frame as if it came from rank 0, one that left early or one that ends an epoch, and in the latter case do
/// with `memory`, as large as this window's, what the epoch does. Gives how many bytes are kept for all this, if
/// the frame is believed.
#[cfg(any(test, fuzzing))]
pub(crate) fn trial(window: &WindowCore, early: bool, frame: &[u8], memory: &mut [u8]) -> Option<usize> {
    let (world, word) = (&window.world, 9 << 32);
    if early {
        world.staged.borrow_mut().keep(0, early::header(0, window.key.window), frame.to_vec());
        return Some(0);
    }
    let taken = take(window, 0, frame).and_then(|()| take_early(world, window, 0, word, frame));
    if taken.is_some() {
        let endpoint = &mut world.endpoint.borrow_mut();
        let asked = window.wire.borrow().arrived[0].iter().any(|arrived| {
            let Described::Slot(slot) = arrived.described else { return false };
            !window.wire.borrow().got[0].slots[slot].1.gets.is_empty()
        });
        answer(world, endpoint, &[window], word).ok()?;
        if asked {
            // The one that asks is this rank itself: read what comes, and drop it.
            wait(endpoint, |endpoint| world.poll(endpoint, 0)).ok()?;
            endpoint.release(0);
        }
        apply(window, 0, memory.as_mut_ptr(), window.peers[0].len);
    }
    let wire = &mut *window.wire.borrow_mut();
    wire.arrived[0].clear();
    let kept = wire.frame.capacity() + wire.spare.iter().map(Vec::capacity).sum::<usize>();
    wire.frame = Vec::new();
    taken.map(|()| kept)
}

/// Drop the frames of an epoch that failed.
pub(crate) fn discard(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    from: usize,
    frames: usize,
) -> Result<(), Lost> {
    for _ in 0..frames {
        wait(endpoint, |endpoint| world.poll(endpoint, from))?;
        endpoint.release(from);
    }
    Ok(())
}
