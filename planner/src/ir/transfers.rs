//! [`Transfers`]: every operation as a movement of elements from one rank to another.

use crate::datatype::Datatype;
use crate::element::ElementType;
use crate::error::Result;
use crate::ids::{Delta, OperationId, WindowId};
use crate::ir::pattern::{Kind, Mode};
use crate::ir::schedule::Part;
use crate::ir::stage::Stage;

/// All transfers between ranks. A link begins with the answers to gets, in the program order of the
/// rank that called the gets. Puts and accumulates follow, in the program order of their origin.
pub type Transfers<'p> = Stage<'p, Vec<Transfer>>;

/// A movement of elements from a source to a target, in the same order on both sides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Transfer {
    /// The kind of the operation at its origin. For [`Kind::Get`], the origin is the rank that
    /// receives the elements.
    pub kind: Kind,
    /// The elements that move, on the rank that sends.
    pub source: Side,
    /// The elements to which they are moved, on the rank that receives.
    pub target: Side,
    /// The type of the elements.
    pub element: ElementType,
    /// The operations of the origin that the transfer carries, ascending.
    pub operations: Vec<OperationId>,
    /// The mode that was requested.
    pub asked: Mode,
    /// Further elements. The operator of the transfer's kind combines them into the elements of
    /// `source` before these travel.
    pub folds: Vec<Fold>,
}

/// Further elements on the rank that sends. They are combined into the elements of a [`Transfer`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fold {
    /// The elements.
    pub source: Side,
    /// For each element of `source`, the element of the transfer into which it is combined. The
    /// elements of the transfer are numbered from 0, in the transfer's order.
    pub into: Datatype,
}

/// Elements on one rank.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// Elements of a window.
    Window {
        /// The window.
        window: WindowId,
        /// The elements.
        datatype: Datatype,
    },
    /// Elements `first..first + count` of the buffer of one of the rank's own operations.
    Operation {
        /// The operation.
        operation: OperationId,
        /// The index of the first element.
        first: usize,
        /// The number of elements.
        count: usize,
    },
}

impl Side {
    /// Returns the number of elements.
    pub fn size(&self) -> usize {
        match self {
            Side::Window { datatype, .. } => datatype.size(),
            Side::Operation { count, .. } => *count,
        }
    }

    /// Returns elements `first..first + count` of this side.
    ///
    /// # Errors
    /// Same as [`Datatype::slice`].
    pub fn slice(&self, first: usize, count: usize) -> Result<Self> {
        Ok(match self {
            Side::Window { window, datatype } => {
                Side::Window { window: *window, datatype: datatype.slice(first, count)? }
            }
            Side::Operation { operation, first: from, .. } => {
                Side::Operation { operation: *operation, first: from + first, count }
            }
        })
    }

    /// Returns the window and its elements, if this side is a window.
    pub fn window(&self) -> Option<(WindowId, &Datatype)> {
        match self {
            Side::Window { window, datatype } => Some((*window, datatype)),
            Side::Operation { .. } => None,
        }
    }

    /// Returns this side as a part of an instruction. `owner` is the position of the side's owner
    /// relative to the rank that executes the instruction.
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

impl Fold {
    /// Returns the parts of this fold that are combined into elements `first..first + count` of the
    /// transfer. In the result, these elements are numbered from 0.
    fn slice(&self, first: usize, count: usize) -> Result<Vec<Fold>> {
        let (low, high) = (first as i64, (first + count) as i64);
        if low <= self.into.low() && self.into.high() <= high {
            return Ok(vec![Fold { source: self.source.clone(), into: self.into.shift(-low)? }]);
        }
        // Ranges of successive positions in the source. Their elements are combined into elements
        // `first..first + count`.
        let (mut at, mut folds) = (0, Vec::<(usize, usize, Vec<(i64, usize)>)>::new());
        for (place, run) in self.into.run_iter() {
            let (from, to) = (place.max(low), (place + run as i64).min(high));
            if from < to {
                let (begin, len) = (at + (from - place) as usize, (to - from) as usize);
                match folds.last_mut() {
                    Some((start, size, runs)) if *start + *size == begin => {
                        *size += len;
                        runs.push((from - low, len));
                    }
                    _ => folds.push((begin, len, vec![(from - low, len)])),
                }
            }
            at += run;
        }
        let fold = |(begin, len, runs)| {
            Ok(Fold { source: self.source.slice(begin, len)?, into: Datatype::runs(runs)? })
        };
        folds.into_iter().map(fold).collect()
    }
}

impl Transfer {
    /// Returns whether the transfer moves one run of a window to one run of another and combines
    /// nothing. Such a transfer needs no packing.
    pub fn is_moved_as_it_is(&self) -> bool {
        let run = |side: &Side| side.window().is_some_and(|(_, datatype)| datatype.as_run().is_some());
        !matches!(self.kind, Kind::Accumulate(_))
            && self.folds.is_empty()
            && run(&self.source)
            && run(&self.target)
    }

    /// Returns the number of elements.
    pub fn size(&self) -> usize {
        self.target.size()
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        self.size() as u64 * u64::from(self.element.size)
    }

    /// Returns elements `first..first + count` of this transfer.
    ///
    /// # Errors
    /// Same as [`Datatype::slice`].
    pub fn slice(&self, first: usize, count: usize) -> Result<Self> {
        let mut folds = Vec::new();
        for fold in &self.folds {
            folds.extend(fold.slice(first, count)?);
        }
        let (source, target) = (self.source.slice(first, count)?, self.target.slice(first, count)?);
        Ok(Self { source, target, folds, ..self.clone() })
    }

    /// Returns whether the transfer answers a get. Answers are written before any put is applied.
    pub fn is_answer(&self) -> bool {
        self.kind == Kind::Get
    }
}
