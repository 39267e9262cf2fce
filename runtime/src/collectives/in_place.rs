//! Collectives whose elements are read in the windows of the ranks that brought them. This requires
//! that each rank reaches the memory of all ranks.
//!
//! Each rank has a window with room for twice the elements that it brings. It writes its elements
//! into one half. All ranks meet in the exchange at the beginning of the collective, and then each
//! rank reads the elements that it needs in the others' halves. The next call takes the other half,
//! so no second exchange is needed. Before a rank writes a half again, it has been in the exchange
//! of the call in between, and all ranks entered that exchange after they had read the half.
//!
//! A collective in blocks has two exchanges. After the first, each rank combines its block of the
//! elements in one half into the other half. After the second, the others read the result there.
//! The next call then takes the same half.

use crate::collectives::carry::Carry;
use crate::collectives::fold::combine;
use crate::fence::fence;
use crate::kernel::element::Element;
use crate::state::call::Call;
use crate::state::window::Window;
use crate::state::window_core::WindowCore;
use crate::state::world::World;
use fencepost_planner::Result;
use fencepost_planner::collective::{Algorithm, Collective, Operation, block};
use fencepost_planner::element::Op;
use std::ops::Range;

/// A window for elements that are shown to other ranks. `is_second` is whether the next call writes
/// to its second half.
pub(super) struct Shown<T: Element> {
    window: Window<T>,
    is_second: bool,
    /// The elements that this rank combines by itself.
    combined: Vec<T>,
}

impl<T: Element> Shown<T> {
    /// Makes a window with room for `len` elements in each half. All ranks make it in the same
    /// collective call.
    pub(super) fn new(world: &World, len: usize, call: &Call) -> Result<Self> {
        let window = world.window_in::<T>(len.saturating_mul(2), call)?;
        Ok(Self { window, is_second: false, combined: Vec::new() })
    }

    /// Returns the number of elements that a half has room for.
    pub(super) fn room(&self) -> usize {
        self.window.len() / 2
    }

    /// Returns the first index of the half that the next call writes to, and the first index of the
    /// other half.
    fn halves(&self) -> [usize; 2] {
        if self.is_second { [self.room(), 0] } else { [0, self.room()] }
    }
}

/// Shows this rank's elements to the others, and reads theirs.
pub(super) fn in_place<T: Element, R>(
    world: &World,
    call: &Call,
    what: &Collective,
    algorithm: Algorithm,
    mut carry: impl Carry<T, R>,
) -> Result<R> {
    let (core, me, ranks) = (world.core(), world.rank(), world.size());
    let shown = &mut *world.collectives().shown::<T>(world, what.brings(), call)?;
    let [half, other] = shown.halves();
    let Shown { window, is_second, combined } = shown;
    let window = window.core();
    let brought = what.input(Algorithm::Tree, me as u32).len();
    // SAFETY: others last read this half in the call before the previous call, or earlier, and have
    // been in an exchange since.
    carry.bring(unsafe { own(window, half..half + brought) });
    fence(core, &[], call, None)?;
    // SAFETY: the elements were written before the exchange, by a rank that writes them again only
    // after the next exchange with this rank.
    let slot = |from: usize, at: Range<usize>| unsafe { part(window, from, half + at.start..half + at.end) };
    if let (Algorithm::Blocks, Operation::Allreduce { op }) = (algorithm, what.operation) {
        let block_of = |rank: usize| block(rank as u32, ranks as u32, what.len);
        let mine = block_of(me);
        combined.resize(combined.len().max(spare(ranks, mine.len())), T::zeroed());
        // SAFETY: others read this half no later than in the last call, and have been in the
        // exchange above since.
        let into = unsafe { own(window, other..other + mine.len()) };
        tree(&|from| slot(from, mine.clone()), 0..ranks, into, combined, op);
        fence(core, &[], call, None)?;
        // SAFETY: as for a slot: the block is written again only after the first exchange of a
        // later call.
        let block = |from: usize| unsafe { part(window, from, other..other + block_of(from).len()) };
        return Ok(carry.take(&mut (0..ranks).map(block)));
    }
    *is_second = !*is_second;
    combined.resize(combined.len().max(room(what)), T::zeroed());
    Ok(taken(what, me, slot, combined, carry))
}

