//! The conflicts of an epoch between two fences (10, 28), one element at a time.

use super::epoch::Epoch;
use super::world::target;
use crate::conflicts::{access_to_section, conflict};
use crate::ids::{Id, OperationId, Rank, WindowId};
use crate::ir::pattern::{Kind, Local};
use std::collections::BTreeMap;

/// An operation: the rank that calls it, and its place among those of that rank.
type Caller = (Rank, OperationId);

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
