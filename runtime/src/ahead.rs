//! Supersteps ahead of time: compiled for any number of ranks without a world, or prepared in one.

use crate::fence::Call;
use crate::handler;
use crate::prepared::{self, Ready};
use crate::record::{RecordedEpoch, Recording};
use crate::superstep::{Matched, Superstep};
use crate::world::{Windows, World, WorldCore};
use fencepost_planner::argument::Argument;
use fencepost_planner::collect::patterns;
use fencepost_planner::conflicts::{Conflict, conflicts};
use fencepost_planner::element::ElementType;
use fencepost_planner::explain::{cost, explain};
use fencepost_planner::ids::{ClassId, WindowId};
use fencepost_planner::ir::pattern::{Local, Mode, Order, Pattern, Patterns};
use fencepost_planner::ir::schedule::{Placement, Program, Schedule};
use fencepost_planner::machine::Machine;
use fencepost_planner::plan::{self, Plan};
use fencepost_planner::table::Table;
use fencepost_planner::units::Nanos;
use fencepost_planner::{Class, Error, Options, Result, Verified};
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// An argument as an [`Argument`], or as one that says nothing.
#[derive(Debug)]
pub struct Told<'a, T>(pub &'a T);

/// Chosen first: the type says which ranks are alike.
pub trait TellArgument<'a> {
    /// The argument itself.
    fn told(&self) -> &'a dyn Argument;
}

impl<'a, T: Argument> TellArgument<'a> for Told<'a, T> {
    fn told(&self) -> &'a dyn Argument {
        self.0
    }
}

/// Chosen for all other types: each rank is evaluated for itself.
pub trait TellNothing<'a> {
    /// An argument that says nothing.
    fn told(&self) -> &'a dyn Argument;
}

impl<'a, T> TellNothing<'a> for &Told<'a, T> {
    fn told(&self) -> &'a dyn Argument {
        struct Nothing;
        impl Argument for Nothing {}
        &Nothing
    }
}

/// All arguments of one rank.
struct Bundle<'t, A> {
    arguments: A,
    tell: &'t dyn for<'a> Fn(&'a A) -> Vec<&'a dyn Argument>,
}

impl<A> Argument for Bundle<'_, A> {
    fn class(&self) -> Option<Vec<u64>> {
        let mut key = Vec::new();
        for part in (self.tell)(&self.arguments) {
            let mut class = part.class()?;
            key.push(class.len() as u64);
            key.append(&mut class);
        }
        Some(key)
    }

    fn shape(&self) -> Option<Vec<u32>> {
        (self.tell)(&self.arguments).into_iter().find_map(|part| part.shape())
    }

    fn observed(&self) -> bool {
        // Every part is asked, so that each forgets.
        (self.tell)(&self.arguments).into_iter().fold(false, |any, part| part.observed() | any)
    }
}

/// A superstep compiled ahead: a verified schedule for each of its epochs.
#[derive(Clone, Debug)]
pub struct Compiled {
    name: &'static str,
    patterns: Vec<Patterns>,
    schedules: Vec<Verified<Schedule>>,
}

impl Compiled {
    fn new(
        name: &'static str,
        patterns: Vec<Patterns>,
        placement: Placement,
        machine: &Machine,
        options: &Options,
    ) -> Result<Self> {
        let schedules = patterns.iter().map(|patterns| schedule(patterns, placement, machine, options));
        let schedules = schedules.collect::<Result<_>>().map_err(|error| error.in_superstep(name))?;
        Ok(Self { name, patterns, schedules })
    }

    /// Compile the same calls for another placement of the ranks, machine, or choice of modes.
    ///
    /// # Errors
    /// As the superstep's `compile`.
    pub fn with(&self, placement: Placement, machine: &Machine, options: &Options) -> Result<Self> {
        Self::new(self.name, self.patterns.clone(), placement, machine, options)
    }

