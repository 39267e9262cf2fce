//! [`conflicts`]: finds operations whose order matters because they access the same element. It
//! does not run the program.
//!
//! Such operations have a defined meaning (planner/README.md), but a program seldom intends it. The
//! search reads patterns only, so it also finds operations that the passes would leave out.
//!
//! A conflict is between two operations (paragraph 10). A single operation is reported if it writes
//! an element twice (28). An operation that accumulates twice into an element is not reported,
//! since its visits come in typemap order (6). Neither is an operation that reads a section of the
//! window to which it writes, since it reads the elements as they were before the epoch (4).
//!
//! - `rule` defines which accesses conflict, for all users.
//! - `sweep` finds the conflicts among many accesses.

mod rule;
mod sweep;

pub use rule::{access_to_compare_and_swap, access_to_section, breaks_disjoint, conflict, overwritten};
pub use sweep::{Access, pairs};

use crate::datatype::Datatype;
use crate::ids::{ClassId, Delta, Id, OperationId, Rank, WindowId};
use crate::ir::pattern::{Kind, Local, Operation, Patterns, Site};
use crate::ir::schedule::Placement;
use crate::passes::classes::Classes;
use crate::passes::neighbours::Neighbours;
use std::fmt;
use std::ops::{ControlFlow, Range};

/// The largest number of conflicts that are reported.
pub const MOST_CONFLICTS: usize = 1000;

/// Two operations that access the same element and conflict, or one operation that writes an
/// element twice.
///
/// Two operations conflict unless both are gets, or both are accumulates with one operator. If one
/// operation writes an element twice, both entries of [`between`](Self::between) are this
/// operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The rank whose part of the window has the conflict. It is the first of `ranks` ranks that
    /// have this conflict.
    pub rank: usize,
    /// The number of ranks that have this conflict. The conflicts of these ranks differ only by the
    /// positions of the ranks.
    pub ranks: usize,
    /// The window, by its position among the parameters of the superstep.
    pub window: usize,
    /// The bounds of the elements that both operations access, or that the single operation writes
    /// twice.
    pub elements: Range<i64>,
    /// The two operations.
    #[doc(hidden)]
    pub between: [Touch; 2],
}

/// An operation, with its access to the elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Touch {
    /// The rank that calls the operation.
    pub origin: usize,
    /// The number of the operation among the operations of its rank.
    pub operation: usize,
    /// The access to the element. A source counts as read by a get. The destination of a get counts
    /// as written by a put.
    pub kind: Kind,
    /// The line of the call.
    pub site: Site,
}

impl Conflict {
    /// Returns whether the conflict is that of a single operation, which writes an element twice.
    #[doc(hidden)]
    pub fn is_of_one_operation(&self) -> bool {
        let [a, b] = &self.between;
        (a.origin, a.operation) == (b.origin, b.operation)
    }

    /// Returns whether `other` concerns the same window and the same operations.
    fn is_between_those_of(&self, other: &Self) -> bool {
        let operations = |all: &[Touch; 2]| [0, 1].map(|at| (all[at].origin, all[at].operation));
        self.window == other.window && operations(&self.between) == operations(&other.between)
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.elements;
        match end - start {
            1 => write!(f, "element {start}")?,
            _ => write!(f, "elements {start}..{end}")?,
        }
        write!(f, " of w{} on rank {}", self.window, self.rank)?;
        let is_alone = self.is_of_one_operation();
        for (touch, word) in self.between.iter().zip([": ", " and "]).take(if is_alone { 1 } else { 2 }) {
            let twice = if is_alone { " twice" } else { "" };
            write!(f, "{word}{}{twice} by op{} of rank {}", touch.kind, touch.operation, touch.origin)?;
            if touch.site.line > 0 {
                write!(f, " at {}", touch.site)?;
            }
        }
        if self.ranks > 1 {
            write!(f, "; likewise on {} other ranks", self.ranks - 1)?;
        }
        Ok(())
    }
}

