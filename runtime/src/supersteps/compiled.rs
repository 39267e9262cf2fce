//! [`Compiled`]: supersteps compiled ahead of time, for any number of ranks, without a world.

use crate::supersteps::claim::evaluate;
use crate::supersteps::explained::{Explained, ExplainedEpoch, ExplainedShare};
use crate::supersteps::prepared::verified;
use crate::supersteps::recorder::Recording;
use crate::supersteps::state::RecordedEpoch;
use crate::supersteps::state::Superstep;
use fencepost_planner::argument::Argument;
use fencepost_planner::collect::patterns;
use fencepost_planner::conflicts::{Conflict, conflicts};
use fencepost_planner::element::ElementType;
use fencepost_planner::explain::{cost, cost_at_fence, explain};
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::pattern::{Mode, Order, Pattern, Patterns};
use fencepost_planner::ir::schedule::{Placement, Schedule};
use fencepost_planner::machine::Machine;
use fencepost_planner::plan::{self, Digest, MadeFor, Plan};
use fencepost_planner::table::Table;
use fencepost_planner::units::Nanos;
use fencepost_planner::{Error, ErrorClass, Options, Result, Verified};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

/// Wraps an argument of any type. If the type does not implement [`Argument`], the argument is used
/// as an argument without a class.
#[derive(Debug)]
pub struct Told<'a, T>(pub &'a T);

/// The trait whose method is chosen for types that implement [`Argument`]. Such an argument
/// determines which ranks have equal arguments.
pub trait TellArgument<'a> {
    /// Returns the argument itself.
    fn told(&self) -> &'a dyn Argument;
}

impl<'a, T: Argument> TellArgument<'a> for Told<'a, T> {
    fn told(&self) -> &'a dyn Argument {
        self.0
    }
}

/// The trait whose method is chosen for all other types. Each rank is then evaluated separately.
pub trait TellNothing<'a> {
    /// Returns an argument without any information.
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
        // Every part is queried, because the query also resets the part.
        (self.tell)(&self.arguments).into_iter().fold(false, |any, part| part.observed() | any)
    }
}

/// A superstep compiled ahead of time: a verified schedule for each of its epochs.
#[derive(Clone, Debug)]
pub struct Compiled {
    name: Arc<str>,
    patterns: Vec<Patterns>,
    schedules: Vec<Verified<Schedule>>,
    placement: Placement,
    made_for: MadeFor,
}

impl Compiled {
    fn new(name: Arc<str>, patterns: Vec<Patterns>, placement: Placement, made_for: MadeFor) -> Result<Self> {
        let MadeFor { machine, options, .. } = &made_for;
        let schedules = patterns.iter().map(|patterns| schedule(patterns, placement, machine, options));
        let schedules =
            schedules.collect::<Result<_>>().map_err(|error: Error| error.in_superstep(&*name))?;
        Ok(Self { name, patterns, schedules, placement, made_for })
    }

    /// Compiles the same calls for another placement of the ranks
    /// ([`World::placement`](crate::World::placement)), machine, or choice of modes.
    ///
    /// # Errors
    /// As the superstep's `compile`.
    pub fn with(&self, placement: Placement, machine: &Machine, options: &Options) -> Result<Self> {
        let made_for = MadeFor { machine: *machine, options: *options, ..self.made_for.clone() };
        Self::new(self.name.clone(), self.patterns.clone(), placement, made_for)
    }

    /// Compiles the same calls for this placement and `made_for`. If the schedules would be the
    /// same, nothing is compiled.
    ///
    /// # Errors
    /// As the superstep's `compile`.
    pub(crate) fn made_for_another(self, placement: Placement, made_for: MadeFor) -> Result<Self> {
        let MadeFor { machine, options, .. } = self.made_for;
        if (placement, made_for.machine, made_for.options) == (self.placement, machine, options) {
            return Ok(Self { made_for, ..self });
        }
        Self::new(self.name, self.patterns, placement, made_for)
    }

