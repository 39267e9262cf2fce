//! [`ErrorHandler`]: what is done with an error before the call that found it returns it.
//!
//! Public calls end in [`Handler::report`], where nothing is borrowed. A reported error is marked, so each is reported
//! once, however many calls it passes through.

use fencepost_planner::{Error, Result};
use std::cell::RefCell;
use std::fmt;
use std::io::Write as _;
use std::rc::Rc;

/// The treatment of the errors of a world's or a window's calls before they are returned; see [`World::on_error`] and
/// [`Window::on_error`].
///
/// [`World::on_error`]: crate::World::on_error
/// [`Window::on_error`]: crate::Window::on_error
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum ErrorHandler {
    /// Nothing is done (MPI_ERRORS_RETURN).
    #[default]
    Return,
    /// The error is printed on standard error and the process ends, with exit code 1 and without unwinding; ranks of the
    /// same process end with it, those of others are told that this one has died (MPI_ERRORS_ABORT, as far as the process
    /// goes).
    Abort,
    /// A function sees the error first; made by [`ErrorHandler::call`].
    Call(Rc<dyn Fn(&Error)>),
}

impl ErrorHandler {
    /// Calls `told` with each error, on the rank that found it. The call that found the error returns it afterwards,
    /// unchanged.
    ///
    /// ```
    /// # use fencepost_planner::ErrorClass;
    /// # use fencepost_runtime::ErrorHandler;
    /// # use std::{cell::Cell, rc::Rc};
    /// fencepost_runtime::ranks(2).run(|world| {
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
}

impl fmt::Debug for ErrorHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Return => "Return",
            Self::Abort => "Abort",
            Self::Call(_) => "Call(..)",
        })
    }
}

/// A world's or a window's handler.
#[derive(Default)]
pub(crate) struct Handler(RefCell<ErrorHandler>);

impl Handler {
    pub(crate) fn set(&self, handler: ErrorHandler) {
        // The one before is dropped when nothing is borrowed: it may have things of the user's.
        drop(self.0.replace(handler));
    }

    pub(crate) fn get(&self) -> ErrorHandler {
        self.0.borrow().clone()
    }

    /// Reports the error of `result`, if there is one that was not reported before.
    #[inline]
    pub(crate) fn report<R>(&self, result: Result<R>) -> Result<R> {
        result.map_err(|error| self.reported(error))
    }

    /// Reports this error, unless it was reported before.
    #[cold]
    pub(crate) fn reported(&self, mut error: Error) -> Error {
        match self.get() {
            ErrorHandler::Return => {}
            ErrorHandler::Abort => abort(&error),
            ErrorHandler::Call(told) => {
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
    // One write, so that lines of several processes do not mix. Nobody may be there to read it.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
    if is_secondary_failure(error)
        && let Some(member) = fencepost_job::joined()
    {
        member.report_secondary_failure();
    }
    std::process::exit(1)
}

/// Whether an error only says that another rank has failed.
pub(crate) fn is_secondary_failure(error: &Error) -> bool {
    error.is_secondary()
}
