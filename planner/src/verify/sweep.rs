//! Sweeps over the elements of one rank's memory, and compares what was requested for each element
//! with what is done to it.

use super::error::{Finding, VerifyError};
use super::memo::Memo;
use super::neighbourhood::Neighbourhood;
use crate::datatype::{Datatype, MOST_RUNS, pairs};
use crate::element::{ElementType, Op};
use crate::ids::{DatatypeId, Delta, OperationId, WindowId};
use crate::ir::pattern::Order;
use crate::ir::schedule::Part;
use crate::table::Table;
use std::collections::BTreeMap;

/// The most visits of runs. Runs that overlap are visited several times.
const MOST_VISITS: usize = 1 << 24;

/// A memory of a rank: one of its windows, or the buffer of one of its operations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Space {
    Window(WindowId),
    Buffer(OperationId),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// The elements are requested.
    Demand,
    /// The elements are written.
    Write,
    /// The elements are read.
    Read,
}

/// An access to the rank's memory: by one instruction, or as one operation requests it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    what: What,
    /// The rank that executes the instruction, or that called the operation.
    actor: Delta,
    /// The actor's instruction; 0 for a demand.
    instruction: usize,
    /// The two instructions of this rank's own program between which the access happens.
    span: (usize, usize),
    operation: Option<OperationId>,
    /// The source of the elements: a rank, and a space of that rank.
    pub source: (Delta, Space),
    /// The operator; `None` moves bits.
    pub op: Option<Op>,
}

impl Access {
    pub fn of(what: What, actor: Delta, instruction: usize, span: (usize, usize)) -> Self {
        let source = (actor, Space::Window(WindowId(0)));
        Self { what, actor, instruction, span, operation: None, source, op: None }
    }

    pub fn demand(actor: Delta, id: OperationId, op: Option<Op>, source: (Delta, Space)) -> Self {
        let span = (0, 0);
        Self { operation: Some(id), source, op: move_or(op), ..Self::of(What::Demand, actor, 0, span) }
    }

    /// Returns whether all of this access is over before any of `other` begins.
    fn before(&self, other: &Self) -> bool {
        self.span.1 < other.span.0 || self.actor == other.actor && self.instruction < other.instruction
    }
}

/// Elements of an access that are contiguous both at their source and at their target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    low: i64,
    high: i64,
    from: i64,
    access: u32,
    /// The position of the run in the typemap of its access.
    step: u32,
}

/// One write of an element: the source rank and space, the source element, and the operator.
type Visit = ((Delta, Space), i64, Option<Op>);

/// All accesses to one rank's memory.
pub(super) struct Sweep<'a, 'f, 's> {
    windows: &'a Table<WindowId, ElementType>,
    order: Order,
    here: &'a Neighbourhood<'f, 's>,
    memo: &'a mut Memo,
    accesses: Vec<Access>,
    /// For each access, its target space, and the elements on both sides.
    moves: Vec<Move>,
    found: Found,
}

/// The elements that an access moves from its source to its target.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Move {
    to: Space,
    elements: DatatypeId,
    origin: DatatypeId,
}

/// The first finding of each kind.
#[derive(Default)]
struct Found {
    operator: Option<Box<Finding>>,
    unasked: Option<Box<Finding>>,
    doubled: Option<Box<Finding>>,
    missing: Option<Box<Finding>>,
    race: Option<Box<Finding>>,
    early: Option<Box<Finding>>,
    order: Option<Box<Finding>>,
}

impl<'a, 'f, 's> Sweep<'a, 'f, 's> {
    pub fn new(
        windows: &'a Table<WindowId, ElementType>,
        order: Order,
        here: &'a Neighbourhood<'f, 's>,
        memo: &'a mut Memo,
    ) -> Self {
        let (accesses, moves, found) = (Vec::new(), Vec::new(), Found::default());
        Self { windows, order, here, memo, accesses, moves, found }
    }

    /// Adds an access that moves the elements `origin` of its source, one by one, to the elements
    /// `elements` of `to`.
    pub fn add(&mut self, access: Access, to: Space, origin: &Datatype, elements: &Datatype) {
        self.accesses.push(access);
        let (elements, origin) = (self.memo.intern(elements), self.memo.intern(origin));
        self.moves.push(Move { to, elements, origin });
    }

    /// Adds a read of a part of this rank. Reads of an operation's buffer are ignored, since a
    /// buffer that is read is never written.
    pub fn read(&mut self, access: Access, part: &Part) {
        if let Part::Window { window, datatype, .. } = part {
            self.add(access, Space::Window(*window), datatype, datatype);
        }
    }

