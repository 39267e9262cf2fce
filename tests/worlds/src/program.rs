//! Random programs of epochs, and their results according to the reference.

use fencepost::Datatype;
use fencepost_planner::element::{ElementKind, ElementType, Op, Scalar};
use fencepost_planner::ids::{ClassId, Delta, Id, OperationId, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Order, Pattern, Patterns, Site, Sync};
use fencepost_planner::table::Table;
use fencepost_tests_reference as reference;
use fencepost_tests_reference::draw::values;
use fencepost_tests_support::random::Random;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt;

/// The element types of windows.
pub const ELEMENTS: [ElementType; 6] = [
    ElementType::scalar(Scalar::F64),
    ElementType::scalar(Scalar::I32),
    ElementType::scalar(Scalar::U8),
    ElementType { size: 16, kind: ElementKind::ValueAt(Scalar::F64, Scalar::I64) },
    ElementType::scalar(Scalar::F32),
    ElementType::opaque(6),
];

/// The numbers from which a program is read.
#[derive(Clone, Debug)]
pub struct RawProgram {
    ranks: u8,
    windows: Vec<(u8, [u8; 5])>,
    epochs: Vec<(u8, Vec<RawOperation>)>,
}

#[derive(Clone, Debug)]
struct RawOperation {
    rank: u8,
    kind: u8,
    window: u8,
    target: u8,
    remote: [u8; 5],
    local: [u8; 4],
}

/// Draws any program of up to five ranks, three windows, and seven epochs.
pub fn raw_program() -> impl Strategy<Value = RawProgram> {
    let operation = (any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), any::<[u8; 5]>(), any::<[u8; 4]>())
        .prop_map(|(rank, kind, window, target, remote, local)| RawOperation {
            rank,
            kind,
            window,
            target,
            remote,
            local,
        });
    let epoch = (any::<u8>(), prop::collection::vec(operation, 0..12));
    let windows = prop::collection::vec((any::<u8>(), any::<[u8; 5]>()), 1..4);
    (1..=5u8, windows, prop::collection::vec(epoch, 1..8)).prop_map(|(ranks, windows, epochs)| RawProgram {
        ranks,
        windows,
        epochs,
    })
}

/// A program: windows, and epochs of operations.
#[derive(Debug)]
pub struct Program {
    /// The number of ranks.
    pub ranks: usize,
    /// The type of each window's elements.
    pub windows: Vec<ElementType>,
    /// The length of each window in elements, `[rank][window]`.
    pub lens: Vec<Vec<usize>>,
    /// The epochs in program order.
    pub epochs: Vec<Epoch>,
}

/// One epoch of a program.
#[derive(Clone, Debug)]
pub struct Epoch {
    /// The windows that are fenced.
    pub fenced: Vec<usize>,
    /// The operations, `[rank]`, in program order. In an operation, a window has its number in the
    /// program.
    pub operations: Vec<Vec<Operation>>,
}

impl Program {
    /// Returns the same program with each epoch repeated `times` times.
    pub fn repeated(mut self, times: usize) -> Self {
        self.epochs = self.epochs.into_iter().flat_map(|epoch| std::iter::repeat_n(epoch, times)).collect();
        self
    }
}

impl Epoch {
    /// Returns the patterns of all ranks. The patterns number only the fenced windows. Equal
    /// patterns are kept once.
    pub fn patterns(&self, windows: &[ElementType]) -> Patterns {
        let place = |window: WindowId| {
            let place = self.fenced.iter().position(|&fenced| fenced == window.index());
            WindowId::new(place.expect("operations are on fenced windows"))
        };
        let mut classes = Table::new();
        let class_of = self.operations.iter().map(|operations| {
            let operations = operations.iter().map(|operation| {
                let local = match &operation.local {
                    Local::Buffer => Local::Buffer,
                    Local::Section { window, datatype } => {
                        Local::Section { window: place(*window), datatype: datatype.clone() }
                    }
                };
                Operation { window: place(operation.window), local, ..operation.clone() }
            });
            let pattern = Pattern { operations: operations.collect() };
            let known = classes.iter().find(|(_, other)| **other == pattern).map(|(class, _)| class);
            known.unwrap_or_else(|| classes.push(pattern))
        });
        let class_of: Vec<ClassId> = class_of.collect();
        Patterns {
            name: "random".into(),
            windows: self.fenced.iter().map(|&window| windows[window]).collect(),
            shape: vec![class_of.len() as u32],
            classes,
            class_of,
            order: Order::Canonical,
            sync: Sync::Fence,
        }
    }
}

