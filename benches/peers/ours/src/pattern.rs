//! Random patterns without conflicts, and their text for `../../mpi_patterns.c`.
//!
//! In an epoch, an element of a window is accessed by one put, by gets, or by accumulates with one
//! operator. No two gets of a rank store to the same element. MPI defines the result of such an
//! epoch.

use crate::rng_next;
use fencepost::bytemuck::Pod;
use fencepost::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The constructors of MPI datatypes. Each side of an operation is described by one of them.
const CONSTRUCTORS: [&str; 4] = ["contiguous", "vector", "indexed_block", "indexed"];
/// The numbers of elements of a window. Three successive patterns, one for each element type, have
/// the same length.
const LENGTHS: [usize; 3] = [128, 1024, 8192];
const EPOCHS: usize = 3;

/// Elements whose sums are exact, so the order of accumulates has no effect.
pub trait Value: Element + Pod {
    const NAME: &str;
    /// The operators, each with its name in the text.
    const OPERATORS: &[(&str, Op)];

    fn from_bits(bits: u64) -> Self;
}

impl Value for f64 {
    const NAME: &str = "f64";
    const OPERATORS: &[(&str, Op)] = &[("sum", Op::Sum), ("min", Op::Min), ("max", Op::Max)];

    fn from_bits(bits: u64) -> Self {
        ((bits >> 32) % 2001) as f64 - 1000.0
    }
}

impl Value for u64 {
    const NAME: &str = "u64";
    // Some libraries accumulate words of 8 bytes wrongly. MPICH 4.0.2 compares unsigned words as
    // signed ones for `Min` and `Max`. Open MPI 4.1.4 and 5.0.11 do the same in windows that
    // `MPI_Win_create` makes. In these windows, bitwise operators of Open MPI 5.0.11 combine the
    // target's `a` with itself: they leave `a & a`, `a | a` or `a ^ a`.
    const OPERATORS: &[(&str, Op)] = &[("sum", Op::Sum)];

    fn from_bits(bits: u64) -> Self {
        bits
    }
}

impl Value for i32 {
    const NAME: &str = "i32";
    const OPERATORS: &[(&str, Op)] = &[
        ("sum", Op::Sum),
        ("min", Op::Min),
        ("max", Op::Max),
        ("band", Op::Band),
        ("bor", Op::Bor),
        ("bxor", Op::Bxor),
    ];

    fn from_bits(bits: u64) -> Self {
        ((bits >> 32) % 2001) as i32 - 1000
    }
}

/// Returns the initial elements of a rank's window if `turn` is 0. Otherwise, returns the elements
/// of the rank's source in epoch `turn - 1`.
pub fn values<T: Value>(number: usize, turn: usize, rank: usize, len: usize) -> Vec<T> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul((number * 4096 + turn * 64 + rank + 1) as u64);
    (0..len).map(|_| T::from_bits(rng_next(&mut state))).collect()
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Action {
    Put,
    Get,
    Accumulate(Op),
}

/// The elements of one side of an operation.
#[derive(Debug)]
pub struct Side {
    constructor: usize,
    /// The name of the constructor, the start of the elements, and the other arguments.
    text: String,
    pub datatype: Datatype,
}

#[derive(Debug)]
pub struct Operation {
    pub action: Action,
    name: &'static str,
    pub target: usize,
    /// For a put or an accumulate, elements of the source. For a get, elements of the second half
    /// of the origin's window, which is the target of no operation.
    pub local: Side,
    /// Elements of the first half of the target's window.
    pub remote: Side,
}

#[derive(Debug)]
pub struct Pattern {
    pub number: usize,
    pub len: usize,
    /// The operations, `[epoch][rank]`.
    pub epochs: Vec<Vec<Vec<Operation>>>,
}

impl Pattern {
    /// Draws the pattern of this number. Its seed follows from the number, and patterns are drawn
    /// until one is complete.
    pub fn draw<T: Value>(number: usize, ranks: usize) -> Self {
        let len = LENGTHS[number / 3 % LENGTHS.len()];
        let mut random = Random(0xD1B5_4A32_D192_ED03_u64.wrapping_mul((number * 64 + ranks) as u64));
        loop {
            let epochs = (0..EPOCHS).map(|_| random.epoch::<T>(ranks, len)).collect();
            let pattern = Self { number, len, epochs };
            if pattern.is_complete() {
                return pattern;
            }
        }
    }

    /// Returns whether each kind of action uses each constructor on both sides.
    fn is_complete(&self) -> bool {
        let used = self.epochs.iter().flatten().flatten().flat_map(|operation| {
            let action = match operation.action {
                Action::Put => 0,
                Action::Get => 1,
                Action::Accumulate(_) => 2,
            };
            [(action, 0, operation.local.constructor), (action, 1, operation.remote.constructor)]
        });
        used.collect::<BTreeSet<_>>().len() == 3 * 2 * CONSTRUCTORS.len()
    }

    /// Writes the pattern and the digest of each epoch, for `fscanf`.
    pub fn text<T: Value>(&self, digests: &[u64]) -> String {
        let mut text = format!("pattern {} {} {} {}\n", self.number, T::NAME, self.len, self.epochs.len());
        for (epoch, digest) in self.epochs.iter().zip(digests) {
            writeln!(text, "epoch {}", epoch.iter().map(Vec::len).sum::<usize>()).unwrap();
            for (rank, operations) in epoch.iter().enumerate() {
                for Operation { name, target, local, remote, .. } in operations {
                    writeln!(text, "{rank} {name} {target} {} {}", local.text, remote.text).unwrap();
                }
            }
            writeln!(text, "digest {digest:016x}").unwrap();
        }
        text
    }
}

