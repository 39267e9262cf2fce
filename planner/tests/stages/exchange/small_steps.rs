//! An implementation of posts and starts by messages, as MPI describes them. `post` sends a message
//! to each source, and `start` receives it. `complete` sends a message to each target, and `wait`
//! receives it. `complete` carries out the gets, which read the target's memory. Puts are kept at
//! the target and applied by its `wait`. Ranks and messages take turns at random.

use fencepost_planner::ErrorClass;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ids::{Id, OperationId, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Operation, Pattern};
use fencepost_tests_reference as reference;
use fencepost_tests_reference::{Buffers, Call, Epoch, Lent, Outcome, World, apply};
use fencepost_tests_support::random::Random;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone)]
enum Message {
    /// From a target: its post, and the elements that the post exposes.
    Post(usize, Lent),
    /// From an origin: an operation, with the bytes of its source.
    Operation(usize, Operation, Vec<u8>),
    /// From an origin: the start of the access that ends, and whether the access was dropped.
    End(usize, bool),
}

enum Next {
    Deliver((usize, usize, WindowId)),
    Call(usize),
}

#[derive(Default)]
struct Ended {
    operations: Vec<(usize, Operation, Vec<u8>)>,
    end: Option<(usize, bool)>,
}

struct Access {
    start: usize,
    window: WindowId,
    targets: BTreeSet<usize>,
    operations: Vec<(usize, usize, Operation, Vec<u8>)>,
    completed: Option<usize>,
    open: bool,
}

#[derive(Default)]
struct One {
    outcomes: Vec<Outcome>,
    posted: BTreeMap<WindowId, (usize, Lent, BTreeSet<usize>)>,
    accesses: Vec<Access>,
    collected: Vec<usize>,
    /// The posts that have been received, by window and target.
    posts: BTreeMap<(WindowId, usize), Vec<(usize, Lent)>>,
    /// The messages that have been received and for which no call has waited, by window and source.
    ended: BTreeMap<(WindowId, usize), VecDeque<Ended>>,
    at_fence: bool,
}

struct All<'a> {
    world: &'a mut World,
    programs: &'a [Vec<Call>],
    ranks: Vec<One>,
    /// The messages in transit, by sender, receiver and window. Each queue is first in, first out.
    channels: BTreeMap<(usize, usize, WindowId), VecDeque<Message>>,
}

pub fn run(world: &mut World, programs: &[Vec<Call>], seed: u64) -> Vec<Vec<Outcome>> {
    let ranks = programs.iter().map(|_| One::default()).collect();
    let mut all = All { world, programs, ranks, channels: BTreeMap::new() };
    let mut random = Random::new(seed);
    loop {
        // The next turn is any turn that is possible, or the end.
        let mut turns: Vec<Next> = all
            .channels
            .iter()
            .filter(|(_, queue)| !queue.is_empty())
            .map(|(key, _)| Next::Deliver(*key))
            .collect();
        turns.extend((0..programs.len()).map(Next::Call));
        let mut done = false;
        while !done && !turns.is_empty() {
            let turn = turns.swap_remove(random.below(turns.len()));
            done = match turn {
                Next::Deliver(key) => all.deliver(key),
                Next::Call(rank) => all.turn(rank),
            };
        }
        if !done {
            break;
        }
    }
    all.finish()
}

fn failed(class: ErrorClass, rank: usize, call: usize) -> Outcome {
    Outcome::Failed { class, rank: Rank::new(rank), call }
}

fn fits(lent: &Lent, operation: &Operation) -> Result<(), ErrorClass> {
    let outside =
        |part: &Datatype| operation.remote.element_iter().any(|at| !part.element_iter().any(|p| p == at));
    match lent {
        Lent::Part(part) if outside(part) => Err(ErrorClass::Disp),
        Lent::Read if operation.kind != Kind::Get => Err(ErrorClass::Assert),
        _ => Ok(()),
    }
}

