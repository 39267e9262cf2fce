//! Sends messages.

use crate::kernel::element::Element;
use crate::kernel::waits::{Wait, without};
use crate::messages::arrive::{read_all, read_from};
use crate::messages::receive::{Wanted, begin as begin_receive, complete as complete_receive, go_on};
use crate::messages::state::completion::Completion;
use crate::messages::state::frames::{Envelope, Near, clock as clock_header, elements, kind};
use crate::messages::state::limits::{BUFFERED, OVERHEAD};
use crate::messages::state::outbox::Outbox;
use crate::messages::state::receive::{Receive, Room};
use crate::messages::state::sending::Sent;
use crate::messages::state::status::{Sources, Status, Tags};
use crate::messages::state::{Buffer, Kept, Messages};
use crate::messages::take::{Came, Taken, Wrong, deliver};
use crate::messages::{messages, rank_of};
use crate::protocol::exchange::{untouched_by, wait};
use crate::protocol::stall::{Awaited, Watch};
use crate::protocol::unwind::AbortOnUnwind;
use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::element::ElementType;
use fencepost_planner::ir::calls::SendMode;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::{
    Answers, Attendant, Bytes, COPIED, Channels, Endpoint, Frame, Header, Liveness, Loss, Lost, Port,
    Topology,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A message to send, and its receiver.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) to: usize,
    pub(crate) tag: u32,
    pub(crate) element: ElementType,
    pub(crate) bytes: &'a [u8],
    pub(crate) mode: SendMode,
}

/// The attendant that sends elements to ranks that do not reach this rank's memory, when these
/// ranks request the elements.
struct Attends(Arc<Outbox>);

impl Attendant for Attends {
    fn attend(&mut self, from: usize, asked: Header, payload: &[u8], answers: &mut dyn Answers) {
        if !payload.is_empty() {
            return answers.refuse(from, "it asked for the elements of a message in a way that no rank does");
        }
        let header = elements(asked.word, asked.extra);
        self.0.show(from, asked.word, asked.extra, |bytes| answers.post(from, Port::ELEMENTS, header, bytes));
    }
}

/// Sends a message, and waits until the send is complete.
///
/// # Errors
/// As `Message::send`.
pub(crate) fn send(world: &WorldCore, outgoing: &Outgoing<'_>, call: &Call) -> Result<()> {
    world.alive()?;
    rank_of(world, outgoing.to, call)?;
    let endpoint = &mut *world.endpoint.borrow_mut();
    let guard = AbortOnUnwind("a send");
    // SAFETY: the elements are borrowed until this function returns. It returns when the send is
    // complete or was taken back.
    let sent = unsafe { begin(world, endpoint, &mut messages(world).borrow_mut(), outgoing, call) };
    let result = sent.and_then(|sent| match sent {
        None => Ok(()),
        Some(_) if without(Wait::Leaving) => Ok(()),
        Some(sent) => complete(world, endpoint, &sent, outgoing, None, call),
    });
    guard.over();
    result
}