    /// Compiles the same calls, with each operation in `mode` if that mode is available for the
    /// operation.
    ///
    /// Placement, machine and all other options stay unchanged.
    ///
    /// # Errors
    /// As the superstep's `compile`.
    pub fn in_mode(&self, mode: Mode) -> Result<Self> {
        self.with(self.placement, &self.made_for.machine, &Options { mode, ..self.made_for.options })
    }

    /// Compiles the same calls for epochs with this `order`: canonical or relaxed.
    ///
    /// Placement, machine and options stay unchanged. See
    /// [`World::set_order`](crate::World::set_order).
    ///
    /// # Errors
    /// As the superstep's `compile`.
    #[doc(hidden)]
    pub fn in_order(&self, order: Order) -> Result<Self> {
        let patterns = self.patterns.iter().map(|patterns| Patterns { order, ..patterns.clone() });
        Self::new(self.name.clone(), patterns.collect(), self.placement, self.made_for.clone())
    }

    /// Returns the predicted time of the schedules, one after another, on the machine that they
    /// were compiled for.
    pub fn predicted(&self) -> Nanos {
        self.schedules.iter().map(|schedule| cost(schedule, &self.made_for.machine).predicted).sum()
    }

    /// Returns the predicted time of the same messages in epochs that are not prepared, one after
    /// another.
    ///
    /// Each of these epochs also has a census. In a census, ranks find out which ranks are in the
    /// fence, and which ranks have operations for which other ranks.
    pub fn predicted_at_fence(&self) -> Nanos {
        self.schedules.iter().map(|schedule| cost_at_fence(schedule, &self.made_for.machine).0).sum()
    }

    /// Returns a lower bound for the time that any schedules of these messages take on the machine
    /// that they were compiled for.
    #[doc(hidden)]
    pub fn bound(&self) -> Nanos {
        self.schedules.iter().map(|schedule| cost(schedule, &self.made_for.machine).bound).sum()
    }

    /// Explains where each operation goes and why: mode, message, round, cost terms and the line of
    /// its call, as values. The result also contains the operations that
    /// [conflict](Self::conflicts). Its `Display` writes a text.
    pub fn explain(&self) -> Explained {
        let epochs = self.schedules.iter().zip(&self.patterns).map(|(schedule, patterns)| ExplainedEpoch {
            is_replanned: false,
            share: ExplainedShare::Whole(explain(schedule, &self.made_for.machine)),
            conflicts: conflicts(patterns),
        });
        Explained { origin: String::new(), epochs: epochs.collect() }
    }

    /// Returns the operations that touch the same elements in ways whose order matters: the ranks,
    /// the window, the elements and the lines.
    ///
    /// Contains at most the first 1000 conflicts of each epoch. Conflicts of ranks that differ only
    /// by their position are listed once.
    ///
    /// Conflicting operations have a defined meaning, and the schedule keeps that meaning, but a
    /// program seldom intends it. Two other cases are also found: a put that names an element of
    /// its target twice, and a get that writes an element of its section twice. In both cases the
    /// last visit in the order of the datatype determines the value of the element, and the values
    /// of earlier visits are lost.
    ///
    /// # Cost
    /// At most the cost of compiling.
    pub fn conflicts(&self) -> Vec<Conflict> {
        self.patterns.iter().flat_map(conflicts).collect()
    }

    /// Returns the patterns of all ranks, one for each epoch.
    #[doc(hidden)]
    pub fn patterns(&self) -> &[Patterns] {
        &self.patterns
    }

    /// Returns the schedules, one for each epoch.
    #[doc(hidden)]
    pub fn schedules(&self) -> &[Verified<Schedule>] {
        &self.schedules
    }

