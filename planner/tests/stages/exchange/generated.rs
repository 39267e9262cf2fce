//! Random programs: the reference leaves what small steps leave, in any order of their turns.

use super::{V, W, operation, small_steps};
use crate::support::random::{value, world};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op, Scalar};
use fencepost_planner::ids::{Id, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Operation};
use fencepost_tests_reference::{Call, Lent, Outcome, World, exchange};
use fencepost_tests_support::random::Random;
use std::collections::BTreeSet;

const LEN: usize = 4;

struct Draw {
    dice: Random,
    ranks: usize,
    windows: Vec<ElementType>,
}

impl Draw {
    fn elements(&mut self, count: usize) -> Datatype {
        Datatype::elements((0..count).map(|_| self.dice.below(LEN) as i64).collect::<Vec<_>>()).unwrap()
    }

    fn values(&mut self, window: WindowId, count: usize) -> Vec<u8> {
        let element = self.windows[window.index()];
        (0..count).flat_map(|_| value(element, &mut self.dice)).collect()
    }

    fn operation(
        &mut self,
        rank: usize,
        target: usize,
        window: WindowId,
        sections: bool,
    ) -> (Operation, Vec<u8>) {
        let element = self.windows[window.index()];
        let ops: Vec<Op> = Op::ALL.into_iter().filter(|op| op.takes(element)).collect();
        let kind = match self.dice.below(4) {
            0 => Kind::Put,
            1 => Kind::Get,
            _ => Kind::Accumulate(self.dice.one_of(&ops)),
        };
        let count = self.dice.below(4);
        let remote = self.elements(count);
        let source = if kind == Kind::Get { Vec::new() } else { self.values(window, count) };
        let (local, source) = if sections && self.dice.once_in(3) {
            (Local::Section { window, datatype: self.elements(count) }, Vec::new())
        } else {
            (Local::Buffer, source)
        };
        let mut made = operation(kind, target as i64 - rank as i64, remote, local);
        made.window = window;
        if self.dice.once_in(20) {
            made.target = None;
        }
        (made, source)
    }

    /// What a rank does to its own part.
    fn own(&mut self, window: WindowId) -> Call {
        let count = self.dice.below(3);
        let elements = self.elements(count);
        if self.dice.once_in(2) {
            Call::Load { window, elements }
        } else {
            let bytes = self.values(window, count);
            Call::Store { window, elements, bytes }
        }
    }

    fn lent(&mut self) -> Lent {
        match self.dice.below(8) {
            0 => Lent::Read,
            1 | 2 => Lent::Part(Datatype::run(0..1 + self.dice.below(LEN))),
            _ => Lent::Whole,
        }
    }

    /// One access: its start, operations and end, which name the access by where the start is among these.
    fn access(&mut self, rank: usize, window: WindowId, targets: &[usize]) -> Vec<Call> {
        let mut calls =
            vec![Call::Start { window, targets: targets.iter().map(|to| Rank::new(*to)).collect() }];
        for _ in 0..self.dice.below(4) {
            let target =
                if self.dice.once_in(15) { self.dice.below(self.ranks) } else { self.dice.one_of(targets) };
            let (operation, source) = self.operation(rank, target, window, true);
            calls.push(Call::Access { access: 0, operation, source });
        }
        if !self.dice.once_in(40) {
            calls.push(match self.dice.once_in(12) {
                true => Call::Drop { access: 0 },
                false => Call::Complete { access: 0 },
            });
        }
        calls
    }

    fn round(&mut self, programs: &mut [Vec<Call>], window: WindowId) {
        let edges: BTreeSet<(usize, usize)> = (0..self.ranks)
            .flat_map(|from| (0..self.ranks).map(move |to| (from, to)))
            .filter(|_| self.dice.once_in(3))
            .collect();
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
            let easy = !self.dice.once_in(4);
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
            match lists[which].1.next() {
                None => drop(lists.swap_remove(which)),
                Some(call) => {
                    let start = lists[which].0.min(here);
                    lists[which].0 = start;
                    program.push(match call {
                        Call::Access { operation, source, .. } => {
                            Call::Access { access: start, operation, source }
                        }
                        Call::Complete { .. } => Call::Complete { access: start },
                        Call::Drop { .. } => Call::Drop { access: start },
                        other => other,
                    });
                }
            }
        }
    }

    fn fence(&mut self, programs: &mut [Vec<Call>]) {
        let sets: [&[WindowId]; 3] = [&[W], &[V], &[W, V]];
        let windows = self.dice.one_of(&sets);
        for (rank, program) in programs.iter_mut().enumerate() {
            for _ in 0..self.dice.below(3) {
                let (target, window) = (self.dice.below(self.ranks), self.dice.one_of(windows));
                let (operation, source) = self.operation(rank, target, window, true);
                program.push(Call::Collect { operation, source });
            }
            program.push(Call::Fence { windows: windows.iter().copied().collect() });
        }
    }
}

pub fn program(seed: u64) -> (World, Vec<Vec<Call>>) {
    let mut dice = Random::new(seed);
    let types = [Scalar::I32, Scalar::F64, Scalar::U8, Scalar::F32].map(ElementType::scalar);
    let windows: Vec<ElementType> = (0..2).map(|_| dice.one_of(&types)).collect();
    let ranks = 1 + dice.below(4);
    let world = world(&windows, ranks, LEN, seed);
    let mut draw = Draw { dice, ranks, windows };
    let mut programs = vec![Vec::new(); ranks];
    for _ in 0..1 + draw.dice.below(4) {
        let window = draw.dice.one_of(&[W, W, V]);
        draw.round(&mut programs, window);
        if draw.dice.once_in(3) {
            draw.fence(&mut programs);
        }
    }
    // One in three programs is damaged: a call is left out, called twice, or exchanged with the next.
    if draw.dice.once_in(3) {
        let rank = draw.dice.below(ranks);
        let program = &mut programs[rank];
        if !program.is_empty() {
            let at = draw.dice.below(program.len());
            match draw.dice.below(3) {
                0 => drop(program.remove(at)),
                1 => program.insert(at, program[at].clone()),
                _ if at + 1 < program.len() => program.swap(at, at + 1),
                _ => {}
            }
        }
    }
    (world, programs)
}

#[test]
fn the_order_of_turns_does_not_show() {
    let (mut whole, mut failing, mut stalling, mut landing) = (0, 0, 0, 0);
    const PROGRAMS: u64 = 4000;
    for seed in 0..PROGRAMS {
        let (before, programs) = program(seed);
        let mut after = before.clone();
        let outcomes = exchange(&mut after, &programs).unwrap();
        for turns in 0..3 {
            let mut small = before.clone();
            let found = small_steps::run(&mut small, &programs, seed * 3 + turns);
            assert_eq!(found, outcomes, "seed {seed}, turns {turns}: {programs:#?}");
            assert_eq!(small, after, "seed {seed}, turns {turns}: {programs:#?}");
        }
        let all = || outcomes.iter().flatten();
        let stalls = all().any(|outcome| matches!(outcome, Outcome::Stalled(_)));
        let fails = all().any(|outcome| matches!(outcome, Outcome::Failed { .. }));
        stalling += u64::from(stalls);
        failing += u64::from(fails && !stalls);
        whole += u64::from(!fails && !stalls);
        let has = |outcome: &Outcome| matches!(outcome, Outcome::Got(bytes) if !bytes.is_empty());
        landing += u64::from(all().any(has));
    }
    let kinds = [whole, failing, stalling, landing];
    assert!(kinds.iter().all(|kind| *kind > PROGRAMS / 10), "of {PROGRAMS}: {kinds:?}");
}
