//! [`Supersteps`]: the supersteps that a rank is in, and the data about them.

pub(crate) mod schedule_cache;

use crate::collect::operation::WindowKey;
use crate::collect::ticket::Slot;
use crate::state::assertions::Assertions;
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::window_core::{Few, Held, held};
use crate::state::world::WorldCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Pattern, Sync};
use fencepost_planner::{Error, Result};
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;
use std::sync::OnceLock;

/// The plans of a prepared superstep, one for each epoch. The fence that ends an epoch runs its
/// plan.
pub(crate) trait Plans {
    /// Returns how the plans synchronise.
    fn sync(&self) -> Sync;

    /// Checks that a run may begin.
    ///
    /// # Errors
    /// `PROC_FAILED` if the world has ended. `RMA_SYNC` if a run was begun and is not finished. In
    /// both cases nothing has changed.
    fn admits(&self, call: &Call) -> Result<()>;

    /// Begins the body. From now on, its calls on `windows` are matched with the plans.
    fn begin(&self, windows: &[&WindowCore], call: &Call) -> Result<()>;

    /// Ends an epoch at its fence. Runs the plan of the epoch, if all calls of the plan were made.
    fn fence(&self, world: &WorldCore, fenced: &[&WindowCore], entered: &Held, call: &Call) -> Result<()>;

    /// Ends the body. If `fences` is `false`, the body has no fence of its own, and ends with a
    /// fence of all its windows.
    fn end(
        &self,
        windows: &[&WindowCore],
        entered: &Held,
        fences: bool,
        call: &Call,
        result: Result<()>,
    ) -> Result<()>;

    /// Abandons a body that `error` has kept from reaching its last fence. Ends the world, unless
    /// the world has already ended.
    fn abandon(&self, entered: &Held, error: &Error);
}

/// The plan of one epoch, with which calls on windows are matched.
pub(crate) trait Planned {
    /// Matches a call, which must be the next call of the plan.
    fn call(
        &self,
        window: (&WindowCore, WindowId),
        asked: Asked<'_>,
        site: &'static Location<'static>,
    ) -> Result<()>;
}

/// A call of a body that is matched with a plan.
pub(crate) struct Asked<'a> {
    pub(crate) kind: Kind,
    pub(crate) target: Option<usize>,
    pub(crate) remote: Datatype,
    pub(crate) local: Local,
    pub(crate) slice: &'a [u8],
    pub(crate) landing: Option<Slot>,
}

/// The epoch that one fence ends: its windows, and the operations on them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedEpoch {
    /// The windows that are fenced.
    pub windows: Vec<WindowId>,
    /// The calls, in program order.
    pub pattern: Pattern,
}

/// The properties of a superstep that are known from its text.
#[derive(Debug)]
pub struct Superstep {
    /// The name of the function.
    pub name: &'static str,
    /// The module of the function.
    pub module: &'static str,
    /// The file of the function, as the compiler names it.
    pub file: &'static str,
    /// The line of the function's name.
    pub line: u32,
    /// The column of the function's name.
    pub column: u32,
    /// Whether its body has fences of its own. If not, it ends in a fence of all its windows.
    pub fences: bool,
    /// Whether the body begins with a fence that is left out because it orders nothing. If
    /// NOSUCCEED was asserted at the preceding fence, the assertion ends where the fence was left
    /// out.
    pub opens: bool,
    /// The preferred mode of operations in the superstep that have no mode of their own.
    pub mode: Option<Mode>,
    /// How the superstep synchronises if it is prepared.
    pub sync: Sync,
    /// The reason why the superstep cannot be compiled ahead of time, with the line. `None` if it
    /// can be.
    pub dynamic: Option<&'static str>,
    /// The hash and the number of the superstep.
    pub known: Known,
}

