//! [`ErrorHandler`]: handles an error before the call that found the error returns it.
//!
//! Public calls end in [`Handler::report`], and nothing is borrowed while `report` runs. A reported
//! error is marked, so it is reported once, even if it passes through several calls.

use crate::kernel::contained::contained;
use fencepost_planner::{Error, Result};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::Write as _;
use std::rc::Rc;

/// Handles the errors of a world's or a window's calls before they are returned; see
/// [`World::on_error`] and [`Window::on_error`].
///
/// ```
/// # use fencepost_runtime::ErrorHandler;
/// # fencepost_runtime::ranks(2).run(|world| {
/// world.on_error(ErrorHandler::Abort);
/// let u = world.window::<u8>(1)?; // an error of one of these two ends the process
/// world.barrier()?;
/// u.on_error(ErrorHandler::Return); // `u.fence()` returns its errors again
/// # Ok(()) }).unwrap();
/// ```
///
/// [`World::on_error`]: crate::World::on_error
/// [`Window::on_error`]: crate::Window::on_error
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum ErrorHandler {
    /// Nothing is done (MPI_ERRORS_RETURN).
    #[default]
    Return,
    /// The error is printed on standard error and the process ends, with exit code 1 and without
    /// unwinding. Ranks of the same process end with it. Ranks of other processes are notified that
    /// this process has died. This is MPI_ERRORS_ABORT for one process.
    Abort,
    /// A function is called with the error before the error is returned. Made by
    /// [`ErrorHandler::call`].
    #[doc(hidden)]
    Call(Rc<dyn Fn(&Error)>),
    /// A function is called with the error before the error is returned. Calls with conflicts
    /// continue. Made by [`ErrorHandler::pass_conflicts`].
    #[doc(hidden)]
    Pass(Rc<dyn Fn(&Error)>),
}

impl ErrorHandler {
    /// Returns a handler that calls `told` with each error, on the rank that found it. The call
    /// that found the error returns it afterwards, unchanged.
    ///
    /// ```
    /// # use fencepost_planner::ErrorClass;
    /// # use fencepost_runtime::ErrorHandler;
    /// # use std::{cell::Cell, rc::Rc};
    /// # use fencepost_runtime as fencepost;
    /// fencepost::ranks(2).run(|world| {
    ///     let seen = Rc::new(Cell::new(None));
    ///     let see = seen.clone();
    ///     world.on_error(ErrorHandler::call(move |error| see.set(Some(error.class()))));
    ///     let u = world.window::<f64>(4)?; // it has the world's handler
    ///     assert!(u.put([1.0]).to(2, 0).is_err());
    ///     assert_eq!(seen.get(), Some(ErrorClass::Rank));
    ///     Ok(())
    /// })
    /// # .unwrap();
    /// ```
    pub fn call(told: impl Fn(&Error) + 'static) -> Self {
        Self::Call(Rc::new(told))
    }

    /// Returns a handler like [`call`](Self::call) that also lets conflicts pass if this rank finds
    /// them ([`Ranks::check`](crate::Ranks::check)).
    ///
    /// Conflicts are only reported to `told`. The call that found them then does the same as an
    /// unchecked call, and returns no error for them. So a program that is known to have conflicts
    /// can run to its end. No other rank is notified, except by the
    /// [report](crate::Ranks::check_report).
    ///
    /// A conflict is found by the rank that owns the elements, or under locks by the later of the
    /// two conflicting ranks. If `told` panics, the handler lets no conflict pass.
    ///
    /// ```
    /// # use fencepost_runtime::{Check, ErrorHandler};
    /// # use std::{cell::Cell, rc::Rc};
    /// # use fencepost_runtime as fencepost;
    /// fencepost::ranks(2).check(Check::Conflicts).run(|world| {
    ///     let seen = Rc::new(Cell::new(0));
    ///     let see = seen.clone();
    ///     world.on_error(ErrorHandler::pass_conflicts(move |_| see.set(see.get() + 1)));
    ///     let mut u = world.window::<usize>(4)?;
    ///     u.put([world.rank() + 7]).to(1, 3)?;
    ///     u.fence()?;
    ///     assert_eq!((u[3], seen.get()), if world.rank() == 1 { (8, 1) } else { (0, 0) });
    ///     Ok(())
    /// })
    /// # .unwrap();
    /// ```
    pub fn pass_conflicts(told: impl Fn(&Error) + 'static) -> Self {
        Self::Pass(Rc::new(told))
    }
}

impl fmt::Debug for ErrorHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Return => "Return",
            Self::Abort => "Abort",
            Self::Call(_) => "Call(..)",
            Self::Pass(_) => "Pass(..)",
        })
    }
}

/// The handler of a world or a window, and whether a call has returned an error.
#[derive(Default)]
pub(crate) struct Handler(RefCell<ErrorHandler>, Cell<bool>);

impl Handler {
    pub(crate) fn set(&self, handler: ErrorHandler) {
        // The earlier handler is dropped while nothing is borrowed, since it may own values of the
        // user.
        drop(self.0.replace(handler));
    }

    pub(crate) fn get(&self) -> ErrorHandler {
        self.0.borrow().clone()
    }

    /// Returns whether a call has returned an error to the program.
    pub(crate) fn has_reported(&self) -> bool {
        self.1.get()
    }

    /// Returns whether this handler lets conflicts pass.
    pub(crate) fn passes(&self) -> bool {
        matches!(*self.0.borrow(), ErrorHandler::Pass(_))
    }

    /// Reports a conflict to the handler if the handler lets conflicts pass. Returns whether this
    /// conflict passes. Does not unwind, since a protocol is under way.
    pub(crate) fn lets_pass(&self, error: &Error) -> bool {
        let ErrorHandler::Pass(told) = self.get() else { return false };
        contained(|| told(error))
    }

    /// Reports the error of `result`, if there is one that was not reported before.
    #[inline]
    pub(crate) fn report<R>(&self, result: Result<R>) -> Result<R> {
        result.map_err(|error| self.reported(error))
    }

    /// Reports this error, unless it was reported before.
    #[cold]
    pub(crate) fn reported(&self, mut error: Error) -> Error {
        self.1.set(true);
        match self.get() {
            ErrorHandler::Return => {}
            ErrorHandler::Abort => abort(&error),
            ErrorHandler::Call(told) | ErrorHandler::Pass(told) => {
                if error.report_once() {
                    told(&error);
                }
            }
        }
        error
    }
}

fn abort(error: &Error) -> ! {
    let rank = error.rank().map_or(String::new(), |rank| format!(" of rank {rank}"));
    let line = format!("fencepost: an error{rank} ends the process: {error:?}\n");
    // One write, so that lines of several processes do not mix. A failure to write is ignored.
    let _ = std::io::stderr().write_all(line.as_bytes());
    #[cfg(not(loom))]
    if is_secondary_failure(error)
        && let Some(member) = fencepost_job::joined()
    {
        member.report_secondary_failure();
    }
    std::process::exit(1)
}

/// Returns whether an error only reports that another rank has failed.
pub(crate) fn is_secondary_failure(error: &Error) -> bool {
    error.is_secondary()
}
