//! Supersteps that are prepared in a world. All ranks describe a superstep, make or load its
//! schedules, and agree on them.

use crate::check;
use crate::fence::fence;
use crate::protocol::call::handler_of;
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::window_core::{Held, with};
use crate::state::windows::Windows;
use crate::state::world::{World, WorldCore};
use crate::supersteps::claim::evaluate;
use crate::supersteps::compiled::prefer;
use crate::supersteps::explained::{Explained, ExplainedEpoch, known_conflicts};
use crate::supersteps::matched::Matched;
use crate::supersteps::planning::plan_all;
use crate::supersteps::prepared::{self, Ready};
use crate::supersteps::recorder::Recording;
use crate::supersteps::running::{Begun, Running, Taken};
use crate::supersteps::source::{self, Found, PlanSource, Source};
use crate::supersteps::state::RecordedEpoch;
use crate::supersteps::state::Superstep;
use fencepost_planner::conflicts::Conflict;
use fencepost_planner::element::ElementType;
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::pattern::{Local, Sync};
use fencepost_planner::ir::schedule::Schedule;
use fencepost_planner::plan::{self, MadeFor, Plan};
use fencepost_planner::share::Share;
use fencepost_planner::table::Table;
use fencepost_planner::{Error, ErrorClass, Result, Verified};
use fencepost_transport::bytes::Reader;
use std::convert::Infallible;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// A prepared superstep: the plans of its epochs.
pub struct Prepared {
    superstep: &'static Superstep,
    world: Rc<WorldCore>,
    epochs: Rc<Matched>,
    /// The line of a call, by any rank, whose elements come from values or go to a ticket. `None`
    /// if there is no such call. A plan contains neither values nor tickets.
    unplanned: Option<String>,
    /// How `name::load` has made the superstep from its source, as a line of text. Empty if it was
    /// prepared.
    origin: String,
}

/// A trait that no type implements. If a superstep cannot be replayed, the first window of its
/// `replay` must implement this trait.
#[diagnostic::on_unimplemented(
    message = "this superstep cannot be replayed: its body does more than operations between sections of its windows",
    label = "its body has to run",
    note = "call `run`, which takes the parameters of the superstep's function; of a source by reference (`&values`) the macro sees that the body has to run, and `begin` takes them too"
)]
pub trait Replays {
    /// Cannot be called, since no type implements the trait.
    fn never(&self) -> Infallible;
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("superstep", &self.superstep.name).finish_non_exhaustive()
    }
}

/// As long as this value lives, the next superstep that is entered is bound to its plan.
#[must_use = "it is bound while this lives"]
pub struct Bound(Rc<WorldCore>);

impl Drop for Bound {
    fn drop(&mut self) {
        // The superstep was entered, or will not be entered.
        self.0.supersteps.bound.take();
    }
}

impl Prepared {
    /// Makes a prepared superstep from the fenced windows and the plan of each epoch. Stops at the
    /// first plan that is an error, and returns that error.
    fn of(
        superstep: &'static Superstep,
        world: &Rc<WorldCore>,
        epochs: impl Iterator<Item = (Vec<WindowId>, Result<Ready>)>,
    ) -> Result<Self> {
        let epochs = epochs.map(|(windows, ready)| {
            let mut ready = ready?;
            ready.fenced = Some(windows.clone());
            Ok((Rc::new(ready), windows))
        });
        let epochs = Rc::new(Matched::of(epochs.collect::<Result<_>>()?));
        let unplanned = epochs.epochs().find_map(|ready| ready.share(unplanned).flatten());
        Ok(Self { superstep, world: world.clone(), epochs, unplanned, origin: String::new() })
    }

    /// Lets [`replay`](Self::replay) run any plan, for measurements. Zeros take the place of
    /// values, which are not in the plan, and elements for tickets are dropped.
    #[doc(hidden)]
    #[must_use]
    pub fn with_zeros(mut self) -> Self {
        self.unplanned = None;
        self
    }