impl Superstep {
    /// Describes a superstep that has no function: its schedules are made elsewhere.
    #[must_use]
    pub const fn of_schedules(
        name: &'static str,
        module: &'static str,
        (file, line, column): (&'static str, u32, u32),
    ) -> Self {
        Self {
            name,
            module,
            file,
            line,
            column,
            fences: false,
            opens: false,
            mode: None,
            sync: Sync::Fence,
            dynamic: None,
            known: Known::new(),
        }
    }
}

/// The hash and the number of a superstep, which are determined once, at its first call.
#[derive(Debug, Default)]
pub struct Known(pub(crate) OnceLock<(u64, usize)>);

impl Known {
    /// Returns a value without a hash and a number.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }
}

/// The supersteps that a rank of a world is in or has been in.
#[derive(Default)]
pub(crate) struct Supersteps {
    pub(crate) running: RefCell<Stack>,
    /// The windows with which the supersteps were entered: first those of the outermost superstep.
    pub(crate) entered: RefCell<Vec<Rc<WindowCore>>>,
    /// For each superstep, by number: whether its claim was compared with its calls.
    pub(crate) compared: RefCell<Vec<bool>>,
    /// The plans of the next superstep that is entered, if it is prepared.
    pub(crate) bound: RefCell<Option<Rc<dyn Plans>>>,
    /// Whether each execution of a superstep is compared with its pattern. If not, only the first
    /// execution is compared.
    pub(crate) check: Cell<bool>,
    /// The line that began a superstep of all ranks, if that superstep is not finished yet. Until
    /// it is finished, no other call of all ranks is admitted.
    pub(crate) begun: Cell<Option<&'static Location<'static>>>,
    /// The windows of the prepared superstep whose calls are being matched.
    pub(crate) matching: RefCell<Vec<(WindowKey, WindowId)>>,
}

/// The supersteps that a rank is in, the outermost first. Slots are reused: entering a superstep
/// overwrites an old entry instead of allocating.
#[derive(Default)]
pub(crate) struct Stack {
    places: Vec<Running>,
    depth: usize,
}

impl Stack {
    /// Pushes a superstep, with no modes, no claim and no plans yet. Returns the number of
    /// supersteps around it, and its entry.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        superstep: &'static Superstep,
        hash: u64,
        site: &'static Location<'static>,
        windows: usize,
    ) -> (usize, &mut Running) {
        let depth = self.depth;
        if depth == self.places.len() {
            self.places.push(Running::of(superstep, site));
        }
        self.depth += 1;
        let place = &mut self.places[depth];
        (place.superstep, place.hash, place.site, place.windows) = (superstep, hash, site, windows);
        (place.next, place.failed, place.ended) = (0, false, false);
        (depth, place)
    }

    /// Returns the innermost superstep.
    #[inline]
    pub(crate) fn last(&self) -> Option<&Running> {
        self.places.get(self.depth.wrapping_sub(1))
    }

    /// Returns the innermost superstep.
    #[inline]
    pub(crate) fn last_mut(&mut self) -> Option<&mut Running> {
        self.places.get_mut(self.depth.wrapping_sub(1))
    }

    /// Returns the superstep that is inside `depth` other supersteps.
    #[inline]
    pub(crate) fn at(&mut self, depth: usize) -> &mut Running {
        &mut self.places[..self.depth][depth]
    }

    /// Removes all but the `depth` outermost supersteps.
    #[inline]
    pub(crate) fn truncate(&mut self, depth: usize) {
        while self.depth > depth {
            self.depth -= 1;
            let place = &mut self.places[self.depth];
            if place.special.is_some() {
                place.special = None;
            }
        }
    }
}

/// A superstep that a rank is in.
pub(crate) struct Running {
    /// The hash of the call of the superstep.
    pub(crate) hash: u64,
    /// The line that called the superstep.
    pub(crate) site: &'static Location<'static>,
    pub(crate) superstep: &'static Superstep,
    /// The index in `entered` of the first window with which the superstep was entered.
    pub(crate) windows: usize,
    /// The data that most supersteps do not have.
    pub(crate) special: Option<Special>,
    /// The next epoch of the claim.
    pub(crate) next: usize,
    /// Whether the last exchange in the superstep failed. A failure is known to every rank.
    pub(crate) failed: bool,
    /// Whether its last fence has been executed.
    pub(crate) ended: bool,
}

/// The data of a superstep that is prepared, has a mode of its own, or is compared with its
/// pattern.
pub(crate) struct Special {
    /// The modes that the windows preferred before the superstep, if the superstep has a mode of
    /// its own.
    pub(crate) modes: Option<Few<Mode>>,
    pub(crate) claim: Option<Rc<[RecordedEpoch]>>,
    /// The plans of the superstep, if it is prepared.
    pub(crate) matched: Option<Rc<dyn Plans>>,
}

impl Running {
    /// Returns whether calls in the superstep are matched with plans, or will be compared.
    #[inline]
    fn follows(&self) -> bool {
        self.special.as_ref().is_some_and(|special| special.matched.is_some() || special.claim.is_some())
    }

