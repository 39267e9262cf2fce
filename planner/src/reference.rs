//! The meaning of an epoch as the plainest interpreter: everything else is tested against it.
//!
//! It follows the numbered paragraphs of `planner/README.md`, one element at a time, and shares nothing with the
//! passes but the shapes of a [`Pattern`]. There is nothing here to make it fast, and nothing should be added.
//!
//! ---
#![doc = include_str!("../README.md")]

use crate::datatype::Datatype;
use crate::element::{ElementKind, ElementType, Op, Scalar};
use crate::error::{Error, ErrorClass, Result};
use crate::ids::{Id, OperationId, Rank, WindowId};
use crate::ir::pattern::{Kind, Local, Operation, Pattern};
use crate::table::Table;
use std::collections::{BTreeMap, BTreeSet};

/// The windows of all ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct World {
    /// The element type of each window.
    pub element: Table<WindowId, ElementType>,
    /// The contents of each window, in bytes: `[rank][window]`. Lengths may differ by rank.
    pub memory: Vec<Table<WindowId, Vec<u8>>>,
}

/// The operations of all ranks between two fences.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Epoch {
    /// Each rank's operations, by rank.
    pub patterns: Vec<Pattern>,
    /// For each rank, the bytes of the slices that its puts and accumulates were given.
    pub sources: Vec<Buffers>,
}

/// The bytes of one rank's own buffers, by the operation that they belong to.
pub type Buffers = BTreeMap<OperationId, Vec<u8>>;

/// The first difference between what an epoch may leave and what was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// In a window's element.
    Element {
        /// The rank that owns the window.
        rank: Rank,
        /// The window.
        window: WindowId,
        /// The element of the window.
        element: usize,
        /// The bytes that were found there.
        found: Vec<u8>,
        /// The bytes that the canonical order leaves there.
        canonical: Vec<u8>,
    },
    /// In the buffer of a get.
    Buffer {
        /// The rank that called the get.
        rank: Rank,
        /// The get.
        operation: OperationId,
    },
}

/// One application to one element: an operator (`None` moves bits) and the value it brings.
type Application = (Option<Op>, Vec<u8>);

/// What an epoch does to memory, before the order of the applications is fixed.
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
/// The first operation that does not fit, named by its rank and its place in program order; `world` is unchanged.
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

/// Whether `after` and `landed` are what a relaxed `epoch` may make of `before`: gets as in any epoch, and each element
/// having taken each of its puts and accumulates exactly once in some order. `None` if so, else the first difference.
///
/// # Errors
/// As [`run`]; and `ErrorClass::Arg` where the different operations on an element have too many orders to be tried.
///
/// # Cost
/// For each element, the number of distinct sub-multisets of its operations times the values they can leave.
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

/// Whether applying all of `applications` to `start` in some order leaves `found`.
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

/// The target's number, where there is a target and an element to touch.
fn target(operation: &Operation, rank: usize) -> Option<usize> {
    let target = operation.target?;
    (operation.remote.size() > 0).then(|| (rank as i64 + target.0) as usize)
}

/// The elements that `datatype` visits, in its order.
fn read(window: &[u8], datatype: &Datatype, size: usize) -> Vec<u8> {
    datatype.element_iter().flat_map(|at| window[at as usize * size..][..size].iter().copied()).collect()
}

fn cell(window: &mut [u8], element: usize, kind: ElementType) -> &mut [u8] {
    &mut window[element * kind.size as usize..][..kind.size as usize]
}

/// Everything that [`effects`] relies on.
fn check(world: &World, epoch: &Epoch) -> Result<()> {
    let ranks = epoch.patterns.len();
    if world.memory.len() != ranks || epoch.sources.len() != ranks {
        let (memory, sources) = (world.memory.len(), epoch.sources.len());
        let why = format!(
            "patterns of {ranks} ranks, windows of {memory} and sources of {sources}: there must be as many of each"
        );
        return Err(Error::new(ErrorClass::Size, why));
    }
    for (rank, windows) in world.memory.iter().enumerate() {
        for (window, kind) in world.element.iter() {
            let len = windows.get(window).map(Vec::len);
            if kind.size == 0 || len.is_none_or(|len| len % kind.size as usize != 0) {
                let why = format!(
                    "{window} holds {len:?} bytes, which is not a whole number of elements of {} bytes",
                    kind.size
                );
                return Err(Error::new(ErrorClass::Size, why).on_rank(rank));
            }
        }
    }
    for (rank, pattern) in epoch.patterns.iter().enumerate() {
        for (id, operation) in pattern.operations.iter() {
            check_operation(world, epoch, rank, id, operation).map_err(|(class, why)| {
                let why = format!("{id} at {}: {why}", operation.site);
                Error::new(class, why).on_rank(rank)
            })?;
        }
    }
    Ok(())
}

