//! [`Schedule`]: every rank's [`Program`], by class. The last stage before
//! [`Verified`](crate::verify::Verified).
//!
//! # What a program does
//!
//! An executor runs the instructions of its rank one after another and decides nothing. Between
//! each ordered pair of ranks there is one channel of *frames*, first in first out. A frame is an
//! *entry* ("I am in this superstep: you may touch my windows"), *data* (bytes from a buffer of the
//! sender), or *done* ("I have finished touching your windows in this superstep").
//! [`Instruction::Await`] takes the next frame of a peer. The frame must be of the kind that the
//! instruction names. A data frame stays readable until it is released. At most one data frame of
//! each peer is open at a time.
//!
//! Each time a rank enters the superstep, it runs its program once. These runs are numbered 0, 1,
//! 2, ... There are [`Buffer::copies`] copies of each buffer, and run `k` uses copy `k % copies`.

use crate::datatype::Datatype;
use crate::element::{ElementType, Op};
use crate::ids::{BufferId, ClassId, Delta, OperationId, RoundId, WindowId};
use crate::ir::pattern::{Mode, Order, Pattern, Sync};
use crate::table::Table;
use crate::units::Bytes;

/// All ranks' programs, by class.
#[derive(Clone, PartialEq, Debug)]
pub struct Schedule {
    /// The superstep's name, for messages.
    pub name: String,
    /// The element type of each window parameter.
    pub windows: Table<WindowId, ElementType>,
    /// The extents of the grid of ranks; see
    /// [`Patterns::shape`](crate::ir::pattern::Patterns::shape).
    pub shape: Vec<u32>,
    /// Each distinct program.
    pub classes: Table<ClassId, Program>,
    /// The class of each rank, by rank.
    pub class_of: Vec<ClassId>,
    /// Whether the order of operations on one element is kept.
    pub order: Order,
    /// How the ranks are synchronised.
    pub sync: Sync,
    /// Which ranks share memory. This determines how the ranks of each pair reach each other.
    pub placement: Placement,
}

impl Schedule {
    /// Returns the largest number of bytes of buffers that one rank needs, all copies together.
    pub fn peak(&self) -> Bytes {
        let of = |program: &Program| {
            program.buffers.values().map(|buffer| buffer.bytes * u64::from(buffer.copies)).sum()
        };
        Bytes(self.classes.values().map(of).max().unwrap_or(0))
    }
}

impl Schedule {
    /// Returns the number of ranks of each class.
    pub fn ranks_of_classes(&self) -> Table<ClassId, u64> {
        let mut count: Table<ClassId, u64> = self.classes.values().map(|_| 0).collect();
        self.class_of.iter().for_each(|class| count[*class] += 1);
        count
    }
}

impl AsRef<Schedule> for Schedule {
    fn as_ref(&self) -> &Schedule {
        self
    }
}

/// Which ranks share memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Placement {
    /// All ranks: threads of one process, or processes of one host.
    Together,
    /// No ranks: every pair exchanges messages.
    Apart,
    /// Each host holds this many successive ranks.
    Hosts {
        /// The number of ranks; at least 1.
        ranks_each: usize,
    },
}

impl std::str::FromStr for Placement {
    type Err = crate::Error;

    /// Reads `together`, `apart`, or the number of successive ranks that each host has.
    ///
    /// # Errors
    /// `ARG` for anything else.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.parse()) {
            ("together", _) => Ok(Placement::Together),
            ("apart", _) => Ok(Placement::Apart),
            (_, Ok(ranks_each)) if (1..=u32::MAX as usize).contains(&ranks_each) => {
                Ok(Placement::Hosts { ranks_each })
            }
            _ => Err(crate::Error::new(
                crate::ErrorClass::Arg,
                format!(
                    "`{text}` is not a placement: give together, apart, or a number of ranks on each host"
                ),
            )),
        }
    }
}

impl std::fmt::Display for Placement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Placement::Together => f.write_str("together"),
            Placement::Apart => f.write_str("apart"),
            Placement::Hosts { ranks_each } => write!(f, "{ranks_each}"),
        }
    }
}

impl Placement {
    /// Returns whether ranks `a` and `b` share memory.
    #[doc(hidden)]
    pub fn share(self, a: u32, b: u32) -> bool {
        match self {
            Placement::Together => true,
            Placement::Apart => a == b,
            Placement::Hosts { ranks_each } => a as usize / ranks_each == b as usize / ranks_each,
        }
    }

    /// Returns the largest number of ranks that share one memory, among `ranks` ranks.
    #[doc(hidden)]
    pub fn ranks_of_a_host(self, ranks: usize) -> usize {
        match self {
            Placement::Together => ranks,
            Placement::Apart => 1,
            Placement::Hosts { ranks_each } => ranks_each.min(ranks),
        }
    }
}

