//! Random programs of posts, starts and fences.

use fencepost::{Datatype, Mode, Op};
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::ids::{Delta, Id, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Operation, Site};
use fencepost_tests_reference::{Call, Lent, Outcome, World, exchange};
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::program::first_bytes;
use std::collections::BTreeSet;

/// The elements of each rank's part of each window.
const LEN: usize = 6;

/// A program of each rank, the windows before it, and the outcome that the law demands.
pub struct Drawn {
    pub before: World,
    pub programs: Vec<Vec<Call>>,
    pub after: World,
    pub outcomes: Vec<Vec<Outcome>>,
}

/// The program of this seed that every rank can play to its end.
pub fn program(seed: u64) -> Drawn {
    let mut dice = Random::new(seed);
    loop {
        let drawn = draw(&mut dice);
        if drawn.can_be_played() {
            return drawn;
        }
    }
}

fn draw(dice: &mut Random) -> Drawn {
    let types = [Scalar::I32, Scalar::F64, Scalar::U8, Scalar::F32].map(ElementType::scalar);
    let windows: Vec<ElementType> = (0..2).map(|_| dice.one_of(&types)).collect();
    let ranks = 1 + dice.below(4);
    let memory = (0..ranks)
        .map(|rank| (0..2).map(|window| first_bytes(rank, window, windows[window], LEN)).collect())
        .collect();
    let before = World { element: windows.iter().copied().collect(), memory };
    let mut draw = Draw { dice, ranks, windows };
    let mut programs = vec![Vec::new(); ranks];
    for _ in 0..1 + draw.dice.below(5) {
        let window = draw.dice.below(2);
        draw.round(&mut programs, WindowId::new(window));
        if draw.dice.once_in(3) {
            draw.fence(&mut programs);
        }
    }
    let mut after = before.clone();
    let outcomes = exchange(&mut after, &programs).expect("the world fits the programs");
    Drawn { before, programs, after, outcomes }
}

impl Drawn {
    /// Whether no call stalls, and no rank would fence a window that it has posted: it does not have the window then.
    fn can_be_played(&self) -> bool {
        let stalls = |outcome: &Outcome| matches!(outcome, Outcome::Stalled(_) | Outcome::NotReached);
        if self.outcomes.iter().flatten().any(stalls) {
            return false;
        }
        self.programs.iter().zip(&self.outcomes).all(|(program, outcomes)| {
            let mut posted = BTreeSet::new();
            program.iter().zip(outcomes).all(|(call, outcome)| {
                match call {
                    Call::Post { window, .. } if *outcome == Outcome::Done => _ = posted.insert(*window),
                    Call::Wait { window } => _ = posted.remove(window),
                    Call::Fence { windows } => return windows.is_disjoint(&posted),
                    _ => (),
                }
                true
            })
        })
    }
}

struct Draw<'d> {
    dice: &'d mut Random,
    ranks: usize,
    windows: Vec<ElementType>,
}

