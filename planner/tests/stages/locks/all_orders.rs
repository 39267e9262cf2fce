//! All orders of all moments, each with its results. This follows paragraphs 19 and 20 word for
//! word, and leaves nothing out for speed.

use fencepost_planner::datatype::Datatype;
use fencepost_planner::ids::{Id, WindowId};
use fencepost_planner::ir::calls::LockType;
use fencepost_tests_reference::{Action, LockCall, World, apply};
use std::collections::{BTreeMap, BTreeSet};

/// The values that operations found, by rank and call, and the windows at the end.
pub type Results = (BTreeMap<(usize, usize), Vec<u8>>, Vec<Vec<u8>>);

struct Moment {
    rank: usize,
    lock: usize,
    exclusive: bool,
    /// The positions of the first and the last call.
    from: usize,
    until: usize,
    /// The visits in order: the call, the index in its datatype, and the element.
    visits: Vec<(usize, usize, (usize, i64))>,
}

fn lock_of(program: &[LockCall], lock: usize) -> (usize, LockType) {
    match &program[lock] {
        LockCall::Lock { target, kind, .. } => (target.index(), *kind),
        _ => unreachable!(),
    }
}

fn moments(programs: &[Vec<LockCall>]) -> Vec<Moment> {
    let mut all: Vec<Moment> = Vec::new();
    for (rank, program) in programs.iter().enumerate() {
        for (at, call) in program.iter().enumerate() {
            let LockCall::Act { lock, elements, .. } = call else { continue };
            let (target, kind) = lock_of(program, *lock);
            let ends = |call: &LockCall, flushes: bool| match call {
                LockCall::Flush { lock: other } => flushes && other == lock,
                LockCall::Unlock { lock: other } => other == lock,
                _ => false,
            };
            let exclusive = kind == LockType::Exclusive;
            let until = at + program[at..].iter().position(|call| ends(call, !exclusive)).unwrap();
            for (place, element) in elements.element_iter().enumerate() {
                let visit = (at, place, (target, element));
                let same = |moment: &&mut Moment| moment.rank == rank && moment.lock == *lock && exclusive;
                match all.iter_mut().find(same) {
                    Some(moment) => moment.visits.push(visit),
                    None => {
                        let from = if exclusive { *lock } else { at };
                        let (lock, visits) = (*lock, vec![visit]);
                        all.push(Moment { rank, lock, exclusive, from, until, visits });
                    }
                }
            }
        }
    }
    all
}

/// Returns whether `a` must come before `b`.
fn before(programs: &[Vec<LockCall>], a: &Moment, b: &Moment) -> bool {
    let meetings = |rank: usize| {
        let program: &Vec<LockCall> = &programs[rank];
        (0..program.len()).filter(|at| program[*at] == LockCall::Meet).collect::<Vec<_>>()
    };
    let met =
        meetings(a.rank).iter().zip(meetings(b.rank)).any(|(left, right)| a.until < *left && right < b.from);
    let own = a.rank == b.rank && a.until < b.from;
    let one = !a.exclusive && !b.exclusive && (a.rank, a.lock) == (b.rank, b.lock);
    met || own || one && a.visits[0].2 == b.visits[0].2 && a.visits[0] < b.visits[0]
}

/// Returns whether this order keeps exclusive epochs whole: if a shared epoch visits elements of an
/// exclusive epoch, these visits are either all before or all after the exclusive epoch.
fn sided(all: &[Moment], order: &[usize]) -> bool {
    order.iter().enumerate().filter(|(_, at)| all[**at].exclusive).all(|(place, at)| {
        let elements: BTreeSet<_> = all[*at].visits.iter().map(|visit| visit.2).collect();
        let mut sides: BTreeMap<(usize, usize), BTreeSet<bool>> = BTreeMap::new();
        for (other, at) in order.iter().enumerate() {
            let other_moment = &all[*at];
            if !other_moment.exclusive && elements.contains(&other_moment.visits[0].2) {
                let key = (other_moment.rank, other_moment.lock);
                sides.entry(key).or_default().insert(other < place);
            }
        }
        sides.values().all(|sides| sides.len() == 1)
    })
}

fn give(first: &World, programs: &[Vec<LockCall>], all: &[Moment], order: &[usize]) -> Results {
    let window = WindowId(0);
    let element = first.element[window];
    let size = element.size as usize;
    let mut memory: Vec<Vec<u8>> = first.memory.iter().map(|windows| windows[window].clone()).collect();
    let mut results = BTreeMap::new();
    for at in order {
        let rank = all[*at].rank;
        for (call, place, (target, to)) in &all[*at].visits {
            let LockCall::Act { action, bytes, elements, .. } = &programs[rank][*call] else {
                unreachable!()
            };
            let cell = &mut memory[*target][*to as usize * size..][..size];
            if matches!(action, Action::Get | Action::Fetch(_) | Action::CompareAndSwap(_)) {
                let found = results.entry((rank, *call)).or_insert_with(|| vec![0; count(elements) * size]);
                found[place * size..][..size].copy_from_slice(cell);
            }
            let given = || &bytes[place * size..][..size];
            match action {
                Action::Get => {}
                Action::Put => cell.copy_from_slice(given()),
                Action::Accumulate(op) | Action::Fetch(op) => apply(Some(*op), element, cell, given()),
                Action::CompareAndSwap(expected) => {
                    if *cell == expected[place * size..][..size] {
                        cell.copy_from_slice(given());
                    }
                }
            }
        }
    }
    (results, memory)
}

fn count(elements: &Datatype) -> usize {
    elements.element_iter().count()
}

/// Returns the results of all orders.
pub fn results(first: &World, programs: &[Vec<LockCall>]) -> BTreeSet<Results> {
    let all = moments(programs);
    let needs: Vec<Vec<usize>> =
        all.iter().map(|b| (0..all.len()).filter(|a| before(programs, &all[*a], b)).collect()).collect();
    let mut found = BTreeSet::new();
    let mut orders = vec![Vec::new()];
    while let Some(order) = orders.pop() {
        if order.len() == all.len() {
            if sided(&all, &order) {
                found.insert(give(first, programs, &all, &order));
            }
            continue;
        }
        for next in (0..all.len()).filter(|next| !order.contains(next)) {
            if needs[next].iter().all(|before| order.contains(before)) {
                orders.push(order.iter().copied().chain([next]).collect());
            }
        }
    }
    found
}