/// Returns the number of elements of the buffer in which [`taken`] combines elements.
pub(super) fn room(what: &Collective) -> usize {
    what.len + spare(what.ranks as usize, what.len)
}

/// Computes this rank's result from the elements that each rank brought, and passes it to `carry`.
/// `slot` returns elements that a rank brought. `combined` is the buffer for combining, of at least
/// [`room`] elements.
pub(super) fn taken<'s, T: Element, R>(
    what: &Collective,
    me: usize,
    slot: impl Fn(usize, Range<usize>) -> &'s [T],
    combined: &mut [T],
    carry: impl Carry<T, R>,
) -> R {
    let ranks = what.ranks as usize;
    let (op, slots) = match what.operation {
        Operation::Reduce { root, op } => (op, if root as usize == me { 0..ranks } else { 0..0 }),
        Operation::Allreduce { op } => (op, 0..ranks),
        Operation::Scan { op } => (op, 0..me + 1),
        _ => {
            let read = |from: usize| slot(from, what.reads(me as u32, from as u32));
            return carry.take(&mut (0..ranks).map(read));
        }
    };
    if slots.is_empty() {
        return carry.take(&mut std::iter::empty());
    }
    let (result, spare) = combined.split_at_mut(what.len);
    let slot = |from| slot(from, 0..what.len);
    if matches!(what.operation, Operation::Scan { .. }) {
        result.copy_from_slice(slot(0));
        (1..slots.end).for_each(|from| combine(result, slot(from), op));
    } else {
        tree(&slot, slots, result, spare, op);
    }
    carry.take(&mut std::iter::once(&*result))
}

/// Returns elements of this rank's part.
///
/// # Safety
/// Until the slice is dropped, no other rank reads its elements, and this rank does not access them
/// by another reference.
#[expect(
    clippy::mut_from_ref,
    reason = "others read the part meanwhile, so that nothing may borrow all of it"
)]
unsafe fn own<T: Element>(window: &WindowCore, at: Range<usize>) -> &mut [T] {
    assert!(at.end <= window.peers[window.world.rank].len);
    // SAFETY: the elements are inside the part, they have this type and are initialised; for the
    // rest, see this function's contract.
    unsafe { std::slice::from_raw_parts_mut(window.region.base().cast::<T>().add(at.start), at.len()) }
}

/// Returns elements of the part of `rank`, whose memory is reached.
///
/// # Safety
/// Until the slice is dropped, no rank writes its elements.
unsafe fn part<T: Element>(window: &WindowCore, rank: usize, at: Range<usize>) -> &[T] {
    let peer = &window.peers[rank];
    assert!(at.end <= peer.len);
    // SAFETY: the elements are inside the part, they have this type and are initialised, and the
    // part stays until this rank has dropped the window, too; for the rest, see this function's
    // contract.
    unsafe { std::slice::from_raw_parts(peer.base.cast::<T>().add(at.start).cast_const(), at.len()) }
}

/// Returns the number of elements that [`tree`] needs in addition to its result.
fn spare(ranks: usize, len: usize) -> usize {
    let depth = ranks.next_power_of_two().trailing_zeros() as usize;
    depth.saturating_sub(1) * len
}

/// Combines slots over the balanced tree: each half first, then the right half into the left half.
fn tree<'s, T: Element>(
    slot: &impl Fn(usize) -> &'s [T],
    slots: Range<usize>,
    into: &mut [T],
    spare: &mut [T],
    op: Op,
) {
    if slots.len() == 1 {
        return into.copy_from_slice(slot(slots.start));
    }
    let middle = slots.start + slots.len().div_ceil(2);
    tree(slot, slots.start..middle, into, spare, op);
    if slots.end - middle == 1 {
        return combine(into, slot(middle), op);
    }
    let (right, spare) = spare.split_at_mut(into.len());
    tree(slot, middle..slots.end, right, spare, op);
    combine(into, right, op);
}
