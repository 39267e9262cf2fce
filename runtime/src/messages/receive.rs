//! Receives and probes.

use crate::kernel::element::Element;
use crate::messages::arrive::{read_all, read_from, read_landing};
use crate::messages::state::receive::{Failure, Receive, Room, Stage};
use crate::messages::state::status::{Sources, Status, Tags};
use crate::messages::state::{Elements, Kept, Messages};
use crate::messages::take::{Came, Taken, take, take_next};
use crate::messages::{messages, rank_of};
use crate::protocol::exchange::wait;
use crate::protocol::stall::{Awaited, Watch};
use crate::protocol::unwind::AbortOnUnwind;
use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::{ErrorClass, Result, State};
use fencepost_transport::{Channels, Endpoint, Liveness, Lost, Port, Topology};
use std::rc::Rc;

/// The messages that a receive takes. `None` means any source, or any tag.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(super) source: Option<usize>,
    pub(super) tag: Option<u32>,
}

impl Wanted {
    /// Returns the messages that a call with this source and tag receives, or `None` if the source
    /// is nobody.
    ///
    /// # Errors
    /// `RANK` for a rank that the world does not have.
    pub(super) fn of(world: &WorldCore, from: Sources, tag: Tags, call: &Call) -> Result<Option<Self>> {
        let source = match from {
            Sources::Nobody => return Ok(None),
            Sources::Any => None,
            Sources::Rank(rank) => Some(rank_of(world, rank, call)?),
        };
        let tag = match tag {
            Tags::Any => None,
            Tags::Tag(tag) => Some(tag),
        };
        Ok(Some(Self { source, tag }))
    }

    /// Describes these messages.
    pub(super) fn words(self) -> String {
        let source = self.source.map_or_else(|| "any rank".to_owned(), |source| format!("rank {source}"));
        let tag = self.tag.map_or_else(|| "any tag".to_owned(), |tag| format!("tag {tag}"));
        format!(" from {source} with {tag}")
    }
}

/// Receives a message.
///
/// # Errors
/// As `World::recv_into`.
///
/// # Safety
/// As [`Receive::new`], until this function returns.
pub(crate) unsafe fn receive<T: Element>(
    world: &WorldCore,
    from: Sources,
    tag: Tags,
    room: Room,
    call: &Call,
) -> Result<Status> {
    world.alive()?;
    let Some(wanted) = Wanted::of(world, from, tag, call)? else { return Ok(Status::default()) };
    let endpoint = &mut *world.endpoint.borrow_mut();
    let guard = AbortOnUnwind("a receive");
    let next = match wanted.source {
        // SAFETY: the caller upholds the safety contract.
        Some(source) if source != world.rank && endpoint.reaches(source) => unsafe {
            next::<T>(world, endpoint, source, (wanted, &room), call)
        },
        _ => None,
    };
    let result = next.unwrap_or_else(|| {
        // SAFETY: the caller upholds the safety contract; this function returns when the receive is
        // done, or forgotten.
        let receive = Rc::new(unsafe { Receive::new::<T>(wanted.source, wanted.tag, room, call.site) });
        begin(world, endpoint, &mut messages(world).borrow_mut(), &receive);
        complete(world, endpoint, &receive, wanted, call)
    });
    guard.over();
    result
}

/// Waits for the next message of `source`, and [takes](take_next) it without posting a receive.
///
/// Returns `None` if the message cannot be taken in this way, or if a posted receive or a kept
/// message comes first. The caller then posts a receive. If this rank does not reach the memory of
/// the source, the caller always posts a receive, so that elements land in their destination as
/// they arrive.
///
/// # Safety
/// As [`receive`].
unsafe fn next<T: Element>(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    source: usize,
    (wanted, room): (Wanted, &Room),
    call: &Call,
) -> Option<Result<Status>> {
    {
        let messages = &mut *messages(world).borrow_mut();
        let is_kept = || messages.first(wanted.source, wanted.tag).is_some();
        if world.checks.is_on() || !messages.posted.is_empty() || is_kept() {
            return None;
        }
        messages.taking = Some(source);
    }
    let about = || wanted.words();
    let watch = || Watch::new(world, call, &[], source, Awaited::One("messages")).about(&about);
    let waited = wait(endpoint, watch, |endpoint| {
        let Some(frame) = endpoint.poll(source, Port::MESSAGES)? else { return Ok(None) };
        let messages = &mut *messages(world).borrow_mut();
        // SAFETY: the caller upholds the safety contract. Before the wait, no receive was posted
        // and no such message was kept. This rank posts no receive during the wait. Messages from
        // `source` are not kept while this call takes them.
        Ok(Some(unsafe { take_next::<T>(endpoint, messages, source, (&frame, wanted.tag, room)) }))
    });
    messages(world).borrow_mut().taking = None;
    match waited {
        Ok(status) => status.map(Ok),
        Err(lost) => Some(Err(world.lost(&lost, call).leaving(State::Unchanged))),
    }
}

/// Begins a receive. The receive takes the first kept message that matches it. If there is no such
/// message, the receive is posted.
pub(super) fn begin(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    receive: &Rc<Receive>,
) {
    let kept = messages.first(receive.source, receive.tag).and_then(|at| messages.take_kept(at));
    let Some(Kept { from, number, envelope, elements }) = kept else {
        messages.posted.push(receive.clone());
        return;
    };
    let elements = match &elements {
        Elements::Here(bytes) => Came::Here(bytes),
        Elements::Near(near) => Came::Near(*near),
        Elements::Far(begin) => Came::Far(begin),
    };
    take(world, endpoint, messages, &Taken { from, number, envelope, elements, was_kept: true }, receive);
}

