//! Reads frames of messages as they arrive, and the elements of messages that a receive has taken.

use crate::messages::state::frames::{Envelope, kind};
use crate::messages::state::limits::{BUFFERED, OVERHEAD};
use crate::messages::state::receive::Stage;
use crate::messages::state::{Elements, Kept, Messages};
use crate::messages::take::{Came, Taken, Wrong, answered, ask, deliver, settle, tell_taken};
use crate::state::world::WorldCore;
use fencepost_transport::bytes::Reader;
use fencepost_transport::{Channels, Endpoint, Frame, Header, Leave, Loss, Lost, Port, Topology};

const UNASKED: Wrong = "it sent elements that this rank has not asked for";

/// Reads the frames of messages that have arrived from `from`.
///
/// # Errors
/// Nothing more can arrive.
pub(super) fn read_from(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    from: usize,
) -> Result<(), Lost> {
    if from == world.rank {
        return Ok(());
    }
    if let Some(wrong) = messages.outbox.wrong() {
        return Err(world.refuse(endpoint, wrong, "it asked for elements that were not sent to it"));
    }
    while let Some(frame) = endpoint.poll(from, Port::MESSAGES)? {
        let result = arrived(world, endpoint, messages, from, &frame);
        endpoint.release(from, Port::MESSAGES);
        result.map_err(|wrong| world.refuse(endpoint, from, wrong))?;
    }
    if !messages.posted.is_empty() && !endpoint.reaches(from) {
        take_early(endpoint, messages, from);
    }
    Ok(())
}

/// Lets a receive take a message whose elements are still arriving, so that the elements land
/// directly in their destination.
fn take_early(endpoint: &mut Endpoint, messages: &mut Messages, from: usize) {
    let Some((header, bytes)) = endpoint.coming(from, Port::MESSAGES) else { return };
    if messages.landing.contains_key(&(from, messages.peers[from].came)) {
        return; // a receive has taken this message; the offer of the receive's room was withdrawn
    }
    let Some(envelope) = Envelope::of_head(&header, bytes) else { return };
    let Some(receive) = messages.posted.first(from, envelope.tag).cloned() else { return };
    let Some(landing) = receive.take_early(from, envelope) else { return };
    // SAFETY: the room exists, and no other code accesses it, until the receive is done or
    // forgotten. The receive is done only after the frame was read or the offer was withdrawn.
    // Before the receive is forgotten, the offer is withdrawn.
    unsafe {
        if let Some(place) = landing.all() {
            endpoint.prepost(from, Port::MESSAGES, 0, header, place);
        }
    }
    messages.posted.remove(&receive);
    *receive.stage.borrow_mut() = Stage::Landing(landing);
    messages.landing.insert((from, messages.peers[from].came), receive);
}

/// Completes the receive that has taken a message before all elements of the message had arrived.
/// Returns whether there is such a receive.
fn landed_early(
    messages: &mut Messages,
    from: usize,
    number: u64,
    envelope: &Envelope,
    bytes: &[u8],
) -> bool {
    let Some(receive) = messages.landing.remove(&(from, number)) else { return false };
    if let Stage::Landing(landing) = &*receive.stage.borrow() {
        debug_assert_eq!(landing.envelope, *envelope, "a frame was taken by its head");
        // SAFETY: the receive is not done, so its room exists. The room has the number of bytes
        // that the head of this frame announces.
        unsafe { landing.arrived(bytes.as_ptr()) };
    }
    receive.done(from, envelope);
    true
}

/// Returns whether a receive has taken a message of `from` whose elements arrive without being
/// requested.
fn lands_early(messages: &Messages, from: usize) -> bool {
    messages.landing.range((from, 0)..=(from, u64::MAX)).any(|(_, receive)| receive.lands_early())
}

/// Reads the elements that have arrived from `from`.
///
/// # Errors
/// Nothing more can arrive.
pub(super) fn read_elements(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    from: usize,
) -> Result<(), Lost> {
    while let Some(frame) = endpoint.poll(from, Port::ELEMENTS)? {
        if frame.header.kind == kind::LEFT && frame.header.word >= messages.peers[from].came {
            // The sender has left, and this rank has not yet read the frame that announces this
            // message. It must read that frame first.
            let is_to_come = endpoint.poll(from, Port::MESSAGES).is_ok();
            return if is_to_come { Ok(()) } else { Err(world.refuse(endpoint, from, UNASKED)) };
        }
        let result = landed(endpoint, messages, from, &frame);
        endpoint.release(from, Port::ELEMENTS);
        let coming = &mut messages.peers[from].coming;
        *coming = coming.saturating_sub(1);
        result.map_err(|wrong| world.refuse(endpoint, from, wrong))?;
    }
    Ok(())
}

/// Reads the frames of messages that have arrived from all ranks, and the elements of messages that
/// were taken.
///
/// # Errors
/// If a rank has failed, or all other ranks have finished. In both cases nothing more can arrive
/// for a receive from any rank.
pub(super) fn read_all(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
) -> Result<(), Lost> {
    read_all_but(world, endpoint, messages, None)
}