    /// Writes the plan of all epochs to the file `path`, with the machine and the options that it
    /// was compiled for.
    ///
    /// # Errors
    /// `IO` if the file system reports an error; `FILE` for a plan that is too long to be read
    /// again.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        plan::save_all(self.schedules.iter().map(Verified::get), &self.made_for, path)
    }

    /// Reads the plan of all epochs from the file `path`, without a world and without the program
    /// that made the plan. The schedules are verified against the calls in the file.
    ///
    /// The result has the machine, the options and the calls that were saved. If the file contains
    /// no machine, the machine is [`Machine::default`].
    ///
    /// ```
    /// # use fencepost_planner::ir::pattern::Mode;
    /// # use fencepost_runtime::Compiled;
    /// # fn show(path: &str) -> fencepost_planner::Result<()> {
    /// let plan = Compiled::open(path)?;
    /// println!("{} on {} ranks: {}", plan.name(), plan.ranks(), plan.predicted());
    /// println!("one message to each target: {}", plan.in_mode(Mode::Aggregated)?.predicted());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `IO` if the file system reports an error; `FILE` if the file is no plan or damaged; `PLAN`
    /// if a schedule in the file does not do what its calls ask for, or if the file contains plans
    /// of different supersteps; `NO_MEM` if verifying a schedule takes more work than the
    /// verifier's limit.
    ///
    /// # Cost
    /// The cost of verifying the schedules.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let (path, plans) = (path.as_ref().display().to_string(), plan::load_all(&path)?);
        let of = |Plan { schedule, made_for, .. }: &Plan| {
            (schedule.name.clone(), schedule.class_of.len(), schedule.placement, made_for.clone())
        };
        let first = of(&plans[0]);
        let (mut patterns, mut schedules) = (Vec::new(), Vec::new());
        for (epoch, plan) in plans.into_iter().enumerate() {
            if of(&plan) != first {
                let (name, ranks, ..) = first;
                let message = format!(
                    "{path}: its first plan is of the superstep {name} on {ranks} ranks, and plan {epoch} is of another one, or for other ranks or another machine; compile it again"
                );
                return Err(Error::new(ErrorClass::Plan, message));
            }
            let (asked, schedule) = verified(plan.schedule, &path)?;
            patterns.push(asked);
            schedules.push(schedule);
        }
        let (name, _, placement, made_for) = first;
        let made_for = made_for.unwrap_or_else(|| MadeFor::new(&Machine::default(), &Options::default()));
        Ok(Self { name: name.into(), patterns, schedules, placement, made_for })
    }

    /// Returns the bytes of the file that [`save`](Self::save) writes.
    ///
    /// # Errors
    /// As [`save`](Self::save), without those of the file system.
    #[doc(hidden)]
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        plan::all_to_bytes(self.schedules.iter().map(Verified::get), &self.made_for)
    }

    /// Returns which ranks share memory in these schedules.
    #[doc(hidden)]
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Returns the machine, the options, the recipe, and the recipe's values for which the plan was
    /// made.
    #[doc(hidden)]
    pub fn made_for(&self) -> &MadeFor {
        &self.made_for
    }

    /// Returns the name of the superstep.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.schedules.first().map_or(0, |schedule| schedule.class_of.len())
    }

    /// Returns the digest of the schedules, in hexadecimal digits. Equal schedules have equal
    /// digests, even if they were compiled by different programs or for different machines.
    ///
    /// # Cost
    /// Linear in ranks and instructions.
    #[must_use]
    pub fn digest(&self) -> String {
        let all: Vec<Digest> = self.schedules.iter().map(|schedule| schedule.digest()).collect();
        match &all[..] {
            [one] => one.to_string(),
            several => {
                Digest::of(&several.iter().flat_map(|digest| digest.0).collect::<Vec<_>>()).to_string()
            }
        }
    }
}

/// Compiles patterns to a verified schedule.
pub(crate) fn schedule(
    patterns: &Patterns,
    placement: Placement,
    machine: &Machine,
    options: &Options,
) -> Result<Verified<Schedule>> {
    fencepost_planner::compile(patterns, placement, machine, options)
}

