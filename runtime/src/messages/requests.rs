//! Sends and receives that are begun by one call and completed by another.
//!
//! These sends and receives are in the same lists as those that a single call begins and completes.
//! They make progress when the rank reads the port of messages: in any call that waits, and in any
//! call that completes or tests requests. A request that becomes complete is added to the queue of
//! its set. So a call that waits for one of many requests does not have to look at the others.
//!
//! If a rank is lost, each send and each receive that needs the lost rank fails with its own error.
//! The world ends for the calling rank when the first of these errors is returned.

use crate::kernel::element::Element;
use crate::messages::arrive::{lands_from, read_all_landing, read_from};
use crate::messages::receive::{Wanted, awaited, begin as begin_receiving};
use crate::messages::send::{Outgoing, begin, take_back};
use crate::messages::state::Messages;
use crate::messages::state::completion::Completion;
use crate::messages::state::limits::BUFFERED;
use crate::messages::state::receive::{Failure, Receive, Room};
use crate::messages::state::sending::Sent;
use crate::messages::state::status::{Sources, Status, Tags};
use crate::messages::{messages, rank_of};
use crate::protocol::exchange::wait;
use crate::protocol::stall::{Awaited, Watch};
use crate::protocol::unwind::AbortOnUnwind;
use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::{Error, ErrorClass, Result, State};
use fencepost_transport::{Channels, Endpoint, Leave, Liveness, Loss, Lost};
use std::panic::Location;
use std::rc::Rc;

/// A send or a receive that was begun.
#[derive(Clone)]
pub(crate) enum Begun {
    Send(Rc<Sent>),
    Receive(Rc<Receive>),
}

/// Begins to send. Returns `None` if the send is complete.
///
/// # Errors
/// As `Message::isend`. In that case nothing was sent.
///
/// # Safety
/// Unless the send is buffered, the elements stay unchanged until the send is complete or was
/// [taken back](outcome).
pub(crate) unsafe fn begin_send(
    world: &WorldCore,
    outgoing: &Outgoing<'_>,
    call: &Call,
) -> Result<Option<Begun>> {
    world.alive()?;
    rank_of(world, outgoing.to, call)?;
    let endpoint = &mut *world.endpoint.borrow_mut();
    let messages = &mut *messages(world).borrow_mut();
    let waiting = messages.sending.unsaved();
    if waiting >= BUFFERED {
        let message = format!(
            "{waiting} messages of this rank wait for receives, and no more than {BUFFERED} may: nothing was sent; complete some first"
        );
        return Err(call.error(world, ErrorClass::NoMem, message));
    }
    let guard = AbortOnUnwind("a send");
    // SAFETY: the caller upholds the safety contract.
    let sent = unsafe { begin(world, endpoint, messages, outgoing, call) };
    guard.over();
    Ok(sent?.map(Begun::Send))
}

/// Begins to receive. Returns `None` if the source is nobody, so that nothing is received.
///
/// # Errors
/// As `World::irecv`.
///
/// # Safety
/// As [`Receive::new`], until the receive is complete, [cancelled](cancel) or was [given
/// up](give_up).
pub(crate) unsafe fn begin_receive<T: Element>(
    world: &WorldCore,
    (from, tag, room): (Sources, Tags, Room),
    call: &Call,
) -> Result<Option<Begun>> {
    world.alive()?;
    let Some(wanted) = Wanted::of(world, from, tag, call)? else { return Ok(None) };
    // SAFETY: the caller upholds the safety contract.
    let receive = Rc::new(unsafe { Receive::new::<T>(wanted.source, wanted.tag, room, call.site) });
    let endpoint = &mut *world.endpoint.borrow_mut();
    let guard = AbortOnUnwind("a receive");
    begin_receiving(world, endpoint, &mut messages(world).borrow_mut(), &receive);
    guard.over();
    Ok(Some(Begun::Receive(receive)))
}

/// Makes progress, without waiting, with all sends and receives that were begun.
pub(crate) fn progress(world: &WorldCore, endpoint: &mut Endpoint) {
    world.notice(endpoint, None);
    let messages = &mut *messages(world).borrow_mut();
    let (first, size) = (messages.next, world.size);
    let (mut open, mut gone) = (false, None);
    for from in (first..size).chain(0..first) {
        let read = if from == world.rank {
            endpoint.lost(from).map_or(Ok(()), Err)
        } else {
            read_from(world, endpoint, messages, from)
        };
        match read {
            Ok(()) => open |= from != world.rank || size == 1,
            Err(lost) => {
                fail(messages, from, &lost);
                if gone.is_none() || lost.how != Loss::Left(Leave::Finished) {
                    gone = Some(lost);
                }
            }
        }
    }
    let mut from = 0;
    while let Some(next) = lands_from(messages, from) {
        if let Err(lost) = read_all_landing(world, endpoint, messages, next) {
            for receive in messages.take_landing(next, endpoint) {
                receive.lose(&lost);
            }
        }
        from = next + 1;
    }
    if let Some(lost) = gone.filter(|lost| !open || lost.how != Loss::Left(Leave::Finished)) {
        messages.posted.take_of(None).iter().for_each(|receive| receive.lose(&lost));
    }
}