    /// Compares the accesses with the demands.
    pub fn run(mut self) -> Result<(), VerifyError> {
        if self.plain() {
            return Ok(());
        }
        let runs_of = |one: &Move| {
            let (origin, elements) = (self.memo[one.origin].run_count(), self.memo[one.elements].run_count());
            // A typemap paired with itself has as many steps as runs.
            if one.origin == one.elements { elements } else { origin.saturating_add(elements) }
        };
        let mut room: BTreeMap<Space, usize> = BTreeMap::new();
        for one in &self.moves {
            let runs = room.entry(one.to).or_default();
            *runs = runs.saturating_add(runs_of(one));
        }
        let all = room.values().copied().fold(0, usize::saturating_add);
        if all > MOST_RUNS {
            let what = format!(
                "the verifier would have to visit {all} runs of elements; it visits at most {MOST_RUNS}"
            );
            return Err(self.too_much(what));
        }
        let mut spaces: BTreeMap<Space, Vec<Run>> = BTreeMap::new();
        for (space, room) in room {
            let runs: &mut Vec<Run> = spaces.entry(space).or_default();
            if runs.try_reserve_exact(room).is_err() {
                return Err(self.too_much(format!("no memory to visit {room} runs of elements")));
            }
        }
        let mut patience = MOST_VISITS;
        for (number, one) in self.moves.iter().enumerate() {
            let runs = spaces.entry(one.to).or_default();
            let steps = pairs(&self.memo[one.origin], &self.memo[one.elements]);
            runs.extend(steps.enumerate().map(|(step, (from, low, count))| {
                let (access, step) = (number as u32, step as u32);
                Run { low, high: low + count as i64, from, access, step }
            }));
        }
        for (space, mut runs) in spaces {
            runs.sort_unstable_by_key(|run| (run.low, run.access, run.step));
            let mut active: Vec<Run> = Vec::new();
            let mut next = runs.iter().peekable();
            let mut at = i64::MIN;
            loop {
                if active.is_empty() {
                    let Some(first) = next.peek() else { break };
                    at = first.low;
                }
                while let Some(run) = next.next_if(|run| run.low == at) {
                    active.push(*run);
                }
                let ends = active.iter().map(|run| run.high).min();
                let end = ends.into_iter().chain(next.peek().map(|run| run.low)).min().unwrap_or(at);
                let Some(left) = usize::checked_sub(patience, active.len()) else {
                    let what = format!(
                        "the verifier would have to visit elements more than {MOST_VISITS} times, which is its limit"
                    );
                    return Err(self.too_much(what));
                };
                patience = left;
                self.interval(space, at, end, &active);
                active.retain(|run| run.high > end);
                at = end;
            }
        }
        self.found.verdict()
    }

    fn too_much(&self, what: String) -> VerifyError {
        VerifyError::TooMuch(self.here.finding(Delta::SELF, None, None, what))
    }

    /// Returns whether the rank's memory can be shown to be correct without looking at elements:
    /// each demand has one write with the same movement, no element is written twice, and every
    /// read of a written element comes before its write.
    fn plain(&mut self) -> bool {
        const FEW: usize = 64;
        let all = |what: What| -> Vec<usize> {
            (0..self.accesses.len()).filter(|&at| self.accesses[at].what == what).collect()
        };
        let (demands, writes, reads) = (all(What::Demand), all(What::Write), all(What::Read));
        if demands.len() != writes.len() || writes.len() > FEW || reads.len() > FEW {
            return false;
        }
        let mut free = writes.clone();
        for demand in demands {
            let (access, moved) = (&self.accesses[demand], self.moves[demand]);
            let same = |&write: &usize| {
                let done = &self.accesses[write];
                self.moves[write] == moved && (done.source, done.op) == (access.source, access.op)
            };
            let Some(found) = free.iter().position(same) else { return false };
            free.swap_remove(found);
        }
        for (place, &write) in writes.iter().enumerate() {
            let Move { to, elements, .. } = self.moves[write];
            if self.memo.repeats(elements) {
                return false;
            }
            for &other in &writes[place + 1..] {
                if self.moves[other].to == to && self.memo.overlap(elements, self.moves[other].elements) {
                    return false;
                }
            }
            for &read in &reads {
                if self.moves[read].to == to
                    && !self.accesses[read].before(&self.accesses[write])
                    && self.memo.overlap(elements, self.moves[read].elements)
                {
                    return false;
                }
            }
        }
        true
    }

