//! Prepared supersteps: all ranks vote once on a verified schedule, and then replay it.

use crate::check;
use crate::collect::ticket::Slot;
use crate::posts::state::ports;
use crate::state::call::Call;
use crate::state::life::Opened;
use crate::state::window_core::WindowCore;
use crate::state::window_core::{Held, with};
use crate::state::world::WorldCore;
use crate::supersteps::execute::{Executable, takes_slice};
use crate::supersteps::state::{Asked, Planned};
use fencepost_planner::conflicts::{Conflict, Incoming, incoming};
use fencepost_planner::ids::{ClassId, Delta, Id, OperationId, Rank, WindowId};
use fencepost_planner::intern::Interner;
use fencepost_planner::ir::pattern::{Kind, Mode, Order, Pattern, Patterns, Sync};
use fencepost_planner::ir::schedule::{Placement, Schedule};
use fencepost_planner::kept::Kept;
use fencepost_planner::plan::{self, Plan};
use fencepost_planner::share::Share;
use fencepost_planner::table::Table;
use fencepost_planner::verify::{Verified, verify, verify_kept};
use fencepost_planner::{Error, ErrorClass, Options, Result, compile};
use fencepost_transport::{Channels, Endpoint, Port, Topology};
use std::cell::{Cell, OnceCell, RefCell};
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

/// A superstep whose schedule all ranks have agreed on.
pub(crate) struct Ready {
    world: Rc<WorldCore>,
    /// How the superstep synchronises.
    pub(super) sync: Sync,
    executable: RefCell<Option<Executable>>,
    /// The windows of the fence that ends the epoch, or `None` if these are all windows of the
    /// superstep.
    pub(super) fenced: Option<Vec<WindowId>>,
    /// The operations of other ranks on this rank's parts, if conflicts with stores of this rank
    /// are looked for.
    incoming: OnceCell<Vec<Incoming>>,
    /// The conflicts of this run with earlier stores of this rank.
    found: RefCell<Vec<Conflict>>,
    /// The elements of its windows that this rank keeps while the superstep runs. Computed when the
    /// superstep is first begun.
    kept: OnceCell<Verified<Kept>>,
    /// The run that was begun and is not finished: its windows, and the call.
    begun: RefCell<Option<(Held, Call)>>,
    /// The number of calls that the body has made in this run.
    calls: Cell<usize>,
    /// Whether the patterns of the plan were compiled again, because the plan was for another
    /// placement of the ranks.
    pub(super) is_replanned: Cell<bool>,
    /// The slots into which the elements of gets with their own buffers are copied after this run.
    landings: RefCell<Vec<(OperationId, Slot, usize)>>,
}

/// Returns the distinct patterns of the schedule's programs.
pub(crate) fn patterns_of(schedule: &Schedule) -> Patterns {
    let mut classes = Interner::default();
    let pattern_of: Table<ClassId, ClassId> =
        schedule.classes.values().map(|program| classes.intern(&program.pattern)).collect();
    Patterns {
        name: schedule.name.clone(),
        windows: schedule.windows.clone(),
        shape: schedule.shape.clone(),
        classes: classes.into_table().into_values().cloned().collect(),
        class_of: schedule.class_of.iter().map(|&class| pattern_of[class]).collect(),
        order: schedule.order,
        sync: schedule.sync,
    }
}

/// Verifies the schedule of the file `name` against the calls in the schedule. Returns the patterns
/// of these calls, and the verified schedule.
///
/// # Errors
/// `PLAN` if the schedule does not do what the calls ask for; `NO_MEM` if checking this takes more
/// work than the verifier's limit.
pub(crate) fn verified(schedule: Schedule, name: &str) -> Result<(Patterns, Verified<Schedule>)> {
    let patterns = patterns_of(&schedule);
    let verified = verify(&patterns, schedule).map_err(|error| {
        let class = if error.is_bound() { ErrorClass::NoMem } else { ErrorClass::Plan };
        Error::new(class, format!("{name}: the schedule failed verification: {error}")).because(error)
    })?;
    Ok((patterns, verified))
}