/// Fails the sends and receives that need frames of rank `from`, since no more frames of that rank
/// arrive.
fn fail(messages: &mut Messages, from: usize, lost: &Lost) {
    messages.posted.take_of(Some(from)).iter().for_each(|receive| receive.lose(lost));
    for sent in messages.take_unbuffered(from) {
        *sent.lost.borrow_mut() = Some(lost.clone());
        sent.completion.lose();
    }
}

/// [Cancels](Receive::cancel) a receive if it has taken no message. Returns whether the receive was
/// cancelled.
pub(crate) fn cancel(
    world: &WorldCore,
    receive: &Rc<Receive>,
    error: impl FnOnce() -> Option<(ErrorClass, String)>,
) -> bool {
    let is_posted = messages(world).borrow_mut().posted.remove(receive);
    if is_posted {
        receive.cancel(error());
    }
    is_posted
}

/// Forgets a send or a receive, without waiting. Returns `true` if no rank accesses the elements of
/// the operation any more. For a receive, the result is `true` unless its elements are in transit,
/// because only this rank writes the room of the receive. Elements in transit must still land in
/// the room, because the sender waits until this rank confirms their arrival.
pub(crate) fn give_up(world: &WorldCore, begun: &Begun) -> bool {
    match begun {
        _ if begun.completion().is_complete() && !begun.is_lost() => true,
        Begun::Send(_) => false,
        Begun::Receive(receive) if receive.is_landing() => false,
        Begun::Receive(receive) => {
            let (messages, endpoint) = (messages(world).try_borrow_mut(), world.endpoint.try_borrow_mut());
            let (Ok(mut messages), Ok(mut endpoint)) = (messages, endpoint) else { return false };
            messages.forget(receive, &mut endpoint);
            true
        }
    }
}

impl Begun {
    /// Returns the completion of the operation, which contains the queue to notify.
    pub(crate) fn completion(&self) -> &Completion {
        match self {
            Self::Send(sent) => &sent.completion,
            Self::Receive(receive) => &receive.completion,
        }
    }

    /// Returns the line that began the operation.
    pub(crate) fn site(&self) -> &'static Location<'static> {
        match self {
            Self::Send(sent) => sent.site,
            Self::Receive(receive) => receive.site,
        }
    }

    /// Describes the operation.
    pub(crate) fn words(&self) -> String {
        let site = self.site();
        let what = match self {
            Self::Send(sent) => {
                let only = if sent.needs_buffer {
                    ", which no receive has taken and only a buffer would complete before"
                } else {
                    ""
                };
                format!("a send to rank {} with tag {}{only}", sent.to, sent.tag)
            }
            Self::Receive(receive) => {
                let wanted = Wanted { source: receive.source, tag: receive.tag };
                format!("a receive{}", wanted.words())
            }
        };
        format!("{what}, begun at {}:{}", site.file(), site.line())
    }

    /// Returns the rank that the operation needs, or `None` if it can be completed by any rank.
    pub(crate) fn peer(&self) -> Option<usize> {
        match self {
            Self::Send(sent) => Some(sent.to),
            Self::Receive(receive) => receive.source,
        }
    }

    /// Returns whether the operation is complete and its error, if any, was returned. In that case
    /// no rank accesses its elements. After a send has failed because of a lost rank, other ranks
    /// may read its elements until its error is returned.
    pub(crate) fn is_over(&self) -> bool {
        let has_failed = || match self {
            Self::Send(sent) => sent.lost.borrow().is_some(),
            Self::Receive(receive) => matches!(receive.outcome(), Some(Err(_))),
        };
        let completion = self.completion();
        completion.is_returned() || completion.is_complete() && !has_failed()
    }

    fn is_lost(&self) -> bool {
        match self {
            Self::Send(sent) => sent.lost.borrow().is_some(),
            Self::Receive(receive) => matches!(receive.outcome(), Some(Err(Failure::Lost(_)))),
        }
    }

    /// Returns the reason why the operation has failed, if a rank was lost.
    pub(crate) fn lost(&self) -> Option<Lost> {
        match self {
            Self::Send(sent) => sent.lost.borrow().clone(),
            Self::Receive(receive) => match receive.outcome() {
                Some(Err(Failure::Lost(lost))) => Some(lost),
                _ => None,
            },
        }
    }
}

