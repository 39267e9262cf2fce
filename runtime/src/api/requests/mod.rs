//! [`Request`]: an operation that one call begins and another call completes.

pub(crate) mod begin;
mod epochs;
#[cfg(feature = "async")]
mod future;
mod locked;
pub(crate) mod scope;
pub(crate) mod set;

use crate::api::refused::Refused;
use crate::messages::state::completion::Queue;
use crate::messages::state::status::Status;
use crate::messages::{self, Begun};
use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::{Endpoint, Lost};
use std::fmt;
use std::ptr::NonNull;
use std::rc::Rc;

/// An operation that was begun, and that [`wait`](Self::wait) completes.
///
/// Until then, the request owns the buffer. `wait` returns the buffer.
///
/// The time at which the operation happens, and the time at which it is complete, do not depend on
/// the actions of the rank between the call that begins the operation and the call that completes
/// it. Paragraph 27 of `planner/README.md` defines both times. A rank makes progress with its
/// operations in each call in which it waits, and in calls that test or complete requests.
///
/// The drop of a request first completes the operation, so the drop of a receive waits for its
/// message. [Cancel](Self::cancel) a receive whose message may never arrive. An error during the
/// drop is reported only to the world's error handler. If the thread panics, the request and its
/// buffer are given up instead. A request that is leaked stays open: its buffer is never returned
/// or freed, and the world fails for the other ranks when this rank leaves.
///
/// ```
/// # fencepost_runtime::ranks(2).run(|world| {
/// let other = 1 - world.rank();
/// let receive = world.irecv::<u64>(other, 7)?;
/// let send = world.message(other, 7).isend(vec![world.rank() as u64; 1000])?;
/// // .. compute ..
/// let (values, status) = receive.wait()?;
/// assert_eq!((values, status.source), (vec![other as u64; 1000], Some(other)));
/// let (buffer, _) = send.wait()?; // it may be used again
/// assert_eq!(buffer.len(), 1000);
/// # Ok(()) }).unwrap();
/// ```
///
/// A request belongs to its thread, like its world:
///
/// ```compile_fail,E0277
/// # fencepost_runtime::ranks(1).run(|world| {
/// let receive = world.irecv::<u64>(0, 7)?;
/// std::thread::scope(|scope| scope.spawn(move || drop(receive)));
/// # Ok(()) }).unwrap();
/// ```
///
/// # Source
/// MPI 4.1, section 3.7 (MPI_WAIT, MPI_TEST, MPI_CANCEL, MPI_REQUEST_FREE).
#[must_use = "a request that is dropped is waited for at once"]
pub struct Request<B> {
    world: Rc<WorldCore>,
    /// `None` only while the request is completed or given up.
    operation: Option<Operation<B>>,
    /// Whether the request belongs to a scope, which completes the request if no call does.
    is_scoped: bool,
}

/// The operation that a request completes.
enum Operation<B> {
    /// A send or a receive; `None` if it is complete from the beginning.
    Message(Option<Begun>, Held<B>),
    /// An operation of another kind.
    Other(Box<dyn Other<B>>),
    /// The result of a completed operation. It is kept because the call of the request's set that
    /// completed the operation has unwound.
    Over(Completion<B>),
}

/// An operation that is completed in the call that waits for it.
pub(crate) trait Other<B> {
    /// Returns a rank that [`carry_out`](Self::carry_out) would wait for, and a plural noun for the
    /// awaited things. Returns `None` if `carry_out` would not wait.
    fn awaits(&mut self, endpoint: &mut Endpoint) -> Option<(usize, &'static str)>;

    /// Carries out the operation, if other ranks may wait for it. If this call does not carry it
    /// out, [`finish`](Self::finish) does.
    fn carry_out(&mut self, call: &Call);

    /// Completes the operation. A function of [`Request::map`] runs last.
    fn finish(self: Box<Self>, call: &Call) -> Completion<B>;

    /// Describes the operation.
    fn words(&self) -> String;
}

/// The result of a request.
type Completion<B> = Result<(B, Status), Refused<B>>;

/// The source of the value that a request returns when it is complete.
enum Held<B> {
    /// The value itself.
    Here(B),
    /// The box that holds the value. Other code writes into the value until the request is
    /// complete.
    Boxed(NonNull<B>),
    /// Another value, and the function of the program that computes the returned value from it.
    Mapped(Box<dyn Taken<B>>),
}

/// A value, and the function of the program to apply to it.
trait Taken<B> {
    /// Applies the function to the value, and returns the result.
    ///
    /// # Safety
    /// As [`Held::take`].
    unsafe fn take(self: Box<Self>) -> B;

