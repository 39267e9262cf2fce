//! Random values, worlds, and programs of posts, starts and fences.

use crate::{Call, Lent, World};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementKind, ElementType, Op, Scalar};
use fencepost_planner::ids::{Delta, Id, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Site};
use fencepost_tests_support::random::Random;
use std::collections::BTreeSet;

/// Draws the bytes of elements: small numbers and a few special ones.
pub fn values(dice: &mut Random, element: ElementType, count: usize) -> Vec<u8> {
    let mut next = || dice.bits();
    let mut bytes = Vec::new();
    let scalar = |bytes: &mut Vec<u8>, scalar: Scalar, raw: u64| match scalar {
        Scalar::F64 => {
            let special =
                [f64::NAN, -f64::NAN, f64::INFINITY, -0.0, 0.0, 1e308, f64::from_bits(0xfff0_dead_beef_0001)];
            let value = if raw.is_multiple_of(11) {
                special[raw as usize / 11 % 7]
            } else {
                (raw % 2001) as f64 / 7.0 - 140.0
            };
            bytes.extend_from_slice(&value.to_ne_bytes());
        }
        Scalar::F32 => {
            let special =
                [f32::NAN, -f32::NAN, f32::NEG_INFINITY, -0.0, 0.0, 1e38, f32::from_bits(0xff80_beef)];
            let value = if raw.is_multiple_of(11) {
                special[raw as usize / 11 % 7]
            } else {
                (raw % 2001) as f32 / 7.0 - 140.0
            };
            bytes.extend_from_slice(&value.to_ne_bytes());
        }
        other => {
            let raw = if raw.is_multiple_of(5) { raw } else { raw % 3 };
            bytes.extend_from_slice(&raw.to_ne_bytes()[..other.size() as usize]);
        }
    };
    for _ in 0..count {
        match element.kind {
            ElementKind::Scalar(s) => scalar(&mut bytes, s, next()),
            ElementKind::ValueAt(value, index) => {
                scalar(&mut bytes, value, next());
                scalar(&mut bytes, index, next());
            }
            ElementKind::Opaque => bytes.extend((0..element.size).map(|_| next() as u8)),
        }
    }
    bytes
}

/// Draws a world of `ranks` ranks, in which each part of each window has `len` elements.
pub fn world(dice: &mut Random, windows: &[ElementType], ranks: usize, len: usize) -> World {
    let mut part = |element: &ElementType| values(dice, *element, len);
    let memory = (0..ranks).map(|_| windows.iter().map(&mut part).collect()).collect();
    World { element: windows.iter().copied().collect(), memory }
}

/// A program of posts, starts and fences for each of a few ranks, and the world before these
/// programs.
#[derive(Debug)]
pub struct Exchange {
    /// The two windows.
    pub before: World,
    /// The calls of each rank.
    pub programs: Vec<Vec<Call>>,
}

impl Exchange {
    /// Draws programs whose windows have `len` elements in each part. If `wild`, programs may also
    /// leave accesses open, and have gets into sections. In some of the wild programs a call is
    /// left out, repeated, or exchanged with the next call.
    pub fn draw(dice: &mut Random, len: usize, wild: bool) -> Self {
        let types = [Scalar::I32, Scalar::F64, Scalar::U8, Scalar::F32].map(ElementType::scalar);
        let windows: Vec<ElementType> = (0..2).map(|_| dice.one_of(&types)).collect();
        let ranks = 1 + dice.below(4);
        let before = world(dice, &windows, ranks, len);
        let mut draw = Draw { dice, ranks, len, windows, wild };
        let mut programs = vec![Vec::new(); ranks];
        for _ in 0..1 + draw.dice.below(5) {
            let window = draw.dice.below(2);
            draw.round(&mut programs, WindowId::new(window));
            if draw.dice.once_in(3) {
                draw.fence(&mut programs);
            }
        }
        if wild && draw.dice.once_in(3) {
            let rank = draw.dice.below(ranks);
            draw.damage(&mut programs[rank]);
        }
        Self { before, programs }
    }
}

struct Draw<'d> {
    dice: &'d mut Random,
    ranks: usize,
    /// The number of elements of each part.
    len: usize,
    windows: Vec<ElementType>,
    wild: bool,
}

impl Draw<'_> {
    fn elements(&mut self, count: usize) -> Datatype {
        let at = self.dice.below(self.len);
        if self.dice.once_in(2) && at + count <= self.len {
            return Datatype::run(at..at + count);
        }
        let any = (0..count).map(|_| self.dice.below(self.len) as i64);
        Datatype::elements(any.collect::<Vec<_>>()).expect("few elements")
    }

    fn values(&mut self, window: WindowId, count: usize) -> Vec<u8> {
        values(self.dice, self.windows[window.index()], count)
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
        if (self.wild || kind != Kind::Get) && self.dice.once_in(4) {
            (local, source) = (Local::Section { window, datatype: self.elements(count) }, Vec::new());
        }
        if self.dice.once_in(40) {
            remote = remote.shift(1).expect("not far"); // mostly outside the window
        }
        let target = (!self.dice.once_in(20)).then(|| Delta(target as i64 - rank as i64));
        let site = Site { file: "program.rs".into(), line: 7, column: 1 };
        (Operation { kind, window, target, remote, local, mode: Mode::Auto, site }, source)
    }

    /// Draws an action of a rank on its own part.
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
            1 => Lent::Part(Datatype::run(0..1 + self.dice.below(self.len))),
            2 => Lent::Part(self.elements(4)),
            _ => Lent::Whole,
        }
    }

    /// Draws one access: its start, its operations and its end. The operations and the end name the
    /// access by the position of its start among these calls.
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
        if !(self.wild && self.dice.once_in(40)) {
            let drops = self.dice.once_in(20);
            calls.push(if drops { Call::Drop { access: 0 } } else { Call::Complete { access: 0 } });
        }
        calls
    }

    /// Draws posts and accesses between random pairs of ranks. The posts and accesses overlap in
    /// any order.
    fn round(&mut self, programs: &mut [Vec<Call>], window: WindowId) {
        let mut edges = BTreeSet::new();
        for edge in (0..self.ranks).flat_map(|from| (0..self.ranks).map(move |to| (from, to))) {
            if self.dice.once_in(if self.wild { 3 } else { 2 }) {
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

    /// Appends these lists of calls in a random interleaving that keeps the order of each list.
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

    /// Leaves a call out, repeats it, or exchanges it with the next call.
    fn damage(&mut self, program: &mut Vec<Call>) {
        if program.is_empty() {
            return;
        }
        let at = self.dice.below(program.len());
        match self.dice.below(3) {
            0 => drop(program.remove(at)),
            1 => program.insert(at, program[at].clone()),
            _ if at + 1 < program.len() => program.swap(at, at + 1),
            _ => {}
        }
    }
}