/// Verifies a plan that was read from the file of this `name`, and compares it with this rank's own
/// pattern.
///
/// Every rank calls this. If ranks that share memory in the plan exchange messages here, the
/// patterns of the plan are compiled again for this world.
///
/// # Errors
/// The error of a file that cannot be read or trusted. `PLAN` if the plan is for another number of
/// ranks, or for another pattern. In the second case the error names the first operation that
/// differs, with its line. If one rank finds an error, all ranks return an error.
pub(crate) fn load(
    world: &Rc<WorldCore>,
    name: &str,
    plan: Result<Plan>,
    (own, sync): (&Pattern, Sync),
    call: &Call,
) -> Result<Ready> {
    let is_replanned = Cell::new(false);
    let read = plan.and_then(|Plan { schedule, .. }| {
        if schedule.class_of.len() != world.size {
            return Err(Error::new(
                ErrorClass::Plan,
                format!("{name} is for {} ranks and this world has {}: compile it for as many", schedule.class_of.len(), world.size),
            ));
        }
        if schedule.sync != sync {
            let (planned, own) = (synchronises(schedule.sync), synchronises(sync));
            let message = format!("{name} is a plan that synchronises by {planned}, and this superstep by {own}: compile it again, or declare the superstep with the other `sync`");
            return Err(Error::new(ErrorClass::Plan, message));
        }
        let planned = &schedule.classes[schedule.class_of[world.rank]].pattern;
        if let Some(difference) = plan::difference(own, planned) {
            return Err(Error::new(
                ErrorClass::Plan,
                format!("{name} is not the plan of this superstep with these arguments: {difference}; compile it again"),
            ));
        }
        let (patterns, verified) = verified(schedule, name)?;
        if fits(verified.placement, world) {
            return Ok(verified);
        }
        is_replanned.set(true);
        compile(&patterns, world.reach.placement, &world.machine, &options(world))
    });
    let ready = agree(world, read.map(Arc::new), call)?;
    ready.is_replanned.set(is_replanned.get());
    Ok(ready)
}

/// Returns whether all ranks that share memory in a plan also share memory here. The result is the
/// same on all ranks.
fn fits(planned: Placement, world: &WorldCore) -> bool {
    (1..world.size as u32)
        .all(|rank| !planned.share(rank - 1, rank) || world.reach.placement.share(rank - 1, rank))
}

/// Returns the name of this way to synchronise.
fn synchronises(sync: Sync) -> &'static str {
    match sync {
        Sync::Fence => "a fence",
        Sync::Pscw => "posts and starts",
    }
}

/// Agrees on a schedule. Each rank supplies a schedule or an error. Either all ranks continue with
/// the same schedule, or no rank continues.
pub(crate) fn agree(
    world: &Rc<WorldCore>,
    mine: Result<Arc<Verified<Schedule>>>,
    call: &Call,
) -> Result<Ready> {
    agree_on_share(world, mine.map(|schedule| schedule.share(Rank::new(world.rank))), call)
}

/// Agrees on a schedule as [`agree`] does, but each rank supplies only its share.
pub(crate) fn agree_on_share(
    world: &Rc<WorldCore>,
    mine: Result<Verified<Share>>,
    call: &Call,
) -> Result<Ready> {
    let mine = mine.and_then(|schedule| {
        let port = match schedule.sync {
            Sync::Fence => Port::FENCE,
            Sync::Pscw => world.next_port(call)?,
        };
        suits(schedule.placement, world)?;
        if schedule.order == Order::Relaxed && world.choices.order.get() == Order::Canonical {
            let message = "the plan does not keep the order of operations, and this world does: call `World::set_order(Order::Relaxed)` first, or compile it in canonical order";
            return Err(Error::new(ErrorClass::Plan, message));
        }
        Executable::bind(schedule, world, port)
    });
    // The part that must be the same on all ranks.
    let agreed =
        |executable: &Executable| [&executable.digest().0[..], &executable.port().0.to_le_bytes()].concat();
    let word = match &mine {
        Ok(executable) => [&[1], &agreed(executable)[..]].concat(),
        Err(error) => [&[0], error.to_string().as_bytes()].concat(),
    };
    let all = world.meet(call, &word)?;
    let executable = mine.map_err(|error| error.on_rank(world.rank))?;
    for (rank, other) in all.iter().enumerate() {
        match other.split_first() {
            Some((1, theirs)) if *theirs == agreed(&executable)[..] => {}
            Some((1, _)) => {
                return Err(call.error(
                    world,
                    ErrorClass::Plan,
                    format!("rank {rank} has another plan than this rank: give all ranks one file, or prepare with one set of arguments"),
                ));
            }
            Some((_, text)) => {
                let text = String::from_utf8_lossy(text);
                return Err(call.error(
                    world,
                    ErrorClass::Plan,
                    format!("rank {rank} refused the plan: {text}"),
                ));
            }
            None => {
                return Err(call.error(world, ErrorClass::Intern, format!("rank {rank} sent an empty vote")));
            }
        }
    }
    if executable.is_apart() {
        world.calls.made.set(world.calls.made.get() + 1); // its port has taken a number
    }
    Ok(Ready::of(world, executable))
}

