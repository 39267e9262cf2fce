//! Finds conflicts, one pair of operations at a time, in the epochs that no fence ends: exposures
//! (31) and epochs of locks (32).

use super::calls::Call;
use super::locks::{Action, LockCall};
use fencepost_planner::conflicts::{access_to_compare_and_swap, conflict};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ids::{Id, Rank, WindowId};
use fencepost_planner::ir::calls::LockType;
use fencepost_planner::ir::pattern::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// Two calls that conflict on one rank, in epochs that no fence ends.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Unfenced {
    /// The rank that owns the elements.
    pub rank: Rank,
    /// The window.
    pub window: WindowId,
    /// The two calls, each by its rank and its position in the rank's program. The call of the
    /// lower rank comes first. Of two calls of one rank, the earlier one comes first.
    pub between: [(Rank, usize); 2],
    /// The elements on which the calls conflict, ascending.
    pub elements: Vec<i64>,
}

/// A call that touches elements.
struct Touch<'a> {
    by: (Rank, usize),
    kind: Kind,
    elements: &'a Datatype,
}

/// If two calls conflict, returns the elements that both touch, ascending.
fn both(a: &Touch<'_>, b: &Touch<'_>) -> Vec<i64> {
    if !conflict(a.kind, b.kind) {
        return Vec::new();
    }
    let of = |touch: &Touch<'_>| touch.elements.element_iter().collect::<BTreeSet<_>>();
    of(a).intersection(&of(b)).copied().collect()
}

fn found(rank: Rank, window: WindowId, a: &Touch<'_>, b: &Touch<'_>) -> Option<Unfenced> {
    let (elements, between) = (both(a, b), [a.by.min(b.by), a.by.max(b.by)]);
    (!elements.is_empty()).then_some(Unfenced { rank, window, between, elements })
}

/// Returns all conflicts in the exposures of programs.
///
/// All calls of the programs must be valid, and all accesses completed. If both calls of a conflict
/// are of one rank, the later call is refused and is not part of the exposure (31).
pub fn exposure_conflicts(programs: &[Vec<Call>]) -> Vec<Unfenced> {
    // Starts and posts are counted for each pair, and a start and a post with equal numbers belong
    // together (13).
    let mut posts: BTreeMap<(WindowId, Rank, Rank), Vec<usize>> = BTreeMap::new();
    for (target, program) in programs.iter().enumerate() {
        for (at, call) in program.iter().enumerate() {
            let Call::Post { window, sources, .. } = call else { continue };
            for source in sources {
                posts.entry((*window, *source, Rank::new(target))).or_default().push(at);
            }
        }
    }
    let mut exposed: BTreeMap<(WindowId, Rank, usize), Vec<Touch<'_>>> = BTreeMap::new();
    for (origin, program) in programs.iter().enumerate() {
        let origin = Rank::new(origin);
        let mut starts: BTreeMap<(WindowId, Rank), usize> = BTreeMap::new();
        let mut accesses: BTreeMap<usize, (WindowId, BTreeMap<Rank, usize>)> = BTreeMap::new();
        for (at, call) in program.iter().enumerate() {
            match call {
                Call::Start { window, targets } => {
                    let mut numbers = BTreeMap::new();
                    for target in targets {
                        let count = starts.entry((*window, *target)).or_default();
                        numbers.insert(*target, *count);
                        *count += 1;
                    }
                    accesses.insert(at, (*window, numbers));
                }
                Call::Access { access, operation, .. } => {
                    let Some(target) = operation.target else { continue };
                    let target = Rank::new((origin.index() as i64 + target.0) as usize);
                    let (window, numbers) = &accesses[access];
                    let post =
                        posts.get(&(*window, origin, target)).and_then(|all| all.get(numbers[&target]));
                    if let Some(post) = post {
                        let by = (origin, at);
                        let touch = Touch { by, kind: operation.kind, elements: &operation.remote };
                        exposed.entry((*window, target, *post)).or_default().push(touch);
                    }
                }
                _ => {}
            }
        }
    }
    let mut all = Vec::new();
    for ((window, target, _), touches) in &exposed {
        let mut left: Vec<&Touch<'_>> = Vec::new();
        for a in touches {
            let own = left.iter().filter(|b| b.by.0 == a.by.0);
            let refused: Vec<Unfenced> = own.filter_map(|b| found(*target, *window, a, b)).collect();
            if refused.is_empty() {
                left.push(a);
            }
            all.extend(refused);
        }
        for (place, a) in left.iter().enumerate() {
            let others = left[place + 1..].iter().filter(|b| b.by.0 != a.by.0);
            all.extend(others.filter_map(|b| found(*target, *window, a, b)));
        }
    }
    all.sort();
    all
}

