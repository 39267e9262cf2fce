//! Finds, one element at a time, the conflicts that a check must find in an epoch between two
//! fences (28).

use super::epoch::Epoch;
use super::world::target;
use fencepost_planner::conflicts::{access_to_section, conflict};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ids::{Id, OperationId, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Operation};
use std::collections::{BTreeMap, BTreeSet};

/// An operation: the rank that calls it, and its position among the operations of that rank.
type Caller = (Rank, OperationId);

/// A rank's part of a window.
type Part = (usize, WindowId);

/// The elements of a part that an operation touches, and the kind of the access.
type Access = (Part, Kind, BTreeSet<i64>);

/// Two operations that conflict on one rank, or an operation that overwrites itself on a rank.
///
/// An operation that overwrites itself is both entries of `between`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Conflicting {
    /// The rank that owns the elements.
    pub rank: Rank,
    /// The window.
    pub window: WindowId,
    /// The two operations. The operation of the lower rank comes first. Of two operations of one
    /// rank, the earlier one comes first.
    pub between: [(Rank, OperationId); 2],
    /// The elements on which they conflict, or that an operation writes twice, ascending.
    pub elements: Vec<i64>,
}

/// Returns the part in which an access overwrites itself, and the elements that it writes twice.
fn overwriting((part, kind, elements): (Part, Kind, &Datatype)) -> Option<(Part, Vec<i64>)> {
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    twice.extend(elements.element_iter().filter(|element| !seen.insert(*element)));
    (kind == Kind::Put && !twice.is_empty()).then(|| (part, twice.into_iter().collect()))
}

/// Returns the accesses of an operation to parts of windows: to its target and to its section.
/// Without a target there are no accesses.
fn accesses(operation: &Operation, rank: usize) -> Vec<(Part, Kind, &Datatype)> {
    let Some(target) = target(operation, rank) else { return Vec::new() };
    let mut all = vec![((target, operation.window), operation.kind, &operation.remote)];
    if let Local::Section { window, datatype } = &operation.local {
        all.push(((rank, *window), access_to_section(operation.kind), datatype));
    }
    all
}

/// Returns the conflicts that are found at calls (29): operations that overwrite themselves, and
/// conflicts with an earlier operation of the same rank. The later operation of a conflict is then
/// not part of the epoch.
pub fn refused(epoch: &Epoch) -> Vec<Conflicting> {
    let mut all = Vec::new();
    for (rank, pattern) in epoch.patterns.iter().enumerate() {
        // The accesses of earlier operations: their parts, kinds and elements.
        let mut before: Vec<(OperationId, Vec<Access>)> = Vec::new();
        for (id, operation) in pattern.operations.iter() {
            let own = accesses(operation, rank);
            if let Some(((owner, window), elements)) = own.iter().copied().find_map(overwriting) {
                let between = [(Rank::new(rank), id); 2];
                all.push(Conflicting { rank: Rank::new(owner), window, between, elements });
                continue;
            }
            let own: Vec<Access> =
                own.into_iter().map(|(part, kind, all)| (part, kind, all.element_iter().collect())).collect();
            let mut found: BTreeMap<(Part, OperationId), BTreeSet<i64>> = BTreeMap::new();
            for (other, theirs) in &before {
                for (part, a, mine) in &own {
                    for (_, b, elements) in theirs.iter().filter(|(there, ..)| there == part) {
                        let both: Vec<i64> = mine.intersection(elements).copied().collect();
                        if conflict(*a, *b) && !both.is_empty() {
                            found.entry((*part, *other)).or_default().extend(both);
                        }
                    }
                }
            }
            if found.is_empty() {
                before.push((id, own));
            }
            all.extend(found.into_iter().map(|(((owner, window), other), elements)| Conflicting {
                rank: Rank::new(owner),
                window,
                between: [other, id].map(|id| (Rank::new(rank), id)),
                elements: elements.into_iter().collect(),
            }));
        }
    }
    all.sort();
    all
}

