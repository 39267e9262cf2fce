//! The data that a [`World`] keeps for its collectives: windows by element type, and bound plans by
//! collective.
//!
//! Windows only grow, and only the sequence of calls determines when, so all ranks make new windows
//! in the same call. Plans need no agreement either: every rank makes the same plan for the same
//! call, or finds the plan that another rank of the process has made. If a rank has no plan for
//! lack of memory, all ranks find out before any of them begins.

use crate::collectives::bug;
use crate::collectives::in_place::Shown;
use crate::collectives::told::Words;
use crate::kernel::element::Element;
use crate::state::call::Call;
use crate::state::window::Window;
use crate::state::world::{World, WorldCore};
use crate::supersteps::prepared::{Ready, options};
use crate::supersteps::state::schedule_cache::{Key, Made, Schedules};
use fencepost_planner::Result;
use fencepost_planner::collective::{Algorithm, Collective, Delivery, Slots, Step};
use fencepost_planner::ir::pattern::Mode;
use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;

/// The maximum number of plans that are kept.
const PLANS: usize = 64;
/// The maximum size in bytes of the buffers that all plans together keep. A single plan may need
/// more.
const BYTES: u64 = 64 << 20;

/// Values by their element type.
type ByType = Vec<(TypeId, Box<dyn Any>)>;

/// The windows and plans of a world's collectives; see the [module](self).
#[derive(Default)]
pub(crate) struct Collectives {
    /// A `Window<T>` for each `T`.
    windows: RefCell<ByType>,
    /// The last collective whose delivery was decided, and the decision.
    decided: Cell<Option<(Collective, Delivery)>>,
    /// A `Shown<T>` for each `T`.
    shown: RefCell<ByType>,
    /// The window for the lengths of lists, and for short lists.
    pub(super) counts: RefCell<Option<Window<u64>>>,
    /// The buffer in which a list's announcement is assembled.
    pub(super) scratch: RefCell<Vec<u64>>,
    /// The words that each rank sent in the last call whose elements fitted in notifications.
    pub(super) words: RefCell<Vec<Words>>,
    /// The plans, the most recently used first.
    plans: RefCell<Vec<(Collective, Rc<Bound>)>>,
}

/// A plan, ready to run.
pub(super) struct Bound {
    /// The algorithm of the plan.
    pub(super) algorithm: Algorithm,
    /// The number of elements that the window needs.
    pub(super) window: usize,
    pub(super) steps: Vec<BoundStep>,
    /// The size of the plan's buffers in bytes.
    bytes: u64,
    /// Keeps the schedules for other ranks of this process that have yet to reach this call.
    _made: Arc<Schedules>,
}

pub(super) enum BoundStep {
    Epoch(Box<Ready>),
    Combine(Slots),
}

impl World {
    /// Returns the data that collectives keep from one call to the next.
    pub(crate) fn collectives(&self) -> &Collectives {
        let kept = self.collectives.get_or_init(|| Box::new(Collectives::default()));
        kept.downcast_ref().expect("only collectives keep something here")
    }
}

