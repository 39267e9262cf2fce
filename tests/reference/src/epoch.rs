//! The epoch between two fences (1 to 10).

use super::values::apply;
use super::world::{World, cell, check_operation, check_world, read, target};
use fencepost_planner::element::{ElementType, Op};
use fencepost_planner::error::{Error, ErrorClass, Result};
use fencepost_planner::ids::{Id, OperationId, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Pattern};
use fencepost_planner::table::Table;
use std::collections::{BTreeMap, BTreeSet};

/// The operations of all ranks between two fences.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Epoch {
    /// The operations of each rank, by rank.
    pub patterns: Vec<Pattern>,
    /// For each rank, the bytes of the slices from which its puts and accumulates read.
    pub sources: Vec<Buffers>,
}

/// The bytes of one rank's own buffers, by operation.
pub type Buffers = BTreeMap<OperationId, Vec<u8>>;

/// The first difference between the results that an epoch may have and those that were found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// A difference in an element of a window.
    Element {
        /// The rank that owns the window.
        rank: Rank,
        /// The window.
        window: WindowId,
        /// The element of the window.
        element: usize,
        /// The bytes that were found.
        found: Vec<u8>,
        /// The bytes that the canonical order leaves.
        canonical: Vec<u8>,
    },
    /// A difference in the buffer of a get.
    Buffer {
        /// The rank that called the get.
        rank: Rank,
        /// The get.
        operation: OperationId,
    },
}

/// One application to one element: the operator (`None` copies bits), and the operand.
type Application = (Option<Op>, Vec<u8>);

/// The effects of an epoch on memory, before the order of the applications is fixed.
struct Effects {
    /// The windows once all gets have landed.
    after_gets: Vec<Table<WindowId, Vec<u8>>>,
    /// The buffers of gets.
    landed: Vec<Buffers>,
    /// Puts and accumulates in canonical order, by rank, window and element.
    applied: BTreeMap<(usize, usize, usize), Vec<Application>>,
}

/// Runs `epoch` on `world`, and returns the bytes that landed in the buffers of gets, by rank.
///
/// # Errors
/// Fails if an operation does not fit. The error names the rank and the position of the first such
/// operation in program order. `world` is then unchanged.
pub fn run(world: &mut World, epoch: &Epoch) -> Result<Vec<Buffers>> {
    let effects = effects(world, epoch)?;
    world.memory = effects.after_gets;
    for ((rank, window, element), applications) in &effects.applied {
        let kind = world.element[WindowId::new(*window)];
        let cell = cell(&mut world.memory[*rank][WindowId::new(*window)], *element, kind);
        for (op, value) in applications {
            apply(*op, kind, cell, value);
        }
    }
    Ok(effects.landed)
}

/// Compares `after` and `landed` with the results that a relaxed `epoch` may have if it begins with
/// `before`.
///
/// Gets must land as in any epoch. Each element must be the result of applying each of its puts and
/// accumulates exactly once, in some order. Returns `None` if this holds, and otherwise the first
/// difference.
///
/// # Errors
/// Those of [`run`]. Also `ErrorClass::Arg` if the different operations on an element have too many
/// orders to try.
///
/// # Cost
/// For each element, the number of distinct sub-multisets of its operations times the number of
/// values that they can leave.
pub fn allows(
    before: &World,
    epoch: &Epoch,
    after: &World,
    landed: &[Buffers],
) -> Result<Option<Difference>> {
    let effects = effects(before, epoch)?;
    for (rank, buffers) in effects.landed.iter().enumerate() {
        for (operation, bytes) in buffers {
            if landed.get(rank).and_then(|found| found.get(operation)) != Some(bytes) {
                return Ok(Some(Difference::Buffer { rank: Rank::new(rank), operation: *operation }));
            }
        }
    }
    for (rank, windows) in effects.after_gets.iter().enumerate() {
        for (window, bytes) in windows.iter() {
            let kind = before.element[window];
            for (element, start) in bytes.chunks(kind.size as usize).enumerate() {
                let found =
                    after.memory.get(rank).and_then(|windows| windows.get(window)).and_then(|bytes| {
                        bytes.get(element * kind.size as usize..(element + 1) * kind.size as usize)
                    });
                let found = found.unwrap_or_default();
                let none = Vec::new();
                let applications = effects.applied.get(&(rank, window.index(), element)).unwrap_or(&none);
                if !reachable(kind, start, applications, found)? {
                    let mut canonical = start.to_vec();
                    for (op, value) in applications {
                        apply(*op, kind, &mut canonical, value);
                    }
                    let (rank, found) = (Rank::new(rank), found.to_vec());
                    return Ok(Some(Difference::Element { rank, window, element, found, canonical }));
                }
            }
        }
    }
    Ok(None)
}

