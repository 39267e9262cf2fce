//! The one error type of Fencepost. Its class is a class of MPI, or one of Fencepost's own. Its
//! message states what was given, what was allowed, and where.

use std::fmt;
use std::panic::Location;

/// A `Result` with Fencepost's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an error: a class of MPI, or one of Fencepost's own if MPI has none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorClass {
    /// MPI_ERR_WIN: a window that is not valid here.
    Win,
    /// MPI_ERR_SIZE: lengths that do not match.
    Size,
    /// MPI_ERR_DISP: a displacement out of range.
    Disp,
    /// MPI_ERR_ASSERT: an assertion that is not valid or not true.
    Assert,
    /// MPI_ERR_RMA_SYNC: wrong synchronisation of calls.
    RmaSync,
    /// MPI_ERR_RMA_CONFLICT: conflicting accesses to elements of a window.
    RmaConflict,
    /// MPI_ERR_RANK: a rank out of range.
    Rank,
    /// MPI_ERR_OP: an operator that is not defined for the element type.
    Op,
    /// MPI_ERR_TYPE: a datatype or element type that does not fit.
    Type,
    /// MPI_ERR_ARG: an argument that is not valid.
    Arg,
    /// MPI_ERR_TRUNCATE: a message that is longer than the buffer that receives it.
    Truncate,
    /// MPI_ERR_BUFFER: a buffered send for which the buffer has no room.
    Buffer,
    /// MPI_ERR_IN_STATUS: some of several requests have failed; each has its own error.
    InStatus,
    /// MPI_ERR_PENDING: a request that neither failed nor completed, in a call in which another
    /// request failed.
    Pending,
    /// MPI_ERR_NO_MEM: more memory than there is, or than is allowed.
    NoMem,
    /// MPI_ERR_DIMS: a grid that is not possible.
    Dims,
    /// MPI_ERR_IO, MPI_ERR_FILE: a file can't be read or written.
    Io,
    /// A file that is not valid: truncated, edited, of another kind or another version.
    File,
    /// A plan that is not for this superstep, these arguments, or this world.
    Plan,
    /// A rank that left, died or sent something that no working rank sends. The world ends.
    ProcFailed,
    /// A bug of Fencepost: the message names the pass. Also used if a request of this rank was
    /// altered on its way. The other rank has then refused the request and has done nothing.
    Intern,
    /// An error that the user's own code returned.
    Other,
}

impl ErrorClass {
    /// Every class.
    #[doc(hidden)]
    pub const ALL: [ErrorClass; 22] = [
        ErrorClass::Win,
        ErrorClass::Size,
        ErrorClass::Disp,
        ErrorClass::Assert,
        ErrorClass::RmaSync,
        ErrorClass::RmaConflict,
        ErrorClass::Rank,
        ErrorClass::Op,
        ErrorClass::Type,
        ErrorClass::Arg,
        ErrorClass::Truncate,
        ErrorClass::Buffer,
        ErrorClass::InStatus,
        ErrorClass::Pending,
        ErrorClass::NoMem,
        ErrorClass::Dims,
        ErrorClass::Io,
        ErrorClass::File,
        ErrorClass::Plan,
        ErrorClass::ProcFailed,
        ErrorClass::Intern,
        ErrorClass::Other,
    ];
}

/// Writes the name of a class as in the documentation: MPI's name without `MPI_ERR_`, if MPI has
/// one.
impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ErrorClass::Win => "WIN",
            ErrorClass::Size => "SIZE",
            ErrorClass::Disp => "DISP",
            ErrorClass::Assert => "ASSERT",
            ErrorClass::RmaSync => "RMA_SYNC",
            ErrorClass::RmaConflict => "RMA_CONFLICT",
            ErrorClass::Rank => "RANK",
            ErrorClass::Op => "OP",
            ErrorClass::Type => "TYPE",
            ErrorClass::Arg => "ARG",
            ErrorClass::Truncate => "TRUNCATE",
            ErrorClass::Buffer => "BUFFER",
            ErrorClass::InStatus => "IN_STATUS",
            ErrorClass::Pending => "PENDING",
            ErrorClass::NoMem => "NO_MEM",
            ErrorClass::Dims => "DIMS",
            ErrorClass::Io => "IO",
            ErrorClass::File => "FILE",
            ErrorClass::Plan => "PLAN",
            ErrorClass::ProcFailed => "PROC_FAILED",
            ErrorClass::Intern => "INTERN",
            ErrorClass::Other => "OTHER",
        })
    }
}

/// The state of windows after an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum State {
    /// Nothing was applied; windows are unchanged.
    #[default]
    Unchanged,
    /// Some elements are old and some new; memory is sound.
    Mixed,
}

/// A rank whose failure has ended a world.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct FailedRank {
    /// The number of the world that contains all ranks of the program.
    pub program: u64,
    /// The rank in that world.
    pub of_all: usize,
    /// The rank in the world that has ended.
    pub of_world: usize,
    /// A description of how the rank failed.
    pub what: String,
}