/// The results of a program: all windows, and the elements of each ticket by epoch and rank.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// The bytes of each window, `[rank][window]`.
    pub memory: Vec<Vec<Vec<u8>>>,
    /// The elements of each ticket, `[rank]`, by epoch and operation.
    pub tickets: Vec<BTreeMap<(usize, u32), Vec<u8>>>,
}

impl RawProgram {
    /// Returns the number of epochs.
    pub fn epochs(&self) -> usize {
        self.epochs.len()
    }

    /// Returns the program that these numbers describe.
    pub fn program(&self) -> Program {
        let ranks = self.ranks as usize;
        let windows: Vec<ElementType> =
            self.windows.iter().map(|(kind, _)| ELEMENTS[*kind as usize % ELEMENTS.len()]).collect();
        let lens: Vec<Vec<usize>> = (0..ranks)
            .map(|rank| self.windows.iter().map(|(_, lens)| lens[rank] as usize % 14).collect())
            .collect();
        let epochs = self.epochs.iter().map(|(fenced, raw)| {
            let mask = *fenced as usize | 1 << (*fenced as usize % windows.len());
            let fenced: Vec<usize> = (0..windows.len()).filter(|w| mask >> w & 1 == 1).collect();
            let mut operations = vec![Vec::new(); ranks];
            for raw in raw {
                let rank = raw.rank as usize % ranks;
                if let Some(operation) = raw.operation(rank, ranks, &windows, &lens, &fenced) {
                    operations[rank].push(operation);
                }
            }
            Epoch { fenced, operations }
        });
        let epochs = epochs.collect();
        Program { ranks, windows, lens, epochs }
    }
}

impl RawOperation {
    fn operation(
        &self,
        rank: usize,
        ranks: usize,
        windows: &[ElementType],
        lens: &[Vec<usize>],
        fenced: &[usize],
    ) -> Option<Operation> {
        let window = fenced[self.window as usize % fenced.len()];
        let element = windows[window];
        let target = (self.target as usize % (ranks + 1)).checked_sub(1).map(|t| t % ranks);
        let target_len = target.map_or(9, |target| lens[target][window]);
        let remote = datatype(self.remote, target_len);
        let kind = match self.kind % 5 {
            0 | 1 => Kind::Put,
            2 => Kind::Get,
            _ => {
                let ops: Vec<Op> = Op::ALL.into_iter().filter(|op| op.takes(element)).collect();
                Kind::Accumulate(ops[self.kind as usize / 5 % ops.len()])
            }
        };
        let others: Vec<usize> = fenced.iter().copied().filter(|&w| windows[w] == element).collect();
        let local = if self.local[0].is_multiple_of(3) {
            Local::Buffer
        } else {
            let section_of = others[self.local[1] as usize % others.len()];
            match of_size(self.local[2], self.local[3], remote.size(), lens[rank][section_of]) {
                Some(datatype) => Local::Section { window: WindowId::new(section_of), datatype },
                None => Local::Buffer,
            }
        };
        Some(Operation {
            kind,
            window: WindowId::new(window),
            target: target.map(|target| Delta::between(Rank::new(rank), Rank::new(target))),
            remote,
            local,
            mode: Mode::ALL[self.local[0] as usize / 3 % 5],
            site: Site::default(),
        })
    }
}

/// Returns a datatype of any form within `len` elements.
fn datatype(raw: [u8; 5], len: usize) -> Datatype {
    let [form, a, b, c, d] = raw.map(usize::from);
    if len == 0 {
        return Datatype::empty();
    }
    let at = a % len;
    let made = match form % 8 {
        0 => Datatype::run(at..at + 1),
        1 => Datatype::run(at..at + b % (len - at + 1)),
        2 => Datatype::nest(at as i64, &[(1 + b % 4, c as i64 % 7 - 3)], 1 + d % 2).unwrap(),
        3 => Datatype::nest(at as i64, &[(1 + b % 3, c as i64 % 9 - 4), (1 + d % 3, d as i64 % 5 - 2)], 1)
            .unwrap(),
        4 => Datatype::runs([(at as i64, 1 + b % 2), ((c % len) as i64, d % 3)]).unwrap(),
        5 => Datatype::runs([(at as i64, 1), ((b % len) as i64, 1)])
            .unwrap()
            .repeat(c % 4, d as i64 % 7 - 3)
            .unwrap(),
        6 => Datatype::sequence([
            Datatype::nest(at as i64, &[(1 + b % 3, 2)], 1).unwrap(),
            Datatype::nest((c % len) as i64, &[(d % 4, -1)], 1).unwrap(),
        ])
        .unwrap(),
        _ => Datatype::elements([at as i64, (b % len) as i64, (c % len) as i64, (d % len) as i64]).unwrap(),
    };
    if made.low() >= 0 && made.high() <= len as i64 { made } else { Datatype::run(at..at + 1) }
}

