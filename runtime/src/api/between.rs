//! [`Window::epoch_between`]: an [`Epoch`] between some ranks.

use crate::api::access::{Access, started};
use crate::api::group::Group;
use crate::api::scoped::Epoch;
use crate::collect::lent::Lent;
use crate::collect::operation::TargetRegion;
use crate::kernel::element::Element;
use crate::posts;
use crate::state::call::Call;
use crate::state::window::Window;
use crate::state::window_core::WindowCore;
use fencepost_planner::Result;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;

impl<T: Element> Window<T> {
    /// Runs an epoch between some ranks, in one call.
    ///
    /// The call starts an access to `targets`, runs the closure, posts the window to `sources`,
    /// completes the access, and waits. Gets of the epoch may store their elements in buffers that
    /// the epoch borrows.
    ///
    /// Gets of the sources read *M*, the contents of the window when the closure has returned. The
    /// closure can only read the window.
    ///
    /// ```
    /// # fencepost_runtime::ranks(3).run(|world| {
    /// // Each rank puts its element to the next rank, and reads the element of the next rank.
    /// let (me, mut u) = (world.rank(), world.window::<usize>(2)?);
    /// u[0] = me;
    /// let [next, before] = [world.group([(me + 1) % 3])?, world.group([(me + 2) % 3])?];
    /// let mut seen = [0];
    /// u.epoch_between(&before, &next, |epoch| {
    ///     epoch.put(&epoch.own()[0..1]).to((me + 1) % 3, 1)?;
    ///     epoch.fetch_into((me + 1) % 3, 0, &mut seen)
    /// })?;
    /// assert_eq!((u[1], seen[0]), ((me + 2) % 3, (me + 1) % 3));
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The error that the closure returns. In that case the access is dropped, so the waits of its
    /// targets fail. Otherwise as [`Window::start`], [`Window::post`], [`Access::complete`] and
    /// [`Exposed::wait`](crate::Exposed::wait).
    #[track_caller]
    pub fn epoch_between<'env, R>(
        &'env mut self,
        sources: &Group,
        targets: &Group,
        operations: impl for<'scope> FnOnce(&'scope Epoch<'scope, 'env, T, Access<T>>) -> Result<R>,
    ) -> Result<R> {
        let call = Call::named(0, "Window::epoch_between");
        let window: &'env Window<T> = self;
        let core = window.core();
        let ranks = core.handler.report(sources.of(core, call.site))?;
        let calls = started(window, targets, call.site)?;
        let epoch = Epoch { window, calls, landings: RefCell::default(), scope: PhantomData };
        let unwound = Unwound { access: &epoch.calls, core, ranks, call: &call };
        let result = operations(&epoch);
        std::mem::forget(unwound);
        let posted = core.handler.report(posts::post(core, ranks, Lent::Whole, call.site));
        let completed = match &result {
            Ok(_) if posted.is_ok() => epoch.calls.end(&call),
            _ => {
                epoch.calls.give_up();
                Ok(())
            }
        };
        posted?;
        let waited = posts::wait(core, &call);
        // The errors are reported after the wait. A handler may unwind, and then the window must no
        // longer be posted.
        let completed = core.handler.report(completed);
        let waited = core.handler.report(waited);
        let value = result?;
        completed?;
        waited?;
        for (ticket, into) in epoch.landings.take() {
            into.copy_from_slice(&ticket.take()?);
        }
        Ok(value)
    }
}

impl<'env, T: Element> Epoch<'_, 'env, T, Access<T>> {
    /// Gets elements of the target's window into a buffer: `epoch.fetch_into(target, 0, &mut
    /// values)`. The epoch borrows the buffer until the epoch is over. The buffer holds the
    /// elements when the epoch has ended.
    ///
    /// # Errors
    /// As [`Access::fetch`]; also `SIZE` if the buffer has another number of elements.
    #[track_caller]
    pub fn fetch_into(
        &self,
        target: impl Into<Option<usize>>,
        region: impl Into<TargetRegion>,
        into: &'env mut [T],
    ) -> Result<()> {
        let site = Location::caller();
        let core = self.window.core();
        let remote = region.into().datatype(into.len());
        let fetched = core
            .sizes(into.len(), remote.size(), site)
            .and_then(|()| self.calls.fetched(target.into(), TargetRegion::Type(remote), site));
        let ticket = core.handler.report(fetched)?;
        self.landings.borrow_mut().push((ticket, into));
        Ok(())
    }
}

/// Completes the calls of an epoch whose closure unwinds. This rank still makes its post, since the
/// posts between each pair of ranks are counted. Its access is dropped, and other ranks get the
/// error.
struct Unwound<'w, T: Element> {
    access: &'w Access<T>,
    core: &'w WindowCore,
    ranks: &'w Rc<[usize]>,
    call: &'w Call,
}

impl<T: Element> Drop for Unwound<'_, T> {
    fn drop(&mut self) {
        let Self { access, core, ranks, call } = self;
        let posted = posts::post(core, ranks, Lent::Whole, call.site);
        // The access is dropped before the wait, since ranks that unwind at the same time wait for
        // each other's accesses.
        access.give_up();
        if posted.is_ok() {
            drop(posts::wait(core, call));
        }
    }
}