/// Implements `name::compile`.
///
/// There is no world with a machine model here, so the schedules are for ranks that share memory,
/// on the default [`Machine`]. [`Compiled::with`] compiles for another placement and machine.
///
/// # Errors
/// The errors of `arguments` and `record`, with the rank.
pub fn compile<A>(
    superstep: &'static Superstep,
    windows: &[ElementType],
    ranks: usize,
    arguments: impl FnMut(usize) -> Result<A>,
    tell: impl for<'a> Fn(&'a A) -> Vec<&'a dyn Argument>,
    record: impl Fn(&Recording, &A, &dyn Fn() -> Result<A>) -> Result<()>,
) -> Result<Compiled> {
    let ranks = u32::try_from(ranks).map_err(|_| {
        Error::new(ErrorClass::Rank, format!("a world of {ranks} ranks: a schedule has at most {}", u32::MAX))
    })?;
    let patterns = describe(superstep, windows, ranks, arguments, tell, record)?;
    of_patterns(superstep.name, patterns)
}

/// Compiles the calls of a superstep, one epoch after another, for ranks that share memory, on the
/// default [`Machine`].
///
/// # Errors
/// As the superstep's `compile`.
#[track_caller]
pub fn of_patterns(name: &str, patterns: Vec<Patterns>) -> Result<Compiled> {
    let made_for = MadeFor::new(&Machine::default(), &Options::default());
    Compiled::new(name.into(), patterns, Placement::Together, made_for)
}

/// Returns the patterns of all ranks of a superstep, epoch by epoch.
///
/// `tell` returns the arguments of a rank as [`Argument`]s, which are compared to find ranks with
/// equal arguments. `record` evaluates the superstep. If the superstep takes its arguments by
/// value, `record` makes the arguments again by calling its last parameter.
///
/// # Errors
/// The errors of `arguments` and `record`; `RMA_SYNC` if ranks fence differently.
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
        evaluate(superstep, || record(&recording, given, &again))?;
        let (mut epochs, observed) = recording.finish(windows.len(), superstep.fences)?;
        prefer(superstep, &mut epochs);
        Ok((epochs, observed))
    };
    if ranks == 0 {
        return Err(Error::new(
            ErrorClass::Rank,
            "a world has at least one rank: give a number of ranks above 0",
        ));
    }
    let first = epochs(0, &make(0)?).map_err(|error| error.on_rank(0).in_superstep(superstep.name))?.0;
    let table: Table<WindowId, ElementType> = windows.iter().copied().collect();
    let mut all = Vec::new();
    for (number, RecordedEpoch { windows: fenced, .. }) in first.iter().enumerate() {
        let bundle = |rank| Ok(Bundle { arguments: make(rank)?, tell: &tell });
        let one = |rank: u32, bundle: &Bundle<'_, A>| -> Result<(Pattern, bool)> {
            let (mut mine, observed) = epochs(rank, &bundle.arguments)?;
            let same_fences = mine.len() == first.len() && mine[number].windows == *fenced;
            if !same_fences {
                let message = "ranks execute different fences: a fence may depend only on values that are equal on all ranks";
                return Err(Error::new(ErrorClass::RmaSync, message));
            }
            Ok((mine.swap_remove(number).pattern, observed))
        };
        let patterns = patterns(superstep.name, table.clone(), ranks, bundle, one)
            .map_err(|error| error.in_superstep(superstep.name))?;
        all.push(Patterns { sync: superstep.sync, ..patterns });
    }
    Ok(all)
}

/// If the superstep has a mode, gives this mode to all operations that have no mode of their own.
pub(crate) fn prefer(superstep: &Superstep, epochs: &mut [RecordedEpoch]) {
    let Some(mode) = superstep.mode else { return };
    let operations = epochs.iter_mut().flat_map(|epoch| epoch.pattern.operations.values_mut());
    operations.filter(|operation| operation.mode == Mode::Auto).for_each(|operation| operation.mode = mode);
}
