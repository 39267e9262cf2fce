//! [`Scope`]: requests that borrow their buffers.

use crate::api::messages::Message;
use crate::api::requests::{Held, Request};
use crate::api::scoped::Destination;
use crate::collect::operation::SliceSource;
use crate::kernel::element::{Element, element_type};
use crate::messages::state::status::{Sources, Tags};
use crate::messages::{self, Begun, Outgoing};
use crate::protocol::unwind::AbortOnUnwind;
use crate::state::call::Call;
use crate::state::world::World;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::{Loss, Lost};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A scope in which requests borrow their buffers: see [`World::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    world: &'env World,
    begun: RefCell<Vec<Part<'env>>>,
    scope: PhantomData<Cell<&'scope ()>>,
}

/// A message that was begun in a scope, with the elements that it sends.
struct Part<'env> {
    begun: Begun,
    _source: Option<Box<dyn Kept + 'env>>,
}

/// The reason for cancelling a receive at the end of its scope.
const CANCELLED: &str =
    "the receive was cancelled, since the closure of its scope returned an error: it has taken nothing";

/// A value that is kept until a request is complete.
trait Kept {}

/// The source of a send, and the bytes that were packed from this source. The source is in a
/// separate allocation, which other ranks may read.
struct Source<S>(NonNull<S>, Vec<u8>);

impl<S> Kept for Source<S> {}

impl<S> Drop for Source<S> {
    fn drop(&mut self) {
        // SAFETY: the pointer was made of a box. The scope keeps the value until no other code
        // reads it any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl World {
    /// Opens a scope in which requests borrow their buffers. A buffer is a slice, or the elements
    /// of a slice that a range or a datatype names.
    ///
    /// When the call returns, all requests of the scope are complete, even those that were leaked
    /// or dropped, and the buffers are free. The drop of a request does not wait in a scope. A
    /// request of a scope returns only its status. A value that was passed to a send is dropped
    /// after the send is complete, at the end of a later call of the scope. If that drop panics,
    /// the later call unwinds after it has begun its own request.
    ///
    /// ```
    /// # use fencepost_planner::datatype::Datatype;
    /// # fencepost_runtime::ranks(2).run(|world| {
    /// let other = 1 - world.rank();
    /// let (values, mut halo) = ([world.rank() as u32; 6], [0; 8]);
    /// world.scope(|scope| {
    ///     let _halo = scope.irecv_into(other, 0, (&mut halo, 1..7))?;
    ///     let _values = scope.message(other, 0).isend(&values)?;
    ///     Ok(())
    /// })?;
    /// assert_eq!(halo[1..7], [other as u32; 6]);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// The buffer of a receive cannot be read before the scope is over:
    ///
    /// ```compile_fail,E0502
    /// # fencepost_runtime::ranks(1).run(|world| {
    /// let mut came = [0u32; 4];
    /// world.scope(|scope| {
    ///     let receive = scope.irecv_into(0, 0, &mut came)?;
    ///     println!("{came:?}");
    ///     Ok(receive)
    /// })?.wait()?;
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// If the closure returns an error, `scope` returns that error. In that case receives that have
    /// taken no message are cancelled, and waiting for their requests returns `OTHER`. The other
    /// requests are completed. If the closure succeeds, `scope` returns the first error of a
    /// request that was not waited for. If the closure panics, the world ends.
    #[track_caller]
    pub fn scope<'env, R>(
        &'env self,
        calls: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        let scope = Scope { world: self, begun: RefCell::default(), scope: PhantomData };
        let call = Call::named(0, "World::scope");
        let ends = Ends(&scope, &call);
        let result = calls(&scope);
        std::mem::forget(ends);
        let completed = scope.complete(result.is_err(), &call);
        let value = result?;
        self.core().handler.report(completed).map(|()| value)
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Begins a message as [`World::message`] does. [`isend`](Message::isend) begins to send the
    /// message with borrowed elements.
    pub fn message(&'scope self, to: impl Into<Option<usize>>, tag: u32) -> Message<'scope, Self> {
        Message::new(self, to.into(), tag)
    }

    /// Begins to receive into borrowed elements as [`World::irecv_into`] does.
    ///
    /// # Errors
    /// As [`World::irecv_into`]; also `DISP` for elements that the slice does not have.
    #[track_caller]
    pub fn irecv_into<T: Element>(
        &'scope self,
        from: impl Into<Sources>,
        tag: impl Into<Tags>,
        into: impl Destination<'env, T>,
    ) -> Result<Request<()>> {
        let call = Call::named(0, "Scope::irecv_into");
        let core = self.world.core();
        let begun = self.world.room(into, &call).and_then(|room| {
            let wanted = (from.into(), tag.into(), room);
            // SAFETY: the elements are in a slice of `T` that is borrowed for longer than this
            // scope is open, and the scope completes the receive, or forgets it.
            unsafe { messages::begin_receive::<T>(core, wanted, &call) }
        });
        let begun = core.handler.report(begun)?;
        self.keep(begun.as_ref(), None);
        Ok(Request::new(core, begun, Held::Here(())).scoped())
    }

    /// Keeps a message that was begun, with its source, until the message is complete.
    fn keep(&self, begun: Option<&Begun>, source: Option<Box<dyn Kept + 'env>>) {
        let Some(begun) = begun else { return };
        let mut over = Vec::new();
        {
            let all = &mut *self.begun.borrow_mut();
            if all.len() == all.capacity() {
                over.extend(all.extract_if(.., |part| part.begun.is_over()));
            }
            all.push(Part { begun: begun.clone(), _source: source });
        }
        // Dropping a source runs the program's code, which may panic or call this library, so this
        // drop comes last.
        drop(over);
    }

    /// Completes all requests that were begun. If `cancels`, receives that have taken no message
    /// are cancelled instead. Returns the first error that no request has returned.
    fn complete(&self, cancels: bool, call: &Call) -> Result<()> {
        let core = self.world.core();
        let mut result = Ok(());
        let guard = AbortOnUnwind("a scope of requests");
        for part in &*self.begun.borrow() {
            let begun = &part.begun;
            if begun.is_over() {
                continue;
            }
            let why = || Some((ErrorClass::Other, CANCELLED.to_owned()));
            if let Begun::Receive(receive) = begun
                && cancels
                && messages::cancel(core, receive, why)
            {
                continue;
            }
            let lost = if core.life.goes_on() {
                messages::complete(core, begun, &mut |_| false, call)
            } else {
                None
            };
            let outcome = messages::outcome(core, begun, lost, call);
            result = result.and(outcome.map(drop));
        }
        guard.over();
        result
    }
}

impl<'scope, 'env> Message<'scope, Scope<'scope, 'env>> {
    /// Begins to send borrowed elements: a slice, or a pair of a slice and a range or
    /// [`Datatype`](fencepost_planner::datatype::Datatype).
    ///
    /// # Errors
    /// As [`isend`](Message::isend) in a world; also `DISP` for elements that the slice does not
    /// have.
    #[track_caller]
    pub fn isend<T: Element>(self, elements: impl SliceSource<T> + 'env) -> Result<Request<()>> {
        let Self { sender: scope, to, tag, mode } = self;
        let call = Call::named(0, "Message::isend");
        let core = scope.world.core();
        let mut source = Source(NonNull::from(Box::leak(Box::new(elements))), Vec::new());
        // SAFETY: the pointer comes from a leaked box, and no code writes the value.
        let elements = unsafe { source.0.as_ref() };
        let packed = &mut source.1;
        let begun =
            scope.world.bytes(elements.data().bytes(), size_of::<T>(), packed, &call).and_then(|bytes| {
                let Some(to) = to else { return core.alive().map(|()| None) };
                let outgoing = Outgoing { to, tag, element: element_type::<T>(), bytes, mode };
                // SAFETY: the elements are borrowed for longer than this scope is open, or the
                // scope keeps them. The scope completes the send or takes the send back.
                unsafe { messages::begin_send(core, &outgoing, &call) }
            });
        let begun = core.handler.report(begun)?;
        scope.keep(begun.as_ref(), Some(Box::new(source)));
        Ok(Request::new(core, begun, Held::Here(())).scoped())
    }
}

/// Ends a scope whose closure unwinds. The world ends, and no rank accesses the borrowed buffers
/// any more.
struct Ends<'s, 'scope, 'env>(&'s Scope<'scope, 'env>, &'s Call);

impl Drop for Ends<'_, '_, '_> {
    fn drop(&mut self) {
        let core = self.0.world.core();
        for Part { begun, .. } in self.0.begun.borrow().iter().filter(|part| !part.begun.is_over()) {
            let what = format!("rank {} left a scope of requests by a panic", core.rank);
            let lost = Lost { rank: core.rank, how: Loss::Ended(what) };
            drop(messages::outcome(core, begun, Some(lost), self.1));
        }
    }
}
