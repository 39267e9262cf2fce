//! Collectives of lists whose lengths only their owners know.
//!
//! In the exchange each rank sends every other rank four values: the length of its list for that
//! rank, whether all its lists have one length, the length of its longest list, and whether the
//! rank has a plan for lists of that length. Short lists travel with the exchange. From these
//! values all ranks conclude whether anything is left to send, and whether all lists of the world
//! have one length. If all lists have one length, they are sent by a collective of that length.
//! Otherwise the lists go through slots of one size, in the number of dynamic epochs that the
//! longest list needs.

use crate::census::Give;
use crate::collectives::bug;
use crate::collectives::carry::Parts;
use crate::collectives::fixed::{put, run_agreed};
use crate::fence::{fail, fence};
use crate::kernel::element::{Element, element_type};
use crate::state::call::Call;
use crate::state::window::Window;
use crate::state::world::World;
use fencepost_planner::census::Census;
use fencepost_planner::collective::{Collective, Operation};
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::bytes::Reader;

/// The number of words of the slot that each rank has for every other rank: `HEAD` words, then a
/// short list. The first word of the head is the list's length. The second holds the longest
/// length, whether the rank has the plan, and whether all its lists have one length.
const SLOT: usize = 32;
const HEAD: usize = 2;
/// The maximum size in bytes of a list that travels with the exchange.
const SHORT: usize = (SLOT - HEAD) * 8;
/// The size in bytes of a rank's slots for lists of different lengths, unless one element of each
/// rank needs more.
const SLOTS: usize = 4 << 20;

/// Sends `mine(rank)` to each rank to which `operation` sends anything. Returns the list that each
/// rank has sent to this rank.
pub(super) fn exchange<'a, T: Element>(
    world: &World,
    call: &Call,
    operation: Operation,
    mine: impl Fn(usize) -> &'a [T],
) -> Result<Vec<Vec<T>>> {
    world.core().admits(call)?;
    let (me, ranks) = (world.rank(), world.size());
    let gets = |to: usize| !matches!(operation, Operation::Gather { root } if root as usize != to);
    let what = |len| Collective { operation, ranks: ranks as u32, len, element: element_type::<T>() };
    let mut received: Vec<Vec<T>> = Vec::with_capacity(ranks);
    let longest = (0..ranks).map(|to| mine(to).len()).max().unwrap_or(0);
    let all_equal = (0..ranks).all(|to| mine(to).len() == longest);
    let own = Lists {
        size: size_of::<T>(),
        of: &|to| bytemuck::cast_slice(mine(to)),
        gets: &gets,
        longest,
        all_equal,
        has_plan: all_equal && world.collectives().has_plan(&what(longest)),
    };
    let announced = announce(world, call, &own, &mut |len, bytes| {
        let mut list = vec![T::zeroed(); len];
        bytemuck::cast_slice_mut(&mut list).copy_from_slice(bytes);
        received.push(list);
    })?;
    let Announced { longest, all_equal, all_have_plan, lens } = announced;
    if longest.saturating_mul(size_of::<T>()) <= SHORT {
        return Ok(received);
    }
    if all_equal {
        let bring = |to: &mut [T]| match operation {
            Operation::AllToAll => (0..ranks)
                .zip(to.chunks_exact_mut(longest))
                .for_each(|(target, to)| to.copy_from_slice(mine(target))),
            _ => to.copy_from_slice(mine(me)),
        };
        let take = |found: &mut Parts<'_, T>| {
            found.flat_map(|part| part.chunks_exact(longest)).map(<[T]>::to_vec).collect()
        };
        return run_agreed(world, call, &what(longest), all_have_plan, (bring, take));
    }
    for (from, list) in received.iter_mut().enumerate() {
        list.clear();
        if list.try_reserve_exact(lens[from]).is_err() {
            let message = format!("there is no memory for the {} elements of rank {from}", lens[from]);
            let error = call.error(world.core(), ErrorClass::NoMem, message);
            return Err(fail(world.core(), &[], call, error));
        }
    }
    let slot = (SLOTS / (ranks * size_of::<T>())).clamp(1, longest);
    let window = &mut *world.collectives().window::<T>(world, ranks.saturating_mul(slot), call)?;
    for first in (0..longest).step_by(slot) {
        let part = |list: &'a [T]| &list[first.min(list.len())..(first + slot).min(list.len())];
        let others = (0..ranks).filter(|&to| to != me && gets(to));
        let failed = others.map(|to| put(window, part(mine(to)), to, me * slot)).find_map(Result::err);
        fence(world.core(), &[&**window.core()], call, failed)?;
        for (from, list) in received.iter_mut().enumerate().filter(|(from, _)| *from != me) {
            let count = (lens[from] - list.len()).min(slot);
            list.extend_from_slice(&window[from * slot..][..count]);
        }
    }
    if gets(me) {
        received[me] = mine(me).to_vec();
    }
    Ok(received)
}

/// The facts that all ranks know after the exchange.
struct Announced {
    /// The length of the longest list of the world.
    longest: usize,
    /// Whether all lists of the world have one length.
    all_equal: bool,
    /// Whether every rank has a plan for lists that all have the length of the rank's longest list.
    all_have_plan: bool,
    /// The lengths of the lists for this rank.
    lens: Vec<usize>,
}

/// The lists of this rank, as bytes of elements of `size` bytes.
struct Lists<'a> {
    size: usize,
    /// The list for each rank, even for a rank that does not get it.
    of: &'a dyn Fn(usize) -> &'a [u8],
    /// Whether a rank gets its list.
    gets: &'a dyn Fn(usize) -> bool,
    /// The length of the longest list.
    longest: usize,
    /// Whether all lists have the length `longest`.
    all_equal: bool,
    /// Whether this rank has the plan for lists of the length `longest`.
    has_plan: bool,
}

