//! Collectives of very few elements, between ranks that all reach each other's memory. Each
//! collective begins with an exchange, and a rank's elements are in its notifications of that
//! exchange. Nothing else is sent, stored or read.

use crate::collectives::carry::Carry;
use crate::collectives::in_place::{room, taken};
use crate::fence::Told;
use crate::kernel::element::Element;
use crate::state::call::Call;
use crate::state::world::World;
use fencepost_planner::Result;
use fencepost_planner::collective::{Algorithm, Collective, Operation};
use std::ops::Range;

/// The words of one rank's notification, aligned for elements.
#[repr(C, align(16))]
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Words(Told);

impl Words {
    fn elements<T: Element>(&self, at: Range<usize>) -> &[T] {
        let size = size_of::<T>();
        bytemuck::cast_slice(&bytemuck::bytes_of(self)[at.start * size..at.end * size])
    }
}

/// Returns whether notifications have room for the elements that a rank contributes. The result is
/// the same on all ranks.
pub(super) fn is_told<T: Element>(world: &World, what: &Collective) -> bool {
    let bytes = what.brings().saturating_mul(size_of::<T>());
    bytes <= size_of::<Words>() && align_of::<T>() <= align_of::<Words>() && world.core().tells()
}

/// Sends this rank's elements to the other ranks in notifications, and takes the elements of the
/// other ranks. The notifications must [have room](is_told) for the elements.
pub(super) fn tell<T: Element, R>(
    world: &World,
    call: &Call,
    what: &Collective,
    mut carry: impl Carry<T, R>,
) -> Result<R> {
    let (me, kept) = (world.rank(), world.collectives());
    let words = &mut *kept.words.borrow_mut();
    let combined = room(what) * size_of::<T>();
    words.resize(words.len().max(world.size() + combined.div_ceil(size_of::<Words>())), Words::default());
    let (words, rest) = words.split_at_mut(world.size());
    let brought = what.input(Algorithm::Tree, me as u32).len();
    let mut mine = Words::default();
    let bytes = &mut bytemuck::bytes_of_mut(&mut mine)[..brought * size_of::<T>()];
    carry.bring(bytemuck::cast_slice_mut(bytes));
    words[me] = mine;
    let tells = !matches!(what.operation, Operation::Broadcast { root } if root as usize != me);
    world.core().tell(call, tells.then_some(&mine.0), |from, told| words[from] = Words(*told))?;
    let rest: &mut [u8] = bytemuck::cast_slice_mut(rest);
    let combined = bytemuck::cast_slice_mut(&mut rest[..combined]);
    Ok(taken(what, me, |from, at| words[from].elements(at), combined, carry))
}