/// Sends a message and receives another. Either of the two may be completed first.
///
/// # Errors
/// As `World::sendrecv`.
///
/// # Safety
/// As [`Receive::new`], until this function returns.
pub(crate) unsafe fn send_and_receive<T: Element>(
    world: &WorldCore,
    outgoing: Option<&Outgoing<'_>>,
    (from, tag, room): (Sources, Tags, Room),
    call: &Call,
) -> Result<Status> {
    world.alive()?;
    outgoing.map_or(Ok(0), |outgoing| rank_of(world, outgoing.to, call))?;
    let wanted = Wanted::of(world, from, tag, call)?;
    let endpoint = &mut *world.endpoint.borrow_mut();
    let guard = AbortOnUnwind("a send");
    // SAFETY: as in `send`.
    let begin =
        |outgoing| unsafe { begin(world, endpoint, &mut messages(world).borrow_mut(), outgoing, call) };
    // The send comes first, so that no receive has taken a message if the send fails.
    let result = outgoing.map_or(Ok(None), begin).and_then(|sent| {
        let receive = wanted.map(|wanted| {
            // SAFETY: the caller upholds the safety contract; this function returns when the
            // receive is done, or forgotten.
            let receive = Rc::new(unsafe { Receive::new::<T>(wanted.source, wanted.tag, room, call.site) });
            begin_receive(world, endpoint, &mut messages(world).borrow_mut(), &receive);
            (wanted, receive)
        });
        if let (Some(sent), Some(outgoing)) = (sent, outgoing) {
            let also = receive.as_ref().map(|(wanted, receive)| (*wanted, &**receive));
            let completed = complete(world, endpoint, &sent, outgoing, also, call);
            if let (Err(_), Some((_, receive))) = (&completed, &receive) {
                messages(world).borrow_mut().forget(receive, endpoint);
            }
            completed?;
        }
        receive.map_or(Ok(Status::default()), |(wanted, receive)| {
            complete_receive(world, endpoint, &receive, wanted, call)
        })
    });
    guard.over();
    result
}

/// Begins to send. Returns `None` if the send is complete.
///
/// # Errors
/// `BUFFER`; `NO_MEM`; `PROC_FAILED`.
///
/// # Safety
/// Unless the send is buffered, the elements stay unchanged until the send is [complete] or was
/// [taken back](take_back).
pub(super) unsafe fn begin(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    outgoing: &Outgoing<'_>,
    call: &Call,
) -> Result<Option<Rc<Sent>>> {
    if outgoing.mode == SendMode::Buffered {
        may_buffer(world, endpoint, messages, outgoing.bytes.len(), call)?;
    }
    messages.reclaim(outgoing.to, endpoint);
    let route = Route::of(world, endpoint, messages, outgoing);
    // The copy comes first, because it can fail and the later steps are not undone.
    let copy = route.copy(endpoint, messages, outgoing.bytes);
    let copy = copy.map_err(|error| no_room(world, outgoing.bytes.len(), error, call))?;
    let entry = enter(messages, outgoing, &route, call);
    let done = if outgoing.to == world.rank {
        deliver_here(world, endpoint, messages, outgoing, &route, entry.number)
            .map_err(|why| call.error(world, ErrorClass::NoMem, why))
    } else {
        // SAFETY: the caller upholds the safety contract.
        unsafe { post(world, endpoint, messages, outgoing, &route, entry.number, copy) }
            .map_err(|lost| world.lost(&lost, call))
    };
    if let Err(error) = done {
        messages.sending.remove(outgoing.to, entry.number);
        messages.free(entry.buffered);
        return Err(error);
    }
    let is_over = |sent: &Rc<Sent>| outgoing.to == world.rank && sent.completion.is_complete();
    Ok(entry.sent.filter(|sent| outgoing.mode != SendMode::Buffered && !is_over(sent)))
}

/// How a message travels.
struct Route {
    envelope: Envelope,
    /// Whether the send waits for a receive only because the check does not let standard sends rely
    /// on a buffer.
    needs_buffer: bool,
    /// The credit that the message takes if its elements travel with it.
    cost: usize,
    /// Whether the receiver reaches the memory of this rank.
    is_reached: bool,
    /// Whether the elements are copied before they are sent or read.
    is_copied: bool,
    /// Whether the receiver reads the copy while this rank is still making it.
    is_piecewise: bool,
}