impl<'a> Lists<'a> {
    fn to(&self, rank: usize) -> &'a [u8] {
        if (self.gets)(rank) { (self.of)(rank) } else { &[] }
    }

    /// Appends the slot for `rank`, with its list if that is short.
    fn write_slot(&self, rank: usize, slots: &mut Vec<u64>) {
        let list = self.to(rank);
        let word = (self.longest as u64) << 2 | u64::from(self.has_plan) << 1 | u64::from(self.all_equal);
        slots.extend([(list.len() / self.size) as u64, word]);
        if list.len() <= SHORT {
            let first = slots.len();
            slots.resize(first + list.len().div_ceil(8), 0);
            bytemuck::cast_slice_mut(&mut slots[first..])[..list.len()].copy_from_slice(list);
        }
    }
}

/// Exchanges the lengths of lists, and the short lists.
///
/// Calls `take` once for each rank, in the order of ranks, with the number of elements of the
/// rank's list and with their bytes. If the list did not travel with the exchange, the number is 0
/// and there are no bytes.
fn announce(
    world: &World,
    call: &Call,
    lists: &Lists<'_>,
    take: &mut dyn FnMut(usize, &[u8]),
) -> Result<Announced> {
    let kept = world.collectives();
    let counts = &mut *kept.counts.borrow_mut();
    let window = match counts {
        Some(window) => window,
        None => {
            let mut window = world.window_in::<u64>(world.size() * SLOT, call)?;
            window.set_mode(Mode::Aggregated);
            counts.insert(window)
        }
    };
    let scratch = &mut *kept.scratch.borrow_mut();
    scratch.clear();
    if world.core().census.usual == Census::Direct {
        put_slots(world, call, lists, window, scratch)?;
    } else {
        give_slots(world, call, lists, window, scratch)?;
    }
    read_slots(world, call, lists, window, take)
}

/// Sends every other rank its slot in a census, and writes the slots of the other ranks into
/// `window`.
fn give_slots(
    world: &World,
    call: &Call,
    lists: &Lists<'_>,
    window: &mut Window<u64>,
    scratch: &mut Vec<u64>,
) -> Result<()> {
    let (core, me, ranks) = (world.core(), world.rank(), world.size());
    let mut ends = vec![0];
    for to in 0..ranks {
        lists.write_slot(to, scratch);
        ends.push(scratch.len());
    }
    let slot = |to: usize| bytemuck::cast_slice(&scratch[ends[to]..ends[to + 1]]);
    let gives: Vec<Give<'_>> = (0..ranks).filter(|&to| to != me).map(|to| (Some(to), slot(to))).collect();
    core.give(call, &gives)?;
    let all = |_| true;
    core.given(call, all, |from, to_all, bytes| {
        let to = &mut window[from * SLOT..][..SLOT];
        // Accepts only the number of bytes that the slot announces.
        let len: Option<u64> = Reader(bytes).take();
        let listed = len.and_then(|len| usize::try_from(len).ok()?.checked_mul(lists.size));
        let short = listed.filter(|&listed| listed <= SHORT).map_or(0, |listed| listed.div_ceil(8));
        let fits = !to_all && listed.is_some() && bytes.len() == (HEAD + short) * 8;
        if fits {
            bytemuck::cast_slice_mut(to)[..bytes.len()].copy_from_slice(bytes);
        }
        fits
    })
}

/// Puts to every other rank the slot for that rank, in a dynamic epoch.
fn put_slots(
    world: &World,
    call: &Call,
    lists: &Lists<'_>,
    window: &mut Window<u64>,
    scratch: &mut Vec<u64>,
) -> Result<()> {
    let me = world.rank();
    let failed = (0..world.size()).filter(|&to| to != me).find_map(|to| {
        scratch.clear();
        lists.write_slot(to, scratch);
        put(window, scratch, to, me * SLOT).err()
    });
    fence(world.core(), &[&**window.core()], call, failed)
}

/// Reads the slots that all ranks have for this rank.
fn read_slots(
    world: &World,
    call: &Call,
    lists: &Lists<'_>,
    window: &Window<u64>,
    take: &mut dyn FnMut(usize, &[u8]),
) -> Result<Announced> {
    let (me, ranks) = (world.rank(), world.size());
    let (mut longest, mut all_equal, mut all_have_plan) = (lists.longest, lists.all_equal, lists.has_plan);
    let mut lens = Vec::with_capacity(ranks);
    for from in 0..ranks {
        if from == me {
            let own = lists.to(me);
            lens.push(own.len() / lists.size);
            let own = if own.len() <= SHORT { own } else { &[] };
            take(own.len() / lists.size, own);
            continue;
        }
        let words = &window[from * SLOT..][..SLOT];
        let (len, theirs) = (words[0] as usize, (words[1] >> 2) as usize);
        all_equal &= words[1] & 1 == 1 && theirs == lists.longest;
        all_have_plan &= words[1] & 2 == 2;
        longest = longest.max(theirs);
        let bytes =
            len.checked_mul(lists.size).ok_or_else(|| bug(call, world, "a list beyond all memory"))?;
        let short = if bytes <= SHORT { bytes } else { 0 };
        take(short / lists.size, &bytemuck::cast_slice(&words[HEAD..])[..short]);
        lens.push(len);
    }
    Ok(Announced { longest, all_equal, all_have_plan, lens })
}
