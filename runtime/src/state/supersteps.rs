//! [`Supersteps`]: which supersteps a rank is in, and what is known of them.

use crate::collect::ticket::Slot;
use crate::state::assertions::Assertions;
use crate::state::call::Call;
use crate::state::window::WindowCore;
use crate::state::windows::{Few, Held, held};
use crate::state::world::WorldCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Pattern, Sync};
use fencepost_planner::{Error, Result};
use fencepost_transport::Endpoint;
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;
use std::sync::OnceLock;

/// The plans of a superstep that is prepared, epoch by epoch, as fences call them.
pub(crate) trait Plans {
    /// How the plans synchronise.
    fn sync(&self) -> Sync;

    /// Whether a run may begin.
    ///
    /// # Errors
    /// `PROC_FAILED`, or `RMA_SYNC` where a run is begun and not finished: nothing was changed.
    fn admits(&self, call: &Call) -> Result<()>;

    /// The body begins: its calls on `windows` are matched.
    fn begin(&self, windows: &[&WindowCore], call: &Call) -> Result<()>;

    /// The fence of an epoch: its plan is run, if all its calls were made.
    fn fence(&self, world: &WorldCore, fenced: &[&WindowCore], entered: &Held, call: &Call) -> Result<()>;

    /// The body has ended, after `fences` or with a fence of all its windows.
    fn end(
        &self,
        windows: &[&WindowCore],
        entered: &Held,
        fences: bool,
        call: &Call,
        result: Result<()>,
    ) -> Result<()>;

    /// The body has not come to its last fence, because of `error`: the world ends, unless it has.
    fn abandon(&self, entered: &Held, error: &Error);
}

/// A run that a rank has begun and not finished, of whichever plan.
pub(crate) trait InFlight {
    /// Goes on with it as far as that is possible without waiting. What goes wrong is told where it is finished.
    fn advance(&self, endpoint: &mut Endpoint);

    /// Whether steps of it are left.
    fn is_open(&self) -> bool;

    /// The line that began it.
    fn site(&self) -> &'static Location<'static>;
}

/// The plan of one epoch, as calls on windows are matched with it.
pub(crate) trait Planned {
    /// The call must be the next one of the plan.
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
    /// The function's name.
    pub name: &'static str,
    /// Its module.
    pub module: &'static str,
    /// Its file, as the compiler names it.
    pub file: &'static str,
    /// The line of its name.
    pub line: u32,
    /// The column of its name.
    pub column: u32,
    /// Whether its body has fences of its own; otherwise it ends in one of all its windows.
    pub fences: bool,
    /// Whether its body begins with a fence that orders nothing, and is left out: NOSUCCEED of the fence before ends there.
    pub opens: bool,
    /// The mode that operations without one of their own prefer in it.
    pub mode: Option<Mode>,
    /// How it synchronises where it is prepared.
    pub sync: Sync,
    /// The reason why it cannot be compiled ahead, with the line; `None` where it can.
    pub dynamic: Option<&'static str>,
    /// Its hash and its number.
    pub known: Known,
}

/// The hash and the number of a superstep, found at its first call and not again.
#[derive(Debug, Default)]
pub struct Known(pub(crate) OnceLock<(u64, usize)>);

impl Known {
    /// Nothing is known yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }
}

/// The supersteps that a rank of a world is in, and those it has been in.
#[derive(Default)]
pub(crate) struct Supersteps {
    pub(crate) running: RefCell<Stack>,
    /// The windows that they were entered with, one after another.
    pub(crate) entered: RefCell<Vec<Rc<WindowCore>>>,
    /// By number, whether a superstep's claim has been compared.
    pub(crate) compared: RefCell<Vec<bool>>,
    /// The plan of the next superstep that is entered, where it is prepared.
    pub(crate) bound: RefCell<Option<Rc<dyn Plans>>>,
    /// Whether each execution is compared, not only the first.
    pub(crate) check: Cell<bool>,
}

/// The supersteps that a rank is in, the outermost first. Places are used again, so that a superstep that is entered writes
/// what it needs where it belongs.
#[derive(Default)]
pub(crate) struct Stack {
    places: Vec<Running>,
    depth: usize,
}

impl Stack {
    /// One more superstep, with no modes, no claim and no plans yet; returns how many there were, and it.
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

    /// The innermost.
    #[inline]
    pub(crate) fn last(&self) -> Option<&Running> {
        self.places.get(self.depth.wrapping_sub(1))
    }

