//! The conflicts of an epoch between two fences (10, 28), one element at a time.

use super::epoch::Epoch;
use super::world::target;
use crate::conflicts::{access_to_section, conflict};
use crate::ids::{Id, OperationId, Rank, WindowId};
use crate::ir::pattern::{Kind, Local};
use std::collections::{BTreeMap, BTreeSet};

/// An operation: the rank that calls it, and its place among those of that rank.
type Caller = (Rank, OperationId);

/// The elements of a rank's part of a window that an operation touches, and how.
type Access = ((usize, WindowId), Kind, BTreeSet<i64>);

/// Two operations that conflict on one rank.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Conflicting {
    /// The rank that owns the elements.
    pub rank: Rank,
    /// The window.
    pub window: WindowId,
    /// The two, the lower rank first, and of one rank the first one first.
    pub between: [(Rank, OperationId); 2],
    /// The elements on which they conflict, ascending.
    pub elements: Vec<i64>,
}

/// Returns the conflicts of operations with one before of the same rank, which are found at the call of the later one: the second
/// of the two, which is then no part of the epoch (29).
pub fn refused(epoch: &Epoch) -> Vec<Conflicting> {
    let mut all = Vec::new();
    for (rank, pattern) in epoch.patterns.iter().enumerate() {
        // What the operations before have touched: where, and how.
        let mut before: Vec<(OperationId, Vec<Access>)> = Vec::new();
        for (id, operation) in pattern.operations.iter() {
            let Some(target) = target(operation, rank) else { continue };
            let there = (target, operation.window);
            let mut own: Vec<Access> =
                vec![(there, operation.kind, operation.remote.element_iter().collect())];
            if let Local::Section { window, datatype } = &operation.local {
                let kind = access_to_section(operation.kind);
                own.push(((rank, *window), kind, datatype.element_iter().collect()));
            }
            let mut found: BTreeMap<((usize, WindowId), OperationId), BTreeSet<i64>> = BTreeMap::new();
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

/// Returns all conflicts of an epoch whose operations fit their windows, by rank, window and operations.
pub fn conflicts(epoch: &Epoch) -> Vec<Conflicting> {
    // Who touches each element of each window of each rank, and how.
    let mut touched: BTreeMap<(Rank, WindowId, i64), Vec<(Caller, Kind)>> = BTreeMap::new();
    for (rank, pattern) in epoch.patterns.iter().enumerate() {
        for (id, operation) in pattern.operations.iter() {
            let Some(target) = target(operation, rank) else { continue };
            let caller = (Rank::new(rank), id);
            for element in operation.remote.element_iter() {
                let there = (Rank::new(target), operation.window, element);
                touched.entry(there).or_default().push((caller, operation.kind));
            }
            if let Local::Section { window, datatype } = &operation.local {
                for element in datatype.element_iter() {
                    let access = (caller, access_to_section(operation.kind));
                    touched.entry((Rank::new(rank), *window, element)).or_default().push(access);
                }
            }
        }
    }
    let mut found: BTreeMap<(Rank, WindowId, [Caller; 2]), Vec<i64>> = BTreeMap::new();
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
    use crate::datatype::Datatype;
    use crate::element::Op;
    use crate::ids::Delta;
    use crate::ir::pattern::{Mode, Operation, Pattern, Site};

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
