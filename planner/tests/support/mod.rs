//! The common parts of the tests of schedules: random patterns, a plain lowering, and an
//! interpreter of schedules.

pub mod interpreter;
pub mod naive;
pub mod random;
pub mod read;

use fencepost_planner::datatype::Datatype;
use fencepost_planner::ids::{Delta, Id, OperationId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Order, Pattern, Patterns, Site, Sync};
use fencepost_planner::table::Table;
use fencepost_tests_reference::{Buffers, World};
use fencepost_tests_support::random::Random;

/// Returns the pattern of each rank.
pub fn by_rank(patterns: &Patterns) -> Vec<Pattern> {
    patterns.class_of.iter().map(|class| patterns.classes[*class].clone()).collect()
}

/// Returns these patterns with one class for each distinct pattern.
pub fn intern(mut patterns: Patterns) -> Patterns {
    let (mut classes, mut class_of) = (Vec::<Pattern>::new(), Vec::new());
    for pattern in by_rank(&patterns) {
        let known = classes.iter().position(|known| *known == pattern);
        class_of.push(Id::new(known.unwrap_or(classes.len())));
        if known.is_none() {
            classes.push(pattern);
        }
    }
    patterns.classes = classes.into_iter().collect();
    patterns.class_of = class_of;
    patterns
}

/// Returns bytes for the slices of one rank's puts and accumulates.
pub fn sources(patterns: &Patterns, rank: usize, run: usize) -> Buffers {
    let pattern = &patterns.classes[patterns.class_of[rank]];
    let mut dice = Random::new((rank * 1000 + run) as u64 + 77);
    let with_slice = pattern.operations.iter().filter(|(_, operation)| {
        operation.target.is_some() && operation.kind != Kind::Get && operation.local == Local::Buffer
    });
    with_slice
        .map(|(id, operation)| {
            let element = patterns.windows[operation.window];
            (id, (0..operation.remote.size()).flat_map(|_| random::value(element, &mut dice)).collect())
        })
        .collect()
}

/// Stores into a rank's own windows, as the rank does before it enters run `run`.
pub fn store(world: &mut World, rank: usize, run: usize) {
    let mut dice = Random::new((rank * 3001 + run * 17) as u64 + 5);
    for (window, element) in world.element.clone().iter() {
        let (size, bytes) = (element.size as usize, &mut world.memory[rank][window]);
        for _ in 0..(bytes.len() / size).min(3) {
            let at = dice.below(bytes.len() / size) * size;
            bytes[at..at + size].copy_from_slice(&random::value(*element, &mut dice));
        }
    }
}

/// Returns an operation on window 0 of another rank.
pub fn operation(kind: Kind, target: i64, remote: Datatype, local: Local) -> Operation {
    let site = Site { file: "program.rs".into(), line: 7, column: 1 };
    Operation { kind, window: Id::new(0), target: Some(Delta(target)), remote, local, mode: Mode::Auto, site }
}

/// Returns patterns over `windows`. Each rank has a class of its own.
pub fn patterns(
    windows: &[fencepost_planner::element::ElementType],
    order: Order,
    ranks: Vec<Vec<Operation>>,
) -> Patterns {
    let operations =
        |all: Vec<Operation>| Pattern { operations: all.into_iter().collect::<Table<OperationId, _>>() };
    Patterns {
        name: "test".into(),
        windows: windows.iter().copied().collect(),
        shape: vec![ranks.len() as u32],
        class_of: (0..ranks.len()).map(Id::new).collect(),
        classes: ranks.into_iter().map(operations).collect(),
        order,
        sync: Sync::Fence,
    }
}