    /// Drops the value and the function, without calling the function.
    ///
    /// # Safety
    /// As [`Held::take`].
    unsafe fn discard(self: Box<Self>);
}

impl<A, B, F: FnOnce(A) -> B> Taken<B> for (Held<A>, F) {
    unsafe fn take(self: Box<Self>) -> B {
        let (held, map) = *self;
        // SAFETY: the caller guarantees that no other code accesses the value.
        map(unsafe { held.take() })
    }

    unsafe fn discard(self: Box<Self>) {
        // SAFETY: the caller guarantees that no other code accesses the value.
        unsafe { self.0.discard() };
    }
}

impl<B> Held<B> {
    /// # Safety
    /// No other code accesses the value any more.
    unsafe fn take(self) -> B {
        match self {
            Self::Here(value) => value,
            // SAFETY: the pointer was made of a box when the request was made, and only this code
            // turns it back into a box.
            Self::Boxed(value) => *unsafe { Box::from_raw(value.as_ptr()) },
            // SAFETY: the caller guarantees that no other code accesses the value.
            Self::Mapped(taken) => unsafe { taken.take() },
        }
    }

    /// Drops the value without calling a function of the program on it.
    ///
    /// # Safety
    /// As [`take`](Self::take).
    unsafe fn discard(self) {
        match self {
            // SAFETY: the caller guarantees that no other code accesses the value.
            Self::Mapped(taken) => unsafe { taken.discard() },
            // SAFETY: the caller guarantees that no other code accesses the value.
            other => drop(unsafe { other.take() }),
        }
    }
}

impl<B> Request<B> {
    fn new(world: &Rc<WorldCore>, begun: Option<Begun>, held: Held<B>) -> Self {
        Self { world: world.clone(), operation: Some(Operation::Message(begun, held)), is_scoped: false }
    }

    /// Makes this a request of a scope, which completes the request if no call does.
    fn scoped(mut self) -> Self {
        self.is_scoped = true;
        self
    }

    /// Makes a request of an operation that is completed in the call that waits for it.
    pub(crate) fn other(world: &Rc<WorldCore>, other: Box<dyn Other<B>>) -> Self {
        Self { world: world.clone(), operation: Some(Operation::Other(other)), is_scoped: false }
    }

    /// Makes a request that is complete, with this result.
    fn over(world: &Rc<WorldCore>, completion: Completion<B>) -> Self {
        Self { world: world.clone(), operation: Some(Operation::Over(completion)), is_scoped: false }
    }

    /// Waits until the operation is complete, and returns the buffer and the status.
    ///
    /// The status of a receive describes the message that it received.
    ///
    /// # Errors
    /// The errors of the call that begins and completes the same operation, such as
    /// [`World::recv`](crate::World::recv) or [`Message::send`](crate::Message::send). The error
    /// returns the buffer. After `PROC_FAILED` the world has ended.
    ///
    /// # Source
    /// MPI 4.1, section 3.7.3 (MPI_WAIT).
    #[doc(alias = "MPI_Wait")]
    #[track_caller]
    pub fn wait(self) -> Result<(B, Status), Refused<B>> {
        let call = Call::named(0, "Request::wait");
        let world = self.world.clone();
        self.completed(&call).map_err(|refused| refused.reported(&world.handler))
    }

    /// Makes progress with the operations that this rank has begun, and returns whether
    /// [`wait`](Self::wait) would return at once.
    ///
    /// The result is `true` if the operation has failed or is complete. It is always `true` for a
    /// get under a lock ([`Locked::rget`](crate::Locked::rget)), although the `wait` of that
    /// request may wait for the lock.
    ///
    /// # Source
    /// MPI 4.1, section 3.7.3 (MPI_TEST, MPI_REQUEST_GET_STATUS).
    #[doc(alias = "MPI_Test")]
    pub fn test(&mut self) -> bool {
        if self.is_complete() {
            return true;
        }
        let world = self.world.clone();
        if !world.life.goes_on() {
            return true;
        }
        let endpoint = &mut *world.endpoint.borrow_mut();
        messages::progress(&world, endpoint);
        let is_complete = self.is_complete() || self.is_ready(endpoint);
        messages::flush(endpoint);
        is_complete
    }

