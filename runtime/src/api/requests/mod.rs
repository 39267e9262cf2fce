//! [`Request`]: an operation that one call begins and another one completes.

pub(crate) mod begin;
mod epochs;
#[cfg(feature = "async")]
mod future;
mod locked;
pub(crate) mod scope;
pub(crate) mod set;

use crate::api::refused::Refused;
use crate::messages::{self, Begun};
use crate::state::call::Call;
use crate::state::completion::Queue;
use crate::state::messages::status::Status;
use crate::state::world::WorldCore;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::{Endpoint, Lost};
use std::fmt;
use std::ptr::NonNull;
use std::rc::Rc;

/// An operation that was begun, and that [`wait`](Self::wait) completes. It has the buffer meanwhile, and returns it then.
///
/// The operation happens, and is complete, at the same times whatever its rank does between the two calls; `planner/README.md`,
/// paragraph 27, says when. A rank goes on with its operations in each call in which it waits, and in calls that test or
/// complete requests.
///
/// A request that is dropped is completed first, so the drop of a receive waits for its message: [cancel](Self::cancel) one that
/// may have none. What goes wrong then is told to the world's error handler only; while its
/// thread panics it is given up instead, with its buffer. One that is leaked stays open: nobody else ever has its
/// buffer, and the world has failed for the others when its rank leaves.
///
/// ```
/// # fencepost_runtime::ranks(2).run(|world| {
/// let other = 1 - world.rank();
/// let receive = world.irecv::<u64>(other, 7)?;
/// let send = world.isend(other, 7, vec![world.rank() as u64; 1000])?;
/// // .. compute ..
/// let (values, status) = receive.wait()?;
/// assert_eq!((values, status.source), (vec![other as u64; 1000], Some(other)));
/// let (buffer, _) = send.wait()?; // it may be used again
/// assert_eq!(buffer.len(), 1000);
/// # Ok(()) }).unwrap();
/// ```
///
/// It belongs to its thread, as its world does:
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
    /// `None` only while it is completed, or given up.
    operation: Option<Operation<B>>,
    /// Whether a scope completes it, if nobody else does.
    is_scoped: bool,
}

/// The operation that a request completes.
enum Operation<B> {
    /// A send or a receive; `None` where it is complete from the beginning.
    Message(Option<Begun>, Held<B>),
    /// Another one.
    Other(Box<dyn Other<B>>),
    /// None any more: a call of its set has completed it, and unwound.
    Over(Completion<B>),
}

/// An operation that is completed in the call that waits for it.
pub(crate) trait Other<B> {
    /// Returns a rank that [`carry_out`](Self::carry_out) would wait for, and for what, in the
    /// plural; `None` if it would not wait.
    fn awaits(&mut self, endpoint: &mut Endpoint) -> Option<(usize, &'static str)>;

    /// Carries it out, where other ranks may wait for that. [`finish`](Self::finish) does so, too,
    /// unless it was done before.
    fn carry_out(&mut self, call: &Call);

    /// Completes it. A function of [`Request::map`] runs last.
    fn finish(self: Box<Self>, call: &Call) -> Completion<B>;

    /// It in words.
    fn words(&self) -> String;
}

/// What became of a request.
type Completion<B> = Result<(B, Status), Refused<B>>;

/// The source of the value that a request returns when it is complete.
enum Held<B> {
    /// The value itself.
    Here(B),
    /// The value in this box, which others write into until then.
    Boxed(NonNull<B>),
    /// What a function of the program makes of another one.
    Mapped(Box<dyn Taken<B>>),
}

/// A value that is held for a function of the program.
trait Taken<B> {
    /// Returns what the function makes of it.
    ///
    /// # Safety
    /// As [`Held::take`].
    unsafe fn take(self: Box<Self>) -> B;

    /// Drops both without a call of the function.
    ///
    /// # Safety
    /// As [`Held::take`].
    unsafe fn discard(self: Box<Self>);
}

impl<A, B, F: FnOnce(A) -> B> Taken<B> for (Held<A>, F) {
    unsafe fn take(self: Box<Self>) -> B {
        let (held, map) = *self;
        // SAFETY: the caller's.
        map(unsafe { held.take() })
    }