impl Route {
    /// Decides how a message travels.
    fn of(
        world: &WorldCore,
        endpoint: &mut Endpoint,
        messages: &mut Messages,
        outgoing: &Outgoing<'_>,
    ) -> Self {
        let Outgoing { to, tag, element, bytes, mode } = *outgoing;
        let (is_reached, cost) = (endpoint.reaches(to), bytes.len() + OVERHEAD);
        let is_short = bytes.len() <= messages.limits.eager(is_reached) && cost <= messages.credit;
        if is_short && messages.peers[to].used + cost > messages.credit {
            // The receiver may have granted more credit. If the receiver is lost, a later call
            // finds that.
            drop(read_from(world, endpoint, messages, to));
        }
        let is_eager = is_short && messages.peers[to].used + cost <= messages.credit;
        let needs_buffer = mode == SendMode::Standard && is_eager && lets_sends_wait(world);
        let is_answered = mode == SendMode::Synchronous || !is_eager || needs_buffer;
        let is_ready = mode == SendMode::Ready;
        let envelope =
            Envelope { tag, element, bytes: bytes.len(), is_ready, is_answered, is_apart: !is_eager };
        let is_copied = to != world.rank
            && match is_eager {
                true => is_reached && bytes.len() > COPIED,
                false => {
                    let is_near = || is_reached && !endpoint.shares(to) && !endpoint.memory().has(bytes);
                    mode == SendMode::Buffered || is_near()
                }
            };
        let is_piecewise = is_copied && !is_eager && is_reached;
        Self { envelope, needs_buffer, cost, is_reached, is_copied, is_piecewise }
    }

    /// Returns whether the elements travel with the envelope.
    fn is_eager(&self) -> bool {
        !self.envelope.is_apart
    }

    /// Copies the elements, if the message needs a copy before it is sent. If the receiver reads
    /// the copy while this rank is still making it, only allocates room for the copy.
    fn copy(
        &self,
        endpoint: &Endpoint,
        messages: &mut Messages,
        bytes: &[u8],
    ) -> std::io::Result<Option<Bytes>> {
        let copy = self.is_copied.then(|| match self.is_piecewise {
            true => room_for(endpoint, bytes.len()),
            false => copied(endpoint, messages, bytes),
        });
        copy.transpose()
    }
}

/// The data that this rank keeps about a message that it sends.
struct Entry {
    number: u64,
    /// The number of bytes that the message takes in the buffer of buffered sends.
    buffered: Option<usize>,
    /// The send, if the receiver of the message has to answer.
    sent: Option<Rc<Sent>>,
}

/// Numbers a message, and counts it against the credit and the buffer of this rank.
fn enter(messages: &mut Messages, outgoing: &Outgoing<'_>, route: &Route, call: &Call) -> Entry {
    let Outgoing { to, tag, bytes, mode, .. } = *outgoing;
    let peer = &mut messages.peers[to];
    let number = peer.sent;
    peer.sent += 1;
    if route.is_eager() {
        peer.used += route.cost;
    }
    // A message whose elements travel with it takes no room in the buffer.
    let buffered = (mode == SendMode::Buffered && !route.is_eager()).then_some(bytes.len());
    let needs_buffer = route.needs_buffer;
    let sent = route.envelope.is_answered.then(|| {
        let (completion, lost) = (Completion::default(), RefCell::default());
        Rc::new(Sent { to, tag, number, buffered, needs_buffer, site: call.site, completion, lost })
    });
    if let Some(sent) = &sent {
        messages.sending.insert(sent);
    }
    if let Some(buffer) = messages.buffer.as_mut().filter(|_| buffered.is_some()) {
        buffer.used += bytes.len();
        buffer.messages += 1;
    }
    Entry { number, buffered, sent }
}

/// Delivers a message of this rank to itself.
///
/// # Errors
/// There is no memory for the message; it was not sent.
fn deliver_here(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    outgoing: &Outgoing<'_>,
    route: &Route,
    number: u64,
) -> std::result::Result<(), Wrong> {
    let Outgoing { to, bytes, mode, .. } = *outgoing;
    let elements = if route.is_eager() || mode == SendMode::Buffered {
        Came::Here(bytes)
    } else {
        Came::Near(Near::all(bytes.as_ptr()))
    };
    let message = Taken { from: to, number, envelope: route.envelope, elements, was_kept: false };
    deliver(world, endpoint, messages, &message).inspect_err(|_| {
        let peer = &mut messages.peers[to];
        peer.sent -= 1;
        peer.used -= if route.is_eager() { route.cost } else { 0 };
    })
}