/// Returns the conflicts that paragraph 28 of planner/README.md defines: the first ones, at most
/// [`MOST_CONFLICTS`].
///
/// Conflicts are sorted by [`rank`](Conflict::rank). If the conflicts of several ranks differ only
/// by the positions of the ranks, they appear as one conflict. For each rank, operations that write
/// an element twice come first, sorted by window. The patterns must pass
/// [`check`](crate::check::check).
///
/// # Cost
/// Ranks x peers small steps and, for each class of ranks, the pairs of accesses whose bounds meet.
pub fn conflicts(patterns: &Patterns) -> Vec<Conflict> {
    let neighbours = Neighbours::of(patterns);
    let (mut rows, mut row) = (Classes::default(), Vec::new());
    let mut ranks: Vec<(Rank, usize)> = Vec::new();
    for rank in (0..patterns.ranks()).map(Rank) {
        neighbours.write(rank, Placement::Apart, &mut row);
        let (class, new) = rows.intern(&row);
        if new {
            ranks.push((rank, 0));
        }
        ranks[class as usize].1 += 1;
    }
    let mut found: Vec<Conflict> = Vec::new();
    for (class, &(rank, count)) in ranks.iter().enumerate() {
        let (own, peers) = Neighbours::read(rows.row(class as u32));
        let mut accesses = sections(patterns, own);
        accesses.extend(peers.flat_map(|peer| from(patterns, peer.pattern, peer.delta)));
        accesses.sort_by_key(|access| (access.window, access.by));
        let first = found.len();
        let mut add = |a: &Access<'_, By>, b: &Access<'_, By>, elements: Range<i64>| {
            let mut between = [a, b].map(|access| touch(access, patterns, rank));
            between.sort_by_key(|touch| (touch.origin, touch.operation));
            let (rank, window) = (rank.index(), a.window as usize);
            let conflict = Conflict { rank, ranks: count, window, elements, between };
            // The same two operations can conflict in several places, for example if one of them
            // reads a section of the part to which it writes. All these places are reported as one
            // conflict.
            match found[first..].iter_mut().find(|before| before.is_between_those_of(&conflict)) {
                Some(Conflict { elements, .. }) => {
                    let more = conflict.elements;
                    *elements = elements.start.min(more.start)..elements.end.max(more.end);
                }
                None => found.push(conflict),
            }
            if found.len() == MOST_CONFLICTS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let overwriting = |access: &Access<'_, By>| overwritten(access.kind, access.elements);
        let alone = accesses.iter().filter_map(|access| Some((access, overwriting(access)?)));
        if alone.map(|(access, elements)| add(access, access, elements)).all(|next| next.is_continue()) {
            pairs(&mut accesses, &mut add);
        }
        if found.len() == MOST_CONFLICTS {
            break;
        }
    }
    found
}

/// An access of another rank to a rank's part of a window.
#[doc(hidden)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Incoming {
    /// The window.
    pub window: WindowId,
    /// The elements.
    pub elements: Datatype,
    /// The operation.
    pub touch: Touch,
}

/// Returns the accesses of other ranks to the windows of `rank`, sorted by origin.
///
/// # Cost
/// Proportional to the operations of all ranks.
#[doc(hidden)]
pub fn incoming(patterns: &Patterns, rank: Rank) -> Vec<Incoming> {
    let of_rank = |(other, class): (usize, &ClassId)| {
        let origin = Delta::between(rank, Rank::new(other));
        from(patterns, *class, origin).filter(move |_| origin != Delta::SELF).map(move |access| Incoming {
            window: WindowId(access.window),
            elements: access.elements.clone(),
            touch: touch(&access, patterns, rank),
        })
    };
    patterns.class_of.iter().enumerate().flat_map(of_rank).collect()
}

/// The operation that makes an access: the relative position of the rank that calls it, its number
/// on that rank, and the pattern of that rank.
type By = (Delta, OperationId, ClassId);

fn touch(access: &Access<'_, By>, patterns: &Patterns, rank: Rank) -> Touch {
    let (origin, operation, pattern) = access.by;
    Touch {
        origin: origin.from(rank, patterns.ranks()).unwrap_or(rank).index(),
        operation: operation.index(),
        kind: access.kind,
        site: patterns.classes[pattern].operations[operation].site.clone(),
    }
}

fn moving(patterns: &Patterns, pattern: ClassId) -> impl Iterator<Item = (OperationId, &Operation)> {
    let all = patterns.classes[pattern].operations.iter();
    all.filter(|(_, operation)| operation.target.is_some() && operation.remote.size() > 0)
}

/// Returns the accesses of a rank's operations to its own sections.
fn sections(patterns: &Patterns, pattern: ClassId) -> Vec<Access<'_, By>> {
    moving(patterns, pattern)
        .filter_map(|(operation, call)| {
            let Local::Section { window, datatype } = &call.local else { return None };
            let by = (Delta::SELF, operation, pattern);
            Some(Access { window: window.0, elements: datatype, kind: access_to_section(call.kind), by })
        })
        .collect()
}

/// Returns the accesses to this rank by operations of the rank at `origin`.
fn from(patterns: &Patterns, pattern: ClassId, origin: Delta) -> impl Iterator<Item = Access<'_, By>> {
    let here =
        moving(patterns, pattern).filter(move |(_, operation)| operation.target == Some(origin.back()));
    here.map(move |(id, call)| Access {
        window: call.window.0,
        elements: &call.remote,
        kind: call.kind,
        by: (origin, id, pattern),
    })
}
