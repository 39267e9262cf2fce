//! Monotone reordering: one stable permutation of both sides of a transfer, so that the target's elements ascend.

use super::build::granted;
use super::canonical::too_many;
use super::form::Datatype;
use super::{MOST_PIECES, pairs};
use crate::error::Result;

/// Both typemaps under the one stable permutation that makes the elements of `target` ascend: what is equal there
/// keeps its order.
///
/// The two are of equal size; of unequal ones only as many elements as the smaller has are looked at.
///
/// # Panics
/// Where the result would be beyond the [limits](super#limits); [`try_monotone`] returns an error there.
#[must_use]
pub fn monotone(origin: &Datatype, target: &Datatype) -> (Datatype, Datatype) {
    granted(try_monotone(origin, target))
}

/// As [`monotone`].
///
/// # Errors
/// The result would be beyond the [limits](super#limits): class `Type`.
pub fn try_monotone(origin: &Datatype, target: &Datatype) -> Result<(Datatype, Datatype)> {
    debug_assert_eq!(origin.size(), target.size(), "both sides of a transfer are of one size");
    if target.ascends() {
        return Ok((origin.clone(), target.clone()));
    }
    by_list(origin, target)
}

/// By writing out all that is contiguous on both sides.
fn by_list(origin: &Datatype, target: &Datatype) -> Result<(Datatype, Datatype)> {
    if origin.run_count().saturating_add(target.run_count()) > MOST_PIECES {
        return Err(too_many());
    }
    let mut list: Vec<(i64, i64, usize)> = pairs(origin, target).collect();
    list.sort_by_key(|&(_, target, _)| target);
    if list.windows(2).any(|pair| pair[0].1 + pair[0].2 as i64 > pair[1].1) {
        // Runs overlap: element by element.
        if target.size() > MOST_PIECES {
            return Err(too_many());
        }
        let mut elements: Vec<(i64, i64, usize)> = pairs(origin, target)
            .flat_map(|(origin, target, len)| (0..len as i64).map(move |i| (origin + i, target + i, 1)))
            .collect();
        elements.sort_by_key(|&(_, target, _)| target);
        list = elements;
    }
    let origin = Datatype::try_runs(list.iter().map(|&(origin, _, len)| (origin, len)))?;
    let target = Datatype::try_runs(list.iter().map(|&(_, target, len)| (target, len)))?;
    Ok((origin, target))
}

impl Datatype {
    /// Whether its elements ascend; equal ones may follow each other.
    #[must_use]
    pub fn ascends(&self) -> bool {
        let mut before = i64::MIN;
        self.pieces().iter().all(|piece| {
            let follows = before <= piece.offset;
            before = piece.end() - 1;
            // From the last run before a step of some dimension to the first one after it.
            let mut inner = piece.run as i64 - 1;
            follows
                && piece.dims.iter().rev().all(|dim| {
                    let forward = dim.stride >= inner;
                    inner += dim.span();
                    forward
                })
        })
    }
}
