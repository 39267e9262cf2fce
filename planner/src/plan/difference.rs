//! Finds the first operation in which a rank's own pattern and that of a plan differ.

use crate::ids::{Id, OperationId};
use crate::ir::pattern::{Local, Operation, Pattern};
use std::fmt;

/// The first operation that differs, with both calls as they were written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The position of the operation in program order.
    pub operation: OperationId,
    /// The call of this rank, or `None` if the rank makes no more calls.
    pub mine: Option<Operation>,
    /// The call in the plan, or `None` if the plan has no more calls.
    pub planned: Option<Operation>,
}

/// Returns the first operation of `mine` that differs from `planned`, if any.
///
/// Source lines are not compared, since an edit that moves calls to other lines does not change the
/// pattern.
pub fn difference(mine: &Pattern, planned: &Pattern) -> Option<Difference> {
    let count = mine.operations.len().max(planned.operations.len());
    (0..count).map(OperationId::new).find_map(|operation| {
        let (mine, planned) = (mine.operations.get(operation), planned.operations.get(operation));
        let same = match (mine, planned) {
            (Some(mine), Some(planned)) => first_difference(mine, planned).is_none(),
            (mine, planned) => mine.is_none() && planned.is_none(),
        };
        (!same).then(|| Difference { operation, mine: mine.cloned(), planned: planned.cloned() })
    })
}

/// Returns the name of the first part in which two calls differ, and both values as text.
fn first_difference(mine: &Operation, planned: &Operation) -> Option<(&'static str, String, String)> {
    // The pattern has no `..`, so that the compiler requires a decision about each new field.
    let Operation { kind, window, target, remote, local, mode, site: _ } = mine;
    let target_text =
        |target: &Option<_>| target.map_or("None".into(), |delta: crate::ids::Delta| delta.to_string());
    let local_text = |local: &Local| match local {
        Local::Buffer => "a buffer".into(),
        Local::Section { window, datatype } => format!("{window} {datatype}"),
    };
    let pair = |name, mine: String, planned: String| Some((name, mine, planned));
    if *kind != planned.kind {
        return pair("kind", format!("{kind:?}"), format!("{:?}", planned.kind));
    }
    if *window != planned.window {
        return pair("window", window.to_string(), planned.window.to_string());
    }
    if *target != planned.target {
        return pair("target", target_text(target), target_text(&planned.target));
    }
    if *remote != planned.remote {
        return pair("target datatype", remote.to_string(), planned.remote.to_string());
    }
    if *local != planned.local {
        return pair("origin", local_text(local), local_text(&planned.local));
    }
    if *mode != planned.mode {
        return pair("mode", format!("{mode:?}"), format!("{:?}", planned.mode));
    }
    None
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = self.operation.index();
        match (&self.mine, &self.planned) {
            (Some(mine), Some(planned)) => {
                write!(f, "operation {operation} at {} is not as planned at {}", mine.site, planned.site)?;
                match first_difference(mine, planned) {
                    Some((what, mine, planned)) => {
                        write!(f, ": its {what} is {mine}, in the plan it is {planned}")
                    }
                    None => Ok(()),
                }
            }
            (Some(mine), None) => {
                write!(f, "operation {operation} at {} is one more than the plan has", mine.site)
            }
            (None, Some(planned)) => {
                write!(f, "the plan has an operation {operation}, from {}, that is not called", planned.site)
            }
            (None, None) => f.write_str("no difference"),
        }
    }
}