/// Waits until a receive is done.
///
/// # Errors
/// As `World::recv_into`; in that case the receive is forgotten.
pub(super) fn complete(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    receive: &Rc<Receive>,
    wanted: Wanted,
    call: &Call,
) -> Result<Status> {
    let waited = until_done(world, endpoint, receive, wanted, call);
    if let Err(lost) = waited {
        let state = if receive.has_begun() { State::Mixed } else { State::Unchanged };
        messages(world).borrow_mut().forget(receive, endpoint);
        return Err(world.lost(&lost, call).leaving(state));
    }
    match receive.outcome() {
        Some(Ok(status)) => Ok(status),
        Some(Err(Failure::Wrong(class, message))) => Err(call.error(world, class, message)),
        Some(Err(Failure::Lost(lost))) => Err(world.lost(&lost, call)),
        None => Err(call.error(world, ErrorClass::Intern, "internal error: a receive is not done")),
    }
}

fn until_done(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    receive: &Receive,
    wanted: Wanted,
    call: &Call,
) -> std::result::Result<(), Lost> {
    let about = || wanted.words();
    let (peer, awaited) = awaited(world, wanted);
    let watch = || Watch::new(world, call, &[], peer, awaited).about(&about);
    let from = wait(endpoint, watch, |endpoint| {
        let messages = &mut *messages(world).borrow_mut();
        let gone_on = go_on(world, endpoint, messages, wanted, receive);
        if matches!(*receive.stage.borrow(), Stage::Posted) {
            return gone_on.map(|()| None);
        }
        let landing =
            messages.landing.iter().find(|(_, landing)| std::ptr::eq(&raw const ***landing, receive));
        Ok(Some(landing.map(|((from, _), _)| *from)))
    })?;
    let Some(from) = from else { return Ok(()) };
    let watch = || Watch::new(world, call, &[], from, Awaited::Answers).about(&about);
    wait(endpoint, watch, |endpoint| {
        let messages = &mut *messages(world).borrow_mut();
        let gone_on = go_on(world, endpoint, messages, wanted, receive);
        if receive.is_landing() { gone_on.map(|()| None) } else { Ok(Some(())) }
    })
}

/// Makes progress with a receive, without waiting.
///
/// # Errors
/// The receive can never be done.
pub(super) fn go_on(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    wanted: Wanted,
    receive: &Receive,
) -> std::result::Result<(), Lost> {
    let is_posted = || matches!(*receive.stage.borrow(), Stage::Posted);
    let read = if is_posted() { read(world, endpoint, messages, wanted) } else { Ok(()) };
    if is_posted() {
        return read;
    }
    let landed = if receive.is_landing() { read_landing(world, endpoint, messages) } else { Ok(()) };
    if receive.is_landing() { landed } else { Ok(()) }
}

/// Reads the messages that have arrived from the ranks that `wanted` names.
fn read(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    messages: &mut Messages,
    wanted: Wanted,
) -> std::result::Result<(), Lost> {
    match wanted.source {
        Some(source) if source == world.rank => endpoint.lost(source).map_or(Ok(()), Err),
        Some(source) => read_from(world, endpoint, messages, source),
        None if world.size == 1 => endpoint.lost(world.rank).map_or(Ok(()), Err),
        None => read_all(world, endpoint, messages),
    }
}

/// Returns the rank for which a receive of these messages waits, and how the stall report describes
/// the wait.
pub(super) fn awaited(world: &WorldCore, wanted: Wanted) -> (usize, Awaited<'static>) {
    match wanted.source {
        Some(source) => (source, Awaited::One("messages")),
        None if world.size == 1 => (world.rank, Awaited::One("messages")),
        None => (usize::from(world.rank == 0), Awaited::FromAny("messages")),
    }
}

/// Looks for the message that a receive would take. If `waits` is set, waits until there is such a
/// message. Otherwise returns at once.
///
/// # Errors
/// As `World::probe`.
pub(crate) fn probe(
    world: &WorldCore,
    from: Sources,
    tag: Tags,
    waits: bool,
    call: &Call,
) -> Result<Option<Status>> {
    world.alive()?;
    let Some(wanted) = Wanted::of(world, from, tag, call)? else { return Ok(Some(Status::default())) };
    let endpoint = &mut *world.endpoint.borrow_mut();
    let about = || wanted.words();
    let look = |endpoint: &mut Endpoint| {
        let messages = &mut *messages(world).borrow_mut();
        let mut first = messages.first(wanted.source, wanted.tag);
        let mut read_now = Ok(());
        if first.is_none() {
            read_now = read(world, endpoint, messages, wanted);
            first = messages.first(wanted.source, wanted.tag);
        }
        let status = first.map(|at| {
            let Kept { from, envelope, .. } = &messages.kept[at];
            Status { source: Some(*from), tag: Some(envelope.tag), len: envelope.len() }
        });
        match status {
            Some(status) => Ok(Some(status)),
            None => read_now.map(|()| None),
        }
    };
    let found = if waits {
        let (peer, awaited) = awaited(world, wanted);
        wait(endpoint, || Watch::new(world, call, &[], peer, awaited).about(&about), look).map(Some)
    } else {
        world.notice(endpoint, None);
        let found = look(endpoint);
        Channels::flush(endpoint);
        found
    };
    found.map_err(|lost| world.lost(&lost, call))
}
