//! Frames that arrive: they are checked before they are used, and kept until they are applied.

use crate::census::state::staged;
use crate::collect::description::{Description, FAR, FrameHead, Parts, parts, read_description};
use crate::collect::operands::{Exposed, Items, Operands};
use crate::collect::outbox::{DATATYPE, DatatypeSource, Head, PUT, op_of};
use crate::fence::state::remembered::Remembered;
use crate::fence::state::remembered::{Arrived, Described, Elements, SLOTS};
use crate::kernel::copies::count_copied;
use crate::kernel::waits::{Wait, without};
use crate::protocol::exchange::wait;
use crate::protocol::frames::kind;
use crate::protocol::stall::{Awaited, Watch};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::Result;
use fencepost_planner::census::Census;
use fencepost_planner::datatype::Datatype;
use fencepost_transport::{Channels, Endpoint, Frame, Lost, Payload, Port, Record, Topology};

/// Frames of operations that a rank sent for an epoch.
pub(crate) struct Frames<'a> {
    pub(crate) world: &'a WorldCore,
    pub(crate) windows: &'a [&'a WindowCore],
    pub(crate) from: usize,
    pub(crate) word: u64,
    /// Whether the sender exposes sections to this rank.
    pub(crate) exposes: bool,
}

impl Frames<'_> {
    /// Receives the next frame.
    pub(crate) fn receive(&self, endpoint: &mut Endpoint, call: &Call) -> Result<()> {
        let Self { world, windows, from, .. } = *self;
        let frame = if world.census.usual == Census::Direct {
            // The frame was posted before the notification, which has been read, so the frame has
            // arrived.
            world.poll(endpoint, from)
        } else {
            // The messages of a census come through other ranks, and may arrive before the frame.
            let watch =
                || Watch::new(world, call, windows, from, Awaited::One("frames of this epoch")).of_all();
            wait(endpoint, watch, |endpoint| world.poll(endpoint, from)).map(Some)
        };
        let frame = frame.map_err(|lost| world.lost(&lost, call))?;
        let taken = frame.map(|frame| {
            if frame.header.kind == kind::ELEMENTS
                && !endpoint.reaches(from)
                && let Some(payload) = endpoint.take(from, Port::FENCE)
            {
                return self.keep(&frame, Elements::Payload(payload));
            }
            let taken = self.take_in(endpoint, &frame);
            endpoint.release(from, Port::FENCE);
            taken
        });
        taken.flatten().ok_or_else(|| world.corrupt(endpoint, from, call))
    }

    /// Takes in this frame, whose payload can be read. Returns `None` if it is not valid.
    pub(crate) fn take_in(&self, endpoint: &Endpoint, frame: &Frame) -> Option<()> {
        let Self { world, windows, from, word, exposes } = *self;
        // SAFETY: the caller has not released the frame, or its payload is a copy, or the payload
        // stays unchanged.
        let payload = unsafe { frame.bytes() };
        let window = windows.iter().find(|window| window.key.window == frame.header.extra);
        let same = frame.header.word == word || without(Wait::Word);
        match window {
            Some(window) if frame.header.kind == kind::DATA && same => {
                let reached = if exposes { windows } else { &[] };
                take(window, reached, from, payload)
                    .and_then(|()| take_early(world, window, from, word, payload))
            }
            Some(window) if frame.header.kind == kind::LOG && same && endpoint.reaches(from) => {
                take_log(window, from, frame)
            }
            Some(_) if frame.header.kind == kind::ELEMENTS && endpoint.reaches(from) => {
                self.keep(frame, Elements::InPlace(frame.payload, frame.len))
            }
            Some(_) if frame.header.kind == kind::ELEMENTS => {
                self.keep(frame, Elements::Payload(Payload::copy_of(payload)))
            }
            _ => None,
        }
    }

    /// Keeps the elements of this frame until their operations arrive. Returns `None` if there are
    /// no such operations.
    fn keep(&self, frame: &Frame, elements: Elements) -> Option<()> {
        let same = frame.header.word == self.word || without(Wait::Word);
        let window = self.windows.iter().find(|window| window.key.window == frame.header.extra && same)?;
        window.fence.remembered.borrow_mut().lent[self.from].replace(elements).is_none().then_some(())
    }
}

