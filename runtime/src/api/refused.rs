//! [`Refused`]: the error of a call that took a value, together with that value.

use crate::state::handler::Handler;
use fencepost_planner::Error;
use std::fmt;

/// The error of a call that has taken a value. The error returns that value.
///
/// `?` converts a `Refused` to an [`Error`], and drops the value.
///
/// ```
/// # use fencepost_planner::{ErrorClass, datatype::Datatype};
/// # fencepost_runtime::ranks(1).run(|world| {
/// let u = world.window::<u32>(4)?;
/// let refused = u.post_part(&world.group([0])?, 2..5).expect_err("there are four elements");
/// assert_eq!(refused.error().class(), ErrorClass::Disp);
/// let (u, _) = refused.into_parts();
/// assert_eq!(u.len(), 4);
/// # Ok(()) }).unwrap();
/// ```
pub struct Refused<W> {
    /// Boxed, since a window is large and most calls are not refused.
    value: Box<W>,
    error: Error,
}

impl<W> Refused<W> {
    pub(crate) fn new(value: W, error: Error) -> Self {
        Self { value: Box::new(value), error }
    }

    /// Passes the error to the handler.
    pub(crate) fn reported(self, handler: &Handler) -> Self {
        Self { value: self.value, error: handler.reported(self.error) }
    }

    /// Returns the error.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Returns the value that the call had taken, and the error.
    pub fn into_parts(self) -> (W, Error) {
        (*self.value, self.error)
    }
}

impl<W> From<Refused<W>> for Error {
    fn from(refused: Refused<W>) -> Self {
        refused.error
    }
}

impl<W> fmt::Display for Refused<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl<W> fmt::Debug for Refused<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}