    /// Compile the same calls with every operation in `mode`, where that can be had.
    ///
    /// # Errors
    /// As the superstep's `compile`.
    pub fn in_mode(&self, mode: Mode) -> Result<Self> {
        let options = Options { mode, ..Options::default() };
        let placement = self.schedules.first().map_or(Placement::Together, |schedule| schedule.placement);
        self.with(placement, &Machine::default(), &options)
    }

    /// Compile the same calls for epochs that keep order or do not; see [`World::set_order`].
    ///
    /// # Errors
    /// As the superstep's `compile`.
    pub fn in_order(&self, order: Order) -> Result<Self> {
        let placement = self.schedules.first().map_or(Placement::Together, |schedule| schedule.placement);
        let patterns = self.patterns.iter().map(|patterns| Patterns { order, ..patterns.clone() });
        let (machine, options) = (Machine::default(), Options::default());
        Self::new(self.name, patterns.collect(), placement, &machine, &options)
    }

    /// What the schedules are predicted to take on the built-in machine, one after another.
    pub fn predicted(&self) -> Nanos {
        self.schedules.iter().map(|schedule| cost(schedule, &Machine::default()).predicted).sum()
    }

    /// What no schedule of these messages can do without, on the built-in machine.
    pub fn bound(&self) -> Nanos {
        self.schedules.iter().map(|schedule| cost(schedule, &Machine::default()).bound).sum()
    }

    /// For each operation where it goes and why: mode, message, round, cost terms and the line of its call; and which
    /// operations [conflict](Self::conflicts).
    pub fn explain(&self) -> String {
        let epochs = self.schedules.iter().zip(&self.patterns);
        epochs.map(|(schedule, patterns)| explained(schedule, patterns)).collect()
    }

    /// Operations that touch the same elements in ways whose order matters: which ranks', in which window, which elements
    /// and at which lines; the first 1000 of each epoch, those of ranks that differ only by where they stand once.
    ///
    /// They have a meaning all the same, and the schedule keeps it; a program seldom means it.
    ///
    /// # Cost
    /// As of compiling, at most.
    pub fn conflicts(&self) -> Vec<Conflict> {
        self.patterns.iter().flat_map(conflicts).collect()
    }

    /// What was asked for: the patterns of all ranks, one for each epoch.
    pub fn patterns(&self) -> &[Patterns] {
        &self.patterns
    }

    /// The schedules, one for each epoch.
    pub fn schedules(&self) -> &[Verified<Schedule>] {
        &self.schedules
    }

    /// Write the plan, of all epochs, to the file `path`.
    ///
    /// # Errors
    /// `IO` when the file system says no; `FILE` for a plan too long to be read again.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        plan::save_all(self.schedules.iter().map(Verified::get), path)
    }
}

/// A schedule, explained; and the conflicts in what it is for.
fn explained(schedule: &Schedule, patterns: &Patterns) -> String {
    let mut text = explain(schedule, &Machine::default());
    for conflict in conflicts(patterns) {
        text.push_str(&format!("conflict: {conflict}\n"));
    }
    text
}

/// From patterns to a schedule that was verified.
fn schedule(
    patterns: &Patterns,
    placement: Placement,
    machine: &Machine,
    options: &Options,
) -> Result<Verified<Schedule>> {
    fencepost_planner::compile(patterns, placement, machine, options)
}

/// What `name::compile` does.
///
/// # Errors
/// Those of `arguments` and `record`, with the rank.
pub fn compile<A>(
    superstep: &'static Superstep,
    windows: &[ElementType],
    ranks: u32,
    arguments: impl FnMut(usize) -> Result<A>,
    tell: impl for<'a> Fn(&'a A) -> Vec<&'a dyn Argument>,
    record: impl Fn(&Recording, &A, &dyn Fn() -> Result<A>) -> Result<()>,
) -> Result<Compiled> {
    let patterns = describe(superstep, windows, ranks, arguments, tell, record)?;
    Compiled::new(superstep.name, patterns, Placement::Together, &Machine::default(), &Options::default())
}