    unsafe fn discard(self: Box<Self>) {
        // SAFETY: the caller's.
        unsafe { self.0.discard() };
    }
}

impl<B> Held<B> {
    /// # Safety
    /// Nobody else accesses it any more.
    unsafe fn take(self) -> B {
        match self {
            Self::Here(value) => value,
            // SAFETY: it was a box, which was made into a pointer when the request was, and is taken back here only.
            Self::Boxed(value) => *unsafe { Box::from_raw(value.as_ptr()) },
            // SAFETY: the caller's.
            Self::Mapped(taken) => unsafe { taken.take() },
        }
    }

    /// Drops the value, where no function of the program may be called for it.
    ///
    /// # Safety
    /// As [`take`](Self::take).
    unsafe fn discard(self) {
        match self {
            // SAFETY: the caller's.
            Self::Mapped(taken) => unsafe { taken.discard() },
            // SAFETY: the caller's.
            other => drop(unsafe { other.take() }),
        }
    }
}

impl<B> Request<B> {
    fn new(world: &Rc<WorldCore>, begun: Option<Begun>, held: Held<B>) -> Self {
        Self { world: world.clone(), operation: Some(Operation::Message(begun, held)), is_scoped: false }
    }

    /// The same, which a scope completes if nobody else does.
    fn scoped(mut self) -> Self {
        self.is_scoped = true;
        self
    }

    /// A request of an operation that is completed in the call that waits for it.
    pub(crate) fn other(world: &Rc<WorldCore>, other: Box<dyn Other<B>>) -> Self {
        Self { world: world.clone(), operation: Some(Operation::Other(other)), is_scoped: false }
    }

    /// A request that is complete, and what became of it.
    fn over(world: &Rc<WorldCore>, completion: Completion<B>) -> Self {
        Self { world: world.clone(), operation: Some(Operation::Over(completion)), is_scoped: false }
    }

    /// Waits until the operation is complete. Returns the buffer and, of a receive, what was received.
    ///
    /// # Errors
    /// Those of the call that does the same at once, as [`World::recv`](crate::World::recv) or
    /// [`World::ssend`](crate::World::ssend). The buffer is given back; after `PROC_FAILED` the world has ended.
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

    /// Goes on with what this rank has begun, and returns whether [`wait`](Self::wait) would return at once: it has failed,
    /// or is complete. Always so of a get under a lock ([`Locked::rget`](crate::Locked::rget)), whose `wait` may wait for
    /// that lock.
    ///
    /// # Source
    /// MPI 4.1, section 3.7.3 (MPI_TEST, MPI_REQUEST_GET_STATUS).
    #[doc(alias = "MPI_Test")]
    pub fn test(&mut self) -> bool {
        if self.is_complete() {
            return true;
        }
        let world = self.world.clone();
        if !world.goes_on() {
            return true;
        }
        let endpoint = &mut *world.endpoint.borrow_mut();
        messages::progress(&world, endpoint);
        let is_complete = self.is_complete() || self.is_ready(endpoint);
        messages::flush(endpoint);
        is_complete
    }

    /// Cancels a receive that has taken nothing: it never takes anything, and its buffer is returned as it was.
    ///
    /// # Errors
    /// The request, which is as it was, where the receive has taken a message, or where it is no receive.
    ///
    /// # Source
    /// MPI 4.1, section 3.8.4 (MPI_CANCEL).
    #[doc(alias = "MPI_Cancel")]
    pub fn cancel(mut self) -> Result<B, Self> {
        if let Some(Operation::Message(Some(Begun::Receive(receive)), _)) = &self.operation
            && messages::cancel(&self.world, receive, || None)
            && let Some(Operation::Message(_, held)) = self.operation.take()
        {
            // SAFETY: the receive was forgotten, and this rank alone writes what it lands in.
            return Ok(unsafe { held.take() });
        }
        Err(self)
    }

    /// A request that returns what `map` makes of the buffer: so requests of several kinds are of one type, for a
    /// [`RequestSet`](crate::RequestSet).
    ///
    /// The call that completes the request calls `map`, after the operation. If `map` panics, that
    /// call unwinds and the buffer is lost; all other requests stay as they are. `map` is not
    /// called while its thread panics.
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

    /// Whether it was completed, as far as that is known without looking.
    fn is_complete(&self) -> bool {
        match &self.operation {
            Some(Operation::Message(Some(begun), _)) => begun.completion().is_complete(),
            Some(Operation::Other(_)) => false,
            Some(Operation::Message(None, _) | Operation::Over(_)) | None => true,
        }
    }