/// Does the same as [`read_all`], but does not read the messages of rank `but`.
///
/// # Errors
/// As [`read_all`].
pub(super) fn read_all_but(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    but: Option<usize>,
) -> Result<(), Lost> {
    let (first, size) = (messages.next, world.size);
    let (mut lost, mut open) = (None, but.is_some());
    for from in (first..size).chain(0..first).filter(|&from| from != world.rank && Some(from) != but) {
        match read_from(world, endpoint, messages, from) {
            Ok(()) => open = true,
            Err(error) if error.how == Loss::Left(Leave::Finished) => {
                lost.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    read_landing(world, endpoint, messages)?;
    match lost {
        Some(lost) if !open => Err(lost),
        _ => Ok(()),
    }
}

/// Reads elements of messages that were taken.
///
/// # Errors
/// The elements can no longer arrive.
pub(super) fn read_landing(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
) -> Result<(), Lost> {
    let mut next = 0;
    while let Some(from) = lands_from(messages, next) {
        next = from + 1;
        if lands_early(messages, from) {
            let read = read_from(world, endpoint, messages, from);
            if lands_early(messages, from) {
                read?;
            }
        }
        read_all_landing(world, endpoint, messages, from)?;
    }
    Ok(())
}

/// Reads the elements of those messages of `from` that were taken.
///
/// # Errors
/// Some of the elements can no longer arrive.
pub(super) fn read_all_landing(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    from: usize,
) -> Result<(), Lost> {
    let Err(lost) = read_elements(world, endpoint, messages, from) else { return Ok(()) };
    // A receive may have taken a message that is still arriving. The end of that message may arrive
    // together with the report that its sender has left.
    drop(read_from(world, endpoint, messages, from));
    let lands = messages.landing.range((from, 0)..=(from, u64::MAX)).next().is_some();
    if lands { Err(lost) } else { Ok(()) }
}

/// Returns the lowest rank, not below `first`, from which elements of a taken message have yet to
/// arrive.
pub(super) fn lands_from(messages: &Messages, first: usize) -> Option<usize> {
    messages.landing.range((first, 0)..).next().map(|((from, _), _)| *from)
}

/// Processes a frame that has arrived on the port of messages.
fn arrived(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    from: usize,
    frame: &Frame,
) -> Result<(), Wrong> {
    let header = frame.header;
    match header.kind {
        kind::MESSAGE => {
            // SAFETY: the frame is readable, since it is released only after this function returns.
            let payload = unsafe { frame.bytes() };
            let message = Envelope::of(&header, payload);
            let (envelope, near) = message.ok_or("it sent a message that no rank sends")?;
            let reached = endpoint.reaches(from);
            let elements = match envelope.is_apart {
                false => Came::Here(payload),
                true if reached => Came::Near(near),
                true => Came::Far(&[]),
            };
            let credit = messages.credit;
            let peer = &mut messages.peers[from];
            let number = peer.came;
            peer.came += 1;
            if !envelope.is_apart {
                peer.unpaid += envelope.bytes + OVERHEAD;
                if peer.unpaid > credit {
                    return Err(
                        "it sent more messages than this rank keeps: give all ranks one FENCEPOST_UNEXPECTED",
                    );
                }
            }
            if peer.apart > BUFFERED {
                return Err("it sent more messages than fit into the buffer of a rank");
            }
            if landed_early(messages, from, number, &envelope, payload) {
                if let Some(known) = messages.known.remove(&(from, number)) {
                    world.checks.clock.hear_all(&known);
                }
                messages.next = (from + 1) % world.size;
                settle(world, endpoint, messages, from, number, &envelope);
                return Ok(());
            }
            let taken = Taken { from, number, envelope, elements, was_kept: false };
            deliver(world, endpoint, messages, &taken)
        }
        kind::CLOCK => {
            // SAFETY: as above.
            let mut payload = Reader(unsafe { frame.bytes() });
            let known = world.checks.clock.read_all(world.size, &mut payload).filter(|_| payload.is_empty());
            let known = known.ok_or("its clock of ended accesses cannot be read")?;
            // The clock belongs to the message that arrives next.
            let number = messages.peers[from].came;
            messages.known.insert((from, number), known);
            Ok(())
        }
        kind::TAKEN if frame.len == 0 => {
            if answered(messages, from, header.word) {
                Ok(())
            } else {
                Err("it took a message that was not sent")
            }
        }
        kind::GRANT if frame.len == 0 => {
            let peer = &mut messages.peers[from];
            let used = usize::try_from(header.word).ok().and_then(|cost| peer.used.checked_sub(cost));
            peer.used = used.ok_or("it granted more than it was sent")?;
            Ok(())
        }
        _ => Err("it sent a frame among messages that no rank sends"),
    }
}

/// Processes a chunk of elements that has arrived.
fn landed(endpoint: &mut Endpoint, messages: &mut Messages, from: usize, frame: &Frame) -> Result<(), Wrong> {
    let Header { word: number, kind, extra } = frame.header;
    let unasked = kind == kind::LEFT;
    if !unasked && kind != kind::ELEMENTS || number >= messages.peers[from].came {
        return Err(UNASKED);
    }
    if unasked {
        // The sender has left, so the requested elements may never arrive.
        endpoint.cancel(from, Port::ELEMENTS);
    }
    let at = extra as usize;
    // SAFETY: the frame is readable, since it is released only after this function returns.
    let bytes = unsafe { frame.bytes() };
    if let Some(receive) = messages.landing.get(&(from, number)).cloned() {
        let envelope = {
            let Stage::Landing(landing) = &mut *receive.stage.borrow_mut() else { return Err(UNASKED) };
            if landing.is_early {
                return Err(UNASKED);
            }
            // A sender that leaves sends the whole message again.
            let again = unasked && at < landing.came;
            // SAFETY: the receive is not done, so its room still exists.
            if !again && (at != landing.came || !unsafe { landing.chunk(bytes) }) {
                return Err(UNASKED);
            }
            landing.is_whole().then_some(landing.envelope)
        };
        match envelope {
            Some(envelope) => {
                messages.landing.remove(&(from, number));
                receive.done(from, &envelope);
                tell_taken(endpoint, messages, from, number);
            }
            None => ask(endpoint, messages, &receive, from, number),
        }
        return Ok(());
    }
    if !unasked {
        return Err(UNASKED);
    }
    let kept = messages.kept.iter_mut().find(|kept| kept.from == from && kept.number == number);
    if let Some(Kept { envelope, elements: Elements::Far(begin), .. }) = kept {
        let range = crate::messages::state::outbox::chunk(at, envelope.bytes);
        if range.start != begin.len() || range.len() != bytes.len() || bytes.is_empty() {
            return Err(UNASKED);
        }
        begin.try_reserve(bytes.len()).map_err(|_| "its messages need more memory than there is")?;
        begin.extend_from_slice(bytes);
    }
    Ok(())
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use crate::api::run::ranks;
    use crate::messages::messages;
    use crate::messages::receive::{Wanted, begin, complete};
    use crate::messages::state::receive::{Receive, Room};
    use crate::state::call::Call;
    use crate::state::transport_kind::TransportKind;
    use fencepost_planner::datatype::Datatype;
    use fencepost_transport::{Leave, SimConfig};
    use std::rc::Rc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The number of elements of a message with more chunks than are requested at a time.
    const LEN: usize = 8 * (256 << 10) / 8;

    #[test]
    fn a_message_that_was_taken_is_not_sent_once_more_by_a_sender_that_leaves() {
        for transport in [TransportKind::Sim(SimConfig::default()), TransportKind::TcpThreads] {
            let run = ranks(2).transport(transport.clone()).run(|world| {
                let part = world.split(Some(0), 0)?.expect("a part of the world");
                if world.rank() == 0 {
                    part.attach_buffer(1 << 24)?;
                    part.message(1, 0).buffered().send(vec![1u64; LEN])?;
                    part.recv::<u8>(1, 1)?;
                    let before = part.meter().total().bytes;
                    part.leave(Leave::Finished);
                    assert!(part.meter().total().bytes - before < LEN as u64, "{transport:?}");
                    return world.barrier();
                }
                assert!(part.recv::<u64>(0, 0)?.0 == [1; LEN]);
                part.message(0, 1).send([0u8])?;
                world.barrier()
            });
            run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
        }
    }

    #[test]
    fn elements_that_a_sender_leaves_of_a_message_that_was_not_read_yet_wait_until_it_is() {
        let sim = SimConfig { max_delay: 0, ..SimConfig::default() };
        for transport in [TransportKind::Sim(sim), TransportKind::TcpThreads] {
            let is_asked_for = AtomicBool::new(false);
            let run = ranks(2).transport(transport.clone()).run(|world| {
                let part = world.split(Some(0), 0)?.expect("a part of the world");
                if world.rank() == 0 {
                    part.attach_buffer(1 << 24)?;
                    part.message(1, 0).buffered().send(vec![1u64; LEN])?;
                    while !is_asked_for.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                    part.message(1, 0).buffered().send(vec![2u64; LEN])?;
                    drop(part);
                    return world.barrier();
                }
                part.probe(0, 0)?;
                let (core, call) = (part.core(), Call::named(0, "a receive"));
                let mut first = vec![0u64; LEN];
                let room = Room::Elements(first.as_mut_ptr().cast(), Datatype::run(0..LEN));
                // SAFETY: the room is there until the receive is done, or this test has failed.
                let receive = Rc::new(unsafe { Receive::new::<u64>(Some(0), Some(0), room, call.site) });
                begin(core, &mut core.endpoint.borrow_mut(), &mut messages(core).borrow_mut(), &receive);
                is_asked_for.store(true, Ordering::Release);
                // After this barrier the elements of both messages have arrived, and the second
                // message was not read.
                world.barrier()?;
                let wanted = Wanted { source: Some(0), tag: Some(0) };
                complete(core, &mut core.endpoint.borrow_mut(), &receive, wanted, &call)?;
                assert!(first == [1; LEN]);
                assert!(part.recv::<u64>(0, 0)?.0 == [2; LEN]);
                Ok(())
            });
            run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
        }
    }
}