/// Returns the options with which the world plans.
pub(crate) fn options(world: &WorldCore) -> Options {
    if world.choices.plans.get() {
        Options { mode: world.choices.mode.get(), ..Options::default() }
    } else {
        Options { mode: Mode::Aggressive, coalesce: false, ..Options::default() }
    }
}

/// Checks that each rank that shares memory with this rank in the placement also shares memory with
/// it in this world.
fn suits(placement: Placement, world: &WorldCore) -> Result<()> {
    let endpoint = world.endpoint.borrow();
    let missing = (0..world.size).find(|&peer| {
        peer != world.rank && placement.share(world.rank as u32, peer as u32) && !endpoint.reaches(peer)
    });
    match missing {
        None => Ok(()),
        Some(peer) => Err(Error::new(
            ErrorClass::Plan,
            format!(
                "the plan takes ranks {} and {peer} to share memory, and here they exchange messages: compile it for this placement, by `Compiled::with(world.placement(), ..)`",
                world.rank
            ),
        )),
    }
}

impl Ready {
    fn of(world: &Rc<WorldCore>, executable: Executable) -> Self {
        Self {
            world: world.clone(),
            sync: executable.share().sync,
            executable: RefCell::new(Some(executable)),
            fenced: None,
            incoming: OnceCell::new(),
            found: RefCell::default(),
            kept: OnceCell::new(),
            begun: RefCell::default(),
            calls: Cell::new(0),
            is_replanned: Cell::new(false),
            landings: RefCell::default(),
        }
    }

    /// Binds a schedule that every rank makes by itself from the same patterns. Ranks need not vote
    /// on such a schedule, since the word of each run contains its digest.
    pub(crate) fn alone(world: &Rc<WorldCore>, schedule: Arc<Verified<Schedule>>) -> Result<Self> {
        let share = schedule.share(Rank::new(world.rank));
        Ok(Self::of(world, Executable::bind(share, world, Port::FENCE)?))
    }

    /// Frees the plan's buffers, unless the world has ended. Called after every rank has entered a
    /// later call, so that no rank reads the buffers any more.
    pub(crate) fn retire(&self) {
        if self.world.alive().is_ok() {
            self.executable.borrow_mut().take();
        }
    }

    /// Applies `f` to the rank's share of the schedule.
    pub(crate) fn share<R>(&self, f: impl FnOnce(&Share) -> R) -> Option<R> {
        self.executable.borrow().as_ref().map(|executable| f(executable.share()))
    }

    /// Replaces the programs by the programs of another, unverified schedule for the same calls.
    #[cfg(test)]
    pub(crate) fn damage(&self, schedule: &Schedule) -> Result<()> {
        self.executable
            .borrow_mut()
            .as_mut()
            .map_or(Ok(()), |executable| executable.damage(schedule, &self.world))
    }

    /// Checks that a run may begin. A plan can only be in one run at a time. If the run is a call
    /// of all ranks, the world must admit such a call.
    ///
    /// # Errors
    /// `PROC_FAILED` if the world has ended. `RMA_SYNC` if an earlier run is not finished, with the
    /// line that began that run.
    pub(crate) fn admits(&self, call: &Call) -> Result<()> {
        let world = &self.world;
        if self.sync == Sync::Fence {
            return world.admits(call);
        }
        world.alive()?;
        match &*self.begun.borrow() {
            None => Ok(()),
            Some((_, begun)) => {
                let (file, line) = (begun.site.file(), begun.site.line());
                let message = format!(
                    "this plan is in the run that was begun at {file}:{line}: finish that first, or prepare the superstep once more"
                );
                Err(call.error(world, ErrorClass::RmaSync, message))
            }
        }
    }

    /// Replays a superstep that consists only of operations between sections. Returns the same as
    /// [`ran`](Self::ran).
    pub(crate) fn replay(&self, windows: &[&WindowCore], call: &Call) -> Result<Option<Error>> {
        self.admits(call)?;
        let executable = &mut *self.executable.borrow_mut();
        let executable = executable.as_mut().ok_or_else(|| running(&self.world, call))?;
        let checked = executable.check(windows, call, &self.world);
        self.suited(executable, checked)?;
        self.look(executable, windows);
        executable.run(&self.world, windows, call)?;
        self.opens(windows, executable);
        Ok(self.ran(windows, call))
    }