/// Checks a frame and keeps it until it is applied. Returns `None` if it is not valid. Sections
/// that the frame exposes must be of windows in `reached`.
pub(super) fn take(window: &WindowCore, reached: &[&WindowCore], from: usize, payload: &[u8]) -> Option<()> {
    let remembered = &mut *window.fence.remembered.borrow_mut();
    if !remembered.arrived[from].is_empty() {
        return None; // one frame an epoch: a second could replace the description of the first
    }
    let Parts { head, description, values } = parts(payload)?;
    let (slot, records) = (usize::from(head.slot), head.records as usize);
    let lent = remembered.lent[from].take();
    if lent.is_some() != (head.lent && !head.follows) {
        return None;
    }
    let memory = &mut remembered.got[from];
    if head.same {
        memory.slots.get(slot).filter(|_| description.is_empty())?;
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
    let described = check(window, description, records)?;
    let here = if head.lent { 0 } else { described };
    let exact = values.len() == records.checked_mul(8)?.checked_add(here)?;
    if !exact || lent.as_ref().is_some_and(|elements| elements.len() != described) {
        return None;
    }
    check_exposed(window, reached, from, description)?;
    let lent = if head.follows { Some(Elements::Following(described)) } else { lent };
    let mut kept = remembered.spare.pop().unwrap_or_default();
    kept.extend_from_slice(values);
    remembered.awaited.extend(head.follows.then_some(from));
    remembered.arrived[from].push(Arrived { described: Described::Slot(slot), values: kept, records, lent });
    Some(())
}

/// Keeps the address of records of `from`, to apply them in place. The sender does not change the
/// records before it has read this rank's next notification, even if the frame was released.
fn take_log(window: &WindowCore, from: usize, frame: &Frame) -> Option<()> {
    let arrived = &mut window.fence.remembered.borrow_mut().arrived[from];
    let first = frame.payload.cast::<Record>();
    let whole = frame.len.is_multiple_of(size_of::<Record>()) && first.is_aligned();
    if !arrived.is_empty() || !whole {
        return None;
    }
    let records = frame.len / size_of::<Record>();
    arrived.push(Arrived { described: Described::InPlace(first), values: Vec::new(), records, lent: None });
    Some(())
}

/// Takes in the frames that were sent early. The frame of the fence identifies the early frames
/// that count; the sender discarded the others.
pub(super) fn take_early(
    world: &WorldCore,
    window: &WindowCore,
    from: usize,
    word: u64,
    fence: &[u8],
) -> Option<()> {
    let FrameHead { epoch, early: sent, .. } = parts(fence)?.head;
    let staged = world.fence.staged.borrow_mut().take(from, window.key.window, word);
    let Remembered { arrived, early, .. } = &mut *window.fence.remembered.borrow_mut();
    let mut count = 0;
    for parts in staged.iter().flat_map(|frames| of_epoch(frames, epoch)) {
        let Parts { head: FrameHead { slot, same, lent, records, .. }, description, values } = parts;
        let records = records as usize;
        read_description(early, description)?;
        let elements = check(window, early, records)?;
        if values.len() != records.checked_mul(8)?.checked_add(elements)? {
            return None;
        }
        check_exposed(window, &[], from, early)?;
        if slot != 0 || same || lent || !early.gets.is_empty() {
            return None;
        }
        count += 1;
    }
    let described = || Described::Early(epoch);
    let staged =
        staged.into_iter().map(|values| Arrived { described: described(), values, records: 0, lent: None });
    arrived[from].splice(0..0, staged);
    (count == sent).then_some(())
}

/// Returns the valid frames that were sent early in this epoch of their sender.
fn of_epoch(frames: &[u8], epoch: u32) -> impl Iterator<Item = Parts<'_>> {
    staged::frames(frames).filter_map(parts).filter(move |parts| parts.head.epoch == epoch)
}

pub(crate) use crate::collect::limits::{MOST_TIMES, most_answered};

