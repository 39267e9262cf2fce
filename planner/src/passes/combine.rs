//! Combines accumulates of one rank that visit the same element in the same message, so that a
//! single value is sent for each element.
//!
//! ```text
//! accumulate SUM w0 0..4 -> w0 8..12      accumulate SUM w0 0..4 -> w0 8..12 with w1 0..2 at 2..4
//! accumulate SUM w1 0..2 -> w0 10..12
//! ```
//!
//! Applies only to operators whose order of application cannot be observed. They are associative
//! bit for bit: integers wrap, a NaN that MIN or MAX leaves is the canonical one, and among equal
//! values MINLOC and MAXLOC take the smallest index. So values that are combined before they are
//! sent give the same result as values that the target combines. SUM and PROD of floats are never
//! combined. Only adjacent accumulates of a message are combined, so no other operation comes
//! between them.
//!
//! The pass comes after `route`, because a direct copy sends nothing. Such a copy combines the
//! target's elements in place.
//!
//! **Requires** routes. **Ensures** that every added instruction saves at least 16 bytes. If
//! [`Options::coalesce`] is off, nothing changes. **Cost** proportional to the runs of accumulates
//! that overlap; next to nothing elsewhere.

use super::cover::any_overlap;
use crate::datatype::{Datatype, MOST_RUNS, pairs};
use crate::ir::pattern::Kind;
use crate::ir::routed::Routed;
use crate::ir::transfers::{Fold, Side, Transfer};
use crate::options::Options;
use std::collections::BTreeMap;

/// The number of bytes that each additional instruction must save.
const SAVED: usize = 16;

/// See the [module](self).
pub fn combine<'p>(mut routed: Routed<'p>, options: &Options) -> Routed<'p> {
    if options.coalesce {
        for message in routed.links.values_mut().flat_map(|route| &mut route.messages) {
            if message.transfers.iter().any(combines) {
                let transfers = std::mem::take(&mut message.transfers);
                message.transfers = transfers.chunk_by(combinable).flat_map(combined).collect();
            }
        }
    }
    routed
}

/// Returns whether `transfer` may be combined with others of its kind before it is sent.
fn combines(transfer: &Transfer) -> bool {
    matches!(transfer.kind, Kind::Accumulate(op) if !op.order_shows(transfer.element))
}

fn combinable(a: &Transfer, b: &Transfer) -> bool {
    let window = |transfer: &Transfer| transfer.target.window().map(|(window, _)| window);
    combines(a) && a.kind == b.kind && window(a) == window(b)
}

/// Contiguous elements of one transfer: the index of the transfer in the group, the first source
/// element, the first target element, and the number of elements.
type Elements = (usize, i64, i64, usize);

/// A transfer under construction: the first visits to its elements, and the later visits that are
/// combined into them.
#[derive(Default)]
struct Slot {
    /// The first visits; their targets are elements of the window.
    first: Vec<Elements>,
    /// The later visits; their targets are positions among the elements of `first`.
    later: Vec<Elements>,
    size: usize,
}

/// Combines `group` so that each element is visited once. Returns the group unchanged if that is
/// impossible or does not pay.
fn combined(group: &[Transfer]) -> Vec<Transfer> {
    let whole = || group.to_vec();
    let targets: Vec<&Datatype> =
        group.iter().filter_map(|transfer| transfer.target.window()).map(|(_, datatype)| datatype).collect();
    if !combines(&group[0]) || !any_overlap(&targets) {
        return whole();
    }
    let Some(slots) = slots(group, &targets) else { return whole() };
    let mut made = Vec::new();
    for slot in &slots {
        let Some(transfer) = slot.transfer(group) else { return whole() };
        made.push(transfer);
    }
    let size = |all: &[Transfer]| all.iter().map(Transfer::size).sum::<usize>();
    let saved = (size(group) - size(&made)) * group[0].element.size as usize;
    let pieces = made.iter().map(|transfer| 1 + transfer.folds.len()).sum::<usize>();
    if pieces.saturating_sub(group.len()) * SAVED > saved { whole() } else { made }
}