/// Posts a message to another rank.
///
/// # Errors
/// The receiver no longer receives anything, and no rank reads the elements.
///
/// # Safety
/// As [`begin`].
unsafe fn post(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    outgoing: &Outgoing<'_>,
    route: &Route,
    number: u64,
    copy: Option<Bytes>,
) -> std::result::Result<(), Lost> {
    let Outgoing { to, bytes, .. } = *outgoing;
    let (mut kept, mut room) = (None, Near::NONE);
    if route.is_eager() {
        kept = copy;
    } else {
        // SAFETY: the caller upholds the safety contract.
        room = unsafe { offer(world, endpoint, messages, outgoing, route, number, copy) };
    }
    let place = route.envelope.place(room);
    let header = route.envelope.header();
    let frame = if route.is_eager() {
        let payload = kept.as_ref().map_or(bytes.as_ptr(), |copy| copy.base().cast_const());
        Frame { header, payload, len: bytes.len() }
    } else {
        Frame::of(header, &place)
    };
    let known = if world.checks.is_on() { tell_known(world, endpoint, messages, to) } else { Ok(()) };
    // SAFETY: a post copies a short payload. If the receiver reads a longer payload in place, that
    // payload is kept until it was read.
    let posted = known.and_then(|()| unsafe { endpoint.post_copy(to, Port::MESSAGES, frame) });
    posted.inspect_err(|_| messages.outbox.remove(to, number))?;
    messages.count_frame(to, kept);
    endpoint.flush();
    if route.is_piecewise {
        // SAFETY: the outbox keeps the room, and no rank reads a part of it before that part is
        // copied.
        unsafe { copy_piecewise(bytes, room) };
    }
    world.reports.count_sent(bytes.len(), 0);
    Ok(())
}

/// Makes elements available to the receiver, for a message that travels without its elements.
/// Returns the address of the elements if the receiver reaches this rank's memory.
///
/// # Safety
/// As [`begin`].
unsafe fn offer(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    outgoing: &Outgoing<'_>,
    route: &Route,
    number: u64,
    copy: Option<Bytes>,
) -> Near {
    let Outgoing { to, bytes, .. } = *outgoing;
    let mut room = Near::NONE;
    match copy {
        Some(copy) => {
            if route.is_piecewise {
                room.copied = copy.base().wrapping_add(bytes.len().next_multiple_of(8)).cast();
                room.first = copy.base();
            }
            messages.outbox.keep(to, number, copy, bytes.len());
        }
        None if route.is_reached => room = Near::all(bytes.as_ptr()),
        // SAFETY: the caller upholds the safety contract.
        None => unsafe { messages.outbox.expose(to, number, bytes) },
    }
    if !route.is_reached {
        world.attendants.attach(endpoint, kind::PULL, || Attends(messages.outbox.clone()));
    }
    room
}

/// The remark about a standard send that waits for its receive because the check requires the wait.
const ONLY_A_BUFFER: &str = " and only a buffer would complete before";

/// Returns whether a standard send is complete only when its message was taken (planner/README.md,
/// 37).
#[inline]
fn lets_sends_wait(world: &WorldCore) -> bool {
    world.checks.is_on() && world.checks.checking.borrow().check.lets_sends_wait()
}

/// Sends the clock of this rank to the receiver of the next message. The clock contains the
/// accesses that this rank knows to be over.
#[cold]
fn tell_known(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    to: usize,
) -> std::result::Result<(), Lost> {
    let mut bytes = Vec::new();
    world.checks.clock.write_all(world.rank, world.size, &mut bytes);
    let kept = (bytes.len() > COPIED && endpoint.reaches(to)).then(|| copied(endpoint, messages, &bytes));
    let ended = |error| Lost { rank: world.rank, how: Loss::Ended(format!("rank {}: {error}", world.rank)) };
    let kept = kept.transpose().map_err(ended)?;
    let payload = kept.as_ref().map_or(bytes.as_ptr(), |kept| kept.base().cast_const());
    let frame = Frame { header: clock_header(), payload, len: bytes.len() };
    // SAFETY: as in `begin`.
    unsafe { endpoint.post_copy(to, Port::MESSAGES, frame) }?;
    messages.count_frame(to, kept);
    Ok(())
}