impl All<'_> {
    fn deliver(&mut self, (from, to, window): (usize, usize, WindowId)) -> bool {
        let message = self.channels.get_mut(&(from, to, window)).unwrap().pop_front().unwrap();
        let rank = &mut self.ranks[to];
        match message {
            Message::Post(call, lent) => {
                rank.posts.entry((window, from)).or_default().push((call, lent));
                self.tell(to);
            }
            Message::Operation(call, operation, bytes) => {
                let queue = rank.ended.entry((window, from)).or_default();
                if queue.back().is_none_or(|last| last.end.is_some()) {
                    queue.push_back(Ended::default());
                }
                queue.back_mut().unwrap().operations.push((call, operation, bytes));
            }
            Message::End(start, dropped) => {
                let queue = rank.ended.entry((window, from)).or_default();
                if queue.back().is_none_or(|last| last.end.is_some()) {
                    queue.push_back(Ended::default());
                }
                queue.back_mut().unwrap().end = Some((start, dropped));
            }
        }
        true
    }

    /// Checks that the window has these elements, and that no post forbids the rank to access them.
    fn own(
        &self,
        rank: usize,
        window: WindowId,
        elements: &Datatype,
        writes: bool,
    ) -> Result<(), ErrorClass> {
        self.inside(rank, window, elements)?;
        let lent = |at: i64| match self.ranks[rank].posted.get(&window) {
            Some((_, Lent::Whole, _)) => true,
            Some((_, Lent::Part(part), _)) => part.element_iter().any(|lent| lent == at),
            Some((_, Lent::Read, _)) => writes,
            None => false,
        };
        if elements.element_iter().any(lent) { Err(ErrorClass::RmaConflict) } else { Ok(()) }
    }

    fn inside(&self, rank: usize, window: WindowId, elements: &Datatype) -> Result<(), ErrorClass> {
        let element = self.world.element.get(window).ok_or(ErrorClass::Win)?;
        let len = self.world.memory[rank][window].len() as i64 / i64::from(element.size);
        if elements.element_iter().all(|at| (0..len).contains(&at)) { Ok(()) } else { Err(ErrorClass::Disp) }
    }

    fn operation(&self, rank: usize, operation: &Operation, source: &[u8]) -> Result<(), ErrorClass> {
        let Some(delta) = operation.target else { return Ok(()) };
        let target = rank as i64 + delta.0;
        if !(0..self.ranks.len() as i64).contains(&target) {
            return Err(ErrorClass::Rank);
        }
        let element = *self.world.element.get(operation.window).ok_or(ErrorClass::Win)?;
        if let Kind::Accumulate(op) = operation.kind
            && !op.takes(element)
        {
            return Err(ErrorClass::Op);
        }
        self.inside(target as usize, operation.window, &operation.remote)?;
        match &operation.local {
            Local::Section { window, datatype } => {
                if datatype.size() != operation.remote.size() {
                    return Err(ErrorClass::Size);
                }
                self.inside(rank, *window, datatype)
            }
            Local::Buffer if operation.kind == Kind::Get => Ok(()),
            Local::Buffer if source.len() == operation.remote.size() * element.size as usize => Ok(()),
            Local::Buffer => Err(ErrorClass::Size),
        }
    }

    fn read(&self, rank: usize, window: WindowId, elements: &Datatype) -> Vec<u8> {
        let size = self.world.element[window].size as usize;
        let bytes = &self.world.memory[rank][window];
        elements.element_iter().flat_map(|at| bytes[at as usize * size..][..size].to_vec()).collect()
    }

    fn write(&mut self, rank: usize, operation: &Operation, values: &[u8]) {
        let element = self.world.element[operation.window];
        let size = element.size as usize;
        let bytes = &mut self.world.memory[rank][operation.window];
        for (at, value) in operation.remote.element_iter().zip(values.chunks(size)) {
            let op = if let Kind::Accumulate(op) = operation.kind { Some(op) } else { None };
            apply(op, element, &mut bytes[at as usize * size..][..size], value);
        }
    }

    fn awaiting(&self, rank: usize, window: WindowId) -> Option<usize> {
        let uses = |call: &&usize| match &self.programs[rank][**call] {
            Call::Collect { operation, .. } => {
                operation.window == window
                    || matches!(&operation.local, Local::Section { window: w, .. } if *w == window)
            }
            _ => false,
        };
        self.ranks[rank].collected.iter().find(uses).copied()
    }

    fn open(&self, rank: usize, window: WindowId) -> Option<usize> {
        let one = &self.ranks[rank];
        let access = one.accesses.iter().find(|access| access.open && access.window == window);
        one.posted.get(&window).map(|posted| posted.0).or(access.map(|access| access.start))
    }

    /// Returns the number of `access`, from 0, among the accesses of `rank` to `target` through the
    /// same window.
    fn number(&self, rank: usize, access: &Access, target: usize) -> usize {
        let same = |other: &&Access| other.window == access.window && other.targets.contains(&target);
        self.ranks[rank].accesses.iter().filter(same).position(|other| other.start == access.start).unwrap()
    }

    fn post_of(&self, rank: usize, access: &Access, target: usize) -> Option<&(usize, Lent)> {
        let number = self.number(rank, access, target);
        self.ranks[rank].posts.get(&(access.window, target))?.get(number)
    }

    /// Records an error at the origin for operations that do not fit a post, once the post is
    /// known.
    fn tell(&mut self, rank: usize) {
        let mut told = Vec::new();
        for access in &self.ranks[rank].accesses {
            let Some(at) = access.completed else { continue };
            let misfit = access.operations.iter().find_map(|(_, target, operation, _)| {
                let (post, lent) = self.post_of(rank, access, *target)?;
                Some(failed(fits(lent, operation).err()?, *target, *post))
            });
            told.extend(misfit.map(|misfit| (at, misfit)));
        }
        for (at, misfit) in told {
            self.ranks[rank].outcomes[at] = misfit;
        }
    }

    /// Returns the ranks for which the next call of a rank waits.
    fn missing(&self, rank: usize) -> BTreeSet<Rank> {
        let one = &self.ranks[rank];
        let late: Vec<usize> = match self.programs[rank].get(one.outcomes.len()) {
            Some(Call::Complete { access }) => {
                let access = one.accesses.iter().find(|other| other.start == *access && other.open);
                let Some(access) = access else { return BTreeSet::new() };
                let late = |target: &usize| {
                    let received = one.posts.get(&(access.window, *target)).map_or(0, Vec::len);
                    let gets = access
                        .operations
                        .iter()
                        .any(|(_, to, operation, _)| to == target && operation.kind == Kind::Get);
                    let number = self.number(rank, access, *target);
                    if gets { received <= number } else { received < number }
                };
                access.targets.iter().copied().filter(late).collect()
            }
            Some(Call::Wait { window }) => {
                let sources = one.posted.get(window).map(|posted| posted.2.clone()).unwrap_or_default();
                let late = |source: &usize| {
                    let first = one.ended.get(&(*window, *source)).and_then(VecDeque::front);
                    first.is_none_or(|first| first.end.is_none())
                };
                sources.into_iter().filter(late).collect()
            }
            Some(Call::Fence { .. }) => {
                (0..self.ranks.len()).filter(|other| !self.ranks[*other].at_fence).collect()
            }
            _ => Vec::new(),
        };
        late.into_iter().map(Rank::new).collect()
    }

    fn turn(&mut self, rank: usize) -> bool {
        let at = self.ranks[rank].outcomes.len();
        let Some(call) = self.programs[rank].get(at) else { return false };
        if matches!(call, Call::Fence { .. }) && !self.ranks[rank].at_fence {
            self.ranks[rank].at_fence = true;
            return true;
        }
        if !self.missing(rank).is_empty() {
            return false;
        }
        if let Call::Fence { .. } = call {
            self.fence();
            return true;
        }
        self.ranks[rank].outcomes.push(Outcome::Done);
        if let Err(outcome) = self.call(rank, at, call) {
            self.ranks[rank].outcomes[at] = outcome;
        }
        self.tell(rank);
        true
    }

    fn call(&mut self, rank: usize, at: usize, call: &Call) -> Result<(), Outcome> {
        let refused = |class| failed(class, rank, at);
        let known = |window: WindowId, group: &BTreeSet<Rank>, all: &Self| {
            all.world.element.get(window).ok_or(ErrorClass::Win)?;
            let inside = group.iter().all(|rank| rank.index() < all.ranks.len());
            if inside { Ok(()) } else { Err(ErrorClass::Rank) }
        };
        match call {
            Call::Store { window, elements, bytes } => {
                self.own(rank, *window, elements, true).map_err(refused)?;
                let mut put = super::operation(Kind::Put, 0, elements.clone(), Local::Buffer);
                put.window = *window;
                self.operation(rank, &put, bytes).map_err(refused)?;
                self.write(rank, &put, bytes);
            }
            Call::Load { window, elements } => {
                self.own(rank, *window, elements, false).map_err(refused)?;
                self.ranks[rank].outcomes[at] = Outcome::Got(self.read(rank, *window, elements));
            }
            Call::Post { window, sources, lent } => {
                known(*window, sources, self).map_err(refused)?;
                if let Lent::Part(part) = lent {
                    self.inside(rank, *window, part).map_err(refused)?;
                }
                let posted = self.ranks[rank].posted.get(window).map(|posted| posted.0);
                if let Some(other) = posted.or(self.awaiting(rank, *window)) {
                    return Err(failed(ErrorClass::RmaSync, rank, other));
                }
                let sources: BTreeSet<usize> = sources.iter().map(|source| source.index()).collect();
                for &source in &sources {
                    self.send(rank, source, *window, Message::Post(at, lent.clone()));
                }
                self.ranks[rank].posted.insert(*window, (at, lent.clone(), sources));
            }
            Call::Wait { window } => {
                let posted = self.ranks[rank].posted.remove(window);
                let (_, lent, sources) = posted.ok_or(refused(ErrorClass::RmaSync))?;
                let mut ended = Vec::new();
                for source in sources {
                    let queue = self.ranks[rank].ended.get_mut(&(*window, source)).unwrap();
                    ended.push((source, queue.pop_front().unwrap()));
                }
                for (source, ended) in &ended {
                    if let Some((start, true)) = ended.end {
                        return Err(failed(ErrorClass::RmaSync, *source, start));
                    }
                    for (call, operation, _) in &ended.operations {
                        fits(&lent, operation).map_err(|class| failed(class, *source, *call))?;
                    }
                }
                for (_, operation, bytes) in ended.into_iter().flat_map(|(_, ended)| ended.operations) {
                    if operation.kind != Kind::Get {
                        self.write(rank, &operation, &bytes);
                    }
                }
            }
            Call::Start { window, targets } => {
                known(*window, targets, self).map_err(refused)?;
                let targets: BTreeSet<usize> = targets.iter().map(|target| target.index()).collect();
                let same = |access: &&Access| {
                    access.open && access.window == *window && !access.targets.is_disjoint(&targets)
                };
                let other = self.ranks[rank].accesses.iter().find(same).map(|access| access.start);
                if let Some(other) = other.or(self.awaiting(rank, *window)) {
                    return Err(failed(ErrorClass::RmaSync, rank, other));
                }
                let (operations, completed) = (Vec::new(), None);
                let access =
                    Access { start: at, window: *window, targets, operations, completed, open: true };
                self.ranks[rank].accesses.push(access);
            }
            Call::Access { access, operation, source } => {
                let which = self.access(rank, *access).ok_or(refused(ErrorClass::RmaSync))?;
                if operation.window != self.ranks[rank].accesses[which].window {
                    return Err(refused(ErrorClass::Win));
                }
                self.operation(rank, operation, source).map_err(refused)?;
                let Some(delta) = operation.target else { return Ok(()) };
                let target = (rank as i64 + delta.0) as usize;
                if !self.ranks[rank].accesses[which].targets.contains(&target) {
                    return Err(refused(ErrorClass::RmaSync));
                }
                let bytes = match &operation.local {
                    Local::Section { .. } if operation.kind == Kind::Get => {
                        return Err(refused(ErrorClass::Arg));
                    }
                    Local::Section { window, datatype } => {
                        self.own(rank, *window, datatype, false).map_err(refused)?;
                        self.read(rank, *window, datatype)
                    }
                    Local::Buffer => source.clone(),
                };
                if operation.remote.size() > 0 {
                    let asked = (at, target, operation.clone(), bytes);
                    self.ranks[rank].accesses[which].operations.push(asked);
                }
            }
            Call::Complete { access } | Call::Drop { access } => {
                let which = self.access(rank, *access).ok_or(refused(ErrorClass::RmaSync))?;
                let dropped = matches!(call, Call::Drop { .. });
                let access = &mut self.ranks[rank].accesses[which];
                access.open = false;
                access.completed = (!dropped).then_some(at);
                let (window, targets, start) = (access.window, access.targets.clone(), access.start);
                for (call, target, operation, bytes) in access.operations.clone() {
                    if operation.kind == Kind::Get {
                        let ticket = if dropped {
                            failed(ErrorClass::RmaSync, rank, at)
                        } else {
                            let access = &self.ranks[rank].accesses[which];
                            let (post, lent) = self.post_of(rank, access, target).unwrap();
                            match fits(lent, &operation) {
                                Ok(()) => Outcome::Got(self.read(target, window, &operation.remote)),
                                Err(class) => failed(class, target, *post),
                            }
                        };
                        self.ranks[rank].outcomes[call] = ticket;
                    }
                    self.send(rank, target, window, Message::Operation(call, operation, bytes));
                }
                for target in targets {
                    self.send(rank, target, window, Message::End(start, dropped));
                }
            }
            Call::Collect { operation, source } => {
                self.operation(rank, operation, source).map_err(refused)?;
                let mut windows = BTreeSet::from([operation.window]);
                if let Local::Section { window, .. } = operation.local {
                    windows.insert(window);
                }
                if let Some(open) = windows.iter().find_map(|window| self.open(rank, *window)) {
                    return Err(failed(ErrorClass::RmaSync, rank, open));
                }
                self.ranks[rank].collected.push(at);
            }
            Call::Fence { .. } => unreachable!(),
        }
        Ok(())
    }

    fn access(&self, rank: usize, start: usize) -> Option<usize> {
        self.ranks[rank].accesses.iter().position(|access| access.start == start && access.open)
    }

    fn send(&mut self, from: usize, to: usize, window: WindowId, message: Message) {
        self.channels.entry((from, to, window)).or_default().push_back(message);
    }

    fn fence(&mut self) {
        let ranks = self.ranks.len();
        let at: Vec<usize> = self.ranks.iter().map(|one| one.outcomes.len()).collect();
        let sets: Vec<&BTreeSet<WindowId>> = (0..ranks)
            .map(|rank| match &self.programs[rank][at[rank]] {
                Call::Fence { windows } => windows,
                _ => unreachable!(),
            })
            .collect();
        let mut wrong = None;
        for rank in (0..ranks).rev() {
            let astray = self.ranks[rank].collected.iter().find(|call| {
                let Call::Collect { operation, .. } = &self.programs[rank][**call] else { unreachable!() };
                let mut inside = vec![sets[rank].contains(&operation.window)];
                if let Local::Section { window, .. } = &operation.local {
                    inside.push(sets[rank].contains(window));
                }
                inside.contains(&true) && inside.contains(&false)
            });
            let open = sets[rank].iter().find_map(|window| self.open(rank, *window));
            if let Some(call) = open.or(astray.copied()) {
                wrong = Some((ErrorClass::RmaSync, rank, call));
            }
            if sets[rank].iter().any(|window| self.world.element.get(*window).is_none()) {
                wrong = Some((ErrorClass::Win, rank, at[rank]));
            }
        }
        let same = sets.iter().all(|set| *set == sets[0]);
        let mut epoch = Epoch::default();
        let mut calls = Vec::new();
        for (rank, set) in sets.iter().enumerate() {
            let (mut pattern, mut sources, mut of_rank) = (Pattern::default(), Buffers::new(), Vec::new());
            for call in std::mem::take(&mut self.ranks[rank].collected) {
                let Call::Collect { operation, source } = &self.programs[rank][call] else { unreachable!() };
                let own = match &operation.local {
                    Local::Section { window, .. } => set.contains(window),
                    Local::Buffer => false,
                };
                if !own && !set.contains(&operation.window) {
                    self.ranks[rank].collected.push(call);
                    continue;
                }
                let id: OperationId = pattern.operations.push(operation.clone());
                sources.insert(id, source.clone());
                of_rank.push((call, operation.kind));
            }
            epoch.patterns.push(pattern);
            epoch.sources.push(sources);
            calls.push(of_rank);
        }
        let landed = if wrong.is_none() && same {
            reference::run(self.world, &epoch).unwrap()
        } else {
            vec![Buffers::new(); ranks]
        };
        for rank in 0..ranks {
            let other = (0..ranks).find(|other| sets[*other] != sets[rank]);
            let failure = wrong.or(other.map(|other| (ErrorClass::RmaSync, other, at[other])));
            let outcome = failure.map_or(Outcome::Done, |(class, rank, call)| failed(class, rank, call));
            let one = &mut self.ranks[rank];
            one.at_fence = false;
            one.outcomes.push(outcome.clone());
            for (place, (call, kind)) in calls[rank].iter().enumerate() {
                match landed[rank].get(&OperationId::new(place)) {
                    Some(bytes) => one.outcomes[*call] = Outcome::Got(bytes.clone()),
                    None if outcome != Outcome::Done && *kind == Kind::Get => {
                        one.outcomes[*call] = outcome.clone();
                    }
                    None => {}
                }
            }
        }
    }

    fn finish(mut self) -> Vec<Vec<Outcome>> {
        let missing: Vec<_> = (0..self.ranks.len()).map(|rank| self.missing(rank)).collect();
        for (rank, missing) in missing.into_iter().enumerate() {
            let one = &mut self.ranks[rank];
            for access in one.accesses.iter().filter(|access| access.open) {
                for (call, _, operation, _) in &access.operations {
                    if operation.kind == Kind::Get {
                        one.outcomes[*call] = failed(ErrorClass::RmaSync, rank, access.start);
                    }
                }
            }
            for call in &one.collected {
                if let Call::Collect { operation, .. } = &self.programs[rank][*call]
                    && operation.kind == Kind::Get
                {
                    one.outcomes[*call] = failed(ErrorClass::RmaSync, rank, *call);
                }
            }
            if one.outcomes.len() < self.programs[rank].len() {
                one.outcomes.push(Outcome::Stalled(missing));
                one.outcomes.resize(self.programs[rank].len(), Outcome::NotReached);
            }
        }
        self.ranks.into_iter().map(|one| one.outcomes).collect()
    }
}
