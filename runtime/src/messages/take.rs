//! Lets a receive take a message, and notifies the sender of the message.

use crate::kernel::element::{Element, element_type};
use crate::messages::state::frames::{Envelope, Near, elements, grant, pull, taken};
use crate::messages::state::limits::OVERHEAD;
use crate::messages::state::outbox::chunks;
use crate::messages::state::receive::{Receive, Room, Stage};
use crate::messages::state::status::Status;
use crate::messages::state::{Elements, Kept, Messages};
use crate::state::world::WorldCore;
use fencepost_transport::{Channels, Endpoint, Frame, Header, Liveness, Port};
use std::rc::Rc;

/// The maximum number of chunks of a message that a rank has requested and that have not arrived.
const AHEAD: usize = 4;

/// The reason why no correct rank sends a frame.
pub(super) type Wrong = &'static str;

/// Where the elements of a message are when a receive takes it.
#[derive(Clone, Copy)]
pub(super) enum Came<'a> {
    /// This rank has the elements.
    Here(&'a [u8]),
    /// The elements are in the sender's memory, which this rank reaches.
    Near(Near),
    /// The elements are in the sender's memory, which this rank does not reach. These first
    /// elements have arrived.
    Far(&'a [u8]),
}

/// A message that is taken.
pub(super) struct Taken<'a> {
    pub(super) from: usize,
    pub(super) number: u64,
    pub(super) envelope: Envelope,
    pub(super) elements: Came<'a>,
    /// Whether no receive waited for the message when it arrived.
    pub(super) was_kept: bool,
}

/// Takes the message in `frame`, which is the oldest unread frame of `from`. Does so only if the
/// message has this tag, carries elements of type `T`, needs no answer, and lands in one piece.
///
/// Returns the status of the message, or `None` if it was not taken.
///
/// # Safety
/// As [`Receive::new`]. In addition, no posted receive matches the message, and no kept message
/// comes before it.
#[inline]
pub(super) unsafe fn take_next<T: Element>(
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    from: usize,
    (frame, tag, room): (&Frame, Option<u32>, &Room),
) -> Option<Status> {
    let Frame { header, payload, len: bytes } = *frame;
    let (len, cost) = (bytes / size_of::<T>(), bytes + OVERHEAD);
    let is_taken = Envelope::is_plain(&header, element_type::<T>())
        && bytes.is_multiple_of(size_of::<T>())
        && tag.is_none_or(|tag| tag == header.extra)
        && messages.peers[from].unpaid + cost <= messages.credit;
    if !is_taken {
        return None;
    }
    // SAFETY: the caller guarantees that the room can be written. A frame is readable until it is
    // released, and its elements are in memory of another rank, or of the transport.
    unsafe {
        let place = room.place(len, size_of::<T>())?;
        copy_few(payload, place, bytes);
        room.filled(len);
    }
    endpoint.release(from, Port::MESSAGES);
    let peer = &mut messages.peers[from];
    peer.came += 1;
    peer.unpaid += cost;
    paid(endpoint, messages, from, cost);
    messages.next = if from + 1 == messages.peers.len() { 0 } else { from + 1 };
    Some(Status { source: Some(from), tag: Some(header.extra), len })
}

/// Copies bytes. A single word is copied without a function call.
///
/// # Safety
/// As for a copy of bytes that do not overlap.
#[inline(always)]
unsafe fn copy_few(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller upholds the safety contract.
    unsafe {
        if bytes == size_of::<u64>() {
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
        } else {
            std::ptr::copy_nonoverlapping(from, to, bytes);
        }
    }
}

/// Passes a message that has arrived to the first waiting receive that matches the message, or
/// keeps the message.
pub(super) fn deliver(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    message: &Taken<'_>,
) -> Result<(), Wrong> {
    let Taken { from, number, envelope, elements, .. } = *message;
    if let Some(receive) = messages.posted.take(from, envelope.tag) {
        take(world, endpoint, messages, message, &receive);
        return Ok(());
    }
    let elements = match elements {
        Came::Here(bytes) => {
            let mut here = Vec::new();
            here.try_reserve_exact(bytes.len()).map_err(|_| "its messages need more memory than there is")?;
            here.extend_from_slice(bytes);
            Elements::Here(here)
        }
        Came::Near(near) => Elements::Near(near),
        Came::Far(_) => Elements::Far(Vec::new()),
    };
    messages.keep(Kept { from, number, envelope, elements });
    Ok(())
}

/// Completes the send to rank `to` whose message has this number and was taken. Returns whether
/// there is such a send.
pub(super) fn answered(messages: &mut Messages, to: usize, number: u64) -> bool {
    let Some(sent) = messages.sending.remove(to, number) else { return false };
    messages.outbox.remove(to, number);
    messages.free(sent.buffered);
    sent.completion.complete();
    true
}