#[cold]
fn no_room(world: &WorldCore, bytes: usize, error: std::io::Error, call: &Call) -> fencepost_planner::Error {
    let message = format!("there is no memory for a message of {bytes} bytes, which was not sent: {error}");
    call.error(world, ErrorClass::NoMem, message)
}

/// Allocates room for elements in memory that other ranks reach. A counter of the bytes copied so
/// far follows the room. The counter is initially zero.
fn room_for(endpoint: &Endpoint, bytes: usize) -> std::io::Result<Bytes> {
    let counted = bytes.next_multiple_of(8);
    let room = endpoint.memory().any(counted + size_of::<AtomicU64>())?;
    // SAFETY: the memory has room for the counter and is aligned for it, and no other rank knows
    // its address.
    unsafe { room.base().add(counted).cast::<AtomicU64>().write(AtomicU64::new(0)) };
    Ok(room)
}

/// Copies elements, and after each piece publishes the number of bytes that were copied.
///
/// # Safety
/// [`room_for`] made `room` for this number of bytes. No other code writes the room, and no rank
/// reads more bytes than were published.
unsafe fn copy_piecewise(bytes: &[u8], room: Near) {
    const PIECE: usize = 64 << 10;
    let (first, mut there) = (room.first.cast_mut(), 0);
    for piece in bytes.chunks(PIECE) {
        // SAFETY: the caller upholds the safety contract.
        unsafe {
            first.add(there).copy_from_nonoverlapping(piece.as_ptr(), piece.len());
            there += piece.len();
            (*room.copied).store(there as u64, Ordering::Release);
        }
    }
}

