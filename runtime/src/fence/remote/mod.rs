//! Dynamic epochs between ranks that do not share values: operations travel as frames, which are
//! checked before they are used.
//!
//! A frame describes its operations (displacements, operators, datatypes) and carries their
//! elements. For an exposed section, the frame contains only the description, and the target reads
//! the elements in place. Both sides have a slot for each source line at which epochs end. The slot
//! contains the description of the last epoch that ended at that line. A description that has not
//! changed is not sent again.

mod arrive;
mod gets;
#[cfg(any(test, fuzzing))]
mod trial;

pub(crate) use arrive::{
    Came, Frames, MOST_TIMES, apply, check, discard, each_arrived, exposed, most_answered, recycle,
};
pub(crate) use gets::{answer, take_answers};
#[cfg(any(test, fuzzing))]
pub(crate) use trial::{forget_all, trial};

use crate::collect::description::{FAR, FrameHead, HEAD, describe, fill};
use crate::collect::filling::RecordSources;
use crate::collect::outbox::Outbox;
use crate::fence::state::remembered::Left;
use crate::protocol::early;
use crate::protocol::frames::{header, kind};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::adaptive::{Departure, follows_census};
use fencepost_planner::census::Census;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::bytes::Writer;
use fencepost_transport::{Channels, Endpoint, Frame, Header, Port, Topology};

/// Elements of datatype operations are read in place if they have at least this number of bytes.
/// For fewer bytes, one more frame costs more than the copies.
const IN_PLACE: usize = 2048;

/// Elements for a rank that is not reached travel in a separate frame if they have at least this
/// number of bytes. Such elements are sent from their source. The receiver applies them from the
/// frame, or reads them directly into its window. Long elements [follow](crate::fence::follow) the
/// census.
pub(crate) const ALONE: usize = 16 << 10;

/// The result of [`send`].
pub(crate) struct Sent {
    /// The number of frames for the target. Of these, `posted` were posted, and the census carries
    /// the others.
    pub(crate) frames: u32,
    pub(crate) posted: u32,
    /// Whether the frames differ from those of the last epoch that ended at this source line.
    pub(crate) changed: bool,
}

/// Sends the operations that `window` has for `to`, if there are any. Gets from a rank that is
/// reached are sent only if they are `listed`.
pub(crate) fn send(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    window: &WindowCore,
    to: usize,
    word: u64,
    listed: bool,
    call: &Call,
) -> Result<Sent> {
    // SAFETY: only this rank touches the set of outboxes that it is filling.
    let outbox: &Outbox = unsafe { &*window.region.outbox(window.filling.set.get(), to) };
    let pending = window.filling.pending.borrow();
    let asks = listed || !endpoint.reaches(to); // otherwise this rank reads by itself
    let gets = || pending.gets.iter().filter(|get| asks && get.target() == to);
    let remembered = &mut *window.fence.remembered.borrow_mut();
    let key = std::ptr::from_ref(call.site) as usize;
    let left = remembered.left[to];
    if outbox.is_empty() && gets().next().is_none() && !left.open {
        return Ok(Sent { frames: 0, posted: 0, changed: remembered.sent[to].sends_nothing(key) });
    }
    let head = |kind| header(word, kind, window.key.window);
    let plain = outbox.wide.is_empty() && gets().next().is_none();
    if plain && endpoint.reaches(to) && outbox.records.is_reached() {
        let records = bytemuck::cast_slice(&outbox.records[..]);
        // SAFETY: the records do not change before this rank has read the reader's next
        // notification.
        unsafe { post(world, endpoint, to, head(kind::LOG), records, call) }?;
        world.reports.count_sent(records.len(), 0);
        return Ok(Sent { frames: 1, posted: 1, changed: false }); // nothing was described
    }
    if endpoint.reaches(to) {
        // SAFETY: as above, and no other reference to the outbox is alive.
        unsafe {
            (*window.region.make_outbox(window.filling.set.get(), to))
                .describe_runs(window.element.size as usize)
        };
    }
    // SAFETY: as above.
    let outbox: &Outbox = unsafe { &*window.region.outbox(window.filling.set.get(), to) };
    let frame = &mut remembered.frame;
    describe(frame, outbox, gets().count())?;
    for get in gets() {
        frame.put(if get.wide().is_none() { get.at() as u64 } else { FAR });
    }
    gets().filter(|get| get.wide().is_some()).for_each(|get| pending.remote(get).encode(frame));
    // The description is omitted if it is the description that was last sent for this source line.
    let (slot, same, changed) = remembered.sent[to].sends(key, &frame[HEAD..], left.frames > 0);
    if same {
        frame.truncate(HEAD);
    }
    // SAFETY: a section is in this rank's part of a window of this fence. Nothing is written to the
    // part before all frames are posted.
    let elements = unsafe { outbox.elements() };
    let may_follow = !endpoint.reaches(to) && !endpoint.lends_to(to);
    let follows = may_follow && follows_census(elements.len() as u64, &world.machine);
    let lent = match endpoint.reaches(to) {
        true => elements.len() >= IN_PLACE && outbox.bytes.is_reached(),
        false => elements.len() >= ALONE || follows,
    };
    let (epoch, early) = (remembered.generation, left.frames);
    let frame_head =
        FrameHead { slot: slot as u8, same, lent, follows, epoch, early, ..FrameHead::default() };
    let described = fill(frame, outbox, frame_head);
    let before = lent && !follows;
    if follows {
        remembered.owed.push(to);
    }
    if before {
        // SAFETY: if memory is reached, as for records above; otherwise the elements are copied.
        unsafe { post(world, endpoint, to, head(kind::ELEMENTS), elements, call) }?;
        world.reports.count_sent(elements.len(), 0);
    }
    world.reports.count_sent(frame.len(), described);
    // A frame that counts early frames must arrive after those frames. The census may arrive before
    // the early frames, so the census must not carry such a frame.
    let may_ride =
        !before && !left.open && world.census.taken.get() != Census::Direct && !endpoint.reaches(to);
    if may_ride && world.census.items.borrow_mut().rides.add(to, head(kind::DATA), frame, world.census.short)
    {
        return Ok(Sent { frames: 1, posted: 0, changed });
    }
    // SAFETY: this rank and `to` do not share values, so the transport copies a payload in heap
    // memory.
    unsafe { post(world, endpoint, to, head(kind::DATA), frame, call) }?;
    let frames = 1 + u32::from(before);
    Ok(Sent { frames, posted: frames, changed })
}

