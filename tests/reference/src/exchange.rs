//! Runs programs of posts, starts and fences (12 to 17).
//!
//! Each rank makes its calls one after another until a call has to wait, while the other ranks
//! continue. Once the condition for which a call waits is met, it stays met. The effect of the call
//! does not depend on what else other ranks have done by then. So the order in which ranks take
//! turns does not affect the results.

use super::calls::{Call, Lent, Outcome};
use super::epoch::{Buffers, Epoch, run};
use super::values::apply;
use super::world::{World, cell, check_operation, check_section, check_world, read};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::Op;
use fencepost_planner::error::{Error, ErrorClass, Result};
use fencepost_planner::ids::{Id, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Operation, Pattern};
use std::collections::{BTreeMap, BTreeSet};

/// Runs the programs of all ranks, by rank, on `world`. Returns the outcome of each call, by rank
/// and position.
///
/// # Errors
/// Fails if the world does not fit the programs. The world is then unchanged. A wrong call is an
/// outcome, not an error.
pub fn exchange(world: &mut World, programs: &[Vec<Call>]) -> Result<Vec<Vec<Outcome>>> {
    if world.memory.len() != programs.len() {
        let why = format!("{} programs for windows of {} ranks", programs.len(), world.memory.len());
        return Err(Error::new(ErrorClass::Size, why));
    }
    check_world(world)?;
    let mut all = Exchange {
        world,
        programs,
        outcomes: vec![Vec::new(); programs.len()],
        exposed: programs.iter().map(|_| BTreeMap::new()).collect(),
        accesses: programs.iter().map(|_| BTreeMap::new()).collect(),
        collected: vec![Vec::new(); programs.len()],
        pairs: BTreeMap::new(),
    };
    while all.fence() || (0..programs.len()).any(|rank| all.step(rank)) {}
    Ok(all.finish())
}

/// A window, an origin and a target.
type Pair = (WindowId, usize, usize);

/// The class of an error, the rank that the error names, and the call of that rank.
type Failure = (ErrorClass, usize, usize);

struct Exchange<'a> {
    world: &'a mut World,
    programs: &'a [Vec<Call>],
    /// The outcomes of the calls that have returned. The next call of a rank is the first one
    /// without an outcome.
    outcomes: Vec<Vec<Outcome>>,
    /// By rank, the windows that are currently posted.
    exposed: Vec<BTreeMap<WindowId, Exposure>>,
    /// For each rank, its accesses, by the call that started them.
    accesses: Vec<BTreeMap<usize, Access>>,
    /// By rank, the calls that await a fence, each with its windows.
    collected: Vec<Vec<(usize, BTreeSet<WindowId>)>>,
    pairs: BTreeMap<Pair, Matched>,
}

/// The posts and starts of a pair: the n-th start belongs to the n-th post (13).
#[derive(Default)]
struct Matched {
    posts: Vec<Posted>,
    /// The start of each access.
    starts: Vec<usize>,
}

struct Posted {
    call: usize,
    lent: Lent,
    /// The contents of the window at the post.
    m: Vec<u8>,
}

struct Exposure {
    call: usize,
    lent: Lent,
    /// For each source, the number of this post among the posts of the pair.
    sources: BTreeMap<usize, usize>,
}

struct Access {
    window: WindowId,
    /// For each target, the number of this start among the starts of the pair.
    targets: BTreeMap<usize, usize>,
    operations: Vec<Asked>,
    end: Option<End>,
}

#[derive(PartialEq)]
enum End {
    /// The access was completed by this call.
    Completed(usize),
    Dropped,
}

/// An operation of an access, with the bytes of its source at the call.
#[derive(Clone)]
struct Asked {
    call: usize,
    target: usize,
    operation: Operation,
    bytes: Vec<u8>,
}