    /// Whether it is no message, and ready.
    fn is_ready(&mut self, endpoint: &mut Endpoint) -> bool {
        match &mut self.operation {
            Some(Operation::Other(other)) => other.awaits(endpoint).is_none(),
            _ => false,
        }
    }

    /// Whether it is no message, and waits for a call of its own rank.
    fn awaits_itself(&mut self, endpoint: &mut Endpoint) -> bool {
        match &mut self.operation {
            Some(Operation::Other(other)) => {
                other.awaits(endpoint).is_some_and(|(awaited, _)| awaited == self.world.rank)
            }
            _ => false,
        }
    }

    /// Carries it out, if it is no message.
    fn carry_out(&mut self, call: &Call) {
        if let Some(Operation::Other(other)) = &mut self.operation {
            other.carry_out(call);
        }
    }

    /// Whether somebody has to look whether it is ready.
    fn is_looked_at(&self) -> bool {
        matches!(self.operation, Some(Operation::Other(_)))
    }

    /// Has it added to this queue when it is complete, if it is a message.
    fn tell(&self, queue: &Rc<Queue>, place: usize) {
        match &self.operation {
            Some(Operation::Message(Some(begun), _)) => begun.completion().tell(queue, place),
            Some(Operation::Message(None, _) | Operation::Over(_)) => queue.push(place),
            Some(Operation::Other(_)) | None => {}
        }
    }

    /// The send or the receive that it is, if it is not complete from the beginning.
    fn begun(&self) -> Option<Begun> {
        match &self.operation {
            Some(Operation::Message(begun, _)) => begun.clone(),
            Some(Operation::Other(_) | Operation::Over(_)) | None => None,
        }
    }

    /// It in words.
    fn words(&self) -> String {
        match &self.operation {
            Some(Operation::Message(Some(begun), _)) => begun.words(),
            Some(Operation::Other(other)) => other.words(),
            Some(Operation::Message(None, _) | Operation::Over(_)) | None => {
                "a request that is complete".to_owned()
            }
        }
    }

    /// Waits until it is complete, or something is over; returns why it cannot be, if that is so.
    fn wait_until(&self, is_over: &mut dyn FnMut(&mut Endpoint) -> bool, call: &Call) -> Option<Lost> {
        match &self.operation {
            Some(Operation::Message(Some(begun), _)) if !self.is_complete() && self.world.goes_on() => {
                messages::complete(&self.world, begun, is_over, call)
            }
            _ => None,
        }
    }

    /// Waits until it is complete, or ready, or something is over; returns why it cannot be, if
    /// that is known.
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

    /// Completes it.
    fn completed(self, call: &Call) -> Result<(B, Status), Refused<B>> {
        let lost = self.wait_until(&mut |_| false, call);
        self.finished(lost, call)
    }

    /// Returns what became of it, once it is complete or the world has ended; `lost` is the reason for that, if the call knows it.
    fn finished(mut self, lost: Option<Lost>, call: &Call) -> Completion<B> {
        let outcome = match &self.operation {
            // In a function that the program has handed in, and that a protocol calls, this panics:
            // then the request has its buffer.
            Some(Operation::Message(Some(begun), _)) => messages::outcome(&self.world, begun, lost, call),
            _ => Ok(Status::default()),
        };
        match self.operation.take().expect("it is taken where a request ends") {
            Operation::Message(_, held) => {
                // SAFETY: it is complete, or nobody accesses its elements any more.
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

/// What a function of the program makes of a buffer.
fn mapped<B, C>(completion: Completion<B>, map: impl FnOnce(B) -> C) -> Completion<C> {
    match completion {
        Ok((buffer, status)) => Ok((map(buffer), status)),
        Err(refused) => {
            let (buffer, error) = refused.into_parts();
            Err(Refused::new(map(buffer), error))
        }
    }
}

/// An operation whose result is changed.
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
                    // SAFETY: nobody accesses it any more.
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

/// The error of a request of another world than its set.
#[cold]
fn foreign(world: &WorldCore, call: &Call) -> fencepost_planner::Error {
    let message = "a request of another world cannot be in this set: make one set for each world".to_owned();
    call.error(world, ErrorClass::Arg, message)
}