/// Posts a frame of a fence to `to`.
///
/// # Safety
/// If the transport does not copy the payload, the payload stays unchanged until `to` has released
/// the frame.
pub(super) unsafe fn post(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    to: usize,
    head: Header,
    payload: &[u8],
    call: &Call,
) -> Result<()> {
    // SAFETY: the caller upholds the safety contract.
    unsafe { endpoint.post(to, Port::FENCE, Frame::of(head, payload)) }
        .map_err(|lost| world.lost(&lost, call))?;
    world.fence.posted(to);
    Ok(())
}

/// Sends `to` the operations in its outbox, before the fence.
///
/// # Errors
/// The frame was not posted: `to` has left, or the world has ended. The fence finds that out too,
/// so the caller may ignore this error.
pub(crate) fn send_early(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    window: &WindowCore,
    to: usize,
    outbox: &Outbox,
) -> Result<()> {
    let remembered = &mut *window.fence.remembered.borrow_mut();
    let too_many =
        || Error::new(ErrorClass::Size, "more frames than an epoch counts: the rest waits for the fence");
    let frames = remembered.left[to].frames.checked_add(1).ok_or_else(too_many)?;
    let frame = &mut remembered.frame;
    describe(frame, outbox, 0)?;
    let epoch = remembered.generation;
    let described = fill(frame, outbox, FrameHead { epoch, ..FrameHead::default() });
    let head = early::header(world.calls.supersteps(), window.key.window);
    // SAFETY: this rank and `to` do not share values, so the transport copies a payload in heap
    // memory.
    unsafe { endpoint.post(to, Port::FENCE, Frame::of(head, frame)) }
        .map_err(|lost| Error::new(ErrorClass::ProcFailed, lost.to_string()))?;
    world.fence.posted(to);
    world.reports.count_sent(frame.len(), described);
    let left = &mut remembered.left[to];
    *left = Left {
        frames,
        bytes: left.bytes + frame.len() as u64,
        wide: left.wide + outbox.bytes.len() as u64,
        open: true,
    };
    Ok(())
}

impl WindowCore {
    /// Sends an operation that was collected for `target`, and all operations before it. Does so
    /// only if the mode of the operation requests an early send, and if all sections of earlier
    /// operations were read.
    pub(crate) fn send_eagerly(&self, target: usize, mode: Mode) {
        let world = &self.world;
        if !self.peers.far || target == world.rank {
            return;
        }
        let departure = self.departure(mode);
        if departure != Departure::Held {
            self.outbox(target, |outbox| self.send_all_eagerly(target, departure, outbox));
        }
    }

    fn send_all_eagerly(&self, target: usize, departure: Departure, outbox: &mut Outbox) {
        let world = &self.world;
        let waits = outbox.sections > 0 || self.filling.sources.get() == RecordSources::Own;
        if outbox.is_empty() || waits || world.supersteps.comparing() {
            return;
        }
        let bytes = outbox.bytes();
        let all = self.fence.remembered.borrow().left[target].bytes + bytes;
        if !departure.is_due(bytes, all, &world.machine) {
            return;
        }
        let endpoint = &mut *world.endpoint.borrow_mut();
        if !endpoint.reaches(target) && send_early(world, endpoint, self, target, outbox).is_ok() {
            outbox.clear();
        }
    }
}
