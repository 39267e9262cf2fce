//! The windows of all ranks, and checks that an operation fits them (2, 3).

use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::ElementType;
use fencepost_planner::error::{Error, ErrorClass, Result};
use fencepost_planner::ids::{Id, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Operation};
use fencepost_planner::table::Table;

/// The windows of all ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct World {
    /// The element type of each window.
    pub element: Table<WindowId, ElementType>,
    /// The contents of each window, in bytes: `[rank][window]`. Lengths may differ by rank.
    pub memory: Vec<Table<WindowId, Vec<u8>>>,
}

/// Returns the rank of the target, if there is a target and an element to touch.
pub(super) fn target(operation: &Operation, rank: usize) -> Option<usize> {
    let target = operation.target?;
    (operation.remote.size() > 0).then(|| (rank as i64 + target.0) as usize)
}

/// Returns the elements that `datatype` visits, in the order of the datatype.
pub(super) fn read(window: &[u8], datatype: &Datatype, size: usize) -> Vec<u8> {
    datatype.element_iter().flat_map(|at| window[at as usize * size..][..size].iter().copied()).collect()
}

/// Returns the bytes of one element.
pub(super) fn cell(window: &mut [u8], element: usize, kind: ElementType) -> &mut [u8] {
    &mut window[element * kind.size as usize..][..kind.size as usize]
}

/// Checks that each window has a whole number of elements.
pub(super) fn check_world(world: &World) -> Result<()> {
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
    Ok(())
}

/// Checks that `operation` of `rank` fits the windows. `source` is the number of bytes in the
/// operation's own buffer.
pub(super) fn check_operation(
    world: &World,
    rank: usize,
    operation: &Operation,
    source: usize,
) -> Result<(), (ErrorClass, String)> {
    let Some(target) = operation.target else { return Ok(()) };
    let ranks = world.memory.len();
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
            if source != wanted * kind.size as usize {
                return Err((
                    ErrorClass::Size,
                    format!("a source of {source} bytes for {wanted} elements of {} bytes", kind.size),
                ));
            }
            Ok(())
        }
    }
}

/// Checks that `datatype` is within the window of `rank`.
pub(super) fn check_section(
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