impl Collectives {
    /// Returns the window of `T`, with at least `len` elements on every rank. All ranks call this
    /// in the same collective call.
    pub(super) fn window<T: Element>(
        &self,
        world: &World,
        len: usize,
        call: &Call,
    ) -> Result<RefMut<'_, Window<T>>> {
        grown::<T, _>(
            &self.windows,
            len,
            |window: &Window<T>| window.len(),
            |len| {
                let mut window = world.window_in::<T>(len, call)?;
                // Puts travel with the notifications or are sent at the fence, and never earlier.
                window.set_mode(Mode::Aggregated);
                Ok(window)
            },
        )?
        .ok_or_else(|| bug(call, world, "a window that was kept is gone"))
    }

    /// Returns the [`Shown`] of `T`, with room for at least `len` elements on every rank. All ranks
    /// call this in the same collective call.
    pub(super) fn shown<T: Element>(
        &self,
        world: &World,
        len: usize,
        call: &Call,
    ) -> Result<RefMut<'_, Shown<T>>> {
        grown::<T, _>(&self.shown, len, Shown::room, |len| Shown::new(world, len, call))?
            .ok_or_else(|| bug(call, world, "a window that was kept is gone"))
    }

    /// Returns how the elements of `what` reach the ranks that need them.
    pub(super) fn decide(&self, core: &WorldCore, what: &Collective) -> Delivery {
        if let Some((known, way)) = self.decided.get()
            && known == *what
        {
            return way;
        }
        let way = what.delivery(&core.machine, core.reach.is_all, core.census.usual);
        self.decided.set(Some((*what, way)));
        way
    }

    pub(super) fn has_plan(&self, what: &Collective) -> bool {
        self.plans.borrow().iter().any(|(known, _)| known == what)
    }

    /// Returns the plan of `what`, and makes it if it is not known.
    pub(super) fn plan(
        &self,
        core: &Rc<WorldCore>,
        what: &Collective,
        algorithm: Algorithm,
    ) -> Result<Rc<Bound>> {
        let plans = &mut *self.plans.borrow_mut();
        if let Some(at) = plans.iter().position(|(known, _)| known == what) {
            plans[..=at].rotate_right(1);
            return Ok(plans[0].1.clone());
        }
        let bound = Rc::new(bind(core, what, algorithm)?);
        let mut bytes = bound.bytes;
        let fits = plans.iter().take(PLANS - 1).take_while(|(_, plan)| {
            bytes = bytes.saturating_add(plan.bytes);
            bytes <= BYTES
        });
        // The plan that was used last stays, since its frames may still be read. All ranks have
        // finished the earlier plans.
        let keep = fits.count().max(1).min(plans.len());
        for (_, plan) in plans.drain(keep..) {
            plan.retire();
        }
        plans.insert(0, (*what, bound.clone()));
        Ok(bound)
    }
}

/// Returns the value that is kept for elements of `T`. If the kept value has no room for `len`
/// elements, replaces it by a value with at least twice the room.
fn grown<'k, T: Element, K: Any>(
    kept: &'k RefCell<ByType>,
    len: usize,
    room: impl Fn(&K) -> usize,
    make: impl FnOnce(usize) -> Result<K>,
) -> Result<Option<RefMut<'k, K>>> {
    let had = match RefMut::filter_map(kept.borrow_mut(), of_type::<T, K>) {
        Ok(found) if room(&found) >= len => return Ok(Some(found)),
        Ok(found) => room(&found),
        Err(_) => 0,
    };
    let made = make(len.max(had.saturating_mul(2)))?;
    let mut all = kept.borrow_mut();
    all.retain(|(element, _)| *element != TypeId::of::<T>());
    all.push((TypeId::of::<T>(), Box::new(made)));
    Ok(RefMut::filter_map(all, of_type::<T, K>).ok())
}

/// Returns the value that is kept for elements of `T`.
fn of_type<T: Element, K: Any>(kept: &mut ByType) -> Option<&mut K> {
    let of_type = kept.iter_mut().find(|(element, _)| *element == TypeId::of::<T>())?;
    of_type.1.downcast_mut()
}

impl Bound {
    /// Frees the plan's buffers, which no rank reads any more.
    fn retire(&self) {
        for step in &self.steps {
            if let BoundStep::Epoch(ready) = step {
                ready.retire();
            }
        }
    }
}

fn bind(core: &Rc<WorldCore>, what: &Collective, algorithm: Algorithm) -> Result<Bound> {
    let (placement, options) = (core.reach.placement, options(core));
    let key = Key { what: *what, algorithm, placement, machine: core.machine, options };
    let made = core.registry.schedule_cache().get(key, || {
        let plan = what.plan(algorithm);
        let steps = plan.steps.into_iter().map(|step| match step {
            Step::Combine(slots) => Ok(Made::Combine(slots)),
            Step::Epoch(patterns) => {
                fencepost_planner::compile(&patterns, placement, &core.machine, &options)
                    .map(Arc::new)
                    .map(Made::Epoch)
            }
        });
        Ok((plan.window, steps.collect::<Result<_>>()?))
    })?;
    let (window, steps) = &*made;
    let mut bytes = 0u64;
    let steps = steps.iter().map(|step| match step {
        Made::Combine(slots) => Ok(BoundStep::Combine(*slots)),
        Made::Epoch(schedule) => {
            bytes = bytes.saturating_add(schedule.peak().0);
            Ok(BoundStep::Epoch(Box::new(Ready::alone(core, schedule.clone())?)))
        }
    });
    let steps = steps.collect::<Result<_>>()?;
    Ok(Bound { algorithm, window: *window, steps, bytes, _made: made.clone() })
}