/// Groups the visits by the element that they reach. Returns `None` if visits meet in more than
/// [`MOST_RUNS`] parts.
fn slots(group: &[Transfer], targets: &[&Datatype]) -> Option<Vec<Slot>> {
    let mut slots: Vec<Slot> = Vec::new();
    let mut patience = MOST_RUNS;
    // The elements visited so far. Each entry maps the first element of an interval to the end of
    // the interval, its slot, and its position in the slot.
    let mut held: BTreeMap<i64, (i64, usize, usize)> = BTreeMap::new();
    for (number, (transfer, target)) in group.iter().zip(targets).enumerate() {
        let source = elements(&transfer.source);
        for (from, to, run) in pairs(&source, target) {
            let (mut low, high) = (to, to + run as i64);
            while low < high {
                patience = patience.checked_sub(1)?;
                let origin = from + (low - to);
                let known = held.range(..=low).next_back().filter(|(_, known)| known.0 > low);
                if let Some((&start, &(end, slot, place))) = known {
                    let end = end.min(high);
                    let into = place as i64 + (low - start);
                    slots[slot].later.push((number, origin, into, (end - low) as usize));
                    low = end;
                    continue;
                }
                let end = held.range(low..high).next().map_or(high, |(&next, _)| next);
                let goes_on = slots.last().and_then(|slot| slot.first.last()).is_some_and(|last| {
                    last.0 == number
                        && (transfer.source.window().is_some() || last.1 + last.3 as i64 == origin)
                });
                if !goes_on {
                    slots.push(Slot::default());
                }
                let slot = slots.len() - 1;
                held.insert(low, (end, slot, slots[slot].size));
                slots[slot].first.push((number, origin, low, (end - low) as usize));
                slots[slot].size += (end - low) as usize;
                low = end;
            }
        }
    }
    Some(slots)
}

/// Returns the elements of `side`, in a window or in a buffer.
fn elements(side: &Side) -> Datatype {
    match side {
        Side::Window { datatype, .. } => datatype.clone(),
        Side::Operation { first, count, .. } => Datatype::run(*first..first + count),
    }
}

impl Slot {
    /// Builds the transfer. Returns `None` if a datatype would be too long.
    fn transfer(&self, group: &[Transfer]) -> Option<Transfer> {
        let like = &group[self.first.first()?.0];
        let (window, _) = like.target.window()?;
        let mut operations = like.operations.clone();
        let mut folds = Vec::new();
        let follows = |a: &Elements, b: &Elements| {
            a.0 == b.0 && (group[a.0].source.window().is_some() || a.1 + a.3 as i64 == b.1)
        };
        for steps in self.later.chunk_by(follows) {
            let of = &group[steps[0].0];
            operations.extend(&of.operations);
            folds.push(Fold { source: source(&of.source, steps)?, into: reached(steps)? });
        }
        operations.sort_unstable();
        operations.dedup();
        Some(Transfer {
            source: source(&like.source, &self.first)?,
            target: Side::Window { window, datatype: reached(&self.first)? },
            folds,
            operations,
            ..like.clone()
        })
    }
}

fn source(side: &Side, steps: &[Elements]) -> Option<Side> {
    Some(match side {
        Side::Window { window, .. } => {
            let datatype = Datatype::runs(steps.iter().map(|&(_, from, _, run)| (from, run))).ok()?;
            Side::Window { window: *window, datatype }
        }
        Side::Operation { operation, .. } => {
            let count = steps.iter().map(|step| step.3).sum();
            Side::Operation { operation: *operation, first: steps[0].1 as usize, count }
        }
    })
}

fn reached(steps: &[Elements]) -> Option<Datatype> {
    Datatype::runs(steps.iter().map(|&(_, _, to, run)| (to, run))).ok()
}