    /// Before a run of the plan begins, looks for stores of this rank to elements that other ranks
    /// access in the run. Plans that synchronise by posts and starts are not checked, since stores
    /// before a post are defined.
    fn look(&self, executable: &Executable, windows: &[&WindowCore]) {
        let world = &self.world;
        if world.checks.is_on() && self.sync == Sync::Fence {
            let incoming = || incoming(&patterns_of(executable.share()), Rank::new(world.rank));
            *self.found.borrow_mut() =
                check::before_run(world, windows, || self.incoming.get_or_init(incoming));
        }
    }

    /// Ends a run of the plan with these windows. If operations of the run conflict with earlier
    /// stores of this rank, returns the error. Other ranks are notified of these conflicts later.
    pub(crate) fn ran(&self, windows: &[&WindowCore], call: &Call) -> Option<Error> {
        let mut ended = Ok(());
        if self.world.checks.is_on() {
            let mut all = self.found.take();
            let is_fenced =
                |at: usize| self.fenced.as_ref().is_none_or(|fenced| fenced.contains(&WindowId::new(at)));
            for (_, window) in windows.iter().enumerate().filter(|(at, _)| is_fenced(*at)) {
                check::begins(window, call.site);
                let is_here = |conflict: &mut Conflict| conflict.window == window.key.window as usize;
                let here: Vec<_> = all.extract_if(.., is_here).collect();
                ended = ended.and(check::found(window, &here, check::Under::Run, call));
            }
        }
        ended.err()
    }

    /// Opens the windows as a fence does. A run of posts and starts is not a fence, so the
    /// assertions of the last fence still hold.
    fn opens(&self, windows: &[&WindowCore], executable: &Executable) {
        if !executable.is_apart() {
            windows.iter().for_each(|window| window.open());
        }
    }

    /// Runs the first half of a run: all steps before the first that has to wait for another rank.
    ///
    /// The elements that the calls of a body supply were already copied. Before the second half,
    /// only elements that are [kept](Self::kept) may be touched. If this run is a call of all
    /// ranks, no other call of all ranks may be made before the second half.
    pub(crate) fn start(self: &Rc<Self>, windows: &[&WindowCore], held: &Held, call: &Call) -> Result<()> {
        self.admits(call)?;
        let executable = &mut *self.executable.borrow_mut();
        let executable = executable.as_mut().ok_or_else(|| running(&self.world, call))?;
        let checked = executable.check(windows, call, &self.world);
        let checked = checked.and_then(|()| self.keep(executable.share()));
        self.suited(executable, checked)?;
        self.look(executable, windows);
        executable.begin(&self.world, windows, call)?;
        self.begins(executable, held, call);
        Ok(())
    }

    /// Notes that a run has begun.
    fn begins(self: &Rc<Self>, executable: &Executable, held: &Held, call: &Call) {
        *self.begun.borrow_mut() = Some((held.clone(), *call));
        self.world.life.open(self.clone());
        if !executable.is_apart() {
            self.world.supersteps.begun.set(Some(call.site));
        }
    }

    /// Notes that the run that was begun has ended.
    fn ends(self: &Rc<Self>) {
        self.lands();
        *self.begun.borrow_mut() = None;
        if self.sync == Sync::Fence {
            self.world.supersteps.begun.set(None);
        }
    }

    /// Removes this run from the list of work that makes progress while the rank waits for
    /// something else.
    fn lands(self: &Rc<Self>) {
        let this: Rc<dyn Opened> = self.clone();
        self.world.life.close(&this);
    }

    /// Runs the second half. Afterwards tickets have their elements. If the run conflicts with
    /// earlier stores of this rank, this returns no error, since the windows must be returned. All
    /// ranks are notified of the conflict in their next barrier.
    pub(crate) fn finish(self: &Rc<Self>, windows: &[&WindowCore], call: &Call) -> Result<()> {
        self.ends();
        let executable = &mut *self.executable.borrow_mut();
        let executable = executable.as_mut().ok_or_else(|| running(&self.world, call))?;
        executable.finish(&self.world, windows, call)?;
        self.land(executable);
        self.opens(windows, executable);
        self.ran(windows, call);
        Ok(())
    }

    /// Begins a run with nothing left to do, because the body has already run this plan. As for any
    /// run, this determines the elements that this rank keeps, and no other call is admitted before
    /// [`over`](Self::over).
    pub(crate) fn start_over(self: &Rc<Self>, held: &Held, call: &Call) -> Result<()> {
        self.admits(call)?;
        let executable = self.executable.borrow();
        let executable = executable.as_ref().ok_or_else(|| running(&self.world, call))?;
        self.keep(executable.share())?;
        self.begins(executable, held, call);
        Ok(())
    }