/// A prepared superstep: the plan of each of its epochs.
pub struct Prepared {
    superstep: &'static Superstep,
    world: Rc<WorldCore>,
    epochs: Rc<Matched>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("superstep", &self.superstep.name).finish_non_exhaustive()
    }
}

/// A superstep that is entered next is bound to its plan.
#[must_use = "it is bound while this lives"]
pub struct Bound(Rc<WorldCore>);

impl Drop for Bound {
    fn drop(&mut self) {
        // It was entered, or never was.
        self.0.supersteps.bound.take();
    }
}

impl Prepared {
    /// Of each epoch the windows that are fenced and the plan, until one is an error.
    fn of(
        superstep: &'static Superstep,
        world: &Rc<WorldCore>,
        epochs: impl Iterator<Item = (Vec<WindowId>, Result<Ready>)>,
    ) -> Result<Self> {
        let epochs = epochs.map(|(windows, ready)| Ok((Rc::new(ready?), windows)));
        let epochs = Rc::new(Matched::of(epochs.collect::<Result<_>>()?));
        Ok(Self { superstep, world: world.clone(), epochs })
    }

    /// Replay a superstep that is nothing but operations between sections.
    ///
    /// # Errors
    /// Those of windows that do not suit the plan, and those of a fence.
    #[track_caller]
    pub fn run<'w>(&mut self, windows: impl Windows<'w>) -> Result<()> {
        let call = call(self.superstep);
        windows.with(|windows| {
            let ran = self.epochs.epochs().try_for_each(|ready| ready.replay(windows, &call));
            handler::of(&self.world, windows).tell(ran)
        })
    }

    /// Let the superstep that is entered next be this one.
    ///
    /// # Errors
    /// `PLAN` for a window of another world.
    pub fn bind<'w>(&mut self, windows: impl Windows<'w>) -> Result<Bound> {
        let world = self.world.clone();
        let here = windows.with(|windows| windows.iter().all(|window| window.key.world == world.id));
        if !here {
            return world.handler.tell(Err(Error::new(
                Class::Win,
                "the superstep was prepared in another world than these windows are of",
            )));
        }
        self.epochs.rewind();
        *world.supersteps.bound.borrow_mut() = Some(self.epochs.clone());
        Ok(Bound(world))
    }

    /// As [`Compiled::conflicts`].
    pub fn conflicts(&self) -> Vec<Conflict> {
        self.schedules(|schedule| conflicts(&prepared::patterns_of(schedule))).concat()
    }

    /// As [`Compiled::explain`].
    pub fn explain(&self) -> String {
        self.schedules(|schedule| explained(schedule, &prepared::patterns_of(schedule))).concat()
    }

    /// The schedules, one for each epoch.
    pub fn schedules<R>(&self, mut f: impl FnMut(&Verified<Schedule>) -> R) -> Vec<R> {
        self.epochs.epochs().filter_map(|ready| ready.schedule(&mut f)).collect()
    }
}

#[track_caller]
fn call(superstep: &'static Superstep) -> Call {
    Call { hash: superstep.hash(), name: Some(superstep.name), site: Location::caller() }
}

/// This rank's own patterns, one for each epoch, with the windows that are fenced.
fn own(
    superstep: &'static Superstep,
    world: &WorldCore,
    windows: &[ElementType],
    replays: bool,
    record: impl FnOnce(&Recording) -> Result<()>,
) -> Result<Vec<RecordedEpoch>> {
    let recording = Recording::new(world.rank as u32, world.size as u32);
    record(&recording)?;
    let (mut epochs, _) = recording.finish(windows.len(), superstep.fences)?;
    prefer(superstep, &mut epochs);
    let buffer = epochs
        .iter()
        .flat_map(|epoch| epoch.pattern.operations.values())
        .find(|operation| operation.local == Local::Buffer);
    match buffer {
        Some(operation) if replays => {
            let message = format!(
                "the call at {} puts values, which a plan alone does not have: write its source as a reference (`&values`), so that `run` takes the arguments and runs the body",
                operation.site
            );
            Err(Error::new(Class::Plan, message))
        }
        _ => Ok(epochs),
    }
}