impl Exchange<'_> {
    /// Makes the next call of `rank`, if there is one and it need not wait. Returns whether a call
    /// was made.
    fn step(&mut self, rank: usize) -> bool {
        let at = self.outcomes[rank].len();
        let Some(call) = self.programs[rank].get(at) else { return false };
        if !self.awaited(rank).is_empty() || matches!(call, Call::Fence { .. }) {
            return false;
        }
        match self.call(rank, at, call) {
            Ok(outcome) => self.outcomes[rank].push(outcome),
            Err(failure) => {
                self.outcomes[rank].push(Outcome::Done);
                self.fail(rank, at, failure);
            }
        }
        true
    }

    /// Returns the ranks for whose calls the next call of `rank` waits (15, 16).
    fn awaited(&self, rank: usize) -> BTreeSet<Rank> {
        let Some(call) = self.programs[rank].get(self.outcomes[rank].len()) else { return BTreeSet::new() };
        let missing: Vec<usize> = match call {
            Call::Complete { access } => {
                let Some(access) = self.accesses[rank].get(access).filter(|access| access.end.is_none())
                else {
                    return BTreeSet::new();
                };
                let late = access.targets.iter().filter(|&(&target, &number)| {
                    let gets = |asked: &Asked| {
                        asked.target == target
                            && asked.operation.kind == Kind::Get
                            && asked.operation.remote.size() > 0
                    };
                    // A get needs the post of this access; other operations need only the previous
                    // post.
                    let needed = number + usize::from(access.operations.iter().any(gets));
                    self.pairs[&(access.window, rank, target)].posts.len() < needed
                });
                late.map(|(&target, _)| target).collect()
            }
            Call::Wait { window } => {
                let sources = self.exposed[rank].get(window).map(|exposure| &exposure.sources);
                let open = |source: usize, number: usize| {
                    let start = self.pairs[&(*window, source, rank)].starts.get(number);
                    start.is_none_or(|start| self.accesses[source][start].end.is_none())
                };
                let late = sources.into_iter().flatten().filter(|&(&source, &number)| open(source, number));
                late.map(|(&source, _)| source).collect()
            }
            Call::Fence { .. } => (0..self.programs.len()).filter(|&other| !self.at_fence(other)).collect(),
            _ => Vec::new(),
        };
        missing.into_iter().map(Rank::new).collect()
    }

    /// Makes a call that need not wait any more.
    fn call(&mut self, rank: usize, at: usize, call: &Call) -> Result<Outcome, Failure> {
        let refused = |class| (class, rank, at);
        match call {
            Call::Store { window, elements, bytes } => {
                self.own(rank, *window, elements, true).map_err(refused)?;
                let kind = self.world.element[*window];
                if bytes.len() != elements.size() * kind.size as usize {
                    return Err(refused(ErrorClass::Size));
                }
                for (to, value) in elements.element_iter().zip(bytes.chunks(kind.size as usize)) {
                    cell(&mut self.world.memory[rank][*window], to as usize, kind).copy_from_slice(value);
                }
            }
            Call::Load { window, elements } => {
                self.own(rank, *window, elements, false).map_err(refused)?;
                let size = self.world.element[*window].size as usize;
                return Ok(Outcome::Got(read(&self.world.memory[rank][*window], elements, size)));
            }
            Call::Post { window, sources, lent } => {
                self.group(*window, sources).map_err(refused)?;
                if let Lent::Part(part) = lent {
                    check_section(self.world, rank, *window, part).map_err(|(class, _)| refused(class))?;
                }
                let open = self.exposed[rank].get(window).map(|exposure| exposure.call);
                if let Some(other) = open.or(self.collected(rank, *window)) {
                    return Err((ErrorClass::RmaSync, rank, other));
                }
                let m = self.world.memory[rank][*window].clone();
                let mut numbers = BTreeMap::new();
                for source in sources.iter().map(|source| source.index()) {
                    let posts = &mut self.pairs.entry((*window, source, rank)).or_default().posts;
                    numbers.insert(source, posts.len());
                    posts.push(Posted { call: at, lent: lent.clone(), m: m.clone() });
                }
                let exposure = Exposure { call: at, lent: lent.clone(), sources: numbers };
                self.exposed[rank].insert(*window, exposure);
            }
            Call::Wait { window } => {
                let exposure = self.exposed[rank].remove(window).ok_or(refused(ErrorClass::RmaSync))?;
                self.close(rank, *window, &exposure)?;
            }
            Call::Start { window, targets } => {
                self.group(*window, targets).map_err(refused)?;
                let shared = self.accesses[rank].iter().find(|(_, access)| {
                    let both = |target: &Rank| access.targets.contains_key(&target.index());
                    access.window == *window && access.end.is_none() && targets.iter().any(both)
                });
                if let Some(other) = shared.map(|(start, _)| *start).or(self.collected(rank, *window)) {
                    return Err((ErrorClass::RmaSync, rank, other));
                }
                let mut numbers = BTreeMap::new();
                for target in targets.iter().map(|target| target.index()) {
                    let starts = &mut self.pairs.entry((*window, rank, target)).or_default().starts;
                    numbers.insert(target, starts.len());
                    starts.push(at);
                }
                let access = Access { window: *window, targets: numbers, operations: vec![], end: None };
                self.accesses[rank].insert(at, access);
            }
            Call::Access { access, operation, source } => {
                let asked = self.asked(rank, at, *access, operation, source)?;
                let access = self.accesses[rank].get_mut(access).expect("it is open");
                access.operations.extend(asked);
            }
            Call::Complete { access } => {
                self.end(rank, at, *access, End::Completed(at))?;
                self.land(rank, *access);
            }
            Call::Drop { access } => {
                self.end(rank, at, *access, End::Dropped)?;
                for asked in self.accesses[rank][access].operations.clone() {
                    if asked.operation.kind == Kind::Get {
                        self.fail(rank, asked.call, (ErrorClass::RmaSync, rank, at));
                    }
                }
            }
            Call::Collect { operation, source } => {
                self.check(rank, operation, source).map_err(refused)?;
                let mut windows = BTreeSet::from([operation.window]);
                if let Local::Section { window, .. } = operation.local {
                    windows.insert(window);
                }
                if let Some(open) = windows.iter().find_map(|window| self.open(rank, *window)) {
                    return Err((ErrorClass::RmaSync, rank, open));
                }
                self.collected[rank].push((at, windows));
            }
            Call::Fence { .. } => unreachable!("fences are for all ranks at once"),
        }
        Ok(Outcome::Done)
    }

    /// Checks that `window` exists, and that all ranks of `group` are in the world.
    fn group(&self, window: WindowId, group: &BTreeSet<Rank>) -> Result<(), ErrorClass> {
        self.world.element.get(window).ok_or(ErrorClass::Win)?;
        let inside = group.iter().all(|rank| rank.index() < self.programs.len());
        inside.then_some(()).ok_or(ErrorClass::Rank)
    }

    /// Checks that a rank may access these elements of its own part: write them if `writes`, and
    /// read them otherwise (12).
    fn own(
        &self,
        rank: usize,
        window: WindowId,
        elements: &Datatype,
        writes: bool,
    ) -> Result<(), ErrorClass> {
        self.world.element.get(window).ok_or(ErrorClass::Win)?;
        check_section(self.world, rank, window, elements).map_err(|(class, _)| class)?;
        let lent = match self.exposed[rank].get(&window).map(|exposure| &exposure.lent) {
            None => false,
            Some(Lent::Whole) => elements.size() > 0,
            Some(Lent::Part(part)) => {
                let part: BTreeSet<i64> = part.element_iter().collect();
                elements.element_iter().any(|element| part.contains(&element))
            }
            Some(Lent::Read) => writes && elements.size() > 0,
        };
        if lent { Err(ErrorClass::RmaConflict) } else { Ok(()) }
    }

    fn check(&self, rank: usize, operation: &Operation, source: &[u8]) -> Result<(), ErrorClass> {
        check_operation(self.world, rank, operation, source.len()).map_err(|(class, _)| class)
    }

    /// Returns the first call of `rank` that awaits a fence of `window`.
    fn collected(&self, rank: usize, window: WindowId) -> Option<usize> {
        self.collected[rank].iter().find(|(_, windows)| windows.contains(&window)).map(|(call, _)| *call)
    }

    /// Returns the post or the first start of `rank` that holds `window` open.
    fn open(&self, rank: usize, window: WindowId) -> Option<usize> {
        let posted = self.exposed[rank].get(&window).map(|exposure| exposure.call);
        let started = self.accesses[rank]
            .iter()
            .find(|(_, access)| access.window == window && access.end.is_none())
            .map(|(start, _)| *start);
        posted.or(started)
    }

    /// Checks an operation of an access, and reads its source. Returns `None` if the operation does
    /// nothing.
    fn asked(
        &self,
        rank: usize,
        at: usize,
        access: usize,
        operation: &Operation,
        source: &[u8],
    ) -> Result<Option<Asked>, Failure> {
        let refused = |class| (class, rank, at);
        let access = self.accesses[rank].get(&access).filter(|access| access.end.is_none());
        let access = access.ok_or(refused(ErrorClass::RmaSync))?;
        if operation.window != access.window {
            return Err(refused(ErrorClass::Win));
        }
        self.check(rank, operation, source).map_err(refused)?;
        let Some(delta) = operation.target else { return Ok(None) };
        let target = (rank as i64 + delta.0) as usize;
        if !access.targets.contains_key(&target) {
            return Err(refused(ErrorClass::RmaSync));
        }
        let bytes = match (&operation.local, operation.kind) {
            (Local::Section { .. }, Kind::Get) => return Err(refused(ErrorClass::Arg)),
            (Local::Section { window, datatype }, _) => {
                self.own(rank, *window, datatype, false).map_err(refused)?;
                let size = self.world.element[*window].size as usize;
                read(&self.world.memory[rank][*window], datatype, size)
            }
            (Local::Buffer, _) => source.to_vec(),
        };
        let touches = operation.remote.size() > 0;
        Ok(touches.then(|| Asked { call: at, target, operation: operation.clone(), bytes }))
    }

    /// Ends an access, which must be open.
    fn end(&mut self, rank: usize, at: usize, access: usize, end: End) -> Result<(), Failure> {
        let access = self.accesses[rank].get_mut(&access).filter(|access| access.end.is_none());
        access.ok_or((ErrorClass::RmaSync, rank, at))?.end = Some(end);
        Ok(())
    }

    /// Fills the gets of an access with the elements that the targets exposed at their posts (14).
    fn land(&mut self, rank: usize, access: usize) {
        let access = &self.accesses[rank][&access];
        let size = self.world.element[access.window].size as usize;
        let mut landed = Vec::new();
        for asked in access.operations.iter().filter(|asked| asked.operation.kind == Kind::Get) {
            let number = access.targets[&asked.target];
            let post = &self.pairs[&(access.window, rank, asked.target)].posts[number];
            landed.push((
                asked.call,
                match misfit(&post.lent, &asked.operation) {
                    Some(class) => Err((class, asked.target, post.call)),
                    None => Ok(read(&post.m, &asked.operation.remote, size)),
                },
            ));
        }
        for (call, landed) in landed {
            match landed {
                Ok(bytes) => self.outcomes[rank][call] = Outcome::Got(bytes),
                Err(failure) => self.fail(rank, call, failure),
            }
        }
    }

    /// Applies the puts and accumulates of the sources of an exposure, in ascending order of
    /// sources. Applies nothing if one of the sources has failed (15).
    fn close(&mut self, rank: usize, window: WindowId, exposure: &Exposure) -> Result<(), Failure> {
        let mut visits: Vec<Asked> = Vec::new();
        for (&source, &number) in &exposure.sources {
            let start = self.pairs[&(window, source, rank)].starts[number];
            let access = &self.accesses[source][&start];
            if access.end == Some(End::Dropped) {
                return Err((ErrorClass::RmaSync, source, start));
            }
            for asked in access.operations.iter().filter(|asked| asked.target == rank) {
                if let Some(class) = misfit(&exposure.lent, &asked.operation) {
                    return Err((class, source, asked.call));
                }
                visits.push(asked.clone());
            }
        }
        let kind = self.world.element[window];
        for asked in visits {
            let op: Option<Op> = match asked.operation.kind {
                Kind::Get => continue,
                Kind::Put => None,
                Kind::Accumulate(op) => Some(op),
            };
            let values = asked.bytes.chunks(kind.size as usize);
            for (to, value) in asked.operation.remote.element_iter().zip(values) {
                apply(op, kind, cell(&mut self.world.memory[rank][window], to as usize, kind), value);
            }
        }
        Ok(())
    }

    fn at_fence(&self, rank: usize) -> bool {
        matches!(self.programs[rank].get(self.outcomes[rank].len()), Some(Call::Fence { .. }))
    }

    /// Carries out the fence of all ranks if each rank has reached a fence (17). Returns whether it
    /// did.
    fn fence(&mut self) -> bool {
        let ranks = self.programs.len();
        if ranks == 0 || !(0..ranks).all(|rank| self.at_fence(rank)) {
            return false;
        }
        let sets: Vec<BTreeSet<WindowId>> = (0..ranks)
            .map(|rank| match &self.programs[rank][self.outcomes[rank].len()] {
                Call::Fence { windows } => windows.clone(),
                _ => unreachable!("every rank is at a fence"),
            })
            .collect();
        // Calls that await a fence of one of these windows belong to this epoch, even if it fails.
        let mut calls = vec![Vec::new(); ranks];
        for rank in 0..ranks {
            let all = std::mem::take(&mut self.collected[rank]);
            let (now, later) = all.into_iter().partition(|(_, windows)| !windows.is_disjoint(&sets[rank]));
            (calls[rank], self.collected[rank]) = (now, later);
        }
        let at: Vec<usize> = self.outcomes.iter().map(Vec::len).collect();
        let wrong = |rank: usize| {
            let windows = &sets[rank];
            if windows.iter().any(|window| self.world.element.get(*window).is_none()) {
                return Some((ErrorClass::Win, rank, at[rank]));
            }
            let open = windows.iter().find_map(|window| self.open(rank, *window));
            let apart = calls[rank].iter().find(|(_, needed)| !needed.is_subset(windows));
            open.or(apart.map(|(call, _)| *call)).map(|call| (ErrorClass::RmaSync, rank, call))
        };
        let wrong = (0..ranks).find_map(wrong);
        let other = |rank: usize| {
            let other = (0..ranks).find(|&other| sets[other] != sets[rank])?;
            Some((ErrorClass::RmaSync, other, at[other]))
        };
        let failures: Vec<Option<Failure>> = (0..ranks).map(|rank| wrong.or(other(rank))).collect();
        if failures.iter().all(Option::is_none) {
            self.epoch(&calls);
        }
        for (rank, failure) in failures.into_iter().enumerate() {
            self.outcomes[rank].push(Outcome::Done);
            if let Some(failure) = failure {
                self.fail(rank, at[rank], failure);
                for (call, _) in &calls[rank] {
                    if self.collects_get(rank, *call) {
                        self.fail(rank, *call, failure);
                    }
                }
            }
        }
        true
    }

    /// Runs the operations that these calls have collected, by rank, as one epoch.
    fn epoch(&mut self, calls: &[Vec<(usize, BTreeSet<WindowId>)>]) {
        let mut epoch = Epoch::default();
        for (rank, calls) in calls.iter().enumerate() {
            let (mut pattern, mut sources) = (Pattern::default(), Buffers::new());
            for (call, _) in calls {
                if let Call::Collect { operation, source } = &self.programs[rank][*call] {
                    let id = pattern.operations.push(operation.clone());
                    sources.insert(id, source.clone());
                }
            }
            epoch.patterns.push(pattern);
            epoch.sources.push(sources);
        }
        let landed = run(self.world, &epoch).expect("each operation was checked when it was collected");
        for (rank, buffers) in landed.into_iter().enumerate() {
            for (id, bytes) in buffers {
                self.outcomes[rank][calls[rank][id.index()].0] = Outcome::Got(bytes);
            }
        }
    }

    fn collects_get(&self, rank: usize, call: usize) -> bool {
        let call = &self.programs[rank][call];
        matches!(call, Call::Collect { operation, .. } if operation.kind == Kind::Get)
    }

    fn fail(&mut self, rank: usize, at: usize, (class, named, call): Failure) {
        self.outcomes[rank][at] = Outcome::Failed { class, rank: Rank::new(named), call };
    }

    /// Returns the outcomes of all calls, once no rank can continue.
    fn finish(mut self) -> Vec<Vec<Outcome>> {
        for rank in 0..self.programs.len() {
            for (&start, access) in &self.accesses[rank] {
                let asked = access.operations.iter();
                // The error of an origin may depend on a post that came later, so it is determined
                // here (15).
                let failed: Vec<(usize, Failure)> = match access.end {
                    Some(End::Completed(at)) => {
                        let misfit = asked.filter_map(|asked| {
                            let posts = &self.pairs[&(access.window, rank, asked.target)].posts;
                            let post = posts.get(access.targets[&asked.target])?;
                            let class = misfit(&post.lent, &asked.operation)?;
                            Some((at, (class, asked.target, post.call)))
                        });
                        misfit.take(1).collect()
                    }
                    Some(End::Dropped) => Vec::new(),
                    None => asked
                        .filter(|asked| asked.operation.kind == Kind::Get)
                        .map(|asked| (asked.call, (ErrorClass::RmaSync, rank, start)))
                        .collect(),
                };
                for (at, (class, named, call)) in failed {
                    self.outcomes[rank][at] = Outcome::Failed { class, rank: Rank::new(named), call };
                }
            }
            for (call, _) in std::mem::take(&mut self.collected[rank]) {
                if self.collects_get(rank, call) {
                    self.fail(rank, call, (ErrorClass::RmaSync, rank, call));
                }
            }
        }
        let stalled: Vec<_> = (0..self.programs.len()).map(|rank| self.awaited(rank)).collect();
        for (rank, on) in stalled.into_iter().enumerate() {
            if self.outcomes[rank].len() < self.programs[rank].len() {
                self.outcomes[rank].push(Outcome::Stalled(on));
                self.outcomes[rank].resize(self.programs[rank].len(), Outcome::NotReached);
            }
        }
        self.outcomes
    }
}

/// Returns the class of the error if an operation accesses elements that are not exposed to it
/// (12).
fn misfit(lent: &Lent, operation: &Operation) -> Option<ErrorClass> {
    match lent {
        Lent::Whole => None,
        Lent::Part(part) => {
            let part: BTreeSet<i64> = part.element_iter().collect();
            let outside = operation.remote.element_iter().any(|element| !part.contains(&element));
            outside.then_some(ErrorClass::Disp)
        }
        Lent::Read => (operation.kind != Kind::Get).then_some(ErrorClass::Assert),
    }
}
