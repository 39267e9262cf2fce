//! [`Epoch`]: an epoch whose operations may borrow their buffers.

use crate::collect::operation::TargetRegion;
use crate::collect::pending::{DatatypeGet, Into as Landing};
use crate::fence;
use crate::kernel::element::Element;
use crate::state::call::Call;
use crate::state::window::Window;
use fencepost_planner::ir::pattern::{Kind, Mode};
use fencepost_planner::{ErrorClass, Result};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::Location;

/// An epoch that ends when its closure does: see [`Window::epoch`]. It derefs to the window, so all its calls are here too.
pub struct Epoch<'scope, 'env: 'scope, T: Element> {
    window: &'env Window<T>,
    scope: PhantomData<Cell<&'scope ()>>,
}

/// A get into a borrowed buffer.
#[must_use = "a get does nothing until `.from(target, region)`"]
pub struct BorrowingGet<'scope, 'env: 'scope, T: Element> {
    epoch: &'scope Epoch<'scope, 'env, T>,
    into: &'env mut [T],
}

impl<'scope, 'env, T: Element> Epoch<'scope, 'env, T> {
    /// Get elements into `into`, which the epoch borrows until it is over.
    pub fn get_into(&'scope self, into: &'env mut [T]) -> BorrowingGet<'scope, 'env, T> {
        BorrowingGet { epoch: self, into }
    }
}

impl<T: Element> BorrowingGet<'_, '_, T> {
    /// From these elements of the target's window.
    ///
    /// # Errors
    /// As [`Put::to`](crate::Put::to).
    #[track_caller]
    pub fn from(self, target: impl Into<Option<usize>>, region: impl Into<TargetRegion>) -> Result<()> {
        let handler = &self.epoch.window.core().handler;
        handler.report(self.got(target.into(), region.into(), Location::caller()))
    }

    fn got(
        self,
        target: Option<usize>,
        region: TargetRegion,
        site: &'static Location<'static>,
    ) -> Result<()> {
        let Some(target) = target else { return Ok(()) };
        let core = self.epoch.window.core();
        core.world.alive()?;
        let remote = core.region(target, region, self.into.len(), site)?;
        if core.closed.get() {
            let message =
                "NOSUCCEED was asserted at the last fence: no operation may follow it before the next one";
            return Err(core.error(ErrorClass::Assert, message.into(), site));
        }
        if !remote.is_empty() {
            core.note(Kind::Get, target, remote.size(), false, Mode::Auto, site);
            let landing = Landing::Borrowed(self.into.as_mut_ptr().cast());
            let sequence = core.world.next_sequence();
            let get = DatatypeGet { remote, landing, site, mode: core.asked(Mode::Auto) };
            core.pending(|pending| pending.push(target, get, sequence));
        }
        Ok(())
    }
}

impl<T: Element> Deref for Epoch<'_, '_, T> {
    type Target = Window<T>;
    fn deref(&self) -> &Window<T> {
        self.window
    }
}

/// Collect, then fence; where the closure fails or unwinds, nothing that it collected is left.
pub(crate) fn run<'env, T: Element, R>(
    window: &'env mut Window<T>,
    call: &Call,
    operations: impl for<'scope> FnOnce(&'scope Epoch<'scope, 'env, T>) -> Result<R>,
) -> Result<R> {
    /// A closure that unwinds leaves no pending get behind, which names a borrowed buffer; and this rank takes part in
    /// the fence, so that the others learn of it.
    struct Unwound<'w, T: Element>(&'w Window<T>, &'w Call);
    impl<T: Element> Drop for Unwound<'_, T> {
        fn drop(&mut self) {
            let (core, call) = (self.0.core(), self.1);
            core.discard();
            let error = call.error(&core.world, ErrorClass::Other, "the closure of the epoch panicked");
            // The error is for the others: this rank is unwinding.
            core.world.calls.begin();
            drop(fence::fail(&core.world, &[&**core], call, error));
            core.world.calls.leave();
        }
    }
    let window: &'env Window<T> = window;
    let core = window.core();
    core.world.calls.enter();
    let unwound = Unwound(window, call);
    let epoch = Epoch { window, scope: PhantomData };
    let result = operations(&epoch);
    std::mem::forget(unwound);
    let (value, failed) = match result {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error)),
    };
    let own = failed.is_some();
    if own {
        core.discard();
    }
    core.world.calls.begin();
    let ended = fence::fence(&core.world, &[&**core], call, failed);
    core.world.calls.leave();
    // The closure's own error was not found by this call.
    if own {
        ended?
    } else {
        core.handler.report(ended)?
    }
    value.ok_or_else(|| {
        call.error(&core.world, ErrorClass::Intern, "internal error: a failed epoch returned success")
    })
}