/// Returns whether some order of `applications` takes `start` to `found`.
fn reachable(kind: ElementType, start: &[u8], applications: &[Application], found: &[u8]) -> Result<bool> {
    const STATES: usize = 1 << 16;
    let mut left: BTreeMap<&Application, usize> = BTreeMap::new();
    for application in applications {
        *left.entry(application).or_default() += 1;
    }
    let distinct: Vec<&Application> = left.keys().copied().collect();
    let mut states = BTreeSet::from([(left.values().copied().collect::<Vec<usize>>(), start.to_vec())]);
    for _ in applications {
        let mut next = BTreeSet::new();
        for (left, value) in &states {
            for (which, (op, operand)) in distinct.iter().enumerate() {
                if left[which] > 0 {
                    let (mut left, mut value) = (left.clone(), value.clone());
                    left[which] -= 1;
                    apply(*op, kind, &mut value, operand);
                    next.insert((left, value));
                }
            }
            if next.len() > STATES {
                let why = format!(
                    "{} different operations on one element have too many orders to try",
                    applications.len()
                );
                return Err(Error::new(ErrorClass::Arg, why));
            }
        }
        states = next;
    }
    Ok(states.iter().any(|(_, value)| value == found))
}

fn effects(world: &World, epoch: &Epoch) -> Result<Effects> {
    check(world, epoch)?;
    let mut effects = Effects {
        after_gets: world.memory.clone(),
        landed: vec![Buffers::new(); epoch.patterns.len()],
        applied: BTreeMap::new(),
    };
    for (rank, pattern) in epoch.patterns.iter().enumerate() {
        for (id, operation) in pattern.operations.iter() {
            let Some(target) = target(operation, rank) else { continue };
            let size = world.element[operation.window].size as usize;
            let theirs = &world.memory[target][operation.window];
            match operation.kind {
                Kind::Get => {
                    let bytes = read(theirs, &operation.remote, size);
                    match &operation.local {
                        Local::Buffer => {
                            effects.landed[rank].insert(id, bytes);
                        }
                        Local::Section { window, datatype } => {
                            let kind = world.element[*window];
                            let mine = &mut effects.after_gets[rank][*window];
                            for (to, value) in datatype.element_iter().zip(bytes.chunks(size)) {
                                cell(mine, to as usize, kind).copy_from_slice(value);
                            }
                        }
                    }
                }
                Kind::Put | Kind::Accumulate(_) => {
                    let bytes = match &operation.local {
                        Local::Buffer => epoch.sources[rank].get(&id).cloned().unwrap_or_default(),
                        Local::Section { window, datatype } => {
                            read(&world.memory[rank][*window], datatype, size)
                        }
                    };
                    let op = match operation.kind {
                        Kind::Accumulate(op) => Some(op),
                        _ => None,
                    };
                    for (to, value) in operation.remote.element_iter().zip(bytes.chunks(size)) {
                        let place = (target, operation.window.index(), to as usize);
                        effects.applied.entry(place).or_default().push((op, value.to_vec()));
                    }
                }
            }
        }
    }
    Ok(effects)
}

/// Checks everything that [`effects`] relies on.
fn check(world: &World, epoch: &Epoch) -> Result<()> {
    let ranks = epoch.patterns.len();
    if world.memory.len() != ranks || epoch.sources.len() != ranks {
        let (memory, sources) = (world.memory.len(), epoch.sources.len());
        let why = format!(
            "patterns of {ranks} ranks, windows of {memory} and sources of {sources}: there must be as many of each"
        );
        return Err(Error::new(ErrorClass::Size, why));
    }
    check_world(world)?;
    for (rank, pattern) in epoch.patterns.iter().enumerate() {
        for (id, operation) in pattern.operations.iter() {
            let source = epoch.sources[rank].get(&id).map_or(0, Vec::len);
            check_operation(world, rank, operation, source).map_err(|(class, why)| {
                let why = format!("{id} at {}: {why}", operation.site);
                Error::new(class, why).on_rank(rank)
            })?;
        }
    }
    Ok(())
}