/// Copies elements to memory that other ranks reach.
fn copied(endpoint: &Endpoint, messages: &mut Messages, bytes: &[u8]) -> std::io::Result<Bytes> {
    let spare = messages.spare.iter().position(|spare| spare.len() >= bytes.len());
    let copy = match spare {
        Some(at) => messages.spare.swap_remove(at),
        None => endpoint.memory().any(bytes.len().next_power_of_two().max(256))?,
    };
    // SAFETY: the copy has the same number of bytes, and no other rank knows its address.
    unsafe { copy.base().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Ok(copy)
}

/// Checks that the buffer has room for a message.
///
/// # Errors
/// `BUFFER`.
fn may_buffer(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    bytes: usize,
    call: &Call,
) -> Result<()> {
    let has_room = |messages: &Messages| {
        let room = messages.buffer.as_ref().map(|buffer| (buffer.size - buffer.used, buffer.messages));
        room.is_some_and(|(room, messages)| bytes <= room && messages < BUFFERED)
    };
    if has_room(messages) {
        return Ok(());
    }
    // Some of the messages in the buffer may have been received.
    drop(read_all(world, endpoint, messages));
    if has_room(messages) {
        return Ok(());
    }
    let message = match &messages.buffer {
        None => "a buffered send needs a buffer, and none is attached: nothing was sent; call `attach_buffer` first".to_owned(),
        Some(buffer) => format!(
            "the buffer that was attached at {}:{} has no room for {bytes} bytes: {} of {} are in use, by {} messages (there may be {BUFFERED}); nothing was sent; attach a larger one, or receive more often",
            buffer.site.file(), buffer.site.line(), buffer.used, buffer.size, buffer.messages
        ),
    };
    Err(call.error(world, ErrorClass::Buffer, message))
}

/// Waits until a send is complete, and makes progress with a receive meanwhile.
///
/// # Errors
/// `PROC_FAILED` if the send or the receive can no longer be completed, or the error of a deadlock.
/// In either case no rank reads the elements any more.
fn complete(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    sent: &Sent,
    outgoing: &Outgoing<'_>,
    also: Option<(Wanted, &Receive)>,
    call: &Call,
) -> Result<()> {
    let (to, tag, bytes) = (outgoing.to, outgoing.tag, outgoing.bytes.len());
    let about = || {
        let only = if sent.needs_buffer { ONLY_A_BUFFER } else { "" };
        format!(" to rank {to} with tag {tag} and {bytes} bytes, which no receive has taken{only}")
    };
    let watch = || Watch::new(world, call, &[], to, Awaited::One("receives")).about(&about);
    let waited = wait(endpoint, watch, |endpoint| {
        let messages = &mut *messages(world).borrow_mut();
        let own = if to == world.rank {
            endpoint.lost(to).map_or(Ok(()), Err)
        } else {
            read_from(world, endpoint, messages, to)
        };
        let other =
            also.map_or(Ok(()), |(wanted, receive)| go_on(world, endpoint, messages, wanted, receive));
        if sent.completion.is_complete() { Ok(Some(())) } else { own.and(other).map(|()| None) }
    });
    waited.map_err(|lost| {
        take_back(world, endpoint, sent, call);
        world.lost(&lost, call)
    })
}

/// Waits, after the world has ended, until no rank reads the elements of this send any more.
pub(super) fn take_back(world: &WorldCore, endpoint: &mut Endpoint, sent: &Sent, call: &Call) {
    let (to, number) = (sent.to, sent.number);
    {
        let messages = &mut *messages(world).borrow_mut();
        messages.sending.remove(to, number);
        if to == world.rank {
            let is_it = |kept: &Kept| kept.from == to && kept.number == number;
            if let Some(at) = messages.kept.iter().position(is_it) {
                messages.take_kept(at);
            }
        }
    }
    if to != world.rank && endpoint.reaches(to) {
        untouched_by(world, endpoint, &[], call, to);
    }
    messages(world).borrow_mut().outbox.remove(to, number);
}

/// Attaches a buffer for buffered sends.
///
/// # Errors
/// `BUFFER` if a buffer is already attached.
pub(crate) fn attach(world: &WorldCore, size: usize, call: &Call) -> Result<()> {
    world.alive()?;
    let messages = &mut *messages(world).borrow_mut();
    if let Some(Buffer { site, size, .. }) = &messages.buffer {
        let message = format!(
            "a buffer of {size} bytes is attached, at {}:{}: detach it first",
            site.file(),
            site.line()
        );
        return Err(call.error(world, ErrorClass::Buffer, message));
    }
    messages.buffer = Some(Buffer { site: call.site, size, messages: 0, used: 0 });
    Ok(())
}

/// Waits until no message of a buffered send needs the buffer, detaches it, and returns its size.
///
/// # Errors
/// As `World::detach_buffer`.
pub(crate) fn detach(world: &WorldCore, call: &Call) -> Result<usize> {
    world.alive()?;
    let endpoint = &mut *world.endpoint.borrow_mut();
    loop {
        let to = {
            let messages = &mut *messages(world).borrow_mut();
            let Some(buffer) = &messages.buffer else {
                let message = "no buffer is attached: call `attach_buffer` first";
                return Err(call.error(world, ErrorClass::Buffer, message));
            };
            if buffer.messages == 0 {
                let size = buffer.size;
                messages.buffer = None;
                return Ok(size);
            }
            let sent = messages.sending.values().find(|sent| sent.buffered.is_some());
            sent.map_or(world.rank, |sent| sent.to)
        };
        let about = || format!(": a message of a buffered send to rank {to} has not been received");
        let watch = || Watch::new(world, call, &[], to, Awaited::One("receives")).about(&about);
        let waited = wait(endpoint, watch, |endpoint| {
            let messages = &mut *messages(world).borrow_mut();
            let read = if to == world.rank {
                endpoint.lost(to).map_or(Ok(()), Err)
            } else {
                read_from(world, endpoint, messages, to)
            };
            let is_left = messages.sending.values().any(|sent| sent.to == to && sent.buffered.is_some());
            if is_left { read.map(|()| None) } else { Ok(Some(())) }
        });
        waited.map_err(|lost| world.lost(&lost, call))?;
    }
}
