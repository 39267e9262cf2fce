//! [`Transfers`]: every operation as a movement of elements from one rank to another.

use crate::datatype::Datatype;
use crate::element::ElementType;
use crate::ids::{Delta, LinkId, OperationId, WindowId};
use crate::ir::pattern::{Kind, Mode, Patterns};
use crate::ir::peers::Peers;
use crate::ir::schedule::{Part, Placement};
use crate::table::Table;

/// What goes from rank to rank.
#[derive(Clone, PartialEq, Debug)]
pub struct Transfers<'p> {
    /// What was asked for.
    pub patterns: &'p Patterns,
    /// Which ranks share memory.
    pub placement: Placement,
    /// Who sends what to whom.
    pub peers: Peers,
    /// Each distinct link: answers to gets first, as the rank that asked wrote them, then puts and accumulates, as
    /// their origin wrote them.
    pub links: Table<LinkId, Vec<Transfer>>,
}

/// A movement of elements from a source to a target, in step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// What it is to its origin; for [`Kind::Get`] the origin is the rank that the elements go to.
    pub kind: Kind,
    /// Where the elements come from, on the rank that sends.
    pub source: Side,
    /// Where they go, on the rank that receives.
    pub target: Side,
    /// Their type.
    pub element: ElementType,
    /// The origin's operations that it carries, ascending.
    pub operations: Vec<OperationId>,
    /// The mode asked for.
    pub asked: Mode,
}

/// Elements on one rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Side {
    /// Elements of a window.
    Window {
        /// Which.
        window: WindowId,
        /// Which elements.
        datatype: Datatype,
    },
    /// Elements `first..first + count` of the buffer of one of the rank's own operations.
    Operation {
        /// Which operation.
        operation: OperationId,
        /// From which element.
        first: usize,
        /// How many.
        count: usize,
    },
}

impl Side {
    /// How many elements.
    pub fn size(&self) -> usize {
        match self {
            Side::Window { datatype, .. } => datatype.size(),
            Side::Operation { count, .. } => *count,
        }
    }

    /// Elements `first..first + count` of it.
    #[must_use]
    pub fn slice(&self, first: usize, count: usize) -> Self {
        match self {
            Side::Window { window, datatype } => {
                Side::Window { window: *window, datatype: datatype.slice(first, count) }
            }
            Side::Operation { operation, first: from, .. } => {
                Side::Operation { operation: *operation, first: from + first, count }
            }
        }
    }

    /// The window and its elements, if it is one.
    pub fn window(&self) -> Option<(WindowId, &Datatype)> {
        match self {
            Side::Window { window, datatype } => Some((*window, datatype)),
            Side::Operation { .. } => None,
        }
    }

    /// As part of an instruction of the rank that sees its owner at `owner`.
    pub fn part(&self, owner: Delta) -> Part {
        match self {
            Side::Window { window, datatype } => {
                Part::Window { owner, window: *window, datatype: datatype.clone() }
            }
            Side::Operation { operation, first, count } => {
                Part::Operation { operation: *operation, first: *first, count: *count }
            }
        }
    }
}

impl Transfer {
    /// How many elements.
    pub fn size(&self) -> usize {
        self.target.size()
    }

    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.size() as u64 * u64::from(self.element.size)
    }

    /// Elements `first..first + count` of it.
    #[must_use]
    pub fn slice(&self, first: usize, count: usize) -> Self {
        Self {
            source: self.source.slice(first, count),
            target: self.target.slice(first, count),
            ..self.clone()
        }
    }

    /// Whether it answers a get: it lands before any put is applied.
    pub fn is_answer(&self) -> bool {
        self.kind == Kind::Get
    }
}