/// Operations without a mode of their own prefer that of the superstep, if it has one.
fn prefer(superstep: &Superstep, epochs: &mut [RecordedEpoch]) {
    let Some(mode) = superstep.mode else { return };
    let operations = epochs.iter_mut().flat_map(|epoch| epoch.pattern.operations.values_mut());
    operations.filter(|operation| operation.mode == Mode::Auto).for_each(|operation| operation.mode = mode);
}

/// What `name::prepare` does.
///
/// # Errors
/// Those of any rank's calls; `PLAN` where ranks do not agree.
#[track_caller]
pub fn prepare(
    superstep: &'static Superstep,
    world: &World,
    windows: &[ElementType],
    replays: bool,
    record: impl FnOnce(&Recording) -> Result<()>,
) -> Result<Prepared> {
    let world = world.core();
    let call = world.ordered(&call(superstep));
    let own = own(superstep, world, windows, replays, record);
    world.handler.tell(agree_on(superstep, world, windows, own, &call))
}

/// All ranks tell their own patterns, and plan them.
fn agree_on(
    superstep: &'static Superstep,
    world: &Rc<WorldCore>,
    windows: &[ElementType],
    own: Result<Vec<RecordedEpoch>>,
    call: &Call,
) -> Result<Prepared> {
    let message =
        own.as_ref().map_err(ToString::to_string).and_then(|own| to_bytes(superstep, world, windows, own));
    let all = world.meet(call, |_| match &message {
        Ok(bytes) => [&[1], &bytes[..]].concat(),
        Err(text) => [&[0], text.as_bytes()].concat(),
    })?;
    let own = own.map_err(|error| error.in_superstep(superstep.name))?;
    let table: Table<WindowId, ElementType> = windows.iter().copied().collect();
    let mut patterns: Vec<Interned> = own.iter().map(|_| Interned::default()).collect();
    for (rank, bytes) in all.iter().enumerate() {
        let theirs = match bytes.split_first() {
            Some((1, bytes)) => from_bytes(bytes, &table),
            Some((_, text)) => Err(format!("rank {rank} cannot prepare: {}", String::from_utf8_lossy(text))),
            None => Err(format!("rank {rank} described nothing")),
        };
        let theirs = theirs.and_then(|theirs| {
            let alike = theirs.len() == own.len();
            if alike {
                Ok(theirs)
            } else {
                Err(format!("rank {rank} has {} epochs, and this rank {}", theirs.len(), own.len()))
            }
        });
        let theirs = theirs.map_err(|text| call.error(world, Class::Plan, text))?;
        patterns.iter_mut().zip(theirs).for_each(|(all, theirs)| all.push(theirs));
    }
    let (machine, placement) = (Machine::default(), prepared::placement(world));
    let options = prepared::options(world);
    let epochs = patterns.into_iter().map(|interned| {
        let mut patterns = interned.into_patterns(superstep.name, table.clone());
        patterns.order = world.order.get();
        let schedule = schedule(&patterns, placement, &machine, &options);
        prepared::agree(world, schedule.map(Arc::new), call)
    });
    Prepared::of(superstep, world, own.into_iter().map(|epoch| epoch.windows).zip(epochs))
}

/// A prepared superstep of schedules that were made elsewhere, one for each epoch; every rank brings them.
///
/// # Errors
/// `PLAN` where they do not suit this world, or ranks bring different ones.
#[track_caller]
pub fn adopt(
    superstep: &'static Superstep,
    world: &World,
    schedules: impl IntoIterator<Item = Arc<Verified<Schedule>>>,
) -> Result<Prepared> {
    let (world, call) = (world.core(), call(superstep));
    let epochs = schedules.into_iter().map(|schedule| {
        let windows = schedule.windows.iter().map(|(window, _)| window).collect();
        (windows, prepared::agree(world, Ok(schedule), &call))
    });
    Prepared::of(superstep, world, epochs)
}

