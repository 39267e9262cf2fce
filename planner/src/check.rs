//! [`check`]: checks whether operations are valid, before they are compiled.

use crate::datatype::Datatype;
use crate::error::{Error, ErrorClass, Result};
use crate::ids::{ClassId, Delta, Id, OperationId};
use crate::ir::pattern::{Kind, Local, Operation, Patterns};

/// The maximum number of bytes that one rank moves in one epoch. No process has that much memory.
/// With this limit, sums of bytes over many ranks stay far below 2^64.
pub const MOST_BYTES: u64 = 1 << 47;

/// Checks each operation of each rank separately. Conflicts between operations are not errors,
/// since they have a defined meaning.
///
/// # Errors
/// The error names the operation, its rank and its line. The errors are: a target outside the world
/// (class `Rank`), sides that differ in size (`Size`) or in element type (`Type`), elements below
/// the first element of the window (`Disp`), an operator that is not defined for the window's
/// elements (`Op`), a window that is not a parameter (`Win`), a class that does not exist (`Arg`),
/// and more than [`MOST_BYTES`] bytes in all operations of a rank (`NoMem`).
pub fn check(patterns: &Patterns) -> Result<()> {
    let ranks = i64::from(patterns.ranks());
    let mut reach: Vec<Option<(Delta, Delta)>> = Vec::with_capacity(patterns.classes.len());
    for (class, pattern) in patterns.classes.iter() {
        let mut bytes = 0u64;
        for (id, operation) in pattern.operations.iter() {
            check_operation(patterns, operation).map_err(|error| locate(error, patterns, class, id))?;
            let size = patterns.windows.get(operation.window).map_or(1, |element| u64::from(element.size));
            if operation.target.is_some() {
                bytes = bytes.saturating_add((operation.remote.size() as u64).saturating_mul(size));
            }
            if bytes > MOST_BYTES {
                let message = format!(
                    "moves {} elements of {size} bytes: the operations of one rank in one epoch move at most {MOST_BYTES} bytes",
                    operation.remote.size()
                );
                return Err(locate(Error::new(ErrorClass::NoMem, message), patterns, class, id));
            }
        }
        let targets = pattern.operations.values().filter_map(|operation| operation.target);
        reach.push(targets.clone().min().zip(targets.max()));
    }
    for (rank, class) in patterns.class_of.iter().enumerate() {
        let Some(reach) = reach.get(class.index()) else {
            return Err(Error::new(
                ErrorClass::Arg,
                format!("rank {rank} has class {class}; there are {} classes", reach.len()),
            ));
        };
        let outside = |delta: Delta| !(0..ranks).contains(&(rank as i64).saturating_add(delta.0));
        if let Some((low, high)) = *reach
            && (outside(low) || outside(high))
        {
            let operations = &patterns.classes[*class].operations;
            for (id, operation) in operations.iter() {
                if let Some(delta) = operation.target.filter(|&delta| outside(delta)) {
                    let target = rank as i64 + delta.0;
                    let what = format!("{id} has target {target}; the world has ranks 0 to {}", ranks - 1);
                    return Err(Error::new(ErrorClass::Rank, with_site(what, operation))
                        .on_rank(rank)
                        .in_superstep(&patterns.name));
                }
            }
        }
    }
    Ok(())
}

fn check_operation(patterns: &Patterns, operation: &Operation) -> Result<()> {
    let count = patterns.windows.len();
    let element = |window| {
        patterns.windows.get(window).copied().ok_or_else(|| {
            Error::new(ErrorClass::Win, format!("names window {window}; the superstep has {count} windows"))
        })
    };
    let target = element(operation.window)?;
    let below = |datatype: &Datatype| datatype.size() > 0 && datatype.low() < 0;
    if below(&operation.remote) {
        return Err(Error::new(
            ErrorClass::Disp,
            format!(
                "reaches element {} of its target window: displacements start at 0",
                operation.remote.low()
            ),
        ));
    }
    if let Local::Section { window, datatype } = &operation.local {
        let origin = element(*window)?;
        if datatype.size() != operation.remote.size() {
            let (here, there) = (datatype.size(), operation.remote.size());
            return Err(Error::new(
                ErrorClass::Size,
                format!(
                    "has {here} elements at its origin and {there} at its target: both sides must have as many"
                ),
            ));
        }
        if below(datatype) {
            return Err(Error::new(
                ErrorClass::Disp,
                format!(
                    "reaches element {} of its section's window: displacements start at 0",
                    datatype.low()
                ),
            ));
        }
        if origin != target {
            return Err(Error::new(
                ErrorClass::Type,
                format!(
                    "has elements of {origin} at its origin and of {target} at its target: both sides must have one type"
                ),
            ));
        }
    }
    match operation.kind {
        Kind::Accumulate(op) if !op.takes(target) => Err(Error::new(
            ErrorClass::Op,
            format!("accumulates with {op}, which is not defined for {target}"),
        )),
        _ => Ok(()),
    }
}

fn locate(error: Error, patterns: &Patterns, class: ClassId, id: OperationId) -> Error {
    let what = format!("{id} {}", error.message());
    let located = Error::new(error.class(), with_site(what, &patterns.classes[class].operations[id]));
    let rank = patterns.class_of.iter().position(|&of| of == class);
    let located = located.in_superstep(&patterns.name);
    if let Some(rank) = rank { located.on_rank(rank) } else { located }
}

fn with_site(what: String, operation: &Operation) -> String {
    if operation.site.line == 0 { what } else { format!("{what}, at {}", operation.site) }
}