/// Returns all conflicts in an epoch whose operations fit their windows (28), by rank, window and
/// operations.
pub fn conflicts(epoch: &Epoch) -> Vec<Conflicting> {
    // The operations that touch each element of each window of each rank, and the kind of each
    // access.
    let mut touched: BTreeMap<(Rank, WindowId, i64), Vec<(Caller, Kind)>> = BTreeMap::new();
    let mut found: BTreeMap<(Rank, WindowId, [Caller; 2]), Vec<i64>> = BTreeMap::new();
    for (rank, pattern) in epoch.patterns.iter().enumerate() {
        for (id, operation) in pattern.operations.iter() {
            let caller = (Rank::new(rank), id);
            for access in accesses(operation, rank) {
                let ((owner, window), kind, elements) = access;
                if let Some((_, twice)) = overwriting(access) {
                    found.insert((Rank::new(owner), window, [caller; 2]), twice);
                }
                for element in elements.element_iter() {
                    touched.entry((Rank::new(owner), window, element)).or_default().push((caller, kind));
                }
            }
        }
    }
    for ((rank, window, element), accesses) in touched {
        for (first, a) in &accesses {
            for (second, b) in accesses.iter().filter(|(second, _)| first < second) {
                let elements = found.entry((rank, window, [*first, *second])).or_default();
                if conflict(*a, *b) && elements.last() != Some(&element) {
                    elements.push(element);
                }
            }
        }
    }
    let some = found.into_iter().filter(|(_, elements)| !elements.is_empty());
    some.map(|((rank, window, between), elements)| Conflicting { rank, window, between, elements }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::element::Op;
    use fencepost_planner::ids::Delta;
    use fencepost_planner::ir::pattern::{Mode, Pattern, Site};

    #[test]
    fn an_operation_that_was_refused_conflicts_with_none_after_it() {
        let window = WindowId::new(0);
        let on = |to: i64, kind, elements: std::ops::Range<usize>, local| Operation {
            kind,
            window,
            target: Some(Delta(to)),
            remote: Datatype::run(elements),
            local,
            mode: Mode::Auto,
            site: Site::default(),
        };
        let section = |elements| Local::Section { window, datatype: Datatype::run(elements) };
        let sum = Kind::Accumulate(Op::Sum);
        let operations = [
            on(1, sum, 0..4, Local::Buffer),
            on(1, Kind::Put, 3..6, Local::Buffer),
            on(1, Kind::Get, 4..6, section(8..10)),
            on(1, sum, 2..4, Local::Buffer),
            on(0, Kind::Get, 9..12, Local::Buffer),
        ];
        let operations = operations.into_iter().collect();
        let epoch = Epoch { patterns: vec![Pattern { operations }], ..Epoch::default() };
        let found = refused(&epoch);
        let told: Vec<_> = found.iter().map(|found| found.between.map(|(_, id)| id.index())).collect();
        assert_eq!(told, [[2, 4], [0, 1]]);
        assert_eq!((found[0].rank, &found[0].elements), (Rank::new(0), &vec![9]));
        assert_eq!((found[1].rank, &found[1].elements), (Rank::new(1), &vec![3]));
    }

    #[test]
    fn an_operation_that_conflicts_in_a_section_of_another_window_is_refused() {
        let [u, v] = [0, 1].map(WindowId::new);
        let on = |window, to: i64, kind, elements: std::ops::Range<usize>, local| Operation {
            kind,
            window,
            target: Some(Delta(to)),
            remote: Datatype::run(elements),
            local,
            mode: Mode::Auto,
            site: Site::default(),
        };
        let section = |window, elements| Local::Section { window, datatype: Datatype::run(elements) };
        let operations = [
            on(u, 1, Kind::Put, 0..2, section(v, 4..6)),
            on(u, 1, Kind::Get, 2..4, section(v, 5..7)),
            on(v, 0, Kind::Put, 4..5, Local::Buffer),
            on(v, 1, Kind::Put, 4..5, Local::Buffer),
            on(v, 1, Kind::Get, 6..8, section(u, 0..2)),
        ];
        let operations = operations.into_iter().collect();
        let epoch = Epoch { patterns: vec![Pattern { operations }, Pattern::default()], ..Epoch::default() };
        let found = refused(&epoch);
        let told: Vec<_> = found.iter().map(|found| found.between.map(|(_, id)| id.index())).collect();
        assert_eq!(told, [[0, 1], [0, 2]]);
        assert!(found.iter().all(|found| found.rank == Rank::new(0) && found.window == v));
        assert_eq!(found[0].elements, [5]);
    }
}