/// What `name::load` does.
///
/// # Errors
/// Those of the calls; `IO`, `FILE` and `PLAN` for a file that cannot be read, is none, or is another's.
#[track_caller]
pub fn load(
    superstep: &'static Superstep,
    world: &World,
    path: &Path,
    windows: &[ElementType],
    replays: bool,
    record: impl FnOnce(&Recording) -> Result<()>,
) -> Result<Prepared> {
    let world = world.core();
    let call = call(superstep);
    let own = own(superstep, world, windows, replays, record);
    world.handler.tell(read(superstep, world, path, own, &call))
}

/// All ranks read a file, and compare it with their own patterns.
fn read(
    superstep: &'static Superstep,
    world: &Rc<WorldCore>,
    path: &Path,
    own: Result<Vec<RecordedEpoch>>,
    call: &Call,
) -> Result<Prepared> {
    // All ranks take part as often as the superstep has epochs, whatever one of them finds: first they agree on that.
    let word = match &own {
        Ok(own) => (own.len() as u64).to_le_bytes(),
        Err(_) => u64::MAX.to_le_bytes(),
    };
    let all = world.meet(call, |_| word.to_vec())?;
    let own = own.map_err(|error| error.in_superstep(superstep.name))?;
    if let Some(rank) = all.iter().position(|theirs| theirs[..] != word) {
        let message = format!("rank {rank} cannot load this superstep, or has another number of epochs");
        return Err(call.error(world, Class::Plan, message));
    }
    // The first error is all ranks', and the end of it.
    let plans = match plans_of(path, own.len()) {
        Ok(plans) => plans.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    };
    let epochs = own.into_iter().zip(plans);
    let epochs =
        epochs.map(|(own, plan)| (own.windows, prepared::load(world, path, plan, &own.pattern, call)));
    Prepared::of(superstep, world, epochs)
}

/// The plans in a file, one for each of so many epochs.
fn plans_of(path: &Path, epochs: usize) -> Result<Vec<Plan>> {
    let plans = plan::load_all(path)?;
    if plans.len() == epochs {
        return Ok(plans);
    }
    let (path, planned) = (path.display(), plans.len());
    let message = format!(
        "{path} has the plans of {planned} epochs, and this superstep has {epochs}: compile it again"
    );
    Err(Error::new(Class::Plan, message))
}

/// A rank's own patterns as others read them: each as the plan of one class without a program.
fn to_bytes(
    superstep: &Superstep,
    world: &WorldCore,
    windows: &[ElementType],
    own: &[RecordedEpoch],
) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for RecordedEpoch { pattern, .. } in own {
        let program = Program {
            pattern: pattern.clone(),
            routes: pattern.operations.values().map(|_| None).collect(),
            least_len: windows.iter().map(|_| 0).collect(),
            buffers: Table::new(),
            instructions: Vec::new(),
        };
        let schedule = Schedule {
            name: superstep.name.to_owned(),
            windows: windows.iter().copied().collect(),
            shape: vec![world.size as u32],
            classes: [program].into_iter().collect(),
            class_of: vec![ClassId(0); world.size],
            order: Order::Canonical,
            placement: Placement::Apart,
        };
        let plan = plan::to_bytes(&schedule).map_err(|error| error.to_string())?;
        bytes.extend_from_slice(&(plan.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&plan);
    }
    Ok(bytes)
}

