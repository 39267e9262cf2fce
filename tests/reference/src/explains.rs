//! Searches for an order of lock epochs that gives the results of these epochs (20, 21).
//!
//! A state consists of the steps that are done and the values that these steps left. Each state is
//! visited once. From a state, only the steps of a *stubborn set* are tried. For each step of the
//! set that could happen now, the set contains all steps that do not commute with that step. For
//! each step of the set that cannot happen yet, the set contains a step that must happen before it.
//! Steps outside the set can be postponed without losing a result. So epochs on different elements
//! are not interleaved with each other.
//!
//! # Source
//! A. Valmari: *Stubborn sets for reduced state space generation*, 1991.

use super::locks::{Action, LockCall, Visit};
use super::steps::{Step, Steps, steps};
use super::world::{World, check_world};
use fencepost_planner::error::{Error, ErrorClass, Result};
use fencepost_planner::ids::{Id, Rank, WindowId};
use std::collections::BTreeSet;

/// A result that no order of the epochs gives together with the results before it.
///
/// Results of calls come first, by rank and program order. The final values of elements follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unexplained {
    /// The values that a get or another operation found.
    Found {
        /// The rank that called the operation.
        rank: Rank,
        /// The call of that rank.
        call: usize,
    },
    /// The final value of an element of a window.
    Element {
        /// The rank that owns the window.
        rank: Rank,
        /// The window.
        window: WindowId,
        /// The element.
        element: usize,
    },
}

/// Looks for an order of the steps of `programs`, which has one program for each rank. In this
/// order the steps must find the values that the programs found, and turn `before` into `after`.
///
/// Returns `None` if such an order exists, and otherwise the first result that no order gives
/// together with the results before it.
///
/// # Errors
/// Fails if a call is wrong. The error names the rank and the position of the first such call.
/// `ErrorClass::Size` if a world does not fit. `ErrorClass::Arg` if there are too many orders to
/// try.
///
/// # Cost
/// The number of sets of steps that can be done at some time, times the number of values that these
/// steps can leave.
pub fn explains(before: &World, programs: &[Vec<LockCall>], after: &World) -> Result<Option<Unexplained>> {
    check_world(before)?;
    check_world(after)?;
    let lens = |world: &World| -> Vec<Vec<usize>> {
        world.memory.iter().map(|windows| windows.values().map(Vec::len).collect()).collect()
    };
    if before.memory.len() != programs.len() || lens(before) != lens(after) || before.element != after.element
    {
        let why = format!("{} programs, and windows that do not fit them or each other", programs.len());
        return Err(Error::new(ErrorClass::Size, why));
    }
    let search = Search { before, after, steps: steps(before, programs)? };
    let found = search.steps.results.len();
    let elements = search.elements();
    // Some order gives the first `known` results together, and no order gives the first `wrong`
    // results.
    let (mut known, mut wrong) = (0, found + elements.len());
    if search.finds(wrong)? {
        return Ok(None);
    }
    while wrong - known > 1 {
        let middle = known.midpoint(wrong);
        if search.finds(middle)? {
            known = middle;
        } else {
            wrong = middle;
        }
    }
    Ok(Some(match search.steps.results.get(wrong - 1) {
        Some(&(rank, call)) => Unexplained::Found { rank: Rank::new(rank), call },
        None => {
            let (rank, window, element) = elements[wrong - 1 - found];
            Unexplained::Element { rank: Rank::new(rank), window, element }
        }
    }))
}

struct Search<'a> {
    before: &'a World,
    after: &'a World,
    steps: Steps,
}

/// The steps that are done, and the values that they have left.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    done: Vec<bool>,
    cells: Vec<Vec<u8>>,
}