impl Draw<'_> {
    fn elements(&mut self, count: usize) -> Datatype {
        let at = self.dice.below(LEN);
        if self.dice.once_in(2) && at + count <= LEN {
            return Datatype::run(at..at + count);
        }
        Datatype::elements((0..count).map(|_| self.dice.below(LEN) as i64).collect::<Vec<_>>()).unwrap()
    }

    fn values(&mut self, window: WindowId, count: usize) -> Vec<u8> {
        first_bytes(self.dice.below(1000), 0, self.windows[window.index()], count)
    }

    fn operation(&mut self, rank: usize, target: usize, window: WindowId) -> (Operation, Vec<u8>) {
        let element = self.windows[window.index()];
        let ops: Vec<Op> = Op::ALL.into_iter().filter(|op| op.takes(element)).collect();
        let kind = match self.dice.below(4) {
            0 => Kind::Put,
            1 => Kind::Get,
            _ => Kind::Accumulate(self.dice.one_of(&ops)),
        };
        let count = self.dice.one_of(&[0, 1, 1, 1, 2, 3, 4]);
        let mut remote = self.elements(count);
        let source = if kind == Kind::Get { Vec::new() } else { self.values(window, count) };
        let (mut local, mut source) = (Local::Buffer, source);
        if kind != Kind::Get && self.dice.once_in(4) {
            (local, source) = (Local::Section { window, datatype: self.elements(count) }, Vec::new());
        }
        if self.dice.once_in(40) {
            remote = remote.shift(1).unwrap(); // out of the window, mostly
        }
        let target = (!self.dice.once_in(20)).then(|| Delta(target as i64 - rank as i64));
        let site = Site { file: "program.rs".into(), line: 7, column: 1 };
        (Operation { kind, window, target, remote, local, mode: Mode::Auto, site }, source)
    }

    /// What a rank does to its own part.
    fn own(&mut self, window: WindowId) -> Call {
        let count = self.dice.below(3);
        let elements = self.elements(count);
        if self.dice.once_in(2) {
            return Call::Load { window, elements };
        }
        let bytes = self.values(window, count);
        Call::Store { window, elements, bytes }
    }

    fn lent(&mut self) -> Lent {
        match self.dice.below(8) {
            0 => Lent::Read,
            1 => Lent::Part(Datatype::run(0..1 + self.dice.below(LEN))),
            2 => Lent::Part(self.elements(4)),
            _ => Lent::Whole,
        }
    }

    /// One access: its start, operations and end, which name the access by where the start is among these.
    fn access(&mut self, rank: usize, window: WindowId, targets: &[usize]) -> Vec<Call> {
        let group = targets.iter().map(|to| Rank::new(*to)).collect();
        let mut calls = vec![Call::Start { window, targets: group }];
        for _ in 0..self.dice.below(5) {
            let target = if self.dice.once_in(20) || targets.is_empty() {
                self.dice.below(self.ranks)
            } else {
                self.dice.one_of(targets)
            };
            let (operation, source) = self.operation(rank, target, window);
            calls.push(Call::Access { access: 0, operation, source });
        }
        let drops = self.dice.once_in(20);
        calls.push(if drops { Call::Drop { access: 0 } } else { Call::Complete { access: 0 } });
        calls
    }

    /// Posts and accesses along random edges, which overlap in any order.
    fn round(&mut self, programs: &mut [Vec<Call>], window: WindowId) {
        let mut edges = BTreeSet::new();
        for edge in (0..self.ranks).flat_map(|from| (0..self.ranks).map(move |to| (from, to))) {
            if self.dice.once_in(2) {
                edges.insert(edge);
            }
        }
        for (rank, program) in programs.iter_mut().enumerate() {
            let targets: Vec<usize> = (0..self.ranks).filter(|to| edges.contains(&(rank, *to))).collect();
            let sources: BTreeSet<Rank> =
                (0..self.ranks).filter(|from| edges.contains(&(*from, rank))).map(Rank::new).collect();
            let mut lists: Vec<Vec<Call>> = Vec::new();
            let groups = if targets.len() > 1 && self.dice.once_in(3) { 2 } else { 1 };
            for group in targets.chunks(targets.len().div_ceil(groups).max(1)) {
                lists.push(self.access(rank, window, group));
            }
            let mut exposure = Vec::new();
            if !sources.is_empty() || self.dice.once_in(8) {
                exposure.push(Call::Post { window, sources, lent: self.lent() });
                if self.dice.once_in(2) {
                    exposure.push(self.own(window));
                }
                exposure.push(Call::Wait { window });
            }
            // Mostly the post comes first and the wait last.
            let easy = !self.dice.once_in(6);
            if easy && !exposure.is_empty() {
                program.push(exposure.remove(0));
            }
            let last = if easy { exposure.pop() } else { None };
            lists.push(exposure);
            self.merge(program, lists);
            program.extend(last);
            if self.dice.once_in(3) {
                program.push(self.own(window));
            }
        }
    }

    /// Appends these lists, each in its order.
    fn merge(&mut self, program: &mut Vec<Call>, lists: Vec<Vec<Call>>) {
        let mut lists: Vec<_> = lists.into_iter().map(|list| (usize::MAX, list.into_iter())).collect();
        while !lists.is_empty() {
            let which = self.dice.below(lists.len());
            let here = program.len();
            let Some(call) = lists[which].1.next() else {
                drop(lists.swap_remove(which));
                continue;
            };
            let access = lists[which].0.min(here);
            lists[which].0 = access;
            program.push(match call {
                Call::Access { operation, source, .. } => Call::Access { access, operation, source },
                Call::Complete { .. } => Call::Complete { access },
                Call::Drop { .. } => Call::Drop { access },
                other => other,
            });
        }
    }

    fn fence(&mut self, programs: &mut [Vec<Call>]) {
        let sets: [&[usize]; 3] = [&[0], &[1], &[0, 1]];
        let set = self.dice.one_of(&sets);
        let windows: BTreeSet<WindowId> = set.iter().map(|window| WindowId::new(*window)).collect();
        for (rank, program) in programs.iter_mut().enumerate() {
            for _ in 0..self.dice.below(3) {
                let target = self.dice.below(self.ranks);
                let window = WindowId::new(self.dice.one_of(set));
                let (operation, source) = self.operation(rank, target, window);
                program.push(Call::Collect { operation, source });
            }
            program.push(Call::Fence { windows: windows.clone() });
        }
    }
}
