//! Determines the steps of programs of locks, and which steps must come before which others (19,
//! 20).

use super::locks::{Action, LockCall, Visit};
use super::world::{World, check_section};
use fencepost_planner::error::{Error, ErrorClass, Result};
use fencepost_planner::ids::{Id, WindowId};
use fencepost_planner::ir::calls::LockType;
use std::collections::BTreeMap;

/// A step, which happens at one moment.
pub(super) struct Step {
    /// The steps that are over before this step.
    pub after: Vec<usize>,
    /// One visit of a shared epoch, or all visits of an exclusive one. Empty if the step only
    /// represents the steps before it.
    pub visits: Vec<Visit>,
    /// For an exclusive epoch, the steps of each shared epoch on its elements. The steps of one
    /// shared epoch all come before the exclusive epoch, or all come after it.
    pub sides: Vec<Vec<usize>>,
}

/// The steps of all ranks, with the values that they found.
pub(super) struct Steps {
    pub steps: Vec<Step>,
    /// For each element that is visited, the rank, the window and the element.
    pub cells: Vec<(usize, WindowId, usize)>,
    /// For each result, the rank and the position of its call.
    pub results: Vec<(usize, usize)>,
}

/// The epoch of a lock.
struct Open {
    at: usize,
    window: WindowId,
    target: usize,
    kind: LockType,
    /// The step that represents all steps that were over when the lock was taken.
    locked: usize,
    /// The steps of the epoch since its last flush.
    since: Vec<usize>,
    /// All steps of the epoch, by element.
    by_cell: BTreeMap<usize, Vec<usize>>,
    /// The visits of an exclusive epoch.
    visits: Vec<Visit>,
    ended: bool,
}

struct Reading<'a> {
    world: &'a World,
    made: Steps,
    cell_of: BTreeMap<(usize, WindowId, usize), usize>,
    /// All epochs, by rank.
    epochs: Vec<Vec<Open>>,
    /// By rank, the step that represents all steps that are over.
    over: Vec<usize>,
}

/// Returns the steps of these programs.
///
/// # Errors
/// Fails if a call is wrong. The error names the rank and the position of the first such call.
pub(super) fn steps(world: &World, programs: &[Vec<LockCall>]) -> Result<Steps> {
    let made = Steps { steps: Vec::new(), cells: Vec::new(), results: Vec::new() };
    let (epochs, over) = (programs.iter().map(|_| Vec::new()).collect(), vec![0; programs.len()]);
    let mut reading = Reading { world, made, cell_of: BTreeMap::new(), epochs, over };
    reading.step(Vec::new(), Vec::new());
    let mut at = vec![0; programs.len()];
    loop {
        for (rank, program) in programs.iter().enumerate() {
            while let Some(call) = program.get(at[rank]).filter(|call| **call != LockCall::Meet) {
                reading.call(rank, at[rank], call).map_err(|(class, why)| {
                    Error::new(class, format!("call {}: {why}", at[rank])).on_rank(rank)
                })?;
                at[rank] += 1;
            }
        }
        let ended = (0..programs.len()).filter(|&rank| at[rank] == programs[rank].len()).count();
        if ended == programs.len() {
            break;
        } else if ended > 0 {
            let why = "some ranks meet once more than others: all must meet as often";
            return Err(Error::new(ErrorClass::RmaSync, why));
        }
        let met = reading.step(reading.over.clone(), Vec::new());
        reading.over.fill(met);
        at.iter_mut().for_each(|at| *at += 1);
    }
    for (rank, epochs) in reading.epochs.iter().enumerate() {
        if let Some(open) = epochs.iter().find(|epoch| !epoch.ended) {
            let why =
                format!("call {}: never unlocked, so it is open what became of its operations", open.at);
            return Err(Error::new(ErrorClass::RmaSync, why).on_rank(rank));
        }
    }
    reading.sides();
    Ok(reading.made)
}