    /// The innermost.
    #[inline]
    pub(crate) fn last_mut(&mut self) -> Option<&mut Running> {
        self.places.get_mut(self.depth.wrapping_sub(1))
    }

    /// The one inside of `depth` others.
    #[inline]
    pub(crate) fn at(&mut self, depth: usize) -> &mut Running {
        &mut self.places[..self.depth][depth]
    }

    /// Only the `depth` outermost are left.
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
    /// The hash of its call.
    pub(crate) hash: u64,
    /// The line that called it.
    pub(crate) site: &'static Location<'static>,
    pub(crate) superstep: &'static Superstep,
    /// The index of the first window that it was entered with.
    pub(crate) windows: usize,
    /// What most supersteps do not have.
    pub(crate) special: Option<Special>,
    /// The next epoch of the claim.
    pub(crate) next: usize,
    /// Whether the last exchange failed that was made in it: every rank knows then.
    pub(crate) failed: bool,
    /// Whether its last fence is behind it.
    pub(crate) ended: bool,
}

/// What a superstep has that is prepared, has a mode of its own, or is compared with its pattern.
pub(crate) struct Special {
    /// The modes that its windows preferred before, where it has one of its own.
    pub(crate) modes: Option<Few<Mode>>,
    pub(crate) claim: Option<Rc<[RecordedEpoch]>>,
    /// Its plans, where it is prepared.
    pub(crate) matched: Option<Rc<dyn Plans>>,
}

impl Running {
    /// Whether calls in it are matched with plans, or will be compared.
    #[inline]
    fn follows(&self) -> bool {
        self.special.as_ref().is_some_and(|special| special.matched.is_some() || special.claim.is_some())
    }

    /// What its calls must be, where they will be compared.
    pub(crate) fn claim(&self) -> Option<&Rc<[RecordedEpoch]>> {
        self.special.as_ref()?.claim.as_ref()
    }

    /// Its plans, where it is prepared.
    #[inline]
    pub(crate) fn matched(&self) -> Option<&Rc<dyn Plans>> {
        self.special.as_ref()?.matched.as_ref()
    }

    #[cold]
    fn of(superstep: &'static Superstep, site: &'static Location<'static>) -> Self {
        let (hash, windows, next, failed, ended) = (0, 0, 0, false, false);
        Self { hash, site, superstep, windows, special: None, next, failed, ended }
    }

    /// The call that it was entered by.
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
    /// Whether the rank is in a superstep.
    #[inline]
    pub(crate) fn is_any_running(&self) -> bool {
        self.running.borrow().last().is_some()
    }

    /// Whether the rank is in a superstep, and whether that one [follows](Self::follows).
    #[inline(always)]
    pub(crate) fn around(&self) -> (bool, bool) {
        let running = self.running.borrow();
        let running = running.last();
        (running.is_some(), running.is_some_and(Running::follows))
    }

    /// The call that a fence makes: the superstep around the fence decides its name and hash.
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

    /// The plans of the superstep around a fence of `windows`, and the windows it was entered with: where it is prepared,
    /// and takes part with any of them.
    pub(crate) fn matched(&self, windows: &[&WindowCore]) -> Option<(Rc<dyn Plans>, Held)> {
        let running = self.running.borrow();
        let running = running.last()?;
        let matched = running.matched()?;
        let entered = &self.entered.borrow()[running.windows..];
        let takes_part = |window: &&WindowCore| entered.iter().any(|own| own.key == window.key);
        windows.iter().any(takes_part).then(|| (matched.clone(), held(entered)))
    }

    /// Compare each execution with its pattern, or only the first.
    pub(crate) fn check(&self, each: bool) {
        self.check.set(each);
    }

    /// Whether each execution is compared.
    pub(crate) fn checks(&self) -> bool {
        self.check.get()
    }

    /// Whether the calls that are being made will be compared before anything moves.
    pub(crate) fn comparing(&self) -> bool {
        self.running.borrow().last().is_some_and(|running| running.claim().is_some())
    }

    /// Whether calls in the superstep around a fence are matched with plans, or will be compared.
    #[inline]
    pub(crate) fn follows(&self) -> bool {
        self.running.borrow().last().is_some_and(Running::follows)
    }

    /// Keep whether an exchange failed, for the superstep that it was made in.
    pub(crate) fn fenced(&self, failed: bool) {
        if let Some(running) = self.running.borrow_mut().last_mut() {
            running.failed = failed;
        }
    }

    /// Whether the last exchange in the superstep around this failed.
    pub(crate) fn failed(&self) -> bool {
        self.running.borrow().last().is_some_and(|running| running.failed)
    }
}
