//! [`VerifyError`]: names what is wrong with a schedule.

use crate::error::{Error, ErrorClass};
use crate::ids::{ClassId, OperationId, Rank};
use crate::ir::pattern::Site;

/// The place of a finding, and what was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The lowest rank for which the finding holds.
    pub rank: Rank,
    /// The class of that rank.
    pub class: ClassId,
    /// The index of the instruction in that rank's program.
    pub instruction: Option<usize>,
    /// The rank whose operation is concerned, the operation, and the user's line.
    pub operation: Option<(Rank, OperationId, Site)>,
    /// The text of the finding: what was found, and what was expected.
    pub what: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.rank, self.class)?;
        if let Some(instruction) = self.instruction {
            write!(f, ", instruction {instruction}")?;
        }
        write!(f, ": {}", self.what)?;
        if let Some((rank, operation, site)) = &self.operation {
            write!(f, " [{operation} of {rank} at {site}]")?;
        }
        Ok(())
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A kind of damage: a bug of the planner, or a plan file that no planner of Fencepost has
        /// written.
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum VerifyError {$(
            $(#[$doc])*
            $name(Box<Finding>),
        )*}

        impl VerifyError {
            /// Returns the name of the variant.
            pub fn name(&self) -> &'static str {
                match self {$(VerifyError::$name(_) => stringify!($name),)*}
            }

            /// Returns the place of the finding and its text.
            pub fn finding(&self) -> &Finding {
                match self {$(VerifyError::$name(finding) => finding,)*}
            }

            pub(super) fn finding_mut(&mut self) -> &mut Finding {
                match self {$(VerifyError::$name(finding) => finding,)*}
            }
        }
    };
}

kinds! {
    /// The schedule has other ranks, windows or calls than the patterns, or another order or
    /// synchronisation.
    Foreign,
    /// An instruction refers to an item that does not exist, or its sizes, types and directions do
    /// not match.
    Malformed,
    /// Elements or bytes are outside a window, buffer, frame or operation, or a rank does not
    /// exist.
    OutOfBounds,
    /// A direct copy between ranks that do not share memory.
    OutOfReach,
    /// A rank awaits another kind of frame than its peer sends.
    FrameMismatch,
    /// A rank awaits more or fewer frames, or more or fewer bytes, than its peer sends.
    WrongCount,
    /// A frame is read or released while none is open, or another frame follows while one is still
    /// open.
    NotOpen,
    /// A frame's bytes are read although they were not packed.
    UninitialisedBytes,
    /// Requested elements do not move.
    Dropped,
    /// Elements move more often than requested.
    Doubled,
    /// Elements move from or to another place than requested.
    WrongPlace,
    /// Elements move that no operation requested.
    Unasked,
    /// Elements are combined by another operator than requested.
    WrongOperator,
    /// Operations on one element are applied in an order that gives the element other bits.
    WrongOrder,
    /// Violates W1: a peer's window is touched before the peer's entry was awaited.
    BeforeEntry,
    /// Violates W1: a peer's window is touched after this rank has sent the peer a done.
    AfterDone,
    /// Violates W2: an element is written while another rank may be reading or writing it.
    RacingCopy,
    /// Violates W2: an element is written before a read of the element is over.
    WrittenBeforeRead,
    /// Violates W3: a rank leaves while others may touch its windows, or a frame is not released.
    LeftEarly,
    /// Violates W4: a buffer is written before the reader has released it.
    BufferReused,
    /// Violates W5: nothing ever comes back from a peer, so a rank may get ahead of the peer
    /// without bound.
    RunsAhead,
    /// An instruction reads or writes an element that a rank keeps for itself while the superstep
    /// runs.
    NotKept,
    /// Ranks wait for each other in a cycle.
    WaitCycle,
    /// The schedule exceeds what the verifier examines, so it may be right or wrong.
    TooMuch,
}

impl VerifyError {
    /// Returns whether the error only means that the verifier did not examine all of the schedule.
    pub fn is_bound(&self) -> bool {
        matches!(self, VerifyError::TooMuch(_))
    }
}

impl std::fmt::Display for VerifyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name(), self.finding())
    }
}

impl std::error::Error for VerifyError {}

impl From<VerifyError> for Error {
    fn from(error: VerifyError) -> Self {
        let rank = error.finding().rank.0;
        let class = if error.is_bound() { ErrorClass::NoMem } else { ErrorClass::Intern };
        Error::new(class, format!("the schedule is not what was asked for: {error}"))
            .on_rank(rank as usize)
            .because(error)
    }
}