/// The action of an epoch on each element of a memory, or `None` if there is none yet.
struct Uses(Vec<Option<Action>>);

impl Uses {
    /// Adds an action on these elements. Returns false if the action conflicts with an earlier
    /// action.
    fn add(&mut self, action: Action, elements: &Datatype) -> bool {
        let fits = |at: i64| match self.0[at as usize] {
            None => true,
            Some(before) => before == action && action != Action::Put,
        };
        let free = elements.element_iter().all(fits);
        if free {
            elements.element_iter().for_each(|at| self.0[at as usize] = Some(action));
        }
        free
    }

    fn remove(&mut self, elements: &Datatype) {
        elements.element_iter().for_each(|at| self.0[at as usize] = None);
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        ((rng_next(&mut self.0) >> 32) % limit as u64) as usize
    }

    fn epoch<T: Value>(&mut self, ranks: usize, len: usize) -> Vec<Vec<Operation>> {
        let unused = || Uses((0..len).map(|_| None).collect());
        let mut windows: Vec<Uses> = (0..ranks).map(|_| unused()).collect();
        let rank = |_| {
            let mut landing = unused();
            let wanted = 6 + self.below(8);
            // An operation that conflicts with an earlier one is dropped, and another one is drawn.
            let draws =
                (0..8 * wanted).filter_map(|_| self.operation::<T>(ranks, len, &mut windows, &mut landing));
            draws.take(wanted).collect()
        };
        (0..ranks).map(rank).collect()
    }

    fn operation<T: Value>(
        &mut self,
        ranks: usize,
        len: usize,
        windows: &mut [Uses],
        landing: &mut Uses,
    ) -> Option<Operation> {
        let (name, action) = match self.below(3) {
            0 => ("put", Action::Put),
            1 => ("get", Action::Get),
            _ => {
                let (name, op) = T::OPERATORS[self.below(T::OPERATORS.len())];
                (name, Action::Accumulate(op))
            }
        };
        let target = self.below(ranks);
        let most = 1 + self.below(len / 16);
        let count = 1 + self.below(most);
        let mut local = self.side(count, len);
        let remote = self.side(count, len);
        if action == Action::Get {
            // A get overwrites the elements in which it stores, as a put does.
            if !landing.add(Action::Put, &local.datatype) {
                return None;
            }
            if !windows[target].add(action, &remote.datatype) {
                landing.remove(&local.datatype);
                return None;
            }
            local.datatype = local.datatype.shift(len as i64).expect("a window's elements");
        } else if !windows[target].add(action, &remote.datatype) {
            return None;
        }
        Some(Operation { action, name, target, local, remote })
    }

    /// Draws `count` different elements out of `len`. `len` must be at least four times `count`.
    fn side(&mut self, count: usize, len: usize) -> Side {
        let constructor = self.below(CONSTRUCTORS.len());
        let (start, arguments, datatype) = match CONSTRUCTORS[constructor] {
            "contiguous" => {
                let start = self.below(len - count + 1);
                (start, vec![count as i64], Datatype::run(start..start + count))
            }
            "vector" => {
                let block = self.divisor(count);
                let (blocks, stride) = (count / block, block + 1 + self.below(3));
                let reach = (blocks - 1) * stride;
                let low = self.below(len - reach - block + 1);
                let (start, stride) =
                    if self.below(4) == 0 { (low + reach, -(stride as i64)) } else { (low, stride as i64) };
                let datatype = Datatype::nest(start as i64, &[(blocks, stride)], block).expect("a window's elements");
                (start, vec![blocks as i64, block as i64, stride], datatype)
            }
            name => {
                let block = self.divisor(count);
                let lengths = match name {
                    "indexed_block" => vec![block; count / block],
                    _ => self.parts(count),
                };
                let (runs, reach) = self.scatter(&lengths);
                let start = self.below(len - reach + 1);
                let mut arguments = vec![runs.len() as i64];
                if name == "indexed_block" {
                    arguments.push(block as i64);
                    arguments.extend(runs.iter().map(|run| run.0));
                } else {
                    arguments.extend(runs.iter().flat_map(|run| [run.0, run.1 as i64]));
                }
                let runs = runs.into_iter().map(|(at, run)| (start as i64 + at, run));
                (start, arguments, Datatype::runs(runs).expect("a window's elements"))
            }
        };
        let mut text = format!("{} {start}", CONSTRUCTORS[constructor]);
        arguments.iter().for_each(|argument| write!(text, " {argument}").unwrap());
        Side { constructor, text, datatype }
    }

    fn divisor(&mut self, of: usize) -> usize {
        let divisors: Vec<usize> = (1..=of).filter(|&divisor| of.is_multiple_of(divisor)).collect();
        divisors[self.below(divisors.len())]
    }

    /// Cuts `count` into parts of at least one each.
    fn parts(&mut self, count: usize) -> Vec<usize> {
        let (mut parts, mut left) = (Vec::new(), count);
        while left > 0 {
            let part = 1 + self.below(left.min(12));
            parts.push(part);
            left -= part;
        }
        parts
    }

    /// Places runs of these lengths with small gaps between them, and shuffles them. Also returns
    /// the end of the run with the highest position.
    fn scatter(&mut self, lengths: &[usize]) -> (Vec<(i64, usize)>, usize) {
        let (mut runs, mut reach) = (Vec::new(), 0);
        for &length in lengths {
            let at = reach + self.below(3);
            runs.push((at as i64, length));
            reach = at + length;
        }
        for last in (1..runs.len()).rev() {
            runs.swap(last, self.below(last + 1));
        }
        (runs, reach)
    }
}