fn check_operation(
    world: &World,
    epoch: &Epoch,
    rank: usize,
    id: OperationId,
    operation: &Operation,
) -> Result<(), (ErrorClass, String)> {
    let Some(target) = operation.target else { return Ok(()) };
    let ranks = epoch.patterns.len();
    let Some(target) = target.from(Rank::new(rank), ranks as u32) else {
        return Err((ErrorClass::Rank, format!("target {target} is outside the world of {ranks} ranks")));
    };
    let Some(&kind) = world.element.get(operation.window) else {
        return Err((ErrorClass::Win, format!("no window {}", operation.window)));
    };
    if let Kind::Accumulate(op) = operation.kind
        && !op.takes(kind)
    {
        return Err((ErrorClass::Op, format!("{op} is not defined for {:?}", kind.kind)));
    }
    check_section(world, target.index(), operation.window, &operation.remote)?;
    let wanted = operation.remote.size();
    match &operation.local {
        Local::Section { window, datatype } => {
            let Some(&mine) = world.element.get(*window) else {
                return Err((ErrorClass::Win, format!("no window {window}")));
            };
            if mine != kind {
                return Err((
                    ErrorClass::Type,
                    format!(
                        "{window} holds elements of {mine:?}, {} of {kind:?}: both must hold one type",
                        operation.window
                    ),
                ));
            }
            if datatype.size() != wanted {
                return Err((
                    ErrorClass::Size,
                    format!(
                        "{} elements at the origin, {wanted} at the target: both must have as many",
                        datatype.size()
                    ),
                ));
            }
            check_section(world, rank, *window, datatype)
        }
        Local::Buffer if operation.kind == Kind::Get => Ok(()),
        Local::Buffer => {
            let bytes = epoch.sources[rank].get(&id).map_or(0, Vec::len);
            if bytes != wanted * kind.size as usize {
                return Err((
                    ErrorClass::Size,
                    format!("a source of {bytes} bytes for {wanted} elements of {} bytes", kind.size),
                ));
            }
            Ok(())
        }
    }
}

fn check_section(
    world: &World,
    rank: usize,
    window: WindowId,
    datatype: &Datatype,
) -> Result<(), (ErrorClass, String)> {
    let len = world.memory[rank][window].len() / world.element[window].size as usize;
    match datatype.element_iter().find(|at| !usize::try_from(*at).is_ok_and(|at| at < len)) {
        Some(at) => Err((
            ErrorClass::Disp,
            format!("touches element {at} of {window} on {}, which has {len} elements", Rank::new(rank)),
        )),
        None => Ok(()),
    }
}

/// IEEE 754-2019 on one type: NaN wins and is then the canonical one, and -0 is less than +0.
macro_rules! float {
    ($float:ty, $nan:literal, $op:expr, $target:expr, $value:expr) => {{
        let (a, b) = (<$float>::from_ne_bytes(array($target)), <$float>::from_ne_bytes(array($value)));
        let (first, second) = if a == b && a.is_sign_negative() || a < b { (a, b) } else { (b, a) };
        let c = match $op {
            Op::Sum => a + b,
            Op::Prod => a * b,
            Op::Min | Op::Max if a.is_nan() || b.is_nan() => <$float>::NAN,
            Op::Min => first,
            Op::Max => second,
            _ => panic!("{} is not defined for {}", $op, stringify!($float)),
        };
        let bits = if c.is_nan() { $nan } else { c.to_bits() };
        $target.copy_from_slice(&bits.to_ne_bytes());
    }};
}