    /// Replays a superstep that consists only of operations between sections.
    ///
    /// # Errors
    /// `PLAN` on all ranks if the superstep has other operations; an error for windows that do not
    /// fit the plan; otherwise as a fence.
    #[track_caller]
    pub fn replay<'w>(&mut self, windows: impl Windows<'w>) -> Result<()> {
        let call = call(self.superstep);
        self.counted();
        self.planned()?;
        windows.with(|windows| {
            let began = self.world.begin_record(&call);
            let ran = self.opened(windows, &call).and_then(|()| {
                let found = replay_all(self.epochs.epochs(), windows, &call)?;
                found.map_or(Ok(()), Err)
            });
            self.world.end_record(began);
            handler_of(&self.world, windows).report(ran)
        })
    }

    /// Begins a replay. If there are several epochs, runs all of them but the last, and begins the
    /// last.
    ///
    /// # Errors
    /// `RMA_SYNC` if another superstep of the world runs; otherwise as [`replay`](Self::replay).
    /// The windows are dropped.
    #[track_caller]
    pub fn begin<W: Taken>(&mut self, windows: W) -> Result<Running<W>> {
        let call = call(self.superstep);
        self.counted();
        self.planned()?;
        let first = self.epochs.epochs().count().saturating_sub(1);
        self.running(windows, (), |windows, held, last| {
            let began = self.world.begin_record(&call);
            let begun = self.opened(windows, &call).and_then(|()| {
                replay_all(self.epochs.epochs().take(first), windows, &call)?;
                last.start(windows, held, &call)
            });
            self.world.end_half_record(began, begun.is_ok());
            begun.map(|()| Begun { call, over: false })
        })
    }

    /// Begins the last epoch, which the fence of the body has not run. The body was
    /// [bound](Self::bind_half) and has returned `value`.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    #[track_caller]
    pub fn begun<W: Taken, R>(&mut self, windows: W, value: R) -> Result<Running<W, R>> {
        let (call, left) = (call(self.superstep), self.epochs.left());
        self.running(windows, value, |windows, held, last| match left {
            Some(left) => {
                let call = Call { site: call.site, ..left };
                last.start(windows, held, &call).map(|()| Begun { call, over: false })
            }
            None => last.start_over(held, &call).map(|()| Begun { call, over: true }),
        })
    }

    /// Begins the last epoch with `start`, and returns the running superstep with its `windows`.
    fn running<W: Taken, R>(
        &self,
        windows: W,
        value: R,
        start: impl FnOnce(&[&WindowCore], &Held, &Rc<Ready>) -> Result<Begun>,
    ) -> Result<Running<W, R>> {
        let held = windows.held();
        let begun = match self.epochs.epochs().last() {
            Some(last) => with(&held, |windows| start(windows, &held, last)).map(|begun| (last, begun)),
            None => Err(Error::new(ErrorClass::Intern, "a superstep without epochs")),
        };
        let begun =
            begun.map(|(last, begun)| Running::new(&self.world, last, begun, (windows, held.clone()), value));
        match &held[..] {
            [window] => window.handler.report(begun),
            _ => self.world.handler.report(begun),
        }
    }

    /// If the superstep begins with a fence, checks that it may begin, and opens the windows.
    fn opened(&self, windows: &[&WindowCore], call: &Call) -> Result<()> {
        if self.superstep.opens {
            self.epochs.epochs().take(1).try_for_each(|first| first.admits(call))?;
            for window in windows {
                window.open();
                check::begins(window, call.site);
            }
        }
        Ok(())
    }

    /// Counts a run as a call of all ranks, unless it synchronises by posts and starts.
    fn counted(&self) {
        if self.epochs.sync() == Sync::Fence {
            self.world.calls.begin();
        }
    }

    /// Checks that the plan contains the elements of all its calls.
    fn planned(&self) -> Result<()> {
        let Some(site) = &self.unplanned else { return Ok(()) };
        let message = format!(
            "the call at {site} takes its elements from values, or brings them to a ticket, and a plan has neither: call `run`, which takes the parameters of the superstep's function"
        );
        let error = Error::new(ErrorClass::Plan, message).in_superstep(self.superstep.name);
        self.world.handler.report(Err(error.on_rank(self.world.rank)))
    }

    /// Makes the next superstep that is entered run this plan.
    ///
    /// # Errors
    /// `WIN` for a window of another world.
    pub fn bind<'w>(&mut self, windows: impl Windows<'w>) -> Result<Bound> {
        self.binds(windows, false)
    }

    /// Does the same as [`bind`](Self::bind), but the last fence does not run its epoch:
    /// [`begun`](Self::begun) begins it. `begun` must be the only call after the body.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_half<'w>(&mut self, windows: impl Windows<'w>) -> Result<Bound> {
        self.binds(windows, true)
    }

    fn binds<'w>(&mut self, windows: impl Windows<'w>, leaves_last: bool) -> Result<Bound> {
        let world = self.world.clone();
        let here = windows.with(|windows| windows.iter().all(|window| window.key.world == world.id));
        if !here {
            return world.handler.report(Err(Error::new(
                ErrorClass::Win,
                "the superstep was prepared in another world than these windows are of",
            )));
        }
        self.epochs.rewind(leaves_last);
        *world.supersteps.bound.borrow_mut() = Some(self.epochs.clone());
        Ok(Bound(world))
    }

    /// Returns the conflicts, as [`Compiled::conflicts`](crate::Compiled::conflicts) does. If this
    /// rank has only its share of the schedules, these are the conflicts on its own windows.
    pub fn conflicts(&self) -> Vec<Conflict> {
        self.shares(known_conflicts).concat()
    }

    /// Explains the plan, as [`Compiled::explain`](crate::Compiled::explain) does. If this rank has
    /// only its share of the schedules, the explanation is limited to this rank.
    pub fn explain(&self) -> Explained {
        let machine = &self.world.machine;
        let explained = |ready: &Rc<Ready>| {
            let is_replanned = ready.is_replanned.get();
            ready.share(|share| ExplainedEpoch::of_share(share, machine, is_replanned))
        };
        Explained {
            origin: self.origin.clone(),
            epochs: self.epochs.epochs().filter_map(explained).collect(),
        }
    }

    /// Writes the plan of all epochs to the file `path`. All ranks call this, and rank 0 writes the
    /// file. `name::load` and [`Compiled::open`](crate::Compiled::open) read the file.
    ///
    /// # Errors
    /// On rank 0, `IO` if the file system reports an error, and `FILE` for a plan that is too long
    /// to be read again. In these cases, `RMA_SYNC` on the other ranks. Otherwise as
    /// [`World::barrier`](crate::World::barrier).
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let world = &self.world;
        let call = Call::named(self.superstep.hash() ^ SAVE, "save of a prepared superstep");
        world.calls.begin();
        let written = if world.rank == 0 { self.write(path.as_ref()) } else { Ok(()) };
        let failed = written.err().map(|error| error.on_rank(world.rank).in_superstep(self.superstep.name));
        world.handler.report(fence(world, &[], &call, failed))
    }

    /// Writes the schedules. This rank has the whole schedules.
    fn write(&self, path: &Path) -> Result<()> {
        let made_for = MadeFor::new(&self.world.machine, &prepared::options(&self.world));
        let schedules: Vec<Schedule> = self.shares(|share| (**share).clone());
        plan::save_all(&schedules, &made_for, path)
    }

    /// Applies `f` to this rank's shares of the schedules, one for each epoch.
    fn shares<R>(&self, mut f: impl FnMut(&Share) -> R) -> Vec<R> {
        self.epochs.epochs().filter_map(|ready| ready.share(&mut f)).collect()
    }
}