fn from_bytes(mut bytes: &[u8], windows: &Table<WindowId, ElementType>) -> Result<Vec<Pattern>, String> {
    let mut patterns = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk::<8>() {
        let len = usize::try_from(u64::from_le_bytes(*len)).ok().filter(|len| *len <= rest.len());
        let (plan, rest) = rest.split_at(len.ok_or("a description that ends too soon")?);
        let schedule = plan::from_bytes(plan).map_err(|error| error.to_string())?.schedule;
        if schedule.windows != *windows {
            return Err("another rank's windows have other elements".into());
        }
        patterns.extend(schedule.classes.into_values().map(|program| program.pattern));
        bytes = rest;
    }
    Ok(patterns)
}

/// Patterns of all ranks, equal ones kept once.
#[derive(Default)]
struct Interned {
    ids: HashMap<Pattern, ClassId>,
    classes: Table<ClassId, Pattern>,
    class_of: Vec<ClassId>,
}

impl Interned {
    fn push(&mut self, pattern: Pattern) {
        let id = match self.ids.get(&pattern) {
            Some(id) => *id,
            None => {
                let id = self.classes.push(pattern.clone());
                self.ids.insert(pattern, id);
                id
            }
        };
        self.class_of.push(id);
    }

    fn into_patterns(self, name: &str, windows: Table<WindowId, ElementType>) -> Patterns {
        let Self { classes, class_of, .. } = self;
        let shape = vec![class_of.len() as u32];
        Patterns { name: name.to_owned(), windows, shape, classes, class_of, order: Order::Canonical }
    }
}

/// The patterns of all ranks of a superstep, epoch by epoch.
///
/// `tell` gives the arguments as far as they tell which ranks are alike; `record` evaluates the superstep, and makes its
/// arguments once more where it takes them by value.
///
/// # Errors
/// Those of `arguments` and `record`; `RMA_SYNC` where ranks fence differently.
pub(crate) fn describe<A>(
    superstep: &Superstep,
    windows: &[ElementType],
    ranks: u32,
    arguments: impl FnMut(usize) -> Result<A>,
    tell: impl for<'a> Fn(&'a A) -> Vec<&'a dyn Argument>,
    record: impl Fn(&Recording, &A, &dyn Fn() -> Result<A>) -> Result<()>,
) -> Result<Vec<Patterns>> {
    let arguments = RefCell::new(arguments);
    let make = |rank: u32| (arguments.borrow_mut())(rank as usize);
    let epochs = |rank: u32, given: &A| -> Result<(Vec<RecordedEpoch>, bool)> {
        let recording = Recording::new(rank, ranks);
        let again = || {
            recording.observe();
            make(rank)
        };
        record(&recording, given, &again)?;
        let (mut epochs, observed) = recording.finish(windows.len(), superstep.fences)?;
        prefer(superstep, &mut epochs);
        Ok((epochs, observed))
    };
    if ranks == 0 {
        return Err(Error::new(Class::Rank, "a world has at least one rank: give a number of ranks above 0"));
    }
    let first = epochs(0, &make(0)?).map_err(|error| error.on_rank(0).in_superstep(superstep.name))?.0;
    let table: Table<WindowId, ElementType> = windows.iter().copied().collect();
    let mut all = Vec::new();
    for (number, RecordedEpoch { windows: fenced, .. }) in first.iter().enumerate() {
        let bundle = |rank| Ok(Bundle { arguments: make(rank)?, tell: &tell });
        let one = |rank: u32, bundle: &Bundle<'_, A>| -> Result<(Pattern, bool)> {
            let (mut mine, observed) = epochs(rank, &bundle.arguments)?;
            let alike = mine.len() == first.len() && mine[number].windows == *fenced;
            if !alike {
                let message =
                    "ranks do not fence alike: fences may depend on what is the same on all ranks only";
                return Err(Error::new(Class::RmaSync, message));
            }
            Ok((mine.swap_remove(number).pattern, observed))
        };
        let patterns = patterns(superstep.name, table.clone(), ranks, bundle, one)
            .map_err(|error| error.in_superstep(superstep.name))?;
        all.push(patterns);
    }
    Ok(all)
}