/// An error: its cause, its class, its place, and the state that it leaves.
///
/// ```
/// # use fencepost_planner::{Error, ErrorClass, State};
/// fn report(error: &Error) -> String {
///     let place = error.site().map_or(String::new(), |site| format!(" at {site}"));
///     let goes_on = !error.world_ended() && error.state() == State::Unchanged;
///     let next = if goes_on { "the windows are as before" } else { "nothing is left to do" };
///     format!("{} on rank {:?}{place}: {}; {next}", error.class(), error.rank(), error.message())
/// }
/// let error = Error::new(ErrorClass::Other, "the input has 3 rows");
/// assert_eq!(
///     report(&error),
///     "OTHER on rank None: the input has 3 rows; the windows are as before"
/// );
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    class: ErrorClass,
    message: String,
    rank: Option<usize>,
    superstep: Option<String>,
    site: Option<&'static Location<'static>>,
    state: State,
    world_ended: bool,
    reported: bool,
    secondary: bool,
    stopping: bool,
    failed: Option<FailedRank>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Creates an error of `class`. `message` states what was given, what was allowed and what to
    /// do next.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            class,
            message: message.into(),
            rank: None,
            superstep: None,
            site: None,
            state: State::Unchanged,
            world_ended: false,
            reported: false,
            secondary: false,
            stopping: false,
            failed: None,
            source: None,
        }))
    }

    /// Sets the rank, if none is set.
    #[doc(hidden)]
    #[must_use]
    pub fn on_rank(mut self, rank: usize) -> Self {
        self.0.rank.get_or_insert(rank);
        self
    }

    /// Sets the superstep, if none is set.
    #[doc(hidden)]
    #[must_use]
    pub fn in_superstep(mut self, name: impl Into<String>) -> Self {
        if self.0.superstep.is_none() {
            self.0.superstep = Some(name.into());
        }
        self
    }

    /// Sets the line of the user's program, if none is set.
    #[doc(hidden)]
    #[must_use]
    pub fn at(mut self, site: &'static Location<'static>) -> Self {
        self.0.site.get_or_insert(site);
        self
    }

    /// Sets the state that the error leaves.
    #[doc(hidden)]
    #[must_use]
    pub fn leaving(mut self, state: State) -> Self {
        self.0.state = state;
        self
    }

    /// Marks the world as ended by this error: each later call on it returns an error at once.
    #[doc(hidden)]
    #[must_use]
    pub fn ending_world(mut self) -> Self {
        self.0.world_ended = true;
        self
    }

    /// Sets the cause.
    #[doc(hidden)]
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Marks an error that only reports that another rank has failed: the error of that rank is the
    /// cause.
    #[doc(hidden)]
    #[must_use]
    pub fn secondary(mut self) -> Self {
        self.0.secondary = true;
        self
    }

    /// Marks an error with which the program ends because a stop was requested. The state of the
    /// program is saved, and the program can be started again to continue.
    #[doc(hidden)]
    #[must_use]
    pub fn stopping(mut self) -> Self {
        self.0.stopping = true;
        self
    }

    /// Returns whether the program ends because a stop was requested, with the state of the program
    /// saved.
    #[doc(hidden)]
    pub fn is_stopping(&self) -> bool {
        self.0.stopping
    }

    /// Sets the other rank that has failed. The error only reports the failure of that rank.
    #[doc(hidden)]
    #[must_use]
    pub fn passing_on(mut self, failed: Option<FailedRank>) -> Self {
        self.0.failed = failed;
        self
    }

    /// Returns the other rank whose failure the error reports, if that rank is known.
    #[doc(hidden)]
    pub fn failed_rank(&self) -> Option<&FailedRank> {
        self.0.failed.as_ref()
    }

    /// Returns whether the error only reports that another rank has failed.
    #[doc(hidden)]
    pub fn is_secondary(&self) -> bool {
        self.0.secondary || self.0.failed.is_some() || self.0.class == ErrorClass::ProcFailed
    }

    /// Marks the error as reported to an error handler. Returns whether it was not yet marked.
    #[doc(hidden)]
    pub fn report_once(&mut self) -> bool {
        !std::mem::replace(&mut self.0.reported, true)
    }

    /// Returns the class of this error.
    pub fn class(&self) -> ErrorClass {
        self.0.class
    }

    /// Returns the message: what was given, what was allowed.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the rank on which the error occurred, if known.
    pub fn rank(&self) -> Option<usize> {
        self.0.rank
    }

    /// Returns the line of the user's program that the error concerns.
    pub fn site(&self) -> Option<&'static Location<'static>> {
        self.0.site
    }

    /// Returns the state that the error leaves.
    pub fn state(&self) -> State {
        self.0.state
    }

    /// Returns whether the error has ended the world.
    pub fn world_ended(&self) -> bool {
        self.0.world_ended
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        write!(f, "{}: {}", inner.class, inner.message)?;
        let mut open = " [";
        if let Some(rank) = inner.rank {
            write!(f, "{open}rank {rank}")?;
            open = ", ";
        }
        if let Some(name) = &inner.superstep {
            write!(f, "{open}superstep {name}")?;
            open = ", ";
        }
        if let Some(site) = inner.site {
            write!(f, "{open}{}:{}:{}", site.file(), site.line(), site.column())?;
            open = ", ";
        }
        if inner.state == State::Mixed {
            write!(f, "{open}windows hold old or new elements")?;
            open = ", ";
        }
        if inner.world_ended {
            write!(f, "{open}the world has ended")?;
            open = ", ";
        }
        if open == ", " {
            f.write_str("]")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let text = cause.to_string();
            if !self.0.message.ends_with(&text) {
                write!(f, "\n  because {text}")?;
            }
            source = cause.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::new(ErrorClass::Io, error.to_string()).because(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_is_the_end_of_the_message_is_printed_once() {
        let cause = || std::io::Error::other("the disk is full");
        assert_eq!(format!("{:?}", Error::from(cause())), "IO: the disk is full");
        let error = Error::new(ErrorClass::Io, "no plan is saved").because(cause());
        assert_eq!(format!("{error:?}"), "IO: no plan is saved\n  because the disk is full");
    }
}