/// Returns the conflicts between epochs of locks. If exclusive epochs and fetches can impose
/// several orders on the programs, returns only the conflicts that exist in each of these orders.
pub fn lock_conflicts(programs: &[Vec<LockCall>]) -> Vec<Unfenced> {
    /// An operation of a shared epoch, with the number of meetings before its call and before its
    /// end.
    struct Shared<'a> {
        place: (WindowId, Rank),
        called: usize,
        over: usize,
        touch: Touch<'a>,
    }
    let mut shared: Vec<Shared<'_>> = Vec::new();
    for (rank, program) in programs.iter().enumerate() {
        let meetings =
            |until: usize| program[..until].iter().filter(|call| matches!(call, LockCall::Meet)).count();
        let locks: Vec<_> = program
            .iter()
            .filter_map(|call| match call {
                LockCall::Lock { window, target, kind } => Some((*window, *target, *kind)),
                _ => None,
            })
            .collect();
        for (at, call) in program.iter().enumerate() {
            let LockCall::Act { lock, elements, action, .. } = call else { continue };
            let (window, target, kind) = locks[*lock];
            if kind == LockType::Exclusive {
                continue;
            }
            let ends = |call: &LockCall| matches!(call, LockCall::Flush { lock: other } | LockCall::Unlock { lock: other } if other == lock);
            let end = program[at..].iter().position(ends).map_or(program.len(), |after| at + after);
            let kind = match action {
                Action::Put => Kind::Put,
                Action::Get => Kind::Get,
                Action::Accumulate(op) | Action::Fetch(op) => Kind::Accumulate(*op),
                Action::CompareAndSwap(_) => access_to_compare_and_swap(),
            };
            let touch = Touch { by: (Rank::new(rank), at), kind, elements };
            shared.push(Shared { place: (window, target), called: meetings(at), over: meetings(end), touch });
        }
    }
    let mut all = Vec::new();
    for (place, a) in shared.iter().enumerate() {
        for b in &shared[place + 1..] {
            let apart = a.over < b.called || b.over < a.called;
            if a.place == b.place && a.touch.by.0 != b.touch.by.0 && !apart {
                all.extend(found(a.place.1, a.place.0, &a.touch, &b.touch));
            }
        }
    }
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::element::Op;

    fn lock(kind: LockType) -> LockCall {
        LockCall::Lock { window: WindowId::new(0), target: Rank::new(2), kind }
    }

    fn act(action: Action, elements: std::ops::Range<usize>) -> LockCall {
        let elements = Datatype::run(elements);
        LockCall::Act { lock: 0, elements, action, bytes: Vec::new(), found: Vec::new() }
    }

    const UNLOCK: LockCall = LockCall::Unlock { lock: 0 };
    const FLUSH: LockCall = LockCall::Flush { lock: 0 };

    #[test]
    fn shared_epochs_conflict_unless_a_meeting_is_between_the_end_of_one_and_the_call_of_the_other() {
        let put = || act(Action::Put, 3..5);
        let epoch = |kind| vec![lock(kind), put(), UNLOCK];
        let meets = |mut calls: Vec<LockCall>, at: usize| {
            calls.insert(at, LockCall::Meet);
            calls
        };
        let count = |a: Vec<LockCall>, b: Vec<LockCall>| lock_conflicts(&[a, b, vec![]]).len();
        let (shared, alone) = (LockType::Shared, LockType::Exclusive);
        assert_eq!(count(epoch(shared), epoch(shared)), 1);
        assert_eq!(count(epoch(shared), epoch(alone)), 0);
        assert_eq!(count(meets(epoch(shared), 3), meets(epoch(shared), 0)), 0);
        assert_eq!(count(meets(epoch(shared), 2), meets(epoch(shared), 0)), 1, "not over at the meeting");
        let flushed = vec![lock(shared), put(), FLUSH, LockCall::Meet, UNLOCK];
        assert_eq!(count(flushed, meets(epoch(shared), 0)), 0);
        let get = vec![lock(shared), act(Action::Get, 4..9), UNLOCK];
        let [found] = &lock_conflicts(&[epoch(shared), get.clone(), vec![]])[..] else { panic!("one") };
        assert_eq!(found.elements, [4]);
        assert_eq!(found.between, [(Rank::new(0), 1), (Rank::new(1), 1)]);
        assert_eq!(count(get.clone(), get), 0);
        let sum = || vec![lock(shared), act(Action::Fetch(Op::Sum), 3..4), UNLOCK];
        assert_eq!((count(sum(), sum()), count(sum(), epoch(shared))), (0, 1));
        let read = || vec![lock(shared), act(Action::Fetch(Op::NoOp), 3..4), UNLOCK];
        let got = vec![lock(shared), act(Action::Get, 3..4), UNLOCK];
        assert_eq!([sum(), read(), got, epoch(shared)].map(|other| count(read(), other)), [0, 0, 0, 1]);
    }
}