    /// Ends a run that [`start_over`](Self::start_over) has begun. Nothing is left to do in its
    /// second half.
    pub(crate) fn over(self: &Rc<Self>) {
        self.ends();
    }

    /// Gives up the second half. Ends the world, unless it has already ended. Returns whether the
    /// windows may be dropped.
    pub(crate) fn give_up(self: &Rc<Self>, call: &Call) -> bool {
        let (Ok(mut executable), Ok(mut endpoint)) =
            (self.executable.try_borrow_mut(), self.world.endpoint.try_borrow_mut())
        else {
            return false; // inside a call of the transport
        };
        self.lands();
        let is_lent = executable.as_mut().is_some_and(|executable| {
            executable.give_up(&mut endpoint);
            executable.leave_lent(&mut endpoint)
        });
        drop(endpoint);
        if self.world.alive().is_ok() {
            let does = if std::thread::panicking() { "panicked in" } else { "dropped" };
            let at = format!("{}:{}", call.site.file(), call.site.line());
            let error = call.error(
                &self.world,
                ErrorClass::Other,
                format!("{does} the superstep that it began at {at}"),
            );
            if let Some(executable) = executable.as_mut() {
                executable.abandon(&self.world, &error);
            }
        }
        !is_lent
    }

    /// Returns the elements of its windows that this rank keeps. `None` before the first run that
    /// this rank begins.
    pub(crate) fn kept(&self) -> Option<&Verified<Kept>> {
        self.kept.get()
    }

    /// Computes once which elements this rank keeps.
    fn keep(&self, share: &Verified<Share>) -> Result<()> {
        if self.kept.get().is_none() {
            let kept = Kept::of(share, share.rank());
            let _ = self.kept.set(verify_kept(share, kept)?);
        }
        Ok(())
    }

    /// Ends the world if the windows do not fit the plan, since other ranks may be in the run
    /// already.
    fn suited(&self, executable: &mut Executable, checked: Result<()>) -> Result<()> {
        let Err(error) = checked else { return Ok(()) };
        if error.class() == ErrorClass::Assert {
            return Err(error); // all ranks have asserted NOSUCCEED
        }
        executable.abandon(&self.world, &error);
        Err(error.ending_world())
    }

    /// Begins a body whose calls on `windows` will be matched.
    pub(crate) fn begin(&self, windows: &[&WindowCore], call: &Call) -> Result<()> {
        self.admits(call)?;
        let executable = self.executable.borrow();
        executable.as_ref().ok_or_else(|| running(&self.world, call))?.check(windows, call, &self.world)?;
        self.calls.set(0);
        self.landings.borrow_mut().clear();
        Ok(())
    }

    /// Gives up a body that has not reached this plan's fence, where other ranks wait. Ends the
    /// world, unless it has already ended.
    pub(crate) fn abandon(&self, error: &Error) {
        if let Some(executable) = self.executable.borrow_mut().as_mut()
            && self.world.alive().is_ok()
        {
            executable.abandon(&self.world, error);
        }
    }

    /// Ends the epoch of a body: checks that all calls of the plan were made, and runs the plan.
    ///
    /// # Errors
    /// As [`made`](Self::made); otherwise as a run.
    pub(crate) fn end(&self, windows: &[&WindowCore], call: &Call) -> Result<()> {
        self.made(windows, call)?;
        let executable = &mut *self.executable.borrow_mut();
        let executable = executable.as_mut().ok_or_else(|| running(&self.world, call))?;
        self.look(executable, windows);
        executable.run(&self.world, windows, call)?;
        self.land(executable);
        Ok(())
    }

    /// Checks that all calls of the plan were made, and that the plan may be run.
    ///
    /// # Errors
    /// `RMA_SYNC` if a superstep of the world was begun and is not finished; `PLAN` if a call is
    /// missing; an error for windows that do not fit.
    pub(crate) fn made(&self, windows: &[&WindowCore], call: &Call) -> Result<()> {
        self.admits(call)?;
        let executable = self.executable.borrow();
        let executable = executable.as_ref().ok_or_else(|| running(&self.world, call))?;
        executable.check(windows, call, &self.world)?;
        let asked = executable.pattern().operations.len();
        if self.calls.get() != asked {
            let next = &executable.pattern().operations[OperationId::new(self.calls.get())];
            return Err(call.error(
                &self.world,
                ErrorClass::Plan,
                format!(
                    "the body made {} calls, and the plan has {asked}: the next one planned is the {} at {}",
                    self.calls.get(),
                    name(next.kind),
                    next.site
                ),
            ));
        }
        Ok(())
    }

