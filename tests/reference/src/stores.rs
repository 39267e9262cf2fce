//! Finds, one element at a time, stores and loads that MPI does not define because of accesses in
//! the same epoch (37).

use super::epoch::Epoch;
use super::world::target;
use fencepost_planner::ids::{Id, OperationId, Rank, WindowId};
use fencepost_planner::ir::pattern::Kind;

/// An operation on a part whose owner has stored into the part, or loaded from it, in the same
/// epoch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Undefined {
    /// The rank that has stored or loaded.
    pub rank: Rank,
    /// The window.
    pub window: WindowId,
    /// The operation: the rank that calls it, and its position among the operations of that rank.
    pub by: (Rank, OperationId),
    /// The reported elements. If stores are checked, a put or an accumulate reports all stored
    /// elements, and a get reports the stored elements that it reads. If loads are checked, these
    /// are the loaded elements that the operation touches.
    pub elements: Vec<i64>,
}

/// Returns the operations of an epoch that MPI does not define because of stores, by rank, window
/// and operation.
///
/// `stored` holds the elements that their owners stored after the program got the window.
pub fn undefined_stores(epoch: &Epoch, stored: &[(Rank, WindowId, i64)]) -> Vec<Undefined> {
    undefined(epoch, stored, |kind, is_touched| kind != Kind::Get || is_touched)
}

/// Returns the operations of an epoch that MPI does not define because of loads. `loaded` holds the
/// elements that their owners loaded.
pub fn undefined_loads(epoch: &Epoch, loaded: &[(Rank, WindowId, i64)]) -> Vec<Undefined> {
    undefined(epoch, loaded, |kind, is_touched| kind != Kind::Get && is_touched)
}

/// Returns the operations of other ranks that conflict with `local` accesses of the owner.
/// `conflicts` decides this by the kind of the operation, and by whether the operation touches the
/// element.
fn undefined(
    epoch: &Epoch,
    local: &[(Rank, WindowId, i64)],
    conflicts: impl Fn(Kind, bool) -> bool,
) -> Vec<Undefined> {
    let mut all = Vec::new();
    for (origin, pattern) in epoch.patterns.iter().enumerate() {
        for (id, operation) in pattern.operations.iter() {
            let owner = target(operation, origin).filter(|&owner| owner != origin);
            let Some(owner) = owner.filter(|_| operation.remote.size() > 0) else { continue };
            let touches = |element: i64| operation.remote.element_iter().any(|other| other == element);
            let there = local.iter().filter(|(rank, window, element)| {
                (rank.index(), *window) == (owner, operation.window)
                    && conflicts(operation.kind, touches(*element))
            });
            let mut elements: Vec<i64> = there.map(|(.., element)| *element).collect();
            elements.sort_unstable();
            elements.dedup();
            if !elements.is_empty() {
                let (rank, window) = (Rank::new(owner), operation.window);
                all.push(Undefined { rank, window, by: (Rank::new(origin), id), elements });
            }
        }
    }
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::datatype::Datatype;
    use fencepost_planner::element::Op;
    use fencepost_planner::ids::Delta;
    use fencepost_planner::ir::pattern::{Local, Mode, Operation, Pattern, Site};

    type Undefines = fn(&Epoch, &[(Rank, WindowId, i64)]) -> Vec<Undefined>;

    /// Returns the elements that are reported for an operation of rank `from` on elements 2 and 3
    /// of rank 1, which has accessed the elements `local`.
    fn told(undefined: Undefines, kind: Kind, from: usize, local: &[i64]) -> Option<Vec<i64>> {
        let window = WindowId::new(0);
        let mut epoch = Epoch::default();
        epoch.patterns.resize_with(3, || Pattern { operations: Default::default() });
        epoch.patterns[from].operations.push(Operation {
            kind,
            window,
            target: Some(Delta::between(Rank::new(from), Rank::new(1))),
            remote: Datatype::run(2..4),
            local: Local::Buffer,
            mode: Mode::Auto,
            site: Site::default(),
        });
        let local: Vec<_> = local.iter().map(|element| (Rank::new(1), window, *element)).collect();
        undefined(&epoch, &local).pop().map(|found| found.elements)
    }

    #[test]
    fn puts_conflict_with_all_stores_into_their_part_and_gets_with_those_into_their_elements() {
        let told = |kind, from, stored: &[i64]| told(undefined_stores, kind, from, stored);
        assert_eq!(told(Kind::Put, 0, &[7, 5, 7]), Some(vec![5, 7]));
        assert_eq!(told(Kind::Get, 0, &[7, 3]), Some(vec![3]));
        assert_eq!(told(Kind::Get, 0, &[7, 4]), None);
        assert_eq!(told(Kind::Put, 0, &[]), None);
        assert_eq!(told(Kind::Put, 1, &[2]), None, "its own operation");
    }

    #[test]
    fn puts_and_accumulates_conflict_with_loads_of_their_elements_and_gets_with_none() {
        let told = |kind, from, loaded: &[i64]| told(undefined_loads, kind, from, loaded);
        assert_eq!(told(Kind::Put, 0, &[7, 3, 2, 3]), Some(vec![2, 3]));
        assert_eq!(told(Kind::Accumulate(Op::Sum), 2, &[2]), Some(vec![2]));
        assert_eq!(told(Kind::Put, 0, &[7, 4]), None);
        assert_eq!(told(Kind::Get, 0, &[2, 3]), None);
        assert_eq!(told(Kind::Put, 1, &[2]), None, "its own operation");
    }
}