/// Waits until the operation is complete, or until `is_over` returns `true`. If the operation can
/// never be complete, returns the reason. The caller makes the error of the request from that
/// reason.
pub(crate) fn complete(
    world: &WorldCore,
    begun: &Begun,
    is_over: &mut dyn FnMut(&mut Endpoint) -> bool,
    call: &Call,
) -> Option<Lost> {
    let about = || format!(": {}", begun.words());
    let endpoint = &mut *world.endpoint.borrow_mut();
    let mut over = |endpoint: &mut Endpoint, until: &dyn Fn() -> bool| {
        progress(world, endpoint);
        match begun.lost() {
            Some(lost) => Err(lost),
            None => Ok((until() || is_over(endpoint)).then_some(())),
        }
    };
    let is_complete = || begun.completion().is_complete();
    let (peer, awaited) = match begun {
        Begun::Send(sent) => (sent.to, Awaited::One("receives")),
        Begun::Receive(receive) => awaited(world, Wanted { source: receive.source, tag: receive.tag }),
    };
    let watch = || Watch::new(world, call, &[], peer, awaited).about(&about);
    let is_taken = || match begun {
        Begun::Send(_) => is_complete(),
        Begun::Receive(receive) => !receive.is_posted(),
    };
    if let Err(lost) = wait(endpoint, watch, |endpoint| over(endpoint, &is_taken)) {
        return Some(lost);
    }
    // The attendant of the sender sends the elements of the message.
    let watch = || Watch::new(world, call, &[], peer, Awaited::Answers).about(&about);
    wait(endpoint, watch, |endpoint| over(endpoint, &is_complete)).err()
}

/// Waits until `is_over` returns `true`, for an operation that needs rank `peer` and is neither a
/// send nor a receive. Meanwhile makes progress with all sends and receives that were begun.
pub(crate) fn wait_for_other(
    world: &WorldCore,
    (peer, awaited): (usize, &'static str),
    about: &dyn Fn() -> String,
    is_over: &mut dyn FnMut(&mut Endpoint) -> bool,
    call: &Call,
) {
    let endpoint = &mut *world.endpoint.borrow_mut();
    let watch = || Watch::new(world, call, &[], peer, Awaited::One(awaited)).about(about);
    let waited = wait(endpoint, watch, |endpoint| {
        progress(world, endpoint);
        Ok(is_over(endpoint).then_some(()))
    });
    drop(waited); // the operation finds the loss itself
}

/// Waits until `look` reports that some of several requests are complete. Also returns if none of
/// them can ever be complete. `ranks` returns the ranks that could complete one of the requests, if
/// these ranks are known.
pub(crate) fn wait_for_some(
    world: &WorldCore,
    (about, ranks): (&dyn Fn() -> String, &dyn Fn() -> Option<Vec<usize>>),
    mut look: impl FnMut(&mut Endpoint) -> bool,
    call: &Call,
) {
    let endpoint = &mut *world.endpoint.borrow_mut();
    let (peer, awaited) = match world.size {
        1 => (world.rank, Awaited::One("completions")),
        _ => (usize::from(world.rank == 0), Awaited::FromSome("completions", ranks)),
    };
    let watch = || Watch::new(world, call, &[], peer, awaited).about(about);
    let waited = wait(endpoint, watch, |endpoint| {
        progress(world, endpoint);
        Ok(look(endpoint).then_some(()))
    });
    drop(waited); // `look` finds what has failed
}

/// Returns the result of a send or a receive that is complete, or that cannot be completed since
/// the world has ended. Afterwards no rank accesses its elements.
///
/// # Errors
/// As `Request::wait`. If `lost` is given, the error reports it instead of the loss that the
/// operation has recorded.
pub(crate) fn outcome(world: &WorldCore, begun: &Begun, lost: Option<Lost>, call: &Call) -> Result<Status> {
    outcome_of(world, begun, lost, call).inspect_err(|_| begun.completion().note_returned())
}

fn outcome_of(world: &WorldCore, begun: &Begun, lost: Option<Lost>, call: &Call) -> Result<Status> {
    let lost = lost.or_else(|| begun.lost());
    let endpoint = &mut *world.endpoint.borrow_mut();
    let ended = || world.alive().err().unwrap_or_else(|| unfinished(world, call));
    match begun {
        Begun::Send(sent) => {
            if sent.completion.is_complete() && sent.lost.borrow().is_none() {
                return Ok(Status::default());
            }
            let own = || {
                let what = format!("rank {} gave up {}", world.rank, begun.words());
                Lost { rank: world.rank, how: Loss::Ended(what) }
            };
            world.end_for(endpoint, lost.clone().unwrap_or_else(own));
            take_back(world, endpoint, sent, call);
            Err(lost.map_or_else(ended, |lost| world.lost(&lost, call)))
        }
        Begun::Receive(receive) => match receive.outcome() {
            Some(Ok(status)) => Ok(status),
            Some(Err(Failure::Wrong(class, message))) => Err(call.error(world, class, message)),
            Some(Err(Failure::Lost(_))) | None => {
                let state = if receive.has_begun() { State::Mixed } else { State::Unchanged };
                messages(world).borrow_mut().forget(receive, endpoint);
                let error = lost.map_or_else(ended, |lost| world.lost(&lost, call));
                Err(error.leaving(state))
            }
        },
    }
}

#[cold]
fn unfinished(world: &WorldCore, call: &Call) -> Error {
    call.error(world, ErrorClass::Intern, "internal error: a request is not complete")
}

/// Flushes the endpoint, in a call that does not wait.
pub(crate) fn flush(endpoint: &mut Endpoint) {
    endpoint.flush();
}