    /// Fills the tickets with the elements that the run fetched.
    fn land(&self, executable: &mut Executable) {
        for (operation, slot, bytes) in self.landings.borrow_mut().drain(..) {
            slot.fill(executable.local_mut(operation, bytes));
        }
    }
}

impl Planned for Ready {
    /// Matches one call of the body with the plan.
    ///
    /// # Errors
    /// `PLAN` at the first call that differs from the planned call.
    fn call(
        &self,
        window: (&WindowCore, WindowId),
        asked: Asked<'_>,
        site: &'static Location<'static>,
    ) -> Result<()> {
        let (window, id) = window;
        let ordinal = self.calls.get();
        let executable = &mut *self.executable.borrow_mut();
        let Some(executable) = executable.as_mut() else {
            return Err(window.error(ErrorClass::RmaSync, "no plan is bound".into(), site));
        };
        let me = Rank::new(self.world.rank);
        let target = asked.target.map(|target| Delta::between(me, Rank::new(target)));
        let planned = executable.pattern().operations.get(OperationId::new(ordinal));
        let same = planned.is_some_and(|planned| {
            planned.kind == asked.kind
                && planned.window == id
                && planned.target == target
                && planned.remote == asked.remote
                && planned.local == asked.local
        });
        if !same {
            let planned = planned.map_or("the plan has no more".to_string(), |planned| {
                format!("the plan has the {} of {} at {}", name(planned.kind), planned.remote, planned.site)
            });
            return Err(window.error(
                ErrorClass::Plan,
                format!(
                    "call {ordinal} of the body is a {} of {}, but {planned}: compile the plan again",
                    name(asked.kind),
                    asked.remote
                ),
                site,
            ));
        }
        let number = OperationId::new(ordinal);
        if takes_slice(asked.kind, &asked.local) {
            executable.local_mut(number, asked.slice.len()).copy_from_slice(asked.slice);
        } else if let Some(slot) = asked.landing {
            let bytes = asked.remote.size() * window.element.size as usize;
            if !slot.reserve(bytes) {
                let message = format!("there is no memory for the {bytes} bytes of this ticket");
                return Err(window.error(ErrorClass::NoMem, message, site));
            }
            self.landings.borrow_mut().push((number, slot, bytes));
        }
        self.calls.set(ordinal + 1);
        Ok(())
    }
}

impl Opened for Ready {
    fn advance(&self, _world: &WorldCore, endpoint: &mut Endpoint) {
        let (Ok(mut executable), begun) = (self.executable.try_borrow_mut(), self.begun.borrow()) else {
            return;
        };
        if let (Some(executable), Some((windows, call))) = (executable.as_mut(), &*begun) {
            // This cannot fail: the list has windows, and `advance` returns no error.
            let _ = with(windows, |windows| {
                executable.advance(&self.world, endpoint, windows, call);
                Ok(())
            });
        }
    }

    fn may_advance(&self) -> bool {
        let executable = self.executable.try_borrow();
        executable.is_ok_and(|executable| executable.as_ref().is_some_and(Executable::is_open))
    }

    fn unfinished(&self) -> Option<String> {
        let begun = self.begun.borrow();
        let (_, Call { site, .. }) = begun.as_ref()?;
        Some(format!("it has not finished the superstep that it began at {}:{}", site.file(), site.line()))
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        if let Some(executable) = self.executable.get_mut().take() {
            let Ok(mut endpoint) = self.world.endpoint.try_borrow_mut() else {
                return std::mem::forget(executable); // dropped inside a call of the transport: kept for good
            };
            let port = executable.port();
            for (memory, until) in executable.into_kept() {
                endpoint.keep(vec![memory], until);
            }
            if port != Port::FENCE {
                ports::close(ports::number_of(port), None, &mut endpoint);
            }
        }
    }
}

fn running(world: &WorldCore, call: &Call) -> Error {
    call.error(world, ErrorClass::RmaSync, "this prepared superstep is running already")
}

fn name(kind: Kind) -> String {
    match kind {
        Kind::Put => "put".into(),
        Kind::Get => "get".into(),
        Kind::Accumulate(op) => format!("accumulate({op})"),
    }
}
