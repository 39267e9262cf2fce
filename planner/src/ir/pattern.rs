//! [`Pattern`]: the operations that the calls of one epoch on one rank request. [`Patterns`]: the
//! patterns of all ranks, by class.

use crate::datatype::Datatype;
use crate::element::{ElementType, Op};
use crate::ids::{ClassId, Delta, OperationId, WindowId};
use crate::table::Table;

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Elements of the origin replace elements of the target.
    Put,
    /// Elements of the target replace elements of the origin, before any put of the epoch is
    /// applied.
    Get,
    /// Elements of the origin are combined into elements of the target.
    Accumulate(Op),
}

/// The origin's side of an operation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Local {
    /// A contiguous buffer that belongs to the operation, with as many elements as the remote
    /// datatype: a slice copied at the call, a ticket, or a buffer borrowed by a scoped epoch.
    Buffer,
    /// Elements of one of the origin's windows: a source for puts and accumulates, a destination
    /// for gets.
    Section {
        /// The window.
        window: WindowId,
        /// The elements of the window; as many as the remote datatype has.
        datatype: Datatype,
    },
}

/// The way in which the bytes of a transfer travel: a preference of the user, or a decision of
/// `route`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Mode {
    /// The machine model chooses; in a dynamic epoch, the choice depends on what earlier epochs of
    /// the same line transferred.
    #[default]
    Auto,
    /// A message of its own, sent as early as possible.
    Aggressive,
    /// One message to each target at the fence.
    Aggregated,
    /// In chunks, each of them sent once it is full.
    Pipelined,
    /// One copy without staging, if memory is shared and the copy is shown to be safe.
    Direct,
}

impl Mode {
    /// Every mode, `Auto` first.
    #[doc(hidden)]
    pub const ALL: [Mode; 5] =
        [Mode::Auto, Mode::Aggressive, Mode::Aggregated, Mode::Pipelined, Mode::Direct];
}

/// A position in the user's source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Site {
    /// The file as named by the compiler.
    pub file: std::sync::Arc<str>,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl std::fmt::Display for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One operation, as the program calls it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Operation {
    /// Put, get or accumulate.
    pub kind: Kind,
    /// The window on the target.
    pub window: WindowId,
    /// The target, relative to this rank. `None` is MPI's PROC_NULL: the operation succeeds and
    /// does nothing.
    pub target: Option<Delta>,
    /// The target's elements, in the target's window.
    pub remote: Datatype,
    /// The origin's elements.
    pub local: Local,
    /// The mode that was requested.
    pub mode: Mode,
    /// The position of the call.
    pub site: Site,
}

/// One rank's operations of one epoch, in program order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Pattern {
    /// The calls.
    pub operations: Table<OperationId, Operation>,
}

/// Whether the order of operations on one element is kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Order {
    /// Operations are applied by origin rank, then program order, then typemap order.
    #[default]
    Canonical,
    /// Each operation on an element is applied exactly once, in some order.
    Relaxed,
}

/// How a superstep that runs by a schedule synchronises the ranks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Sync {
    /// All ranks run the superstep, in the same order as all other calls of all ranks.
    #[default]
    Fence,
    /// The ranks that exchange something run the superstep. The two ranks of each pair run it
    /// equally often. A rank whose program is empty need not run it.
    Pscw,
}

/// The patterns of all ranks. Ranks whose patterns differ only by position share one pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patterns {
    /// The superstep's name, for messages.
    pub name: String,
    /// The element type of each window of the superstep.
    pub windows: Table<WindowId, ElementType>,
    /// The extents of the grid of ranks, row-major, slowest first; their product is the number of
    /// ranks. This is a hint that keeps the map of classes small and never changes the meaning.
    pub shape: Vec<u32>,
    /// Each distinct pattern.
    pub classes: Table<ClassId, Pattern>,
    /// The class of each rank, by rank.
    pub class_of: Vec<ClassId>,
    /// Whether the order of operations on one element is kept.
    pub order: Order,
    /// How the ranks are synchronised. No pass reads this field, because each program is complete
    /// in itself (W6).
    pub sync: Sync,
}

impl Patterns {
    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.class_of.len() as u32
    }
}

impl std::str::FromStr for Mode {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Mode::Auto),
            "aggressive" => Ok(Mode::Aggressive),
            "aggregated" => Ok(Mode::Aggregated),
            "pipelined" => Ok(Mode::Pipelined),
            "direct" => Ok(Mode::Direct),
            other => Err(crate::Error::new(
                crate::ErrorClass::Arg,
                format!("`{other}` is not a mode: use auto, aggressive, aggregated, pipelined or direct"),
            )),
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Mode::Auto => "auto",
            Mode::Aggressive => "aggressive",
            Mode::Aggregated => "aggregated",
            Mode::Pipelined => "pipelined",
            Mode::Direct => "direct",
        })
    }
}
