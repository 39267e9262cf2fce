//! Collectives of arrays whose length all ranks know.

use crate::census::Give;
use crate::collectives::cache::{Bound, BoundStep};
use crate::collectives::carry::Carry;
use crate::collectives::fold::fold;
use crate::collectives::in_place::in_place;
use crate::collectives::told::{is_told, tell};
use crate::fence::{fail, fence};
use crate::kernel::element::Element;
use crate::state::call::Call;
use crate::state::window::Window;
use crate::state::world::{World, WorldCore};
use fencepost_planner::Result;
use fencepost_planner::census::Census;
use fencepost_planner::collective::{Algorithm, Collective, Delivery, Operation};
use std::ops::Range;
use std::rc::Rc;

pub(super) fn run<T: Element, R>(
    world: &World,
    call: &Call,
    what: &Collective,
    carry: impl Carry<T, R>,
) -> Result<R> {
    let core = world.core();
    core.admits(call)?;
    match world.collectives().decide(core, what) {
        Delivery::Ride if is_told::<T>(world, what) => tell(world, call, what, carry),
        Delivery::Ride => ride(world, call, what, carry),
        Delivery::InPlace(algorithm) => in_place(world, call, what, algorithm, carry),
        Delivery::Plan(algorithm) => {
            planned(world, call, what, &*agreed(world, call, what, algorithm)?, carry)
        }
    }
}

/// Runs a collective in a call whose exchange is over.
///
/// `all_have_it` is whether all ranks have the plan. The value is the same on all ranks. If some
/// rank has no plan, there is another exchange, since a rank that cannot make the plan would leave
/// the others waiting in the middle of the collective.
pub(super) fn run_agreed<T: Element, R>(
    world: &World,
    call: &Call,
    what: &Collective,
    all_have_it: bool,
    carry: impl Carry<T, R>,
) -> Result<R> {
    let core = world.core();
    let algorithm = what.algorithm(&core.machine, core.reach.is_all, core.census.usual);
    let plan = if all_have_it {
        world.collectives().plan(core, what, algorithm)?
    } else {
        agreed(world, call, what, algorithm)?
    };
    planned(world, call, what, &plan, carry)
}

/// Returns the plan of `what` once all ranks have the plan. A rank that cannot make the plan
/// reports that in an exchange.
fn agreed(world: &World, call: &Call, what: &Collective, algorithm: Algorithm) -> Result<Rc<Bound>> {
    let core = world.core();
    match world.collectives().plan(core, what, algorithm) {
        Ok(plan) => fence(core, &[], call, None).map(|()| plan),
        Err(error) => {
            let error = error.on_rank(core.rank).at(call.site).in_superstep(call.name.unwrap_or_default());
            Err(fail(core, &[], call, error))
        }
    }
}

/// Moves all elements in the exchange. Either the exchange is the fence of a dynamic epoch that
/// puts the elements, or the census carries them as bytes.
fn ride<T: Element, R>(
    world: &World,
    call: &Call,
    what: &Collective,
    mut carry: impl Carry<T, R>,
) -> Result<R> {
    let (core, me) = (world.core(), world.rank() as u32);
    let window = &mut *world.collectives().window::<T>(world, what.direct_window(), call)?;
    carry.bring(&mut window[what.input(Algorithm::Direct, me)]);
    let sparse = core.census.usual != Census::Direct;
    let mut failed = None;
    for (to, from, at) in what.direct(me) {
        if to == me {
            let (own, there) = (from.clone(), at);
            window.copy_within(own, there);
        } else if sparse {
            continue;
        } else if let Err(error) = put(window, &window[from], to as usize, at) {
            failed = Some(error);
            break;
        }
    }
    if sparse {
        give(core, call, what, window)?;
    } else {
        fence(core, &[&**window.core()], call, failed)?;
    }
    if let Some(slots) = what.direct_slots() {
        fold(window, &slots, what.ranks, me);
    }
    let [first, second] = what.output(Algorithm::Direct, me);
    Ok(carry.take(&mut [&window[first], &window[second]].into_iter()))
}

/// Sends the elements that the direct algorithm moves, as bytes of a census. Bytes for all ranks
/// are sent once.
fn give<T: Element>(core: &WorldCore, call: &Call, what: &Collective, window: &mut [T]) -> Result<()> {
    let (me, all) = (core.rank as u32, what.is_for_all());
    let others = what.direct(me).filter(|(to, ..)| *to != me);
    let one = |(to, from, _): (u32, Range<usize>, usize)| -> Give<'_> {
        ((!all).then_some(to as usize), bytemuck::cast_slice(&window[from]))
    };
    let gives: Vec<Give<'_>> = others.take(if all { 1 } else { usize::MAX }).map(one).collect();
    core.give(call, &gives)?;
    let needs = |from: usize| what.direct_to(from as u32, me);
    // Bytes for all ranks also arrive at ranks that do not need them.
    let gives = |from: usize| {
        if all { what.direct(from as u32).next().is_some() } else { needs(from).is_some() }
    };
    core.given(call, gives, |from, to_all, bytes| {
        let Some((elements, at)) = needs(from) else {
            return to_all == all; // this rank does not need the bytes
        };
        let to = bytemuck::cast_slice_mut(&mut window[at..at + elements.len()]);
        let fits = to_all == all && to.len() == bytes.len();
        if fits {
            to.copy_from_slice(bytes);
        }
        fits
    })
}

/// The maximum number of elements that are put one by one, if single puts take the fast path.
const FEW: usize = 4;

/// Puts these elements. If memory is reached, a few small elements take the fast path, as one
/// record each.
#[inline]
pub(super) fn put<T: Element>(window: &Window<T>, elements: &[T], to: usize, at: usize) -> Result<()> {
    if elements.len() <= FEW && size_of::<T>() <= 8 && !window.core().peers.apart {
        return elements.iter().enumerate().try_for_each(|(i, one)| window.put([*one]).to(to, at + i));
    }
    if elements.is_empty() { Ok(()) } else { window.put(elements).to(to, at) }
}

/// Runs a plan: its epochs one after another, and the combining of each rank between them.
fn planned<T: Element, R>(
    world: &World,
    call: &Call,
    what: &Collective,
    plan: &Bound,
    mut carry: impl Carry<T, R>,
) -> Result<R> {
    let me = world.rank() as u32;
    let window = &mut *world.collectives().window::<T>(world, plan.window, call)?;
    let input = what.input(plan.algorithm, me);
    if !input.is_empty() {
        carry.bring(&mut window[input]);
    }
    for step in &plan.steps {
        match step {
            BoundStep::Epoch(ready) => drop(ready.replay(&[&**window.core()], call)?),
            BoundStep::Combine(slots) => fold(window, slots, what.ranks, me),
        }
    }
    // The root of a broadcast already has its result.
    let keeps = matches!(what.operation, Operation::Broadcast { root } if root == me);
    let [first, second] = if keeps { [0..0, 0..0] } else { what.output(plan.algorithm, me) };
    Ok(carry.take(&mut [&window[first], &window[second]].into_iter()))
}