impl Reading<'_> {
    fn step(&mut self, after: Vec<usize>, visits: Vec<Visit>) -> usize {
        self.made.steps.push(Step { after, visits, sides: Vec::new() });
        self.made.steps.len() - 1
    }

    fn call(&mut self, rank: usize, at: usize, call: &LockCall) -> Result<(), (ErrorClass, String)> {
        match call {
            LockCall::Lock { window, target, kind } => {
                let target = target.index();
                if self.world.element.get(*window).is_none() {
                    return Err((ErrorClass::Win, format!("no window {window}")));
                }
                if target >= self.over.len() {
                    let ranks = self.over.len();
                    return Err((
                        ErrorClass::Rank,
                        format!("target r{target} is outside the world of {ranks} ranks"),
                    ));
                }
                let same = |open: &&Open| !open.ended && open.window == *window && open.target == target;
                if let Some(open) = self.epochs[rank].iter().find(same) {
                    let why = format!("{window} of r{target} is locked since call {}", open.at);
                    return Err((ErrorClass::RmaSync, why));
                }
                let (since, by_cell, visits) = (Vec::new(), BTreeMap::new(), Vec::new());
                let (window, kind, locked) = (*window, *kind, self.over[rank]);
                let open = Open { at, window, target, kind, locked, since, by_cell, visits, ended: false };
                self.epochs[rank].push(open);
            }
            LockCall::Act { lock, elements, action, bytes, found } => {
                let which = self.open(rank, *lock)?;
                let (window, target) = (self.epochs[rank][which].window, self.epochs[rank][which].target);
                let element = self.world.element[window];
                let undefined = match action {
                    Action::Accumulate(op) if !op.takes(element) => Some(op),
                    Action::Fetch(op) if !op.may_fetch(element) => Some(op),
                    _ => None,
                };
                if let Some(op) = undefined {
                    return Err((ErrorClass::Op, format!("{op} is not defined for {:?}", element.kind)));
                }
                check_section(self.world, target, window, elements)?;
                let size = element.size as usize;
                let whole = |needed: bool| if needed { elements.size() * size } else { 0 };
                let compared = match action {
                    Action::CompareAndSwap(expected) => expected.len() == whole(true),
                    _ => true,
                };
                if bytes.len() != whole(action.takes()) || found.len() != whole(action.returns()) || !compared
                {
                    let why = format!(
                        "{} bytes given and {} found for {} elements of {size} bytes",
                        bytes.len(),
                        found.len(),
                        elements.size()
                    );
                    return Err((ErrorClass::Size, why));
                }
                let result = self.made.results.len();
                if action.returns() {
                    self.made.results.push((rank, at));
                }
                for (place, to) in elements.element_iter().enumerate() {
                    let part = |bytes: &[u8]| bytes[place * size..][..size].to_vec();
                    let cell = self.cell((target, window, to as usize));
                    let visit = Visit {
                        cell,
                        element,
                        action: match action {
                            Action::CompareAndSwap(expected) => Action::CompareAndSwap(part(expected)),
                            other => other.clone(),
                        },
                        operand: if action.takes() { part(bytes) } else { Vec::new() },
                        found: action.returns().then(|| (result, part(found))),
                    };
                    self.visit(rank, which, visit);
                }
            }
            LockCall::Flush { lock } => {
                let which = self.open(rank, *lock)?;
                self.flush(rank, which);
            }
            LockCall::Unlock { lock } => {
                let which = self.open(rank, *lock)?;
                let open = &mut self.epochs[rank][which];
                open.ended = true;
                if open.kind == LockType::Exclusive {
                    let (locked, visits) = (open.locked, open.visits.clone());
                    let step = self.step(vec![locked], visits);
                    self.epochs[rank][which].since.push(step);
                }
                self.flush(rank, which);
            }
            LockCall::Meet => {}
        }
        Ok(())
    }

    fn open(&self, rank: usize, lock: usize) -> Result<usize, (ErrorClass, String)> {
        let which = self.epochs[rank].iter().position(|open| open.at == lock && !open.ended);
        which.ok_or_else(|| (ErrorClass::RmaSync, format!("call {lock} is not a lock that is held")))
    }

    fn cell(&mut self, place: (usize, WindowId, usize)) -> usize {
        let cells = &mut self.made.cells;
        *self.cell_of.entry(place).or_insert_with(|| {
            cells.push(place);
            cells.len() - 1
        })
    }

    /// Adds a visit. A visit of a shared epoch comes after all steps that were over at the call,
    /// and after earlier visits of the epoch to the same element. An exclusive epoch is a single
    /// step.
    fn visit(&mut self, rank: usize, which: usize, visit: Visit) {
        let open = &mut self.epochs[rank][which];
        if open.kind == LockType::Exclusive {
            open.visits.push(visit);
            return;
        }
        let cell = visit.cell;
        let before = open.by_cell.get(&cell).and_then(|steps| steps.last()).copied();
        let step = self.step(before.into_iter().chain([self.over[rank]]).collect(), vec![visit]);
        let open = &mut self.epochs[rank][which];
        open.by_cell.entry(cell).or_default().push(step);
        open.since.push(step);
    }

    /// Records that the steps of the epoch since its last flush are over. An exclusive epoch has no
    /// steps before it is unlocked.
    fn flush(&mut self, rank: usize, which: usize) {
        let mut after = std::mem::take(&mut self.epochs[rank][which].since);
        if !after.is_empty() {
            after.push(self.over[rank]);
            self.over[rank] = self.step(after, Vec::new());
        }
    }

    /// Finds, for each exclusive epoch, the steps of shared epochs on its elements.
    fn sides(&mut self) {
        let shared: Vec<&Open> =
            self.epochs.iter().flatten().filter(|epoch| epoch.kind == LockType::Shared).collect();
        let single: Vec<bool> = {
            let mut single = vec![false; self.made.steps.len()];
            let steps = shared.iter().flat_map(|epoch| epoch.by_cell.values().flatten());
            steps.for_each(|step| single[*step] = true);
            single
        };
        for (step, single) in self.made.steps.iter_mut().zip(single) {
            if single || step.visits.is_empty() {
                continue;
            }
            for epoch in &shared {
                let cells = |cell: &usize| step.visits.iter().any(|visit| visit.cell == *cell);
                let side = epoch.by_cell.iter().filter(|(cell, _)| cells(cell));
                let side: Vec<usize> = side.flat_map(|(_, steps)| steps.iter().copied()).collect();
                if !side.is_empty() {
                    step.sides.push(side);
                }
            }
        }
    }
}