/// One rank's part of a schedule: the same for all ranks of its class.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Program {
    /// The pattern of the rank's calls. Calls are matched with the pattern by their position, and
    /// loading a plan compares this pattern with the rank's own pattern.
    pub pattern: Pattern,
    /// For `explain`: the way in which each operation travels, and its round. `None` if the
    /// operation has no target or no elements, or if later puts, of this rank or another, replace
    /// all of its elements.
    pub routes: Table<OperationId, Option<Routing>>,
    /// The smallest length that each window needs on this rank, for its own sections and for the
    /// accesses of other ranks.
    pub least_len: Table<WindowId, usize>,
    /// The buffers that are packed and sent.
    pub buffers: Table<BufferId, Buffer>,
    /// The instructions, in order.
    pub instructions: Vec<Instruction>,
}

/// The way in which an operation travels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Routing {
    /// The mode that is used; never `Auto`.
    pub mode: Mode,
    /// Whether another mode was requested, but is not safe or not possible.
    pub instead: bool,
    /// The round in which the operation's message is issued.
    pub round: RoundId,
}

/// A buffer from which messages to one peer are sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Buffer {
    /// The rank to which frames are sent from this buffer.
    pub peer: Delta,
    /// Bytes of one copy.
    pub bytes: u64,
    /// The number of copies, used in turn.
    pub copies: u32,
}

/// Elements on one side of a movement: part of the typemap of a section or of an operation's own
/// buffer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// Elements of a window.
    Window {
        /// The rank that owns the window: [`Delta::SELF`] except in [`Instruction::Copy`].
        owner: Delta,
        /// The window.
        window: WindowId,
        /// The elements, in order.
        datatype: Datatype,
    },
    /// Elements `first..first + count` of the buffer of one of this rank's own operations: a slice
    /// that was given as the source, or the buffer that receives the elements of a get.
    Operation {
        /// The operation.
        operation: OperationId,
        /// The index of the first element.
        first: usize,
        /// The number of elements.
        count: usize,
    },
}

impl Part {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match self {
            Part::Window { datatype, .. } => datatype.size(),
            Part::Operation { count, .. } => *count,
        }
    }

    /// Returns whether the part has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Frame {
    /// The sender is in this superstep: the receiver may access the sender's windows (W1).
    Entry,
    /// The frame carries bytes.
    Data {
        /// The number of bytes.
        bytes: u64,
    },
    /// The sender has finished its accesses to the receiver's windows in this superstep (W2, W3).
    Done,
}

/// One step of a program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Instruction {
    /// Sends an entry frame to `peer`: from here on, that rank may touch this rank's windows.
    Expose {
        /// The rank that receives the frame.
        peer: Delta,
    },
    /// Waits until `peer` has released every frame that earlier runs sent from the copy of `buffer`
    /// that this run uses (W4). This instruction is omitted if the two ranks synchronise both ways
    /// in every run.
    Reclaim {
        /// The buffer.
        buffer: BufferId,
    },
    /// Copies elements into a buffer.
    Pack {
        /// The source: this rank's own window or operation.
        from: Part,
        /// The size of an element in bytes.
        element: u32,
        /// The buffer that receives the elements.
        buffer: BufferId,
        /// The first byte of the elements in the buffer.
        at: u64,
    },
    /// Combines elements into packed elements of a buffer that have not been sent yet in this run.
    Combine {
        /// The source: this rank's own window or operation.
        from: Part,
        /// The target elements, as many as in `from`. Element 0 begins at byte `at` of the buffer.
        into: Datatype,
        /// The operator. The order in which it is applied cannot be observed.
        op: Op,
        /// The type of the elements.
        element: ElementType,
        /// The buffer with the packed elements.
        buffer: BufferId,
        /// The first byte of element 0 in the buffer.
        at: u64,
    },
    /// Sends a data frame of `bytes` bytes of `buffer` from byte `at` to the buffer's peer.
    Send {
        /// The buffer.
        buffer: BufferId,
        /// The first byte of the frame in the buffer.
        at: u64,
        /// The number of bytes.
        bytes: u64,
        /// The round of issue.
        round: RoundId,
    },
    /// Takes the next frame from `peer`. The frame must be of kind `frame`, and of the same
    /// superstep.
    Await {
        /// The rank that sends the frame.
        peer: Delta,
        /// The kind that the frame must have.
        frame: Frame,
    },
    /// Copies from one part to another without a buffer between. Both parts are this rank's own, or
    /// one of them belongs to a peer that has exposed itself.
    Copy {
        /// The source.
        from: Part,
        /// The target.
        to: Part,
        /// The operator that combines the elements; `None` for a put or a get.
        op: Option<Op>,
        /// The type of the elements.
        element: ElementType,
    },
    /// Moves elements out of the open data frame of `peer`.
    Unpack {
        /// The rank that has sent the frame.
        peer: Delta,
        /// The first byte of the elements in the frame.
        at: u64,
        /// The target: this rank's own window or operation.
        to: Part,
        /// The operator that combines the elements; `None` for a put or a get.
        op: Option<Op>,
        /// The type of the elements.
        element: ElementType,
    },
    /// Releases the open data frame of `peer`: `peer` may write the frame's buffer again (W4).
    Release {
        /// The rank that has sent the frame.
        peer: Delta,
    },
    /// Sends a done frame to `peer`: this rank no longer touches the peer's windows in this
    /// superstep.
    Done {
        /// The rank that receives the frame.
        peer: Delta,
    },
}