/// Replays epochs one after the other, and returns the first conflict of an epoch with an earlier
/// store of this rank. The epochs after a conflict are replayed as well, since other ranks take
/// part in them.
fn replay_all<'r>(
    epochs: impl Iterator<Item = &'r Rc<Ready>>,
    windows: &[&WindowCore],
    call: &Call,
) -> Result<Option<Error>> {
    let mut found = None;
    for ready in epochs {
        let of_epoch = ready.replay(windows, call)?;
        found = found.or(of_epoch);
    }
    Ok(found)
}

/// Returns the line of a call whose elements are not in a window of its rank, if the schedule has
/// such a call.
fn unplanned(schedule: &Share) -> Option<String> {
    let mut operations = schedule.classes.values().flat_map(|program| program.pattern.operations.values());
    let buffer = operations.find(|operation| operation.local == Local::Buffer);
    buffer.map(|operation| operation.site.to_string())
}

#[track_caller]
fn call(superstep: &'static Superstep) -> Call {
    Call::named(superstep.hash(), superstep.name)
}

/// Returns this rank's own patterns, one for each epoch, with the windows that are fenced.
fn own(
    superstep: &'static Superstep,
    world: &WorldCore,
    windows: &[ElementType],
    record: impl FnOnce(&Recording) -> Result<()>,
) -> Result<Vec<RecordedEpoch>> {
    let recording = Recording::new(world.rank as u32, world.size as u32);
    evaluate(superstep, || record(&recording))?;
    let (mut epochs, _) = recording.finish(windows.len(), superstep.fences)?;
    prefer(superstep, &mut epochs);
    Ok(epochs)
}