/// Lets a receive take a message. The receive is done afterwards, unless elements have yet to
/// arrive.
pub(super) fn take(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    message: &Taken<'_>,
    receive: &Rc<Receive>,
) {
    let Taken { from, number, envelope, elements, was_kept } = *message;
    if let Some(known) = messages.known.remove(&(from, number)) {
        world.checks.clock.hear_all(&known);
    }
    if let Some(mut landing) = receive.take(from, envelope, envelope.is_ready && was_kept) {
        let mut is_whole = true;
        // SAFETY: the receive is not done, so its room still exists. `Came::Here` contains all
        // elements of the message. If the address of the elements was sent, the sender keeps the
        // elements until it is notified, or until this rank no longer touches them.
        unsafe {
            match elements {
                Came::Here(bytes) => landing.whole(bytes.as_ptr()),
                Came::Near(near) if from == world.rank => landing.whole(near.first),
                Came::Near(near) => {
                    let began = world.life.touching(endpoint, true);
                    let has_all =
                        began != Some(false) && landing.read_near(near, || endpoint.lost(from).is_none());
                    if began == Some(true) {
                        world.life.touching(endpoint, false);
                    }
                    if !has_all {
                        // The world has ended. The waiting call finds that.
                        return messages.posted.push(receive.clone());
                    }
                }
                Came::Far(begin) => {
                    let mut rest = begin;
                    while !rest.is_empty() {
                        let (chunk, more) = rest.split_at(landing.next_len().min(rest.len()));
                        landing.chunk(chunk);
                        rest = more;
                    }
                    is_whole = landing.is_whole();
                }
            }
        }
        if !is_whole {
            landing.asked = landing.came;
            *receive.stage.borrow_mut() = Stage::Landing(landing);
            messages.landing.insert((from, number), receive.clone());
            return ask(endpoint, messages, receive, from, number);
        }
        receive.done(from, &envelope);
    }
    if world.size > 1 {
        messages.next = (from + 1) % world.size;
    }
    settle(world, endpoint, messages, from, number, &envelope);
}

/// Requests more chunks of a taken message from the sender of the message.
pub(super) fn ask(
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    receive: &Receive,
    from: usize,
    number: u64,
) {
    let Stage::Landing(landing) = &mut *receive.stage.borrow_mut() else { return };
    let coming = &mut messages.peers[from].coming;
    while landing.asked < chunks(landing.envelope.bytes).min(landing.came + AHEAD) {
        let (header, chunk) = (pull(number, landing.asked as u32), elements(number, landing.asked as u32));
        // SAFETY: the room exists, and no other code accesses it, until the receive is done or
        // forgotten. The receive is done only after this chunk was read or the offer was withdrawn.
        // Before the receive is forgotten, the offer is withdrawn.
        unsafe {
            if let Some(place) = landing.place(landing.asked) {
                endpoint.prepost(from, Port::ELEMENTS, *coming, chunk, place);
            }
        }
        *coming += 1;
        landing.asked += 1;
        // SAFETY: there is no payload.
        let posted = unsafe { endpoint.post(from, Port::SERVICE, Frame::bare(header)) };
        drop(posted); // a sender that has left has sent all elements
    }
    endpoint.flush();
}

/// Notifies the sender of a message that was taken and whose elements have all landed. The
/// notification grants credit, or reports that the message was taken.
pub(super) fn settle(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    from: usize,
    number: u64,
    envelope: &Envelope,
) {
    let own = from == world.rank;
    if !envelope.is_apart {
        let cost = envelope.bytes + OVERHEAD;
        if own {
            messages.peers[from].used -= cost;
        } else {
            paid(endpoint, messages, from, cost);
        }
    }
    if envelope.is_answered {
        if own {
            answered(messages, from, number);
        } else {
            tell_taken(endpoint, messages, from, number);
        }
    }
}

/// Accounts for a message of this cost that was taken. Returns credit in a frame when the sender is
/// owed more than a quarter of its credit.
#[inline]
fn paid(endpoint: &mut Endpoint, messages: &mut Messages, from: usize, cost: usize) {
    let peer = &mut messages.peers[from];
    peer.owed += cost;
    if peer.owed > messages.credit / 4 {
        let owed = std::mem::take(&mut peer.owed);
        peer.unpaid -= owed;
        tell(endpoint, messages, from, grant(owed));
    }
}

pub(super) fn tell_taken(endpoint: &mut Endpoint, messages: &mut Messages, from: usize, number: u64) {
    tell(endpoint, messages, from, taken(number));
}

/// Posts a frame without payload.
#[cold]
fn tell(endpoint: &mut Endpoint, messages: &mut Messages, to: usize, header: Header) {
    // SAFETY: there is no payload.
    let posted = unsafe { endpoint.post(to, Port::MESSAGES, Frame::bare(header)) };
    // A sender that has left needs no answer, and a world that has ended notifies its ranks by
    // itself.
    if posted.is_ok() {
        messages.count_frame(to, None);
        endpoint.flush();
    }
}
