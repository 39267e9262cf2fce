//! [`Epoch`]: an epoch whose operations may borrow their buffers.

use crate::collect::operation::TargetRegion;
use crate::collect::pending::{Get as One, Into as Landing};
use crate::collect::ticket::Ticket;
use crate::fence;
use crate::kernel::element::Element;
use crate::protocol::bounds::in_slice;
use crate::state::call::Call;
use crate::state::window::Window;
use crate::state::window_core::WindowCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::{Error, ErrorClass, Result};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::Location;

/// An epoch that ends together with its closure: see [`Window::epoch`] and
/// [`Window::epoch_between`].
///
/// An `Epoch` derefs to its window or its [`Access`](crate::Access), so it has all calls of a
/// window or an access.
pub struct Epoch<'scope, 'env: 'scope, T: Element, C = &'env Window<T>> {
    pub(super) window: &'env Window<T>,
    pub(super) calls: C,
    pub(super) landings: RefCell<Vec<Ticketed<'env, T>>>,
    pub(super) scope: PhantomData<Cell<&'scope ()>>,
}

/// A ticket, and the buffer for its elements.
pub(super) type Ticketed<'env, T> = (Ticket<T>, &'env mut [T]);

/// The buffer that a call may borrow and write elements into.
///
/// It is a mutable reference to a slice, array or vector, which the call fills. Or it is a pair of
/// such a reference and a range or [`Datatype`], which names the elements that the call fills.
///
/// ```
/// # use fencepost_planner::datatype::Datatype;
/// # fencepost_runtime::ranks(1).run(|world| {
/// let mut u = world.window::<u32>(3)?;
/// u.copy_from_slice(&[7, 8, 9]);
/// let mut values = [0; 9];
/// let column = Datatype::nest(1, &[(3, 3)], 1)?; // of three rows of three
/// u.epoch(|epoch| epoch.fetch_into(0, 0, (&mut values, &column)))?;
/// assert_eq!(values, [0, 7, 0, 0, 8, 0, 0, 9, 0]);
/// # Ok(()) }).unwrap();
/// ```
///
/// The other elements stay unchanged. Elements are stored in the order of the datatype. So an
/// element that the datatype names twice holds the later value, as in a section of a window.
#[diagnostic::on_unimplemented(
    message = "elements of `{T}` cannot land in `{Self}`",
    note = "give a mutable reference to a slice, array or `Vec` of elements (`&mut values`, `&mut values[..]`), or a pair of one and a range or `Datatype` that names elements of it"
)]
pub trait Destination<'env, T: Element> {
    /// Returns the buffer, and also the elements to fill if these are not all elements of the
    /// buffer.
    #[doc(hidden)]
    fn buffer(self) -> (&'env mut [T], Option<Datatype>);
}

impl<'env, T: Element, V: AsMut<[T]> + ?Sized> Destination<'env, T> for &'env mut V {
    fn buffer(self) -> (&'env mut [T], Option<Datatype>) {
        (self.as_mut(), None)
    }
}

impl<'env, T: Element, V: AsMut<[T]> + ?Sized, D: Into<Datatype>> Destination<'env, T> for (&'env mut V, D) {
    fn buffer(self) -> (&'env mut [T], Option<Datatype>) {
        (self.0.as_mut(), Some(self.1.into()))
    }
}

impl<'scope, 'env, T: Element> Epoch<'scope, 'env, T> {
    /// Gets elements of the target's window into a buffer. The epoch borrows the buffer until the
    /// epoch is over.
    ///
    /// `epoch.fetch_into(target, 0, &mut values)` fills the whole buffer. `epoch.fetch_into(target,
    /// 0, (&mut values, &column))` fills some elements of the buffer. The buffer holds the elements
    /// when the epoch has ended.
    ///
    /// # Errors
    /// As [`Put::to`](crate::Put::to).
    #[track_caller]
    #[inline(always)]
    pub fn fetch_into(
        &'scope self,
        target: impl Into<Option<usize>>,
        region: impl Into<TargetRegion>,
        into: impl Destination<'env, T>,
    ) -> Result<()> {
        let site = Location::caller();
        let (target, region, (into, elements)) = (target.into(), region.into(), into.buffer());
        let TargetRegion::At(at) = region else {
            return self.slow_path((into, elements), target, region, site);
        };
        // A region that is only a displacement owns nothing that has to be dropped.
        std::mem::forget(region);
        if let ([into], None, Some(target)) = (&mut *into, &elements, target)
            && let into = std::ptr::from_mut(into).expose_provenance()
            && One::reaches(into)
            && self.window.core().get_one(target, at, into, true)
        {
            return Ok(());
        }
        self.slow_path((into, elements), target, TargetRegion::At(at), site)
    }