/// Returns a datatype of `size` elements within `len`, if there is one.
fn of_size(form: u8, at: u8, size: usize, len: usize) -> Option<Datatype> {
    if size == 0 {
        return Some(Datatype::empty());
    }
    if len == 0 {
        return None;
    }
    let at = at as usize % len;
    match form % 4 {
        0 if at + size <= len => Some(Datatype::run(at..at + size)),
        1 if at + 1 >= size => Some(Datatype::nest(at as i64, &[(size, -1)], 1).unwrap()),
        2 if at + 2 * size <= len + 1 => Some(Datatype::nest(at as i64, &[(size, 2)], 1).unwrap()),
        _ => Some(
            Datatype::elements((0..size).map(|i| ((at + i * (form as usize / 4 + 1)) % len) as i64)).unwrap(),
        ),
    }
}

/// Returns the initial bytes of a window: small numbers and a few special ones.
pub fn first_bytes(rank: usize, window: usize, element: ElementType, len: usize) -> Vec<u8> {
    values(&mut Random::new((rank * 31 + window * 7 + 1) as u64), element, len)
}

/// Returns the slice for an operation.
pub fn slice_of(epoch: usize, rank: usize, operation: usize, element: ElementType, len: usize) -> Vec<u8> {
    values(&mut Random::new((epoch * 1009 + rank * 101 + operation * 13 + 5) as u64), element, len)
}

impl Program {
    /// Returns the initial windows.
    pub fn first(&self) -> reference::World {
        let memory = (0..self.ranks).map(|rank| {
            (0..self.windows.len())
                .map(|w| first_bytes(rank, w, self.windows[w], self.lens[rank][w]))
                .collect::<Table<WindowId, _>>()
        });
        reference::World { element: self.windows.iter().copied().collect(), memory: memory.collect() }
    }

    /// Returns epoch `e` in the form of the reference.
    pub fn law(&self, e: usize) -> reference::Epoch {
        let epoch = &self.epochs[e];
        let mut law = reference::Epoch::default();
        for (rank, operations) in epoch.operations.iter().enumerate() {
            let mut sources = BTreeMap::new();
            for (i, operation) in operations.iter().enumerate() {
                if operation.local == Local::Buffer && operation.kind != Kind::Get {
                    let element = self.windows[operation.window.index()];
                    sources
                        .insert(OperationId::new(i), slice_of(e, rank, i, element, operation.remote.size()));
                }
            }
            law.patterns.push(Pattern { operations: operations.iter().cloned().collect() });
            law.sources.push(sources);
        }
        law
    }

    /// Returns the outcome according to the reference.
    pub fn reference(&self) -> Outcome {
        let mut world = self.first();
        let mut tickets = vec![BTreeMap::new(); self.ranks];
        for (e, epoch) in self.epochs.iter().enumerate() {
            let law = self.law(e);
            let landed = reference::run(&mut world, &law).expect("the generator makes programs that fit");
            for (rank, landed) in landed.into_iter().enumerate() {
                for (operation, bytes) in landed {
                    let asked = &epoch.operations[rank][operation.index()];
                    if asked.target.is_some() && asked.remote.size() > 0 {
                        tickets[rank].insert((e, operation.0), bytes);
                    }
                }
            }
        }
        let memory = world.memory.into_iter().map(|windows| windows.into_values().collect()).collect();
        Outcome { memory, tickets }
    }
}

/// Returns the first difference between two outcomes, in words.
pub fn first_difference(expected: &Outcome, found: &Outcome) -> String {
    for (rank, (a, b)) in expected.memory.iter().zip(&found.memory).enumerate() {
        for (window, (a, b)) in a.iter().zip(b).enumerate() {
            if a != b {
                return format!("window {window} on rank {rank}: expected {a:?}, found {b:?}");
            }
        }
    }
    format!("tickets: expected {:?}, found {:?}", expected.tickets, found.tickets)
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ranks", self.ranks)?;
        for (w, element) in self.windows.iter().enumerate() {
            let lens: Vec<usize> = self.lens.iter().map(|lens| lens[w]).collect();
            writeln!(f, "window {w}: {element:?}, lengths {lens:?}")?;
        }
        for (e, epoch) in self.epochs.iter().enumerate() {
            writeln!(f, "epoch {e}, fence of {:?}", epoch.fenced)?;
            for (rank, operations) in epoch.operations.iter().enumerate() {
                for operation in operations {
                    writeln!(
                        f,
                        "  rank {rank}: {:?} {:?} {:?} {} from/into {:?}",
                        operation.kind, operation.window, operation.target, operation.remote, operation.local
                    )?;
                }
            }
        }
        Ok(())
    }
}