/// Checks that there are `records` described operations, and that all are within this rank's
/// window. Returns the number of bytes that the operations use in addition to the records.
pub(crate) fn check(window: &WindowCore, description: &Description, records: usize) -> Option<usize> {
    let len = window.peers[window.world.rank].len;
    let size = window.element.size as usize;
    let inside = |datatype: &Datatype| datatype.low() >= 0 && datatype.high() <= len as i64;
    let operator = |code: u64| code == PUT || op_of(code).is_some_and(|op| op.takes(window.element));
    let heads = description.heads.iter().all(|&head| {
        let head = Head(head);
        match head.code() {
            DATATYPE => head.at() < description.wide.len(),
            code => head.at() < len && size <= 8 && operator(code),
        }
    });
    let mut used = 0;
    let wide = description.wide.iter().all(|wide| {
        let here = match wide.source {
            DatatypeSource::Bytes(at) => {
                let end = wide.remote.size().checked_mul(size).and_then(|bytes| at.checked_add(bytes));
                used = end.map_or(used, |end| end.max(used));
                end.is_some()
            }
            _ => true, // see `check_exposed`
        };
        here && inside(&wide.remote) && operator(wide.code)
    });
    let ones = description.gets.len() - description.far.len();
    let asked = description.far.iter().try_fold(ones, |sum, get| sum.checked_add(get.size()));
    let gets = description.gets.iter().all(|&get| get == FAR || get < len as u64)
        && description.far.iter().all(inside)
        && asked
            .and_then(|asked| asked.checked_mul(size))
            .is_some_and(|bytes| bytes <= most_answered(len, size));
    (heads && wide && gets && description.heads.len() == records).then_some(used)
}

/// Checks the described sections of `from`. They must be of windows of this fence and inside the
/// parts of `from`. Together they must not exceed the limit on the bytes that a rank exposes to
/// another rank.
///
/// If there are such sections, each operation must come once, in the order of the descriptions,
/// because a copy of the sections is read in that order.
fn check_exposed(
    window: &WindowCore,
    reached: &[&WindowCore],
    from: usize,
    description: &Description,
) -> Option<()> {
    let mut sections = description.wide.iter().filter_map(|wide| match &wide.source {
        DatatypeSource::Exposed(number, section) => Some((wide, *number, section)),
        _ => None,
    });
    let size = window.element.size as usize;
    let mut any = false;
    sections.try_fold(0, |all, (wide, number, section)| {
        any = true;
        let source = reached.iter().find(|source| source.key.window == number)?;
        let len = source.peers[from].len;
        let inside = section.low() >= 0 && section.high() <= len as i64;
        let fits = inside && source.element == window.element && section.size() == wide.remote.size();
        exposed(all, section, len, size).filter(|_| fits)
    })?;
    let heads = description.heads.iter().map(|&head| Head(head)).filter(|head| head.code() == DATATYPE);
    (!any || heads.map(Head::at).eq(0..description.wide.len())).then_some(())
}

/// Returns how many bytes are exposed to one rank, if this section is exposed in addition to
/// `before` bytes. The section is of a part of `len` elements. Returns `None` if the section may
/// not be exposed. A section that names elements repeatedly may be too large to be staged in
/// memory.
pub(crate) fn exposed(before: usize, section: &Datatype, len: usize, size: usize) -> Option<usize> {
    let all = before.checked_add(section.size().checked_mul(size)?)?;
    (section.size() <= len && all <= most_answered(len, size)).then_some(all)
}