impl Search<'_> {
    /// Returns all elements of all windows, in order.
    fn elements(&self) -> Vec<(usize, WindowId, usize)> {
        let mut all = Vec::new();
        for (rank, windows) in self.before.memory.iter().enumerate() {
            for (window, bytes) in windows.iter() {
                let len = bytes.len() / self.before.element[window].size as usize;
                all.extend((0..len).map(|element| (rank, window, element)));
            }
        }
        all
    }

    fn element<'a>(&self, world: &'a World, (rank, window, element): (usize, WindowId, usize)) -> &'a [u8] {
        let size = self.before.element[window].size as usize;
        &world.memory[rank][window][element * size..][..size]
    }

    /// Returns whether some order gives the first `known` results.
    fn finds(&self, known: usize) -> Result<bool> {
        const STATES: usize = 1 << 17;
        let found = self.steps.results.len();
        let mut last: Vec<Option<&[u8]>> = vec![None; self.steps.cells.len()];
        for place in self.elements().into_iter().take(known.saturating_sub(found)) {
            let bytes = self.element(self.after, place);
            match self.steps.cells.iter().position(|cell| *cell == place) {
                Some(cell) => last[cell] = Some(bytes),
                None if self.element(self.before, place) != bytes => return Ok(false),
                None => {}
            }
        }
        let cells = self.steps.cells.iter().map(|place| self.element(self.before, *place).to_vec());
        let mut first = State { done: vec![false; self.steps.steps.len()], cells: cells.collect() };
        self.settle(&mut first);
        let mut seen = BTreeSet::new();
        let mut stack = vec![first];
        while let Some(state) = stack.pop() {
            if seen.contains(&state) || !self.may_end(&state, known, &last) {
                continue;
            }
            if state.done.iter().all(|done| *done) {
                return Ok(true);
            }
            for step in self.stubborn(&state, known).into_iter().rev() {
                let mut next = state.clone();
                next.done[step] = true;
                for visit in &self.steps.steps[step].visits {
                    visit.apply(&mut next.cells[visit.cell]);
                }
                self.settle(&mut next);
                stack.push(next);
            }
            seen.insert(state);
            if seen.len() > STATES {
                let why = format!("more than {STATES} states: these programs have too many orders to try");
                return Err(Error::new(ErrorClass::Arg, why));
            }
        }
        Ok(false)
    }

    /// Marks the steps without visits as done if they are ready.
    fn settle(&self, state: &mut State) {
        // A step only comes after steps with smaller numbers.
        for (at, step) in self.steps.steps.iter().enumerate() {
            if step.visits.is_empty() && ready(step, state) {
                state.done[at] = true;
            }
        }
    }

    /// Returns whether each element that no pending step changes has its required final value.
    fn may_end(&self, state: &State, known: usize, last: &[Option<&[u8]>]) -> bool {
        let mut settled = vec![true; state.cells.len()];
        let pending = || self.pending(state).flat_map(|(_, step)| &step.visits);
        for visit in pending().filter(|visit| visit.action != Action::Get) {
            settled[visit.cell] = false;
        }
        let fits = |visit: &Visit| {
            let found = visit.found.as_ref().filter(|(result, _)| *result < known);
            !settled[visit.cell] || found.is_none_or(|(_, found)| *found == state.cells[visit.cell])
        };
        let ends = |cell: usize| !settled[cell] || last[cell].is_none_or(|last| last == state.cells[cell]);
        pending().all(fits) && (0..state.cells.len()).all(ends)
    }

    fn pending<'s>(&'s self, state: &'s State) -> impl Iterator<Item = (usize, &'s Step)> {
        self.steps.steps.iter().enumerate().filter(|(at, _)| !state.done[*at])
    }

    /// Returns whether this step finds in `state` the values that the programs reported for it.
    fn found(&self, step: &Step, state: &State, known: usize) -> bool {
        let mut own: Vec<(usize, Vec<u8>)> = Vec::new();
        step.visits.iter().all(|visit| {
            let at = own.iter().position(|(cell, _)| *cell == visit.cell).unwrap_or_else(|| {
                own.push((visit.cell, state.cells[visit.cell].clone()));
                own.len() - 1
            });
            let value = &mut own[at].1;
            let wanted = visit.found.as_ref().filter(|(result, _)| *result < known);
            let fits = wanted.is_none_or(|(_, wanted)| wanted == value);
            visit.apply(value);
            fits
        })
    }

    /// Returns the steps of the smallest stubborn set that can happen now.
    fn stubborn(&self, state: &State, known: usize) -> Vec<usize> {
        let can = |at: usize| {
            let step = &self.steps.steps[at];
            ready(step, state) && half_done(step, state).is_none() && self.found(step, state, known)
        };
        let enabled: BTreeSet<usize> = self.pending(state).map(|(at, _)| at).filter(|at| can(*at)).collect();
        let mut best: Option<Vec<usize>> = None;
        for &seed in &enabled {
            let set = self.closure(seed, state, &enabled);
            let now: Vec<usize> = set.intersection(&enabled).copied().collect();
            if best.as_ref().is_none_or(|best| now.len() < best.len()) {
                best = Some(now);
            }
            if best.as_ref().is_some_and(|best| best.len() == 1) {
                break;
            }
        }
        best.unwrap_or_default()
    }

    fn closure(&self, seed: usize, state: &State, enabled: &BTreeSet<usize>) -> BTreeSet<usize> {
        let (mut set, mut next) = (BTreeSet::from([seed]), vec![seed]);
        while let Some(at) = next.pop() {
            let step = &self.steps.steps[at];
            let more: Vec<usize> = if let Some(&before) = step.after.iter().find(|at| !state.done[**at]) {
                vec![before]
            } else if let Some(other) = half_done(step, state) {
                vec![other]
            } else {
                // The steps that do not commute with this step. While this step does not find its
                // values, these are all steps on its elements, since any of them could change the
                // values.
                let others = self.pending(state).filter(|(other, _)| *other != at);
                let enabled = enabled.contains(&at);
                others
                    .filter(|(_, other)| touch(step, other, |a, b| !enabled || !a.commutes(b)))
                    .map(|(other, _)| other)
                    .collect()
            };
            next.extend(more.into_iter().filter(|at| set.insert(*at)));
        }
        set
    }
}

/// Returns whether all steps that come before this one are done.
fn ready(step: &Step, state: &State) -> bool {
    step.after.iter().all(|before| state.done[*before])
}

/// If only some steps of a shared epoch are done, returns a pending step of that epoch. The
/// exclusive epoch `step` must wait for the pending step.
fn half_done(step: &Step, state: &State) -> Option<usize> {
    let half = |side: &&Vec<usize>| side.iter().any(|at| state.done[*at]);
    let waits = |side: &Vec<usize>| side.iter().copied().find(|at| !state.done[*at]);
    step.sides.iter().filter(half).find_map(waits)
}

/// Returns whether two steps visit the same element and `apart` accepts the two visits. If only one
/// of the steps is an exclusive epoch on elements of a shared epoch, a common element is enough,
/// and `apart` is not called.
fn touch(a: &Step, b: &Step, apart: impl Fn(&Visit, &Visit) -> bool) -> bool {
    let sided = a.sides.is_empty() != b.sides.is_empty();
    let pairs = a.visits.iter().flat_map(|a| b.visits.iter().map(move |b| (a, b)));
    pairs.filter(|(a, b)| a.cell == b.cell).any(|(a, b)| sided || apart(a, b))
}