    /// Returns the epochs with which the calls of the superstep will be compared, or `None` if they
    /// are not compared.
    pub(crate) fn claim(&self) -> Option<&Rc<[RecordedEpoch]>> {
        self.special.as_ref()?.claim.as_ref()
    }

    /// Returns the plans of the superstep, if it is prepared.
    #[inline]
    pub(crate) fn matched(&self) -> Option<&Rc<dyn Plans>> {
        self.special.as_ref()?.matched.as_ref()
    }

    #[cold]
    fn of(superstep: &'static Superstep, site: &'static Location<'static>) -> Self {
        let (hash, windows, next, failed, ended) = (0, 0, 0, false, false);
        Self { hash, site, superstep, windows, special: None, next, failed, ended }
    }

    /// Returns the call with which the superstep was entered.
    #[inline]
    pub(crate) fn call(&self) -> Call {
        Call {
            hash: self.hash,
            name: Some(self.superstep.name),
            asserted: Assertions::NONE,
            arguments: None,
            site: self.site,
        }
    }
}

impl Supersteps {
    /// Returns the number that this window has in the superstep whose calls are being matched.
    pub(crate) fn matching_window(&self, key: WindowKey) -> Option<WindowId> {
        self.matching.borrow().iter().find(|(other, _)| *other == key).map(|(_, id)| *id)
    }

    /// Returns whether the rank is in a superstep.
    #[inline]
    pub(crate) fn is_any_running(&self) -> bool {
        self.running.borrow().last().is_some()
    }

    /// Returns whether the rank is in a superstep, and whether that superstep
    /// [follows](Self::follows).
    #[inline(always)]
    pub(crate) fn around(&self) -> (bool, bool) {
        let running = self.running.borrow();
        let running = running.last();
        (running.is_some(), running.is_some_and(Running::follows))
    }

    /// Returns the call that a fence makes. If the call has no name, it gets the name of the
    /// superstep around the fence, and its hash includes the hash of that superstep.
    pub(crate) fn call(&self, call: &Call) -> Call {
        match self.running.borrow().last() {
            Some(running) if call.name.is_none() => {
                Call { hash: running.hash ^ call.hash, name: Some(running.superstep.name), ..*call }
            }
            _ => *call,
        }
    }

    /// Returns why the superstep around a fence cannot be compiled ahead.
    pub(crate) fn dynamic(&self) -> Option<&'static str> {
        self.running.borrow().last()?.superstep.dynamic
    }

    /// Returns the plans of the superstep around a fence of `windows`, and the windows with which
    /// that superstep was entered. Returns `None` if the superstep is not prepared, or was entered
    /// with none of `windows`.
    pub(crate) fn matched(&self, windows: &[&WindowCore]) -> Option<(Rc<dyn Plans>, Held)> {
        let running = self.running.borrow();
        let running = running.last()?;
        let matched = running.matched()?;
        let entered = &self.entered.borrow()[running.windows..];
        let takes_part = |window: &&WindowCore| entered.iter().any(|own| own.key == window.key);
        windows.iter().any(takes_part).then(|| (matched.clone(), held(entered)))
    }

    /// Sets whether each execution of a superstep, or only the first, is compared with its pattern.
    pub(crate) fn check(&self, each: bool) {
        self.check.set(each);
    }

    /// Returns whether each execution of a superstep is compared with its pattern.
    pub(crate) fn checks(&self) -> bool {
        self.check.get()
    }

    /// Returns whether the calls that are being made will be compared before any element moves.
    pub(crate) fn comparing(&self) -> bool {
        self.running.borrow().last().is_some_and(|running| running.claim().is_some())
    }

    /// Returns whether calls in the superstep around a fence are matched with plans, or will be
    /// compared.
    #[inline]
    pub(crate) fn follows(&self) -> bool {
        self.running.borrow().last().is_some_and(Running::follows)
    }

    /// Records in the innermost superstep whether its last exchange failed.
    pub(crate) fn fenced(&self, failed: bool) {
        if let Some(running) = self.running.borrow_mut().last_mut() {
            running.failed = failed;
        }
    }

    /// Returns whether the last exchange in the superstep around this call failed.
    pub(crate) fn failed(&self) -> bool {
        self.running.borrow().last().is_some_and(|running| running.failed)
    }
}