/// Implements `name::prepare`.
///
/// # Errors
/// The errors of any rank's calls; `PLAN` if ranks do not agree.
#[track_caller]
pub fn prepare(
    superstep: &'static Superstep,
    world: &World,
    windows: &[ElementType],
    record: impl FnOnce(&Recording) -> Result<()>,
) -> Result<Prepared> {
    let world = world.core();
    let call = world.ordered(&call(superstep));
    world.calls.enter();
    let own = own(superstep, world, windows, record);
    world.calls.leave();
    world.handler.report(agree_on(superstep, world, windows, own, &call))
}

/// Exchanges the calls of all ranks, plans them, and agrees on the result.
fn agree_on(
    superstep: &'static Superstep,
    world: &Rc<WorldCore>,
    windows: &[ElementType],
    own: Result<Vec<RecordedEpoch>>,
    call: &Call,
) -> Result<Prepared> {
    let fenced: Vec<_> = own.iter().flatten().map(|epoch| epoch.windows.clone()).collect();
    let table: Table<WindowId, ElementType> = windows.iter().copied().collect();
    let planned = plan_all(superstep, world, &table, own, call)?;
    let epochs = planned.into_iter().map(|share| prepared::agree_on_share(world, share, call));
    let prepared = Prepared::of(superstep, world, fenced.into_iter().zip(epochs))?;
    without_conflicts(prepared, call)
}

/// A part of the hash of the exchange that follows the saving of a plan.
const SAVE: u64 = 0x5a_7e01_90cd;
/// A part of the hash of the exchange in which ranks report that they know of conflicts.
const CONFLICTS: u64 = 0xc0_4f11_c75f;

/// Returns the prepared superstep if no rank knows of a conflict in it, or if conflicts are not
/// looked for.
///
/// # Errors
/// `RMA_CONFLICT` on each rank that knows of a conflict, and `RMA_SYNC` on the others.
fn without_conflicts(prepared: Prepared, call: &Call) -> Result<Prepared> {
    let world = &prepared.world;
    if !world.checks.is_on() {
        return Ok(prepared);
    }
    let found = prepared.conflicts();
    let failed = (!found.is_empty()).then(|| {
        let found: String = found.iter().map(|conflict| format!("\n  {conflict}")).collect();
        let message = format!(
            "operations of this superstep conflict, so that it is not prepared: put a fence between each two, or let one of them touch the elements; one that puts twice has to name each element once{found}"
        );
        call.error(world, ErrorClass::RmaConflict, message)
    });
    fence(world, &[], &Call { hash: call.hash ^ CONFLICTS, ..*call }, failed)?;
    Ok(prepared)
}