    /// Collects a get that does not take the fast path.
    #[cold]
    #[inline(never)]
    fn slow_path(
        &self,
        (into, elements): (&'env mut [T], Option<Datatype>),
        target: Option<usize>,
        region: TargetRegion,
        site: &'static Location<'static>,
    ) -> Result<()> {
        let (core, buffer) = (self.window.core(), (into.as_mut_ptr().cast(), into.len()));
        core.handler.report(core.borrowed(buffer, elements, target, region, site))
    }
}

impl<'scope, T: Element, C> Epoch<'scope, '_, T, C> {
    /// Returns this rank's part of the window.
    pub fn own(&'scope self) -> &'scope [T] {
        self.window
    }
}

impl WindowCore {
    /// Collects a get into a buffer that is borrowed until the epoch is over. The first arguments
    /// are the address of the buffer, its number of elements, and the elements to fill if these are
    /// not all elements of the buffer.
    fn borrowed(
        &self,
        (to, len): (*mut u8, usize),
        elements: Option<Datatype>,
        target: Option<usize>,
        region: TargetRegion,
        site: &'static Location<'static>,
    ) -> Result<()> {
        let elements = elements.unwrap_or_else(|| Datatype::run(0..len));
        in_slice(&elements, len).map_err(|(class, message)| self.error(class, message, site))?;
        let Some(target) = target else { return Ok(()) };
        self.world.alive()?;
        self.may_collect(site)?;
        // After an access, the first get opens the fast path again for later gets.
        let _ = self.is_short();
        let remote = self.region(target, region, elements.size(), site)?;
        self.may_follow(site)?;
        if !remote.is_empty() {
            return self.ask(target, remote, Landing::Borrowed(to, elements), Mode::Auto, site);
        }
        Ok(())
    }
}

impl<T: Element, C> Deref for Epoch<'_, '_, T, C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.calls
    }
}

/// Runs the closure, then the fence. If the closure fails or unwinds, all operations that it
/// collected are discarded.
pub(crate) fn run<'env, T: Element, R>(
    window: &'env mut Window<T>,
    call: &Call,
    operations: impl for<'scope> FnOnce(&'scope Epoch<'scope, 'env, T>) -> Result<R>,
) -> Result<R> {
    let window: &'env Window<T> = window;
    let core = window.core();
    core.world.calls.enter();
    let unwound = Unwound(core, call);
    let epoch = Epoch { window, calls: window, landings: RefCell::default(), scope: PhantomData };
    let result = operations(&epoch);
    std::mem::forget(unwound);
    let (value, failed) = match result {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error)),
    };
    end(core, call, failed)?;
    value.ok_or_else(|| {
        call.error(&core.world, ErrorClass::Intern, "internal error: a failed epoch returned success")
    })
}

/// Cleans up after a closure that unwinds. Discards the pending gets into borrowed buffers, and
/// takes part in the fence with an error, so that the other ranks return an error.
struct Unwound<'w>(&'w WindowCore, &'w Call);

impl Drop for Unwound<'_> {
    fn drop(&mut self) {
        let Self(core, call) = self;
        core.discard();
        let error = call.error(&core.world, ErrorClass::Other, "the closure of the epoch panicked");
        // The error is for the other ranks. This rank does not return it, since it unwinds.
        core.world.calls.begin();
        drop(fence::fail(&core.world, &[core], call, error));
        core.world.calls.leave();
    }
}

/// Fences the epoch. `failed` is the error that the closure returned, if any.
fn end(core: &WindowCore, call: &Call, failed: Option<Error>) -> Result<()> {
    let own = failed.is_some();
    if own {
        core.discard();
    }
    core.world.calls.begin();
    let ended = fence::fence(&core.world, &[core], call, failed);
    core.world.calls.leave();
    // The handler gets only errors that this call found, and not the closure's own error.
    if own { ended } else { core.handler.report(ended) }
}