    /// Compares the accesses to the elements `at..end`. All runs of `active` cover these elements,
    /// and no other run touches them.
    fn interval(&mut self, space: Space, at: i64, end: i64, active: &[Run]) {
        let accesses = &self.accesses;
        let of = |run: &Run| &accesses[run.access as usize];
        let visit = |run: &Run| -> Visit { (of(run).source, run.from + (at - run.low), of(run).op) };
        // By far the most common cases: only reads, or one demand with the one write that it asks
        // for.
        match active {
            [a] if of(a).what == What::Read => return,
            [a, b] if of(a).what == What::Demand && of(b).what == What::Write && visit(a) == visit(b) => {
                return;
            }
            [a, b] if of(b).what == What::Demand && of(a).what == What::Write && visit(a) == visit(b) => {
                return;
            }
            _ if active.iter().all(|run| of(run).what == What::Read) => return,
            _ => {}
        }
        let pick = |what| active.iter().filter(move |run| of(run).what == what);
        let mut asked: Vec<&Run> = pick(What::Demand).collect();
        asked.sort_by_key(|run| (run.access, run.step));
        let mut done: Vec<&Run> = pick(What::Write).collect();
        done.sort_by_key(|run| (of(run).span.0, of(run).actor, of(run).instruction, run.access, run.step));
        let place = || match space {
            Space::Window(window) => format!("{window} {at}..{end}"),
            Space::Buffer(operation) => format!("the buffer of {operation} {at}..{end}"),
        };
        let blame = asked.last().and_then(|run| Some((of(run).actor, of(run).operation?)));
        let finding = |run: &Run, what: String| {
            let access = of(run);
            let own = access.operation.map(|id| (access.actor, id));
            match access.what {
                What::Demand => self.here.finding(Delta::SELF, None, own, what),
                _ => self.here.finding(access.actor, Some(access.instruction), blame, what),
            }
        };

        for pair in done.windows(2) {
            if pair[0].access != pair[1].access
                && of(pair[0]).instruction_of() != of(pair[1]).instruction_of()
                && !of(pair[0]).before(of(pair[1]))
            {
                let what = format!("writes {} while {} may be writing it", place(), of(pair[0]).actor);
                self.found.race.get_or_insert_with(|| finding(pair[1], what));
            }
        }
        if let Some(first) = done.first() {
            for read in pick(What::Read).filter(|read| !of(read).before(of(first))) {
                let (r, w) = (of(read), of(first));
                if r.actor == w.actor || w.before(r) {
                    let what = format!("reads {} after it was written", place());
                    self.found.early.get_or_insert_with(|| finding(read, what));
                } else {
                    let what = format!("writes {} while {} may be reading it", place(), r.actor);
                    self.found.race.get_or_insert_with(|| finding(first, what));
                }
            }
        }

        let gets = asked.iter().take_while(|run| of(run).is_get(self.here)).count();
        let wanted: Vec<Visit> = asked.iter().map(|run| visit(run)).collect();
        let taken: Vec<Visit> = done.iter().map(|run| visit(run)).collect();
        let kind = match space {
            Space::Window(window) => self.windows[window],
            Space::Buffer(_) => ElementType::opaque(1),
        };
        if agree(&wanted, &taken, gets, kind, self.order) {
            return;
        }
        let needed = needed(&wanted, &taken, gets, self.order);
        let missing: Vec<Visit> = without(needed, &taken).into_iter().map(|index| needed[index]).collect();
        let extra = without(&taken, &wanted);
        for &index in &extra {
            let run = done[index];
            let (source, element, op) = taken[index];
            let same = |visit: &&Visit| (visit.0, visit.1) == (source, element);
            if wanted.iter().find(same).is_some_and(|visit| visit.2 != op) && !wanted.contains(&taken[index])
            {
                let what = format!("combines {} by {op:?}", place());
                self.found.operator.get_or_insert_with(|| finding(run, what));
            } else if wanted.contains(&taken[index]) {
                let what = format!("moves {} more often than was asked for", place());
                self.found.doubled.get_or_insert_with(|| finding(run, what));
            } else {
                let what = format!("moves element {element} of {source:?} to {}", place());
                self.found.unasked.get_or_insert_with(|| finding(run, what));
            }
        }
        for (source, element, _) in missing.iter().take(1) {
            let what = format!("element {element} of {source:?} does not move to {}", place());
            let run = asked.iter().find(|run| visit(run).0 == *source && visit(run).1 == *element);
            if let Some(run) = run {
                self.found.missing.get_or_insert_with(|| finding(run, what));
            }
        }
        if missing.is_empty() && extra.is_empty() {
            let run = done.last().or(asked.last());
            if let Some(run) = run {
                let what = format!("operations on {} are applied in another order", place());
                self.found.order.get_or_insert_with(|| finding(run, what));
            }
        }
    }
}

impl Access {
    fn instruction_of(&self) -> (Delta, usize) {
        (self.actor, self.instruction)
    }

    /// Returns whether the access is the demand of a get of this rank.
    fn is_get(&self, here: &Neighbourhood<'_, '_>) -> bool {
        self.actor == Delta::SELF
            && self.operation.is_some_and(|id| {
                here.own.program.pattern.operations[id].kind == crate::ir::pattern::Kind::Get
            })
    }
}

