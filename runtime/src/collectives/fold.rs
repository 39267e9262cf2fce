//! The combining that a rank does by itself: it combines slots of its own window, one from each
//! rank.

use crate::kernel;
use crate::kernel::element::{Element, element_type};
use fencepost_planner::collective::{Fold, SlotLen, Slots, block};
use fencepost_planner::element::Op;

/// Combines the slots that `slots` describes, as rank `me` of `ranks`. The operator takes the
/// element type.
pub(super) fn fold<T: Element>(window: &mut [T], slots: &Slots, ranks: u32, me: u32) {
    let len = match slots.len {
        SlotLen::Of(len) => len,
        SlotLen::BlockOf(len) => block(me, ranks, len).len(),
    };
    if len == 0 || slots.root.is_some_and(|root| root != me) {
        return;
    }
    let (ranks, stride, op) = (ranks as usize, slots.stride, slots.op);
    let all = &mut window[slots.first..slots.first + ranks * stride];
    match slots.fold {
        Fold::Tree => tree(all, ranks, (stride, len), op),
        Fold::Prefix => {
            let (first, rest) = all.split_at_mut(stride);
            rest.chunks_exact(stride)
                .take(me as usize)
                .for_each(|slot| combine(&mut first[..len], &slot[..len], op));
        }
        // The result goes into the right slot, so the operands are exchanged. Only REPLACE depends
        // on their order, and with REPLACE each slot already is the result.
        Fold::Prefixes if op == Op::Replace => {}
        Fold::Prefixes => {
            for slot in 1..ranks {
                let (before, rest) = all.split_at_mut(slot * stride);
                combine(&mut rest[..len], &before[(slot - 1) * stride..][..len], op);
            }
        }
    }
}

/// Combines each half of `count` slots, then the right half into the left one.
fn tree<T: Element>(slots: &mut [T], count: usize, (stride, len): (usize, usize), op: Op) {
    if count > 1 {
        let half = count.div_ceil(2);
        let (left, right) = slots.split_at_mut(half * stride);
        tree(left, half, (stride, len), op);
        tree(right, count - half, (stride, len), op);
        combine(&mut left[..len], &right[..len], op);
    }
}

pub(super) fn combine<T: Element>(into: &mut [T], from: &[T], op: Op) {
    let count = into.len().min(from.len());
    // SAFETY: these are two slices of at least `count` elements each, of a type that the operator
    // takes (checked by the callers of collectives, before anything else).
    unsafe {
        kernel::combine_run(op, element_type::<T>(), into.as_mut_ptr().cast(), from.as_ptr().cast(), count);
    }
}