    /// Cancels a receive that has not taken a message.
    ///
    /// The receive will never take a message. Its buffer is returned unchanged.
    ///
    /// # Errors
    /// Returns the request, unchanged, if the receive has taken a message, or if the request is not
    /// a receive.
    ///
    /// # Source
    /// MPI 4.1, section 3.8.4 (MPI_CANCEL).
    #[doc(alias = "MPI_Cancel")]
    pub fn cancel(mut self) -> Result<B, Self> {
        if let Some(Operation::Message(Some(Begun::Receive(receive)), _)) = &self.operation
            && messages::cancel(&self.world, receive, || None)
            && let Some(Operation::Message(_, held)) = self.operation.take()
        {
            // SAFETY: the receive was forgotten, and only this rank writes into its buffer.
            return Ok(unsafe { held.take() });
        }
        Err(self)
    }

    /// Returns a request that applies `map` to the buffer, and returns the result in place of the
    /// buffer.
    ///
    /// With `map`, requests of several kinds can have one type, for a
    /// [`RequestSet`](crate::RequestSet).
    ///
    /// The call that completes the request calls `map` after it has completed the operation. If
    /// `map` panics, that call unwinds and the buffer is lost; all other requests stay as they are.
    /// `map` is not called while the thread panics.
    pub fn map<C>(mut self, map: impl FnOnce(B) -> C + 'static) -> Request<C>
    where
        B: 'static,
        C: 'static,
    {
        let world = self.world.clone();
        let operation = self.operation.take().map(|operation| match operation {
            Operation::Message(begun, held) => Operation::Message(begun, Held::Mapped(Box::new((held, map)))),
            Operation::Other(other) => Operation::Other(Box::new(Mapped { other, map })),
            Operation::Over(over) => Operation::Over(mapped(over, map)),
        });
        Request { world, operation, is_scoped: self.is_scoped }
    }

    /// Returns whether the request is known to be complete. Does not poll the transport.
    fn is_complete(&self) -> bool {
        match &self.operation {
            Some(Operation::Message(Some(begun), _)) => begun.completion().is_complete(),
            Some(Operation::Other(_)) => false,
            Some(Operation::Message(None, _) | Operation::Over(_)) | None => true,
        }
    }

    /// Returns whether the request is ready. Returns `false` for a message.
    fn is_ready(&mut self, endpoint: &mut Endpoint) -> bool {
        match &mut self.operation {
            Some(Operation::Other(other)) => other.awaits(endpoint).is_none(),
            _ => false,
        }
    }

    /// Returns whether the request waits for a call of its own rank. Returns `false` for a message.
    fn awaits_itself(&mut self, endpoint: &mut Endpoint) -> bool {
        match &mut self.operation {
            Some(Operation::Other(other)) => {
                other.awaits(endpoint).is_some_and(|(awaited, _)| awaited == self.world.rank)
            }
            _ => false,
        }
    }

    /// Carries out the operation, if it is not a message.
    fn carry_out(&mut self, call: &Call) {
        if let Some(Operation::Other(other)) = &mut self.operation {
            other.carry_out(call);
        }
    }

    /// Returns whether the set of the request has to check whether the request is ready.
    fn is_looked_at(&self) -> bool {
        matches!(self.operation, Some(Operation::Other(_)))
    }

    /// If the request is a message, adds `place` to this queue when the message is complete.
    fn tell(&self, queue: &Rc<Queue>, place: usize) {
        match &self.operation {
            Some(Operation::Message(Some(begun), _)) => begun.completion().tell(queue, place),
            Some(Operation::Message(None, _) | Operation::Over(_)) => queue.push(place),
            Some(Operation::Other(_)) | None => {}
        }
    }

    /// Returns the send or the receive of the request, unless it is complete from the beginning.
    fn begun(&self) -> Option<Begun> {
        match &self.operation {
            Some(Operation::Message(begun, _)) => begun.clone(),
            Some(Operation::Other(_) | Operation::Over(_)) | None => None,
        }
    }

    /// Describes the request.
    fn words(&self) -> String {
        match &self.operation {
            Some(Operation::Message(Some(begun), _)) => begun.words(),
            Some(Operation::Other(other)) => other.words(),
            Some(Operation::Message(None, _) | Operation::Over(_)) | None => {
                "a request that is complete".to_owned()
            }
        }
    }

    /// Waits until the request is complete or `is_over` returns true. If the request cannot be
    /// completed, returns the reason.
    fn wait_until(&self, is_over: &mut dyn FnMut(&mut Endpoint) -> bool, call: &Call) -> Option<Lost> {
        match &self.operation {
            Some(Operation::Message(Some(begun), _)) if !self.is_complete() && self.world.life.goes_on() => {
                messages::complete(&self.world, begun, is_over, call)
            }
            _ => None,
        }
    }

    /// Waits until the request is complete or ready, or `is_over` returns true. If the request
    /// cannot be completed, returns the reason if that is known.
    fn wait_or(&mut self, is_over: &mut dyn FnMut(&mut Endpoint) -> bool, call: &Call) -> Option<Lost> {
        let Some(Operation::Other(other)) = &mut self.operation else {
            return self.wait_until(is_over, call);
        };
        let first = other.awaits(&mut self.world.endpoint.borrow_mut())?;
        let words = other.words();
        let mut is_over =
            |endpoint: &mut Endpoint| is_over(endpoint) || other.awaits(endpoint) != Some(first);
        messages::wait_for_other(&self.world, first, &|| format!(": {words}"), &mut is_over, call);
        None
    }

    fn completed(self, call: &Call) -> Result<(B, Status), Refused<B>> {
        let lost = self.wait_until(&mut |_| false, call);
        self.finished(lost, call)
    }

    /// Returns the result of the request. The request must be complete, or the world must have
    /// ended. `lost` is the reason for the end of the world, if the call knows it.
    fn finished(mut self, lost: Option<Lost>, call: &Call) -> Completion<B> {
        let outcome = match &self.operation {
            // If a protocol calls a function of the program that panics, `outcome` unwinds, and the
            // request still has its buffer.
            Some(Operation::Message(Some(begun), _)) => messages::outcome(&self.world, begun, lost, call),
            _ => Ok(Status::default()),
        };
        match self.operation.take().expect("it is taken where a request ends") {
            Operation::Message(_, held) => {
                // SAFETY: the request is complete, or no other code accesses its elements any more.
                let buffer = unsafe { held.take() };
                match outcome {
                    Ok(status) => Ok((buffer, status)),
                    Err(error) => Err(Refused::new(buffer, error)),
                }
            }
            Operation::Other(other) => other.finish(call),
            Operation::Over(completion) => completion,
        }
    }
}

/// Applies a function of the program to the buffer of a completion.
fn mapped<B, C>(completion: Completion<B>, map: impl FnOnce(B) -> C) -> Completion<C> {
    match completion {
        Ok((buffer, status)) => Ok((map(buffer), status)),
        Err(refused) => {
            let (buffer, error) = refused.into_parts();
            Err(Refused::new(map(buffer), error))
        }
    }
}

/// An operation whose result a function changes.
struct Mapped<B, F> {
    other: Box<dyn Other<B>>,
    map: F,
}

impl<B, C, F: FnOnce(B) -> C> Other<C> for Mapped<B, F> {
    fn awaits(&mut self, endpoint: &mut Endpoint) -> Option<(usize, &'static str)> {
        self.other.awaits(endpoint)
    }