/// Operations that came from a rank for a window, before they are applied.
pub(crate) enum Came<'a> {
    /// Operations with a description.
    Described(&'a Description),
    /// Operations on single elements.
    Records(&'a [Record]),
    /// Operations that were sent early, not examined yet.
    Early,
}

/// Calls `act` with everything that came from `origin` for this rank's part of `window` in this
/// fence. This includes the records in the notification of `origin` if they were noted.
pub(crate) fn each_arrived(window: &WindowCore, origin: usize, mut act: impl FnMut(Came<'_>)) {
    let remembered = &*window.fence.remembered.borrow();
    for arrived in &remembered.arrived[origin] {
        match arrived.described {
            Described::Slot(slot) => act(Came::Described(&remembered.got[origin].slots[slot].1)),
            Described::Early(_) => act(Came::Early),
            Described::InPlace(first) => {
                // SAFETY: as in `apply`.
                act(Came::Records(unsafe { std::slice::from_raw_parts(first, arrived.records) }));
            }
        }
    }
    for (_, record) in remembered.riders.iter().filter(|rider| rider.0 == origin) {
        act(Came::Records(std::slice::from_ref(record)));
    }
}

/// Applies the operations that came from `origin`. The exposed sections of `origin` are at the
/// addresses that `exposed` gives.
pub(crate) fn apply(window: &WindowCore, origin: usize, base: *mut u8, len: usize, exposed: Exposed<'_>) {
    let remembered = &mut *window.fence.remembered.borrow_mut();
    let Remembered { got, arrived, spare, early, applied, .. } = remembered;
    let split = |description: &Description, records: usize, values: &[u8], lent: Option<&Elements>| {
        let (values, bytes) = values.split_at(records * 8);
        let bytes = match lent {
            None => bytes,
            // SAFETY: the origin writes these elements again only after it has read this rank's
            // next notification, even if the frame was released.
            Some(Elements::InPlace(first, len)) => unsafe { std::slice::from_raw_parts(*first, *len) },
            Some(Elements::Payload(payload)) => payload.bytes(),
            Some(Elements::Following(_) | Elements::InWindow) => return,
        };
        count_copied(bytes.len());
        let operands = Operands { wide: &description.wide, bytes, exposed };
        // SAFETY: this is this rank's own memory, in its own fence, and all reads of M are done.
        // Everything was checked on arrival.
        unsafe {
            (window.filling.apply)(
                base,
                len,
                window.element,
                Items::Split(&description.heads, values),
                &operands,
            )
        };
    };
    for mut arrived in arrived[origin].drain(..) {
        match &arrived.described {
            Described::Slot(slot) => {
                split(&got[origin].slots[*slot].1, arrived.records, &arrived.values, arrived.lent.as_ref());
            }
            Described::Early(epoch) => {
                for Parts { head, description, values } in of_epoch(&arrived.values, *epoch) {
                    // The same bytes were read and checked on arrival.
                    if read_description(early, description).is_some() {
                        split(early, head.records as usize, values, None);
                    }
                }
            }
            Described::InPlace(first) => {
                // SAFETY: as in `take_log`: this number of records is there, and no rank writes
                // them before this rank's next notifications.
                let records = unsafe { std::slice::from_raw_parts(*first, arrived.records) };
                let records = Items::Records(records);
                // SAFETY: this is this rank's own memory, in its own fence, and all reads of M are
                // done. Displacements are compared with `len`.
                unsafe { (window.filling.apply)(base, len, window.element, records, &Operands::none()) };
            }
        }
        if let Some(Elements::Payload(payload)) = arrived.lent.take() {
            applied.push((origin, payload));
        }
        arrived.give_back(spare);
    }
}

/// Returns the memory of applied payloads to the transport.
///
/// This function is not inlined, because its loop would take registers from fences of ranks that
/// all reach each other's memory. Such fences do not need the loop.
#[cold]
#[inline(never)]
pub(crate) fn recycle(window: &WindowCore, endpoint: &mut Endpoint) {
    for (from, payload) in window.fence.remembered.borrow_mut().applied.drain(..) {
        endpoint.recycle(from, payload);
    }
}

/// Drops the frames of the failed epoch to which the last exchange belongs.
pub(crate) fn discard(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    from: usize,
    frames: usize,
    call: &Call,
) -> Result<(), Lost> {
    for _ in 0..frames {
        let watch =
            || Watch::new(world, call, &[], from, Awaited::One("frames of an epoch that failed")).of_all();
        let frame = wait(endpoint, watch, |endpoint| world.poll(endpoint, from))?;
        let good = world.is_of_this_exchange(&frame.header);
        endpoint.release(from, Port::FENCE);
        if !good {
            return Err(world.refuse(endpoint, from, "it sent a frame that belongs to no epoch"));
        }
    }
    Ok(())
}