impl Found {
    /// Returns the most informative finding.
    fn verdict(self) -> Result<(), VerifyError> {
        if let Some(found) = self.operator {
            return Err(VerifyError::WrongOperator(found));
        }
        match (self.unasked, self.missing) {
            (Some(found), Some(missing)) => {
                let operation = found.operation.or(missing.operation);
                return Err(VerifyError::WrongPlace(Box::new(Finding { operation, ..*found })));
            }
            (Some(found), None) => return Err(VerifyError::Unasked(found)),
            (None, Some(found)) => return Err(VerifyError::Dropped(found)),
            (None, None) => {}
        }
        match (self.doubled, self.race, self.early, self.order) {
            (Some(found), ..) => Err(VerifyError::Doubled(found)),
            (_, Some(found), ..) => Err(VerifyError::RacingCopy(found)),
            (_, _, Some(found), _) => Err(VerifyError::WrittenBeforeRead(found)),
            (.., Some(found)) => Err(VerifyError::WrongOrder(found)),
            _ => Ok(()),
        }
    }
}

/// Returns whether the visits `taken` leave an element with the value that the visits `wanted`
/// would leave. The first `gets` of `wanted` are gets.
///
/// A visit before the last move of `wanted` cannot be seen, so `taken` may lack it. `taken` must
/// not have any visit that `wanted` lacks.
fn agree(wanted: &[Visit], taken: &[Visit], gets: usize, kind: ElementType, order: Order) -> bool {
    if canonical(wanted, taken, kind) {
        return true;
    }
    // In a relaxed epoch, the gets come first, as in any epoch. The other visits follow in any
    // order, and a move among them may hide any other of them.
    order == Order::Relaxed
        && (0..=taken.len()).any(|split| {
            let (landed, rest) = taken.split_at(split);
            let (asked_gets, asked) = wanted.split_at(gets);
            let hidden = rest.iter().any(|visit| visit.2.is_none());
            let all = rest.len() == asked.len() || hidden;
            let gets_show = hidden || canonical(asked_gets, landed, kind);
            all && gets_show && without(rest, asked).is_empty() && without(landed, asked_gets).is_empty()
        })
}

fn canonical(wanted: &[Visit], taken: &[Visit], kind: ElementType) -> bool {
    let is_move = |visit: &Visit| visit.2.is_none();
    match (wanted.iter().rposition(is_move), taken.iter().rposition(is_move)) {
        (None, None) => commuted(wanted, kind) == commuted(taken, kind),
        (Some(w), Some(t)) => {
            wanted[w] == taken[t]
                && commuted(&wanted[w + 1..], kind) == commuted(&taken[t + 1..], kind)
                && without(&taken[..t], &wanted[..w]).is_empty()
        }
        _ => false,
    }
}

/// Returns the visits in a normalised order. Two lists are then equal if they differ only in the
/// order of neighbouring visits whose result does not depend on this order.
fn commuted(visits: &[Visit], kind: ElementType) -> Vec<Visit> {
    let mut visits = visits.to_vec();
    for block in visits.chunk_by_mut(|a, b| a.2 == b.2) {
        if block[0].2.is_some_and(|op| !op.order_shows(kind)) {
            block.sort_unstable();
        }
    }
    visits
}

/// Returns the last visits of `wanted`. No later visit hides them, so they must be among `taken`,
/// the visits that happened.
fn needed<'w>(wanted: &'w [Visit], taken: &[Visit], gets: usize, order: Order) -> &'w [Visit] {
    let is_move = |visit: &Visit| visit.2.is_none();
    let shows = match order {
        Order::Canonical => wanted.iter().rposition(is_move).unwrap_or(0),
        Order::Relaxed if !wanted[gets..].iter().any(is_move) => gets.saturating_sub(1),
        // A move that was made may have hidden all other visits.
        Order::Relaxed if wanted[gets..].iter().any(|visit| is_move(visit) && taken.contains(visit)) => {
            wanted.len()
        }
        Order::Relaxed => gets,
    };
    &wanted[shows..]
}

/// Returns the indices of visits in `all` that are left when each visit in `others` cancels one
/// equal visit.
fn without(all: &[Visit], others: &[Visit]) -> Vec<usize> {
    if all.is_empty() {
        return Vec::new();
    }
    let mut left: BTreeMap<&Visit, usize> = BTreeMap::new();
    for visit in others {
        *left.entry(visit).or_default() += 1;
    }
    let mut rest = Vec::new();
    for (index, visit) in all.iter().enumerate() {
        match left.get_mut(visit) {
            Some(count) if *count > 0 => *count -= 1,
            _ => rest.push(index),
        }
    }
    rest
}

/// Maps REPLACE to `None`, since it is a put by another name.
pub(super) fn move_or(op: Option<Op>) -> Option<Op> {
    op.filter(|op| *op != Op::Replace)
}