/// Apply `value` to `target`: by `op`, or as a move of bits. Both are one element of type `element`, and `op` takes it.
///
/// # Panics
/// If `op` is not defined for `element`, or a slice is not as long as an element.
pub fn apply(op: Option<Op>, element: ElementType, target: &mut [u8], value: &[u8]) {
    match (op, element.kind) {
        (None | Some(Op::Replace), _) => target.copy_from_slice(value),
        (Some(op @ (Op::MinLoc | Op::MaxLoc)), ElementKind::ValueAt(what, at)) => {
            locate(op, what, at, target, value);
        }
        (Some(op), ElementKind::Scalar(Scalar::F32)) => float!(f32, 0x7fc0_0000, op, target, value),
        (Some(op), ElementKind::Scalar(Scalar::F64)) => float!(f64, 0x7ff8_0000_0000_0000, op, target, value),
        (Some(op), ElementKind::Scalar(scalar)) => {
            // Wide enough that nothing overflows but PROD, whose low bits are right all the same.
            let (a, b) = (integer(scalar, target), integer(scalar, value));
            let c = match op {
                Op::Sum => a + b,
                Op::Prod => a.wrapping_mul(b),
                Op::Min => a.min(b),
                Op::Max => a.max(b),
                Op::Band => a & b,
                Op::Bor => a | b,
                Op::Bxor => a ^ b,
                Op::Land => i128::from(a != 0 && b != 0),
                Op::Lor => i128::from(a != 0 || b != 0),
                Op::Lxor => i128::from((a != 0) != (b != 0)),
                Op::Replace | Op::MinLoc | Op::MaxLoc => panic!("{op} is not defined for {scalar:?}"),
            };
            match scalar.size() {
                1 => target.copy_from_slice(&(c as u8).to_ne_bytes()),
                2 => target.copy_from_slice(&(c as u16).to_ne_bytes()),
                4 => target.copy_from_slice(&(c as u32).to_ne_bytes()),
                _ => target.copy_from_slice(&(c as u64).to_ne_bytes()),
            }
        }
        (Some(op), kind) => panic!("{op} is not defined for {kind:?}"),
    }
}

/// MINLOC and MAXLOC: the value that MIN or MAX would leave, and of those that bring it the smaller index.
fn locate(op: Op, what: Scalar, at: Scalar, target: &mut [u8], value: &[u8]) {
    let split = what.size() as usize;
    let extreme = if op == Op::MinLoc { Op::Min } else { Op::Max };
    let mut best = target[..split].to_vec();
    apply(Some(extreme), ElementType::scalar(what), &mut best, &value[..split]);
    let mut index: Option<Vec<u8>> = None;
    for side in [&*target, value] {
        let (theirs, place) = side.split_at(split);
        if canonical(what, theirs) == best {
            let place = canonical(at, place);
            match &mut index {
                None => index = Some(place),
                Some(index) => apply(Some(Op::Min), ElementType::scalar(at), index, &place),
            }
        }
    }
    let index = index.expect("one of the two brings the extreme value");
    target[..split].copy_from_slice(&best);
    target[split..].copy_from_slice(&index);
}

/// The same value, with the canonical quiet NaN for any NaN.
fn canonical(scalar: Scalar, bytes: &[u8]) -> Vec<u8> {
    match scalar {
        Scalar::F32 if f32::from_ne_bytes(array(bytes)).is_nan() => 0x7fc0_0000_u32.to_ne_bytes().to_vec(),
        Scalar::F64 if f64::from_ne_bytes(array(bytes)).is_nan() => {
            0x7ff8_0000_0000_0000_u64.to_ne_bytes().to_vec()
        }
        _ => bytes.to_vec(),
    }
}

fn integer(scalar: Scalar, bytes: &[u8]) -> i128 {
    match scalar {
        Scalar::I8 => i8::from_ne_bytes(array(bytes)).into(),
        Scalar::I16 => i16::from_ne_bytes(array(bytes)).into(),
        Scalar::I32 => i32::from_ne_bytes(array(bytes)).into(),
        Scalar::I64 => i64::from_ne_bytes(array(bytes)).into(),
        Scalar::U8 => u8::from_ne_bytes(array(bytes)).into(),
        Scalar::U16 => u16::from_ne_bytes(array(bytes)).into(),
        Scalar::U32 => u32::from_ne_bytes(array(bytes)).into(),
        Scalar::U64 => u64::from_ne_bytes(array(bytes)).into(),
        Scalar::F32 | Scalar::F64 => panic!("{scalar:?} is not an integer"),
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("a slice as long as its scalar")
}