    fn carry_out(&mut self, call: &Call) {
        self.other.carry_out(call);
    }

    fn finish(self: Box<Self>, call: &Call) -> Completion<C> {
        let Self { other, map } = *self;
        mapped(other.finish(call), map)
    }

    fn words(&self) -> String {
        self.other.words()
    }
}

impl<B> Drop for Request<B> {
    fn drop(&mut self) {
        let Some(operation) = self.operation.take().filter(|_| !self.is_scoped) else { return };
        if std::thread::panicking() {
            if let Operation::Message(Some(begun), held) = operation {
                if messages::give_up(&self.world, &begun) {
                    // SAFETY: no other code accesses the buffer any more.
                    unsafe { held.discard() };
                } else {
                    std::mem::forget(held); // others may read it, now or later
                }
            }
            return;
        }
        let mut call = Call::named(0, "drop of a request");
        if let Operation::Message(Some(begun), _) = &operation {
            call.site = begun.site();
        }
        let whole = Self { world: self.world.clone(), operation: Some(operation), is_scoped: false };
        if let Err(refused) = whole.completed(&call) {
            drop(refused.reported(&self.world.handler));
        }
    }
}

impl<B> fmt::Debug for Request<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Request").field(&self.words()).finish()
    }
}

/// Returns the error for a request that belongs to another world than its set.
#[cold]
fn foreign(world: &WorldCore, call: &Call) -> fencepost_planner::Error {
    let message = "a request of another world cannot be in this set: make one set for each world".to_owned();
    call.error(world, ErrorClass::Arg, message)
}