/// Makes a prepared superstep of schedules that were made elsewhere, one for each epoch. Every rank
/// supplies all schedules.
///
/// # Errors
/// `PLAN` if the schedules do not fit this world, or if ranks supply different schedules.
#[track_caller]
pub fn adopt(
    superstep: &'static Superstep,
    world: &World,
    schedules: impl IntoIterator<Item = Arc<Verified<Schedule>>>,
) -> Result<Prepared> {
    let (world, call) = (world.core(), call(superstep));
    world.calls.begin();
    let epochs = schedules.into_iter().map(|schedule| {
        let windows = schedule.windows.iter().map(|(window, _)| window).collect();
        (windows, prepared::agree(world, Ok(schedule), &call))
    });
    world.handler.report(Prepared::of(superstep, world, epochs))
}

/// Implements `name::load`.
///
/// # Errors
/// The errors of the calls. `IO`, `FILE` and `PLAN` for a file that cannot be read, is not a plan,
/// or is the plan of another superstep.
#[track_caller]
pub fn load(
    superstep: &'static Superstep,
    world: &World,
    source: &dyn PlanSource,
    windows: &[ElementType],
    record: impl FnOnce(&Recording) -> Result<()>,
) -> Result<Prepared> {
    let world = world.core();
    let call = call(superstep);
    world.calls.enter();
    let own = own(superstep, world, windows, record);
    world.calls.leave();
    world.handler.report(read(superstep, world, source.plan_source(), (windows, own), &call))
}

/// Reads the plans on all ranks. Each rank compares them with its own patterns.
fn read(
    superstep: &'static Superstep,
    world: &Rc<WorldCore>,
    source: Source<'_>,
    (windows, own): (&[ElementType], Result<Vec<RecordedEpoch>>),
    call: &Call,
) -> Result<Prepared> {
    // All ranks must take part in one exchange for each epoch, whatever a rank finds. So the ranks
    // first agree on the number of epochs, and on whether all have found a file.
    let epochs = own.as_ref().map_or(u64::MAX, |own| own.len() as u64);
    let Found { name, plans } = source::find(superstep, world, source, epochs as usize);
    let all = world.meet(call, bytemuck::bytes_of(&[epochs, u64::from(plans.is_some())]))?;
    let own = own.map_err(|error| error.in_superstep(superstep.name))?;
    let theirs = |bytes: &Vec<u8>| Reader(bytes).take::<[u64; 2]>().unwrap_or_default();
    if let Some(rank) = all.iter().position(|bytes| theirs(bytes)[0] != epochs) {
        let message = format!("rank {rank} cannot load this superstep, or has another number of epochs");
        return Err(call.error(world, ErrorClass::Plan, message));
    }
    let missing = all.iter().position(|bytes| theirs(bytes)[1] == 0);
    let plans = match (missing, plans) {
        (None, Some(plans)) => plans,
        (missing, _) => {
            let rank = missing.unwrap_or(world.rank);
            let mut prepared = agree_on(superstep, world, windows, Ok(own), &world.ordered(call))?;
            prepared.origin = format!("there is no {name} on rank {rank}: prepared\n");
            return Ok(prepared);
        }
    };
    // The exchanges end with the first error, which is returned on all ranks.
    let plans: Vec<Result<Plan>> = match plans {
        Ok(plans) => plans.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    };
    let epochs = own.into_iter().zip(plans);
    let epochs = epochs.map(|(own, plan)| {
        let ready = prepared::load(world, &name, plan, (&own.pattern, superstep.sync), call);
        (own.windows, ready)
    });
    let mut prepared = Prepared::of(superstep, world, epochs)?;
    prepared.origin = format!("loaded from {name}\n");
    without_conflicts(prepared, call)
}
