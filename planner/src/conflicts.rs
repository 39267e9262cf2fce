//! [`conflicts`]: operations that touch one element in ways whose order matters, found without running anything.
//!
//! They have a meaning all the same (planner/README.md); a program seldom means it. Only patterns are read, so nothing that
//! the passes leave out is hidden.
//!
//! A conflict is between two operations (paragraph 10). One operation that visits an element twice, or reads a section of
//! the window that it writes, is not a conflict: its visits come in typemap order (6), and it reads M (4).

use crate::datatype::Datatype;
use crate::ids::{ClassId, Delta, Id, OperationId, Rank, WindowId};
use crate::ir::pattern::{Kind, Local, Operation, Patterns, Site};
use crate::ir::schedule::Placement;
use crate::passes::classes::Classes;
use crate::passes::neighbours::Neighbours;
use std::fmt;
use std::ops::Range;

/// At most this many conflicts are reported.
pub const MOST_CONFLICTS: usize = 1000;

/// Two operations that touch one element, and are not both gets, nor both accumulates with one operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The rank that owns the window: the first of `ranks` ranks that have this conflict.
    pub rank: usize,
    /// The number of ranks that have this conflict, seen from where each stands.
    pub ranks: usize,
    /// The window, by its place among the parameters of the superstep.
    pub window: usize,
    /// From the lowest to past the highest element that both touch.
    pub elements: Range<i64>,
    /// The two.
    pub between: [Touch; 2],
}

/// An operation, as it touches an element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Touch {
    /// The rank that calls the operation.
    pub origin: usize,
    /// The number of the operation among those of that rank.
    pub operation: usize,
    /// The access to the element: a source is read as by a get, and the destination of a get is written as by a put.
    pub kind: Kind,
    /// The line of the call.
    pub site: Site,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.elements;
        match end - start {
            1 => write!(f, "element {start}")?,
            _ => write!(f, "elements {start}..{end}")?,
        }
        write!(f, " of w{} on rank {}", self.window, self.rank)?;
        for (touch, word) in self.between.iter().zip([": ", " and "]) {
            write!(f, "{word}{} by op{} of rank {}", touch.kind, touch.operation, touch.origin)?;
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

/// The first conflicts, by the first rank whose window they are in; once for all ranks that differ only by where they stand.
/// An operation whose own elements overlap is defined, and is not reported: its last visit of an element stays (planner/README.md, 6).
/// The patterns must be ones that [`check`](crate::check::check) finds nothing wrong with.
///
/// # Cost
/// Ranks x peers small steps; for each class of ranks the pairs of accesses whose bounds meet.
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
    let mut found = Vec::new();
    for (class, &(rank, count)) in ranks.iter().enumerate() {
        let (own, peers) = Neighbours::read(rows.row(class as u32));
        let mut accesses = sections(patterns, own);
        accesses.extend(peers.flat_map(|peer| from(patterns, peer.pattern, peer.delta)));
        accesses
            .sort_by_key(|access| (access.window, access.datatype.low(), access.origin, access.operation));
        for (at, a) in accesses.iter().enumerate() {
            let meeting = |b: &&Access<'_>| b.window == a.window && b.datatype.low() < a.datatype.high();
            for b in accesses[at + 1..].iter().take_while(meeting) {
                let same = (a.origin, a.operation) == (b.origin, b.operation);
                if let (false, true, Some(elements)) =
                    (same, clash(a.kind, b.kind), a.datatype.overlap_bounds(b.datatype))
                {
                    let mut between = [a, b].map(|access| access.touch(patterns, rank));
                    between.sort_by_key(|touch| (touch.origin, touch.operation));
                    let (rank, window) = (rank.index(), a.window.index());
                    found.push(Conflict { rank, ranks: count, window, elements, between });
                    if found.len() == MOST_CONFLICTS {
                        return found;
                    }
                }
            }
        }
    }
    found
}

struct Access<'p> {
    window: WindowId,
    datatype: &'p Datatype,
    kind: Kind,
    origin: Delta,
    pattern: ClassId,
    operation: OperationId,
}

impl Access<'_> {
    fn touch(&self, patterns: &Patterns, rank: Rank) -> Touch {
        Touch {
            origin: self.origin.from(rank, patterns.ranks()).unwrap_or(rank).index(),
            operation: self.operation.index(),
            kind: self.kind,
            site: patterns.classes[self.pattern].operations[self.operation].site.clone(),
        }
    }
}

fn moving(patterns: &Patterns, pattern: ClassId) -> impl Iterator<Item = (OperationId, &Operation)> {
    let all = patterns.classes[pattern].operations.iter();
    all.filter(|(_, operation)| operation.target.is_some() && operation.remote.size() > 0)
}

/// Returns the accesses of a rank's operations to its own sections.
fn sections(patterns: &Patterns, pattern: ClassId) -> Vec<Access<'_>> {
    moving(patterns, pattern)
        .filter_map(|(operation, call)| {
            let Local::Section { window, datatype } = &call.local else { return None };
            let kind = if call.kind == Kind::Get { Kind::Put } else { Kind::Get };
            Some(Access { window: *window, datatype, kind, origin: Delta::SELF, pattern, operation })
        })
        .collect()
}

/// Returns the accesses of the operations of the rank at `origin` to this rank.
fn from(patterns: &Patterns, pattern: ClassId, origin: Delta) -> impl Iterator<Item = Access<'_>> {
    let here =
        moving(patterns, pattern).filter(move |(_, operation)| operation.target == Some(origin.back()));
    here.map(move |(id, operation)| Access {
        window: operation.window,
        datatype: &operation.remote,
        kind: operation.kind,
        origin,
        pattern,
        operation: id,
    })
}

/// Whether two accesses to one element conflict.
fn clash(a: Kind, b: Kind) -> bool {
    match (a, b) {
        (Kind::Get, Kind::Get) => false,
        (Kind::Accumulate(a), Kind::Accumulate(b)) => a != b,
        _ => true,
    }
}
